"""What of ``fit``'s arguments goes to the model, and what to the splitter."""

from __future__ import annotations

from typing import Any

from sklearn import get_config
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.validation import has_fit_parameter

from vennforest._validation import FloatArray
from vennforest._warn import warn


def route(
    owner: Any, estimator: Any, weight: FloatArray | None, fit_params: dict[str, Any]
) -> tuple[dict[str, Any], str | None, dict[str, Any]]:
    """Return what the model's ``fit`` gets, the name of its weights, and what the splitter gets.

    With metadata routing that is what they request. Without it ``groups`` goes to the splitter,
    everything else to the model, and weights to the last step of a pipeline.

    Warns
    -----
    UserWarning
        If there are weights that the model does not take.
    """
    if get_config()["enable_metadata_routing"]:
        routed = process_routing(owner, "fit", sample_weight=weight, **fit_params)
        given = {key: v for key, v in routed.estimator.fit.items() if v is not None}
        return given, None, dict(routed.splitter.split)
    params = dict(fit_params)
    split = {"groups": params.pop("groups")} if "groups" in params else {}
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
