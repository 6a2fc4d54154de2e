"""Arguments of the wrong type are refused by one sentence, whatever function they are given to."""

import numpy as np
import pytest

from vennforest import Multiprobability, VennAbers, update
from vennforest.decisions import threshold_for
from vennforest.metrics import (
    calibration_distances,
    calibration_error,
    threshold_table,
)
from vennforest.validation import population_stability, segments

P = np.linspace(0.05, 0.95, 40)
Y = np.arange(40) % 3 == 0
MODEL = VennAbers().fit(P, Y)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: calibration_error(Y, P, sample_weight=["a"] * 40), "sample_weight must be num"),
        (lambda: MODEL.fit(P, Y, sample_weight="a"), "sample_weight must be numbers, got could"),
        (lambda: threshold_table(Y, P, thresholds=["a"]), "thresholds must be numbers"),
        (lambda: calibration_distances(Y, P, n_draws="9"), "n_draws must be an integer >= 1"),
        (lambda: calibration_distances(Y, P, random_state=2.5), "random_state must be an integer"),
        (lambda: segments(P[:, None], Y, P, random_state=-1), "random_state must be an integer"),
        (lambda: update(P, Y, random_state="a"), "random_state must be an integer >= 0, got 'a'"),
        (lambda: population_stability("ab", "ba", random_state=None), "random_state must be"),
        (lambda: MODEL.with_prior({False: "a"}), "shares must lie between 0 and 1"),
        (lambda: MODEL.predict_confidence(P, level=[0.9]), "level must lie between 0 and 1"),
        (lambda: threshold_for(P, Y, cost=1, costs=(1, "a")), "costs must be numbers"),
        (lambda: Multiprobability([[0.1]], [[0.2]], [1]), "lower must be a numpy array of floats"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
