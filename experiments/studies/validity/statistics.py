"""What is summed over repetitions, and what the sums say.

The repetitions are independent, the objects within one are not: they share a training set. So a
mean over objects is a ratio of two sums over repetitions, and its standard error is that of a
ratio (the delta method; Cochran, *Sampling Techniques*, 3rd ed., section 6.4).

The truth is known, so no label of a new object is drawn: an object with true probability q of
class j counts with weight q as one of class j, whose bound is the upper one, and with weight 1 - q
as one of another, whose bound is the lower one. Expectations stay the same, with less noise.
"""

import numpy as np

EDGES = (0.1, 0.3, 0.5, 0.7, 0.9)
BINS = ("< .1", ".1–.3", ".3–.5", ".5–.7", ".7–.9", "> .9")
MEASURES = (*BINS, "p0", "p1", "width", "log loss", "brier", "distance", "spread", "widened",
            "loss over all trees")  # fmt: skip
"""Of each measure a numerator and a denominator are summed.

The bins: label minus the bound of the true label, for bounds in the bin. ``p0``: truth minus lower
bound; ``p1``: upper bound minus truth; neither may be below 0 on average. ``spread``: variance of a
bound over seeds of the draw. ``widened``: share of the objects whose bounds had to be widened.
"""

N_SUMS = 6


def ratios(lower, upper, truth, probability=None, spread=None, widened=None, reference=None):
    """Return the numerator and the denominator of every measure in one repetition.

    Parameters
    ----------
    lower, upper, truth : ndarray of shape (m, k)
        Bounds and true probabilities. For two classes only the second column counts in what is
        said of bounds, for more every class does.
    probability : ndarray of shape (m, k), optional
        The one probability that the losses are of; None: the log merge of the bounds.
    spread, widened : ndarray of shape (m,), optional
        Variances over seeds; booleans.
    reference : float, optional
        The log loss that "loss over all trees" is above.

    Returns
    -------
    ndarray of shape (len(MEASURES), 2)
    """
    if probability is None:
        probability = upper / (1 - lower + upper)
        probability = probability / probability.sum(axis=1, keepdims=True)
    columns = slice(1, None) if truth.shape[1] == 2 else slice(None)
    low, up, q = (a[:, columns].ravel() for a in (lower, upper, truth))
    out = np.zeros((len(MEASURES), 2))
    for bound, label, weight in ((up, 1, q), (low, 0, 1 - q)):
        where = np.searchsorted(EDGES, bound, side="right")
        np.add.at(out[:, 0], where, weight * (label - bound))
        np.add.at(out[:, 1], where, weight)
    m = len(truth)
    loss = -(truth * np.log(np.clip(probability, 1e-15, 1))).sum()
    brier = (truth * (1 - 2 * probability)).sum() + m * (probability**2).sum(axis=1).mean()
    rows = {
        "p0": (q - low).sum() / len(q) * m,
        "p1": (up - q).sum() / len(q) * m,
        "width": (up - low).mean() * m,
        "log loss": loss,
        "brier": brier,
        "distance": np.abs((low + up) / 2 - q).mean() * m,
    }
    if spread is not None:
        rows["spread"] = spread.sum()
    if widened is not None:
        rows["widened"] = widened.sum()
    if reference is not None:
        rows["loss over all trees"] = loss - reference * m
    for name, value in rows.items():
        out[MEASURES.index(name)] = value, m
    return out


def sums(pairs):
    """Return of every measure: repetitions with a denominator, and sums a, b, aa, ab, bb.

    pairs : (repetitions, measures, 2); result (measures, 6). Results of parts add up.
    """
    a, b = np.moveaxis(np.asarray(pairs, float), -1, 0)
    return np.stack([b > 0, a, b, a * a, a * b, b * b], axis=-1).sum(axis=0)


def estimate(total):
    """Return the ratio, its standard error, and the effective number of repetitions behind it.

    total : (6,) as `sums` returns it. The last is (sum b)^2 / sum b^2: far below the repetitions
    where few of them reach a bin, and then the standard error is not to be trusted.
    """
    n, a, b, aa, ab, bb = total
    if b <= 0:
        return np.nan, np.nan, 0.0
    ratio = a / b
    effective = b * b / bb
    if n < 2:
        return ratio, np.nan, effective
    squares = max(0.0, aa - 2 * ratio * ab + ratio * ratio * bb)
    return ratio, float(np.sqrt(squares * n / (n - 1)) / b), effective


ENOUGH = 30
"""Effective repetitions from which on a bin is judged."""


def deviations(cell):
    """Return for every bin its deviation, standard error and z; NaN where too few reach it."""
    out = np.full((len(BINS), 3), np.nan)
    for i in range(len(BINS)):
        off, error, effective = estimate(cell[i])
        if effective >= ENOUGH and error > 0:
            out[i] = off, error, off / error
    return out


def one_sided(cell):
    """Return (mean, standard error, z) of truth minus p0 and of p1 minus truth."""
    rows = []
    for name in ("p0", "p1"):
        off, error, _ = estimate(cell[MEASURES.index(name)])
        rows.append((off, error, off / error if error > 0 else np.nan))
    return rows
