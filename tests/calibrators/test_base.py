"""What every calibrator promises, whatever its method; the list is easily added to."""

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from support.cases import MAPS
from vennforest.calibrators import (
    METHODS,
    BetaCalibration,
    PlattScaling,
    PooledCalibration,
    SplineCalibration,
    Venn,
    VennAbers,
)
from vennforest.calibrators.softmax import SoftmaxMap

CALIBRATORS = [*MAPS, SoftmaxMap("shared"), SoftmaxMap("full")]

REGRESSIONS = [
    *(m for m in MAPS if isinstance(m, BetaCalibration | SplineCalibration | PooledCalibration)),
    *map(SoftmaxMap, ("shared", "diagonal", "full")),
]

every_calibrator = pytest.mark.parametrize("calibrator", CALIBRATORS, ids=repr)


def two_classes(seed, n=120, decimals=2):
    """Scores with ties, exact zeros and ones, and labels that they tell something of."""
    rng = np.random.default_rng(seed)
    scores = np.clip(np.round(rng.normal(0.5, 0.35, n), decimals), 0, 1)
    return scores, (rng.random(n) < 0.15 + 0.7 * scores).astype(int)


def many_classes(seed, n=150, k=4):
    rng = np.random.default_rng(seed)
    scores = np.array([rng.multinomial(20, p) for p in rng.dirichlet(np.full(k, 0.5), n)]) / 20
    y = np.array([rng.choice(k, p=(p + 0.1) / (1 + 0.1 * k)) for p in scores])
    return scores, y


def assert_probabilities(p, n, k):
    assert p.shape == (n, k) and p.dtype == np.float64
    assert ((p >= 0) & (p <= 1)).all()
    assert_allclose(p.sum(axis=1), 1, atol=1e-12)


@every_calibrator
def test_the_attributes_of_a_fitted_calibrator_are_listed(calibrator):
    assert {"classes_", "predict_proba"} <= set(dir(clone(calibrator).fit(*two_classes(1))))


@every_calibrator
def test_labels_of_any_kind_give_what_0_and_1_give(calibrator):
    scores, y = two_classes(1)
    p = clone(calibrator).fit(scores, y).predict_proba(np.linspace(0, 1, 57))
    assert_probabilities(p, 57, 2)
    for labels in ([-1, 1], ["no", "yes"], [False, True], [2.0, 4.0]):
        model = clone(calibrator).fit(scores, np.array(labels)[y])
        assert_array_equal(model.classes_, labels)
        assert_array_equal(model.predict_proba(np.linspace(0, 1, 57)), p)
        predicted = model.predict(np.linspace(0, 1, 57))
        assert_array_equal(predicted, np.array(labels)[p.argmax(axis=1)])


@every_calibrator
@pytest.mark.parametrize("make", [two_classes, many_classes])
def test_a_weight_of_two_is_the_example_twice_and_of_zero_its_absence(calibrator, make):
    scores, y = make(2)
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = clone(calibrator).fit(scores, y, sample_weight=weight)
    repeated = clone(calibrator).fit(scores.repeat(weight, axis=0), y.repeat(weight))
    assert_allclose(
        weighted.predict_proba(scores), repeated.predict_proba(scores), rtol=1e-6, atol=1e-9
    )


@every_calibrator
def test_a_class_missing_from_y_keeps_its_column(calibrator):
    scores, y = many_classes(5)
    present = y != 1
    model = clone(calibrator).fit(scores[present], y[present], classes=[0, 1, 2, 3])
    p = model.predict_proba(scores)
    assert_probabilities(p, len(scores), 4)
    assert_array_equal(model.classes_, [0, 1, 2, 3])
    # The columns of the others are where they belong: each follows its own score.
    for j in (0, 2, 3):
        assert np.corrcoef(p[:, j], scores[:, j])[0, 1] > 0.5


@every_calibrator
@pytest.mark.parametrize("only", [0, 1])
def test_one_class_in_y_of_two_that_are_named(calibrator, only):
    for scores in ([0.0, 0.2, 0.5, 0.9, 1.0], [0.0], [0.3], [1.0]):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = clone(calibrator).fit(scores, [only] * len(scores), classes=[0, 1])
            p = model.predict_proba(np.linspace(0, 1, 11))
        assert_probabilities(p, 11, 2)


@every_calibrator
def test_scores_that_are_no_numbers_are_refused(calibrator):
    scores, y = two_classes(0)
    for wrong in (np.nan, np.inf, -np.inf):
        broken = scores.copy()
        broken[7] = wrong
        with pytest.raises(ValueError, match=r"scores must be finite, got (NaN|-?inf) in row 7"):
            clone(calibrator).fit(broken, y)
    with pytest.raises(ValueError, match="scores must be finite"):
        clone(calibrator).fit(scores, y).predict_proba(broken)


