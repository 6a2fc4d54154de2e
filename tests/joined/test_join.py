"""The new object joins the bags: the fast way beside the four steps taken literally."""

import sys
import warnings
from fractions import Fraction

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.ensemble import BaggingClassifier, ExtraTreesClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from oracles import joined as literal
from vennforest import CalibratedClassifier
from vennforest.calibrators.core.interface import normalised_bounds
from vennforest.classifier.fitted import predict_together
from vennforest.forest import Membership, PackedForest
from vennforest.forest.leaves import LeafIndex
from vennforest.forest.membership import BagsError
from vennforest.joined import join_kernels as kernels
from vennforest.joined.scorer import binomial_thresholds
from vennforest.sources.row_hashes import hash_rows

DRAWN = tuple(int(part) for part in sklearn.__version__.split(".")[:2]) >= (1, 9)
"""Whether scikit-learn draws bags in proportion to weights, or fills leaves with them."""


def data(rng, k, n, levels=None):
    """Rows, labels of k classes, all there, and new rows; few levels give ties and repeats."""
    d = int(rng.integers(1, 4))
    X = rng.normal(size=(n + 3, d))
    if levels is not None:
        X = np.floor(rng.random((n + 3, d)) * levels)
    noise = rng.normal(size=(n, k)) * 2
    noise[:, 0] += X[:n, 0] / (levels or 1)
    y = noise.argmax(axis=1)
    y[:k] = np.arange(k)
    return X.astype(np.float32).astype(float), y


