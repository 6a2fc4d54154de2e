"""Labels, probabilities and times of follow-up: what is read, and what is refused."""

import numpy as np
import pandas as pd
import pytest

from support.cases import close
from vennforest import metrics
from vennforest.metrics import (
    Estimates,
    calibration_line,
)
from vennforest.metrics._inputs import check_probabilities


def test_rows_lost_before_the_horizon_weigh_in_those_who_were_followed():
    rng = np.random.default_rng(5)
    n, horizon = 6000, 2.0
    risk = rng.uniform(0.5, 2, n)
    time, lost = rng.exponential(1 / (0.15 * risk)), rng.uniform(0, 4, n)
    p, y = 1 - np.exp(-0.15 * risk * horizon), time <= lost
    seen = np.minimum(time, lost)
    matured = Estimates(y, p, follow_up=(seen, horizon)).observed_expected()
    assert matured.low < 1 < matured.high
    known = (y & (time <= horizon)) | (seen >= horizon)
    naive = calibration_line((y & (time <= horizon))[known], p[known]).observed_expected
    assert naive.low > 1
    everyone = Estimates(time <= horizon, p).observed_expected()
    assert matured.value == pytest.approx(everyone.value, abs=0.08)
    full = Estimates(y, p, follow_up=(np.full(n, 9.0), 9.0)).observed_expected()
    assert full.value == pytest.approx(y.sum() / p.sum())
    with pytest.raises(ValueError, match="follow_up must have a time"):
        Estimates(y, p, follow_up=(seen[1:], horizon))


@pytest.mark.parametrize(
    ("time", "horizon", "message"),
    [
        ([1.0, 2, 3, -4], 2.0, "times of 0 or more, got -4.0 in row 3"),
        ([1.0, np.nan, 3, 4], 2.0, "times of 0 or more, got nan in row 1"),
        ([1.0, 2, 3, 4], 0, "horizon must be a finite number above 0, got 0"),
        ([1.0, 2, 3, 4], np.inf, "horizon must be a finite number above 0"),
        ([1.0, 2, 3, 4], 5.0, "reach the horizon 5 in a row, got 4 at most"),
    ],
)
def test_times_and_horizons_that_tell_nothing_are_refused(time, horizon, message):
    with pytest.raises(ValueError, match=message):
        Estimates([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4], follow_up=(time, horizon))


def test_a_horizon_that_no_row_reaches_is_right_if_all_have_the_event():
    estimates = Estimates([1, 1], [0.4, 0.6], classes=[0, 1], follow_up=([1.0, 2.0], 5.0))
    assert estimates.observed_expected().value == pytest.approx(2)


def test_class_missing_from_y_keeps_its_column():
    p = np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])
    found = metrics.brier_decomposition(["a", "c"], p, classes=["a", "b", "c"])
    close(found.brier, (0.98 + 1.26) / 2)
    with pytest.raises(ValueError, match=r"p must have a column for each of 2 classes.*classes="):
        metrics.brier_decomposition(["a", "c"], p)


@pytest.mark.parametrize(("y", "p", "options", "message"), [
    ([0, 1], [0.1, np.nan], {}, "p must be finite, got NaN in row 1"),
    ([0, 1], [0.1, 1.1], {}, r"p must lie in \[0, 1\], got 1.1"),
    (
        [0, 1],
        [[0.5, 0.6], [1, 0]],
        {},
        "p must have rows that sum to 1 within what their digits allow, got a sum of 1.1 in row 0",
    ),
    ([0, 1, 2], [0.1, 0.2, 0.3], {}, "p must have a column for each of 3 classes"),
    ([0, 1], [0.1, 0.2], {"pos_label": 7}, r"pos_label must be one of .*, got 7"),
    ([0, 1], [0.1, 0.2], {"bins": 0}, "bins must be an integer >= 1, got 0"),
    ([0, 1], [0.1, 0.2], {"strategy": "width"}, "strategy must be one of .*, got 'width'"),
])  # fmt: skip
def test_bad_input_is_named(y, p, options, message):
    with pytest.raises(ValueError, match=message):
        metrics.brier_decomposition(y, p, **options)


@pytest.mark.parametrize("decimals", [2, 3, 4])
def test_rounded_probabilities_are_taken(decimals):
    p = np.random.default_rng(4).dirichlet(np.ones(5), 200)
    got = check_probabilities(p.round(decimals))
    assert np.abs(got.sum(axis=1) - 1).max() < 1e-12
    assert np.abs(got - p).max() < 3 * 10.0**-decimals
    wrong = p.round(decimals)
    wrong[17, 0] += 0.1
    with pytest.raises(ValueError, match=r"sum to 1 within what .*, got a sum of .* in row 17"):
        check_probabilities(wrong)
    assert metrics.brier_decomposition([1, 0], [1 + 1e-12, -1e-12]).brier == 0  # is let pass


@pytest.mark.parametrize("pos_label", [None, "no", "yes"])
def test_one_column_goes_by_the_class_in_its_name(pos_label):
    rng = np.random.default_rng(8)
    p = rng.random(300)
    y = np.where(rng.random(300) < p, "yes", "no")
    expected = Estimates(y, np.column_stack([1 - p, p]), pos_label=pos_label)
    for frame in (pd.DataFrame({"p(no)": 1 - p}), pd.DataFrame({"p(yes)": p})):
        estimates = Estimates(y, frame, pos_label=pos_label)
        np.testing.assert_allclose(estimates.p, expected.p, atol=1e-15)
        assert estimates.positive == expected.positive
    of_label = p if pos_label != "no" else 1 - p
    np.testing.assert_array_equal(
        Estimates(y, of_label, pos_label=pos_label).p[:, expected.positive], of_label
    )
