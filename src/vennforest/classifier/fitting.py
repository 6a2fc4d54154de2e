"""The steps of ``fit``: check parameters, choose a source of scores, fit folds and calibrators."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.validation import has_fit_parameter

from vennforest._messages import not_one_of, warn
from vennforest._validation import FloatArray, InputError, IntArray, check_option
from vennforest.calibrators import (
    METHODS,
    Calibrator,
    PooledCalibration,
    check_method,
    make_calibrator,
)
from vennforest.calibrators.base import has_bounds
from vennforest.forest import (
    BagsError,
    MixedForestClassifier,
    Votes,
    bags_can_be_verified,
    leaves_rows_out,
)
from vennforest.groups import PerGroup, check_by
from vennforest.sources import CalibrationExamples, Fold, Subforest, TrainingData, with_seed
from vennforest.sources.checks import check_training_data, steps_obstacle
from vennforest.sources.data import split_pipeline
from vennforest.sources.out_of_bag import out_of_bag_fold
from vennforest.sources.row_hashes import HashArray
from vennforest.sources.splits import cross_validation_folds, held_out_fold

ClassifierMerge = Literal["auto", "pooled", "log", "brier", "midpoint"]
ScoreKind = Literal["probabilities", "logits"]

SOURCE_NAMES = ["auto", "oob", "holdout", "cv", "training"]

SOURCE_PARAMETERS = {
    "subforest": "oob",
    "votes": "oob",
    "holdout_size": "holdout",
    "cv": "cv",
    "ensemble": "cv",
}
"""The parameters of sources, and which source takes each."""

MODEL_IS_FROZEN = "the model is frozen: the data given to fit calibrates it"


def resolve_estimator(estimator: Any, n_jobs: int | None) -> Any:
    """Return the estimator to be trained, the default forest for None."""
    if estimator is None:
        return MixedForestClassifier(n_estimators=300, n_jobs=n_jobs)
    if isinstance(estimator, type) or not hasattr(estimator, "fit"):
        raise TypeError(
            f"estimator must be a classifier (an instance, not fitted), got {estimator!r}"
        )
    return estimator


def check_parameters(model: Any) -> None:
    """Refuse values that the parameters of a classifier cannot have."""
    if not isinstance(model.method, Calibrator):
        if model.method == "sigmoid":  # scikit-learn's name
            raise InputError('method must be "platt" for a sigmoid, got "sigmoid"')
        check_method(model.method)
    if isinstance(model.cv, str) and model.cv == "prefit":  # scikit-learn's former way
        raise InputError(
            'cv must be a number of folds or a splitter, got "prefit": use '
            "CalibratedClassifier(FrozenEstimator(model))"
        )
    source = model.calibrate_on
    is_source = not isinstance(source, type) and callable(getattr(source, "folds", None))
    if not is_source and not (isinstance(source, str) and source in SOURCE_NAMES):
        raise not_one_of("calibrate_on", SOURCE_NAMES, source, " or an object with a method folds")
    check_option(model.subforest, Subforest, "subforest")
    check_option(model.votes, Votes, "votes")
    check_option(model.merge, ClassifierMerge, "merge")
    if model.merge != "auto" and not method_has_bounds(model.method):
        name = model.method if isinstance(model.method, str) else type(model.method).__name__
        warn(f"merge={model.merge!r} has no effect with {name}, which gives no bounds")
    if model.by is not None:
        check_by(model.by)


def route(
    model: Any, estimator: Any, weight: FloatArray | None, groups: Any, fit_params: dict[str, Any]
) -> tuple[dict[str, Any], str | None, dict[str, Any]]:
    """Return the arguments of the estimator's fit, the name of its weights, and the splitter's."""
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
    return fit_params, "__".join([*path, "sample_weight"]) if takes_weight else None, split_params


# --- scores --------------------------------------------------------------------------------------


def fit_folds(
    model: Any,
    estimator: Any,
    data: TrainingData,
    hashes: HashArray,
    random_state: RandomState,
    split_state: RandomState,
) -> tuple[list[Fold], str, str]:
    """Return the folds of fitted models, the name of their source, and why it was chosen."""
    estimator = with_seed(estimator, random_state)
    seed = int(random_state.randint(2**31 - 1))
    name, reason = choose_source(model, estimator, data)
    check_training_data(estimator, data, hashes, name)
    try:
        folds = _folds_of(name, model, estimator, data, seed, split_state)
    except BagsError as error:
        if not isinstance(model.calibrate_on, str) or model.calibrate_on != "auto":
            raise
        # What is wrong with bags shows in the fitted ensemble: a fit is lost, never a guarantee.
        is_frozen = isinstance(estimator, FrozenEstimator)
        name, reason = ("frozen", MODEL_IS_FROZEN) if is_frozen else ("cv", error.reason)
        folds = _folds_of(name, model, estimator, data, seed, split_state)
    _warn_of_no_effect(model, name, reason)
    return folds, name, reason


def _folds_of(
    name: str, model: Any, estimator: Any, data: TrainingData, seed: int, split_state: RandomState
) -> list[Fold]:
    """Return the folds of a source by its name, or of the user's."""
    if not isinstance(model.calibrate_on, str):
        settings = {"seed": seed, "random_state": split_state, "n_jobs": model.n_jobs}
        return list(model.calibrate_on.folds(estimator, data, **settings))
    if name == "oob":
        return out_of_bag_fold(estimator, data, model.subforest, model.votes, seed, model.n_jobs)
    # Splits behind bounds are not stratified, which would make them inexact.
    stratify = not method_has_bounds(model.method)
    if name == "cv":
        return cross_validation_folds(
            estimator, data, model.cv, bool(model.ensemble), stratify, split_state, model.n_jobs
        )
    if name == "holdout":
        return held_out_fold(estimator, data, model.holdout_size, stratify, split_state)
    if name == "training":
        # The simplified Venn-Abers predictor and the direct method (Vovk & Petej 2014, sections 3
        # and 5): scores are better than those of new rows, so no guarantee is valid.
        data = data.with_positive_weight()
        return [data.fold(data.fit(estimator))]
    groups = data.groups
    if groups is not None and len(np.unique(groups)) < len(groups):
        warn(
            "groups has no effect with a frozen model, and bounds may be too narrow: calibrate on "
            "one row of each group"
        )
    return [data.with_positive_weight().fold(estimator)]


