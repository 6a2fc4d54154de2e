"""The commands ``report`` and ``check``."""

import hashlib
import itertools
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from support.commands import refused, run
from support.report_data import calibrated, table_of
from vennforest import PlattScaling
from vennforest.commands import check
from vennforest.commands.options import Check, Report
from vennforest.commands.pages import axes_in, millimetres_in, shares_in
from vennforest.commands.report import next_commands
from vennforest.decisions import threshold_for
from vennforest.export import to_json
from vennforest.tables.target import split_target


def test_a_number_of_a_model_is_no_class(tmp_path, capsys):
    y, p, rng = calibrated(300, 3, strength=2.0)
    frame = pd.DataFrame({"model_0": p, "model_1": rng.random(300), "y": (y == "yes") * 1})
    frame.to_csv(tmp_path / "t.csv", index=False)
    base = ["check", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "p.html", "--json"]
    assert run(*base, "--probability", "model_0") == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["auc"]["value"] > 0.8 and "probability of '1'" in err
    assert run(*base, "--probability", "model_0", "--probability", "model_1") == 0
    methods = json.loads(capsys.readouterr().out)["methods"]
    assert list(methods) == ["model_0", "model_1", "baseline"]


@pytest.fixture
def predictions(tmp_path):
    y, p, rng = calibrated(150, 18, strength=2.0)
    frame = pd.DataFrame({
        "p(no)": 1 - p, "p(yes)": p, "lower(yes)": p * 0.9, "upper(yes)": p * 0.9 + 0.1,
        "lower(no)": 0.9 - p * 0.9, "upper(no)": 1 - p * 0.9,
        "score": 100 * p, "points": 500 + 300 * p, "word": "w",
        "site": rng.choice(["x", "y"], 150), "y": y,
    })  # fmt: skip
    frame.loc[3, "p(yes)"] = np.nan
    frame.to_csv(tmp_path / "t.csv", index=False)
    return ["check", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "page.html", "--json"]


def test_columns_of_probabilities_are_judged_with_their_bounds(predictions, capsys):
    assert run(*predictions, "--probability", "p(yes)", "--by", "site") == 0
    out, err = capsys.readouterr()
    summary = json.loads(out)
    assert summary["rows"] == 149 and {row["part"] for row in summary["subgroups"]} == {"x", "y"}
    assert "1 rows without a probability" in err and "probability of 'yes'" in err
    assert "Collect about" in err  # also where nobody watches
    assert summary["methods"]["p(yes)"]["width"] == pytest.approx(0.1)
    assert run(*predictions, "--probability", "p(yes)", "--probability", "p(no)") == 0
    assert list(json.loads(capsys.readouterr().out)["methods"]) == ["Predictions", "baseline"]


@pytest.mark.parametrize(("options", "message"), [
    (["--probability", "word"], "must contain numbers"),
    (["--probability", "sc"], "there is no column 'sc'"),
    (["--probability", "score"], "divide percentages by 100"),
    (["--probability", "points"], "vennforest calibrate"),
    (["--probability", "p(yes)", "{table}"], "not both"),
    ([], "a table with --probability COLUMN, or a model and a table"),
    (["--probability", "p(yes)", "--groups", "no one"], "there is no column 'no one'"),
    (["--probability", "p(yes)", "--folds", "3"], "--folds"),
])  # fmt: skip
def test_what_cannot_be_checked(predictions, capsys, options, message):
    options = [str(option).format(table=predictions[1]) for option in options]
    assert run(*predictions, *options) == 2
    assert message in capsys.readouterr().err


def test_a_model_is_checked_on_a_table(tmp_path, capsys):
    for i, seed in enumerate((19, 20)):
        X, y = table_of(120, seed)
        X["id"] = np.arange(120) + 1000 * i
        X["word"] = np.where(X["b"] > 0, "left", "right")
        X.assign(y=y).to_csv(tmp_path / f"{i}.csv", index=False)
    train, test, model = tmp_path / "0.csv", tmp_path / "1.csv", tmp_path / "m.skops"
    assert run("fit", train, "-t", "y", "-o", model, "--trees", 20, "--jobs", 1) == 0
    options = ("-t", "y", "-o", tmp_path / "c.html", "--json")
    assert run("predict", model, test, "--keep", "-o", tmp_path / "p.csv") == 0
    capsys.readouterr()
    assert run("check", model, test, *options) == 0
    of_model = json.loads(capsys.readouterr().out)["methods"]["venn-abers"]
    assert run("check", tmp_path / "p.csv", "--probability", "p(yes)", *options) == 0
    of_column = json.loads(capsys.readouterr().out)["methods"]["p(yes)"]
    for measure in ("brier", "log_loss", "auc", "width"):
        assert of_model[measure] == pytest.approx(of_column[measure], abs=1e-9)
    assert run("check", tmp_path / "none.skops", test, *options) == 2
    assert "No such file" in capsys.readouterr().err
    assert run("check", model, train, *options) == 0
    assert "it was trained on these" in capsys.readouterr().err


