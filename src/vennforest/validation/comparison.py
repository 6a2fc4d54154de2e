"""Comparison of the measures of two evaluations, of the same rows or of others."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from vennforest._messages import needed, shown
from vennforest._validation import FloatArray, InputError, check_inside, require
from vennforest.metrics import Estimates, IntervalEstimate
from vennforest.metrics.variance import SCALES, Scale, student_interval, variance_of_sum
from vennforest.monitoring.columns import holm

if TYPE_CHECKING:
    import pandas as pd

FORMAT, N_BLOCKS = 1, 199
"""Version of what is compared, and the number of blocks, prime so that no cycle of rows fits it."""

IDEALS: dict[str, tuple[float, Scale]] = {
    "log_loss": (-np.inf, "identity"),
    "brier": (-np.inf, "identity"),
    "brier_skill": (np.inf, "identity"),
    "auc": (np.inf, "identity"),
    "observed_expected": (0.0, "log"),
    "intercept": (0.0, "identity"),
    "slope": (1.0, "identity"),
}
"""Best value of each measure on the scale on which it is compared, and that scale."""

Measure = tuple[float, float, FloatArray]
"""Value, standard error, and sums of contributions over blocks, on the scale of comparison."""

COMPARISON_LEVEL = 0.05
"""Level of the tests of all measures together."""


def comparable(
    estimates: Estimates, measures: Mapping[str, IntervalEstimate] | None = None
) -> dict[str, Any]:
    """Return the measures of estimates as `compare` needs them: a dict for JSON.

    ``rows`` is a SHA-256 of labels, weights and groups. Contributions of rows or groups to the
    error of each measure are summed over 199 blocks, the i-th one in block i mod 199. ``measures``
    are those of the estimates, if they are known already.
    """
    labels = estimates.labels[estimates.codes]
    digest = hashlib.sha256("\0".join(map(str, labels.tolist())).encode())
    for array in (estimates.weight, estimates.groups):
        digest.update(b"\0" if array is None else np.ascontiguousarray(array).tobytes())
    values = measures
    if values is None:
        values = {**vars(estimates.losses()), "auc": estimates.auc()}
        values |= {} if estimates.positive is None else vars(estimates.line())
    blocks = {}
    for name, (_, scale) in IDEALS.items():
        if name not in values or (of_units := values[name].contributions) is None:
            continue
        forward, _, derivative = SCALES[scale]
        with np.errstate(divide="ignore", invalid="ignore"):
            estimate = np.float64(values[name].value)  # of 0 the logarithm is -inf, not an error
            value, slope = float(forward(estimate)), derivative(estimate)
            of_units = of_units * slope
            error = variance_of_sum(of_units) ** 0.5
        if np.isfinite([value, error]).all():
            sums = np.bincount(np.arange(len(of_units)) % N_BLOCKS, of_units)
            rounded = [float(f"{total:.6g}") for total in sums.tolist()]
            blocks[name] = {"value": value, "standard_error": error, "blocks": rounded}
    return {
        "format": FORMAT,
        "rows": digest.hexdigest(),
        "classes": [str(label) for label in estimates.labels.tolist()],
        "positive": None if estimates.positive is None else estimates.event,
        "units": estimates.units,
        "measures": blocks,
    }


def compare(
    old: Mapping[str, Any], new: Mapping[str, Any], *, level: float = 0.95
) -> tuple[pd.DataFrame, bool]:
    """Compare the measures of two evaluations: two models, or one model on later rows.

    Parameters
    ----------
    old, new : mapping
        What ``vennforest check --json`` or ``report --json`` print, or ``Evaluation.summary()``.
    level : float
        Confidence level of the intervals, in (0, 1).

    Returns
    -------
    frame : data frame
        A row for each measure: ``old``, ``new``, their ``change`` (new minus old, of observed over
        expected new over old) with ``low``, ``high`` and ``pvalue``; ``adjusted``, the p-value of
        the hypothesis that the measure is as good as before, by Holm's method for the number of
        measures; and ``verdict``, "worse" or "better" if it is below 0.05, else "".
    is_paired : bool
        Whether both are of the same rows, so that differences are paired.

    Raises
    ------
    ValueError
        If one is no such output, or they are of other classes or another positive class.

    Notes
    -----
    Errors of measures are sums of contributions of rows or groups (their influence function). The
    variance of a difference of other rows is the sum of two variances. Of the same rows it is that
    of the differences of contributions, summed over 199 blocks. Intervals are Student's with
    the degrees of freedom of the rarer outcome. Observed over expected, intercept and slope
    are worse if they are farther from 1, 0 and 1. Models are taken as they are: the variation of
    training sets is ignored.

    Examples
    --------
    >>> from vennforest.metrics import Estimates
    >>> y, p, q = [0, 0, 1, 1] * 50, [0.1, 0.2, 0.6, 0.7] * 50, [0.1, 0.6, 0.2, 0.7] * 50
    >>> old, new = ({"comparable": comparable(Estimates(y, values))} for values in (p, q))
    >>> frame, is_paired = compare(old, new)
    >>> frame.loc["log_loss", "verdict"], is_paired
    ('worse', True)
    """
    pandas = needed("pandas", "data frames")
    check_inside(level, "level")
    first, second = _read(old, "old"), _read(new, "new")
    for key, name in (("classes", "classes"), ("positive", "positive class")):
        if first[key] != second[key]:
            raise InputError(
                f"new must have the {name} of old, {shown(first[key])}, got {shown(second[key])}"
            )
    is_paired = first["rows"] == second["rows"]
    units = np.array([first["units"], second["units"]])
    rows: dict[str, dict[str, Any]] = {}
    for name, (ideal, scale) in IDEALS.items():
        if name not in first["measures"] or name not in second["measures"]:
            continue
        pair = first["measures"][name], second["measures"][name]
        if is_paired and pair[0][2].shape != pair[1][2].shape:
            raise InputError("new is damaged: blocks must be as many as those of old")
        values, back = np.array([value for value, *_ in pair]), SCALES[scale][1]
        # Of signed values the difference is how much farther the new one is from the best value.
        signs = np.sign(values - ideal)
        middle = ideal if np.isfinite(ideal) else 0.0
        change = _difference(values, np.ones(2), pair, units, is_paired, level)
        loss = _difference(signs * (values - middle), signs, pair, units, is_paired, level)
        rows[name] = {
            "old": back(values[0]),
            "new": back(values[1]),
            "change": back(change.value),
            "low": back(change.low),
            "high": back(change.high),
            "pvalue": change.pvalue,
            "adjusted": loss.pvalue,
            "verdict": "worse" if loss.value > 0 else "better",
        }
    if not rows:
        raise InputError("old and new must have a measure with an interval in common, got none")
    frame: pd.DataFrame = pandas.DataFrame.from_dict(rows, orient="index").rename_axis("measure")
    tested = frame["adjusted"].notna()
    frame.loc[tested, "adjusted"] = holm(frame.loc[tested, "adjusted"].to_numpy())
    frame["verdict"] = frame["verdict"].where(frame["adjusted"] < COMPARISON_LEVEL, "")
    return frame, is_paired


def _difference(
    values: FloatArray,
    signs: FloatArray,
    pair: tuple[Measure, Measure],
    units: FloatArray,
    is_paired: bool,
    level: float,
) -> IntervalEstimate:
    """Return the second of two values minus the first, with Student's interval.

    ``signs`` (2,) are those with which the errors of the measures are errors of the values. Ends
    are NaN if one of the ``units`` (2,), effective numbers of rows or groups, is below 2.
    """
    value = float(values[1] - values[0])
    (_, old_error, old_blocks), (_, new_error, new_blocks) = pair
    if is_paired:
        variance = variance_of_sum(signs[1] * new_blocks - signs[0] * old_blocks)
        n_units = min(*units.tolist(), float(len(old_blocks)))
        if value == 0 and variance == 0:  # of the same probabilities
            return IntervalEstimate(value, value, value, 0.0, 1.0)
    else:
        variances = np.square([old_error, new_error])
        variance = float(variances.sum())
        with np.errstate(divide="ignore", invalid="ignore"):  # Welch's degrees of freedom
            n_units = 1 + variance**2 / float((variances**2 / (units - 1)).sum())
    if min(units) < 2:
        return IntervalEstimate(value)
    return student_interval(value, value, variance**0.5, n_units, level, null=0.0)


def _read(summary: Any, name: str) -> dict[str, Any]:
    """Return what can be compared in a summary; raise an error if there is nothing."""
    part = summary.get("comparable") if isinstance(summary, Mapping) else None
    if not isinstance(part, Mapping):
        raise InputError(f"{name} must be the output of check or report with --json")
    if part.get("format") != FORMAT:
        raise InputError(
            f"{name} must be written by a version that compares as this one, got another: check "
            "its data again"
        )
    try:
        measures = {}
        for key, measure in part["measures"].items():
            blocks = np.asarray(measure["blocks"], dtype=np.float64)
            measures[key] = float(measure["value"]), float(measure["standard_error"]), blocks
        shapes = {blocks.shape for *_, blocks in measures.values()}
        require(len(shapes) < 2, "blocks must be as many for every measure")
        entries = {key: part[key] for key in ("rows", "classes", "positive")}
        return {**entries, "units": float(part["units"]), "measures": measures}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{name} is damaged: {error}") from None
