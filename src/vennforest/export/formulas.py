"""The outputs of a calibrator as formulas of scores, from which every export is written."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce

import numpy as np

from vennforest._validation import FloatArray, InputError
from vennforest.calibrators import Venn, VennAbers
from vennforest.calibrators.base import Calibrator
from vennforest.calibrators.bounded import BoundedCalibrator
from vennforest.calibrators.formula import (
    LOWEST,
    Code,
    Computed,
    Language,
    Term,
    Terms,
    divided_by_sum,
    no_formula,
    summed,
    write_terms,
)
from vennforest.calibrators.intervals import ScoreIntervals
from vennforest.calibrators.venn import N_VENN_BINS, bins_of
from vennforest.multiprobability import SMALLEST_PROBABILITY, Multiprobability, merge_formula

INTERVAL_LEVEL = 0.95
"""Level of the exported confidence intervals."""


def accepted_scores(calibrator: Calibrator) -> tuple[float, float, float | None]:
    """Return the smallest and largest accepted score, and the tolerance of a row's sum to 1."""
    k, is_sum = len(calibrator.classes_), calibrator.on_ == "probability"
    if not is_sum and (calibrator._reads != "probability" or calibrator.on_ == "logit"):
        return LOWEST, -LOWEST, None
    return 0.0, 1.0, k * 0.005 + 1e-9 if is_sum and k > 2 else None  # two decimals of each


def write_outputs(formulas: dict[str, Terms], language: Language[Code]) -> dict[str, list[Code]]:
    """Write formulas in a language: one per class, or that of the second of two classes."""
    codes = iter(write_terms([term for terms in formulas.values() for term in terms], language))
    return {name: [next(codes) for _ in terms] for name, terms in formulas.items()}


def output_formulas(calibrator: Calibrator, confidence: bool = False) -> dict[str, Terms]:
    """Return the formulas of ``p``, bounds ``p0``, ``p1`` and intervals ``low95``, ``high95``."""
    k = len(calibrator.classes_)
    scores = calibrator._reading_terms(calibrator.on_, k)
    if k > 2 and calibrator.on_ == "probability":
        scores = divided_by_sum(scores)
    if (center := calibrator.reversed_at_) is not None:
        scores = (center - scores[0],)
    if isinstance(calibrator, BoundedCalibrator):
        formulas = bound_formulas(calibrator, scores)
    else:
        formulas = {"p": calibrator._formula(scores)}
    if confidence:
        if not isinstance(calibrator, VennAbers):
            name = type(calibrator).__name__
            raise InputError(f"confidence must be False: {name} gives no confidence intervals")
        formulas |= interval_formulas(calibrator._interval_curves(INTERVAL_LEVEL), scores)
    if calibrator.shift_ is not None:
        if k > 2:
            raise ValueError(
                f"calibrator must have two classes to be exported after with_prior, got {k}: "
                "export it before"
            )
        f0, f1 = calibrator.shift_.factors.tolist()
        for name, (p,) in formulas.items():  # the odds of all of them are multiplied by f1 / f0
            formulas[name] = ((p * f1) / (p * f1 + (1.0 - p) * f0),)
    return widened(formulas)


def interval_formulas(curves: Sequence[ScoreIntervals], scores: Terms) -> dict[str, Terms]:
    """Return the formulas of confidence intervals, from one curve for each column of scores."""
    ends = []
    for curve, score in zip(curves, scores, strict=True):
        edges, lower, upper = curve.steps()
        ends.append(score.look_up(edges, {"low95": lower, "high95": upper}))
    return {name: tuple(columns[name] for columns in ends) for name in ("low95", "high95")}


def widened(formulas: dict[str, Terms]) -> dict[str, Terms]:
    """Widen the confidence intervals, if there are any, to contain the probabilities."""
    if "low95" not in formulas:
        return formulas
    p = formulas["p"]
    return formulas | {
        "low95": tuple(map(Term.min, formulas["low95"], p)),
        "high95": tuple(map(Term.max, formulas["high95"], p)),
    }


# --- bounds -------------------------------------------------------------------------------------


def bound_formulas(calibrator: BoundedCalibrator, scores: Terms) -> dict[str, Terms]:
    """Return the formulas of ``p0``, ``p1`` and ``p``: one each for two classes, else k each."""
    if isinstance(calibrator, Venn):
        if callable(calibrator.taxonomy):
            raise no_formula("taxonomy", calibrator.taxonomy)
        if len(scores) > 1:
            return _venn_formulas(calibrator, scores)
        start = _starts_of_bins()
        if calibrator.taxonomy == "label":
            start = np.array([np.nextafter(calibrator.boundary_, np.inf)])
    elif not isinstance(calibrator, VennAbers):
        raise no_formula("calibrator", calibrator)
    elif len(scores) > 1:
        return _venn_abers_formulas(calibrator, scores)
    else:
        start = calibrator._tables[0].starts()
    if isinstance(calibrator, VennAbers) and calibrator.merge == "pooled":
        bounds = calibrator._isotonic_bounds(np.append(LOWEST, start))
        columns = scores[0].look_up(start, {"p0": bounds.p0, "p1": bounds.p1})
        return _pooled_formulas(calibrator, scores, (columns["p0"],), (columns["p1"],))
    bounds = calibrator._multiprobability(np.append(LOWEST, start))
    p = bounds.merge(calibrator.merge)[:, 1]
    columns = scores[0].look_up(start, {"p0": bounds.p0, "p1": bounds.p1, "p": p})
    return {name: (term,) for name, term in columns.items()}


