"""The kinds of bagged ensembles: which examples are out of bag for which member.

Nothing else in the package lists types of forests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any

import attrs
import numpy as np
from sklearn.ensemble import BaggingClassifier
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import _safe_indexing, check_random_state

from vennforest._state import stored
from vennforest._validation import (
    CodeArray,
    FloatArray,
    IntArray,
    check_array,
    check_labels,
    check_number,
    check_option,
    require,
)
from vennforest.forest.membership import Bag, BagsError, Membership, samples_of, verify_bag
from vennforest.forest.packed import FORESTS, Answers, ForestAnswers, Rows, Votes


class BaggingAnswers(Answers):
    """The members of a BaggingClassifier, each trained on columns of its own."""

    def answer(self, member: int, rows: Any) -> FloatArray:
        """Return the answer to the columns that the member was trained on."""
        columns = self.ensemble.estimators_features_[member]
        if len(columns) < self.ensemble.n_features_in_ or (np.diff(columns) != 1).any():
            rows = _safe_indexing(rows, columns, axis=1)
        return super().answer(member, rows)


MEMBERS_CHECKED = 60
"""Most members whose bags are verified. Where a tenth of the bags is wrong, none of 60 members
drawn at random has one of these in .9 ** 60 = .2% of fits at most."""


def is_tree_bag(ensemble: Any, number: int, drawn: IntArray) -> Bag | None:
    """Return the bag of a member that is a tree with class frequencies in its leaves, else None."""
    member = ensemble.estimators_[number]
    if not isinstance(member, DecisionTreeClassifier):
        return None
    return Bag(member, drawn, None, ensemble, np.asarray(ensemble.classes_))


@attrs.frozen(eq=False)
class EnsembleKind:
    """A kind of bagged ensemble: a classifier with ``estimators_`` that leave examples out of bag.

    The members are trained on class numbers, places in the ensemble's ``classes_``, as those of
    scikit-learn's ensembles are.

    Attributes
    ----------
    fits : callable
        ``(estimator) -> bool``: whether an estimator is of this kind.
    samples : callable
        ``(fitted ensemble, n) -> iterable`` of the indices in [0, n) of the examples in each
        member's bag, repeated as often as they were drawn.
    bagged : callable
        ``(estimator) -> bool``: whether members of such an estimator will leave examples out.
    answers : callable
        ``(fitted ensemble, votes, n_jobs) -> Answers``.
    bag : callable
        ``(fitted ensemble, member number, indices) -> Bag``: a tree and its bag, whose leaves are
        filled again and compared; None for a member that is no such tree.
    verify : callable or None
        ``(fitted ensemble) -> bool``: whether the bags of members for which ``bag`` returns None
        are trusted. None: such ensembles are refused.
    check : callable
        ``(fitted ensemble) -> None``: raises a ValueError for one that ``fit`` could not have left.
    """

    fits: Callable[[Any], bool]
    samples: Callable[[Any, int], Iterable[IntArray]]
    bagged: Callable[[Any], bool] = lambda estimator: True
    answers: Callable[[Any, Votes, int | None], Answers] = Answers
    bag: Callable[[Any, int, IntArray], Bag | None] = is_tree_bag
    verify: Callable[[Any], bool] | None = None
    check: Callable[[Any], None] = lambda ensemble: None


def check_features(model: Any) -> None:
    """Refuse a number of features that is none, and other names than there are features."""
    check_number(model.n_features_in_, "n_features_in_", 1, 2**31 - 1, integer=True)
    names = getattr(model, "feature_names_in_", None)
    require(names is None or len(names) == model.n_features_in_, "features must have a name each")


def check_forest(model: Any) -> None:
    """Refuse a forest whose trees are of other features or classes."""
    trees = model.estimators_
    require(isinstance(trees, list) and trees, "estimators_ must be a list of trees")
    check_number(model.n_estimators, "n_estimators", 1, integer=True)
    check_labels(model.classes_)
    k = len(model.classes_)
    require(model.n_outputs_ == 1 and model.n_classes_ == k, f"n_classes_ must be {k}")
    check_features(model)
    for tree in trees:
        require(isinstance(tree, DecisionTreeClassifier), "estimators_ must be trees")
        require(tree.n_features_in_ == model.n_features_in_, "trees must be of the same features")
        # Trees of a forest are fitted to the numbers of the classes.
        require(np.array_equal(tree.classes_, np.arange(k)), "trees must be of the same classes")


def check_bagging(model: Any) -> None:
    """Refuse members of features or classes that there are none of."""
    check_labels(model.classes_)
    k, d = len(model.classes_), model.n_features_in_
    check_features(model)
    require(model.n_classes_ == k, f"n_classes_ must be {k}")
    members, columns = model.estimators_, model.estimators_features_
    require(isinstance(members, list) and members, "estimators_ must be a list of classifiers")
    require(len(members) == len(columns), "estimators_features_ must be one for each")
    for member, features in zip(members, columns, strict=True):
        check_array(features, "estimators_features_", (None,), "i", 0, d - 1)
        own = getattr(member, "n_features_in_", len(features))
        require(own == len(features), "members must be of the features that they are given")
        known = getattr(member, "classes_", np.arange(k))
        check_array(known, "classes_ of a member", (None,), "i", 0, k - 1)


def kind_of(ensemble: Any) -> EnsembleKind | None:
    """Return the kind of an ensemble, None where it is of none of these."""
    return next((kind for kind in KINDS if kind.fits(ensemble)), None)


@stored("members")
@attrs.frozen(eq=False, slots=False)
class Members:
    """A fitted ensemble of a known kind whose members are asked for scores."""

    ensemble: Any = attrs.field()
    votes: Votes = attrs.field(default="soft")
    n_jobs: int | None = attrs.field(default=None)

    def __attrs_post_init__(self) -> None:
        check_option(self.votes, Votes, "votes")
        sound = self.n_jobs is None or (isinstance(self.n_jobs, int | np.integer) and self.n_jobs)
        require(sound, "n_jobs must be an integer other than 0, or None")
        require(kind_of(self.ensemble) is not None, "ensemble must be of a known kind")
        members = getattr(self.ensemble, "estimators_", None)
        require(members is not None and len(members), "ensemble must have members")

    @cached_property
    def answers(self) -> Answers:
        """What the members answer."""
        kind = kind_of(self.ensemble)
        assert kind is not None
        return kind.answers(self.ensemble, self.votes, self.n_jobs)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be made again."""
        return {name: value for name, value in self.__dict__.items() if name != "answers"}


