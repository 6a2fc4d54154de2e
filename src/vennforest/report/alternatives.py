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
from vennforest.metrics.losses import log_losses, squared_losses
from vennforest.report.comparison import difference_over_folds
from vennforest.report.measures import OtherModel, Predictions
from vennforest.report.numbers import percent
from vennforest.report.section import Section

BLEND = "blend of all"
"""Name of the blend in the table of models."""


def predict_by_others(
    model: CalibratedClassifier,
    seconds: float,
    classifiers: dict[str, Any],
    training: tuple[Any, NDArray[Any], Mapping[str, Any]],
    X_new: Any,
    notes: list[str],
) -> dict[str, OtherModel]:
    """Return probabilities of new rows by calibrated classifiers, by name.

    They learn the rows, labels and groups of ``training``. The first is ``model``, which was fitted
    in ``seconds`` and has no name here, the last one their blend. A classifier that fails is taken
    out, with a note; nothing without classifiers.
    """
    if not classifiers:
        return {}
    X, y, groups = training
    fitted = {"": model}
    others = {"": OtherModel(model.predict_proba(X_new), seconds)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, classifier in list(classifiers.items()):
            start = perf_counter()
            try:
                fitted[name] = _with_classifier(model, classifier).fit(X, y, **groups)
                of_training = perf_counter() - start
                others[name] = OtherModel(fitted[name].predict_proba(X_new), of_training)
            except Exception as error:  # the report is about another model
                fitted.pop(name, None)
                del classifiers[name]
                notes.append(f"The {name} is not compared: {one_line(error)}.")
        start = perf_counter()
        if len(fitted) > 1:
            blend = blend_classifiers(fitted, X, y)
            total = perf_counter() - start + sum(other.seconds for other in others.values())
            others[BLEND] = OtherModel(blend.predict_proba(X_new), total)
    return others


def _with_classifier(model: CalibratedClassifier, classifier: Any) -> CalibratedClassifier:
    """Return an unfitted model with another classifier behind the same transformers."""
    if isinstance(model.estimator, Pipeline):
        classifier = Pipeline([*model.estimator.steps[:-1], ("classifier", classifier)])
    other: CalibratedClassifier = clone(model)
    return other.set_params(estimator=clone(classifier))


def models_section(predictions: Predictions, noun: str) -> Section:
    """Return the section on the report's model, called ``noun``, beside the others.

    Its advice is the blend where that gains more than chance.
    """
    models = {name or noun: model for name, model in predictions.others.items()}
    losses = {name: log_losses(model.p, predictions.codes) for name, model in models.items()}
    loss = "log loss"
    if not all(np.isfinite(values).all() for values in losses.values()):
        loss = "Brier score"
        losses = {name: squared_losses(m.p, predictions.codes) for name, m in models.items()}
    gains = {n: difference_over_folds(losses[noun], losses[n], predictions) for n in losses}
    rows: dict[str, dict[str, float]] = {
        name: {"loss": float(values.mean()), "seconds": models[name].seconds}
        for name, values in losses.items()
    }
    for name in [name for name in rows if name != noun]:
        mean, margin = gains[name].mean, gains[name].margin
        rows[name] |= {"gain": mean, "gain_low": mean - margin, "gain_high": mean + margin}
    frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis("Model")
    introduction = (
        f"Other models on the same {predictions.n_folds} folds, each calibrated by the default "
        "method. The blend weighs all of them by the log loss of the rows that calibrate. Seconds "
        "are those of training in all folds; the blend's include those of its models."
    )
    gain, best = gains[BLEND], max(gains, key=lambda name: gains[name].mean)
    advice = _blend_advice(rows, noun, loss) if gain.clear and gain.mean > 0 else ""
    sentence = advice or f"None has a lower {loss} than the {noun} beyond chance."
    if not advice and gains[best].clear:
        sentence = f"The {best} has a lower {loss} than the {noun} beyond chance."
    columns = [
        ("loss", loss.capitalize() if loss == "log loss" else loss, "number"),
        ("gain", "Gain, 95% interval", "number"),
        ("seconds", "Seconds", "short"),
    ]
    sentences = [introduction, sentence]
    return Section("Other models", "models", sentences, frame, columns, advice=advice)


def _blend_advice(rows: Mapping[str, Mapping[str, float]], noun: str, loss: str) -> str:
    """Return the sentence on the gain of the blend and its price."""
    gain = rows[BLEND]["gain"] / rows[noun]["loss"]
    times = rows[BLEND]["seconds"] / rows[noun]["seconds"]
    return (
        f"A blend with other models has a {percent(gain)} lower {loss} than the {noun}, beyond "
        f"chance. It takes {times:.1f} times as long to train, some milliseconds for one row, and "
        "has no ONNX."
    )
