"""Evaluate probabilities that are there already."""

from __future__ import annotations

import re
import time as clock
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vennforest._validation import InputError, encode_labels
from vennforest.metrics._inputs import check_probabilities
from vennforest.multiprobability import Multiprobability
from vennforest.report.assemble import assemble, check_positive
from vennforest.report.evaluation import Evaluation
from vennforest.report.predictions import BASELINE, RAW, MethodEstimates, OutOfFold
from vennforest.report.splits import members_of, values_by


def report(
    y: ArrayLike,
    predictions: Any,
    *,
    classes: ArrayLike | None = None,
    positive: Any = None,
    groups: ArrayLike | None = None,
    by: Mapping[str, ArrayLike] | None = None,
    costs: Any = None,
    random_state: int = 0,
    name: str = "predictions",
    target: str = "label",
    notes: Sequence[str] = (),
    X: Any = None,
) -> Evaluation:
    """Evaluate probabilities that any models gave for rows they were not trained on.

    Nothing is trained. The result shows itself in a notebook, and writes the page with
    ``to_html``.

    Parameters
    ----------
    y : array-like of shape (n,)
        Observed labels.
    predictions : dict of str to array-like, or array-like
        By name of the model: probabilities of the positive class, shape (n,), or of every class in
        sorted order, shape (n, k), in [0, 1]; or a ``Multiprobability``, whose probability is its
        ``merge("log")``; or a pair of both. One alone need not be named.
    classes : array-like of shape (k,), optional
        Every class, when some may be missing from ``y``.
    positive : label, optional
        The class that probabilities of shape (n,) are of: by default the second of two in sorted
        order. It is also the positive class of the page, which otherwise is the rarer one.
    groups : array-like of shape (n,), optional
        Rows of one group count as one observation in the intervals.
    by : mapping of str to array-like of shape (n,), optional
        Values whose rows are also looked at separately.
    costs : CostMatrix, array-like, dict, str or path, optional
        What decisions cost, see ``CostMatrix.read``.
    random_state : int
        Of the labels drawn to see what chance gives.
    name, target : str
        Names of the data set and of the label.
    notes : sequence of str
        Remarks, one sentence each.
    X : data frame of shape (n, d), optional
        Whose index names the rows.

    Returns
    -------
    Evaluation

    Raises
    ------
    ValueError
        If predictions do not fit the labels, or are not probabilities.

    Examples
    --------
    >>> y = ["no", "yes", "no", "yes"] * 20
    >>> found = report(y, {"clinic": [0.2, 0.9, 0.4, 0.6] * 20, "coin": [0.5] * 80})
    >>> found.verdict.method
    'clinic'
    """
    started = clock.perf_counter()
    codes, labels = encode_labels(y, classes)
    if len(labels) < 2:
        raise InputError(
            f"y must hold at least two classes, got one: {str(labels[0])!r}; name the others with "
            "classes="
        )
    check_positive(positive, labels.astype(str))
    if not isinstance(predictions, Mapping):
        predictions = {"Predictions": predictions}
    if not predictions:
        raise InputError("predictions must hold those of at least one model, got none")
    estimates = {}
    for key, values in predictions.items():
        key = str(key)
        if key in (RAW, BASELINE):
            key = f"{key} (given)"
        estimates[key] = _estimates(key, values, labels, len(codes), positive)
    said = list(notes)
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
            "methods": list(estimates),
        },
        names={key: key for key in estimates},
        origin="given",
        by=values_by(by, len(codes)),
        notes=said,
        started=started,
    )


def _estimates(
    name: str, values: Any, labels: NDArray[Any], n: int, positive: Any
) -> MethodEstimates:
    """Return what one model said, with a column per class."""
    if isinstance(values, tuple):
        p, bounds = values
        whole = _estimates(name, bounds, labels, n, positive).bounds
        return MethodEstimates(_estimates(name, p, labels, n, positive).p, whole)
    if isinstance(values, Multiprobability):
        if values.classes.tolist() != labels.tolist() or len(values) != n:
            raise InputError(
                f"predictions of {name!r} must be of {n} rows and of the classes "
                f"{labels.tolist()}, got {len(values)} and {values.classes.tolist()}"
            )
        return MethodEstimates(values.merge("log"), values)
    try:
        p = check_probabilities(values)
    except ValueError as error:
        raise InputError(f"predictions of {name!r}: {error}") from error
    if len(p) != n:
        raise InputError(f"predictions of {name!r} must be of {n} rows, got {len(p)}")
    if p.ndim == 1:
        if len(labels) != 2:
            raise InputError(
                f"predictions of {name!r} must have a column for each of {len(labels)} classes, "
                "got one"
            )
        first = positive is not None and str(labels[0]) == str(positive)
        p = np.column_stack([p, 1 - p] if first else [1 - p, p])
    if p.shape[1] != len(labels):
        raise InputError(
            f"predictions of {name!r} must have a column for each of {len(labels)} classes "
            f"({', '.join(map(str, labels[:8]))}), got {p.shape[1]}"
        )
    return MethodEstimates(p / p.sum(axis=1, keepdims=True), None)


def class_of_name(name: str, labels: NDArray[Any]) -> int | None:
    """Return which class a column's name says it is of: ``p(yes)``, ``yes``, ``prob_yes``.

    None where it names none of them, or two.
    """
    found = []
    for j, label in enumerate(labels.astype(str)):
        pattern = rf"(^|[\W_]){re.escape(label)}\)?$"
        if name in (label, f"p({label})") or re.search(pattern, name, re.IGNORECASE):
            found.append(j)
    exact = [j for j in found if name in (str(labels[j]), f"p({labels[j]})")]
    found = exact or found
    return found[0] if len(found) == 1 else None
