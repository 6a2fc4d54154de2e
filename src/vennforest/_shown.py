"""Names of the columns of predictions, and bounds as a data frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vennforest._messages import needed
from vennforest._validation import FloatArray

if TYPE_CHECKING:
    import pandas as pd

KINDS = ("p", "bounds", "confidence")
"""Kinds of columns of a class: probability, Venn–Abers bounds, confidence interval."""


def names_of(kind: str, level: float = 0.95) -> list[str]:
    """Return the column names of a kind without the class, such as ``["lower", "upper"]``."""
    percent = f"{100 * level:.10g}"
    names = {"p": ["p"], "bounds": ["lower", "upper"]}
    return names.get(kind) or [f"low{percent}", f"high{percent}"]


def columns_of(
    label: object, kinds: Sequence[str] = ("p", "bounds"), level: float = 0.95
) -> list[str]:
    """Return the column names of a class, such as ``p(yes)``."""
    return [f"{name}({label})" for kind in kinds for name in names_of(kind, level)]


def bounds_frame(
    lower: FloatArray,
    upper: FloatArray,
    classes: NDArray[Any],
    p: ArrayLike | None = None,
    index: Any = None,
    level: float | None = None,
) -> pd.DataFrame:
    """Return a data frame of probabilities (n, k), if given, and bounds (n, k).

    With a ``level`` the bounds are the ends of confidence intervals.
    """
    pandas = needed("pandas", "data frames")
    values = [lower, upper]
    if p is not None:
        values.insert(0, np.asarray(p))
        if values[0].shape != lower.shape:
            raise ValueError(f"p must have shape {lower.shape}, got {values[0].shape}")
    kinds = ["p", "bounds"] if level is None else ["p", "confidence"]
    names = [
        name
        for label in classes.tolist()
        for name in columns_of(label, kinds, level or 0.95)[-len(values) :]
    ]
    table = np.stack(values, axis=2).reshape(len(lower), len(names))
    frame: pd.DataFrame = pandas.DataFrame(table, index=index, columns=names)
    return frame
