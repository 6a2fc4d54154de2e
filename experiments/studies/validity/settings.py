"""The settings that are compared: each gives bounds of new objects, several from one forest."""

from contextlib import suppress
from typing import NamedTuple

import attrs
import numpy as np
from experiments.studies.validity.forests import first_trees, grow
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split

from vennforest import CalibratedClassifier, PlattScaling, VennAbers
from vennforest.calibrators import Venn
from vennforest.forest import Members, Membership, PackedForest
from vennforest.sources.base import model_scores
from vennforest.sources.out_of_bag import OutOfBagScorer

CALIBRATORS = {"Venn–Abers": lambda: VennAbers("log"), "Venn": lambda: Venn("label", "log")}


class Answer(NamedTuple):
    """Bounds (m, k) of the first m new objects, and what belongs to them where there is any."""

    lower: np.ndarray
    upper: np.ndarray
    probability: np.ndarray | None = None
    spread: np.ndarray | None = None
    widened: np.ndarray | None = None


def new_seed(rng):
    return int(rng.integers(2**31))


def classes_of(sample):
    return np.arange(sample.truth.shape[1])


def bounds_of(calibrator, scores, left_out=None):
    m = calibrator.predict_multiprobability(scores, left_out)
    return np.stack([m.lower, m.upper])


def widen(both, point):
    """Return the bounds stretched where needed to hold the probability."""
    low, up = both
    out = ((point < low) | (point > up)).any(axis=1)
    return Answer(np.minimum(low, point), np.maximum(up, point), point, widened=out)


def out_of_bag(sample, sizes, rng):
    """Yield (setting, number of trees, answer): one forest, all settings out of bag, and frozen."""
    X, y, new, *_ = sample
    n, classes = len(y), classes_of(sample)
    forest, unseen = grow(X, y, max(sizes), new_seed(rng))
    seeds = [new_seed(rng), new_seed(rng)]
    everything = Membership.from_dense(unseen)
    for size in sizes:
        members = Members(first_trees(forest, size), "soft", 1)
        answers = members.answers
        membership = Membership(everything.bits[:size], n)
        kept = np.flatnonzero(membership.counts() > 0)
        scores = answers.mean(answers.check(X[kept]), membership, kept)
        scorer = OutOfBagScorer(None, members, membership, kept, "all", seeds[0])
        (whole,) = scorer.sampled_scores(new)
        draws = [
            next(attrs.evolve(scorer, subforest="exchangeable", seed=seed).sampled_scores(new))
            for seed in seeds
        ]
        for kind, make in CALIBRATORS.items():
            calibrator = make().fit(scores, y[kept], classes=classes)
            every = bounds_of(calibrator, whole.scores)
            yield f"{kind}, all trees", size, Answer(*every)
            one, other = (bounds_of(calibrator, draw.scores, draw.left_out) for draw in draws)
            yield f"{kind}, one draw", size, Answer(*one, spread=moved(one, other))
            if kind == "Venn–Abers":
                platt = PlattScaling(on="logit").fit(scores, y[kept], classes=classes)
                point = platt.predict_proba(whole.scores)
                yield f"{kind}, all trees, widened", size, widen(every, point)


def moved(one, other):
    """Return the variance of a bound over seeds, from two seeds' (2, m, k): shape (m,)."""
    return ((one - other) ** 2 / 2).mean(axis=(0, 2))


def default(sample, sizes, rng):
    """Yield what a forest gives with no option set: bounds of all trees, widened to hold a pool."""
    forest, _ = grow(sample.X, sample.y, max(sizes), new_seed(rng))
    for size in sizes:
        fitted = FrozenEstimator(first_trees(forest, size))
        model = CalibratedClassifier(fitted, calibrate_on="oob", n_jobs=1, random_state=0)
        model.fit(sample.X, sample.y)
        m, p = model.predict_multiprobability(sample.new), model.predict_proba(sample.new)
        yield "Venn–Abers, default", size, Answer(m.lower, m.upper, p, widened=m.widened)


def frozen(sample, sizes, rng):
    """Yield a forest's bounds after calibration on as many examples that it has not seen.

    The sample is halved for it.
    """
    half = len(sample.y) // 2
    yield from _split(sample, sizes, rng, np.arange(half), np.arange(half, 2 * half), "frozen")


def holdout(sample, sizes, rng):
    """Yield bounds after calibration on a third that is drawn at random, and stratified."""
    for name, labels in (("holdout", None), ("holdout, stratified", sample.y)):
        seed = new_seed(rng)
        try:
            train, held = train_test_split(
                np.arange(len(sample.y)), test_size=1 / 3, stratify=labels, random_state=seed
            )
        except ValueError:  # a class with one example
            continue
        yield from _split(sample, sizes, rng, train, held, name)


def _split(sample, sizes, rng, train, held, name):
    X, y, new, *_ = sample
    for size, forest in _grown(X[train], y[train], sizes, rng):
        for kind, both in _calibrated(forest, X[held], y[held], new, classes_of(sample)):
            yield f"{kind}, {name}", size, Answer(*both)


def _grown(X, y, sizes, rng):
    forest, _ = grow(X, y, max(sizes), new_seed(rng))
    for size in sizes:
        yield size, first_trees(forest, size)


def _calibrated(forest, X, y, new, classes):
    if np.array_equal(forest.classes_, classes):
        packed = PackedForest.from_forest(forest)  # what predict_proba says, faster
        scores, asked = (packed.scores(rows, n_jobs=1) for rows in (X, new))
    else:
        scores, asked = (model_scores(forest, rows, classes) for rows in (X, new))
    for kind, make in CALIBRATORS.items():
        calibrator = make().fit(scores, y, classes=classes)
        yield kind, bounds_of(calibrator, asked)


