"""Tasks, seeds, and results that survive a stop; on made data, so that something always runs."""

import json
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from vennforest_experiments.papers import EXPERIMENTS, experiment, reproduce
from vennforest_experiments.papers.johansson2018.experiment import Johansson2018
from vennforest_experiments.papers.protocol.experiment import (
    Experiment,
    PreparedData,
    command,
    seed_of,
)
from vennforest_experiments.papers.protocol.run import fingerprint, run_experiment
from vennforest_experiments.papers.protocol.store import FOLDS_FILE, Store, Task


def made_table(n, d, classes, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).round(3)
    y = (X[:, 0] + rng.normal(size=n) > 0).astype(int) + (X[:, 1] > 0.6) * (classes - 2)
    lines = [",".join([f"x{j}" for j in range(d)] + ["target"])]
    lines += [",".join([*map(str, row), f"c{label}"]) for row, label in zip(X, y, strict=True)]
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with two small data sets under names that the papers know."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "haberman.csv").write_text(made_table(60, 3, 2, 0))
    (folder / "liver.csv").write_text(made_table(45, 4, 2, 1))
    return folder


@dataclass(frozen=True, kw_only=True)
class Drawing(Experiment):
    """An experiment that only draws numbers, and can be told to fail."""

    paper: ClassVar[str] = "johansson2018"
    level: int = 1
    fail_at: int = -1
    free: ClassVar = Experiment.free | {"fail_at"}

    def datasets(self):
        return ("a", "b", "c")

    def load(self, dataset):
        y = np.arange(12) % 2
        return PreparedData(np.full((12, 2), float(ord(dataset))), y)

    def run(self, task):
        if task.fold == self.fail_at:
            raise ZeroDivisionError("told to")
        rng = np.random.default_rng(self.seed_of(*task))
        return {"draw": rng.random(), "test": self.split(task)[1].tolist()}


def lines_of(folder):
    return (folder / FOLDS_FILE).read_text().splitlines()


# --- seeds and splits ------------------------------------------------------------------------


def test_seeds_are_hashes_of_their_parts():
    assert seed_of("a", 1, "b") == seed_of("a", "1", "b")
    seeds = [
        seed_of("paper", 0, name, r, f) for name in "abc" for r in range(20) for f in range(10)
    ]
    assert len(set(seeds)) == len(seeds)
    assert min(seeds) >= 0 and max(seeds) < 2**31 - 1
    assert abs(np.mean(seeds) / 2**31 - 0.5) < 0.05
    assert seed_of("ab", "c") != seed_of("a", "bc")


def test_every_fold_tests_every_object_once_a_repeat():
    e = Drawing(repeats=3, folds=4)
    splits = []
    for repeat in range(3):
        tests = [e.split(Task("a", repeat, fold)) for fold in range(4)]
        for train, test in tests:
            assert sorted([*train, *test]) == list(range(12))
            assert {(test % 2).sum(), (test % 2 == 0).sum()} <= {1, 2}  # of 6 in 4 folds
        splits.append(np.concatenate([test for _, test in tests]))
        assert sorted(splits[-1]) == list(range(12))
    assert not np.array_equal(splits[0], splits[1])


@pytest.mark.parametrize(
    ("field", "value"),
    [("repeats", 0), ("folds", 1), ("seed", -1), ("repeats", 1.5), ("folds", True), ("seed", "x")],
)
def test_numbers_that_make_no_cross_validation_are_refused(field, value):
    with pytest.raises(ValueError, match=f"{field} must be an integer >= .* got {value!r}"):
        Drawing(**{field: value})


def test_fingerprint_sees_every_change():
    X, y = np.arange(6.0).reshape(3, 2), np.array([0, 1, 1])
    marks = {
        fingerprint(PreparedData(X, y)),
        fingerprint(PreparedData(X.reshape(2, 3), y)),
        fingerprint(PreparedData(X + 1e-12, y)),
        fingerprint(PreparedData(X, y[::-1])),
        fingerprint(PreparedData(X, y.astype(bool))),
    }
    assert len(marks) == 5
    assert fingerprint(PreparedData(np.asfortranarray(X), y)) == fingerprint(PreparedData(X, y))


# --- running and going on --------------------------------------------------------------------


def test_progress_counts_folds_and_ends_with_nothing_left():
    seen = []
    run_experiment(Drawing(folds=3), ["a", "b"], progress=seen.append)
    assert [p.done for p in seen] == list(range(7))
    assert {p.total for p in seen} == {6} and {p.resumed for p in seen} == {0}
    assert seen[0].left is None and seen[0].task is None
    assert all(p.left >= 0 for p in seen[1:]) and seen[-1].left == 0
    assert [p.task.fold for p in seen[1:]] == [0, 1, 2, 0, 1, 2]


class Stop(Exception):  # noqa: N818
    pass


def stop_at(count):
    def progress(now):
        if now.done - now.resumed >= count:
            raise Stop

    return progress


def test_a_stopped_run_goes_on_with_the_same_numbers(tmp_path):
    e = Drawing(folds=4, repeats=2)
    whole = run_experiment(e)
    with pytest.raises(Stop):
        run_experiment(e, output=tmp_path, progress=stop_at(5))
    assert len(lines_of(tmp_path)) == 1 + 5
    with pytest.raises(Stop):
        run_experiment(e, output=tmp_path, progress=stop_at(7))
    seen = []
    again = run_experiment(e, output=tmp_path, progress=seen.append)
    assert seen[0].resumed == 12 and seen[0].done == 12 and seen[-1].done == 24
    assert list(again.items()) == list(whole.items())
    assert len(lines_of(tmp_path)) == 1 + 24


