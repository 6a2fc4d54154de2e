"""How often each tree's bag holds an object that is drawn as the training examples were."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.utils.class_weight import compute_class_weight

from vennforest._validation import CodeArray, FloatArray, IntArray
from vennforest.forest.membership import samples_of
from vennforest.sources.base import TrainingData


@dataclass(frozen=True)
class Bags:
    """What the bags of a forest hold, and what a further object's would.

    Attributes
    ----------
    forest : RandomForestClassifier or ExtraTreesClassifier
        Fitted.
    codes : ndarray of shape (n,)
    example_weight : ndarray of shape (n,) or None
        What one draw of an example weighs in every tree's leaves; None: 1.
    units : ndarray of shape (n_trees, k)
        What one draw of a further object weighs, by its label.
    rates : ndarray of shape (k,)
        The probability that a draw takes the object, by its label.
    n_drawn : int
        Draws of a bag.
    """

    forest: Any
    codes: CodeArray
    example_weight: FloatArray | None
    units: FloatArray
    rates: FloatArray
    n_drawn: int

    @classmethod
    def read(cls, forest: Any, data: TrainingData) -> Bags:
        """Read the bags of a forest that was fitted to the data.

        scikit-learn draws in proportion to sample and class weights from version 1.9 on; before,
        every example is drawn alike, and the leaves hold the weights.
        """
        n, k = len(data), len(data.classes)
        subsample = forest.class_weight == "balanced_subsample"
        units = np.ones((len(forest.estimators_), k))
        drawn, n_drawn = True, 0
        for t, samples in enumerate(samples_of(forest, n)):
            counts = np.bincount(samples, minlength=n)
            n_drawn = len(samples)
            if subsample:
                units[t] = _balanced(counts, data.codes, k)
            tree = forest.estimators_[t].tree_
            held = tree.weighted_n_node_samples[0] * tree.value[0, 0]
            of_draws = np.bincount(data.codes, counts, k) * units[t]
            drawn = drawn and bool(np.allclose(held, of_draws, rtol=1e-6))
        of_object = _class_weights(forest, data, data.weight if drawn else None)
        weight = of_object[data.codes]
        weight = weight if data.weight is None else weight * data.weight
        if drawn:
            # As any example of its weight is drawn: n + 1 places for n draws would be farther off.
            return cls(forest, data.codes, None, units, of_object / weight.sum(), n_drawn)
        return cls(forest, data.codes, weight, units * of_object, np.full(k, 1 / n), n_drawn)

    def weights(self) -> Iterator[FloatArray]:
        """Yield for each tree what each example weighs in its leaves, (n,)."""
        n = len(self.codes)
        subsample = self.forest.class_weight == "balanced_subsample"
        for samples in samples_of(self.forest, n):
            counts = np.bincount(samples, minlength=n)
            weight = counts.astype(np.float64)
            if self.example_weight is not None:
                weight *= self.example_weight
            if subsample:
                weight *= _balanced(counts, self.codes, self.units.shape[1])[self.codes]
            yield weight

    def thresholds(self) -> NDArray[np.uint64]:
        """Return the distribution of an object's draws, as ``draw_bag`` wants it."""
        rates = self.rates[:1] if (self.rates == self.rates[0]).all() else self.rates
        return binomial_thresholds(self.n_drawn, rates)


def binomial_thresholds(n: int, rates: FloatArray) -> NDArray[np.uint64]:
    """Return 2**64 times the probabilities of at most 0, 1, ... successes, (len(rates), m)."""
    mean = n * rates.max()
    most = min(n, int(mean + 12 * np.sqrt(mean)) + 40)
    below: FloatArray = np.asarray(stats.binom.cdf(np.arange(most + 1), n, rates[:, None]))
    return thresholds_of(below)


def thresholds_of(below: FloatArray) -> NDArray[np.uint64]:
    """Return probabilities of at most 0, 1, ... as ``draw_bag`` wants them."""
    below = below[:, : int((below < 1).any(axis=0).sum())] if (below < 1).any() else below[:, :1]
    return (np.minimum(below, 1 - 2.0**-53) * 2.0**64).astype(np.uint64)


def _class_weights(forest: Any, data: TrainingData, weight: FloatArray | None) -> FloatArray:
    """Return the weight of each class, (k,), as far as it is the same for all trees."""
    kind = None if forest.class_weight == "balanced_subsample" else forest.class_weight
    counted = {} if weight is None else {"sample_weight": weight}
    weights: FloatArray = compute_class_weight(kind, classes=data.classes, y=data.y, **counted)
    return weights


def _balanced(counts: IntArray, codes: CodeArray, k: int) -> FloatArray:
    """Return the class weights of ``balanced_subsample`` for a bag of these counts.

    A class that is not in the bag gets what it would have if it were, once.
    """
    drawn = np.bincount(codes, weights=counts, minlength=k)
    weights: FloatArray = counts.sum() / ((drawn > 0).sum() * np.maximum(drawn, 1))
    return weights
