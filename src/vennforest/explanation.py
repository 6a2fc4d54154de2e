"""Attributions of calibrated probabilities to features, by SHAP values of the trees' score."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.special import expit, logit, softmax
from sklearn.utils import _safe_indexing

from vennforest._messages import needed
from vennforest._validation import FloatArray, InputError, without_arrow
from vennforest.classifier import CalibratedClassifier
from vennforest.classifier.blend import BlendedModel, BlendMember
from vennforest.classifier.prediction import RowScores, predict_scores, score_rows
from vennforest.linear import LinearClassifier
from vennforest.sources import Fold
from vennforest.sources.estimators import split_pipeline, transform_rows, without_frozen

EDGE = 1e-6
"""Distance from 0 and 1 to which probabilities are clipped, so that log-odds are finite."""

FeatureColumns = dict[str, NDArray[Any]]
"""The features that models see, (n,) each, by name."""

NEAR = 1e-3
"""Distance from the base score within which the ratio of differences is replaced by a slope."""

ScoreAttributions = tuple[FloatArray, FloatArray, bool, FeatureColumns]
"""Attributions (n, d, 1 or k) of scores, base scores (1 or k,), whether scores are log-odds or
logits instead of probabilities, and the columns of the features."""


def explain(model: CalibratedClassifier, X: Any) -> Any:
    """Attribute the log-odds of calibrated probabilities to features.

    Requires shap: ``pip install 'vennforest[shap]'``.

    Parameters
    ----------
    model : CalibratedClassifier
        A fitted model. Its estimator is a forest whose probability is the mean over its trees, a
        gradient booster of scikit-learn, XGBoost, LightGBM or CatBoost, a `LinearClassifier`, a
        pipeline that ends in one, or a blend of these. With several folds, attributions are means
        over their models.
    X : array-like, sparse matrix or data frame of shape (n, d)
        The rows to explain.

    Returns
    -------
    shap.Explanation
        For two classes ``values`` of shape (n, d) and ``base_values`` of shape (n,) refer to the
        log-odds of the second class. For more, (n, d, k) and (n, k) refer to the log-odds of each
        class against the others. In a pipeline, the d features are those of its last step; of
        several models they are those of all, matched by name.

    Raises
    ------
    ValueError
        If the estimator is no such forest or booster, or ``votes`` is ``"hard"``.
    NotFittedError
        If the model is not fitted.
    ImportError
        If shap is not installed.

    Notes
    -----
    `shap.TreeExplainer` writes the score of all trees as ``s = base + sum_j phi_j``: the
    probability of a forest, the log-odds or logits of a booster. Calibration maps scores to
    log-odds by a function g, which includes groups and priors. The base value is
    g(base), and the value of feature j is ``phi_j (g(s) - g(base)) / (s - base)``, so values and
    base value sum to the log-odds of ``predict_proba``. Within 0.001 of the base score, where the
    ratio is not stable, it is replaced by the slope of g, and the remainder is distributed in
    proportion to ``|phi_j|``. In the same way the score of each model of a blend is carried to its
    logits, of which the blend is a weighted sum; the base of a linear model is the mean row.
    Probabilities are clipped to [1e-6, 1 - 1e-6].

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from vennforest import CalibratedClassifier, explain
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = CalibratedClassifier(random_state=0).fit(X[:400], y[:400])
    >>> explanation = explain(model, X[406:408])
    >>> (1 / (1 + np.exp(-explanation.base_values - explanation.values.sum(axis=1)))).round(2)
    array([0.64, 0.96])
    """
    shap = needed("shap", "explanations")
    if not isinstance(model, CalibratedClassifier):
        raise InputError(f"model must be a CalibratedClassifier, got {type(model).__name__}")
    fitted, X = model._state, without_arrow(X)
    if model.votes == "hard":
        raise InputError('votes must be "soft" for explanations, got "hard": fit it with "soft"')
    # Models refuse rows of other columns; shap reads them by place, beyond the last if need be.
    scored, codes = score_rows(fitted, X, bounds=False)
    phi, base, of_logits, columns = _explain_scores(shap, fitted.folds, X)
    is_of_two = len(fitted.classes) == 2
    n_rows = 1 if codes is None else len(codes)  # without groups one row answers for all

    def log_odds(scored: list[RowScores]) -> FloatArray:
        p = predict_scores(fitted, scored, codes).p
        return np.asarray(logit(np.clip(p[:, 1:] if is_of_two else p, EDGE, 1 - EDGE)))

    def log_odds_at(score: FloatArray) -> FloatArray:
        score = np.clip(score, 0, 1)
        scores = np.full(n_rows, score[0]) if len(score) == 1 else np.tile(score, (n_rows, 1))
        return log_odds([RowScores(scores, None, scores)] * len(fitted.folds))

    values, middle = _attributions(phi, base, of_logits, log_odds(scored), log_odds_at)
    if is_of_two:
        values, middle = values[:, :, 0], middle[:, 0]
    rows, labels = np.column_stack([*columns.values()]), fitted.classes.tolist()
    names = {"feature_names": [*columns], "output_names": None if is_of_two else labels}
    return shap.Explanation(values, middle.copy(), rows, **names)


def _attributions(
    phi: FloatArray,
    base: FloatArray,
    of_logits: bool,
    target: FloatArray,
    values_at: Callable[[FloatArray], FloatArray],
) -> tuple[FloatArray, FloatArray]:
    """Return attributions (n, d, c) and base values (n, c) of a function of the scores.

    ``target`` (n, c) are its values at the rows, to which both sum, and ``values_at`` gives them at
    one score. Values are in proportion to the attributions ``phi`` of the score.
    """
    at_base = values_at(_probabilities_of_logits(base) if of_logits else base)
    middle = np.broadcast_to(at_base, target.shape)
    near = zip(_moved_base(base, -NEAR, of_logits), _moved_base(base, NEAR, of_logits), strict=True)
    rises = [
        values_at(above)[:, c] - values_at(below)[:, c] for c, (below, above) in enumerate(near)
    ]
    slope = np.broadcast_to(np.column_stack(rises) / (2 * NEAR), target.shape)
    distance, wanted = phi.sum(axis=1), target - middle
    is_near = np.abs(distance) < NEAR
    factor = np.where(is_near, slope, wanted / np.where(is_near, 1.0, distance))
    values: FloatArray = phi * factor[:, None]
    sizes = np.abs(phi)
    total = sizes.sum(axis=1, keepdims=True)
    parts = np.where(total > 0, sizes / np.where(total > 0, total, 1.0), 1 / phi.shape[1])
    for _ in range(2):  # the second time for rounding errors
        values += parts * (wanted - values.sum(axis=1))[:, None]
    return values, middle


def _explain_scores(shap: Any, folds: Sequence[Fold], X: Any) -> ScoreAttributions:
    """Return the means of the attributions of the folds' models."""
    phis, bases, of_logits, columns = [], [], False, []
    for fold in folds:
        model = without_frozen(fold.model)
        if fold.classes is not None and len(model.classes_) < len(fold.classes):
            raise InputError(
                "model must have all classes in each fold's training rows for explanations, got "
                f"{len(model.classes_)} of {len(fold.classes)}: use more rows or fewer folds"
            )
        explain_model = _explain_blend if isinstance(model, BlendedModel) else _explain_model
        phi, base, of_logits, of_fold = explain_model(shap, model, X)
        phis.append(phi)
        bases.append(base)
        columns.append(of_fold)
    aligned, of_all = _by_feature(phis, columns)
    return np.mean(aligned, axis=0), np.mean(bases, axis=0), of_logits, of_all


