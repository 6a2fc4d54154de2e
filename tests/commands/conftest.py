"""The commands need every package of the extra ``all``."""

from importlib.util import find_spec

import pytest

NEEDED = ("typer", "rich", "pandas", "pyarrow", "skops", "skrub", "matplotlib", "jinja2")
collect_ignore_glob = ["*"] if any(find_spec(name) is None for name in NEEDED) else []


@pytest.fixture(scope="session", autouse=True)
def few_refits():
    """Calibrate training rows in two parts; tests/classifier looks at the numbers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vennforest.classifier.prediction.N_REFITS", 2)
        yield
