"""Train, calibrate by all methods, and evaluate, on one data set."""

from __future__ import annotations

import time as clock
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from vennforest._validation import InputError, check_count, check_option, is_frame
from vennforest.report.evaluation import (
    About,
    Evaluation,
    Origin,
    assemble,
    check_about,
    check_positive,
    compared_methods,
)
from vennforest.report.folds import Progress, cross_validate
from vennforest.report.learners import FOREST, learner_of, raw_title
from vennforest.report.predictions import RAW
from vennforest.report.splits import members_of, times
from vennforest.sources import Subforest
from vennforest.tables.columns import as_pandas
from vennforest.tables.screening import leaks


def evaluate(
    X: Any,
    y: ArrayLike,
    *,
    estimator: Any = None,
    methods: Sequence[str] | None = None,
    n_folds: int = 10,
    n_trees: int = 300,
    subforest: Subforest = "all",
    n_draws: int = 1,
    groups: ArrayLike | None = None,
    time: ArrayLike | None = None,
    test: ArrayLike | None = None,
    types: Mapping[str, str] | None = None,
    missing: Sequence[str] | None = None,
    positive: Any = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    **about: Unpack[About],
) -> Evaluation:
    """Cross-validate methods of calibration on one data set, with one model per fold for all.

    Every row is predicted once, by a model of the other folds whose out-of-bag scores (of a forest;
    else scores of inner folds) calibrate every method. All measures are taken over the pooled
    predictions of all folds.

    Parameters
    ----------
    X : data frame, array or sparse matrix of shape (n, d)
        Columns of a data frame may hold text, dates and missing cells: they are read by
        ``vennforest.tables.table_pipeline``, as in ``vennforest fit``. Arrays go to the model as
        they are.
    y : array-like of shape (n,)
        Labels.
    estimator : str or classifier, optional
        ``"random-forest"`` (the default), ``"extra-trees"``, ``"hist-gradient-boosting"``,
        ``"logistic"``, ``"lightgbm"``, ``"xgboost"``, ``"catboost"``, or any classifier with
        ``predict_proba``.
    methods : sequence of str, optional
        As in ``CalibratedClassifier``; by default all. The raw model, ``"none"``, is always among
        them: a forest with all its trees and no calibration.
    n_folds : int
        Number of folds, from 2 on; fewer where no class has as many rows.
    n_trees : int
        Trees of each forest.
    subforest : {"all", "exchangeable", "random", "joined"}
    n_draws : int
        As in ``CalibratedClassifier``.
    groups : array-like of shape (n,), optional
        Rows of one group, such as those of a patient, are never on both sides of a split, and
        count as one observation in the intervals.
    time : array-like of shape (n,), optional
        Numbers or dates: every row is predicted by a model of earlier rows.
    test : array-like of bool of shape (n,), optional
        The rows to predict, by one model of the others.
    types : mapping of str to str, optional
        What columns of a data frame hold where that is not to be guessed, see
        ``vennforest.tables.TableColumns``.
    missing : sequence of str, optional
        Cells of a data frame that stand for missing values, such as ``["n.d.", "-"]``.
    positive : label, optional
        The positive class of two; by default the rarer.
    random_state : int
        Seeds folds, forests and draws; the same in every fold.
    n_jobs : int, optional
        Threads.
    progress : callable, optional
        Called after each fold with the number of folds done and of all.
    by, costs, tolerance, name, target, notes
        As in ``report``.

    Raises
    ------
    ValueError
        If an argument is not as above, there are fewer than two classes with two rows each, or
        a column holds numbers that are infinite.
    ImportError
        If a library that is needed is not installed.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> evaluation = evaluate(X, y, n_folds=3, n_trees=30, methods=["venn-abers"])
    >>> evaluation.verdict.method
    'venn-abers'
    """
    check_about("evaluate", about)
    started = clock.perf_counter()
    chosen = _check_methods(methods)
    _check_numbers(n_folds, n_trees, n_draws, random_state, n_jobs)
    check_option(subforest, Subforest, "subforest")
    if time is not None and test is not None:
        raise InputError("time must be left out where the rows to test are given, got both")
    if types is not None and not is_frame(X):
        raise InputError(f"types must be of columns of a data frame, got {type(X).__name__}")
    learner = learner_of(estimator)
    labels = np.unique(np.asarray(y).ravel().astype(str))
    check_positive(positive, labels)
    if not is_frame(X) and not hasattr(X, "shape"):
        X = np.asarray(X)
    n = X.shape[0]
    remarks: list[str] = []
    members = members_of(groups, n, remarks)
    folds, how = cross_validate(
        X,
        y,
        chosen,
        learner=learner,
        n_folds=int(n_folds),
        n_trees=int(n_trees),
        subforest=subforest,
        n_draws=int(n_draws),
        seed=int(random_state),
        n_jobs=n_jobs,
        progress=progress,
        groups=members,
        time=None if time is None else times(time, "time"),
        test=None if test is None else _mask(test, n),
        types=None if types is None else dict(types),
        markers=None if missing is None else list(missing),
    )
    origin: Origin = "test" if test is not None else "folds" if time is None else "time"
    suspicious = leaks(as_pandas(X), np.asarray(y).ravel()) if is_frame(X) else []
    return assemble(
        folds,
        X=X,
        positive=positive,
        settings={
            "estimator": _shown(estimator),
            "n_folds": folds.n_folds,
            "n_trees": int(n_trees),
            "subforest": subforest,
            "n_draws": int(n_draws),
            "random_state": int(random_state),
            "methods": list(folds.estimates),
            **({"types": dict(types)} if types else {}),
            **({"missing": list(missing)} if missing else {}),
            "calibrate_on": how,
            "guarantee": subforest if how == "oob" else "cv",
            "noun": learner.title,
            "learner": learner.many.format(trees=int(n_trees)),
            "split": _split(origin, members is not None),
        },
        names={RAW: raw_title(learner)},
        origin=origin,
        remarks=remarks,
        suspects=dict.fromkeys(suspicious, "leak"),
        n_rows=n,
        started=started,
        **about,
    )


