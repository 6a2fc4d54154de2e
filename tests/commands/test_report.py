"""The command ``report``: page, JSON and errors, advised commands, predictions, sites, figures."""

import itertools
import json
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from report.reading import Page, named_in
from support.commands import FAST, refused, run
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


def test_a_report_fails_by_what_it_judges_alone(tmp_path, capsys):
    X, y = table_of(60, 4)
    X.assign(y=y).to_csv(tmp_path / "t.csv", index=False)
    command = ("report", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "p.html", "--fail-on")
    for name in ("grades", "segments", "columns"):
        assert named_in(refused(capsys, *command, name)) == {"--fail-on", name}
    assert run("report", "--help") == 0
    text = " ".join(capsys.readouterr().out.split())
    (listed,) = re.findall(r"--fail-on A,B,… Exit with code 1 by any of: (.*?)\.", text)
    assert listed in refused(capsys, *command, "nothing")


def test_a_column_of_sites_is_no_feature_and_has_a_line_for_each(tmp_path, capsys):
    X, y = table_of(150, 4)
    X.assign(y=y, ward=np.arange(150) % 2, who=np.arange(150) // 2).to_csv(tmp_path / "t.csv")
    command = ["report", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "p.html", "--json"]
    command += ["--estimator", "logistic", "--methods", "platt", "--jobs", 1]
    without_groups = refused(capsys, *command, "--validation", "by-group")
    assert named_in(without_groups) == {"--validation", "--groups"}
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


def test_a_table_becomes_a_page_and_json(table, tmp_path, capsys, monkeypatch, pictures, draw_only):
    page, costs = tmp_path / "page.html", '{"no": {"no": 0, "yes": 1}, "yes": {"no": 3, "yes": 0}}'
    options = ("-t", "y", "-o", page, "--json", "--costs", costs, "--positive", "no", "--seed", 3)
    assert run("report", table, *options, *FAST) == 0
    said = capsys.readouterr()
    note, verdict, last = said.err.splitlines()
    assert note == "Note: 1 of 60 rows have no 'y' and are left out."
    assert verdict.startswith("Collect about") and last == f"Wrote {page}"
    text = page.read_text("utf-8")
    assert text.startswith("<!DOCTYPE html>") and text.rstrip().endswith("</html>")
    assert all(part in text for part in ("data.csv", "1 of 60 rows have no", "image/svg+xml"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data.csv", "page.html"]
    summary = json.loads(said.out)
    assert summary["report"] == str(page)
    assert summary["rows"] == 59 and summary["positive"] == "no"
    assert summary["settings"]["random_state"] == 3 and summary["settings"]["n_folds"] == 2
    assert set(summary["methods"]) == {"none", "venn-abers", "baseline"}
    assert 0 <= summary["methods"]["venn-abers"]["mean_cost"] <= 3
    # Another format gives the same, and a terminal is shown the progress.
    monkeypatch.setenv("FORCE_COLOR", "1")  # as rich is told that it writes to one
    pd.read_csv(table).to_parquet(tmp_path / "data.parquet")
    draw_only()
    assert run("report", tmp_path / "data.parquet", *options, *FAST) == 0
    said = capsys.readouterr()
    assert "Folds" in said.err and json.loads(said.out)["methods"] == summary["methods"]


def test_an_example_needs_no_table(tmp_path, capsys):
    assert run("report", "--example", "iris", "-o", tmp_path / "iris.html", "--json", *FAST) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["target"] == "species" and summary["rows"] == 150
    text = Page((tmp_path / "iris.html").read_text("utf-8")).text
    assert any(summary["target"] in part for part in text)


USERS_ERRORS = {
    "no file": (["nothing.csv", "-t", "y"], "no file nothing.csv"),
    "no column": (["{table}", "-t", "z"], "no column 'z'"),
    "no target": (["{table}"], "--target"),
    "no data": ([], "--example"),
    "both": (["{table}", "--example", "iris"], "not both"),
    "no example": (["--example", "cancer"], "got 'cancer': did you mean 'breast-cancer'?"),
    "no folder": (["{table}", "-t", "y", "-o", "none/page.html"], "there is no folder"),
    "a folder": (["{table}", "-t", "y", "-o", "."], "is a folder"),
    "folds": (["{table}", "-t", "y", "--folds", "1"], "--folds"),
    "jobs": (["{table}", "-t", "y", "--jobs", "0"], "n_jobs"),
    "method": (["{table}", "-t", "y", "--methods", "plat"], "'plat'"),
    "positive": (["{table}", "-t", "y", "--positive", "maybe"], "'maybe'"),
    "cost file": (["{table}", "-t", "y", "--costs", "none.json"], "no file none.json"),
}


@pytest.mark.parametrize("name", USERS_ERRORS)
def test_users_errors_are_one_sentence(name, table, tmp_path, capsys, monkeypatch):
    arguments, message = USERS_ERRORS[name]
    monkeypatch.chdir(tmp_path)
    monkeypatch.delattr("vennforest.forest.MixedForestClassifier.fit")  # nothing is trained before
    code = run("report", *(str(table) if a == "{table}" else a for a in arguments))
    out, err = capsys.readouterr()
    assert code == 2 and out == "" and message in err and "Traceback" not in err
    assert err.splitlines()[-1].startswith("Error: ")
    assert [p.name for p in tmp_path.iterdir()] == ["data.csv"]
