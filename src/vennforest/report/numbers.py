"""Formats of numbers: enough digits to tell different values apart, and no more."""

from __future__ import annotations

import math
from collections.abc import Iterable

MAX_DECIMALS = 6
MAX_DECIMALS_OF_PERCENT = 4


def _format(value: float, top: float, decimals: int, max_decimals: int) -> str:
    """Format a value in [0, top]; it is shown as 0 or the top only where it equals these.

    Near the ends there are as many decimals as show two significant digits.
    """
    distance = min(value, top - value)
    if 0 < distance < 10.0 ** (1 - decimals):
        decimals = min(max_decimals, max(decimals, _significant(distance)))
    text, step = f"{value:.{decimals}f}", 10.0**-decimals
    if value > 0 and float(text) == 0:
        return f"<{step:.{decimals}f}"
    if value < top and float(text) == top:
        return f">{top - step:.{decimals}f}"
    return text


def percent(share: float, decimals: int = 1) -> str:
    """Return a share as text in percent."""
    return f"{_format(100 * share, 100, decimals, MAX_DECIMALS_OF_PERCENT)}%"


def probability(p: float) -> str:
    """Return a probability as text."""
    return _format(p, 1, 3, MAX_DECIMALS)


def points(gap: float) -> str:
    """Return a difference of probabilities as text in percentage points."""
    return _format(100 * abs(gap), math.inf, 1, MAX_DECIMALS_OF_PERCENT)


def area(value: float) -> str:
    """Format an area under a curve; a value below 1 is never shown as 1."""
    return ">0.999" if 0.9995 <= value < 1 else f"{value:.3f}"


def fixed(value: float, decimals: int) -> str:
    """Return a number as text with ``decimals`` decimals and a typographical minus."""
    text = f"{value:,.{decimals}f}"
    return (text if float(text.replace(",", "")) else text.lstrip("-")).replace("-", "−")


def common_decimals(values: Iterable[float]) -> int:
    """Return the number of decimals, at least 3, that divides the range into about 20 steps."""
    finite = [value for value in values if math.isfinite(value)]
    spread = max(finite, default=0.0) - min(finite, default=0.0)
    decimals = 3 if spread <= 0 else max(3, math.ceil(-math.log10(spread / 20)))
    ends = [min(abs(v), abs(1 - v)) for v in finite if v not in (0, 1)]
    if ends and max(ends) < 0.01:  # all of them near 0, or near 1
        decimals = max(decimals, _significant(min(ends)))
    return min(MAX_DECIMALS, decimals)


def signed(share: float) -> str:
    """Return a share as text in percent with its sign."""
    if abs(share) < 0.0005:
        return "0%"
    text = percent(abs(share)) if abs(share) <= 1 else f"{100 * abs(share):.0f}%"
    return f"−{text}" if share < 0 else text


def with_margin(mean: float, margin: float) -> str:
    """Return a mean ± margin as text, with two significant digits of the margin, if it is known."""
    sizes = [_significant(size) for size in (margin, abs(mean) / 10) if 0 < size < math.inf]
    decimals = min(2 * MAX_DECIMALS, min(sizes, default=0))
    text = f"{abs(mean):.{decimals}f}"
    return text if math.isnan(margin) else f"{text} ± {margin:.{decimals}f}"


def amounts(values: Iterable[float], gap: float = 0.0) -> list[str]:
    """Return amounts with the same decimals: four digits of the largest, two of their gap."""
    listed = list(values)
    largest = max((abs(value) for value in listed if value), default=1.0)
    decimals = max(0, 3 - math.floor(math.log10(largest)))
    if gap:
        decimals = max(decimals, min(MAX_DECIMALS, _significant(abs(gap))))
    return [fixed(value, decimals) for value in listed]


def rounded_down(value: float) -> str:
    """Round a number of cases down to 1, 2 or 5 times a power of ten, at most 1,000,000."""
    value = min(max(value, 1.0), 1e6) * (1 + 1e-9)
    power = 10 ** math.floor(math.log10(value))
    return f"{max(digit for digit in (1, 2, 5) if digit * power <= value) * power:,}"


def ends(estimate: Iterable[float | None]) -> str:
    """Return an estimate and the ends of its interval as text; "–" where it is NaN or None."""
    value, low, high = (math.nan if end is None else end for end in estimate)
    return "–" if math.isnan(value) else f"{value:.3f} ({low:.3f} to {high:.3f})"


def rounded_up(n: float) -> str:
    """Return a number of rows as text, rounded up to two significant digits."""
    step = 10.0 ** max(0, math.floor(math.log10(max(n, 1))) - 1)
    return f"{math.ceil(n / step - 1e-9) * step:,.0f}"


def about(n: float) -> str:
    """Return a number of rows that would be enough, NaN where it is not known."""
    return f"about {rounded_up(n)} rows" if math.isfinite(n) else "more rows"


def of_100(share: float) -> str:
    """Return an expected number of 100 rows as text."""
    n = 100 * share
    return f"{n:.0f}" if n >= 9.5 or n == 0 else fixed(n, 1 if n >= 0.95 else 2)


def pvalue(p: float) -> str:
    """Return a p-value with its sign of comparison."""
    return "< 0.001" if p < 0.001 else f"= {p:.2g}"


def short_percent(share: float) -> str:
    """Return a share as text in percent, without decimals from 10% on."""
    return percent(share, int(share < 0.1))


def whole(value: float) -> str:
    """Return a number without decimals."""
    return f"{value:,.0f}"


def _significant(size: float) -> int:
    """Return the decimals at which a number shows two significant digits."""
    return max(0, 1 - math.floor(math.log10(size)))