@pytest.mark.parametrize("calibrator", REGRESSIONS, ids=repr)
@pytest.mark.parametrize(
    ("scores", "weight"),
    [
        ([0.0, 0.0, 1.0, 1.0], [1e4, 1.0, 1e-4, 3.0]),
        ([0.0, 0.25, 0.5, 1.0], None),
        ([5e-324, 1e-300, 0.5, 1 - 1e-16], None),
        ([0.5, 0.5 + 1e-16, 0.5 + 2e-16, 0.5], None),
        ([0.5, 0.5, 0.5, 0.5], [1e-300] * 4),
    ],
    ids=str,
)
def test_a_regression_stops_at_finite_values_without_warnings(calibrator, scores, weight):
    for code in (0, 3, 6, 9, 10, 14, 15):
        y = [(code >> i) & 1 for i in range(4)]
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            model = clone(calibrator).fit(scores, y, sample_weight=weight, classes=[0, 1])
            assert_probabilities(model.predict_proba(np.linspace(0, 1, 21)), 21, 2)


@pytest.mark.parametrize("calibrator", [*CALIBRATORS, VennAbers(), Venn()], ids=repr)
def test_arrays_may_be_read_only_or_strided_and_are_not_written_to(calibrator):
    scores, y = many_classes(6)
    expected = clone(calibrator).fit(scores, y).predict_proba(scores)
    fortran = np.asfortranarray(scores)
    strided = np.repeat(scores, 2, axis=0)[::2]
    weight = np.ones(len(y))
    for array in (fortran, strided, y, weight):
        array.flags.writeable = False
    for read_only in (fortran, strided):
        model = clone(calibrator).fit(read_only, y, sample_weight=weight)
        assert_array_equal(model.predict_proba(read_only), expected)


@every_calibrator
def test_two_columns_a_copy_a_pickle_and_a_second_fit_give_the_same(calibrator):
    scores, y = two_classes(9)
    model = clone(calibrator)
    with pytest.raises(NotFittedError):
        model.predict_proba(scores)
    expected = model.fit(scores, y).predict_proba(scores)
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(scores), expected)
    assert_array_equal(clone(model).fit(scores, y).predict_proba(scores), expected)
    model.fit(*many_classes(0))
    assert_array_equal(model.fit(scores, y).predict_proba(scores), expected)
    both = np.column_stack([1 - scores, scores])
    model.fit(both, y)
    for new in (both, scores):
        assert_allclose(model.predict_proba(new), expected, rtol=1e-12, atol=1e-15)


@every_calibrator
def test_parameters_are_kept_as_given_and_checked_at_fit(calibrator):
    if isinstance(calibrator, SoftmaxMap):
        return  # private
    for name, value in calibrator.get_params().items():
        model = clone(calibrator).set_params(**{name: "nonsense"})
        assert getattr(model, name) == "nonsense"
        with pytest.raises(ValueError, match=rf"{name} must be .*, got 'nonsense'"):
            model.fit(*two_classes(0))
        model.set_params(**{name: value}).fit(*two_classes(0))
        for wrong in (None, [value], {1: value}):
            with pytest.raises(ValueError, match=f"{name} must be"):
                clone(calibrator).set_params(**{name: wrong}).fit(*two_classes(0))


@every_calibrator
def test_a_prediction_depends_on_its_row_alone(calibrator):
    for make in (two_classes, many_classes):
        scores, y = make(10)
        model = clone(calibrator).fit(scores, y)
        expected = model.predict_proba(scores)
        assert_probabilities(expected, len(scores), len(model.classes_))
        for i in range(0, len(y), 40):
            assert_allclose(model.predict_proba(scores[i : i + 1])[0], expected[i], rtol=1e-14)
        assert model.predict_proba(scores[:0]).shape == (0, len(model.classes_))


MONOTONE = [one for one in CALIBRATORS if not isinstance(one, PlattScaling | PooledCalibration)]


@pytest.mark.parametrize("calibrator", MONOTONE, ids=repr)
@settings(max_examples=10, deadline=None)
@given(
    pairs=st.lists(
        st.tuples(st.floats(0, 1), st.booleans(), st.integers(1, 3)), min_size=1, max_size=25
    )
)
def test_a_larger_score_never_gets_a_smaller_probability(calibrator, pairs):
    scores, y, weight = map(np.array, zip(*pairs, strict=True))
    model = clone(calibrator).fit(scores, y, sample_weight=weight, classes=[False, True])
    p = model.predict_proba(np.sort(np.append(np.linspace(0, 1, 101), scores)))[:, 1]
    assert (np.diff(p) >= -1e-15).all()


def test_rows_that_sum_to_one_but_for_rounding_are_divided_by_their_sum():
    scores = np.array([[0.2, 0.3, 0.500004], [0.1, 0.1, 0.8], [0.6, 0.2, 0.2]])
    p = METHODS["none"]().fit(scores, [0, 1, 2]).predict_proba(scores)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=0, atol=1e-12)