def choose_source(model: Any, estimator: Any, data: TrainingData) -> tuple[str, str]:
    """Return the name of the source that ``calibrate_on`` stands for, and why, in a clause."""
    source = model.calibrate_on
    if not isinstance(source, str):
        return type(source).__name__, "it was given"
    has_splitter = not (model.cv is None or isinstance(model.cv, Integral))
    if isinstance(estimator, FrozenEstimator):
        if source not in ("auto", "oob"):
            raise ValueError(
                f'calibrate_on must be "auto" or "oob" with a FrozenEstimator, got {source!r}: the '
                'data given to fit calibrates; with "oob" the model was trained on it'
            )
        ensemble = split_pipeline(estimator.estimator)[1]
        # Members that are trees show whether the rows are those of their training.
        is_verifiable = leaves_rows_out(ensemble) and bags_can_be_verified(ensemble)
        if source == "auto" and not is_verifiable:
            return "frozen", MODEL_IS_FROZEN
        return "oob", "the rows are those that the frozen ensemble was trained on"
    if source in ("oob", "holdout") and has_splitter:
        raise ValueError(
            f"cv must be left out with calibrate_on={source!r}, which does not split by it, "
            f'got {type(model.cv).__name__}: use calibrate_on="cv"'
        )
    if source == "training" and data.groups is not None:
        raise ValueError('groups must be left out with calibrate_on="training", got some')
    if source != "auto":
        return source, "it was asked for"
    if not leaves_rows_out(split_pipeline(estimator)[1]):
        return "cv", "the estimator is not a bagged ensemble whose members can score one by one"
    if data.groups is not None:
        return "cv", "groups were given, and folds keep each of them together"
    if has_splitter:
        return "cv", f"cv is a {type(model.cv).__name__}, which separates rows as bags do not"
    if (reason := steps_obstacle(estimator)) is not None:
        return "cv", reason
    return "oob", "the members of the ensemble leave examples out of bag"


