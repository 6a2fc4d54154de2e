"""Everything that is measured of the predictions: one comparison of all methods."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from vennforest._validation import FloatArray
from vennforest.decisions import CostMatrix
from vennforest.metrics import AucInterval, auc_interval, calibration_line
from vennforest.report.event import RARE_SHARE, Event, event_options, levels
from vennforest.report.measures import (
    BASELINE,
    RAW,
    Choice,
    Difference,
    Measures,
    MethodEstimates,
    Predictions,
    choose,
    difference_over_rows,
    log_losses,
    measure,
    squared_losses,
)

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Costs:
    """What decisions cost: the matrix, means per row of each method, and the best constant one.

    ``saved`` is the cost of the best constant decision minus that of the recommended method's;
    ``n_decided`` is how many rows get each decision by the recommended method, (d,).
    """

    matrix: CostMatrix
    mean: dict[str, float]
    expected: dict[str, float]
    of_constants: FloatArray
    saved: Difference
    n_decided: FloatArray

    @property
    def best_constant(self) -> str:
        """The decision that costs least when it is made for every row."""
        return self.matrix.decisions[int(self.of_constants.argmin())]


@dataclass(frozen=True, eq=False)
class Comparison:
    """The measures of all methods, and how the recommended one does.

    Attributes
    ----------
    predictions : Predictions
    positive : int or None
        Index of the positive class of two; None with more.
    tolerance : float
        Miscalibration that does not matter, in (0, 1).
    baseline, measures : Measures, dict of str to Measures
        Of the class frequencies, and by method.
    choice : Choice
    auc : AucInterval
        Of the recommended method.
    gain : Difference
        The baseline's loss minus the recommended method's: log loss, or Brier score where that is
        infinite.
    costs : Costs or None
    """

    predictions: Predictions
    positive: int | None
    tolerance: float
    baseline: Measures
    measures: dict[str, Measures]
    choice: Choice
    auc: AucInterval
    gain: Difference
    costs: Costs | None = None

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.predictions.codes)

    @property
    def method(self) -> str:
        """The recommended method."""
        return self.choice.method

    @property
    def best(self) -> Measures:
        """Measures of the recommended method."""
        return self.measures[self.choice.method]

    @property
    def label(self) -> Any:
        """The positive class of two; None with more."""
        return None if self.positive is None else self.predictions.classes[self.positive]

    @property
    def share(self) -> float | None:
        """The share of the positive class; None with more than two classes."""
        if self.positive is None:
            return None
        return float((self.predictions.codes == self.positive).mean())

    @property
    def is_rare(self) -> bool:
        """Whether the positive class is so rare that even steps of probability show nothing."""
        return self.share is not None and self.share < RARE_SHARE

    @property
    def raw_and_best(self) -> list[str]:
        """The raw model, if it is among the methods, and the recommended method."""
        return [m for m in dict.fromkeys([RAW, self.method]) if m in self.measures]

    def event(self, method: str | None = None) -> Event:
        """Return the event by one method, by default the recommended one."""
        estimates = self.predictions.estimates[method or self.method]
        return Event.of(estimates, self.predictions.codes, self.positive)

    def levels(self) -> pd.DataFrame:
        """Return what the recommended method expected and what was observed, by probability."""
        return levels(self.event(), self.is_rare, self.predictions.groups)


def compare(
    predictions: Predictions,
    positive: int | None,
    costs: CostMatrix | None,
    tolerance: float,
    seed: int,
) -> Comparison:
    """Measure all methods, choose one, and measure that one more closely."""
    codes, classes, groups = predictions.codes, predictions.classes, predictions.groups
    shares = predictions.baseline()
    options = (codes, classes, positive, seed)
    baseline = measure(shares, *options, None, groups)
    measures = {
        method: measure(estimates, *options, baseline, groups)
        for method, estimates in predictions.estimates.items()
    }
    choice = choose(measures, predictions, tolerance)
    best = predictions.estimates[choice.method]
    # The log loss tells rare classes apart, which hardly move the Brier score.
    is_finite = measures[choice.method].impossible == 0
    losses = log_losses if is_finite else squared_losses
    gain = difference_over_rows(losses(shares.p, codes), losses(best.p, codes), groups)
    return Comparison(
        predictions=predictions,
        positive=positive,
        tolerance=tolerance,
        baseline=baseline,
        measures=measures,
        choice=choice,
        auc=auc_interval(
            classes[codes],
            best.p,
            groups=groups,
            classes=classes,
            pos_label=None if positive is None else classes[positive],
        ),
        gain=gain if is_finite else replace(gain, loss="Brier score"),
        costs=None if costs is None else _costs(costs, predictions, best),
    )


def _costs(matrix: CostMatrix, predictions: Predictions, best: MethodEstimates) -> Costs:
    codes = predictions.codes
    estimates = predictions.estimates
    paid = {m: matrix.paid(matrix.decide(e.p), codes) for m, e in estimates.items()}
    decided = matrix.decide(best.p)
    of_rows = matrix.costs[codes]
    of_constants = of_rows.mean(axis=0)
    constant = of_rows[:, int(of_constants.argmin())]
    return Costs(
        matrix,
        {method: float(costs.mean()) for method, costs in paid.items()},
        {m: float((e.p @ matrix.costs).min(axis=1).mean()) for m, e in estimates.items()},
        of_constants,
        difference_over_rows(constant, matrix.paid(decided, codes), predictions.groups),
        np.bincount(decided, minlength=len(matrix.decisions)).astype(np.float64),
    )


def methods_frame(comparison: Comparison, names: dict[str, str]) -> pd.DataFrame:
    """Return the measures: a row for each method, then the baseline."""
    import pandas as pd

    predictions, costs = comparison.predictions, comparison.costs
    rows = {}
    for method, measures in {**comparison.measures, BASELINE: comparison.baseline}.items():
        row = {"name": names.get(method, method), **asdict(measures)}
        row["miscalibration"] = measures.miscalibration
        if method in comparison.choice.against:
            gap = comparison.choice.against[method]
            row |= {"compared_by": gap.loss, "difference": gap.mean, "margin": gap.margin}
        if comparison.positive is not None and method != BASELINE:
            options = event_options(predictions, method, comparison.positive)
            with np.errstate(invalid="ignore"):  # probabilities that separate the classes
                line = calibration_line(groups=predictions.groups, **options)
            for name in ("observed_expected", "intercept", "slope"):
                estimate = getattr(line, name)
                row |= {name: estimate.value, f"{name}_low": estimate.low}
                row[f"{name}_high"] = estimate.high
        if costs is not None and method != BASELINE:
            row |= {"mean_cost": costs.mean[method], "expected_cost": costs.expected[method]}
        rows[method] = row
    return pd.DataFrame.from_dict(rows, orient="index")


def classes_frame(comparison: Comparison) -> pd.DataFrame:
    """Return frequency, mean probability, recall and precision of each class, by method.

    The methods are the raw model and the recommended one; indexed by class.
    """
    import pandas as pd

    predictions = comparison.predictions
    codes, n_classes = predictions.codes, len(predictions.classes)
    counts = np.bincount(codes, minlength=n_classes)
    columns: dict[str, Any] = {"n": counts, "share": counts / len(codes)}
    for method in comparison.raw_and_best:
        p = predictions.estimates[method].p
        predicted = p.argmax(axis=1)
        hits = np.bincount(codes[predicted == codes], minlength=n_classes)
        n_predicted = np.bincount(predicted, minlength=n_classes)
        with np.errstate(invalid="ignore"):
            columns |= {
                f"mean_{method}": p.mean(axis=0),
                f"recall_{method}": hits / counts,
                f"precision_{method}": hits / n_predicted,
            }
    return pd.DataFrame(columns, index=[str(label) for label in predictions.classes])
