"""What is doubtful about the columns of a table: identifiers, constants, leaks, misread cells."""

from __future__ import annotations

import json
import re
import shlex
import warnings
from collections.abc import Iterable, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

from vennforest._messages import listed
from vennforest.tables.cells import Column, number

if TYPE_CHECKING:
    import pandas as pd

MIN_ROWS = 20
"""Rows below which columns are not judged."""

MIN_EXPECTED_TIES = 10
"""Pairs of equal cells that chance would leave, from which on numbers that all differ name the
rows: independent draws from their range all differ once in e¹⁰ = 22,000 tables."""

MIN_DISTINCT_SHARE = 0.95
"""Share of distinct cells from which on text names the row."""

MIN_WORDS_OF_PROSE = 8
"""Words of the median cell from which on text is prose, which may be informative."""

MAX_ROWS_JUDGED = 5_000
"""Rows by which a column is judged."""

MAX_COLUMNS_TRIED = 1_000
"""Columns that are tried for leaks."""

LEAK_SHARE = 0.98
"""Share of the most frequent class's errors that a leaking column alone removes."""

MIN_SHARE_ALIKE = 0.8
"""Share of cells written like numbers, or dates, from which on the others are the exception."""

MAX_MARKERS = 5
"""Distinct cells of a column of numbers that may stand for missing values."""