def _warn_of_no_effect(model: Any, source: str, reason: str) -> None:
    """Warn of parameters that are not at their defaults and that the source does not take.

    It is no error, because a search over parameters meets such pairs.
    """
    defaults = type(model)().get_params(deep=False)
    unused = []
    for name, source_of_parameter in SOURCE_PARAMETERS.items():
        value, default = getattr(model, name), defaults[name]
        is_default = value is None or (isinstance(value, type(default)) and value == default)
        if source_of_parameter != source and not is_default:
            unused.append(f"{name}={value!r}")
    if unused:
        setting = f"calibrate_on={model.calibrate_on!r}"
        if setting == "calibrate_on='auto'":
            setting += f", which is {source!r} here: {reason}"
        verb, pronoun = ("has", "it") if len(unused) == 1 else ("have", "them")
        warn(f"{' and '.join(unused)} {verb} no effect with {setting}. Leave {pronoun} out")


# --- calibrators ---------------------------------------------------------------------------------


def method_has_bounds(method: Any) -> bool:
    """Tell whether a method, by name or as a calibrator, gives bounds."""
    return has_bounds(METHODS.get(method) if isinstance(method, str) else method)


def unfitted_calibrators(model: Any) -> tuple[Calibrator, Calibrator | None]:
    """Return the calibrator of each fold of a classifier, and the point calibrator if any."""
    calibrator = make_calibrator(model.method)
    if not has_bounds(calibrator):
        return calibrator, None
    merge = model.merge
    if merge == "auto" and isinstance(model.method, str) and model.method == "venn-abers":
        merge = "pooled"
    if merge == "pooled":
        # The merge of the bounds is not used, and this one needs nothing fitted.
        return calibrator.set_params(merge="log"), PooledCalibration()
    return calibrator if merge == "auto" else calibrator.set_params(merge=merge), None


def fit_calibrators(
    calibrator: Calibrator,
    point: Calibrator | None,
    classes: NDArray[Any],
    folds: Sequence[Fold | CalibrationExamples],
    group_codes: IntArray | None,
    score_kind: ScoreKind,
) -> tuple[list[PerGroup[Calibrator]], PerGroup[Calibrator] | None]:
    """Fit clones of a calibrator to each fold's examples, and of a point calibrator to all."""

    def fit(unfitted: Calibrator, examples: CalibrationExamples) -> PerGroup[Calibrator]:
        def fit_some(index: IntArray | None) -> Calibrator:
            some = examples if index is None else examples.select(index)
            fitted: Calibrator = clone(unfitted)
            if isinstance(fitted, PooledCalibration):
                fitted.on = score_kind
            fitted.fit(some.scores, classes[some.codes], sample_weight=some.weight, classes=classes)
            fitted.score_range_ = None  # new scores are by the same model
            return fitted

        return PerGroup.fit(fit_some, codes_of(examples.rows, group_codes))

    of_fold = [fit(calibrator, CalibrationExamples.of([fold])) for fold in folds]
    # One pool for the scores of all folds is better than one per fold (docs/measured.md).
    return of_fold, None if point is None else fit(point, CalibrationExamples.of(folds))


def codes_of(rows: IntArray | None, row_codes: IntArray | None) -> IntArray | None:
    """Return the codes of some rows, None where there are none."""
    return None if rows is None or row_codes is None else row_codes[rows]


def score_kind_of(folds: Sequence[Fold]) -> ScoreKind:
    """Return whether the scores of models are probabilities, or decision values."""
    has_proba = all(hasattr(fold.model, "predict_proba") for fold in folds)
    return "probabilities" if has_proba else "logits"
