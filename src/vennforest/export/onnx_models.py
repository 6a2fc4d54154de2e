"""Models and transformers in ONNX graphs: written in double precision, or converted by skl2onnx."""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Callable
from concurrent.futures import Future
from itertools import combinations
from threading import Thread
from typing import Any, TypeVar

import numpy as np
from scipy.special import softmax as softmax_of
from sklearn.base import ClassifierMixin
from sklearn.ensemble import StackingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.model_selection._search import BaseSearchCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer, KBinsDiscretizer, PolynomialFeatures

from vennforest._messages import InputError, needed, one_line
from vennforest._validation import FloatArray
from vennforest.calibrators.formula import Written, if_at_most
from vennforest.export.onnx_graph import OPSET, PART, GraphInput, OnnxGraph
from vennforest.export.onnx_trees import TREE_WRITERS, logistic, with_first
from vennforest.linear import MAX_DISTANCE, LinearClassifier
from vennforest.sources.estimators import split_pipeline, without_frozen

MAX_SECONDS = 60.0
"""Seconds after which a conversion is stopped: some searches of skl2onnx do not end."""

Result = TypeVar("Result")


def add_model_scores(graph: OnnxGraph, estimator: Any, rows: str | None = None) -> str:
    """Add a fitted classifier; return the name of its scores (n, k) in double precision.

    They are probabilities, or decision values of a model without. ``rows`` is the value (n, d) in
    the graph that it takes, by default the graph's inputs.
    """
    steps, model = split_pipeline(without_frozen(estimator))
    if steps:
        rows = _converted(graph, make_pipeline(*steps), rows)
    if isinstance(model, FixedThresholdClassifier | TunedThresholdClassifierCV | BaseSearchCV):
        fitted = model.best_estimator_ if isinstance(model, BaseSearchCV) else model.estimator_
        return add_model_scores(graph, fitted, rows)
    names = [base.__name__ for base in type(model).__mro__ if base.__name__ in WRITERS]
    writer = WRITERS[names[0]] if names else None
    if writer not in WRITERS_OF_ENSEMBLES:  # whose members may read columns by their names
        rows = _joined(graph, rows)
    with warnings.catch_warnings(action="ignore"):  # rows of its own have no names of columns
        scores = writer(graph, model, rows) if writer else None
    return scores or _converted(graph, model, _joined(graph, rows))


def _joined(graph: OnnxGraph, rows: str | None) -> str:
    """Return the name of the rows (n, d), which are by default the graph's inputs."""
    columns = [column.name for column in graph.inputs] if rows is None else [rows]
    return graph.node("Concat", *columns, axis=1) if len(columns) > 1 else columns[0]


def affine(graph: OnnxGraph, rows: str, weights: FloatArray, intercept: FloatArray) -> str:
    """Add ``rows @ weights + intercept``; return its name."""
    product = graph.node("MatMul", rows, graph.constant(np.asarray(weights, np.float64)))
    return graph.node("Add", product, graph.constant(np.asarray(intercept, np.float64)))


