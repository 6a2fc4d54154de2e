"""Another population on the command line: calibrate --update, --prior, predict and apply."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from report.reading import has_in_turn, named_in
from support.commands import refused, run
from vennforest import CalibratedClassifier, save, update
from vennforest.export import from_json
from vennforest.validation.update import TITLES


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(4)
    p = expit(rng.normal(-0.5, 1.2, 300))
    y = np.where(rng.random(300) < expit(logit(p) + 1), "yes", "no")
    frame = pd.DataFrame({"p": p, "score": 9 * p, "y": y, "patient": np.arange(300) // 3})
    frame.to_parquet(tmp_path / "p.parquet")
    frame.assign(p=1 - p).to_parquet(tmp_path / "other_class.parquet")
    frame[:12].to_parquet(tmp_path / "few.parquet")
    frame.assign(p=p.round(1)).to_parquet(tmp_path / "certain.parquet")
    frame.assign(y=np.arange(300) % 3).to_parquet(tmp_path / "three.parquet")
    return tmp_path


def calibrate(folder, *more, data="p.parquet", score="p"):
    target = "-t", "y", "-o", folder / "c.json"
    return "calibrate", folder / data, "-s", score, *target, "--update", *more


def test_calibrate_updates_probabilities(folder, capsys):
    frame = pd.read_parquet(folder / "p.parquet")
    assert run(*calibrate(folder, "auto", "--groups", "patient", "--json")) == 0
    summary = json.loads(capsys.readouterr().out)["update"]
    result = update(frame["p"], frame["y"], groups=frame["patient"])
    assert summary["choice"] == result.choice == "intercept"
    assert summary["gain_low"] == pytest.approx(result.gain["gain_low"], abs=0.01)
    calibrator = from_json((folder / "c.json").read_text("utf-8"))
    np.testing.assert_array_equal(
        calibrator.predict_proba(frame["p"]), result.predict_proba(frame["p"])
    )
    assert run(*calibrate(folder, "auto")) == 0
    text, result = capsys.readouterr().err, update(frame["p"], frame["y"])
    assert f"{TITLES['intercept']}. {result.reason}" in text
    ends = [result.gain[name] for name in ("gain", "gain_low", "gain_high")]
    assert has_in_turn(text, [ends[0], 95, *ends[1:]], 0.02)
    assert run("apply", folder / "c.json", folder / "p.parquet", "-o", folder / "o.parquet") == 0
    assert pd.read_parquet(folder / "o.parquet")["p(yes)"].mean() > frame["p"].mean() + 0.1


def test_what_no_update_is_for_is_refused(folder, capsys):
    for arguments, data, score, message in (
        (["auto"], "few.parquet", "p", "y must have at least 20 rows for an update, got 12"),
        (["auto"], "certain.parquet", "p", "both excluded, got 0 or 1 in"),
        (["auto"], "p.parquet", "score", "'score' must contain probabilities in [0, 1]"),
        (
            ["auto", "-s", "1=score", "-s", "2=patient"],
            "three.parquet",
            "0=p",
            "is for two classes",
        ),
        (["never"], "p.parquet", "p", "--update must be one of"),
        (["auto"], "other_class.parquet", "p", "name the column of the probability of 'yes'"),
        (["auto", "--weight", "patient"], "p.parquet", "p", "takes neither --weight nor"),
    ):
        assert message in refused(capsys, *calibrate(folder, *arguments, data=data, score=score))
    words = [*calibrate(folder)[:-1], "--groups", "patient"]
    assert named_in(refused(capsys, *words)) == {"--groups", "--update"}


@pytest.mark.parametrize("k", [2, 3])
def test_predict_calibrate_and_apply_without_renaming(tmp_path, capsys, k):
    rng = np.random.default_rng(k)
    X = pd.DataFrame(rng.normal(size=(240, 3)), columns=list("xyz"))
    y = np.array(list("abc"))[(X.to_numpy()[:, :k] + rng.gumbel(size=(240, k))).argmax(axis=1)]
    model = CalibratedClassifier(LogisticRegression(), random_state=0).fit(X[:120], y[:120])
    save(model, tmp_path / "m.skops")
    new, scored = X[120:].assign(outcome=y[120:]), tmp_path / "scored.csv"
    new.to_csv(tmp_path / "new.csv", index=False)
    predict = "predict", tmp_path / "m.skops", tmp_path / "new.csv"
    assert run(*predict, "--keep", "-o", scored) == 0
    columns = [word for c in "abc"[:k] for word in ("-s", f"p({c})")]
    calibrator = tmp_path / "c.json"
    assert run("calibrate", scored, *columns, "-t", "outcome", "-o", calibrator) == 0
    assert run("apply", calibrator, scored, "-o", tmp_path / "out.csv") == 0
    *_, note = re.findall("^Note: .*", capsys.readouterr().err, re.M)
    assert {"label", "probability"} <= named_in(note) <= set(pd.read_csv(scored).columns)
    old, out = pd.read_csv(scored), pd.read_csv(tmp_path / "out.csv")
    assert set(new.columns) < set(out.columns) and "probability" not in out
    p = from_json(calibrator.read_text("utf-8")).predict_proba(
        old[[f"p({c})" for c in "abc"[:k]]].to_numpy()
    )
    np.testing.assert_allclose(out[[f"p({c})" for c in "abc"[:k]]], p, atol=1e-12)

    assert run(*predict, "--prior", "b=0.1", "-o", tmp_path / "prior.csv") == 0
    moved = pd.read_csv(tmp_path / "prior.csv")
    expected = model.with_prior({"b": 0.1}).predict_proba(X[120:])
    np.testing.assert_allclose(moved[[f"p({c})" for c in "abc"[:k]]], expected, atol=1e-12)
    assert named_in(refused(capsys, *predict, "--prior", "d=0.1")) == {"--prior", "d=0.1"}
    check = "check", tmp_path / "new.csv", "-t", "outcome", "--probability", "x"
    assert named_in(refused(capsys, *check, "--prior", "b=0.1")) == {"--prior"}
