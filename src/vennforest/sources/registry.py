"""The names that ``calibrate_on`` may have, what each means, and which ``"auto"`` chooses."""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

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

from vennforest._messages import not_one_of
from vennforest._validation import InputError
from vennforest.forest import bags_can_be_verified
from vennforest.forest.packed import Votes
from vennforest.sources.base import Source, TrainingData, is_bagged, last_step
from vennforest.sources.checks import steps_obstacle
from vennforest.sources.holdout_cv import Folds, Frozen, Holdout, Training
from vennforest.sources.out_of_bag import OutOfBag, Subforest

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
"""Splitters that treat all rows alike; any other knows something of them that bags do not."""


def is_plain(cv: Any) -> bool:
    """Tell whether a splitter treats all rows alike."""
    return cv is None or isinstance(cv, (Integral, *PLAIN_SPLITTERS))


class SourceSettings(NamedTuple):
    """What a named source is made from: parameters of `CalibratedClassifier` of the same names.

    ``stratify`` is False where the calibrator gives bounds, which stratified splits would make
    inexact.
    """

    subforest: Subforest
    votes: Votes
    holdout_size: float | int
    cv: Any
    ensemble: bool
    stratify: bool


def make_source(name: str, settings: SourceSettings) -> Source:
    """Return the source of a name."""
    if name == "oob":
        return OutOfBag(settings.subforest, settings.votes)
    if name == "holdout":
        return Holdout(settings.holdout_size, settings.stratify)
    if name == "cv":
        return Folds(settings.cv, settings.ensemble, settings.stratify)
    return Training() if name == "training" else Frozen()


DESCRIPTIONS = {
    "oob": "out of bag",
    "holdout": "on a part held out from training",
    "cv": "on folds",
    "training": "on the training data itself: there is no guarantee",
    "frozen": "a model that was fitted before",
    "partitions": "out of bag, by the trees of other partitions",
}
"""Where the scores of a source come from, in half a line."""

SOURCE_NAMES = ["auto", "oob", "holdout", "cv", "training"]
"""The values of ``calibrate_on`` that are names."""

TRAINING_SOURCES = ("holdout", "cv")
"""Sources that train models, which rules a ``FrozenEstimator`` out."""


def check_source(wanted: object, name: str = "calibrate_on") -> None:
    """Refuse what is neither the name of a source nor an object with a method ``folds``."""
    if not callable(getattr(wanted, "folds", None)):
        if not isinstance(wanted, str) or wanted not in SOURCE_NAMES:
            raise not_one_of(name, SOURCE_NAMES, wanted)
    elif isinstance(wanted, type):
        own = wanted.__name__
        raise InputError(f"{name} must be an instance of a source, got {own}: use {own}()")


FROZEN = "the model is frozen: the data given to fit calibrates it"


def choose(
    wanted: Any, estimator: Any, data: TrainingData, cv: Any, subforest: str
) -> tuple[str, str]:
    """Return the name of the source that ``calibrate_on`` means here, and why, in a clause.

    A source that cannot be honest, or would ignore something that was given, is refused.
    """
    if not isinstance(wanted, str):
        return type(wanted).__name__, "it was given"
    if isinstance(estimator, FrozenEstimator):
        return _choose_frozen(wanted, subforest, estimator, data)
    if wanted == "auto":
        return _choose_auto(estimator, data, cv)
    if wanted in ("oob", "holdout") and not is_plain(cv):
        raise ValueError(
            f"cv must be left out with calibrate_on={wanted!r}, which does not split by it, "
            f'got {type(cv).__name__}: use calibrate_on="cv"'
        )
    if wanted == "training" and data.groups is not None:
        raise ValueError(
            'groups must be left out with calibrate_on="training", which keeps no example apart, '
            'got some: use calibrate_on="cv"'
        )
    return wanted, "it was asked for"


def _choose_frozen(
    wanted: str, subforest: str, estimator: FrozenEstimator, data: TrainingData
) -> tuple[str, str]:
    if wanted != "auto" and wanted in TRAINING_SOURCES:
        raise ValueError(
            f'calibrate_on must be "auto" or "oob" with a FrozenEstimator, got {wanted!r}, which '
            'trains models: the data given to fit calibrates, and with "oob" it is what the model '
            "was trained on"
        )
    if wanted not in ("auto", "training"):
        return wanted, "it was asked for"
    ensemble = last_step(estimator.estimator)
    # Members that are trees show whether the rows are those of their training.
    if is_bagged(ensemble) and bags_can_be_verified(ensemble, len(data)):
        return "oob", "the rows are those that the frozen ensemble was trained on"
    return "frozen", FROZEN


def _choose_auto(estimator: Any, data: TrainingData, cv: Any) -> tuple[str, str]:
    """Return "oob" where it is honest as far as can be told before a fit, else "cv"."""
    if not is_bagged(estimator):
        return "cv", "the estimator is not a bagged ensemble whose members can be asked one by one"
    if data.groups is not None:
        return "cv", "groups were given, and folds keep each of them together"
    if not is_plain(cv):
        return "cv", f"cv is a {type(cv).__name__}, which knows more of the rows than bags do"
    why = steps_obstacle(estimator)
    if why is not None:
        return "cv", why
    return "oob", "the members of the ensemble leave examples out of bag"
