"""Sections of the page on calibration by grade and by segment."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri
from scipy.stats import ks_2samp

from vennforest._messages import listed
from vennforest._validation import InputError
from vennforest.metrics import auc_interval
from vennforest.report import numbers
from vennforest.report.comparison import Comparison
from vennforest.report.figures import paint_rates
from vennforest.report.section import Section
from vennforest.report.splits import dates_in
from vennforest.report.words import MAX_RATIO
from vennforest.validation._rows import MIN_ROWS
from vennforest.validation.grades import grade_names, grades, population_stability
from vennforest.validation.segments import segments
from vennforest.validation.sites import SCALES, internal_external

if TYPE_CHECKING:
    import pandas as pd

MAX_SEGMENTS = 15
"""Maximum number of segments in the table, the worst calibrated ones."""

GRADES = [
    ("n", "Rows", "count"), ("events", "Events", "count"), ("expected", "Expected", "probability"),
    ("observed", "Observed, 95% interval", "probability"), ("binomial", "Binomial p", "pvalue"),
    ("jeffreys", "Jeffreys p", "pvalue"), ("too_low", "p too low, adjusted", "pvalue"),
    ("too_high", "p too high, adjusted", "pvalue"), ("ks", "KS", "percent"),
    ("share", "Share", "percent"),
    ("reference", "Share in reference", "percent"),
]  # fmt: skip
SEGMENTS = [
    ("n", "Rows", "count"), ("expected", "Expected", "probability"),
    ("observed", "Observed", "probability"), ("pvalue", "p if calibrated, adjusted", "pvalue"),
]  # fmt: skip
SITES = [
    ("n", "Rows", "count"), ("events", "Events", "count"),
    ("observed_expected", "Observed / expected", "short"), ("slope", "Slope", "short"),
    ("auc", "C (AUC)", "number"),
]  # fmt: skip
SITE_MEASURES = {"observed_expected": "observed over expected", "slope": "the slope", "auc": "C"}
as_list = partial(listed, n=5, to_text=str)


def grades_section(comparison: Comparison, grade: Any, reference: Any = None) -> Section:
    """Return the section on grades (n,), beside those of a reference."""
    predictions, event = comparison.predictions, comparison.event()
    if predictions.label is None:
        raise InputError(f"--grades must be used with two classes, got {len(predictions.classes)}")
    if predictions.groups is not None:
        raise InputError(
            "--grades must be used without --groups: its tests are of independent rows, so give "
            "one row of each group, such as one date of each customer"
        )
    frame = grades(event.outcome, event.p, grade).rename_axis("Grade")
    directions = [
        f"too {way} in {as_list(rejected)}"
        for way in ("low", "high")
        if len(rejected := frame.index[frame[f"too_{way}"] <= 0.05])
    ]
    result = " and ".join(directions) or "not off beyond chance in any grade"
    sentences = [
        f"Probabilities of “{predictions.label}” are {result} (exact binomial tests, adjusted for "
        f"{len(frame)} grades by Holm's method, 5% for each direction).",
        "Binomial p and Jeffreys p are of each grade alone, and small where probabilities are too "
        "low. Jeffreys p is the test of the ECB's instructions for validation. Rows are taken to "
        "be independent.",
    ]
    sentences.append(_separation(event.outcome, event.p, frame, grade))
    if len(empty := frame.index[frame["events"] == 0]):
        sentences.append(f"Without an event: {as_list(empty)}. There only too high can be seen.")
    if len(sure := frame.index[frame["expected"].isin([0, 1])]):
        sentences.append(
            f"An expected rate of 0 or 1 ({as_list(sure)}) is refuted by a single row; Jeffreys "
            "p says nothing there."
        )
    if reference is not None:
        psi, pvalue, high = population_stability(grade, reference)
        result = "have changed beyond chance" if pvalue <= 0.05 else "differ as by chance"
        sentences.append(
            f"The population stability index is {psi:.4f}: the shares of the grades {result} "
            f"(p = {numbers.fixed(pvalue, 4)}). Of unchanged shares it would exceed {high:.4f} "
            "in 5% of samples of these sizes."
        )
        for key, values in (("share", grade), ("reference", reference)):
            names = grade_names(values)
            frame[key] = [(names == name).mean() for name in frame.index]
    expected = frame["expected"].tolist()
    paint = partial(
        paint_rates,
        names=frame.index.tolist(),
        values=frame[["observed", "observed_low", "observed_high"]].to_numpy(),
        ylabel=f"Share of “{predictions.label}”",
        expected=expected,
        log=0 < 20 * min(expected) < max(expected),
    )
    caption = "Observed rates with 95% intervals, and expected rates, by grade"
    finding = f"grades: {result}" if directions else ""
    return Section(
        "Grades", "grades", sentences, frame, GRADES, paint, caption=caption, finding=finding
    )


def _separation(outcome: Any, p: Any, frame: pd.DataFrame, grade: Any) -> str:
    """Return a sentence on Gini and KS, by the expected rates of grades and by probability."""
    scores = {"by grade": frame["expected"].loc[grade_names(grade)].to_numpy(), "by probability": p}
    parts = []
    for name, score in scores.items():
        area = auc_interval(outcome, score)
        gini = [f"{numbers.fixed(200 * end - 100, 1)}%" for end in (area.auc, area.low, area.high)]
        ks = ks_2samp(score[outcome > 0], score[outcome == 0], method="asymp").statistic
        parts.append(
            f"{name} Gini is {gini[0]} (95% interval {gini[1]} to {gini[2]}) and KS "
            f"{numbers.percent(ks)}"
        )
    return (
        f"Separation: {', '.join(parts)}. Gini is 2 AUC − 1, and KS the largest distance of the "
        "shares of events and of other rows up to a grade, or a probability."
    )


def segments_section(comparison: Comparison, X: pd.DataFrame, seed: int) -> Section:
    """Return the section on segments of the rows of X."""
    predictions, event = comparison.predictions, comparison.event()
    groups = predictions.groups
    dates = {name: dates_in(X[name], str(name)) for name in X if X[name].dtype.kind != "f"}
    X = X.assign(**{str(n): values for n, values in dates.items() if values is not None})
    frame = segments(X, event.outcome, event.p, groups=groups, random_state=seed)
    frame = frame.rename_axis("Segment")
    worst, n_off = frame.iloc[0], int((frame["pvalue"] <= 0.05).sum())
    label = "the predicted label" if predictions.label is None else f"“{predictions.label}”"
    result = f"off beyond chance in {n_off or 'none'} of {len(frame):,} segments"
    assumption = (
        "Labels were drawn anew from the probabilities: with right probabilities of independent "
        "rows, at most 5% of tables have any p below 5%."
        if groups is None
        else "Labels were drawn anew, with the dependence observed within groups: with right "
        "probabilities and many groups, about 5% of tables have any p below 5%."
    )
    sentences = [
        f"Probabilities of {label} are {result}. The worst is “{frame.index[0]}”: "
        f"{numbers.percent(worst['expected'])} expected, {numbers.percent(worst['observed'])} "
        f"observed in {numbers.rows(int(worst['n']))} (p = {numbers.fixed(worst['pvalue'], 3)}).",
        f"Segments of one and two columns with {MIN_ROWS} rows or more were searched, and p-values "
        f"are adjusted for the whole search. {assumption} Segments overlap; of those with the same "
        "rows one is listed.",
    ]
    frame = frame[~frame.duplicated(["n", "expected", "observed"])].head(MAX_SEGMENTS)
    finding = f"segments: {result}" if n_off else ""
    return Section("Segments", "segments", sentences, frame, SEGMENTS, finding=finding)


def sites_section(comparison: Comparison, site: Any) -> Section:
    """Return the section on sites (n,), each of which was predicted by a model of the others."""
    predictions = comparison.predictions
    groups, names = predictions.groups, np.unique(site)
    pairs = set() if groups is None else {*zip(site.tolist(), groups.tolist(), strict=True)}
    if len(pairs) <= len(names):  # the groups are the sites
        groups = None
    options = predictions.for_metric(predictions.estimates[comparison.method])
    frame = internal_external(site=site, groups=groups, **options).rename_axis("Site")
    of_sites, clauses, ranges = frame.iloc[:-2], [], []
    quantile = ndtri(1 - 0.025 / (2 * len(names))) / ndtri(0.975)
    for measure, (scale, _) in SCALES.items():
        values, low, high = (of_sites[measure + end] for end in ("", "_low", "_high"))
        ends = (numbers.fixed(value, 2) for value in (values.min(), values.max()))
        title = SITE_MEASURES[measure]
        ranges.append(f"{title} from {' to '.join(ends)}")
        if measure != "auc":
            with np.errstate(divide="ignore", invalid="ignore"):
                half = (scale(high) - scale(low)) / 2
                is_clear = (scale(values) - scale(1.0)).abs() > quantile * half
            off = values.index[is_clear & ((values - 1).abs() > MAX_RATIO)]
            clauses += [f"{title} of {as_list(off)}"] if len(off) else []
    off_sites = " and ".join(clauses)
    result = f"Off beyond chance: {off_sites}" if clauses else "No site is off beyond chance"
    dependence = "rows of a site" if groups is None else "groups"
    sentences = [
        f"Each site was predicted by a model of the others (internal-external validation): "
        f"{', '.join(ranges)}. {result} (more than {MAX_RATIO:g} from 1; 5%, adjusted for "
        f"{2 * len(names)} intervals).",
        f"Intervals treat {dependence} as independent. The pooled line is the mean of a "
        "meta-analysis with random effects (Debray et al. 2017), and the last one the range in "
        "which 95% of other sites are expected: of few sites it is wide.",
    ]
    finding = f"sites: {off_sites} off beyond chance" if clauses else ""
    return Section("Sites", "sites", sentences, frame, SITES, finding=finding)
