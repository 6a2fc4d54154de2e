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

MAX_ROWS, MAX_CLASSES = 10, 8
"""Size of a table in notebooks."""

KINDS = ("p", "bounds", "confidence")
"""What can be written for each class: probability, Venn–Abers bounds, confidence interval."""


def names_of(kind: str, level: float = 0.95) -> list[str]:
    """Return the names of the columns of a kind without the class, such as ``low95``."""
    percent = f"{100 * level:.10g}"
    names = {"p": ["p"], "bounds": ["lower", "upper"]}
    return names.get(kind) or [f"low{percent}", f"high{percent}"]


def columns_of(
    label: object, kinds: Sequence[str] = ("p", "bounds"), level: float = 0.95
) -> list[str]:
    """Return the names of the columns of a class, such as ``p(yes)``."""
    return [f"{name}({label})" for kind in kinds for name in names_of(kind, level)]


def bounds_frame(
    lower: FloatArray,
    upper: FloatArray,
    classes: NDArray[Any],
    p: ArrayLike | None = None,
    index: Any = None,
) -> pd.DataFrame:
    """Return bounds (n, k), after probabilities if given, as a data frame."""
    pandas = needed("pandas", "data frames")
    values = [lower, upper]
    if p is not None:
        values.insert(0, np.asarray(p))
        if values[0].shape != lower.shape:
            raise ValueError(f"p must have shape {lower.shape}, got {values[0].shape}")
    if index is not None and len(index) != len(lower):
        raise ValueError(f"index must name {len(lower)} rows, got {len(index)}")
    names = [name for label in classes.tolist() for name in columns_of(label)[-len(values) :]]
    table = np.stack(values, axis=2).reshape(len(lower), len(names))
    frame: pd.DataFrame = pandas.DataFrame(table, index=index, columns=names)
    return frame


def bounds_html(lower: FloatArray, upper: FloatArray, classes: NDArray[Any]) -> str:
    """Return bounds (n, k) as an HTML table of the first and last rows and the first classes."""
    n, k = lower.shape
    names = [escape(str(label)) for label in classes.tolist()[:MAX_CLASSES]]
    rows: list[int | None] = list(range(n))
    if n > MAX_ROWS:
        rows = [*range(MAX_ROWS // 2), None, *range(n - MAX_ROWS // 2, n)]
    head = _line("th", ["", *names, *(["…"] if k > MAX_CLASSES else [])])
    body = "".join(
        _line("td", ["…"] * (len(names) + 1))
        if i is None
        else _line("td", [str(i), *_cells(lower[i], upper[i], len(names))])
        for i in rows
    )
    first = f", of which {MAX_CLASSES} are shown" if k > MAX_CLASSES else ""
    return (
        f"<table><caption>Lower and upper probabilities of {n:,} objects: "
        f"{k} classes{first}</caption>"
        f"<thead>{head}</thead><tbody>{body}</tbody></table>"
    )


def _cells(lower: FloatArray, upper: FloatArray, k: int) -> list[str]:
    pairs = zip(lower[:k].tolist(), upper[:k].tolist(), strict=True)
    return [f"{digits(low)} – {digits(up)}" for low, up in pairs]


def _line(tag: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in cells) + "</tr>"


def digits(p: float) -> str:
    """Return a probability with three digits, or as many as tell it from 0 or 1."""
    distance = min(p, 1 - p)
    if not 0 < distance < 5e-4:  # NaN too
        return f"{p:.3f}"
    return f"{p:.1e}" if p < 0.5 else f"1 − {distance:.1e}"
