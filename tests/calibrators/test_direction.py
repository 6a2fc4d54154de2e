"""Scores of which high ones mean safe, scores in other units, and the warnings of both."""

import warnings

import numpy as np
import pytest

from vennforest import ScoreCounts
from vennforest._messages import CalibrationWarning
from vennforest._validation import InputError
from vennforest.calibrators import make_calibrator
from vennforest.export import from_json, to_json

METHODS = ["venn-abers", "platt", "beta", "vector"]


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
    end = 1.0 if probabilities else 0.0
    expected = make_calibrator(method).fit(end - s, y).predict_proba(end - s)
    counts = ScoreCounts.from_scores(s, y)
    for increasing in (False, "auto"):
        model = make_calibrator(method).fit(s, y, increasing=increasing)
        assert np.array_equal(model.predict_proba(s), expected)
        counted = make_calibrator(method).fit_counts(counts, increasing=increasing)
        assert np.abs(counted.predict_proba(s) - expected).max() < 1e-6
    assert np.array_equal(from_json(to_json(model)).predict_proba(s), expected)
    assert model.predict_proba([s.min()])[0, 1] > model.predict_proba([s.max()])[0, 1]


def test_doubt_and_more_classes_are_refused():
    rng = np.random.default_rng(9)
    with pytest.raises(InputError, match="area under the ROC curve is 0"):
        make_calibrator("platt").fit(rng.random(200), [0, 1] * 100, increasing="auto")
    with pytest.raises(InputError, match="with several classes"):
        make_calibrator("platt").fit(
            rng.dirichlet(np.ones(3), 30), [0, 1, 2] * 10, increasing=False
        )
    with pytest.raises(InputError, match="increasing must be True, False or"):
        make_calibrator("platt").fit([0.1, 0.9], [0, 1], increasing="lower")


def test_falling_scores_warn_and_say_what_to_do():
    s, y = credit()
    with pytest.warns(CalibrationWarning, match="curve 0.0.*cannot follow: give increasing=False"):
        make_calibrator("venn-abers").fit(s, y)
    with pytest.warns(CalibrationWarning, match="increasing=False"):
        make_calibrator("isotonic").fit_counts(ScoreCounts.from_scores(s, y))
    rng = np.random.default_rng(9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make_calibrator("isotonic").fit(rng.random(200), [0, 1] * 100)
        make_calibrator("isotonic").fit([0.2, 0.8], [1, 0])
        make_calibrator("isotonic").fit(s, y, increasing=False)


@pytest.mark.parametrize("method", ["venn-abers", "temperature"])
def test_scores_in_other_units_are_answered_with_one_warning(method):
    s, y = credit()
    model = make_calibrator(method).fit(s, y, increasing=False)
    with pytest.warns(CalibrationWarning, match=r"100.00% .* in \[2\d\.?\d*, 1\d+.*as 0.6.*units"):
        alone = model.predict_proba([0.6])
    with pytest.warns(CalibrationWarning, match="66.67%.*Are they in other units"):
        assert np.array_equal(model.predict_proba([0.6, 0.7, 500])[:1], alone)
    with pytest.warns(CalibrationWarning, match=r"33.33% of the scores lie far outside .*as 5000"):
        model.predict_proba([400, 5000, 700])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict_proba([250, 900])  # a little beyond
    of_probabilities = make_calibrator(method).fit((850 - s) / 550, y)
    of_probabilities.predict_proba([0.0, 1.0])
    for name in ("predict_proba", "predict_multiprobability", "predict_confidence"):
        if hasattr(of_probabilities, name):
            if of_probabilities.on_ == "probability":
                with pytest.raises(InputError, match=r"must lie in \[0, 1\], got 12.5 in row 0"):
                    getattr(of_probabilities, name)([12.5, 45, 80])
            else:
                with pytest.warns(CalibrationWarning, match=r"\[-0.5, 1.5\]"):
                    getattr(of_probabilities, name)([12.5, 45, 80])
    few = make_calibrator(method).fit([-1.0, 1.0], [0, 1])  # too few to know their range
    few.predict_proba([50.0])
