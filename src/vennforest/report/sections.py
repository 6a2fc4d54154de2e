"""What further questions find: promised thresholds, grades, segments, sites, models, updates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import ks_2samp

from vennforest._validation import FloatArray, InputError, IntArray
from vennforest.decisions import threshold_for
from vennforest.decisions.thresholds import Promise
from vennforest.metrics import auc_interval
from vennforest.metrics.variance import share_interval, with_ends
from vennforest.report.comparison import finite_losses
from vennforest.report.measures import BLEND, MAX_RATIO, MethodEstimates, Predictions
from vennforest.report.splits import dates_in
from vennforest.tables.read import CellColumn
from vennforest.tables.schema import infer
from vennforest.validation.grades import (
    MIN_ROWS,
    MISSING,
    grade_names,
    grades,
    grades_in_order,
    population_stability,
)
from vennforest.validation.segments import segments
from vennforest.validation.sites import internal_external
from vennforest.validation.update import TITLES, UpdateRows, by_tests

MAX_UPDATED_CLASSES = 10
"""Maximum number of classes for which updates are compared, since maps of more are slow."""

MAX_SEGMENTS = 15
"""Maximum number of segments in the table, the worst calibrated ones."""

MAX_DESCRIBED_PARTS, MAX_DESCRIBED_PREDICTORS, MAX_DESCRIBED_VALUES = 6, 100, 4
"""Most classes, or sites, by which predictors are described, predictors, and values of each."""

GRADES_OF_GROUPS = (
    "grades must be used without groups: their tests are of independent rows, so give one row of "
    "each group, such as one date of each customer"
)

PROMISES: dict[str, Promise] = {
    "sensitivity": "recall", "specificity": "specificity", "precision": "precision"
}  # fmt: skip
"""Quantities that can be promised, as options and pages call them, and as `threshold_for` does."""


@dataclass(frozen=True, eq=False)
class Section:
    """What one question about the probabilities found.

    Attributes
    ----------
    frame : data frame or None
        A table with a named index; None where there is no answer, for the ``reason`` in numbers.
    numbers : dict
        Figures beside the table.
    rejected : dict of str to list of str
        Names of the rows of the table where calibration is rejected, by what is wrong there.
    """

    frame: pd.DataFrame | None
    numbers: Mapping[str, Any] = field(default_factory=dict)
    rejected: Mapping[str, Sequence[str]] = field(default_factory=dict)


def promised_thresholds(
    predictions: Predictions, estimates: MethodEstimates, targets: Mapping[str, float]
) -> Section:
    """Find a threshold for each target: sensitivity, specificity, precision."""
    j, groups = predictions.positive, predictions.groups
    if (n_classes := len(np.unique(predictions.codes))) != 2 or j is None:
        raise InputError(
            f"{' and '.join(targets)} must be promised for rows of two classes, got {n_classes}: "
            "leave promises out"
        )
    p, y = estimates.p[:, j], predictions.codes == j
    reasons = []
    rows: dict[str, dict[str, float]] = {}
    for name, target in targets.items():
        promise: dict[str, Any] = {PROMISES[name]: target}
        safe, *ends = (
            threshold_for(p, y, **promise, delta=delta, groups=groups, pos_label=True)
            for delta in (0.05, 0.025, 0.975)
        )
        reasons += [safe.reason] if safe.reason else []
        values = [np.nan if t.threshold is None else t.threshold for t in (safe, *ends)]
        row = rows[f"{name} of {100 * target:g}%"] = {"threshold": values[0]}
        if name != "precision":
            row["threshold_low"], row["threshold_high"] = sorted(values[1:])
        flagged = p >= values[0]
        subsets = {"flagged": (flagged, np.ones(len(y), bool)), "sensitivity": (flagged, y)}
        subsets |= {"specificity": (~flagged, ~y), "precision": (y, flagged)}
        for share, (hits, of) in subsets.items():
            if safe.threshold is not None and of.any():
                some = None if groups is None else groups[of]
                low, high = share_interval(hits[of].astype(float), some)
                row |= with_ends(share, hits[of].mean(), low, high)
    frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis("Promise")
    return Section(frame, {"reasons": reasons})


def compared_models(predictions: Predictions, noun: str) -> Section:
    """Compare the report's model, called ``noun``, with the others, by losses and seconds."""
    models = {name or noun: model for name, model in predictions.compared.items()}
    of_rows, loss = finite_losses([model.p for model in models.values()], predictions.codes)
    losses = dict(zip(models, of_rows, strict=True))
    rows: dict[str, dict[str, float]] = {}
    better = []
    for name, model in models.items():
        rows[name] = {"loss": float(losses[name].mean()), "seconds": model.seconds}
        rows[name]["predict_seconds"] = model.predict_seconds
        if name != noun:
            gain = predictions.difference(losses[noun], losses[name])
            low, high = gain.mean - gain.margin, gain.mean + gain.margin
            rows[name] |= with_ends("gain", gain.mean, low, high)
            better += [name] if low > 0 else []
    frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis("Model")
    numbers: dict[str, Any] = {"loss": loss, "better": better}
    if BLEND in better:
        numbers["blend_gain"] = rows[BLEND]["gain"] / rows[noun]["loss"]
        for key in ("seconds", "predict_seconds"):
            numbers[f"blend_times_{key}"] = rows[BLEND][key] / max(rows[noun][key], 1e-9)
    return Section(frame, numbers)


