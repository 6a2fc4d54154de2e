"""Other models beside the one that the report is about, and the blend of all."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from time import perf_counter
from typing import Any

from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from vennforest._files import one_line
from vennforest.classifier import CalibratedClassifier
from vennforest.classifier.classifier import blend_classifiers
from vennforest.report.measures import MethodEstimates

BLEND = "blend of all"
"""Name of the blend in the table of models."""

TrainingRows = tuple[Any, NDArray[Any], Mapping[str, Any]]
"""Rows X, their labels (n,), and ``groups`` (n,) where there are some, for ``fit``."""


def predict_by_others(
    model: CalibratedClassifier,
    seconds: float,
    classifiers: dict[str, Any],
    training: TrainingRows,
    X_new: Any,
    notes: list[str],
) -> dict[str, MethodEstimates]:
    """Return probabilities of new rows by calibrated classifiers, by name.

    The first is ``model``, which was fitted in ``seconds`` and has no name here, the last one their
    blend. A classifier that fails is taken out, with a note; nothing without classifiers.
    """
    if not classifiers:
        return {}
    X, y, groups = training
    fitted = {"": model}
    estimates = {"": _timed(model, seconds, X_new)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, classifier in list(classifiers.items()):
            start = perf_counter()
            try:
                compared = _with_classifier(model, classifier).fit(X, y, **groups)
                estimates[name] = _timed(compared, perf_counter() - start, X_new)
                fitted[name] = compared
            except Exception as error:  # the report is about another model
                del classifiers[name]
                notes.append(f"The {name} is not compared: {one_line(error)}.")
        if len(fitted) > 1:
            start = perf_counter()
            blend = blend_classifiers(fitted, X, y)
            total = perf_counter() - start + sum(e.seconds for e in estimates.values())
            estimates[BLEND] = _timed(blend, total, X_new)
    return estimates


def _timed(model: Any, seconds: float, X: Any) -> MethodEstimates:
    """Return the probabilities of rows by a model that was fitted in some seconds."""
    start = perf_counter()
    p = model.predict_proba(X)
    return MethodEstimates(p, seconds=seconds, predict_seconds=perf_counter() - start)


def _with_classifier(model: CalibratedClassifier, classifier: Any) -> CalibratedClassifier:
    """Return an unfitted model with another classifier behind the same transformers."""
    if isinstance(model.estimator, Pipeline):
        classifier = Pipeline([*model.estimator.steps[:-1], ("classifier", classifier)])
    copy: CalibratedClassifier = clone(model)
    return copy.set_params(estimator=clone(classifier))
