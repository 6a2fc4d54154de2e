"""What an evaluation finds: events, shown methods, parts that are off, rows to collect."""

import numpy as np

from support.report_data import calibrated, with_bounds
from vennforest.report import check


def test_given_models_are_shown_together():
    y, p = with_bounds()[0], np.random.default_rng(5).random(400)
    evaluation = check(y, {"old": p, "new": p**2, "third": np.sqrt(p)})
    shown = evaluation.findings.shown_methods
    assert set(shown) == {"old", "new", "third"} and shown[0] == evaluation.verdict.method
    why = evaluation.verdict.reasons[f"Why “{shown[0]}”"]
    assert all(f"that of “{name}”" in why for name in shown[1:])


def wards(shifts, n=9000, seed=2):
    rng = np.random.default_rng(seed)
    ward, z = rng.integers(0, len(shifts), n), rng.normal(-1.2, 1, n)
    y = rng.random(n) < 1 / (1 + np.exp(-z - np.array(shifts)[ward]))
    return y, 1 / (1 + np.exp(-z)), np.array([*"ABCDEF"])[ward]


def test_groups_and_sites_that_are_off_are_named_and_no_other():
    y, p, ward = wards((0.6, -0.7, 0, 0, 0, 0))
    for options, name in (({"by": {"ward": ward}}, "groups"), ({"site": ward}, "sites")):
        evaluation = check(y, p, **options)
        verdict, rejected = evaluation.verdict, evaluation.findings.rejected
        assert verdict.action in ("check", "recalibrate")
        if name == "groups":
            assert rejected == {"by ward": {"too low": ["A"], "too high": ["B"]}}
        clause = verdict.failures[name]
        assert {*"ABCDEF"} & set(clause.split()) == {*"AB"} and clause in verdict.sentence
    y, p, ward = wards((0, 0, 0, 0, 0, 0))
    evaluation = check(y, p, by={"ward": ward}, site=ward)
    assert not evaluation.findings.rejected and evaluation.verdict.action == "use"


def test_classes_that_are_taken_for_each_other_are_in_the_headline():
    """The confidence in the top label is right, and two minor classes are not."""
    rng = np.random.default_rng(11)
    top = np.where(rng.random(5000) < 0.5, 0.97, 0.42)
    p = np.column_stack([top, (1 - top) / 2, (1 - top) / 2])
    q = np.column_stack([top, 0.8 * (1 - top), 0.2 * (1 - top)])
    for truth, is_off in ((p, False), (q, True)):
        codes = (rng.random((5000, 1)) > np.cumsum(truth, axis=1)[:, :-1]).sum(axis=1)
        evaluation = check(np.array([*"abc"])[codes], p)
        verdict, off = evaluation.verdict, {"classes": {"too low": ["b"], "too high": ["c"]}}
        assert (verdict.action == "recalibrate") == is_off
        assert evaluation.findings.rejected == (off if is_off else {})
        assert bool(verdict.failures["classes"]) == is_off
        assert verdict.failures["classes"] in verdict.sentence


def test_a_frequency_that_falls_is_said_and_one_that_rises_is_not():
    rng = np.random.default_rng(6)
    p = rng.random(1500)
    heading = "Where the frequency falls as the score rises"
    for frequency, is_falling in ((p, False), (0.5 + 0.4 * np.sin(2 * np.pi * p), True)):
        y = np.where(rng.random(1500) < frequency, "yes", "no")
        texts = check(y, p).verdict.reasons
        assert (heading in texts) == is_falling
    assert texts[heading].startswith("The frequency of “yes” falls from ")


def test_the_positive_class_is_the_rarer_one_unless_named():
    y, p, _ = calibrated(200, 4)
    turned = np.where(y == "yes", "a rare one", "common")
    evaluation = check(turned, 1 - p)  # the column is of the second class, "common"
    assert evaluation.predictions.label == "a rare one"
    assert evaluation.findings.auc.value > 0.6
    named = check(turned, p, positive="a rare one")
    assert named.predictions.label == "a rare one"
    assert named.findings.best.brier == evaluation.findings.best.brier
    assert check([0, 1] * 20, [0.4, 0.6] * 20).predictions.label == 1