def test_the_advised_command_keeps_groups_and_estimator(tmp_path, capsys):
    """Without its groups the report, and the model, would be of other folds."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 240)
    x = rng.normal(size=240) + 3 * y
    frame = pd.DataFrame({"y": y, "person": np.arange(240) // 2 + 1000, "x": x})
    frame.assign(leak=3 * y + rng.random(240)).to_csv(tmp_path / "t.csv", index=False)
    command = ("report", tmp_path / "t.csv", "-t", "y", "--groups", "person", "--folds", 2)
    command += ("--methods", "platt", "-o", tmp_path / "p.html", "--estimator", "logistic")
    command += ("--jobs", 1)
    assert run(*command) == 0
    *_, command_line, _ = capsys.readouterr().err.splitlines()
    assert command_line.endswith(
        "--estimator logistic --methods platt --groups person --folds 2 --jobs 1 --drop leak"
    )
    assert run(*command, "--drop", "leak", "--tolerance", 20) == 0
    err = capsys.readouterr().err
    assert "  vennforest fit" not in err or "--groups person --drop leak" in err


def test_a_check_that_fails_a_build(tmp_path, capsys):
    rng = np.random.default_rng(3)
    p = rng.random(1000)
    frame = pd.DataFrame({"right": p, "off": p**3, "y": rng.random(1000) < p})
    frame.to_csv(tmp_path / "p.csv", index=False)
    command = ("check", tmp_path / "p.csv", "-t", "y", "-o", tmp_path / "c.html", "--probability")
    on = ("--fail-on", "miscalibrated")
    assert run(*command, "right", *on) == 0
    assert run(*command, "off", *on, "--tolerance", "40") == 0
    assert run(*command, "off", *on) == 1
    assert "Failed: about " in capsys.readouterr().err
    assert "--fail-on must be any of misc" in refused(capsys, *command, "off", "--fail-on", "drift")
    assert "--fail-on grades must be used with --grades" in refused(
        capsys, *command, "off", "--fail-on", "grades"
    )
    assert run(*command, "off", "--fail-on", "oe,miscalibrated") == 1
    assert run(*command, "right", "--fail-on", "oe,miscalibrated") == 0


def test_the_advised_update_is_that_of_the_page_with_the_groups(tmp_path, capsys):
    rng = np.random.default_rng(4)
    z = rng.normal(size=4000) - 2
    frame = pd.DataFrame({"p": 1 / (1 + np.exp(-z)), "who": rng.integers(0, 2000, 4000)})
    frame["y"] = (rng.random(4000) < 1 / (1 + np.exp(-z - 0.5))).astype(int)
    frame.to_csv(tmp_path / "p.csv", index=False)
    command = ("check", tmp_path / "p.csv", "-t", "y", "--probability", "p", "--json")
    assert run(*command, "--groups", "who", "-o", tmp_path / "c.html") == 0
    summary = json.loads(capsys.readouterr().out)
    advised = f"vennforest calibrate {tmp_path / 'p.csv'} -t y -s p --update intercept --groups who"
    assert summary["advised"] == advised
    assert "Tests choose: move the intercept." in summary["verdict"]["sentence"]
    digest = hashlib.sha256((tmp_path / "p.csv").read_bytes()).hexdigest()
    assert summary["inputs"][0]["sha256"] == digest and summary["rows"] == 4000
    assert run(*advised.split()[1:], "-o", tmp_path / "c.json") == 0


def test_predictions_of_the_folds_are_written(tmp_path, capsys):
    y, p, _ = calibrated(160, 5, strength=2.0)
    frame = pd.DataFrame({"id": [f"{i:03}" for i in range(160)], "x": p, "y": y})
    frame.loc[[3, 50], "y"] = None
    frame.to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / "out.csv"
    command = ("report", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "r.html", "--trees", "10",
               "--folds", "3", "--jobs", "1", "--json", "--methods", "venn-abers",
               "--estimator", "mixed-forest")  # fmt: skip
    assert run(*command, "--write-predictions", out) == 0
    said = capsys.readouterr()
    assert said.err.endswith("out.csv: 158 rows\n")
    rows = pd.read_csv(out, dtype={"id": str})
    assert rows["id"].tolist() == frame["id"].drop([3, 50]).tolist()
    kinds = ["p", "lower", "upper", "low95", "high95"]
    numbers = [f"{kind}({c})" for c in ("no", "yes") for kind in kinds]
    assert [*rows] == [*frame, "label", "probability", *kinds[1:], *numbers]
    assert (rows["label"] == np.where(rows["p(yes)"] > 0.5, "yes", "no")).all()
    assert (rows["probability"] == rows[["p(no)", "p(yes)"]].max(axis=1)).all()
    assert ((rows["lower(yes)"] <= rows["p(yes)"]) & (rows["p(yes)"] <= rows["upper(yes)"])).all()
    check = ("check", out, "-t", "y", "--probability", "p(no)", "--probability", "p(yes)")
    assert run(*check, "-o", tmp_path / "c.html", "--json") == 0
    again = json.loads(capsys.readouterr().out)["methods"]["Predictions"]
    first = json.loads(said.out)["methods"]["venn-abers"]
    for name in ("log_loss", "brier", "auc", "calibration_error"):
        assert again[name] == pytest.approx(first[name], abs=1e-12)


@pytest.mark.parametrize(("name", "message"), [
    ("out.csv", "got 'label': rename it"),
    ("out.xlsx", "must end in .csv or .parquet, got 'out.xlsx'"),
])  # fmt: skip
def test_predictions_that_cannot_be_written(tmp_path, capsys, name, message):
    y, p, _ = calibrated(40, 5)
    pd.DataFrame({"x": p, "label": y}).to_csv(tmp_path / "t.csv", index=False)
    command = ("report", tmp_path / "t.csv", "-t", "label", "-o", tmp_path / "r.html")
    assert message in refused(capsys, *command, "--write-predictions", tmp_path / name)
    assert not (tmp_path / "r.html").exists()


def test_thresholds_with_a_promise_are_on_the_page(tmp_path, capsys):
    rng = np.random.default_rng(4)
    p = rng.random(900).round(2)
    frame = pd.DataFrame({"p": p, "y": rng.random(900) < p, "site": rng.integers(0, 300, 900)})
    frame.to_csv(tmp_path / "p.csv", index=False)
    command = ("check", tmp_path / "p.csv", "-t", "y", "-o", tmp_path / "c.html", "--json")
    command += ("--probability", "p", "--positive", "True")
    targets = {"sensitivity": 0.9, "specificity": 0.8, "precision": 0.7}
    words = [word for name, share in targets.items() for word in (f"--{name}", share)]
    for options, groups in (((), None), (("--groups", "site"), frame["site"])):
        assert run(*command, *words, *options) == 0
        table = json.loads(capsys.readouterr().out)["sections"]["promises"]["frame"]
        for row, (key, share) in zip(table, targets.items(), strict=True):
            promise = {"recall" if key == "sensitivity" else key: share}
            expected = threshold_for(p, frame["y"], **promise, groups=groups)
            assert row["threshold"] == expected.threshold
            found = row["flagged"], row[key]
            assert found == pytest.approx((expected.flagged, expected.observed))
            assert row[f"{key}_low"] < row[key] < row[f"{key}_high"]
            if key != "precision":
                ends = {"delta": 0.025}, {"delta": 0.975}
                ends = [threshold_for(p, frame["y"], **promise, groups=groups, **e) for e in ends]
                assert [row["threshold_low"], row["threshold_high"]] == sorted(
                    end.threshold for end in ends
                )
    assert "sensitivity of 90%" in (tmp_path / "c.html").read_text("utf-8")
    assert run(*command, "--precision", ".99") == 0
    section = json.loads(capsys.readouterr().out)["sections"]["promises"]
    assert section["frame"][0]["threshold"] is None and "no threshold" in str(section["numbers"])
    assert "Thresholds that keep the promises: none." in (tmp_path / "c.html").read_text("utf-8")
    assert "--sensitivity must lie between" in refused(capsys, *command, "--sensitivity", "90")
    p = rng.dirichlet([1, 1, 1], 90)
    frame = pd.DataFrame(p, columns=["p(a)", "p(b)", "p(c)"]).assign(y=[*"abc"] * 30)
    frame.to_csv(tmp_path / "p.csv", index=False)
    names = [word for name in frame.columns[:3] for word in ("--probability", name)]
    command = ("check", tmp_path / "p.csv", "-t", "y", *names, "--precision", ".9")
    assert "promises must be of rows of two classes" in refused(capsys, *command)


@pytest.mark.parametrize("action", ["fit", "check"])
def test_the_advised_command_reads_the_table_as_the_report_did(tmp_path, action):
    options = Report(
        data=tmp_path / "my table.csv", target="y", missing=["n.d.,-", "-999"], types="t.json",
        decimal=",", drop=["a b"], keep=["id"], groups="ward", estimator="forest", trees=20,
        seed=7, time="day", **({"by": ["b c"], "folds": 3} if action == "check" else {}),
    )  # fmt: skip
    verdict = SimpleNamespace(action=action, column="a", method="platt", on_folds=False)
    origin = SimpleNamespace(target="y", suspects={"a": "leak"})
    findings = SimpleNamespace(origin=origin, target="y")
    evaluation = SimpleNamespace(verdict=verdict, model="m", findings=findings, sections={})
    ((_, words),) = next_commands(evaluation, options)
    assert action == "check" or words[-4:-2] == ["--drop", "day"]  # no feature of the report's
    for name, value in vars(options).items():
        kept = name not in ("data", "target") and (action == "check" or name != "time")
        if kept and value != getattr(Report, name, value):
            for text in value if isinstance(value, list) else [value]:
                assert (f"--{name}", str(text)) in itertools.pairwise(words), name
    assert words[:4] == ["report" if action == "check" else "fit", str(options.data), "-t", "y"]


@pytest.mark.parametrize("method", ["none", "platt"])
def test_the_command_of_a_better_blend_is_first(method):
    options = Report(data="t.csv", target="y", drop=["a"])
    verdict = SimpleNamespace(action="use", method=method, on_folds=False)
    sections = {"models": SimpleNamespace(numbers={"blend_gain": 0.1})}
    findings = SimpleNamespace(target="y", origin=SimpleNamespace(noun="forest"))
    evaluation = SimpleNamespace(verdict=verdict, model="m", findings=findings, sections=sections)
    (why, blend), *others = next_commands(evaluation, options)
    assert "blend" in why and blend == [
        "fit",
        "t.csv",
        "-t",
        "y",
        "--drop",
        "a",
        "--estimator",
        "blend",
    ]
    assert [command[-1] for _, command in others] == ([] if method == "none" else ["platt"])


@pytest.mark.parametrize("on_folds", [True, False])
def test_an_underconfident_forest_is_advised_to_calibrate_on_folds(on_folds):
    verdict = SimpleNamespace(action="recalibrate", method="platt", on_folds=on_folds)
    findings = SimpleNamespace(target="y")
    evaluation = SimpleNamespace(verdict=verdict, model="m", findings=findings, sections={})
    ((_, words),) = next_commands(evaluation, Report(data="t.csv", target="y"))
    assert words[-2:] == (["--calibrate-on", "cv"] if on_folds else ["--method", "platt"])


def test_what_check_advises_reads_the_table_and_the_model_as_check_did(monkeypatch):
    frame = pd.DataFrame({"p": [0.2, 0.8], "y": ["no", "yes"]})
    table = split_target(frame, "y", screened=False)
    evaluation = SimpleNamespace(verdict=SimpleNamespace(method="p"))
    monkeypatch.setattr(check, "check", lambda *arguments, **options: evaluation)
    form = {"decimal": ",", "delimiter": "|", "encoding": "cp1250", "sheet": "s", "no_header": True}
    words = ["--decimal", ",", "--delimiter", "|", "--encoding", "cp1250", "--sheet", "s"]
    words += ["--no-header"]
    options = Check(predictions=Path("t.csv"), target="y", probability=["p"], **form)
    commands = check._check_columns(options, table, frame).commands
    assert commands == [["calibrate", "t.csv", "-t", "y", "-s", "p", *words]]
    model = SimpleNamespace(classes_=np.array(["no", "yes"]), n_features_in_=1)
    more = {"data": Path("t.csv"), "prior": ["yes=.1"], "trusted": ["a.B"]}
    options = Check(predictions=Path("m.skops"), target="y", **more, **form)
    outcome = check._judge_model(options, model, frame[["y"]], table, frame)
    predict = ["predict", "m.skops", "t.csv", "--keep", "-o", "scored.csv", "--trust", "a.B"]
    assert outcome.commands[0] == [*predict, "--prior", "yes=.1", *words]
    assert outcome.commands[1] == ["calibrate", "scored.csv", "-t", "y", "-s", "p(yes)"]


def test_a_calibrator_is_updated_as_the_tests_choose_or_fitted_anew(tmp_path, monkeypatch):
    scores, y = np.arange(60.0), np.arange(60) % 3 == 0
    frame = pd.DataFrame({"s": scores, "y": np.where(y, "yes", "no")})
    (tmp_path / "c.json").write_text(to_json(PlattScaling().fit(scores, frame["y"])))
    options = Check(predictions=tmp_path / "c.json", data=Path("t.csv"), target="y", scores=["s"])
    options = replace(options, decimal=",", groups="who")
    table, labels = split_target(frame, "y", screened=False), frame[["y"]]
    outcome = check._judge_model(options, None, labels, table, pd.DataFrame({"who": scores}))
    form = ["--decimal", ","]
    for choice, commands in (
        ("keep", [["calibrate", "t.csv", "-t", "y", "-s", "s", *form]]),
        ("slope", [
            ["apply", str(tmp_path / "c.json"), "t.csv", "-o", "scored.csv", "-s", "s", *form],
            ["calibrate", "scored.csv", "-t", "y", "-s", "p(yes)", "--update", "slope",
             "--groups", "who"],
        ]),
    ):  # fmt: skip
        evaluation = SimpleNamespace(findings=SimpleNamespace(choice=choice))
        advised = check._next_commands(options, evaluation, outcome)
        assert [words for _, words in advised] == commands


def test_a_column_of_sites_is_no_feature_and_has_a_line_for_each(tmp_path, capsys):
    X, y = table_of(150, 4)
    X.assign(y=y, ward=np.arange(150) % 2, who=np.arange(150) // 2).to_csv(tmp_path / "t.csv")
    command = ["report", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "p.html", "--json"]
    command += ["--estimator", "logistic", "--methods", "platt", "--jobs", 1]
    assert "must be used with --groups" in refused(capsys, *command, "--validation", "by-group")
    assert run(*command, "--validation", "ward") == 0
    summary = json.loads(capsys.readouterr().out)
    sites = [row["Site"] for row in summary["sections"]["sites"]["frame"]]
    assert sites == ["0", "1", "pooled", "another site"]
    assert "ward" not in summary["settings"]["columns"] and summary["settings"]["n_folds"] == 2


@pytest.mark.parametrize(("text", "width"), [("85mm", 85), ("8.5cm", 85), ("4 in", 101.6)])
def test_the_width_of_figures_has_a_unit(text, width):
    assert millimetres_in(text) == pytest.approx(width)


@pytest.mark.parametrize("text", ["85", "mm", "2mm", "-85mm", "9m"])
def test_a_width_without_a_unit_or_sense_is_refused(text):
    with pytest.raises(ValueError, match="--figure-width must be from 40mm to 500mm"):
        millimetres_in(text)


def test_a_width_is_refused_before_anything_is_trained(tmp_path, capsys):
    X, y = table_of(60, 4)
    X.assign(y=y).to_csv(tmp_path / "t.csv", index=False)
    command = ["report", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "p.html"]
    assert "got '9m'" in refused(
        capsys, *command, "--figures", tmp_path / "f", "--figure-width", "9m"
    )
    assert "must be used with --figures" in refused(capsys, *command, "--figure-width", "85mm")
    assert not (tmp_path / "p.html").exists()


@pytest.mark.parametrize("text", ["0", ".2,.1", "0,2", "0,.1,.2", "a,b"])
def test_axes_have_two_ends_in_order(text):
    assert axes_in("0, .2") == (0, 0.2)
    with pytest.raises(ValueError, match="--figure-axes must be"):
        axes_in(text)


def test_thresholds_are_numbers():
    assert shares_in([".02", " 0.1"], "thresholds") == [0.02, 0.1]
    with pytest.raises(ValueError, match="--thresholds must be like"):
        shares_in(["low", "high"], "thresholds")
