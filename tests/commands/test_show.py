"""The command ``show``: what a model file or a calibrator says of itself."""

import hashlib
import json

import numpy as np
import pandas as pd
import pytest

import vennforest
from support.commands import refused, run
from vennforest.calibrators import METHODS
from vennforest.calibrators.bounded import has_bounds
from vennforest.export import from_json, to_json


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(0)
    s = rng.random(90).round(3)
    y = np.where(rng.random(90) < s, "yes", "no")
    frame = pd.DataFrame({"s": s, "town": rng.choice(["Ulm", "東京"], 90), "y": y})
    frame.to_csv(tmp_path / "t.csv", index=False)
    return tmp_path / "t.csv"


def lines(text):
    return {line[:22].strip(): line[22:] for line in text.splitlines()}


def test_a_model_says_what_it_is(data, tmp_path, capsys):
    model = tmp_path / "m.skops"
    assert run("fit", data, "-t", "y", "-o", model, "--trees", 15, "--jobs", 1) == 0
    capsys.readouterr()
    assert run("show", model) == 0
    out, err = capsys.readouterr()
    assert err == ""
    entries = lines(out)
    assert entries["File"].startswith(str(model)) and entries["Target"] == "y"
    assert entries["N rows"] == "90" and entries["Columns"] == "s number, town text"
    assert "yes " in entries["Class counts"] and "accuracy 0." in entries["Measures"]
    assert entries["Estimator"].startswith("Blend of mixed-forest (")
    assert entries["Method"] == "venn-abers" and entries["Calibrate on"] == "oob and cv"
    assert run("show", model, "--json") == 0
    header = json.loads(capsys.readouterr().out)
    assert header["measures"]["rows"] == 90 and header["class_counts"]["yes"] > 0
    assert header["description"]["written"].endswith("+00:00")
    vennforest.save(vennforest.VennAbers().fit([0.1, 0.9] * 10, [0, 1] * 10), model)
    assert run("show", model) == 0
    entries = lines(capsys.readouterr().out)
    assert entries["Method"] == "VennAbers()" and "Target" not in entries


@pytest.mark.parametrize("method", ["venn-abers", "platt", "temperature"])
def test_a_calibrator_says_what_it_is(data, tmp_path, capsys, method):
    file = tmp_path / "c.json"
    command = ("calibrate", data, "-s", "s", "-t", "y", "-o", file, "--method", method)
    assert run(*command) == 0
    capsys.readouterr()
    assert run("show", file, "--json") == 0
    about = json.loads(capsys.readouterr().out)
    share = (pd.read_csv(data)["y"] == "yes").mean()
    assert about["bounds"] == has_bounds(METHODS[method]) and about["increasing"] is True
    assert about["rows"] == 90 and about["scores"] == ["s"] and about["target"] == "y"
    assert about["classes"] == pytest.approx({"no": 1 - share, "yes": share})
    assert run("show", file) == 0
    entries = lines(capsys.readouterr().out)
    assert entries["Calibrator"] == f"{METHODS[method].__name__}()" and "Prior" not in entries


def test_what_cannot_be_shown(data, tmp_path, capsys):
    assert "No such file" in refused(capsys, "show", tmp_path / "no.skops")
    assert "is not a model file" in refused(capsys, "show", data)
    assert "Is a directory" in refused(capsys, "show", tmp_path)


def test_the_record_of_a_calibrator_survives_later_steps(tmp_path, capsys):
    rng = np.random.default_rng(3)
    p = rng.beta(2, 8, 600)
    y = (rng.random(600) < p).astype(int)
    data, file = tmp_path / "t.csv", tmp_path / "c.json"
    pd.DataFrame({"p": p, "y": y}).to_csv(data, index=False)
    options = ("-s", "p", "-t", "y", "--update", "auto", "--mean", "1=.07", "-o", file)
    assert run("calibrate", data, *options) == 0
    calibrator = from_json(file.read_text())
    assert calibrator.predict_proba(p)[:, 1].mean() == pytest.approx(0.07)
    half = p[p < np.median(p)]  # the mean is that of the rows of calibrate, in every other table
    assert calibrator.predict_proba(half)[:, 1].mean() < 0.06
    file.write_text(to_json(calibrator.with_prior({1: 0.2})))
    vennforest.save(calibrator.with_prior({1: 0.2}), tmp_path / "c.skops")
    for path in (file, tmp_path / "c.skops"):
        capsys.readouterr()
        assert run("show", path, "--json") == 0
        record = json.loads(capsys.readouterr().out)
        assert record["sha256"] == hashlib.sha256(data.read_bytes()).hexdigest()
        assert record["rows"] == 600 and record["target"] == "y" and record["data"] == "t.csv"
        assert record["command"].startswith("vennforest") and record["date"]
        assert {test["choice"] for test in record["update"]["tests"]} >= {"keep", "slope"}
        assert [step["step"] for step in record["steps"]] == ["with_mean", "with_prior"]
        assert record["steps"][0]["1"] == pytest.approx(0.07)


def test_the_record_of_a_model_survives_later_steps(data, tmp_path, capsys):
    model = tmp_path / "m.skops"
    assert run("fit", data, "-t", "y", "-o", model, "--trees", 15, "--jobs", 1) == 0
    vennforest.save(vennforest.load(model).with_prior({"yes": 0.2}), model)
    capsys.readouterr()
    assert run("show", model, "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["sha256"] == hashlib.sha256(data.read_bytes()).hexdigest()
    assert record["target"] == "y" and record["steps"][0]["yes"] == pytest.approx(0.2)