def read_bags(
    ensemble: Any,
    rows: Any,
    codes: CodeArray,
    weight: FloatArray | None,
    groups: IntArray | None,
    verify: bool = True,
) -> Membership:
    """Return who is out of bag for which member of a fitted ensemble, verified.

    The rows (n, d), as members see them, class numbers (n,) and weights (n,) are what it was
    trained on; with groups (n,) a member saw an example if it saw anyone of its group.
    """
    kind = kind_of(ensemble)
    assert kind is not None
    n, n_members = len(codes), len(ensemble.estimators_)
    checked = _checked(ensemble, n_members) if verify else set()
    claimed: dict[int, IntArray] = {}

    def samples() -> Iterator[IntArray]:
        for number, drawn in enumerate(kind.samples(ensemble, n)):
            if number in checked:
                claimed[number] = drawn
            yield drawn

    try:
        membership = Membership.from_samples(samples(), n, n_members, groups)
    except (AttributeError, NotImplementedError, ValueError) as error:
        raise BagsError(
            f"estimator must tell which examples its members were trained on, and "
            f'{type(ensemble).__name__} does not ({error}): use calibrate_on="cv"',
            "the ensemble does not name the rows that its members were trained on",
        ) from error
    seen = rows.table if isinstance(rows, Rows) else rows
    seen = seen.astype(np.float32, copy=False) if claimed else seen
    for number, drawn in claimed.items():
        bag = kind.bag(ensemble, number, drawn)
        if bag is not None:
            verify_bag(bag, seen, codes, weight)
        elif kind.verify is None or not kind.verify(ensemble):
            raise BagsError(
                "estimator must be an ensemble whose bags can be verified, got "
                f"{type(ensemble).__name__} over members that are not trees: "
                'use calibrate_on="cv"',
                "the members are not trees, so their rows cannot be verified",
            )
    return membership


def _checked(ensemble: Any, n_members: int) -> set[int]:
    """Return the members whose bags are verified: all, or a draw by the first member's seed.

    So one ``random_state`` gives one decision, and no draw of anything else moves.
    """
    if n_members <= MEMBERS_CHECKED:
        return set(range(n_members))
    own = getattr(ensemble.estimators_[0], "random_state", None)
    seed = int(own) if isinstance(own, int | np.integer) and own >= 0 else 0
    drawn = np.random.default_rng(seed).permutation(n_members)[:MEMBERS_CHECKED]
    return set(drawn.tolist())


def _is_balanced(estimator: Any) -> bool:
    """Tell whether an estimator is a balanced forest of imbalanced-learn, without importing it."""
    return any(
        base.__name__ == "BalancedRandomForestClassifier" and base.__module__.startswith("imblearn")
        for base in type(estimator).__mro__
    )


def _member_of_bagging(bagging: Any, number: int, drawn: IntArray) -> Bag | None:
    """Return the tree at the end of a member and the examples that reach it.

    A step that samples before the tree leaves some of the member's bag out.
    """
    tree = bagging.estimators_[number]
    while hasattr(tree, "steps"):
        for _, step in tree.steps[:-1]:
            if not hasattr(step, "sample_indices_"):
                return None
            drawn = np.asarray(drawn)[step.sample_indices_]
        tree = tree.steps[-1][1]
    if not isinstance(tree, DecisionTreeClassifier):
        return None
    columns = np.asarray(bagging.estimators_features_[number])
    return Bag(tree, np.asarray(drawn), columns, tree, np.asarray(tree.classes_))


def _draws_itself(bagging: Any) -> bool:
    """Tell whether a bagging ensemble draws its bags by code that is known to draw these."""
    return type(bagging).__module__.split(".")[0] in ("sklearn", "imblearn")


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
    EnsembleKind(
        fits=_is_balanced,
        samples=_balanced_samples,
        answers=ForestAnswers,
        check=check_forest,
    ),
    EnsembleKind(
        fits=lambda ensemble: isinstance(ensemble, FORESTS),
        samples=samples_of,
        bagged=lambda forest: forest.bootstrap,
        answers=ForestAnswers,
        check=check_forest,
    ),
    EnsembleKind(
        fits=lambda ensemble: isinstance(ensemble, BaggingClassifier),
        samples=samples_of,
        bagged=lambda bagging: bagging.bootstrap or bagging.max_samples not in (None, 1.0),
        answers=BaggingAnswers,
        bag=_member_of_bagging,
        verify=_draws_itself,
        check=check_bagging,
    ),
)
"""All kinds of bagged ensembles; of those that fit an estimator the first counts."""
