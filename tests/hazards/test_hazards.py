"""Every hazard, by every way in, is refused, warned of, found or answered rightly."""

import warnings
from pathlib import Path

import numpy as np
import pytest
import sklearn
from packaging.version import Version

from hazards.entrances import HAZARDS, WAYS

DRAWN_BY_WEIGHT = Version(sklearn.__version__) >= Version("1.9")
PAGE = Path(__file__).parents[2] / "docs" / "hazards.md"
TITLES = {
    "refused": "gives an error",
    "warned": "gives a warning",
    "found": "`audit` finds it",
    "right": "The answer is right",
}
CASES = [
    pytest.param(hazard, way, id=f"{hazard.fault}: {way}")
    for hazard in HAZARDS
    for way in hazard.ways
]


@pytest.mark.parametrize(("hazard", "way"), CASES)
def test_a_hazard_is_not_silent(hazard, way):
    if "class_weight" in hazard.fault and not DRAWN_BY_WEIGHT:
        pytest.skip("this scikit-learn draws all rows with the same chance")
    run, rng = hazard.ways[way], np.random.default_rng(11)
    if hazard.outcome == "refused":
        with pytest.raises((ValueError, TypeError), match=hazard.match):
            run(rng)
    elif hazard.outcome == "warned":
        with pytest.warns(UserWarning, match=hazard.match):
            run(rng)
    elif hazard.outcome == "found":
        assert hazard.match in " ".join(finding.message for finding in run(rng))
    else:
        assert run(rng)


@pytest.mark.parametrize(
    "hazard", [h for h in HAZARDS if h.honest is not None], ids=lambda hazard: hazard.fault
)
def test_the_same_call_without_the_fault_passes(hazard):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        result = hazard.honest(np.random.default_rng(12))
    if hazard.outcome == "found":
        assert result == []


def test_more_ways_are_of_hazards_that_there_are():
    assert set(WAYS) <= {hazard.fault for hazard in HAZARDS}


def rows_of_page():
    """Return the rows of the tables under each heading of the page."""
    sections = PAGE.read_text(encoding="utf-8").split("\n## ")[1:]
    return {s.partition("\n")[0]: [r for r in s.splitlines() if " | " in r][1:] for s in sections}


@pytest.mark.parametrize("outcome", TITLES)
def test_the_page_lists_the_hazards(outcome):
    (rows,) = [rows for title, rows in rows_of_page().items() if TITLES[outcome] in title]
    expected = [f"{h.fault} | {', '.join(h.ways)}" for h in HAZARDS if h.outcome == outcome]
    assert rows == expected
