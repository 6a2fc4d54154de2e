"""The page of Niculescu-Mizil & Caruana (2005): notes, and the figures as numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from vennforest_experiments.papers.niculescu2005.conclusions import conclusions
from vennforest_experiments.papers.niculescu2005.experiment import LOSSES, METHODS, Niculescu2005
from vennforest_experiments.papers.niculescu2005.figures import figures
from vennforest_experiments.papers.niculescu2005.findings import COMPARED, Findings
from vennforest_experiments.papers.niculescu2005.learners import LEARNERS
from vennforest_experiments.papers.protocol.experiment import command
from vennforest_experiments.papers.protocol.reproduction import Cell, Reproduction, Table
from vennforest_experiments.papers.protocol.store import Record, Task
from vennforest_experiments.papers.published import MEAN


def report(
    experiment: Niculescu2005, records: Mapping[Task, Record], datasets: Sequence[str]
) -> Reproduction:
    """Make the paper's figures and their numbers, and say which conclusions hold."""
    findings = Findings(experiment, records, datasets)
    means = findings.means
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
        conclusions=tuple(conclusions(means)),
        values=findings.values.all(),
        _tables=tuple(tables(findings)),
        figures=tuple(figures(shown, means.curves, means.losses, experiment.sizes())),
    )


def notes(
    experiment: Niculescu2005, datasets: Sequence[str], records: Mapping[Task, Record]
) -> tuple[str, ...]:
    """Describe how it was done, and where the paper leaves details open."""
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
        f"for training, the next {experiment.calibration_cases} for calibration and model "
        f"selection, all others for testing. Seed {experiment.seed}. The comparison (Figure 8) "
        f"averages over the first {compared} trials (the paper: five), the learning curves "
        "(Figure 7) over all (the paper: ten), the diagrams (Figures 1 to 6) show the first.",
        "COV_TYPE is 30,000 cases of the 581,012. The positive class is spruce and fir: the paper "
        "says the largest class, but its 36% are those of the second largest. ADULT has the "
        "45,222 cases without missing cells.",
        "Learners are scikit-learn's, with fewer settings than the paper's: SVM 9 (linear, "
        "polynomial, radial kernels), ANN 12 (8 to 128 hidden units, 20 or 100 epochs, weight "
        "decay of 1e-4 or 1), DT 10, KNN 8, BAG-DT 4 (100 trees), RF 3 (300 trees), BST-DT 3 "
        "depths × 4, 16, 64, 256 steps, BST-STMP 8, 32, 128, 512 steps, NB 4 (normal densities, or "
        "5 to 20 equal-frequency bins), LOGREG 4. Boosted scores are weighted fractions of votes.",
        "SVM scores are scaled to [0, 1] by (x − min)/(max − min) over the calibration cases and "
        "clipped beyond; the calibrators get them unscaled. Platt scaling has the paper's smoothed "
        "targets (eq. 4); isotonic regression is evaluated as a step function (Table 1).",
        "For each method the setting that is best on the calibration cases is tested, as in the "
        "paper: by squared error for squared error, by log loss for log loss. Figures 1 to 7 show "
        "the setting with the smallest squared error before or after calibration.",
        "Log losses are natural logarithms of estimates clipped to [.001, .999]: 1,000 calibration "
        "cases support no finer estimates, and the paper does not say how it kept log loss finite. "
        "Without "
        "clipping it would be infinite in "
        + ", ".join(f"{n} of {total} runs for {m}" for m, n in infinite.items())
        + ".",
        "Venn–Abers (merged for log loss) is added by this library.",
        "In the learning curves a calibration set smaller than "
        f"{experiment.calibration_cases} is the first part of those cases; none of them is used "
        "for testing, because the setting was selected on them.",
    )


def tables(f: Findings) -> Iterable[Table]:
    """Yield the problems, the numbers of Figures 7 and 8, and the slopes."""
    yield _problems(f)
    for loss in LOSSES:
        yield _losses(f, loss)
    yield _curves(f)
    yield _slopes(f)


def _problems(f: Findings) -> Table:
    sizes = ("attributes", "training cases", "test cases", "percent positive")

    def cell(dataset: str, size: str) -> Cell | None:
        plain = f.values.cell("2", dataset, "", size)
        return plain or f.values.cell("2", dataset, "", f"{size}, one-hot")

    return Table(
        "table-2",
        "Table 2. Problems",
        sizes,
        tuple((d, tuple(cell(d, size) for size in sizes)) for d in f.datasets),
        digits=1,
    )


def _losses(f: Findings, loss: str) -> Table:
    def cells(kind: str) -> Iterable[Cell | None]:
        means = {m: f.means.mean(kind, m, loss) for m in METHODS}
        for m, value in means.items():
            yield Cell(value, marked=value == min(means.values()))
            spread = f"{loss}, standard deviation"
            yield f.values.cell("figure 8", MEAN, f"{kind} {m}", spread)

    return Table(
        f"figure-8-{loss.replace(' ', '-')}",
        f"Figure 8 as numbers. Mean {loss} over the problems",
        tuple(head for m in METHODS for head in (m, "± sd")),
        tuple((kind, tuple(cells(kind))) for kind in LEARNERS),
        digits=4,
        note="Standard deviations are over trials. The smallest of a row is marked.",
    )


def _curves(f: Findings) -> Table:
    def cells(kind: str, method: str) -> tuple[Cell, ...]:
        return tuple(Cell(float(v)) for v in f.means.curves[kind, method].mean(axis=1))

    return Table(
        "figure-7",
        "Figure 7 as numbers. Mean squared error by the size of the calibration set",
        tuple(str(size) for size in f.sizes),
        tuple((f"{kind} {m}", cells(kind, m)) for kind in LEARNERS for m in METHODS),
        digits=4,
    )


def _slopes(f: Findings) -> Table:
    def cells(kind: str) -> tuple[Cell | None, ...]:
        return tuple(f.values.cell("figures 1–6", d, kind, "slope") for d in f.datasets)

    return Table(
        "slopes",
        "Figures 1 to 6 as numbers. Slope of the outcomes' log-odds on those of the raw estimates",
        tuple(f.datasets),
        tuple((kind, cells(kind)) for kind in LEARNERS),
        digits=2,
        note="Above 1 the estimates are pushed away from 0 and 1 (a reliability diagram shaped "
        "like a sigmoid), below 1 towards them; 1 is unbiased.",
    )