def _starts_of_bins() -> FloatArray:
    """Return the first score of each bin, which may differ from the bin's edge by rounding."""
    edges = np.arange(1, 2 * N_VENN_BINS) / (2 * N_VENN_BINS)
    near = edges[:, None] + np.arange(-64, 65) * np.spacing(edges)[:, None]
    is_in = bins_of(near.ravel()).reshape(near.shape) >= np.arange(1, 2 * N_VENN_BINS)[:, None]
    starts: FloatArray = near[np.arange(len(edges)), is_in.argmax(axis=1)]
    return starts


def _venn_formulas(calibrator: Venn, scores: Terms) -> dict[str, Terms]:
    """Return the formulas of a Venn predictor for more than two classes."""
    total = calibrator.counts_.sum(axis=1, keepdims=True) + 1
    bounds = calibrator.counts_ / total, (calibrator.counts_ + 1) / total
    p = Multiprobability(*bounds, calibrator.classes_).merge(calibrator.merge)
    columns = {"p0": bounds[0], "p1": bounds[1], "p": p}
    category, k = _category_formula(scores, calibrator.taxonomy == "bins"), len(scores)
    values = category.look_up(
        np.arange(1.0, len(p)),
        {f"{name}_{j}": column[:, j] for name, column in columns.items() for j in range(k)},
    )
    return {name: tuple(values[f"{name}_{j}"] for j in range(k)) for name in columns}


def _category_formula(scores: Terms, in_bins: bool) -> Term:
    """Return the formula of `bins_of` (if ``in_bins``) or `label_of` for several columns."""
    label: Term | float = 0.0
    largest = scores[0]
    for j, score in enumerate(scores[1:], 1):
        label = score.unless_above(largest, label, float(j))
        largest = largest.max(score)
    assert isinstance(label, Term)
    if not in_bins:
        return label
    lowest = 1 / len(scores)
    share = (largest.clip(lowest, 1.0) - lowest) / (1 - lowest)
    return float(N_VENN_BINS) * label + (share * float(N_VENN_BINS)).floor().min(N_VENN_BINS - 1)


def _venn_abers_formulas(calibrator: VennAbers, scores: Terms) -> dict[str, Terms]:
    """Return the formulas of Venn–Abers bounds and probabilities for more than two classes."""
    bounds = []
    for score, table in zip(scores, calibrator._tables, strict=True):
        start = table.starts()
        values = np.empty((2, len(start) + 1))
        table.look_up(np.append(LOWEST, start), values)
        columns = score.look_up(start, {"p0": values[0], "p1": values[1]})
        bounds.append((columns["p0"], columns["p1"]))
    lower, upper = normalised_formulas(*zip(*bounds, strict=True))
    if calibrator.merge == "pooled":
        return _pooled_formulas(calibrator, scores, lower, upper)
    p = tuple(map(partial(merge_formula, calibrator.merge), lower, upper))
    return {"p0": lower, "p1": upper, "p": scaled_formulas(p, lower, upper)}


def _pooled_formulas(
    calibrator: VennAbers, scores: Terms, lower: Terms, upper: Terms
) -> dict[str, Terms]:
    """Return the formulas of the pool, and of bounds widened to contain it."""
    p = calibrator.pool_._formula(calibrator._pool_terms(scores))
    low, high = tuple(map(Term.min, lower, p)), tuple(map(Term.max, upper, p))
    return {"p0": low, "p1": high, "p": p}


def normalised_formulas(p0: Terms, p1: Terms) -> tuple[Terms, Terms]:
    """Return the formulas of `normalised_bounds`."""
    sum_p0, sum_p1 = summed(p0), summed(p1)
    lower, upper = [], []
    for low, up in zip(p0, p1, strict=True):
        smallest, largest = low + (sum_p1 - up).max(0.0), up + (sum_p0 - low).max(0.0)
        lower.append(low.min(smallest.unless_above(0.0, 0.0, low / smallest)))
        upper.append(up.max(largest.unless_above(0.0, 1.0, up / largest)).min(1.0))
    return tuple(lower), tuple(upper)


def scaled_formulas(p: Terms, lower: Terms, upper: Terms) -> Terms:
    """Return the formulas of `scale_into_bounds`."""
    # The sum of a clipped row rises with the factor, in straight lines between the bends at which
    # an entry meets a bound: it is 1 between the last bend with a sum of at most 1 and the next.
    q = [x.max(SMALLEST_PROBABILITY) for x in p]

    def clipped(factor: Term) -> list[Term]:
        return [(x * factor).clip(low, up) for x, low, up in zip(q, lower, upper, strict=True)]

    bends = [bound / x for bounds in (lower, upper) for bound, x in zip(bounds, q, strict=True)]
    sums = [summed(clipped(bend)) for bend in bends]
    smallest, last, largest = summed(lower), reduce(Term.max, bends), reduce(Term.max, sums)
    # Without such a bend below, the factor is 0; without one above, it is the last bend.
    pairs = list(zip(bends, sums, strict=True))
    begin = reduce(Term.max, [total.unless_above(1.0, bend, 0.0) for bend, total in pairs])
    end = reduce(Term.min, [_from_one(total, bend, last) for bend, total in pairs])
    low = reduce(Term.max, [total.unless_above(1.0, total, smallest) for total in sums])
    high = reduce(Term.min, [_from_one(total, total, largest) for total in sums])
    between = begin + (1.0 - low) * ((end - begin) / (high - low))
    scaled = clipped(high.unless_above(low, begin, between))
    total = summed(scaled)
    # clipped again, since the division rounds
    return tuple((x / total).clip(low, up) for x, low, up in zip(scaled, lower, upper, strict=True))


def _from_one(x: Term, value: Term, below: Term) -> Term:
    """Return ``value`` where x is at least 1, else ``below``."""
    return Computed("if <=", (1.0, x, value, below))