def _by_feature(
    phis: Sequence[FloatArray], columns: Sequence[FeatureColumns]
) -> tuple[list[FloatArray], FeatureColumns]:
    """Return attributions by several models for the features of all, with these features' columns.

    A model that does not see a feature, after transformers of its own, attributes 0 to it.
    """
    of_all: FeatureColumns = {}
    for of_model in columns:
        of_all = of_all | {name: x for name, x in of_model.items() if name not in of_all}
    column_of, aligned = {name: j for j, name in enumerate(of_all)}, []
    for phi, of_model in zip(phis, columns, strict=True):
        aligned.append(np.zeros((len(phi), len(column_of), phi.shape[2])))
        aligned[-1][:, [column_of[name] for name in of_model]] = phi
    return aligned, of_all


def _explain_blend(shap: Any, blend: BlendedModel, X: Any) -> ScoreAttributions:
    """Return the attributions of the logits of a blend, sums over its models."""
    base: Any = blend.intercept[1:] - blend.intercept[:1]
    base = base if len(blend.classes_) == 2 else blend.intercept
    phis, columns = [], []
    members = zip(blend.members, blend.weights.tolist(), blend.member_scores(X), strict=True)
    for member, weight, scores in members:
        if weight == 0:
            continue
        phi, of_base, of_logits, of_member = _explain_scores(shap, member.folds, X)

        def logits_at(scores: Any, member: BlendMember = member) -> FloatArray:
            if not isinstance(scores, list):  # one score
                scores = np.clip(scores, 0, 1)
                scores = [scores if len(scores) == 1 else scores[None]]
            logits = member.log_probabilities(scores)
            return logits[:, None] if logits.ndim == 1 else logits

        target = logits_at(scores)
        values, middle = _attributions(phi, of_base, of_logits, target, logits_at)
        phis.append(weight * values)
        columns.append(of_member)
        base = base + weight * middle[0]
    aligned, of_all = _by_feature(phis, columns)
    return np.sum(aligned, axis=0), base, True, of_all


