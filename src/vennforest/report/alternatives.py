"""Other models beside the one that the report is about, and the blend of all."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from vennforest._files import one_line
from vennforest.classifier import CalibratedClassifier
from vennforest.classifier.classifier import blend_classifiers
from vennforest.metrics.losses import difference_over_rows, log_losses, squared_losses
from vennforest.report.measures import MethodEstimates, Predictions
from vennforest.report.numbers import percent
from vennforest.report.section import Section

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
    estimates = {"": MethodEstimates(model.predict_proba(X_new), seconds=seconds)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, classifier in list(classifiers.items()):
            start = perf_counter()
            try:
                compared = _with_classifier(model, classifier).fit(X, y, **groups)
                time = perf_counter() - start
                estimates[name] = MethodEstimates(compared.predict_proba(X_new), seconds=time)
                fitted[name] = compared
            except Exception as error:  # the report is about another model
                del classifiers[name]
                notes.append(f"The {name} is not compared: {one_line(error)}.")
        if len(fitted) > 1:
            start = perf_counter()
            blend = blend_classifiers(fitted, X, y)
            total = perf_counter() - start + sum(e.seconds for e in estimates.values())
            estimates[BLEND] = MethodEstimates(blend.predict_proba(X_new), seconds=total)
    return estimates


def _with_classifier(model: CalibratedClassifier, classifier: Any) -> CalibratedClassifier:
    """Return an unfitted model with another classifier behind the same transformers."""
    if isinstance(model.estimator, Pipeline):
        classifier = Pipeline([*model.estimator.steps[:-1], ("classifier", classifier)])
    copy: CalibratedClassifier = clone(model)
    return copy.set_params(estimator=clone(classifier))


def models_section(predictions: Predictions, noun: str) -> Section:
    """Return the section on the report's model, called ``noun``, beside the others.

    Its advice is the blend where that gains more than chance.
    """
    models = {name or noun: model for name, model in predictions.compared.items()}
    losses = {name: log_losses(model.p, predictions.codes) for name, model in models.items()}
    loss = "log loss"
    if not all(np.isfinite(values).all() for values in losses.values()):
        loss = "Brier score"
        losses = {name: squared_losses(m.p, predictions.codes) for name, m in models.items()}
    rows: dict[str, dict[str, float]] = {}
    better = []
    for name, model in models.items():
        rows[name] = {"loss": float(losses[name].mean()), "seconds": model.seconds}
        if name != noun:
            gain = difference_over_rows(losses[noun], losses[name], predictions.groups)
            low, high = gain.mean - gain.margin, gain.mean + gain.margin
            rows[name] |= {"gain": gain.mean, "gain_low": low, "gain_high": high}
            better += [name] if low > 0 else []
    introduction = (
        f"Other models on the same {predictions.n_folds} folds, each calibrated by the default "
        "method. The blend weighs all of them by the log loss of the rows that calibrate. "
        "Intervals are over the rows, for these trained models. Seconds are those of training in "
        "all folds; the blend's include those of its models."
    )
    advice = ""
    sentence = f"Lower in {loss} than the {noun}, beyond chance: {', '.join(better) or 'none'}."
    if BLEND in better:
        share = percent(rows[BLEND]["gain"] / rows[noun]["loss"])
        times = rows[BLEND]["seconds"] / rows[noun]["seconds"]
        sentence = advice = (
            f"A blend with other models has a {share} lower {loss} than the {noun}, beyond chance. "
            f"It takes {times:.1f} times as long to train, and some milliseconds for one row."
        )
    frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis("Model")
    columns = [
        ("loss", loss[0].upper() + loss[1:], "number"),
        ("gain", "Gain, 95% interval", "number"),
        ("seconds", "Seconds", "short"),
    ]
    sentences = [sentence, introduction]  # the first one stands in methods texts too
    return Section("Other models", "models", sentences, frame, columns, advice=advice)