def _ensemble_scores(graph: OnnxGraph, model: Any, rows: str | None) -> str:
    """Add the mean of models or of their votes, or a model of each class against the rest."""
    is_bag, parts = hasattr(model, "estimators_features_"), []
    for i, member in enumerate(model.estimators_):
        x = rows
        if is_bag:
            features = graph.constant(model.estimators_features_[i])
            x = graph.node("Gather", _joined(graph, rows), features, axis=1)
        part = add_model_scores(graph, member, x)
        is_vote = is_bag and not hasattr(member, "predict_proba")
        if is_vote or getattr(model, "voting", None) == "hard":
            codes = graph.constant(np.arange(len(member.classes_)))
            part = graph.double(graph.node("Equal", _predicted_codes(graph, part), codes))
        if is_bag and len(member.classes_) < len(model.classes_):  # it was drawn some of them
            columns = np.eye(len(model.classes_))[member.classes_]
            part = graph.node("MatMul", part, graph.constant(columns))
        parts.append(part)
    if getattr(model, "weights", None) is not None:
        weights = np.array(model._weights_not_none) / np.sum(model._weights_not_none)
        pairs = zip(weights.tolist(), parts, strict=True)
        return graph.value(sum(weight * Written(part) for weight, part in pairs))
    is_mean = not isinstance(model, OneVsRestClassifier)
    is_single = not is_bag and graph.single_scores.issuperset(parts)
    if not is_mean:
        if len(parts) == 1:
            return parts[0]
        parts = [graph.value(Written(part).of_class(1)) for part in parts]
        columns = graph.node("Concat", *parts, axis=1)
        if not hasattr(model, "predict_proba"):
            return columns
    # Members in single precision, such as XGBoost's, are added up in it: a score that is rounded
    # otherwise than that of an equal calibration example is on another side of a step.
    rounded = graph.single if is_single else str
    total = parts[0]
    for part in parts[1:]:
        total = rounded(graph.value(Written(total) + Written(part)))
    of_row = Written(total)
    p = of_row / float(len(parts))
    if not is_mean:  # rows of zeros are left as they are
        p = Written(columns) / of_row.unless_above(0.0, 1.0, of_row)
    scores = rounded(graph.value(p))
    if is_single:
        graph.single_scores.add(scores)
    return scores


def _predicted_codes(graph: OnnxGraph, scores: str) -> str:
    """Add the index (n, 1) of the class with the highest score."""
    return graph.node("ArgMax", scores, axis=1, keepdims=1)


def _decisions(graph: OnnxGraph, estimator: Any, rows: str | None) -> str | None:
    """Add decision values (n, k), or probabilities of a model without; None if unknown here."""
    steps, model = split_pipeline(without_frozen(estimator))
    if isinstance(model, LinearClassifierMixin):
        rows = _converted(graph, make_pipeline(*steps), rows) if steps else _joined(graph, rows)
        decision = affine(graph, rows, np.atleast_2d(model.coef_).T, model.intercept_)
        return with_first(graph, decision, 0.0) if len(model.classes_) == 2 else decision
    has_both = all(hasattr(estimator, name) for name in ("decision_function", "predict_proba"))
    return None if has_both else add_model_scores(graph, estimator, rows)


def _paired_scores(graph: OnnxGraph, model: OneVsOneClassifier, rows: str | None) -> str | None:
    """Add votes and sums of a model for each pair of classes; None if skl2onnx must convert it."""
    columns, wins = [], []
    for member in model.estimators_:
        if (decision := _decisions(graph, member, rows)) is None:
            return None
        columns.append(graph.value(Written(decision).of_class(1)))
        wins.append(graph.double(_predicted_codes(graph, decision)))
    return _votes_and_sums(
        graph,
        graph.node("Concat", *wins, axis=1),
        graph.node("Concat", *columns, axis=1),
        -_signs_of_pairs(len(model.classes_)),
    )


def _signs_of_pairs(k: int) -> FloatArray:
    """Return 1 for the first class of each pair of k and -1 for the second, (pairs, k)."""
    identity = np.eye(k)
    return np.array([identity[i] - identity[j] for i, j in combinations(range(k), 2)])


def _votes_and_sums(graph: OnnxGraph, wins: str, decision: str, signs: FloatArray) -> str:
    """Add the votes of pairs for each class (n, k), and sums of decisions between -1/3 and 1/3.

    ``wins`` (n, pairs) is 1 where the class of sign 1 won, else 0.
    """
    votes = affine(graph, wins, signs, (signs < 0).sum(axis=0))
    sums = Written(affine(graph, decision, signs, np.zeros(signs.shape[1])))
    return graph.value(Written(votes) + sums / (3.0 * (sums.max(-1.0 * sums) + 1.0)))