def tested_grades(
    predictions: Predictions, estimates: MethodEstimates, grade: Any, reference: Any = None
) -> Section:
    """Test each grade (n,), and how far the shares of grades are from those of a reference."""
    event = predictions.event(estimates)
    if predictions.label is None:
        raise InputError(f"grades must be used with two classes, got {len(predictions.classes)}")
    if predictions.groups is not None:
        raise InputError(GRADES_OF_GROUPS)
    frame = grades(event.outcome, event.p, grade).rename_axis("Grade")
    by_grade = frame["expected"].loc[grade_names(grade)].to_numpy()
    rejected = {
        f"too {way}": frame.index[frame[f"too_{way}"] <= 0.05].tolist() for way in ("low", "high")
    }
    scores = {"by grade": by_grade, "by probability": event.p}
    numbers: dict[str, Any] = {"separation": _separation(event.outcome, scores)}
    if reference is not None:
        stability = population_stability(grade, reference)
        numbers["stability"] = dict(zip(("index", "pvalue", "limit"), stability, strict=True))
        for key, values in (("share", grade), ("reference", reference)):
            names = grade_names(values)
            frame[key] = [(names == name).mean() for name in frame.index]
    return Section(frame, numbers, rejected)


def grade_history(
    predictions: Predictions,
    estimates: MethodEstimates,
    grade: Any,
    periods: Sequence[tuple[str, IntArray]],
) -> Section:
    """Return the observed rate of each grade in each period, and its long-run average.

    The long-run average is the mean of the rates of the periods, each of which counts once.
    """
    event, names = predictions.event(estimates), grade_names(grade)
    of_grades = {name: names == name for name in grades(event.outcome, event.p, grade).index}
    rows: dict[str, dict[str, float]] = {name: {} for name in of_grades}
    for period, in_period in periods:
        for name, is_grade in of_grades.items():
            of_cell = in_period[is_grade[in_period]]
            if len(of_cell):
                rows[name][period] = float(event.outcome[of_cell].mean())
                rows[name][f"{period}_n"] = len(of_cell)
    parts = [period for period, _ in periods]
    frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis("Grade")
    frame["long_run"] = frame[parts].mean(axis=1)
    frame["expected"] = [float(event.p[is_grade].mean()) for is_grade in of_grades.values()]
    return Section(frame, {"parts": parts})


