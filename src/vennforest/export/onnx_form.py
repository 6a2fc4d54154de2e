"""Classifiers with their calibration as ONNX graphs of standard operators."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import check_is_fitted

from vennforest._files import one_line, refused_as
from vennforest._messages import needed, shown
from vennforest._validation import FloatArray, InputError
from vennforest.calibrators.base import Calibrator
from vennforest.calibrators.formula import Operation, Score, Steps, Term, Value
from vennforest.classifier import CalibratedClassifier
from vennforest.classifier.blend import BlendedModel
from vennforest.classifier.prediction import interval_curves_of
from vennforest.export.formulas import (
    INTERVAL_LEVEL,
    accepted_scores,
    interval_formulas,
    output_formulas,
    widened,
    write_outputs,
)
from vennforest.forest import FORESTS, PackedForest
from vennforest.scores import SPLITTER
from vennforest.sources.data import split_pipeline

OPSET = 17
"""Version of the standard operators; those used here mean the same in later versions."""

TREES_VERSION = ("ai.onnx.ml", 5)
"""Domain and first version of operators with trees in double precision."""

REFUSAL = "model must be a table or a formula"

OPERATORS = {"subtract": "Sub", "multiply": "Mul", "divide": "Div", "product": "MatMul"}
"""Names of operators that differ from the capitalized names of the operations."""


REDUCTIONS = {"sum": "ReduceSum", "largest": "ReduceMax", "smallest": "ReduceMin"}
"""Names of operators on the numbers of all classes."""


def to_onnx(
    model: CalibratedClassifier | Calibrator, X: Any = None, *, confidence: bool = False
) -> Any:
    """Return a fitted model as an ONNX graph.

    Parameters
    ----------
    model : CalibratedClassifier or Calibrator
        A fitted calibrator, or a fitted classifier with a single estimator: a forest with
        ``subforest="all"``, or a model that skl2onnx converts, calibrated on a held-out part, on
        pooled folds or frozen. Preprocessing steps must be ones that skl2onnx converts.
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
        If onnx is not installed, or skl2onnx for estimators other than forests.
    ValueError
        If the model has several estimators, random subforests, groups (``by``), a changed prior, a
        user's function, or a step that skl2onnx does not convert.

    Notes
    -----
    Forests and calibrators agree with ``predict_proba`` to 1e-14. Preprocessing steps and other
    estimators are converted by skl2onnx, partly in single precision: scores may differ by about
    1e-7, and in rare cases fall on the other side of a threshold.
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
    estimator, k = _estimator_of(model), len(model.classes_)
    steps, last = split_pipeline(estimator)
    is_forest = isinstance(last, FORESTS)
    if model.votes != "soft" and not is_forest:
        raise InputError(f'model must have votes="soft" for ONNX, got {model.votes!r}')
    base, scores = None, "X"
    if steps or not is_forest:
        part = make_pipeline(*steps) if is_forest else estimator
        base = _converted(part, last, model.n_features_in_, X)
        scores = base.graph.output[0 if is_forest else 1].name
    if is_forest:
        scores = _forest_scores(graph, last, scores, model.votes)
    scores = graph.node("Cast", scores, to=graph.kinds.DOUBLE)
    if k == 2:
        scores = graph.node("Gather", scores, graph.constant(np.int64(1)), axis=1)
    graph.scores = _rounded(graph, scores)
    with refused_as(REFUSAL):
        formulas = _classifier_formulas(model, confidence)
    outputs = _outputs(graph, model._state.calibrators[0], formulas)
    inputs = [graph.input("X", None, model.n_features_in_)] if base is None else base.graph.input
    return graph.model(outputs, k, inputs, base)


def _rounded(graph: _Graph, score: str) -> str:
    """Add the rounding of `round_scores` to the graph."""
    product = graph.apply("multiply", graph.number(SPLITTER), score)
    return graph.apply("subtract", product, graph.apply("subtract", product, score))


def _classifier_formulas(model: CalibratedClassifier, confidence: bool) -> dict[str, Term]:
    """Return the formulas of a classifier's outputs from its scores."""
    formulas = output_formulas(model._state.calibrators[0])
    point = model._state.point_calibrator
    if point is not None:
        p = formulas["p"] = output_formulas(point)["p"]
        if "p0" in formulas:
            formulas["p0"] = formulas["p0"].min(p)
            formulas["p1"] = formulas["p1"].max(p)
    if confidence:
        curves = interval_curves_of(model._state, INTERVAL_LEVEL).overall
        formulas = widened(formulas | interval_formulas(curves, Score()))
    return formulas


