"""Commands of small tables need not be calibrated well, and few of their pages need pictures."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def few_refits():
    """Calibrate training rows in two parts, and report on one model.

    tests/classifier looks at the numbers, and tests/report at other models.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vennforest.classifier.training_rows.N_REFITS", 2)
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
