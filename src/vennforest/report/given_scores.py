"""Evaluate what calibrators make of scores that are there already."""

from __future__ import annotations

import time as clock
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vennforest._files import one_line
from vennforest._validation import (
    FloatArray,
    InputError,
    IntArray,
    check_count,
    check_scores,
    encode_labels,
)
from vennforest.calibrators.core.bounded import has_bounds
from vennforest.calibrators.registry import check_method, make_calibrator
from vennforest.multiprobability import Multiprobability
from vennforest.report.assemble import assemble, check_positive
from vennforest.report.evaluation import NAMES, Evaluation
from vennforest.report.predictions import RAW, MethodEstimates, OutOfFold
from vennforest.report.splits import members_of, shuffled, values_by

SCORE_METHODS = ("venn-abers", "platt", "isotonic")
"""What scores are calibrated by unless others are named."""


def report_scores(
    y: ArrayLike,
    scores: ArrayLike,
    *,
    methods: Sequence[str] | None = None,
    n_folds: int = 10,
    positive: Any = None,
    groups: ArrayLike | None = None,
    by: Mapping[str, ArrayLike] | None = None,
    costs: Any = None,
    random_state: int = 0,
    name: str = "scores",
    target: str = "label",
    notes: Sequence[str] = (),
    X: Any = None,
) -> Evaluation:
    """Evaluate what calibrators make of scores that are not probabilities.

    Each calibrator is fitted to the scores of the other folds. The scores themselves have to be of
    rows that their model was not trained on.

    Parameters
    ----------
    y : array-like of shape (n,)
        Observed labels.
    scores : array-like of shape (n,) or (n, k)
        Of the positive class (as in ``report``), or of every class in sorted order; any real
        numbers.
    methods : sequence of str, optional
        Calibrators; by default Venn–Abers, Platt and isotonic.
    n_folds : int
        Integer >= 2.
    positive, groups, by, costs, random_state, name, target, notes, X
        As in ``report``; rows of a group are never on both sides of a fold.

    Returns
    -------
    Evaluation

    Raises
    ------
    ValueError
        If scores do not fit the labels.
    """
    started = clock.perf_counter()
    codes, labels = encode_labels(y)
    values = check_scores(scores)
    check_count(n_folds, "n_folds", 2)
    if len(labels) < 2 or np.bincount(codes).min() < 2:
        raise InputError("y must hold at least two classes with two rows each to calibrate scores")
    if len(values) != len(codes):
        raise InputError(f"scores must be of {len(codes)} rows, got {len(values)}")
    if values.ndim == 1 and len(labels) != 2:
        raise InputError(f"scores must have a column for each of {len(labels)} classes, got one")
    check_positive(positive, labels.astype(str))
    if values.ndim == 1 and positive is not None and str(labels[0]) == str(positive):
        values = -values
    chosen = [check_method(method).name for method in methods or SCORE_METHODS if method != RAW]
    said = list(notes)
    members = members_of(groups, len(codes), said)
    n_folds = min(int(n_folds), int(np.bincount(codes).max()))
    splits = shuffled(codes, members, n_folds, random_state)
    fold = np.zeros(len(codes), np.intp)
    for i, (_, held) in enumerate(splits):
        fold[held] = i
    try:
        estimates = {m: _calibrated(m, values, codes, labels, splits) for m in chosen}
    except ValueError as error:  # scores that a calibrator does not take
        raise InputError(one_line(error)) from error
    return assemble(
        OutOfFold(labels, codes, fold, np.arange(len(codes)), estimates, {}, {}, groups=members),
        X=X,
        name=name,
        target=target,
        positive=positive,
        costs=costs,
        settings={
            "random_state": int(random_state),
            "guarantee": "kept",
            "noun": "calibrator",
            "n_folds": len(splits),
            "methods": chosen,
            "split": "shuffled, stratified by class"
            if members is None
            else "shuffled; rows of a group are never on both sides",
        },
        names=NAMES,
        origin="scores",
        by=values_by(by, len(codes)),
        notes=said,
        started=started,
    )


def _calibrated(
    method: str,
    scores: FloatArray,
    codes: IntArray,
    labels: NDArray[Any],
    splits: Sequence[tuple[IntArray, IntArray]],
) -> MethodEstimates:
    n, k = len(codes), len(labels)
    p, lower, upper = np.empty((n, k)), np.empty((n, k)), np.empty((n, k))
    bounded = False
    for train, held in splits:
        calibrator = make_calibrator(method)
        calibrator.fit(scores[train], labels[codes[train]], classes=labels)
        p[held] = calibrator.predict_proba(scores[held])
        if has_bounds(calibrator):
            bounded = True
            found = calibrator.predict_multiprobability(scores[held])
            found = found.widen(p[held])
            lower[held], upper[held] = found.lower, found.upper
    return MethodEstimates(p, Multiprobability(lower, upper, labels) if bounded else None)
