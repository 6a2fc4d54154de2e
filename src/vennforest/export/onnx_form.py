"""Classifiers with their calibration as ONNX graphs of standard operators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import check_is_fitted

from vennforest._files import refused_as
from vennforest._messages import needed, shown
from vennforest._validation import FloatArray, InputError, is_frame
from vennforest.calibrators.base import Calibrator
from vennforest.calibrators.formula import LOWEST, Score, Term, Written, if_at_most
from vennforest.classifier import CalibratedClassifier
from vennforest.classifier.blend import BlendedModel
from vennforest.classifier.prediction import interval_curves_of
from vennforest.export.formulas import (
    INTERVAL_LEVEL,
    accepted_scores,
    interval_formulas,
    output_formulas,
    shifted_formula,
)
from vennforest.export.onnx_boosters import (
    booster_package,
    booster_scores,
    refuse_categories,
    refused_by,
)
from vennforest.export.onnx_graph import OPSET, OUTPUTS, OnnxGraph
from vennforest.export.onnx_trees import TREE_ENSEMBLES, forest_scores, histogram_scores
from vennforest.forest import FORESTS
from vennforest.linear import MAX_DISTANCE, LinearClassifier
from vennforest.scores import SPLITTER
from vennforest.sources import Fold
from vennforest.sources.estimators import split_pipeline, without_frozen

REFUSAL = "model must be a table or a formula"

SCORE_TOLERANCE = 3e-6
"""Relative difference up to which a score in single precision is that of a calibration example."""


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
    graph = OnnxGraph()
    if isinstance(model, Calibrator):
        check_is_fitted(model, "classes_")
        k = len(model.classes_)
        name, shape = ("score", (None,)) if k == 2 else ("scores", (None, k))
        with refused_as(REFUSAL):
            formulas = output_formulas(model, confidence)
        outputs = graph.write(_unless_refused(model, formulas), name)
        return graph.model(outputs, k, [graph.input(name, *shape)])
    if not isinstance(model, CalibratedClassifier):
        raise TypeError(
            f"model must be a CalibratedClassifier or calibrator, got {type(model).__name__}"
        )
    check_is_fitted(model, "classes_")
    _check_exportable(model)
    inputs = [graph.input("X", None, model.n_features_in_)]
    if X is not None and is_frame(X):
        inputs = [
            graph.input(name, None, 1, text=is_text) for name, is_text in _columns_of(model, X)
        ]
    outputs_of_folds = []
    for fold, calibrator in zip(model._state.folds, model._state.calibrators, strict=True):
        scores = _add_fold_scores(graph, fold, model.votes, inputs)
        with refused_as(REFUSAL):
            formulas = _fold_formulas(model, calibrator, confidence)
        outputs_of_folds.append(graph.write(_unless_refused(calibrator, formulas), scores))
    return graph.model(_combined(model, outputs_of_folds), len(model.classes_), inputs)


# --- scores --------------------------------------------------------------------------------------


def _add_fold_scores(graph: OnnxGraph, fold: Fold, votes: Any, inputs: Sequence[Any]) -> str:
    """Add the model of a fold; return the name of its scores (n,) or (n, k)."""
    estimator = without_frozen(fold.model)
    if isinstance(estimator, BlendedModel):
        scores = _blend_scores(graph, estimator, votes, inputs)
    else:
        scores = _model_scores(graph, estimator, votes, inputs)
    last_steps = (split_pipeline(without_frozen(model))[1] for model in _models_of(fold))
    if all(isinstance(step, (*TREE_ENSEMBLES, LinearClassifier)) for step in last_steps):
        return scores
    columns = [np.unique(column) for column in fold.scores.reshape(len(fold.scores), -1).T]
    return graph.value(_moved_to_example(Written(scores), columns))


def _moved_to_example(scores: Term, columns: Sequence[FloatArray]) -> Term:
    """Return scores in single precision, or the calibration scores that they are but for rounding.

    Steps begin at calibration scores, which rows with the same leaves would miss by a last digit.
    """
    starts = [(column[1:] + column[:-1]) / 2 for column in columns]
    nearest = scores.look_up(starts, {"nearest": columns})["nearest"]
    distance = (scores - nearest).max(nearest - scores)
    return distance.unless_above(SCORE_TOLERANCE * nearest, nearest, scores)


def _blend_scores(graph: OnnxGraph, blend: BlendedModel, votes: Any, inputs: Sequence[Any]) -> str:
    """Add a blend to the graph; return the name of its scores (n,) or (n, k)."""
    k, tiny = len(blend.classes_), float(np.finfo(np.float64).tiny)
    # Of two classes the logit of the second one, else those of all.
    logits: Any = blend.intercept if k > 2 else float(blend.intercept[1] - blend.intercept[0])
    for member, weight in zip(blend.members, blend.weights.tolist(), strict=True):
        if weight == 0:
            continue
        formula = _unless_refused(member.calibrator, output_formulas(member.calibrator))
        models = [fold.model for fold in member.folds] if not member.linear else [member.linear]
        scores = [_model_scores(graph, model, votes, inputs) for model in models]
        p = _mean([graph.write(formula, of_fold)["p"] for of_fold in scores])
        log_p = p.max(tiny).log()
        logits = logits + weight * (log_p if k > 2 else log_p - (1.0 - p).max(tiny).log())
    z = graph.value(logits)
    return _rounded(graph, graph.node("Sigmoid", z) if k == 2 else graph.node("Softmax", z, axis=1))


def _model_scores(graph: OnnxGraph, model: Any, votes: Any, inputs: Sequence[Any]) -> str:
    """Add an estimator; return the name of its scores (n,) or (n, k) as `round_scores` gives."""
    scores = _estimator_scores(graph, without_frozen(model), votes, inputs)
    if len(model.classes_) == 2:
        scores = graph.node("Gather", scores, graph.constant(np.int64(1)), axis=1)
    return _rounded(graph, scores)


def _rounded(graph: OnnxGraph, scores: str) -> str:
    """Add the rounding of `round_scores` to the graph."""
    product = SPLITTER * Written(scores)
    return graph.value(product - (product - Written(scores)))


def _estimator_scores(graph: OnnxGraph, estimator: Any, votes: Any, inputs: Sequence[Any]) -> str:
    """Add an estimator to the graph; return the name of its scores (n, k), in double precision."""
    steps, last = split_pipeline(estimator)
    package = booster_package(last)
    if votes != "soft" and not isinstance(last, FORESTS):
        raise InputError(f'model must have votes="soft" for ONNX, got {votes!r}')
    if not isinstance(last, (*TREE_ENSEMBLES, LinearClassifier)) and not package:
        return graph.double(_converted(graph, estimator, last, inputs))
    refuse_categories(last, package)
    rows = inputs[0].name
    if steps:
        rows = graph.double(_converted(graph, make_pipeline(*steps), None, inputs))
    elif len(inputs) > 1:
        rows = graph.node("Concat", *(column.name for column in inputs), axis=1)
    if isinstance(last, FORESTS):
        return forest_scores(graph, last, rows, votes)
    if isinstance(last, LinearClassifier):
        return linear_scores(graph, last, rows)
    if package:
        return booster_scores(graph, last, package, rows)
    return histogram_scores(graph, last, rows)


def linear_scores(graph: OnnxGraph, model: LinearClassifier, rows: str) -> str:
    """Add a linear classifier to the graph; return the name of its scores (n, k)."""
    scaled = graph.node("Div", rows, graph.number(model.scale_))
    z = graph.node("Sub", scaled, graph.number(model.center_))
    z = graph.node("Clip", z, graph.number(-MAX_DISTANCE), graph.number(MAX_DISTANCE))
    is_missing = graph.node("IsNaN", rows)
    z = graph.node("Where", is_missing, graph.number(0.0), z)
    present = graph.node("MatMul", z, graph.number(model.coef_))
    missing = graph.node("MatMul", graph.double(is_missing), graph.number(model.missing_coef_))
    logits = graph.node("Sum", present, missing, graph.number(model.intercept_))
    # Infinite cells are refused.
    is_refused = graph.node("IsInf", rows)
    refused = graph.node("ReduceMax", graph.double(is_refused), axes=[1], keepdims=1)
    logits = graph.node(
        "Where", graph.node("Cast", refused, to=graph.kinds.BOOL), graph.number(np.nan), logits
    )
    if len(model.classes_) > 2:
        return graph.node("Softmax", logits, axis=1)
    second = graph.node("Sigmoid", logits)
    return graph.node("Concat", graph.node("Sub", graph.number(1.0), second), second, axis=1)


def _converted(graph: OnnxGraph, estimator: Any, last: Any, inputs: Sequence[Any]) -> str:
    """Add what skl2onnx makes of an estimator; return the name of its scores (n, k).

    With ``last`` None these are transformers, and the name is that of the transformed rows.
    """
    needed("skl2onnx", "ONNX graphs of other estimators")
    from skl2onnx import to_onnx as convert
    from skl2onnx.common.data_types import DoubleTensorType, StringTensorType

    types = []
    for column in inputs:
        tensor = column.type.tensor_type
        kind = StringTensorType if tensor.elem_type == graph.kinds.STRING else DoubleTensorType
        types.append((column.name, kind([None, tensor.shape.dim[1].dim_value])))
    hint = ""
    if inputs[0].name == "X":
        hint = "; of a model of named columns give rows too: to_onnx(model, X)"
    with refused_by("skl2onnx", hint):
        converted = convert(
            estimator,
            initial_types=types,
            options=None if last is None else {id(last): {"zipmap": False}},
            target_opset={"": OPSET, "ai.onnx.ml": 3},
        )
    output = converted.graph.output[0 if last is None else 1].name
    return graph.add(converted, {name: name for name, _ in types})[output]


# --- outputs -------------------------------------------------------------------------------------


def _fold_formulas(
    model: CalibratedClassifier, calibrator: Calibrator, confidence: bool
) -> dict[str, Term]:
    """Return the formulas of a fold's outputs from its scores."""
    formulas = output_formulas(calibrator)
    point_calibrator = model._state.point_calibrator
    if point_calibrator is not None:
        formulas["p"] = output_formulas(point_calibrator)["p"]
    if confidence:
        curves = interval_curves_of(model._state, INTERVAL_LEVEL).overall
        formulas |= interval_formulas(curves, Score())
    return formulas


