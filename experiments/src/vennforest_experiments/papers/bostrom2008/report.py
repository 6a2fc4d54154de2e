"""The page of Boström (2008): notes, tables and figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from vennforest_experiments.papers.bostrom2008.conclusions import conclusions
from vennforest_experiments.papers.bostrom2008.experiment import FIGURE, METHODS, Bostrom2008
from vennforest_experiments.papers.bostrom2008.findings import (
    CONTROL,
    RANKED,
    Findings,
    mean_measures,
)
from vennforest_experiments.papers.protocol.experiment import command
from vennforest_experiments.papers.protocol.phrases import times
from vennforest_experiments.papers.protocol.reproduction import (
    Figure,
    Reproduction,
    Table,
    draw_ranks,
)
from vennforest_experiments.papers.protocol.store import Record, Task
from vennforest_experiments.papers.published import ALL, BETTER, MEAN, MEAN_RANK

LEAVES = {
    "training": "A leaf's distribution is that of all training examples in it, including those out "
    "of bag for the tree, as in the paper: an out-of-bag score therefore depends a little on the "
    "example's own label.",
    "others": "A leaf's distribution is that of all training examples in it, as in the paper; for "
    "an out-of-bag score the example being scored is not counted, which the paper does not "
    "mention.",
    "bag": "A leaf's distribution is that of the examples the tree was grown from (the paper uses "
    "all training examples). Trees are grown until leaves are pure, so that distribution and vote "
    "differ only if identical objects have different labels: CT and PET are nearly the same.",
}
"""The note on each way of estimating leaves."""


def report(
    experiment: Bostrom2008, records: Mapping[Task, Record], datasets: Sequence[str]
) -> Reproduction:
    """Make the paper's table and figure, and say which of its conclusions hold."""
    findings = Findings(experiment, mean_measures(records, datasets))
    return Reproduction(
        paper="bostrom2008",
        title="Boström (2008). Calibrating random forests. Seventh International Conference on "
        "Machine Learning and Applications, 121–126.",
        command=command(experiment, datasets),
        notes=notes(experiment, datasets),
        conclusions=tuple(conclusions(findings)),
        values=findings.values.all(),
        _tables=tuple(tables(findings)),
        figures=tuple(figures(findings)),
    )


def notes(experiment: Bostrom2008, datasets: Sequence[str]) -> tuple[str, ...]:
    """Describe how it was done, and where the paper leaves details open."""
    total = len(experiment.datasets())
    return (
        "The paper says that its 34 data sets are from the UCI repository and does not list them. "
        f"{total} data sets of that repository are used instead, so that only the ranks can be "
        "compared with the printed ones.",
        f"{len(datasets)} of {total} data sets, stratified {experiment.folds}-fold "
        f"cross-validation{times(experiment.repeats)} (the paper: once, 10 folds), forests of "
        f"{experiment.trees} trees (the paper: 100), seed {experiment.seed}.",
        "CT and PET are the same trees: votes of trees against the mean of their class "
        f"distributions. {LEAVES[experiment.estimation]} Every calibrator is fitted to out-of-bag "
        "scores; all trees score a new object.",
        "Platt scaling has targets 0 and 1, as in the paper; Platt scaling and isotonic regression "
        "are fitted one-vs-rest and normalised. Boström's correction searches A and B in 0 to 50 "
        "with r = 1/(1 + exp(B − A p)), which is non-decreasing in p; the paper leaves the signs "
        "open.",
        "The Brier score is the mean squared distance between vectors (0 to 2); AUC is the mean "
        "of the one-vs-rest AUCs, weighted by class frequency (Fawcett); all are means over the "
        "folds. Missing numbers are left to the trees, which send them to the better side of each "
        "split; nominal columns are one-hot encoded.",
        "The printed table has no log loss. An estimate of 0 for the observed class is clipped to "
        "2.2e-16, the machine precision, which weighs heavily on raw forests and isotonic "
        "regression.",
    )


def tables(f: Findings) -> Iterable[Table]:
    """Yield the paper's table, the numbers behind it, and tests of Brier scores."""
    names = [m for m in RANKED if m != "log loss"]
    yield Table(
        "table-1",
        "Table 1. Mean ranks",
        METHODS,
        tuple(
            (name, tuple(f.values.cell("1", MEAN_RANK, m, name) for m in METHODS))
            for name in [*names, "log loss"]
        ),
        note="1 is best. For accuracy the raw forests are not ranked, since the correction does "
        "not change it. The log loss is not in the paper.",
    )
    yield Table(
        "bonferroni-dunn",
        f"Bonferroni–Dunn: {CONTROL} has a significantly better Brier score than",
        tuple(m for m in METHODS if m != CONTROL),
        (
            (
                CONTROL,
                tuple(
                    f.values.cell("text", ALL, CONTROL, f"{BETTER}{m}, brier")
                    for m in METHODS
                    if m != CONTROL
                ),
            ),
        ),
        digits=0,
    )
    for measure, title in (
        ("brier", "Brier scores"),
        ("auc", "Weighted areas under the ROC curve"),
        ("accuracy", "Accuracies"),
        ("log loss", "Log losses"),
    ):
        yield Table(
            "each-" + measure.replace(" ", "-"),
            f"{title} on each data set",
            METHODS,
            tuple(
                (d, tuple(f.values.cell("1", d, m, measure) for m in METHODS))
                for d in [*f.datasets, MEAN]
            ),
        )


def figures(f: Findings) -> Iterable[Figure]:
    """Yield Figure 1, if its data set was run, and critical-difference diagrams."""
    if FIGURE in f.datasets:
        yield Figure(
            "figure-1",
            "Figure 1. Housevotes, a random half to train, the other half to test: "
            "probabilities by CT and by PET",
            partial(_draw_figure_1, f),
            (5.0, 4.6),
        )
    for measure in ("brier", "auc", "accuracy"):
        yield Figure(
            f"ranks-{measure}",
            f"Mean ranks, {measure}; bars: no significant difference (Nemenyi)",
            draw_ranks(f.comparisons[measure], "nemenyi"),
            (7.0, 3.0),
        )


def _draw_figure_1(f: Findings, ax: Any) -> None:
    p = f.figure_1
    ax.plot(p["PET"][:, 1], p["CT"][:, 1], "o", markersize=4, alpha=0.5)
    ax.plot([0, 1], [0, 1], color="0.5", linewidth=0.8)
    ax.set(
        xlabel="Probability by the forest of PETs",
        ylabel="Probability by the forest of classification trees",
        aspect="equal",
    )
