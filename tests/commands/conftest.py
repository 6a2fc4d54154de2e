"""Commands of small tables need not be calibrated well, and few of their pages need pictures."""

from functools import cache

import pytest
import typer


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
