"""Classifiers with their calibration as ONNX graphs of standard operators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from vennforest._files import refused_as
from vennforest._messages import needed, shown
from vennforest._validation import FloatArray, InputError, is_frame
from vennforest.calibrators.base import Calibrator
from vennforest.calibrators.formula import LOWEST, Score, Term, Written, if_at_most, softmax
from vennforest.classifier import CalibratedClassifier
from vennforest.classifier.blend import BlendedModel
from vennforest.classifier.prediction import interval_curves_of
from vennforest.export import proof
from vennforest.export.formulas import (
    INTERVAL_LEVEL,
    accepted_scores,
    interval_formulas,
    output_formulas,
    shifted_formula,
    tables_of,
)
from vennforest.export.onnx_graph import OUTPUTS, GraphInput, OnnxGraph
from vennforest.export.onnx_models import add_model_scores
from vennforest.forest import FORESTS
from vennforest.scores import SPLITTER
from vennforest.sources import Fold
from vennforest.sources.estimators import split_pipeline

REFUSAL = "model must be a table or a formula"

SINGLE_TOLERANCE, DOUBLE_TOLERANCE = 3e-6, 2.0**-38
"""Relative differences up to which a score, in single or double precision, is that of an example.

Scores are rounded to 40 binary digits.
"""

CERTAINTY_TOLERANCE = 2.0**-30
"""Difference in units of 1 - p up to which a probability p in double precision is that of an
example: near certainty the last digits of p tell examples apart."""


def to_onnx(
    model: CalibratedClassifier | Calibrator, X: Any = None, *, confidence: bool = False
) -> Any:
    """Return a fitted model as an ONNX graph.

    Parameters
    ----------
    model : CalibratedClassifier or Calibrator
        A fitted calibrator, or a fitted classifier, of several folds and blends too. Trees, linear
        models and support vector machines of scikit-learn, models of XGBoost, LightGBM and CatBoost
        without categories of their own, ensembles of all these, and some transformers are written
        in double precision; skl2onnx converts the others.
    X : array or data frame of shape (n_rows, d), optional
        Any rows like those of training, by which the drawn rows are made. With a data frame the
        graph has an input of shape (n, 1) for each column, of float64 or text.
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
        If onnx or onnxruntime is not installed, or skl2onnx for steps and models that it converts.
    ValueError
        If the model has subforests of its own for each example, groups (``by``), a changed prior of
        more than two classes, a user's function, a step that skl2onnx does not convert within a
        minute, or a booster with categories of its own; or if the graph answers otherwise than the
        model for drawn rows, or these cannot be drawn without ``X``.

    Notes
    -----
    The graph is run by onnxruntime on 200 drawn rows before it is returned: in the range of ``X``,
    or else of the numbers in the graph, at its ends and beyond, with missing, infinite and unknown
    cells. Probabilities, bounds and intervals must differ from Python's by at most 1e-9 plus a
    hundred-thousandth of p or 1 - p, whichever is smaller. Where a score misses the end of a step
    by rounding, in at most 2% of the rows, they may be those of the neighbouring step. Scores that
    differ from that of a calibration example by rounding alone are taken for it.
    """
    if not isinstance(model, CalibratedClassifier | Calibrator):
        raise TypeError(
            f"model must be a CalibratedClassifier or calibrator, got {type(model).__name__}"
        )
    check_is_fitted(model, "classes_")
    if isinstance(model, Calibrator):
        return _calibrator_graph(model, confidence)
    _check_exportable(model)
    state = model._state
    names = [str(name) for name in getattr(model, "feature_names_in_", ())] or None
    frame = names and needed("pandas", "models of named columns").DataFrame
    inputs = [GraphInput("X", model.n_features_in_)]
    if X is not None and is_frame(X):
        inputs, frame = list(_columns_of(model, X)), type(X)
        names = [column.name for column in inputs]
    graph = OnnxGraph(len(model.classes_), inputs, model.votes)
    scores, outputs_of_folds = [], []
    for fold, calibrator in zip(state.folds, state.overall.calibrators, strict=True):
        scores.append(_add_fold_scores(graph, fold))
        with refused_as(REFUSAL):
            formulas = output_formulas(calibrator)
            if state.overall.point is not None:
                formulas["p"] = output_formulas(state.overall.point)["p"]
        if confidence:
            curves = interval_curves_of(state, INTERVAL_LEVEL)
            formulas |= interval_formulas(curves, Score())
        outputs_of_folds.append(graph.write(_unless_refused(calibrator, formulas), scores[-1]))
    outputs = _combined(model, outputs_of_folds)
    if X is None:
        cells = proof.cells_of_graph(graph, model.n_features_in_)
    elif is_frame(X):
        cells = [proof.distinct_cells(X[c.name].to_numpy(), c.is_text) for c in inputs]
    else:
        cells = [proof.distinct_cells(column, False) for column in np.asarray(X).T]
    rows = proof.Rows(proof.draw_rows(cells), names, frame, [column.name for column in inputs])
    expected = proof.expected_answers(model, rows, confidence)
    if len(rows.numbers()):
        refused = proof.refused_cells(model, rows, int(expected.accepted[0]))
        accepted = Written(_accepted_rows(graph, *refused))
        outputs = {name: if_at_most(1.0, accepted, p, np.nan) for name, p in outputs.items()}
    with_scores = {f"{proof.SCORES}{i}": Written(of_fold) for i, of_fold in enumerate(scores)}
    answers = proof.run_graph(graph.model(outputs | with_scores), rows.for_graph())
    p_is_smooth = not tables_of([formulas["p"]])
    proof.prove_classifier(model, expected, answers, p_is_smooth=p_is_smooth)
    return graph.model(outputs)


def _calibrator_graph(calibrator: Calibrator, confidence: bool) -> Any:
    """Return a fitted calibrator as an ONNX graph."""
    k = len(calibrator.classes_)
    if calibrator.column_codes_ is not None:
        raise InputError(
            "calibrator must be fitted to columns in the sorted order of its classes for ONNX, "
            f"whose input has no names, got the order "
            f"{shown(calibrator.classes_[calibrator.column_codes_].tolist())}"
        )
    column = GraphInput("score") if k == 2 else GraphInput("scores", k)
    graph = OnnxGraph(k, [column])
    with refused_as(REFUSAL):
        formulas = output_formulas(calibrator, confidence)
    outputs = graph.write(_unless_refused(calibrator, formulas), column.name)
    exported = graph.model(outputs)
    scores = proof.draw_scores(calibrator, proof.N_ROWS)
    answers = proof.run_graph(exported, {column.name: scores})
    proof.prove_calibrator(calibrator, "ONNX", scores.__getitem__, answers, confidence)
    return exported


def _accepted_rows(graph: OnnxGraph, no_missing: Any, largest: FloatArray) -> str:
    """Add 1 for rows that the model takes, else 0: (n,) for two classes, else (n, 1).

    ``no_missing`` (d,) are the columns that must not be missing; the size of the numbers of each
    must not exceed ``largest`` (d,).
    """
    widths = [column.width or 1 for column in graph.inputs]
    is_number = np.repeat([not column.is_text for column in graph.inputs], widths)
    columns = [column.name for column in graph.inputs if not column.is_text]
    x = Written(graph.node("Concat", *columns, axis=1) if len(columns) > 1 else columns[0])
    limits, missing = largest[is_number], np.where(no_missing[is_number], 0.0, 1.0)
    # NaN is at most nothing: of it the last value is taken.
    size = if_at_most(x.max(-1.0 * x), limits, 1.0, 0.0)
    of_cell = if_at_most(x, np.inf, size, missing)
    flags = graph.value(of_cell.smallest())
    return graph.node("Squeeze", flags, graph.constant(np.array([1]))) if graph.k == 2 else flags


# --- scores --------------------------------------------------------------------------------------


def _add_fold_scores(graph: OnnxGraph, fold: Fold) -> str:
    """Add the model of a fold; return the name of its scores (n,) or (n, k).

    They are the calibration scores that they are but for rounding.
    """
    is_blend = isinstance(fold.model, BlendedModel)
    scores = (_blend_scores if is_blend else _model_scores)(graph, fold.model)
    # Steps begin at calibration scores, which rows with the same leaves would miss by a last digit.
    columns = [np.unique(column) for column in fold.scores.reshape(len(fold.scores), -1).T]
    starts = [(column[1:] + column[:-1]) / 2 for column in columns]
    term = Written(scores)
    nearest = term.look_up(starts, {"nearest": columns})["nearest"]
    distance, size = (term - nearest).max(nearest - term), nearest.max(-1.0 * nearest)
    if fold.kind == "probability" and not graph.has_singles:
        size = size.min(CERTAINTY_TOLERANCE / DOUBLE_TOLERANCE * (1.0 - nearest))
    tolerance = SINGLE_TOLERANCE if graph.has_singles else DOUBLE_TOLERANCE
    return graph.value(distance.unless_above(tolerance * size, nearest, term))


def _blend_scores(graph: OnnxGraph, blend: BlendedModel) -> str:
    """Add a blend to the graph; return the name of its scores (n,) or (n, k)."""
    k, tiny = len(blend.classes_), float(np.finfo(np.float64).tiny)
    # Of two classes the logit of the second one, else those of all.
    logits: Any = blend.intercept if k > 2 else float(blend.intercept[1] - blend.intercept[0])
    for member, weight in zip(blend.members, blend.weights.tolist(), strict=True):
        if weight == 0:
            continue
        formula = _unless_refused(member.calibrator, output_formulas(member.calibrator))
        models = [fold.model for fold in member.folds] if not member.linear else [member.linear]
        scores = [_model_scores(graph, model) for model in models]
        p = _mean([graph.write(formula, of_fold)["p"] for of_fold in scores])
        log_p = p.max(tiny).log()
        logits = logits + weight * (log_p if k > 2 else log_p - (1.0 - p).max(tiny).log())
    z = graph.value(logits)
    p = Written(z).logistic() if k == 2 else softmax(Written(z))
    return _rounded(graph, graph.value(p))


def _model_scores(graph: OnnxGraph, model: Any) -> str:
    """Add an estimator; return the name of its scores (n,) or (n, k) as `round_scores` gives."""
    scores = add_model_scores(graph, model)
    if len(model.classes_) == 2:
        scores = graph.node("Gather", scores, graph.constant(np.int64(1)), axis=1)
    return _rounded(graph, scores)


def _rounded(graph: OnnxGraph, scores: str) -> str:
    """Add the rounding of `round_scores` to the graph."""
    product = SPLITTER * Written(scores)
    return graph.value(product - (product - Written(scores)))


# --- outputs -------------------------------------------------------------------------------------


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
    """Return what `predict_scores` makes of the outputs of folds."""

    def shifted(p: Term) -> Term:
        return p if model._state.shift is None else shifted_formula(p, model._state.shift)

    outputs = {name: _mean([fold[name] for fold in folds]) for name in folds[0]}
    rule = getattr(model._state.overall.calibrators[0], "merge", None)
    if len(folds) > 1 and rule == "log" and model._state.overall.point is None:
        up = _mean([fold["p1"].log() for fold in folds]).exp()
        complement = _mean([(1.0 - fold["p0"]).log() for fold in folds]).exp()
        p = up / (complement + up)
        outputs["p"] = p / p.sum() if len(model.classes_) > 2 else p
    # The bounds of each fold are shifted, but the mean of the rest, as in `predict_scores`.
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


def _columns_of(model: CalibratedClassifier, X: Any) -> Iterator[GraphInput]:
    """Yield an input for each column of a model, in its order, of the kind that it has in X."""
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
        yield GraphInput(name, 1, kind not in "biuf")


def _check_exportable(model: CalibratedClassifier) -> None:
    """Raise an `InputError` if ONNX cannot express a model."""
    folds, k = model._state.folds, len(model.classes_)
    is_drawn = model.calibrate_on_ in ("oob", "partitions") and model.subforest == "exchangeable"
    members = [member for fold in folds for member in getattr(fold.model, "members", ())]
    models = [part.model for member in members for part in member.folds]
    models = models or [fold.model for fold in folds]
    is_partial = any(len(part.classes_) != k for part in models)
    is_forest = all(isinstance(split_pipeline(part)[1], FORESTS) for part in models)
    is_shifted = k > 2 and model._state.shift is not None
    rules = {
        f"know its number of columns, got a {type(folds[0].model).__name__} without "
        "n_features_in_: use vennforest.save": not hasattr(model, "n_features_in_"),
        f"calibrate all rows in the same way, got by={shown(model.by)}: fit one without by, or one "
        "to the rows of each group": model.by is not None,
        'score new rows by all trees: use subforest="all"': is_drawn,
        "have all classes in each fold's training rows: use more rows or fewer folds": is_partial,
        f'have votes="soft", got {model.votes!r}': model.votes != "soft" and not is_forest,
        f"have two classes after with_prior or with_mean, got {k}: export it before": is_shifted,
    }
    for rule, is_broken in rules.items():
        if is_broken:
            raise InputError(f"a model for ONNX must {rule}")
