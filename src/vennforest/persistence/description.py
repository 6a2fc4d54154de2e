"""What a model file says of its model, for people: read without making the model."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sklearn.pipeline import Pipeline

from vennforest.calibrators import Calibrator

LONGEST = 300
"""Characters of an estimator's text that are kept."""


def describe(model: Any) -> dict[str, Any]:
    """Return what a fitted model is, as text and numbers.

    Returns
    -------
    dict
        ``written`` (when, in universal time) and ``calibration_examples``; of a classifier also
        ``estimator``, ``estimators`` (how many), ``method``, ``merge``, ``calibrate_on`` with
        ``reason``, ``subforest`` and ``n_draws`` where it is out of bag, and ``rows``; of a
        calibrator its ``method``; of a monitor or a protected model what its model is.
    """
    found: dict[str, Any] = {"written": datetime.now(UTC).isoformat(timespec="seconds")}
    if hasattr(model, "model"):  # a monitor, which may be of no model, or a protected model
        inner = {} if model.model is None else describe(model.model)
        return {**found, **inner}
    if isinstance(model, Calibrator):
        examples = getattr(model, "n_given", None) or None  # from counts alone it knows of none
        return {**found, "method": _text(model), "calibration_examples": examples}
    if not hasattr(model, "method"):  # protected as it is, without calibration
        return {**found, "estimator": _estimator(model)}
    method = model.method if isinstance(model.method, str) else _text(model.method)
    found |= {"method": method, "merge": model.merge}
    if not hasattr(model, "calibrate_on"):  # transductive: trained anew for each object
        rows = len(model._state.codes) if model.__sklearn_is_fitted__() else None
        return {**found, "estimator": _text(model.estimator), "rows": rows}
    fitted = model._state
    parts = fitted.folds
    found |= {
        "estimator": _estimator(parts[0].estimator) if parts else "",
        "estimators": len(parts),
        "calibrate_on": model.calibrate_on_,
        "reason": model.calibrate_on_reason_,
        "calibration_examples": sum(len(part.codes) for part in parts),
        "rows": fitted.n_rows,
    }
    if fitted.shift is not None:
        found["prior"] = dict(zip(map(str, model.classes_), model.prior_.tolist(), strict=True))
    if fitted.by is not None:
        found |= {"by": _text(model.by), "groups": len(model.grouping_)}
    if model.calibrate_on_ == "oob":
        found |= {"subforest": model.subforest, "n_draws": model.n_draws}
    return found


def _estimator(fitted: Any) -> str:
    """Return a fitted model as text; of a pipeline its steps."""
    if isinstance(fitted, Pipeline):
        return ", then ".join(_text(step) for _, step in fitted.steps)
    return _text(fitted)


def _text(thing: Any) -> str:
    text = " ".join(repr(thing).split())
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
