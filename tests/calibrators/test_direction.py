"""Scores where high means safe: found, said, asked for, and reversed in every answer."""

import json

import numpy as np
import pandas as pd
import pytest

from vennforest import ScoreCounts, ScoreGrid
from vennforest._validation import InputError
from vennforest.calibrators import Calibrator
from vennforest.calibrators.core.interface import make_calibrator
from vennforest.cli import main

METHODS = ["venn-abers", "platt", "isotonic", "beta", "pooled", "spline"]


def credit(n=600, seed=8):
    """Return scores from 300 to 850, high ones safe, and defaults."""
    rng = np.random.default_rng(seed)
    s = np.round(rng.uniform(300, 850, n))
    return s, (rng.random(n) < 1 / (1 + np.exp((s - 500) / 60))).astype(int)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("probabilities", [False, True])
def test_reversed_scores_are_those_of_the_other_end(method, probabilities):
    s, y = credit()
    s = (s - 300) / 1024 if probabilities else s
    if method == "beta" and not probabilities:
        return
    at = 1.0 if probabilities else 0.0
    wanted = make_calibrator(method).fit(at - s, y)
    for increasing in (False, "auto"):
        got = make_calibrator(method).fit(s, y, increasing=increasing)
        assert np.array_equal(got.predict_proba(s), wanted.predict_proba(at - s))
        counts = ScoreCounts.from_scores(s, y)
        counted = make_calibrator(method).fit_counts(counts, increasing=increasing)
        assert np.abs(counted.predict_proba(s) - wanted.predict_proba(at - s)).max() < 1e-6
        read = Calibrator.from_json(got.to_json())
        assert np.array_equal(read.predict_proba(s), got.predict_proba(s))
        assert json.loads(got.to_json())["reading"] is not None
    assert got.predict_proba([s.min()])[0, 1] > got.predict_proba([s.max()])[0, 1]
    with pytest.raises(ValueError, match="a table must be of"):
        got.to_table()


@pytest.mark.parametrize("grid", [ScoreGrid(), ScoreGrid(1 << 12, on="logit")])
def test_reversed_scores_on_a_grid(grid):
    s, y = credit()
    s = (s - 299) / 1024
    got = make_calibrator("isotonic").fit_counts(
        ScoreCounts.from_scores(s, y, grid=grid), increasing=False
    )
    wanted = make_calibrator("isotonic").fit(1 - grid(s), y)
    p = wanted.predict_proba(1 - grid(s))
    assert np.abs(got.predict_proba(s) - p).max() < 1e-12
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.register("scores", pd.DataFrame({"score": s}))
    found = connection.sql(got.to_sql("duckdb")).df().sort_values("score")
    assert np.abs(found["p"].to_numpy() - p[np.argsort(s, kind="stable"), 1]).max() < 1e-12


@pytest.mark.parametrize("method", ["venn-abers", "isotonic", "platt"])
def test_sql_of_reversed_scores(method):
    duckdb = pytest.importorskip("duckdb")
    s, y = credit()
    calibrator = make_calibrator(method).fit(s, y, increasing=False)
    scores = pd.DataFrame({"score": s[:100]})
    connection = duckdb.connect()
    connection.register("scores", scores)
    found = connection.sql(calibrator.to_sql("duckdb")).df().sort_values("score")
    wanted = calibrator.predict_proba(np.sort(s[:100]))[:, 1]
    assert np.abs(found["p"].to_numpy() - wanted).max() < 1e-12


def test_doubt_and_more_classes_are_refused():
    rng = np.random.default_rng(9)
    with pytest.raises(InputError, match="area under the ROC curve is 0"):
        make_calibrator("platt").fit(rng.random(200), [0, 1] * 100, increasing="auto")
    with pytest.raises(InputError, match="with more than two classes"):
        make_calibrator("platt").fit(rng.random((30, 3)), [0, 1, 2] * 10, increasing=False)
    with pytest.raises(InputError, match="increasing must be True, False or"):
        make_calibrator("platt").fit([0.1, 0.9], [0, 1], increasing="lower")


def test_the_command_asks(tmp_path, capsys):
    s, y = credit()
    pd.DataFrame({"s": s, "y": y}).to_csv(tmp_path / "t.csv", index=False)
    command = ["calibrate", str(tmp_path / "t.csv"), "-s", "s", "-t", "y"]
    command += ["-o", str(tmp_path / "c.json")]
    assert main(command) == 2
    assert "give --increasing no if" in capsys.readouterr().err
    assert not (tmp_path / "c.json").exists()
    for chosen in ("no", "auto"):
        assert main([*command, "--increasing", chosen]) == 0
        assert "they are reversed" in capsys.readouterr().err
        calibrator = Calibrator.from_json((tmp_path / "c.json").read_bytes())
        p = calibrator.predict_proba([350.0, 800.0])[:, 1]
        assert p[0] > 0.8 and p[1] < 0.1
    assert main([*command, "--increasing", "yes"]) == 0
    flat = Calibrator.from_json((tmp_path / "c.json").read_bytes())
    assert np.ptp(flat.predict_multiprobability([350.0, 800.0]).p1) < 0.2
