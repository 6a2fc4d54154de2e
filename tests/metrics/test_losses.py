"""Intervals of log loss, Brier score and skill, against statsmodels and by small weights."""

import numpy as np
import pytest
from scipy.stats import t as student
from sklearn.metrics import brier_score_loss, log_loss

from vennforest.metrics import Estimates, loss_intervals
from vennforest.metrics.losses import log_losses, squared_losses


def draw(seed, k=2, n=120):
    """Codes, probabilities (n, k), weights from 1 to 3, and groups of one to six rows."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(k), n)
    codes = (p.cumsum(1) < rng.random((n, 1))).sum(1).clip(0, k - 1)
    return codes, p, rng.integers(1, 4, n), np.sort(rng.integers(0, n // 3, n))


def log_ends(value, error, units):
    """Student's interval that is symmetric in the logarithm."""
    half = student.ppf(0.975, units - 1) * error / value
    return [value * np.exp(-half), value * np.exp(half)]


def units_of(event, groups):
    """Kish's number of groups of the rarer outcome."""
    sizes = [np.unique(groups[event == side], return_counts=True)[1] for side in (True, False)]
    return min(size.sum() ** 2 / (size @ size) for size in sizes)


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("seed", range(4))
def test_intervals_are_those_of_a_regression_on_a_constant(seed, k):
    api = pytest.importorskip("statsmodels.api")
    codes, p, weight, groups = draw(seed, k)
    event = (codes == 1) if k == 2 else p.argmax(1) == codes
    for group in (None, groups):
        result = loss_intervals(codes, p, groups=group, classes=range(k))
        units = units_of(event, np.arange(len(codes)) if group is None else group)
        losses = {"log_loss": log_losses(p, codes), "brier": squared_losses(p, codes)}
        for name, loss in losses.items():
            options = (
                {} if group is None else {"cov_type": "cluster", "cov_kwds": {"groups": group}}
            )
            fit = api.OLS(loss, np.ones(len(loss))).fit(use_t=True, **options)
            estimate = getattr(result, name)
            ends = log_ends(loss.mean(), fit.bse[0], units)
            assert [estimate.low, estimate.high] == pytest.approx(ends)
            assert estimate.value == pytest.approx(loss.mean())
    assert result.log_loss.value == pytest.approx(log_loss(codes, p, labels=range(k)))
    # A row is one observation whatever its weight.
    estimate = Estimates(codes, p, sample_weight=weight, classes=range(k)).log_loss()
    loss = log_losses(p, codes)
    mean = np.average(loss, weights=weight)
    error = np.sqrt((weight**2 @ (loss - mean) ** 2) * len(loss) / (len(loss) - 1)) / weight.sum()
    kish = min(weight[s].sum() ** 2 / (weight[s] @ weight[s]) for s in (event, ~event))
    assert [estimate.low, estimate.high] == pytest.approx(log_ends(mean, error, kish))
    if k == 2:
        assert result.brier.value == pytest.approx(brier_score_loss(codes, p[:, 1]))


def test_differences_are_paired_by_row():
    codes, p, _, _ = draw(3)
    q = np.clip(p + 0.1, 0.01, 0.99)
    q /= q.sum(axis=1, keepdims=True)
    gap = log_losses(p, codes) - log_losses(q, codes)
    alone = Estimates(codes, p).log_loss(versus=q)
    error = gap.std(ddof=1) / len(gap) ** 0.5
    half = student.ppf(0.975, min(codes.sum(), (1 - codes).sum()) - 1) * error
    assert (alone.value, alone.high - alone.value) == pytest.approx((gap.mean(), half))
    assert alone.standard_error == pytest.approx(error)
    other = Estimates(codes, q)
    pair = Estimates(codes, p).brier(versus=other), other.brier(versus=p)
    assert pair[0].value == -pair[1].value and pair[0].pvalue == pytest.approx(pair[1].pvalue)
    rows = np.repeat(np.arange(len(codes)), 3)
    grouped = Estimates(codes[rows], p[rows], groups=rows).log_loss(versus=q[rows])
    assert grouped.standard_error == pytest.approx(error)
    with pytest.raises(ValueError, match="versus must have the rows of p"):
        Estimates(codes, p).log_loss(versus=q[1:])


