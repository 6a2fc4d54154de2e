"""Venn–Abers on scores alone."""

import time

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from vennforest import VennAbers

SHAPES = ("uniform", "beta", "rare event", "separable", "100 values")
HARD = (
    "sorted",
    "reversed",
    "all equal",
    "two values",
    "alternating labels",
    "one positive",
    "no signal",
)


def draw(shape, n, seed=0):
    """Return calibration scores, labels and new scores of a shape."""
    rng = np.random.default_rng(seed)
    u, new = rng.random(n), rng.random(n)
    if shape == "beta":
        u, new = rng.beta(0.5, 0.5, n), rng.beta(0.5, 0.5, n)
    y = rng.random(n) < u
    if shape == "rare event":
        y = rng.random(n) < 0.002 * u
    elif shape == "separable":
        y = u > 0.5
    elif shape == "100 values":
        u, new = np.round(u, 2), np.round(new, 2)
    elif shape in ("sorted", "reversed"):
        order = np.argsort(u)[:: 1 if shape == "sorted" else -1]
        u, y = u[order], y[order]
    elif shape == "all equal":
        u = np.full(n, 0.5)
    elif shape == "two values":
        u = np.round(u)
    elif shape == "alternating labels":
        y = np.argsort(np.argsort(u)) % 2 == 1
    elif shape == "one positive":
        y = np.arange(n) == n // 2
    elif shape == "no signal":
        y = rng.random(n) < 0.5
    return u, y.astype(int), new


def isotonic(u, y, new):
    return IsotonicRegression(out_of_bounds="clip").fit(u, y).predict(new)


@pytest.mark.parametrize("n", (10**4, 10**5, 10**6))
def test_bounds_as_a_user_calls_them(n, versus):
    u, y, new = draw("uniform", n)
    versus(
        f"VennAbers(), {n:,} calibration and {n:,} new scores, bounds",
        "IsotonicRegression fit + predict",
        lambda: VennAbers().fit(u, y).predict_multiprobability(new),
        lambda: isotonic(u, y, new),
        {10**4: 8, 10**5: 1.5, 10**6: 1}[n],
        rounds=5,
    )


@pytest.mark.parametrize("what", ("predict_multiprobability", "predict_proba"))
@pytest.mark.parametrize("shape", SHAPES)
def test_a_million(shape, what, versus):
    u, y, new = draw(shape, 10**6)
    versus(
        f'VennAbers("log"), 10⁶ calibration and 10⁶ new scores, {what}: {shape}',
        "IsotonicRegression fit + predict",
        lambda: getattr(VennAbers("log").fit(u, y), what)(new),
        lambda: isotonic(u, y, new),
        0.5 if shape == "separable" or what == "predict_proba" else 0.35,  # a step at each score
        rounds=3,
    )


@pytest.mark.parametrize("what", ("predict_multiprobability", "predict_proba"))
def test_ten_classes(what, versus):
    rng = np.random.default_rng(0)
    scores, new = (rng.dirichlet(np.full(10, 0.5), 10**5) for _ in range(2))
    y = (rng.random(10**5)[:, None] > scores.cumsum(axis=1)).sum(axis=1).clip(max=9)
    versus(
        f"VennAbers() of ten classes, 10⁵ and 10⁵ scores, {what}",
        "ten times IsotonicRegression fit + predict",
        lambda: getattr(VennAbers().fit(scores, y), what)(new),
        lambda: [isotonic(scores[:, j], y == j, new[:, j]) for j in range(10)],
        0.6,
        rounds=3,
    )


@pytest.mark.parametrize(("shape", "at_most"), [("uniform", 0.04), ("100 values", None)])
def test_package(shape, at_most, versus):
    package = pytest.importorskip("venn_abers")
    u, y, new = draw(shape, 10**5)
    two, new_two = np.column_stack([1 - u, u]), np.column_stack([1 - new, new])

    def theirs():
        other = package.VennAbers()
        other.fit(two, y)
        return other.predict_proba(new_two)

    versus(
        f"VennAbers(), 10⁵ and 10⁵ scores: {shape}",
        "venn-abers fit + predict_proba",
        lambda: VennAbers().fit(u, y).predict_multiprobability(new),
        theirs,
        at_most,
        rounds=3,
    )


@pytest.mark.parametrize(
    ("n", "shape", "at_most"),
    [(10**5, "uniform", 0.5), (10**5, "no signal", None), (10**6, "uniform", 12)],
)
def test_left_out(n, shape, at_most, benchmark, record):
    u, y, new = draw(shape, n)
    model = VennAbers("log").fit(u, y)
    gone = np.random.default_rng(1).integers(0, n, n)
    benchmark.pedantic(model.predict_multiprobability, (new, gone), rounds=3, warmup_rounds=1)
    record(
        f"left_out, {n:,} calibration × {n:,} new scores, one thread: {shape}",
        "seconds",
        benchmark.stats.stats.median,
        at_most,
    )


@pytest.mark.parametrize("left_out", (False, True))
def test_one_score(left_out, benchmark, record):
    u, y, _ = draw("uniform", 10**5)
    model = VennAbers().fit(u, y)
    new, gone = np.array([0.3]), (np.array([5]) if left_out else None)
    benchmark.pedantic(model.predict_multiprobability, (new, gone), rounds=5000, warmup_rounds=10)
    record(
        "one new score" + (", one example left out" if left_out else ""),
        "microseconds",
        1e6 * benchmark.stats.stats.median,
        20,
        unit="µs",
    )


@pytest.mark.parametrize("shape", HARD)
def test_no_quadratic_corner(shape, versus):
    u, y, new = draw(shape, 10**6)
    gone = np.random.default_rng(1).integers(0, len(u), 10**5)
    easy = draw("uniform", 10**6)

    def work(u, y, new):
        model = VennAbers("log").fit(u, y)
        model.predict_multiprobability(new)
        model.predict_multiprobability(new[: 10**5], gone)

    versus(
        f"fit, 10⁶ new scores, 10⁵ left out: {shape}",
        "the same on uniform scores",
        lambda: work(u, y, new),
        lambda: work(*easy),
        None,
        rounds=3,
    )


@pytest.mark.parametrize("n", (10**6, pytest.param(10**7, marks=pytest.mark.large)))
def test_growth(n, record):
    def seconds(n, rounds):
        u, y, new = draw("uniform", n)
        times = []
        for _ in range(rounds):
            start = time.perf_counter()
            VennAbers("log").fit(u, y).predict_multiprobability(new)
            times.append(time.perf_counter() - start)
        return float(np.median(times))

    small = seconds(10**5, 15)
    expected = small * (n * np.log(n)) / (10**5 * np.log(10**5))
    record(
        f"growth from 10⁵ to {n:.0e} scores",
        "n log n",
        seconds(n, 3),
        1.3,
        expected,
    )
