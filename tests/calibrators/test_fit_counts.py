"""Every calibrator fitted to counts is what it is when fitted to the examples."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from oracles import formulas as oracle
from vennforest import ScoreCounts, ScoreGrid, VennAbers
from vennforest._validation import InputError
from vennforest.calibrators import (
    METHODS,
    BetaCalibration,
    IsotonicCalibration,
    MatrixScaling,
    PlattScaling,
    PooledCalibration,
    QuadraticScaling,
    SplineCalibration,
    TemperatureScaling,
    Venn,
)

TWO = [
    *(method.make() for method in METHODS.values()),
    PlattScaling("hard"),
    PlattScaling(on="logit"),
    BetaCalibration("hard"),
    IsotonicCalibration("linear"),
    IsotonicCalibration("nearest"),
    MatrixScaling("full"),
    SplineCalibration(roughness=1.0),
    Venn("nearest", merge="smooth"),
    VennAbers("log"),
]
ONE_VS_REST = [
    PlattScaling(),
    IsotonicCalibration(),
    BetaCalibration(),
    QuadraticScaling(),
    SplineCalibration(),
    VennAbers(),
]


def draw(rng, n, levels):
    scores = rng.integers(0, levels + 1, n) / levels
    return scores, (rng.random(n) < scores**1.5).astype(int)


def counted(scores, y, parts=3, weight=None, **options):
    """Count parts of the examples, and add the counts."""
    return sum(
        ScoreCounts.from_scores(
            scores[i::parts],
            y[i::parts],
            sample_weight=None if weight is None else weight[i::parts],
            classes=np.unique(y),
            **options,
        )
        for i in range(parts)
    )


@pytest.mark.parametrize("calibrator", TWO, ids=str)
def test_two_classes(calibrator):
    rng = np.random.default_rng(91)
    new = np.linspace(0, 1, 41)
    for n, levels in ((9, 4), (60, 9), (400, 30)):
        scores, y = draw(rng, n, levels)
        y[:2] = 0, 1
        rows = calibrator.fit(scores, y).predict_proba(new)
        counts = calibrator.fit_counts(counted(scores, y))
        assert_allclose(counts.predict_proba(new), rows, rtol=0, atol=1e-12)
        weight = rng.integers(0, 4, n)
        weight[:2] = 1
        rows = calibrator.fit(scores, y, sample_weight=weight).predict_proba(new)
        counts = calibrator.fit_counts(counted(scores, y, weight=weight))
        assert_allclose(counts.predict_proba(new), rows, rtol=0, atol=1e-12)
        weight = rng.random(n) * 3 + 0.1
        rows = calibrator.fit(scores, y, sample_weight=weight).predict_proba(new)
        counts = calibrator.fit_counts(counted(scores, y, weight=weight))
        assert_allclose(counts.predict_proba(new), rows, rtol=0, atol=1e-12)
        for copy in (pickle.loads(pickle.dumps(counts)), counts):
            assert_array_equal(copy.predict_proba(new), counts.predict_proba(new))


@pytest.mark.parametrize(
    "calibrator",
    [method.make() for name, method in METHODS.items() if name not in ("none", "bostrom")],
    ids=str,
)
def test_where_scores_are_put_together_rows_and_counts_agree(calibrator):
    rng = np.random.default_rng(92)
    new = np.linspace(0, 1, 41)
    for levels in (100, 1 << 40):
        scores, y = draw(rng, 17_000, levels)
        rows = calibrator.fit(scores, y).predict_proba(new)
        counts = calibrator.fit_counts(ScoreCounts.from_scores(scores, y)).predict_proba(new)
        assert_allclose(counts, rows, rtol=0, atol=1e-12)


@pytest.mark.parametrize("labels", [[0, 0, 0, 1, 1], [1, 1, 0, 0, 0], [0, 1, 0, 0, 0]])
@pytest.mark.parametrize("calibrator", TWO, ids=str)
def test_separable_and_reversed_labels(calibrator, labels):
    scores = np.repeat([0.0, 0.2, 0.5, 0.8, 1.0], 4)
    y = np.repeat(labels, 4)
    new = np.linspace(0, 1, 21)
    rows = calibrator.fit(scores, y).predict_proba(new)
    counts = calibrator.fit_counts(counted(scores, y)).predict_proba(new)
    assert_allclose(counts, rows, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", list(METHODS))
def test_score_vectors_serve_every_calibrator(name):
    rng = np.random.default_rng(93)
    p = rng.multinomial(8, [0.5, 0.3, 0.2], 150) / 8
    y = np.array(["a", "b", "c"])[[rng.choice(3, p=(row + 0.1) / 1.3) for row in p]]
    calibrator = METHODS[name].make()
    rows = calibrator.fit(p, y).predict_proba(p)
    counts = counted(p, y, vectors=True)
    assert len(counts) < 50
    found = calibrator.fit_counts(counts).predict_proba(p)
    assert_allclose(found, rows, rtol=0, atol=1e-11 if name == "pooled" else 1e-12)


@pytest.mark.parametrize("calibrator", ONE_VS_REST, ids=str)
def test_one_class_against_the_rest(calibrator):
    rng = np.random.default_rng(94)
    p = rng.multinomial(8, [0.5, 0.3, 0.2], 150) / 8
    y = np.array(["a", "b", "c"])[[rng.choice(3, p=(row + 0.1) / 1.3) for row in p]]
    rows = calibrator.fit(p, y).predict_proba(p)
    found = calibrator.fit_counts(counted(p, y)).predict_proba(p)
    assert_allclose(found, rows, rtol=0, atol=1e-12)
    assert calibrator.classes_.tolist() == ["a", "b", "c"]


def test_what_looks_at_whole_vectors_says_so():
    counts = ScoreCounts.from_scores(np.eye(3), ["a", "b", "c"])
    for one in (TemperatureScaling(), MatrixScaling(), PooledCalibration(), Venn()):
        with pytest.raises(ValueError, match=r"must keep the score vectors of 3 classes .*vectors"):
            one.fit_counts(counts)
    for one in (SplineCalibration(on="logits"), QuadraticScaling(on="logits")):
        with pytest.raises(ValueError, match="counts of 3 classes must be at probabilities"):
            one.fit_counts(counts)


def test_new_scores_are_put_on_the_grid():
    rng = np.random.default_rng(95)
    scores, new = rng.random(200), rng.random(100)
    y = (rng.random(200) < scores).astype(int)
    for grid in (ScoreGrid(cells=16), ScoreGrid(cells=64, on="logit")):
        on_grid = VennAbers().fit_counts(ScoreCounts.from_scores(scores, y, grid=grid))
        found = on_grid.predict_multiprobability(new)
        expected = VennAbers().fit(grid(scores), y).predict_multiprobability(grid(new))
        assert_array_equal(found.lower, expected.lower)
        assert_array_equal(found.upper, expected.upper)
        for s, p0, p1 in zip(new[:10], found.p0, found.p1, strict=False):
            exact = oracle.venn_abers(grid(scores).tolist(), y.tolist(), float(grid([s])[0]))
            assert_allclose([p0, p1], [float(one) for one in exact], atol=1e-12)
        on_grid.fit(scores, y)
        free = VennAbers().fit(scores, y).predict_multiprobability(new)
        assert_array_equal(on_grid.predict_multiprobability(new).lower, free.lower)
    with pytest.raises(ValueError, match=r"the range of the grid, got 1\.5 at position 0"):
        VennAbers().fit_counts(ScoreCounts.from_scores(scores, y, grid=grid)).predict_proba([1.5])
    two = TemperatureScaling().fit_counts(ScoreCounts.from_scores(scores, y, grid=grid))
    assert_array_equal(two.predict_proba(np.column_stack([1 - new, new])), two.predict_proba(new))


def test_counts_beyond_what_floats_hold():
    """p0 and p1 of two scores, whose counts no float holds, from fractions."""
    a, b = 2**58 + 1, 2**58 + 2
    counts = ScoreCounts.from_counts([0.2, 0.8], [a, 1], [3, b])
    m = VennAbers("log").fit_counts(counts).predict_multiprobability([0.2, 0.8])
    expected = [3 / (a + 4), (b + 1) / (b + 2)]
    assert_allclose([m.p0[0], m.p1[1]], expected, rtol=1e-15)
    assert m.p0[0] < m.p1[0]
    with pytest.raises(ValueError, match=r"counts must sum to at most 1e\+18"):
        VennAbers().fit_counts(ScoreCounts.from_counts([0.2], [2**61], [1]))


def test_no_examples_are_known():
    counts = ScoreCounts.from_scores([0.2, 0.8, 0.4], [0, 1, 1])
    for one in (VennAbers(), Venn(), Venn("nearest")):
        one.fit_counts(counts)
        with pytest.raises(ValueError, match="left_out must be None after fit_counts"):
            one.predict_multiprobability([0.5], [0])
    with pytest.raises(InputError, match=r"counts must be ScoreCounts .*, got list"):
        VennAbers().fit_counts([0.2])
    with pytest.raises(ValueError, match="counts must contain at least one example, got none"):
        VennAbers().fit_counts(ScoreCounts.from_scores([], [], classes=[0, 1]))


def test_a_class_without_examples():
    counts = ScoreCounts.from_scores([0.2, 0.8], ["no", "no"], classes=["no", "yes"])
    rows = VennAbers().fit([0.2, 0.8], ["no", "no"], classes=["no", "yes"])
    new = [0.1, 0.5, 0.9]
    assert_array_equal(VennAbers().fit_counts(counts).predict_proba(new), rows.predict_proba(new))
    with pytest.raises(ValueError, match=r"scores must be in \[0, 1\] for beta calibration"):
        BetaCalibration().fit_counts(ScoreCounts.from_scores([0.2, 1.8], [0, 1]))


@pytest.mark.parametrize("make", [IsotonicCalibration, PlattScaling, VennAbers])
def test_one_against_the_rest_takes_score_vectors(make):
    rng = np.random.default_rng(5)
    p = rng.dirichlet([1, 1, 1], 60)
    y = np.array([rng.choice(3, p=row) for row in p])
    vectors = make().fit_counts(ScoreCounts.from_scores(p, y, vectors=True))
    assert_allclose(vectors.predict_proba(p), make().fit(p, y).predict_proba(p), atol=1e-9)
