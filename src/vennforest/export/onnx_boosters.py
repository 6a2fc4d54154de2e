"""Models of XGBoost, LightGBM and CatBoost as ONNX graphs, compared with the models themselves."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from itertools import compress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from vennforest._files import one_line
from vennforest._messages import InputError, listed, needed
from vennforest._validation import FloatArray, IntArray
from vennforest.export.onnx_graph import OnnxGraph
from vennforest.sources.estimators import trained_names

CONVERTED_PACKAGES = ("lightgbm", "xgboost", "catboost")
"""Packages whose models are converted by onnxmltools, or by their own exporter."""

CLASSES_TO_CONVERT = {"lightgbm": "LGBMClassifier", "xgboost": "XGBClassifier"}
"""The classes that onnxmltools converts, of which a user's may be subclasses."""

N_DRAWN_ROWS, SHARE_MISSING = 1_000, 0.1
"""Rows with which a converted booster is compared, and the share of missing values in these."""

SINGLE_PRECISION = 1e-5
"""Difference up to which probabilities are equal but for sums in single precision."""


@contextmanager
def refused_by(converter: str, hint: str = "") -> Iterator[None]:
    """Turn the errors of a converter, which are of many types, into an `InputError`."""
    try:
        yield
    except Exception as error:
        rule = f"estimator must be one that {converter} converts"
        raise InputError(f"{rule}: {type(error).__name__}, {one_line(error)}{hint}") from error


def booster_package(model: Any) -> str:
    """Return which of the `CONVERTED_PACKAGES` a model is of, "" for none."""
    modules = [cls.__module__.partition(".")[0] for cls in type(model).__mro__]
    return next((name for name in modules if name in CONVERTED_PACKAGES), "")


def refuse_categories(model: Any, package: str) -> None:
    """Raise an error if histogram boosting or a booster treats columns as categories."""
    if columns := list(compress(_column_names(model), _are_categories(model, package))):
        raise InputError(
            f"{type(model).__name__} must not have categories of its own for ONNX, got those of "
            f"{listed(columns, 3)}: encode them in a pipeline, with OneHotEncoder or OrdinalEncoder"
        )


def _column_names(model: Any) -> list[str]:
    """Return the names of the columns of a model, or their numbers."""
    names = trained_names(model)
    n = model.n_features_in_ or len(model.feature_names_)  # 0: of a CatBoost in a file
    return list(map(str, range(n))) if names is None else names


def _are_categories(model: Any, package: str) -> Sequence[bool]:
    """Return which columns of histogram boosting, LightGBM, XGBoost or CatBoost are categories."""
    if package == "lightgbm":
        infos = re.search(r"^feature_infos=(.*)$", model.booster_.model_to_string(), re.MULTILINE)
        return [info[0] not in "[n" for info in infos[1].split()] if infos else []
    if package == "xgboost":
        return [kind == "c" for kind in model.get_booster().feature_types or ()]
    if package == "catboost":
        indices = model.get_cat_feature_indices()
        return [i in indices for i in range(len(model.feature_names_))]
    mask = getattr(model, "is_categorical_", None)
    return [] if mask is None else list(mask)


def booster_scores(graph: OnnxGraph, booster: Any, package: str, rows: str) -> str:
    """Add a LightGBM, XGBoost or CatBoost model; return the name of its probabilities (n, k)."""
    if package == "catboost":
        with refused_by("catboost"), TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            _numbered(booster, package).save_model(str(path), format="onnx")
            converted = graph.onnx.load(path)
        scores = converted.graph.node.pop().input[0]  # of a dictionary for each row
    else:
        tools = needed("onnxmltools", "ONNX graphs of boosters")
        from onnxmltools.convert.common.data_types import FloatTensorType

        types = [("X", FloatTensorType([None, len(_column_names(booster))]))]
        options = {"zipmap": False} if package == "lightgbm" else {}
        convert = getattr(tools, f"convert_{package}")
        with refused_by("onnxmltools"):
            of_numbers = _numbered(booster, package)
            converted = convert(of_numbers, initial_types=types, target_opset=15, **options)
        scores = converted.graph.output[1].name
    del converted.graph.output[:]
    shape = (None, len(booster.classes_))
    converted.graph.output.append(
        graph.onnx.helper.make_tensor_value_info(scores, graph.kinds.FLOAT, shape)
    )
    _check_conversion(booster, package, converted)
    single = graph.node("Cast", rows, to=graph.kinds.FLOAT)
    return graph.double(graph.add(converted, {converted.graph.input[0].name: single})[scores])


