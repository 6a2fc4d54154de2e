"""Sections of the page on promised thresholds, grades, segments, sites and another population."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.special import ndtri
from scipy.stats import ks_2samp

from vennforest._messages import as_sentence, listed
from vennforest._validation import FloatArray, InputError
from vennforest.decisions import threshold_for
from vennforest.decisions.thresholds import Promise
from vennforest.metrics import auc_interval
from vennforest.metrics.intervals import share_interval
from vennforest.report import numbers
from vennforest.report.comparison import Comparison
from vennforest.report.figures import rates
from vennforest.report.measures import Predictions
from vennforest.report.section import Section
from vennforest.report.splits import dates_in
from vennforest.report.words import MAX_RATIO, line_findings
from vennforest.validation._rows import MIN_ROWS
from vennforest.validation.grades import grade_names, grades, population_stability
from vennforest.validation.segments import segments
from vennforest.validation.sites import SCALES, internal_external
from vennforest.validation.update import TITLES, UpdateRows, by_tests

if TYPE_CHECKING:
    from vennforest.report.evaluation import Evaluation

MAX_UPDATED_CLASSES = 10
"""Maximum number of classes for which updates are compared, since maps of more are slow."""

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
GRADES_OF_GROUPS = (
    "--grades must be used without --groups: its tests are of independent rows, so give one row of "
    "each group, such as one date of each customer"
)
as_list = partial(listed, n=5, to_text=str)


PROMISES: dict[str, Promise] = {
    "sensitivity": "recall", "specificity": "specificity", "precision": "precision"
}  # fmt: skip
"""Quantities that can be promised, as options and pages call them, and as `threshold_for` does."""


def promised_thresholds(c: Comparison, targets: Mapping[str, float]) -> Section:
    """Return the section on a threshold for each target: sensitivity, specificity, precision."""
    predictions, j, groups = c.predictions, c.predictions.positive, c.predictions.groups
    if j is None:
        raise InputError("promised thresholds need two classes, got more: leave the promises out")
    p, y = predictions.estimates[c.method].p[:, j], predictions.codes == j
    unit = "rows" if groups is None else "groups, one row of each"
    sentences = [
        f"Rows with a probability of “{predictions.label}” from the threshold on are flagged. Over "
        f"the drawing of these {unit}, each promise fails with probability 5% at most. Intervals "
        "of thresholds are of those whose sensitivity or specificity is exactly the target."
    ]
    rows: dict[str, dict[str, float]] = {}
    for name, target in targets.items():
        promise: dict[str, Any] = {PROMISES[name]: target}
        safe, *ends = (
            threshold_for(p, y, **promise, delta=delta, groups=groups, pos_label=True)
            for delta in (0.05, 0.025, 0.975)
        )
        sentences += [as_sentence(safe.reason)] if safe.reason else []
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
                row[share], interval = hits[of].mean(), share_interval(hits[of].astype(float), some)
                row[f"{share}_low"], row[f"{share}_high"] = interval
    frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis("Promise")
    thresholds = frame["threshold"].dropna().map(numbers.probability)
    texts = [f"{text} for a {promise}" for promise, text in thresholds.items()]
    sentences.insert(0, f"Thresholds that keep the promises: {as_list(texts) or 'none'}.")
    columns = [("threshold", "Threshold", "probability")]
    columns += [(share, share.capitalize(), "percent") for share in subsets]
    return Section("Promised thresholds", "promises", sentences, frame, columns)


def grades_section(comparison: Comparison, grade: Any, reference: Any = None) -> Section:
    """Return the section on grades (n,), beside those of a reference."""
    predictions, event = comparison.predictions, comparison.event()
    if predictions.label is None:
        raise InputError(f"--grades must be used with two classes, got {len(predictions.classes)}")
    if predictions.groups is not None:
        raise InputError(GRADES_OF_GROUPS)
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
        sentences.append(_stability(grade, reference))
        for key, values in (("share", grade), ("reference", reference)):
            names = grade_names(values)
            frame[key] = [(names == name).mean() for name in frame.index]
    expected = frame["expected"].tolist()
    picture = rates(
        frame.index.tolist(),
        frame[["observed", "observed_low", "observed_high"]].to_numpy(),
        f"Share of “{predictions.label}”",
        "Observed rates with 95% intervals, and expected rates, by grade",
        expected,
        log=0 < 20 * min(expected) < max(expected),
    )
    finding = f"grades: {result}" if directions else ""
    return Section("Grades", "grades", sentences, frame, GRADES, picture, finding=finding)


def _stability(grade: Any, reference: Any) -> str:
    """Return a sentence on the change of the shares of grades since a reference."""
    psi, pvalue, high = population_stability(grade, reference)
    change = "have changed beyond chance" if pvalue <= 0.05 else "differ as by chance"
    return (
        f"The population stability index is {psi:.4f}: the shares of the grades {change} "
        f"(p = {numbers.fixed(pvalue, 4)}). Of unchanged shares it would exceed {high:.4f} "
        "in 5% of samples of these sizes."
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


def with_updates(evaluation: Evaluation, is_asked: bool = False) -> Evaluation:
    """Return an evaluation with the section on updates of its probabilities.

    It is added once, if it is asked for or calibration is rejected, of all rows or of a part.
    """
    comparison, settings = evaluation.comparison, evaluation.settings
    predictions, best = comparison.predictions, comparison.best
    is_off = best.is_rejected or best.impossible or line_findings(comparison)
    is_off = is_off or any(section.finding for section in evaluation.sections)
    is_there = any(section.anchor == "updates" for section in evaluation.sections)
    if is_there or not (is_asked or is_off) or len(predictions.classes) > MAX_UPDATED_CLASSES:
        return evaluation
    is_model = evaluation.origin.kind == "model"
    method = [*predictions.estimates][-1] if is_model else comparison.method
    prior = settings.get("prior")
    shares = None if prior is None else np.array([*prior.values()])
    section = _updates(predictions, method, shares, settings["random_state"])
    return evaluation.with_sections([section])


def _updates(
    predictions: Predictions, method: str, prior: FloatArray | None, random_state: int
) -> Section:
    """Return the section on updates of a method's probabilities.

    ``prior`` (k,) are the class shares for which the probabilities are calibrated, if known.
    """
    p, groups = predictions.estimates[method].p, predictions.groups
    try:
        rows = UpdateRows(predictions.classes, p, predictions.codes, groups, prior)
    except InputError as error:
        sentence = f"No updates are compared: {error}."
        return Section("Another population", "updates", [sentence])
    frame: Any = rows.gains(random_state)
    frame.loc["keep", ["gain", "gain_low", "gain_high"]] = np.nan
    together = ", with groups kept together" if groups is not None else ""
    sentences = [
        "Are these rows of another place or time than those that the probabilities were made for? "
        "Then they may be kept, or updated with these rows. The table has the log loss of rows "
        f"that the update was not fitted to{together}."
    ]
    choice = ""
    if "auto" in frame.index:
        choice, reason = by_tests(rows.test())
        sentences.append(
            f"Tests choose: {TITLES[choice].lower()}. {reason} vennforest calibrate with --update "
            "auto writes the update."
        )
    columns = [
        ("log_loss", "Log loss", "number"),
        ("gain", "Gain over keeping, 95% interval", "number"),
    ]
    frame.index = [TITLES[name] for name in frame.index]
    frame = frame.rename_axis("Update")
    title = "Another population"
    return Section(title, "updates", sentences, frame, columns, choice=choice)
