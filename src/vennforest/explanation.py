"""Attributions of calibrated probabilities to features, by SHAP values of the trees' score."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.special import expit, logit, softmax
from sklearn.utils import _safe_indexing

from vennforest._messages import needed
from vennforest._validation import FloatArray, InputError
from vennforest.classifier import CalibratedClassifier
from vennforest.classifier.blend import BlendedModel, BlendMember
from vennforest.classifier.prediction import RowScores, intervals_at, predict_scores, score_rows
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


def explain(
    model: CalibratedClassifier, X: Any, *, interval: bool = False, level: float = 0.95
) -> Any:
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
    interval : bool, default=False
        Whether to attribute the two ends of the confidence interval too.
    level : float, default=0.95
        Level of the confidence interval, in (0, 1).

    Returns
    -------
    shap.Explanation, or tuple of three
        Explanation of the probability; with ``interval`` also of the lower and the upper end.
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
    fitted = model._state
    if model.votes == "hard":
        raise InputError('votes must be "soft" for explanations, got "hard": fit it with "soft"')
    # Models refuse rows of other columns; shap reads them by place, beyond the last if need be.
    scored, codes = score_rows(fitted, X, bounds=False, score_all=interval)
    phi, base, of_logits, columns = _explain_scores(shap, fitted.folds, X)
    k = len(fitted.classes)
    n_rows = 1 if codes is None else len(codes)  # without groups one row answers for all

    def log_odds(scored: list[RowScores]) -> list[FloatArray]:
        """Return log-odds of the probabilities and, with ``interval``, of both interval ends."""
        p = predict_scores(fitted, scored, codes).p
        tables = [p]
        if interval:
            intervals = intervals_at(fitted, scored, codes, level).widen(p)
            tables += [intervals.lower, intervals.upper]
        return [logit(np.clip(t[:, 1:] if k == 2 else t, EDGE, 1 - EDGE)) for t in tables]

    def log_odds_at(score: FloatArray) -> list[FloatArray]:
        score = np.clip(score, 0, 1)
        scores = np.full(n_rows, score[0]) if len(score) == 1 else np.tile(score, (n_rows, 1))
        return log_odds([RowScores(scores, None, scores)] * len(fitted.folds))

    rows, output_names = np.column_stack([*columns.values()]), fitted.classes.tolist()
    options = {"feature_names": [*columns], "output_names": None if k == 2 else output_names}
    explanations = []
    for values, middle in _attributions(phi, base, of_logits, log_odds(scored), log_odds_at):
        if k == 2:
            values, middle = values[:, :, 0], middle[:, 0]
        explanations.append(shap.Explanation(values, middle.copy(), rows, **options))
    return tuple(explanations) if interval else explanations[0]


def _attributions(
    phi: FloatArray,
    base: FloatArray,
    of_logits: bool,
    targets: list[FloatArray],
    values_at: Callable[[FloatArray], list[FloatArray]],
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield the attributions (n, d, c) and base values (n, c) of functions of the scores.

    ``targets`` (n, c) are their values at the rows, and ``values_at`` gives them at one score.
    """
    at_base = values_at(_probabilities_of_logits(base) if of_logits else base)
    moved = _moved_logits if of_logits else _moved_scores
    below, above = ([values_at(near) for near in moved(base, d)] for d in (-NEAR, NEAR))
    for i, target in enumerate(targets):
        middle = np.broadcast_to(at_base[i], target.shape)
        rises = [above[c][i][:, c] - below[c][i][:, c] for c in range(len(above))]
        slope = np.broadcast_to(np.column_stack(rises) / (2 * NEAR), target.shape)
        yield _share_out(phi, phi.sum(axis=1), target - middle, slope), middle


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
    place, aligned = {name: j for j, name in enumerate(of_all)}, []
    for phi, of_model in zip(phis, columns, strict=True):
        aligned.append(np.zeros((len(phi), len(place), phi.shape[2])))
        aligned[-1][:, [place[name] for name in of_model]] = phi
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

        def logits_at(scores: list[FloatArray], member: BlendMember = member) -> list[FloatArray]:
            logits = member.log_probabilities(scores)
            return [logits[:, None] if logits.ndim == 1 else logits]

        def logits_at_one(score: FloatArray, logits_at: Any = logits_at) -> list[FloatArray]:
            score = np.clip(score, 0, 1)
            return list(logits_at([score if len(score) == 1 else score[None]]))

        target = logits_at(scores)
        ((values, middle),) = _attributions(phi, of_base, of_logits, target, logits_at_one)
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
    try:
        explainer = shap.TreeExplainer(last)
        # Boosters read categories from the columns of a data frame.
        table = transformed if hasattr(transformed, "iloc") else rows
        with warnings.catch_warnings():  # that LightGBM's values have changed their form
            warnings.filterwarnings("ignore", "LightGBM binary classifier", UserWarning)
            phi = np.asarray(explainer.shap_values(table, check_additivity=False), np.float64)
    except Exception as error:  # shap raises exceptions of many types
        raise _not_of_trees(last) from error
    base = np.atleast_1d(np.asarray(explainer.expected_value, np.float64))
    p = last.predict_proba(_safe_indexing(transformed, np.arange(min(50, len(phi)))))
    return *_checked_scores(phi, base, p, last), columns


