"""Every hazard, by every way in, is refused, warned of or answered rightly; honest calls pass."""

import warnings

import numpy as np
import pytest
import sklearn
from packaging.version import Version

from hazards.entrances import HAZARDS

DRAWN_BY_WEIGHT = Version(sklearn.__version__) >= Version("1.9")

CASES = [
    pytest.param(hazard, way, id=f"{hazard.name}: {way}")
    for hazard in HAZARDS
    for way in hazard.ways
]


@pytest.mark.parametrize(("hazard", "way"), CASES)
def test_a_hazard_is_not_silent(hazard, way):
    if hazard.name == "rows drawn by class weight" and not DRAWN_BY_WEIGHT:
        pytest.skip("this scikit-learn draws all rows with the same chance")
    verdict, run = hazard.verdict_of(way), hazard.ways[way]
    rng = np.random.default_rng(11)
    if verdict.outcome == "refused":
        with pytest.raises((ValueError, TypeError), match=verdict.match):
            run(rng)
    elif verdict.outcome == "warned":
        with pytest.warns(UserWarning, match=verdict.match):
            run(rng)
    elif verdict.outcome == "found":
        assert verdict.match in " ".join(finding.message for finding in run(rng))
    else:
        assert run(rng) is True or run(rng) == np.True_


@pytest.mark.parametrize(
    "hazard", [one for one in HAZARDS if one.honest is not None], ids=lambda one: one.name
)
def test_the_same_call_without_the_fault_passes(hazard):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        result = hazard.honest(np.random.default_rng(12))
    if hazard.verdict.outcome == "found":
        assert result == []
