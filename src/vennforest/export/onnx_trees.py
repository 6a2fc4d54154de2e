"""Tree ensembles of scikit-learn, LightGBM, XGBoost and CatBoost as ONNX trees of doubles."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
)
from sklearn.tree import DecisionTreeClassifier

from vennforest._messages import listed
from vennforest._validation import FloatArray, InputError
from vennforest.calibrators.formula import Term, Written, if_at_most
from vennforest.export.onnx_graph import OnnxGraph
from vennforest.forest import FORESTS
from vennforest.sources.estimators import trained_names

TREES_VERSION = ("ai.onnx.ml", 5)
"""Domain and first version of operators with trees in double precision."""

LIGHTGBM_ZERO = float(np.float32(1e-35))
"""Size up to which LightGBM reads numbers as 0."""

XGBOOST_EPSILON = 1e-16
"""What XGBoost adds to the denominator of its logistic function."""


class Tree(NamedTuple):
    """Nodes of a tree under the names of scikit-learn's ``tree_``; leaves have no child, -1."""

    children_left: NDArray[Any]
    children_right: NDArray[Any]
    feature: NDArray[Any]
    threshold: FloatArray
    missing_go_to_left: NDArray[Any]


NodeValues = tuple[Any, NDArray[np.floating]]
"""A tree, and a value for each of its nodes, or the one that it adds to every row."""

NodeSplit = tuple[dict[str, Any], dict[str, Any], int, float, bool]
"""Left and right child, feature, threshold, and whether missing cells go to the left."""

STUMP = Tree(*np.array([[1, -1, -1], [2, -1, -1], [0, 0, 0], [0, 0, 0], [0, 0, 0]]))
"""In place of a tree with one value: onnxruntime before 1.30 misreads a node with one leaf."""


# --- scikit-learn --------------------------------------------------------------------------------


def _forest_scores(graph: OnnxGraph, forest: Any, rows: str) -> str:
    """Add a tree, or a forest: the means of its trees' class frequencies or votes."""
    trees = []
    for part in getattr(forest, "estimators_", [forest]):
        values = part.tree_.value[:, 0]
        if graph.votes == "hard":
            values = np.eye(values.shape[1])[values.argmax(axis=1)]
        trees.append([(part.tree_, column) for column in values.T])
    total = _sum_of_trees(graph, graph.single(rows), trees)
    return graph.node("Div", total, graph.number(float(len(trees))))


def _histogram_scores(graph: OnnxGraph, model: HistGradientBoostingClassifier, rows: str) -> str:
    """Add a histogram booster."""
    if model.is_categorical_ is not None:
        _refuse_categories(model, np.flatnonzero(model.is_categorical_))

    def tree_of(nodes: Any) -> NodeValues:
        children = np.array([nodes["left"], nodes["right"]], int)
        left, right = np.where(nodes["is_leaf"], -1, children)
        names = "feature_idx", "num_threshold", "missing_go_to_left"
        return Tree(left, right, *(nodes[name] for name in names)), nodes["value"]

    trees = [[tree_of(part.nodes) for part in predictors] for predictors in model._predictors]
    return _boosted(graph, rows, trees, model._baseline_prediction.ravel())


def _gradient_scores(graph: OnnxGraph, model: GradientBoostingClassifier, rows: str) -> str:
    """Add a gradient booster, whose first estimator is a constant."""
    start = model._raw_predict_init(np.zeros((1, model.n_features_in_), np.float32))[0]
    trees = [
        [(part.tree_, model.learning_rate * part.tree_.value[:, 0, 0]) for part in stage]
        for stage in model.estimators_
    ]
    factor = 2.0 if model.loss == "exponential" else 1.0
    return _boosted(graph, graph.single(rows), trees, start, factor)


