"""The page of Vovk & Petej (2014): notes, tables and a figure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

from vennforest_experiments.papers import published
from vennforest_experiments.papers.protocol.experiment import command
from vennforest_experiments.papers.protocol.reproduction import Cell, Figure, Reproduction, Table
from vennforest_experiments.papers.protocol.store import Record, Task
from vennforest_experiments.papers.vovk2014.classifiers import CLASSIFIERS
from vennforest_experiments.papers.vovk2014.conclusions import conclusions
from vennforest_experiments.papers.vovk2014.experiment import METHODS, Vovk2014
from vennforest_experiments.papers.vovk2014.findings import MEASURES, Findings, mean_losses


def report(
    experiment: Vovk2014, records: Mapping[Task, Record], datasets: Sequence[str]
) -> Reproduction:
    """Return the reproduction: tables beside the printed ones, and conclusions."""
    findings = Findings(mean_losses(records, datasets), datasets)
    return Reproduction(
        paper="vovk2014",
        title="Vovk & Petej (2014). Venn–Abers predictors. Proceedings of the 30th Conference on "
        "Uncertainty in Artificial Intelligence, 829–838.",
        command=command(experiment, datasets),
        notes=notes(experiment, datasets),
        conclusions=tuple(conclusions(findings)),
        values=findings.values.all(),
        _tables=tuple(tables(findings)),
        figures=tuple(figures(findings)),
    )


def notes(experiment: Vovk2014, datasets: Sequence[str]) -> tuple[str, ...]:
    """Describe how it was done, and where the paper leaves details open or its text is damaged."""
    slow = min(experiment.transductive_repeats, experiment.repeats)
    return (
        f"{len(datasets)} of 9 data sets, {experiment.repeats} random splits for W, SVA and DIR "
        f"and {slow} different ones for VA (the paper: 100 and 16), seed {experiment.seed}. Splits "
        "are not stratified.",
        "The training fraction is missing from the available text: "
        f"{experiment.folds - 1}/{experiment.folds} is used instead. So are the formulas of "
        "Proposition 2, for which a scorer with the same property is used.",
        "Mean log error (eq. 12) has natural logarithms, which agree with the printed values, and "
        "is infinite if any estimate of any split is 0 for the true label. VA and SVA are merged "
        "by eq. 10 for log loss and by eq. 11 for square loss.",
        "The classifiers are scikit-learn's in place of Weka's. J (J48): a tree grown by entropy, "
        "with at least two examples per leaf, stopped and pruned by C4.5's rules (a threshold must "
        "save more bits than it costs; pessimistic errors at a confidence of .25), without C4.5's "
        "gain ratio and multiway splits. JB: ten such trees. LR: Weka's ridge of 1e-8. "
        f"NB: {experiment.density} densities for numbers"
        + (
            ", which agree with the printed numbers (Weka's default is normal: --set "
            "density=normal)"
            if experiment.density == "kernel"
            else ""
        )
        + ", smoothed frequencies for nominal columns, missing cells ignored, as in Weka. NN: four "
        "hidden units, 30 steps of L-BFGS, weight decay .01, far less training than Weka's 500 "
        "epochs, since VA trains twice for every test object. SVM: linear, C = 1, features scaled "
        f"to [0, 1] as in Weka, with a sigmoid of {experiment.platt} targets fitted to the "
        "training scores; SVA, DIR and VA use its decision values, for which the sigmoid is "
        "redundant.",
        "For LR, NN and SVM nominal columns are one-hot encoded, and missing cells are imputed by "
        "the mean or the most frequent value of the training set, as in Weka. Trees learn which "
        "way to send missing numbers; a missing nominal value is 0 in all of its columns.",
        "The paper does not say which of the repository's versions it used. Echo here has 131 "
        "patients and the label still-alive; the same file is also used to predict survival for a "
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
        note="The lowest of each classifier's four values is marked.",
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
        note="The printed results are in brackets.",
    )


def figures(f: Findings) -> Iterable[Figure]:
    """Yield a plot of obtained against printed errors."""
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
