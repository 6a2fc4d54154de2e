"""Tree ensembles of scikit-learn, LightGBM, XGBoost and CatBoost as ONNX trees of doubles."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
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

TREE_ENSEMBLES = (
    DecisionTreeClassifier,
    *FORESTS,
    HistGradientBoostingClassifier,
    GradientBoostingClassifier,
    AdaBoostClassifier,
)
"""Classes of scikit-learn whose trees are read."""

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
"""A tree, and a value for each of its nodes."""

LEAF = Tree(*np.array([[-1], [-1], [0], [0], [0]]))
"""A tree of one node, which adds the same value for every row."""


def tree_scores(graph: OnnxGraph, model: Any, rows: str, votes: str) -> str | None:
    """Add an ensemble of trees; return the name of its probabilities (n, k), None if it is none."""
    if isinstance(model, (DecisionTreeClassifier, *FORESTS)):
        return _forest_scores(graph, model, rows, votes)
    if isinstance(model, HistGradientBoostingClassifier):
        return _histogram_scores(graph, model, rows)
    if isinstance(model, GradientBoostingClassifier):
        return _gradient_scores(graph, model, rows)
    if isinstance(model, AdaBoostClassifier) and all(
        isinstance(tree, DecisionTreeClassifier) for tree in model.estimators_
    ):
        return _adaboost_scores(graph, model, rows)
    write = booster_writer(model)
    return None if write is None else write(graph, model, rows)


# --- scikit-learn --------------------------------------------------------------------------------


def _forest_scores(graph: OnnxGraph, forest: Any, rows: str, votes: str) -> str:
    """Add a tree, or a forest: the means of its trees' class frequencies or votes."""
    k, trees = (
        len(forest.classes_),
        [tree.tree_ for tree in getattr(forest, "estimators_", [forest])],
    )
    values = [tree.value[:, 0] for tree in trees]
    if votes == "hard":
        values = [np.eye(k)[scores.argmax(axis=1)] for scores in values]
    columns = [
        [(tree, scores[:, j]) for j in range(k)] for tree, scores in zip(trees, values, strict=True)
    ]
    total = _sum_of_trees(graph, _single(graph, rows), columns)
    return graph.node("Div", total, graph.number(float(len(trees))))


def _histogram_scores(graph: OnnxGraph, model: HistGradientBoostingClassifier, rows: str) -> str:
    """Add a histogram booster."""
    if model.is_categorical_ is not None:
        _refuse_categories(model, [np.flatnonzero(model.is_categorical_)])
    trees = [
        [(_tree_of_histogram(part.nodes), part.nodes["value"]) for part in predictors]
        for predictors in model._predictors
    ]
    return _boosted(graph, rows, trees, model._baseline_prediction.ravel())


def _tree_of_histogram(nodes: Any) -> Tree:
    return Tree(
        np.where(nodes["is_leaf"], -1, nodes["left"].astype(int)),
        np.where(nodes["is_leaf"], -1, nodes["right"].astype(int)),
        nodes["feature_idx"],
        nodes["num_threshold"],
        nodes["missing_go_to_left"],
    )


def _gradient_scores(graph: OnnxGraph, model: GradientBoostingClassifier, rows: str) -> str:
    """Add a gradient booster, whose first estimator is a constant."""
    start = model._raw_predict_init(np.zeros((1, model.n_features_in_), np.float32))[0]
    trees = [
        [(part.tree_, model.learning_rate * part.tree_.value[:, 0, 0]) for part in stage]
        for stage in model.estimators_
    ]
    factor = 2.0 if model.loss == "exponential" else 1.0
    return _boosted(graph, _single(graph, rows), trees, start, factor)


def _adaboost_scores(graph: OnnxGraph, model: AdaBoostClassifier, rows: str) -> str:
    """Add a weighted vote of trees."""
    k = len(model.classes_)
    votes = np.where(np.eye(k) == 1, 1.0, -1.0 / (k - 1))
    weights = model.estimator_weights_ / model.estimator_weights_.sum() / (k - 1)
    trees = []
    for part, weight in zip(model.estimators_, weights.tolist(), strict=False):
        values = weight * votes[part.tree_.value[:, 0].argmax(axis=1)]
        trees.append([(part.tree_, column) for column in values.T])
    decision = _sum_of_trees(graph, _single(graph, rows), trees)
    return graph.node("Softmax", decision, axis=1)


# --- other packages ------------------------------------------------------------------------------


