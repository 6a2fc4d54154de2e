"""Comparison of methods by differences of losses, choice of a method, and costs of decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.stats import t as student

from vennforest._validation import FloatArray, IntArray
from vennforest.decisions import CostMatrix
from vennforest.metrics import CalibrationTests, Estimates, IntervalEstimate
from vennforest.metrics.losses import Difference, log_losses, squared_losses
from vennforest.metrics.variance import with_ends
from vennforest.report.measures import (
    BASELINE,
    CALIBRATION_TEST_LEVEL,
    MAX_RATIO,
    Measures,
    MethodEstimates,
    Predictions,
)

NEGLIGIBLE_LOSS = 0.01
"""Relative difference of log losses up to which a method with bounds is preferred."""


def difference_over_folds(
    first: FloatArray, second: FloatArray, predictions: Predictions
) -> Difference:
    """Return the mean difference of losses (n,) over folds, with its interval.

    Training sets of different folds overlap, so the variance of the mean is (1/K + n_test/n_train)
    times that of the K fold means (Nadeau & Bengio 2003, section 3). With one fold it is that of
    `Predictions.difference`.
    """
    k, fold = predictions.n_folds, predictions.fold
    if k == 1:
        return predictions.difference(first, second)
    gap, weight = first - second, predictions.weights
    means = np.bincount(fold, weight * gap, minlength=k) / np.bincount(fold, weight, minlength=k)
    ratio = 1 / (k - 1) if predictions.test_ratio is None else predictions.test_ratio
    error = np.sqrt((1 / k + ratio) * means.var(ddof=1))
    return Difference(predictions.mean(gap), float(student.ppf(0.975, k - 1) * error))


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
    """Return the first method's loss minus the second's, over folds."""
    pair = [predictions.estimates[name].p for name in (first, second)]
    losses, loss = finite_losses(pair, predictions.codes)
    return replace(difference_over_folds(losses[0], losses[1], predictions), loss=loss)


def finite_losses(
    probabilities: Sequence[FloatArray], codes: IntArray
) -> tuple[list[FloatArray], str]:
    """Return log losses (n,), or squared ones if one of these is infinite, and their name."""
    losses = [log_losses(p, codes) for p in probabilities]
    if np.isfinite(losses).all():
        return losses, "log loss"
    return [squared_losses(p, codes) for p in probabilities], "Brier score"


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

    @property
    def amounts(self) -> list[float]:
        """Costs per row of the recommended method and of the best constant decision.

        Then what the method saves, with its interval.
        """
        saved, constant = self.saved, float(self.of_constants.min())
        ends = [saved.mean, saved.mean - saved.margin, saved.mean + saved.margin]
        return [constant - saved.mean, constant, *ends]

    def tie(self, positive: int | None) -> float | None:
        """Return the probability of the positive class at which two decisions cost the same.

        None without a positive class, with other than two decisions, or if one is always cheaper.
        """
        if positive is None or self.matrix.costs.shape != (2, 2):
            return None
        gap = np.subtract(*self.matrix.costs.T)
        if gap[positive] == gap[1 - positive]:
            return None
        p = float(gap[1 - positive] / (gap[1 - positive] - gap[positive]))
        return p if 0 < p < 1 else None


def lines_off(judged: Estimates, measures: Measures) -> dict[str, IntervalEstimate]:
    """Return slope and observed over expected where they are off by more than a tenth.

    Each is tested at half the level of the tests of calibration.
    """
    tested, off = judged.line(level=1 - CALIBRATION_TEST_LEVEL / 2), {}
    for name in ("slope", "observed_expected"):
        interval = getattr(tested, name)
        is_clear = interval.low > 1 or interval.high < 1
        if is_clear and abs(interval.value - 1) > MAX_RATIO:
            off[name] = measures.intervals[name]
    return off


def costs_of(matrix: CostMatrix, predictions: Predictions, best: MethodEstimates) -> Costs:
    """Return the costs of decisions by each method, and what the recommended one saves."""
    codes, estimates = predictions.codes, predictions.estimates
    decisions = matrix.decide(best.p)
    of_rows = matrix.costs[codes]
    of_constants = np.average(of_rows, axis=0, weights=predictions.weight)
    constant = of_rows[:, int(of_constants.argmin())]
    return Costs(
        matrix,
        {m: predictions.mean(matrix.paid(matrix.decide(e.p), codes)) for m, e in estimates.items()},
        of_constants,
        predictions.difference(constant, matrix.paid(decisions, codes)),
        np.bincount(decisions, minlength=len(matrix.decisions)),
    )


def methods_frame(
    predictions: Predictions,
    measures: Mapping[str, Measures],
    method: str,
    costs: Costs | None,
    names: Mapping[str, str],
) -> pd.DataFrame:
    """Return the measures of each method and of the baseline, with intervals."""
    rows = {}
    for name, values in measures.items():
        row = {"name": names.get(name, name), **vars(values)}
        estimates, certain, _ = (row.pop(key) for key in ("intervals", "certain", "tests"))
        row["miscalibration"] = values.miscalibration
        if certain is not None:
            row["certain"] = certain
        if predictions.positive is not None and name == method:
            distances = vars(predictions.judged(predictions.estimates[name]).distances())
            chances = distances.pop("by_chance").items()
            row |= {f"{key}_by_chance": value for key, value in chances}
            estimates = {**estimates, **distances}
        for key, estimate in estimates.items():
            row |= with_ends(key, estimate.value, estimate.low, estimate.high)
        if costs is not None and name != BASELINE:
            row["mean_cost"] = costs.mean[name]
        rows[name] = row
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("method")


def classes_frame(
    predictions: Predictions, p: FloatArray, tests: CalibrationTests, tolerance: float
) -> pd.DataFrame:
    """Return frequency, mean probability, recall and precision of each class, and its test.

    ``pvalue`` is adjusted for all classes; ``off`` says what is wrong where calibration is rejected
    and the mean is off by more than the tolerance.
    """
    codes, weight = predictions.codes, predictions.weights
    k, predicted = len(predictions.classes), p.argmax(axis=1)
    counts = np.bincount(codes, weight, minlength=k)
    hits = np.bincount(codes, weight * (predicted == codes), minlength=k)
    is_rejected = tests.class_pvalues < CALIBRATION_TEST_LEVEL
    excess = tests.class_excess
    with np.errstate(invalid="ignore"):
        columns = {
            "n": np.bincount(codes, minlength=k),
            "share": counts / weight.sum(),
            "mean": np.average(p, axis=0, weights=weight),
            "recall": hits / counts,
            "precision": hits / np.bincount(predicted, weight, minlength=k),
            "pvalue": tests.class_pvalues,
            "off": np.select(
                [is_rejected & (excess > tolerance), is_rejected & (excess < -tolerance)],
                ["too low", "too high"],
                "",
            ),
        }
    names = pd.Index([str(label) for label in predictions.classes], name="class")
    return pd.DataFrame(columns, index=names)
