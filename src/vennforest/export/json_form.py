"""A fitted calibrator as JSON: numbers and text alone, checked whole when they are read."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from vennforest._program import __version__
from vennforest._state import STORED, from_state, state_of, stored_name
from vennforest._validation import InputError, check_array, require
from vennforest.calibrators import Calibrator
from vennforest.calibrators.formula import Operation, Steps, written
from vennforest.export.formulas import answers, taken

FORMAT, VERSION = "vennforest-calibrator", 1
"""What a document is, and the version of the schema in docs/calibrator-json.md."""

DEEPEST = 20
"""Levels of objects within objects; a pool of pools has nine."""

LABELS: dict[str, Callable[[list[Any]], NDArray[Any]]] = {
    "text": lambda values: np.array(values, dtype=str),
    "integer": lambda values: np.array(values, dtype=np.int64),
    "number": lambda values: np.array(values, dtype=np.float64),
    "boolean": lambda values: np.array(values, dtype=np.bool_),
}
"""Kinds of labels."""

KINDS = {"text": str, "integer": int, "number": float, "boolean": bool}


def to_json(calibrator: Calibrator, *, confidence: bool = False) -> str:
    """Return a fitted calibrator as JSON, which any program can read.

    The schema is in ``docs/calibrator-json.md``. Single calibration examples are not written,
    as after ``fit_counts``.

    Parameters
    ----------
    calibrator : Calibrator
        Fitted.
    confidence : bool, default=False
        Whether to add the ends of the confidence intervals of level .95 for other programs,
        ``low95`` and ``high95``.

    Raises
    ------
    ValueError
        If the calibrator contains something else than numbers and text, such as a user's function.
    """
    check_is_fitted(calibrator, "classes_")
    kind, labels = _labels(calibrator.classes_)
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "vennforest": __version__,
        "classes": labels,
        "labels": kind,
        "calibrator": _encode(calibrator._without_examples()),
        "reading": _reading(calibrator, confidence),
    }
    return json.dumps(document, allow_nan=False, ensure_ascii=False)


def from_json(text: str | bytes) -> Calibrator:
    """Return the calibrator that `to_json` has written.

    It answers what the written one answered, to the last bit on a machine with the same library.
    Nothing in the document is executed, and every part is checked.

    Raises
    ------
    InputError
        If `to_json` could not have written it.
    """
    try:
        document = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise InputError(f"the calibrator is not JSON: {error}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InputError(f'the calibrator must be JSON with "format": "{FORMAT}"')
    version = document.get("version")
    if type(version) is int and version > VERSION:
        raise InputError(
            f"the calibrator is of version {version} of the format, and this vennforest reads "
            f"up to {VERSION}: install a newer one"
        )
    try:
        return _read(document)
    except MemoryError:
        raise
    except Exception as error:  # whatever a part is not
        raise InputError(f"the calibrator is damaged: {error}") from error


def _read(document: dict[str, Any]) -> Calibrator:
    keys = {"format", "version", "vennforest", "classes", "labels", "calibrator", "reading"}
    own = document.keys() - {"about"}  # what a command notes of where it comes from
    require(own == keys, f"the document must have {sorted(keys)}")
    about = document.get("about", {})
    require(isinstance(about, dict), "about must be an object")
    columns = about.get("scores", [])
    require(
        isinstance(columns, list) and all(isinstance(one, str) for one in columns),
        "scores must be names",
    )
    require(
        type(document["version"]) is int and document["version"] == VERSION, "version must be 1"
    )
    kind, labels = document["labels"], document["classes"]
    require(kind in LABELS, f"labels must be one of {list(LABELS)}")
    require(
        isinstance(labels, list) and all(type(one) is KINDS[kind] for one in labels),
        f"classes must all be of kind {kind}",
    )
    classes = LABELS[kind](labels)
    require(len(classes) >= 2, "classes must be two or more")
    calibrator = _decode(document["calibrator"], classes)
    require(isinstance(calibrator, Calibrator), "calibrator must be one")
    # What other programs read must be what this one answers.
    assert isinstance(calibrator, Calibrator)
    given = document["reading"]
    read = _reading(calibrator, isinstance(given, dict) and "low95" in given)
    require(_alike(read, given), "reading must follow from calibrator")
    return calibrator


def _labels(classes: NDArray[Any]) -> tuple[str, list[Any]]:
    values = classes.tolist()
    for kind, plain in KINDS.items():
        if all(type(one) is plain for one in values):
            try:
                same = LABELS[kind](values).tolist() == values
            except OverflowError:
                same = False
            if same:
                return kind, values
    raise ValueError(
        "classes must be text, booleans or numbers, integers below 2**63, to be written as JSON, "
        f"got {values[0]!r} of {type(values[0]).__name__}"
    )


def _reading(calibrator: Calibrator, confidence: bool) -> dict[str, Any] | None:
    """Return what a short program needs to apply a calibrator; None if it has no formulas.

    See docs/calibrator-json.md.
    """
    try:
        found = answers(calibrator, confidence)
    except InputError:
        raise
    except ValueError:
        return None
    steps = _Reading()
    places = iter(written([one for terms in found.values() for one in terms], steps))
    low, high, _ = accepted = taken(calibrator)
    return {
        "low": low,
        "high": high,
        "sum_within": accepted.tolerance,
        "tables": steps.tables,
        "terms": steps.terms,
        **{name: [next(places) for _ in terms] for name, terms in found.items()},
    }


class _Reading:
    """Terms in the order in which they are to be computed, each by its place in that order."""

    def __init__(self) -> None:
        self.terms: list[list[Any]] = []
        self.tables: list[dict[str, Any]] = []

    def _add(self, *term: Any) -> int:
        self.terms.append(list(term))
        return len(self.terms) - 1

    def score(self, column: int) -> int:
        return self._add("score", column)

    def number(self, value: float) -> int:
        return self._add("number", value)

    def apply(self, operation: Operation, *terms: int) -> int:
        return self._add(operation, *terms)

    def keep(self, term: int) -> int:
        return term

    def look_up(self, table: Steps, x: int) -> dict[str, int]:
        """Return the columns of a table where a number falls."""
        columns = {name: one.tolist() for name, one in table.columns.items()}
        self.tables.append({"start": table.start.tolist(), **columns})
        place = len(self.tables) - 1
        return {name: self._add("look up", x, place, name) for name in columns}


def _alike(own: Any, given: Any) -> bool:
    """Tell whether two documents are the same but for the last digits of numbers.

    Another machine's logarithm may move the edges of a grid of log-odds by so much.
    """
    if type(own) is not type(given):
        return False
    if isinstance(own, dict):
        return own.keys() == given.keys() and all(_alike(own[key], given[key]) for key in own)
    if isinstance(own, list):
        return len(own) == len(given) and all(map(_alike, own, given))
    return bool(
        own == given or (isinstance(own, float) and math.isclose(own, given, rel_tol=1e-12))
    )


def _encode(value: Any) -> Any:
    """Return a part as JSON: numbers, text, lists, and objects that name their kind."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, np.bool_ | np.integer | np.floating | float):
        return value.item() if isinstance(value, np.generic) else value
    if isinstance(value, np.ndarray):
        # An infinite cut, that of a leaf, is never asked.
        return (np.clip(value, -LARGEST, LARGEST) if value.dtype.kind == "f" else value).tolist()
    if isinstance(value, list | tuple):
        return {"kind": "list", "of": [_encode(one) for one in value]}
    if isinstance(value, dict):
        return {"kind": "dict", "of": {str(key): _encode(one) for key, one in value.items()}}
    kind = stored_name(type(value))
    if kind is None or not _is_part(type(value)):
        raise ValueError(
            "calibrator must consist of numbers and text to be written as JSON, "
            f"got {value!r}: use vennforest.save"
        )
    state = dict(state_of(value))
    if isinstance(value, Calibrator):  # the document has the classes
        state["fitted"] = {k: part for k, part in state["fitted"].items() if k != "classes_"}
    return {"kind": kind, **{key: _encode(one) for key, one in state.items()}}


