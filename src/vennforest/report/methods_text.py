"""Methods and results of an evaluation as text for a paper, in the order of TRIPOD+AI."""

from __future__ import annotations

import math
import platform
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np

from vennforest._messages import as_sentence, listed
from vennforest._program import __version__
from vennforest.report.breakdown import sentences_by_column
from vennforest.report.measures import CALIBRATION_TEST_LEVEL, RAW, names_of_tests
from vennforest.report.numbers import area, fixed, percent, points, probability, rows
from vennforest.report.words import decisions, sample_size

if TYPE_CHECKING:
    from vennforest.report.evaluation import Evaluation

SPLITS = {
    "folds": "Each row was predicted once, by a model that was not trained on it, in stratified "
    "{n}-fold cross-validation.",
    "time": "Each row was predicted once, by a model of earlier rows, in {n} parts in order of "
    "time.",
    "sites": "Internal-external validation: the rows of each of {n} sites were predicted by a "
    "model of the other sites.",
    "given": "The probabilities were given, and no model was trained for this evaluation.",
    "model": "The probabilities were those of a model fitted before; it was not changed.",
}


def methods_text(evaluation: Evaluation) -> str:
    """Return paragraphs on data, methods and results, in Markdown.

    Collins et al. (2024), TRIPOD+AI statement, BMJ 385, e078378: the order of its items.
    """
    paragraphs = {
        "Methods": [_on_data(evaluation), _on_models(evaluation), _on_measures(evaluation)],
        "Results": [_on_performance(evaluation)],
    }
    parts = [
        "\n\n".join([f"## {heading}", *(" ".join(filter(None, text)) for text in texts)])
        for heading, texts in paragraphs.items()
    ]
    return "\n\n".join(parts) + "\n"


def _on_data(evaluation: Evaluation) -> list[str]:
    """Return sentences on rows, outcome and predictors."""
    c, settings = evaluation.comparison, evaluation.settings
    predictions, target = c.predictions, evaluation.origin.target
    counts = np.bincount(predictions.codes, minlength=len(predictions.classes))
    names = [f"“{name}” in {n:,}" for name, n in zip(predictions.classes, counts, strict=True)]
    groups = ""
    if predictions.groups is not None:
        groups = f" of {len(np.unique(predictions.groups)):,} groups"
    sentences = [
        f"The data ({evaluation.name}) were {rows(c.n)}{groups}.",
        f"The outcome was “{target}”: {listed(names, 8, str)}.",
        *(note for note in evaluation.notes if "left out" in note),
    ]
    if "n_columns" in settings:
        sentences.append(f"There were {settings['n_columns']:,} candidate predictors.")
    return [*sentences, sample_size(c) if predictions.positive is not None else ""]


def _on_models(evaluation: Evaluation) -> list[str]:
    """Return sentences on splits, models and calibration."""
    c, origin, settings = evaluation.comparison, evaluation.origin, evaluation.settings
    sentences = [SPLITS[origin.kind].format(n=c.predictions.n_folds)]
    rivals = [origin.in_sentence(method) for method in c.measures if method != c.method]
    if origin.is_trained_here:
        if c.predictions.groups is not None:
            sentences.append("Rows of one group were never on both sides of a split.")
        where = {"oob": "out-of-bag scores", "cv": "scores of inner folds"}
        where |= {"holdout": "a held-out part of the training rows"}
        on = where.get(origin.calibrate_on, origin.calibrate_on)
        is_raw = c.method == RAW
        map_of_scores = (
            "not calibrated" if is_raw else f"calibrated by {origin.names[c.method]} on {on}"
        )
        sentences.append(
            f"The model was a {origin.noun}, {map_of_scores} (seed {settings['random_state']})."
        )
    if rivals:
        sentence = (
            f"{origin.in_sentence(c.method)} was compared with {listed(rivals, 10, str)} on the "
            f"same rows, and chosen on them: it has {c.rule}"
        )
        sentences.append(as_sentence(sentence))
    return sentences


