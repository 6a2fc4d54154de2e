"""The one place that knows kinds of bagged ensembles: who is out of bag, and what members say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    RandomForestClassifier,
)
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import validate_data

from vennforest._loaded import expect
from vennforest._validation import CodeArray, FloatArray, IntArray, check_option
from vennforest.forest import Membership, PackedForest
from vennforest.forest.membership import samples_of
from vennforest.forest.packed import Rows, Votes
from vennforest.sources.draws import HashArray, hash_rows
from vennforest.sources.pipelines import last_step
from vennforest.sources.verification import Bag, BagsError, verify_bag


class Answers(Protocol):
    """What the members of a fitted ensemble say of rows."""

    @property
    def n_trees(self) -> int:
        """Number of members."""
        ...

    def check(self, X: Any) -> Any:
        """Return rows as the members see them."""
        ...

    def hashes(self, rows: Any) -> HashArray:
        """Return a hash of each row, (n,)."""
        ...

    def mean(
        self, rows: Any, membership: Membership | None = None, examples: IntArray | None = None
    ) -> FloatArray:
        """Return scores by all members, or by those for whom the row's example is out of bag."""
        ...

    def per_member(self, rows: Any) -> FloatArray:
        """Return what each member says, (n, n_trees) or (n, n_trees, k)."""
        ...


@dataclass(frozen=True)
class ForestAnswers:
    """The trees of a forest, walked in packed form."""

    forest: Any
    votes: Votes
    n_jobs: int | None

    @cached_property
    def packed(self) -> PackedForest:
        """The forest in flat arrays; made again where the object was saved and loaded."""
        return PackedForest.from_forest(self.forest)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be made again."""
        return {name: value for name, value in self.__dict__.items() if name != "packed"}

    def check_loaded(self) -> None:
        """Refuse anything but a forest, or votes of another name.

        Raises
        ------
        ValueError
            If the check fails.
        """
        forests = RandomForestClassifier | ExtraTreesClassifier
        expect(isinstance(self.forest, forests), "forest must be a forest")
        check_option(self.votes, Votes, "votes")

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.forest.estimators_)

    def check(self, X: Any) -> Any:
        """Return rows as float32, refused as the forest would refuse them."""
        return self.packed.check_rows(X)

    def hashes(self, rows: Any) -> HashArray:
        """Return a hash of each row, (n,)."""
        return hash_rows(rows.table)

    def mean(
        self, rows: Any, membership: Membership | None = None, examples: IntArray | None = None
    ) -> FloatArray:
        """Return scores by all trees, or by those for whom the row's example is out of bag."""
        return self.packed.scores(rows, membership, examples, votes=self.votes, n_jobs=self.n_jobs)

    def per_member(self, rows: Any) -> FloatArray:
        """Return what each tree says, (n, n_trees) or (n, n_trees, k)."""
        return self.packed.tree_scores(rows, votes=self.votes, n_jobs=self.n_jobs)


