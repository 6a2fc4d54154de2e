"""Classifiers with their calibration as ONNX graphs of standard operators."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from importlib import import_module
from itertools import chain, compress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import check_is_fitted

from vennforest._files import one_line, refused_as
from vennforest._messages import listed, needed, shown
from vennforest._validation import FloatArray, InputError, IntArray, is_frame
from vennforest.calibrators.base import Calibrator
from vennforest.calibrators.formula import (
    LOWEST,
    Operation,
    Score,
    Steps,
    Term,
    Value,
    write_terms,
)
from vennforest.classifier import CalibratedClassifier
from vennforest.classifier.blend import BlendedModel
from vennforest.classifier.prediction import interval_curves_of
from vennforest.export.formulas import (
    INTERVAL_LEVEL,
    accepted_scores,
    interval_formulas,
    output_formulas,
    shifted_formula,
    write_outputs,
)
from vennforest.forest import FORESTS, PackedForest
from vennforest.scores import SPLITTER
from vennforest.sources import Fold
from vennforest.sources.data import split_pipeline, trained_names

OPSET = 17
"""Version of the standard operators; those used here mean the same in later versions."""

TREES_VERSION = ("ai.onnx.ml", 5)
"""Domain and first version of operators with trees in double precision."""

REFUSAL = "model must be a table or a formula"

OPERATORS = {"subtract": "Sub", "multiply": "Mul", "divide": "Div", "product": "MatMul"}
"""Names of operators that differ from the capitalized names of the operations."""


CONVERTED_PACKAGES = ("lightgbm", "xgboost", "catboost")
"""Packages whose models are converted by onnxmltools, or by their own exporter."""

OUTPUTS = ("p0", "p1", "p", "low95", "high95")
"""Names of the outputs, in their order."""

CLASSES_TO_CONVERT = {"lightgbm": "LGBMClassifier", "xgboost": "XGBClassifier"}
"""The classes that onnxmltools converts, of which a user's may be subclasses."""

N_DRAWN_ROWS, SHARE_MISSING = 1_000, 0.1
"""Rows with which a converted booster is compared, and the share of missing values in these."""

SINGLE_PRECISION, SCORE_TOLERANCE = 1e-5, 3e-6
"""Difference up to which probabilities are equal but for sums in single precision, and relative
difference up to which a score is that of a calibration example but for a last digit."""

TREE_ENSEMBLES = (*FORESTS, HistGradientBoostingClassifier)
"""Estimators whose trees are written in double precision."""

REDUCTIONS = {"sum": "ReduceSum", "largest": "ReduceMax", "smallest": "ReduceMin"}
"""Names of operators on the numbers of all classes."""