def _numbered(booster: Any, package: str) -> Any:
    """Return a copy of a booster in which labels and columns are numbers, as converters need."""
    labels = np.arange(len(booster.classes_))
    if package == "catboost":
        copied = booster.copy()
        names = {"class_names": labels.tolist(), "class_to_label": labels.tolist()}
        kinds = {"class_label_type": "Integer", "classes_count": 0}
        copied.get_metadata()["class_params"] = json.dumps(names | kinds)
        return copied
    copied = getattr(import_module(package), CLASSES_TO_CONVERT[package])()
    vars(copied).update(vars(booster))
    if package == "lightgbm":
        copied._classes = labels
        return copied
    n_used = getattr(booster, "best_iteration", -1) + 1  # 0 without early stopping
    trees = booster.get_booster()
    trees = trees[:n_used] if n_used else trees.copy()
    trees.feature_names = trees.feature_types = None
    copied._Booster = trees
    return copied


def _check_conversion(booster: Any, package: str, converted: Any) -> None:
    """Refuse a converted booster that gives other probabilities than the booster itself."""
    needed("onnxruntime", "ONNX graphs of boosters")
    from onnxruntime import InferenceSession

    rows = _rows_between_thresholds(
        len(_column_names(booster)), *_thresholds(booster, package, converted)
    )
    with refused_by("onnxruntime"):
        session = InferenceSession(
            converted.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        (p,) = session.run(None, {session.get_inputs()[0].name: rows.astype(np.float32)})
    names = trained_names(booster)
    if names is not None and package != "catboost":
        rows = needed("pandas", "ONNX graphs of boosters").DataFrame(rows, columns=names)
    difference = np.abs(p - booster.predict_proba(rows)).max(axis=1)
    n_wrong = int((difference > SINGLE_PRECISION).sum())
    if n_wrong:
        raise InputError(
            f"{type(booster).__name__} must be converted rightly for ONNX, got other probabilities "
            f"for {n_wrong} of {len(rows)} drawn rows, by up to {difference.max():.2g}: thresholds "
            "may be too near each other for single precision, or the converter lack a setting"
        )


def _rows_between_thresholds(
    n_columns: int, features: IntArray, thresholds: FloatArray
) -> FloatArray:
    """Return drawn rows between neighbouring thresholds, all that trees tell apart, or missing."""
    rng = np.random.RandomState(0)
    rows = np.zeros((N_DRAWN_ROWS, n_columns))
    is_finite = np.abs(thresholds) < np.finfo(np.float32).max  # else it sets missing values apart
    features, thresholds = features[is_finite], thresholds[is_finite]
    for j in np.unique(features):
        at = np.unique(thresholds[features == j])
        ends = at[0] - 1 - abs(at[0]), at[-1] + 1 + abs(at[-1])
        cells = np.concatenate([ends, (at[1:] + at[:-1]) / 2])
        rows[:, j] = rng.choice(cells, len(rows))
    rows[rng.random_sample(rows.shape) < SHARE_MISSING] = np.nan
    return rows


def _thresholds(booster: Any, package: str, converted: Any) -> tuple[IntArray, FloatArray]:
    """Return the features and thresholds of all splits of a converted booster."""
    if package == "lightgbm":  # in double precision, which the converted model does not have
        text = booster.booster_.model_to_string()
        columns = [
            " ".join(re.findall(rf"^{name}=(.*)$", text, re.MULTILINE)).split()
            for name in ("split_feature", "threshold")
        ]
    else:
        trees = [node for node in converted.graph.node if node.op_type.startswith("TreeEnsemble")]
        attributes = {entry.name: entry for node in trees for entry in node.attribute}
        columns = [attributes["nodes_featureids"].ints, attributes["nodes_values"].floats]
        is_split = [mode != b"LEAF" for mode in attributes["nodes_modes"].strings]
        columns = [list(compress(column, is_split)) for column in columns]
    return np.array(columns[0], np.intp), np.array(columns[1], np.float64)
