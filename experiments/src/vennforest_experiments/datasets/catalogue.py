"""Facts about each named data set: sizes, column types, classes, papers, source, licence."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Entry:
    """Facts about one data set.

    Parameters
    ----------
    name : str
        Its name, also that of its file: ``NAME.csv`` or ``NAME.csv.gz``.
    rows, missing_cells : int
        Number of examples, and of missing cells among the features.
    columns : tuple of str
        The features in the order of the file.
    nominal : frozenset of str
        The nominal features, whether or not their values look like numbers; the others are numeric.
    class_counts : mapping of str to int
        How many rows each class has.
    papers : tuple of str
        The papers whose experiments use it.
    source, licence, note : str
        Where the data come from, their licence, and remarks.
    openml : int or None
        OpenML's ID of the same data, if there is one.
    openml_target : str or None
        The target column there, if it is not OpenML's default.
    """

    name: str
    rows: int
    missing_cells: int
    columns: tuple[str, ...]
    nominal: frozenset[str]
    class_counts: Mapping[str, int]
    papers: tuple[str, ...]
    source: str
    licence: str
    note: str
    openml: int | None
    openml_target: str | None

    @property
    def features(self) -> int:
        """Number of features."""
        return len(self.columns)

    @property
    def classes(self) -> int:
        """Number of classes."""
        return len(self.class_counts)


@cache
def catalogue() -> Mapping[str, Entry]:
    """Return every named data set, by name."""
    text = resources.files(__package__).joinpath("catalogue.json").read_text(encoding="utf-8")
    facts: dict[str, dict[str, Any]] = json.loads(text)
    return MappingProxyType({name: _entry(name, fact) for name, fact in facts.items()})


def _entry(name: str, fact: dict[str, Any]) -> Entry:
    columns = tuple(fact["columns"])
    nominal = columns if fact["nominal"] == "all" else fact["nominal"]
    return Entry(
        name=name,
        rows=fact["rows"],
        missing_cells=fact["missing_cells"],
        columns=columns,
        nominal=frozenset(nominal),
        class_counts=MappingProxyType(fact["class_counts"]),
        papers=tuple(fact["papers"]),
        source=fact["source"],
        licence=fact["licence"],
        note=fact.get("note", ""),
        openml=fact["openml"],
        openml_target=fact.get("openml_target"),
    )
