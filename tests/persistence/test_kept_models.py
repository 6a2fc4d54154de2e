"""Files of every kind of model are read, and predict what they did when they were written."""

import json
import warnings

import numpy as np
import pytest

import vennforest
from models import make
from support.forging import parts_of, states
from vennforest.persistence.archive import read_header

KEPT = json.loads((make.FILES / "predictions.json").read_text("utf-8"))
TOLERANCE = 1e-9
"""Predictions of fitted models: sums of the same numbers, perhaps in another order."""


@pytest.mark.parametrize("name", KEPT)
def test_kept_files_predict_what_they_did(name):
    kept, path = KEPT[name], make.FILES / f"{name}.skops"
    newer = make.newer_libraries(read_header(path))
    if newer and name.startswith(make.OF_LIBRARIES):
        pytest.skip(f"written with {', '.join(newer)}, newer than here")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*was written with.*")
        warnings.filterwarnings("ignore", message=".*Trying to unpickle.*")
        warnings.filterwarnings("ignore", message=".*of groups without calibration examples.*")
        model = vennforest.load(path)
        found = make.answers(model, make.rows_from_json(kept["rows"]))
    assert set(found) == set(kept) - {"rows"}
    for key, value in found.items():
        np.testing.assert_allclose(value, kept[key], rtol=0, atol=TOLERANCE)


def test_every_kind_of_model_is_kept():
    """A new method, or source, is written with ``make models``."""
    assert set(KEPT) == {name for name, _, _ in make.models()}


def test_no_file_names_a_module_of_ours():
    """So that modules may move."""
    for name in KEPT:
        for node in states(parts_of(make.FILES / f"{name}.skops")[0]):
            assert not node["__module__"].startswith("vennforest.")
