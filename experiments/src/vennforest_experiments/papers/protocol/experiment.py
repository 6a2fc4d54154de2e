"""A paper's experiment: its settings, its folds as tasks, its seeds.

A new experiment is a frozen dataclass derived from ``Experiment`` that says what a fold does
(``run``). `vennforest_experiments.papers.protocol.run` runs its folds; the paper's ``report`` turns
their records into a page.
"""

from __future__ import annotations

import hashlib
import shlex
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from vennforest._program import __version__
from vennforest._validation import FloatArray, InputError, IntArray, check_count
from vennforest_experiments.papers.protocol.problems import load_problem, problems
from vennforest_experiments.papers.protocol.store import Record, Task
from vennforest_experiments.papers.published import Paper

if TYPE_CHECKING:
    import pandas as pd


class PreparedData(NamedTuple):
    """A data set as an experiment uses it: ``X`` of shape (n, d), float64, ``y`` of shape (n,)."""

    X: FloatArray
    y: NDArray[Any]


def two_classes(dataset: str, X: pd.DataFrame, y: NDArray[Any]) -> PreparedData:
    """Return a data set with its labels as 0 and 1, in sorted order.

    Raises
    ------
    ValueError
        If ``y`` has more or fewer than two classes.
    """
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) != 2:
        raise InputError(f"{dataset} must have two classes, got {len(classes)}")
    return PreparedData(X.to_numpy(dtype=np.float64), codes)


@dataclass(frozen=True, kw_only=True)
class Experiment(ABC):
    """A paper's experiment: immutable, small, and pickled to the processes that run its folds.

    Parameters
    ----------
    data_dir : str, optional
        The local folder of data sets, see `vennforest_experiments.datasets.load`.
    repeats, folds : int
        Repeats and folds of the cross-validation.
    seed : int
        Seed of all random numbers.

    Notes
    -----
    Every further field of a subclass is a setting as well: it is stored with the results, and
    a folder with results of other settings is refused. Only ``data_dir`` and ``repeats`` (and the
    choice of data sets) may differ between runs that share a folder, since no fold's numbers
    depend on them.
    """

    paper: ClassVar[Paper]
    free: ClassVar[frozenset[str]] = frozenset({"data_dir", "repeats"})
    """Fields that no fold's numbers depend on."""

    data_dir: str | None = None
    repeats: int = 1
    folds: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the settings' types and ranges."""
        check_count(self.repeats, "repeats")
        check_count(self.folds, "folds", low=2)
        check_count(self.seed, "seed", low=0)

    def datasets(self) -> tuple[str, ...]:
        """Return the names of the paper's problems, as printed and in printed order."""
        return tuple(problems(self.paper))

    def settings(self) -> dict[str, Any]:
        """Return everything but the data that a fold's numbers depend on."""
        own = {name: value for name, value in asdict(self).items() if name not in self.free}
        versions = {"vennforest": __version__, "scikit-learn": sklearn.__version__}
        return {"paper": self.paper, **own, **versions}

    def tasks(self, datasets: Iterable[str]) -> list[Task]:
        """Return all tasks, repeat by repeat, so that a stopped run has covered every data set."""
        chosen = list(datasets)
        return [
            Task(dataset, repeat, fold)
            for repeat in range(self.repeats)
            for dataset in chosen
            for fold in range(self.folds)
        ]

    def load(self, dataset: str) -> PreparedData:
        """Load and prepare a data set by its printed name."""
        X, y = load_problem(self.paper, dataset, self.data_dir)
        return PreparedData(X.to_numpy(dtype=np.float64), y)

    def data(self, dataset: str) -> PreparedData:
        """Return a prepared data set, loaded once per process."""
        return _loaded(self, dataset)

    def seed_of(self, *parts: object) -> int:
        """Return a seed that depends only on the paper, ``seed`` and the parts."""
        return seed_of(self.paper, self.seed, *parts)

    def split(self, task: Task) -> tuple[IntArray, IntArray]:
        """Return the task's training and test indices: stratified folds, reshuffled per repeat."""
        y = self.data(task.dataset).y
        seed = self.seed_of("folds", task.dataset, task.repeat)
        splitter = StratifiedKFold(self.folds, shuffle=True, random_state=seed)
        with warnings.catch_warnings():
            # Some of the papers' data sets have classes with fewer examples than folds.
            warnings.filterwarnings("ignore", "The least populated class", UserWarning)
            folds = list(splitter.split(np.zeros(len(y)), y))
        train, test = folds[task.fold]
        return train, test

    @abstractmethod
    def run(self, task: Task) -> Record:
        """Run one task and return its record, the same in any process and in any order."""


@lru_cache(maxsize=64)
def _loaded(experiment: Experiment, dataset: str) -> PreparedData:
    return experiment.load(dataset)


def seed_of(*parts: object) -> int:
    """Return a seed in [0, 2**31 - 1): a hash of the parts as text.

    It is the same on every machine and does not depend on the order in which tasks run.
    """
    text = "\x1f".join(str(part) for part in parts)
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") % (2**31 - 1)


def option_names(experiment: type[Experiment]) -> list[str]:
    """Return the names of an experiment's own options, beyond those that all have."""
    common = {field.name for field in fields(Experiment)}
    return [field.name for field in fields(experiment) if field.name not in common]


def command(experiment: Experiment, datasets: Sequence[str]) -> str:
    """Return the command that produces these numbers, with all options that are not defaults."""
    common = {field.name for field in fields(Experiment)}
    words = ["vennforest-experiments", "reproduce", experiment.paper]
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
