"""How numbers are written: enough digits to tell apart what differs, and no more."""

from __future__ import annotations

import math
from collections.abc import Iterable

MOST_DIGITS = 6


def percent(share: float, digits: int = 1) -> str:
    """Return a share as a percentage; one that is not quite 0 or 1 never reads as such.

    Near 0 and near 100 % there are as many digits as show two that count.
    """
    distance = min(share, 1 - share)
    if 0 < distance < 10.0 ** (-digits - 1):
        digits = min(MOST_DIGITS - 2, _significant(100 * distance))
    text = f"{100 * share:.{digits}f}"
    least = 10.0**-digits
    if share > 0 and float(text) == 0:
        return f"under {least:.{digits}f}%"
    if share < 1 and float(text) == 100:
        return f"over {100 - least:.{digits}f}%"
    return f"{text}%"


def points(gap: float) -> str:
    """Return a distance of probabilities in percentage points."""
    return f"{number_of_points(gap)} percentage points"


def number_of_points(gap: float) -> str:
    """Return a distance of probabilities as a number of percentage points."""
    size = 100 * abs(gap)
    if size == 0:
        return "0"
    digits = 1 if size >= 1 else min(MOST_DIGITS - 2, _significant(size))
    text = f"{size:.{digits}f}"
    return text if float(text) else f"under {10.0**-digits:.{digits}f}"


def probability(p: float, digits: int = 3) -> str:
    """Return a probability; near 0 and 1 with two significant digits."""
    distance = min(p, 1 - p)
    if 0 < distance < 10.0 ** (1 - digits):
        digits = min(MOST_DIGITS, max(digits, _significant(distance)))
    text = f"{p:.{digits}f}"
    if p > 0 and float(text) == 0:
        return f"<{10.0**-digits:.{digits}f}"
    if p < 1 and float(text) == 1:
        return f">{1 - 10.0**-digits:.{digits}f}"
    return text


def area(value: float) -> str:
    """Return an area under a curve; one below 1 never reads as 1."""
    text = f"{value:.3f}"
    return ">0.999" if value < 1 and float(text) == 1 else text


def decimals(values: Iterable[float | None], least: int = 3) -> int:
    """Return how many decimals tell values apart: the spread shows some twenty steps."""
    finite = [v for v in values if v is not None and math.isfinite(v)]
    spread = max(finite, default=0.0) - min(finite, default=0.0)
    digits = least if spread <= 0 else max(least, math.ceil(-math.log10(spread / 20)))
    ends = [min(abs(v), abs(1 - v)) for v in finite if v not in (0, 1)]
    if ends and max(ends) < 0.01:  # all of them near 0, or near 1
        digits = max(digits, _significant(min(ends)))
    return min(MOST_DIGITS, digits)


def signed(share: float) -> str:
    """Return a share in percent with its sign."""
    if abs(share) < 0.0005:
        return "0%"
    text = f"{-100 * share:.0f}%" if share < -1 else percent(min(1.0, abs(share)))
    return f"−{text}" if share < 0 else text


def with_margin(mean: float, margin: float) -> tuple[str, str]:
    """Return a difference and half its interval with the same decimals, two of which count."""
    if not math.isfinite(margin):
        return f"{mean:.2g}", "–"
    sizes = [_significant(size) for size in (margin, abs(mean) / 10) if size > 0]
    digits = min(2 * MOST_DIGITS, min(sizes, default=0))
    shown = f"{margin:.{digits}f}"
    if margin > 0 and float(shown) == 0:
        shown = f"under {10.0**-digits:.{digits}f}"
    return f"{mean:.{digits}f}", shown


def alike(values: Iterable[float], gap: float) -> list[str]:
    """Return amounts with the same decimals: four digits of the largest, two of their gap."""
    listed = list(values)
    largest = max((abs(value) for value in listed if value), default=1.0)
    digits = max(0, 3 - math.floor(math.log10(largest)))
    if gap:
        digits = max(digits, min(MOST_DIGITS, _significant(abs(gap))))
    texts = [f"{value:,.{digits}f}" for value in listed]
    return [
        (text if float(text.replace(",", "")) else text.lstrip("-")).replace("-", "−")
        for text in texts
    ]


def p_value(value: float) -> str:
    """Return a p-value behind its relation."""
    return "< 0.001" if value < 0.001 else f"= {value:.2g}"


def rounded_up(n: float) -> str:
    """Return a number of rows with two significant digits, rounded up."""
    step = 10.0 ** max(0, math.floor(math.log10(max(n, 1))) - 1)
    return f"{math.ceil(n / step - 1e-9) * step:,.0f}"


def rows(n: int) -> str:
    """Return a number of rows."""
    return f"{n:,} row{'' if n == 1 else 's'}"


def _significant(size: float) -> int:
    """Return the decimals at which a number shows two significant digits."""
    return max(0, 1 - math.floor(math.log10(size)))