def _on_measures(evaluation: Evaluation) -> list[str]:
    """Return sentences on the measures of performance and their intervals."""
    c = evaluation.comparison
    predictions, is_binary = c.predictions, c.predictions.positive is not None
    dependence, delong = "", "DeLong's"
    if predictions.groups is not None:
        dependence, delong = ", and treat groups as independent", "DeLong's, over groups"
    error = f"the calibration error over 15 bins and {names_of_tests(predictions)}"
    calibration = (
        "observed over expected, intercept and slope of a logistic recalibration, the integrated "
        f"calibration index (ICI, with a bootstrap interval), {error}"
        if is_binary
        else f"{error}, of the most probable class"
    )
    sentences = [
        "Discrimination was measured by the area under the ROC curve (C; interval: "
        f"{delong}), calibration by {calibration}, and both by log loss and Brier score."
    ]
    if evaluation.thresholds is not None:
        sentences.append("Net benefit was computed at thresholds of the probability.")
    if evaluation.subgroups is not None:
        columns = listed(dict.fromkeys(evaluation.subgroups.index.get_level_values(0)), 8, str)
        sentences.append(f"Calibration was also tested within {columns}, adjusted by Holm.")
    titles = [s.title.lower() for s in evaluation.sections if s.anchor in ("grades", "segments")]
    if titles:
        sentences.append(f"Calibration was also tested by {' and by '.join(titles)}.")
    versions = f"vennforest {__version__}, scikit-learn {metadata.version('scikit-learn')}"
    sentences.append(f"Intervals are of level 95%{dependence}.")
    return [*sentences, f"Software: {versions}, Python {platform.python_version()}."]


def _on_performance(evaluation: Evaluation) -> list[str]:
    """Return sentences on the performance of the recommended probabilities."""
    c, event = evaluation.comparison, evaluation.comparison.event()
    row: Any = evaluation.methods.loc[c.method]
    of_event = "" if c.predictions.positive is not None else " of the most probable class"

    def value(name: str, decimals: int = 2) -> str:
        ends = [row[name], row[f"{name}_low"], row[f"{name}_high"]]
        if not math.isfinite(ends[0]):
            return "infinite" if ends[0] == math.inf else "undefined"
        texts = [fixed(end, decimals) for end in ends]
        return f"{texts[0]} ({texts[1]} to {texts[2]})" if math.isfinite(ends[1]) else texts[0]

    sentences = [
        f"C was {area(c.auc.auc)} ({area(c.auc.low)} to {area(c.auc.high)}), log loss "
        f"{value('log_loss', 3)}, Brier score {value('brier', 3)} and its skill "
        f"{value('brier_skill', 3)}.",
        f"The mean probability{of_event} was {percent(event.p.mean())} and the observed frequency "
        f"{percent(event.outcome.mean())}.",
    ]
    if c.predictions.positive is not None:
        sentences.append(
            f"Observed over expected was {value('observed_expected')}, the intercept "
            f"{value('intercept')}, the slope {value('slope')}."
        )
        if math.isfinite(row["ici"]):
            ends = (points(row[name]) for name in ("ici", "ici_low", "ici_high"))
            sentences.append("The ICI was {} ({} to {}) percentage points.".format(*ends))
    p = "< 0.001" if c.best.pvalue < 0.001 else f"= {fixed(c.best.pvalue, 3)}"
    if not math.isnan(c.best.pvalue):
        verb = "rejected" if c.best.is_rejected else "did not reject"
        level = f"level {CALIBRATION_TEST_LEVEL:.0%}"
        sentences.append(f"Tests {verb} calibration (p {p}; {level}).")
    sentences += [_threshold(evaluation)] if evaluation.thresholds is not None else []
    sentences += [decisions(c, evaluation.origin.names[c.method])] if c.costs is not None else []
    if evaluation.subgroups is not None:
        by_column = sentences_by_column(evaluation.subgroups)
        sentences += [f"By {column}: {text}" for column, text in by_column.items()]
    parts = [section for section in evaluation.sections if section.anchor != "updates"]
    return [*sentences, *(section.sentences[0] for section in parts)]


def _threshold(evaluation: Evaluation) -> str:
    """Return a sentence on flagging rows at the threshold that is nearest to the event's share."""
    frame: Any = evaluation.thresholds
    share = evaluation.comparison.predictions.share
    t = frame.index[np.abs(frame.index - share).argmin()]
    row = frame.loc[t]
    parts = [
        f"{name} {percent(row[name])} ({percent(row[f'{name}_low'])} to "
        f"{percent(row[f'{name}_high'])})"
        for name in ("sensitivity", "specificity")
        if math.isfinite(row[f"{name}_low"])
    ]
    gain = " to ".join(fixed(row[f"gain_{end}"], 4) for end in ("low", "high"))
    return (
        f"At a threshold of {probability(t)}, {', '.join(parts)}; net benefit "
        f"{fixed(row['net_benefit'], 4)}, {fixed(row['gain'], 4)} ({gain}) over flagging all."
    )
