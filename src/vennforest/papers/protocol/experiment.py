"""What the papers' experiments share: folds as tasks, seeds, and results that survive a stop.

A new experiment is a frozen dataclass derived from ``Experiment``: it says what a fold does
(``run``) and what the folds together mean (``report``). ``run_experiment`` does the rest.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import joblib
import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from vennforest._validation import FloatArray, InputError, IntArray, check_count
from vennforest._version import __version__
from vennforest.papers.protocol.problems import load_problem, problems
from vennforest.papers.protocol.store import Record, Store, Task
from vennforest.papers.published import Paper

if TYPE_CHECKING:
    from vennforest.papers.protocol.reproduction import Reproduction


__all__ = [
    "Experiment",
    "Problem",
    "Progress",
    "Record",
    "Task",
    "check_count",
    "command",
    "fingerprint",
    "run_experiment",
    "seed_of",
]


class Problem(NamedTuple):
    """A prepared data set: ``X`` of shape (n, d), float64, and ``y`` of shape (n,)."""

    X: FloatArray
    y: NDArray[Any]


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


@dataclass(frozen=True, kw_only=True)
class Experiment(ABC):
    """A paper's experiment: immutable, small, and pickled to wherever its folds are run.

    Parameters
    ----------
    data_dir : str, optional
        The local folder of data sets, see `vennforest.datasets.load`.
    repeats, folds : int
        How often cross-validation is repeated, and its folds.
    seed : int
        Of everything random.

    Notes
    -----
    Every further field of a subclass is a setting as well: it is stored with the results, and
    results of other settings are refused. Only ``data_dir`` and ``repeats`` (and the choice of
    data sets) may change between runs that share a folder, since no fold's numbers depend on them.
    """

    paper: ClassVar[Paper]
    free: ClassVar[frozenset[str]] = frozenset({"data_dir", "repeats"})
    """Fields that no fold's numbers depend on."""

    data_dir: str | None = None
    repeats: int = 1
    folds: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse numbers of repeats and folds that make no cross-validation."""
        check_count(self.repeats, "repeats")
        check_count(self.folds, "folds", least=2)
        check_count(self.seed, "seed", least=0)

    def datasets(self) -> tuple[str, ...]:
        """Return the names of the paper's problems, as printed and in printed order."""
        return tuple(problems(self.paper))

    def settings(self) -> dict[str, Any]:
        """Return what a fold's numbers depend on, besides the data."""
        own = {name: value for name, value in asdict(self).items() if name not in self.free}
        versions = {"vennforest": __version__, "scikit-learn": sklearn.__version__}
        return {"paper": self.paper, **own, **versions}

    def tasks(self, datasets: Iterable[str]) -> list[Task]:
        """Return all tasks, repeat after repeat, so that a stopped run has seen every data set."""
        chosen = list(datasets)
        return [
            Task(dataset, repeat, fold)
            for repeat in range(self.repeats)
            for dataset in chosen
            for fold in range(self.folds)
        ]

    def load(self, dataset: str) -> Problem:
        """Load and prepare a data set by its printed name."""
        X, y = load_problem(self.paper, dataset, self.data_dir)
        return Problem(X.to_numpy(dtype=np.float64), y)

    def problem(self, dataset: str) -> Problem:
        """Return a data set, loaded once a process."""
        return _problem(self, dataset)

    def seed_of(self, *parts: object) -> int:
        """Return a seed that depends on the paper, ``seed`` and the parts alone."""
        return seed_of(self.paper, self.seed, *parts)

    def split(self, task: Task) -> tuple[IntArray, IntArray]:
        """Return the task's training and test indices: stratified folds, shuffled anew a repeat."""
        y = self.problem(task.dataset).y
        seed = self.seed_of("folds", task.dataset, task.repeat)
        splitter = StratifiedKFold(self.folds, shuffle=True, random_state=seed)
        with warnings.catch_warnings():
            # A class with fewer examples than folds is missing from some: the papers' sets are so.
            warnings.filterwarnings("ignore", "The least populated class", UserWarning)
            folds = list(splitter.split(np.zeros(len(y)), y))
        train, test = folds[task.fold]
        return train, test

    @abstractmethod
    def run(self, task: Task) -> Record:
        """Do one task and return its record; the same numbers in any process and order."""

    @abstractmethod
    def report(self, records: Mapping[Task, Record], datasets: Sequence[str]) -> Reproduction:
        """Make tables, figures and conclusions of the records of all tasks."""


@lru_cache(maxsize=64)
def _problem(experiment: Experiment, dataset: str) -> Problem:
    return experiment.load(dataset)


def seed_of(*parts: object) -> int:
    """Return a seed in [0, 2**31 - 1) that is a hash of the parts' texts.

    It is the same on every machine and in every order of the work.
    """
    text = "\x1f".join(str(part) for part in parts)
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") % (2**31 - 1)


def fingerprint(problem: Problem) -> str:
    """Return a short hash of a data set's numbers and labels."""
    digest = hashlib.blake2b(digest_size=8)
    digest.update(repr(problem.X.shape).encode())
    digest.update(np.ascontiguousarray(problem.X, dtype="<f8").tobytes())
    digest.update("\x1f".join(map(str, problem.y.tolist())).encode())
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
    marks = {name: fingerprint(experiment.problem(name)) for name in chosen}
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


def option_names(experiment: type[Experiment]) -> list[str]:
    """Return the names of an experiment's own options, beyond those that all have."""
    common = {field.name for field in fields(Experiment)}
    return [field.name for field in fields(experiment) if field.name not in common]


def command(experiment: Experiment, datasets: Sequence[str]) -> str:
    """Return the command that makes these numbers, options that are not the paper's included."""
    common = {field.name for field in fields(Experiment)}
    words = ["vennforest", "reproduce", experiment.paper]
    if tuple(datasets) != experiment.datasets():
        words += ["--datasets", ",".join(datasets)]
    for field in fields(experiment):
        value = getattr(experiment, field.name)
        if field.name == "data_dir" or value == field.default:
            continue
        if field.name in common:
            words += [f"--{field.name}", str(value)]
        else:
            words += ["--set", f"{field.name}={value}"]
    return shlex.join(words)
