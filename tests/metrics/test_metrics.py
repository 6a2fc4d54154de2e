"""Decompositions, scores and input of the measures, against slow versions and other packages."""

import math
from functools import partial
from typing import get_args

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import brier_score_loss

from oracles import formulas as oracle
from support.cases import close, draw_estimates
from vennforest import metrics
from vennforest.metrics import Estimates
from vennforest.metrics._inputs import check_probabilities
from vennforest.metrics.estimates import ErrorKind

MEASURES = {
    "brier": lambda y, p, **kw: metrics.brier_decomposition(y, p, **kw).brier,
    "decomposition": lambda y, p, **kw: metrics.brier_decomposition(y, p, **kw).reliability,
    "quantiles": lambda y, p, **kw: (
        metrics.brier_decomposition(y, p, bins=4, strategy="quantile", **kw).resolution
    ),
    "spiegelhalter-test": lambda y, p, **kw: metrics.spiegelhalter_test(y, p, **kw).statistic,
    "kuiper-test": lambda y, p, **kw: metrics.kuiper_test(y, p, **kw).statistic,
    "confidence": metrics.confidence_minus_accuracy,
    **{
        f"error-{kind}": partial(metrics.calibration_error, kind=kind)
        for kind in get_args(ErrorKind)
    },
}


def test_brier_decomposition_agrees_with_the_slow_one():
    rng = np.random.default_rng(1)
    for _ in range(200):
        y, p = draw_estimates(rng)
        w = rng.integers(0, 4, len(y)) if rng.random() < 0.5 else None
        if w is not None and not w.any():
            continue
        bins = rng.choice([1, 2, 10, 100, 7]).item()
        d = metrics.brier_decomposition(y, p, bins=bins, sample_weight=w, classes=[0, 1])
        weights = None if w is None else w.tolist()
        slow = oracle.brier_decomposition(y.tolist(), p.tolist(), bins, weights)
        close((d.reliability, d.resolution, d.uncertainty, d.sharpness, d.brier), slow)


def test_many_classes_add_up_one_vs_rest():
    rng = np.random.default_rng(4)
    p = rng.dirichlet(np.ones(4), 300)
    y = rng.choice(list("dabc"), 300)
    whole = metrics.brier_decomposition(y, p)
    parts = [metrics.brier_decomposition(y, p, pos_label=c) for c in "abcd"]
    for name in ("reliability", "resolution", "uncertainty", "sharpness", "brier"):
        close(getattr(whole, name), sum(getattr(part, name) for part in parts))
    close(whole.brier, brier_score_loss(y, p))
    w = rng.random(300)
    weighted = metrics.brier_decomposition(y, p, sample_weight=w)
    close(weighted.brier, brier_score_loss(y, p, sample_weight=w))
    close(parts[2].brier, np.mean(((y == "c") - p[:, 2]) ** 2))


def test_confidence_minus_accuracy_by_hand():
    y, p = ["a", "a", "b", "b"], [0.1, 0.6, 0.8, 0.5]
    errors = [0.9 - 1, 0.6 - 0, 0.8 - 1, 0.5 - 0]  # of equals the first class is predicted
    close(metrics.confidence_minus_accuracy(y, p), np.mean(errors))
    matrix = [[0.2, 0.5, 0.3], [0.4, 0.4, 0.2]]
    close(metrics.confidence_minus_accuracy([2, 0], matrix, classes=[0, 1, 2]), (0.5 + 0.4 - 1) / 2)


@pytest.mark.parametrize("name", [name for name in MEASURES if "-test" not in name])
@pytest.mark.parametrize("k", [2, 4])
def test_weights_are_repeated_observations_and_order_does_not_count(name, k):
    measure, rng = MEASURES[name], np.random.default_rng(10)
    for _ in range(20):
        p = rng.dirichlet(np.ones(k), 30).round(1 if rng.random() < 0.5 else 9)
        p[:, -1] = 1 - p[:, :-1].sum(axis=1).clip(0, 1)
        p = p / p.sum(axis=1, keepdims=True)
        y = np.array([rng.choice(k, p=row) for row in p])
        w = rng.integers(0, 4, 30)
        if len(set(y[w > 0])) < 2:
            continue
        rows = rng.permutation(np.repeat(np.arange(30), w))
        once = measure(y, p, sample_weight=w, classes=range(k))
        again = measure(y[rows], p[rows], classes=range(k))
        np.testing.assert_allclose(again, once, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", MEASURES)
def test_labels_of_any_dtype(name):
    measure, rng = MEASURES[name], np.random.default_rng(11)
    p = rng.random(50)
    y = (rng.random(50) < p).astype(int)
    expected = measure(y, p)
    for labels in ([False, True], [-1, 1], ["no", "yes"], [1.0, 2.0]):
        named = np.array(labels)[y]
        close(measure(named, p), expected)
        close(measure(named.tolist(), np.column_stack([1 - p, p])), expected)
    # A symmetric measure is the same for the first class, asked for by name.
    flipped = measure(np.array(["no", "yes"])[y], 1 - p, pos_label="no")
    if name in ("brier", "confidence", "error-classwise", "error-confidence"):
        close(flipped, expected)


@pytest.mark.parametrize("name", MEASURES)
def test_one_class_and_one_example(name):
    measure = MEASURES[name]
    for y, p in (([1], [0.3]), ([0, 0], [0.2, 0.2]), ([True], [1.0]), ([0], [0.0])):
        assert math.isfinite(measure(y, p, classes=[0, 1]))
        with pytest.raises(ValueError, match="y must contain at least two classes"):
            measure(y, p)


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
