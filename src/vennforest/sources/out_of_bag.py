"""Out-of-bag scores: every example scored by the members of an ensemble that did not see it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Literal, Unpack

import attrs
import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.validation import check_is_fitted

from vennforest._messages import warn
from vennforest._state import stored
from vennforest._validation import (
    CodeArray,
    FloatArray,
    IntArray,
    check_array,
    check_increasing,
    check_option,
    number,
    require,
)
from vennforest.forest import BagsError, Members, Membership
from vennforest.forest.packed import Votes
from vennforest.sources.base import (
    Drawn,
    Fold,
    SampledScores,
    TrainingData,
    is_bagged,
    taken_apart,
    transform_rows,
)
from vennforest.sources.checks import steps_obstacle
from vennforest.sources.row_hashes import draw_examples, hash_rows

EXAMPLES = 512
"""Calibration examples from which the variance between members is taken."""


def member_variance(
    answers: Members, X: Any, membership: Membership, kept: IntArray, scores: FloatArray
) -> float:
    """Return the variance between the members' answers to a row, as a share of s (1 - s).

    1 where every member answers 0 or 1, as fully grown trees do; measured at some calibration
    examples, on the members that did not see them, and pooled over rows and classes. The training
    rows ``kept`` (n,) have the out-of-bag scores (n,) or (n, k).
    """
    chosen = np.unique(np.linspace(0, len(kept) - 1, EXAMPLES).astype(np.intp))
    members = membership.dense()[:, kept[chosen]].T.astype(np.float64)
    count = members.sum(axis=1)
    several = count > 1
    own = scores[chosen]
    every = answers.per_member(answers.check(_safe_indexing(X, kept[chosen])))
    if every.ndim == 3:
        members, count, several = (
            members[:, :, None],
            count[:, None],
            np.repeat(several[:, None], every.shape[2], 1),
        )
    squares = (members * (every - own[:, None]) ** 2).sum(axis=1) / np.maximum(count - 1, 1)
    most = float((own * (1 - own))[several].sum())
    return float(squares[several].sum()) / most if most > 0 else 0.0


FEW_TREES = 20
"""Number of trees from which on a new object's point is that of its score by all of them.

