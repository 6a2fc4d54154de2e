"""Sections on other models, segments and another population."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from report.reading import Page, has_in_turn, numbers_in
from support.report_data import calibrated
from vennforest import CalibratedClassifier, update
from vennforest.report import check, evaluate
from vennforest.report.measures import BLEND, RAW, MethodEstimates, Predictions
from vennforest.report.sections import compared_models
from vennforest.report.words import sentences_on
from vennforest.validation.update import TITLES


def section(evaluation):
    return evaluation.sections["updates"]


def sentences(evaluation):
    return sentences_on("updates", evaluation.findings, section(evaluation), None)


def test_updates_are_those_of_update():
    rng = np.random.default_rng(9)
    p = expit(rng.normal(-1, 1.2, 400))
    y, groups = np.where(rng.random(400) < expit(logit(p) + 1), "yes", "no"), np.arange(400) // 2
    evaluation = check(y, p, groups=groups)
    part = section(evaluation)
    result = update(p, y, groups=groups)
    np.testing.assert_allclose(part.frame["log_loss"], result.gains["log_loss"], rtol=0.02)
    assert part.frame.index.tolist() == [TITLES[choice] for choice in result.gains.index]
    assert np.isnan(part.frame["gain"].iloc[0])
    texts = sentences(evaluation)
    assert (part.numbers["choice"], part.numbers["why"]) == ("intercept", result.reason)
    assert result.reason in texts[1]
    assert "groups kept together" in texts[0]
    few, certain = check(y[:15], p[:15], updates=True), check(y, p.round(0))
    assert section(few).frame is None
    assert numbers_in(sentences(few)[0]) == [20, 15]
    assert numbers_in(sentences(certain)[0])[-2:] == [400, 400]


def test_updates_are_shown_where_calibration_is_rejected_or_they_are_asked_for():
    y, p, _ = calibrated(400, 5)
    good, bad = check(y, p), check(y, p**2)
    assert not good.sections and bad.findings.choice not in ("", "keep")
    assert check(y, p, updates=True).findings.choice == "keep"
    wrong = np.where(np.arange(400) < 200, 0.5 * p, 1 - 0.5 * (1 - p))  # in opposite directions
    parts = check(y, wrong, by={"half": np.arange(400) < 200}, tolerance=0.4)
    assert parts.findings.rejected or not parts.sections


def test_a_model_has_the_prior_shift_beside_them(tmp_path, draw_only):
    draw_only()
    rng = np.random.default_rng(3)
    X = rng.normal(size=(500, 3))
    y = (X + rng.gumbel(size=(500, 3))).argmax(axis=1)
    model = CalibratedClassifier(LogisticRegression(), random_state=0).fit(X[:200], y[:200])
    rare = np.flatnonzero((np.arange(500) >= 200) & ((y != 2) | (rng.random(500) < 0.2)))
    evaluation = check(y[rare], model, X=X[rare], updates=True)
    part = section(evaluation)
    shown = ["Keep the probabilities", "Move the intercept", "Prior shift", "A new map"]
    assert part.frame.index.tolist() == shown and len(sentences(evaluation)) == 1
    assert (part.frame["gain"].iloc[1:3] > 0.02).all()
    evaluation.to_html(tmp_path / "page.html")
    assert {"Another population"} <= set(
        Page((tmp_path / "page.html").read_text("utf-8")).text_of["h2"]
    )
    shares = np.bincount(y[rare]) / len(rare)
    for_shares = model.with_prior(dict(enumerate(shares.tolist())))
    moved = check(y[rare], for_shares, X=X[rare], updates=True)
    assert section(moved).frame["gain"].iloc[2] < 0.01


def test_a_model_for_other_shares_is_not_compared_with_its_raw_model():
    X, y = np.random.default_rng(6).normal(size=(300, 3)), np.arange(300) % 2
    model = CalibratedClassifier(RandomForestClassifier(20), random_state=0).fit(X[:200], y[:200])
    assert RAW in check(y[200:], model, X=X[200:]).methods.index
    assert RAW not in check(y[200:], model.with_prior({1: 0.3}), X=X[200:]).methods.index


def test_a_blend_that_gains_more_than_chance_is_recommended_with_its_price(blended):
    section = blended.sections["models"]
    frame, sentence = section.frame, blended.verdict.sentence
    gain = frame.loc["forest", "loss"] - frame.loc[BLEND, "loss"]
    assert frame.loc[BLEND, "gain"] == pytest.approx(gain)
    assert frame.loc[BLEND, "gain_low"] > 0
    times = frame.loc[BLEND, "seconds"] / frame.loc["forest", "seconds"]
    relative = round(100 * gain / frame.loc["forest", "loss"], 1)
    numbers = [relative, round(times, 1)]
    times = frame.loc[BLEND, "predict_seconds"] / frame.loc["forest", "predict_seconds"]
    assert has_in_turn(sentence, [*numbers, round(times, int(times < 10))], 1e-9)
    assert blended.summary()["sections"]["models"]["numbers"]["better"] == section.numbers["better"]


def test_without_others_nothing_is_compared(linear_rows):
    X, y = linear_rows(60)
    evaluation = evaluate(X, y, methods=["platt"], n_folds=2, n_trees=5)
    assert not evaluation.sections and not evaluation.predictions.compared


def test_a_gain_within_chance_is_no_advice():
    """The mean gain is .1, and its margin over 40 rows .2."""
    rows, codes = np.arange(40), np.zeros(40, np.intp)
    p = np.where(rows < 30, 0.99, 0.2)
    others = {name: MethodEstimates(np.column_stack([q, 1 - q]), seconds=1.0)
              for name, q in (("", np.full(40, 0.6)), (BLEND, p))}  # fmt: skip
    predictions = Predictions(np.arange(2), codes, 0 * rows, rows, {}, compared=others)
    section = compared_models(predictions, "forest")
    assert section.frame.loc[BLEND, "gain"] > 0 and section.numbers["better"] == []


def test_segments_take_dates_by_year():
    y, p, rng = calibrated(400, 3)
    dates = rng.choice(["2024-03-01", "2024-05-01", "2025-01-31", "2026-07-04"], 400)
    segments = pd.DataFrame({"opened": dates})
    frame = check(y, p, positive="yes", segments=segments).sections["segments"].frame
    assert {"opened = 2024", "opened = 2025"} <= set(frame.index)
