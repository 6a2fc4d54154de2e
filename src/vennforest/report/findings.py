"""What an evaluation found: one frozen object of data frames and numbers.

Its JSON is this object; verdict, page, text for a paper and terminal only format it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from vennforest._messages import not_one_of, shown
from vennforest._validation import (
    InputError,
    check_inside,
    check_option,
    check_order,
    is_arrow,
    is_frame,
    numbers_of,
    refuse_masked,
)
from vennforest.decisions import CostMatrix
from vennforest.metrics import IntervalEstimate
from vennforest.metrics.losses import Difference
from vennforest.metrics.monotonicity import FallingFrequency, falling_frequency
from vennforest.metrics.variance import effective_rows
from vennforest.report import breakdown, comparison, sections
from vennforest.report.comparison import Costs
from vennforest.report.measures import (
    BASELINE,
    RAW,
    Judgement,
    Measures,
    Predictions,
    measure,
    rows_for_precision,
)
from vennforest.report.sections import Section
from vennforest.tables.schema import as_pandas
from vennforest.validation.comparison import comparable
from vennforest.validation.grades import grade_names

DEFAULT_TOLERANCE = 0.02

MAX_SHOWN_METHODS = 4
"""Maximum number of methods in the picture of calibration."""

POWER = (1.96 + 0.84) / 1.96
"""Size of an effect that is detected with power 80%, in half-widths of a 95% interval."""

MIN_COLLECTED = 50
"""Fewest rows that are advised: intervals of fewer are too rough to say how many it takes."""

MAX_GRADE_PERIODS = 12
"""Maximum number of periods of a table of grades."""

WEAK_RANKING = 0.1
"""Smallest excess of the AUC over 0.5 that a table should be able to detect."""

UNWEIGHTED = (
    "must be used without weights and without a horizon, since rows count as one observation each"
)

DEFINITIONS = Path(__file__).with_name("templates") / "definitions.json"
"""Definitions of the numbers in the JSON."""


@dataclass(frozen=True)
class Origin:
    """Origin of the predictions, and the terms that the page uses.

    ``kind`` is cross-validation, folds in order of time, a model of the other sites for each site,
    probabilities as given, or a fitted model.
    ``target`` is the label, ``noun`` a word for the models, such as "forest", and ``names`` are the
    titles of methods. ``calibrate_on`` is that of models trained here. ``suspects`` are columns to
    check first: ``"leak"`` (alone it predicts the label almost without error) or ``"id"`` (it looks
    like an ID that several rows share). ``trained_on_rows``: the model seems to know these rows.
    """

    kind: Literal["folds", "time", "sites", "given", "model"]
    target: str
    noun: str
    names: Mapping[str, str]
    calibrate_on: str = ""
    suspects: Mapping[str, str] = field(default_factory=dict)
    trained_on_rows: bool = False

    @property
    def is_trained_here(self) -> bool:
        """Whether the models were trained for this evaluation."""
        return self.kind in ("folds", "time", "sites")

    def in_sentence(self, method: str) -> str:
        """Return the name of a method within a sentence."""
        return f"the raw {self.noun}" if method == RAW else self.names[method]


@dataclass(frozen=True, eq=False, kw_only=True)
class Question:
    """What is asked of predictions: the arguments that `evaluate` and `check` share.

    ``site``, ``grades``, ``final_grades``, ``time`` and the columns of ``by`` are (n,);
    ``segments`` and ``predictors``, the columns of the model, are data frames of n rows.
    """

    name: str
    positive: Any = None
    by: Mapping[str, ArrayLike] | None = None
    costs: Any = None
    tolerance: float | None = None
    thresholds: Sequence[float] | None = None
    random_state: int = 0
    site: ArrayLike | None = None
    grades: ArrayLike | None = None
    final_grades: ArrayLike | None = None
    reference: ArrayLike | None = None
    time: ArrayLike | None = None
    segments: Any = None
    promises: Mapping[str, float] | None = None
    updates: bool = False
    predictors: pd.DataFrame | None = None

    def check(self, classes: NDArray[Any], n: int, rows: Any, **aligned: Any) -> None:
        """Raise an error unless ``positive`` is one of two classes, and the others are as above.

        Warn if they, or others that are ``aligned``, have the index of ``rows`` in another order.
        """
        labels = [str(label) for label in classes]
        if self.positive is not None and str(self.positive) not in labels:
            raise not_one_of("positive", labels, str(self.positive))
        if self.positive is not None and len(labels) > 2:
            raise InputError(
                f"positive must be given for two classes only, got {len(labels)} classes"
            )
        if self.tolerance is not None:
            check_inside(self.tolerance, "tolerance")
        if self.thresholds is not None:
            rule, at = "thresholds must be a list of numbers in (0, 1)", self.thresholds
            refuse_masked(at, "thresholds")
            cuts = numbers_of(at, rule)
            if cuts.ndim != 1 or not ((cuts > 0) & (cuts < 1)).all():
                raise InputError(f"{rule}, got {shown(at)}")
            if len(labels) > 2:
                raise InputError(f"thresholds must be of two classes, got {len(labels)} classes")
        for name, values in (("by", self.by), ("promises", self.promises)):
            if not isinstance(values, Mapping | None):
                rule = "a dict, such as {'site': values}" if name == "by" else "a dict of targets"
                raise InputError(f"{name} must be {rule}, got {shown(values)}")
        for name, target in (self.promises or {}).items():
            check_option(name, sections.PROMISES, "promises")
            check_inside(target, name)
        for name in ("final_grades", "reference", "time"):
            if getattr(self, name) is not None and self.grades is None:
                raise InputError(f"{name} must be given with grades, got no grades")
        X = self.segments
        if X is not None and not ((is_frame(X) or is_arrow(X)) and len(X) == n):
            raise InputError(f"segments must be a data frame of {n} rows, got {shown(X)}")
        names = ("site", "grades", "final_grades", "time")
        columns = [(name, getattr(self, name)) for name in names if getattr(self, name) is not None]
        columns += [(f"by of {name!r}", values) for name, values in (self.by or {}).items()]
        for name, values in columns:
            if (shape := np.shape(values)) != (n,):
                raise InputError(f"{name} must have shape ({n},), got {shape}")
        check_order(rows, **{**dict(columns), "segments": X, **aligned})

    def with_positive(self, predictions: Predictions) -> Predictions:
        """Return predictions with the positive one of two classes, by default the rarer one."""
        if len(predictions.classes) != 2:
            return predictions
        counts = np.bincount(predictions.codes, minlength=2)
        positive = 1 if counts[0] == counts[1] else int(counts.argmin())
        if self.positive is not None:
            labels = [str(label) for label in predictions.classes]
            positive = labels.index(str(self.positive))
        return replace(predictions, positive=positive)


@dataclass(frozen=True, eq=False, kw_only=True)
class Findings:
    """The numbers of an evaluation.

    Attributes
    ----------
    name, target, rows, groups, folds, positive : str, str, int, int or None, int, label or None
        Data set, label, numbers of rows, groups and folds, and the positive class of two.
    origin, tests : Origin, str
        Where the predictions are from, and the names of the tests of calibration.
    tolerance : float
        Miscalibration that does not matter.
    method, rule : str, str
        The recommended method, and the rule that chose it, "" if there was no choice.
    methods, measures, baseline : data frame, dict of str to Measures, Measures
        Measures of each method with their intervals and of the base rate; those without intervals.
    auc, gain, lines_off : IntervalEstimate, Difference, dict of str to IntervalEstimate
        Of the recommended method: its ranking, how much lower its loss is than that of the base
        rate, and slope and observed over expected where they are off beyond chance.
    differences : dict of str to Difference
        The loss of each other method minus that of the recommended one.
    levels, classes, thresholds, subgroups : data frame
        Expected and observed by level of probability; share, mean probability, recall, precision
        and tests of each class; effects of flagging rows (two classes); parts of the rows.
    decision : dict or None
        The effects of flagging at the threshold ``at`` the costs, or at the rate.
    costs : Costs or None
        Costs of decisions.
    half_width, rows_needed, falls : float, dict, FallingFrequency or None
        Half the median width of confidence intervals, the numbers of rows that narrow intervals
        take, and where the frequency falls as the score rises.
    sections : dict of str to Section
        What further questions found, by the names of ``SECTIONS``.
    comparable : dict
        Errors of the recommended method's measures, as `vennforest.validation.compare` needs them.
    settings, notes : dict, list of str
        Settings of the run, and sentences on what was left out or done differently.
    """

    name: str
    target: str
    rows: int
    groups: int | None
    folds: int
    positive: Any
    origin: Origin
    tests: str
    tolerance: float
    method: str
    rule: str
    methods: pd.DataFrame
    measures: Mapping[str, Measures]
    baseline: Measures
    auc: IntervalEstimate
    gain: Difference
    skill: IntervalEstimate
    lines_off: Mapping[str, IntervalEstimate]
    differences: Mapping[str, Difference]
    levels: pd.DataFrame
    level_edges: Sequence[float]
    classes: pd.DataFrame
    thresholds: pd.DataFrame | None
    decision: Mapping[str, Any] | None
    subgroups: pd.DataFrame | None
    costs: Costs | None
    half_width: float
    rows_needed: Mapping[str, float]
    falls: FallingFrequency | None
    sections: Mapping[str, Section]
    comparable: Mapping[str, Any]
    settings: Mapping[str, Any]
    notes: Sequence[str]

    @property
    def best(self) -> Measures:
        """Measures of the recommended method."""
        return self.measures[self.method]

    @property
    def share(self) -> float | None:
        """The share of the positive class; None with more than two classes."""
        return None if self.positive is None else self.best.observed

    @property
    def event(self) -> str:
        """The event that is looked at, in sentences."""
        return "right labels" if self.positive is None else f"“{self.positive}”"

    @property
    def has_auc(self) -> bool:
        """Whether there are two classes to rank."""
        return bool(np.isfinite(self.auc.value))

    @property
    def has_raw(self) -> bool:
        """Whether the raw model is compared with the recommended method."""
        return RAW in self.measures and self.method != RAW

    @property
    def judgement(self) -> Judgement:
        """How the method's error compares with the tolerance and chance."""
        return self.best.judgement(self.tolerance)

    @property
    def is_off(self) -> bool:
        """Whether the probabilities are off over all rows, or of a class."""
        is_off = self.best.impossible or self.judgement == "off" or self.lines_off
        return bool(is_off) or "classes" in self.rejected

    @property
    def shown_methods(self) -> list[str]:
        """The methods of the first picture, the recommended one first."""
        compared = self.measures if self.origin.kind == "given" else [RAW]
        methods = dict.fromkeys([self.method, *compared])
        return [m for m in methods if m in self.measures][:MAX_SHOWN_METHODS]

    @property
    def worst_level(self) -> pd.Series:
        """The level that contributes most to the calibration error."""
        gap = self.levels["n"] * (self.levels["expected"] - self.levels["observed"]).abs()
        return self.levels.iloc[int(gap.to_numpy().argmax())]

    @property
    def gain_ends(self) -> tuple[float, float]:
        """Ends of the interval of the relative gain over the base rate, those of the skill.

        Where the skill has none, they are those of the difference over the loss of the base rate.
        """
        if np.isfinite(self.skill.low):
            return self.skill.low, self.skill.high
        gain, loss = self.gain, self.baseline.loss(self.gain.loss)
        return (gain.mean - gain.margin) / loss, (gain.mean + gain.margin) / loss

    def suspect(self, reason: str) -> str:
        """Return the first column that is suspected for a reason, "" if there is none."""
        suspects = self.origin.suspects.items()
        return next((column for column, text in suspects if text == reason), "")

    @property
    def rows_to_collect(self) -> dict[str, float]:
        """Rows that would show what these do not, with power 80%; NaN where that is not known.

        By what they would show: the ranking, the gain over the base rate, what decisions save, and
        an error of twice the tolerance.
        """
        half = (self.auc.high - self.auc.low) / 2
        effects = {
            "ranking": Difference(max(self.auc.value - 0.5, WEAK_RANKING / 2), half),
            "gain": self.gain,
        } | ({} if self.costs is None else {"costs": self.costs.saved})
        numbers = dict.fromkeys(effects, float("nan"))
        for name, effect in effects.items():
            if np.isfinite(effect.margin) and effect.mean > 0:
                ratio = POWER * effect.margin / effect.mean
                numbers[name] = max(MIN_COLLECTED, self.rows * max(2.0, ratio**2))
        ratio = (self.best.detectable / (2 * self.tolerance)) ** 2
        factor = max(2.0 if self.judgement == "unclear" else 1.2, ratio)
        return numbers | {"calibration": self.rows * factor}

    @property
    def rejected(self) -> dict[str, dict[str, list[str]]]:
        """Names of classes and parts where calibration is rejected, by what is wrong there.

        The keys are "classes", "by COLUMN", and the names of sections.
        """
        parts: dict[str, Any] = {}
        if self.positive is None:
            parts["classes"] = breakdown.rejected_parts(self.classes["off"])
        if self.subgroups is not None:
            for column in self.subgroups.index.unique("column"):
                off = self.subgroups.xs(column)["off"]
                parts[f"by {column}"] = breakdown.rejected_parts(off)
        parts |= {name: section.rejected for name, section in self.sections.items()}
        parts = {
            name: {way: list(names) for way, names in ways.items() if names}
            for name, ways in parts.items()
        }
        return {name: ways for name, ways in parts.items() if ways}

    @property
    def choice(self) -> str:
        """The update of the probabilities that tests choose, "" where there was no test."""
        updates = self.sections.get("updates")
        return "" if updates is None else str(updates.numbers.get("choice", ""))

    def summary(self) -> dict[str, Any]:
        """Return the findings as a dict for JSON, with None for inf and NaN."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        del values["measures"], values["baseline"]  # in the frame of the methods
        values["positive"] = None if self.positive is None else str(self.positive)
        values |= {"rejected": self.rejected, "rows_to_collect": self.rows_to_collect}
        values["definitions"] = json.loads(DEFINITIONS.read_text("utf-8"))
        summary: dict[str, Any] = for_json({k: v for k, v in values.items() if v is not None})
        return summary | {"positive": values["positive"], "groups": self.groups}


def for_json(value: Any) -> Any:
    """Convert a value for JSON, with None in place of infinite numbers and NaN.

    Frames of methods and classes are dicts by name, other frames lists of records.
    """
    if isinstance(value, pd.DataFrame):
        is_by_name = value.index.name in ("method", "class")
        value = value.to_dict("index") if is_by_name else value.reset_index().to_dict("records")
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if is_dataclass(value) and not isinstance(value, type):
        value = {f.name: getattr(value, f.name) for f in fields(value) if f.repr}  # none by row
    if isinstance(value, Mapping):
        return {str(key): for_json(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [for_json(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value


def find(
    predictions: Predictions,
    origin: Origin,
    question: Question,
    n_rows: int,
    *,
    notes: Sequence[str],
    settings: Mapping[str, Any],
) -> Findings:
    """Measure all methods, choose one, and answer every question about it.

    ``n_rows`` is the number of rows given, of which some may not have been predicted.
    """
    seed, groups, codes = question.random_state, predictions.groups, predictions.codes
    tolerance, is_binary = question.tolerance, predictions.positive is not None
    if tolerance is None:
        # 2 percentage points; of a rarer class than one in ten a fifth of its share.
        first = next(iter(predictions.estimates.values()))
        share = predictions.share or float(predictions.event(first).p.mean())
        tolerance = min(DEFAULT_TOLERANCE, share / 5) if is_binary else DEFAULT_TOLERANCE
    matrix = None
    if question.costs is not None:
        matrix = CostMatrix.read(question.costs, predictions.classes)
    measures = {
        name: measure(predictions, estimates, seed)
        for name, estimates in predictions.estimates.items()
    }
    method, rule = next(iter(measures)), ""  # of a model what it predicts
    if origin.kind != "model":
        method, rule = comparison.choose(measures, predictions, tolerance)
    best, shares = predictions.estimates[method], predictions.baseline
    baseline = measure(predictions, shares, seed)
    if predictions.weight is not None:
        n_effective = effective_rows(predictions.weight)
        weighted = f"intervals are those of {n_effective:,.0f} effective rows (Kish)."
        notes = [*notes, f"Measures are weighted, and {weighted}"]
    event = predictions.event(best)
    judged = predictions.judged(best)
    area = measures[method].intervals["auc"]
    costs = None if matrix is None else comparison.costs_of(matrix, predictions, best)
    tie = None if costs is None else costs.tie(predictions.positive)
    columns = {}
    for name, values in (question.by or {}).items():
        columns[name] = np.asarray(values, dtype=object)[predictions.rows]
    decision = by_threshold = None
    if is_binary:
        by_threshold = breakdown.thresholds(predictions, best, question.thresholds, tie)
    if is_binary and 0 < (predictions.share or 0) < 1:
        at = tie or predictions.share or 0.5
        frame = breakdown.thresholds(predictions, best, [min(at, 1 - 1e-9)])
        decision = {"threshold": at, "by": "costs" if tie else "share", **frame.iloc[0]}
    edges = breakdown.RARE_LEVEL_EDGES if predictions.is_rare else breakdown.LEVEL_EDGES
    losses, loss = comparison.finite_losses([shares.p, best.p], codes)
    tests = "the tests of Spiegelhalter and Kuiper"
    if groups is not None:
        tests += " and of intercept and slope, over groups"
    if not is_binary:
        tests += ", of the means of all classes and of each class against the rest"
    half_width = float("nan")
    if event.confidence is not None:
        half_width = float(np.median(event.confidence[1] - event.confidence[0])) / 2
    findings = Findings(
        name=question.name,
        target=origin.target,
        rows=len(codes),
        groups=None if groups is None else len(np.unique(groups)),
        folds=predictions.n_folds,
        positive=predictions.label,
        origin=origin,
        tests=tests,
        tolerance=tolerance,
        method=method,
        rule=rule,
        methods=comparison.methods_frame(
            predictions, {**measures, BASELINE: baseline}, method, costs, origin.names
        ),
        measures=measures,
        baseline=baseline,
        auc=area,
        # The log loss tells rare classes apart, which hardly move the Brier score.
        gain=replace(predictions.difference(*losses), loss=loss),
        skill=judged.log_loss_skill()
        if np.isfinite(measures[method].log_loss)
        else judged.brier_skill(),
        lines_off=comparison.lines_off(judged, measures[method])
        if is_binary and question.tolerance is None
        else {},
        differences={
            m: comparison.compare_losses(m, method, predictions) for m in measures if m != method
        },
        levels=breakdown.levels(predictions, best, edges),
        level_edges=edges,
        classes=comparison.classes_frame(predictions, best.p, measures[method].tests, tolerance),
        thresholds=by_threshold,
        decision=decision,
        subgroups=breakdown.subgroups(columns, predictions, best, tolerance) if columns else None,
        costs=costs,
        half_width=half_width,
        rows_needed=rows_for_precision(event.p, area.value) if is_binary else {},
        falls=_falls(predictions, method),
        sections=_sections(predictions, method, origin, question),
        comparable=comparable(judged, measures[method].intervals),
        settings={"random_state": seed, **settings},
        notes=list(notes),
    )
    m = findings.best
    is_off = m.is_rejected or m.impossible or findings.lines_off or findings.rejected
    if predictions.weight is not None and question.updates:
        raise InputError(f"updates {UNWEIGHTED}")
    is_off = is_off and predictions.weight is None
    if (question.updates or is_off) and not origin.is_trained_here and not origin.trained_on_rows:
        prior = settings.get("prior")
        prior = None if prior is None else np.array([*prior.values()])
        updates = sections.compared_updates(predictions, method, prior, seed)
        if updates is not None:
            findings = replace(findings, sections={**findings.sections, "updates": updates})
    return findings


def _falls(predictions: Predictions, method: str) -> FallingFrequency | None:
    """Return where a frequency falls as the score rises, if a test rejects that none does.

    The scores are those of the raw model, or else the probabilities of the method. None otherwise,
    and for weighted rows, since the test counts each row as one.
    """
    names, codes = [RAW, method], predictions.codes
    if predictions.weight is not None:  # the test is of rows that count as one each
        return None
    p = next(predictions.estimates[name].p for name in names if name in predictions.estimates)
    j = predictions.positive
    if j is None:
        return falling_frequency(p, codes, predictions.groups)
    fall = falling_frequency(p[:, j], (codes == j).astype(np.intp), predictions.groups)
    return None if fall is None else fall._replace(column=j)


def _sections(
    predictions: Predictions, method: str, origin: Origin, question: Question
) -> dict[str, Section]:
    """Return what the further questions found."""
    if predictions.weight is not None:
        for name in ("promises", "grades", "segments"):
            if getattr(question, name) is not None and len(getattr(question, name)):
                name = " and ".join(question.promises or ()) if name == "promises" else name
                raise InputError(f"{name} {UNWEIGHTED}")
    best, rows = predictions.estimates[method], predictions.rows
    answers, site = {}, None
    if question.promises:
        answers["promises"] = sections.promised_thresholds(predictions, best, question.promises)
    if predictions.compared:
        answers["models"] = sections.compared_models(predictions, origin.noun)
    if question.site is not None:
        site = grade_names(question.site, "site").astype(str)[rows]
        answers["sites"] = sections.compared_sites(predictions, best, site)
    if question.predictors is not None:
        X = question.predictors.take(rows)
        answers["predictors"] = sections.described_predictors(predictions, X, site)
    if question.grades is not None:
        grade = pd.Series(question.grades).take(rows)
        answers["grades"] = sections.tested_grades(predictions, best, grade, question.reference)
        if question.final_grades is not None:
            final = pd.Series(question.final_grades).take(rows)
            answers["overrides"] = sections.overridden_grades(predictions, best, grade, final)
        if question.time is not None:
            _, periods = breakdown.parts_of_column(
                np.asarray(question.time, dtype=object)[rows], "time", MAX_GRADE_PERIODS
            )
            answers["history"] = sections.grade_history(predictions, best, grade, periods)
    if question.segments is not None:
        X = as_pandas(question.segments).take(rows)
        answers["segments"] = sections.searched_segments(
            predictions, best, X, question.random_state
        )
    return answers
