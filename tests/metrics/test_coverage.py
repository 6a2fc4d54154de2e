"""The intervals of all measures contain the true values, or there are none."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("events", ["many", "some", "few"])
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("groups", ["none", "20 uneven", "100"])
@pytest.mark.parametrize("k", [2, 3])
def test_intervals_cover_the_true_values(k, groups, is_weighted, events, monkeypatch):
    """Of 400 tables; exact intervals, of few events, may cover more than they say.

    Four standard errors, since there are more than 300 intervals.
    """
    monkeypatch.syspath_prepend(ROOT)
    study = pytest.importorskip("experiments.studies.measures")
    too_low = [
        (row["measure"], row["coverage"])
        for row in study.study(k, groups, is_weighted, events, 20)
        if row["coverage"]
        and float(row["coverage"])
        < 0.95 - 4 * (0.0475 / (row["tables"] * float(row["with_interval"]))) ** 0.5
    ]
    assert not too_low
