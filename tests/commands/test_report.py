"""The command ``report``: advised commands, predictions of the folds, sites and figures."""

import itertools
import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from support.commands import refused, run
from support.report_data import calibrated, table_of
from vennforest.commands.options import Report
from vennforest.commands.report import next_commands


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


def test_a_width_is_refused_before_anything_is_trained(tmp_path, capsys):
    X, y = table_of(60, 4)
    X.assign(y=y).to_csv(tmp_path / "t.csv", index=False)
    command = ["report", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "p.html"]
    figures = ["--figures", tmp_path / "f"]
    for options, message in (
        ([*figures, "--figure-width", "9m"], "got '9m'"),
        (["--figure-width", "85mm"], "must be used with --figures"),
    ):
        assert message in refused(capsys, *command, *options)
    assert not (tmp_path / "p.html").exists()
