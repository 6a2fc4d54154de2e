"""Shaker & Hüllermeier (2025): cut forests, synthetic truth, measures, conclusions that follow."""

import math
import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

from vennforest_experiments.papers import reproduce
from vennforest_experiments.papers.published import MEAN_RANK
from vennforest_experiments.papers.shaker2025.conclusions import conclusions
from vennforest_experiments.papers.shaker2025.experiment import (
    METHODS,
    measures,
)
from vennforest_experiments.papers.shaker2025.findings import MEASURES, TRUE_ERROR, Findings
from vennforest_experiments.papers.shaker2025.forest import COUNTS, DEPTHS, Cut, brier, read, tune
from vennforest_experiments.papers.shaker2025.synthetic import PROBLEMS, draw

DATASETS = [f"set {i}" for i in range(30)]
SMALL = {"folds": 3, "trees": 4, "large": 2, "rows": 40}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with one data set of two classes."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3)).round(2)
    y = (X.sum(axis=1) + 1.5 * rng.normal(size=90) > 0).astype(int)
    text = "".join(f"{a},{b},{c},{label}\n" for (a, b, c), label in zip(X, y, strict=True))
    (folder / "labor.csv").write_text("a,b,c,target\n" + text)
    return folder


@pytest.fixture(scope="module")
def run(made, tmp_path_factory):
    folder = tmp_path_factory.mktemp("out")
    found = reproduce("shaker2025", made, ["labor", "normal-2D-1"], output=folder, **SMALL)
    return found, folder


# --- the forest ------------------------------------------------------------------------------


def answer(tree, x, cut):
    """Walk down while the next node may answer."""
    node, depth = 0, 0
    while tree.children_left[node] >= 0:
        value = x[tree.feature[node]]
        left = tree.missing_go_to_left[node] if math.isnan(value) else value <= tree.threshold[node]
        below = (tree.children_left if left else tree.children_right)[node]
        if cut.depth is not None and depth == cut.depth:
            break
        if tree.weighted_n_node_samples[below] < cut.least:
            break
        node, depth = below, depth + 1
    return tree.value[node, 0]


def made_forest(k, missing):
    rng = np.random.default_rng(k)
    X = rng.normal(size=(80, 4)).astype(np.float32)
    y = np.digitize(X[:, 0] + rng.normal(size=80), [0] if k == 2 else [-0.5, 0.5])
    if missing:
        X[rng.random(X.shape) < 0.1] = np.nan
    new = rng.normal(size=(15, 4)).astype(np.float32)
    if missing:
        new[0, 1] = new[3, 0] = np.nan
    return RandomForestClassifier(12, random_state=1, oob_score=False).fit(X, y), X, y, new


@pytest.mark.parametrize(("k", "missing"), [(2, False), (2, True), (3, True)])
def test_cut_forests_answer_as_a_walk_does(k, missing):
    forest, X, _, new = made_forest(k, missing)
    cuts = [Cut(), Cut(0), Cut(2), Cut(4), Cut(least=7), Cut(3, 20), Cut(least=1000)]
    trees = [member.tree_ for member in forest.estimators_]
    bags = [set(bag.tolist()) for bag in forest.estimators_samples_]
    for cut, scores in zip(cuts, read(forest, X, new, cuts), strict=True):
        expected = [np.mean([answer(t, x, cut) for t in trees], axis=0) for x in new]
        np.testing.assert_allclose(scores.new, expected, atol=1e-12)
        for i, x in enumerate(X):
            out = [t for t, bag in zip(trees, bags, strict=True) if i not in bag]
            if out:
                own = np.mean([answer(t, x, cut) for t in out], axis=0)
                np.testing.assert_allclose(scores.own[i], own, atol=1e-12)
            else:
                assert np.isnan(scores.own[i]).all()


def test_uncut_scores_are_scikit_learns():
    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(60, random_state=0, oob_score=True).fit(X, y)
    (scores,) = read(forest, X, X[::7], [Cut()])
    np.testing.assert_allclose(scores.own, forest.oob_decision_function_, atol=1e-12)
    np.testing.assert_allclose(scores.new, forest.predict_proba(X[::7]), atol=1e-12)


