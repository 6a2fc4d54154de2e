"""Sentences for a paper are true of the options: they change with them."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from report.reading import has_in_turn
from support.report_data import COSTS, calibrated
from vennforest.metrics import auc_interval, threshold_table
from vennforest.report import check


@pytest.fixture(scope="module")
def plain():
    y, p, _ = calibrated(300, 11, strength=1.5)
    return y, p, check(y, p, positive="yes", name="cohort.csv", target="relapse")


def test_numbers_are_those_of_the_measures(plain):
    y, p, evaluation = plain
    text = evaluation.to_text()
    area = auc_interval(y, p)
    assert has_in_turn(text, [area.value, area.low, area.high], 0.0005)
    assert has_in_turn(text, [300, (y == "no").sum(), (y == "yes").sum()])
    assert all(name in text for name in ("(cohort.csv)", "“relapse”"))
    t = (y == "yes").mean()
    sensitivity = threshold_table(y, p, [t], pos_label="yes").sensitivity[0]
    assert has_in_turn(text, [round(t, 3), round(100 * sensitivity, 1)])
    assert text.index("## Methods") < text.index("Discrimination") < text.index("## Results")
    assert 150 < len(text.split()) < 450
    verb = "rejected" if evaluation.findings.best.pvalue < 0.02 else "did not reject"
    assert f"Tests {verb} calibration (p" in text


KINDS = {
    "folds": "in stratified 5-fold cross-validation",
    "time": "by a model of earlier rows, in 5 parts in order of time",
    "sites": "the rows of each of 5 sites were predicted by a model of the other sites",
    "given": "no model was trained for this evaluation",
    "model": "a model fitted before; it was not changed",
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_split_is_that_of_the_evaluation(plain, kind):
    evaluation = plain[-1]
    origin = replace(evaluation.findings.origin, kind=kind, noun="forest", calibrate_on="oob")
    findings = replace(evaluation.findings, origin=origin, folds=5, settings={"random_state": 7})
    changed = replace(evaluation, findings=findings)
    text = changed.to_text()
    assert [other for other, sentence in KINDS.items() if sentence in text] == [kind]
    is_trained = kind in ("folds", "time", "sites")
    for part in ("The model was a forest, calibrated by", "on out-of-bag scores (seed 7)"):
        assert (part in text) == is_trained


def test_groups_subgroups_costs_and_notes_have_sentences(plain):
    y, p, evaluation = plain
    options = {"groups": np.arange(300) // 2, "by": {"ward": np.arange(300) % 2}, "costs": COSTS}
    notes = ["4 rows without a label are left out."]
    text = check(y, {"old": p**2, "new": p}, positive="yes", notes=notes, **options).to_text()
    sentences = [
        "300 rows of 150 groups", "treat groups as independent", "over groups", "By ward: ",
        "tested within ward, adjusted by Holm", "costs", "4 rows without a label are left out.",
        "was compared with", "chosen on them",
    ]  # fmt: skip
    for sentence in sentences:
        assert sentence in text and sentence not in evaluation.to_text(), sentence


def test_sections_are_results_but_updates_are_not(plain):
    y, p, _ = plain
    grade = np.array([*"ABCDEFGH"])[np.arange(300) % 8]
    text = check(y, p / 30, positive="yes", grades=grade, updates=True).to_text()
    assert "tested by grades" in text and "Are these rows" not in text
    listed = re.search(r"too low in (.*?) \(exact", text)[1]
    assert sorted(listed.replace(" and ", ", ").split(", ")) == [*"ABCDEFGH"]


def test_many_classes_have_no_line_and_no_threshold():
    rng = np.random.default_rng(1)
    p = rng.dirichlet([1, 1, 1], 150)
    y = (p.cumsum(1) < rng.random((150, 1))).sum(1)
    text = check(y, p).to_text()
    m = check(y, p).findings.best
    assert has_in_turn(text, [round(100 * m.expected, 1), round(100 * m.observed, 1)])
    assert not any(word in text for word in ("slope", "Net benefit", "ICI", "Observed over"))


@pytest.mark.parametrize("n_groups", [1, 3, 12, None])
def test_measures_without_an_interval_have_none_in_page_text_and_summary(plain, n_groups):
    y, p, _ = plain
    options = {"groups": np.arange(300) % (n_groups or 1), "costs": COSTS}
    if n_groups is None:  # too few effective rows
        options = {"sample_weight": 1.05 ** np.arange(300)}
    evaluation = check(y, p, positive="yes", **options)
    page = re.sub('<style>.*?</style>|base64,[^"]*', "", evaluation._repr_html_(), flags=re.S)
    for text in (evaluation.to_text(), str(evaluation.verdict), page):
        assert not re.search(r"\bnan\b|\binf\b|the 1 groups", text)
    assert len(json.dumps(evaluation.summary()["auc"])) < 300  # nothing of each row
