"""The measured half of the guarantee: what is summed, and what the page says of it."""

import numpy as np
import pytest
from experiments.studies.validity import run, settings
from experiments.studies.validity.forests import first_trees, grow
from experiments.studies.validity.page import page
from experiments.studies.validity.processes import PROCESSES, UNBALANCED_SHARE, unbalanced
from experiments.studies.validity.statistics import (
    BINS,
    EDGES,
    ENOUGH,
    MEASURES,
    deviations,
    estimate,
    one_sided,
    ratios,
    sums,
)
from experiments.studies.validity.table import detail, summary
from sklearn.ensemble import RandomForestClassifier

from vennforest import CalibratedClassifier, VennAbers
from vennforest.forest import Membership


def at(measure):
    return MEASURES.index(measure)


def test_the_bins_against_a_loop():
    rng = np.random.default_rng(1)
    for k in (2, 3):
        p = np.sort(rng.random((2, 40, k)), axis=0).round(1)  # bounds on the edges, too
        if k == 2:
            p[:, :, 0] = 1 - p[::-1, :, 1]
        truth = rng.dirichlet(np.ones(k), 40)
        off, weight = [0.0] * len(BINS), [0.0] * len(BINS)
        for i in range(40):
            for j in range(k):
                if k == 2 and j == 0:
                    continue
                for is_j, chance in ((1, truth[i, j]), (0, 1 - truth[i, j])):
                    bound = p[is_j, i, j]
                    where = sum(bound >= edge for edge in EDGES)
                    off[where] += chance * (is_j - bound)
                    weight[where] += chance
        pairs = ratios(p[0], p[1], truth)
        np.testing.assert_allclose(pairs[: len(BINS)], np.column_stack([off, weight]), atol=1e-12)


def test_the_losses_are_what_drawn_labels_give_on_average():
    rng = np.random.default_rng(2)
    for k in (2, 3):
        low, up = np.sort(rng.uniform(0.05, 0.95, (2, 30, k)), axis=0)
        truth, p = rng.dirichlet(np.ones(k), 30), rng.dirichlet(np.ones(k), 30)
        pairs = ratios(low, up, truth, p, reference=0.25)
        loss = brier = 0.0
        for i in range(30):
            for label in range(k):
                loss -= truth[i, label] * np.log(p[i, label])
                brier += truth[i, label] * ((p[i] - np.eye(k)[label]) ** 2).sum()
        assert pairs[at("log loss")] == pytest.approx([loss, 30])
        assert pairs[at("brier")] == pytest.approx([brier, 30])
        assert pairs[at("loss over all trees")] == pytest.approx([loss - 0.25 * 30, 30])


def test_the_standard_error_of_a_ratio_against_its_definition():
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=50), rng.integers(0, 5, 50).astype(float)
    a[b == 0] = 0  # no object in the bin, no numerator
    pairs = np.stack([a, b], axis=-1)[:, None]
    ratio, error, effective = estimate(sums(pairs)[0])
    expected, reached = a.sum() / b.sum(), b > 0
    # that of the mean of a - R b over the repetitions that have any object, over the mean of b
    residuals, n = (a - expected * b)[reached], reached.sum()
    assert ratio == pytest.approx(expected)
    assert error == pytest.approx(np.sqrt((residuals**2).mean() / (n - 1)) / b[reached].mean())
    assert effective == pytest.approx(b.sum() ** 2 / (b**2).sum())


def test_sums_of_parts_add_up():
    pairs = np.random.default_rng(4).random((30, len(MEASURES), 2))
    parts = sums(pairs[:7]) + sums(pairs[7:])
    np.testing.assert_allclose(parts, sums(pairs))


def test_the_standard_error_is_that_of_repetitions_not_of_objects():
    """Objects of one repetition err together: z has standard deviation 1 over experiments."""
    rng = np.random.default_rng(5)
    zs = []
    for _ in range(200):
        pairs = []
        for _ in range(40):
            common = rng.normal(0, 0.1)  # one training set's error, shared by its objects
            q = np.full((100, 2), 0.5)
            p = np.clip(0.6 + common + rng.normal(0, 0.01, 100), 0, 1)
            both = np.column_stack([1 - p, p])
            pairs.append(ratios(both, both, q))
        off, error, _ = estimate(sums(pairs)[at("p1")])
        zs.append((off - 0.1) / error)
    assert 0.82 < np.std(zs) < 1.18


