"""Train models in cross-validation, and compare ways to calibrate them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from vennforest._files import read_json
from vennforest._messages import not_one_of, shown
from vennforest._validation import InputError, check_count, check_weights, count_rows, label_vector
from vennforest.calibrators import METHODS
from vennforest.classifier import CalibratedClassifier
from vennforest.decisions.costs import COSTS_FORM
from vennforest.report.estimators import make_estimator, named_estimator
from vennforest.report.evaluation import METHOD_NAMES, Evaluation, assemble
from vennforest.report.findings import Origin, Question
from vennforest.report.measures import RAW
from vennforest.report.splits import Design, group_codes, times
from vennforest.report.training import Progress, cross_validate
from vennforest.sources.estimators import names_of_columns, reads_by_name
from vennforest.tables import table_pipeline
from vennforest.tables.notes import leaks
from vennforest.tables.schema import as_pandas
from vennforest.validation.grades import MISSING, grade_names

MISSING_CELLS = {
    "logistic": "numbers are replaced by the median of the training rows, beside an indicator",
    "named": "they are given to the model as missing",
    "other": "as the model handles them",
}
"""How missing cells are handled by the estimators that names stand for, and by others."""


def evaluate(
    X: Any,
    y: ArrayLike,
    *,
    estimator: Any = None,
    methods: Sequence[str] | None = None,
    compare: Sequence[str] = (),
    n_folds: int = 5,
    n_trees: int = 300,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    time: ArrayLike | None = None,
    site: ArrayLike | None = None,
    positive: Any = None,
    by: Mapping[str, ArrayLike] | None = None,
    costs: Any = None,
    tolerance: float | None = None,
    thresholds: Sequence[float] | None = None,
    types: Mapping[str, str] | None = None,
    missing: Sequence[str] | None = None,
    name: str = "data",
    target: str = "label",
    suspects: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Compare calibration methods on one data set by cross-validation.

    Every row is predicted once, by a model trained on the other folds that all methods share. They
    are fitted to its out-of-bag scores if it is a forest, else to scores of inner folds. Measures
    are computed from the pooled predictions of all folds.

    Parameters
    ----------
    X : data frame, Arrow table, array or sparse matrix of shape (n, d)
        Training data. Columns of a table are read as by ``vennforest fit``; arrays are passed
        to the model unchanged.
    y : array-like of shape (n,)
        Labels.
    estimator : str or classifier, optional
        A name of ``vennforest fit --estimator``, by default ``"mixed-forest"``, or any classifier
        with ``predict_proba``.
    methods : sequence of str, optional
        As in ``CalibratedClassifier``; by default all. The raw model, ``"none"``, is always among
        them.
    compare : sequence of str, default=()
        Other names of ``vennforest fit --estimator`` to train on the same folds, beside the
        estimator and their blend, and to compare by log loss and seconds.
    n_folds, n_trees : int
        Number of folds, at least 2 (reduced if no class has as many rows), and of trees per forest.
    groups : array-like of shape (n,), optional
        Rows of one group are never on both sides of a split, and count as one observation in
        intervals and tests.
    sample_weight : array-like of shape (n,), optional
        Weights above 0 of rows, in training and in all measures; see `Estimates`.
    time : array-like of shape (n,), optional
        Numbers or dates. If given, every row is predicted by a model of earlier rows.
    site : array-like of shape (n,), optional
        Places, such as hospitals. If given, the rows of each are predicted by a model of all others
        in place of folds (internal-external validation), and the page has a row for each: see
        ``vennforest.validation.internal_external``.
    positive : label, optional
        The positive class of two, by default the rarer one.
    by : mapping of str to array-like of shape (n,), optional
        Columns for each of whose values the rows are also evaluated separately.
    costs : CostMatrix, array-like, dict, str or path, optional
        Costs of decisions, see ``CostMatrix.read``.
    tolerance : float, optional
        Miscalibration that does not matter, in (0, 1); by default 0.02, and a fifth of the share of
        a positive class rarer than one in ten.
    thresholds : sequence of float, optional
        Thresholds in (0, 1) for the table of thresholds, by default usual ones.
    types, missing : optional
        As in ``vennforest.tables.TableColumns``.
    name, target, notes : str, str, sequence of str
        Names of the data set and of the label, and remarks to show.
    suspects : mapping of str to str, optional
        Columns to check first, see ``Origin``; by default those that leak the label.
    random_state, n_jobs : int
        Seed of folds and forests, and number of threads.
    progress : callable, optional
        Called after each fold with the numbers of folds done and of all.

    Raises
    ------
    ValueError
        If an argument is not as above, there are fewer than two classes with two rows each, or
        a column contains numbers that are infinite.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> evaluation = evaluate(X, y, n_folds=3, n_trees=30, methods=["venn-abers"])
    >>> evaluation.verdict.method
    'venn-abers'
    """
    methods = [methods] if isinstance(methods, str) else methods
    check_count(n_folds, "n_folds", 2)
    check_count(n_trees, "n_trees")
    unknown = [method for method in methods or () if method not in METHODS]
    if unknown:
        raise not_one_of("methods", METHODS, unknown[0])
    is_named = estimator is None or isinstance(estimator, str)
    noun, is_table = type(estimator).__name__, names_of_columns(X) is not None
    if is_named:
        noun = named_estimator(estimator).title
    elif isinstance(estimator, type) or not hasattr(estimator, "predict_proba"):
        raise InputError(
            "estimator must be a name or a classifier with predict_proba (an instance, not "
            f"fitted), got {shown(estimator)}"
        )
    if is_table and reads_by_name(estimator):
        raise InputError(
            "estimator must be a classifier of numbers for a data frame, whose columns are encoded "
            f"as by vennforest fit, got a {noun} that reads them itself: give its last step"
        )
    X = as_pandas(X) if is_table else X
    if isinstance(costs, str | Path):  # a missing file is refused before training
        costs = read_json(costs, "costs", COSTS_FORM)
    question = Question(
        name=name,
        positive=positive,
        by=by,
        costs=costs,
        tolerance=tolerance,
        thresholds=thresholds,
        random_state=random_state,
        site=site,
        predictors=X if is_table else None,
    )
    if not is_table and not hasattr(X, "shape"):
        X = np.asarray(X)
    aligned = {"y": y, "groups": groups, "sample_weight": sample_weight}
    question.check(np.unique(label_vector(y).astype(str)), count_rows(X), X, **aligned)
    named = partial(make_estimator, n_trees=n_trees, seed=random_state, n_jobs=n_jobs)
    classifier = named(estimator) if is_named else estimator
    if is_table:
        classifier = table_pipeline(
            classifier,
            random_state,
            types=None if types is None else dict(types),
            missing=None if missing is None else list(missing),
        )
    # One method for the folds, whichever are compared: a method's numbers do not depend on others.
    model = CalibratedClassifier(classifier, n_jobs=n_jobs, random_state=random_state)
    remarks, names = list(notes), None if site is None else grade_names(site, "site")
    groups = group_codes(groups, X.shape[0], remarks)
    design = Design("folds", n_folds, random_state, groups)
    if time is not None:
        design = replace(design, kind="time", values=times(time, "time"))
        if (shape := np.shape(time)) != (X.shape[0],):
            raise InputError(f"time must have shape ({X.shape[0]},), got {shape}")
    if names is not None:
        if time is not None:
            raise InputError("site and time must not both be given: each says how rows are split")
        codes = np.where(names == MISSING, np.nan, np.unique(names, return_inverse=True)[1])
        design = replace(design, kind="sites", values=codes)
    if sample_weight is not None and compare:
        remarks.append("Other models are not compared, since a blend of them has no weights.")
        compare = ()
    predictions, fitted, encodings = cross_validate(
        model,
        [m for m in METHODS if methods is None or m in methods or m == RAW],
        X,
        y,
        design,
        weight=check_weights(sample_weight, X.shape[0]),
        classifiers={named_estimator(rival).title: named(rival) for rival in compare},
        notes=remarks,
        progress=progress,
    )
    if suspects is None:
        leaking = leaks(X, np.asarray(y).ravel()) if is_table else []
        suspects = dict.fromkeys(leaking, "leak")
    origin = Origin(
        kind=design.kind,
        target=target,
        noun=noun,
        names={**METHOD_NAMES, RAW: f"Raw {noun}"},
        calibrate_on=fitted.calibrate_on_,
        suspects=suspects,
    )
    settings = {
        "estimator": estimator if isinstance(estimator, str) else noun,
        "n_folds": predictions.n_folds,
        "n_trees": n_trees,
        "n_columns": int(X.shape[1]),
        "missing": MISSING_CELLS["logistic" if estimator == "logistic" else "named"]
        if is_named
        else MISSING_CELLS["other"],
        "columns": encodings,
        "calibrate_on": fitted.calibrate_on_,
        "calibrate_on_reason": fitted.calibrate_on_reason_,
    }
    return assemble(
        predictions, origin, question, X.shape[0], notes=remarks, settings=settings, model=model
    )