def to_onnx(
    model: CalibratedClassifier | Calibrator, X: Any = None, *, confidence: bool = False
) -> Any:
    """Return a fitted model as an ONNX graph.

    Parameters
    ----------
    model : CalibratedClassifier or Calibrator
        A fitted calibrator, or a fitted classifier, of several folds too. Its estimators are
        forests with ``subforest="all"``, `HistGradientBoostingClassifier`, models of XGBoost,
        LightGBM or CatBoost without categories of their own, or models that skl2onnx converts, as
        it must all preprocessing steps; or they are a blend of such.
    X : data frame of shape (n_rows, d), optional
        Any rows with the column names and types of the training data: the graph then has an input
        of shape (n, 1) for each column, of float64 or text.
    confidence : bool, default=False
        Whether to add the ends of the 95% confidence intervals, ``low95`` and ``high95``.

    Returns
    -------
    onnx.ModelProto
        The input of a classifier is ``X`` of shape (n, d), or one per column; that of a calibrator
        is ``score`` (n,) for two classes, else ``scores`` (n, k). Outputs are ``p``, and ``p0`` and
        ``p1`` for methods with bounds: (n,) for the second of two classes, else (n, k). They are
        NaN for rows that ``predict_proba`` refuses. All numbers are float64.

    Raises
    ------
    ImportError
        If onnx is not installed, onnxruntime for boosters of other packages, onnxmltools for
        XGBoost and LightGBM, or skl2onnx for other estimators and for preprocessing steps.
    ValueError
        If the model has random subforests, groups (``by``), a changed prior of more than two
        classes, a user's function, a step that skl2onnx does not convert, a booster with categories
        of its own, or one that gives other probabilities after its conversion for drawn rows
        between its thresholds.

    Notes
    -----
    Forests, histogram boosting, blends of these and calibrators agree with ``predict_proba`` to
    1e-12. Preprocessing steps and other estimators are converted partly in single precision: scores
    may differ by about 1e-7, and in rare cases a value falls on the other side of a threshold.
    Where their score is that of a calibration example but for such a difference, this one is taken:
    otherwise bounds and intervals, which are steps that begin at these scores, would be those of a
    neighbouring step.
    """
    needed("onnx", "ONNX graphs")
    graph = _Graph()
    if isinstance(model, Calibrator):
        check_is_fitted(model, "classes_")
        k = len(model.classes_)
        name, shape = ("score", (None,)) if k == 2 else ("scores", (None, k))
        graph.scores = name
        with refused_as(REFUSAL):
            formulas = output_formulas(model, confidence)
        outputs = _outputs(graph, model, formulas)
        return graph.model(outputs, k, [graph.input(name, *shape)])
    if not isinstance(model, CalibratedClassifier):
        raise TypeError(
            f"model must be a CalibratedClassifier or calibrator, got {type(model).__name__}"
        )
    check_is_fitted(model, "classes_")
    _check_exportable(model)
    k, inputs = len(model.classes_), [graph.input("X", None, model.n_features_in_)]
    if X is not None and is_frame(X):
        inputs = [
            graph.input(name, None, 1, text=is_text) for name, is_text in _columns_of(model, X)
        ]
    folds = []
    for fold, calibrator in zip(model._state.folds, model._state.calibrators, strict=True):
        estimator = _without_frozen(fold.model)
        if isinstance(estimator, BlendedModel):
            graph.scores = _blend_scores(graph, estimator, model.votes, inputs)
        else:
            graph.scores = _rounded_scores(graph, estimator, model.votes, inputs, k)
        is_exact = all(
            isinstance(split_pipeline(_without_frozen(one.model))[1], TREE_ENSEMBLES)
            for one in _folds_of_members(fold)
        )
        if not is_exact:
            columns = [np.unique(column) for column in fold.scores.reshape(len(fold.scores), -1).T]
            (graph.scores,) = write_terms([_moved_to_example(Score(), columns)], graph)
        with refused_as(REFUSAL):
            formulas = _fold_formulas(model, calibrator, confidence)
        folds.append(_outputs(graph, calibrator, formulas))
    return graph.model(_combined(graph, model, folds), k, inputs)


def _moved_to_example(scores: Term, columns: Sequence[FloatArray]) -> Term:
    """Return scores in single precision, or the calibration scores that they are but for rounding.

    Steps begin at calibration scores, which rows with the same leaves would miss by a last digit.
    """
    starts = [(column[1:] + column[:-1]) / 2 for column in columns]
    nearest = scores.look_up(starts, {"nearest": columns})["nearest"]
    distance = (scores - nearest).max(nearest - scores)
    return distance.unless_above(SCORE_TOLERANCE * nearest, nearest, scores)


def _blend_scores(graph: _Graph, blend: BlendedModel, votes: str, inputs: Sequence[Any]) -> str:
    """Add a blend to the graph; return the name of its scores (n,) or (n, k)."""
    k, apply, number = len(blend.classes_), graph.apply, graph.number
    tiny, ends = number(np.finfo(np.float64).tiny), blend.intercept
    # Of two classes the logit of the second one, else those of all.
    logits = number(ends if k > 2 else float(ends[1] - ends[0]))
    for member, weight in zip(blend.members, blend.weights.tolist(), strict=True):
        if weight == 0:
            continue
        of_folds = []
        formula = output_formulas(member.calibrator)["p"]
        for fold in member.folds:
            estimator = _without_frozen(fold.model)
            graph.scores = _rounded_scores(graph, estimator, votes, inputs, k)
            of_folds += [_outputs(graph, member.calibrator, {"p": formula})["p"]]
        p = _mean(graph, of_folds)
        log_p = apply("log", apply("max", p, tiny))
        if k == 2:
            other = apply("max", apply("subtract", number(1.0), p), tiny)
            log_p = apply("subtract", log_p, apply("log", other))
        logits = apply("add", logits, apply("multiply", number(weight), log_p))
    p = graph.node("Sigmoid", logits) if k == 2 else graph.node("Softmax", logits, axis=1)
    return _rounded(graph, p)


