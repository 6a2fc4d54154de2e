"""What is doubtful about the columns of a table: identifiers, constants, leaks, misread cells."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

from vennforest.tables.cells import Column, number

if TYPE_CHECKING:
    import pandas as pd

FEWEST = 20
"""Rows below which nothing is said of a column."""

COINCIDENCES = 10
"""Pairs of equal cells that chance would leave at least, from which numbers that all differ name
the rows: as many independent draws from their range all differ once in e¹⁰ = 22,000 tables."""

DISTINCT = 0.95
"""Share of different cells from which text names the row."""

WORDS = 8
"""Words of the middle cell from which text is prose, which may say something."""

LOOKED_AT = 5_000
"""Rows by which a column is judged."""

MOST_COLUMNS = 1_000
"""Columns that are tried for leaks."""

LEAK = 0.98
"""Share of the most frequent class's errors that a leaking column takes away alone."""

MOSTLY = 0.8
"""Share of cells written like numbers, or dates, from which the others are the exception."""

MOST_MARKERS = 5
"""Different cells of a column of numbers that may be marks of missing values."""

HUMP = r"(?-i:(?<=[a-z])(?=[A-Z]))"  # where a word begins in CustomerId
ID = re.compile(
    rf"(^|[_\W]|{HUMP})(id|uuid|guid|index|key|nr|no|number)[_\W]*$|^unnamed:", re.IGNORECASE
)
PERSON = re.compile(
    r"^[_\W]*(patient|subject|person|customer|client|member|household|animal|device|user|account)s?"
    r"[_\W]*(code|name|id|nr|no|key|number)?[_\W]*$",
    re.IGNORECASE,
)
LIKE_NUMBER = re.compile(
    r"^[<>≤≥~]?\s*+[-+]?(?:[€$£¥]|EUR|USD|GBP|CHF)?\s*+[-+]?\d[\d.,'\s]*+"
    r"(?:[%‰€$£¥]|[A-Za-zµ°/]{1,6})?$"
)
LIKE_DATE = re.compile(
    r"^\d{1,4}[-/. ](?:\d{1,2}|[A-Za-zäöüéû]{3,9})\.?[-/. ,]++\d{1,4}(?:[T ]\d{1,2}:\d{2}.*)?$"
)
DATE_FORMATS = (
    "%d.%m.%Y",
    "%d.%m.%y",
    "%d/%m/%Y",
    "%d/%m/%y",
    "%m/%d/%Y",
    "%m/%d/%y",
    "%d-%m-%Y",
    "%Y-%m-%d",
    "%Y/%m/%d",
    "%Y.%m.%d",
    "%d-%b-%Y",
    "%d %b %Y",
)
"""What a column that looks like dates is said to be written in perhaps."""
DAY_AND_MONTH = re.compile(r"^\s*(\d{1,2})[-/.](\d{1,2})[-/.]\d{2,4}\b")


def identifiers(X: pd.DataFrame) -> dict[str, str]:
    """Return the columns that name the rows, and how each does."""
    if len(X) < FEWEST:
        return {}
    found = {}
    for name in X.columns:
        why = _identifies(X[name], str(name))
        if why is not None:
            found[str(name)] = why
    return found


def _identifies(cells: pd.Series[Any], name: str) -> str | None:
    present = cells.dropna()
    kind = getattr(present.dtype, "kind", "O")
    if len(present) < FEWEST or kind not in "iufO":
        return None
    if kind in "iuf":
        values = present.to_numpy()
        if not np.isfinite(values).all() or (values != np.round(values)).any():
            return None
        distinct = np.unique(values)
        if len(distinct) < len(values):
            return None
        between = float(distinct[-1]) - float(distinct[0]) + 1
        if between == len(values):
            return "running numbers"
        shared = len(values) * (len(values) - 1) / (2 * between)
        if shared >= COINCIDENCES or ID.search(name):
            return "a different number in every row"
        return None
    if not all(isinstance(value, str) for value in present.iloc[:LOOKED_AT]):
        return None
    n_distinct = int(present.nunique())
    if n_distinct < DISTINCT * len(present):
        return None
    sample = [value.strip() for value in present.iloc[:LOOKED_AT]]
    if np.median([len(value.split()) for value in sample]) >= WORDS:
        return None
    if not ID.search(name) and (
        _share(LIKE_NUMBER.match, sample) >= MOSTLY or _share(LIKE_DATE.match, sample) >= MOSTLY
    ):
        return None  # a quantity or a date that was read as text: that is said instead
    if Column(present, name).learn()[0] != "text":
        return None
    nearly = "" if n_distinct == len(present) else "nearly "
    return f"text that differs in {nearly}every row"