def _stacked_scores(graph: OnnxGraph, model: StackingClassifier, rows: str | None) -> str | None:
    """Add a model of other models' scores; None if skl2onnx must convert it."""
    columns = []
    for member, method in zip(model.estimators_, model.stack_method_, strict=True):
        add = _decisions if method == "decision_function" else add_model_scores
        if (scores := add(graph, member, rows)) is None:
            return None
        if method == "predict":
            scores = graph.double(_predicted_codes(graph, scores))
        elif len(model.classes_) == 2:  # the second one's
            scores = graph.value(Written(scores).of_class(1))
        columns.append(scores)
    columns += [_joined(graph, rows)] if model.passthrough else []
    scores = graph.node("Concat", *columns, axis=1)
    return add_model_scores(graph, model.final_estimator_, scores)


def _linear_scores(graph: OnnxGraph, model: LinearClassifier, rows: str) -> str:
    """Add the probabilities (n, k) of a linear classifier, NaN for rows with infinite cells."""
    scaled = graph.node("Div", rows, graph.number(model.scale_))
    z = graph.node("Sub", scaled, graph.number(model.center_))
    z = graph.node("Clip", z, graph.number(-MAX_DISTANCE), graph.number(MAX_DISTANCE))
    is_missing = graph.node("IsNaN", rows)
    z = graph.node("Where", is_missing, graph.number(0.0), z)
    missing = graph.node("MatMul", graph.double(is_missing), graph.constant(model.missing_coef_))
    logits = graph.node("Add", affine(graph, z, model.coef_, model.intercept_), missing)
    is_infinite = graph.double(graph.node("IsInf", rows))
    infinite = Written(graph.node("ReduceMax", is_infinite, axes=[1], keepdims=1))
    logits = graph.value(infinite.unless_above(0.5, Written(logits), np.nan))
    if len(model.classes_) > 2:
        return graph.node("Softmax", logits, axis=1)
    return with_first(graph, graph.value(logistic(Written(logits))))


def _decision_scores(graph: OnnxGraph, model: Any, rows: str) -> str:
    """Add the probabilities (n, k) of a linear model, or its decision values if it has none."""
    decision = affine(graph, rows, np.atleast_2d(model.coef_).T, model.intercept_)
    if not hasattr(model, "predict_proba"):
        return with_first(graph, decision, 0.0) if len(model.classes_) == 2 else decision
    if len(model.classes_) == 2:
        return with_first(graph, graph.value(logistic(Written(decision))))
    x = np.random.RandomState(0).standard_normal((9, model.n_features_in_))
    if np.allclose(softmax_of(model.decision_function(x), axis=1), model.predict_proba(x)):
        return graph.node("Softmax", decision, axis=1)
    sigmoids = Written(graph.value(logistic(Written(decision))))
    total = sigmoids.sum()  # where all underflow scikit-learn answers with equal shares
    return graph.value(total.unless_above(0.0, 1.0 / len(model.classes_), sigmoids / total))


def _vector_machine_scores(graph: OnnxGraph, model: Any, rows: str) -> str | None:
    """Add decision values of a support vector machine; None if skl2onnx must convert it."""
    if hasattr(model, "predict_proba"):
        return None
    vectors, gamma = np.asarray(model.support_vectors_), float(model._gamma)
    product = Written(graph.node("MatMul", rows, graph.constant(vectors.T.copy())))
    inner = gamma * product + float(model.coef0)
    if model.kernel == "linear":
        kernel = graph.value(product)
    elif model.kernel == "poly":
        kernel = graph.node("Pow", graph.value(inner), graph.number(float(model.degree)))
    elif model.kernel == "rbf":
        norm = Written(graph.value(Written(rows) * Written(rows))).sum()
        distance = norm - 2.0 * product + (vectors**2).sum(axis=1)
        kernel = graph.value((-gamma * distance).exp())
    elif model.kernel == "sigmoid":
        kernel = graph.node("Tanh", graph.value(inner))
    else:
        return None
    k = len(model.classes_)
    if k == 2:
        decision = affine(graph, kernel, model.dual_coef_.T, model.intercept_)
        return with_first(graph, decision, 0.0)
    # A decision for each pair of classes, above 0 for the first of the two, then votes and sums.
    of_class = np.repeat(np.arange(k), model.n_support_)
    signs = _signs_of_pairs(k)
    weights = np.zeros((len(vectors), len(signs)))
    for column, (i, j) in enumerate(combinations(range(k), 2)):
        weights[of_class == i, column] = model.dual_coef_[j - 1, of_class == i]
        weights[of_class == j, column] = model.dual_coef_[i, of_class == j]
    decision = affine(graph, kernel, weights, model.intercept_)
    is_first = graph.value(if_at_most(0.0, Written(decision), 1.0, 0.0))
    return _votes_and_sums(graph, is_first, decision, signs)


