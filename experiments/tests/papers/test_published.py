"""The printed tables against what is printed around them: means, ranks, differences, decisions."""

import math
from collections import Counter

import numpy as np
import pytest

from printed import printed_columns
from vennforest_experiments.comparison import compare, compare_mean_ranks
from vennforest_experiments.datasets import catalogue
from vennforest_experiments.papers import published
from vennforest_experiments.papers.protocol.problems import problems
from vennforest_experiments.papers.published import ALL, BETTER, MEAN, MEAN_RANK

SETUPS = [f"{m}-{c}" for m in ("RF", "Platt", "Iso", "VP", "VAP") for c in ("cal", "oob")]
VENN = ["VP-cal", "VP-oob", "VAP-cal", "VAP-oob"]
DATASETS = list(problems("johansson2018"))


def johansson(number, measure, methods):
    columns = printed_columns("johansson2018", number, measure)
    return np.array([[columns[m][d] for m in methods] for d in DATASETS]), columns


def marks(paper, number, measure_end=""):
    return {
        (row.method, row.measure.removeprefix(BETTER).removesuffix(measure_end))
        for row in published.load(paper)
        if row.table == str(number) and row.measure.startswith(BETTER) and row.value == 1
    }


@pytest.mark.parametrize(
    "paper", ["johansson2018", "bostrom2008", "vovk2014", "niculescu2005", "shaker2025"]
)
def test_no_number_twice(paper):
    rows = published.load(paper)
    cells = Counter((r.table, r.dataset, r.method, r.measure) for r in rows)
    assert cells.most_common(1)[0][1] == 1
    assert not any(math.isnan(r.value) for r in rows)


def test_unknown_papers_are_refused():
    with pytest.raises(ValueError, match="paper must be one of"):
        published.load("breiman2001")


@pytest.mark.parametrize(
    ("number", "measure", "methods"),
    [
        (1, "confidence minus accuracy", SETUPS),
        (2, "reliability", SETUPS),
        (4, "low", VENN),
        (4, "high", VENN),
        (4, "interval size", VENN),
        (4, "accuracy", VENN),
        (6, "accuracy", SETUPS),
    ],
)
def test_johansson_columns_have_the_printed_mean(number, measure, methods):
    values, columns = johansson(number, measure, methods)
    assert values.shape == (22, len(methods))
    printed = [columns[m][MEAN] for m in methods]
    # Cells and mean are each rounded by at most .0005.
    np.testing.assert_allclose(values.mean(axis=0), printed, rtol=0, atol=0.00075)


def test_johansson_intervals_fit_sizes_confidences_and_accuracies():
    low, _ = johansson(4, "low", VENN)
    high, _ = johansson(4, "high", VENN)
    size, _ = johansson(4, "interval size", VENN)
    accuracy, _ = johansson(4, "accuracy", VENN)
    accuracy_again, _ = johansson(6, "accuracy", VENN)
    overconfidence, _ = johansson(1, "confidence minus accuracy", VENN)
    assert np.abs(high - low - size).max() < 0.0015 + 1e-9
    np.testing.assert_array_equal(accuracy, accuracy_again)
    assert np.abs((low + high) / 2 - accuracy - overconfidence).max() < 0.0015 + 1e-9


def test_johansson_sizes_have_one_order_everywhere():
    size, columns = johansson(4, "interval size", VENN)
    ranks = compare(size, lower_is_better=True, methods=VENN).ranks
    assert (ranks == [2, 1, 4, 3]).all()
    assert [columns[m][MEAN_RANK] for m in VENN] == [2, 1, 4, 3]


def rank_bounds(values):
    """Smallest and largest rank of each cell, whatever rounding hides behind equal values."""
    low = np.array([[1 + (row < v - 1e-9).sum() for v in row] for row in values])
    high = np.array([[(row <= v + 1e-9).sum() for v in row] for row in values])
    return low, high


def test_johansson_printed_mean_ranks_leave_out_one_data_set():
    tables = [
        (2, "reliability", SETUPS, 1),
        (6, "accuracy", SETUPS, -1),
        (4, "accuracy", VENN, -1),
    ]
    possible = set(DATASETS) | {"none"}
    for number, measure, methods, sign in tables:
        values, columns = johansson(number, measure, methods)
        printed = np.array([columns[m][MEAN_RANK] for m in methods])
        # Twenty-one data sets: ranks are multiples of one half there, as they are not over 22.
        halves = printed * 42
        assert (np.abs(halves - halves.round()) <= 0.21 + 1e-9).all()
        low, high = rank_bounds(sign * values)
        for name in list(possible):
            keep = np.array([d != name for d in DATASETS])
            inside = (low[keep].mean(axis=0) - 0.0051 <= printed).all() and (
                printed <= high[keep].mean(axis=0) + 0.0051
            ).all()
            if not inside:
                possible.discard(name)
    assert possible == {"heartC", "vote"}


