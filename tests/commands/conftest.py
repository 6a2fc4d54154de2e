"""Commands of small tables need not be calibrated well, and few of their pages need pictures."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
import typer

from commands.calibrating import draw


@pytest.fixture(scope="module", autouse=True)
def one_model():
    """Build the application once, and report on one model; tests/report looks at others."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.main.get_command", cache(typer.main.get_command))
        patch.setattr("vennforest.commands.report.OTHER_ESTIMATORS", ())
        yield


@pytest.fixture
def pictures():
    """Draw the pictures of the pages that a test makes."""


@pytest.fixture(autouse=True)
def empty_pictures(request, draw_only):
    """Leave the pictures empty unless a test asks for them; tests/report looks at all of them."""
    if "pictures" not in request.fixturenames:
        draw_only()


@pytest.fixture
def scored(tmp_path):
    """Return a table of scores and labels, and the folder of its file."""
    scores, y = draw()
    frame = pd.DataFrame({"id": np.arange(len(y)), "s": scores, "y": y})
    frame.to_csv(tmp_path / "scores.csv", index=False)
    return frame, tmp_path