def _adaboost_scores(graph: OnnxGraph, model: AdaBoostClassifier, rows: str) -> str:
    """Add a weighted vote of trees."""
    if not all(isinstance(part, DecisionTreeClassifier) for part in model.estimators_):
        raise InputError(f"estimator must have no {model} for ONNX: use trees in its place")
    k = len(model.classes_)
    votes = np.where(np.eye(k) == 1, 1.0, -1.0 / (k - 1))
    weights = model.estimator_weights_ / model.estimator_weights_.sum() / (k - 1)
    trees = []
    for part, weight in zip(model.estimators_, weights.tolist(), strict=False):
        values = weight * votes[part.tree_.value[:, 0].argmax(axis=1)]
        trees.append([(part.tree_, column) for column in values.T])
    decision = _sum_of_trees(graph, graph.single(rows), trees)
    return graph.node("Softmax", decision, axis=1)


# --- other packages ------------------------------------------------------------------------------


def _lightgbm_scores(graph: OnnxGraph, model: Any, rows: str) -> str:
    """Add a LightGBM model."""
    document = model.booster_.dump_model()
    categories: list[int] = []

    def split_of(node: dict[str, Any]) -> NodeSplit | None:
        if "left_child" not in node:
            return None
        feature, threshold = node["split_feature"], node["threshold"]
        if node["decision_type"] != "<=":
            categories.append(feature)
            return None
        # Where missing cells are none of their own they are read as 0.
        to_left = node["default_left"] if node["missing_type"] != "None" else threshold >= 0
        return node["left_child"], node["right_child"], feature, threshold, to_left

    trees = []
    for entry in document["tree_info"]:
        tree, nodes = _tree_of_nested(entry["tree_structure"], split_of)
        trees.append((tree, np.array([float(node.get("leaf_value", 0.0)) for node in nodes])))
    _refuse_categories(model, categories)
    x = Written(rows)
    rows = graph.value(if_at_most(x.max(-1.0 * x), LIGHTGBM_ZERO, 0.0, x))
    k, objective = document["num_tree_per_iteration"], document["objective"]
    groups = [trees[i : i + k] for i in range(0, len(trees), k)]
    factor = 1.0 / len(groups) if document["average_output"] else 1.0
    factor *= float((re.findall(r"sigmoid:(\S+)", objective) or [1.0])[0])
    is_softmax = objective.startswith("multiclass n")
    return _boosted(graph, rows, groups, np.zeros(k), factor, is_softmax=is_softmax)


def _xgboost_scores(graph: OnnxGraph, model: Any, rows: str) -> str:
    """Add an XGBoost model, which computes in single precision, from its JSON."""
    booster = model.get_booster()
    if n_used := getattr(model, "best_iteration", -1) + 1:  # of early stopping
        booster = booster[:n_used]
    learner = json.loads(booster.save_raw("json"))["learner"]
    parameters, part = learner["learner_model_param"], learner["gradient_booster"]
    weights, part = part.get("weight_drop"), part.get("gbtree", part)
    if part["name"] != "gbtree":
        raise InputError(f"{type(model).__name__} must be made of trees, got {part['name']!r}")
    single = np.float32
    start = np.array(json.loads(f"[{parameters['base_score'].strip('[]')}]"), single)
    k = max(int(parameters["num_class"]), 1)
    if k == 1:
        start = -np.log((single(1) / start - single(1)).astype(float)).astype(single)
    per_class: list[list[NodeValues]] = [[(STUMP, start)] for start in np.resize(start, (k, 1))]
    categories: list[int] = []
    pairs = zip(part["model"]["trees"], part["model"]["tree_info"], strict=True)
    for i, (entry, j) in enumerate(pairs):
        left, right, feature, to_left = (
            np.array(entry[name])
            for name in ("left_children", "right_children", "split_indices", "default_left")
        )
        condition = np.array(entry["split_conditions"], single)
        categories += feature[np.array(entry["split_type"]) == 1].tolist()
        # The left child is that of numbers below the threshold.
        threshold = np.nextafter(condition, single(-np.inf)).astype(float)
        values = condition * single(weights[i] if weights else 1)
        per_class[j].append((Tree(left, right, feature, threshold, to_left), values))
    _refuse_categories(model, categories)
    rounds = [list(group) for group in zip(*per_class, strict=True)]
    raw = _sum_of_trees(graph, graph.single(rows), rounds, single=True)
    rounded = graph.single
    if k > 1:
        below = rounded(graph.value(Written(raw) - Written(raw).largest()))
        powers = rounded(graph.value(Written(below).exp()))
        total = rounded(graph.value(Written(powers).sum()))
        p = rounded(graph.value(Written(powers) / Written(total)))
        graph.single_scores.add(p)
        return p
    power = rounded(graph.value((-1.0 * Written(raw)).exp()))
    total = rounded(graph.value(1.0 + Written(power) + XGBOOST_EPSILON))
    p = with_first(graph, rounded(graph.value(1.0 / Written(total))))
    graph.single_scores.add(p)
    return p


