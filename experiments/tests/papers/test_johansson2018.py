"""Johansson et al. (2018): measures against slow ones, conclusions that follow the numbers."""

import csv
import os
from pathlib import Path

import numpy as np
import pytest

from printed import printed_columns
from vennforest_experiments.papers import published, reproduce
from vennforest_experiments.papers.johansson2018.conclusions import conclusions
from vennforest_experiments.papers.johansson2018.experiment import SETUPS, VENN, Johansson2018
from vennforest_experiments.papers.johansson2018.findings import Findings, mean_measures
from vennforest_experiments.papers.protocol.problems import problems
from vennforest_experiments.papers.protocol.run import run_experiment
from vennforest_experiments.papers.published import MEAN, MEAN_RANK

DATASETS = list(problems("johansson2018"))
SMALL = {"repeats": 2, "folds": 2, "trees": 15}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with two made data sets."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    for name, n in (("haberman", 90), ("liver", 60)):
        X = rng.normal(size=(n, 3)).round(2)
        y = (X.sum(axis=1) + 1.5 * rng.normal(size=n) > 0).astype(int)
        text = "".join(f"{a},{b},{c},{label}\n" for (a, b, c), label in zip(X, y, strict=True))
        (folder / f"{name}.csv").write_text("a,b,c,target\n" + text)
    return folder


@pytest.fixture(scope="module")
def run(made, tmp_path_factory):
    folder = tmp_path_factory.mktemp("out")
    found = reproduce("johansson2018", made, ["haber", "liver"], output=folder, **SMALL)
    return found, folder


@pytest.fixture(scope="module")
def records(made, run):
    """The records that the run wrote."""
    e = Johansson2018(data_dir=str(made), **SMALL)
    return e, run_experiment(e, ["haber", "liver"], output=run[1])


def slow_measures(folds, setup):
    """Every measure, object by object, as the paper words it."""
    label, interval, p, y = [], [], [], []
    for fold in folds:
        for i, truth in enumerate(fold["y"]):
            y.append(truth)
            cells = fold[setup]
            if "p" in cells:
                p.append(cells["p"][i])
                label.append(1 if cells["p"][i] > 0.5 else 0)
            else:
                low, high = cells["low"][i], cells["high"][i]
                label.append(cells["label"][i])
                interval.append((low, high))
                p.append((low + high) / 2 if label[-1] == 1 else 1 - (low + high) / 2)
    n = len(y)
    accuracy = sum(a == b for a, b in zip(label, y, strict=True)) / n
    confidence = sum(p[i] if label[i] == 1 else 1 - p[i] for i in range(n)) / n
    out = {"accuracy": accuracy, "confidence minus accuracy": confidence - accuracy}
    if interval:
        out["low"] = sum(low for low, _ in interval) / n
        out["high"] = sum(high for _, high in interval) / n
        out["interval size"] = sum(high - low for low, high in interval) / n
    bins = {}
    for i in range(n):
        bins.setdefault(max(int(np.ceil(p[i] * 100)), 1), []).append(i)
    out["reliability"] = (
        sum(
            len(k) * (sum(p[i] for i in k) / len(k) - sum(y[i] for i in k) / len(k)) ** 2
            for k in bins.values()
        )
        / n
    )
    mean = sum(p) / n
    out["variance"] = sum((v - mean) ** 2 for v in p) / n
    out["brier"] = sum((a - b) ** 2 for a, b in zip(p, y, strict=True)) / n
    return out


def test_measures_are_those_of_pooled_repeats(records):
    _, found = records
    measures = mean_measures(found, ["haber", "liver"])
    for dataset in ("haber", "liver"):
        for setup in SETUPS:
            repeats = [
                slow_measures([r for t, r in found.items() if t[:2] == (dataset, k)], setup)
                for k in range(2)
            ]
            for name in repeats[0]:
                expected = (repeats[0][name] + repeats[1][name]) / 2
                got = measures[name][setup][dataset]
                assert got == pytest.approx(expected, abs=1e-12), (name, setup)


def test_venn_intervals_are_those_of_counts(records):
    """Label taxonomy: low = c / (N + 1), high = (c + 1) / (N + 1) for one N a category."""
    e, found = records
    for task, record in found.items():
        train, _ = e.split(task)
        for setup, calibrated in (("VP-cal", round(len(train) / 3)), ("VP-oob", len(train) - 1)):
            low, high = (np.array(record[setup][name]) for name in ("low", "high"))
            n_plus_1 = 1 / (high - low)
            np.testing.assert_allclose(n_plus_1, n_plus_1.round(), rtol=1e-9)
            np.testing.assert_allclose(low * n_plus_1, (low * n_plus_1).round(), atol=1e-8)
            assert (n_plus_1 - 1 <= calibrated + 1 + 1e-6).all()
            assert (low >= high - high - 0).all() and (high <= 1).all()


# --- conclusions follow the numbers ----------------------------------------------------------


