"""Phrases that the papers' pages share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def count_of(count: int, datasets: Sequence[str]) -> str:
    """Return on how many of the data sets something is so."""
    return f"{count} of {len(datasets)} data sets"


def list_pairs(pairs: Iterable[tuple[str, str]]) -> str:
    """Return pairs of a better and a worse method, sorted."""
    return ", ".join(f"{better} over {worse}" for better, worse in sorted(pairs))


def times(repeats: int) -> str:
    """Return how often something was done, as the end of a phrase: nothing for once."""
    return "" if repeats == 1 else f", {repeats} times"
