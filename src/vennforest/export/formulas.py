"""The outputs of a calibrator as formulas of scores, from which every export is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

import numpy as np

from vennforest._validation import InputError
from vennforest.calibrators import Venn, VennAbers
from vennforest.calibrators.base import Calibrator
from vennforest.calibrators.bounded import BoundedCalibrator
from vennforest.calibrators.formula import (
    LOWEST,
    Code,
    Column,
    Language,
    LookupTable,
    NoFormulaError,
    Score,
    Term,
    divided_by_sum,
    first_of_largest,
    if_at_most,
    in_order,
    marked_logits,
    write_terms,
)
from vennforest.calibrators.intervals import ScoreIntervals
from vennforest.calibrators.venn import N_VENN_BINS, bins_of
from vennforest.multiprobability import SMALLEST_PROBABILITY, Multiprobability, merge_formula
from vennforest.prior import ShiftedPrior

INTERVAL_LEVEL = 0.95
"""Level of the exported confidence intervals."""


def accepted_scores(calibrator: Calibrator) -> tuple[float, float, float | None]:
    """Return the smallest and largest accepted score, and the tolerance of a row's sum to 1.

    The tolerance is None where scores need not sum to 1.
    """
    k, is_sum = len(calibrator.classes_), calibrator.on_ == "probability"
    if calibrator.on_ == "logit":  # that of probability 0 is minus infinity
        return -np.inf, -LOWEST, None
    if not is_sum and calibrator._reads != "probability":
        return LOWEST, -LOWEST, None
    return 0.0, 1.0, k * 0.005 + 1e-9 if is_sum and k > 2 else None  # two decimals of each


def write_outputs(formulas: dict[str, Term], language: Language[Code]) -> dict[str, Code]:
    """Write formulas in a language."""
    return dict(zip(formulas, write_terms([*formulas.values()], language), strict=True))


def output_formulas(calibrator: Calibrator, confidence: bool = False) -> dict[str, Term]:
    """Return the formulas of ``p``, bounds ``p0``, ``p1`` and intervals ``low95``, ``high95``."""
    k = len(calibrator.classes_)
    score: Term = Score()
    if calibrator.on_ == "logit" and calibrator.mask_distance_ is not None:
        score = marked_logits(score, k > 2, calibrator.mask_distance_)
    scores = calibrator._reading_term(calibrator.on_, k > 2, score)
    if k > 2 and calibrator.on_ == "probability":
        scores = divided_by_sum(scores)
    if (center := calibrator.reversed_at_) is not None:
        scores = center - scores
    if isinstance(calibrator, VennAbers):
        formulas = _venn_abers_formulas(calibrator, scores)
    elif isinstance(calibrator, BoundedCalibrator):
        formulas = _venn_formulas(calibrator, scores)
    else:
        formulas = {"p": calibrator._formula(scores)}
    if confidence:
        if not isinstance(calibrator, VennAbers):
            name = type(calibrator).__name__
            raise InputError(f"confidence must be False: {name} gives no confidence intervals")
        columns = range(len(calibrator.scores_))
        curves = [calibrator._interval_curve(j, INTERVAL_LEVEL) for j in columns]
        formulas |= interval_formulas(curves, scores)
    if calibrator.shift_ is not None:
        if k > 2:
            raise ValueError(
                f"calibrator must have two classes to be exported after with_prior, got {k}: "
                "export it before"
            )
        formulas = {name: shifted_formula(p, calibrator.shift_) for name, p in formulas.items()}
    if confidence:  # widened to contain the probabilities
        low, high = formulas["low95"].min(formulas["p"]), formulas["high95"].max(formulas["p"])
        formulas |= {"low95": low, "high95": high}
    return formulas


def tables_of(formulas: Iterable[Term]) -> list[LookupTable]:
    """Return the tables of steps in which formulas look numbers up."""
    columns = [term for term in in_order(formulas) if isinstance(term, Column)]
    return [table for column in columns for table in column.tables]


def shifted_formula(p: Term, shift: ShiftedPrior) -> Term:
    """Return the probability, or a bound, of the second of two classes after a change of prior."""
    f0, f1 = map(float, shift.factors)
    return (p * f1) / (p * f1 + (1.0 - p) * f0)  # the odds are multiplied by f1 / f0


def interval_formulas(curves: Sequence[ScoreIntervals], scores: Term) -> dict[str, Term]:
    """Return the formulas of confidence intervals, from one curve for each column of scores."""
    edges, lower, upper = zip(*(curve.steps() for curve in curves), strict=True)
    return scores.look_up(edges, {"low95": lower, "high95": upper})


# --- bounds -------------------------------------------------------------------------------------


def _venn_formulas(calibrator: BoundedCalibrator, scores: Term) -> dict[str, Term]:
    """Return the formulas of ``p0``, ``p1`` and ``p`` of a Venn predictor."""
    if not isinstance(calibrator, Venn):
        raise NoFormulaError("calibrator", calibrator)
    if callable(calibrator.taxonomy):
        raise NoFormulaError("taxonomy", calibrator.taxonomy)
    k = len(calibrator.classes_)
    if k == 2:
        start = np.array([np.nextafter(calibrator.boundary_, np.inf)])
        if calibrator.taxonomy == "bins":
            # The first score of each bin, which may differ from the bin's edge by rounding.
            bins = np.arange(1, 2 * N_VENN_BINS)
            edges = bins / (2 * N_VENN_BINS)
            near = edges[:, None] + np.arange(-64, 65) * np.spacing(edges)[:, None]
            is_in = bins_of(near.ravel()).reshape(near.shape) >= bins[:, None]
            start = near[bins - 1, is_in.argmax(axis=1)]
        bounds = calibrator._multiprobability(np.append(LOWEST, start))
        p = bounds.merge(calibrator.merge)[:, 1]
        return scores.look_up([start], {"p0": [bounds.p0], "p1": [bounds.p1], "p": [p]})
    total = calibrator.counts_.sum(axis=1, keepdims=True) + 1
    lower, upper = calibrator.counts_ / total, (calibrator.counts_ + 1) / total
    p = Multiprobability(lower, upper, calibrator.classes_).merge(calibrator.merge)
    category = first_of_largest(scores, k)
    if calibrator.taxonomy == "bins":
        share = (scores.largest().clip(1 / k, 1.0) - 1 / k) / (1 - 1 / k)
        bin_of_label = (share * float(N_VENN_BINS)).floor().min(N_VENN_BINS - 1)
        category = float(N_VENN_BINS) * category + bin_of_label
    return category.look_up([np.arange(1.0, len(p))], {"p0": [lower], "p1": [upper], "p": [p]})


def _venn_abers_formulas(calibrator: VennAbers, scores: Term) -> dict[str, Term]:
    """Return the formulas of Venn–Abers bounds and probabilities."""
    starts, sides = [], []
    for table in calibrator._tables:
        start = table.starts()
        values = np.empty((2, len(start) + 1))
        table.look_up(np.append(LOWEST, start), values)
        starts.append(start)
        sides.append(values)
    p0, p1 = ([values[side] for values in sides] for side in (0, 1))
    if len(starts) == 1 and calibrator.merge != "pooled":
        p = [merge_formula(calibrator.merge, p0[0], p1[0])]
        return scores.look_up(starts, {"p0": p0, "p1": p1, "p": p})
    columns = scores.look_up(starts, {"p0": p0, "p1": p1})
    lower, upper = columns["p0"], columns["p1"]
    if len(starts) > 1:  # as in `normalised_bounds`
        smallest = lower + (upper.sum() - upper).max(0.0)
        largest = upper + (lower.sum() - lower).max(0.0)
        lower = lower.min(smallest.unless_above(0.0, 0.0, lower / smallest))
        upper = upper.max(largest.unless_above(0.0, 1.0, upper / largest)).min(1.0)
    if calibrator.merge != "pooled":
        k = len(starts)
        p_merged = merge_formula(calibrator.merge, lower, upper)
        return {"p0": lower, "p1": upper, "p": scaled_formula(p_merged, lower, upper, k)}
    pooled = calibrator.pool_._formula(calibrator._pool_term(scores))
    return {"p0": lower.min(pooled), "p1": upper.max(pooled), "p": pooled}


def scaled_formula(p: Term, lower: Term, upper: Term, k: int) -> Term:
    """Return the formula of `scale_into_bounds` for k classes."""
    # The sum of a clipped row rises with the factor, in straight lines between the bends at which
    # an entry meets a bound: it is 1 between the last bend with a sum of at most 1 and the next.
    q = p.max(SMALLEST_PROBABILITY)
    of_lower, of_upper = lower / q, upper / q
    bends = [of_bound.of_class(j) for of_bound in (of_lower, of_upper) for j in range(k)]
    sums = [(q * bend).clip(lower, upper).sum() for bend in bends]
    smallest, last, largest = lower.sum(), reduce(Term.max, bends), reduce(Term.max, sums)
    # Without such a bend below, the factor is 0; without one above, it is the last bend.
    pairs = list(zip(bends, sums, strict=True))
    begin = reduce(Term.max, [total.unless_above(1.0, bend, 0.0) for bend, total in pairs])
    end = reduce(Term.min, [if_at_most(1.0, total, bend, last) for bend, total in pairs])
    low = reduce(Term.max, [total.unless_above(1.0, total, smallest) for total in sums])
    high = reduce(Term.min, [if_at_most(1.0, total, total, largest) for total in sums])
    between = begin + (1.0 - low) * ((end - begin) / (high - low))
    scaled = (q * high.unless_above(low, begin, between)).clip(lower, upper)
    return (scaled / scaled.sum()).clip(lower, upper)  # once more, since the division rounds