def venn_abers_cell(shift, repetitions=400, n=40, m=50):
    """Sums of exactly valid bounds, moved by ``shift``: held-out scores that are independent."""
    rng = np.random.default_rng(6)
    pairs = []
    for _ in range(repetitions):
        s = rng.random(n + m)
        truth = 0.1 + 0.8 * s**2
        y = (rng.random(n) < truth[:n]).astype(int)
        bounds = VennAbers("log").fit(s[:n], y, classes=[0, 1]).predict_multiprobability(s[n:])
        low, up = (
            np.clip(b + np.array([-shift, shift]), 0, 1) for b in (bounds.lower, bounds.upper)
        )
        pairs.append(ratios(low, up, np.column_stack([1 - truth[n:], truth[n:]])))
    return sums(pairs)


def test_an_exactly_valid_predictor_is_not_flagged():
    cell = venn_abers_cell(0.0)
    assert np.nanmax(np.abs(deviations(cell)[:, 2])) < 4
    assert min(z for _, _, z in one_sided(cell)) > 0


def test_a_miscalibrated_predictor_is_flagged():
    cell = venn_abers_cell(0.08)
    assert np.nanmax(np.abs(deviations(cell)[:, 2])) > 6
    cell = venn_abers_cell(0.3)  # more than the bounds are wide
    assert min(z for _, _, z in one_sided(cell)) < -10


def test_a_bin_that_few_repetitions_reach_is_not_judged():
    pairs = np.zeros((200, len(MEASURES), 2))
    pairs[: ENOUGH - 1, 0] = np.random.default_rng(7).random((ENOUGH - 1, 2)) - [0, -1]
    assert np.isnan(deviations(sums(pairs))[0]).all()


@pytest.mark.parametrize("name", ["normals", "levels", "three"])
def test_quickly_grown_forests_are_scikit_learns(name):
    sample = PROCESSES[name].draw(np.random.default_rng(8), 60, 20)
    for seed in (0, 2**31 - 1):
        forest, unseen = grow(sample.X, sample.y, 9, seed)
        peer = RandomForestClassifier(9, random_state=seed).fit(sample.X, sample.y)
        for own, other in zip(forest.estimators_, peer.estimators_, strict=True):
            nodes = (tree.tree_.__getstate__()["nodes"] for tree in (own, other))
            assert np.array_equal(*nodes)
            assert np.array_equal(own.tree_.value, other.tree_.value)
        assert np.array_equal(unseen, Membership.from_forest(peer, 60).dense())
        few = RandomForestClassifier(4, random_state=seed).fit(sample.X, sample.y)
        shorter = first_trees(forest, 4)
        assert np.array_equal(shorter.predict_proba(sample.new), few.predict_proba(sample.new))


class Fixed:
    """A generator whose integers are given, for the seeds of one forest and two draws."""

    def __init__(self, *numbers):
        self.numbers = list(numbers)

    def integers(self, high, size=None):
        return self.numbers.pop(0)


@pytest.mark.parametrize("method", ["venn-abers", "venn"])
def test_the_settings_are_what_the_classifier_does(method):
    """The bounds measured are those that users get with the same forest."""
    sample = PROCESSES["normals"].draw(np.random.default_rng(9), 80, 60)
    found = {
        (name, size): answer
        for name, size, answer in settings.out_of_bag(sample, [25], Fixed(5, 6, 7))
    }
    kind = {"venn-abers": "Venn–Abers", "venn": "Venn"}[method]
    model = CalibratedClassifier(
        RandomForestClassifier(25, random_state=5), method=method, subforest="all", merge="log"
    ).fit(sample.X, sample.y)
    bounds = model.predict_multiprobability(sample.new)
    answer = found[f"{kind}, all trees", 25]
    assert np.array_equal(bounds.lower, answer.lower)
    assert np.array_equal(bounds.upper, answer.upper)
    assert found[f"{kind}, one draw", 25].spread.mean() > 0


