"""Intervals of log loss, Brier score and skill, against statsmodels and by small weights."""

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, log_loss

from vennforest.metrics import loss_intervals
from vennforest.metrics.losses import log_losses, squared_losses


def draw(seed, k=2, n=120):
    """Codes, probabilities (n, k), weights from 1 to 3, and groups of one to six rows."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(k), n)
    codes = (p.cumsum(1) < rng.random((n, 1))).sum(1).clip(0, k - 1)
    return codes, p, rng.integers(1, 4, n), np.sort(rng.integers(0, n // 3, n))


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("seed", range(4))
def test_intervals_are_those_of_a_regression_on_a_constant(seed, k):
    api = pytest.importorskip("statsmodels.api")
    codes, p, _, groups = draw(seed, k)
    for group in (None, groups):
        result = loss_intervals(codes, p, groups=group, classes=range(k), level=0.9)
        losses = {"log_loss": log_losses(p, codes), "brier": squared_losses(p, codes)}
        for name, loss in losses.items():
            options = (
                {} if group is None else {"cov_type": "cluster", "cov_kwds": {"groups": group}}
            )
            fit = api.OLS(loss, np.ones(len(loss))).fit(use_t=True, **options)
            estimate = getattr(result, name)
            assert [estimate.low, estimate.high] == pytest.approx(fit.conf_int(0.1)[0])
            assert estimate.value == pytest.approx(loss.mean())
    assert result.log_loss.value == pytest.approx(log_loss(codes, p, labels=range(k)))
    if k == 2:
        assert result.brier.value == pytest.approx(brier_score_loss(codes, p[:, 1]))


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
    from scipy.stats import t as student

    for group in (np.arange(n), groups):
        sums = np.array([np.sum(np.array(moves)[group == g]) for g in np.unique(group)])
        error = np.sqrt((sums**2).sum() * len(sums) / (len(sums) - 1))
        estimate = loss_intervals(codes, p, groups=group, classes=range(k)).brier_skill
        assert estimate.value == pytest.approx(skill(codes, p, np.ones(n)))
        half = student.ppf(0.975, len(sums) - 1) * error
        assert estimate.high - estimate.value == pytest.approx(half, rel=1e-6)


@pytest.mark.parametrize("grouped", [False, True])
def test_a_weight_of_two_is_the_row_twice(grouped):
    codes, p, weight, groups = draw(5)
    again = np.repeat(np.arange(len(codes)), weight)
    group, groups_again = (groups, groups[again]) if grouped else (None, None)
    weighted = loss_intervals(codes, p, sample_weight=weight, groups=group)
    repeated = loss_intervals(codes[again], p[again], groups=groups_again)
    for name, estimate in vars(weighted).items():
        assert [*vars(estimate).values()] == pytest.approx(
            [*vars(getattr(repeated, name)).values()]
        )


def test_a_wrong_probability_of_zero_has_an_infinite_log_loss_without_interval():
    result = loss_intervals([0, 1, 1, 0], [0.0, 0.0, 0.7, 0.2])
    assert result.log_loss.value == np.inf and np.isnan([result.log_loss.low]).all()
    assert np.isfinite([*vars(result.brier).values()]).all()


def test_one_group_has_no_finite_interval():
    result = loss_intervals([0, 1, 1, 0], [0.3, 0.6, 0.7, 0.2], groups=[1] * 4)
    assert result.brier.low == -np.inf and result.brier.high == np.inf
