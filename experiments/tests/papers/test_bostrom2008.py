"""Boström (2008): leaves over the training set, measures, conclusions that follow the numbers."""

import csv
import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

from vennforest import CalibratedClassifier
from vennforest_experiments.papers import published, reproduce
from vennforest_experiments.papers.bostrom2008.conclusions import conclusions
from vennforest_experiments.papers.bostrom2008.experiment import METHODS, Bostrom2008, OutOfBag
from vennforest_experiments.papers.bostrom2008.findings import Findings
from vennforest_experiments.papers.bostrom2008.forest import TrainingSetForest, scores_of_others
from vennforest_experiments.papers.protocol.problems import problems
from vennforest_experiments.papers.protocol.store import Task

# Without the one set whose data Figure 1 needs; as many as in the paper.
DATASETS = [d for d in problems("bostrom2008") if d != "vote"] + ["another"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a set of two classes and one of three, the rarest in fewer rows than folds."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    for name, n, classes in (("vote", 70, 2), ("wine", 80, 3)):
        X = rng.normal(size=(n, 3)).round(2)
        y = (X.sum(axis=1) + 1.5 * rng.normal(size=n) > 0).astype(int)
        if classes == 3:
            y[:2] = 2
        text = "".join(f"{a},{b},{c},{label}\n" for (a, b, c), label in zip(X, y, strict=True))
        (folder / f"{name}.csv").write_text("a,b,c,target\n" + text)
    return folder


@pytest.fixture(scope="module")
def run(made, tmp_path_factory):
    folder = tmp_path_factory.mktemp("out")
    found = reproduce("bostrom2008", made, ["vote", "wine"], folds=3, trees=10, output=folder)
    return found, folder


# --- the forest ------------------------------------------------------------------------------


def test_leaves_hold_the_shares_of_all_training_examples():
    X, y = load_iris(return_X_y=True)
    y = np.array(["a", "b", "c"])[y]
    X, y = X[::3, :2], y[::3]
    forest = TrainingSetForest(7, random_state=3).fit(X, y)
    plain = RandomForestClassifier(7, random_state=3).fit(X, y)
    X_new = np.random.default_rng(0).uniform(X.min(), X.max(), (40, 2))
    expected = np.zeros((40, 3))
    for tree, same in zip(forest.estimators_, plain.estimators_, strict=True):
        np.testing.assert_array_equal(tree.tree_.threshold, same.tree_.threshold)
        home, leaf = same.apply(X), same.apply(X_new)
        for i in range(40):
            own = [y[j] for j in range(len(y)) if home[j] == leaf[i]]
            for c, label in enumerate("abc"):
                expected[i, c] += own.count(label) / len(own) / 7
    np.testing.assert_allclose(forest.predict_proba(X_new), expected, atol=1e-12)
    assert np.abs(plain.predict_proba(X_new) - expected).max() > 0.05


def test_the_library_reads_these_leaves():
    X, y = load_iris(return_X_y=True)
    model = CalibratedClassifier(
        TrainingSetForest(20), method="none", calibrate_on=OutOfBag(verify=False), random_state=0
    ).fit(X, y)
    with pytest.raises(ValueError, match="leaves contain other examples"):
        CalibratedClassifier(TrainingSetForest(20), calibrate_on="oob").fit(X, y)
    np.testing.assert_allclose(
        model.predict_proba(X), model.estimator_.predict_proba(X), atol=1e-12
    )


@pytest.mark.parametrize("votes", ["hard", "soft"])
@pytest.mark.parametrize("k", [2, 3])
def test_scores_of_others_object_by_object(votes, k):
    rng = np.random.default_rng(k)
    X = rng.integers(0, 4, size=(25, 2)).astype(float)  # equal objects with different labels
    y = rng.integers(0, k, size=25)
    forest = TrainingSetForest(9, random_state=0).fit(X, y)
    scores, labels = scores_of_others(forest, X, y, votes)
    expected = []
    for i in range(25):
        total, count = np.zeros(k), 0
        for tree, bag in zip(forest.estimators_, forest.estimators_samples_, strict=True):
            if i in bag:
                continue
            leaf = tree.apply(X)
            others = [y[j] for j in range(25) if leaf[j] == leaf[i] and j != i]
            numbers = np.array([others.count(c) for c in range(k)])
            if votes == "hard":
                total[numbers.argmax()] += 1
            else:
                total += numbers / len(others)
            count += 1
        if count:
            expected.append((*(total / count), y[i]))
    expected = np.array(expected)
    np.testing.assert_array_equal(labels, expected[:, -1])
    found = np.column_stack([1 - scores, scores]) if k == 2 else scores
    np.testing.assert_allclose(found, expected[:, :-1], atol=1e-12)


# --- measures --------------------------------------------------------------------------------


def test_measures_of_a_fold(made):
    e = Bostrom2008(data_dir=str(made), folds=3, trees=10)
    for dataset, k in (("vote", 2), ("wine", 3)):
        task = Task(dataset, 0, 1)
        record = e.run(task)
        assert list(record) == list(METHODS)
        X, y = e.data(dataset)
        train, test = e.split(task)
        estimates = e.estimates(X[train], y[train], X[test], e.seed_of(*task))
        for method, found in record.items():
            p = np.zeros((len(test), k))
            p[:, np.unique(y[train])] = estimates[method]
            total, area, share = 0.0, 0.0, 0.0
            for row, label in zip(p, y[test], strict=True):
                total += sum((row[c] - (c == label)) ** 2 for c in range(k)) / len(test)
            for c in range(k):
                mine, others = p[y[test] == c, c], p[y[test] != c, c]
                if len(mine):
                    pairs = mine[:, None] - others[None, :]
                    area += len(mine) * ((pairs > 0) + (pairs == 0) / 2).mean()
                    share += len(mine)
            assert found["brier"] == pytest.approx(total, abs=1e-12)
            assert found["auc"] == pytest.approx(area / share, abs=1e-9)
            assert found["accuracy"] == np.mean(p.argmax(axis=1) == y[test])
            assert found["log loss"] >= 0


# --- conclusions follow the numbers ----------------------------------------------------------


def made_measures(order, n=34, seed=0, noise=0.5):
    """Measures in which methods stand in the given order for each measure, best first."""
    rng = np.random.default_rng(seed)
    found = {}
    for name in ("brier", "auc", "accuracy", "log loss"):
        best_first = order.get(name, METHODS)
        sign = 1 if name in ("brier", "log loss") else -1
        found[name] = {
            m: {
                d: 0.5 + sign * 0.01 * (best_first.index(m) + noise * rng.random())
                for d in DATASETS[:n]
            }
            for m in METHODS
        }
    for kind in ("CT", "PET"):
        found["accuracy"][kind] = dict(found["accuracy"][f"{kind}_R"])
    return found


def claims_of(measures):
    found = Findings(Bostrom2008(data_dir="/nowhere"), measures)
    return {c.claim: c.holds for c in conclusions(found)}, found


def starting(claims, start):
    matching = [holds for claim, holds in claims.items() if claim.startswith(start)]
    assert len(matching) == 1, start
    return matching[0]


PRINTED_ORDER = {
    "brier": ("PET_R", "CT_R", "CT_I", "PET_P", "CT_P", "CT", "PET", "PET_I"),
    "accuracy": ("PET_R", "PET_P", "CT_R", "PET_I", "CT_P", "CT_I", "CT", "PET"),
}


def test_the_printed_order_bears_out_the_paper():
    claims, _ = claims_of(made_measures(PRINTED_ORDER))
    for start in (
        "PET_R and CT_R lead",
        "The choice of method matters for the Brier",
        "Raw votes (CT)",
        "Platt scaling improves",
        "Isotonic regression worsens",
        "Boström's correction improves the Brier score of PET",
        "PET, raw or corrected",
        "Boström's correction does not",
    ):
        assert starting(claims, start), start


def test_critical_difference_is_the_printed_one():
    _, found = claims_of(made_measures({}))
    value = next(
        v for v in found.values.all() if v.measure == "bonferroni-dunn critical difference"
    )
    assert value.published == 1.598 and abs(value.difference) < 0.0005


# --- what is written -------------------------------------------------------------------------


def test_results_csv_and_page(run):
    found, folder = run
    with (folder / "results.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["table", "dataset", "method", "measure", "value", "published"]
    printed = {
        (r.table, r.dataset, r.method, r.measure): r.value for r in published.load("bostrom2008")
    }
    keys = [(r["table"], r["dataset"], r["method"], r["measure"]) for r in rows]
    assert set(printed) <= set(keys) and len(set(keys)) == len(keys)
    for row, key in zip(rows, keys, strict=True):
        assert (float(row["published"]) if row["published"] else None) == printed.get(key)
    text = (folder / "index.md").read_text(encoding="utf-8")
    assert "does not list them" in text and "are used instead" in text
    assert (folder / "figure-1.svg").exists() and (folder / "index.html").exists()
    assert {f.name for f in found.figures} >= {"figure-1", "ranks-brier"}
    assert any("Figure 1" in c.claim for c in found.conclusions)


# --- the real data ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real_data():
    """The folder of real data sets."""
    folder = os.environ.get("VENNFOREST_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs the data sets: set VENNFOREST_DATA to their folder")
    return folder


def test_shrunken_run_on_real_data(real_data):
    found = reproduce("bostrom2008", real_data, ["lung_cancer", "hayes_roth"], folds=3, trees=10)
    value = {(v.dataset, v.method, v.measure): v.value for v in found.values if v.table == "1"}
    assert 0.6 < value["hayes_roth", "PET_P", "accuracy"] < 0.95
    assert 0 < value["hayes_roth", "PET_P", "brier"] < value["lung_cancer", "PET_P", "brier"] < 1
