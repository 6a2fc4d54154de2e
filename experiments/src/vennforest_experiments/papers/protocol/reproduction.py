"""Results of a reproduction: numbers beside the printed ones, tables, conclusions, figures."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from vennforest._files import write_text
from vennforest_experiments.comparison import Comparison
from vennforest_experiments.comparison.ranks import Test
from vennforest_experiments.papers import published
from vennforest_experiments.papers.published import MEAN, MEAN_RANK, Paper

COLUMNS = ("table", "dataset", "method", "measure", "value", "published")
"""Columns of ``results.csv``."""


@dataclass(frozen=True)
class Value:
    """One number of a reproduction.

    Parameters
    ----------
    table : str
        The number of the paper's table, or ``"text"``.
    dataset, method, measure : str
        As printed; ``"(mean)"``, ``"(mean rank)"`` and ``"(all)"`` stand for all data sets.
    value : float
        The number obtained; NaN if there is none.
    published : float or None
        The printed number; None if there is none.
    """

    table: str
    dataset: str
    method: str
    measure: str
    value: float
    published: float | None = None

    @property
    def difference(self) -> float | None:
        """Obtained minus printed; None if nothing is printed."""
        return _obtained_minus_printed(self.value, self.published)


@dataclass(frozen=True)
class Cell:
    """A cell of a table: obtained and printed number, and whether it is marked.

    With a ``name``, the obtained and the printed name are shown in place of the numbers.
    """

    value: float
    published: float | None = None
    marked: bool = False
    name: str = ""
    published_name: str = ""

    @property
    def difference(self) -> float | None:
        """Obtained minus printed; None if nothing is printed."""
        return _obtained_minus_printed(self.value, self.published)


def _obtained_minus_printed(value: float, published: float | None) -> float | None:
    if published is None:
        return None
    return 0.0 if value == published else value - published  # inf - inf is NaN


@dataclass(frozen=True)
class Table:
    """A table of obtained numbers, each with the printed one if there is one.

    Parameters
    ----------
    name : str
        Name of its file, without the suffix.
    title : str
        Title.
    columns : tuple of str
        Column headings.
    rows : tuple of (str, tuple of Cell or None)
        The name of each row, and its cells.
    digits : int
        Decimals; 0 shows 1 as a tick and 0 as a dash.
    note : str
        A note for the reader, in Markdown without links.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell | None, ...]], ...]
    digits: int = 3
    note: str = ""

    def text(self, value: float | None, *, signed: bool = False) -> str:
        """Return a number as text."""
        if value is None:
            return ""
        if math.isnan(value):
            return "none"
        if self.digits == 0:
            return "✓" if value else "–"
        if math.isinf(value):
            return "−∞" if value < 0 else "+∞" if signed else "∞"
        rounded = round(value, self.digits) + 0.0  # no minus before a zero
        text = f"{rounded:+.{self.digits}f}" if signed else f"{rounded:.{self.digits}f}"
        return text.replace("-", "−")

    def to_markdown(self) -> str:
        """Return the table in Markdown; a cell reads obtained (printed, difference)."""
        lines = [f"### {self.title}", ""]
        if self.note:
            lines += [self.note, ""]
        lines.append("| | " + " | ".join(self.columns) + " |")
        lines.append("|---|" + "---|" * len(self.columns))
        lines += [
            f"| {name} | " + " | ".join(self._cell(cell) for cell in cells) + " |"
            for name, cells in self.rows
        ]
        return "\n".join(lines) + "\n"

    def _cell(self, cell: Cell | None) -> str:
        if cell is None:
            return ""
        if cell.name:
            return f"{cell.name} ({cell.published_name})" if cell.published_name else cell.name
        text = self.text(cell.value)
        if cell.marked:
            text = f"*{text}*"
        if cell.published is None:
            return text
        printed = self.text(cell.published)
        if self.digits == 0:
            return f"{text} ({printed})"
        off = self.text(cell.difference, signed=True)
        return f"{text} ({printed}, {off})"

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with ``obtained`` and ``printed`` for each column of the table."""
        data = {
            (column, kind): [
                math.nan if cell is None or (v := getattr(cell, attribute)) is None else v
                for cell in (cells[j] for _, cells in self.rows)
            ]
            for j, column in enumerate(self.columns)
            for kind, attribute in (("obtained", "value"), ("printed", "published"))
        }
        frame: pd.DataFrame = pd.DataFrame(data, index=[name for name, _ in self.rows])
        return frame


@dataclass(frozen=True)
class Conclusion:
    """A claim, whether it holds in this run (None: undecided), and the numbers behind it."""

    claim: str
    holds: bool | None
    finding: str

    @property
    def verdict(self) -> str:
        """Whether it holds, in words."""
        return {True: "holds", False: "does not hold", None: "undecided"}[self.holds]


@dataclass(frozen=True)
class Figure:
    """A figure: ``draw`` receives empty matplotlib axes; ``size`` is in inches."""

    name: str
    title: str
    draw: Callable[[Any], None]
    size: tuple[float, float] = (6.0, 4.5)


@dataclass(frozen=True)
class Reproduction:
    """A paper's experiment, repeated.

    Parameters
    ----------
    paper : str
        Its short name.
    title : str
        Authors, year and title.
    command : str
        The command that produces it.
    notes : tuple of str
        How the experiment was done, and where the paper leaves details open.
    conclusions : tuple of Conclusion
        The paper's conclusions, and whether they hold here.
    values : tuple of Value
        Every number.
    _tables : tuple of Table
        The tables that `tables` returns.
    figures : tuple of Figure
        The figures.
    """

    paper: Paper
    title: str
    command: str
    notes: tuple[str, ...]
    conclusions: tuple[Conclusion, ...]
    values: tuple[Value, ...]
    _tables: tuple[Table, ...]
    figures: tuple[Figure, ...] = ()

    def tables(self) -> tuple[Table, ...]:
        """Return the paper's tables, obtained numbers beside printed ones."""
        return self._tables

    def to_frame(self) -> pd.DataFrame:
        """Return every number, in the columns of ``results.csv``."""
        frame: pd.DataFrame = pd.DataFrame(
            [[getattr(value, column) for column in COLUMNS] for value in self.values],
            columns=list(COLUMNS),
        )
        return frame

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write every number to a CSV file; a missing number is an empty cell."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for v in self.values:
            printed = "" if v.published is None else repr(v.published)
            value = "" if math.isnan(v.value) else repr(v.value)
            writer.writerow([v.table, v.dataset, v.method, v.measure, value, printed])
        write_text(path, file.getvalue())

    def to_markdown(self, figures: str | None = None) -> str:
        """Return the page in Markdown; ``figures`` is the folder that links to figures point to."""
        from vennforest_experiments.papers.protocol.page import markdown

        return markdown(self, figures)

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write one self-contained HTML page.

        Raises
        ------
        ImportError
            If jinja2 or matplotlib is not installed.
        """
        from vennforest_experiments.papers.protocol.page import html

        write_text(path, html(self))

    def write(self, folder: str | os.PathLike[str]) -> None:
        """Write ``results.csv``, a Markdown file per table, an SVG per figure, and the pages.

        Raises
        ------
        ImportError
            If jinja2 or matplotlib is not installed.
        """
        from vennforest_experiments.papers.protocol.page import svg

        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        self.to_csv(target / "results.csv")
        for table in self._tables:
            write_text(target / f"{table.name}.md", table.to_markdown())
        for figure in self.figures:
            write_text(target / f"{figure.name}.svg", svg(figure))
        write_text(target / "index.md", self.to_markdown(""))
        self.to_html(target / "index.html")


def draw_ranks(comparison: Comparison, test: Test) -> Callable[[Any], None]:
    """Return a function for `Figure` that draws a critical-difference diagram."""

    def draw(ax: Any) -> None:
        from scikit_posthocs import critical_difference_diagram

        names = list(comparison.methods)
        critical_difference_diagram(
            pd.Series(comparison.mean_ranks, names),
            pd.DataFrame(comparison.p_values(test), names, names),
            ax=ax,
            alpha=comparison.alpha,
        )

    return draw


class Values:
    """Obtained numbers by table, measure, method and data set, paired with the printed ones.

    Parameters
    ----------
    paper : str
        The paper whose printed numbers these are paired with.
    """

    def __init__(self, paper: Paper) -> None:
        self._printed = {
            (row.table, row.dataset, row.method, row.measure): row.value
            for row in published.load(paper)
        }
        self._values: dict[tuple[str, str, str, str], Value] = {}

    def add(self, table: str, dataset: str, method: str, measure: str, value: float) -> None:
        """Add a number."""
        key = (table, dataset, method, measure)
        self._values[key] = Value(*key, float(value), self._printed.get(key))

    def add_column(
        self, table: str, method: str, measure: str, column: Mapping[str, float]
    ) -> None:
        """Add a method's number on each data set, and their mean."""
        for dataset, value in column.items():
            self.add(table, dataset, method, measure, value)
        self.add(table, MEAN, method, measure, math.fsum(column.values()) / len(column))

    def add_ranks(
        self, table: str, measure: str, methods: Sequence[str], ranks: Iterable[float]
    ) -> None:
        """Add mean ranks."""
        for method, rank in zip(methods, ranks, strict=True):
            self.add(table, MEAN_RANK, method, measure, rank)

    def get(self, table: str, dataset: str, method: str, measure: str) -> Value:
        """Return a number."""
        return self._values[table, dataset, method, measure]

    def cell(self, table: str, dataset: str, method: str, measure: str) -> Cell | None:
        """Return a number as a cell, or None if there is none."""
        value = self._values.get((table, dataset, method, measure))
        return None if value is None else Cell(value.value, value.published)

    def all(self) -> tuple[Value, ...]:
        """Return every number, in the order in which they were added."""
        return tuple(self._values.values())
