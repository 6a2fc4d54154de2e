"""A mean that is given, and one model beside the folds that calibrate it."""

import numpy as np
import pandas as pd
import pytest

import vennforest
from support.commands import refused, run

READ = {"float_precision": "round_trip"}


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(9)
    for name, n in (("train", 300), ("new", 120)):
        X = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
        X["who"] = np.repeat(np.arange(n // 3), 3)
        X["y"] = np.where(X["a"] + rng.normal(size=n) > 0.5, "yes", "no")
        X["s"] = X["a"]
        X.to_csv(tmp_path / f"{name}.csv", index=False)
    return tmp_path


def fit(folder, *more):
    command = ("fit", folder / "train.csv", "-t", "y", "-o", folder / "m.skops", "--drop", "s")
    return run(*command, "--drop", "who", "--trees", 20, "--jobs", 1, *more)


def test_predictions_have_the_mean_that_is_given(folder, capsys):
    assert fit(folder) == 0
    command = ("predict", folder / "m.skops", folder / "new.csv", "-o", folder / "p.csv")
    assert run(*command) == 0
    before = pd.read_csv(folder / "p.csv", **READ)["p(yes)"].to_numpy()
    assert run(*command, "--mean", "yes=.04") == 0
    after = pd.read_csv(folder / "p.csv", **READ)["p(yes)"].to_numpy()
    assert after.mean() == pytest.approx(0.04, abs=1e-12)
    shift = np.log(after / (1 - after)) - np.log(before / (1 - before))
    np.testing.assert_allclose(shift, shift[0], rtol=0, atol=1e-9)
    model = vennforest.load(folder / "m.skops")
    X = pd.read_csv(folder / "new.csv")
    same = model.with_mean({"yes": 0.04}, X).predict_proba(X)[:, 1]
    np.testing.assert_allclose(after, same, rtol=0, atol=1e-12)
    for means in ("yes=4", "yes=0", "maybe=.1", "yes"):
        assert refused(capsys, *command, "--mean", means)


def test_calibrated_scores_have_the_mean_that_is_given(folder):
    scores = ("-s", "s", "-t", "y", "-o", folder / "c.json")
    assert run("calibrate", folder / "train.csv", *scores) == 0
    command = ("apply", folder / "c.json", folder / "new.csv", "-o", folder / "a.csv")
    assert run(*command, "--mean", "yes=.11") == 0
    after = pd.read_csv(folder / "a.csv", **READ)
    assert after["p(yes)"].mean() == pytest.approx(0.11, abs=1e-12)
    assert (after["lower(yes)"] <= after["p(yes)"] + 1e-12).all()


def test_folds_calibrate_and_one_model_predicts(folder):
    by_group = ("--groups", "who", "--estimator", "logistic", "--calibrate-on", "cv")
    assert fit(folder, *by_group) == 0
    assert len(vennforest.load(folder / "m.skops").estimators_) > 1
    assert fit(folder, *by_group, "--one-model") == 0
    model = vennforest.load(folder / "m.skops")
    assert len(model.estimators_) == 1 and model.calibrate_on_ == "cv"
    assert len(model.calibration_y_) == 300
