"""A fitted calibrator as JSON: numbers and text alone, checked whole when they are read."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vennforest._loaded import expect, expect_array
from vennforest._validation import InputError
from vennforest._version import __version__
from vennforest.calibrators.core.interface import Calibrator
from vennforest.calibrators.core.logistic import Standard
from vennforest.calibrators.core.multinomial import Multinomial
from vennforest.calibrators.core.probabilities import Interior
from vennforest.calibrators.maps.beta import BetaMap
from vennforest.calibrators.maps.isotonic import LinearMap, StepMap
from vennforest.calibrators.maps.log_scores import Shrinkage, ToProbabilities
from vennforest.calibrators.maps.platt import PlattMap
from vennforest.calibrators.maps.slopes import SlopeMap
from vennforest.calibrators.registry import METHODS
from vennforest.calibrators.venn import Venn, taxonomies
from vennforest.calibrators.venn_abers import VennAbers
from vennforest.calibrators.venn_abers.smooth import SmoothEstimate
from vennforest.calibrators.venn_abers.step_table import StepTable
from vennforest.counts import ScoreGrid
from vennforest.export.step_tables import accepted, table_of

FORMAT, VERSION = "vennforest-calibrator", 1
"""What a document is, and the version of the schema in docs/calibrator-json.md."""

DEEPEST = 20
"""Levels of objects within objects; a pool of pools has nine."""

CALIBRATORS: dict[str, type[Calibrator]] = {
    method.calibrator.__name__: method.calibrator for method in METHODS.values()
}

RECORDS: dict[str, type[Any]] = {
    one.__name__: one
    for one in (
        BetaMap,
        Interior,
        LinearMap,
        Multinomial,
        PlattMap,
        ScoreGrid,
        Shrinkage,
        SlopeMap,
        SmoothEstimate,
        Standard,
        StepMap,
        ToProbabilities,
    )
}

TAXONOMIES: dict[str, type[Any]] = {
    type(make()).__name__: type(make()) for make in taxonomies.NAMED.values()
}

LABELS: dict[str, Callable[[list[Any]], NDArray[Any]]] = {
    "text": lambda values: np.array(values, dtype=str),
    "integer": lambda values: np.array(values, dtype=np.int64),
    "number": lambda values: np.array(values, dtype=np.float64),
    "boolean": lambda values: np.array(values, dtype=np.bool_),
}
"""Kinds of labels."""

KINDS = {"text": str, "integer": int, "number": float, "boolean": bool}

TABLE_ARRAYS = ("x", "W", "Y", "W_low", "Y_low")


def to_json(calibrator: Calibrator) -> str:
    """Return the document: see `Calibrator.to_json`.

    Raises
    ------
    ValueError
        If the calibrator consists of something else than numbers and text.
    """
    kind, labels = _labels(calibrator.classes_)
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "vennforest": __version__,
        "classes": labels,
        "labels": kind,
        "calibrator": _encode(calibrator),
        "reading": _reading(calibrator),
    }
    return json.dumps(document, allow_nan=False, ensure_ascii=False)


def from_json(text: str | bytes) -> Calibrator:
    """Return the calibrator that a document describes: see `Calibrator.from_json`.

    Raises
    ------
    InputError
        A ``ValueError``: it is not a calibrator's document, or none that ``to_json`` has written.
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
    expect(own == keys, f"the document must have {sorted(keys)}")
    about = document.get("about", {})
    expect(isinstance(about, dict), "about must be an object")
    columns = about.get("scores", [])
    expect(isinstance(columns, list) and all(map(_is_text, columns)), "scores must be names")
    expect(type(document["version"]) is int and document["version"] == VERSION, "version must be 1")
    kind, labels = document["labels"], document["classes"]
    expect(kind in LABELS, f"labels must be one of {list(LABELS)}")
    expect(
        isinstance(labels, list) and all(type(one) is KINDS[kind] for one in labels),
        f"classes must all be of kind {kind}",
    )
    classes = LABELS[kind](labels)
    expect(len(classes) >= 2, "classes must be two or more")
    calibrator = _decode(document["calibrator"], classes, 0)
    expect(isinstance(calibrator, Calibrator), "calibrator must be one")
    # What other programs read must be what this one answers.
    expect(_alike(_reading(calibrator), document["reading"]), "reading must follow from calibrator")
    assert isinstance(calibrator, Calibrator)
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


