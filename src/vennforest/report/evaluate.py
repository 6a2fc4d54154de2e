"""Cross-validate all methods of calibration on one data set."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from vennforest._validation import InputError, check_count, check_option, is_frame
from vennforest.decisions import CostMatrix
from vennforest.report.evaluation import ALL_METHODS, Evaluation
from vennforest.report.folds import RAW, OutOfFold, Progress, cross_validate
from vennforest.report.measures import measure
from vennforest.report.verdict import judge
from vennforest.sources import Subforest


def evaluate(
    X: Any,
    y: ArrayLike,
    *,
    methods: Sequence[str] | None = None,
    n_folds: int = 10,
    n_trees: int = 300,
    subforest: Subforest = "all",
    n_draws: int = 1,
    positive: Any = None,
    costs: Any = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    name: str = "data",
    target: str = "label",
    notes: Sequence[str] = (),
    progress: Progress | None = None,
) -> Evaluation:
    """Cross-validate methods of calibration on one data set, with one forest a fold for all.

    Every row is predicted once, by a forest of the other folds whose out-of-bag scores
    calibrate every method. All measures are taken over the pooled predictions of all folds.

    Parameters
    ----------
    X : data frame, array or sparse matrix of shape (n, d)
        Columns of a data frame may hold text, dates and missing cells: they are read by
        ``vennforest.tables.table_pipeline``, as in ``vennforest fit``. Arrays go to the forest as
        they are.
    y : array-like of shape (n,)
        Labels.
    methods : sequence of str, optional
        As in ``CalibratedClassifier``; by default all. The raw forest, ``"none"``, is always among
        them: all its trees and no calibration.
    n_folds : int
        Number of folds, from 2 on; fewer where no class has as many rows.
    n_trees : int
        Trees of each forest.
    subforest : {"all", "exchangeable", "random", "joined"}
    n_draws : int
        As in ``CalibratedClassifier``.
    positive : label, optional
        The positive class of two; by default the second.
    costs : CostMatrix, array-like, dict, str or path, optional
        What decisions cost, see ``CostMatrix.read``.
    random_state : int
        Seeds folds, forests and draws; the same in every fold.
    n_jobs : int, optional
        Threads.
    name, target : str
        Names of the data set and of the label.
    notes : sequence of str
        Remarks on the data, one sentence each.
    progress : callable, optional
        Called after each fold with the number of folds done and of all.

    Returns
    -------
    Evaluation

    Raises
    ------
    ValueError
        If an argument is not as above, there are fewer than two classes with two rows each, or
        a column holds numbers that are infinite.
    ImportError
        If X is a data frame and skrub is not installed.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> evaluation = evaluate(X, y, n_folds=3, n_trees=30, methods=["venn-abers"])
    >>> evaluation.verdict.method
    'venn-abers'
    """
    started = time.perf_counter()
    chosen = _check_methods(methods)
    check_count(n_folds, "n_folds", least=2)
    check_count(n_trees, "n_trees")
    check_count(n_draws, "n_draws")
    check_count(random_state, "random_state", least=0)
    if n_jobs == 0:
        raise InputError("n_jobs must be a number of processors, or -1 for all, got 0")
    check_option(subforest, Subforest, "subforest")
    labels = np.unique(np.asarray(y).ravel().astype(str))
    _check_positive(positive, labels)
    if not is_frame(X) and not hasattr(X, "shape"):
        X = np.asarray(X)
    folds = cross_validate(
        X,
        y,
        chosen,
        n_folds=int(n_folds),
        n_trees=int(n_trees),
        subforest=subforest,
        n_draws=int(n_draws),
        seed=int(random_state),
        n_jobs=n_jobs,
        progress=progress,
    )
    at = _positive_index(positive, folds)
    matrix = None if costs is None else CostMatrix.read(costs, folds.classes)
    measures = {
        method: measure(estimates, folds.codes, folds.classes, at, int(random_state))
        for method, estimates in folds.estimates.items()
    }
    return Evaluation(
        name=name,
        target=target,
        X=X,
        folds=folds,
        positive=at,
        measures=measures,
        verdict=judge(measures, folds),
        costs=matrix,
        decisions={}
        if matrix is None
        else {
            method: matrix.judge(estimates.p, estimates.bounds, folds.codes)
            for method, estimates in folds.estimates.items()
        },
        settings={
            "n_folds": folds.n_folds,
            "n_trees": int(n_trees),
            "subforest": subforest,
            "n_draws": int(n_draws),
            "random_state": int(random_state),
            "methods": list(folds.estimates),
        },
        notes=[*notes, *folds.notes],
        seconds=time.perf_counter() - started,
    )


def _check_methods(methods: Sequence[str] | None) -> tuple[str, ...]:
    if methods is None:
        return ALL_METHODS
    if isinstance(methods, str):
        methods = [methods]
    unknown = [method for method in methods if method not in ALL_METHODS]
    if unknown:
        raise InputError(f"methods must be among {list(ALL_METHODS)}, got {unknown[0]!r}")
    return tuple(method for method in ALL_METHODS if method in methods or method == RAW)


def _check_positive(positive: Any, labels: Any) -> None:
    if positive is None:
        return
    if str(positive) not in labels:
        shown = ", ".join(map(repr, map(str, labels[:8])))
        raise InputError(f"positive must be one of the classes ({shown}), got {str(positive)!r}")
    if len(labels) > 2:
        raise InputError(
            f"positive must be given for two classes only, got {len(labels)} classes: leave it out"
        )


def _positive_index(positive: Any, folds: OutOfFold) -> int | None:
    if len(folds.classes) != 2:
        return None
    if positive is None:
        return 1
    return [str(label) for label in folds.classes].index(str(positive))
