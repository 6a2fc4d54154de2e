"""Methods and results of an evaluation as text for a paper, in the order of TRIPOD+AI."""

from __future__ import annotations

import math
import platform
from importlib import metadata
from typing import Any

from vennforest._program import __version__
from vennforest.report.findings import Findings
from vennforest.report.measures import CALIBRATION_TEST_LEVEL
from vennforest.report.numbers import area, fixed, percent, points, probability
from vennforest.report.section_words import SECTIONS, missing_text, subgroup_sentences
from vennforest.report.verdict import Verdict
from vennforest.report.words import (
    COSTS,
    SAMPLE_SIZE,
    Sentence,
    Words,
    always,
    joined,
    say,
)

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
CALIBRATED_ON = {
    "oob": "out-of-bag scores", "cv": "scores of inner folds",
    "holdout": "a held-out part of the training rows",
}  # fmt: skip

ITEMS: list[Sentence] = [
    (lambda w: True, "5 data"),
    (lambda w: True, "8 outcome"),
    (lambda w: "predictors" in w.f.sections, "9 predictors, 11 missing data, 20 participants"),
    (lambda w: w.f.positive is not None, "10 sample size"),
    (lambda w: w.origin.is_trained_here, "12 model"),
    (lambda w: True, "12e performance measures"),
    (lambda w: True, "23a performance with intervals"),
    (lambda w: "sites" in w.f.sections, "23b heterogeneity"),
]
"""Items of the TRIPOD+AI checklist that the text fills, and when it does."""


class PaperWords(Words):
    """Phrases of the text for a paper."""

    def __init__(self, findings: Findings) -> None:
        super().__init__(findings)
        self.groups_text = "" if self.f.groups is None else f" of {self.f.groups:,} groups"
        self.counts = joined([f"“{name}” in {n:,}" for name, n in self.f.classes["n"].items()])
        self.left_out = " ".join(note for note in self.f.notes if "left out" in note)
        self.split = SPLITS[self.origin.kind].format(n=self.f.folds)
        self.rivals = joined([self.origin.in_sentence(m) for m in self.f.measures if m != self.key])
        self.columns = (
            "" if self.f.subgroups is None else joined(self.f.subgroups.index.unique("column"))
        )
        self.delong = "DeLong's" if self.f.groups is None else "DeLong's, over groups"
        self.software = (
            f"vennforest {__version__}, scikit-learn {metadata.version('scikit-learn')}, Python "
            f"{platform.python_version()}"
        )
        self.verb = "rejected" if self.m.is_rejected else "did not reject"
        self.level = f"{CALIBRATION_TEST_LEVEL:.0%}"
        self.items = ", ".join(item for is_filled, item in ITEMS if is_filled(self))

    @property
    def calibrated(self) -> str:
        """How the model was calibrated."""
        on = CALIBRATED_ON.get(self.origin.calibrate_on, self.origin.calibrate_on)
        return "not calibrated" if self.key == "none" else f"calibrated by {self.name} on {on}"

    @property
    def tested_by(self) -> str:
        """The sections that test calibration."""
        names = [name for name in ("sites", "grades", "segments") if name in self.f.sections]
        return " and by ".join(names)

    def value(self, name: str, decimals: int = 2) -> str:
        """Return a measure with its interval."""
        row: Any = self.f.methods.loc[self.key]
        value, low, high = (row[f"{name}{end}"] for end in ("", "_low", "_high"))
        if not math.isfinite(value):
            return "infinite" if value == math.inf else "undefined"
        if not math.isfinite(low):
            return fixed(value, decimals)
        return f"{fixed(value, decimals)} ({fixed(low, decimals)} to {fixed(high, decimals)})"

    @property
    def losses(self) -> str:
        """Log loss, Brier score and skill."""
        return (
            f"log loss {self.value('log_loss', 3)}, Brier score {self.value('brier', 3)} and its "
            f"skill {self.value('brier_skill', 3)}"
        )

    @property
    def c(self) -> str:
        """The AUC with its interval."""
        auc = self.f.auc
        return f"{area(auc.value)} ({area(auc.low)} to {area(auc.high)})"

    @property
    def line(self) -> str:
        """Observed over expected, and the logistic recalibration."""
        return (
            f"Observed over expected was {self.value('observed_expected')}. In logistic "
            f"recalibrations, the intercept with slope 1 was {self.value('intercept')}, and the "
            f"slope {self.value('slope')}"
        )

    @property
    def ici(self) -> str:
        """The integrated calibration index in percentage points, "" where there is none."""
        row: Any = self.f.methods.loc[self.key]
        if not math.isfinite(row.get("ici", math.nan)):
            return ""
        ends = (points(row[f"ici{end}"]) for end in ("", "_low", "_high", "_by_chance"))
        return "{} ({} to {}; {} by chance if calibrated)".format(*ends)

    @property
    def decision_text(self) -> str:
        """What flagging at the threshold of decisions does, with intervals."""
        d: Any = self.f.decision
        shares = [
            f"{name} {percent(d[name])} ({percent(d[f'{name}_low'])} to "
            f"{percent(d[f'{name}_high'])})"
            for name in ("sensitivity", "specificity")
            if math.isfinite(d[f"{name}_low"])
        ]
        net, gain = (
            "{} ({} to {})".format(*(fixed(d[f"{name}{end}"], 4) for end in ("", "_low", "_high")))
            for name in ("net_benefit", "gain")
        )
        return (
            f"At a threshold of {probability(d['threshold'])}, {', '.join(shares)}; net benefit "
            f"{net}, {gain} over flagging all or none, whichever is better"
        )

    @property
    def parts_texts(self) -> str:
        """Sentences on parts of the rows; every part that is off is named."""
        texts = [f"By {c}: {text}" for c, text in subgroup_sentences(self, None).items()]
        for name, view in SECTIONS.items():
            if name in self.f.sections and name not in ("updates", "predictors"):
                texts.append(view.sentences(self, self.f.sections[name], None)[0])
        return " ".join(texts)

    @property
    def missing(self) -> str:
        """The missing cells of each predictor."""
        section = self.f.sections.get("predictors")
        return "" if section is None else missing_text(self, section, None)


