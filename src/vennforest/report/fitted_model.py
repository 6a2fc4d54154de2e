"""Evaluate a fitted model on rows it was not trained on."""

from __future__ import annotations

import time as clock
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vennforest._validation import InputError, IntArray
from vennforest.classifier.prediction import predict_once
from vennforest.report.assemble import assemble, check_positive
from vennforest.report.evaluation import NAMES, Evaluation
from vennforest.report.predictions import RAW, MethodEstimates, OutOfFold
from vennforest.report.splits import members_of, values_by

SAME = 40
"""So many labels in a row that agree are the training labels: 1 in 2^40 by chance."""


def report_model(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    n_trained: int | None = None,
    positive: Any = None,
    groups: ArrayLike | None = None,
    by: Mapping[str, ArrayLike] | None = None,
    costs: Any = None,
    random_state: int = 0,
    name: str = "data",
    target: str = "label",
    notes: Sequence[str] = (),
) -> Evaluation:
    """Evaluate a fitted model on rows it was not trained on.

    Where the rows are those it was trained on, or it does far better on them than out of sample,
    the page says so on top.

    Parameters
    ----------
    model : CalibratedClassifier or TransductiveClassifier
        Fitted.
    X : data frame or array of shape (n, d)
        Rows as the model takes them.
    y : array-like of shape (n,)
        Their labels, among the model's classes.
    n_trained : int, optional
        How many rows it was trained on.
    positive, groups, by, costs, random_state, name, target, notes
        As in ``report``.

    Returns
    -------
    Evaluation

    Raises
    ------
    ValueError
        If a label is none of the model's classes, or the rows are none the model takes.
    """
    started = clock.perf_counter()
    labels = np.asarray(model.classes_)
    known = {str(label): j for j, label in enumerate(labels)}
    given = [str(label) for label in np.asarray(y).tolist()]
    strange = sorted(set(given) - set(known))
    if strange:
        raise InputError(
            f"the table must hold labels of the model ({', '.join(list(known)[:8])}), got "
            f"{strange[0]!r}: leave these rows out"
        )
    codes = np.array([known[label] for label in given], dtype=np.intp)
    if len(np.unique(codes)) < 2:
        raise InputError(f"the table must hold at least two classes, got only {given[0]!r}")
    check_positive(positive, labels.astype(str))
    bounds, p = predict_once(model, X)
    key = str(getattr(model, "method", "model"))
    key = key if key in NAMES and key != RAW else "model"
    estimates = {key: MethodEstimates(p, bounds)}
    own = model.estimators_ if hasattr(model, "estimators_") else []
    if len(own) == 1 and hasattr(own[0], "predict_proba"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimates = {RAW: MethodEstimates(own[0].predict_proba(X), None), **estimates}
    warned, seen = _seen(model, codes, labels, estimates, n_trained)
    said = [warned, *notes]
    members = members_of(groups, len(codes), said)
    folds = OutOfFold.without_folds(labels, codes, estimates, members)
    return assemble(
        folds,
        X=X,
        name=name,
        target=target,
        positive=positive,
        costs=costs,
        settings={
            "random_state": int(random_state),
            "guarantee": "model",
            "noun": "model",
            "n_trained": n_trained,
            "seen": seen,
            "methods": list(estimates),
        },
        names={RAW: "Raw model", "model": "The model", key: NAMES.get(key, "The model")},
        origin="model",
        by=values_by(by, len(codes)),
        notes=said,
        started=started,
    )


def _seen(
    model: Any,
    codes: IntArray,
    labels: NDArray[Any],
    estimates: Mapping[str, MethodEstimates],
    n_trained: int | None,
) -> tuple[str, bool]:
    """Return what is to be said of rows that the model may have been trained on, and if it was."""
    size = "" if n_trained is None else f" of {n_trained:,} rows"
    scores, y = getattr(model, "calibration_scores_", None), getattr(model, "calibration_y_", None)
    unknown = f"The numbers hold only if the model's training table{size} has none of these rows."
    if scores is None or y is None:
        return unknown, False
    trained = np.searchsorted(labels, y)
    if _within(codes, trained) or _within(trained, codes):
        return (
            "These look like the very rows that the model was trained or calibrated on (the labels "
            "agree one by one): all numbers on this page are too good. Take rows it has not seen, "
            "or let the report cross-validate (without --model).",
            True,
        )
    if RAW in estimates and len(labels) == 2:
        held = scores if scores.ndim == 1 else scores[:, 1]
        if held.min() >= 0 and held.max() <= 1:
            here = (estimates[RAW].p[:, 1] - (codes == 1)) ** 2
            there = (held - (trained == 1)) ** 2
            error = np.sqrt(here.var() / len(here) + there.var() / len(there))
            if there.mean() - here.mean() > 6 * error and here.mean() < 0.7 * there.mean():
                return (
                    "The model does far better on these rows than on its calibration rows (Brier "
                    f"score {here.mean():.3g} in place of {there.mean():.3g}): it was probably "
                    "trained on some of them, and the numbers on this page are too good.",
                    True,
                )
    return unknown, False


def _within(part: IntArray, whole: IntArray) -> bool:
    """Tell whether labels stand in others one after the other, and are too many for chance."""
    n = len(part)
    counts = np.bincount(part)
    share = counts / n
    bits = -n * float(np.log2(np.square(share).sum()))  # that a random run agrees
    if n > len(whole) or bits < SAME:
        return False
    starts = [0, len(whole) - n]
    return any(np.array_equal(whole[i : i + n], part) for i in starts)
