"""A classifier with its calibration as an ONNX graph of standard operators."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from vennforest._files import one_line
from vennforest._validation import InputError
from vennforest.calibrators.core.formula import Operation, Steps, written
from vennforest.calibrators.core.interface import Calibrator
from vennforest.classifier import CalibratedClassifier
from vennforest.export.formulas import answers, taken

OPSET = 17
"""Of the standard operators: every name below has meant the same since, and before."""

OPERATORS: dict[Operation, str] = {
    "add": "Add",
    "subtract": "Sub",
    "multiply": "Mul",
    "divide": "Div",
    "min": "Min",
    "max": "Max",
    "log": "Log",
    "exp": "Exp",
    "floor": "Floor",
}


def to_onnx(model: CalibratedClassifier | Calibrator) -> Any:
    """Return a fitted model of two classes as an ONNX graph.

    Parameters
    ----------
    model : CalibratedClassifier or Calibrator
        A classifier whose one estimator skl2onnx converts, such as a forest on numbers, scored by
        all trees (``subforest="all"``) or by the whole model (a held-out part, a frozen model,
        pooled folds). Or a calibrator by itself.

    Returns
    -------
    onnx.ModelProto
        Input ``X`` of shape (n, d), or ``score`` of shape (n,), of float64. Outputs of float64
        and shape (n,): ``p``, the probability of the second class, and with bounds ``p0`` and
        ``p1`` below and above it. NaN for a score that ``predict_proba`` refuses.

    Raises
    ------
    ImportError
        Without onnx, and for classifiers skl2onnx: ``pip install 'vennforest[onnx]'``.
    InputError
        A ``ValueError``: there are more than two classes, several estimators, draws, groups
        (``by``), a prior of other shares, a user's function, or an estimator that skl2onnx does
        not convert.

    Notes
    -----
    A calibrator by itself is computed in 64 bits: tables are equal to the last bit, formulas to
    1e-14. A runtime adds up the trees of a forest in 32 bits, so its scores differ by about 1e-7
    from scikit-learn's, and so do smooth probabilities. Where a score lies so near to the edge of
    an interval, bounds are those of the neighbouring interval: 1 row in 1,500 of a forest of 100
    trees with three examples a leaf, but 4 in 100 of a forest of 40 trees grown to the end, whose
    scores are shares of votes that tie with calibration scores.
    """
    _need("onnx")
    if isinstance(model, Calibrator):
        check_is_fitted(model, "classes_")
        k = len(model.classes_)
        graph = _Graph()
        graph.scores = ["score"] if k == 2 else [graph.gather("scores", j) for j in range(k)]
        shape: tuple[str, list[int | None]] = ("score", [None]) if k == 2 else ("scores", [None, k])
        return graph.model(_answers(model, None, graph), [shape])
    if not isinstance(model, CalibratedClassifier):
        raise TypeError(
            f"model must be a CalibratedClassifier or calibrator, got {type(model).__name__}"
        )
    check_is_fitted(model, "classes_")
    _check_two(model.classes_)
    estimator = _estimator_of(model)
    base, scores = _converted(estimator, model.n_features_in_)
    graph = _Graph()
    second = graph.gather(graph.node("Cast", scores, to=graph.kinds.DOUBLE), 1)
    graph.scores = [second]
    point = model._state.point_calibrator
    found = _answers(model._state.calibrators[0], point, graph)
    return graph.model(found, [("X", [None, model.n_features_in_])], base)


def _answers(calibrator: Calibrator, point: Calibrator | None, graph: _Graph) -> dict[str, str]:
    """Return p, and p0 and p1 where there are bounds, widened to hold p."""
    try:
        found = answers(calibrator)
        if point is not None:
            found["p"] = answers(point)["p"]
    except ValueError as error:
        raise InputError(f"model must be a table or a formula: {one_line(error)}") from error
    codes = iter(written([one for terms in found.values() for one in terms], graph))
    columns = {name: [next(codes) for _ in terms] for name, terms in found.items()}
    if point is not None and "p0" in found:
        for name, end in (("p0", graph.apply_min), ("p1", graph.apply_max)):
            pairs = zip(columns[name], columns["p"], strict=True)
            columns[name] = [end(one, p) for one, p in pairs]
    low, high, _ = accepted = taken(calibrator)
    nan = graph.number(np.nan)

    def where_taken(code: str) -> str:
        for x in graph.scores:
            below = graph.apply("if <=", x, graph.number(high), code, nan)
            code = graph.apply("if <=", graph.number(low), x, below, nan)
        if accepted.tolerance is not None:
            whole = graph.scores[0]
            for x in graph.scores[1:]:
                whole = graph.apply("add", whole, x)
            away = graph.node("Abs", graph.apply("subtract", whole, graph.number(1.0)))
            code = graph.apply("if <=", away, graph.number(accepted.tolerance), code, nan)
        return code

    return {
        name: graph.stacked([where_taken(one) for one in codes]) for name, codes in columns.items()
    }


def _check_two(classes: Any) -> None:
    if len(classes) != 2:
        raise InputError(f"model must be of two classes for ONNX, got {len(classes)}")


def _estimator_of(model: CalibratedClassifier) -> Any:
    """Return the one estimator that scores new rows, as scikit-learn would by itself."""
    if model.by is not None:
        raise InputError(f"model must calibrate all rows alike for ONNX, got by={model.by!r}")
    parts = model._state.folds
    if len(parts) != 1:
        raise InputError(
            f"model must have one estimator for ONNX, got {len(parts)}: use ensemble=False, or "
            "calibrate out of bag"
        )
    scorer: Any = parts[0].scorer
    if getattr(scorer, "partial", False) or getattr(scorer, "leaves_out", False):
        raise InputError(
            'model must score new rows by all trees for ONNX: use subforest="all", not '
            f"{model.subforest!r}"
        )
    if model.votes != "soft":
        raise InputError(f'model must have votes="soft" for ONNX, got {model.votes!r}')
    if getattr(scorer, "small_ensemble", False) and model._state.point_calibrator is not None:
        raise InputError(
            "model must have more trees for ONNX: with few of them its probability is a mean over "
            'subforests; grow 20 or more, or use merge="smooth"'
        )
    if model._state.shift is not None:
        raise InputError("model must not have another prior for ONNX: use it before with_prior")
    estimator = model.estimator_
    while isinstance(estimator, FrozenEstimator):
        estimator = estimator.estimator
    return estimator


def _converted(estimator: Any, n_features: int) -> tuple[Any, str]:
    """Return the graph of an estimator, and what its probabilities (n, 2) are called in it."""
    _need("skl2onnx")
    from skl2onnx import to_onnx as convert
    from skl2onnx.common.data_types import DoubleTensorType

    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    try:
        base = convert(
            estimator,
            initial_types=[("X", DoubleTensorType([None, n_features]))],
            options={id(last): {"zipmap": False}},
            target_opset={"": OPSET, "ai.onnx.ml": 3},
        )
    except Exception as error:  # whatever one of its converters does not know
        raise InputError(
            f"estimator must be one that skl2onnx converts, got {type(last).__name__}: "
            f"{one_line(error)}"
        ) from error
    return base, base.graph.output[1].name


class _Graph:
    """Nodes and constants of a graph that grows."""

    def __init__(self) -> None:
        import onnx

        self.onnx, self.kinds = onnx, onnx.TensorProto
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._known: dict[tuple[str, bytes], str] = {}
        self.scores: list[str] = []

    def constant(self, values: Any) -> str:
        """Return the name of an array of float64 or int64."""
        array = np.asarray(values)
        key = (f"{array.dtype}{array.shape}", array.tobytes())
        if key not in self._known:
            self._known[key] = name = f"vennforest_c{len(self.constants)}"
            self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return self._known[key]

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node, and return the name of what comes out of it."""
        name = f"vennforest_v{len(self.nodes)}"
        made = self.onnx.helper.make_node(kind, list(inputs), [name], f"{name}_node", **attributes)
        self.nodes.append(made)
        return name

    def gather(self, columns: str, j: int) -> str:
        """Return one column of an array."""
        return self.node("Gather", columns, self.constant(np.int64(j)), axis=1)

    def score(self, column: int) -> str:
        """Return a column of scores."""
        return self.scores[column]

    def number(self, value: float) -> str:
        """Return a constant."""
        return self.constant(np.float64(value))

    def apply(self, operation: Operation, *terms: str) -> str:
        """Return what a standard operator makes of terms."""
        if operation == "if <=":
            return self.node("Where", self.node("LessOrEqual", *terms[:2]), *terms[2:])
        return self.node(OPERATORS[operation], *terms)

    def apply_min(self, one: str, other: str) -> str:
        """Return the smaller one."""
        return self.apply("min", one, other)

    def apply_max(self, one: str, other: str) -> str:
        """Return the larger one."""
        return self.apply("max", one, other)

    def keep(self, term: str) -> str:
        """Return the same term, which has a name already."""
        return term

    def stacked(self, columns: list[str]) -> str:
        """Return columns side by side, (n, k); one by itself stays (n,)."""
        if len(columns) == 1:
            return columns[0]
        axis = self.constant(np.array([1], np.int64))
        return self.node("Concat", *(self.node("Unsqueeze", c, axis) for c in columns), axis=1)

    def look_up(self, table: Steps, x: str) -> dict[str, str]:
        """Search the interval by halving, a few nodes for each bit of its number."""
        bits = max(len(table.start) - 1, 1).bit_length()
        missing = (0, (1 << bits) - len(table.start))  # infinity is above these too
        starts = self.constant(np.pad(table.start, missing, constant_values=np.inf))
        # Nothing is below the infinite, not even NaN: zeros in the shape of x.
        never = self.node("Less", x, self.constant(np.float64(-np.inf)))
        at = self.node("Cast", never, to=self.kinds.INT64)
        for bit in reversed(range(bits)):
            further = self.node("Add", at, self.constant(np.int64(1 << bit)))
            first = self.node("Gather", starts, further)
            at = self.node("Where", self.node("GreaterOrEqual", x, first), further, at)
        return {
            name: self.node("Gather", self.constant(np.pad(column, missing)), at)
            for name, column in table.columns.items()
        }

    def model(
        self, found: dict[str, str], inputs: list[tuple[str, list[int | None]]], base: Any = None
    ) -> Any:
        """Return the whole model, checked: what stands before, then these nodes."""
        helper, double = self.onnx.helper, self.kinds.DOUBLE
        rank = 1 if len(self.scores) == 1 else 2
        order = [name for name in ("p0", "p1", "p") if name in found]
        last = [
            helper.make_node("Identity", [found[name]], [name], f"{name}_node") for name in order
        ]
        nodes, constants = [*self.nodes, *last], list(self.constants)
        opsets = {"": OPSET}
        if base is not None:
            nodes = [*base.graph.node, *nodes]
            constants = [*base.graph.initializer, *constants]
            opsets |= {one.domain: one.version for one in base.opset_import}
        graph = helper.make_graph(
            nodes,
            "vennforest",
            [helper.make_tensor_value_info(name, double, shape) for name, shape in inputs],
            [helper.make_tensor_value_info(name, double, [None] * rank) for name in order],
            constants,
        )
        made = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid(name, number) for name, number in opsets.items()],
            ir_version=base.ir_version if base is not None else 8,
            producer_name="vennforest",
        )
        self.onnx.checker.check_model(made)
        return made


def _need(package: str) -> None:
    try:
        __import__(package)
    except ImportError as missing:
        raise ImportError(
            f"ONNX needs {package}: install it with pip install 'vennforest[onnx]'"
        ) from missing
