"""What the parameters of a classifier mean: estimator, source of scores, calibrators."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from sklearn import get_config
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import (
    KFold,
    LeaveOneOut,
    LeavePOut,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
)
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.validation import has_fit_parameter

from vennforest._messages import not_one_of, warn
from vennforest._validation import FloatArray, InputError, check_option
from vennforest.calibrators import (
    METHODS,
    Calibrator,
    PooledCalibration,
    check_method,
    make_calibrator,
)
from vennforest.calibrators.base import has_bounds
from vennforest.forest import BagsError, MixedForestClassifier, bags_can_be_verified
from vennforest.forest.packed import Votes
from vennforest.groups import check_by
from vennforest.sources import (
    Fold,
    Folds,
    Frozen,
    Holdout,
    OutOfBag,
    Subforest,
    Training,
    TrainingData,
    is_bagged,
    with_seed,
)
from vennforest.sources.checks import check_frozen, check_training_data, steps_obstacle
from vennforest.sources.data import last_step, split_pipeline

ClassifierMerge = Literal["auto", "pooled", "log", "brier", "midpoint"]
"""How bounds, or the scores that they are of, become one probability."""

SOURCE_NAMES = ["auto", "oob", "holdout", "cv", "training"]
"""The values of ``calibrate_on`` that are names."""

DEFAULTS: dict[str, Any] = {
    "subforest": "all",
    "votes": "soft",
    "holdout_size": 1 / 3,
    "cv": 5,
    "ensemble": True,
}
"""The parameters of sources, with their defaults."""

SOURCE_PARAMETERS = {
    "oob": ("subforest", "votes"),
    "holdout": ("holdout_size",),
    "cv": ("cv", "ensemble"),
}
"""Those that each source takes; others take none."""

PLAIN_SPLITTERS = (
    KFold,
    LeaveOneOut,
    LeavePOut,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
)
"""Splitters that treat all rows alike; others separate groups or times, as bags do not."""

MODEL_IS_FROZEN = "the model is frozen: the data given to fit calibrates it"


def resolve_estimator(estimator: Any, n_jobs: int | None) -> Any:
    """Return the estimator to be trained, the default forest for None."""
    if estimator is None:
        return MixedForestClassifier(n_estimators=300, n_jobs=n_jobs)
    if isinstance(estimator, type) or not hasattr(estimator, "fit"):
        raise TypeError(
            f"estimator must be a classifier (an instance, not fitted), got {estimator!r}"
        )
    transformers, last = split_pipeline(estimator)
    for step in (*transformers, last):
        if isinstance(step, type):
            raise TypeError(
                "estimator must be a pipeline of instances, got the class "
                f"{step.__name__}: use {step.__name__}()"
            )
    return estimator


def check_parameters(model: Any) -> None:
    """Refuse values that the parameters of a classifier cannot have."""
    if not isinstance(model.method, Calibrator):
        if model.method in ("sigmoid", "logistic"):
            raise InputError(
                f'method must be "platt" for logistic regression, got {model.method!r}'
            )
        check_method(model.method)
    check_source(model.calibrate_on)
    check_option(model.subforest, Subforest, "subforest")
    check_option(model.votes, Votes, "votes")
    check_option(model.merge, ClassifierMerge, "merge")
    if model.merge != "auto" and not method_has_bounds(model.method):
        name = model.method if isinstance(model.method, str) else type(model.method).__name__
        warn(f"merge={model.merge!r} has no effect with {name}, which gives no bounds")
    if isinstance(model.cv, str) and model.cv == "prefit":
        raise InputError(
            'cv must be a number of folds or a splitter, got "prefit": use '
            "CalibratedClassifier(FrozenEstimator(model))"
        )
    if model.by is not None:
        check_by(model.by)
    if not isinstance(model.ensemble, bool | np.bool_):
        raise ValueError(f"ensemble must be a boolean, got {model.ensemble!r}")
    size = model.holdout_size
    is_integer = isinstance(size, Integral)
    is_share = isinstance(size, Real) and not is_integer and 0 < float(size) < 1
    if not is_share and not (is_integer and int(size) >= 1):
        raise ValueError(
            f"holdout_size must be a share between 0 and 1 or a number of examples, got {size!r}"
        )


def check_source(source: object, name: str = "calibrate_on") -> None:
    """Refuse anything but the name of a source or an object with a method ``folds``."""
    if not callable(getattr(source, "folds", None)):
        if not isinstance(source, str) or source not in SOURCE_NAMES:
            raise not_one_of(name, SOURCE_NAMES, source)
    elif isinstance(source, type):
        cls = source.__name__
        raise InputError(f"{name} must be an instance of a source, got {cls}: use {cls}()")


# --- calibrators ---------------------------------------------------------------------------------


def method_has_bounds(method: Any) -> bool:
    """Tell whether a method, by name or as a calibrator, gives bounds."""
    known = METHODS.get(method) if isinstance(method, str) else None
    return has_bounds(method) or (known is not None and has_bounds(known))


def unfitted_calibrators(model: Any) -> tuple[Calibrator, Calibrator | None]:
    """Return what calibrates each fold of a classifier, and the point calibrator if it has one."""
    calibrator = make_calibrator(model.method)
    is_pooled = model.merge == "pooled" and method_has_bounds(model.method)
    if model.merge == "auto":
        is_pooled = isinstance(model.method, str) and model.method == "venn-abers"
    if hasattr(calibrator, "merge"):
        if is_pooled:
            calibrator.set_params(merge="log")  # is not used, and needs nothing fitted
        elif model.merge != "auto":
            calibrator.set_params(merge=model.merge)
    return calibrator, PooledCalibration() if is_pooled else None


# --- scores --------------------------------------------------------------------------------------


def route(
    model: Any, estimator: Any, weight: FloatArray | None, groups: Any, fit_params: dict[str, Any]
) -> tuple[dict[str, Any], str | None, dict[str, Any]]:
    """Return the arguments of the estimator's ``fit``, the name of its weights, and the splitter's.

    With metadata routing these are requested. ``groups`` are the classifier's and the splitter's.
    Without routing everything else goes to the estimator, and weights to the last step of a
    pipeline, with a warning where that takes none.
    """
    split_params = {} if groups is None else {"groups": groups}
    if get_config()["enable_metadata_routing"]:
        metadata = {"sample_weight": weight, "groups": groups}
        present = {name: value for name, value in metadata.items() if value is not None}
        routed = process_routing(model, "fit", **present, **fit_params)
        params = {key: v for key, v in routed.estimator.fit.items() if v is not None}
        return params, None, {**routed.splitter.split, **split_params}
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
    name = "__".join([*path, "sample_weight"])
    return dict(fit_params), name if takes_weight else None, split_params


def fit_folds(
    model: Any,
    estimator: Any,
    data: TrainingData,
    random_state: np.random.RandomState,
    split_state: np.random.RandomState,
) -> tuple[list[Fold], str, str]:
    """Fit the models and score the calibration examples.

    Seeds of the estimator, and of draws for new objects, are drawn from ``random_state``, splits
    from ``split_state``. Returned are the folds, the name of their source, and why it was chosen.
    """
    estimator = with_seed(estimator, random_state)
    seed = int(random_state.randint(2**31 - 1))
    name, reason = choose_source(model, estimator, data)
    check_training_data(estimator, data, name)

    def folds(name: str) -> list[Fold]:
        source = model.calibrate_on
        if isinstance(source, str):
            source = make_source(model, name)
        return list(
            source.folds(estimator, data, seed=seed, random_state=split_state, n_jobs=model.n_jobs)
        )

    if model.calibrate_on == "auto" and name == "oob":
        try:
            scored = folds("oob")
        except BagsError as error:
            # Seen in the fitted ensemble, so a fit is lost; never a guarantee.
            name, reason = "cv", error.reason
            if isinstance(estimator, FrozenEstimator):
                name, reason = "frozen", MODEL_IS_FROZEN
                check_frozen(data)
            scored = folds(name)
    else:
        if name == "frozen":
            check_frozen(data)
        scored = folds(name)
    warn_of_no_effect(model, name, reason)
    return scored, name, reason


def make_source(model: Any, name: str) -> Any:
    """Return the source of a name with the parameters of a classifier."""
    # Splits behind bounds are not stratified, which would make them inexact.
    stratify = not method_has_bounds(model.method)
    sources = {
        "oob": OutOfBag(model.subforest, model.votes),
        "holdout": Holdout(model.holdout_size, stratify),
        "cv": Folds(model.cv, bool(model.ensemble), stratify),
        "training": Training(),
        "frozen": Frozen(),
    }
    return sources[name]


def choose_source(model: Any, estimator: Any, data: TrainingData) -> tuple[str, str]:
    """Return the name of the source that ``calibrate_on`` stands for, and why, in a clause.

    A source that cannot be honest, or would ignore groups, is refused.
    """
    source = model.calibrate_on
    if not isinstance(source, str):
        return type(source).__name__, "it was given"
    if isinstance(estimator, FrozenEstimator):
        return _choose_for_frozen(source, estimator, data)
    if source == "auto":
        return _choose_automatically(model, estimator, data)
    if source in ("oob", "holdout") and not _is_plain(model.cv):
        raise ValueError(
            f"cv must be left out with calibrate_on={source!r}, which does not split by it, "
            f'got {type(model.cv).__name__}: use calibrate_on="cv"'
        )
    if source == "training" and data.groups is not None:
        raise ValueError(
            'groups must be left out with calibrate_on="training", which keeps no example apart, '
            'got some: use calibrate_on="cv"'
        )
    return source, "it was asked for"


def _choose_for_frozen(
    source: str, estimator: FrozenEstimator, data: TrainingData
) -> tuple[str, str]:
    if source in ("holdout", "cv"):
        raise ValueError(
            f'calibrate_on must be "auto" or "oob" with a FrozenEstimator, got {source!r}, which '
            'trains models: the data given to fit calibrates, and with "oob" it is what the model '
            "was trained on"
        )
    if source == "oob":
        return source, "it was asked for"
    # Members that are trees show whether the rows are those of their training.
    ensemble = last_step(estimator.estimator)
    if is_bagged(ensemble) and bags_can_be_verified(ensemble):
        return "oob", "the rows are those that the frozen ensemble was trained on"
    return "frozen", MODEL_IS_FROZEN


def _choose_automatically(model: Any, estimator: Any, data: TrainingData) -> tuple[str, str]:
    """Return "oob" where it is honest as far as can be told before a fit, else "cv"."""
    if not is_bagged(estimator):
        return "cv", "the estimator is not a bagged ensemble whose members can score one by one"
    if data.groups is not None:
        return "cv", "groups were given, and folds keep each of them together"
    if not _is_plain(model.cv):
        return "cv", f"cv is a {type(model.cv).__name__}, which separates rows as bags do not"
    reason = steps_obstacle(estimator)
    if reason is not None:
        return "cv", reason
    return "oob", "the members of the ensemble leave examples out of bag"


def _is_plain(cv: Any) -> bool:
    """Tell whether a splitter treats all rows alike."""
    return cv is None or isinstance(cv, (Integral, *PLAIN_SPLITTERS))


def warn_of_no_effect(model: Any, source: str, reason: str) -> None:
    """Warn of parameters that are not at their defaults and that the source does not take.

    A warning and no error: the result is right without them, and a search over parameters meets
    such pairs.
    """
    unused = []
    for name, default in DEFAULTS.items():
        value = getattr(model, name)
        is_default = value is None or (isinstance(value, type(default)) and value == default)
        if not is_default and name not in SOURCE_PARAMETERS.get(source, ()):
            unused.append(f"{name}={value!r}")
    if not unused:
        return
    where = f"the source {source}"
    if isinstance(model.calibrate_on, str):
        where = f"calibrate_on={model.calibrate_on!r}"
    if model.calibrate_on == "auto":
        where += f", which is {source!r} here: {reason}"
    verb, pronoun = ("has", "it") if len(unused) == 1 else ("have", "them")
    warn(f"{' and '.join(unused)} {verb} no effect with {where}. Leave {pronoun} out")
