"""The adapter for CalArena, against a file in that benchmark's format."""

import numpy as np
import pandas as pd
import pytest
from experiments.studies.calarena import (
    BENCHMARKS,
    CUSTOM_CALIBRATORS,
    PUBLISHED,
    board,
    losses,
    run,
)
from sklearn.metrics import log_loss

from vennforest import BetaCalibration, PooledCalibration

FORMS = {
    "binary": lambda p: p,
    "binary, a column": lambda p: p[:, None],
    "multiclass": lambda p: np.column_stack([0.7 * (1 - p), 0.3 * (1 - p), p]),
}


def experiment(form, seed=0):
    """Return a group as the benchmark's file holds it: single precision, labels from 0."""
    rng = np.random.default_rng(seed)
    part = {}
    for name, n in (("cal", 200), ("test", 50)):
        p = rng.random(n)
        y = (rng.random(n) < p**2).astype(np.int64)
        if form == "multiclass":
            y = np.where(y == 1, 2, rng.integers(0, 2, n))
        part[f"probas_{name}"] = FORMS[form](p).astype(np.float32)
        part[f"labels_{name}"] = y
    return part


@pytest.fixture(scope="module", params=list(FORMS))
def group(request, tmp_path_factory):
    """Return the experiment, read from a file where h5py is installed."""
    part = experiment(request.param)
    try:
        import h5py
    except ImportError:
        return part
    path = tmp_path_factory.mktemp("calarena") / "small.h5"
    with h5py.File(path, "w") as file:
        for name, values in part.items():
            file[f"adult/forest/{name}"] = values
    with h5py.File(path) as file:
        return {name: values[:] for name, values in file["adult/forest"].items()}


@pytest.mark.parametrize("name", CUSTOM_CALIBRATORS)
def test_every_calibrator_answers(name, group):
    calibrator = CUSTOM_CALIBRATORS[name]()
    calibrator.fit(group["probas_cal"], group["labels_cal"])
    p = calibrator.predict_proba(group["probas_test"])
    k = 3 if group["probas_cal"].shape[1:] == (3,) else 2
    assert p.shape == (50, k)
    assert p.dtype == np.float64
    np.testing.assert_allclose(p.sum(axis=1), 1)


def test_the_answers_are_those_of_the_calibrators():
    group = experiment("binary")
    scores, y = group["probas_cal"].astype(float), group["labels_cal"]
    new = group["probas_test"].astype(float)
    for name, ours in [
        ("vennforest", PooledCalibration(on="probabilities")),
        ("vennforest-beta", BetaCalibration()),
    ]:
        there = CUSTOM_CALIBRATORS[name]()
        there.fit(group["probas_cal"], y)
        expected = ours.fit(scores, y).predict_proba(new)
        np.testing.assert_array_equal(there.predict_proba(group["probas_test"]), expected)


def test_a_class_without_examples_keeps_its_column():
    group = experiment("multiclass")
    seen = group["labels_cal"] != 1
    for name in CUSTOM_CALIBRATORS:
        calibrator = CUSTOM_CALIBRATORS[name]()
        calibrator.fit(group["probas_cal"][seen], group["labels_cal"][seen])
        assert calibrator.predict_proba(group["probas_test"]).shape == (50, 3), name


@pytest.mark.parametrize("form", ["binary", "multiclass"])
def test_the_board_of_a_small_folder_has_our_row_among_the_published(form, tmp_path):
    scores = {
        name: {model: experiment(form, 10 * seed + j) for j, model in enumerate(("A", "B"))}
        for seed, name in enumerate(("adult", "bank"))
    }
    good = [("adult", "A", 0.01, 0.01), ("adult", "B", 0.01, 9.0), ("bank", "A", 0.01, 9.0)]
    for name, rows in (
        ("Spline", [(*row[:2], row[2]) for row in good]),
        ("TS", [(*row[:2], row[3]) for row in good]),
        ("CB-tiny", [(*row[:2], 0.0) for row in good]),
    ):
        table = pd.DataFrame(rows, columns=["dataset", "model", f"{name}_logloss"])
        table.assign(**{f"{name}_brier": 0.5}).to_csv(tmp_path / f"{name}.csv", index=False)
    run(scores, tmp_path, "vennforest", "A")
    first = (tmp_path / "vennforest.csv").read_text()
    run(scores, tmp_path, "vennforest", "A")
    assert (tmp_path / "vennforest.csv").read_text() == first  # nothing is computed twice

    expected = []
    for name in ("adult", "bank"):
        part = scores[name]["A"]
        ours = CUSTOM_CALIBRATORS["vennforest"]().fit(part["probas_cal"], part["labels_cal"])
        expected.append(losses(ours.predict_proba(part["probas_test"]), part["labels_test"])[0])
    found = board(tmp_path, "A")
    assert sorted(found.index) == ["Spline", "TS", "vennforest"]
    assert found.loc["vennforest", "log loss"] == pytest.approx(np.mean(expected))
    assert found["rank by log loss"].to_dict() == {"Spline": 1.25, "vennforest": 2.5, "TS": 2.25}
    assert found.loc["vennforest", "experiments"] == 2


def test_losses_are_those_of_the_benchmark():
    rng = np.random.default_rng(0)
    for k in (2, 3, 5):
        p = rng.dirichlet(np.ones(k), 40)
        y = rng.integers(0, k, 40)
        found = losses(p, y)
        assert found[0] == pytest.approx(log_loss(y, p, labels=range(k)))
        slow = sum((p[i, j] - (y[i] == j)) ** 2 for i in range(40) for j in range(k)) / 40
        assert found[1] == pytest.approx(slow)
    certain = losses(np.array([[1.0, 0.0]]), np.array([1]))[0]
    assert certain == pytest.approx(-np.log(np.finfo(np.float32).tiny))


def test_the_published_board_has_the_papers_figures():
    table = pd.read_csv(PUBLISHED)
    table = table.set_index(["benchmark", "model", "calibrator"]).sort_index()
    binary, many = ((name, "RandomForest") for name in BENCHMARKS)
    assert len(table.loc[binary]) == 20
    assert len(table.loc[many]) == 19
    assert round(table.loc[(*binary, "Spline"), "log loss"], 4) == 0.2886
    assert round(table.loc[(*many, "SMS"), "log loss"], 4) == 0.4503
    assert round(table.loc[(*many, "Venn-Abers"), "rank by log loss"], 1) == 10.3