def constants(X: pd.DataFrame) -> list[str]:
    """Return the columns that contain one value in every row."""
    found = []
    for name in X.columns:
        try:
            constant = X[name].nunique(dropna=False) == 1 and X[name].notna().any()
        except TypeError:  # lists and the like have no hash
            continue
        if constant:
            found.append(str(name))
    return found


def leaks(X: pd.DataFrame, y: NDArray[Any]) -> list[str]:
    """Return the columns each of which predicts the label alone, nearly without fault.

    A small tree of one column is tried on three folds of up to 5,000 rows; counted are the errors
    of the most frequent class that it takes away.
    """
    codes = np.unique(y, return_inverse=True)[1]
    if len(codes) > LOOKED_AT:
        rows = np.random.default_rng(0).permutation(len(codes))[:LOOKED_AT]
        X, codes = X.iloc[rows], np.unique(codes[rows], return_inverse=True)[1]
    counts = np.bincount(codes)
    errors = len(codes) - int(counts.max())
    if errors < 5 or len(codes) < FEWEST:
        return []
    k = len(counts)
    splits = _folds(codes)
    found = []
    for name in list(X.columns)[:MOST_COLUMNS]:
        values = _as_number(X[name])
        if values is None:
            continue
        tree = DecisionTreeClassifier(max_leaf_nodes=4 * k, random_state=0)
        whole = tree.fit(values, codes).predict(values)
        if (whole != codes).sum() > (1 - LEAK) * 1.5 * errors:  # not even where it was trained
            continue
        wrong = 0
        for train, test in splits:
            wrong += int((tree.fit(values[train], codes[train]).predict(values[test])
                          != codes[test]).sum())  # fmt: skip
        if wrong <= (1 - LEAK) * errors:
            found.append(str(name))
    return found


def repeaters(X: pd.DataFrame, y: NDArray[Any]) -> dict[str, int]:
    """Return the columns that may name what comes in several rows, such as a patient.

    Text or whole numbers of many values, each in a few rows: called an id or a person, or with
    nearly one label for each value, which chance would not give. The number of values is returned.
    """
    codes = np.unique(y, return_inverse=True)[1]
    n = len(codes)
    if n < FEWEST:
        return {}
    alike = float(np.square(np.bincount(codes) / n).sum())
    found = {}
    for name in X.columns:
        values = X[name]
        kind = getattr(values.dtype, "kind", "O")
        if kind not in "iuO":
            continue
        try:
            member = values.astype(object).where(values.notna(), None).factorize()[0]
        except TypeError:  # lists and the like have no hash
            continue
        n_values = int(member.max()) + 1
        if not 20 <= n_values <= n / 1.25 or n_values < n / 50:
            continue
        table = np.zeros((n_values, int(codes.max()) + 1))
        there = member >= 0
        np.add.at(table, (member[there], codes[there]), 1)
        size = table.sum(axis=1)
        pairs = float((size * (size - 1)).sum())
        same = float((table * (table - 1)).sum())
        called = ID.search(str(name)) or PERSON.search(str(name))
        if pairs and (called or (same / pairs >= 0.98 and pairs * (1 - alike) >= 50)):
            found[str(name)] = n_values
    return found


def _folds(codes: NDArray[np.intp]) -> list[Any]:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # classes of fewer than three rows
        splitter = StratifiedKFold(3, shuffle=True, random_state=0)
        return list(splitter.split(codes[:, None], codes))


def _as_number(cells: pd.Series[Any]) -> NDArray[np.float64] | None:
    """Return a column as numbers for a tree, (n, 1); None for text of too many values."""
    kind = getattr(cells.dtype, "kind", "O")
    if kind in "iufb":
        values = cells.to_numpy(dtype=np.float64)
        return np.where(np.isfinite(values), values, np.nan)[:, None]
    if kind in "Mm":
        plain = "datetime64[us]" if kind == "M" else "timedelta64[us]"  # of time zones none
        times = cells.to_numpy(dtype=plain).astype(np.int64).astype(np.float64)
        return np.where(cells.isna().to_numpy(), np.nan, times)[:, None]
    try:
        text = cells.astype(object).where(cells.notna(), "").astype(str)
        names, codes = np.unique(text.to_numpy(dtype=str), return_inverse=True)
    except TypeError:
        return None
    return None if len(names) > len(cells) / 4 else codes.astype(np.float64)[:, None]