def _unless_refused(calibrator: Calibrator, formulas: dict[str, Term]) -> dict[str, Term]:
    """Return formulas that are NaN where the calibrator refuses the scores."""
    low, high, sum_tolerance = accepted_scores(calibrator)
    # 1 where a score is accepted, which NaN is not.
    accepted = if_at_most(low, Score(), if_at_most(Score(), high, 1.0, 0.0), 0.0)
    if len(calibrator.classes_) > 2:
        accepted = accepted.smallest()
        if low == -np.inf:  # of a row of minus infinity alone nothing is known
            accepted = if_at_most(LOWEST, Score().largest(), accepted, 0.0)
        if sum_tolerance is not None:
            total = Score().sum()
            deviation = (total - 1.0).max(1.0 - total)
            accepted = deviation.unless_above(sum_tolerance, accepted, 0.0)
    return {name: if_at_most(1.0, accepted, p, np.nan) for name, p in formulas.items()}


def _combined(model: CalibratedClassifier, folds: Sequence[dict[str, Term]]) -> dict[str, Term]:
    """Return what `combine_probabilities` and `combine_bounds` make of the outputs of folds."""

    def shifted(p: Term) -> Term:
        return p if model._state.shift is None else shifted_formula(p, model._state.shift)

    outputs = {name: _mean([fold[name] for fold in folds]) for name in folds[0]}
    rule = getattr(model._state.calibrators[0], "merge", None)
    if len(folds) > 1 and rule == "log" and model._state.point_calibrator is None:
        up = _mean([fold["p1"].log() for fold in folds]).exp()
        complement = _mean([(1.0 - fold["p0"]).log() for fold in folds]).exp()
        p = up / (complement + up)
        outputs["p"] = p / p.sum() if len(model.classes_) > 2 else p
    # The bounds of each fold are shifted, but the mean of the rest, as in `apply_prior`.
    outputs = {
        name: _mean([shifted(fold[name]) for fold in folds]) if name in ("p0", "p1") else shifted(p)
        for name, p in outputs.items()
    }
    for low, high in (("p0", "p1"), ("low95", "high95")):
        if low in outputs:
            outputs[low] = outputs[low].min(outputs["p"])
            outputs[high] = outputs[high].max(outputs["p"])
    return outputs


def _mean(terms: Sequence[Term]) -> Term:
    """Return the mean of the values by several folds."""
    total = reduce(Term.__add__, terms)
    return total if len(terms) == 1 else total / float(len(terms))


# --- the model -----------------------------------------------------------------------------------


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
            any(len(model.classes_) != k for fold in folds for model in _models_of(fold)),
            "have all classes in each fold's training rows: use more rows or fewer folds",
        ),
        (
            model._state.shift is not None and k > 2,
            f"have two classes after with_prior or with_mean, got {k}: export it before",
        ),
    ):
        if applies:
            raise InputError(f"a model for ONNX must {rule}")


def _models_of(fold: Fold) -> list[Any]:
    """Return the models of all folds of a blend's members, or the one model itself."""
    if not isinstance(fold.model, BlendedModel):
        return [fold.model]
    return [part.model for member in fold.model.members for part in member.folds]
