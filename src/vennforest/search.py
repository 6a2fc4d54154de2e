"""Choose a model's settings by the loss after calibration, without another split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import ParameterGrid
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, column_or_1d

from vennforest._validation import FloatArray, check_weights, encode_labels
from vennforest.classifier import CalibratedClassifier
from vennforest.forest import MixedForestClassifier
from vennforest.multiprobability import Multiprobability

FOREST_GRID = {
    "estimator__min_samples_leaf": [1, 3, 10],
    "estimator__max_features": ["sqrt", 0.5],
}
"""What is tried of a random forest where nothing is given."""

BOOTSTRAPS = 500
"""Resamples of the rows behind the honest loss."""


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
    best_estimator_ : CalibratedClassifier
        Fitted with the setting of the smallest loss.
    best_params_ : dict
        That setting.
    best_loss_ : float
        Its log loss. As the smallest of several it is optimistic.
    honest_loss_ : float
        The log loss corrected for the choice: over resamples of the rows, the loss of the setting
        that is best on the drawn rows, on the rows that were not drawn (Tsamardinos et al. 2018,
        algorithm 3, BBC-CV).
    losses_ : ndarray of shape (settings,)
        Log loss of every setting.
    settings_ : list of dict
        The settings, in the same order.
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

    _sources: ClassVar[tuple[str, ...]] = ("oob", "cv")

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

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, d)
            What the model takes.
        y : array-like of shape (n,)
            Labels of any dtype.
        sample_weight, groups : array-like of shape (n,), optional
            As for `CalibratedClassifier.fit`; weights count in the loss too.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the model is calibrated neither out of bag nor over folds, no row is scored, or
            there is no grid for the model; and whatever its ``fit`` raises.
        """
        random = check_random_state(self.random_state)
        base = CalibratedClassifier() if self.estimator is None else clone(self.estimator)
        if base.estimator is None:
            base.set_params(estimator=RandomForestClassifier(300, n_jobs=base.n_jobs))
        if base.random_state is None:
            base.set_params(random_state=random.randint(2**31 - 1))
        codes, _ = encode_labels(column_or_1d(y))
        weight = check_weights(sample_weight, len(codes))
        given = {"sample_weight": sample_weight, "groups": groups}
        given = {name: value for name, value in given.items() if value is not None}
        self.settings_ = list(ParameterGrid(self._grid(base)))
        best, losses = np.inf, []
        for setting in self.settings_:
            model = clone(base).set_params(**setting).fit(X, y, **given)
            if model.calibrate_on_ not in self._sources:
                raise ValueError(
                    f"estimator must be calibrated on one of {list(self._sources)}, got "
                    f"{model.calibrate_on_!r}, which does not score every row honestly: use "
                    "scikit-learn's GridSearchCV"
                )
            own = model.oob_probability_[np.arange(len(codes)), codes]
            losses.append(-np.log(np.maximum(own, np.finfo(float).tiny)))
            if (mean := _mean(losses[-1], weight)) < best:
                best, self.best_estimator_, self.best_params_ = mean, model, setting
        table = np.column_stack(losses)
        scored = np.isfinite(table).all(axis=1)
        table, weight = table[scored], np.ones(len(codes))[scored] if weight is None else weight[scored]
        self.classes_ = self.best_estimator_.classes_
        self.losses_ = np.average(table, axis=0, weights=weight)
        self.best_loss_ = float(self.losses_.min())
        self.honest_loss_ = bootstrap_corrected(table, weight, random)
        return self
