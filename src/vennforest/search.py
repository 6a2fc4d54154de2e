"""Choose a model's settings by the loss after calibration, without another split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import ParameterGrid
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, column_or_1d

from vennforest._validation import FloatArray, IntArray, check_weights, encode_labels
from vennforest.classifier import CalibratedClassifier
from vennforest.classifier.settings import resolve_estimator
from vennforest.metrics._inputs import group_numbers
from vennforest.multiprobability import Multiprobability

FOREST_GRID = {
    "estimator__min_samples_leaf": [1, 3, 10],
    "estimator__max_features": ["sqrt", 0.5],
}
"""What is tried of a random forest where nothing is given."""

BOOTSTRAPS = 500
"""Resamples of the rows behind the honest loss."""

SOURCES = ("oob", "cv")
"""Sources that score every row by models that have not seen it."""


class OutOfBagSearch(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Choose settings by the calibrated log loss of rows that no model has seen.

    Each setting is fitted once, to all rows. Its loss is that of ``oob_probability_``: each row is
    scored by trees that did not see it, and calibrated without its own label. The bags are
    verified as always. The raw out-of-bag loss would favour settings that merely calibrate the
    forest (``docs/how-to/tuning.md``).

    Parameters
    ----------
    estimator : CalibratedClassifier, default=None
        Not fitted; calibrated out of bag or over folds. None: the default of its class.
    param_grid : dict of str to sequence, or sequence of these, default=None
        As in scikit-learn's ``GridSearchCV``, such as ``{"estimator__min_samples_leaf": [1, 3]}``.
        None, for a random forest: leaves of 1, 3 and 10 rows, ``max_features`` of "sqrt" and 0.5.
    random_state : int, RandomState or None, default=None
        Seeds the model, the same for every setting, where it has no seed; and the resamples.

    Attributes
    ----------
    best_params_, best_estimator_ : dict, CalibratedClassifier
        The setting of the smallest loss, and the model fitted with it.
    best_loss_ : float
        Its log loss. As the smallest of several it is optimistic. All losses are means over the
        rows that every setting scores.
    honest_loss_ : float
        The log loss corrected for the choice: over resamples of the rows, the loss of the setting
        that is best on the drawn rows, on the rows that were not drawn (Tsamardinos et al. 2018,
        algorithm 3, BBC-CV). With groups, whole groups are drawn.
    settings_, losses_ : list of dict, ndarray of shape (settings,)
        The settings, and the log loss of each.
    classes_ : ndarray of shape (k,)
        The labels, sorted.

    References
    ----------
    Tsamardinos, Greasidou & Borboudakis (2018), https://doi.org/10.1007/s10994-018-5714-4.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = CalibratedClassifier(RandomForestClassifier(100))
    >>> search = OutOfBagSearch(model, {"estimator__min_samples_leaf": [1, 20]}, random_state=0)
    >>> search.fit(X, y).best_params_
    {'estimator__min_samples_leaf': 1}
    """

    def __init__(
        self,
        estimator: CalibratedClassifier | None = None,
        param_grid: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        *,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit every setting, and keep the one with the smallest calibrated loss.

        X (n, d), y, weights and groups (n,) are as of `CalibratedClassifier.fit`; weights count in
        the loss too.

        Raises
        ------
        TypeError
            If the estimator is no `CalibratedClassifier`.
        ValueError
            If the model is calibrated neither out of bag nor over folds, no row is scored, or
            there is no grid for the model; and whatever its ``fit`` raises.
        """
        random = check_random_state(self.random_state)
        base = CalibratedClassifier() if self.estimator is None else clone(self.estimator)
        if not isinstance(base, CalibratedClassifier):
            name = type(base).__name__
            raise TypeError(
                f"estimator must be a CalibratedClassifier, got {name}: "
                f"use CalibratedClassifier({name}(…))"
            )
        if base.estimator is None:
            base.set_params(estimator=resolve_estimator(None, base.n_jobs))
        if base.random_state is None:
            base.set_params(random_state=random.randint(2**31 - 1))
        codes, _ = encode_labels(column_or_1d(y))
        weight = check_weights(sample_weight, len(codes))
        weight = np.ones(len(codes)) if weight is None else weight
        given = {"sample_weight": sample_weight, "groups": groups}
        given = {name: value for name, value in given.items() if value is not None}
        self.settings_ = list(ParameterGrid(self._grid(base)))
        if not self.settings_:
            raise ValueError(f"param_grid must have a setting, got {self.param_grid!r}")
        best, kept, table = np.inf, -1, np.empty((len(codes), len(self.settings_)))
        for at, (column, setting) in enumerate(zip(table.T, self.settings_, strict=True)):
            model = clone(base).set_params(**setting).fit(X, y, **given)
            if model.calibrate_on_ not in SOURCES:
                raise ValueError(
                    f"estimator must be calibrated on one of {list(SOURCES)}, got "
                    f"{model.calibrate_on_!r}, which does not score every row by a model that "
                    "has not seen it: use scikit-learn's GridSearchCV"
                )
            own = model.oob_probability_[np.arange(len(codes)), codes]
            column[:] = -np.log(np.maximum(own, np.finfo(float).tiny))
            scored = np.isfinite(table[:, : at + 1]).all(axis=1) & (weight > 0)
            if not scored.any():
                raise ValueError(
                    "param_grid must leave rows that every setting scores, got none at "
                    f"{setting}: use more trees"
                )
            loss = np.average(column[scored], weights=weight[scored])
            if loss < best:
                best, kept, self.best_estimator_ = loss, at, model
        losses = np.average(table[scored], axis=0, weights=weight[scored])
        self.losses_, first = losses, int(np.argmin(losses))
        self.best_params_, self.best_loss_ = self.settings_[first], float(losses[first])
        if first != kept:  # rows that a later setting does not score have decided
            model = clone(base).set_params(**self.best_params_)
            self.best_estimator_ = model.fit(X, y, **given)
        unit = np.arange(len(codes)) if groups is None else group_numbers(groups, len(codes))
        self.honest_loss_ = bootstrap_corrected(table[scored], weight[scored], unit[scored], random)
        self.classes_ = self.best_estimator_.classes_
        return self

    def _grid(self, model: CalibratedClassifier) -> Any:
        if self.param_grid is not None:
            return self.param_grid
        if not isinstance(model.estimator, RandomForestClassifier):
            raise ValueError(
                "param_grid must be given for an estimator that is no random forest, got None "
                f"for {type(model.estimator).__name__}"
            )
        return FOREST_GRID

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the best model's labels (n,)."""
        return self._best().predict(X)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the best model's probabilities (n, k)."""
        return self._best().predict_proba(X)

    def predict_multiprobability(self, X: Any) -> Multiprobability:
        """Return the best model's bounds (n, k)."""
        return self._best().predict_multiprobability(X)

    def _best(self) -> CalibratedClassifier:
        check_is_fitted(self)
        best: CalibratedClassifier = self.best_estimator_
        return best


def bootstrap_corrected(
    losses: FloatArray, weight: FloatArray, unit: IntArray, random: np.random.RandomState
) -> float:
    """Return the loss to expect of choosing the column (n, settings) with the smallest mean.

    Rows of one ``unit`` (n,) are drawn together, as many as there are with replacement,
    `BOOTSTRAPS` times.
    """
    names, unit = np.unique(unit, return_inverse=True)
    n, found = len(names), []
    weighted = losses * weight[:, None]
    for _ in range(BOOTSTRAPS):
        drawn = np.bincount(random.randint(n, size=n), minlength=n)[unit]
        left = drawn == 0
        if left.any():
            best = int(np.argmin(drawn @ weighted))
            found.append(weighted[left, best].sum() / weight[left].sum())
    return float(np.mean(found))
