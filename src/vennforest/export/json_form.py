"""Fitted calibrators as JSON documents of numbers and text, which are validated when read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from vennforest._class_columns import ClassColumns, ScoreNames, class_columns
from vennforest._messages import shown
from vennforest._program import __version__
from vennforest._state import check_state, with_state
from vennforest._validation import InputError, require
from vennforest.calibrators import Calibrator
from vennforest.calibrators.formula import LookupTable, Operation, Value
from vennforest.export.formulas import accepted_scores, output_formulas, write_outputs
from vennforest.export.proof import N_ROWS, draw_scores, prove_calibrator, python_answers
from vennforest.prior import ShiftedPrior

JSON_FORMAT, JSON_VERSION = "vennforest-calibrator", 1
"""The kind of document, and the version of the schema in docs/calibrator-json.md."""

KEYS = {"format", "version", "vennforest", "classes", "labels", "scores", "calibrator", "reading"}
"""Keys of a document, which may have ``about`` too."""

LABEL_TYPES: dict[str, tuple[type, Any]] = {
    "text": (str, np.str_),
    "integer": (int, np.int64),
    "number": (float, np.float64),
    "boolean": (bool, np.bool_),
}
"""Kinds of labels, with their types in JSON and in arrays."""

ARRAY_TYPES = ("bool", "int8", "int32", "int64", "uint32", "uint64", "float64")


def to_json(
    calibrator: Calibrator, *, score: ScoreNames | None = None, confidence: bool = False
) -> str:
    """Return a fitted calibrator as JSON, which any program can read.

    Individual calibration examples are not written, as after ``fit_counts``. Of `VennAbers` with
    more than 65,536 distinct scores the few thousand are that its bounds depend on.

    Parameters
    ----------
    calibrator : Calibrator
        A fitted calibrator.
    score : str, sequence of str, or dict of label to str, optional
        The columns of scores that ``vennforest apply`` reads by default, as in `to_sql`.
    confidence : bool, default=False
        Whether to add the ends of the 95% confidence intervals for other programs, ``low95`` and
        ``high95``.

    Raises
    ------
    ValueError
        If it is no calibrator, or has parts other than numbers and text, such as a user's function.
    """
    if not isinstance(calibrator, Calibrator):
        raise InputError(
            f"calibrator must be a calibrator of scores, got {shown(calibrator)}: use "
            "vennforest.save for a model"
        )
    check_is_fitted(calibrator, "classes_")
    kind, labels = _labels_in_json(calibrator.classes_)
    scores: dict[str, Any] = {"kind": calibrator.on_, "increasing": calibrator.reversed_at_ is None}
    if score is not None:
        by_label = class_columns(score, labels, "score").by_label
        scores |= {"columns": [*by_label.values()], "classes": [*by_label]}
    numbered = calibrator._without_examples()
    numbered.__dict__.pop("record_", None)
    numbered.classes_ = np.arange(len(labels))  # the document has the labels
    document: dict[str, Any] = {
        "format": JSON_FORMAT,
        "version": JSON_VERSION,
        "vennforest": __version__,
        "classes": labels,
        "labels": kind,
        "scores": scores,
        "calibrator": _encode(numbered),
        "reading": _reading(calibrator, confidence),
        **({"about": calibrator.record_} if calibrator.record_ else {}),
    }
    text = json.dumps(document, allow_nan=False, ensure_ascii=False)
    take = draw_scores(calibrator, N_ROWS).__getitem__
    answers = python_answers(from_json(text)._by_class(), take, N_ROWS, confidence)
    prove_calibrator(calibrator, "JSON", take, answers, confidence)
    return text


def from_json(text: str | bytes) -> Calibrator:
    """Return a fitted calibrator from JSON that `to_json` wrote.

    Its predictions are unchanged. No code in the document is executed, and every part is checked.

    Raises
    ------
    InputError
        If the document is not JSON, is damaged, or is of a newer version.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"the calibrator is not JSON: {error}") from None
    if not isinstance(document, dict) or document.get("format") != JSON_FORMAT:
        raise InputError(f'the calibrator must be JSON with "format": "{JSON_FORMAT}"')
    version = document.get("version")
    if type(version) is int and version > JSON_VERSION:
        raise InputError(
            f"the calibrator is of version {version} of the format: install a newer vennforest"
        )
    try:
        require(document.keys() - {"about"} == KEYS, f"the document must have {sorted(KEYS)}")
        require(type(version) is int, "version must be an integer")
        labels, (label_type, dtype) = document["classes"], LABEL_TYPES[document["labels"]]
        require(all(type(label) is label_type for label in labels), "classes must be of their kind")
        columns_in_document(document)
        calibrator: Calibrator = _decode(document["calibrator"])
        require(isinstance(calibrator, Calibrator), "calibrator must be one")
        require(len(calibrator.classes_) == len(labels), "classes must be those of the calibrator")
        calibrator.classes_ = np.array(labels, dtype)
        calibrator.record_ = document.get("about", {})
        require(isinstance(calibrator.record_, dict), "about must be an object")
        calibrator._check_state()
        return calibrator
    except Exception as error:  # a part is missing, of another type or out of range
        raise InputError(f"the calibrator is damaged: {error}") from error