def _lightgbm_scores(graph: OnnxGraph, model: Any, rows: str) -> str:
    """Add a LightGBM model, from its text."""
    header, *parts = model.booster_.model_to_string().split("\nTree=")

    def entries(text: str) -> dict[str, str]:
        return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)

    about, trees, categories = entries(header), [], []
    for part in parts:
        entry = entries(part.partition("\nend of trees")[0])
        value = np.array(entry["leaf_value"].split(), float)
        if len(value) == 1:
            trees.append((LEAF, value))
            continue
        left, right, feature, decision = (
            np.array(entry[name].split(), int)
            for name in ("left_child", "right_child", "split_feature", "decision_type")
        )
        n, threshold = len(left), np.array(entry["threshold"].split(), float)
        categories.append(feature[decision & 1 == 1])
        left, right = (np.where(c < 0, n + ~c, c) for c in (left, right))  # leaves come last
        # Where missing cells are none of their own they are read as 0.
        to_left = np.where(decision >> 2 & 3, decision & 2 > 0, threshold >= 0)
        columns = (left, -1), (right, -1), (feature, 0), (threshold, 0.0), (to_left, 0)
        tree = Tree(*(np.append(column, np.full(n + 1, fill)) for column, fill in columns))
        trees.append((tree, np.append(np.zeros(n), value)))
    _refuse_categories(model, categories)
    x = Written(rows)
    rows = graph.value(if_at_most(x.max(-1.0 * x), LIGHTGBM_ZERO, 0.0, x))
    k = int(about["num_tree_per_iteration"])
    groups = [trees[i : i + k] for i in range(0, len(trees), k)]
    factor = 1.0 / len(groups) if "\naverage_output" in header else 1.0
    factor *= float((re.findall(r"sigmoid:(\S+)", about["objective"]) or [1.0])[0])
    return _boosted(
        graph,
        rows,
        groups,
        np.zeros(k),
        factor,
        is_softmax=about["objective"][:12] == "multiclass n",
    )


def _xgboost_scores(graph: OnnxGraph, model: Any, rows: str) -> str:
    """Add an XGBoost model, which computes in single precision, from its JSON."""
    booster = model.get_booster()
    if n_used := getattr(model, "best_iteration", -1) + 1:  # of early stopping
        booster = booster[:n_used]
    learner = json.loads(booster.save_raw("json"))["learner"]
    about, part = learner["learner_model_param"], learner["gradient_booster"]
    weights, part = part.get("weight_drop"), part.get("gbtree", part)
    if part["name"] != "gbtree":
        raise InputError(f"{type(model).__name__} must be made of trees, got {part['name']!r}")
    single = np.float32
    start = np.array(json.loads(f"[{about['base_score'].strip('[]')}]"), single)
    k = max(int(about["num_class"]), 1)
    if k == 1:
        start = -np.log((single(1) / start - single(1)).astype(float)).astype(single)
    per_class: list[list[NodeValues]] = [[(LEAF, start)] for start in np.resize(start, (k, 1))]
    categories = []
    for i, (entry, j) in enumerate(
        zip(part["model"]["trees"], part["model"]["tree_info"], strict=True)
    ):
        left, right, feature, to_left = (
            np.array(entry[name])
            for name in ("left_children", "right_children", "split_indices", "default_left")
        )
        condition = np.array(entry["split_conditions"], single)
        categories.append(feature[np.array(entry["split_type"]) == 1])
        # The left child is that of numbers below the threshold.
        threshold = np.nextafter(condition, single(-np.inf)).astype(float)
        values = condition * single(weights[i] if weights else 1)
        per_class[j].append((Tree(left, right, feature, threshold, to_left), values))
    _refuse_categories(model, categories)
    rounds = [list(group) for group in zip(*per_class, strict=True)]
    raw = _sum_of_trees(graph, _single(graph, rows), rounds, single=True)

    def rounded(code: str) -> str:
        return _single(graph, code)

    if k > 1:
        below = rounded(graph.value(Written(raw) - Written(raw).largest()))
        powers = rounded(graph.value(Written(below).exp()))
        total = rounded(graph.value(Written(powers).sum()))
        return rounded(graph.value(Written(powers) / Written(total)))
    power = rounded(graph.value((-1.0 * Written(raw)).exp()))
    total = rounded(graph.value(1.0 + Written(power) + XGBOOST_EPSILON))
    return with_first(graph, rounded(graph.value(1.0 / Written(total))))


