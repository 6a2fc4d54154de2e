"""Findings about the columns of a table: identifiers, leaks, misread cells and sentinels."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vennforest.auditing.columns import MAX_AUDITED_ROWS, leaks_class, repeats_ids
from vennforest.scores import MISSING_NUMBERS
from vennforest.tables.read import CellColumn, are_dates, number
from vennforest.tables.schema import CODE, ColumnSchema, infer

MIN_SCREENED_ROWS = 20
"""Minimum number of rows for columns to be screened."""

MIN_EXPECTED_TIES = 10
"""Pairs of equal cells that chance would leave, from which on numbers that all differ name the
rows: independent draws from their range all differ once in e¹⁰ = 22,000 tables."""

MIN_SHARE_OF_DISTINCT_CELLS = 0.95
"""Share of distinct cells from which on text names the row."""

MIN_WORDS_OF_PROSE = 8
"""Words of the median cell from which on text is prose, which may be informative."""

MIN_SHARE_ALIKE = 0.8
"""Share of cells written like numbers, or dates, from which on the others are the exception."""

MAX_MARKERS = 5
"""Distinct cells of a column of numbers that may stand for missing values."""

MIN_SENTINELS = 3
"""Minimum number of cells with one of `MISSING_NUMBERS`: fewer may be outliers."""


ID = re.compile(
    r"(^|[_\W]|(?-i:(?<=[a-z])(?=[A-Z])))(id|uuid|guid|index|key|nr|no|number)[_\W]*$|^unnamed:",
    re.IGNORECASE,
)
PERSON = re.compile(
    r"^[_\W]*(patient|subject|person|customer|client|member|household|animal|device|user|account)s?"
    r"[_\W]*(code|name|id|nr|no|key|number)?[_\W]*$",
    re.IGNORECASE,
)
LIKE_NUMBER = re.compile(r"^[<>≤≥~]?\s*+[-+]?[€$£¥]?\s*+\d[\d.,'\s]*+[%‰€$£¥]?$")
LIKE_DATE = re.compile(r"^\d{1,4}[-/. ](?:\d{1,2}|[A-Za-zäöüéû]{3,9})\.?[-/. ,]++\d{1,4}\b")


def screen(
    X: pd.DataFrame, y: NDArray[Any], schema: Mapping[str, ColumnSchema], protected: Set[str]
) -> tuple[list[str], list[str], dict[str, str]]:
    """Return the columns to drop, the notes and the suspects of a table; see `LabelledTable`.

    Columns that are ``protected`` are not left out. ``schema`` is of the columns whose type was
    inferred; notes on how cells were read are on these.
    """
    if len(X) < MIN_SCREENED_ROWS:
        return [], [], {}
    notes: list[str] = []
    rows = np.random.default_rng(0).permutation(len(X))[:MAX_AUDITED_ROWS]
    codes = np.unique(y[rows], return_inverse=True)[1]
    free = [str(name) for name in X if name not in protected]
    reasons = {name: _identifies(X[name].dropna(), name, schema[name]) for name in free}
    row_names = [name for name in free if reasons[name]]
    row_names = row_names if len(row_names) < len(X.columns) else []
    if row_names:
        listed = "; ".join(f"{name!r}: {reasons[name]}" for name in row_names)
        notes.append(
            f"Left out as identifiers: they carry no information about new rows ({listed}). "
            "--keep brings a column back."
        )
    X = X.drop(columns=row_names)
    free = [name for name in free if name not in row_names]
    repeated = [name for name in free if _repeats_ids(X[name].iloc[rows], codes, name)]
    repeated = repeated if len(repeated) < len(X.columns) else []
    X = X.drop(columns=repeated)
    notes += [
        f"Left out: {column!r} looks like a repeated ID, and the same person may be in both "
        f"training and test data. Keep its rows together with --groups {shlex.quote(column)}; "
        "--keep brings the column back."
        for column in repeated
    ]
    leaking = [name for name in leaks(X, y) if name not in protected]
    notes += [
        f"Possible leakage: {column!r} alone predicts the label almost without error. If it was "
        "recorded after the outcome, leave it out with --drop; if not, say so with --keep."
        for column in leaking
    ]
    for name in (str(name) for name in X if name in schema):
        cells = X[name].dropna()
        notes += filter(None, [_misread(cells, name, schema[name]), _sentinel(cells, name)])
    suspects = dict.fromkeys(leaking, "leak") | dict.fromkeys(repeated, "id")
    return [*row_names, *repeated], notes, suspects


def leaks(X: pd.DataFrame, y: NDArray[Any]) -> list[str]:
    """Return the columns that alone predict the label almost without error."""
    rows = np.random.default_rng(0).permutation(len(y))[:MAX_AUDITED_ROWS]
    codes = np.unique(y[rows], return_inverse=True)[1]
    return [str(name) for name in X if leaks_class(np.asarray(X[name].iloc[rows]), codes)]


def notes_on_dates(X: pd.DataFrame) -> list[str]:
    """Return sentences on columns of dates as text in which day and month could be exchanged."""
    schema = {str(name): infer(CellColumn(X[name], str(name))) for name in X}
    notes = [_ambiguous_dates(X[name], name, schema[name].date_format or "") for name in schema]
    return list(filter(None, notes))


def _sample(cells: pd.Series[Any]) -> list[str]:
    """Return the first cells of text without white space around it, [] for other columns."""
    if isinstance(cells.dtype, pd.CategoricalDtype) or cells.dtype.kind != "O":
        return []
    sample = cells.iloc[:MAX_AUDITED_ROWS].tolist()
    return [cell.strip() for cell in sample] if all(isinstance(c, str) for c in sample) else []


def _identifies(cells: pd.Series[Any], name: str, schema: ColumnSchema) -> str:
    """Return why a column is assumed to identify the rows, "" if it is not.

    Identifiers are running numbers; text other than prose that differs in nearly every row; and
    numbers that differ in every row, if the name suggests it or chance would leave equal ones.
    """
    n, is_named = len(cells), bool(ID.search(name))
    if n < MIN_SCREENED_ROWS:
        return ""
    if cells.dtype.kind in "iuf":
        values = cells.to_numpy()
        is_whole = bool(np.isfinite(values).all() and (values == np.round(values)).all())
        if not is_whole or cells.nunique() < n:
            return ""
        width = float(values.max()) - float(values.min()) + 1
        if width == n:
            return "running numbers"
        expected_ties = n * (n - 1) / (2 * width)
        is_id = is_named or expected_ties >= MIN_EXPECTED_TIES
        return "a different number in every row" if is_id else ""
    sample = _sample(cells)
    if schema.kind != "text" or not sample:
        return ""
    if cells.nunique() < MIN_SHARE_OF_DISTINCT_CELLS * n:
        return ""
    is_prose = np.median([len(text.split()) for text in sample]) >= MIN_WORDS_OF_PROSE
    is_quantity = _mostly_match(LIKE_NUMBER, sample) or _mostly_match(LIKE_DATE, sample)
    is_id = not is_prose and (not is_quantity or schema.has_codes or is_named)
    return "text that differs in nearly every row" if is_id else ""


def _repeats_ids(cells: pd.Series[Any], codes: NDArray[Any], name: str) -> bool:
    """Return whether a column may identify a person with several rows.

    Its name suggests so, or each value has a single label, which is unlikely by chance.
    """
    if repeats_ids(np.asarray(cells), codes):
        return True
    is_named = bool(ID.search(name) or PERSON.search(name)) and cells.dtype.kind in "iuO"
    return is_named and max(20, len(cells) / 50) <= cells.nunique() <= 0.8 * len(cells)


def _misread(cells: pd.Series[Any], name: str, schema: ColumnSchema) -> str:
    """Return a sentence on text that looks like numbers or dates, or on ambiguous dates, or ""."""
    if schema.kind == "date":
        return _ambiguous_dates(cells, name, schema.date_format or "")
    sample = _sample(cells)
    if schema.kind != "text" or not sample:
        return ""
    if _mostly_match(LIKE_DATE, sample):
        date = next(filter(LIKE_DATE.match, sample))
        strays = sorted({cell.strip() for cell in cells.unique() if not LIKE_DATE.match(cell)})
        declare = f"declare their format, as in {_declared(name, 'date %d.%m.%y')}"
        return (
            f"{name!r} looks like dates, such as {date!r}, but is read as text: write all as "
            f"2021-01-25, or {_as_missing(strays, 'the others') or declare}."
        )
    n_numbers = sum(number(cell) is not None for cell in sample)
    if n_numbers < MIN_SHARE_ALIKE * len(sample) and not _mostly_match(LIKE_NUMBER, sample):
        return ""
    strays = sorted({cell.strip() for cell in cells.unique() if number(cell) is None})
    if not strays and not schema.has_codes:
        return (
            f"{name!r} has numbers with a decimal point, such as {sample[0]!r}, and is read as "
            "text, as the file has decimal commas: write all numbers with one sign."
        )
    if not strays:
        code = next(cell for cell in cells.unique() if re.match(CODE, cell)).strip()
        return (
            f"{name!r} has numbers with leading zeros, such as {code!r}, and is read as text: "
            f"{code} and {code.lstrip('0') or '0'} differ. If they are quantities, say so with "
            f"{_declared(name, 'number')}."
        )
    write = "write plain numbers with a decimal point, and leave other cells empty"
    return (
        f"{name!r} looks like numbers but is read as text, because of cells such as "
        f"{strays[0][:30]!r}: {_as_missing(strays, 'these') or write}."
    )


def _as_missing(strays: Sequence[str], noun: str) -> str:
    """Return advice to declare cells as missing, "" if there are none, or too many for that."""
    if not 0 < len(strays) <= MAX_MARKERS or any("," in cell for cell in strays):
        return ""
    option = f"--missing={shlex.quote(','.join(strays))}"
    return f"if {noun} stand for missing values, say so with {option}"


def _sentinel(cells: pd.Series[Any], name: str) -> str:
    """Return a sentence on a number such as -999 that is unlike all others, "" without one."""
    if cells.dtype.kind not in "iuf" or not {cells.min(), cells.max()} & set(MISSING_NUMBERS):
        return ""
    values, counts = np.unique(cells.to_numpy(), return_counts=True)
    for end, remaining in ((0, values[1:]), (-1, values[:-1])):
        if len(remaining) < 3 or values[end] not in MISSING_NUMBERS or counts[end] < MIN_SENTINELS:
            continue
        low, high = remaining[0], remaining[-1]
        # Farther from the others than these from each other, or the only negative one of many.
        is_far = min(abs(values[end] - remaining)) > high - low
        if is_far or (values[end] < 0 <= low and len(remaining) > 9):
            return (
                f"{name!r} is {values[end]:g} in {counts[end]:,} rows, unlike its other numbers "
                f"({low:g} to {high:g}): if that stands for a missing value, say so with "
                f"--missing={values[end]:g}."
            )
    return ""


def _ambiguous_dates(cells: pd.Series[Any], name: str, date_format: str) -> str:
    """Return a sentence on dates in which day and month could be exchanged, "" for others."""
    swapped = date_format.translate(str.maketrans("dm", "md"))
    is_clear = "%d" not in date_format or "%m" not in date_format
    if is_clear or not are_dates(swapped, CellColumn(cells, name).array.drop_null()):
        return ""
    first, second = ("day", "month") if date_format.startswith("%d") else ("month", "day")
    return (
        f"In {name!r} day and month could be either; the first number is taken for the {first}. "
        f"If it is the {second}, say so with {_declared(name, f'date {swapped}')}."
    )


def _declared(name: str, declared: str) -> str:
    """Return the command-line option that declares the type of a column."""
    return f"--types {shlex.quote(json.dumps({name: declared}, ensure_ascii=False))}"


def _mostly_match(pattern: re.Pattern[str], sample: Sequence[str]) -> bool:
    """Return whether most texts match a pattern."""
    return sum(map(bool, map(pattern.match, sample))) >= MIN_SHARE_ALIKE * len(sample)