def _catboost_scores(graph: OnnxGraph, model: Any, rows: str) -> str:
    """Add a CatBoost model, from its JSON."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        document = json.loads(path.read_text())
    information, (scale, start) = document["features_info"], document["scale_and_bias"]
    categories = information.get("categorical_features", [])
    _refuse_categories(model, [feature["flat_feature_index"] for feature in categories])

    def split_of(node: dict[str, Any]) -> NodeSplit | None:
        if "split" not in node:
            return None
        feature = information["float_features"][node["split"]["float_feature_index"]]
        to_left = feature["nan_value_treatment"] != "AsTrue"
        index, border = feature["flat_feature_index"], node["split"]["border"]
        return node["left"], node["right"], index, border, to_left

    trees = []
    for entry in document.get("trees") or map(_nested, document["oblivious_trees"]):
        tree, nodes = _tree_of_nested(entry, split_of)
        values = np.array([np.resize(node.get("value", 0.0), len(start)) for node in nodes])
        trees.append([(tree, scale * column) for column in values.T])
    is_softmax = model.get_all_params()["loss_function"] == "MultiClass"
    return _boosted(graph, graph.single(rows), trees, start, is_softmax=is_softmax)


def _nested(entry: dict[str, Any]) -> dict[str, Any]:
    """Return a tree of CatBoost with one split a level as nested nodes."""
    splits, k = entry["splits"] or [], len(entry["leaf_values"]) >> len(entry["splits"] or [])
    nodes = [{"value": part} for part in np.reshape(entry["leaf_values"], (-1, k)).tolist()]
    for split in splits:  # the first one is that of the leaves' parents
        pairs = zip(nodes[::2], nodes[1::2], strict=True)
        nodes = [{"split": split, "left": left, "right": right} for left, right in pairs]
    return nodes[0]


def _tree_of_nested(
    root: dict[str, Any], split_of: Callable[[dict[str, Any]], NodeSplit | None]
) -> tuple[Tree, list[dict[str, Any]]]:
    """Return a tree and its nodes, from nested ones; ``split_of`` returns None for a leaf."""
    nodes, rows = [root], []
    for node in nodes:  # which grows by the children
        split = split_of(node)
        if split is None:
            rows.append((-1, -1, 0, 0.0, False))
            continue
        rows.append((len(nodes), len(nodes) + 1, *split[2:]))
        nodes += split[:2]
    return Tree(*map(np.array, zip(*rows, strict=True))), nodes


def _refuse_categories(model: Any, features: Iterable[int]) -> None:
    """Raise an error if splits ask for the categories of features."""
    if used := sorted({*map(int, features)}):
        names = trained_names(model) or [*map(str, range(max(used) + 1))]
        raise InputError(
            f"{type(model).__name__} must not have categories of its own for ONNX, got those of "
            f"{listed([names[j] for j in used], 3)}: encode them in a pipeline, with OneHotEncoder "
            "or OrdinalEncoder"
        )


TREE_WRITERS: dict[str, Callable[..., str]] = {
    **{cls.__name__: _forest_scores for cls in (DecisionTreeClassifier, *FORESTS)},
    "HistGradientBoostingClassifier": _histogram_scores,
    "GradientBoostingClassifier": _gradient_scores,
    "AdaBoostClassifier": _adaboost_scores,
    "LGBMClassifier": _lightgbm_scores,
    "XGBClassifier": _xgboost_scores,
    "CatBoostClassifier": _catboost_scores,
}
"""What adds the probabilities (n, k) of trees, by the name of the model's class or of a base."""


