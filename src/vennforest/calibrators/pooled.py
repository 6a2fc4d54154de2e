"""A weighted mean of several calibrators, each weighted by how well it does on folds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

import attrs
import numpy as np
from attrs.validators import instance_of
from numpy.typing import NDArray
from sklearn.base import clone

from vennforest._state import stored
from vennforest._validation import (
    FloatArray,
    InputError,
    IntArray,
    check_count,
    check_number,
    require,
)
from vennforest.calibrators.core.formula import Terms, summed
from vennforest.calibrators.core.interface import Calibrator, Learnt
from vennforest.calibrators.core.scores import On, group, more_differ
from vennforest.calibrators.maps.log_odds import PlattScaling, SplineCalibration
from vennforest.calibrators.maps.softmax import MatrixScaling, ToProbabilities

PRIOR = 0.5
"""Examples that each member counts to have predicted before any is seen."""

MAX_STEPS = 1_000
"""Steps of expectation and maximisation."""

TOLERANCE = 1e-8
"""Largest change of a weight after which they are over."""


SHRINKAGES = (0.001, 0.003, 0.01, 0.03, 0.1)
"""Shrinkages that ``members="auto"`` chooses among."""

MANY = 10_000
"""Examples from which on the first fold alone is held out."""

ENOUGH = 4
"""Examples for each slope of a full matrix from which on one ridge is as good as another."""


def default_members(cells: Cells, k: int) -> dict[str, Calibrator]:
    """Return the members that ``members="auto"`` stands for, by name."""
    c = best_shrinkage(cells, k)
    members: dict[str, Calibrator] = {
        "shared": MatrixScaling("shared", shrinkage=c),
        "full": MatrixScaling("full", shrinkage=c),
    }
    if k == 2 or cells.weight.sum() < ENOUGH * k**2:
        members["full, heavy ridge"] = MatrixScaling("full", ridge=5.0, shrinkage=c)
    if k == 2:
        members["platt"] = PlattScaling(on="logit")
        members["spline"] = SplineCalibration(shrinkage=c)
    elif len(members) > 2:
        members["full, light ridge"] = MatrixScaling("full", ridge=0.3, shrinkage=c)
    return members


def best_shrinkage(cells: Cells, k: int) -> float:
    """Return the shrinkage under which the map of one shared slope has the least log loss."""
    rows = np.arange(len(cells.codes))
    losses = []
    for c in SHRINKAGES:
        model = _fit_member(MatrixScaling("shared", shrinkage=c), cells, k)
        own = model._predict_proba(cells.scores)[rows, cells.codes]
        losses.append(-float(cells.weight @ np.log(np.maximum(own, np.finfo(float).tiny))))
    # Of those that rounding alone sets apart (a slope of 0) the largest.
    alike = np.array(losses) <= min(losses) + 1e-9 * float(cells.weight.sum())
    return SHRINKAGES[int(np.flatnonzero(alike)[-1])]


CELLS = 4_096
"""Scores of two classes from which on near-equal ones are put together."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Distinct pairs of score (m,) or (m, k) and label, with their weights above zero.

    Label by label, each in the order of that label's own score.
    """

    scores: FloatArray
    codes: IntArray
    weight: FloatArray

    @classmethod
    def of(cls, scores: FloatArray, codes: IntArray, weight: FloatArray | None) -> Cells:
        """Return the cells of a calibration set.

        Many scores of two classes are put together where they are nearly equal, see `group`.
        """
        w = np.ones(len(codes)) if weight is None else weight
        if scores.ndim == 1 and more_differ(scores, CELLS):
            x, total, positive = group(scores, w, w * (codes == 1), CELLS)
            both = np.concatenate([total - positive, positive])
            code = np.repeat(np.arange(2), len(x))
            scores, codes, w = np.tile(x, 2)[both > 0], code[both > 0], both[both > 0]
        rows = scores[:, None] if scores.ndim == 1 else scores
        if scores.ndim == 1:
            own = np.where(codes == 1, scores, -scores)
            order = np.lexsort([own, codes])
        else:
            own = scores[np.arange(len(codes)), codes]
            order = np.lexsort([*scores.T[::-1], own, codes])
        rows, codes, w = rows[order], codes[order], w[order]
        new = np.append(True, (codes[1:] != codes[:-1]) | (rows[1:] != rows[:-1]).any(axis=1))
        total = np.add.reduceat(w, np.flatnonzero(new))
        return cls(scores[order][new], codes[new], total)

    def select(self, weight: FloatArray) -> Cells:
        """Return the cells of which something is left under other weights (m,)."""
        there = weight > 0
        return Cells(self.scores[there], self.codes[there], weight[there])

    def split(self, n_folds: int) -> Iterator[FloatArray]:
        """Yield each fold's share (m,) of the cells' weights.

        The examples of a label lie side by side on a line in the cells' order, each as long as
        its weight, and the units of the line are dealt out to the folds in a shuffled order that
        is always the same. So the folds do not depend on the order of the examples, an example of
        weight 2 is treated as two examples are, and exchanging labels (and scores) changes
        nothing. Without the shuffle every fold would have nearly the same shares of labels at
        each score, and a map that follows chance would look as good as it does on what it was
        fitted to.
        """
        ends = np.cumsum(self.weight)
        first = np.flatnonzero(np.append(True, self.codes[1:] != self.codes[:-1]))
        sizes = np.diff(np.append(first, len(ends)))
        ends -= np.repeat((ends - self.weight)[first], sizes)
        # Sums of other weights than integers may leave a hair beyond a unit.
        units = np.ceil(np.maximum.reduceat(ends, first) * (1 - 1e-12)).astype(np.int64)
        deals = [_deal(int(n), n_folds) for n in np.clip(units, 1, LONGEST)]
        for fold in range(n_folds):
            share = np.empty(len(ends))
            for start, size, deal in zip(first, sizes, deals, strict=True):
                line = np.append(0.0, ends[start : start + size])
                share[start : start + size] = np.diff(_length_within(line, deal == fold))
            yield np.clip(share, 0.0, self.weight)


LONGEST = 1 << 20
"""Units of a line that are shuffled; a longer line repeats them."""


def _deal(units: int, n_folds: int) -> IntArray:
    """Return the fold of each unit, (units,): equally many each, in shuffled order."""
    return np.random.RandomState(0).permutation(np.arange(units) % n_folds)


def _length_within(x: FloatArray, mine: NDArray[np.bool_]) -> FloatArray:
    """Return how much of each [0, x] lies in the units that are mine, repeated without end."""
    total = np.append(0.0, np.cumsum(mine))
    rounds = np.floor(x / len(mine))
    rest = np.clip(x - rounds * len(mine), 0.0, len(mine))
    unit = np.minimum(rest.astype(np.intp), len(mine) - 1)
    length: FloatArray = rounds * total[-1] + total[unit] + (rest - unit) * mine[unit]
    return length


@stored("pool")
@attrs.frozen(eq=False)
class Pool(Learnt):
    """Fitted members and their weights, which see probabilities."""

    to_probabilities: ToProbabilities = attrs.field(validator=instance_of(ToProbabilities))
    members: dict[str, Any]
    weights: dict[str, float]

    def __attrs_post_init__(self) -> None:
        """Refuse weights that are no shares."""
        require(
            isinstance(self.members, dict) and isinstance(self.weights, dict),
            "members and weights must be dictionaries",
        )
        require(self.members and self.weights.keys() == self.members.keys(), "a weight for each")
        for weight in self.weights.values():
            check_number(weight, "weights", 0, 1)
        require(abs(sum(self.weights.values()) - 1) < 1e-9, "weights must sum to 1")

    def check_classes(self, k: int) -> None:
        """Refuse members of other classes."""
        self.to_probabilities.check_classes(k)
        for member in self.members.values():
            require(len(member.classes_) == k, f"members must be of {k} classes")


@stored("pooled-calibration")
class PooledCalibration(Calibrator):
    """A pool: the weighted mean of what several calibrators say.

    ``p = sum_m weight_m p_m``, a linear opinion pool. Each member is fitted to all calibration
    examples. The weights are those under which the members, fitted to the other folds, have
    predicted the labels of each fold best: stacking (Wolpert 1992) with the log loss.

    Parameters
    ----------
    members : "auto", dict of str to calibrator, or sequence of calibrators, default="auto"
        What is pooled; the dict's names become the keys of the weights. ``"auto"``:
        for two classes `MatrixScaling` with a shared slope and with full ones under ridges of 1
        and 5, `PlattScaling` on log-odds, and `SplineCalibration`; for more `MatrixScaling` with
        a shared slope and with full ones under ridges of 0.3, 1 and 5 (of 1 alone where there are
        four or more examples for each slope). All but Platt's with the shrinkage, of 0.001 to
        0.1, under which the shared slope fits best.
    n_folds : int, default=4
        At least 2. From 10,000 examples on, the first fold alone is held out for the weights.
    on : {"auto", "probabilities", "logits"}, default="auto"
        What the scores are: see `MatrixScaling`. Decision values are made probabilities by
        temperature scaling before the members see them.

    Notes
    -----
    The weights maximise ``sum_i w_i log sum_m weight_m p_im + sum_m log(weight_m) / 2`` over
    examples i, a concave function, by expectation and maximisation: the second term is half an
    example that each member counts to have predicted, so with few examples the members weigh
    nearly the same and none is ever left out. The folds depend on which examples there are, not on
    their order. Scores of two classes are put together where they are nearly equal, from 4,096
    examples on.

    References
    ----------
    Wolpert (1992), Stacked generalization, Neural Networks 5.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.random(500)
    >>> model = PooledCalibration().fit(scores, rng.random(500) < scores**2)
    >>> model.predict_proba([0.5, 0.9])[:, 1].round(2)
    array([0.24, 0.83])
    >>> {name: round(weight, 1) for name, weight in model.weights_.items()}
    {'shared': 0.2, 'full': 0.2, 'full, heavy ridge': 0.2, 'platt': 0.2, 'spline': 0.2}
    """

    _learns = Pool
    _learnt: Pool

    def __init__(
        self,
        members: Literal["auto"] | Mapping[str, Calibrator] | Sequence[Calibrator] = "auto",
        n_folds: int = 4,
        on: On = "auto",
    ) -> None:
        self.members = members
        self.n_folds = n_folds
        self.on = on

    def _fit(self, scores: FloatArray, codes: IntArray, weight: FloatArray | None, k: int) -> Pool:
        check_count(self.n_folds, "n_folds", 2)
        members = name_members(self.members)
        to_probabilities = ToProbabilities.fit(self.on, scores, codes, weight, k)
        cells = Cells.of(to_probabilities(scores), codes, weight)
        members = members or default_members(cells, k)
        counts, p = held_out(list(members.values()), cells, k, int(self.n_folds))
        weights = dict(zip(members, pool_weights(counts, p).tolist(), strict=True))
        fitted = {name: _fit_member(one, cells, k) for name, one in members.items()}
        return Pool(to_probabilities, fitted, weights)

    @property
    def members_(self) -> dict[str, Calibrator]:
        """The fitted members, by name."""
        return self._learnt.members

    @property
    def weights_(self) -> dict[str, float]:
        """The weight of each member by name, not below 0, with sum 1."""
        return self._learnt.weights

    @property
    def on_(self) -> Literal["probabilities", "logits"]:
        """What the calibration scores were taken for."""
        return self._learnt.to_probabilities.on

    def _check_parameters(self) -> None:
        for member in self.members_.values():
            require(isinstance(member, Calibrator), "members must be calibrators")

    def _formula(self, scores: Terms) -> Terms:
        found = self._learnt
        p = found.to_probabilities.formula(scores)
        weights = list(found.weights.values())
        members = [found.members[name]._formula(p) for name in found.weights]
        return tuple(
            summed(w * one for w, one in zip(weights, column, strict=True)) / sum(weights)
            for column in zip(*members, strict=True)
        )

    def _predict_proba(self, scores: FloatArray) -> FloatArray:
        found = self._learnt
        p = found.to_probabilities(scores)
        total = np.zeros((len(scores), len(self.classes_)))
        for name, weight in found.weights.items():
            total += weight * found.members[name]._predict_proba(p)
        total /= total.sum(axis=1, keepdims=True)
        return total


def name_members(members: object) -> dict[str, Calibrator]:
    """Return calibrators by name, none for "auto"; those of a sequence are named by their text."""
    if isinstance(members, str) and members == "auto":
        return {}
    named: dict[Any, Any] = {}
    if isinstance(members, Mapping):
        named = dict(members)
    elif isinstance(members, Sequence) and not isinstance(members, str):
        named = {repr(one): one for one in members}
        if len(named) < len(members):
            raise InputError(f"members must differ from each other, got {list(members)}")
    sound = (isinstance(k, str) and isinstance(v, Calibrator) for k, v in named.items())
    if not named or not all(sound):
        raise InputError(
            f'members must be "auto", calibrators, or a dict of calibrators by name, '
            f"got {members!r}"
        )
    return named


def _fit_member(member: Calibrator, cells: Cells, k: int) -> Any:
    return clone(member)._fit_checked(cells.scores, cells.codes, cells.weight, k)


def held_out(
    members: Sequence[Calibrator], cells: Cells, k: int, n_folds: int
) -> tuple[FloatArray, FloatArray]:
    """Return weights (r,) of held-out examples, and what each member said of their labels, (M, r).

    Each member is fitted to all folds but one and asked about that one; many examples need only
    one fold.
    """
    counts: list[FloatArray] = []
    likelihoods: list[FloatArray] = []
    folds = 1 if cells.weight.sum() >= MANY else n_folds
    for fold in islice(cells.split(n_folds), folds):
        own, rest = cells.select(fold), cells.select(cells.weight - fold)
        if not len(own.weight) or not len(rest.weight):
            continue
        rows = np.arange(len(own.codes))
        counts.append(own.weight)
        fitted = [_fit_member(one, rest, k) for one in members]
        likelihoods.append(
            np.array([one._predict_proba(own.scores)[rows, own.codes] for one in fitted])
        )
    if not counts:
        return np.empty(0), np.empty((len(members), 0))
    return np.concatenate(counts), np.concatenate(likelihoods, axis=1)


@np.errstate(under="ignore")
def pool_weights(counts: FloatArray, p: FloatArray) -> FloatArray:
    """Return the weights (M,) of a linear pool.

    ``p`` (M, r) is what each member said of each example's label, ``counts`` (r,) how often
    each example is to count.
    """
    likelihood = np.maximum(p, np.finfo(float).tiny)
    weights: FloatArray = np.full(len(p), 1 / len(p))
    for _ in range(MAX_STEPS):
        share = weights[:, None] * likelihood
        held = PRIOR + (share / share.sum(axis=0)) @ counts
        weights, before = held / held.sum(), weights
        if np.abs(weights - before).max() < TOLERANCE:
            break
    return weights
