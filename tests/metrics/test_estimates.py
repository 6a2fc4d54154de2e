"""Brier decompositions, calibration errors and confidence, against their slow versions."""

import math
from functools import partial
from typing import get_args

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss

from oracles import formulas as oracle
from support.cases import close, draw_estimates
from vennforest import metrics
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


def test_binned_errors_agree_with_the_slow_ones():
    rng = np.random.default_rng(1)
    for _ in range(60):
        y, p = draw_estimates(rng)
        bins, w = int(rng.integers(1, 20)), rng.integers(1, 4, len(y))
        options = {"bins": bins, "sample_weight": w, "classes": [0, 1]}
        codes = [oracle._bin_of(q, bins) for q in p.tolist()]
        if rng.random() < 0.4:
            options["strategy"] = "quantile"
            codes = oracle.quantile_bins(p.tolist(), bins, w.tolist())
        gaps = oracle.calibration_gaps(y.tolist(), p.tolist(), codes, w.tolist())
        for kind, expected in (
            ("expected", math.fsum(share * gap for share, gap in gaps)),
            ("maximum", max(gap for _, gap in gaps)),
            ("root-mean-square", math.sqrt(math.fsum(share * gap**2 for share, gap in gaps))),
        ):
            close(metrics.calibration_error(y, p, kind=kind, **options), expected)


def test_errors_of_many_classes_agree_with_the_slow_ones():
    rng = np.random.default_rng(2)
    for _ in range(60):
        k, n = int(rng.integers(2, 5)), int(rng.integers(1, 40))
        p = rng.dirichlet(np.ones(k), n)
        y = rng.integers(0, k, n)
        confidence, right = p.max(axis=1).tolist(), (p.argmax(axis=1) == y).astype(int).tolist()
        guo = oracle.expected_calibration_error(right, confidence)
        close(metrics.calibration_error(y, p, kind="confidence", classes=range(k)), guo)
        if k > 2:
            close(metrics.calibration_error(y, p, classes=range(k)), guo)
        each = [
            oracle.expected_calibration_error((y == j).astype(int).tolist(), p[:, j].tolist())
            for j in range(k)
        ]
        close(metrics.calibration_error(y, p, kind="classwise", classes=range(k)), np.mean(each))
