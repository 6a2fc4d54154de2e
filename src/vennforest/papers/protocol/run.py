"""Run an experiment's tasks, in several processes, and go on where a stopped run ended."""

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
from vennforest.papers.protocol.experiment import Experiment, PreparedData
from vennforest.papers.protocol.store import Record, Store, Task


@dataclass(frozen=True)
class Progress:
    """How far a run is.

    Attributes
    ----------
    done, total : int
        Folds finished, those of earlier runs included, and all of them.
    resumed : int
        Folds taken over from earlier runs.
    elapsed : float
        Seconds since this run began.
    left : float or None
        Estimated seconds to its end; None before the first fold.
    task : Task or None
        The fold that was finished last.
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
        If a name is none of the paper's, or none is given.
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
    """Run every task that has not been run yet, and return the records of all.

    Parameters
    ----------
    experiment : Experiment
        What to run.
    datasets : iterable of str, optional
        Printed names; by default all of the paper's.
    n_jobs : int, optional
        Processes; -1: one a processor. The numbers do not depend on it.
    output : path, optional
        Folder in which finished folds are kept as they come, and from which a stopped run goes on.
    progress : callable, optional
        Called with a `Progress` at the start and after every fold.

    Returns
    -------
    dict of Task to record
        In the order of the experiment's tasks.

    Raises
    ------
    ValueError
        If ``output`` holds results of other settings or other data, or ``datasets`` is wrong.
    """
    chosen = choose_datasets(experiment, datasets)
    tasks = experiment.tasks(chosen)
    marks = {name: fingerprint(experiment.data(name)) for name in chosen}
    store = None if output is None else Store(Path(output), experiment.settings())
    lines = {} if store is None else store.read()
    for task in tasks:
        if task in lines and lines[task]["data"] != marks[task.dataset]:
            raise InputError(
                f"output must hold results of the same data, got those of another {task.dataset}: "
                "choose another folder"
            )
    records = {task: lines[task]["record"] for task in tasks if task in lines}
    clock = _Clock(tasks, {task: lines[task]["seconds"] for task in records}, progress)
    todo = [task for task in tasks if task not in records]
    for task, record, seconds in _work_off(experiment, todo, n_jobs):
        if store is not None:
            store.append(task, marks[task.dataset], seconds, record)
        records[task] = record
        clock.tick(task, seconds)
    return {task: records[task] for task in tasks}


def _work_off(
    experiment: Experiment, tasks: list[Task], n_jobs: int | None
) -> Iterator[tuple[Task, Record, float]]:
    """Yield the tasks' results as they come, in any order."""
    n_jobs = min(joblib.effective_n_jobs(n_jobs), max(1, len(tasks)))
    if n_jobs == 1:
        for task in tasks:
            yield _work(experiment, task)
        return
    # Single folds, and few waiting: what is finished is written at once.
    pool = joblib.Parallel(
        n_jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="2 * n_jobs"
    )
    yield from pool(joblib.delayed(_work)(experiment, task) for task in tasks)


def _work(experiment: Experiment, task: Task) -> tuple[Task, Record, float]:
    start = time.perf_counter()
    try:
        record = experiment.run(task)
    except Exception as error:
        error.add_note(f"in {experiment.paper}, {task}")
        raise
    return task, record, time.perf_counter() - start


class _Clock:
    """Tells how long the rest will take, from what each data set's folds took so far."""

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
        self.seen: dict[str, list[float]] = {}
        for task, value in seconds.items():
            self.seen.setdefault(task.dataset, []).append(value)
        self.worked = 0.0
        self.done = self.resumed
        self._tell(None)

    def tick(self, task: Task, seconds: float) -> None:
        """Count a finished fold."""
        self.done += 1
        self.worked += seconds
        self.remaining[task.dataset] -= 1
        self.seen.setdefault(task.dataset, []).append(seconds)
        self._tell(task)

    def _tell(self, task: Task | None) -> None:
        if self.progress is None:
            return
        elapsed = time.perf_counter() - self.start
        left = 0.0 if self.done == self.total else None
        if self.worked and left is None:
            every = [value for values in self.seen.values() for value in values]
            usual = sum(every) / len(every)
            work = sum(
                count * (float(np.mean(self.seen[name])) if name in self.seen else usual)
                for name, count in self.remaining.items()
            )
            left = work * elapsed / self.worked  # several processes work off more than a second's
        self.progress(Progress(self.done, self.total, self.resumed, elapsed, left, task))
