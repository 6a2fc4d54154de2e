"""From an estimator and training rows to folds: fitted models with the scores of held-out rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.random import RandomState
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.tree import DecisionTreeClassifier

from vennforest._messages import shown, warn
from vennforest._validation import refuse_text
from vennforest.classifier.blend import blend_models
from vennforest.forest import BagsError, leaves_rows_out
from vennforest.scores import round_scores
from vennforest.sources import Fold, TrainingData, with_seed
from vennforest.sources.checks import check_training_data
from vennforest.sources.estimators import split_pipeline, with_types
from vennforest.sources.out_of_bag import out_of_bag_fold
from vennforest.sources.row_hashes import HashArray
from vennforest.sources.splits import cross_validation_folds, held_out_fold

SOURCE_PARAMETERS = {
    "subforest": "oob",
    "votes": "oob",
    "holdout_size": "holdout",
    "cv": "cv",
    "ensemble": "cv",
}
"""The parameters of sources, and which source takes each."""

MIN_SHARE_OF_DISTINCT_ROWS, MIN_ROWS_FOR_FOLDS = 0.25, 100
"""Share of distinct rows below which ensembles are calibrated in folds by default, and rows from
which on."""

MODEL_IS_FROZEN = "the model is frozen: the data given to fit calibrates it"


def fit_folds(
    model: Any,
    members: Mapping[str, tuple[Any, TrainingData]],
    hashes: HashArray,
    random_state: RandomState,
    split_state: RandomState,
) -> tuple[list[Fold], str, str]:
    """Return the folds of fitted models, the name of their source, and why it was chosen.

    ``members`` are the estimators by name, each with the data that it takes; the folds of several
    are those of their blend.
    """
    members = {name: (with_seed(e, random_state), data) for name, (e, data) in members.items()}
    seed = int(random_state.randint(2**31 - 1))
    n_distinct = len(np.unique(hashes))
    sources = {name: choose_source(model, *member, n_distinct) for name, member in members.items()}
    data = next(iter(members.values()))[1]
    estimators = [estimator for estimator, _ in members.values()]
    check_training_data(estimators, data, hashes, [name for name, _ in sources.values()])
    is_blend = len(members) > 1
    if is_blend and isinstance(model.cv, Iterable):
        model = clone(model).set_params(cv=list(model.cv))  # a generator ends
    split_seed = split_state.randint(2**31 - 1) if is_blend else 0
    folds: dict[str, list[Fold]] = {}
    members_by_reason: dict[tuple[str, str], list[str]] = {}
    for name, (estimator, data) in members.items():
        state = RandomState(split_seed) if is_blend else split_state  # members share their folds
        try:
            folds[name], source, reason = _member_folds(
                model, estimator, data, sources[name], seed, state
            )
        except Exception as error:
            if is_blend:
                error.add_note(f"estimator {name!r} must fit the data")
            raise
        members_by_reason.setdefault((source, reason), []).append(name)
    names = list(dict.fromkeys(source for source, _ in members_by_reason))
    if len(members_by_reason) > 1:
        pairs = members_by_reason.items()
        reason = "; ".join(f"{', '.join(of_reason)}: {text}" for (_, text), of_reason in pairs)
    _warn_of_no_effect(model, names, reason)
    fitted = [blend_models(folds, data)] if is_blend else folds[name]
    return fitted, " and ".join(names), reason


def _member_folds(
    model: Any, estimator: Any, data: TrainingData, source: tuple[str, str], seed: int, state: Any
) -> tuple[list[Fold], str, str]:
    """Return the folds of one estimator, their source and its reason, in folds if bags are wrong.

    What is wrong with bags shows in the fitted ensemble: a fit is lost, never a guarantee.
    """
    name, reason = source
    try:
        return _folds_of(name, model, estimator, data, seed, state), name, reason
    except BagsError as error:
        if not isinstance(model.calibrate_on, str) or model.calibrate_on != "auto":
            raise
        is_frozen = isinstance(estimator, FrozenEstimator)
        source = ("frozen", MODEL_IS_FROZEN) if is_frozen else ("cv", error.reason)
        return _member_folds(model, estimator, data, source, seed, state)
    except (TypeError, ValueError) as error:
        refuse_text(data.X, estimator, error)
        raise


def _folds_of(
    name: str, model: Any, estimator: Any, data: TrainingData, seed: int, split_state: RandomState
) -> list[Fold]:
    """Return the folds of a source by its name, or of the user's."""
    has_parts = name not in ("oob", "training", "frozen")
    # Members of a blend read a table alike, so that their transformers are equal and run once.
    is_member = isinstance(model.estimator, list)
    if has_parts or is_member:
        estimator = with_types(estimator, data.X, may_drop=has_parts)
    if not isinstance(model.calibrate_on, str):
        settings = {"seed": seed, "random_state": split_state, "n_jobs": model.n_jobs}
        folds = model.calibrate_on.folds(estimator, data, **settings)
        folds = [replace(fold, scores=round_scores(fold.scores)) for fold in folds]
        for fold in folds:
            fold.check_classes(len(data.classes))
            if fold.rows is None and (is_member or model.by is not None):
                raise TypeError(
                    "calibrate_on must be a source that says which rows calibrate (Fold.rows) for "
                    f"{'several estimators' if is_member else 'by'}, got another"
                )
        return folds
    if name == "oob":
        return out_of_bag_fold(estimator, data, model.subforest, model.votes, seed, model.n_jobs)
    if name == "cv":
        return cross_validation_folds(estimator, data, model, split_state)
    if name == "holdout":
        return held_out_fold(estimator, data, model.holdout_size, split_state)
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