# --- sums of trees -------------------------------------------------------------------------------


def _boosted(
    graph: OnnxGraph,
    rows: str,
    trees: list[list[NodeValues]],
    start: Sequence[float] | FloatArray,
    factor: float = 1.0,
    *,
    is_softmax: bool = True,
) -> str:
    """Add the probabilities (n, k) of a sum of trees that begins with a constant per class.

    ``factor`` multiplies the sum; without ``is_softmax`` each class has a logistic function.
    """
    constants: list[NodeValues] = [(STUMP, np.array([value])) for value in start]
    raw = factor * Written(_sum_of_trees(graph, rows, [constants, *trees]))
    if len(start) == 1:
        return with_first(graph, graph.value(logistic(raw)))
    if is_softmax:
        return graph.node("Softmax", graph.value(raw), axis=1)
    return graph.value(logistic(raw))


def logistic(x: Term) -> Term:
    """Return ``1 / (1 + exp(-x))`` with all digits near 0, where `Term.logistic` has a limit."""
    below = x.min(0.0)
    return below.exp() / (1.0 + (below - x.max(0.0)).exp())


def with_first(graph: OnnxGraph, second: str, total: float = 1.0) -> str:
    """Return the scores of two classes (n, 2), whose sum is ``total``, from the second's (n, 1)."""
    return graph.node("Concat", graph.value(total - Written(second)), second, axis=1)


def _sum_of_trees(
    graph: OnnxGraph, rows: str, trees: list[list[NodeValues]], *, single: bool = False
) -> str:
    """Add the sum over trees of their values at rows in double precision; return its name.

    ``trees[i][j]`` is tree i of output j, and the sum is (n, j), in ``single`` precision if asked.
    """
    # Each tree has its own outputs, which are summed in order of the trees, as in the packages.
    nodes: dict[str, list[Any]] = defaultdict(list)
    weights: list[float] = []
    targets: list[int] = []
    roots: list[int] = []
    for target, (tree, values) in enumerate(chain.from_iterable(trees)):
        roots.append(len(nodes["featureids"]))
        if len(values) == 1:
            tree, values = STUMP, np.repeat(values, 3)
        is_leaf = tree.children_left < 0
        leaf_number = len(weights) + is_leaf.cumsum() - 1
        number = np.where(is_leaf, leaf_number, roots[-1] + (~is_leaf).cumsum() - 1)
        # onnxruntime 1.22 takes a root for a leaf if its children, a node and a leaf, have one
        # number (its issue 24679): a leaf that no node names sets them apart.
        if number[tree.children_left[0]] == number[tree.children_right[0]]:
            number[is_leaf] += 1
            weights.append(0.0)
            targets.append(target)
        weights += values[is_leaf].tolist()
        targets += [target] * int(is_leaf.sum())
        parents = np.flatnonzero(~is_leaf)
        nodes["featureids"] += tree.feature[parents].tolist()
        nodes["splits"] += tree.threshold[parents].tolist()
        nodes["missing_value_tracks_true"] += tree.missing_go_to_left[parents].astype(int).tolist()
        for name, children in (("true", tree.children_left), ("false", tree.children_right)):
            nodes[f"{name}nodeids"] += number[children[parents]].tolist()
            nodes[f"{name}leafs"] += is_leaf[children[parents]].astype(int).tolist()
    tensor = graph.onnx.numpy_helper.from_array
    thresholds = np.array(nodes.pop("splits"), np.float64)
    graph.use_operators(*TREES_VERSION)
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
        leaf_weights=tensor(np.array(weights, np.float64)),
        leaf_targetids=targets,
        **{f"nodes_{name}": values for name, values in nodes.items()},
    )
    shape = np.array([0, len(trees), len(trees[0])])
    shaped = graph.node("Reshape", tree_values, graph.constant(shape))
    if single:
        shaped = graph.node("Cast", shaped, to=graph.kinds.FLOAT)
    sums = graph.node("CumSum", shaped, graph.constant(np.int64(1)))
    total = graph.node("Gather", sums, graph.constant(np.int64(len(trees) - 1)), axis=1)
    return graph.double(total) if single else total