def fitted(forest, X, y, **parameters):
    """A fitted classifier, or None where a class is out of bag for too few examples."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*out of bag for no tree")
        warnings.filterwarnings("ignore", ".*exact copies")
        weight = parameters.pop("sample_weight", None)
        options = {"subforest": "joined", "calibrate_on": "oob", "merge": "log", **parameters}
        model = CalibratedClassifier(forest, **options)
        try:
            return model.fit(X, y, sample_weight=weight)
        except BagsError as refused:  # a few trees saw most examples of a class
            assert "must leave examples of every class out of bag" in str(refused)
            return None


def class_weights(kind, y, k, weight):
    """What each class weighs in the whole forest; None: it depends on the tree, or is 1."""
    if kind == "balanced":
        if not DRAWN:  # leaves hold these weights, so classes may tie in them exactly
            return np.array([Fraction(len(y), k * int((y == j).sum())) for j in range(k)])
        each = np.bincount(y, weights=weight, minlength=k)
        return each.sum() / (k * each)
    return np.array([kind[j] for j in range(k)]) if isinstance(kind, dict) else None


def joined_by_hand(model, X, y, new, votes, draw=0, weight=None):
    """For each label the scores of all and of the object, from what the forest says of itself."""
    forest, k, n = model.estimator_, len(model.classes_), len(X)
    if hasattr(forest, "steps"):
        X, new = forest[:-1].transform(X), forest[:-1].transform(new[None])[0]
        forest = forest[-1]
    seed = model._state.folds[0].scorer.seed
    subsample = forest.class_weight == "balanced_subsample"
    classes = class_weights(forest.class_weight, y, k, weight)
    of_class = np.ones(k) if classes is None else classes
    total = (np.ones(n) if weight is None else weight) * of_class[y].astype(float)
    counts = literal.bag_counts(forest, n)
    inside = {} if DRAWN else {"weight": weight, "class_weight": classes}
    weights = literal.example_weights(counts, y, k, subsample=subsample, **inside)
    leaves = literal.tree_of_leaves(forest, X)
    own = [tree[0] for tree in literal.tree_of_leaves(forest, new[None])]
    row_hash = int(hash_rows(new[None].astype(np.float32))[0])
    found = []
    for label in range(k):
        rate = of_class[label] / total.sum() if DRAWN else 1 / n
        thresholds = binomial_thresholds(sum(counts[0]), np.array([rate]))[0]
        w = literal.bag_by_hand(row_hash, seed, draw, len(counts), [int(c) for c in thresholds])
        units = [Fraction(1 if DRAWN else of_class[label]) for _ in counts]
        if subsample:
            units = [
                u * literal.subsample_units(bag, y, k)[label]
                for u, bag in zip(units, counts, strict=True)
            ]
        found.append(
            literal.joined_scores(leaves, own, counts, weights, y, k, w, label, units, votes)
        )
    return found


def check_objects(model, X, y, objects, votes, method, weight=None):
    """Compare the bounds of some objects with those of the four steps; return the widest."""
    k, widest = len(model.classes_), 0.0
    draws = model.n_draws
    for new in objects:
        lower, upper = [], []
        for draw in range(draws):
            found = joined_by_hand(model, X, y, new, votes, draw, weight)
            kept = [i for i, s in enumerate(found[0][0]) if s is not None]
            assert_array_equal(model.calibration_y_, model.classes_[y[kept]])
            values = literal.bounds_by_hand(found, y, k, method, weight)
            both = values.min(axis=0), values.max(axis=0)
            if k > 2 and method == "venn-abers":
                both = [b[0] for b in normalised_bounds(both[0][None], both[1][None])]
            lower.append(both[0])
            upper.append(both[1])
            widest = max(widest, np.max(values.max(axis=0) - values.min(axis=0)))
        m = model.predict_multiprobability(new[None])
        assert_allclose(m.lower[0], np.mean(lower, axis=0), rtol=0, atol=1e-9)
        assert_allclose(m.upper[0], np.mean(upper, axis=0), rtol=0, atol=1e-9)
    return widest


@pytest.mark.parametrize("method", ["venn-abers", "venn"])
@pytest.mark.parametrize("votes", ["soft", "hard"])
@pytest.mark.parametrize("k", [2, 3])
def test_bounds_are_those_of_the_four_steps(method, votes, k):
    rng = np.random.default_rng(hash((method == "venn", votes == "hard", k)) % 1000)
    widths = []
    for case in range(20):
        n = int(rng.integers(8, 20))
        X, y = data(rng, k, n, rng.choice([None, 2, 5]))
        kind = [RandomForestClassifier, ExtraTreesClassifier][case % 2]
        forest = kind(
            int(rng.integers(1, 12)),
            bootstrap=True,
            max_depth=rng.choice([None, 1, 3]),
            max_samples=rng.choice([None, 6]),
            random_state=case,
        )
        model = fitted(forest, X[:n], y, method=method, votes=votes, random_state=case)
        if model is None:
            continue
        widths.append(check_objects(model, X[:n], y, X[n - 1 :], votes, method))
    assert len(widths) > 10
    assert max(widths) > 0.2


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "class_weight", [None, "balanced", "balanced_subsample", {0: 1.0, 1: 5.0, 2: 0.5}], ids=str
)
@pytest.mark.parametrize("k", [2, 3])
def test_weights_of_examples_and_classes(k, class_weight, weighted):
    rng = np.random.default_rng(k)
    compared = 0
    for case in range(6):
        n = int(rng.integers(10, 18))
        X, y = data(rng, k, n, rng.choice([None, 4]))
        if isinstance(class_weight, dict):
            class_weight = {j: class_weight[j] for j in range(k)}
        forest = RandomForestClassifier(
            6, max_depth=2, class_weight=class_weight, random_state=case
        )
        weight = rng.choice([0.5, 1.0, 3.0], n) if weighted else None
        method, votes = ["venn-abers", "venn"][case % 2], ["soft", "hard"][case // 3]
        model = fitted(
            forest, X[:n], y, method=method, votes=votes, random_state=case, sample_weight=weight
        )
        if model is not None:
            compared += 1
            check_objects(model, X[:n], y, X[n - 1 :], votes, method, weight)
    assert compared > 2


def test_a_class_that_a_bag_lacks_weighs_as_if_it_were_there_once():
    rng = np.random.default_rng(0)
    X, y = data(rng, 3, 12)
    y = np.where(np.arange(12) == 4, 2, y % 2)
    forest = RandomForestClassifier(8, class_weight="balanced_subsample", random_state=1)
    model = fitted(forest, X[:12], y, random_state=0)
    counts = literal.bag_counts(model.estimator_, 12)
    assert any(sum(b for b, c in zip(bag, y, strict=True) if c == 2) == 0 for bag in counts)
    check_objects(model, X[:12], y, X[11:], "soft", "venn-abers")


@pytest.mark.parametrize("draws", [2, 3])
def test_draws_are_averaged(draws):
    rng = np.random.default_rng(draws)
    X, y = data(rng, 2, 25)
    model = fitted(RandomForestClassifier(7, random_state=0), X[:25], y, n_draws=draws)
    check_objects(model, X[:25], y, X[24:], "soft", "venn-abers")


def test_missing_values_and_steps_before_the_forest():
    rng = np.random.default_rng(5)
    X, y = data(rng, 2, 30)
    X[rng.random(X.shape) < 0.2] = np.nan
    forest = RandomForestClassifier(9, random_state=0)
    check_objects(fitted(forest, X[:30], y), X[:30], y, X[28:], "soft", "venn-abers")
    X = np.nan_to_num(X)
    piped = make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), forest))
    check_objects(
        fitted(make_pipeline(StandardScaler(), forest), X[:30], y),
        X[:30],
        y,
        X[28:],
        "soft",
        "venn-abers",
    )
    assert np.isfinite(fitted(piped, X[:30], y).predict_proba(X)).all()


# --- how often a bag holds the object --------------------------------------------------------


def test_the_object_is_drawn_as_often_as_any_example_and_never_once_at_least():
    thresholds = binomial_thresholds(50, np.array([1 / 50]))
    assert_allclose(
        thresholds[0] / 2**64, stats.binom.cdf(np.arange(thresholds.shape[1]), 50, 0.02)
    )
    rng = np.random.default_rng(0)
    w = np.empty(3, np.int64)
    every = np.empty((40_000, 3), int)
    for i, h in enumerate(rng.integers(0, 2**63, len(every), dtype=np.uint64)):
        kernels.draw_bag(h, thresholds[0], w)
        every[i] = w
    assert (every.min(axis=1) == 0).all()
    # iid counts, under the condition that one of the three is 0
    p = stats.binom.pmf(np.arange(4), 50, 0.02)
    p = np.append(p, 1 - p.sum())
    joint = p[:, None, None] * p[:, None] * p
    joint[1:, 1:, 1:] = 0
    seen = np.zeros((5, 5, 5))
    np.add.at(seen, tuple(np.minimum(every, 4).T), 1)
    some = joint.ravel() > 0
    expected = joint.ravel()[some] / joint.sum() * len(every)
    assert stats.chisquare(seen.ravel()[some], expected).pvalue > 1e-3


def test_an_object_in_nearly_every_bag_is_still_scored():
    """A class weight of 200 draws it into all bags but one in e**60."""
    w = np.empty(4, np.int64)
    thresholds = binomial_thresholds(300, np.array([0.5, 0.001]))
    zeros = np.zeros(4)
    for h in range(400):
        kernels.draw_bag(np.uint64(literal.mixed(h + 1)), thresholds[0], w)
        assert (w == 0).sum() == 1
        zeros += w == 0
    assert stats.chisquare(zeros).pvalue > 1e-3


# --- the way through the library -------------------------------------------------------------


def blobs(n=120, k=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + 40, 3)).astype(np.float32).astype(float)
    y = np.digitize(X[:n, 0] + rng.normal(size=n), [0.5] if k == 2 else [-0.5, 0.7])
    return X[:n], y, X[n:]


@pytest.mark.parametrize("k", [2, 3])
def test_pieces_and_threads_change_nothing(monkeypatch, k):
    X, y, new = blobs(k=k)
    model = fitted(RandomForestClassifier(20, random_state=0), X, y, random_state=0)
    expected = model.predict_multiprobability(new)
    module = sys.modules["vennforest.joined.scorer"]
    monkeypatch.setattr(module, "ROOM", 1)
    monkeypatch.setattr(module, "OBJECTS", 3)
    monkeypatch.setattr(sys.modules["vennforest.forest.leaves"], "CELLS_AT_ONCE", 500)
    for n_jobs in (1, 2):
        again = fitted(RandomForestClassifier(20, random_state=0), X, y, random_state=0)
        again.set_params(n_jobs=n_jobs)
        again.fit(X, y)
        m = again.predict_multiprobability(new)
        assert_array_equal(m.lower, expected.lower)
        assert_array_equal(m.upper, expected.upper)


def test_probabilities_lie_in_the_bounds_and_maps_take_the_scores():
    X, y, new = blobs()
    model = fitted(RandomForestClassifier(20, random_state=0), X, y, random_state=0)
    m = model.predict_multiprobability(new)
    for merge in ("log", "brier", "midpoint", "smooth"):
        p = model.recalibrate("venn-abers", merge=merge).predict_proba(new)
        assert ((p >= m.lower - 1e-12) & (p <= m.upper + 1e-12)).all()
    raw = model.recalibrate("none").predict_proba(new)
    trees = [tree.predict_proba(new) for tree in model.estimator_.estimators_]
    scorer = model._state.folds[0].scorer
    for i, row_hash in enumerate(hash_rows(new.astype(np.float32)).tolist()):
        w = literal.bag_by_hand(
            row_hash, scorer.seed, 0, 20, [int(c) for c in scorer.thresholds[0]]
        )
        own = np.mean([p[i] for p, c in zip(trees, w, strict=True) if c == 0], axis=0)
        assert_allclose(raw[i], own, atol=1e-9)
    platt = model.recalibrate("platt")
    assert_allclose(platt.predict_proba(new), platt.calibrator_.predict_proba(raw[:, 1]))
    both = predict_together([model, platt], new)
    assert_array_equal(both[0][0].lower, m.lower)
    assert_array_equal(both[1][1], platt.predict_proba(new))


def test_out_of_bag_scores_are_those_of_the_forest():
    X, y, _ = blobs(k=3)
    forest = RandomForestClassifier(60, oob_score=True, random_state=0)
    model = fitted(forest, X, y)
    ordinary = model.estimator_.oob_decision_function_
    assert_allclose(model.calibration_scores_, ordinary, rtol=0, atol=1e-10)


@pytest.mark.parametrize("calibrate_on", ["auto", "oob"])
def test_what_has_no_leaves_to_join_is_refused(calibrate_on):
    X, y, _ = blobs()
    for estimator, message in (
        (BaggingClassifier(LogisticRegression()), "must be a random forest.*got BaggingClassifier"),
        (make_pipeline(BaggingClassifier()), "must be a random forest.*got BaggingClassifier"),
        (RandomForestClassifier(monotonic_cst=[1, 0, 0]), "no monotonic_cst .*class frequencies"),
    ):
        with pytest.raises(ValueError, match=message):
            CalibratedClassifier(estimator, subforest="joined", calibrate_on=calibrate_on).fit(X, y)


def test_whole_forests_and_groups_are_refused():
    X, y, _ = blobs()
    joined = CalibratedClassifier(ExtraTreesClassifier(), subforest="joined", calibrate_on="oob")
    with pytest.raises(ValueError, match="must leave examples out of bag"):
        joined.fit(X, y)
    joined.set_params(estimator=RandomForestClassifier(5))
    with pytest.raises(ValueError, match="groups must be None"):
        joined.fit(X, y, groups=np.arange(len(y)) // 2)


def test_a_frozen_forest_joins_with_its_own_training_data_alone():
    X, y, new = blobs()
    forest = RandomForestClassifier(25, random_state=0)
    expected = fitted(forest, X, y, random_state=0).predict_multiprobability(new)
    frozen = FrozenEstimator(forest.fit(X, y))
    m = fitted(frozen, X, y, calibrate_on="oob", random_state=0).predict_multiprobability(new)
    assert m.lower.shape == expected.lower.shape
    with pytest.raises(ValueError, match="must be what the frozen model was trained on"):
        CalibratedClassifier(frozen, subforest="joined", calibrate_on="oob").fit(X[::-1], y[::-1])
    with pytest.raises(ValueError, match='calibrate_on must be "oob" for subforest="joined"'):
        fitted(frozen, X, y, calibrate_on="auto")


def test_leaves_that_do_not_hold_their_bags_are_refused():
    X, y, _ = blobs()
    forest = RandomForestClassifier(5, random_state=0).fit(X, y)
    packed, membership = PackedForest.from_forest(forest), Membership.from_forest(forest, len(y))
    bags = [np.bincount(b, minlength=len(y)).astype(float) for b in forest.estimators_samples_]
    numbers = np.arange(len(y))
    index = LeafIndex.build(packed, X, y, bags, membership, numbers)
    assert len(index.totals) == len(packed.nodes)
    assert len(index.examples) == membership.counts().sum()
    assert index.totals.sum() == 5 * len(y)
    with pytest.raises(ValueError, match="must contain in each leaf the class frequencies"):
        LeafIndex.build(packed, X, y, bags[::-1], membership, numbers)


@pytest.mark.parametrize("calibrate_on", ["holdout", "cv", "training"])
def test_other_sources_take_no_notice(calibrate_on):
    X, y, new = blobs()
    forest = RandomForestClassifier(5, random_state=0)
    one, other = (
        CalibratedClassifier(
            forest, calibrate_on=calibrate_on, subforest=subforest, random_state=0
        ).fit(X, y)
        for subforest in ("joined", "all")
    )
    assert_array_equal(one.predict_proba(new), other.predict_proba(new))