def choose_source(
    model: Any, estimator: Any, data: TrainingData, n_distinct: int
) -> tuple[str, str]:
    """Return the name of the source that ``calibrate_on`` stands for, and why, in a clause.

    ``n_distinct`` is the number of distinct rows. A tree that did not see a row has seen its
    copies: of these, those of a class have lower scores of it out of bag than the others, and this
    order says nothing of new rows. In folds all copies in a fold have one score.
    """
    source, n = model.calibrate_on, len(data)
    is_repetitive = n >= MIN_ROWS_FOR_FOLDS and n_distinct < MIN_SHARE_OF_DISTINCT_ROWS * n
    copies = f"{n_distinct:,} of {n:,} rows are distinct"
    if source == "oob" and is_repetitive:
        warn(
            f"{copies}: out-of-bag scores of copies lean against their own labels, and intervals "
            'are too narrow. Use calibrate_on="cv"'
        )
    if not isinstance(source, str):
        return type(source).__name__, "it was given"
    has_splitter = not (model.cv is None or isinstance(model.cv, Integral))
    if isinstance(estimator, FrozenEstimator):
        if source not in ("auto", "oob"):
            raise ValueError(
                f'calibrate_on must be "auto" or "oob" with a FrozenEstimator, got '
                f'{shown(source)}: the data given to fit calibrates; with "oob" the model was '
                "trained on it"
            )
        ensemble = split_pipeline(estimator.estimator)[1]
        # Members that are trees show whether the rows are those of their training.
        is_verifiable = leaves_rows_out(ensemble) and isinstance(
            ensemble.estimators_[0], DecisionTreeClassifier
        )
        if source == "auto" and not is_verifiable:
            return "frozen", MODEL_IS_FROZEN
        return "oob", "the rows are those that the frozen ensemble was trained on"
    if source in ("oob", "holdout") and has_splitter:
        raise ValueError(
            f"cv must be left out with calibrate_on={shown(source)}, which does not split by it, "
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
    if is_repetitive:
        reason = f"{copies}, and out-of-bag scores of copies lean against their own labels"
        warn(f"calibrate_on='auto' is 'cv' here: {reason}")
        return "cv", reason
    return "oob", "the members of the ensemble leave examples out of bag"


def _warn_of_no_effect(model: Any, sources: Sequence[str], reason: str) -> None:
    """Warn of parameters that no source takes; searches over parameters set such pairs."""
    default = type(model)()
    unused = [
        f"{name}={shown(getattr(model, name))}"
        for name, source in SOURCE_PARAMETERS.items()
        if source not in sources
        and repr(getattr(model, name)) not in ("None", repr(getattr(default, name)))
    ]
    if unused:
        verb, pronoun = ("has", "it") if len(unused) == 1 else ("have", "them")
        setting, names = f"calibrate_on={model.calibrate_on!r}", " and ".join(map(repr, sources))
        if setting == "calibrate_on='auto'":
            setting += f", which is {names} here: {reason}"
        warn(f"{' and '.join(unused)} {verb} no effect with {setting}. Leave {pronoun} out")