def test_a_fold_that_fails_keeps_the_others_and_says_where(tmp_path):
    with pytest.raises(ZeroDivisionError) as caught:
        run_experiment(Drawing(folds=4, fail_at=2), output=tmp_path)
    assert "Task(dataset='a', repeat=0, fold=2)" in caught.value.__notes__[0]
    assert len(lines_of(tmp_path)) == 1 + 2
    whole = run_experiment(Drawing(folds=4), output=tmp_path)
    assert whole == run_experiment(Drawing(folds=4))


def test_number_of_jobs_changes_nothing(made):
    e = Johansson2018(data_dir=str(made), repeats=1, folds=2, trees=5)
    one = run_experiment(e, ["haber", "liver"], n_jobs=1)
    two = run_experiment(e, ["haber", "liver"], n_jobs=2)
    assert list(one.items()) == list(two.items())
    other = Johansson2018(data_dir=str(made), repeats=1, folds=2, trees=5, seed=1)
    assert run_experiment(other, ["haber"]) != {t: r for t, r in one.items() if t[0] == "haber"}


@pytest.mark.parametrize("change", [{"folds": 3}, {"seed": 5}, {"level": 2}])
def test_other_settings_are_refused(tmp_path, change):
    run_experiment(Drawing(folds=2), ["a"], output=tmp_path)
    before = lines_of(tmp_path)
    name, value = next(iter(change.items()))
    old = getattr(Drawing(folds=2), name)
    with pytest.raises(
        ValueError, match=rf"\({name}={value}\), got {name}={old} in .*choose anoth"
    ):
        run_experiment(Drawing(**{"folds": 2, **change}), ["a"], output=tmp_path)
    assert lines_of(tmp_path) == before


def test_other_data_are_refused(made, tmp_path):
    for seed in (3, 4):
        (tmp_path / f"{seed}").mkdir()
        (tmp_path / f"{seed}" / "haberman.csv").write_text(made_table(40, 3, 2, seed))
    options = {"repeats": 1, "folds": 2, "trees": 5, "output": tmp_path / "out"}
    reproduce("johansson2018", tmp_path / "3", ["haber"], **options)
    with pytest.raises(ValueError, match="same data, got those of another haber"):
        reproduce("johansson2018", tmp_path / "4", ["haber"], **options)


def test_a_half_written_line_is_dropped(tmp_path):
    e = Drawing(folds=3)
    whole = run_experiment(e, ["a"], output=tmp_path)
    file = tmp_path / FOLDS_FILE
    text = file.read_text()
    for cut in (1, 20, len(text.splitlines()[-1]) - 1, len(text.splitlines()[-1])):
        file.write_text(text[: len(text) - 1 - cut] if cut else text)
        assert run_experiment(e, ["a"], output=tmp_path) == whole
        assert len(lines_of(tmp_path)) == 4


def test_damaged_line_is_left_out_with_a_warning_and_run_again(tmp_path):
    e = Drawing(folds=3)
    records = run_experiment(e, output=tmp_path)
    file = tmp_path / FOLDS_FILE
    lines = file.read_text().splitlines()
    file.write_text("\n".join([lines[0], lines[1][:20], *lines[2:]]) + "\n")
    with pytest.warns(UserWarning, match="line 2 of .* is damaged: its fold is run again"):
        assert run_experiment(e, output=tmp_path) == records
    file.write_text("{\n" + "\n".join(lines[1:]) + "\n")
    with pytest.raises(ValueError, match="must have a readable first line"):
        run_experiment(e, output=tmp_path)


def test_a_record_with_nan_is_not_written(tmp_path):
    store = Store(tmp_path, {"a": 1})
    with pytest.raises(ValueError, match="JSON compliant"):
        store.append(Task("a", 0, 0), "", 0.0, {"x": float("nan")})
    assert len(lines_of(tmp_path)) == 1
    store.append(Task("a", 0, 0), "mark", 0.5, {"x": 0.1 + 0.2})
    line = Store(tmp_path, {"a": 1}).read()[Task("a", 0, 0)]
    assert line["record"]["x"] == 0.1 + 0.2 and line["data"] == "mark"
    assert json.loads(lines_of(tmp_path)[0])["settings"] == {"a": 1}


# --- what reproduce takes --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("breiman2001",), {}, "paper must be one of .* got 'breiman2001'"),
        (("johansson2018", None, ["haber", "foo"]), {}, "datasets must be among .* got 'foo'"),
        (("johansson2018", None, []), {}, "datasets must name at least one"),
        (("johansson2018",), {"treees": 3}, r"among \['trees'.* got 'treees'"),
        (("johansson2018",), {"trees": 0}, "trees must be an integer >= 1, got 0"),
        (("johansson2018",), {"platt": "soft"}, "platt must be one of .* got 'soft'"),
        (("bostrom2008",), {"estimation": "oob"}, "estimation must be one of"),
        (("bostrom2008",), {"repeats": 0}, "repeats must be"),
    ],
)
def test_wrong_arguments_are_refused(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        reproduce(*arguments, **options)


@pytest.mark.parametrize("paper", EXPERIMENTS)
def test_every_experiment_has_the_papers_settings_by_default(paper):
    kind = experiment(paper)
    assert kind.paper == paper
    assert len(kind().datasets()) == {"johansson2018": 22, "bostrom2008": 34}.get(
        paper, len(kind().datasets())
    )
    assert command(kind(), kind().datasets()) == f"vennforest-experiments reproduce {paper}"


def test_command_names_what_differs_from_the_paper():
    e = Johansson2018(data_dir="/x", repeats=2, trees=10, seed=3)
    assert command(e, ["haber", "vote"]) == (
        "vennforest-experiments reproduce johansson2018 --datasets haber,vote --repeats 2 --seed 3 "
        "--set trees=10"
    )
