"""The page of ``make compare`` says what the kept measurements say."""

import numpy as np
import pytest
from scipy.stats import rankdata

pytest.importorskip("matplotlib")

from experiments.studies.compare import complete, losses_table, run
from experiments.studies.compare_ways import DEFAULT, WAYS

THERE = {"vennforest": "0", "scikit-learn": "1"}
NAMES = [name for name, (package, _) in WAYS.items() if package in (None, *THERE)]


def records(n_sets, seed=0):
    rng = np.random.default_rng(seed)
    return [
        {"set": f"set {i}", "way": name, "folds": 3, "trees": 5, "versions": THERE, "classes": 2}
        | {"log loss": rng.random(), "Brier": rng.random(), "width": None, "seconds": 1.0}
        for i in range(n_sets)
        for name in NAMES
    ]


def test_ranks_and_counts_are_those_of_the_records():
    made = records(7)
    sets, failures = complete(made, THERE)
    assert len(sets) == 7
    assert not failures
    losses = np.array([[sets[s][name]["log loss"] for name in NAMES] for s in sets])
    ranks = np.mean([rankdata(row) for row in losses], axis=0)
    better = (losses < losses[:, [NAMES.index(DEFAULT)]]).sum(axis=0)
    lines, _ = losses_table(sets)
    cells = {line.split(" | ")[0].removeprefix("| "): line.split(" | ") for line in lines[2:-2]}
    assert set(cells) == set(NAMES)
    for i, name in enumerate(NAMES):
        assert float(cells[name][1]) == pytest.approx(losses[:, i].mean(), abs=6e-5)
        assert float(cells[name][2]) == pytest.approx(ranks[i], abs=6e-3)
        assert cells[name][3] == ("" if name == DEFAULT else f"{better[i]} of 7")


def test_sets_that_are_not_whole_and_other_versions_are_left_out():
    made = records(3)
    made[0]["versions"] = {"vennforest": "0", "scikit-learn": "2"}
    del made[-1]
    assert set(complete(made, THERE)[0]) == {"set 1"}


def test_a_run_goes_on_where_it_was(tmp_path, monkeypatch):
    calls = []

    def way(split):
        calls.append(len(split.y))
        return np.full((len(split.new), 3), 1 / 3), None

    monkeypatch.setattr(
        "experiments.studies.compare.WAYS", {DEFAULT: (None, way), "x": (None, way)}
    )
    path = tmp_path / "kept.jsonl"
    arguments = (path, ["wine"], None, THERE, 3, 5)
    first = run(*arguments, np.inf)
    assert len(calls) == 6
    assert first[0]["log loss"] == pytest.approx(np.log(3))
    assert run(*arguments, np.inf) == first
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:1]))
    assert run(*arguments, 0) == first[:1]
    assert len(calls) == 6
    assert [r["way"] for r in run(*arguments, np.inf)] == [DEFAULT, "x"]
    assert len(calls) == 9
