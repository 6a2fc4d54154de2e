"""The printed tables against what is printed around them: means, ranks, differences, decisions."""

import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from printed import printed_columns
from vennforest_experiments.comparison import compare
from vennforest_experiments.datasets import catalogue
from vennforest_experiments.papers import published
from vennforest_experiments.papers.protocol.problems import problems
from vennforest_experiments.papers.published import ALL, MEAN, MEAN_RANK

SETUPS = [f"{m}-{c}" for m in ("RF", "Platt", "Iso", "VP", "VAP") for c in ("cal", "oob")]
VENN = ["VP-cal", "VP-oob", "VAP-cal", "VAP-oob"]
DATASETS = list(problems("johansson2018"))


def johansson(number, measure, methods):
    columns = printed_columns("johansson2018", number, measure)
    return np.array([[columns[m][d] for m in methods] for d in DATASETS]), columns


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
    ranks = compare(pd.DataFrame(size, columns=VENN), lower_is_better=True).ranks
    assert (ranks == [2, 1, 4, 3]).all()
    assert [columns[m][MEAN_RANK] for m in VENN] == [2, 1, 4, 3]


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
