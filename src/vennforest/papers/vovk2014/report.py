"""The page of Vovk & Petej (2014): notes, tables, a figure, and the simulations' findings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

from vennforest.papers import published
from vennforest.papers.protocol.experiment import command
from vennforest.papers.protocol.reproduction import Cell, Figure, Reproduction, Table
from vennforest.papers.protocol.store import Record, Task
from vennforest.papers.vovk2014.classifiers import CLASSIFIERS
from vennforest.papers.vovk2014.conclusions import conclusions
from vennforest.papers.vovk2014.experiment import METHODS, Vovk2014
from vennforest.papers.vovk2014.findings import MEASURES, Findings, mean_losses
from vennforest.papers.vovk2014.simulations import simulated


def report(
    experiment: Vovk2014, records: Mapping[Task, Record], datasets: Sequence[str]
) -> Reproduction:
    """Make the reproduction of what was measured, with the simulations."""
    findings = Findings(mean_losses(records, datasets), datasets)
    simulations = list(simulated(experiment.simulations, experiment.seed_of("simulations")))
    return Reproduction(
        paper="vovk2014",
        title="Vovk & Petej (2014). Venn–Abers predictors. Proceedings of the 30th Conference on "
        "Uncertainty in Artificial Intelligence, 829–838.",
        command=command(experiment, datasets),
        notes=notes(experiment, datasets),
        conclusions=(*conclusions(findings), *simulations),
        values=findings.values.all(),
        _tables=tuple(tables(findings)),
        figures=tuple(figures(findings)),
    )


def notes(experiment: Vovk2014, datasets: Sequence[str]) -> tuple[str, ...]:
    """Say how it was done, and where the paper leaves it open or its text is damaged."""
    slow = min(experiment.transductive_repeats, experiment.repeats)
    return (
        f"{len(datasets)} of 9 data sets, {experiment.repeats} random splits for W, SVA and DIR "
        f"and {slow} others for VA (the paper: 100 and 16), seed {experiment.seed}. Splits are "
        "not stratified.",
        "The fraction trained on is lost from the text at hand: "
        f"{experiment.folds - 1}/{experiment.folds} stands in. So are the formulas of Proposition "
        "2, for which a scorer with the same property was written.",
        "Mean log error (eq. 12) is in natural logarithms, which the printed values fit, and "
        "infinite if one estimate of one split is 0 for the true label. VA and SVA are merged by "
        "eq. 10 for log loss and by eq. 11 for square loss.",
        "The classifiers are scikit-learn's in place of Weka's. J (J48): a tree by entropy, two "
        "examples or more a leaf, that stops and is pruned by C4.5's rules (a threshold has to "
        "save more bits than it costs; pessimistic errors at a confidence of .25), without C4.5's "
        "gain ratio and splits into many branches. JB: ten such trees. LR: Weka's ridge of 1e-8. "
        f"NB: {experiment.density} densities for numbers"
        + (
            ", which the printed numbers fit (Weka's default are normal ones: --set density=normal)"
            if experiment.density == "kernel"
            else ""
        )
        + ", smoothed shares for names, missing cells left out, as Weka. NN: four hidden "
        "units, 30 steps of L-BFGS, weight decay .01, far less training than Weka's 500 epochs, "
        "since VA trains twice for every test object. SVM: linear, C = 1, features scaled to "
        f"[0, 1] as in Weka, with a sigmoid of {experiment.platt} targets fitted to the training "
        "scores; SVA, DIR and VA use its decision values, for which the sigmoid is redundant.",
        "LR, NN and SVM see nominal columns as columns of 0 and 1; the mean number or the most "
        "frequent name of the training part stands where a cell is missing, as in Weka. Trees send "
        "missing numbers the way they learnt, and a missing name is 0 in all its columns.",
        "Which of the repository's versions the authors took is not said. Echo here has 131 "
        "patients and the label still-alive; the same file also serves to predict survival of a "
        "year, a harder problem.",
    )


def tables(f: Findings) -> Iterable[Table]:
    """Yield the paper's tables."""
    for measure, number in MEASURES.items():
        for part, kinds in (("a", CLASSIFIERS[:3]), ("b", CLASSIFIERS[3:])):
            yield _losses(f, f"{number}{part}", number, measure, kinds)
    for measure in MEASURES:
        yield _ranks(f, measure)


def _losses(f: Findings, name: str, number: str, measure: str, kinds: Sequence[str]) -> Table:
    columns = [f"{method} ({kind})" for kind in kinds for method in METHODS]
    rows = []
    for d in f.datasets:
        cells = []
        for column in columns:
            value = f.values.get(number, d, column, measure)
            group = column[column.index("(") :]
            rivals = [f.losses[measure][f"{m} {group}"][d] for m in METHODS]
            best = math.isfinite(value.value) and value.value == min(rivals)
            cells.append(Cell(value.value, value.published, marked=best))
        rows.append((d, tuple(cells)))
    title = {"log loss": "Mean log error", "root mean square error": "Root mean square error"}
    return Table(
        f"table-{name}",
        f"Table {name}. {title[measure]}",
        tuple(columns),
        tuple(rows),
        note="The lowest of the four of a classifier is marked.",
    )


def _ranks(f: Findings, measure: str) -> Table:
    printed: dict[tuple[str, int], str] = {
        (row.dataset, int(row.value)): row.method
        for row in published.load("vovk2014")
        if row.table == "3" and row.measure == f"{measure} rank"
    }
    rows = []
    for d in f.datasets:
        cells = [
            Cell(loss, name=f"{method} ({kind})", published_name=printed.get((d, place), ""))
            for place, (method, kind, loss) in enumerate(f.ranks[measure, d][:3], 1)
        ]
        rows.append((d, tuple(cells)))
    return Table(
        f"table-3-{measure.replace(' ', '-')}",
        f"Table 3. The best methods by {measure}, each with its best classifier",
        ("best", "second", "third"),
        tuple(rows),
        note="In brackets what is printed.",
    )


def figures(f: Findings) -> Iterable[Figure]:
    """Yield obtained against printed errors."""
    yield Figure(
        "table-2",
        "Table 2: printed root mean square errors against those obtained here",
        partial(_draw_errors, f),
    )


def _draw_errors(f: Findings, ax: Any) -> None:
    measure = "root mean square error"
    for method, marker in zip(METHODS, ("o", "^", "s", "x"), strict=True):
        found = [
            f.values.get("2", d, f"{method} ({k})", measure)
            for d, k in product(f.datasets, CLASSIFIERS)
        ]
        printed = [one.published for one in found]
        ours = [one.value for one in found]
        ax.plot(printed, ours, marker, markersize=4, alpha=0.7, label=method)
    ax.axline((0.3, 0.3), slope=1, color="0.5", linewidth=0.8)
    ax.set(xlabel="Printed", ylabel="Obtained")
    ax.legend(frameon=False)