def _explain_model(shap: Any, model: Any, X: Any) -> ScoreAttributions:
    """Return the attributions of one model of trees, or linear one."""
    steps, last = split_pipeline(model)
    transformed: Any = transform_rows(model, X)
    is_sparse: bool = issparse(transformed)
    rows = transformed.toarray() if is_sparse else np.asarray(transformed)
    columns = dict(zip(_names(steps, model, rows.shape[1]), rows.T, strict=True))
    if type(last) is LinearClassifier:
        phi, base = last.attributions(transformed)
        return phi, base, True, columns
    refusal = InputError(
        "estimator must be a forest of scikit-learn, whose probability is the mean over its trees, "
        "a LinearClassifier or a gradient booster for explanations, whose trees shap.TreeExplainer "
        f"reads, got {type(last).__name__}"
    )
    try:
        explainer = shap.TreeExplainer(last)
        # Boosters read categories from the columns of a data frame.
        table = transformed if hasattr(transformed, "iloc") else rows
        with warnings.catch_warnings():  # that LightGBM's values have changed their form
            warnings.filterwarnings("ignore", "LightGBM binary classifier", UserWarning)
            phi = np.asarray(explainer.shap_values(table, check_additivity=False), np.float64)
    except Exception as error:  # shap raises exceptions of many types
        raise refusal from error
    base = np.atleast_1d(np.asarray(explainer.expected_value, np.float64))
    p = last.predict_proba(_safe_indexing(transformed, np.arange(min(50, len(phi)))))
    k = p.shape[1]
    first = 1 if k == 2 else 0
    if phi.ndim == 2 and k == 2:  # of the second class alone
        phi, base = phi[:, :, None], base[-1:]
    if phi.ndim == 3 and phi.shape[2] == len(base) in (k - first, k):
        # The sums of the first rows must be their probabilities, or give these as logits.
        scores = base + phi[: len(p)].sum(axis=1)
        if scores.shape == p.shape and np.allclose(scores, p, atol=1e-6):
            return phi[:, :, first:], base[first:], False, columns
        expected, single_precision = p[:, -scores.shape[1] :], 1e-4
        if np.allclose(_probabilities_of_logits(scores), expected, atol=single_precision):
            return phi, base, True, columns
    raise refusal


def _probabilities_of_logits(logits: FloatArray) -> FloatArray:
    """Return probabilities of log-odds (..., 1) of the second class, or of logits (..., k)."""
    return np.asarray(expit(logits) if logits.shape[-1] == 1 else softmax(logits, axis=-1))


def _names(steps: list[Any], model: Any, d: int) -> list[str]:
    """Return the names of the d features of a model; without any, as scikit-learn forms them."""
    try:
        names: Any = None if steps else model.feature_names_in_
        for step in steps:  # those of nested pipelines too
            names = step.get_feature_names_out(names)
        return [*map(str, names)]
    except (AttributeError, ValueError):
        prefix = type(steps[-1]).__name__.lower() if steps else "x"
        return [f"{prefix}{j}" for j in range(d)]


def _moved_base(base: FloatArray, step: float, of_logits: bool) -> list[FloatArray]:
    """Return the score for each class with that of the class moved by ``step``.

    Of several, other probabilities are rescaled; logits become probabilities.
    """
    if of_logits:
        return [_probabilities_of_logits(base + step * unit) for unit in np.eye(len(base))]
    if len(base) == 1:
        return [base + step]
    moved = []
    for c in range(len(base)):
        moved_score = np.clip(base[c] + step, 0, 1)
        near = base * (1 - moved_score) / max(1 - base[c], NEAR)
        near[c] = moved_score
        moved.append(near / near.sum())
    return moved