@pytest.mark.parametrize("name", list(PROCESSES))
def test_processes_know_their_truth(name):
    """Among new objects and, where rows are exchangeable, among training labels alike."""
    process, rng = PROCESSES[name], np.random.default_rng(10)
    shares, truths = [], []
    for _ in range(60):
        sample = process.draw(rng, 200, 100)
        assert sample.truth.shape == (100, process.classes)
        np.testing.assert_allclose(sample.truth.sum(axis=1), 1)
        shares.append(np.bincount(sample.y, minlength=process.classes) / len(sample.y))
        truths.append(sample.truth.mean(axis=0))
    if name != "oversampled-shift":
        difference = np.mean(shares, axis=0) - np.mean(truths, axis=0)
        assert np.abs(difference).max() < 0.04


def test_the_share_of_the_unbalanced_process():
    _, truth = unbalanced(np.random.default_rng(11), 200_000)
    assert pytest.approx(truth.mean(), abs=0.002) == UNBALANCED_SHARE


def test_repetitions_are_written_read_and_completed(tmp_path):
    path = tmp_path / "results.jsonl"
    job = run.Job("normals", 40, (5,), ("oob", "holdout", "folds", "frozen"))
    run.run([job], 20, path)
    first = path.read_text()
    assert len(first.splitlines()) == 2
    run.run([job], 20, path)
    assert path.read_text() == first
    run.run([job], 30, path)
    assert path.read_text().startswith(first)
    ((found, (count, cells)),) = run.read(path).items()
    assert (found, count) == (job, 30)
    cell = cells["Venn–Abers, all trees", 5]
    assert cell[at("width"), 0] == 30
    assert cell[at("width"), 2] == 30 * run.NEW_OBJECTS
    assert np.abs(cell[at("loss over all trees"), 1]) < 1e-6
    assert {"Venn–Abers, 5 folds", "Venn, holdout", "Venn, frozen"} <= {s for s, _ in cells}


def test_compact_results_hold_the_same_sums_and_all_seeds(tmp_path):
    path, small = tmp_path / "results.jsonl", tmp_path / "results.jsonl.xz"
    job = run.Job("levels", 40, (5,), ("same-rows",))
    run.run([job], 20, path)
    run.compact([path], small)
    (record,) = run.records(small)
    assert record["repetitions"] == 20
    assert record["seed"] == [batch["seed"] for batch in run.records(path)]
    whole, again = run.read(path)[job][1], run.read(small)[job][1]
    assert whole.keys() == again.keys()
    for key in whole:
        np.testing.assert_allclose(again[key], whole[key], rtol=5e-5)
    with pytest.raises(ValueError, match="must not be compressed"):
        run.run([job], 30, small)
    twice = run.read(path, small)[job]
    assert twice[0] == 40
    text = page([small], "the command")
    assert "one integer of 60 levels, signal; n = 40" in text


def test_the_page_marks_what_is_off_and_nothing_else():
    valid, wrong = venn_abers_cell(0.0), venn_abers_cell(0.3)
    lines = detail("normals", 40, {("valid", 100): valid, ("wrong", 100): wrong}, lambda *_: True)
    (good,) = (row for row in lines if row.startswith("| valid"))
    (bad,) = (row for row in lines if row.startswith("| wrong"))
    assert "**" not in good
    assert bad.count("**") >= 4
    cells = {("normals", 40): {("valid", 100): valid, ("wrong", 100): wrong}}
    rows = summary(cells, 100)
    assert ["**" in row for row in rows[2:]] == [False, True]


def test_a_batch_is_what_its_seed_says():
    job = run.Job("levels", 50, (5,), ("oob", "same-rows"))
    assert run.batch(job, 12, 3) == run.batch(job, 12, 3) != run.batch(job, 13, 3)