def _rounded_scores(
    graph: _Graph, estimator: Any, votes: str, inputs: Sequence[Any], n_classes: int
) -> str:
    """Add an estimator; return the name of its scores (n,) or (n, k) as `round_scores` gives."""
    scores = _estimator_scores(graph, estimator, votes, inputs)
    if n_classes == 2:
        scores = graph.node("Gather", scores, graph.constant(np.int64(1)), axis=1)
    return _rounded(graph, scores)


def _mean(graph: _Graph, codes: Sequence[str]) -> str:
    """Add the mean of values by several folds; return its name."""
    total = reduce(partial(graph.apply, "add"), codes)
    is_one = len(codes) == 1
    return total if is_one else graph.apply("divide", total, graph.number(float(len(codes))))


def _estimator_scores(graph: _Graph, estimator: Any, votes: str, inputs: Sequence[Any]) -> str:
    """Add an estimator to the graph; return the name of its scores (n, k), in double precision."""
    steps, last = split_pipeline(estimator)
    rows = inputs[0].name
    is_tree_ensemble = isinstance(last, TREE_ENSEMBLES)
    modules = [cls.__module__.partition(".")[0] for cls in type(last).__mro__]
    package = next((name for name in modules if name in CONVERTED_PACKAGES), "")
    if votes != "soft" and not isinstance(last, FORESTS):
        raise InputError(f'model must have votes="soft" for ONNX, got {votes!r}')
    if not is_tree_ensemble and not package:
        return graph.double(_converted(graph, estimator, last, inputs))
    if columns := list(compress(_column_names(last), _are_categories(last, package))):
        raise InputError(
            f"{type(last).__name__} must not have categories of its own for ONNX, got those of "
            f"{listed(columns, 3)}: encode them in a pipeline, with OneHotEncoder or OrdinalEncoder"
        )
    if steps:
        rows = graph.double(_converted(graph, make_pipeline(*steps), None, inputs))
    elif len(inputs) > 1:
        rows = graph.node("Concat", *(one.name for one in inputs), axis=1)
    if isinstance(last, FORESTS):
        return _forest_scores(graph, last, rows, votes)
    if is_tree_ensemble:
        return _histogram_scores(graph, last, rows)
    return graph.double(_booster_scores(graph, last, package, rows))


def _rounded(graph: _Graph, score: str) -> str:
    """Add the rounding of `round_scores` to the graph."""
    product = graph.apply("multiply", graph.number(SPLITTER), score)
    return graph.apply("subtract", product, graph.apply("subtract", product, score))


def _fold_formulas(
    model: CalibratedClassifier, calibrator: Calibrator, confidence: bool
) -> dict[str, Term]:
    """Return the formulas of a fold's outputs from its scores."""
    formulas = output_formulas(calibrator)
    point = model._state.point_calibrator
    if point is not None:
        formulas["p"] = output_formulas(point)["p"]
    if confidence:
        curves = interval_curves_of(model._state, INTERVAL_LEVEL).overall
        formulas |= interval_formulas(curves, Score())
    return formulas


