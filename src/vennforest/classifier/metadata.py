"""What of ``fit``'s arguments goes to the model, and what to the splitter."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from sklearn import get_config
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.validation import has_fit_parameter

from vennforest._validation import FloatArray
from vennforest._warn import warn


def route(
    owner: Any,
    estimator: Any,
    weight: FloatArray | None,
    groups: Any,
    fit_params: dict[str, Any],
) -> tuple[dict[str, Any], str | None, dict[str, Any]]:
    """Return what the model's ``fit`` gets, the name of its weights, and what the splitter gets.

    With metadata routing that is what they request. ``groups`` is the classifier's own, and
    the splitter's. Without routing everything else goes to the model, and weights to the last step
    of a pipeline.

    Warns
    -----
    UserWarning
        If there are weights that the model does not take.
    """
    split = {} if groups is None else {"groups": groups}
    if get_config()["enable_metadata_routing"]:
        named = {"sample_weight": weight, "groups": groups}
        known = {name: value for name, value in named.items() if value is not None}
        routed = process_routing(owner, "fit", **known, **fit_params)
        given = {key: v for key, v in routed.estimator.fit.items() if v is not None}
        return given, None, {**routed.splitter.split, **split}
    params = dict(fit_params)
    path, last = [], estimator
    while isinstance(last, Pipeline):
        step, last = last.steps[-1]
        path.append(step)
    name = "__".join([*path, "sample_weight"])
    takes = has_fit_parameter(last, "sample_weight")
    if weight is not None and not takes and not isinstance(estimator, FrozenEstimator):
        warn(
            f"{type(last).__name__} takes no sample_weight: "
            "the weights are used for calibration alone"
        )
    return params, name if takes else None, split


def warn_of_groups_around() -> None:
    """Warn where a search or a cross-validation of scikit-learn has groups and hands on none.

    Seen where its frame is on the stack: not from another process (``n_jobs``).
    """
    if get_config()["enable_metadata_routing"]:  # which refuses groups that were not requested
        return
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith("sklearn.model_selection._"):
            around = frame.f_locals
            params = around.get("params")
            given = params.get("groups") if isinstance(params, dict) else None
            if around.get("groups") is not None or given is not None:
                warn(
                    "the rows are split by groups, and the model inside gets none, so that its "
                    "calibration puts rows of one group on both sides. Hand them on: "
                    "sklearn.set_config(enable_metadata_routing=True), and "
                    "set_fit_request(groups=True) of the CalibratedClassifier"
                )
                return
        frame = frame.f_back