@pytest.mark.parametrize("left_out", ["heartC", "vote"])
def test_johansson_table_3_follows_from_table_2(left_out):
    values, _ = johansson(2, "reliability", SETUPS)
    keep = [d != left_out for d in DATASETS]
    comparison = compare(values[keep], lower_is_better=True, methods=SETUPS)
    assert set(comparison.better("bergmann-hommel")) == marks("johansson2018", 3)


def test_johansson_table_3_has_one_mark_less_than_all_data_sets_give():
    values, _ = johansson(2, "reliability", SETUPS)
    comparison = compare(values, lower_is_better=True, methods=SETUPS)
    extra = set(comparison.better("bergmann-hommel")) ^ marks("johansson2018", 3)
    assert extra == {("VP-oob", "Platt-oob")}


def test_johansson_table_5_follows_from_table_4():
    values, columns = johansson(4, "accuracy", VENN)
    expected = marks("johansson2018", 5)
    for comparison in (
        compare(values, lower_is_better=False, methods=VENN),
        compare_mean_ranks({m: columns[m][MEAN_RANK] for m in VENN}, 21),
    ):
        assert set(comparison.better("bergmann-hommel")) == expected
        p = comparison.bergmann_hommel[VENN.index("VP-oob"), VENN.index("VAP-oob")]
        assert 0.05 < p < 0.1  # printed: .07


def test_bostrom_tests_follow_from_the_printed_ranks():
    text = {r.measure: r.value for r in published.load("bostrom2008") if r.table == "text"}
    for measure in ("brier", "auc", "accuracy"):
        columns = printed_columns("bostrom2008", 1, measure)
        ranks = {m: v[MEAN_RANK] for m, v in columns.items()}
        control = "PET_R"
        comparison = compare_mean_ranks(ranks, 34, control=control)
        # Ranks of three decimals and p-values of two digits.
        assert comparison.chi_square_p == pytest.approx(text[f"friedman p, {measure}"], rel=0.04)
        if measure == "brier":
            difference = comparison.critical_difference("bonferroni-dunn")
            assert difference == pytest.approx(
                text["bonferroni-dunn critical difference"], abs=0.0005
            )
            assert set(comparison.better("bonferroni-dunn")) == marks(
                "bostrom2008", "text", ", brier"
            )
        if measure == "auc":
            worse = {"CT_I", "PET_I"}
            best = set(ranks) - worse
            assert set(comparison.better("nemenyi")) == {(b, w) for b in best for w in worse}
        if measure == "accuracy":
            assert comparison.better("nemenyi") == [("PET_R", "CT_I")]


def test_vovk_table_3_follows_from_tables_1_and_2():
    kinds = {"log loss": 1, "root mean square error": 2}
    printed = [r for r in published.load("vovk2014") if r.table == "3"]
    assert len(printed) == 9 * 2 * 3
    for measure, number in kinds.items():
        columns = printed_columns("vovk2014", number, measure)
        assert len(columns) == 24
        for dataset in problems("vovk2014"):
            best = dict.fromkeys(("W", "VA", "SVA", "DIR"), math.inf)
            for method, values in columns.items():
                kind = method.split(" ")[0]
                best[kind] = min(best[kind], values[dataset])
            rows = [r for r in printed if r.dataset == dataset and r.measure == f"{measure} rank"]
            order = [r.method for r in sorted(rows, key=lambda r: r.value)]
            shown = [columns[method][dataset] for method in order]
            assert shown == [best[method.split(" ")[0]] for method in order]
            assert shown == sorted(best.values())[:3]


def test_vovk_infinities_are_where_the_text_puts_them():
    columns = printed_columns("vovk2014", 1, "log loss")
    infinite = {
        method: [d for d, v in values.items() if math.isinf(v)]
        for method, values in columns.items()
    }
    datasets = list(problems("vovk2014"))
    for classifier in ("J", "JB", "LR", "NB", "NN", "SVM"):
        assert infinite[f"DIR ({classifier})"] == datasets
        assert infinite[f"VA ({classifier})"] == infinite[f"SVA ({classifier})"] == []
    assert len(infinite["W (LR)"]) == 3
    assert infinite["W (J)"] == datasets


def test_niculescu_sizes_fit_the_catalogue():
    rows = {(r.dataset, r.measure): r.value for r in published.load("niculescu2005")}
    for problem, name in problems("niculescu2005").items():
        assert rows[problem, "attributes"] == catalogue()[name].features
    assert len({dataset for dataset, _ in rows}) == 8


def test_names_of_data_sets_are_those_of_the_problems():
    special = {MEAN, MEAN_RANK, ALL}
    for paper in ("johansson2018", "vovk2014"):
        names = {row.dataset for row in published.load(paper)} - special
        assert names == set(problems(paper))
    assert set(problems("niculescu2005")) <= {r.dataset for r in published.load("niculescu2005")}