def _combined(
    graph: _Graph, model: CalibratedClassifier, folds: Sequence[dict[str, str]]
) -> dict[str, str]:
    """Add what `combine_probabilities` and `combine_bounds` make of the outputs of folds."""
    mean, number = partial(_mean, graph), graph.number

    def shifted(code: str) -> str:
        if model._state.shift is None:
            return code
        graph.scores = code
        return write_terms([shifted_formula(Score(), model._state.shift)], graph)[0]

    # The bounds of each fold are shifted, but the mean of the rest, as in `apply_prior`.
    of_folds = {name: [fold[name] for fold in folds] for name in folds[0]}
    outputs = {
        name: mean([*map(shifted, codes)] if name in ("p0", "p1") else codes)
        for name, codes in of_folds.items()
    }
    rule = getattr(model._state.calibrators[0], "merge", None)
    if len(folds) > 1 and rule == "log" and model._state.point_calibrator is None:
        logs = [graph.apply("log", fold["p1"]) for fold in folds]
        others = [graph.apply("log", graph.apply("subtract", number(1.0), f["p0"])) for f in folds]
        up, rest = (graph.apply("exp", mean(codes)) for codes in (logs, others))
        p = graph.apply("divide", up, graph.apply("add", rest, up))
        if len(model.classes_) > 2:
            p = graph.apply("divide", p, graph.apply("sum", p))
        outputs["p"] = p
    outputs |= {name: shifted(outputs[name]) for name in outputs if name not in ("p0", "p1")}
    for low, high in (("p0", "p1"), ("low95", "high95")):
        if low in outputs:
            outputs[low] = graph.apply("min", outputs[low], outputs["p"])
            outputs[high] = graph.apply("max", outputs[high], outputs["p"])
    return outputs


def _forest_scores(graph: _Graph, forest: Any, rows: str, votes: str) -> str:
    """Add a forest to the graph; return the name of its scores (n, k), NaN for refused rows."""
    k, trees = len(forest.classes_), [tree.tree_ for tree in forest.estimators_]
    values = [tree.value[:, 0] for tree in trees]
    if votes == "hard":
        values = [np.eye(k)[scores.argmax(axis=1)] for scores in values]
    # As in scikit-learn, rows are rounded to float32 and compared with float64 thresholds.
    single = graph.node("Cast", rows, to=graph.kinds.FLOAT)
    total = _sum_of_trees(
        graph,
        graph.double(single),
        [
            [(tree, scores[:, j]) for j in range(k)]
            for tree, scores in zip(trees, values, strict=True)
        ],
    )
    means = graph.node("Div", total, graph.number(float(len(trees))))
    is_refused = graph.node("IsInf", single)
    if not PackedForest.from_forest(forest).allow_nan:
        is_refused = graph.node("Or", is_refused, graph.node("IsNaN", single))
    flags = graph.node("Cast", is_refused, to=graph.kinds.FLOAT)
    row_flag = graph.node("ReduceMax", flags, axes=[1], keepdims=1)
    refused_rows = graph.node("Greater", row_flag, graph.constant(np.float32(0)))
    return graph.node("Where", refused_rows, graph.number(np.nan), means)


def _sum_of_trees(graph: _Graph, rows: str, trees: list[list[tuple[Any, FloatArray]]]) -> str:
    """Add the sum over trees of their values at rows in double precision; return its name.

    ``trees[i][j]`` is tree i of output j, with a value for each of its nodes; the sum is (n, j).
    """
    # Each tree has its own outputs, which are summed in order of the trees, as in scikit-learn.
    nodes: dict[str, list[Any]] = defaultdict(list)
    leaves: dict[str, list[Any]] = {"weights": [], "targetids": []}
    roots: list[int] = []
    for target, (tree, values) in enumerate(chain.from_iterable(trees)):
        roots.append(len(nodes["featureids"]))
        _add_tree(tree, values, target, nodes, leaves)
    tensor = graph.onnx.numpy_helper.from_array
    thresholds = np.array(nodes.pop("splits"), np.float64)
    tree_values = graph.node(
        "TreeEnsemble",
        rows,
        domain=TREES_VERSION[0],
        n_targets=len(roots),
        aggregate_function=1,
        post_transform=0,
        tree_roots=roots,
        nodes_modes=tensor(np.zeros(len(thresholds), np.uint8)),
        nodes_splits=tensor(thresholds),
        leaf_weights=tensor(np.array(leaves["weights"], np.float64)),
        leaf_targetids=leaves["targetids"],
        **{f"nodes_{name}": values for name, values in nodes.items()},
    )
    shape = np.array([0, len(trees), len(trees[0])])
    shaped = graph.node("Reshape", tree_values, graph.constant(shape))
    sums = graph.node("CumSum", shaped, graph.constant(np.int64(1)))
    return graph.node("Gather", sums, graph.constant(np.int64(len(trees) - 1)), axis=1)


