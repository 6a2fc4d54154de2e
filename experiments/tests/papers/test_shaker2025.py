"""Shaker & Hüllermeier (2025): cut forests, synthetic truth, measures, conclusions that follow."""

import math
import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import mean_squared_error

from vennforest import CalibratedClassifier
from vennforest_experiments.papers import published, reproduce
from vennforest_experiments.papers.protocol.store import Task
from vennforest_experiments.papers.published import MEAN_RANK
from vennforest_experiments.papers.shaker2025.conclusions import conclusions
from vennforest_experiments.papers.shaker2025.experiment import (
    HELD_OUT,
    METHODS,
    OUT_OF_BAG,
    Shaker2025,
    measures,
    squared_gap,
)
from vennforest_experiments.papers.shaker2025.findings import GROUPS, MEASURES, TRUE_ERROR, Findings
from vennforest_experiments.papers.shaker2025.forest import COUNTS, DEPTHS, Cut, brier, read, tune
from vennforest_experiments.papers.shaker2025.report import figures, tables
from vennforest_experiments.papers.shaker2025.synthetic import PROBLEMS, draw

DATASETS = [f"set {i}" for i in range(30)]
SMALL = {"folds": 3, "trees": 6, "large": 2, "rows": 80}


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


def test_a_cut_forest_is_one_grown_to_that_depth():
    """With one feature, where splits do not depend on earlier draws, it is the very same."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 1))
    y = (np.sin(3 * X[:, 0]) + rng.normal(size=150) > 0).astype(int)
    new = rng.normal(size=(50, 1))
    settings = {"n_estimators": 30, "random_state": 0, "oob_score": True}
    whole = RandomForestClassifier(**settings).fit(X, y)
    for depth in (2, 4):
        grown = RandomForestClassifier(max_depth=depth, **settings).fit(X, y)
        (cut,) = read(whole, X, new, [Cut(depth)])
        np.testing.assert_allclose(cut.new, grown.predict_proba(new), atol=1e-12)
        np.testing.assert_allclose(cut.own, grown.oob_decision_function_, atol=1e-12)


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


def test_our_default_is_the_classifier_fitted_out_of_bag(made):
    """What stands under “default RF_d” is what a user gets from the two classes together."""
    this = Shaker2025(data_dir=str(made), folds=3, trees=25, large=2)
    X, y = this.data("labor")
    task = Task("labor", 0, 0)
    train, test = this.split(task)
    found = this.estimates(X[train], y[train], X[test], task, {})
    forest = RandomForestClassifier(25, random_state=this.seed_of("forest", *task))
    model = CalibratedClassifier(forest).fit(X[train], y[train])
    np.testing.assert_allclose(found["RF_d"], model.estimator_.predict_proba(X[test]), atol=1e-12)
    np.testing.assert_allclose(found["default RF_d"], model.predict_proba(X[test]), atol=1e-9)
    large = forest.set_params(n_estimators=50)
    model = CalibratedClassifier(large).fit(X[train], y[train])
    np.testing.assert_allclose(found["default RF_large"], model.predict_proba(X[test]), atol=1e-9)


def test_the_held_out_part_trains_nothing(made):
    this = Shaker2025(data_dir=str(made), **SMALL)
    y = this.data("labor").y
    for fold in range(3):
        train, test = this.split(Task("labor", 0, fold))
        rest, held = this.halves(y[train], Task("labor", 0, fold))
        assert not set(rest) & set(held) and len(rest) + len(held) == len(train)
        assert abs(len(held) - len(test)) <= 1
        assert set(train).isdisjoint(test)


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


def test_the_authors_ece_is_scikit_learns_curve():
    rng = np.random.default_rng(0)
    for n in (1, 5, 60, 400):
        p = rng.random(n).round(2)  # on edges of bins as well
        y = rng.integers(2, size=n)
        share, mean = calibration_curve(y, p, n_bins=20) if n > 1 else ([y[0]], [p[0]])
        assert squared_gap(y, p) == pytest.approx(mean_squared_error(share, mean), abs=1e-12)


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


def test_a_beaten_tuned_forest_does():
    order = [*OUT_OF_BAG, "default RF_opt", "default RF_d", "ISO", "Platt", "VA", "Beta", "RF_d"]
    claims = claims_of([*order, "RF_opt", "RF_large"])
    assert not any(c.holds for c in claims.values())
    text = next(c.finding for claim, c in claims.items() if "out-of-bag scores" in claim)
    assert text.startswith("Ahead: Platt oob, ISO oob, Beta oob, VA oob, PPA oob. Mean ranks")
    text = next(c.finding for claim, c in claims.items() if "with the library's default" in claim)
    assert "better on 30, worse on 0 of 30 data sets (sign test: p = 1.9e-09)" in text
    text = next(c.finding for claim, c in claims.items() if claim.startswith("On accuracy"))
    assert "Significantly better: ISO, Platt" in text


def test_equal_forests_are_as_good():
    found = made_measures([], noise=0.0)
    claims = {c.claim: c for c in conclusions(Findings(found))}
    assert all(c.holds for k, c in claims.items() if "sign test" in c.finding)
    assert "better on 0, worse on 0" in next(
        c.finding for k, c in claims.items() if "default calibration" in k
    )
    assert starting(claims, "Tuning improves") == [False]


# --- the authors' numbers ----------------------------------------------------------------------


def test_the_authors_mean_ranks_add_up():
    """Mean ranks of k methods sum to k (k + 1) / 2."""
    rows = published.load("shaker2025")
    for group in ("held out", "out of bag"):
        for measure in ("accuracy", "brier", "log loss", "squared gap"):
            ranks = [r.value for r in rows if (r.table, r.measure) == (group, measure)]
            k = len(GROUPS[group])
            assert len(ranks) == k and sum(ranks) == pytest.approx(k * (k + 1) / 2, abs=0.01)
    each = [r for r in rows if r.table == "each"]
    assert {r.method for r in each} == {*HELD_OUT, *OUT_OF_BAG} and len({*HELD_OUT}) == 9
    assert len({r.dataset for r in each}) == 10 and len(each) == 10 * 14 * 4
    assert {r.dataset for r in each} <= set(Shaker2025().datasets())


def test_in_the_authors_own_figures_out_of_bag_calibration_is_ahead():
    rank = {
        (r.table, r.measure, r.method): r.value
        for r in published.load("shaker2025")
        if r.dataset == MEAN_RANK
    }
    for method in ("Platt oob", "Beta oob", "VA oob"):
        for measure in ("brier", "log loss"):
            better = rank["out of bag", measure, method] < rank["out of bag", measure, "RF_opt"]
            assert better, (method, measure)
    held_out = [rank["held out", "brier", m] for m in ("Platt", "ISO", "Beta", "VA", "PPA")]
    assert rank["held out", "brier", "RF_opt"] < min(held_out)


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


def test_runs_of_one_kind_of_data():
    found = made_measures(["RF_opt"])
    for kept, count, rest in ((DATASETS, 17, 2), (list(PROBLEMS), 3, 0)):
        part = {
            measure: {m: {d: column[d] for d in kept} for m, column in columns.items()}
            for measure, columns in found.items()
        }
        findings = Findings(part)
        assert len(list(conclusions(findings))) == count
        assert len(list(figures(findings))) == rest and list(tables(findings))


def test_settings_are_checked():
    for name, value in (("large", 1), ("trees", 0), ("rows", 5), ("folds", 2), ("tested", 0)):
        with pytest.raises(ValueError, match=name):
            Shaker2025(**{name: value})


def test_folds_come_one_by_one():
    """So that a stopped run has every data set, and more folds can follow in the same folder."""
    this = Shaker2025(folds=3, tested=9)
    tasks = [Task(d, 0, fold) for fold in range(3) for d in ("a", "b")]
    assert this.tasks(["a", "b"]) == tasks
    assert Shaker2025(folds=3).tasks(["a", "b"]) == tasks[:4]
    assert this.settings() == Shaker2025(folds=3).settings()


def test_shrunken_run_on_real_data():
    folder = os.environ.get("VENNFOREST_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs the data sets: set VENNFOREST_DATA to their folder")
    small = {"folds": 3, "trees": 12, "large": 2, "rows": 150}
    found = reproduce("shaker2025", folder, ["vote"], **small)
    value = {(v.table, v.method, v.measure): v.value for v in found.values if v.dataset == "vote"}
    for method in METHODS:
        assert value["each", method, "accuracy"] > 0.88
        assert value["each", method, "brier"] < 0.09