def columns_in_document(document: dict[str, Any]) -> ClassColumns | None:
    """Return the columns of scores that a document notes, None if it notes none."""
    scores, classes = document["scores"], document["classes"]
    if "columns" not in scores:
        return None
    require(all(isinstance(name, str) for name in scores["columns"]), "scores must be names")
    by_label = zip(scores["classes"], scores["columns"], strict=True)
    return class_columns(dict(by_label), classes, "scores")


def _labels_in_json(classes: NDArray[Any]) -> tuple[str, list[Any]]:
    """Return the kind of the labels and the labels."""
    labels = classes.tolist()
    for kind, (label_type, _) in LABEL_TYPES.items():
        is_kind = all(type(label) is label_type for label in labels)
        if is_kind and (kind != "integer" or max(map(abs, labels)) < 2**63):
            return kind, labels
    raise ValueError(f"classes must be text, booleans or numbers for JSON, got {labels[0]!r}")


def _part_types(base: type = BaseEstimator) -> dict[str, type]:
    """Return the classes whose instances may be parts of a calibrator, by name."""
    types: dict[str, type] = {ShiftedPrior.__name__: ShiftedPrior}
    subclasses: list[type] = base.__subclasses__()
    for cls in subclasses:
        types |= _part_types(cls)
        if cls.__module__.startswith("vennforest.calibrators."):
            types[cls.__name__] = cls
    return types


def _encode(value: Any) -> Any:
    """Convert a part for JSON: objects with their type, arrays with their dtype and shape."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return {"number": repr(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray) and value.dtype.name in ARRAY_TYPES:
        numbers = [x if np.isfinite(x) else repr(x) for x in value.ravel().tolist()]
        return {"dtype": value.dtype.name, "shape": list(value.shape), "values": numbers}
    if isinstance(value, list | tuple):
        return [_encode(item) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"items": {key: _encode(item) for key, item in value.items()}}
    name = type(value).__name__
    if _part_types().get(name) is not type(value):
        raise ValueError(
            f"calibrator must be of numbers and text for JSON, got {shown(value)}: use "
            "vennforest.save"
        )
    state: Any = value.__getstate__()
    return {"type": name, **{key: _encode(item) for key, item in state.items() if key[0] != "_"}}


def _decode(value: Any) -> Any:
    """Return the object that a part of a document describes, after a check of its state."""
    if isinstance(value, list):
        return [_decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"number"}:
        require(value["number"] in ("nan", "inf", "-inf"), "a number must be one")
        return float(value["number"])
    if value.keys() == {"items"}:
        return {key: _decode(item) for key, item in value["items"].items()}
    if value.keys() == {"dtype", "shape", "values"}:
        require(value["dtype"] in ARRAY_TYPES, f"dtype must be one of {ARRAY_TYPES}")
        array = np.array(value["values"], dtype=value["dtype"])  # reads "nan" and "inf" too
        return array.reshape(value["shape"])
    cls = _part_types()[value["type"]]
    state = {key: _decode(item) for key, item in value.items() if key != "type"}
    is_method = [key for key in state if callable(getattr(cls, key, None))]
    require(not is_method, f"{is_method} must not replace methods of {cls.__name__}")
    part = with_state(cls, state)
    check_state(part)
    return part


def _reading(calibrator: Calibrator, confidence: bool) -> dict[str, Any] | None:
    """Return the formulas of a calibrator, for other programs, and the scores that they accept.

    None for a calibrator without formulas.
    """
    try:
        formulas = output_formulas(calibrator, confidence)
    except InputError:
        raise
    except ValueError:
        return None
    writer = _JsonWriter()
    outputs: dict[str, int] = write_outputs(formulas, writer)
    low, high, sum_tolerance = accepted_scores(calibrator)
    accepted = {"low": low if np.isfinite(low) else None, "high": high, "sum_within": sum_tolerance}
    return {**accepted, "tables": writer.tables, "terms": writer.terms, **outputs}


class _JsonWriter:
    """A language of lists: each term is a list, and refers to earlier terms by their index."""

    def __init__(self) -> None:
        self.terms: list[list[Any]] = []
        self.tables: list[dict[str, Any]] = []

    def _add(self, *term: Any) -> int:
        self.terms.append(list(term))
        return len(self.terms) - 1

    def score(self) -> int:
        return self._add("scores")

    def number(self, value: Value) -> int:
        return self._add("number", np.asarray(value, np.float64).tolist())

    def apply(self, operation: Operation, *terms: int) -> int:
        return self._add(operation, *terms)

    def keep(self, term: int) -> int:
        return term

    def of_class(self, term: int, j: int) -> int:
        return self._add("of class", term, j)

    def look_up(self, tables: Sequence[LookupTable], x: int) -> dict[str, int]:
        first = len(self.tables)
        for table in tables:
            columns = {name: column.tolist() for name, column in table.columns.items()}
            self.tables.append({"start": table.start.tolist(), **columns})
        index: int | list[int] = first
        if len(tables) > 1:
            index = list(range(first, len(self.tables)))
        return {name: self._add("look up", x, index, name) for name in tables[0].columns}
