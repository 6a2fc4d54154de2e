"""Comparison of methods by differences of losses, choice of a method, and costs of decisions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial

import numpy as np
import pandas as pd
from scipy.stats import t as student

from vennforest._validation import FloatArray, IntArray
from vennforest.decisions import CostMatrix
from vennforest.metrics import (
    AucInterval,
    CalibrationLine,
    IntervalEstimate,
    auc_interval,
    calibration_distances,
    calibration_line,
)
from vennforest.metrics.losses import (
    Difference,
    difference_over_rows,
    log_losses,
    loss_intervals_of,
    squared_losses,
)
from vennforest.report.measures import (
    BASELINE,
    Event,
    Measures,
    MethodEstimates,
    Predictions,
    measure,
)

NEGLIGIBLE_LOSS = 0.01
"""Relative difference of log losses up to which a method with bounds is preferred."""


def difference_over_folds(
    first: FloatArray, second: FloatArray, predictions: Predictions
) -> Difference:
    """Return the mean difference of losses (n,) over folds, with its interval.

    Training sets of different folds overlap, so the variance of the mean is (1/K + n_test/n_train)
    times that of the K fold means (Nadeau & Bengio 2003, section 3). With one fold it is that of
    `difference_over_rows`.
    """
    k, fold = predictions.n_folds, predictions.fold
    if k == 1:
        return difference_over_rows(first, second, predictions.groups)
    gap = first - second
    means = np.bincount(fold, weights=gap, minlength=k) / np.bincount(fold, minlength=k)
    ratio = 1 / (k - 1) if predictions.test_ratio is None else predictions.test_ratio
    error = np.sqrt((1 / k + ratio) * means.var(ddof=1))
    return Difference(float(gap.mean()), float(student.ppf(0.975, k - 1) * error))


def choose(
    measures: dict[str, Measures], predictions: Predictions, tolerance: float
) -> tuple[str, str]:
    """Choose a method; return it and the rule that chose it.

    Candidates are the methods whose log loss is the lowest, does not differ from it significantly,
    or is less than 1% above it (infinite only if all are). Those within the tolerance are kept (the
    one of lowest log loss if none is), then those with bounds, if any. The best ranking is chosen.
    """
    lowest = min(measures, key=lambda m: (measures[m].log_loss, measures[m].brier))
    candidates = []
    for method in measures:
        gap = compare_losses(method, lowest, predictions)
        is_level = not gap.clear or gap.mean < NEGLIGIBLE_LOSS * measures[lowest].loss(gap.loss)
        is_possible = not measures[method].impossible or measures[lowest].impossible
        if is_level and is_possible:
            candidates.append(method)
    accurate = [m for m in candidates if not measures[m].exceeds(tolerance)] or [lowest]
    bounded = [m for m in accurate if predictions.estimates[m].bounds is not None]
    finalists = bounded or accurate
    best = max(finalists, key=lambda m: (np.nan_to_num(measures[m].auc), -measures[m].log_loss))
    if finalists == [lowest]:
        return best, "the lowest log loss"
    methods = "methods with bounds" if bounded else "methods"
    limit = " and within the tolerance" if len(accurate) < len(candidates) else ""
    return best, f"the best ranking (AUC) of the {methods} level in log loss with the best{limit}"


def compare_losses(first: str, second: str, predictions: Predictions) -> Difference:
    """Return the first method's loss minus the second's: log loss, or Brier score if one is inf."""
    pair = predictions.estimates[first], predictions.estimates[second]
    over_folds = partial(difference_over_folds, predictions=predictions)
    return _difference_of_losses(*pair, predictions.codes, over_folds)


def _difference_of_losses(
    first: MethodEstimates,
    second: MethodEstimates,
    codes: IntArray,
    difference: Callable[[FloatArray, FloatArray], Difference],
) -> Difference:
    """Return the difference of two log losses, or of Brier scores if one of these is infinite."""
    losses = log_losses(first.p, codes), log_losses(second.p, codes)
    if np.isfinite(losses).all():
        return difference(*losses)
    losses = squared_losses(first.p, codes), squared_losses(second.p, codes)
    return replace(difference(*losses), loss="Brier score")


N_DRAWS_OF_DISTANCES = 100


@dataclass(frozen=True, eq=False)
class Costs:
    """Costs of decisions by each method.

    ``mean`` is the cost per row of each method and ``of_constants`` that of making one decision
    for every row, (d,). ``saved`` is the lowest of these minus the cost of the recommended method,
    which makes each decision in ``n_decided`` rows, (d,).
    """

    matrix: CostMatrix
    mean: dict[str, float]
    of_constants: FloatArray
    saved: Difference
    n_decided: IntArray

    @property
    def best_constant(self) -> str:
        """The decision that costs least when it is made for every row."""
        return self.matrix.decisions[int(self.of_constants.argmin())]


@dataclass(frozen=True, eq=False)
class Comparison:
    """The measures of all methods and of the baseline, compared with the recommended method.

    ``tolerance`` is a miscalibration that does not matter. ``rule`` chose the recommended
    ``method``; ``against`` are the other methods' losses minus its loss, and ``gain`` is the
    baseline's: log losses, or Brier scores where a log loss is infinite. ``line`` is the method's
    calibration line with two classes, None where a user's tolerance decides alone.
    """

    predictions: Predictions
    tolerance: float
    baseline: Measures
    measures: dict[str, Measures]
    method: str
    rule: str
    against: dict[str, Difference]
    auc: AucInterval
    gain: Difference
    costs: Costs | None = None
    line: CalibrationLine | None = None

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.predictions.codes)

    @property
    def best(self) -> Measures:
        """Measures of the recommended method."""
        return self.measures[self.method]

    @property
    def estimates(self) -> MethodEstimates:
        """Estimates of the recommended method."""
        return self.predictions.estimates[self.method]

    def event(self) -> Event:
        """Return the event by the recommended method."""
        return self.predictions.event(self.estimates)

    @property
    def tie(self) -> float | None:
        """The probability of the positive class at which two decisions cost the same, if any."""
        positive = self.predictions.positive
        if self.costs is None or positive is None or self.costs.matrix.costs.shape != (2, 2):
            return None
        gap = np.subtract(*self.costs.matrix.costs.T)
        if gap[positive] == gap[1 - positive]:
            return None
        p = float(gap[1 - positive] / (gap[1 - positive] - gap[positive]))
        return p if 0 < p < 1 else None


def compare(
    predictions: Predictions,
    costs: CostMatrix | None,
    tolerance: float,
    seed: int,
    with_line: bool = False,
) -> Comparison:
    """Measure all methods, choose one, and measure that one more closely."""
    codes, groups, shares = predictions.codes, predictions.groups, predictions.baseline()
    measures = {
        method: measure(predictions, estimates, seed)
        for method, estimates in predictions.estimates.items()
    }
    method, rule = choose(measures, predictions, tolerance)
    best, over_rows = predictions.estimates[method], partial(difference_over_rows, groups=groups)
    return Comparison(
        predictions=predictions,
        tolerance=tolerance,
        baseline=measure(predictions, shares, seed),
        measures=measures,
        method=method,
        rule=rule,
        against={m: compare_losses(m, method, predictions) for m in measures if m != method},
        auc=auc_interval(groups=groups, **predictions.for_metric(best)),
        # The log loss tells rare classes apart, which hardly move the Brier score.
        gain=_difference_of_losses(shares, best, codes, over_rows),
        costs=None if costs is None else _costs(costs, predictions, best),
        line=_line(predictions, best) if with_line and predictions.positive is not None else None,
    )


def _line(predictions: Predictions, estimates: MethodEstimates) -> CalibrationLine:
    """Return observed over expected, intercept and slope of one method, with intervals."""
    with np.errstate(invalid="ignore"):  # probabilities that separate the classes
        return calibration_line(groups=predictions.groups, **predictions.for_metric(estimates))


def _costs(matrix: CostMatrix, predictions: Predictions, best: MethodEstimates) -> Costs:
    """Return the costs of decisions by each method, and what the recommended one saves."""
    codes, estimates = predictions.codes, predictions.estimates
    decisions = matrix.decide(best.p)
    of_rows = matrix.costs[codes]
    of_constants = of_rows.mean(axis=0)
    constant = of_rows[:, int(of_constants.argmin())]
    return Costs(
        matrix,
        {m: float(matrix.paid(matrix.decide(e.p), codes).mean()) for m, e in estimates.items()},
        of_constants,
        difference_over_rows(constant, matrix.paid(decisions, codes), predictions.groups),
        np.bincount(decisions, minlength=len(matrix.decisions)),
    )


def skill(score: float, reference: float) -> float:
    """Return 1 - score / reference, NaN if the reference, the score of the base rate, is 0."""
    return 1 - score / reference if reference else float("nan")


def methods_frame(comparison: Comparison, names: dict[str, str]) -> pd.DataFrame:
    """Return the measures: a row for each method, then the baseline."""
    predictions, costs, baseline = comparison.predictions, comparison.costs, comparison.baseline
    groups, weight = predictions.groups, np.ones(comparison.n)
    rows = {}
    for method, measures in {**comparison.measures, BASELINE: baseline}.items():
        of_method = predictions.estimates.get(method, predictions.baseline())
        options = {"groups": groups, **predictions.for_metric(of_method)}
        row = {"name": names.get(method, method), **asdict(measures)}
        estimates = vars(loss_intervals_of(of_method.p, predictions.codes, weight, groups))
        if method != BASELINE:
            area = auc_interval(**options)
            estimates["auc"] = IntervalEstimate(area.auc, area.low, area.high)
        if predictions.positive is not None and method != BASELINE:
            estimates |= (line := vars(_line(predictions, of_method)))
            row["certain"] = line["certain"]
            if method == comparison.method:
                estimates |= vars(calibration_distances(n_draws=N_DRAWS_OF_DISTANCES, **options))
        for name, estimate in estimates.items():
            if name != "certain":
                ends = vars(estimate).values()
                row |= dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))
        if costs is not None and method != BASELINE:
            row["mean_cost"] = costs.mean[method]
        rows[method] = row
    return pd.DataFrame.from_dict(rows, orient="index")


def classes_frame(comparison: Comparison) -> pd.DataFrame:
    """Return frequency, mean probability, recall and precision of each class.

    The values are those of the recommended method, with one row per class.
    """
    predictions = comparison.predictions
    codes, k = predictions.codes, len(predictions.classes)
    p = comparison.estimates.p
    predicted, counts = p.argmax(axis=1), np.bincount(codes, minlength=k)
    hits = np.bincount(codes[predicted == codes], minlength=k)
    with np.errstate(invalid="ignore"):
        columns = {
            "n": counts,
            "share": counts / len(codes),
            "mean": p.mean(axis=0),
            "recall": hits / counts,
            "precision": hits / np.bincount(predicted, minlength=k),
        }
    return pd.DataFrame(columns, index=[str(label) for label in predictions.classes])