# --- transformers --------------------------------------------------------------------------------


def _imputed(graph: OnnxGraph, step: SimpleImputer, rows: str) -> str:
    """Add the replacement of missing cells, and the columns that say which were missing."""
    is_nan = isinstance(step.missing_values, float) and np.isnan(step.missing_values)
    missing = graph.node("IsNaN", rows) if is_nan else ""
    if not is_nan:
        missing = graph.node("Equal", rows, graph.number(float(step.missing_values)))
    values = graph.node("Where", missing, graph.number(step.statistics_), rows)
    columns = np.flatnonzero(~np.isnan(np.asarray(step.statistics_, float)))
    values = graph.node("Gather", values, graph.constant(columns), axis=1)
    if not step.add_indicator:
        return values
    features = graph.constant(step.indicator_.features_.astype(np.int64))
    flags = graph.double(graph.node("Gather", missing, features, axis=1))
    return graph.node("Concat", values, flags, axis=1)


def _products(graph: OnnxGraph, step: PolynomialFeatures, rows: str) -> str:
    """Add products of columns: those of each degree are gathered, with a column of ones."""
    constant_column = graph.value(0.0 * Written(rows).smallest() + 1.0)
    columns = graph.node("Concat", rows, constant_column, axis=1)
    features = [
        [j for j, power in enumerate(powers) for _ in range(power)] for powers in step.powers_
    ]
    degree = max(1, *map(len, features))
    indices = np.array([part + [step.n_features_in_] * (degree - len(part)) for part in features])
    factors = [graph.node("Gather", columns, graph.constant(i), axis=1) for i in indices.T.copy()]
    for factor in factors[1:]:
        factors[0] = graph.node("Mul", factors[0], factor)
    return factors[0]


def _bins(graph: OnnxGraph, step: KBinsDiscretizer, rows: str) -> str:
    """Add the numbers of bins, or a column for each bin."""
    starts = [np.asarray(edges[1:-1], float) for edges in step.bin_edges_]
    numbers = [np.arange(len(start) + 1.0) for start in starts]
    bins = graph.value(Written(rows).look_up(starts, {"bin": numbers})["bin"])
    if step.encode == "ordinal":
        return bins
    columns = np.repeat(np.arange(len(starts)), [*map(len, numbers)])
    bin_numbers = graph.node("Gather", bins, graph.constant(columns), axis=1)
    return graph.double(graph.node("Equal", bin_numbers, graph.number(np.concatenate(numbers))))


Writer = Callable[..., str | None]
"""Adds a fitted model or transformer, which takes the value ``rows``: (graph, model, rows)."""

WRITERS: dict[str, Writer] = {
    **TREE_WRITERS,
    "LinearClassifier": _linear_scores,
    "LinearClassifierMixin": _decision_scores,
    "SVC": _vector_machine_scores,
    "NuSVC": _vector_machine_scores,
    "BaggingClassifier": _ensemble_scores,
    "VotingClassifier": _ensemble_scores,
    "OneVsRestClassifier": _ensemble_scores,
    "OneVsOneClassifier": _paired_scores,
    "StackingClassifier": _stacked_scores,
}
"""By the name of the class or of a base. skl2onnx writes these otherwise than scikit-learn, in
single precision, or not at all."""