def printed_measures():
    """The printed tables as if they had been measured, with variances that eq. 13 is not."""
    found = {}
    for number, name in ((1, "confidence minus accuracy"), (2, "reliability"), (6, "accuracy")):
        table = printed_columns("johansson2018", number, name)
        found[name] = {s: {d: table[s][d] for d in DATASETS} for s in SETUPS}
    for name in ("low", "high", "interval size"):
        table = printed_columns("johansson2018", 4, name)
        found[name] = {s: {d: table[s][d] for d in DATASETS} for s in VENN}
    found["variance"] = {
        s: {d: v + 0.05 for d, v in found["reliability"][s].items()} for s in SETUPS
    }
    found["brier"] = found["variance"]
    return found


def verdicts(measures):
    found = Findings(measures, DATASETS)
    return found, {c.claim: c.holds for c in conclusions(found)}


def starting(claims, start):
    matching = [holds for claim, holds in claims.items() if claim.startswith(start)]
    assert len(matching) == 1, start
    return matching[0]


def test_the_printed_numbers_bear_out_the_papers_conclusions():
    found, claims = verdicts(printed_measures())
    for start in (
        "Interval sizes",
        "Out-of-bag calibration is more",
        "VP-oob is the most",
        "Every out-of-bag",
        "Significant differences",
        "Raw forests",
        "Platt scaling",
        "All four Venn setups are valid",
        "Isotonic regression is worse",
        "For Venn predictors a calibration set",
        "All four Venn and Venn–Abers",
        "The printed Table 2",
        "Agreement with the printed numbers: VP-oob's accuracy",
        "Agreement with the printed numbers: VP-oob's interval",
    ):
        assert starting(claims, start), start
    for value in found.values.all():
        if value.published is not None and value.dataset in DATASETS:
            assert value.difference == 0
    ranks = [v for v in found.values.all() if v.dataset == MEAN_RANK and v.measure == "accuracy"]
    assert all(abs(v.difference) < 0.35 for v in ranks)


# --- what is written -------------------------------------------------------------------------


def test_results_csv(run):
    found, folder = run
    with (folder / "results.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["table", "dataset", "method", "measure", "value", "published"]
    assert len(rows) == len(found.values)
    keys = [(r["table"], r["dataset"], r["method"], r["measure"]) for r in rows]
    assert len(set(keys)) == len(keys)
    printed = {
        (r.table, r.dataset, r.method, r.measure): r.value for r in published.load("johansson2018")
    }
    wanted = {k for k in printed if k[1] in {"haber", "liver", MEAN, MEAN_RANK, "(all)"}}
    # Tables 3 and 5 print one cell of a method against itself, which says nothing.
    assert {k for k in wanted if k not in set(keys)} <= {
        ("3", "(all)", "RF-oob", "significantly better than RF-oob"),
        ("3", "(all)", "Platt-cal", "significantly better than Platt-cal"),
        ("3", "(all)", "Platt-oob", "significantly better than Platt-oob"),
    }
    for row, key in zip(rows, keys, strict=True):
        assert (float(row["published"]) if row["published"] else None) == printed.get(key)
        float(row["value"])
    assert {r["method"] for r in rows if r["table"] == "6"} - {""} == set(SETUPS)
    sizes = {k: float(r["value"]) for k, r in zip(keys, rows, strict=True)}
    assert 0 < sizes["4", "haber", "VP-oob", "interval size"] < 0.5


def test_data_as_they_are_and_as_published(made):
    with_faults = Johansson2018(data_dir=str(made))
    without = Johansson2018(data_dir=str(made), as_published=False)
    assert with_faults.settings() != without.settings()


# --- the real data ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real_data():
    """The folder of real data sets."""
    folder = os.environ.get("VENNFOREST_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs the data sets: set VENNFOREST_DATA to their folder")
    return folder


@pytest.mark.slow
def test_shrunken_run_on_the_papers_data(real_data):
    found = reproduce("johansson2018", real_data, ["iono", "sonar"], repeats=1, folds=3, trees=30)
    value = {(v.table, v.dataset, v.method, v.measure): v for v in found.values}
    assert abs(value["6", "iono", "VP-oob", "accuracy"].difference) < 0.05
    claims = {c.claim: c.holds for c in found.conclusions}
    assert starting(claims, "Interval sizes")
    assert not starting(claims, "The printed Table 2")


@pytest.mark.slow
def test_sonar_as_in_the_paper(real_data):
    found = reproduce("johansson2018", real_data, ["sonar"], repeats=2, n_jobs=2)
    value = {(v.table, v.dataset, v.method, v.measure): v for v in found.values}
    assert abs(value["4", "sonar", "VP-oob", "interval size"].difference) < 0.002
    assert abs(value["6", "sonar", "VP-oob", "accuracy"].difference) < 0.03
    assert MEAN in {v.dataset for v in found.values}
