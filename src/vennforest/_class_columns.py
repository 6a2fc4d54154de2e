"""Which class a column of scores is of: by its name, never by its position."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vennforest._messages import harmless, listed, shown
from vennforest._shown import columns_of
from vennforest._validation import FloatArray, InputError, IntArray, is_arrow
from vennforest.scores import (
    On,
    as_numbers,
    check_finite,
    check_scores,
    is_outside,
    takes_minus_infinity,
)

CLASS_COLUMN = re.compile(
    r"(?:p|lower|upper|(?:low|high)[\d.]+)\((?P<label>.*)\)", re.IGNORECASE | re.DOTALL
)
"""The form of the names of columns of a class, see `columns_of`."""

ScoreNames = str | Sequence[str] | Mapping[Any, str]
"""A column of scores, several, or the column of each label."""


@dataclass(frozen=True)
class ClassColumns:
    """Columns of scores in the order of the classes, or the one column of two classes.

    ``of_first`` says that the one column is the probability, or the logit, of the first of two
    classes; `of_second` turns it into that of the second.
    """

    names: list[str]
    classes: list[Any]
    of_first: bool = False

    @property
    def by_label(self) -> dict[Any, str]:
        """The columns by their labels, to be given to another function that takes columns."""
        labels = self.classes if len(self.names) > 1 else [self.classes[0 if self.of_first else 1]]
        return dict(zip(labels, self.names, strict=True))

    @property
    def entries(self) -> list[str]:
        """The columns as a command takes them, with ``LABEL=`` where the name does not say it."""
        entries = []
        for label, name in self.by_label.items():
            by_name = labels_of_column(name, self.classes)
            by_default = [self.classes[1]] if len(self.names) == 1 else []
            is_clear = (by_name or by_default) == [label]
            entries.append(name if is_clear else f"{label}={name}")
        return entries

    def scores_in(self, values: FloatArray, on: On) -> FloatArray:
        """Return scores (n, k), or (n,) of the second of two classes, from the columns (n, m)."""
        if len(self.names) > 1:
            return values
        lowest = takes_minus_infinity(on, 1)
        return self.of_second(check_finite(values[:, 0], repr(self.names[0]), lowest), on)

    def of_second(self, values: FloatArray, kind: str = "probability") -> FloatArray:
        """Return scores (n,) of the second class from the values of the one column."""
        if not self.of_first:
            return values
        if kind == "logit":
            return -values
        wrong = values[is_outside(values)]
        if len(wrong):
            name, (first, second) = self.names[0], self.classes
            raise InputError(
                f"the column {name!r} is that of {first!r}, the first class, and must contain its "
                f"probabilities, in [0, 1], or with on='logit' its logits, got "
                f"{float(wrong[0]):.6g}: other scores must be of the second class, "
                f"'{second}={name}' if {name!r} is"
            )
        return np.clip(1 - values, 0, 1)


def column_names(names: ScoreNames) -> list[str]:
    """Return the names of columns of scores in the order in which they are given."""
    if isinstance(names, str):
        return [names]
    values = names.values() if isinstance(names, Mapping) else names
    columns = list(values) if isinstance(values, Iterable) else [values]
    if not all(isinstance(name, str) for name in columns):
        raise InputError(f"score must name columns of scores, got {shown(names)}")
    return columns


def labels_of_column(name: str, classes: Iterable[Any]) -> list[Any]:
    """Return the labels that a column is of by its name: ``label``, ``p(label)``, ``p_label``.

    ``lower(label)`` and others that predictions have are read too. Upper and lower case matter only
    between labels that differ by nothing else.
    """
    form = CLASS_COLUMN.fullmatch(name)
    texts = {name, re.sub("^p_", "", name, flags=re.I), form["label"] if form else name}
    return _labels_of(texts, classes)


def split_entry(
    entry: str,
    classes: Iterable[Any],
    table: Collection[str] = (),
    label_of: Mapping[str, Any] = {},
) -> tuple[list[Any], str]:
    """Return the labels that a column is of, and its name, from ``COLUMN`` or ``LABEL=COLUMN``.

    The name of a column of the table is taken for that column, whatever signs it contains. Labels
    in ``label_of`` count more than what their names say.
    """
    if entry in label_of:
        return [label_of[entry]], entry
    if entry in table:
        return labels_of_column(entry, classes), entry
    splits = [(entry[:i], entry[i + 1 :]) for i, sign in enumerate(entry) if sign == "="]
    pairs = [(label, column) for text, column in splits for label in _labels_of({text}, classes)]
    pairs = [(label, column) for label, column in pairs if column in table] or pairs
    if not pairs:
        return labels_of_column(entry, classes), entry
    return [label for label, _ in pairs], pairs[0][1]


def class_columns(
    names: ScoreNames,
    classes: Iterable[Any],
    argument: str,
    table: Collection[str] = (),
    label_of: Mapping[str, Any] = {},
) -> ClassColumns:
    """Return the columns of scores in the order of the classes.

    A column called like a label, or ``p(label)``, is that class's; ``LABEL=COLUMN``, or a mapping
    from labels to columns, says it for other names. One column of two classes is the second's
    unless it is the first's by this rule. ``argument`` is the name in error messages.
    """
    labels = list(classes)
    k = len(labels)
    if isinstance(names, Mapping):
        entries = [
            ([label for label in labels if _is_label(str(key), label)], column)
            for key, column in names.items()
        ]
    else:
        entries = [split_entry(name, labels, table, label_of) for name in column_names(names)]
    columns = [column for _, column in entries]
    if "probability" in columns and {"label", f"p({labels[-1]})"} <= set(table):
        raise InputError(
            f"{argument} must name the probabilities of a class, such as 'p({labels[-1]})', got "
            "'probability', which predict writes for the label of each row"
        )
    if len(columns) not in ((1, 2) if k == 2 else (k,)):
        raise InputError(
            f"{argument} must name the scores, a column for each of {k} classes "
            f"({listed(map(str, labels), 10)}){' or that of the second' if k == 2 else ''}, got "
            f"{_names_as_text(names)}"
        )
    if len(set(columns)) < len(columns):
        raise InputError(f"{argument} must name each column once, got {_names_as_text(names)}")
    codes = [labels.index(of[0]) if len(of) == 1 else None for of, _ in entries]
    is_unnamed = not (entries[0][0] or isinstance(names, Mapping))
    if len(columns) == 1 and is_unnamed and not CLASS_COLUMN.fullmatch(columns[0]):
        return ClassColumns(columns, labels)
    if None in codes or len(set(codes)) < len(codes):
        example = f"LABEL=COLUMN, such as '{labels[0]}={columns[0]}'"
        if not argument.startswith("--"):
            example = f"a dict, such as { ({labels[0]: columns[0]}) }"
        raise InputError(
            f"{argument} must say of which class each column is, by names such as "
            f"'p({labels[0]})' or by {example}, got {_names_as_text(names)}"
        )
    if len(columns) == 1:
        return ClassColumns(columns, labels, of_first=codes[0] == 0)
    ordered = sorted(zip(codes, columns, strict=True), key=lambda pair: pair[0] or 0)
    return ClassColumns([column for _, column in ordered], labels)


def in_class_order(
    values: ArrayLike,
    classes: NDArray[Any],
    kind: str = "probability",
    name: str = "scores",
    named: ArrayLike | None = None,
) -> ArrayLike:
    """Return columns of scores or probabilities in the order of the library: sorted classes.

    Every function that takes ``classes=`` or a fitted model calls it.

    Parameters
    ----------
    values : array-like of shape (n,) or (n, k)
        Columns of a data frame, or a series, that are called like labels are of these classes,
        whatever ``named`` says.
    classes : ndarray of shape (k,)
        The sorted labels, as `encode_labels` returns them.
    kind : str
        The kind of scores, of which one column of the first of two classes becomes that of the
        second.
    name : str
        The name of the argument in error messages.
    named : array-like of shape (k,), optional
        The labels in the order of the columns of an array: ``classes=`` as the user gave it, or
        ``classes_`` of a fitted model. By default they are sorted.

    Raises
    ------
    InputError
        If one column is given for classes that are named in another order than the sorted one,
        which leaves in doubt of which class it is.
    """
    names: Any = getattr(values, "column_names" if is_arrow(values) else "columns", ())
    if isinstance(name_of_series := getattr(values, "name", None), str):
        names = [name_of_series]
    texts, labels = list(map(str, names)), classes.tolist()
    is_numbered = list(names) == list(range(len(texts)))
    is_size = len(texts) in ({1, 2} if len(labels) == 2 else {len(labels)})
    if not is_numbered and is_size and any(labels_of_column(text, labels) for text in texts):
        of_classes, array = class_columns(texts, labels, name, texts), as_numbers(values, name)
        if len(texts) == 1:
            return of_classes.of_second(array.ravel(), kind)
        return array[:, list(map(texts.index, of_classes.names))]
    codes = column_codes(named)
    if codes is None or len(codes) != len(classes):
        return values
    array = as_numbers(values, name)
    n_columns = 1 if array.ndim == 1 else array.shape[1]
    if n_columns == len(codes):
        return np.ascontiguousarray(array[:, np.argsort(codes)])
    if n_columns == 1 and len(codes) == 2 and array.size:
        raise InputError(
            f"{name} must have a column for each class where classes are named in the order "
            f"{shown(np.asarray(named).tolist())}, got one column, which could be of either: give "
            f"both columns, or name the classes as {shown(classes.tolist())} for a column of "
            f"{shown(classes.tolist()[-1])}"
        )
    return values


def column_codes(named: ArrayLike | None) -> IntArray | None:
    """Return the index (k,) of each of some classes in sorted order; None where they are sorted."""
    codes = np.unique([] if named is None else np.asarray(named), return_inverse=True)[1]
    return None if (np.diff(codes) > 0).all() else codes.astype(np.intp)


def class_probabilities(model: Any, X: Any) -> tuple[FloatArray, NDArray[Any]]:
    """Return the probabilities (n, k) of a fitted classifier and its classes (k,), both sorted."""
    classes = np.unique(model.classes_)
    p = in_class_order(model.predict_proba(X), classes, name="predict_proba", named=model.classes_)
    array = check_scores(p, "what predict_proba returns")
    if array.shape[1:] != classes.shape:
        raise InputError(
            f"predict_proba must return a column for each of {len(classes)} classes, got shape "
            f"{array.shape}"
        )
    return array, classes


def are_predictions(columns: Iterable[str], table: Collection[str], classes: Iterable[Any]) -> bool:
    """Return whether columns are probabilities or bounds that ``predict`` or ``apply`` wrote.

    Their tables have the columns ``label`` and ``p(c)`` of every class.
    """
    labels = list(classes)
    output_names = {"label", *(name for label in labels for name in columns_of(label, ["p"]))}
    forms = [CLASS_COLUMN.fullmatch(name) for name in columns]
    return output_names <= set(table) and any(
        form is not None and form["label"] in map(str, labels) for form in forms
    )


def refuse_own_output(
    columns: Sequence[str], table: Collection[str], classes: Iterable[Any]
) -> None:
    """Raise an error if scores would be read from the output of ``vennforest apply``.

    Such a table has ``label`` and ``p(c)`` of every class. Tables with ``probability`` too are
    accepted: ``vennforest predict`` wrote them.
    """
    if "probability" not in table and are_predictions(columns, table, classes):
        raise InputError(
            f"the scores {columns[0]!r} seem to be calibrated already, since the table has the "
            "columns 'label' and p(c) of every class, which a calibrator writes: use the table "
            "that was calibrated, or, if they are another model's probabilities, rename or leave "
            "out 'label'"
        )


def _labels_of(texts: Collection[str], classes: Iterable[Any]) -> list[Any]:
    """Return the labels that one of the texts stands for, in other letters if in these none."""
    labels, folded = list(classes), set(map(str.casefold, texts))
    exact = [label for label in labels if any(_is_label(text, label) for text in texts)]
    return exact or [c for c in labels if not folded.isdisjoint(map(str.casefold, _texts(c)))]


def _is_label(text: str, label: Any) -> bool:
    """Return whether a text stands for a label; that of a number may be written otherwise."""
    if text in _texts(label):
        return True
    if isinstance(label, bool | str):
        return False
    try:
        number = int(text) if text.lstrip("+-").isdigit() else float(text)
    except ValueError:
        return False
    return bool(number == label)


def _texts(label: Any) -> list[str]:
    """Return the texts that stand for a label: 1.0 is also written 1."""
    is_whole = isinstance(label, float) and label.is_integer()
    return [str(label), str(int(label))] if is_whole else [str(label)]


def _names_as_text(names: ScoreNames) -> str:
    """Return names as a user writes them, the first eight of many."""
    if isinstance(names, str):
        return shown(names)
    pairs = [f"{k}={v}" for k, v in names.items()] if isinstance(names, Mapping) else list(names)
    return listed(pairs, 8, lambda name: harmless(str(name))[:80]) or "none"
