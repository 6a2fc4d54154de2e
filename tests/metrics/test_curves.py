"""Reliability curves and confidence bands, against slow versions and the R package."""

import numpy as np
import pytest

from oracles import bands as oracle
from oracles import formulas
from support.cases import close, draw_estimates
from vennforest import metrics
from vennforest.metrics._inputs import EventEstimates
from vennforest.metrics.curves import recalibrate


def read(band, x):
    """Bounds between the points of a band: the lower one of the left, the upper of the right."""
    lower = band.lower[np.searchsorted(band.x, x, "right") - 1]
    return lower, band.upper[np.searchsorted(band.x, x, "left")]


def test_band_is_that_of_all_intervals():
    rng = np.random.default_rng(1)
    for _ in range(150):
        y, p = draw_estimates(rng)
        level = rng.choice([0.5, 0.95, 0.999])
        band = metrics.calibration_band(y, p, level=level, classes=[0, 1])
        assert (band.x[0], band.x[-1]) == (0, 1)
        assert (np.diff(band.x) > 0).all()
        fit = recalibrate(EventEstimates(y.astype(float), p, np.ones(len(p))))
        groups = oracle.groups(p.tolist(), y.tolist())
        at = rng.choice([*p, rng.random(), np.nextafter(p[0], 0), np.nextafter(p[0], 1), 0, 1], 2)
        for x in at.clip(0, 1):
            lower, upper = oracle.band_at(groups, x, level)
            # Bounds that cross are widened to the isotonic regression beside x.
            left, right = max(p[p <= x], default=0), min(p[p >= x], default=1)
            shares = np.interp([left, right], fit.p, fit.fitted)
            close(read(band, x), (min(lower, shares[0]), max(upper, shares[1])))


def test_many_estimates_are_grouped(monkeypatch):
    rng = np.random.default_rng(2)
    monkeypatch.setattr("vennforest.metrics.curves.MAX_BAND_GROUPS", 7)
    for _ in range(40):
        p = rng.random(60).round(rng.integers(1, 4))
        y = (rng.random(60) < p).astype(int)
        band = metrics.calibration_band(y, p, classes=[0, 1])
        groups = oracle.groups(p.tolist(), y.tolist(), 7)
        for x in rng.random(3):
            lower, upper = oracle.band_at(groups, x, 0.95)
            if lower < upper:
                close(read(band, x), (lower, upper), 1e-9)


def test_band_is_that_of_the_r_package(monkeypatch):
    """The areas that calibrationband prints in its README: where the diagonal leaves the band.

    Estimates are rounded down to .001 for the upper bound there, and up for the lower one.
    """
    monkeypatch.setattr("vennforest.metrics.curves.MAX_BAND_GROUPS", 10_000)
    seed, key = 123, []
    for _ in range(675):  # set.seed of R
        seed = (69069 * seed + 1) % 2**32
        key.append(seed)
    generator = np.random.RandomState()
    generator.set_state(("MT19937", key[51:], 624))
    x, u = generator.randint(0, 2**32, (2, 10_000), dtype=np.uint64) * 2.3283064365386963e-10
    p = 1 / (1 + (1 / x * (1 - x)) ** 1.8)
    y = np.where(p <= 0.5, u >= 1 - p, u < p)  # rbinom(n, 1, p)
    down, up, at = np.floor(x * 1000) / 1000, np.ceil(x * 1000) / 1000, np.linspace(0, 1, 10_000)
    first = np.array([x[down == q].min() for q in np.unique(down)])
    last = np.array([x[up == q].max() for q in np.unique(up)])
    upper = read(metrics.calibration_band(y, down), np.append(np.unique(down), 1))[1]
    lower = read(metrics.calibration_band(y, up), np.append(0, np.unique(up)))[0]
    upper, lower = upper[np.searchsorted(first, at)], lower[np.searchsorted(last, at, "right")]
    edges = np.flatnonzero(np.diff((at < lower) | (at > upper), prepend=False, append=False))
    areas = sorted(zip(at[edges[::2]], at[edges[1::2] - 1], strict=True), key=np.subtract.reduce)
    assert len(areas) == 5
    printed = [(0.0396, 0.299), (0.693, 0.951), (0.0389, 0.0393)]
    assert [tuple(float(f"{end:.3g}") for end in area) for area in areas[:3]] == printed


@pytest.mark.parametrize(("measure", "options", "message"), [
    (metrics.calibration_band, {"level": 0}, "level must"),
    (metrics.calibration_band, {"sample_weight": [1, 2]}, "groups and sample_weight must be None"),
    (metrics.calibration_band, {"y": [1, 1]}, "y must contain at least two classes"),
    (metrics.calibration_band, {"p": [0.1, np.nan]}, "p"),
    (metrics.reliability_curve, {"band": "none"}, "band must be"),
    (metrics.reliability_curve, {"band": "confidence", "groups": [1, 2]}, "groups and sam"),
])  # fmt: skip
def test_refused_options(measure, options, message):
    with pytest.raises(ValueError, match=message):
        measure(**{"y": [0, 1], "p": [0.1, 0.2], **options})


def test_reliability_curve_has_the_corners_of_the_band():
    rng = np.random.default_rng(5)
    p = rng.random(300)
    y = rng.random(300) < p
    band = metrics.calibration_band(y, p, level=0.9)
    curve = metrics.reliability_curve(y, p, band="confidence", level=0.9)
    x = rng.random(1000)
    for at, low, high in zip(x, *read(band, x), strict=True):
        close(np.interp(at, curve.band_estimate, curve.band_low), low)
        close(np.interp(at, curve.band_estimate, curve.band_high), high)


def test_reliability_curve_agrees_with_the_slow_one():
    rng = np.random.default_rng(4)
    for _ in range(40):
        y, p = draw_estimates(rng)
        options = {"bins": 5, "strategy": "uniform", "classes": [0, 1]}
        curve = metrics.reliability_curve(y, p, **options)
        codes = [formulas._bin_of(q, 5) for q in p.tolist()]
        means = formulas._means_of_bins(y.tolist(), p.tolist(), codes, [1] * len(p))
        close(np.column_stack([curve.bin_weight, curve.bin_estimate, curve.bin_share]), means)
        fitted = formulas.isotonic_max_min(p, y)
        for q, value in zip(curve.corp_estimate, curve.corp_share, strict=True):
            close(value, float(fitted[q]))
        # The corners say all: between them the fit lies on the same level.
        for q, value in fitted.items():
            if q not in curve.corp_estimate:
                close(np.interp(q, curve.corp_estimate, curve.corp_share), float(value))
        close(curve.positives.sum(), np.sum(y))
        close(curve.negatives.sum(), len(y) - np.sum(y))
        close(curve.estimate, np.unique(p))


def test_reliability_curve_names_its_event():
    p = np.array([[0.2, 0.5, 0.3], [0.4, 0.4, 0.2]])
    assert metrics.reliability_curve(["a", "c"], p, classes=list("abc")).event == "predicted label"
    assert metrics.reliability_curve(["a", "c"], p, classes=list("abc"), pos_label="b").event == "b"
    assert metrics.reliability_curve(["a", "c"], [0.1, 0.2]).event == "c"