def overridden_grades(
    predictions: Predictions, estimates: MethodEstimates, grade: pd.Series, final: pd.Series
) -> Section:
    """Compare the grade of the model of each row (n,) with the final one that people gave.

    A grade is higher than another if its rows by the model, or else its final ones, have a higher
    mean probability. Rows without one of the two grades count as kept.
    """
    event, all_grades = predictions.event(estimates), pd.concat([grade, final], ignore_index=True)
    names, p = grade_names(all_grades), pd.Series(event.p)
    of_model, of_final = np.split(names, 2)
    expected = p.groupby(of_model).mean().combine_first(p.groupby(of_final).mean())
    scores = {"by the model's grade": of_model, "by the final grade": of_final}
    scores = {name: expected.loc[of_rows].to_numpy() for name, of_rows in scores.items()}
    step = np.subtract(*reversed(scores.values()))
    step[(of_model == MISSING) | (of_final == MISSING)] = 0
    moves = {"higher": step > 0, "lower": step < 0, "kept": step == 0}
    rows = pd.DataFrame({"n": 1, "observed": event.outcome, **moves})
    by_model, by_final = rows.groupby(of_model), rows.groupby(of_final)
    counts = pd.crosstab(of_model, of_final).add_prefix("Final ")
    frame = by_model.agg({"n": "sum", "observed": "mean", "higher": "mean", "lower": "mean"})
    final_columns = by_final.agg({"n": "sum", "observed": "mean"}).add_prefix("final_")
    order = grades_in_order(all_grades, expected.loc[names].to_numpy())[1]
    frame = frame.join([final_columns, counts], how="outer").reindex(order).rename_axis("Grade")
    parts = [f"Final {name}" for name in order if f"Final {name}" in counts]
    frame[["n", "final_n", *parts]] = frame[["n", "final_n", *parts]].fillna(0).astype(int)
    numbers: dict[str, Any] = {"parts": parts, "separation": _separation(event.outcome, scores)}
    for move, moved in moves.items():
        ends = share_interval(event.outcome[moved], exact=True) if moved.any() else (np.nan,) * 2
        of_move = {"n": int(moved.sum()), "expected": p[moved].mean()}
        of_move |= {"observed": rows["observed"][moved].mean(), "observed_low": ends[0]}
        numbers[move] = {**of_move, "observed_high": ends[1]}
    return Section(frame, numbers)


def _separation(outcome: FloatArray, scores: Mapping[str, Any]) -> dict[str, Any]:
    """Return Gini and KS of the outcomes (n,) by each of the scores (n,)."""
    if not 0 < outcome.mean() < 1:
        return {}
    separation = {}
    for name, score in scores.items():
        area = auc_interval(outcome, score)
        ks = ks_2samp(score[outcome > 0], score[outcome == 0], method="asymp").statistic
        gini = (2 * end - 1 for end in (area.value, area.low, area.high))
        separation[name] = {**with_ends("gini", *gini), "ks": ks}
    return separation


def searched_segments(
    predictions: Predictions, estimates: MethodEstimates, X: pd.DataFrame, seed: int
) -> Section:
    """Search segments of the rows of X for faults."""
    event, groups = predictions.event(estimates), predictions.groups
    dates = {name: dates_in(X[name], str(name)) for name in X if X[name].dtype.kind != "f"}
    X = X.assign(**{str(n): values for n, values in dates.items() if values is not None})
    frame = segments(X, event.outcome, event.p, groups=groups, random_state=seed)
    frame = frame.rename_axis("Segment")
    numbers = {"segments": len(frame), "off": int((frame["pvalue"] <= 0.05).sum())}
    frame = frame[~frame.duplicated(["n", "expected", "observed"])].head(MAX_SEGMENTS)
    off = frame[frame["pvalue"] <= 0.05]
    rejected = {
        "too low": off.index[off["observed"] > off["expected"]].tolist(),
        "too high": off.index[off["observed"] <= off["expected"]].tolist(),
    }
    return Section(frame, {**numbers, "min_rows": MIN_ROWS}, rejected)