def skill(codes, p, weight):
    """1 - Brier score / that of the shares, of weighted rows."""
    k = p.shape[1]
    truth = np.eye(k)[codes]
    shares = weight @ truth / weight.sum()
    return 1 - (weight @ ((p - truth) ** 2).sum(1)) / (weight @ ((shares - truth) ** 2).sum(1))


@pytest.mark.parametrize("k", [2, 3])
def test_the_interval_of_the_skill_is_that_of_the_infinitesimal_jackknife(k):
    codes, p, _, groups = draw(9, k)
    n, moves = len(codes), []
    for i in range(n):
        up, down = np.ones(n), np.ones(n)
        up[i], down[i] = 1 + 1e-6, 1 - 1e-6
        moves.append((skill(codes, p, up) - skill(codes, p, down)) / 2e-6)
    event = (codes == 1) if k == 2 else p.argmax(1) == codes
    for group in (np.arange(n), groups):
        sums = np.array([np.sum(np.array(moves)[group == g]) for g in np.unique(group)])
        error = np.sqrt((sums**2).sum() * len(sums) / (len(sums) - 1))
        estimate = loss_intervals(codes, p, groups=group, classes=range(k)).brier_skill
        assert estimate.value == pytest.approx(skill(codes, p, np.ones(n)))
        if units_of(event, group) < 30:
            assert np.isnan(estimate.low)
            continue
        ends = log_ends(1 - estimate.value, error, units_of(event, group))
        assert [1 - estimate.high, 1 - estimate.low] == pytest.approx(ends, rel=1e-5)


def test_a_wrong_probability_of_zero_has_an_infinite_log_loss_without_interval():
    result = loss_intervals([0, 1, 1, 0], [0.0, 0.0, 0.7, 0.2])
    assert result.log_loss.value == np.inf and np.isnan([result.log_loss.low]).all()
    assert np.isfinite([result.brier.low, result.brier.high]).all()


def test_one_group_has_no_interval_and_a_skill_stays_below_one():
    result = loss_intervals([0, 1, 1, 0], [0.3, 0.6, 0.7, 0.2], groups=[1] * 4)
    assert np.isnan([result.brier.low, result.brier.high, result.brier_skill.low]).all()
    y, p = np.arange(60) < 4, np.where(np.arange(60) < 4, 0.95, 0.02)
    few = Estimates(y, p)
    assert few.log_loss().low > 0 and few.log_loss_skill().high < 1
    assert np.isnan(few.brier_skill().high)  # of four events


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("k", [2, 3])
def test_intervals_of_few_rows_contain_possible_values_alone(seed, k):
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.full(k, 0.5), (2, 6))
    estimates = Estimates(rng.permutation(np.arange(6) % k), p)
    largest, possible = k - 1.0, {}
    possible["brier"] = estimates.brier(), 0.0, largest
    possible["difference of brier"] = estimates.brier(versus=q), -largest, largest
    possible["difference of auc"] = estimates.auc(versus=q), -1.0, 1.0
    for name, (estimate, low, high) in possible.items():
        assert low <= estimate.low <= estimate.value <= estimate.high <= high, name
    if k == 2:
        odds = np.array([1 / 9, 1, 9])
        curve = estimates.net_benefit(odds / (1 + odds), versus=q)
        for name, low, high in [
            ("net_benefit", -odds, 1.0),
            ("difference", -np.maximum(odds, 1), np.maximum(odds, 1)),
            ("gain", -np.maximum(odds, 1), np.minimum(odds, 1)),
        ]:
            ends = [getattr(curve, name + end) for end in ("_low", "_high")]
            assert (low - ends[0] < 1e-9).all() and (ends[1] - high < 1e-9).all(), name