def is_binary(words: Words) -> bool:
    """Return whether there are two classes."""
    return words.f.positive is not None


PARAGRAPHS: dict[str, list[list[Sentence]]] = {
    "Methods": [
        [
            (always, "The data ({w.f.name}) were {w.rows}{w.groups_text}."),
            (always, "The outcome was “{w.target}”: {w.counts}."),
            (lambda w: w.left_out, "{w.left_out}"),
            (
                lambda w: "n_columns" in w.f.settings,
                "There were {w.f.settings[n_columns]:,} candidate predictors.",
            ),
            (lambda w: w.missing, "{w.missing}"),
            *SAMPLE_SIZE,
        ],
        [
            (always, "{w.split}"),
            (
                lambda w: w.origin.is_trained_here and w.f.groups is not None,
                "Rows of one group were never on both sides of a split.",
            ),
            (
                lambda w: w.origin.is_trained_here,
                "The model was a {w.noun}, {w.calibrated} (seed {w.f.settings[random_state]}).",
            ),
            (
                lambda w: w.f.rule and len(w.f.measures) > 1,
                "{w.name} was compared with {w.rivals} on the same rows, and chosen on them: it "
                "has {w.f.rule}.",
            ),
        ],
        [
            (
                is_binary,
                "Discrimination was measured by the area under the ROC curve (C; interval: "
                "{w.delong}), calibration by observed over expected, intercept and slope of "
                "logistic recalibrations, the integrated calibration index (ICI, with an "
                "interval), the calibration error over 15 bins and {w.f.tests}, and both by log "
                "loss and Brier score. Net benefit was computed at thresholds of the probability.",
            ),
            (
                lambda w: not is_binary(w),
                "Discrimination was measured by the area under the ROC curve of each class against "
                "the rest, weighted by its share (C; interval: {w.delong}), calibration by the "
                "calibration error of the most probable class over 15 bins and {w.f.tests}, and "
                "both by log loss and Brier score.",
            ),
            (
                lambda w: w.columns,
                "Calibration was also tested within {w.columns}, adjusted by Holm.",
            ),
            (lambda w: w.tested_by, "Calibration was also tested by {w.tested_by}."),
            (lambda w: w.f.groups is None, "Intervals are of level 95%."),
            (
                lambda w: w.f.groups is not None,
                "Intervals are of level 95%, and treat groups as independent.",
            ),
            (always, "Software: {w.software}."),
        ],
    ],
    "Results": [
        [
            (lambda w: w.has_auc, "C was {w.c}, {w.losses}."),
            (
                is_binary,
                "The mean probability was {w.expected} and the observed frequency {w.observed}.",
            ),
            (
                lambda w: not is_binary(w),
                "The mean probability of the most probable class was {w.expected}, and it was "
                "right in {w.observed}.",
            ),
            (is_binary, "{w.line}."),
            (lambda w: w.ici, "The ICI was {w.ici} percentage points."),
            (
                lambda w: not math.isnan(w.m.pvalue),
                "Tests {w.verb} calibration (p {w.p}; level {w.level}).",
            ),
            (lambda w: w.f.decision, "{w.decision_text}."),
            *((lambda w, of=is_true: w.f.costs and of(w), text) for is_true, text in COSTS),
            (lambda w: w.parts_texts, "{w.parts_texts}"),
        ],
    ],
    "Checklist": [[(always, "Items of TRIPOD+AI that this text helps to fill: {w.items}.")]],
}
"""Collins et al. (2024), TRIPOD+AI statement, BMJ 385, e078378: the order of its items."""


def methods_text(findings: Findings, verdict: Verdict) -> str:
    """Return paragraphs on data, methods and results, in Markdown."""
    words = PaperWords(findings)
    parts = [
        "\n\n".join([f"## {heading}", *(say(words, text) for text in paragraphs)])
        for heading, paragraphs in PARAGRAPHS.items()
    ]
    return "\n\n".join(parts) + "\n"
