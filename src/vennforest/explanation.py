"""Attributions of calibrated answers to features, by SHAP values of the forest's score."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.special import logit
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from vennforest._messages import needed
from vennforest._validation import FloatArray, InputError
from vennforest.classifier import CalibratedClassifier
from vennforest.classifier.prediction import (
    FittedClassifier,
    RowScores,
    group_codes_of,
    intervals_at,
    predict_scores,
    score_rows,
)
from vennforest.sources.data import split_pipeline, transform_rows

EDGE = 1e-6
"""Probabilities nearer to 0 or 1 than this count as this near: log-odds are finite."""

NEAR = 1e-3
"""A score nearer to the base than this has the slope of the map between scores so far from it."""


def explain(
    model: CalibratedClassifier, X: Any, *, interval: bool = False, level: float = 0.95
) -> Any:
    """Attribute the log-odds of calibrated probabilities to features.

    Needs the extra ``shap``: ``pip install 'vennforest[shap]'``.

    Parameters
    ----------
    model : CalibratedClassifier
        Fitted, over a forest whose probability is the mean of its trees' (or a pipeline that ends
        in one); of folds the mean over their models.
    X : array-like, sparse matrix or data frame of shape (n, d)
        Rows as the estimator takes them.
    interval : bool, default=False
        Whether the two ends of the confidence interval are attributed too.
    level : float, default=0.95
        Of the interval.

    Returns
    -------
    shap.Explanation, or three with ``interval``: of the probability, the lower and the upper end
        ``values`` of shape (n, d) for two classes, of the log-odds of the second, or (n, d, k), of
        the log-odds of each class against the others; ``base_values`` of shape (n,) or (n, k). The
        plots of shap take them. With transformers before the forest d features are theirs.

    Raises
    ------
    ValueError
        If the estimator is not such a forest, or ``votes`` is ``"hard"``.

    Notes
    -----
    `shap.TreeExplainer` divides the score of all trees, less the base score, among the features:
    ``s = base + sum_j phi_j``. Calibration turns scores into log-odds by a curve g, groups and
    priors included. The base value is g(base), and each feature has the part ``phi_j (g(s) -
    g(base)) / (s - base)``, so values and base value sum to the log-odds of ``predict_proba``.
    Within 0.001 of the base score, where the ratio is not stable, it is the slope there, and the
    rest is shared in proportion to the sizes. Probabilities within 1e-6 of 0 or 1 count as that.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from vennforest import CalibratedClassifier, explain
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = CalibratedClassifier(random_state=0).fit(X[:400], y[:400])
    >>> explanation = explain(model, X[406:408])
    >>> (1 / (1 + np.exp(-explanation.base_values - explanation.values.sum(axis=1)))).round(2)
    array([0.58, 0.97])
    """
    shap = needed("shap", "explanations", "shap")
    check_is_fitted(model, "classes_")
    fitted = model._state
    if model.votes == "hard":
        raise InputError('votes must be "soft" for explanations, got "hard": fit it with "soft"')
    phi, base, rows, names = _explain_scores(shap, fitted, X)
    codes, k = group_codes_of(fitted, X), len(fitted.classes)
    n_rows = 1 if codes is None else len(codes)  # without groups one row answers for all

    def log_odds(scored: list[RowScores]) -> list[FloatArray]:
        """Return the log-odds of the probability, and of the ends of the interval."""
        p = predict_scores(fitted, scored, codes)[1]
        tables = [p]
        if interval:
            intervals = intervals_at(fitted, scored, codes, level).widen(p)
            tables += [intervals.lower, intervals.upper]
        return [logit(np.clip(t[:, 1:] if k == 2 else t, EDGE, 1 - EDGE)) for t in tables]

    def log_odds_at(score: FloatArray) -> list[FloatArray]:
        score = np.clip(score, 0, 1)
        scores = np.full(n_rows, score[0]) if len(score) == 1 else np.tile(score, (n_rows, 1))
        return log_odds([RowScores(scores, None, scores, [scores])] * len(fitted.folds))

    at_base = log_odds_at(base)
    below, above = ([log_odds_at(near) for near in _beside(base, d)] for d in (-NEAR, NEAR))
    explanations, output_names = [], None if k == 2 else fitted.classes.tolist()
    for i, target in enumerate(log_odds(score_rows(fitted, X, bounds=False, by_all=interval))):
        middle = np.broadcast_to(at_base[i], target.shape)
        rises = [above[c][i][:, c] - below[c][i][:, c] for c in range(len(above))]
        slope = np.broadcast_to(np.column_stack(rises) / (2 * NEAR), target.shape)
        values = _share(phi, phi.sum(axis=1), target - middle, slope)
        if k == 2:
            values, middle = values[:, :, 0], middle[:, 0]
        explanations.append(
            shap.Explanation(
                values, middle.copy(), rows, feature_names=names, output_names=output_names
            )
        )
    return tuple(explanations) if interval else explanations[0]


def _explain_scores(
    shap: Any, fitted: FittedClassifier, X: Any
) -> tuple[FloatArray, FloatArray, Any, list[str] | None]:
    """Return attributions of scores (n, d, 1 or k), the base score (1 or k,), rows and names."""
    attributions, bases, first_rows, names, k = [], [], None, None, len(fitted.classes)
    for fold in fitted.folds:
        model = fold.model
        model = model.estimator if isinstance(model, FrozenEstimator) else model
        steps, forest = split_pipeline(model)
        transformed: Any = transform_rows(model, X)
        is_sparse: bool = issparse(transformed)
        rows = transformed.toarray() if is_sparse else np.asarray(transformed)
        try:
            explainer = shap.TreeExplainer(forest)
        except Exception as error:  # shap raises an exception of its own, or what it ran into
            raise _not_a_forest(forest) from error
        phi = np.asarray(explainer.shap_values(rows, check_additivity=False), np.float64)
        base = np.atleast_1d(np.asarray(explainer.expected_value, np.float64))
        if phi.ndim != 3 or phi.shape[2] != k or len(getattr(forest, "classes_", ())) != k:
            raise _not_a_forest(forest)
        p = forest.predict_proba(_safe_indexing(transformed, np.arange(min(50, len(phi)))))
        if not np.allclose(base + phi[:50].sum(axis=1), p, atol=1e-6):
            raise _not_a_forest(forest)
        attributions.append(phi[:, :, 1:] if k == 2 else phi)
        bases.append(base[1:] if k == 2 else base)
        if first_rows is None:
            first_rows, names = rows, _names(steps, model)
    return np.mean(attributions, axis=0), np.mean(bases, axis=0), first_rows, names


def _not_a_forest(forest: Any) -> InputError:
    return InputError(
        "estimator must be a forest of scikit-learn for explanations, whose "
        f"probability is the mean over its trees, got {type(forest).__name__}"
    )


def _names(steps: list[Any], model: Any) -> list[str] | None:
    """Return the names of the forest's features, None where there are none."""
    if not steps:
        names = getattr(model, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]
    try:
        return [str(name) for name in model[:-1].get_feature_names_out()]
    except (AttributeError, ValueError):
        return None


def _beside(score: FloatArray, step: float) -> list[FloatArray]:
    """Return for each class the scores with that class moved, and the others in proportion."""
    if len(score) == 1:
        return [score + step]
    moved = []
    for c in range(len(score)):
        moved_score = np.clip(score[c] + step, 0, 1)
        near = score * (1 - moved_score) / max(1 - score[c], NEAR)
        near[c] = moved_score
        moved.append(near / near.sum())
    return moved


def _share(phi: FloatArray, moved: FloatArray, wanted: FloatArray, slope: FloatArray) -> FloatArray:
    """Return attributions (n, d, c) that sum to ``wanted`` (n, c), in proportion to phi."""
    near = np.abs(moved) < NEAR
    factor = np.where(near, slope, wanted / np.where(near, 1.0, moved))
    values: FloatArray = phi * factor[:, None]
    sizes = np.abs(phi)
    total = sizes.sum(axis=1, keepdims=True)
    # A forest without a split attributes nothing: all features have the same part of the rest.
    parts = np.where(total > 0, sizes / np.where(total > 0, total, 1.0), 1 / phi.shape[1])
    for _ in range(2):  # the second time what rounding has left
        values += parts * (wanted - values.sum(axis=1))[:, None]
    return values
