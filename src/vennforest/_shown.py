"""How bounds are shown: as a data frame, and as a table in notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vennforest._messages import needed
from vennforest._validation import FloatArray

if TYPE_CHECKING:
    import pandas as pd

ROWS, CLASSES = 10, 8
"""How much of a table notebooks show."""


KINDS = ("p", "bounds", "confidence")
"""What may be written of each class: probability, Venn–Abers bounds, confidence interval."""


def names_of(kind: str, level: float = 0.95) -> list[str]:
    """Return how the columns of a kind begin, such as ``low95``, before the class."""
    percent = f"{100 * level:.10g}"
    of_kind = {"p": ["p"], "bounds": ["lower", "upper"]}
    return of_kind.get(kind) or [f"low{percent}", f"high{percent}"]


def columns_of(
    label: object, kinds: Sequence[str] = ("p", "bounds"), level: float = 0.95
) -> list[str]:
    """Return what the columns of a class are called."""
    return [f"{name}({label})" for kind in kinds for name in names_of(kind, level)]


def bounds_frame(
    lower: FloatArray,
    upper: FloatArray,
    classes: NDArray[Any],
    p: ArrayLike | None = None,
    index: Any = None,
) -> pd.DataFrame:
    """Return bounds (n, k), and probabilities where they are given, as a data frame."""
    needed("pandas", "data frames")
    import pandas as pd

    values = [lower, upper]
    if p is not None:
        values.insert(0, np.asarray(p))
        if values[0].shape != lower.shape:
            raise ValueError(f"p must have shape {lower.shape}, got {values[0].shape}")
    if index is not None and len(index) != len(lower):
        raise ValueError(f"index must name {len(lower)} rows, got {len(index)}")
    names = [name for label in classes.tolist() for name in columns_of(label)[-len(values) :]]
    table = np.stack(values, axis=2).reshape(len(lower), len(names))
    return pd.DataFrame(table, index=index, columns=names)


def bounds_html(lower: FloatArray, upper: FloatArray, classes: NDArray[Any]) -> str:
    """Return bounds (n, k) as an HTML table, of the first and last rows and the first classes."""
    n, k = lower.shape
    names = [escape(str(label)) for label in classes.tolist()[:CLASSES]]
    shown: list[int | None] = list(range(n))
    if n > ROWS:
        shown = [*range(ROWS // 2), None, *range(n - ROWS // 2, n)]
    head = _line("th", ["", *names, *(["…"] if k > CLASSES else [])])
    body = "".join(
        _line("td", ["…"] * (len(names) + 1))
        if i is None
        else _line("td", [str(i), *_cells(lower[i], upper[i], len(names))])
        for i in shown
    )
    some = f", of which {CLASSES} are shown" if k > CLASSES else ""
    return (
        f"<table><caption>Lower and upper probabilities of {n:,} objects: "
        f"{k} classes{some}</caption>"
        f"<thead>{head}</thead><tbody>{body}</tbody></table>"
    )


def _cells(lower: FloatArray, upper: FloatArray, k: int) -> list[str]:
    pairs = zip(lower[:k].tolist(), upper[:k].tolist(), strict=True)
    return [f"{digits(low)} – {digits(up)}" for low, up in pairs]


def _line(tag: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in cells) + "</tr>"


def digits(p: float) -> str:
    """Return a probability with three digits, or so many that it is not 0 or 1 unless it is."""
    distance = min(p, 1 - p)
    if not 0 < distance < 5e-4:  # NaN too
        return f"{p:.3f}"
    return f"{p:.1e}" if p < 0.5 else f"1 − {distance:.1e}"
