"""The experiments of five papers, repeated, with the printed numbers beside those obtained."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

from vennforest._validation import InputError
from vennforest_experiments.papers.protocol.experiment import Experiment, option_names
from vennforest_experiments.papers.protocol.reproduction import Reproduction
from vennforest_experiments.papers.protocol.run import Progress, run_experiment
from vennforest_experiments.papers.protocol.store import Task
from vennforest_experiments.papers.published import Paper

__all__ = ["EXPERIMENTS", "Progress", "Reproduction", "Task", "experiment", "reproduce"]

EXPERIMENTS: tuple[Paper, ...] = get_args(Paper)
"""The papers that can be reproduced. Each has a folder of its name, whose ``experiment`` has
``EXPERIMENT``, a class, and whose ``report`` has ``report``, which makes a `Reproduction` of the
experiment, its records and the data sets that were run."""


def experiment(paper: str) -> type[Experiment]:
    """Return a paper's experiment.

    Raises
    ------
    ValueError
        If there is no such paper.
    """
    found: type[Experiment] = _module(paper, "experiment").EXPERIMENT
    return found


def _module(paper: str, name: str) -> ModuleType:
    if paper not in EXPERIMENTS:
        raise InputError(f"paper must be one of {list(EXPERIMENTS)}, got {paper!r}")
    return importlib.import_module(f"vennforest_experiments.papers.{paper}.{name}")


def reproduce(
    paper: str,
    data_dir: str | os.PathLike[str] | None = None,
    datasets: Iterable[str] | None = None,
    *,
    repeats: int | None = None,
    folds: int | None = None,
    n_jobs: int | None = None,
    seed: int = 0,
    output: str | os.PathLike[str] | None = None,
    progress: Callable[[Progress], None] | None = None,
    **options: Any,
) -> Reproduction:
    """Run a paper's experiment and set its numbers beside the printed ones.

    Parameters
    ----------
    paper : {"johansson2018", "bostrom2008", "vovk2014", "niculescu2005", "shaker2025"}
        The paper.
    data_dir : path, optional
        The local folder of data sets, see `vennforest_experiments.datasets.load`.
    datasets : iterable of str, optional
        Names of data sets as printed in the paper; by default all of them.
    repeats, folds : int, optional
        Repeats and folds of the cross-validation; by default those of the paper.
    n_jobs : int, optional
        Number of processes; -1 for one per processor. The numbers do not depend on it.
    seed : int
        Seed of all random numbers.
    output : path, optional
        A folder for ``results.csv``, tables, figures and the HTML page ``index.html``. Each
        finished fold is written to ``folds.jsonl`` there at once: called again with the same
        folder, a stopped run resumes.
    progress : callable, optional
        Called with a `Progress` at the start and after every fold.
    **options
        The experiment's own settings, such as ``trees``.

    Returns
    -------
    Reproduction
        Tables, figures and conclusions.

    Raises
    ------
    ValueError
        If an argument is invalid, or ``output`` holds results of other settings or data.
    FileNotFoundError
        If a data set cannot be found.
    ImportError
        If pandas is not installed; with ``output`` also jinja2 or matplotlib.
    """
    kind = experiment(paper)
    report = _module(paper, "report").report
    own = option_names(kind)
    unknown = sorted(set(options) - set(own))
    if unknown:
        raise InputError(f"options of {paper} must be among {own}, got {unknown[0]!r}")
    if repeats is not None:
        options["repeats"] = repeats
    if folds is not None:
        options["folds"] = folds
    folder = None if data_dir is None else str(Path(data_dir).expanduser())
    chosen = None if datasets is None else [datasets] if isinstance(datasets, str) else datasets
    chosen = None if chosen is None else list(chosen)
    try:
        this = kind(data_dir=folder, seed=seed, **options)
    except (TypeError, ValueError) as error:
        raise InputError(str(error)) from error
    records = run_experiment(this, chosen, n_jobs=n_jobs, output=output, progress=progress)
    found: Reproduction = report(
        this, records, list(dict.fromkeys(task.dataset for task in records))
    )
    if output is not None:
        found.write(output)
    return found
