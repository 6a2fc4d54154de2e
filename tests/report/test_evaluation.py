"""The result of an evaluation: what it prints, its JSON, and numbers beside the metrics."""

import json

import numpy as np
import pytest

from vennforest.metrics import calibration_distances
from vennforest.report import check


def test_it_prints_a_few_lines(cancer):
    lines = repr(cancer).splitlines()
    assert lines[0] == "breast cancer: 569 rows, 2 classes"
    assert lines[1] == cancer.verdict.sentence
    assert len(lines) < 20
    for line, name in zip(lines[4:], cancer.methods["name"], strict=True):
        assert line.strip().startswith(name)


@pytest.mark.parametrize("signal", [0.0, 3.0])
def test_a_loss_above_that_of_the_base_rate_is_called_higher(signal):
    """Distances from the smooth curve are those of the metric, for the recommended method."""
    rng = np.random.default_rng(11)
    x = rng.normal(size=200)
    y = np.where(signal * x + rng.normal(size=200) > 0, "yes", "no")
    evaluation = check(y, 1 / (1 + np.exp(-2 * x)), positive="yes")
    c, predictions = evaluation.findings, evaluation.predictions
    reasons = evaluation.verdict.reasons
    text = next(reasons[name] for name in reasons if name.startswith("How well it predicts"))
    skills = evaluation.methods.loc[c.method, "brier_skill"]
    word = "lower" if skills > 0 else "higher"
    assert f"% {word} than that of always predicting" in text and "is \u2212" not in text
    assert evaluation.verdict.figures[3][1].startswith(f"{word} Brier score")
    assert (skills > 0) == (signal > 0)
    p = predictions.estimates[c.method].p[:, 1]
    distances = calibration_distances(predictions.codes, p)
    assert evaluation.methods.loc[c.method, "ici"] == pytest.approx(distances.ici.value)
    chance = evaluation.methods.loc[c.method, "emax_by_chance"]
    assert chance == pytest.approx(distances.by_chance["emax"])


def test_the_summary_is_json(cancer):
    summary = json.loads(json.dumps(cancer.summary(), allow_nan=False))
    assert summary["verdict"]["method"] == cancer.verdict.method
    assert summary["methods"]["venn"]["width"] == cancer.methods.loc["venn", "width"]
    assert {c: row["n"] for c, row in summary["classes"].items()} == {
        "benign": 357,
        "malignant": 212,
    }
    assert summary["classes"]["benign"]["recall"] == cancer.classes.loc["benign", "recall"]
    assert summary["methods"]["none"]["width"] is None
    assert len(summary["thresholds"]) == len(cancer.thresholds)
