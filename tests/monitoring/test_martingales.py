"""P-values and capital of a stream beside their formulas, and what they guarantee."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from oracles import monitoring as oracle
from vennforest._validation import InputError
from vennforest.monitoring import CompositeJumper, Monitor, conformal_p_values, simple_jumper
from vennforest.monitoring.bets import Bets, design, design_objects
from vennforest.monitoring.channel import JUMPS, WAIT, Channel
from vennforest.monitoring.jumpers import FORMS

SEEDS = 2**31 - 1


def seed_of(random_state):
    return int(np.random.RandomState(random_state).randint(SEEDS))


def draw_stream(rng, n):
    """Scores with ties, constants, neighbours one ulp apart and sizes of all orders."""
    kind = rng.integers(5)
    if kind == 0:
        return np.full(n, rng.normal())
    if kind == 1:
        return rng.integers(0, 4, n).astype(float)
    if kind == 2:
        return np.nextafter(1.0, rng.choice([-np.inf, np.inf], n)) * rng.choice([1, 1.0], n)
    if kind == 3:
        return rng.choice([-1e300, 1e-300, 0.0, -0.0, 1e300, 5e-324], n)
    return rng.normal(size=n)


def test_p_values_are_the_formulas():
    rng = np.random.default_rng(0)
    for case in range(2000):
        reference = draw_stream(rng, rng.integers(0, 12))
        scores = draw_stream(rng, rng.integers(0, 12))
        found = conformal_p_values(scores, reference, random_state=case)
        expected = oracle.p_values(scores.tolist(), reference.tolist(), seed_of(case))
        assert_array_equal(found, expected)


def test_p_values_are_uniform_and_independent():
    rng = np.random.default_rng(1)
    pairs = []
    for case in range(1500):
        scores = rng.integers(0, 3, 6) + (rng.random() < 0.5)  # exchangeable, not independent
        pairs.append(conformal_p_values(scores[4:], scores[:4], random_state=case))
    cells = np.histogram2d(*np.transpose(pairs), bins=4, range=[[0, 1], [0, 1]])[0]
    expected = 1500 / 16
    assert ((cells - expected) ** 2 / expected).sum() < 37.7  # 0.999 quantile, 15 degrees


def test_fixed_reference_would_not_do():
    """Against a reference that does not grow, successive p-values are not independent."""
    rng = np.random.default_rng(2)
    both = []
    for case in range(1500):
        scores = rng.normal(size=4)
        first = conformal_p_values(scores[2:3], scores[:2], random_state=case)[0]
        second = conformal_p_values(scores[3:], scores[:2], random_state=case + 10**6)[0]
        both.append((first, second))
    assert np.corrcoef(np.transpose(both))[0, 1] > 0.2


@pytest.mark.parametrize("form", FORMS)
def test_jumpers_are_the_formulas(form):
    rng = np.random.default_rng(3)
    for _ in range(300):
        jumps = rng.choice([0.0, 1e-4, 0.01, 0.3, 1.0], rng.integers(1, 4)).tolist()
        p = rng.random(rng.integers(1, 25)) ** rng.choice([0.3, 1, 3])
        if rng.random() < 0.2:
            p = rng.choice([0.0, 1.0], len(p))
        found = CompositeJumper(jumps, form=form).update(p)
        assert_allclose(np.exp(found), oracle.jumper(p.tolist(), jumps, form), rtol=1e-10)


@pytest.mark.parametrize("form", FORMS)
def test_jumper_goes_on_where_it_was(form):
    p = np.random.default_rng(4).random(60) ** 2
    whole, parts = simple_jumper(0.1, form=form), simple_jumper(0.1, form=form)
    expected = whole.update(p)
    found = np.concatenate([parts.update(p[:1]), parts.update(p[1:40]), parts.update(p[40:])])
    assert_array_equal(found, expected)
    assert parts.log_capital == expected[-1]


def test_jumper_refuses():
    with pytest.raises(InputError, match=r"jumps must be one or more numbers in \[0, 1\]"):
        CompositeJumper((0.1, 1.5))
    with pytest.raises(InputError, match="form must be one of"):
        simple_jumper(form="sum")
    for wrong in ([0.2, np.nan], [1.1], [[0.1]]):
        with pytest.raises(InputError, match=r"p must be numbers in \[0, 1\]"):
            simple_jumper().update(wrong)


def draw_bets(rng, n_bins, n_bets):
    """Fair bets in bins of any size."""
    mass = rng.dirichlet(np.ones(n_bins))
    shares = rng.uniform(0.05, 0.95, n_bins)
    cells = np.stack([mass * (1 - shares), mass * shares], axis=1).ravel()
    factors = rng.uniform(0.2, 3, (n_bets, 2 * n_bins))
    factors /= (factors @ cells)[:, None]
    prior = rng.dirichlet(np.ones(n_bets))
    edges = np.sort(rng.random(n_bins - 1))
    upper = np.cumsum(mass)[:-1]
    names = ("",) * n_bets
    bets = Bets(edges, upper, shares, factors, np.log(factors), prior, names)
    bets.check_loaded()
    return bets


@pytest.mark.parametrize("form", FORMS)
def test_channel_is_the_mixture(form):
    rng = np.random.default_rng(5)
    for case in range(60):
        bets = draw_bets(rng, int(rng.integers(1, 5)), int(rng.integers(1, 4)))
        reference = rng.random(rng.integers(0, 8)), rng.random(8) < 0.4
        scores, hits = rng.random(14), rng.random(14) < 0.6
        channel = Channel.of(bets, reference[0], reference[1][: len(reference[0])], form)
        found = np.concatenate(
            [
                channel.update(scores[a:b], hits[a:b], None, n_before=a, seed=case, form=form)
                for a, b in ((0, 5), (5, 6), (6, 14))
            ]
        )
        channel.check_loaded()
        before = list(zip(bets.cells(reference[0]).tolist(), reference[1].tolist(), strict=False))
        stream = list(zip(bets.cells(scores).tolist(), hits.tolist(), strict=True))
        pairs = oracle.two_p_values(before, stream, case)
        column = oracle.columns(pairs, bets.upper.tolist(), bets.shares.tolist())
        expected = oracle.evidence(
            column, bets.factors.tolist(), bets.prior.tolist(), JUMPS.tolist(), WAIT, form
        )
        assert_allclose(np.exp(found), expected, rtol=1e-9)
        assert_sums(channel, column, bets)


def assert_sums(channel, column, bets):
    """The sums are those of the stretch that ends now and is worth most to each bet."""
    for k, row in enumerate(np.log(bets.factors[:, column])):
        stretches = [row[a:].sum() for a in range(len(row))]
        assert_allclose(channel.sums[k], max(stretches), atol=1e-9)
        begin = channel.begins[k]
        assert_allclose(row[begin:].sum(), channel.sums[k], atol=1e-9)


@pytest.mark.parametrize("n_reference", [0, 2])
def test_cells_are_independent_whatever_the_bag(n_reference):
    """Over all orders of a bag the cells are as if drawn one by one: no bet on them can gain."""
    upper = [Fraction(2, 5)]
    shares = [Fraction(1, 4), Fraction(2, 3)]
    mass = [Fraction(2, 5), Fraction(3, 5)]
    cells = [m * s for m, share in zip(mass, shares, strict=True) for s in (1 - share, share)]
    bags = [
        [(0, True), (0, False), (1, True), (1, True), (0, False)],
        [(0, True)] * 4,
        [(0, False), (1, True), (1, False), (1, False)],
    ]
    for bag in bags:
        law = oracle.law_of_columns(bag, n_reference, upper, shares)
        n = len(bag) - n_reference
        for path in product(range(4), repeat=n):
            expected = Fraction(1)
            for column in path:
                expected *= cells[column]
            assert law.get(path, Fraction(0)) == expected


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(0, 1, allow_subnormal=False), min_size=2, max_size=80),
    st.integers(0, 2**16),
    st.floats(0.01, 0.99),
)
def test_designed_bets_are_fair(scores, seed, share):
    hits = np.random.default_rng(seed).random(len(scores)) < share
    design(np.array(scores), hits, probabilities=True).check_loaded()
    design_objects(np.array(scores)).check_loaded()


def streams(n_streams, n_reference, n, seed):
    """Exchangeable streams of calibrated scores."""
    rng = np.random.default_rng(seed)
    for _ in range(n_streams):
        scores = rng.beta(1, 4, n_reference + n)
        yield scores, rng.random(len(scores)) < scores


@pytest.mark.parametrize("watch", ["labels", "objects"])
def test_alarms_are_as_rare_as_promised(watch):
    alarms = 0
    for case, (scores, y) in enumerate(streams(400, 100, 300, 6)):
        monitor = Monitor(watch=watch, alpha=0.1, random_state=case).fit_scores(
            scores[:100], y[:100], classes=[False, True]
        )
        monitor.update_scores(scores[100:], y[100:] if watch == "labels" else None)
        alarms += monitor.alarm_ is not None
    assert alarms <= 400 * 0.1 + 2.6 * np.sqrt(400 * 0.1 * 0.9)


@pytest.mark.parametrize("form", ["shiryaev-roberts", "cusum"])
def test_run_length_is_as_long_as_promised(form):
    alarms = 0
    for case, (scores, y) in enumerate(streams(200, 100, 300, 7)):
        monitor = Monitor(form=form, run_length=1000, random_state=case)
        monitor.fit_scores(scores[:100], y[:100], classes=[False, True])
        monitor.update_scores(scores[100:], y[100:])
        alarms += monitor.alarm_ is not None
    assert alarms <= 200 * 0.3 + 2.6 * np.sqrt(200 * 0.3 * 0.7)


def test_shiryaev_roberts_grows_by_one_a_step_on_average():
    found = []
    for case, (scores, y) in enumerate(streams(400, 100, 40, 8)):
        monitor = Monitor(form="shiryaev-roberts", random_state=case)
        monitor.fit_scores(scores[:100], y[:100], classes=[False, True])
        found.append(monitor.update_scores(scores[100:], y[100:])[-1])
    assert abs(np.mean(found) - 40) < 4 * np.std(found) / 20
