"""Forests and histogram boosting of scikit-learn as ONNX trees in double precision."""

from __future__ import annotations

from collections import defaultdict
from itertools import chain
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from vennforest._validation import FloatArray
from vennforest.calibrators.formula import Written
from vennforest.export.onnx_graph import OnnxGraph
from vennforest.forest import FORESTS, PackedForest, Votes

TREE_ENSEMBLES = (*FORESTS, HistGradientBoostingClassifier)
"""Estimators whose trees are written in double precision."""

TREES_VERSION = ("ai.onnx.ml", 5)
"""Domain and first version of operators with trees in double precision."""

NodeValues = tuple[Any, FloatArray]
"""A tree, and a value for each of its nodes."""


def forest_scores(graph: OnnxGraph, forest: Any, rows: str, votes: Votes) -> str:
    """Add a forest to the graph; return the name of its scores (n, k), NaN for refused rows."""
    k, trees = len(forest.classes_), [tree.tree_ for tree in forest.estimators_]
    values = [tree.value[:, 0] for tree in trees]
    if votes == "hard":
        values = [np.eye(k)[scores.argmax(axis=1)] for scores in values]
    # As in scikit-learn, rows are rounded to float32 and compared with float64 thresholds.
    single = graph.node("Cast", rows, to=graph.kinds.FLOAT)
    columns = [
        [(tree, scores[:, j]) for j in range(k)] for tree, scores in zip(trees, values, strict=True)
    ]
    total = _sum_of_trees(graph, graph.double(single), columns)
    means = graph.node("Div", total, graph.number(float(len(trees))))
    is_refused = graph.node("IsInf", single)
    if not PackedForest.from_forest(forest).allow_nan:
        is_refused = graph.node("Or", is_refused, graph.node("IsNaN", single))
    flags = graph.node("Cast", is_refused, to=graph.kinds.FLOAT)
    row_flag = graph.node("ReduceMax", flags, axes=[1], keepdims=1)
    refused_rows = graph.node("Greater", row_flag, graph.constant(np.float32(0)))
    return graph.node("Where", refused_rows, graph.number(np.nan), means)


def histogram_scores(graph: OnnxGraph, model: HistGradientBoostingClassifier, rows: str) -> str:
    """Add a histogram booster to the graph; return the name of its scores (n, k)."""
    trees = [
        [(_as_tree(predictor.nodes), predictor.nodes["value"]) for predictor in predictors]
        for predictors in model._predictors
    ]
    baseline = graph.number(model._baseline_prediction[0])
    raw = graph.apply("add", _sum_of_trees(graph, rows, trees), baseline)
    if len(trees[0]) > 1:
        return graph.node("Softmax", raw, axis=1)
    second = graph.node("Sigmoid", raw)
    return graph.node("Concat", graph.value(1.0 - Written(second)), second, axis=1)


def _as_tree(nodes: Any) -> SimpleNamespace:
    """Return the nodes of histogram boosting under the names of a tree of scikit-learn."""
    return SimpleNamespace(
        children_left=np.where(nodes["is_leaf"], -1, nodes["left"].astype(int)),
        children_right=np.where(nodes["is_leaf"], -1, nodes["right"].astype(int)),
        feature=nodes["feature_idx"],
        threshold=nodes["num_threshold"],
        missing_go_to_left=nodes["missing_go_to_left"],
    )


def _sum_of_trees(graph: OnnxGraph, rows: str, trees: list[list[NodeValues]]) -> str:
    """Add the sum over trees of their values at rows in double precision; return its name.

    ``trees[i][j]`` is tree i of output j, and the sum is (n, j).
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
    sums = graph.node("CumSum", shaped, graph.constant(np.int64(1)))
    return graph.node("Gather", sums, graph.constant(np.int64(len(trees) - 1)), axis=1)


def _add_tree(
    tree: Any,
    values: FloatArray,
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
    nodes["missing_value_tracks_true"] += tree.missing_go_to_left[parents].tolist()
    for name, children in (("true", tree.children_left), ("false", tree.children_right)):
        child = np.maximum(children[parents], 0)
        nodes[f"{name}nodeids"] += number[child].tolist()
        nodes[f"{name}leafs"] += is_leaf[child].astype(int).tolist()
