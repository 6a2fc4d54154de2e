"""What is known to spoil a calibration and can be seen in what ``fit`` was given."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_selection import SelectorMixin, VarianceThreshold
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.semi_supervised import LabelPropagation, LabelSpreading, SelfTrainingClassifier
from sklearn.utils import get_tags

from vennforest._validation import CodeArray, FloatArray, InputError, IntArray
from vennforest._warn import warn
from vennforest.sources.base import TrainingData
from vennforest.sources.memory import warn_if_remembered
from vennforest.sources.repeats import warn_of_repeats

SAME = 1e-9
"""Relative difference up to which weights of a class count as one weight."""

UNLABELLED = (SelfTrainingClassifier, LabelPropagation, LabelSpreading)
"""Estimators to which the label -1 means that a row has none."""

FEWEST = 2
"""Mean number of examples in a fold below which its calibrator could learn nothing."""

THRESHOLDS = (FixedThresholdClassifier, TunedThresholdClassifierCV)


def check_training_data(estimator: Any, data: TrainingData, source: str) -> None:
    """Refuse or warn of what would spoil the calibration and can be seen before fitting.

    Parameters
    ----------
    estimator : classifier
    data : TrainingData
    source : str
        Where the calibration scores come from.

    Raises
    ------
    InputError
        If a label means "not labelled" to the estimator, or a part of it is frozen.

    Warns
    -----
    UserWarning
        Of labels spelled in two ways, weights that balance the classes, a decision threshold
        inside the estimator, and rows that are copies of others.
    """
    check_frozen_parts(estimator)
    check_labels(estimator, data.classes)
    check_class_weights(data.codes, data.classes, data.weight)
    check_thresholds(estimator)
    if source != "training" and not isinstance(estimator, FrozenEstimator):
        warn_of_repeats(data.X, data.codes)


def check_frozen(estimator: FrozenEstimator, data: TrainingData) -> None:
    """Warn of rows that a frozen model was trained on, and of groups that it takes for single rows.

    Warns
    -----
    UserWarning
        If the model remembers the rows, or several of them are of one group.
    """
    warn_if_remembered(estimator, data.X, data.y)
    groups = data.groups
    if groups is not None and len(np.unique(groups)) < len(groups):
        warn(
            "groups has no effect with a frozen model: rows of one group calibrate as if they were "
            "independent, so bounds and intervals may be too narrow. Calibrate on one row of each "
            "group"
        )


def check_labels(estimator: Any, classes: NDArray[Any]) -> None:
    """Refuse or report labels that are not what they seem.

    Parameters
    ----------
    estimator : classifier
    classes : ndarray of shape (k,)
        The different labels, sorted.

    Raises
    ------
    InputError
        If -1 is a label and a part of the estimator takes it for "not labelled", or XGBoost is
        given other labels than the numbers it takes.

    Warns
    -----
    UserWarning
        If labels differ in case or in spaces around them alone.
    """
    if -1 in classes.tolist() and any(isinstance(part, UNLABELLED) for part in parts_of(estimator)):
        raise InputError(
            "y must have a label in every row, got -1, which semi-supervised estimators take for "
            "'not labelled' and which would become a class of its own: fit the semi-supervised "
            "estimator to all rows first, then calibrate FrozenEstimator(model) on labelled rows "
            "that it has not seen"
        )
    for part in parts_of(estimator):
        if type(part).__module__.startswith("xgboost.") and classes.tolist() != [
            *range(len(classes))
        ]:
            raise InputError(
                f"y must be the whole numbers from 0 to {len(classes) - 1} for "
                f"{type(part).__name__}, got labels such as {classes.tolist()[0]!r}: "
                "use sklearn.preprocessing.LabelEncoder().fit_transform(y)"
            )
    spelled: dict[str, list[str]] = defaultdict(list)
    for label in classes.tolist():
        if isinstance(label, str):
            spelled[" ".join(label.split()).casefold()].append(label)
    twice = [labels for labels in spelled.values() if len(labels) > 1]
    if twice:
        named = " and ".join(", ".join(map(repr, labels)) for labels in twice[:3])
        warn(
            f"y has labels that differ only in case or spaces: {named}. They count as "
            f"{len(classes)} classes; correct them if they are meant to be the same"
        )


def check_class_weights(codes: CodeArray, classes: NDArray[Any], weight: FloatArray | None) -> None:
    """Warn of weights that are constant within each class and differ between classes.

    Such weights balance the classes. A weight counts as repeated observations, so probabilities
    become those of a population with the weighted class frequencies.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Class numbers.
    classes : ndarray of shape (k,)
    weight : ndarray of shape (n,) or None

    Warns
    -----
    UserWarning
        With the class frequencies before and after.
    """
    if weight is None:
        return
    k = len(classes)
    low, high = np.full(k, np.inf), np.zeros(k)
    counted = weight > 0
    np.minimum.at(low, codes[counted], weight[counted])
    np.maximum.at(high, codes[counted], weight[counted])
    there = high > 0
    constant = (high[there] - low[there] <= SAME * high[there]).all()
    several = np.bincount(codes[counted], minlength=k)[there].min() > 1
    if not (constant and several and np.ptp(high[there]) > SAME * high.max()):
        return
    share = np.bincount(codes[counted], minlength=k) / counted.sum()
    weighted = np.bincount(codes, weight, minlength=k) / weight.sum()
    moved = int(np.abs(weighted - share).argmax())
    warn(
        f"sample_weight is constant within each class and differs between classes: probabilities "
        f"will be those of a population in which class {classes[moved]!r} makes up "
        f"{weighted[moved]:.1%} of the cases and not {share[moved]:.1%}. Leave the weights out "
        "(calibration needs no balanced classes), or use with_prior for other class frequencies"
    )


def check_frozen_parts(estimator: Any) -> None:
    """Refuse a supervised part that folds and bags cannot train again.

    Raises
    ------
    InputError
        Naming the part: its training rows may be among those that are to calibrate.
    """
    if isinstance(estimator, FrozenEstimator):
        return
    for part in parts_of(estimator):
        inner = part.estimator if isinstance(part, FrozenEstimator) else None
        selects = isinstance(inner, SelectorMixin) and not isinstance(inner, VarianceThreshold)
        if inner is not None and (selects or get_tags(inner).target_tags.required):
            found = f"a frozen {type(inner).__name__} in {type(estimator).__name__}"
        elif isinstance(cv := getattr(part, "cv", None), str) and cv == "prefit":
            found = f'{type(part).__name__}(cv="prefit")'
        else:
            continue
        raise InputError(
            "estimator must consist of parts that can be trained again, because each fold or bag "
            f"leaves rows out, got {found}: leave the part unfrozen, or fit the whole estimator "
            "and calibrate FrozenEstimator(estimator) on rows that no part of it has seen"
        )


def check_thresholds(estimator: Any) -> None:
    """Warn of a decision threshold inside, which calibrated probabilities do not keep.

    Warns
    -----
    UserWarning
        Naming the part of the estimator.
    """
    for part in parts_of(estimator):
        if isinstance(part, THRESHOLDS):
            name = type(part).__name__
            warn(
                f"the threshold of {name} has no effect: predict returns the most probable class. "
                f"Put the calibrated classifier inside {name}, or use vennforest.decisions"
            )
            return


def check_folds(pairs: Sequence[tuple[IntArray, IntArray]], ensemble: bool) -> None:
    """Refuse folds whose models have seen what they score, or with next to no examples each.

    Parameters
    ----------
    pairs : sequence of (ndarray, ndarray)
        Rows that train and rows that are scored, of each fold.
    ensemble : bool
        Whether each fold has a calibrator of its own.

    Raises
    ------
    InputError
        If a row is on both sides, or folds score fewer than two examples on average for a
        calibrator.
    """
    both = max((len(np.intersect1d(train, test)) for train, test in pairs), default=0)
    if both:
        raise InputError(
            f"cv must not score rows that it trains on, got a fold with {both} such rows: "
            "use a splitter of scikit-learn, or a number of folds"
        )
    scored = sum(len(test) for _, test in pairs)
    if ensemble and len(pairs) > 1 and scored < FEWEST * len(pairs):
        raise InputError(
            f"cv must leave at least {FEWEST} examples in a fold with ensemble=True, whose "
            f"calibrator learns the classes from them, got {scored} in {len(pairs)} folds: "
            "use ensemble=False or fewer folds"
        )


def parts_of(estimator: Any) -> Iterator[Any]:
    """Yield an estimator and every estimator among its parameters, at any depth."""
    seen: set[int] = set()
    todo = [estimator]
    while todo:
        part = todo.pop()
        if id(part) in seen or isinstance(part, type):
            continue
        seen.add(id(part))
        if isinstance(part, list | tuple):
            todo.extend(part)
        elif hasattr(part, "get_params"):
            yield part
            todo.extend(part.get_params(deep=False).values())