def _histogram_scores(graph: _Graph, model: HistGradientBoostingClassifier, rows: str) -> str:
    """Add a histogram booster to the graph; return the name of its scores (n, k)."""
    trees: list[list[tuple[Any, FloatArray]]] = []
    for predictors in model._predictors:
        trees.append([])
        for nodes in (predictor.nodes for predictor in predictors):
            tree = SimpleNamespace(
                children_left=np.where(nodes["is_leaf"], -1, nodes["left"].astype(int)),
                children_right=np.where(nodes["is_leaf"], -1, nodes["right"].astype(int)),
                feature=nodes["feature_idx"],
                threshold=nodes["num_threshold"],
                missing_go_to_left=nodes["missing_go_to_left"],
            )
            trees[-1].append((tree, nodes["value"]))
    total = _sum_of_trees(graph, rows, trees)
    raw = graph.apply("add", total, graph.number(model._baseline_prediction[0]))
    if len(trees[0]) > 1:
        return graph.node("Softmax", raw, axis=1)
    second = graph.node("Sigmoid", raw)
    return graph.node("Concat", graph.apply("subtract", graph.number(1.0), second), second, axis=1)


def _columns_of(model: CalibratedClassifier, X: Any) -> Iterator[tuple[str, bool]]:
    """Yield the columns of a model, in its order, and whether those of the rows X are text."""
    table = dict(zip(map(str, X.columns), X.dtypes, strict=True))
    names = getattr(model, "feature_names_in_", table)
    if missing := [name for name in names if name not in table]:
        raise InputError(f"X must have the columns of training, got none called {missing[0]!r}")
    if len(names) != model.n_features_in_:
        raise InputError(f"X must have {model.n_features_in_} columns, got {len(names)}")
    for name in names:
        if name in OUTPUTS or name.startswith("vennforest_"):
            raise InputError(f"X must have no column called like an output or step, got {name!r}")
        # Types of polars have no kind.
        kind = getattr(table[name], "kind", None) or X[name].to_numpy().dtype.kind
        yield name, kind not in "biuf"


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


def _booster_scores(graph: _Graph, booster: Any, package: str, rows: str) -> str:
    """Add a LightGBM, XGBoost or CatBoost model; return the name of its probabilities (n, k)."""
    if package == "catboost":
        with _refused_by("catboost"), TemporaryDirectory() as folder:
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
        with _refused_by("onnxmltools"):
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
    return graph.add(converted, {converted.graph.input[0].name: single})[scores]