@dataclass(frozen=True)
class BaggingAnswers:
    """The members of a bagging ensemble, asked one by one."""

    ensemble: BaggingClassifier
    votes: Votes

    def check_loaded(self) -> None:
        """Refuse what is no bagging ensemble, or votes of another name.

        Raises
        ------
        ValueError
            If the check fails.
        """
        expect(isinstance(self.ensemble, BaggingClassifier), "ensemble must be bagged")
        check_option(self.votes, Votes, "votes")

    @property
    def n_trees(self) -> int:
        """Number of members."""
        return len(self.ensemble.estimators_)

    def check(self, X: Any) -> Any:
        """Return rows as an array or CSR, refused as the ensemble would refuse them."""
        return validate_data(
            self.ensemble,
            X,
            accept_sparse="csr",
            dtype=None,
            ensure_all_finite=False,
            reset=False,
        )

    def hashes(self, rows: Any) -> HashArray:
        """Return a hash of each row, (n,): equal numbers in float32 and float64 have the same."""
        return hash_rows(rows.astype(np.float64) if rows.dtype == np.float32 else rows)

    def mean(
        self, rows: Any, membership: Membership | None = None, examples: IntArray | None = None
    ) -> FloatArray:
        """Return scores by all members, or by those for whom the row's example is out of bag."""
        n, k = rows.shape[0], self._k
        total, count = np.zeros((n, k)), np.zeros(n)
        for member in range(self.n_trees):
            index = np.arange(n)
            if membership is not None and examples is not None:
                free = _bits_of(membership, member)[examples] | (examples < 0)
                index = np.flatnonzero(free)
            if len(index):
                chosen = rows if len(index) == n else _safe_indexing(rows, index)
                total[index] += self._answer(member, chosen)
                count[index] += 1
        means = total / count[:, None]
        return np.ascontiguousarray(means[:, 1] if k == 2 else means)

    def per_member(self, rows: Any) -> FloatArray:
        """Return what each member says, (n, n_trees) or (n, n_trees, k)."""
        answers = np.stack([self._answer(m, rows) for m in range(self.n_trees)], axis=1)
        return np.ascontiguousarray(answers[:, :, 1]) if self._k == 2 else answers

    @property
    def _k(self) -> int:
        return len(self.ensemble.classes_)

    def _answer(self, member: int, rows: Any) -> FloatArray:
        """Return one member's class distribution or vote, (n, k).

        Members of a BaggingClassifier are trained on class numbers, and on columns of their own.
        """
        model = self.ensemble.estimators_[member]
        columns = self.ensemble.estimators_features_[member]
        if len(columns) < self.ensemble.n_features_in_ or (np.diff(columns) != 1).any():
            rows = _safe_indexing(rows, columns, axis=1)
        known = np.asarray(model.classes_, dtype=np.intp)
        answer = np.zeros((rows.shape[0], self._k))
        if hasattr(model, "predict_proba"):
            answer[:, known] = model.predict_proba(rows)
            if self.votes == "soft":
                return answer
            winner = answer.argmax(axis=1)
        else:
            winner = np.asarray(model.predict(rows), dtype=np.intp)
        votes: FloatArray = np.eye(self._k)[winner]
        return votes


def _bits_of(membership: Membership, member: int) -> NDArray[np.bool_]:
    octets = membership.bits[member].astype("<u8", copy=False).view(np.uint8)
    return np.unpackbits(octets, count=membership.n, bitorder="little").astype(bool)


@dataclass(frozen=True)
class Kind:
    """A kind of bagged ensemble.

    Attributes
    ----------
    fits : callable
        Tells whether an estimator is of this kind.
    bagged : callable
        Tells of an estimator of this kind whether its members leave examples out of bag.
    answers : callable
        ``(fitted ensemble, votes, n_jobs) -> Answers``.
    samples : callable
        ``(fitted ensemble, n) -> iterable`` of the indices in each member's bag.
    bag : callable
        ``(fitted ensemble, member number, indices) -> Bag``, or None where it is not a tree.
    """

    fits: Callable[[Any], bool]
    bagged: Callable[[Any], bool]
    answers: Callable[[Any, Votes, int | None], Answers]
    samples: Callable[[Any, int], Iterable[IntArray]]
    bag: Callable[[Any, int, IntArray], Bag | None]


def _from(package: str, *names: str) -> Callable[[Any], bool]:
    """Return what tells whether an estimator is of a class of a package, without importing it."""

    def fits(estimator: Any) -> bool:
        return any(
            base.__name__ in names and base.__module__.split(".")[0] == package
            for base in type(estimator).__mro__
        )

    return fits


def _bootstraps(forest: Any) -> bool:
    return bool(forest.bootstrap)


def _leaves_out(bagging: Any) -> bool:
    return bool(bagging.bootstrap) or bagging.max_samples not in (None, 1.0)


def _tree_of_forest(forest: Any, number: int, drawn: IntArray) -> Bag:
    return Bag(forest.estimators_[number], drawn, None, forest, forest.classes_)


def _member_of_bagging(bagging: Any, number: int, drawn: IntArray) -> Bag | None:
    member = bagging.estimators_[number]
    for step in getattr(member, "steps", [])[:-1]:
        if not hasattr(step[1], "sample_indices_"):
            return None
        drawn = np.asarray(drawn)[step[1].sample_indices_]
    tree = last_step(member)
    if not isinstance(tree, DecisionTreeClassifier):
        return None
    columns = np.asarray(bagging.estimators_features_[number])
    return Bag(tree, np.asarray(drawn), columns, tree, np.asarray(tree.classes_))


