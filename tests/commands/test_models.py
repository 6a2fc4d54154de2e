"""Files of models and calibrators, and labels that options name."""

from types import SimpleNamespace

import numpy as np
import pytest

import vennforest
from vennforest._validation import InputError
from vennforest.commands.models import CalibratorFile, numbers_of_labels


@pytest.mark.parametrize("entries", [["1=.2", "1=.3"], ["1=.2", "0=.1", "1=.2"]])
def test_a_label_twice(entries):
    model = SimpleNamespace(classes_=np.array([0, 1]))
    with pytest.raises(InputError, match="--mean of '1' must be given once, got it twice"):
        numbers_of_labels(model, entries, "--mean", "MEAN")


def test_examples_of_a_calibrator_are_the_scores_that_it_was_given():
    s, y = np.array([3.0, -1.0, 2.0, 2.5]), np.array(["a", "b", "b", "a"])
    calibrator = vennforest.VennAbers().fit(s, y, increasing=False)
    scores, labels = CalibratorFile(calibrator, None, {}).examples()
    assert sorted(zip(scores, labels, strict=True)) == sorted(zip(s, y, strict=True))
