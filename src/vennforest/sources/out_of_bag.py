"""Out-of-bag scores: every example scored by the members of an ensemble that did not see it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from vennforest._messages import warn
from vennforest._validation import CodeArray, FloatArray, InputError, IntArray
from vennforest.forest import (
    BagsError,
    Members,
    Membership,
    Votes,
    leaves_rows_out,
    read_membership,
)
from vennforest.sources.checks import steps_obstacle
from vennforest.sources.data import Fold, OutOfBagFold, Subforest, TrainingData
from vennforest.sources.estimators import (
    split_pipeline,
    transform_rows,
    unshared_rows,
    without_frozen,
)

N_EXAMPLES_FOR_VARIANCE = 512
"""Calibration examples from which the variance between members is estimated."""

MAX_NOISE_DIFFERENCE = 0.25
"""Largest difference between classes in the mean noise of out-of-bag scores, as a part of the
variance of the scores. Plain forests have .00, balanced weights of a class of 10% up to 5."""

MIN_TREES = 20
"""Members below which a warning says that out-of-bag scores are much noisier than those by all."""

STANDARD_ERRORS_TO_REFUSE = 4.0
"""Standard errors from zero at which a difference in noise between classes is real."""

NO_WEIGHTS = 'leave class_weight and sample_weight out, or use calibrate_on="cv"'

UNEQUAL_BAGS = (
    "rows were drawn by their weight or class, so some classes are out of bag for far fewer trees"
)


def out_of_bag_fold(
    estimator: Any,
    data: TrainingData,
    subforest: Subforest,
    votes: Votes,
    seed: int,
    n_jobs: int | None,
    verify: bool = True,
) -> list[Fold]:
    """Train a bagged ensemble on all the data; members that did not see an example score it.

    ``subforest="exchangeable"`` are eqs. 10 and 11 of Johansson et al. (2018), ``"all"`` is
    Boström's (2008). ``verify`` compares the leaves of some trees with their bags; without it
    scores may have seen their own labels, so it is for studies of such forests alone.
    """
    if not leaves_rows_out(split_pipeline(estimator)[1]):
        raise ValueError(
            'estimator must leave examples out of bag for calibrate_on="oob" (a forest with '
            "bootstrap=True, a BaggingClassifier with bootstrap=True or max_samples below 1, or a "
            f"Pipeline that ends in one), got {type(without_frozen(estimator)).__name__} without: "
            'use calibrate_on="cv"'
        )
    if (reason := steps_obstacle(without_frozen(estimator))) is not None:
        raise BagsError(
            "estimator must treat new rows as it treats those given to fit for "
            f'calibrate_on="oob", got one in which {reason}: use calibrate_on="cv"',
            reason,
        )
    if subforest == "exchangeable" and data.groups is not None:
        raise InputError(
            'subforest must be "all" where groups are given, got "exchangeable": the drawn '
            "example leaves the calibration set and others of its group stay in it; "
            'use calibrate_on="cv"'
        )
    is_frozen = isinstance(estimator, FrozenEstimator)
    data = data if is_frozen else data.with_positive_weight()
    model, rows = _fit_ensemble(estimator, data)
    members = Members(split_pipeline(model)[1], votes, n_jobs)
    if (n_members := len(members.ensemble.estimators_)) < MIN_TREES:
        warn(
            f"the ensemble has {n_members} members: the out-of-bag scores that calibrate "
            "are by few of them and noisier than those of new rows, so probabilities are too near "
            'the middle: use 100 or more, or calibrate_on="cv"'
        )
    rows = members.check(rows)
    try:
        membership = read_membership(
            members.ensemble, rows, data.codes, data.weight, data.groups, verify
        )
    except BagsError as error:
        if not is_frozen:
            raise
        raise BagsError(
            'X and y must be what the frozen model was trained on for calibrate_on="oob", in the '
            "same order, got others: leave calibrate_on out to calibrate on new data"
        ) from error
    index = _calibration_rows(membership, data)
    if len(index) < len(data):
        data, rows = data.rows(index), _safe_indexing(rows, index)
        membership = Membership.from_dense(membership.dense()[:, index])
    scores = members.mean(rows, membership, np.arange(len(data)))
    fold = OutOfBagFold(
        **vars(data.fold(model, scores)),
        members=members,
        membership=membership,
        subforest=subforest,
        seed=seed,
        variance=_member_variance(members, rows, membership, scores),
    )
    _check_noise(fold.noise, scores, data.codes, data.classes)
    return [fold]


def _fit_ensemble(estimator: Any, data: TrainingData) -> tuple[Any, Any]:
    """Return the fitted model, and the rows that its ensemble, the last step, was trained on."""
    if isinstance(estimator, FrozenEstimator):
        check_is_fitted(split_pipeline(estimator)[1])
        return estimator, transform_rows(estimator, data.X)
    model = clone(estimator)
    ensemble, rows = split_pipeline(model)[1], None

    def fit(X: Any, *args: Any, **params: Any) -> Any:
        nonlocal rows
        rows = X
        del ensemble.fit
        return ensemble.fit(X, *args, **params)

    # The rows are those of fit_transform, which transform may not return again.
    ensemble.fit = fit
    model.fit(unshared_rows(model, data.X), data.y, **data.all_fit_params())
    return model, rows


def _calibration_rows(membership: Membership, data: TrainingData) -> IntArray:
    """Return the examples that are out of bag for some member, and warn of others."""
    counted = np.ones(len(data), bool) if data.weight is None else data.weight > 0
    out_of_bag = membership.counts() > 0
    n_left = int((~out_of_bag & counted).sum())
    if not n_left:
        return np.flatnonzero(counted)
    unit, advice = "examples", "grow more trees, or draw fewer samples for each (max_samples)"
    if data.groups is not None:
        unit = "whole groups of examples"
        advice += ', or use calibrate_on="cv", which keeps groups together'
    if not (out_of_bag & counted).any():
        raise ValueError(f"estimator must leave {unit} out of bag, got none that is: {advice}")
    n_of_class = np.bincount(data.codes[counted], minlength=len(data.classes))
    n_missing = np.bincount(data.codes[counted & ~out_of_bag], minlength=len(data.classes))
    worst = int((n_missing / np.maximum(n_of_class, 1)).argmax())
    if 2 * n_missing[worst] > n_of_class[worst] > 1 and 2 * n_left <= counted.sum():
        # Whether an example calibrates would depend on the label.
        raise BagsError(
            f"estimator must leave examples of every class out of bag, got {n_missing[worst]} of "
            f"{n_of_class[worst]} examples of {data.classes.tolist()[worst]!r} that every tree "
            f"saw: {NO_WEIGHTS}",
            UNEQUAL_BAGS,
        )
    if data.groups is not None and 2 * n_left > len(data):
        raise ValueError(
            f"estimator must leave most groups out of bag as a whole, got {n_left} of {len(data)} "
            f"examples whose group every tree saw: {advice}"
        )
    warn(
        f"{n_left} of {int(counted.sum())} examples are out of bag for no tree and do not "
        f"calibrate: {advice}"
    )
    return np.flatnonzero(out_of_bag & counted)


def _member_variance(
    members: Members, rows: Any, membership: Membership, scores: FloatArray
) -> float:
    """Return the variance between the members' scores s of a row, as a share of s (1 - s).

    Measured at some calibration examples ``rows`` (n, d) on the members that did not see them, and
    pooled over rows and classes.
    """
    sample = np.unique(np.linspace(0, len(scores) - 1, N_EXAMPLES_FOR_VARIANCE).astype(np.intp))
    may_score = membership.dense()[:, sample].T[:, :, None]
    count = may_score.sum(axis=1)
    means = scores[sample].reshape(len(sample), -1)
    values = members.per_member(_safe_indexing(rows, sample))
    squares = (values.reshape(*may_score.shape[:2], -1) - means[:, None]) ** 2
    variances = (may_score * squares).sum(axis=1) / np.maximum(count - 1, 1)
    has_several = np.broadcast_to(count > 1, means.shape)
    largest = float((means * (1 - means))[has_several].sum())
    return float(variances[has_several].sum()) / largest if largest > 0 else 0.0


def _check_noise(
    noise: FloatArray, scores: FloatArray, codes: CodeArray, classes: NDArray[Any]
) -> None:
    """Refuse out-of-bag scores of one class that are much noisier than those of another.

    Scikit-learn draws the rows of a tree by their weights, ``class_weight`` included. A class that
    is in nearly every bag is scored by few trees, so its scores spread because of the label.
    """
    present = [code for code in np.unique(codes) if (codes == code).sum() > 1]
    if len(present) < 2:
        return
    of_class = [noise[codes == code] for code in present]
    means = np.array([part.mean() for part in of_class])
    errors = np.array([part.std() / np.sqrt(len(part)) for part in of_class])
    low, high = means.argmin(), means.argmax()
    difference = means[high] - means[low]
    spread = scores.var(axis=0).mean() / (scores * (1 - scores)).mean().clip(1e-12)
    is_real = difference > STANDARD_ERRORS_TO_REFUSE * np.hypot(errors[low], errors[high])
    if is_real and difference > MAX_NOISE_DIFFERENCE * max(spread, 1e-300):
        raise BagsError(
            "estimator must leave examples of every class out of bag for about as many trees, got "
            f"a forest in which those of {classes.tolist()[present[high]]!r} are left out by far "
            f"fewer: {NO_WEIGHTS}",
            UNEQUAL_BAGS,
        )