def folds(sample, sizes, rng):
    """Yield bounds of K forests with T/K trees each, all fit and calibrated apart, and averaged."""
    X, y, new, *_ = sample
    plans = [(k, False) for k in (2, 3, 5, 10)] + [(5, True)]
    for k, stratified in plans:
        if len(y) < 2 * k:
            continue
        splitter = (StratifiedKFold if stratified else KFold)(
            k, shuffle=True, random_state=new_seed(rng)
        )
        if stratified and np.bincount(y).min() < k:
            continue
        own = [size // k for size in sizes if size // k >= 1]
        whole = [size for size in sizes if size // k >= 1]
        if not own:
            continue
        total: dict = {}
        first: dict = {}
        for train, held in splitter.split(X, y):
            for asked, (_, forest) in zip(whole, _grown(X[train], y[train], own, rng), strict=True):
                for kind, both in _calibrated(forest, X[held], y[held], new, classes_of(sample)):
                    first.setdefault((kind, asked), both)
                    total[kind, asked] = total.get((kind, asked), 0) + both
        name = f"{k} folds, stratified" if stratified else f"{k} folds"
        for (kind, size), both in total.items():
            yield f"{kind}, {name}", size, Answer(*(both / k))
            if not stratified:
                yield f"{kind}, one of {k} folds", size, Answer(*first[kind, size])


def same_rows(sample, sizes, rng):
    """Yield bounds where identical rows of the features are one group.

    A tree is out of bag for an example only if it saw no row identical to it. *Grouped draw*: the
    example drawn leaves the calibration set with its whole group, and the trees that saw nobody
    of that group score the new object. *Own group*: a new object that has identical rows in
    training takes their group for the one that is left to score it, and only one without draws.
    *Grouped, all trees*: no draw.
    """
    X, y, new, *_ = sample
    n, classes = len(y), classes_of(sample)
    forest, unseen = grow(X, y, max(sizes), new_seed(rng))
    _, group = np.unique(np.vstack([X, new]), axis=0, return_inverse=True)
    old, asked = group[:n], group[n:]
    seen = np.zeros((len(unseen), group.max() + 1), bool)
    for tree, row in zip(seen, unseen, strict=True):
        tree[old[~row]] = True
    for size in sizes:
        answers = Members(first_trees(forest, size), "soft", 1).answers
        free = ~seen[:size]
        membership = Membership.from_dense(np.ascontiguousarray(free[:, old]))
        kept = np.flatnonzero(membership.counts() > 0)
        if not len(kept):
            continue
        scores = answers.mean(answers.check(X[kept]), membership, kept)
        labels = y[kept]
        rows = answers.check(new)
        calibrator = VennAbers("log").fit(scores, labels, classes=classes)
        yield "grouped, all trees", size, Answer(*bounds_of(calibrator, answers.mean(rows)))
        drawn = rng.integers(len(kept), size=len(new))
        twins = np.isin(asked, old[kept])
        for name, chosen, left_out in (
            ("grouped draw", old[kept[drawn]], drawn),
            ("own group", np.where(twins, asked, old[kept[drawn]]), np.where(twins, -1, drawn)),
        ):
            trees = Membership.from_dense(np.ascontiguousarray(free[:, chosen]))
            asks = answers.mean(rows, trees, np.arange(len(new)))
            m = calibrator.predict_multiprobability(asks, left_out, groups=old[kept])
            yield name, size, Answer(m.lower, m.upper)


def named_groups(sample, sizes, rng):
    """Yield the bounds of forests that are told the groups of the rows.

    Out of bag with bags of a tenth of the rows, so that whole groups of ten are left out; and five
    folds of whole groups.
    """
    X, y, new, _, groups = sample
    for size in sizes if groups is not None else ():
        bags = RandomForestClassifier(size, max_samples=0.1, random_state=new_seed(rng))
        folds = RandomForestClassifier(max(1, size // 5), random_state=new_seed(rng))
        for name, model in (
            ("groups named, one draw", CalibratedClassifier(bags, calibrate_on="oob")),
            ("groups named, 5 folds", CalibratedClassifier(folds, calibrate_on="cv")),
        ):
            model.set_params(n_jobs=1, random_state=new_seed(rng))
            m = model.fit(X, y, groups=groups).predict_multiprobability(new)
            yield name, size, Answer(m.lower, m.upper)


def free_structure(sample, sizes, rng):
    """Yield the bounds of trees whose structure depends little or not on the examples that count.

    Totally randomised trees split by one feature drawn at random, at a place drawn at random
    within what they hold of it.
    """
    X, y, new, *_ = sample
    for size in sizes:
        seed = new_seed(rng)
        random = ExtraTreesClassifier(size, max_features=1, bootstrap=True, random_state=seed)
        for name, model in (
            ("random trees, one draw", CalibratedClassifier(random, subforest="exchangeable")),
        ):
            model.set_params(merge="log", n_jobs=1, random_state=seed)
            with suppress(ValueError):  # a class that none of those to grow on is of
                m = model.fit(X, y).predict_multiprobability(new)
                yield f"Venn–Abers, {name}", size, Answer(m.lower, m.upper)


FAMILIES = {
    "oob": out_of_bag,
    "default": default,
    "frozen": frozen,
    "holdout": holdout,
    "folds": folds,
    "same-rows": same_rows,
    "groups": named_groups,
    "free-structure": free_structure,
}
