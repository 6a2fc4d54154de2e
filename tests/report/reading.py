"""Numbers in sentences, so that tests need not repeat the words around them."""

import re

import pytest


def numbers_in(text):
    """Return the numbers of a text in order: "1,200 rows, −0.31%" has 1200 and −0.31."""
    parts = re.findall(r"(?<![\w.])[−-]?\d[\d,]*(?:\.\d+)?", text)
    return [float(part.replace(",", "").replace("−", "-")) for part in parts]


def has_in_turn(text, values, tolerance=0.0):
    """Return whether numbers follow each other in a text, to within a tolerance."""
    numbers, n = numbers_in(text), len(values)
    expected = pytest.approx(list(values), rel=0, abs=tolerance)
    return any(numbers[i : i + n] == expected for i in range(len(numbers) - n + 1))