An out-of-bag score is the mean over about 37% of the trees. With 10 trees these are 4, whose mean
is so much noisier than that of all 10 that a map fitted to it is too flat for the latter. So with
fewer trees the map is read at scores by as few trees; from 20 on that costs more than it gains
(``docs/results/defaults.md``).
"""

SUBFORESTS = 20
"""Subforests that a point is averaged over with fewer."""


def typical(n: int) -> IntArray:
    """Return calibration examples whose trees are the subforests: equally spaced, each once."""
    return np.unique(np.linspace(0, n - 1, SUBFORESTS).round().astype(np.intp))


@attrs.frozen(eq=False, slots=False)
class EnsembleScorer:
    """Base of scorers that score new objects with members of an ensemble behind transformers."""

    transformer: Any = attrs.field()
    members: Members = attrs.field(validator=attrs.validators.instance_of(Members))

    def __attrs_post_init__(self) -> None:
        sound = self.transformer is None or isinstance(self.transformer, Pipeline)
        require(sound, "transformer must be a pipeline")

    @property
    def answers(self) -> Members:
        """The members of the ensemble."""
        return self.members

    def _rows(self, X: Any) -> Any:
        """Return the rows of X as ``answers`` takes them."""
        return self.answers.check(transform_rows(self.transformer, X))

    def whole(self, X: Any) -> FloatArray:
        """Return the scores of the rows of X by every member, (m,) or (m, k)."""
        return self.answers.mean(self._rows(X))

    @property
    def partial(self) -> bool:
        """Whether scores are by some of the members."""
        return bool(self.subforest != "all")  # type: ignore[attr-defined]

    @property
    def leaves_out(self) -> bool:
        """Whether new objects leave calibration examples out."""
        return bool(self.subforest == "exchangeable")  # type: ignore[attr-defined]

    @property
    def small_ensemble(self) -> bool:
        """Whether a point takes scores by subforests."""
        return self.answers.n_trees < FEW_TREES

    def point_scores(self, X: Any) -> list[FloatArray]:
        """Return the scores that a point is averaged over where members are few.

        Each (m,) or (m, k), by those that did not see one of some examples.
        """
        rows = self._rows(X)
        subforests: Membership = self._typical  # type: ignore[attr-defined]
        m = rows.shape[0]
        return [self.answers.mean(rows, subforests, np.full(m, i)) for i in range(subforests.n)]


Subforest = Literal["exchangeable", "all"]
"""Which trees score a new object."""


def _refused_steps(reason: str) -> BagsError:
    """Return the error of steps that treat examples out of bag otherwise than new objects."""
    return BagsError(
        "estimator must treat new rows as it treats those given to fit for "
        f'calibrate_on="oob", got one in which {reason}: use calibrate_on="cv"',
        reason,
    )


@stored("out-of-bag")
@attrs.frozen
class OutOfBag:
    """Train a bagged ensemble on all the data; score each example by those who did not see it.

    Parameters
    ----------
    subforest, votes
        As of `CalibratedClassifier`: ``"exchangeable"`` are eqs. 10 and 11 of Johansson et al.
        (2018), ``"all"`` is Boström's (2008).
    verify : bool
        Whether the leaves of a few trees are filled again from their bags. Without it scores may
        have seen their own labels, and nothing notices: for studies of such forests alone, such as
        Boström's (2008), whose leaves count every training example.
    """

    subforest: Subforest = "all"
    votes: Votes = "soft"
    verify: bool = attrs.field(default=True, validator=attrs.validators.instance_of(bool))

    def __attrs_post_init__(self) -> None:
        check_option(self.subforest, Subforest, "subforest")
        check_option(self.votes, Votes, "votes")

    def folds(self, estimator: Any, data: TrainingData, **given: Unpack[Drawn]) -> list[Fold]:
        """Return one fold."""
        frozen = isinstance(estimator, FrozenEstimator)
        inner = estimator.estimator if frozen else estimator
        _refuse(inner)
        if frozen:
            model = estimator
            transformer, ensemble = taken_apart(inner)
            check_is_fitted(ensemble)
            seen = transform_rows(transformer, data.X)
        else:
            data = data.present()
            model, seen = _fit_ensemble(estimator, data)
            transformer, ensemble = taken_apart(model)
        members = Members(ensemble, self.votes, given["n_jobs"])
        answers = members
        rows = answers.check(seen)
        try:
            if getattr(ensemble, "_n_samples", len(data)) != len(data):
                raise BagsError(f"it was trained on {ensemble._n_samples} examples")
            membership = members.read_membership(
                rows, data.codes, data.weight, data.groups, self.verify
            )
        except BagsError as error:
            if not frozen:
                raise
            raise BagsError(
                'X and y must be what the frozen model was trained on for calibrate_on="oob", in '
                "the same order, got others (or bags that cannot be verified): leave calibrate_on "
                "out to calibrate on new data"
            ) from error
        kept = _calibrating(membership, data)
        everyone = len(kept) == len(data)
        chosen = data if everyone else data.rows(kept)
        if not everyone:
            rows = answers.check(_safe_indexing(seen, kept))
        scores = answers.mean(rows, membership, kept)
        scorer = OutOfBagScorer(
            transformer,
            members,
            membership,
            None if everyone else kept,
            self.subforest,
            given["seed"],
        )
        share = member_variance(answers, seen, membership, kept, scores)
        fewer = 1 / membership.counts()[kept] - 1 / len(membership)
        noise = share * np.maximum(fewer, 0)
        _check_noise(noise, scores, chosen.codes, data.classes)
        more = {"groups": chosen.groups, "noise": noise, "member_noise": share / len(membership)}
        return [chosen.fold(model, scores, scorer, **more)]


def _refuse(estimator: Any) -> None:
    """Refuse estimators without examples out of bag, or whose steps rule such scores out."""
    if not is_bagged(estimator):
        raise ValueError(
            'estimator must leave examples out of bag for calibrate_on="oob" (a forest with '
            "bootstrap=True, a BaggingClassifier with bootstrap=True or max_samples below 1, "
            f"or a Pipeline that ends in one), got {type(estimator).__name__} without: "
            'use calibrate_on="cv"'
        )
    why = steps_obstacle(estimator)
    if why is not None:
        raise _refused_steps(why)


_FEWER_DRAWS = 'leave class_weight and sample_weight out, or use calibrate_on="cv"'

_UNEQUAL = (
    "rows were drawn by their weight or class, so some classes are out of bag for far fewer trees"
)

UNEQUAL = 0.25
"""Largest difference between classes in the mean noise of out-of-bag scores, as a part of the
variance of the scores. With coin labels on 15 real tables and class weights, the mean probability
is by 1% lower than a plain forest's from .1 to .25, by 2% to .5, by 5% to 1 and by 10% to 2; mean
bounds contain the class frequency as often as a plain forest's do up to .25, and from 1 on nearly
never (``benchmarks/unequal_noise.py``). Plain forests have .00, weights of 1 and 2 have .2 to .7
with 50 trees and .0 to .2 with 300, balanced ones of 10% up to 5."""


def unequal_noise(
    noise: FloatArray, scores: FloatArray, codes: CodeArray
) -> tuple[float, bool, int]:
    """Compare the noise (n,) of out-of-bag scores, (n,) or (n, k), between classes.

    Returned are the largest difference between the means of two classes, as a part of the scores'
    variance; whether it is beyond four standard errors; and the noisiest class.
    """
    there = [code for code in np.unique(codes) if (codes == code).sum() > 1]
    if len(there) < 2:
        return 0.0, False, 0
    # Noise is given as a share of s (1 - s), the variance of a single vote.
    own = [noise[codes == code] for code in there]
    each = np.array([some.mean() for some in own])
    error = np.array([some.std() / np.sqrt(len(some)) for some in own])
    low, high = each.argmin(), each.argmax()
    difference = each[high] - each[low]
    spread = scores.var(axis=0).mean() / (scores * (1 - scores)).mean().clip(1e-12)
    ratio = float(difference / max(spread, 1e-300))
    return ratio, bool(difference > 4 * np.hypot(error[low], error[high])), int(there[high])


def _check_noise(
    noise: FloatArray, scores: FloatArray, codes: CodeArray, classes: NDArray[Any]
) -> None:
    """Refuse out-of-bag scores of one class that are much noisier than those of another.

    Scikit-learn draws the rows of a tree by their weights, ``class_weight`` included. A class that
    is in nearly every bag is scored by few trees: its scores spread because of the label, and the
    calibrator takes that for what scores say of the label.
    """
    ratio, real, code = unequal_noise(noise, scores, codes)
    if real and ratio > UNEQUAL:
        raise BagsError(
            "estimator must leave examples of every class out of bag for about as many trees, got "
            f"a forest in which those of {classes.tolist()[code]!r} are left out by far fewer: "
            f"{_FEWER_DRAWS}",
            _UNEQUAL,
        )


def _calibrating(membership: Membership, data: TrainingData) -> IntArray:
    """Return the examples that are out of bag for some member, and warn of others."""
    there = np.ones(len(data), bool) if data.weight is None else data.weight > 0
    counted = membership.counts() > 0
    kept = np.flatnonzero(counted & there)
    more = "grow more trees, or draw fewer samples for each (max_samples)"
    if data.groups is not None:
        more += ', or use calibrate_on="cv", which keeps groups together'
    if not len(kept):
        what = "examples" if data.groups is None else "whole groups of examples"
        raise ValueError(f"estimator must leave {what} out of bag, got none that is: {more}")
    of_class = np.bincount(data.codes[there], minlength=len(data.classes))
    missing = np.bincount(data.codes[there & ~counted], minlength=len(data.classes))
    worst = int((missing / np.maximum(of_class, 1)).argmax())
    if 2 * missing[worst] > of_class[worst] > 1 and 2 * missing.sum() <= of_class.sum():
        # Who calibrates would depend on the label, which no guarantee survives.
        raise BagsError(
            f"estimator must leave examples of every class out of bag, got {missing[worst]} of "
            f"{of_class[worst]} examples of {data.classes.tolist()[worst]!r} that every tree saw: "
            f"{_FEWER_DRAWS}",
            _UNEQUAL,
        )
    alone = int((there & ~counted).sum())
    if data.groups is not None and 2 * alone > len(data):
        raise ValueError(
            f"estimator must leave most groups out of bag as a whole, got {alone} of {len(data)} "
            f"examples whose group every tree saw: {more}"
        )
    if alone:
        warn(
            f"{alone} of {int(there.sum())} examples are out of bag for no tree and do not "
            f"calibrate: {more}"
        )
    return kept


def _fit_ensemble(estimator: Any, data: TrainingData) -> tuple[Any, Any]:
    """Return the fitted model, and what its ensemble saw.

    A pipeline's transformers are fitted first, by ``fit_transform`` as in ``Pipeline.fit``: what
    they make of the training rows may differ from ``transform`` (as with a target encoder).
    """
    if not isinstance(estimator, Pipeline):
        return data.fit(estimator), data.X
    pipeline = clone(estimator)
    name, last = pipeline.steps[-1]
    params = data.all_fit_params()
    if get_config()["enable_metadata_routing"]:
        routed = process_routing(pipeline, "fit", **params)
        own = routed[name].fit
        others = {
            key: params[key]
            for step, _ in pipeline.steps[:-1]
            for method in ("fit", "fit_transform")
            for key in routed[step].get(method, {})
        }
    else:
        prefix = f"{name}__"
        own = {key.removeprefix(prefix): v for key, v in params.items() if key.startswith(prefix)}
        others = {key: v for key, v in params.items() if not key.startswith(prefix)}
    steps: list[Any] = []
    seen = data.X
    if len(pipeline.steps) > 1:
        transformers = pipeline[:-1]
        seen = transformers.fit_transform(data.X, data.y, **others)
        steps = transformers.steps
    rest = attrs.evolve(data, X=seen, fit_params=own, weight_param=None)
    model, seen = _fit_ensemble(last, rest)
    pipeline.steps = [*steps, (name, model)]
    return pipeline, seen


@stored("out-of-bag-scorer")
@attrs.frozen(eq=False, slots=False)
class OutOfBagScorer(EnsembleScorer):
    """Scores new objects with chosen members of a bagged ensemble.

    ``membership`` is of all training examples, of which ``kept`` (n_calibration,) are calibration
    examples; None: all.
    """

    membership: Membership = attrs.field(validator=attrs.validators.instance_of(Membership))
    kept: IntArray | None = attrs.field()
    subforest: Subforest = attrs.field()
    seed: int = attrs.field(validator=number(0, 2**32, integer=True))

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        membership, trees = self.membership, self.answers.n_trees
        require(len(membership) == trees, f"membership must be of {trees} trees")
        counts = membership.counts()
        if self.kept is not None:
            check_array(self.kept, "kept", (None,), "i", 0, membership.n - 1)
            check_increasing(self.kept, "kept")
            counts = counts[self.kept]
        require(len(counts) and counts.min() > 0, "membership must leave a tree to every example")
        check_option(self.subforest, Subforest, "subforest")

    @cached_property
    def _typical(self) -> Membership:
        chosen = typical(self.n_examples)
        if self.kept is not None:
            chosen = self.kept[chosen]
        return Membership.from_dense(self.membership.dense()[:, chosen])

    @property
    def n_examples(self) -> int:
        """Number of calibration examples that a score may leave out."""
        return self.membership.n if self.kept is None else len(self.kept)

    def sampled_scores(self, X: Any) -> Iterator[SampledScores]:
        """Yield the scores of the rows of X; every sample has the same weight."""
        rows = self._rows(X)
        if self.subforest == "all":
            yield SampledScores(self.answers.mean(rows), None, 1)
            return
        hashes = hash_rows(self.answers.table(rows))
        left_out = draw_examples(hashes, self.seed, self.n_examples)
        examples = left_out if self.kept is None else self.kept[left_out]
        yield SampledScores(self.answers.mean(rows, self.membership, examples), left_out, 1)
