"""How often tests with groups raise an alarm of right probabilities, and see wrong ones."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from scipy.stats import binom, norm

from vennforest.metrics.calibration_tests import grouped_pvalues
from vennforest.metrics.dependence import intragroup_correlation
from vennforest.validation import segments
from vennforest.validation.update import UpdateRows

# Number of groups, rows of each (0: geometric), mean probability, and the share of the group's
# effect in the variance.
DESIGNS = {
    "pairs": (400, 2, 0.2, 0.5), "triples": (300, 3, 0.1, 0.5), "large": (60, 20, 0.2, 0.2),
    "rare": (1500, 2, 0.02, 0.5), "few events": (300, 3, 0.02, 0.8), "mixed": (300, 0, 0.1, 0.5),
    "independent": (200, 4, 0.2, 0.0), "one row each": (800, 1, 0.1, 0.0),
    "copies": (300, 3, 0.1, 1.0),
}  # fmt: skip
N_TABLES = 150


def draw(design, rng, slope=1.0, excess=0.0):
    """Return columns, labels, probabilities and groups; dependence is not as the tests assume."""
    n_groups, size, mean, share = DESIGNS[design]
    sizes = np.full(n_groups, size) if size else rng.geometric(0.3, n_groups)
    groups = np.repeat(np.arange(n_groups), sizes)
    n = len(groups)
    z = logit(mean) + 0.6 * rng.normal(size=n_groups)[groups] + 0.8 * rng.normal(size=n)
    X = pd.DataFrame({"age": rng.normal(size=n), "branch": rng.choice(list("abcde"), n)})
    q = expit(z.mean() + slope * (z - z.mean())) + excess * (X["branch"] == "a").to_numpy()
    latent = np.sqrt(share) * rng.normal(size=n_groups)[groups]
    latent += np.sqrt(1 - share) * rng.normal(size=n)
    y = (norm.cdf(latent) < q).astype(float)
    return (X, y, expit(z), groups) if np.ptp(y) else draw(design, rng, slope, excess)


def of_page(X, y, p, groups):
    return 3 * min(grouped_pvalues(y, p, groups, intragroup_correlation(y, p, groups)))


def of_segments(X, y, p, groups):
    return segments(X, y, p, groups=groups, n_draws=99)["pvalue"].iloc[0]


def of_update(X, y, p, groups):
    return UpdateRows(np.arange(2), p, y.astype(int), groups).test()["pvalue"].iloc[0]


def rejections(test, design, seed, **fault):
    rng = np.random.default_rng([seed, [*DESIGNS].index(design)])
    return sum(test(*draw(design, rng, **fault)) <= 0.05 for _ in range(N_TABLES))


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("test", [of_page, of_segments, of_update])
def test_right_probabilities_raise_an_alarm_in_at_most_five_of_a_hundred(test, design):
    assert rejections(test, design, 41) <= binom.ppf(0.995, N_TABLES, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("design", ["pairs", "independent", "one row each"])
@pytest.mark.parametrize(
    ("test", "fault"),
    [(of_page, {"slope": 0.6}), (of_update, {"slope": 0.6}), (of_segments, {"excess": 0.2})],
)
def test_wrong_probabilities_raise_one_in_most_tables(test, fault, design):
    assert rejections(test, design, 42, **fault) > N_TABLES / 2


@pytest.mark.parametrize("test", [of_page, of_segments, of_update])
def test_rows_of_their_own_groups_are_tested_as_independent_rows(test):
    """Up to the correlation, which is 0 without pairs, and the degrees of freedom of an update."""
    X, y, p, groups = draw("one row each", np.random.default_rng(43), slope=0.7)
    alone = segments(X, y, p, n_draws=99)["pvalue"].iloc[0]
    if test is of_update:
        alone = UpdateRows(np.arange(2), p, y.astype(int)).test()["pvalue"].iloc[0]
    elif test is of_page:
        alone = 3 * min(grouped_pvalues(y, p, None, 0.0))
    assert test(X, y, p, groups) == pytest.approx(alone, rel=0.2, abs=2e-3)