def _catboost_scores(graph: OnnxGraph, model: Any, rows: str) -> str:
    """Add a CatBoost model, from its JSON."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        document = json.loads(path.read_text())
    features = document["features_info"]["float_features"]
    number = [feature["flat_feature_index"] for feature in features]
    is_left = [feature["nan_value_treatment"] != "AsTrue" for feature in features]
    _refuse_categories(
        model,
        [
            [f["flat_feature_index"]]
            for f in document["features_info"].get("categorical_features", [])
        ],
    )
    scale, start = document["scale_and_bias"]

    def tree_of(entry: dict[str, Any]) -> tuple[Tree, FloatArray]:
        nodes: list[tuple[Any, ...]] = []
        values: list[Any] = []

        def add(node: dict[str, Any]) -> int:
            i = len(nodes)
            nodes.append((-1, -1, 0, 0.0, 0))
            values.append(node.get("value", 0.0))
            if "split" in node:
                j, border = node["split"]["float_feature_index"], node["split"]["border"]
                left, right = add(node["left"]), add(node["right"])
                nodes[i] = left, right, number[j], border, is_left[j]
            return i

        add(entry)
        return Tree(*map(np.array, zip(*nodes, strict=True))), np.array(
            [np.resize(value, len(start)) for value in values]
        )

    entries = document.get("trees") or map(_nested, document["oblivious_trees"])
    trees = []
    for tree, values in map(tree_of, entries):
        trees.append([(tree, scale * column) for column in values.T])
    loss = model.get_all_params()["loss_function"]
    return _boosted(graph, _single(graph, rows), trees, start, is_softmax=loss == "MultiClass")


def _nested(entry: dict[str, Any]) -> dict[str, Any]:
    """Return a tree of CatBoost with one split a level as nested nodes."""
    splits, k = entry["splits"] or [], len(entry["leaf_values"]) >> len(entry["splits"] or [])
    nodes = [{"value": part} for part in np.reshape(entry["leaf_values"], (-1, k)).tolist()]
    for split in splits:  # the first one is that of the leaves' parents
        pairs = zip(nodes[::2], nodes[1::2], strict=True)
        nodes = [{"split": split, "left": left, "right": right} for left, right in pairs]
    return nodes[0]


def _refuse_categories(model: Any, features: Sequence[Any]) -> None:
    """Raise an error if splits ask for categories, whose features are given for each tree."""
    if used := sorted({int(j) for of_tree in features for j in of_tree}):
        names = trained_names(model) or [*map(str, range(max(used) + 1))]
        raise InputError(
            f"{type(model).__name__} must not have categories of its own for ONNX, got those of "
            f"{listed([names[j] for j in used], 3)}: encode them in a pipeline, with OneHotEncoder "
            "or OrdinalEncoder"
        )


BOOSTERS = {
    "LGBMClassifier": _lightgbm_scores,
    "XGBClassifier": _xgboost_scores,
    "CatBoostClassifier": _catboost_scores,
}
"""Classes of other packages whose trees are read."""


def booster_writer(model: Any) -> Callable[[OnnxGraph, Any, str], str] | None:
    """Return the writer of a model of another package, None for other models."""
    names = [cls.__name__ for cls in type(model).__mro__ if cls.__name__ in BOOSTERS]
    return BOOSTERS[names[0]] if names else None


# --- sums of trees -------------------------------------------------------------------------------


def _single(graph: OnnxGraph, code: str) -> str:
    """Round values to single precision, and return them in double precision."""
    return graph.double(graph.node("Cast", code, to=graph.kinds.FLOAT))


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
    constants: list[NodeValues] = [(LEAF, np.array([value])) for value in start]
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


def with_first(graph: OnnxGraph, second: str) -> str:
    """Return the probabilities of two classes (n, 2) from those of the second (n, 1)."""
    return graph.node("Concat", graph.value(1.0 - Written(second)), second, axis=1)


def _sum_of_trees(
    graph: OnnxGraph, rows: str, trees: list[list[NodeValues]], *, single: bool = False
) -> str:
    """Add the sum over trees of their values at rows in double precision; return its name.

    ``trees[i][j]`` is tree i of output j, and the sum is (n, j), in ``single`` precision if asked.
    """
    # Each tree has its own outputs, which are summed in order of the trees, as in the packages.
    nodes: dict[str, list[Any]] = defaultdict(list)
    leaves: dict[str, list[Any]] = {"weights": [], "targetids": []}
    roots: list[int] = []
    for target, (tree, values) in enumerate(chain.from_iterable(trees)):
        roots.append(len(nodes["featureids"]))
        _add_tree(tree, values, target, nodes, leaves)
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
        leaf_weights=tensor(np.array(leaves["weights"], np.float64)),
        leaf_targetids=leaves["targetids"],
        **{f"nodes_{name}": values for name, values in nodes.items()},
    )
    shape = np.array([0, len(trees), len(trees[0])])
    shaped = graph.node("Reshape", tree_values, graph.constant(shape))
    if single:
        shaped = graph.node("Cast", shaped, to=graph.kinds.FLOAT)
    sums = graph.node("CumSum", shaped, graph.constant(np.int64(1)))
    total = graph.node("Gather", sums, graph.constant(np.int64(len(trees) - 1)), axis=1)
    return graph.double(total) if single else total


def _add_tree(
    tree: Any,
    values: NDArray[np.floating],
    target: int,
    nodes: dict[str, list[Any]],
    leaves: dict[str, list[Any]],
) -> None:
    """Append the nodes and leaves of a tree to lists; ``values`` has one value per node."""
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
    leaves["weights"] += values[is_leaf].tolist()
    leaves["targetids"] += [target] * int(is_leaf.sum())
    # A tree that is one leaf has a node whose two children are that leaf.
    parents = np.flatnonzero(~is_leaf) if len(is_leaf) > 1 else np.array([0])
    nodes["featureids"] += np.maximum(tree.feature[parents], 0).tolist()
    nodes["splits"] += tree.threshold[parents].tolist()
    nodes["missing_value_tracks_true"] += tree.missing_go_to_left[parents].astype(int).tolist()
    for name, children in (("true", tree.children_left), ("false", tree.children_right)):
        child = np.maximum(children[parents], 0)
        nodes[f"{name}nodeids"] += number[child].tolist()
        nodes[f"{name}leafs"] += is_leaf[child].astype(int).tolist()
