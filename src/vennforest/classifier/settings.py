"""The settings of a classifier: checked, and made into an estimator, a source and a calibrator."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier
from sklearn.utils import Tags, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping

from vennforest._validation import InputError, check_option
from vennforest._warn import warn
from vennforest.calibrators import Calibrator, Venn
from vennforest.calibrators.core.bounded import has_bounds, leaves_out, no_bounds
from vennforest.calibrators.registry import METHODS, check_method, make_calibrator
from vennforest.calibrators.venn.taxonomies import LabelTaxonomy
from vennforest.classifier.grouped import ByGroups
from vennforest.forest.packed import Votes
from vennforest.groups import Groups
from vennforest.sources import Folds, Frozen, Holdout, OutOfBag, Source, Subforest, Training
from vennforest.sources.pipelines import last_step, transformers_of

ClassifierMerge = Literal["auto", "pooled", "log", "brier", "midpoint", "smooth"]
"""How bounds, or the scores that they are of, become one probability."""

CalibrateOn = Literal["auto", "oob", "holdout", "cv", "cv-forest", "training"]
"""Where the calibration scores come from."""

OUT_OF_BAG: dict[str, Any] = {"subforest": "all", "votes": "soft", "n_draws": 1}
"""The parameters that only ``"oob"`` takes, with their defaults."""


def has_bounds_of(model: Settings) -> bool:
    """Return whether the method of a classifier gives bounds."""
    method = model.method
    known = METHODS.get(method) if isinstance(method, str) else None
    return has_bounds(method) or (known is not None and known.bounds)


def bounds_unavailable_reason(model: Settings) -> str | None:
    """Return why the method of a classifier gives no bounds, None if it does."""
    return None if has_bounds_of(model) else no_bounds(model.method)


class Settings(ByGroups, BaseEstimator):
    """What the parameters of a `CalibratedClassifier` mean."""

    estimator: Any
    method: str | Calibrator
    calibrate_on: CalibrateOn | Source
    subforest: Subforest
    votes: Votes
    holdout_size: float | int
    cv: Any
    ensemble: bool
    merge: ClassifierMerge
    n_draws: int | Literal["all"]
    n_jobs: int | None

    def _source(self, name: str) -> Source:
        """Return the source of a name; splits behind bounds are not stratified."""
        if not isinstance(self.calibrate_on, str):
            return self.calibrate_on
        if name == "oob":
            return OutOfBag(self.subforest, self.votes, self.n_draws)
        if name == "holdout":
            return Holdout(self.holdout_size, stratify=not has_bounds_of(self))
        if name in ("cv", "cv-forest"):
            return Folds(
                self.cv,
                self.ensemble,
                stratify=not has_bounds_of(self),
                share_trees=name == "cv-forest",
            )
        return Frozen() if name == "frozen" else Training()

    def _get_estimator(self) -> Any:
        if self.estimator is None:
            return RandomForestClassifier(n_estimators=300, n_jobs=self.n_jobs)
        if isinstance(self.estimator, type) or not hasattr(self.estimator, "fit"):
            raise TypeError(
                f"estimator must be a classifier (an instance, not fitted), got {self.estimator!r}"
            )
        for step in (*transformers_of(self.estimator), last_step(self.estimator)):
            if isinstance(step, type):
                raise TypeError(
                    "estimator must be a pipeline of instances, got the class "
                    f"{step.__name__}: use {step.__name__}()"
                )
        return self.estimator

    def _get_calibrator(self, model: Any) -> Calibrator:
        """Return an unfitted calibrator for the scores of a fitted model."""
        calibrator = make_calibrator(self.method)
        if hasattr(calibrator, "merge"):
            if self._is_pooled():
                calibrator.set_params(merge="log")  # not asked; needs nothing fitted
            elif self.merge != "auto":
                calibrator.set_params(merge=self.merge)
        decides = not hasattr(model, "predict_proba")
        if decides and isinstance(calibrator, Venn) and calibrator.taxonomy == "label":
            calibrator.set_params(taxonomy=LabelTaxonomy(boundary=0.0))
        return calibrator

    def _is_pooled(self) -> bool:
        """Tell whether the probability comes from a pool of maps and not from the bounds."""
        if self.merge == "auto":
            return isinstance(self.method, str) and self.method == "venn-abers"
        return self.merge == "pooled" and has_bounds_of(self)

    def _check_calibrator(self) -> None:
        """Refuse a calibrator of a user's own that cannot do what its source asks of it."""
        calibrator = make_calibrator(self.method)
        leave = any(getattr(part.scorer, "leaves_out", False) for part in self._parts)
        if leave and has_bounds(calibrator) and not leaves_out(calibrator):
            raise TypeError(
                "method must take left_out in predict_multiprobability, as a BoundedCalibrator "
                f'does, for subforest="exchangeable", got {type(calibrator).__name__}: use '
                'subforest="all"'
            )

    def _check_parameters(self) -> None:
        if not isinstance(self.method, Calibrator):
            check_method(self.method)
        if not callable(getattr(self.calibrate_on, "folds", None)):
            check_option(self.calibrate_on, CalibrateOn, "calibrate_on")
        elif isinstance(self.calibrate_on, type):
            name = self.calibrate_on.__name__
            raise InputError(
                f"calibrate_on must be an instance of a source, got {name}: use {name}()"
            )
        check_option(self.subforest, Subforest, "subforest")
        check_option(self.votes, Votes, "votes")
        check_option(self.merge, ClassifierMerge, "merge")
        if self.by is not None:
            Groups.of(self.by)
        if not isinstance(self.ensemble, bool | np.bool_):
            raise ValueError(f"ensemble must be a boolean, got {self.ensemble!r}")
        draws = self.n_draws
        if draws != "all" and not (isinstance(draws, Integral) and draws >= 1):
            raise ValueError(f'n_draws must be an integer >= 1 or "all", got {draws!r}')
        size = self.holdout_size
        share = isinstance(size, Real) and not isinstance(size, Integral) and 0 < size < 1
        if not share and not (isinstance(size, Integral) and size >= 1):
            raise ValueError(
                "holdout_size must be a share between 0 and 1 or a number of examples, "
                f"got {size!r}"
            )

    def _warn_of_no_effect(self, source: str, why: str) -> None:
        """Warn of parameters that are not at their defaults and that the source does not take.

        A warning and no error: the answer is right without them, and a search over parameters
        meets such pairs.
        """
        given = {name: getattr(self, name) for name in OUT_OF_BAG}
        given = {name: value for name, value in given.items() if value != OUT_OF_BAG[name]}
        wanted = self.calibrate_on
        where = f"calibrate_on={wanted!r}" if isinstance(wanted, str) else f"the source {source}"
        if source == "oob":
            given = {} if "subforest" in given else {n: v for n, v in given.items() if n != "votes"}
            where = "subforest='all', which draws nothing"
        elif wanted == "auto":
            where += f", which is {source!r} here: {why}"
        if given:
            named = " and ".join(f"{name}={value!r}" for name, value in given.items())
            have, them = ("has", "it") if len(given) == 1 else ("have", "them")
            warn(f"{named} {have} no effect with {where}. Leave {them} out")

    def get_metadata_routing(self) -> MetadataRouter:
        """Return who may be given which metadata: the estimator's fit, the splitter's split."""
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(
                estimator=self._get_estimator(),
                method_mapping=MethodMapping().add(caller="fit", callee="fit"),
            )
            .add(
                splitter=self.cv,
                method_mapping=MethodMapping().add(caller="fit", callee="split"),
            )
        )

    def __sklearn_tags__(self) -> Tags:
        """Take what the estimator takes."""
        tags = super().__sklearn_tags__()
        own = get_tags(self._get_estimator())
        tags.input_tags.sparse = own.input_tags.sparse
        tags.input_tags.allow_nan = own.input_tags.allow_nan
        tags.input_tags.categorical = own.input_tags.categorical
        tags.input_tags.string = own.input_tags.string
        return tags