def _check_conversion(booster: Any, package: str, converted: Any) -> None:
    """Refuse a converted booster that gives other probabilities than the booster itself."""
    needed("onnxruntime", "ONNX graphs of boosters")
    from onnxruntime import InferenceSession

    # Rows of values between neighbouring thresholds, all that the trees tell apart, or missing.
    rng = np.random.RandomState(0)
    rows = np.zeros((N_DRAWN_ROWS, len(_column_names(booster))))
    features, thresholds = _thresholds(booster, package, converted)
    is_finite = np.abs(thresholds) < np.finfo(np.float32).max  # else it sets missing values apart
    features, thresholds = features[is_finite], thresholds[is_finite]
    for j in np.unique(features):
        at = np.unique(thresholds[features == j])
        ends = at[0] - 1 - abs(at[0]), at[-1] + 1 + abs(at[-1])
        cells = np.concatenate([ends, (at[1:] + at[:-1]) / 2])
        rows[:, j] = rng.choice(cells, len(rows))
    rows[rng.random_sample(rows.shape) < SHARE_MISSING] = np.nan
    with _refused_by("onnxruntime"):
        session = InferenceSession(
            converted.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        (found,) = session.run(None, {session.get_inputs()[0].name: rows.astype(np.float32)})
    names = trained_names(booster)
    if names is not None and package != "catboost":
        rows = needed("pandas", "ONNX graphs of boosters").DataFrame(rows, columns=names)
    difference = np.abs(found - booster.predict_proba(rows)).max(axis=1)
    n_wrong = int((difference > SINGLE_PRECISION).sum())
    if n_wrong:
        raise InputError(
            f"{type(booster).__name__} must be converted rightly for ONNX, got other probabilities "
            f"for {n_wrong} of {len(rows)} drawn rows, by up to {difference.max():.2g}: thresholds "
            "may be too near each other for single precision, or the converter lack a setting"
        )


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
        attributes = {one.name: one for node in trees for one in node.attribute}
        columns = [attributes["nodes_featureids"].ints, attributes["nodes_values"].floats]
        is_split = [mode != b"LEAF" for mode in attributes["nodes_modes"].strings]
        columns = [list(compress(column, is_split)) for column in columns]
    return np.array(columns[0], np.intp), np.array(columns[1], np.float64)


def _add_tree(
    tree: Any,
    scores: FloatArray,
    target: int,
    nodes: dict[str, list[Any]],
    leaves: dict[str, list[Any]],
) -> None:
    """Append the nodes and leaves of a tree to lists; ``scores`` has one score per node."""
    is_leaf = tree.children_left < 0
    number = np.where(
        is_leaf,
        len(leaves["weights"]) + np.cumsum(is_leaf) - 1,
        len(nodes["featureids"]) + np.cumsum(~is_leaf) - 1,
    )
    # onnxruntime 1.22 takes a root for a leaf if its children, a node and a leaf, have one number
    # (its issue 24679): a leaf that no node names sets them apart.
    if number[tree.children_left[0]] == number[tree.children_right[0]]:
        number[is_leaf] += 1
        leaves["weights"].append(0.0)
        leaves["targetids"].append(target)
    leaves["weights"] += scores[is_leaf].tolist()
    leaves["targetids"] += [target] * int(is_leaf.sum())
    # A tree that is one leaf has a node whose two children are that leaf.
    parents = np.flatnonzero(~is_leaf) if len(is_leaf) > 1 else np.array([0])
    nodes["featureids"] += np.maximum(tree.feature[parents], 0).tolist()
    nodes["splits"] += tree.threshold[parents].tolist()
    nodes["missing_value_tracks_true"] += tree.missing_go_to_left[parents].tolist()
    for name, children in (("true", tree.children_left), ("false", tree.children_right)):
        child = np.maximum(children[parents], 0)
        nodes[f"{name}nodeids"] += number[child].tolist()
        nodes[f"{name}leafs"] += is_leaf[child].astype(int).tolist()


def _outputs(graph: _Graph, calibrator: Calibrator, formulas: dict[str, Term]) -> dict[str, str]:
    """Add outputs that are NaN where the calibrator rejects the scores; return their names."""
    codes: dict[str, str] = write_outputs(formulas, graph)
    low, high, sum_tolerance = accepted_scores(calibrator)
    scores, zero, one = graph.scores, graph.number(0.0), graph.number(1.0)
    # 1 where a score is accepted, which NaN is not.
    is_low = graph.apply("if <=", graph.number(low), scores, one, zero)
    flags = graph.apply("if <=", scores, graph.number(high), is_low, zero)
    is_accepted = graph.node("Equal", flags, one)
    if len(calibrator.classes_) > 2:
        flags = graph.apply("smallest", flags)
        if low == -np.inf:  # of a row of minus infinity alone nothing is known
            largest = graph.apply("largest", scores)
            flags = graph.apply("if <=", graph.number(LOWEST), largest, flags, zero)
        if sum_tolerance is not None:
            deviation = graph.node("Abs", graph.apply("subtract", graph.apply("sum", scores), one))
            flags = graph.apply("if <=", deviation, graph.number(sum_tolerance), flags, zero)
        is_accepted = graph.node("Equal", flags, one)
    nan = graph.number(np.nan)
    return {name: graph.node("Where", is_accepted, code, nan) for name, code in codes.items()}


def _check_exportable(model: CalibratedClassifier) -> None:
    """Raise an `InputError` if ONNX cannot express a model."""
    folds, k = model._state.folds, len(model.classes_)
    is_subforest = model.calibrate_on_ in ("oob", "partitions")
    is_subforest = is_subforest and model.subforest == "exchangeable"
    for applies, rule in (
        (
            model.by is not None,
            f"calibrate all rows in the same way, got by={shown(model.by)}: fit one without by, or "
            "one to the rows of each group",
        ),
        (is_subforest, 'score new rows by all trees: use subforest="all"'),
        (
            any(len(one.model.classes_) != k for fold in folds for one in _folds_of_members(fold)),
            "have all classes in each fold's training rows: use more rows or fewer folds",
        ),
        (
            model._state.shift is not None and k > 2,
            f"have two classes after with_prior or with_mean, got {k}: export it before",
        ),
    ):
        if applies:
            raise InputError(f"a model for ONNX must {rule}")


def _folds_of_members(fold: Fold) -> list[Fold]:
    """Return the folds of all members of a blend, or the fold of one model itself."""
    if not isinstance(fold.model, BlendedModel):
        return [fold]
    return [one for member in fold.model.members for one in member.folds]


def _without_frozen(estimator: Any) -> Any:
    """Return the estimator that is frozen, or the estimator itself."""
    while isinstance(estimator, FrozenEstimator):
        estimator = estimator.estimator
    return estimator


@contextmanager
def _refused_by(converter: str, hint: str = "") -> Iterator[None]:
    """Turn the errors of a converter, which are of many types, into an `InputError`."""
    try:
        yield
    except Exception as error:
        rule = f"estimator must be one that {converter} converts"
        raise InputError(f"{rule}: {type(error).__name__}, {one_line(error)}{hint}") from error


def _converted(graph: _Graph, estimator: Any, last: Any, inputs: Sequence[Any]) -> str:
    """Add an estimator, or transformers if ``last`` is None, that skl2onnx converts."""
    needed("skl2onnx", "ONNX graphs of other estimators")
    from skl2onnx import to_onnx as convert
    from skl2onnx.common.data_types import DoubleTensorType, StringTensorType

    types = []
    for one in inputs:
        tensor = one.type.tensor_type
        kind = StringTensorType if tensor.elem_type == graph.kinds.STRING else DoubleTensorType
        types.append((one.name, kind([None, tensor.shape.dim[1].dim_value])))
    hint = ""
    if inputs[0].name == "X":
        hint = "; of a model of named columns give rows too: to_onnx(model, X)"
    with _refused_by("skl2onnx", hint):
        converted = convert(
            estimator,
            initial_types=types,
            options=None if last is None else {id(last): {"zipmap": False}},
            target_opset={"": OPSET, "ai.onnx.ml": 3},
        )
    output = converted.graph.output[0 if last is None else 1].name
    return graph.add(converted, {name: name for name, _ in types})[output]


class _Graph:
    """A builder of an ONNX graph, which collects nodes and constants."""

    def __init__(self) -> None:
        import onnx

        self.onnx, self.kinds = onnx, onnx.TensorProto
        self.nodes: list[Any] = []
        self.constants: dict[tuple[str, bytes], Any] = {}
        self.scores = ""
        self.initializers: list[Any] = []
        self.opsets = {"": OPSET}
        self.ir_version = 8

    def input(self, name: str, *shape: int | None, text: bool = False) -> Any:
        kind = self.kinds.STRING if text else self.kinds.DOUBLE
        return self.onnx.helper.make_tensor_value_info(name, kind, shape)

    def add(self, converted: Any, names: dict[str, str]) -> dict[str, str]:
        """Add another model; return the new names of its values, those of inputs as given."""
        prefix = f"vennforest_m{len(self.nodes)}_"
        names = {"": "", **names}  # an input that is left out has no name

        def renamed(values: Sequence[str]) -> list[str]:
            return [names.setdefault(name, prefix + name) for name in values]

        for i, node in enumerate(converted.graph.node):
            node.name = f"{prefix}{i}"
            node.input[:], node.output[:] = renamed(node.input), renamed(node.output)
            self.nodes.append(node)
        for initializer in converted.graph.initializer:
            (initializer.name,) = renamed([initializer.name])
            self.initializers.append(initializer)
        for opset in converted.opset_import:
            self.opsets[opset.domain] = max(self.opsets.get(opset.domain, 1), opset.version)
        self.ir_version = max(self.ir_version, converted.ir_version)
        return names

    def double(self, code: str) -> str:
        return self.node("Cast", code, to=self.kinds.DOUBLE)

    def constant(self, values: Any) -> str:
        array = np.asarray(values)
        key = (f"{array.dtype}{array.shape}", array.tobytes())
        if key not in self.constants:
            name = f"vennforest_c{len(self.constants)}"
            self.constants[key] = self.onnx.numpy_helper.from_array(array, name)
        return str(self.constants[key].name)

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"vennforest_v{len(self.nodes)}"
        self.nodes.append(
            self.onnx.helper.make_node(kind, list(inputs), [name], f"{name}_node", **attributes)
        )
        return name

    def score(self) -> str:
        return self.scores

    def number(self, value: Value) -> str:
        return self.constant(np.asarray(value, np.float64))

    def of_class(self, term: str, j: int) -> str:
        return self.node("Gather", term, self.constant(np.array([j])), axis=1)

    def apply(self, operation: Operation, *terms: str) -> str:
        if operation in REDUCTIONS:
            axes = [self.constant(np.array([1]))] if operation == "sum" else []
            options = {} if axes else {"axes": [1]}
            return self.node(REDUCTIONS[operation], *terms, *axes, keepdims=1, **options)
        if operation == "if <=":
            return self.node("Where", self.node("LessOrEqual", *terms[:2]), *terms[2:])
        return self.node(OPERATORS.get(operation, operation.capitalize()), *terms)

    def keep(self, term: str) -> str:
        return term

    def look_up(self, tables: Sequence[Steps], x: str) -> dict[str, str]:
        # Binary search for the interval: a few nodes for each bit of its index. Tables of equal
        # length lie one after the other: row 0 of the table of each class is its offset.
        size = max(len(table.start) for table in tables)
        bits = max(size - 1, 1).bit_length()

        def joined(columns: Sequence[FloatArray], fill: float) -> str:
            shape = (len(columns), 1 << bits, *columns[0].shape[1:])
            padded = np.full(shape, fill)
            for rows, column in zip(padded, columns, strict=True):
                rows[: len(column)] = column
            return self.constant(padded.reshape(-1, *shape[2:]))

        starts = joined([table.start for table in tables], np.inf)  # infinity is above these too
        # No number is below -inf, nor is NaN: zeros in the shape of x.
        is_never = self.node("Less", x, self.number(-np.inf))
        row = self.node("Cast", is_never, to=self.kinds.INT64)
        if len(tables) > 1:
            row = self.node("Add", row, self.constant(np.arange(len(tables)) << bits))
        for bit in reversed(range(bits)):
            candidate = self.node("Add", row, self.constant(np.int64(1 << bit)))
            start = self.node("Gather", starts, candidate)
            row = self.node("Where", self.node("GreaterOrEqual", x, start), candidate, row)
        first = tables[0].columns
        if any(column.ndim == 2 for column in first.values()):  # of all classes: (n, 1) to (n, k)
            row = self.node("Squeeze", row, self.constant(np.array([1])))
        return {
            name: self.node("Gather", joined([table.columns[name] for table in tables], 0.0), row)
            for name in first
        }

    def model(self, outputs: dict[str, str], k: int, inputs: Sequence[Any]) -> Any:
        """Return a checked ONNX model of all nodes."""
        helper = self.onnx.helper
        shape = [None] if k == 2 else [None, k]
        names = [name for name in OUTPUTS if name in outputs]
        ends = [helper.make_node("Identity", [outputs[n]], [n], f"{n}_node") for n in names]
        if any(
            node.domain == TREES_VERSION[0] and node.op_type == "TreeEnsemble"
            for node in self.nodes
        ):
            self.opsets |= [TREES_VERSION]
        graph = helper.make_graph(
            [*self.nodes, *ends],
            "vennforest",
            list(inputs),
            [self.input(name, *shape) for name in names],
            [*self.constants.values(), *self.initializers],
        )
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid(*opset) for opset in self.opsets.items()],
            ir_version=self.ir_version,
            producer_name="vennforest",
        )
        self.onnx.checker.check_model(model)
        return model
