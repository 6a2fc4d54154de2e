"""Fixtures of several folders."""

import pytest


@pytest.fixture
def draw_only(monkeypatch):
    """Return a function that leaves the pictures of pages empty, except for those it names."""
    from vennforest.report import figures

    drawn = figures.drawn

    def restrict(*names):
        def drawn_if_named(name, *arguments):
            return drawn(name, *arguments) if name in names else {"svg": b"<svg/>"}

        monkeypatch.setattr(figures, "drawn", drawn_if_named)

    return restrict