def _decode(value: Any, classes: NDArray[Any], depth: int = 0) -> Any:
    """Return the part that JSON describes; its constructor checks it."""
    require(depth < DEEPEST, "parts must not be nested deeper")
    if isinstance(value, float):
        require(np.isfinite(value), "numbers must be finite")
    if not isinstance(value, dict | list):
        return value
    if isinstance(value, list):
        return _array(value)
    kind = value.get("kind")
    require(isinstance(kind, str), "every object must name its kind")
    rest = {key: one for key, one in value.items() if key != "kind"}
    if kind in ("list", "dict"):
        of = rest["of"]
        require(rest.keys() == {"of"} and type(of).__name__ == kind, f"a {kind} must be one")
        if kind == "list":
            return [_decode(one, classes, depth + 1) for one in of]
        return {key: _decode(one, classes, depth + 1) for key, one in of.items()}
    own = STORED.get(str(kind))
    if own is None or not _is_part(own):
        raise ValueError(f"there is no {kind}")
    # Parts of a calibrator know classes by number.
    inner = np.arange(len(classes)) if issubclass(own, Calibrator) and depth else classes
    parts = {key: _decode(one, inner, depth + 1) for key, one in rest.items()}
    if issubclass(own, Calibrator):
        parts["fitted"] = {**parts["fitted"], "classes_": inner}
    return from_state(own, parts)


def _is_part(kind: type) -> bool:
    """Tell whether calibrators may consist of a type: one of theirs, or of another package."""
    package, _, rest = kind.__module__.partition(".")
    return package != "vennforest" or rest.split(".")[0] in ("calibrators", "counts", "prior")


LARGEST = float(np.finfo(np.float64).max)


def _array(values: list[Any]) -> NDArray[Any]:
    flat = [one for row in values for one in row] if values and type(values[0]) is list else values
    kinds = {type(one) for one in flat}
    require(kinds <= {int} or kinds <= {float}, "an array must contain numbers of one kind")
    array = np.array(values, dtype=np.int64 if kinds == {int} else np.float64)
    check_array(array, "an array", (None,) * array.ndim, "fi")
    return array


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("two parts of an object share a name")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")
