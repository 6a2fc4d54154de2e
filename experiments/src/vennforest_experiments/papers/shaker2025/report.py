"""The page of Shaker & Hüllermeier (2025): notes, tables and figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from vennforest_experiments.papers.protocol.experiment import command
from vennforest_experiments.papers.protocol.phrases import times
from vennforest_experiments.papers.protocol.reproduction import (
    Figure,
    Reproduction,
    Table,
    draw_ranks,
)
from vennforest_experiments.papers.protocol.store import Record, Task
from vennforest_experiments.papers.published import MEAN, MEAN_RANK
from vennforest_experiments.papers.shaker2025.conclusions import conclusions
from vennforest_experiments.papers.shaker2025.experiment import BINS, METHODS, Shaker2025
from vennforest_experiments.papers.shaker2025.findings import (
    GROUPS,
    MEASURES,
    TRUE_ERROR,
    Findings,
    mean_measures,
)
from vennforest_experiments.papers.shaker2025.forest import COUNTS, DEPTHS, LEAVES

TITLES = {
    "accuracy": "Accuracy",
    "brier": "Brier score",
    "log loss": "Log loss",
    "ece": "Expected calibration error",
    "squared gap": "Mean squared gap of bins",
}


def report(
    experiment: Shaker2025, records: Mapping[Task, Record], datasets: Sequence[str]
) -> Reproduction:
    """Make tables and figures, and say which of the paper's conclusions hold."""
    findings = Findings(mean_measures(records, datasets))
    return Reproduction(
        paper="shaker2025",
        title="Shaker & Hüllermeier (2025). Random forest calibration. Knowledge-Based Systems "
        "328; arXiv:2501.16756.",
        command=command(experiment, datasets),
        notes=notes(experiment, datasets),
        conclusions=tuple(conclusions(findings)),
        values=findings.values.all(),
        _tables=tuple(tables(findings)),
        figures=tuple(figures(findings)),
    )


def notes(experiment: Shaker2025, datasets: Sequence[str]) -> tuple[str, ...]:
    """Describe how it was done, where it departs from the paper, and what was at hand of it."""
    total = len(experiment.datasets())
    return (
        "The paper's text was not at hand beyond its abstract. The method is taken from the code "
        "that its authors published (github.com/mhshaker/RF_ranking_calibration), the printed "
        "numbers are those of a notebook there (Experiments/Compare_runs.ipynb: 30 data sets of "
        "two classes, 100 trees, 10-fold cross-validation, each calibrator fitted to a held-out "
        "part and out of bag). They are not checked against the tables of the paper. Mean ranks "
        "are computed from them; the method that ranks objects before isotonic regression is left "
        "out.",
        f"{len(datasets)} of {total} data sets: 29 of two classes, of each {experiment.rows} rows "
        "at most, of which ten (by name) are also the authors'; and eight synthetic ones of "
        f"{experiment.rows} rows with known probabilities, two normal distributions with unequal "
        "variances in 2 to 20 dimensions. Stratified cross-validation: "
        f"{min(experiment.tested, experiment.folds)} of {experiment.folds} folds"
        f"{times(experiment.repeats)} (the authors: 10 folds, 5 times; --set "
        f"tested={experiment.folds} runs them all), forests of {experiment.trees} trees (the "
        f"authors: 100), seed {experiment.seed}.",
        "RF_d: a forest with default settings. RF_large: one with "
        f"{experiment.large} times as many trees (the authors: 5 times). RF_opt: tuned for depth "
        f"({_choices(DEPTHS)}) and leaf size ({_choices(LEAVES)}) by the out-of-bag Brier score; "
        "the authors draw 50 settings at random, of these and of criterion, features, split size, "
        "class weights and Laplace's correction, and choose by the Brier score of 5 folds. Trees "
        "are cut at a depth instead of grown to it, which is the same in distribution. CT: "
        f"curtailment, the node that answers holds at least {_choices(COUNTS)} examples, chosen in "
        "the same way.",
        "Platt, ISO, Beta, VA (Venn–Abers, merged for the Brier score, as in the authors' code) "
        "and PPA (Boström's correction) are fitted to a held-out part of the training set as large "
        "as the test set, on the scores of a forest tuned on the rest. With “oob” they are fitted "
        "to the out-of-bag scores of RF_opt, which has all training examples. “default” is the "
        "library's own: a pool of maps, out of bag, on RF_d, RF_opt and RF_large.",
        f"The Brier score is the mean of (y − p)². ECE has {BINS} bins of equal width. What the "
        "authors' code calls ECE is the unweighted mean over the bins that are not empty of the "
        "squared gap: a bin with one object counts as much as one with a hundred. It is given as "
        "“squared gap” beside ECE as it is usually defined, and the authors' numbers stand beside "
        "the former. Both are means over test folds, small ones among them, and biased upwards "
        "there. Log loss is cut off at 2.2e-16. Missing numbers are left to the trees; nominal "
        "columns are one-hot encoded.",
    )


def tables(f: Findings) -> Iterable[Table]:
    """Yield mean ranks, means, synthetic data, and the numbers of each data set."""
    if f.datasets:
        titles = {
            "held out": "Mean ranks of the paper's methods",
            "out of bag": "Mean ranks with the same calibrators out of bag",
            "all": "Mean ranks of all methods",
        }
        for group, methods in GROUPS.items():
            yield _across(f, group, MEAN_RANK, titles[group], methods, MEASURES, 2)
        yield _across(f, "each", MEAN, "Means over the data sets", METHODS, MEASURES, 4)
    if f.synthetic:
        names = ["brier", "log loss", TRUE_ERROR]
        title = "Means over the synthetic data"
        yield _across(f, "synthetic", MEAN, title, METHODS, [*MEASURES, TRUE_ERROR], 4)
        title = "Mean ranks over the synthetic data"
        yield _across(f, "synthetic", MEAN_RANK, title, METHODS, names, 2)
    for measure in ("brier", "log loss") if f.datasets else ():
        yield Table(
            "each-" + measure.replace(" ", "-"),
            f"{TITLES[measure]} on each data set",
            METHODS,
            tuple(
                (d, tuple(f.values.cell("each", d, m, measure) for m in METHODS))
                for d in [*f.datasets, MEAN]
            ),
        )


def _across(
    f: Findings,
    table: str,
    row: str,
    title: str,
    methods: Sequence[str],
    names: Iterable[str],
    digits: int,
) -> Table:
    """Return a table with a row for each method and a column for each measure."""
    columns = tuple(names)
    return Table(
        f"{table}-{row.strip('()')}".replace(" ", "-"),
        title,
        columns,
        tuple((m, tuple(f.values.cell(table, row, m, name) for name in columns)) for m in methods),
        digits=digits,
        note="1 is best." if row == MEAN_RANK else "",
    )


def figures(f: Findings) -> Iterable[Figure]:
    """Yield critical-difference diagrams of all methods."""
    for measure in ("brier", "log loss") if f.datasets else ():
        yield Figure(
            f"ranks-{measure.replace(' ', '-')}",
            f"Mean ranks, {measure}; bars: no significant difference (Nemenyi)",
            draw_ranks(f.comparisons["all", measure], "nemenyi"),
            (7.5, 4.5),
        )


def _choices(values: Sequence[int | None]) -> str:
    shown = ["unlimited" if v is None else str(v) for v in values]
    return f"{', '.join(shown[:-1])} or {shown[-1]}"
