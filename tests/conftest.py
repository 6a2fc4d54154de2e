"""Fixtures of several folders."""

import pytest


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
