"""Ranks, Friedman's test and post-hoc tests: against brute force, other packages and print."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import exact_ranks
from vennforest_experiments.comparison import Comparison, bergmann_hommel, compare

NAMES = ["a", "b", "c", "d"]


def of_mean_ranks(ranks, n_datasets):
    return Comparison(tuple(ranks), np.array(list(ranks.values())), n_datasets)


def drawn_tables(seed, count, most=7):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        n, k = rng.integers(1, 12), rng.integers(2, most + 1)
        table = rng.normal(size=(n, k)) + rng.normal(size=k)
        kind = rng.integers(4)
        if kind == 0:
            table = rng.integers(0, 3, size=(n, k)).astype(float)
        elif kind == 1:
            table[:] = 1.0
        elif kind == 2:
            table = 1.0 + rng.integers(0, 2, size=(n, k)) * np.finfo(float).eps
        yield table * rng.choice([1e-300, 1.0, 1e300])


def test_ranks_and_friedman_match_fractions():
    for table in drawn_tables(0, 120):
        for lower in (True, False):
            comparison = compare(table, lower_is_better=lower)
            ranks = [exact_ranks.rank_row(row, lower) for row in table]
            np.testing.assert_array_equal(comparison.ranks, np.array(ranks, dtype=float))
            exact = float(exact_ranks.friedman(table, lower))
            assert comparison.chi_square == pytest.approx(exact, rel=1e-9, abs=1e-9)


def test_friedman_matches_scipy():
    rng = np.random.default_rng(1)
    for _ in range(60):
        n, k = rng.integers(2, 30), rng.integers(3, 9)
        table = rng.integers(0, 5, size=(n, k)).astype(float)
        if (table == table[:, :1]).all():
            continue
        expected = stats.friedmanchisquare(*table.T)
        comparison = compare(table, lower_is_better=True)
        assert comparison.chi_square == pytest.approx(expected.statistic, abs=1e-9)
        assert comparison.chi_square_p == pytest.approx(expected.pvalue, rel=1e-6, abs=1e-12)


def test_no_difference_at_all():
    comparison = compare(pd.DataFrame(np.ones((5, 4)), columns=NAMES[:4]), lower_is_better=True)
    assert comparison.chi_square == 0
    assert comparison.chi_square_p == 1
    assert (comparison.bergmann_hommel == 1).all()
    assert comparison.better() == []
    assert comparison.groups("nemenyi") == [tuple(NAMES[:4])]


def test_one_data_set():
    comparison = compare([[1.0, 2.0, 3.0]], lower_is_better=True)
    assert comparison.chi_square == pytest.approx(2)


def test_nemenyi_matches_scikit_posthocs():
    posthocs = pytest.importorskip("scikit_posthocs")
    rng = np.random.default_rng(3)
    for _ in range(20):
        n, k = rng.integers(3, 25), rng.integers(3, 8)
        table = rng.normal(size=(n, k)) + np.linspace(0, 1, k)
        expected = np.asarray(posthocs.posthoc_nemenyi_friedman(table))
        got = compare(table, lower_is_better=True).nemenyi
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("test", "k", "constant"),
    [
        # Table 5 of Demšar (2006): critical values at .05.
        ("nemenyi", 2, 1.960),
        ("nemenyi", 5, 2.728),
        ("nemenyi", 10, 3.164),
        ("bonferroni-dunn", 2, 1.960),
        ("bonferroni-dunn", 5, 2.498),
        ("bonferroni-dunn", 10, 2.773),
    ],
)
def test_critical_values_are_the_tabled_ones(test, k, constant):
    comparison = compare(np.arange(14.0 * k).reshape(14, k), lower_is_better=True)
    expected = constant * np.sqrt(k * (k + 1) / (6 * 14))
    assert comparison.critical_difference(test) == pytest.approx(expected, rel=3e-4)


SETS = {k: exact_ranks.exhaustive_sets(k) for k in (2, 3, 4, 5)}


def matrix(p, k):
    square = np.ones((k, k))
    for (i, j), value in p.items():
        square[i, j] = square[j, i] = value
    return square


def test_bergmann_hommel_matches_brute_force():
    rng = np.random.default_rng(6)
    for _ in range(400):
        k = int(rng.integers(2, 6))
        p = {pair: float(rng.random() ** rng.integers(1, 6)) for pair in combinations(range(k), 2)}
        if rng.random() < 0.3:
            p = {pair: float(rng.choice([0.0, 0.01, 0.04, 1.0])) for pair in p}
        expected = matrix(exact_ranks.bergmann_hommel(p, k, SETS[k]), k)
        np.testing.assert_array_equal(bergmann_hommel(matrix(p, k)), expected)


def test_garcia_and_herrera_example():
    # Five classifiers on thirty data sets (2008, tables 2 to 4), ranks to three decimals.
    ranks = {"C4.5": 2.1, "1-NN": 3.25, "NaiveBayes": 2.2, "Kernel": 4.333, "CN2": 3.117}
    comparison = of_mean_ranks(ranks, 30)
    names = comparison.methods
    first = names.index("C4.5"), names.index("Kernel")
    second = names.index("NaiveBayes"), names.index("Kernel")
    assert abs(comparison.z[first]) == pytest.approx(5.471, abs=0.002)
    assert comparison.unadjusted[first] == pytest.approx(4.487e-8, rel=0.01)
    assert comparison.bergmann_hommel[first] == pytest.approx(4.487e-7, rel=0.01)
    # After the first rejection at most six pairs can still be true together.
    assert comparison.bergmann_hommel[second] == pytest.approx(1.041e-6, rel=0.01)


def test_groups_are_the_bars_of_the_diagram():
    ranks = {"a": 1.2, "b": 1.9, "c": 3.0, "d": 3.9}
    comparison = of_mean_ranks(ranks, 20)
    assert 1.0 < comparison.critical_difference() < 1.1
    assert comparison.groups() == [("a", "b"), ("c", "d")]
    wider = of_mean_ranks(ranks, 10)
    assert wider.groups() == [("a", "b"), ("b", "c"), ("c", "d")]
    assert wider.better("nemenyi") == [("a", "c"), ("a", "d"), ("b", "d")]


def test_every_form_of_table_says_the_same():
    rng = np.random.default_rng(9)
    values = rng.normal(size=(6, 3))
    frame = pd.DataFrame(values, columns=["x", "y", "z"])
    columns = {name: frame[name].tolist() for name in frame}
    shuffled = {
        name: {f"set{i}": v for i, v in reversed(list(enumerate(column)))}
        for name, column in columns.items()
    }
    expected = compare(frame, lower_is_better=False)
    for table in (columns, shuffled):
        got = compare(table, lower_is_better=False)
        assert got.methods == expected.methods
        np.testing.assert_array_equal(got.mean_ranks, expected.mean_ranks)
        assert got.chi_square == expected.chi_square


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: compare({"a": [1.0], "b": [np.nan]}, lower_is_better=True), "NaN for b and 0"),
        (lambda: compare({"a": [1.0]}, lower_is_better=True), "two methods and one data set"),
        (lambda: compare({"a": [], "b": []}, lower_is_better=True), "two methods and one data set"),
        (lambda: compare({"a": [1], "b": [2]}, lower_is_better=True, control="x"), "control must"),
        (lambda: compare({"a": {"s": 1}, "b": {"t": 1}}, lower_is_better=True), "NaN for"),
        (lambda: bergmann_hommel(np.ones((13, 13))), "at most 12 methods, got 13"),
        (lambda: bergmann_hommel([[1.0, 0.5], [0.4, 1.0]]), "symmetric"),
        (lambda: bergmann_hommel(np.ones((2, 3))), r"shape \(k, k\)"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