def misread(X: pd.DataFrame) -> dict[str, str]:
    """Return a sentence on each column that may contain something else than it is taken for."""
    if len(X) < FEWEST:
        return {}
    found = {}
    for name in X.columns:
        present = X[name].dropna()
        if getattr(present.dtype, "kind", "O") != "O" or not len(present):
            continue
        sample = present.iloc[:LOOKED_AT].tolist()
        if not all(isinstance(value, str) for value in sample):
            continue
        sample = [value.strip() for value in sample]
        sentence = _text_of(sample, str(name)) if _is_text(present, name) else _dates(present, name)
        if sentence is not None:
            found[str(name)] = sentence
    return found


def _is_text(present: pd.Series[Any], name: str) -> bool:
    return Column(present, str(name)).learn()[0] == "text"


def _format_of(date: str) -> str | None:
    """Return how to declare a format that reads a date, the day first where it may be."""
    for written in DATE_FORMATS:
        with suppress(ValueError):
            datetime.strptime(date, written)
            return f"date {written}"
    return None


def _text_of(sample: Sequence[str], name: str) -> str | None:
    """Say where numbers or dates became text."""
    if _share(LIKE_DATE.match, sample) >= MOSTLY:
        written = _format_of(sample[0])
        declare = (
            "" if written is None else f", or declare their format: {_declared(name, written)}"
        )
        return (
            f"{name!r} looks like dates, such as {sample[0]!r}, but is read as text: the format is "
            f"not a common one, or not the same in all cells. Write them as 2021-01-25{declare}."
        )
    plain = [value for value in sample if number(value) is not None]
    like = [value for value in sample if LIKE_NUMBER.match(value) and any(map(str.isdigit, value))]
    if len(like) < MOSTLY * len(sample) and len(plain) < MOSTLY * len(sample):
        return None
    odd = next((value for value in sample if number(value) is None), sample[0])
    if len(plain) < MOSTLY * len(sample) and len(set(like)) < FEWEST:
        return None  # grades and codes such as 1a
    odd = odd if len(odd) <= 30 else odd[:29] + "…"
    return (
        f"{name!r} looks like numbers but is read as text, because of cells such as {odd!r}: "
        f"{_remedy(sample)}."
    )


def _remedy(sample: Sequence[str]) -> str:
    """Return what makes numbers of a column of text that looks like them."""
    markers = sorted({value for value in sample if number(value) is None})
    if len(markers) > MOST_MARKERS or any("," in marker or len(marker) > 30 for marker in markers):
        return "write plain numbers with a decimal point, and leave other cells empty"
    cells = " and ".join(map(repr, markers))
    mark = f"--missing {shlex.quote(','.join(markers))}"
    return f"if {cells} stand for missing values, say so with {mark}"


def _declared(name: str, what: str) -> str:
    """Return the option that declares a column, as it is typed."""
    return f"--types {shlex.quote(json.dumps({name: what}, ensure_ascii=False))}"


def _dates(present: pd.Series[Any], name: str) -> str | None:
    """Say where day and month could be either."""
    pairs = [DAY_AND_MONTH.match(str(value)) for value in present]
    if not all(pairs):
        return None
    both = np.array([[int(found[1]), int(found[2])] for found in pairs if found])
    if both.max() > 12 or (both[:, 0] == both[:, 1]).all():
        return None
    _, written = Column(present, str(name)).learn()
    if written is None:
        return None
    first, second = "the day", "the month"
    if written.index("%d") > written.index("%m"):
        first, second = second, first
    swapped = written.translate(str.maketrans("dm", "md"))
    return (
        f"In {str(name)!r} day and month could be either; the first number is taken for {first}. "
        f"If it is {second}, say so with {_declared(str(name), f'date {swapped}')}."
    )


def alike(labels: Iterable[Any]) -> list[str]:
    """Return sentences on labels that differ by case or spaces alone."""
    groups: dict[str, list[str]] = {}
    for label in labels:
        groups.setdefault(" ".join(str(label).split()).casefold(), []).append(str(label))
    return [
        f"The labels {', '.join(map(repr, group))} differ by case or spaces alone, and are taken "
        "for different classes."
        for group in groups.values()
        if len(group) > 1
    ]


def _share(test: Any, sample: Sequence[str]) -> float:
    return sum(test(value) is not None for value in sample) / max(1, len(sample))