def _forest_scores(graph: _Graph, forest: Any, rows: str, votes: str) -> str:
    """Add a forest to the graph; return the name of its scores (n, k), NaN for refused rows."""
    # Each tree has its own outputs, which are summed in order of the trees, as in scikit-learn.
    k, trees = len(forest.classes_), [tree.tree_ for tree in forest.estimators_]
    nodes: dict[str, list[Any]] = defaultdict(list)
    leaves: dict[str, list[Any]] = {"weights": [], "targetids": []}
    roots: list[int] = []
    for i, tree in enumerate(trees):
        scores = tree.value[:, 0]
        if votes == "hard":
            scores = np.eye(k)[scores.argmax(axis=1)]
        for j in range(k):
            roots.append(len(nodes["featureids"]))
            _add_tree(tree, scores[:, j], i * k + j, nodes, leaves)
    tensor = graph.onnx.numpy_helper.from_array
    thresholds = np.array(nodes.pop("splits"), np.float64)
    # As in scikit-learn, rows are rounded to float32 and compared with float64 thresholds.
    single = graph.node("Cast", rows, to=graph.kinds.FLOAT)
    tree_scores = graph.node(
        "TreeEnsemble",
        graph.node("Cast", single, to=graph.kinds.DOUBLE),
        domain=TREES_VERSION[0],
        n_targets=len(trees) * k,
        aggregate_function=1,
        post_transform=0,
        tree_roots=roots,
        nodes_modes=tensor(np.zeros(len(thresholds), np.uint8)),
        nodes_splits=tensor(thresholds),
        leaf_weights=tensor(np.array(leaves["weights"], np.float64)),
        leaf_targetids=leaves["targetids"],
        **{f"nodes_{name}": values for name, values in nodes.items()},
    )
    shaped = graph.node("Reshape", tree_scores, graph.constant(np.array([0, len(trees), k])))
    sums = graph.node("CumSum", shaped, graph.constant(np.int64(1)))
    total = graph.node("Gather", sums, graph.constant(np.int64(len(trees) - 1)), axis=1)
    means = graph.node("Div", total, graph.number(float(len(trees))))
    is_refused = graph.node("IsInf", single)
    if not PackedForest.from_forest(forest).allow_nan:
        is_refused = graph.node("Or", is_refused, graph.node("IsNaN", single))
    flags = graph.node("Cast", is_refused, to=graph.kinds.FLOAT)
    row_flag = graph.node("ReduceMax", flags, axes=[1], keepdims=1)
    refused_rows = graph.node("Greater", row_flag, graph.constant(np.float32(0)))
    return graph.node("Where", refused_rows, graph.number(np.nan), means)


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
        if sum_tolerance is not None:
            deviation = graph.node("Abs", graph.apply("subtract", graph.apply("sum", scores), one))
            flags = graph.apply("if <=", deviation, graph.number(sum_tolerance), flags, zero)
        is_accepted = graph.node("Equal", flags, one)
    nan = graph.number(np.nan)
    return {name: graph.node("Where", is_accepted, code, nan) for name, code in codes.items()}


def _estimator_of(model: CalibratedClassifier) -> Any:
    """Return the only estimator of a model; raise an `InputError` if ONNX cannot express it."""
    folds = model._state.folds
    is_blend = isinstance(folds[0].model, BlendedModel)
    is_subforest = model.calibrate_on_ in ("oob", "partitions")
    is_subforest = is_subforest and model.subforest == "exchangeable"
    for applies, rule in (
        (model.by is not None, f"calibrate all rows in the same way, got by={shown(model.by)}"),
        (len(folds) > 1, f"have one estimator, got {len(folds)}: use ensemble=False or out of bag"),
        (is_subforest, 'score new rows by all trees: use subforest="all"'),
        (is_blend, "be of one estimator, got a blend of several: give the one that must serve"),
        (model._state.shift is not None, "not have another prior: use it before with_prior"),
    ):
        if applies:
            raise InputError(f"a model for ONNX must {rule}")
    estimator = model.estimator_
    while isinstance(estimator, FrozenEstimator):
        estimator = estimator.estimator
    return estimator


def _converted(estimator: Any, last: Any, n_features: int, X: Any) -> Any:
    """Convert an estimator or transformers to ONNX with skl2onnx."""
    needed("skl2onnx", "ONNX graphs of other estimators")
    from skl2onnx import to_onnx as convert
    from skl2onnx.common.data_types import DoubleTensorType, StringTensorType

    inputs = [("X", DoubleTensorType([None, n_features]))]
    if hasattr(X, "dtypes"):
        inputs = [
            (str(name), (DoubleTensorType if kind.kind in "biuf" else StringTensorType)([None, 1]))
            for name, kind in X.dtypes.items()
        ]
    try:
        return convert(
            estimator,
            initial_types=inputs,
            options={id(last): {"zipmap": False}} if hasattr(estimator, "classes_") else None,
            target_opset={"": OPSET, "ai.onnx.ml": 3},
        )
    except Exception as error:  # converters raise errors of many types
        hint = "; of a model of named columns give rows too: to_onnx(model, X)" if X is None else ""
        raise InputError(
            f"estimator must be one that skl2onnx converts: {one_line(error)}{hint}"
        ) from error


class _Graph:
    """A builder of an ONNX graph, which collects nodes and constants."""

    def __init__(self) -> None:
        import onnx

        self.onnx, self.kinds = onnx, onnx.TensorProto
        self.nodes: list[Any] = []
        self.constants: dict[tuple[str, bytes], Any] = {}
        self.scores = ""

    def input(self, name: str, *shape: int | None) -> Any:
        return self.onnx.helper.make_tensor_value_info(name, self.kinds.DOUBLE, shape)

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

    def model(
        self, outputs: dict[str, str], k: int, inputs: Sequence[Any], base: Any = None
    ) -> Any:
        """Return a checked ONNX model of the nodes of ``base`` followed by those of this graph."""
        helper = self.onnx.helper
        shape = [None] if k == 2 else [None, k]
        names = [name for name in ("p0", "p1", "p", "low95", "high95") if name in outputs]
        ends = [helper.make_node("Identity", [outputs[n]], [n], f"{n}_node") for n in names]
        nodes = [*self.nodes, *ends]
        constants, opsets = [*self.constants.values()], {"": OPSET}
        if base is not None:
            nodes = [*base.graph.node, *nodes]
            constants = [*base.graph.initializer, *constants]
            opsets |= {opset.domain: opset.version for opset in base.opset_import}
        if any(node.domain == TREES_VERSION[0] for node in self.nodes):
            opsets |= [TREES_VERSION]
        values = [self.input(name, *shape) for name in names]
        graph = helper.make_graph(nodes, "vennforest", list(inputs), values, constants)
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid(*opset) for opset in opsets.items()],
            ir_version=base.ir_version if base is not None else 8,
            producer_name="vennforest",
        )
        self.onnx.checker.check_model(model)
        return model