CAMEL_CASE = r"(?-i:(?<=[a-z])(?=[A-Z]))"  # before the I of CustomerId
ID = re.compile(
    rf"(^|[_\W]|{CAMEL_CASE})(id|uuid|guid|index|key|nr|no|number)[_\W]*$|^unnamed:", re.IGNORECASE
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
"""Formats that are suggested for a column that looks like dates."""
DAY_AND_MONTH = re.compile(r"^\s*(\d{1,2})[-/.](\d{1,2})[-/.]\d{2,4}\b")


@dataclass(frozen=True)
class Screening:
    """What is doubtful about the columns of a table; see `LabelledTable`."""

    left_out: list[str]
    notes: list[str]
    suspects: dict[str, str]


def screen(
    X: pd.DataFrame, y: NDArray[Any], protected: Set[str], declared: Sequence[str]
) -> Screening:
    """Judge the columns of a table; those that are ``protected`` are not left out."""
    notes = similar_labels(np.unique(y))
    lists = [n for n in X.columns if isinstance(X[n].dropna().head(1).squeeze(), list | np.ndarray)]
    X = X.drop(columns=lists)  # the reader of columns refuses them
    left_out: list[str] = []
    reasons = {n: why for n, why in identifiers(X).items() if n not in protected}
    if reasons and len(reasons) == len(X.columns):
        notes.append(f"All columns look like identifiers ({listed(reasons, 8)}), and are kept.")
    elif reasons:
        each = "; ".join(
            f"{listed([n for n in reasons if reasons[n] == why], 8)}: {why}"
            for why in dict.fromkeys(reasons.values())
        )
        notes.append(
            f"Left out as identifiers: they carry no information about new rows ({each}). "
            "--keep brings a column back."
        )
        left_out += reasons
        X = X.drop(columns=left_out)
    shared = {n: size for n, size in repeaters(X, y).items() if n not in protected}
    if len(shared) < len(X.columns):
        X = X.drop(columns=list(shared))
        left_out += shared
        notes += [
            f"Left out: {column!r} looks like a repeated ID ({n_values:,} values in {len(X):,} "
            "rows), and the same person may be in both training and test data. Keep its rows "
            f"together with --groups {shlex.quote(column)}; --keep brings the column back."
            for column, n_values in shared.items()
        ]
    leaking = [name for name in leaks(X, y) if name not in protected]
    if leaking:
        many = len(leaking) > 1
        notes.append(
            f"Possible leakage: {listed(leaking, 8)} alone {'predict' if many else 'predicts'} the "
            f"label almost without error. If {'they were' if many else 'it was'} recorded after "
            f"the outcome, leave {'them' if many else 'it'} out with --drop; "
            "if not, say so with --keep."
        )
    suspects = dict.fromkeys(leaking, "leak") | dict.fromkeys(shared, "id")
    same = constants(X)
    if same:
        notes.append(
            f"{listed(same, 8)} {'have' if len(same) > 1 else 'has'} one value in every row and "
            f"{'carry' if len(same) > 1 else 'carries'} no information."
        )
    sentences = misread(X.drop(columns=[n for n in declared if n in X.columns]))
    suspects |= {name: "text" for name, why in sentences.items() if "is read as text" in why}
    return Screening(left_out, [*notes, *sentences.values()], suspects)


def identifiers(X: pd.DataFrame) -> dict[str, str]:
    """Return the columns that name the rows, and why each is taken for one.

    Running numbers; text that differs in nearly every row and is no prose; numbers that differ in
    every row where the name says so, or chance would have left equal ones.
    """
    if len(X) < MIN_ROWS:
        return {}
    reasons = {str(name): _identifies(X[name], str(name)) for name in X.columns}
    return {name: why for name, why in reasons.items() if why is not None}


def _identifies(cells: pd.Series[Any], name: str) -> str | None:
    present = cells.dropna()
    kind = getattr(present.dtype, "kind", "O")
    if len(present) < MIN_ROWS or kind not in "iufO":
        return None
    if kind in "iuf":
        values = present.to_numpy()
        if not np.isfinite(values).all() or (values != np.round(values)).any():
            return None
        distinct = np.unique(values)
        if len(distinct) < len(values):
            return None
        width = float(distinct[-1]) - float(distinct[0]) + 1
        if width == len(values):
            return "running numbers"
        expected_ties = len(values) * (len(values) - 1) / (2 * width)
        is_named = bool(ID.search(name))
        unlikely = expected_ties >= MIN_EXPECTED_TIES
        return "a different number in every row" if unlikely or is_named else None
    if not all(isinstance(value, str) for value in present.iloc[:MAX_ROWS_JUDGED]):
        return None
    n_distinct = int(present.nunique())
    if n_distinct < MIN_DISTINCT_SHARE * len(present):
        return None
    sample = [value.strip() for value in present.iloc[:MAX_ROWS_JUDGED]]
    if np.median([len(value.split()) for value in sample]) >= MIN_WORDS_OF_PROSE:
        return None
    if not ID.search(name) and (
        _share(LIKE_NUMBER.match, sample) >= MIN_SHARE_ALIKE
        or _share(LIKE_DATE.match, sample) >= MIN_SHARE_ALIKE
    ):
        return None  # a quantity or a date that was read as text: `misread` says so
    if Column(present, name).infer()[0] != "text":
        return None
    nearly = "" if n_distinct == len(present) else "nearly "
    return f"text that differs in {nearly}every row"


def constants(X: pd.DataFrame) -> list[str]:
    """Return the columns that contain one value in every row."""
    return [
        str(name)
        for name in X.columns
        if X[name].nunique(dropna=False) == 1 and X[name].notna().any()
    ]


def leaks(X: pd.DataFrame, y: NDArray[Any]) -> list[str]:
    """Return the columns that alone predict the label almost without error.

    A small tree of each column is fitted on three folds of up to 5,000 rows; it must remove nearly
    all errors of always predicting the most frequent class.
    """
    codes = np.unique(y, return_inverse=True)[1]
    if len(codes) > MAX_ROWS_JUDGED:
        rows = np.random.default_rng(0).permutation(len(codes))[:MAX_ROWS_JUDGED]
        X, codes = X.iloc[rows], np.unique(codes[rows], return_inverse=True)[1]
    counts = np.bincount(codes)
    errors = len(codes) - int(counts.max())
    if errors < 5 or len(codes) < MIN_ROWS:
        return []
    k = len(counts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # classes of fewer than three rows
        splitter = StratifiedKFold(3, shuffle=True, random_state=0)
        splits = list(splitter.split(codes[:, None], codes))
    leaking = []
    for name in list(X.columns)[:MAX_COLUMNS_TRIED]:
        values = _as_number(X[name])
        if values is None:
            continue
        tree = DecisionTreeClassifier(max_leaf_nodes=4 * k, random_state=0)
        predicted = tree.fit(values, codes).predict(values)
        if (predicted != codes).sum() > (1 - LEAK_SHARE) * 1.5 * errors:
            continue  # not even on its training rows
        n_wrong = 0
        for train, test in splits:
            predicted = tree.fit(values[train], codes[train]).predict(values[test])
            n_wrong += int((predicted != codes[test]).sum())
        if n_wrong <= (1 - LEAK_SHARE) * errors:
            leaking.append(str(name))
    return leaking


def repeaters(X: pd.DataFrame, y: NDArray[Any]) -> dict[str, int]:
    """Return the columns that may identify a person with several rows, with their distinct values.

    Text or whole numbers of many values, each in a few rows: with the name of an ID or a person, or
    with nearly one label for each value, which is unlikely by chance.
    """
    codes = np.unique(y, return_inverse=True)[1]
    n = len(codes)
    if n < MIN_ROWS:
        return {}
    chance_alike = float(np.square(np.bincount(codes) / n).sum())
    n_values_of = {}
    for name in X.columns:
        values = X[name]
        if getattr(values.dtype, "kind", "O") not in "iuO":
            continue
        group = values.astype(object).where(values.notna(), None).factorize()[0]
        n_values = int(group.max()) + 1
        if not 20 <= n_values <= n / 1.25 or n_values < n / 50:
            continue
        table = np.zeros((n_values, int(codes.max()) + 1))
        present = group >= 0
        np.add.at(table, (group[present], codes[present]), 1)
        size = table.sum(axis=1)
        n_pairs = float((size * (size - 1)).sum())
        n_alike = float((table * (table - 1)).sum())
        is_named = ID.search(str(name)) or PERSON.search(str(name))
        unlikely = n_alike >= 0.98 * n_pairs and n_pairs * (1 - chance_alike) >= 50
        if n_pairs and (is_named or unlikely):
            n_values_of[str(name)] = n_values
    return n_values_of


def _as_number(cells: pd.Series[Any]) -> NDArray[np.float64] | None:
    """Return a column as numbers for a tree, (n, 1); None for text of too many values."""
    kind = getattr(cells.dtype, "kind", "O")
    if kind in "iufb":
        values = cells.to_numpy(dtype=np.float64)
        return np.where(np.isfinite(values), values, np.nan)[:, None]
    if kind in "Mm":
        unit = "datetime64[us]" if kind == "M" else "timedelta64[us]"  # without a time zone
        times = cells.to_numpy(dtype=unit).astype(np.int64).astype(np.float64)
        return np.where(cells.isna().to_numpy(), np.nan, times)[:, None]
    text = cells.astype(object).where(cells.notna(), "").astype(str)
    names, codes = np.unique(text.to_numpy(dtype=str), return_inverse=True)
    return None if len(names) > len(cells) / 4 else codes.astype(np.float64)[:, None]


def misread(X: pd.DataFrame) -> dict[str, str]:
    """Return a sentence on each column of text that looks like numbers or dates."""
    if len(X) < MIN_ROWS:
        return {}
    sentences = {}
    for name in map(str, X.columns):
        present = X[name].dropna()
        if getattr(present.dtype, "kind", "O") != "O" or not len(present):
            continue
        sample = present.iloc[:MAX_ROWS_JUDGED].tolist()
        if not all(isinstance(value, str) for value in sample):
            continue
        kind, written = Column(present, name).infer()
        if kind == "text":
            sentence = _text_sentence([value.strip() for value in sample], name)
        else:
            sentence = None if written is None else _dates_sentence(present, name, written)
        if sentence is not None:
            sentences[name] = sentence
    return sentences


def _format_of(date: str) -> str | None:
    """Return the declared type that reads a date, with the day first where it may be."""
    for written in DATE_FORMATS:
        with suppress(ValueError):
            datetime.strptime(date, written)
            return f"date {written}"
    return None


def _text_sentence(sample: Sequence[str], name: str) -> str | None:
    """Return a sentence on a column of text that looks like numbers or dates."""
    if _share(LIKE_DATE.match, sample) >= MIN_SHARE_ALIKE:
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
    if len(like) < MIN_SHARE_ALIKE * len(sample) and len(plain) < MIN_SHARE_ALIKE * len(sample):
        return None
    odd = next((value for value in sample if number(value) is None), sample[0])
    if len(plain) < MIN_SHARE_ALIKE * len(sample) and len(set(like)) < MIN_ROWS:
        return None  # grades and codes such as 1a
    odd = odd if len(odd) <= 30 else odd[:29] + "…"
    return (
        f"{name!r} looks like numbers but is read as text, because of cells such as {odd!r}: "
        f"{_remedy(sample)}."
    )


def _remedy(sample: Sequence[str]) -> str:
    """Return how to have a column of text that looks like numbers read as numbers."""
    markers = sorted({value for value in sample if number(value) is None})
    if len(markers) > MAX_MARKERS or any("," in marker or len(marker) > 30 for marker in markers):
        return "write plain numbers with a decimal point, and leave other cells empty"
    cells = " and ".join(map(repr, markers))
    mark = f"--missing {shlex.quote(','.join(markers))}"
    return f"if {cells} stand for missing values, say so with {mark}"


def _declared(name: str, declared: str) -> str:
    """Return the option that declares the type of a column, as it is typed."""
    return f"--types {shlex.quote(json.dumps({name: declared}, ensure_ascii=False))}"


def _dates_sentence(present: pd.Series[Any], name: str, written: str) -> str | None:
    """Return a sentence on dates in which day and month could be exchanged."""
    matches = [DAY_AND_MONTH.match(str(value)) for value in present]
    if not all(matches):
        return None
    pairs = np.array([[int(match[1]), int(match[2])] for match in matches if match])
    if pairs.max() > 12 or (pairs[:, 0] == pairs[:, 1]).all():
        return None
    first, second = "the day", "the month"
    if written.index("%d") > written.index("%m"):
        first, second = second, first
    swapped = written.translate(str.maketrans("dm", "md"))
    return (
        f"In {name!r} day and month could be either; the first number is taken for {first}. "
        f"If it is {second}, say so with {_declared(name, f'date {swapped}')}."
    )


def similar_labels(labels: Iterable[Any]) -> list[str]:
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
