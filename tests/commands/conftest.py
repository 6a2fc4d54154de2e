"""Commands of small tables need not be calibrated well."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def few_refits():
    """Calibrate training rows in two parts; tests/classifier looks at the numbers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vennforest.classifier.classifier.N_REFITS", 2)
        yield