def test_tuning_takes_the_least_out_of_bag_score():
    _, X, y, new = made_forest(2, missing=True)
    found = tune(X, y, new, 12, seed=5)
    best = []
    for leaf in (1, 2, 5, 10):
        own = RandomForestClassifier(12, min_samples_leaf=leaf, random_state=5).fit(X, y)
        best += [brier(s.own, y) for s in read(own, X, new, [Cut(d) for d in DEPTHS])]
    assert brier(found.tuned.own, y) == min(best)
    place = best.index(min(best))
    assert (found.leaf, found.depth) == ((1, 2, 5, 10)[place // 3], DEPTHS[place % 3])
    plain = RandomForestClassifier(12, random_state=5).fit(X, y)
    np.testing.assert_allclose(found.plain.new, plain.predict_proba(new), atol=1e-12)
    curtailed = [brier(s.own, y) for s in read(plain, X, new, [Cut(least=c) for c in COUNTS])]
    assert brier(found.curtailed.own, y) == min(curtailed)
    assert brier(np.full((3, 2), np.nan), np.array([0, 1, 1])) == math.inf


# --- synthetic data --------------------------------------------------------------------------


@pytest.mark.parametrize("problem", ["normal-2D-1", "normal-5D-2.5"])
def test_the_truth_is_bayes_theorem(problem):
    d, distance = PROBLEMS[problem]
    X, y, p = draw(problem, 4000, seed=7)
    assert X.shape == (4000, d) and abs(y.mean() - 0.5) < 0.03
    # Calibrated: in every tenth of the range labels are as frequent as their probability.
    for low in np.arange(0, 1, 0.1):
        inside = (p >= low) & (p < low + 0.1)
        error = math.sqrt(np.sum(p[inside] * (1 - p[inside]))) + 1e-9
        assert abs(np.sum(y[inside] - p[inside])) < 4 * error
    rng = np.random.default_rng(7)
    variance = rng.uniform(1, 2, size=(2, d))
    for x, truth in zip(X[:20], p[:20], strict=True):
        density = [1.0, 1.0]
        for j in range(d):
            mean = [0.0, distance * math.sqrt((variance[0, j] + variance[1, j]) / 2 / d)]
            for c in (0, 1):
                v = variance[c, j]
                density[c] *= math.exp(-((x[j] - mean[c]) ** 2) / 2 / v) / math.sqrt(v)
        assert truth == pytest.approx(density[1] / sum(density), abs=1e-12)


# --- measures --------------------------------------------------------------------------------


def test_measures_by_hand():
    y, p1 = np.array([0, 1, 1, 0]), np.array([0.1, 0.9, 0.3, 0.1])
    found = measures(y, np.column_stack([1 - p1, p1]))
    assert found["accuracy"] == 0.75
    assert found["brier"] == pytest.approx((0.01 + 0.01 + 0.49 + 0.01) / 4)
    expected = -(2 * math.log(0.9) + math.log(0.9) + math.log(0.3)) / 4
    assert found["log loss"] == pytest.approx(expected)
    # Bins: the two .1, .3 and .9 by themselves.
    assert found["ece"] == pytest.approx((2 * 0.1 + 0.7 + 0.1) / 4)
    assert found["squared gap"] == pytest.approx((0.1**2 + 0.7**2 + 0.1**2) / 3)


# --- conclusions -----------------------------------------------------------------------------


def made_measures(order, noise=0.001):
    """Losses that put the methods of ``order`` first, in this order; the rest ties behind them."""
    rng = np.random.default_rng(0)
    found = {}
    for measure in (*MEASURES, TRUE_ERROR):
        sign = -1 if measure == "accuracy" else 1
        found[measure] = {
            m: {
                d: 0.5 + sign * (0.1 * order.index(m) if m in order else 3) + noise * rng.normal()
                for d in [*DATASETS, *PROBLEMS]
            }
            for m in METHODS
        }
    return found


def claims_of(order):
    return {c.claim: c for c in conclusions(Findings(made_measures(order)))}


def starting(claims, start):
    found = [c.holds for claim, c in claims.items() if claim.startswith(start)]
    assert found, start
    return found


def test_a_leading_tuned_forest_needs_no_calibrator():
    claims = claims_of(["RF_opt", "RF_large", "RF_d", "VA"])
    assert all(c.holds for c in claims.values() if "Venn–Abers has" not in c.claim)
    assert len(claims) == 20
    assert starting(claims, "Venn–Abers has") == [False]


# --- what is written -------------------------------------------------------------------------


def test_page_and_numbers(run):
    found, folder = run
    text = (folder / "index.md").read_text(encoding="utf-8")
    assert "was not at hand beyond its abstract" in text and "2 of 37 data sets" in text
    assert {f.name for f in found.figures} == {"ranks-brier", "ranks-log-loss"}
    value = {(v.table, v.dataset, v.method, v.measure): v for v in found.values}
    for method in METHODS:
        assert 0 < value["each", "labor", method, "brier"].value < 0.5
        assert 0 < value["synthetic", "normal-2D-1", method, TRUE_ERROR].value < 0.3
    printed = value["held out", MEAN_RANK, "RF_opt", "brier"]
    assert printed.published == 2.967 and 1 <= printed.value <= 9
    assert value["each", "labor", "RF_d", "ece"].published is None


@pytest.mark.slow
def test_shrunken_run_on_real_data():
    folder = os.environ.get("VENNFOREST_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs the data sets: set VENNFOREST_DATA to their folder")
    small = {"folds": 3, "trees": 8, "large": 2, "rows": 150}
    found = reproduce("shaker2025", folder, ["vote"], **small)
    value = {(v.table, v.method, v.measure): v.value for v in found.values if v.dataset == "vote"}
    for method in METHODS:
        assert value["each", method, "accuracy"] > 0.88
        assert value["each", method, "brier"] < 0.09