def _reading(calibrator: Calibrator) -> dict[str, Any] | None:
    """Return what a short program needs to apply a calibrator of two classes, None if more.

    ``low`` and ``high``: the scores it takes; ``steps``: start, p0, p1 and p as in ``to_table``;
    ``sigmoid``: the smooth estimate that is clipped into p0 and p1, or with Platt scaling is the
    answer.
    """
    if len(calibrator.classes_) != 2:
        return None
    try:
        table = table_of(calibrator)
    except ValueError:
        table = None
    own: Any = calibrator._smoother if isinstance(calibrator, Venn) else calibrator
    maps: Any = getattr(calibrator, "maps_", None)
    if isinstance(own, VennAbers) and own.smooth_ is not None:
        maps = own.smooth_.maps
    steps = None
    if table is not None:
        steps = {
            name: None if one is None else one.tolist()
            for name, one in zip(table._fields, table, strict=True)
        }
    sigmoid = None
    if maps and isinstance(one := maps[0], PlattMap) and calibrator.__dict__.get("_grid") is None:
        sigmoid = {
            "unit": one.standard.unit,
            "centre": one.standard.centre,
            "spread": one.standard.spread,
            "slope": one.slope,
            "intercept": one.intercept,
            "low": None if one.interior is None else one.interior.low,
            "high": None if one.interior is None else one.interior.high,
        }
    if sigmoid is None and (steps is None or steps["p"] is None):
        return None
    low, high = accepted(calibrator)
    return {"low": low, "high": high, "steps": steps, "sigmoid": sigmoid}


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
    name = type(value).__name__
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
    if isinstance(value, StepTable):
        return {"kind": name, **{key: _encode(getattr(value, key)) for key in TABLE_ARRAYS}}
    if type(value) is RECORDS.get(name):
        fields = {one.name: _encode(getattr(value, one.name)) for one in dataclasses.fields(value)}
        return {"kind": name, **fields}
    if type(value) is TAXONOMIES.get(name):
        state = {key: _encode(one) for key, one in vars(value).items()}
        return {"kind": name, "of": state}
    if type(value) is CALIBRATORS.get(name):
        parameters = {k: _encode(v) for k, v in value.get_params(deep=False).items()}
        fitted = None
        if "classes_" in vars(value):
            fitted = {key: _encode(getattr(value, key, None)) for key in value._learnt}
        grid = _encode(vars(value).get("_grid"))
        return {"kind": name, "parameters": parameters, "fitted": fitted, "grid": grid}
    raise ValueError(
        f"calibrator must consist of numbers and text to be written as JSON, got {value!r}: "
        "use vennforest.save"
    )


LARGEST = float(np.finfo(np.float64).max)


def _decode(value: Any, classes: NDArray[Any], depth: int) -> Any:
    """Return the part that JSON describes, checked."""
    expect(depth < DEEPEST, "parts must not be nested deeper")
    if isinstance(value, float):
        expect(np.isfinite(value), "numbers must be finite")
    if not isinstance(value, dict | list):
        return value
    if isinstance(value, list):
        return _array(value)
    kind = value.get("kind")
    expect(isinstance(kind, str), "every object must name its kind")
    assert isinstance(kind, str)
    rest = {key: one for key, one in value.items() if key != "kind"}
    if kind in ("list", "dict"):
        of = rest["of"]
        expect(rest.keys() == {"of"} and type(of).__name__ == kind, f"a {kind} must be one")
        if kind == "list":
            return [_decode(one, classes, depth + 1) for one in of]
        return {key: _decode(one, classes, depth + 1) for key, one in of.items()}
    if kind in CALIBRATORS:
        return _decode_calibrator(kind, rest, classes, depth)
    if kind in TAXONOMIES:
        state = {key: _decode(one, classes, depth + 1) for key, one in rest["of"].items()}
        taxonomy = TAXONOMIES[kind]()
        known = {*vars(taxonomy), *TAXONOMY_STATE}
        expect(rest.keys() == {"of"} and state.keys() <= known, f"{kind} has other parts")
        vars(taxonomy).update(state)
        if "n_categories_" in state:
            taxonomy.check_loaded()
        return taxonomy
    parts = {key: _decode(one, classes, depth + 1) for key, one in rest.items()}
    if kind == "StepTable":
        expect(parts.keys() == set(TABLE_ARRAYS), "a StepTable has other parts")
        table = StepTable.__new__(StepTable)
        table.__setstate__({**parts, "examples": None})
        return table
    expect(kind in RECORDS, f"there is no {kind}")
    own = RECORDS[kind]
    expect(parts.keys() == {one.name for one in dataclasses.fields(own)}, f"{kind} has other parts")
    if own is SmoothEstimate:
        parts["maps"] = tuple(parts["maps"])
    record = own(**parts)
    record.check_loaded()
    return record


TAXONOMY_STATE = (
    "n_categories_",
    "_n_classes",
    "edges_",
    "_coordinate",
    "_below",
    "_above",
    "_cell",
    "_cut_at",
)
"""What fitted taxonomies keep besides their parameters."""


def _array(values: list[Any]) -> NDArray[Any]:
    flat = [one for row in values for one in row] if values and type(values[0]) is list else values
    kinds = {type(one) for one in flat}
    expect(kinds <= {int} or kinds <= {float}, "an array must hold numbers of one kind")
    array = np.array(values, dtype=np.int64 if kinds == {int} else np.float64)
    expect_array(array, "an array", (None,) * array.ndim, "fi")
    return array


def _decode_calibrator(
    kind: str, parts: dict[str, Any], classes: NDArray[Any], depth: int
) -> Calibrator:
    expect(parts.keys() == {"parameters", "fitted", "grid"}, f"{kind} has other parts")
    parameters = {k: _decode(v, classes, depth + 1) for k, v in parts["parameters"].items()}
    own = CALIBRATORS[kind]
    expect(parameters.keys() == own().get_params(deep=False).keys(), f"{kind} has other parameters")
    calibrator = own(**parameters)
    if parts["fitted"] is None:
        return calibrator
    fitted = parts["fitted"]
    expect(fitted.keys() == set(own._learnt), f"{kind} has learnt something else")
    found = {key: _decode(one, classes, depth + 1) for key, one in fitted.items()}
    # Parts of a calibrator know classes by number.
    calibrator.classes_ = classes if depth == 0 else np.arange(len(classes))
    calibrator._n_given, calibrator._row_of = 0, None
    if (grid := _decode(parts["grid"], classes, depth + 1)) is not None:
        calibrator._grid = grid
    calibrator._take(found)
    calibrator.check_loaded()
    return calibrator


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("two parts of an object share a name")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")
