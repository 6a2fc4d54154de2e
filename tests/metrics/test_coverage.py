"""The intervals of all measures contain the true values, or there are none."""

from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

from vennforest.metrics import Estimates

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("events", ["many", "some", "few"])
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("groups", ["none", "20 uneven", "100"])
@pytest.mark.parametrize("k", [2, 3])
def test_intervals_cover_the_true_values(k, groups, is_weighted, events, monkeypatch):
    """Of 400 tables; exact intervals, of few events, may cover more than they say.

    Four standard errors, since there are more than 300 intervals. A measure that has an interval in
    fewer than 20 of the tables is not judged.
    """
    monkeypatch.syspath_prepend(ROOT)
    study = pytest.importorskip("experiments.studies.measures")
    too_low = []
    for row in study.study(k, groups, is_weighted, events, 20):
        n_intervals = row["tables"] * float(row["with_interval"])
        if n_intervals >= 20 and float(row["coverage"]) < 0.95 - 4 * (0.0475 / n_intervals) ** 0.5:
            too_low.append((row["measure"], row["coverage"]))
    assert not too_low


@pytest.mark.slow
@pytest.mark.parametrize(("n", "hazard_of_loss", "intercept"), [(1000, 0.15, -1.5), (400, 0.3, -1)])
def test_intervals_of_rows_that_are_lost_cover_the_true_values(n, hazard_of_loss, intercept):
    """True two-year probabilities, exponential times and losses, 400 draws, four standard errors.

    Weights are taken as known, though the Kaplan-Meier estimate of being followed varies.
    """
    rng = np.random.default_rng(5)
    large = np.sort(expit(rng.standard_normal(1_000_000) + intercept))
    rest = 1 - large
    pairs = large @ (np.cumsum(rest) - rest / 2)
    true = {
        "observed_expected": 1.0,
        "auc": pairs / (large.sum() * rest.sum()),
        "log_loss": -(large @ np.log(large) + rest @ np.log(rest)) / len(large),
        "brier": large @ rest / len(large),
    }
    covered = dict.fromkeys(true, 0)
    for _ in range(400):
        p = expit(rng.standard_normal(n) + intercept)
        event = rng.exponential(-2 / np.log1p(-p))
        last_seen = np.minimum(rng.exponential(1 / hazard_of_loss, n), 5)
        follow_up = np.minimum(event, last_seen), 2.0
        estimates = Estimates(event <= last_seen, p, follow_up=follow_up)
        for name, value in true.items():
            interval = getattr(estimates, name)()
            covered[name] += interval.low <= value <= interval.high
    error = (0.05 * 0.95 / 400) ** 0.5
    assert all(abs(count / 400 - 0.95) < 4 * error for count in covered.values()), covered
