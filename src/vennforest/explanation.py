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
from vennforest._validation import FloatArray, InputError, IntArray
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
    ``s = base + sum_j phi_j``. Calibration turns scores into log-odds by a curve g. The base value
    is g(base), and each feature has the part ``phi_j (g(s) - g(base)) / (s - base)``: what the
    curve adds is shared in proportion to the attributions, so signs and ranking within a row
    are TreeExplainer's where g rises, and the values with the base value sum to the log-odds of
    ``predict_proba``. Within 0.001 of the base score, where the ratio is not stable, the slope
    there is taken and what remains is shared in proportion to the sizes. Probabilities within 1e-6
    of 0 or 1 count as that. Groups and priors are in g.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from vennforest import CalibratedClassifier, explain
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = CalibratedClassifier(random_state=0).fit(X[:400], y[:400])
    >>> found = explain(model, X[406:408])
    >>> (1 / (1 + np.exp(-found.base_values - found.values.sum(axis=1)))).round(2)
    array([0.58, 0.97])
    """
    shap = needed("shap", "explanations", "shap")
    check_is_fitted(model, "classes_")
    if not isinstance(model, CalibratedClassifier):
        raise InputError(
            f"model must be a CalibratedClassifier, got {type(model).__name__}: fit one"
        )
    fitted = model._state
    if model.votes == "hard":
        raise InputError(
            'votes must be "soft" for explanations, whose attributions are of mean probabilities, '
            'got "hard": fit the CalibratedClassifier with votes="soft"'
        )
    phi, base, rows, names = _of_scores(shap, fitted, X)
    score = base + phi.sum(axis=1)
    # Without groups one row has the answers of all at a score.
    codes = group_codes_of(fitted, X)
    n_rows = 1 if codes is None else len(codes)

    def ends(scored: list[RowScores], codes: IntArray | None) -> list[FloatArray]:
        """Return the log-odds of the probability, and of the ends of the interval."""
        p = predict_scores(fitted, scored, codes)[1]
        tables = [p]
        if interval:
            intervals = intervals_at(fitted, scored, codes, level).widen(p)
            tables += [intervals.lower, intervals.upper]
        is_binary = len(fitted.classes) == 2
        return [logit(np.clip(t[:, 1:] if is_binary else t, EDGE, 1 - EDGE)) for t in tables]

    def ends_at(score: FloatArray) -> list[FloatArray]:
        return ends(_at(fitted, score, n_rows), codes)

    at_base = ends_at(base)
    around = [[ends_at(near) for near in _beside(base, d)] for d in (-NEAR, NEAR)]
    at_rows = ends(score_rows(fitted, X, bounds=False, by_all=interval), codes)
    made = []
    for number, target in enumerate(at_rows):
        middle = np.broadcast_to(at_base[number], target.shape)
        below, above = (
            np.column_stack([one[number][:, c] for c, one in enumerate(each)]) for each in around
        )
        slope = np.broadcast_to((above - below) / (2 * NEAR), target.shape)
        values = _share(phi, score - base, target - middle, slope)
        if len(fitted.classes) == 2:
            values, middle = values[:, :, 0], middle[:, 0]
        made.append(
            shap.Explanation(
                values,
                base_values=middle.copy(),
                data=rows,
                feature_names=names,
                output_names=None if values.ndim == 2 else fitted.classes.tolist(),
            )
        )
    return tuple(made) if interval else made[0]


def _of_scores(
    shap: Any, fitted: FittedClassifier, X: Any
) -> tuple[FloatArray, FloatArray, Any, list[str] | None]:
    """Return attributions of scores (n, d, 1 or k), the base score (1 or k,), rows and names."""
    every, bases, rows, names = [], [], None, None
    k = len(fitted.classes)
    for fold in fitted.folds:
        model = fold.model
        model = model.estimator if isinstance(model, FrozenEstimator) else model
        steps, forest = split_pipeline(model)
        seen: Any = transform_rows(model, X)
        names = _names(steps, model) if rows is None else names
        given: Any = seen
        sparse: bool = issparse(given)
        seen = given.toarray() if sparse else np.asarray(given)
        try:
            explainer = shap.TreeExplainer(forest)
        except Exception as error:  # shap raises an exception of its own, or what it ran into
            raise _other(forest) from error
        phi = np.asarray(explainer.shap_values(seen, check_additivity=False), np.float64)
        base = np.atleast_1d(np.asarray(explainer.expected_value, np.float64))
        if phi.ndim != 3 or phi.shape[2] != k or len(getattr(forest, "classes_", ())) != k:
            raise _other(forest)
        some = forest.predict_proba(_safe_indexing(given, np.arange(min(50, len(phi)))))
        if not np.allclose(base + phi[:50].sum(axis=1), some, atol=1e-6):
            raise _other(forest)
        every.append(phi[:, :, 1:] if k == 2 else phi)
        bases.append(base[1:] if k == 2 else base)
        rows = seen if rows is None else rows
    mean: FloatArray = every[0] if len(every) == 1 else np.mean(every, axis=0)
    return mean, np.mean(bases, axis=0), rows, names


def _other(forest: Any) -> InputError:
    return InputError(
        "estimator must be a forest of scikit-learn, of all classes, for explanations, whose "
        f"probability is the mean of its trees', got {type(forest).__name__}: use "
        "CalibratedClassifier() over a RandomForestClassifier or an ExtraTreesClassifier"
    )


def _names(steps: list[Any], model: Any) -> list[str] | None:
    """Return the names of the features that the forest is given, None where there are none."""
    if steps:
        try:
            given: list[str] = [str(name) for name in model[:-1].get_feature_names_out()]
        except (AttributeError, ValueError):
            return None
        return given
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def _at(fitted: FittedClassifier, score: FloatArray, n_rows: int) -> list[RowScores]:
    """Return scores of rows that are all equal to a score, by every fold."""
    score = np.clip(score, 0, 1)
    scores = np.full(n_rows, score[0]) if len(score) == 1 else np.tile(score, (n_rows, 1))
    return [RowScores(scores, None, scores, [scores])] * len(fitted.folds)


def _beside(score: FloatArray, step: float) -> list[FloatArray]:
    """Return for each class the scores with its own moved, those of the others in proportion."""
    if len(score) == 1:
        return [score + step]
    moved = []
    for c in range(len(score)):
        own = np.clip(score[c] + step, 0, 1)
        near = score * (1 - own) / max(1 - score[c], NEAR)
        near[c] = own
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
