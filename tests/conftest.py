"""Fixtures of several folders."""

import os
import secrets

import numpy as np
import pytest


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
