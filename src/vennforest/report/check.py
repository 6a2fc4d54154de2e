"""Evaluate existing probabilities of several models, or those of a fitted model."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vennforest._class_columns import class_probabilities
from vennforest._messages import counted, shown
from vennforest._validation import InputError, encode_labels, text_of_label
from vennforest.calibrators.direction import warn_of_confidence
from vennforest.classifier import CalibratedClassifier
from vennforest.counts import ScoreCounts
from vennforest.metrics import Estimates
from vennforest.metrics._inputs import check_probabilities
from vennforest.monitoring.stream import are_training_rows
from vennforest.multiprobability import Multiprobability
from vennforest.report.evaluation import METHOD_NAMES, Evaluation, assemble
from vennforest.report.findings import Origin, Question
from vennforest.report.measures import BASELINE, RAW, MethodEstimates, Predictions
from vennforest.report.splits import group_codes
from vennforest.sources.estimators import names_of_columns
from vennforest.tables.schema import as_pandas
from vennforest.validation.update import class_shares_of

UNNAMED_PREDICTIONS = "Predictions"
"""Name of probabilities that are given without a name."""

LABELS_OF_EVENTS = {("0", "1"), ("false", "true"), ("no", "yes")}
"""Labels of which the second says that something happened."""


def check(
    y: ArrayLike,
    p: Any,
    *,
    X: Any = None,
    classes: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    positive: Any = None,
    sample_weight: ArrayLike | None = None,
    follow_up: tuple[ArrayLike, float] | None = None,
    name: str = "predictions",
    target: str = "label",
    notes: Sequence[str] = (),
    **question: Any,
) -> Evaluation:
    """Evaluate probabilities of rows that no model was trained on, without training a model.

    Parameters
    ----------
    y : array-like of shape (n,)
        Observed labels.
    p : array-like, Multiprobability, dict of str to such, or fitted classifier
        Probabilities in [0, 1] of the positive class, shape (n,), or of every class, shape (n, k),
        in the order of ``classes``, by default the sorted one; a ``Multiprobability``, whose
        probabilities are its ``merge("log")``; a pair of both; or a dict of these by name of the
        model. For a fitted classifier, its probabilities, bounds and confidence intervals for the
        rows of ``X`` are evaluated.
    X : data frame or array of shape (n, d), optional
        Rows for the classifier, which must not have been trained on them.
    classes : array-like of shape (k,), optional
        All classes in the order of the columns of ``p``, if it is not the sorted one or some may
        be missing from ``y``.
    groups : array-like of shape (n,), optional
        Rows of one group count as one observation in intervals and tests.
    positive : label, optional
        The class to which probabilities of shape (n,) refer, by default the second in sorted order;
        also the positive class of the page, by default the rarer one of the rows that the model was
        fitted to. Without a model it is the second of 0 and 1, False and True, or no and yes, and
        of other labels the rarer one.
    sample_weight : array-like of shape (n,), optional
        Weights, such as those of a survey; see `Estimates`.
    follow_up : tuple of array-like of shape (n,) and float, optional
        Times until the event or until a row was last seen, and the horizon of the probabilities;
        see `Estimates`. Rows that were lost before the horizon are left out, and others weigh more.
    name, target, notes
        As in ``evaluate``.
    **question
        ``by``, ``costs``, ``tolerance``, ``thresholds`` and ``random_state`` as in ``evaluate``;
        ``site`` (n,), to measure and pool over sites; ``grades`` (n,) to test, with those of a
        ``reference``, beside the ``final_grades`` (n,) that people gave, and by ``time`` (n,);
        ``segments``, a data frame of n rows to search for
        faults; ``promises``, a dict of targets for "sensitivity", "specificity" and "precision";
        ``updates``, whether to compare updates for another population even if calibration is not
        rejected.

    Raises
    ------
    ValueError
        If labels and probabilities have different numbers of rows or classes, or p contains
        numbers outside [0, 1].

    Examples
    --------
    >>> y = ["no", "yes", "no", "yes"] * 20
    >>> evaluation = check(y, {"clinic": [0.2, 0.9, 0.4, 0.6] * 20, "coin": [0.5] * 80})
    >>> evaluation.verdict.method
    'clinic'
    """
    is_model, remarks = hasattr(p, "predict_proba"), [notes] if isinstance(notes, str) else [*notes]
    named = p.classes_ if is_model else classes
    codes, labels = encode_labels(y, named)
    if not len(codes):
        raise InputError("y must contain at least one label, got none")
    if len(labels) < 2:
        raise InputError("y must contain at least two classes, got one: name both with classes")
    settings, prior = {}, None
    if is_model:
        if X is None:
            raise InputError("X must be given for a fitted classifier, got None")
        estimates, origin = _of_model(p, X, target, remarks)
        if (prior := class_shares_of(p)) is not None:
            settings["prior"] = dict(zip(labels, prior.tolist(), strict=True))
    else:
        estimates = _of_arrays(p, labels, len(codes), positive, named)
        names = {key: key if key == UNNAMED_PREDICTIONS else f"“{key}”" for key in estimates}
        names[BASELINE] = METHOD_NAMES[BASELINE]
        origin = Origin(kind="given", target=target, noun="model", names=names)
        for of_model in estimates.values() if len(labels) == 2 else ():
            of_second = of_model.p[:, 1]
            warn_of_confidence(ScoreCounts.from_scores(of_second, y, classes=labels))
    if positive is None and len(labels) == 2:  # it must not depend on the rows
        texts = tuple(text_of_label(label).casefold() for label in labels.tolist())
        if prior is not None:
            positive = labels.tolist()[int(prior[1] <= prior[0])]
        elif texts in LABELS_OF_EVENTS:
            positive = labels.tolist()[1]
    frame = as_pandas(X) if is_model and names_of_columns(X) is not None else None
    full_question = Question(name=name, positive=positive, predictors=frame, **question)
    aligned = {"groups": groups, "sample_weight": sample_weight}
    if isinstance(follow_up, tuple | list) and follow_up:
        aligned["follow_up"] = follow_up[0]
    models = p if isinstance(p, Mapping) else {} if is_model else {UNNAMED_PREDICTIONS: p}
    aligned |= {f"p of {str(key)!r}": values for key, values in models.items()}
    full_question.check(labels, len(codes), X if is_model else y, y=y, **aligned)
    rows, groups = np.arange(len(codes)), group_codes(groups, len(codes), remarks)
    predictions = Predictions(labels, codes, np.zeros_like(rows), rows, estimates, groups)
    if sample_weight is not None or follow_up is not None:
        predictions = _weighted(
            full_question.with_positive(predictions), sample_weight, follow_up, remarks
        )
    return assemble(
        predictions, origin, full_question, len(codes), notes=remarks, settings=settings
    )


def _weighted(
    predictions: Predictions,
    sample_weight: ArrayLike | None,
    follow_up: tuple[ArrayLike, float] | None,
    notes: list[str],
) -> Predictions:
    """Return the rows of weight above 0, with weights and the labels at the horizon.

    A note says how many rows are left out.
    """
    first = next(iter(predictions.estimates.values()))
    options = predictions.for_metric(first) | {"sample_weight": sample_weight}
    judged = Estimates(**options, follow_up=follow_up)
    rows = np.flatnonzero(judged.is_counted)
    if len(rows) < len(predictions.codes):
        n_left_out = len(predictions.codes) - len(rows)
        reason = "of weight 0" if follow_up is None else "that were lost before the horizon"
        notes.append(f"Left out: {counted(n_left_out)} {reason}.")
    if follow_up is not None:
        notes.append(
            f"Events count that came within {follow_up[1]:g} of entry. Rows that were followed so "
            "long weigh more, by the inverse probability of being followed (Kaplan–Meier): this "
            "is right if rows are lost whatever their risk."
        )
    return replace(predictions.take(rows), codes=judged.codes, weight=judged.weight)


def _of_arrays(
    p: Any, labels: NDArray[Any], n: int, positive: Any, named: ArrayLike | None
) -> dict[str, MethodEstimates]:
    """Return the estimates (n, k) of each model, given as ``p`` of `check`.

    ``named`` are the classes in the order of the columns, see `in_class_order`.
    """
    by_model = p if isinstance(p, Mapping) else {UNNAMED_PREDICTIONS: p}
    if not by_model:
        raise InputError("p must be of at least one model, got none")
    estimates = {}
    for key, values in by_model.items():
        name = f"{key} (given)" if str(key) in (RAW, BASELINE) else str(key)
        bounds: Any = None
        if isinstance(values, Multiprobability):
            values, bounds = values.merge("log"), values
        elif isinstance(values, tuple) and isinstance(values[-1], Multiprobability):
            values, bounds = values
        if bounds is not None and (bounds.classes.tolist() != labels.tolist() or len(bounds) != n):
            raise InputError(
                f"p of {name!r} must be of {n} rows and of the classes {shown(labels.tolist())}"
            )
        try:
            columns = check_probabilities(values, labels, named)
        except ValueError as error:
            raise InputError(f"p of {name!r}: {error}") from error
        if len(columns) != n:
            raise InputError(f"p of {name!r} must be of {n} rows, got {len(columns)}")
        if columns.ndim == 1 and len(labels) == 2:
            is_of_first = positive is not None and str(labels[0]) == str(positive)
            pair = [columns, 1 - columns] if is_of_first else [1 - columns, columns]
            columns = np.column_stack(pair)
        n_columns = 1 if columns.ndim == 1 else columns.shape[1]
        if n_columns != len(labels):
            raise InputError(
                f"p of {name!r} must have a column for each of {len(labels)} classes "
                f"({', '.join(map(str, labels[:8]))}), got {n_columns}"
            )
        estimates[name] = MethodEstimates(columns, bounds)
    return estimates


def _of_model(
    model: Any, X: Any, target: str, notes: list[str]
) -> tuple[dict[str, MethodEstimates], Origin]:
    """Return the estimates of a fitted classifier, then of its raw model if there is only one.

    Also return their origin, and add to ``notes`` whether the model was trained on these rows.
    """
    is_trained_on_rows = are_training_rows(model, X if hasattr(X, "shape") else np.asarray(X))
    notes.append(
        "The model seems to have been trained or calibrated on these rows, so all numbers on "
        "this page are too good. Use rows that it has not seen, or vennforest report."
        if is_trained_on_rows
        else "The numbers are right only if the model was not trained on these rows."
    )
    names = {**METHOD_NAMES, RAW: "Raw model", "model": "The model"}
    origin = Origin("model", target, "model", names, trained_on_rows=is_trained_on_rows)
    p = class_probabilities(model, X)[0]
    bounds = confidence = None
    if hasattr(model, "predict_multiprobability"):
        bounds = model.predict_multiprobability(X).widen(p)
    if hasattr(model, "predict_confidence"):
        confidence = model.predict_confidence(X).widen(p)
    method = getattr(model, "method", None)
    key = method if isinstance(method, str) and method in METHOD_NAMES else "model"
    estimates = {"model" if key == RAW else key: MethodEstimates(p, bounds, confidence)}
    fitted = model.estimators_ if isinstance(model, CalibratedClassifier) else []
    if len(fitted) == 1 and model._state.shift is None:  # the raw model is for the old shares
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimates[RAW] = MethodEstimates(class_probabilities(fitted[0], X)[0])
    return estimates, origin
