"""Quantiles of the limit of the likelihood-ratio statistic of a monotone function at a point.

    python benchmarks/likelihood_ratio_quantiles.py [--draws 100000] [--half 600]

Banerjee & Wellner (2001): 2 log lambda converges to the integral of (slope of the greatest convex
minorant of W(t) + t^2)^2 - (the same constrained to change sign at 0)^2. It is simulated by the
same statistic of 2 * half independent normal observations with a linear mean, five units of t on
either side.
"""

import argparse

import numba
import numpy as np

from vennforest.calibrators.likelihood_ratio import LEVELS


@numba.njit(cache=False)
def pool(y, value, size):
    """Fill the blocks of the isotonic regression, return their number."""
    top = 0
    for one in y:
        value[top], size[top] = one, 1.0
        while top > 0 and value[top - 1] >= value[top]:
            total = size[top - 1] + size[top]
            value[top - 1] = (value[top - 1] * size[top - 1] + value[top] * size[top]) / total
            size[top - 1] = total
            top -= 1
        top += 1
    return top


@numba.njit(cache=False)
def statistics(draws, half, slope, seed):
    np.random.seed(seed)  # noqa: NPY002 (numba's own)
    out = np.empty(draws)
    y = np.empty(2 * half)
    value, size = np.empty(2 * half), np.empty(2 * half)
    for d in range(draws):
        for i in range(2 * half):
            y[i] = slope * (i - half + 0.5) + np.random.standard_normal()  # noqa: NPY002
        # the sum of squared fits is what fits explain: min(., 0) and max(., 0) on either side
        blocks = pool(y, value, size)
        free = (size[:blocks] * value[:blocks] ** 2).sum()
        blocks = pool(y[:half], value, size)
        bound = (size[:blocks] * np.minimum(value[:blocks], 0) ** 2).sum()
        blocks = pool(y[half:], value, size)
        bound += (size[:blocks] * np.maximum(value[:blocks], 0) ** 2).sum()
        out[d] = free - bound
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=100_000)
    parser.add_argument("--half", type=int, default=600)
    arguments = parser.parse_args()
    # One unit of t is so many points that the mean rises by 2 t on a scale of their noise.
    points = arguments.half / 5
    found = statistics(arguments.draws, arguments.half, 2 * points**-1.5, 1)
    deviation = np.sqrt(np.array(LEVELS) * (1 - np.array(LEVELS)) / arguments.draws)
    for level, error in zip(LEVELS, deviation, strict=True):
        low, q, high = np.quantile(found, np.clip([level - error, level, level + error], 0, 1))
        print(f"{level}: {q:.3f} (standard error {(high - low) / 2:.3f})")


if __name__ == "__main__":
    main()
