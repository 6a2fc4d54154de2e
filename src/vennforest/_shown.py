"""Names of the columns of predictions."""

from __future__ import annotations

from collections.abc import Sequence

OUTPUT_KINDS = ("p", "bounds", "confidence")
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
