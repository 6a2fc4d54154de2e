"""What an audit finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from vennforest._validation import IntArray


@dataclass(frozen=True, eq=False)
class Finding:
    """A fault of a model or its data.

    Attributes
    ----------
    kind : str
        ``"copies"``, ``"near-copies"``, ``"synthetic rows"``, ``"repeated ID"``,
        ``"leaking column"``, ``"training rows"``, ``"steps that see labels"`` or ``"falling
        frequency"``.
    severity : {"error", "warning"}
        ``"error"``: probabilities are wrong; ``"warning"``: they may be.
    message : str
        The fault and its remedy, in one or two sentences.
    rows : ndarray of shape (n_rows,) or None
        Indices of the rows concerned; None if the fault does not concern single rows. Of a large
        table only a sample of the rows is examined.
    """

    kind: str
    severity: Literal["error", "warning"]
    message: str
    rows: IntArray | None = None
