"""The command ``compare``: two evaluations, of the same rows or of others."""

import json

import numpy as np
import pandas as pd
import pytest

from support.commands import refused, run


@pytest.fixture
def checks(tmp_path, capsys):
    """Return the paths of checks of a good and a worse model of the same rows, and of others."""
    rng, paths = np.random.default_rng(3), {}
    for year, n in (("2025", 900), ("2026", 800)):
        p = rng.beta(1, 2, n)
        frame = pd.DataFrame({"good": p, "worse": np.clip(1.6 * p, 0, 0.999)})
        frame["default"] = np.where(rng.random(n) < p, "yes", "no")
        frame.to_csv(tmp_path / f"{year}.csv", index=False)
        for model in ("good", "worse"):
            command = ["check", tmp_path / f"{year}.csv", "-t", "default", "--probability", model]
            capsys.readouterr()
            assert run(*command, "--json", "--quiet", "-o", tmp_path / "check.html") == 0
            paths[model, year] = tmp_path / f"{model}-{year}.json"
            paths[model, year].write_text(capsys.readouterr().out, "utf-8")
    return paths


def test_two_models_of_the_same_rows(checks, capsys):
    old, new = checks["good", "2025"], checks["worse", "2025"]
    assert run("compare", old, new) == 0
    out, err = capsys.readouterr()
    assert all(title in out for title in ("Log loss", "Observed / expected", "95% interval"))
    assert "agree, so the rows are compared one by one. New is worse in Log loss" in err
    assert run("compare", old, new, "--fail-on", "worse", "--json") == 1
    summary = json.loads(capsys.readouterr().out)
    assert summary["paired"] and {"log_loss"} <= set(summary["worse"]) and not summary["better"]
    row = summary["measures"]["log_loss"]
    before, after = (json.loads(path.read_text("utf-8")) for path in (old, new))
    values = [page["methods"][page["method"]]["log_loss"] for page in (before, after)]
    assert [row["old"], row["new"]] == pytest.approx(values)
    assert row["low"] < row["change"] < row["high"] and row["verdict"] == "worse"
    assert run("compare", new, old, "--fail-on", "worse") == 0
    capsys.readouterr()


def test_one_model_in_two_years(checks, capsys):
    assert run("compare", checks["good", "2025"], checks["good", "2026"], "--json") == 0
    out, err = capsys.readouterr()
    summary = json.loads(out)
    assert not summary["paired"] and "or their order, differ" in err
    assert summary["old"]["rows"] == 900 and summary["new"]["rows"] == 800


def test_other_files_are_refused(checks, tmp_path, capsys):
    path = checks["good", "2025"]
    (tmp_path / "list.json").write_text("[1]", "utf-8")
    other = json.loads(path.read_text("utf-8"))
    other["comparable"]["positive"] = "no"
    (tmp_path / "other.json").write_text(json.dumps(other), "utf-8")
    for words, message in (
        (
            [tmp_path / "2025.csv", path],
            "2025.csv must be the output of check or report with --json",
        ),
        ([path, tmp_path / "list.json"], "new must be the output"),
        ([path, path, "--fail-on", "better"], "--fail-on"),
        ([path, tmp_path / "other.json"], "positive class"),
        ([path, path, "--level", "2"], "level"),
    ):
        assert message in refused(capsys, "compare", *words)
