"""Run an experiment's tasks in several processes, and resume a stopped run."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import joblib
import numpy as np

from vennforest._validation import InputError
from vennforest_experiments.papers.protocol.experiment import Experiment, PreparedData
from vennforest_experiments.papers.protocol.store import Record, Store, Task


@dataclass(frozen=True)
class Progress:
    """Progress of a run.

    Attributes
    ----------
    done, total : int
        Number of finished folds, including those of earlier runs, and of all folds.
    resumed : int
        Number of folds finished by earlier runs.
    elapsed : float
        Seconds since this run began.
    left : float or None
        Estimated seconds left; None before the first fold.
    task : Task or None
        The fold finished last.
    """

    done: int
    total: int
    resumed: int
    elapsed: float
    left: float | None
    task: Task | None


def fingerprint(data: PreparedData) -> str:
    """Return a short hash of a data set's numbers and labels."""
    digest = hashlib.blake2b(digest_size=8)
    digest.update(repr(data.X.shape).encode())
    digest.update(np.ascontiguousarray(data.X, dtype="<f8").tobytes())
    digest.update("\x1f".join(map(str, data.y.tolist())).encode())
    return digest.hexdigest()


def choose_datasets(experiment: Experiment, datasets: Iterable[str] | None) -> tuple[str, ...]:
    """Return the chosen data sets in printed order; None: all.

    Raises
    ------
    ValueError
        If a name is not one of the paper's, or none is given.
    """
    known = experiment.datasets()
    if datasets is None:
        return known
    wanted = {datasets} if isinstance(datasets, str) else set(datasets)
    unknown = sorted(wanted - set(known))
    if unknown:
        raise InputError(f"datasets must be among {list(known)}, got {unknown[0]!r}")
    if not wanted:
        raise InputError("datasets must name at least one data set, got none")
    return tuple(name for name in known if name in wanted)


def run_experiment(
    experiment: Experiment,
    datasets: Iterable[str] | None = None,
    *,
    n_jobs: int | None = None,
    output: str | os.PathLike[str] | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> dict[Task, Record]:
    """Run every task that has not been run yet, and return the records of all tasks.

    Parameters
    ----------
    experiment : Experiment
        The experiment to run.
    datasets : iterable of str, optional
        Printed names; by default all of the paper's.
    n_jobs : int, optional
        Number of processes; -1 for one per processor. The numbers do not depend on it.
    output : path, optional
        Folder to which each finished fold is written at once, and from which a stopped run resumes.
    progress : callable, optional
        Called with a `Progress` at the start and after every fold.

    Returns
    -------
    dict of Task to record
        In the order of the experiment's tasks.

    Raises
    ------
    ValueError
        If ``output`` holds results of other settings or other data, or ``datasets`` has a name
        that is not one of the paper's.
    """
    chosen = choose_datasets(experiment, datasets)
    tasks = experiment.tasks(chosen)
    fingerprints = {name: fingerprint(experiment.data(name)) for name in chosen}
    store = None if output is None else Store(Path(output), experiment.settings())
    lines = {} if store is None else store.read()
    for task in tasks:
        if task in lines and lines[task]["data"] != fingerprints[task.dataset]:
            raise InputError(
                f"output must hold results of the same data, got those of another {task.dataset}: "
                "choose another folder"
            )
    records = {task: lines[task]["record"] for task in tasks if task in lines}
    timer = _Timer(tasks, {task: lines[task]["seconds"] for task in records}, progress)
    todo = [task for task in tasks if task not in records]
    for task, record, seconds in _run_tasks(experiment, todo, n_jobs):
        if store is not None:
            store.append(task, fingerprints[task.dataset], seconds, record)
        records[task] = record
        timer.finish(task, seconds)
    return {task: records[task] for task in tasks}


def _run_tasks(
    experiment: Experiment, tasks: list[Task], n_jobs: int | None
) -> Iterator[tuple[Task, Record, float]]:
    """Yield each task's result and seconds as soon as it is finished, in any order."""
    n_jobs = min(joblib.effective_n_jobs(n_jobs), max(1, len(tasks)))
    if n_jobs == 1:
        for task in tasks:
            yield _run_task(experiment, task)
        return
    # No batches and a short queue, so that each fold is written as soon as it is finished.
    pool = joblib.Parallel(
        n_jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="2 * n_jobs"
    )
    yield from pool(joblib.delayed(_run_task)(experiment, task) for task in tasks)


def _run_task(experiment: Experiment, task: Task) -> tuple[Task, Record, float]:
    start = time.perf_counter()
    try:
        record = experiment.run(task)
    except Exception as error:
        error.add_note(f"in {experiment.paper}, {task}")
        raise
    return task, record, time.perf_counter() - start


class _Timer:
    """Estimates the time left from how long each data set's folds have taken so far."""

    def __init__(
        self,
        tasks: Sequence[Task],
        seconds: Mapping[Task, float],
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self.total, self.resumed, self.progress = len(tasks), len(seconds), progress
        self.start = time.perf_counter()
        self.remaining: dict[str, int] = {}
        for task in tasks:
            if task not in seconds:
                self.remaining[task.dataset] = self.remaining.get(task.dataset, 0) + 1
        self.taken: dict[str, list[float]] = {}
        for task, value in seconds.items():
            self.taken.setdefault(task.dataset, []).append(value)
        self.worked = 0.0
        self.done = self.resumed
        self._notify(None)

    def finish(self, task: Task, seconds: float) -> None:
        """Count a finished fold."""
        self.done += 1
        self.worked += seconds
        self.remaining[task.dataset] -= 1
        self.taken.setdefault(task.dataset, []).append(seconds)
        self._notify(task)

    def _notify(self, task: Task | None) -> None:
        if self.progress is None:
            return
        elapsed = time.perf_counter() - self.start
        left = 0.0 if self.done == self.total else None
        if self.worked and left is None:
            every = [value for values in self.taken.values() for value in values]
            average = sum(every) / len(every)
            work = sum(
                count * (float(np.mean(self.taken[name])) if name in self.taken else average)
                for name, count in self.remaining.items()
            )
            # Several processes do more than one second of work per second.
            left = work * elapsed / self.worked
        self.progress(Progress(self.done, self.total, self.resumed, elapsed, left, task))
