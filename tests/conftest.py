"""Fixtures of several folders, and what keeps the tests fast."""

import gc
import os
import secrets
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from support.quick_fits import quick_fits

OF_QUICK_FITS = {
    "classifier",
    "commands",
    "documentation",
    "export",
    "hazards",
    "persistence",
    "report",
    "sources",
    "test_class_columns.py",
    "test_scores.py",
}
"""Folders and files that look at what is done with fits; the others look at their numbers."""

# What tests and packages define lives on: looking for garbage in it takes a third of collection.
gc.disable()


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="module", autouse=True)
def fits(request):
    """Fit quickly in the folders that look at what is done with fits."""
    folder = request.path.relative_to(Path(__file__).parent).parts[0]
    with quick_fits() if folder in OF_QUICK_FITS else nullcontext():
        yield


@pytest.fixture
def rng():
    """Return a generator of a new seed, which a failure prints; VENNFOREST_SEED repeats one."""
    seed = int(os.environ.get("VENNFOREST_SEED") or secrets.randbits(64))
    print(f"VENNFOREST_SEED={seed}")
    return np.random.default_rng(seed)


@pytest.fixture
def draw_only(monkeypatch):
    """Return a function that leaves the pictures of pages empty, except for those it names."""
    from vennforest.report import figures

    encode = figures.encode

    def restrict(*names):
        def encode_if_named(name, *arguments):
            return encode(name, *arguments) if name in names else {"svg": b"<svg/>"}

        monkeypatch.setattr(figures, "encode", encode_if_named)

    return restrict


@pytest.fixture
def table(tmp_path):
    """A file with a number, a word and a label that one row lacks."""
    import pandas as pd

    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    frame = pd.DataFrame({"x": x, "word": rng.choice(["a", "b", None], 60)})
    frame["y"] = np.where(x + rng.normal(size=60) / 2 > 0, "yes", "no")
    frame.loc[0, "y"] = None
    path = tmp_path / "data.csv"
    frame.to_csv(path, index=False)
    return path