def _checked_scores(
    phi: FloatArray, base: FloatArray, p: FloatArray, trees: Any
) -> tuple[FloatArray, FloatArray, bool]:
    """Return attributions and base scores of the classes, whether of logits; refuse wrong ones.

    The sums of the first rows must be their probabilities p (m, k), or give these as logits.
    """
    k, m = p.shape[1], len(p)
    if phi.ndim == 2 and k == 2:  # of the second class alone
        phi, base = phi[:, :, None], base[-1:]
    if phi.ndim == 3 and phi.shape[2] == len(base) in (1 if k == 2 else k, k):
        scores = base + phi[:m].sum(axis=1)
        if scores.shape == p.shape and np.allclose(scores, p, atol=1e-6):
            return (phi[:, :, 1:], base[1:], False) if k == 2 else (phi, base, False)
        expected, single_precision = p[:, -scores.shape[1] :], 1e-4
        if np.allclose(_probabilities_of_logits(scores), expected, atol=single_precision):
            return phi, base, True
    raise _not_of_trees(trees)


def _probabilities_of_logits(logits: FloatArray) -> FloatArray:
    """Return probabilities of log-odds (..., 1) of the second class, or of logits (..., k)."""
    return np.asarray(expit(logits) if logits.shape[-1] == 1 else softmax(logits, axis=-1))


def _not_of_trees(estimator: Any) -> InputError:
    return InputError(
        "estimator must be a forest of scikit-learn, whose probability is the mean over its trees, "
        "a LinearClassifier or a gradient booster for explanations, whose trees shap.TreeExplainer "
        f"reads, got {type(estimator).__name__}"
    )


def _names(steps: list[Any], model: Any, d: int) -> list[str]:
    """Return the names of the d features of a model; without any, as scikit-learn forms them."""
    try:
        return [*map(str, model[:-1].get_feature_names_out() if steps else model.feature_names_in_)]
    except (AttributeError, ValueError):
        prefix = type(steps[-1]).__name__.lower() if steps else "x"
        return [f"{prefix}{j}" for j in range(d)]


def _moved_logits(logits: FloatArray, step: float) -> list[FloatArray]:
    """Return the probabilities for each class with its logit moved by ``step``."""
    return [_probabilities_of_logits(logits + step * unit) for unit in np.eye(len(logits))]


def _moved_scores(score: FloatArray, step: float) -> list[FloatArray]:
    """Return a score vector for each class: its score moved by ``step``, the others rescaled."""
    if len(score) == 1:
        return [score + step]
    moved = []
    for c in range(len(score)):
        moved_score = np.clip(score[c] + step, 0, 1)
        near = score * (1 - moved_score) / max(1 - score[c], NEAR)
        near[c] = moved_score
        moved.append(near / near.sum())
    return moved


def _share_out(
    phi: FloatArray, moved: FloatArray, wanted: FloatArray, slope: FloatArray
) -> FloatArray:
    """Return attributions (n, d, c) that sum to ``wanted`` (n, c), in proportion to phi."""
    near = np.abs(moved) < NEAR
    factor = np.where(near, slope, wanted / np.where(near, 1.0, moved))
    values: FloatArray = phi * factor[:, None]
    sizes = np.abs(phi)
    total = sizes.sum(axis=1, keepdims=True)
    parts = np.where(total > 0, sizes / np.where(total > 0, total, 1.0), 1 / phi.shape[1])
    for _ in range(2):  # the second time for rounding errors
        values += parts * (wanted - values.sum(axis=1))[:, None]
    return values