def _check_numbers(
    n_folds: int, n_trees: int, n_draws: int, random_state: int, n_jobs: int | None
) -> None:
    check_count(n_folds, "n_folds", least=2)
    check_count(n_trees, "n_trees")
    check_count(n_draws, "n_draws")
    check_count(random_state, "random_state", least=0)
    if n_jobs == 0:
        raise InputError("n_jobs must be a number of processors, or -1 for all, got 0")


def _shown(estimator: Any) -> str:
    """Return an estimator by its name on the command line, or as it shows itself."""
    if isinstance(estimator, str):
        return estimator
    return FOREST if estimator is None else repr(estimator)


def _split(origin: Origin, grouped: bool) -> str:
    """Return how rows were split, in words."""
    kept = "; rows of a group are never on both sides" if grouped else ""
    return {
        "folds": "shuffled, stratified by class",
        "time": "in order of time: each part is predicted from those before it",
        "test": "one model of the rows to train on",
    }[origin] + kept


def _mask(test: ArrayLike, n: int) -> Any:
    mask = np.asarray(test)
    if mask.shape != (n,) or mask.dtype.kind != "b":
        raise InputError(f"test must be {n} booleans, got {mask.dtype} of shape {mask.shape}")
    return mask


def _check_methods(methods: Sequence[str] | None) -> tuple[str, ...]:
    if methods is None:
        return compared_methods()
    if isinstance(methods, str):
        methods = [methods]
    unknown = [method for method in methods if method not in compared_methods()]
    if unknown:
        raise InputError(f"methods must be among {list(compared_methods())}, got {unknown[0]!r}")
    return tuple(method for method in compared_methods() if method in methods or method == RAW)
