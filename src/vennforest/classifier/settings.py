"""What the parameters of a classifier mean: checked, and resolved once into a frozen value."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Literal, Self

import attrs
import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from vennforest._messages import warn
from vennforest._validation import check_option
from vennforest.calibrators import METHODS, Calibrator, check_method, make_calibrator
from vennforest.calibrators.base import has_bounds
from vennforest.forest import BagsError, MixedForestClassifier
from vennforest.forest.packed import Votes
from vennforest.groups import Groups
from vennforest.sources import (
    Fold,
    Source,
    SourceSettings,
    Subforest,
    TrainingData,
    make_source,
    with_seed,
)
from vennforest.sources.base import last_step, transformers_of
from vennforest.sources.checks import check_frozen, check_training_data
from vennforest.sources.registry import FROZEN, check_source, choose

ClassifierMerge = Literal["auto", "pooled", "log", "brier", "midpoint"]
"""How bounds, or the scores that they are of, become one probability."""

OUT_OF_BAG: dict[str, Any] = {"subforest": "all", "votes": "soft"}
"""The parameters that only ``"oob"`` takes, with their defaults."""


def method_has_bounds(method: Any) -> bool:
    """Return whether a method, by name or as a calibrator, gives bounds."""
    known = METHODS.get(method) if isinstance(method, str) else None
    return has_bounds(method) or (known is not None and has_bounds(known))


def resolve_estimator(estimator: Any, n_jobs: int | None) -> Any:
    """Return the estimator to be trained, the default forest for None."""
    if estimator is None:
        return MixedForestClassifier(n_estimators=300, n_jobs=n_jobs)
    if isinstance(estimator, type) or not hasattr(estimator, "fit"):
        raise TypeError(
            f"estimator must be a classifier (an instance, not fitted), got {estimator!r}"
        )
    for step in (*transformers_of(estimator), last_step(estimator)):
        if isinstance(step, type):
            raise TypeError(
                "estimator must be a pipeline of instances, got the class "
                f"{step.__name__}: use {step.__name__}()"
            )
    return estimator


@attrs.frozen(eq=False)
class Settings:
    """What the parameters of a `CalibratedClassifier` mean.

    ``calibrator`` is not fitted, and has the merge that was asked for; ``pooled`` is whether the
    probability comes from a pool of maps and not from the bounds.
    """

    calibrator: Calibrator
    pooled: bool
    calibrate_on: str | Source
    n_jobs: int | None
    given: SourceSettings

    @classmethod
    def of(cls, model: Any) -> Self:
        """Return what the parameters of a classifier mean."""
        _check_parameters(model)
        bounds = method_has_bounds(model.method)
        pooled = model.merge == "pooled" and bounds
        if model.merge == "auto":
            pooled = isinstance(model.method, str) and model.method == "venn-abers"
        calibrator = make_calibrator(model.method)
        if hasattr(calibrator, "merge"):
            if pooled:
                calibrator.set_params(merge="log")  # not asked; needs nothing fitted
            elif model.merge != "auto":
                calibrator.set_params(merge=model.merge)
        same = {n: getattr(model, n) for n in SourceSettings._fields if n != "stratify"}
        # Splits behind bounds are not stratified.
        given = SourceSettings(**same, stratify=not bounds)
        return cls(calibrator, pooled, model.calibrate_on, model.n_jobs, given)

    def source(self, name: str) -> Source:
        """Return the source of a name."""
        if not isinstance(self.calibrate_on, str):
            return self.calibrate_on
        return make_source(name, self.given)

    def calibrator_for(self, model: Any) -> Calibrator:
        """Return an unfitted calibrator for the scores of a fitted model."""
        calibrator: Calibrator = clone(self.calibrator)
        return calibrator

    def score(
        self,
        estimator: Any,
        data: TrainingData,
        random_state: np.random.RandomState,
        splits: np.random.RandomState,
    ) -> tuple[list[Fold], str, str]:
        """Fit the models and score the calibration examples.

        Seeds of the estimator, and of what is drawn for new objects, are drawn from
        ``random_state``, splits from ``splits``. Returned are the folds, the name of their
        source, and why it was that, in a clause.
        """
        estimator = with_seed(estimator, random_state)
        seed = int(random_state.randint(2**31 - 1))
        name, why = choose(self.calibrate_on, estimator, data, self.given.cv, self.given.subforest)
        check_training_data(estimator, data, name)

        def folds(source: Source) -> list[Fold]:
            return list(
                source.folds(estimator, data, seed=seed, random_state=splits, n_jobs=self.n_jobs)
            )

        if self.calibrate_on == "auto" and name == "oob":
            try:
                return folds(self.source("oob")), name, why
            except BagsError as error:
                # Found by looking at what was fitted, so a fit is lost; never a guarantee.
                if not isinstance(estimator, FrozenEstimator):
                    return folds(self.source("cv")), "cv", error.reason
                name, why = "frozen", FROZEN
        if name == "frozen":
            check_frozen(data)
        return folds(self.source(name)), name, why

    def warn_of_no_effect(self, source: str, why: str) -> None:
        """Warn of parameters that are not at their defaults and that the source does not take.

        A warning and no error: the answer is right without them, and a search over parameters
        meets such pairs.
        """
        own = {name: getattr(self.given, name) for name in OUT_OF_BAG}
        given = {name: value for name, value in own.items() if value != OUT_OF_BAG[name]}
        wanted = self.calibrate_on
        where = f"calibrate_on={wanted!r}" if isinstance(wanted, str) else f"the source {source}"
        if source == "oob":
            return
        if wanted == "auto":
            where += f", which is {source!r} here: {why}"
        if given:
            named = " and ".join(f"{name}={value!r}" for name, value in given.items())
            have, them = ("has", "it") if len(given) == 1 else ("have", "them")
            warn(f"{named} {have} no effect with {where}. Leave {them} out")


def _check_parameters(model: Any) -> None:
    size = model.holdout_size
    if not isinstance(model.method, Calibrator):
        check_method(model.method)
    check_source(model.calibrate_on)
    check_option(model.subforest, Subforest, "subforest")
    check_option(model.votes, Votes, "votes")
    check_option(model.merge, ClassifierMerge, "merge")
    if model.by is not None:
        Groups.of(model.by)
    if not isinstance(model.ensemble, bool | np.bool_):
        raise ValueError(f"ensemble must be a boolean, got {model.ensemble!r}")
    share = isinstance(size, Real) and not isinstance(size, Integral) and 0 < float(size) < 1
    if not share and not (isinstance(size, Integral) and int(size) >= 1):
        raise ValueError(
            f"holdout_size must be a share between 0 and 1 or a number of examples, got {size!r}"
        )
