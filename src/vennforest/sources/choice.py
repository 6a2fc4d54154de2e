"""Which source ``calibrate_on="auto"`` means, and why; what ``"oob"`` is refused for."""

from __future__ import annotations

from typing import Any

from sklearn.frozen import FrozenEstimator

from vennforest.forest import kind_of
from vennforest.sources.base import TrainingData
from vennforest.sources.pipelines import is_bagged, last_step, obstacle
from vennforest.sources.registry import named_sources
from vennforest.sources.splitters import is_plain

FROZEN = "the model is frozen: the data given to fit calibrates it"


def choose(
    wanted: Any, estimator: Any, data: TrainingData, cv: Any, subforest: str
) -> tuple[str, str]:
    """Return the name of the source that ``calibrate_on`` means here, and why, in a clause.

    Parameters
    ----------
    wanted : str or Source
        ``calibrate_on``, checked.
    estimator : classifier
        Not fitted, or frozen.
    data : TrainingData
    cv : int, splitter or iterable
    subforest : str
        As given to `CalibratedClassifier`.

    Raises
    ------
    ValueError
        If the source cannot be honest, or ignores something that was given.
    """
    if not isinstance(wanted, str):
        return type(wanted).__name__, "it was given"
    if isinstance(estimator, FrozenEstimator):
        return _choose_frozen(wanted, subforest, estimator, data)
    if wanted == "auto":
        return _choose_auto(estimator, data, cv)
    named_sources()[wanted].check(estimator, data, cv)
    return wanted, "it was asked for"


def _choose_frozen(
    wanted: str, subforest: str, estimator: FrozenEstimator, data: TrainingData
) -> tuple[str, str]:
    if wanted != "auto" and named_sources()[wanted].trains:
        raise ValueError(
            f'calibrate_on must be "auto" or "oob" with a FrozenEstimator, got {wanted!r}, which '
            'trains models: the data given to fit calibrates, and with "oob" it is what the model '
            "was trained on"
        )
    if wanted not in ("auto", "training"):
        return wanted, "it was asked for"
    if subforest == "joined":
        raise ValueError(
            'calibrate_on must be "oob" for subforest="joined" with a FrozenEstimator, and '
            "X and y what the model was trained on, since the new object joins the bags of "
            f"its trees, got {wanted!r}: or leave subforest out"
        )
    if is_bagged(estimator.estimator) and _tells_its_rows(estimator.estimator, len(data)):
        return "oob", "the rows are those that the frozen ensemble was trained on"
    return "frozen", FROZEN


def _tells_its_rows(estimator: Any, n: int) -> bool:
    """Tell whether other rows than those of its training would be found out: members are trees."""
    ensemble = last_step(estimator)
    kind = kind_of(ensemble)
    if kind is None or kind.verify is None:
        return kind is not None
    return kind.bag(ensemble, 0, next(iter(kind.samples(ensemble, n)))) is not None


def _choose_auto(estimator: Any, data: TrainingData, cv: Any) -> tuple[str, str]:
    """Return "oob" where it is honest as far as can be told before a fit, else "cv"."""
    if not is_bagged(estimator):
        return "cv", "the estimator is not a bagged ensemble whose members can be asked one by one"
    if data.groups is not None:
        return "cv", "groups were given, and folds keep each of them together"
    if not is_plain(cv):
        return "cv", f"cv is a {type(cv).__name__}, which knows more of the rows than bags do"
    why = obstacle(estimator)
    if why is not None:
        return "cv", why
    return "oob", "the members of the ensemble leave examples out of bag"
