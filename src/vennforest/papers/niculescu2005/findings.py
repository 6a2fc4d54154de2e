"""The figures of Niculescu-Mizil & Caruana (2005) as numbers, and which conclusions hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vennforest._validation import FloatArray
from vennforest.papers.niculescu2005.conclusions import LOSSES, METHODS, Conclusions, Measured
from vennforest.papers.niculescu2005.figures import figures
from vennforest.papers.niculescu2005.learners import LEARNERS
from vennforest.papers.protocol.experiment import Record, Task, command
from vennforest.papers.protocol.reproduction import Cell, Reproduction, Table, Values
from vennforest.papers.published import MEAN

if TYPE_CHECKING:
    from vennforest.papers.niculescu2005.experiment import Niculescu2005

FIRST_SIZE = 32
GRID = 51
"""At so many raw estimates from 0 to 1 the fitted maps are drawn."""

COMPARED = 5
"""The trials that the comparison averages over."""


def report(
    experiment: Niculescu2005, records: Mapping[Task, Record], datasets: Sequence[str]
) -> Reproduction:
    """Make the reproduction of what was measured."""
    findings = Findings(experiment, records, datasets)
    measured = findings.measured
    shown = {
        (task.dataset, LEARNERS[task.fold]): record
        for task, record in records.items()
        if task.repeat == 0
    }
    return Reproduction(
        paper="niculescu2005",
        title="Niculescu-Mizil & Caruana (2005). Predicting good probabilities with supervised "
        "learning. Proceedings of the 22nd International Conference on Machine Learning, 625–632.",
        command=command(experiment, datasets),
        notes=notes(experiment, datasets, records),
        conclusions=tuple(Conclusions(measured).all()),
        values=findings.values.all(),
        shown=tuple(findings.tables()),
        figures=tuple(figures(shown, measured.curves, measured.losses, experiment.sizes())),
    )


def notes(
    experiment: Niculescu2005, datasets: Sequence[str], records: Mapping[Task, Record]
) -> tuple[str, ...]:
    """Say how it was done, and where the paper leaves it open."""
    compared = min(COMPARED, experiment.repeats)
    infinite = {
        m: sum(r["losses"][m]["infinite"] for t, r in records.items() if t.repeat < COMPARED)
        for m in METHODS
    }
    total = sum(t.repeat < COMPARED for t in records)
    return (
        f"{len(datasets)} of the paper's eight problems: {', '.join(datasets)}. Four of the eight "
        "(MEDIS, MG, SLAC, HS) are not public, so that no mean over problems can equal a printed "
        "one; the paper prints its results as figures alone, without numbers.",
        f"{experiment.repeats} trials, each a random permutation: {experiment.train_cases} cases "
        f"train, the next {experiment.calibration_cases} calibrate and select, all others test. "
        f"Seed {experiment.seed}. The comparison (Figure 8) averages over the first {compared} "
        "trials (the paper: five), the learning curves (Figure 7) over all (the paper: ten), the "
        "diagrams (Figures 1 to 6) show the first.",
        "COV_TYPE is 30,000 cases of the 581,012. The positive class is spruce and fir: the paper "
        "says the largest class, but its 36% are those of the second largest. ADULT has the "
        "45,222 cases without missing cells.",
        "Learners are scikit-learn's, with fewer settings than the paper's: SVM 9 (linear, "
        "polynomial, radial kernels), ANN 12 (8 to 128 hidden units, 20 or 100 epochs, weight "
        "decay of 1e-4 or 1), DT 10, KNN 8, BAG-DT 4 (100 trees), RF 3 (300 trees), BST-DT 3 "
        "depths × 4, 16, 64, 256 steps, BST-STMP 8, 32, 128, 512 steps, NB 4 (normal densities, or "
        "5 to 20 parts of equally many cases), LOGREG 4. Boosted scores are weighted shares of "
        "votes.",
        "SVM scores are scaled to [0, 1] by (x − min)/(max − min) over the calibration cases, "
        "beyond them clipped; the calibrators see them unscaled. Platt scaling has the paper's "
        "smoothed targets (eq. 4); isotonic regression is read as a step function (Table 1).",
        "For each method the setting that is best on the calibration cases is tested, as in the "
        "paper: by squared error for squared error, by log loss for log loss. Figures 1 to 7 show "
        "the setting with the smallest squared error before or after calibration.",
        "Log losses are natural logarithms of estimates clipped to [.001, .999]: 1,000 calibration "
        "cases cannot tell more, and the paper does not say how it kept log loss finite. Without "
        "clipping it would be infinite in "
        + ", ".join(f"{n} of {total} runs for {m}" for m, n in infinite.items())
        + ".",
        "Venn–Abers (merged for log loss, and the smooth merge) is added by this library.",
        "In the learning curves a calibration set smaller than "
        f"{experiment.calibration_cases} is the first part of those cases; none of them is tested "
        "on, because they chose the setting.",
    )


def measure(
    experiment: Niculescu2005, records: Mapping[Task, Record], datasets: Sequence[str]
) -> Measured:
    """Average the records of all trials."""
    trials = range(experiment.repeats)
    compared = trials[:COMPARED]

    def table(among: Iterable[int], kind: str, *path: str) -> FloatArray:
        """Return what stands at the path in each trial's (first axis) and problem's record."""
        fold = LEARNERS.index(kind)
        rows = [[_at(records[Task(d, t, fold)], path) for d in datasets] for t in among]
        return np.array(rows, np.float64)

    losses, by_problem, curves, slopes = {}, {}, {}, {}
    for kind in LEARNERS:
        for method in METHODS:
            for loss in LOSSES:
                found = table(compared, kind, "losses", method, loss)
                losses[kind, method, loss] = found.mean(axis=1)
                by_problem[kind, method, loss] = found.mean(axis=0)
            curves[kind, method] = table(trials, kind, "curve", method).mean(axis=1).T
        slopes[kind] = table(compared, kind, "slope").mean(axis=0)
    return Measured(list(datasets), experiment.sizes(), losses, by_problem, curves, slopes)


def _at(record: Record, path: Iterable[str]) -> Any:
    found: Any = record
    for name in path:
        found = found[name]
    return found


class Findings:
    """Numbers, tables and conclusions from the records."""

    def __init__(
        self, experiment: Niculescu2005, records: Mapping[Task, Record], datasets: Sequence[str]
    ) -> None:
        self.experiment, self.datasets, self.sizes = experiment, datasets, experiment.sizes()
        self.measured = measure(experiment, records, datasets)
        self.values = Values("niculescu2005")
        self._add_values()

    def _add_values(self) -> None:
        add = self.values.add
        for name in self.datasets:
            X, y = self.experiment.problem(name)
            add(
                "2",
                name,
                "",
                "attributes, one-hot" if name == "ADULT" else "attributes",
                X.shape[1],
            )
            add("2", name, "", "training cases", self.experiment.train_cases)
            used = self.experiment.train_cases + self.experiment.calibration_cases
            add("2", name, "", "test cases", len(y) - used)
            add("2", name, "", "percent positive", 100 * float(np.mean(y)))
        for (kind, method, loss), column in self.measured.by_problem.items():
            for name, value in zip(self.datasets, column, strict=True):
                add("figure 8", name, f"{kind} {method}", loss, value)
        for (kind, method, loss), trials in self.measured.losses.items():
            add("figure 8", MEAN, f"{kind} {method}", loss, float(trials.mean()))
            spread = float(trials.std(ddof=1)) if len(trials) > 1 else float("nan")
            add("figure 8", MEAN, f"{kind} {method}", f"{loss}, standard deviation", spread)
        for (kind, method), curve in self.measured.curves.items():
            for size, value in zip(self.sizes, curve.mean(axis=1), strict=True):
                measure = f"squared error, {size} cases"
                add("figure 7", MEAN, f"{kind} {method}", measure, float(value))
        for kind, slopes in self.measured.slopes.items():
            for name, value in zip(self.datasets, slopes, strict=True):
                add("figures 1–6", name, kind, "slope", value)

    # --- tables ------------------------------------------------------------------------------

    def tables(self) -> Iterable[Table]:
        """Yield the problems, the numbers of Figures 7 and 8, and the slopes."""
        sizes = ("attributes", "training cases", "test cases", "percent positive")
        yield Table(
            "table-2",
            "Table 2. Problems",
            sizes,
            tuple(
                (
                    d,
                    tuple(
                        self.values.cell("2", d, "", m)
                        or self.values.cell("2", d, "", f"{m}, one-hot")
                        for m in sizes
                    ),
                )
                for d in self.datasets
            ),
            digits=1,
        )
        for loss in LOSSES:
            rows = []
            for kind in LEARNERS:
                best = min(self.measured.mean(kind, m, loss) for m in METHODS)
                cells: list[Cell | None] = []
                for m in METHODS:
                    value = self.measured.mean(kind, m, loss)
                    cells.append(Cell(value, marked=value == best))
                    spread = f"{loss}, standard deviation"
                    cells.append(self.values.cell("figure 8", MEAN, f"{kind} {m}", spread))
                rows.append((kind, tuple(cells)))
            yield Table(
                f"figure-8-{loss.replace(' ', '-')}",
                f"Figure 8 as numbers. Mean {loss} over the problems",
                tuple(head for m in METHODS for head in (m, "± sd")),
                tuple(rows),
                digits=4,
                note="Standard deviations are over trials. The smallest of a row is marked.",
            )
        yield Table(
            "figure-7",
            "Figure 7 as numbers. Mean squared error by the size of the calibration set",
            tuple(str(size) for size in self.sizes),
            tuple(
                (
                    f"{kind} {m}",
                    tuple(Cell(float(v)) for v in self.measured.curves[kind, m].mean(axis=1)),
                )
                for kind in LEARNERS
                for m in METHODS
            ),
            digits=4,
        )
        yield Table(
            "slopes",
            "Figures 1 to 6 as numbers. Slope of the outcomes' log-odds over the raw estimates'",
            tuple(self.datasets),
            tuple(
                (
                    kind,
                    tuple(self.values.cell("figures 1–6", d, kind, "slope") for d in self.datasets),
                )
                for kind in LEARNERS
            ),
            digits=2,
            note="Above 1 the estimates are pushed away from 0 and 1 (a reliability diagram shaped "
            "like a sigmoid), below 1 towards them; 1 is right.",
        )
