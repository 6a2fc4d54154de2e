"""What the parameters of the classifier may be, and what they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from vennforest._messages import shown, warn
from vennforest._validation import InputError, check_count, check_option
from vennforest.calibrators import METHODS, Calibrator
from vennforest.classifier.prediction import method_has_bounds
from vennforest.forest import MixedForestClassifier, Votes
from vennforest.sources import Subforest
from vennforest.sources.estimators import without_frozen

ClassifierMerge = Literal["auto", "pooled", "log", "brier", "midpoint"]

RESERVED_NAMES = {"self", "method_mapping", "splitter"}
"""Names that metadata routing gives to other things than an estimator."""

SOURCE_NAMES = ["auto", "oob", "holdout", "cv", "training"]


def named_estimators(estimator: Any, n_jobs: int | None = None) -> dict[str, Any]:
    """Return the estimators to be trained by name; one by itself is called like the parameter.

    None stands for the default forest, and ``"drop"`` in a list for an estimator that is left out.
    """
    if estimator is None:
        return {"estimator": MixedForestClassifier(n_estimators=300, n_jobs=n_jobs)}
    is_list = isinstance(estimator, list)
    pairs = estimator if is_list else [("estimator", estimator)]
    for pair in pairs:
        if is_list and isinstance(pair, list | tuple) and [*pair[1:]] == ["drop"]:
            continue
        is_named = isinstance(pair, list | tuple) and len(pair) == 2 and isinstance(pair[0], str)
        model = without_frozen(pair[1]) if is_named else None
        if type(model).__name__ == "Booster":  # of lgb.train or xgb.train
            raise InputError(
                f"estimator must be a classifier, got {shown(model)}: use LGBMClassifier or "
                "XGBClassifier, or calibrate the Booster's scores, VennAbers().fit(scores, y)"
            )
        if not is_named or isinstance(pair[1], type) or not hasattr(pair[1], "fit"):
            raise TypeError(
                "estimator must be a classifier (an instance, not fitted) or a list of (name, "
                f"classifier), got {shown(estimator)}"
            )
        if isinstance(pair[1], Calibrator):
            raise InputError(
                f"estimator must be a classifier of rows, got {shown(pair[1])}, which reads "
                "scores: give it as method="
            )
    if is_list and len(pairs) < 2:
        raise InputError(
            f"estimator must be a classifier or a list of two or more, got {len(pairs)}: give one "
            "classifier by itself"
        )
    used = {name: part for name, part in pairs if not isinstance(part, str)}
    if not used:
        raise InputError('estimator must have one that is not "drop", got none')
    return used


def classes_of_frozen(estimators: Mapping[str, Any]) -> NDArray[Any] | None:
    """Return the labels of the frozen models, which must have the same; None if none is frozen."""
    classes = None
    for name, estimator in estimators.items():
        if not isinstance(estimator, FrozenEstimator):
            continue
        check_is_fitted(estimator)
        if not hasattr(estimator, "classes_"):
            got = type(without_frozen(estimator)).__name__
            raise InputError(f"estimator must be a classifier, which has classes_, got a {got}")
        if classes is not None and not np.array_equal(classes, estimator.classes_):
            raise InputError(
                f"frozen estimators must have the same classes, got {np.asarray(classes).tolist()} "
                f"and {np.asarray(estimator.classes_).tolist()} of {name!r}"
            )
        classes = estimator.classes_
    return classes


def check_parameters(model: Any) -> None:
    """Refuse values that the parameters of a classifier cannot have."""
    if not isinstance(model.method, Calibrator):
        if model.method == "sigmoid":  # scikit-learn's name
            raise InputError('method must be "platt" for a sigmoid, got "sigmoid"')
        check_option(model.method, METHODS, "method", " or a calibrator instance")
    if isinstance(model.cv, str) and model.cv == "prefit":  # scikit-learn's former way
        raise InputError(
            'cv must be a number of folds or a splitter, got "prefit": use '
            "CalibratedClassifier(FrozenEstimator(model))"
        )
    source = model.calibrate_on
    is_source = not isinstance(source, type) and callable(getattr(source, "folds", None))
    if not is_source:
        check_option(source, SOURCE_NAMES, "calibrate_on", " or an object with a method folds")
    check_option(model.subforest, Subforest, "subforest")
    check_option(model.votes, Votes, "votes")
    check_option(model.merge, ClassifierMerge, "merge")
    size, cv = model.holdout_size, model.cv
    is_count = isinstance(size, Integral) and not isinstance(size, bool) and int(size) >= 1
    if not (is_count or (isinstance(size, Real) and 0 < float(size) < 1)):
        raise InputError(
            f"holdout_size must be a share in (0, 1) or a number of examples, got {shown(size)}"
        )
    if isinstance(cv, Integral):
        check_count(cv, "cv", 2)
    if not isinstance(model.ensemble, bool | np.bool_):
        hint = ": leave it out, a frozen model has no folds" if model.ensemble == "auto" else ""
        raise InputError(f"ensemble must be True or False, got {shown(model.ensemble)}{hint}")
    n_jobs = model.n_jobs
    is_integer = isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool)
    if n_jobs is not None and not (is_integer and n_jobs):
        raise InputError(f"n_jobs must be None or an integer other than 0, got {shown(n_jobs)}")
    if model.merge != "auto" and not method_has_bounds(model.method):
        name = model.method if isinstance(model.method, str) else type(model.method).__name__
        warn(f"merge={shown(model.merge)} has no effect with {name}, which gives no bounds")
    is_column = isinstance(model.by, str | Integral) and not isinstance(model.by, bool)
    if not (model.by is None or is_column or callable(model.by)):
        raise InputError(
            "by must be the name or position of a column, or a function of rows, got "
            f"{shown(model.by)}"
        )
    if isinstance(model.estimator, list):
        named_estimators(model.estimator)
        names = [name for name, _ in model.estimator]
        model._validate_names(names)
        # ``a___b`` would be the parameter ``_b`` of ``a``, or ``b`` of ``a_``.
        if refused := sorted(n for n in names if n in RESERVED_NAMES or n.endswith("_")):
            raise InputError(
                "estimator must have other names than metadata routing, none of which ends in an "
                f"underscore, got {refused[0]!r}"
            )
        if model.subforest == "exchangeable":
            raise InputError(
                'subforest must be "all" with several estimators, got "exchangeable": give one '
                "forest"
            )


def route(
    model: Any, name: str, estimator: Any, weight: Any, groups: Any, fit_params: dict[str, Any]
) -> tuple[dict[str, Any], str | None, dict[str, Any]]:
    """Return the arguments of the estimator's fit, the name of its weights, and the splitter's."""
    split_params = {} if groups is None else {"groups": groups}
    if get_config()["enable_metadata_routing"]:
        metadata = {"sample_weight": weight, "groups": groups}
        present = {name: value for name, value in metadata.items() if value is not None}
        routed = process_routing(model, "fit", **present, **fit_params)
        params = {key: v for key, v in routed[name].fit.items() if v is not None}
        return params, None, {**routed.splitter.split, **split_params}
    if isinstance(model.estimator, list):
        # A parameter ``name__key`` goes to that estimator alone, as ``key``, others to all.
        prefixes_of_others = tuple(f"{member}__" for member, _ in model.estimator if member != name)
        fit_params = {
            key.removeprefix(f"{name}__"): value
            for key, value in fit_params.items()
            if not key.startswith(prefixes_of_others)
        }
    path, last = [], estimator
    while isinstance(last, Pipeline):
        step, last = last.steps[-1]
        path.append(step)
    takes_weight = has_fit_parameter(last, "sample_weight")
    if weight is not None and not takes_weight and not isinstance(estimator, FrozenEstimator):
        warn(
            f"{type(last).__name__} takes no sample_weight: "
            "the weights are used for calibration alone"
        )
    return fit_params, "__".join([*path, "sample_weight"]) if takes_weight else None, split_params
