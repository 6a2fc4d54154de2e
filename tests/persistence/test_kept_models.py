"""Files of every format that was ever released are read, and predict what they did then."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import vennforest
from models import make
from vennforest.persistence.archive import FIRST_READ, FORMAT, read_header

MODELS = Path(make.__file__).parent
FORMATS = sorted(MODELS.glob("format*"))
KEPT = [
    (folder, name)
    for folder in FORMATS
    for name in json.loads((folder / "predictions.json").read_text("utf-8"))
]
TOLERANCE = 1e-9
"""Predictions of fitted models: sums of the same numbers, perhaps in another order."""


@pytest.mark.parametrize(("folder", "name"), KEPT, ids=[f"{f.name}-{n}" for f, n in KEPT])
def test_kept_files_predict_what_they_did(folder, name):
    kept = json.loads((folder / "predictions.json").read_text("utf-8"))[name]
    path = folder / f"{name}.skops"
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


def test_every_format_that_is_read_has_its_files():
    assert [folder.name for folder in FORMATS] == [
        f"format{number}" for number in range(FIRST_READ, FORMAT + 1)
    ]


def test_every_kind_of_model_is_kept():
    """A new method, or source, is written with ``make models``."""
    newest = json.loads((FORMATS[-1] / "predictions.json").read_text("utf-8"))
    assert set(newest) == {name for name, _, _ in make.models()}