def compared_sites(
    predictions: Predictions, estimates: MethodEstimates, site: NDArray[Any]
) -> Section:
    """Measure each site (n,), and pool the measures over sites."""
    groups, names = predictions.groups, np.unique(site)
    pairs = set() if groups is None else {*zip(site.tolist(), groups.tolist(), strict=True)}
    if len(pairs) <= len(names):  # the groups are the sites
        groups = None
    options = predictions.for_metric(estimates)
    frame = internal_external(site=site, groups=groups, **options)
    # Of all intervals together, one misses its true value in 5% of cases.
    level = 1 - 0.05 / (2 * len(names))
    of_sites = internal_external(site=site, groups=groups, level=level, **options).iloc[:-2]
    rejected = {}
    for measure, title in (("observed_expected", "observed over expected"), ("slope", "slope")):
        is_clear = (of_sites[measure + "_low"] > 1) | (of_sites[measure + "_high"] < 1)
        is_far = (of_sites[measure] - 1).abs() > MAX_RATIO
        rejected[title] = of_sites.index[is_clear & is_far].tolist()
    numbers = {"intervals": 2 * len(names), "has_groups": groups is not None}
    return Section(
        frame.rename_axis("Site"), {**numbers, "pooled": frame.attrs["pooled"]}, rejected
    )


def described_predictors(
    predictions: Predictions, X: pd.DataFrame, site: NDArray[Any] | None = None
) -> Section:
    """Describe the columns of X (n, d): missing cells, and values by class and site.

    Of numbers there are median and quartiles, of the most frequent other values their shares among
    the cells that are not missing. Of many columns the first are described, and many classes or
    sites are not told apart.
    """
    classes = predictions.classes
    parts = {"all": np.ones(len(X), bool)}
    if len(classes) <= MAX_DESCRIBED_PARTS:
        parts |= {str(label): predictions.codes == j for j, label in enumerate(classes)}
    if site is not None and len(names := np.unique(site)) <= MAX_DESCRIBED_PARTS:
        parts |= {f"site {name}": site == name for name in names}
    rows: dict[str, dict[str, Any]] = {}
    for name in [*X][:MAX_DESCRIBED_PREDICTORS]:
        cells = CellColumn(X[name].reset_index(drop=True), str(name))
        present = cells.is_present
        row: dict[str, Any] = {"missing": int((~present).sum()), "share": float((~present).mean())}
        rows[str(name)] = row
        if infer(cells, dates=False).kind == "number":
            values = cells.read("number")
            for part, of_part in parts.items():
                if len(numbers := values[of_part & np.isfinite(values)]):
                    row |= with_ends(part, *np.quantile(numbers, (0.5, 0.25, 0.75)).tolist())
            continue
        texts = X[name].astype(str).to_numpy()
        for value in pd.Series(texts[present]).value_counts().index[:MAX_DESCRIBED_VALUES]:
            rows[f"{name} = {value}"] = {
                part: float((texts[of_part & present] == value).mean())
                for part, of_part in parts.items()
                if (of_part & present).any()
            }
    frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis("Predictor")
    return Section(frame, {"parts": list(parts), "predictors": X.shape[1]})


def compared_updates(
    predictions: Predictions, method: str, prior: FloatArray | None, random_state: int
) -> Section | None:
    """Compare updates of a method's probabilities on rows of another population.

    ``prior`` (k,) are the class shares for which the probabilities are calibrated, if known. None
    for many classes.
    """
    if len(predictions.classes) > MAX_UPDATED_CLASSES:
        return None
    p, groups = predictions.estimates[method].p, predictions.groups
    try:
        rows = UpdateRows(predictions.classes, p, predictions.codes, groups, prior)
    except InputError as error:
        return Section(None, {"reason": str(error)})
    frame: Any = rows.gains(random_state)
    frame.loc["keep", ["gain", "gain_low", "gain_high"]] = np.nan
    numbers = {}
    if "auto" in frame.index:
        numbers = dict(zip(("choice", "why"), by_tests(rows.test()), strict=True))
    frame.index = [TITLES[name] for name in frame.index]
    return Section(frame.rename_axis("Update"), numbers)
