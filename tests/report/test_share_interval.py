"""Wilson's interval of a share: of independent rows, and of rows in groups."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest, t

pytest.importorskip("pandas")
pytest.importorskip("jinja2")

from vennforest.report.event import share_interval

Z = 1.959963984540054


def slow(outcome, groups):
    """The formulas, group by group and row by row."""
    n, share = len(outcome), sum(outcome) / len(outcome)
    parts = {}
    for y, g in zip(outcome, groups, strict=True):
        parts.setdefault(g, []).append(y)
    k = len(parts)
    if k == 1:
        return 0.0, 1.0
    if share in (0, 1):
        effect = sum(len(part) ** 2 for part in parts.values()) / n
    else:
        of_groups = k / (k - 1) * sum((sum(part) - len(part) * share) ** 2 for part in
                                      parts.values()) / n**2  # fmt: skip
        effect = max(1, of_groups / (share * (1 - share) / n))
    size = n / effect * (Z / t.ppf(0.975, k - 1)) ** 2
    # The roots of (share - q)^2 = z^2 q (1 - q) / size.
    a, b, c = 1 + Z**2 / size, -(2 * share + Z**2 / size), share**2
    root = math.sqrt(max(0.0, b * b - 4 * a * c))
    return (-b - root) / (2 * a), (-b + root) / (2 * a)


def test_independent_rows_have_wilsons_interval():
    for n in (1, 2, 7, 200):
        for events in {0, 1, n // 3, n}:
            span = binomtest(events, n).proportion_ci(0.95, method="wilson")
            outcome = np.repeat([1.0, 0.0], [events, n - events])
            assert share_interval(outcome) == pytest.approx((span.low, span.high), abs=1e-12)


def test_groups_as_the_formulas_say():
    rng = np.random.default_rng(0)
    for _ in range(2000):
        n = int(rng.integers(1, 40))
        outcome = (rng.random(n) < rng.choice([0.0, 0.05, 0.5, 1.0])).astype(float)
        groups = rng.integers(0, int(rng.integers(1, 15)), n) * 7
        found = share_interval(outcome, groups)
        assert found == pytest.approx(slow(outcome.tolist(), groups.tolist()), abs=1e-9)
        assert 0 <= found[0] <= outcome.mean() <= found[1] <= 1


def test_the_interval_of_repeated_patients_holds_the_share():
    """Five rows a patient, nearly alike: Wilson's of the rows fails where that of groups holds."""
    rng = np.random.default_rng(20261122)
    times, share = 600, 0.3
    for k in (15, 60):
        held = np.zeros(2)
        for _ in range(times):
            risk = rng.beta(share / 2, (1 - share) / 2, k)
            sizes = rng.integers(1, 10, k)
            groups = np.repeat(np.arange(k), sizes)
            outcome = (rng.random(len(groups)) < risk[groups]).astype(float)
            for j, given in enumerate((None, groups)):
                low, high = share_interval(outcome, given)
                held[j] += low <= share <= high
        rows, grouped = held / times
        assert rows < 0.8 and grouped > 0.92
