"""What Shaker & Hüllermeier (2025) conclude, and whether it holds for the numbers obtained here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from scipy.stats import binomtest

from vennforest_experiments.papers.protocol.phrases import count_of
from vennforest_experiments.papers.protocol.reproduction import Conclusion
from vennforest_experiments.papers.published import MEAN_RANK
from vennforest_experiments.papers.shaker2025.experiment import (
    CALIBRATORS,
    HELD_OUT,
    METHODS,
    OUT_OF_BAG,
)
from vennforest_experiments.papers.shaker2025.findings import TRUE_ERROR, Findings

TUNED = "RF_opt"
NAMES = {
    "accuracy": "accuracy",
    "brier": "the Brier score",
    "log loss": "log loss",
    "ece": "ECE",
    "squared gap": "ECE as the authors' code computes it",
}


def conclusions(f: Findings) -> Iterable[Conclusion]:
    """Yield the paper's conclusions, then the same questions for calibration out of bag."""
    if f.datasets:
        for measure in ("accuracy", "brier", "log loss", "squared gap", "ece"):
            yield _top(f, measure)
        for measure in ("brier", "log loss"):
            yield _no_worse(f, "held out", measure, tuple(CALIBRATORS), "a held-out part")
        yield _ordered(f, TUNED, "RF_d", "Tuning improves the forest")
        yield _ordered(f, "RF_large", "RF_d", "More trees improve the forest")
        yield _ordered(
            f, TUNED, "ISO", "Isotonic regression of a held-out part does not improve the forest"
        )
        yield _lowest(f)
        for measure in ("brier", "log loss"):
            yield _no_worse(f, "out of bag", measure, OUT_OF_BAG, "out-of-bag scores")
        for measure in ("brier", "log loss"):
            yield _needless(f, measure, "default RF_opt", f.datasets, "")
        for measure in ("brier", "log loss"):
            yield _needless(f, measure, "default RF_d", f.datasets, "")
    if f.synthetic:
        where = " where probabilities are known"
        yield _nearest(f)
        yield _needless(f, TRUE_ERROR, "default RF_opt", f.synthetic, where)
        yield _needless(f, TRUE_ERROR, "default RF_d", f.synthetic, where)


def _top(f: Findings, measure: str) -> Conclusion:
    better = f.beaten("held out", measure, TUNED)
    text = f"Mean ranks: {_listed(f, 'held out', measure)}."
    if better:
        text += f" Significantly better: {', '.join(better)}."
    return Conclusion(
        f"On {NAMES[measure]} the tuned forest is among the best: none of the nine methods is "
        "significantly better (Nemenyi).",
        not better,
        text,
    )


def _no_worse(
    f: Findings, group: str, measure: str, methods: Sequence[str], source: str
) -> Conclusion:
    ranks = f.ranks(group, measure)
    ahead = [m for m in ranks if m in methods and ranks[m] < ranks[TUNED]]
    own = f.measures[measure]
    wins = {m: sum(own[m][d] < own[TUNED][d] for d in f.datasets) for m in methods}
    return Conclusion(
        f"On {NAMES[measure]} no calibrator fitted to {source} has a better mean rank than the "
        "tuned forest as it is"
        + (
            "."
            if group == "held out"
            else " (not said in the abstract; the authors' code measures it)."
        ),
        not ahead,
        f"Ahead: {', '.join(ahead) or 'none'}. Mean ranks: {_listed(f, group, measure)}. Better "
        f"than the tuned forest on, of {len(f.datasets)} data sets: "
        + ", ".join(f"{m} {n}" for m, n in wins.items())
        + ".",
    )


def _ordered(f: Findings, better: str, worse: str, claim: str) -> Conclusion:
    text, holds = [], True
    for measure in ("brier", "log loss"):
        ranks, own = f.ranks("held out", measure), f.measures[measure]
        holds &= ranks[better] < ranks[worse]
        wins = sum(own[better][d] < own[worse][d] for d in f.datasets)
        text.append(
            f"{NAMES[measure]}: {better} {ranks[better]:.2f}, {worse} {ranks[worse]:.2f}, the "
            f"former is better on {count_of(wins, f.datasets)}"
        )
    return Conclusion(
        f"{claim} (mean ranks of {better} and {worse}, Brier score and log loss).",
        holds,
        "; ".join(text)[0].upper() + "; ".join(text)[1:] + ".",
    )


def _lowest(f: Findings) -> Conclusion:
    first = {m: next(iter(f.ranks("held out", m))) for m in ("squared gap", "ece")}
    return Conclusion(
        "Venn–Abers has the best mean rank on ECE as the authors' code computes it (in their "
        "figures).",
        first["squared gap"] == "VA",
        f"Best there: {first['squared gap']}; best on ECE weighted by the bins' counts: "
        f"{first['ece']}.",
    )


def _needless(
    f: Findings, measure: str, method: str, datasets: Sequence[str], where: str
) -> Conclusion:
    ours, theirs = (
        np.array(list(f.column(measure, m, datasets).values())) for m in (method, TUNED)
    )
    wins, losses = int((ours < theirs).sum()), int((ours > theirs).sum())
    p = binomtest(wins, max(wins + losses, 1)).pvalue if wins + losses else 1.0
    what = "the tuned forest" if method == "default RF_opt" else "an untuned forest"
    name = "distance from the truth" if measure == TRUE_ERROR else NAMES[measure]
    return Conclusion(
        f"On {name}{where} the tuned forest as it is does as well as {what} with the library's "
        "default calibration (not in the paper).",
        wins <= losses,
        f"{method} is better on {wins}, worse on {losses} of {len(datasets)} data sets (sign test: "
        f"p = {p:.2g}); means {ours.mean():.4f} and {theirs.mean():.4f}.",
    )


def _nearest(f: Findings) -> Conclusion:
    means = {m: np.mean(list(f.column(TRUE_ERROR, m, f.synthetic).values())) for m in METHODS}
    order = sorted(means, key=lambda m: means[m])
    best = next(m for m in order if m in HELD_OUT)
    return Conclusion(
        "On synthetic data the tuned forest is nearest to the true probabilities, of the nine "
        "methods of the paper.",
        best == TUNED,
        "Mean squared distance, in thousandths: "
        + ", ".join(f"{m} {1000 * means[m]:.2f}" for m in order)
        + ".",
    )


def _listed(f: Findings, group: str, measure: str) -> str:
    parts = []
    for method, rank in f.ranks(group, measure).items():
        printed = f.values.get(group, MEAN_RANK, method, measure).published
        parts.append(f"{method} {rank:.2f}" + ("" if printed is None else f" ({printed:.2f})"))
    return ", ".join(parts)
