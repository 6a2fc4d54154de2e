"""What Boström (2008) concludes, and whether it holds for the numbers obtained here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from vennforest_experiments.papers.bostrom2008.experiment import FIGURE, METHODS
from vennforest_experiments.papers.bostrom2008.findings import CONTROL, Findings
from vennforest_experiments.papers.protocol.phrases import list_pairs
from vennforest_experiments.papers.protocol.reproduction import Conclusion
from vennforest_experiments.papers.published import ALL


def conclusions(f: Findings) -> Iterable[Conclusion]:
    """Yield the paper's conclusions."""
    brier = f.ranks("brier")
    order = list(brier)
    places = {m: order.index(m) + 1 for m in ("PET_R", "CT_R")}
    yield Conclusion(
        "PET_R and CT_R lead on the Brier score, in this order.",
        order[:2] == ["PET_R", "CT_R"],
        f"By mean rank PET_R is number {places['PET_R']} of 8 and CT_R number {places['CT_R']}: "
        f"{_listed(brier)}.",
    )
    yield _friedman(f, "brier", "The choice of method matters for the Brier score")
    others = [m for m in METHODS if m not in ("CT_R", CONTROL)]
    yield Conclusion(
        "PET_R has a significantly better Brier score than all others but CT_R (Bonferroni–Dunn).",
        f.beaten == set(others),
        "Significantly worse than PET_R: "
        + (", ".join(m for m in METHODS if m in f.beaten) or "none")
        + "; significantly better: "
        + (", ".join(sorted(_beat_control(f))) or "none")
        + f". Critical difference {_critical(f):.3f}.",
    )
    yield _pair(f, "CT", "PET", "Raw votes (CT) have a better Brier score than raw PET.")
    yield _pair(f, "PET_P", "PET", "Platt scaling improves the Brier score of PET.")
    yield _pair(f, "PET", "PET_I", "Isotonic regression worsens the Brier score of PET.")
    yield _pair(f, "PET_R", "PET", "Boström's correction improves the Brier score of PET.")
    yield _pair(f, "CT_R", "CT", "Boström's correction improves the Brier score of CT.")
    yield _friedman(f, "auc", "The choice of method matters for the AUC")
    isotonic = {"CT_I", "PET_I"}
    expected = {(b, w) for b in METHODS for w in isotonic if b not in isotonic}
    yield _nemenyi(
        f,
        "auc",
        expected,
        "On AUC both isotonic methods are significantly worse than all others, and nothing "
        "else differs (Nemenyi).",
    )
    accuracy = f.ranks("accuracy")
    yield Conclusion(
        "PET, raw or corrected, is the most accurate.",
        next(iter(accuracy)) == "PET_R",
        f"Mean ranks: {_listed(accuracy)}.",
    )
    yield _friedman(f, "accuracy", "The choice of method matters for the accuracy")
    yield _nemenyi(
        f,
        "accuracy",
        {("PET_R", "CT_I")},
        "On accuracy only PET_R and CT_I differ significantly (Nemenyi).",
    )
    yield _unchanged(f)
    if FIGURE in f.datasets:
        yield _more_extreme(f)


def _friedman(f: Findings, measure: str, claim: str) -> Conclusion:
    value = f.values.get("text", ALL, "", f"friedman p, {measure}")
    return Conclusion(
        claim + " (Friedman).",
        value.value <= f.comparisons[measure].alpha,
        f"p = {value.value:.2g} (printed {value.published:.2g}).",
    )


def _pair(f: Findings, better: str, worse: str, claim: str) -> Conclusion:
    ranks, values = f.ranks("brier"), f.measures["brier"]
    wins = sum(values[better][d] < values[worse][d] for d in f.datasets)
    return Conclusion(
        claim,
        ranks[better] < ranks[worse],
        f"Mean ranks: {better} {ranks[better]:.2f}, {worse} {ranks[worse]:.2f}; {better} is "
        f"better on {wins} of {len(f.datasets)} data sets.",
    )


def _nemenyi(f: Findings, measure: str, expected: set[tuple[str, str]], claim: str) -> Conclusion:
    found = set(f.comparisons[measure].better("nemenyi"))
    missing, more = expected - found, found - expected
    text = f"Mean ranks: {_listed(f.ranks(measure))}."
    if missing:
        text += f" Not significant here: {list_pairs(missing)}."
    if more:
        text += f" Also significant here: {list_pairs(more)}."
    return Conclusion(claim, found == expected, text)


def _unchanged(f: Findings) -> Conclusion:
    accuracy = f.measures["accuracy"]
    changed = [
        d
        for d in f.datasets
        if any(accuracy[f"{kind}_R"][d] != accuracy[kind][d] for kind in ("CT", "PET"))
    ]
    return Conclusion(
        "Boström's correction does not change the accuracy.",
        not changed,
        f"Changed on {', '.join(changed)}." if changed else "Unchanged on every data set.",
    )


def _more_extreme(f: Findings) -> Conclusion:
    p = f.figure_1
    shares, votes = (np.abs(p[kind][:, 1] - 0.5) for kind in ("PET", "CT"))
    near = shares >= 0.25
    moved = votes[near] > shares[near]
    return Conclusion(
        "Votes move probabilities that are already close to 0 or 1 even closer (Figure 1).",
        bool(2 * moved.sum() > near.sum()),
        f"Of {near.sum()} objects whose probability by PET is below .25 or above .75, CT's is "
        f"closer to 0 or 1 for {moved.sum()}, farther for {(votes < shares)[near].sum()}.",
    )


def _beat_control(f: Findings) -> set[str]:
    pairs = f.comparisons["brier"].better("bonferroni-dunn")
    return {better for better, worse in pairs if worse == CONTROL}


def _critical(f: Findings) -> float:
    return f.comparisons["brier"].critical_difference("bonferroni-dunn")


def _listed(ranks: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {rank:.2f}" for name, rank in ranks.items())