WRITERS_OF_ENSEMBLES = (_ensemble_scores, _paired_scores, _stacked_scores)
"""Their rows are None where these are the inputs of the graph."""

TRANSFORMERS: dict[type, Callable[[OnnxGraph, Any, str], str]] = {
    SimpleImputer: _imputed,
    Binarizer: lambda graph, step, rows: graph.value(
        if_at_most(Written(rows), float(step.threshold), 0.0, 1.0)
    ),
    PolynomialFeatures: _products,
    KBinsDiscretizer: _bins,
}
"""The same of transformers, which skl2onnx meets within pipelines."""


# --- skl2onnx ------------------------------------------------------------------------------------


def _converted(graph: OnnxGraph, estimator: Any, rows: str | None) -> str:
    """Add what skl2onnx makes of an estimator; return the name of its scores or rows.

    Parts of it that are written here are left to these writers.
    """
    needed("skl2onnx", "ONNX graphs of other estimators")
    from skl2onnx import convert_sklearn
    from skl2onnx.common.data_types import DoubleTensorType, StringTensorType

    parts: list[Any] = []

    def add_part(scope: Any, operator: Any, container: Any) -> None:
        parts.append(operator.raw_operator)
        sides = [[v.full_name for v in side] for side in (operator.inputs, operator.outputs)]
        attributes = {"name": scope.get_unique_operator_name(PART), "number": len(parts) - 1}
        container.add_node(PART, *sides, op_domain=PART, op_version=1, **attributes)

    def set_type(operator: Any) -> None:
        width = len(operator.raw_operator.get_feature_names_out())
        operator.outputs[0].type = DoubleTensorType([None, width])

    def write_part(number: int, codes: list[str]) -> list[str]:
        doubles = [*map(graph.double, codes)]
        x = doubles[0] if len(doubles) == 1 else graph.node("Concat", *doubles, axis=1)
        return [TRANSFORMERS[type(parts[number])](graph, parts[number], x)]

    inputs = graph.inputs
    if rows is not None:
        inputs = [GraphInput("rows", getattr(estimator, "n_features_in_", None))]
    kinds = [StringTensorType if column.is_text else DoubleTensorType for column in inputs]
    types = [(c.name, kind([None, c.width])) for c, kind in zip(inputs, kinds, strict=True)]
    is_classifier = isinstance(estimator, ClassifierMixin)
    hint = "; of a model of named columns give rows too: to_onnx(model, X)"
    try:
        model = within_limit(
            lambda: convert_sklearn(
                estimator,
                initial_types=types,
                options={id(estimator): {"zipmap": False}} if is_classifier else None,
                target_opset={"": OPSET, "ai.onnx.ml": 3},
                custom_conversion_functions=dict.fromkeys(TRANSFORMERS, add_part),
                custom_shape_calculators=dict.fromkeys(TRANSFORMERS, set_type),
            )
        )
    except Exception as error:
        raise InputError(
            f"estimator must be one that skl2onnx converts: {type(error).__name__}, "
            f"{one_line(error)}{hint if inputs[0].name == 'X' else ''}"
        ) from error
    names = {column.name: rows or column.name for column in inputs}
    return graph.double(graph.add(model, names, write_part)[int(is_classifier)])


def within_limit(function: Callable[[], Result]) -> Result:
    """Return the result of a function, or raise an error if it takes too long."""
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)

    thread = Thread(target=run, daemon=True)
    thread.start()
    try:
        return future.result(MAX_SECONDS)
    except TimeoutError:
        stop = ctypes.pythonapi.PyThreadState_SetAsyncExc
        stop(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(SystemExit))
        raise TimeoutError(f"it did not end within {MAX_SECONDS:.0f} seconds") from None