def _balanced_samples(forest: Any, n: int) -> Iterator[IntArray]:
    """Yield the bags of imbalanced-learn's balanced forest: what its samplers drew, drawn again."""
    for tree, sampler in zip(forest.estimators_, forest.samplers_, strict=True):
        chosen = np.asarray(sampler.sample_indices_)
        if forest.bootstrap:
            size = forest.max_samples
            wanted = n if size is None else size if size >= 1 and size != 1.0 else round(n * size)
            again = check_random_state(tree.random_state).randint(
                0, len(chosen), min(int(max(wanted, 1)), len(chosen))
            )
            chosen = chosen[again]
        yield chosen


KINDS = (
    Kind(
        _from("imblearn", "BalancedRandomForestClassifier"),
        lambda forest: True,  # the members see as many of the larger classes as of the smallest
        ForestAnswers,
        _balanced_samples,
        _tree_of_forest,
    ),
    Kind(
        lambda ensemble: isinstance(ensemble, RandomForestClassifier | ExtraTreesClassifier),
        _bootstraps,
        ForestAnswers,
        samples_of,
        _tree_of_forest,
    ),
    Kind(
        lambda ensemble: isinstance(ensemble, BaggingClassifier),
        _leaves_out,
        lambda bagging, votes, _: BaggingAnswers(bagging, votes),
        samples_of,
        _member_of_bagging,
    ),
)
"""The kinds of bagged ensembles; the first that fits counts."""

TREES_CHECKED = 3
"""Most members whose bags are verified, drawn anew at each fit; fewer of small ensembles, so that
it costs at most 1% of what fitting costs."""


def kind_of(ensemble: Any) -> Kind | None:
    """Return the kind of an ensemble, None where it is of none of these."""
    return next((kind for kind in KINDS if kind.fits(ensemble)), None)


def is_bagged(estimator: Any) -> bool:
    """Tell whether examples will be out of bag for some members of the estimator's ensemble."""
    ensemble = last_step(estimator)
    kind = kind_of(ensemble)
    return kind is not None and kind.bagged(ensemble)


def read_bags(
    ensemble: Any,
    rows: Any,
    codes: CodeArray,
    weight: FloatArray | None,
    groups: IntArray | None,
    verify: bool = True,
) -> Membership:
    """Return who is out of bag for which member of a fitted ensemble, verified for a few members.

    Parameters
    ----------
    ensemble : fitted ensemble
    rows : ndarray or CSR array of shape (n, d)
        What it was trained on, as its members see it.
    codes : ndarray of shape (n,)
        Class numbers.
    weight : ndarray of shape (n,) or None
        Weights given to its ``fit``.
    groups : ndarray of shape (n,) or None
        Group numbers: a member saw an example if it saw anyone of its group.
    verify : bool
        Whether to verify.

    Raises
    ------
    BagsError
        If the bags are not known, or not those that the members were trained on.
    """
    kind = kind_of(ensemble)
    assert kind is not None
    n, n_members = len(codes), len(ensemble.estimators_)
    # From fresh entropy: what is checked cannot be arranged for, and no seeded draw moves.
    how_many = min(TREES_CHECKED, 1 + n_members // 10) if verify else 0
    checked = set(np.random.default_rng().permutation(n_members)[:how_many].tolist())
    held: dict[int, IntArray] = {}

    def samples() -> Iterator[IntArray]:
        for number, drawn in enumerate(kind.samples(ensemble, n)):
            if number in checked:
                held[number] = drawn
            yield drawn

    try:
        membership = Membership.from_samples(samples(), n, n_members, groups)
    except (AttributeError, NotImplementedError, ValueError) as error:
        raise BagsError(
            f"estimator must tell which examples its members were trained on, and "
            f'{type(ensemble).__name__} does not ({error}): use calibrate_on="cv"'
        ) from error
    for number, drawn in held.items():
        bag = kind.bag(ensemble, number, drawn)
        if bag is not None:
            verify_bag(bag, _as_trees_see(rows), codes, weight)
        elif type(ensemble).__module__.split(".")[0] not in ("sklearn", "imblearn"):
            raise BagsError(
                "estimator must be an ensemble whose bags can be verified, got "
                f"{type(ensemble).__name__} over members that are not trees: "
                'use calibrate_on="cv"'
            )
    return membership


def _as_trees_see(rows: Any) -> Any:
    """Return checked rows as float32, dense or CSR."""
    table = rows.table if isinstance(rows, Rows) else rows
    return table.astype(np.float32, copy=False)
