"""Which columns moved: the tests, their correction, and missing cells."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

from report.reading import numbers_in
from vennforest.monitoring.columns import column_changes


def test_what_moved_comes_first():
    rng = np.random.default_rng(0)
    n, row = 600, 250
    later = np.arange(n) >= row
    columns = {f"still {i}": rng.normal(size=n) for i in range(8)}
    columns["text still"] = rng.choice(np.array(["a", "b", None], dtype=object), n)
    columns["shifted"] = rng.normal(size=n) + later
    columns["lost"] = np.where(later & (rng.random(n) < 0.5), np.nan, rng.normal(size=n))
    columns["town"] = np.where(later & (rng.random(n) < 0.4), "new", "old").astype(object)
    found = column_changes(columns, row)
    assert {one.name for one in found[:3]} == {"shifted", "lost", "town"}
    assert all(one.p_value < 1e-6 for one in found[:3])
    assert all(one.p_value > 0.05 for one in found[3:])
    by_name = {one.name: one for one in found}
    missing = 100 * np.isnan(columns["lost"][later]).mean()
    assert numbers_in(by_name["lost"].before)[-1] == 0
    assert numbers_in(by_name["lost"].after)[-1] == pytest.approx(missing, abs=0.5)
    assert by_name["town"].before == "100.0% 'old'"
    share = (columns["town"][later] == "new").mean()
    assert by_name["town"].distance == pytest.approx(share)


def test_p_values_are_corrected_for_the_number_of_columns():
    rng = np.random.default_rng(1)
    columns = {
        str(i): rng.normal(size=200) + 0.3 * (np.arange(200) > 99) * (i < 2) for i in range(5)
    }
    raw = sorted(ks_2samp(c[:100], c[100:], method="asymp").pvalue for c in columns.values())
    expected = np.minimum(np.maximum.accumulate([p * (5 - i) for i, p in enumerate(raw)]), 1)
    assert [one.p_value for one in column_changes(columns, 100)] == pytest.approx(expected.tolist())


def test_few_rows_and_odd_columns():
    columns = {
        "a": np.arange(100.0),
        "b": np.full(100, None),
        "c": np.full(100, np.nan),
        "d": np.ones(100),
    }
    assert column_changes(columns, 20) == [] and column_changes({}, 5) == []
    found = {one.name: one for one in column_changes(columns, 50)}
    assert found["a"].distance == 1 and [found[name].p_value for name in "bcd"] == [1, 1, 1]


def test_dates_are_compared_by_how_much_later_they_are():
    first = np.datetime64("2022-03-01T12:00") + np.arange(41) * np.timedelta64(1, "h")
    dates = np.concatenate([first, first + np.timedelta64(400, "D")])
    dates[3] = "NaT"
    (change,) = column_changes({"opened": dates}, 41)
    assert change.before == "median 2022-03-02"
    assert change.after == "median 2023-04-06, 400 days later" and change.distance == 1
    (same,) = column_changes({"opened": np.tile(first, 2)}, 41)
    assert same.before == same.after == "median 2022-03-02" and same.p_value == 1
