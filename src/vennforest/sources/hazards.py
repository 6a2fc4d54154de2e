"""Hazards to calibration that are visible in the data given to fit, such as copied examples."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from types import FunctionType, MethodType
from typing import Any, NamedTuple

import attrs
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.stats import binomtest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.feature_selection import SelectorMixin, VarianceThreshold
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.semi_supervised import LabelPropagation, LabelSpreading, SelfTrainingClassifier
from sklearn.utils import get_tags

from vennforest._messages import warn
from vennforest._validation import (
    CodeArray,
    FloatArray,
    InputError,
    IntArray,
    warn_of_small_weights,
)
from vennforest.sources.base import TrainingData, parts_of, sees_labels
from vennforest.sources.memory import remembers
from vennforest.sources.row_hashes import hash_rows

FEW = 0.02
"""Share of examples whose copy tells their label up to which nothing is reported."""

FEW_TWINS = 0.05
"""The same for exact twins and for examples on straight lines, of which some are honest."""

NEAR = 0.1
"""A copy is so many times nearer than the nearest example that is not one."""

NEARER = 0.01
"""The same with one or two measured columns, in which chance brings examples as near as that."""

WIDE = 3
"""Measured columns from which the first applies; and with none, columns in which a copy's next
neighbour must differ, because cells of few categories contain many honest twins."""

SIGNIFICANT = 1e-5
"""Chance at which an honest table may be taken for one with copies."""

MOST_SAMPLED = 500
"""Examples whose neighbours are searched for."""

MOST_WORK = 200_000_000
"""Cells that the search may visit: with many rows fewer examples are looked at."""

FEWEST_ROWS = 20
"""Examples below which nothing can be reported."""

NEIGHBOURS = 20
"""Of each sampled example: as many copies of one example are seen through."""

STRAIGHT = 1e-9
"""Cosines nearer to -1 are those of a point on the line between two others."""


class Copies(NamedTuple):
    """Estimated shares of the examples, in [0, 1]; 0 where chance would give as many."""

    copied: float
    """With a copy or near-copy that tells the label better than the next neighbour does."""
    synthetic: float
    """On a straight line between two neighbours of the same class, as SMOTE makes them."""


def warn_of_repeats(X: Any, codes: CodeArray) -> None:
    """Warn where many examples have a copy, a near-copy, or were made from others."""
    found = find_copies(X, codes)
    if found.synthetic:
        warn(
            f"about {found.synthetic:.0%} of the examples lie exactly between two others of their "
            "class, as SMOTE makes them: probabilities would be those of a population with other "
            "class frequencies, and too certain. Fit to the original rows; a rare class needs no "
            "oversampling"
        )
    elif found.copied:
        warn(
            f"about {found.copied:.0%} of the examples have a copy or near-copy with their label: "
            "one trains where the other calibrates, so probabilities and bounds may be too "
            "certain. Pass groups= to keep the rows of one person or object together, or weights "
            "in place of copies"
        )


def find_copies(X: Any, codes: CodeArray) -> Copies:
    """Estimate how many examples are copies of others, exact or near, or lie between others.

    A copy is an example at least ten times nearer than the nearest other one. Whether copies give
    labels away is decided against the same examples' next neighbours: where those have the same
    label just as often, nothing is lost. Columns of whole numbers or text that differ in every row
    are left out, because they number the rows. Exact twins in a column of measured values
    count whatever their labels.
    """
    n = len(codes)
    if n < FEWEST_ROWS:
        return Copies(0.0, 0.0)
    if issparse(X):
        return Copies(_above(_twins(hash_rows(X)), FEW_TWINS), 0.0)
    table, measured = _as_numbers(X, n)
    if not table.shape[1]:
        return Copies(0.0, 0.0)
    rng = np.random.default_rng(0)
    twins = 0.0
    if table.shape[1] == 1 and not measured.any() and len(np.unique(table)) > n / 4:
        twins = _twins(hash_rows(table))  # texts, say: nothing to shuffle them against
    elif measured.any():
        shuffled = rng.permuted(table, axis=0)
        twins = _twins(hash_rows(table)) - _twins(hash_rows(shuffled))
    sampled = rng.permutation(n)[: max(FEWEST_ROWS, min(MOST_SAMPLED, MOST_WORK // table.size))]
    # One more than wanted: an example is its own neighbour, or one of its copies is.
    k = min(NEIGHBOURS + 1, n)
    search = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(table)
    near = search.kneighbors(table[sampled], return_distance=False)
    near = _without_self(near, sampled)
    away = np.linalg.norm(table[near] - table[sampled, None], axis=2)
    order = np.argsort(away, axis=1, kind="stable")
    near, away = np.take_along_axis(near, order, 1), np.take_along_axis(away, order, 1)
    n_measured = int(measured.sum())
    beyond = away * (NEAR if n_measured >= WIDE or not n_measured else NEARER) > away[:, :1]
    if not n_measured:
        beyond &= (table[near] != table[sampled, None]).sum(axis=2) >= WIDE
        beyond[(away > 0).argmax(axis=1) != beyond.argmax(axis=1)] = False
    copied = _telling(codes, sampled, near, beyond)
    synthetic = _between(table[:, measured], codes, sampled, near)
    return Copies(max(copied, _above(twins, FEW_TWINS)), synthetic)


def _twins(hashes: Any) -> float:
    """Return the share of rows that are equal to another one."""
    _, counts = np.unique(hashes, return_counts=True)
    return float(counts[counts > 1].sum() / len(hashes))


def _above(share: float, least: float) -> float:
    return share if share > least else 0.0


def _without_self(near: IntArray, sampled: IntArray) -> IntArray:
    """Return neighbours (m, k - 1) without the example itself; the last goes where it is absent."""
    own = near == sampled[:, None]
    own[~own.any(axis=1), -1] = True
    others: IntArray = near[~own].reshape(len(near), -1)
    return others


def _telling(codes: CodeArray, sampled: IntArray, near: IntArray, beyond: Any) -> float:
    """Return the share of examples with a copy, if copies tell labels better than others do.

    ``beyond``, (m, k), is true for neighbours that the first, where it is one, is a copy beside.
    """
    rows = np.flatnonzero(beyond.any(axis=1))
    label = codes[sampled[rows]]
    of_copy = codes[near[rows, 0]] == label
    of_next = codes[near[rows, beyond[rows].argmax(axis=1)]] == label
    better, worse = int((of_copy & ~of_next).sum()), int((of_next & ~of_copy).sum())
    share = (better - worse) / len(sampled)
    if share <= FEW:
        return 0.0
    # Without copies either neighbour has the label as often as the other (McNemar 1947).
    chance = binomtest(better, better + worse, alternative="greater").pvalue
    return len(rows) / len(sampled) if chance < SIGNIFICANT else 0.0


def _between(table: FloatArray, codes: CodeArray, sampled: IntArray, near: IntArray) -> float:
    """Return the share of examples on a line between two neighbours of their class."""
    if table.shape[1] < WIDE:
        return 0.0  # with one column every example is, with two by rounding
    way = table[near] - table[sampled, None]
    length = np.linalg.norm(way, axis=2)
    usable = (codes[near] == codes[sampled, None]) & (length > 0)
    way /= np.where(length > 0, length, 1)[..., None]
    cosine = way @ way.transpose(0, 2, 1)
    both = usable[:, :, None] & usable[:, None, :]
    # Examples that differ in fewer columns lie on lines by chance.
    wide = ((np.abs(way) > STRAIGHT).sum(axis=2) >= WIDE)[:, :, None]
    straight = (both & wide & (cosine < STRAIGHT - 1)).any(axis=(1, 2))
    return _above(float(straight.mean()), FEW_TWINS)


def _as_numbers(X: Any, n: int) -> tuple[FloatArray, Any]:
    """Return the columns as numbers of about one size, (n, c), and which of them are measured.

    A category becomes a normal number of its own, so equal ones stay equal; columns that
    number the rows, or are constant, are left out.
    """
    made: list[FloatArray] = []
    measured: list[bool] = []
    for values in _columns(X):
        if values.ndim != 1:
            continue
        if values.dtype.kind in "mM":
            values = values.astype(np.int64)
        if values.dtype.kind not in "biuf":
            values = _categories(values)
            if len(np.unique(values)) == n:
                continue
            whole = True
        else:
            values = values.astype(np.float64)
            known = values[np.isfinite(values)]
            whole = bool((known == np.floor(known)).all())
            if whole and len(np.unique(values)) == n:
                continue
            values = np.where(np.isfinite(values), values, np.median(known) if len(known) else 0)
        spread = values.std()
        if not (0 < spread < np.inf):
            continue
        made.append((values - values.mean()) / spread)
        measured.append(not whole and len(np.unique(values)) > n / 4)
    table = np.column_stack(made) if made else np.empty((n, 0))
    return np.ascontiguousarray(table), np.array(measured, dtype=bool)


def _columns(X: Any) -> list[NDArray[Any]]:
    """Return the columns of a table of any kind, none where they cannot be taken one by one."""
    if not hasattr(X, "columns"):
        values = np.asarray(X)
        return [values] if values.ndim < 2 else list(values.T)
    try:
        return [np.asarray(X[name]) for name in X.columns]
    except Exception:  # whatever a table of another library does
        return []


def _categories(values: Any) -> FloatArray:
    """Return a normal number for each different cell."""
    known: dict[Any, int] = {}
    try:
        codes = [known.setdefault(value, len(known)) for value in values.tolist()]
    except TypeError:  # cells without a hash, such as lists
        return np.zeros(len(values))
    numbers: FloatArray = np.random.default_rng(0).normal(size=len(known))[codes]
    return numbers


SAME = 1e-9
"""Relative difference up to which weights of a class count as one weight."""

UNLABELLED = (SelfTrainingClassifier, LabelPropagation, LabelSpreading)
"""Estimators to which the label -1 means that a row has none."""

FEWEST = 2
"""Mean number of examples in a fold below which its calibrator could learn nothing."""

SHARED = 0.05
"""Share of the rows of a table for early stopping from which on they are rows of X."""

THRESHOLDS = (FixedThresholdClassifier, TunedThresholdClassifierCV)


def check_training_data(estimator: Any, data: TrainingData, source: str) -> None:
    """Refuse or warn of what would spoil the calibration and can be seen before fitting."""
    _check_frozen_parts(estimator)
    _check_frozen_steps(estimator, data)
    _check_labels(estimator, data.classes)
    _check_groups(data)
    _check_held_out(data.X, data.fit_params)
    _check_weights(data.codes, data.classes, data.weight)
    _check_thresholds(estimator)
    if source != "training" and not isinstance(estimator, FrozenEstimator):
        warn_of_repeats(data.X, data.codes)


def check_frozen(estimator: FrozenEstimator, data: TrainingData) -> None:
    """Warn of rows that a frozen model was trained on, and of groups that it does not know."""
    if remembers(estimator.estimator, data.X, data.y):
        warn(
            "the frozen model seems to have been trained on the rows given to fit: its "
            "probability of a row's own label is far higher at the row than beside it, or a copy "
            "trained on these rows gives the same probabilities. Calibrate on rows that it has not "
            "seen, or let vennforest train it: CalibratedClassifier(estimator) without "
            "FrozenEstimator"
        )
    groups = data.groups
    if groups is not None and len(np.unique(groups)) < len(groups):
        warn(
            "groups has no effect with a frozen model: rows of one group calibrate as if they were "
            "independent, so bounds and intervals may be too narrow. Calibrate on one row of each "
            "group"
        )


def _check_labels(estimator: Any, classes: NDArray[Any]) -> None:
    """Refuse or report labels that are not what they seem."""
    parts = list(parts_of(estimator))
    if -1 in classes.tolist() and any(isinstance(part, UNLABELLED) for part in parts):
        raise InputError(
            "y must have a label in every row, got -1, which semi-supervised estimators take for "
            "'not labelled' and which would become a class of its own: fit the semi-supervised "
            "estimator to all rows first, then calibrate FrozenEstimator(model) on labelled rows "
            "that it has not seen"
        )
    numbered = any(getattr(part, "numbers_labels", False) for part in parts)
    for part in parts:
        if (
            not numbered
            and type(part).__module__.startswith("xgboost.")
            and classes.tolist() != [*range(len(classes))]
        ):
            raise InputError(
                f"y must be the whole numbers from 0 to {len(classes) - 1} for "
                f"{type(part).__name__}, got labels such as {classes.tolist()[0]!r}: "
                "use sklearn.preprocessing.LabelEncoder().fit_transform(y)"
            )
    twice = spelled_twice(classes)
    if twice:
        warn(
            f"y has labels that differ only in case or spaces: {twice}. They count as "
            f"{len(classes)} classes; correct them if they are meant to be the same"
        )
    missing = [one for one in classes.tolist() if isinstance(one, str) and _is_missing(one)]
    if missing:
        warn(
            f"y has a label that stands for a missing value: {missing[0]!r}. It counts as a class; "
            "leave out the rows without a label"
        )


def spelled_twice(names: NDArray[Any]) -> str:
    """Return examples of texts that differ only in case or spaces; empty where none do."""
    spelled: dict[str, list[str]] = defaultdict(list)
    for name in names.tolist():
        if isinstance(name, str):
            spelled[" ".join(name.split()).casefold()].append(name)
    twice = [some for some in spelled.values() if len(some) > 1]
    return " and ".join(", ".join(map(repr, some)) for some in twice[:3])


def _is_missing(label: str) -> bool:
    return label.strip().casefold() in ("", "nan", "<na>", "nat", "null")


def _check_groups(data: TrainingData) -> None:
    """Warn of groups that differ only in case or in spaces around them."""
    given = data.split_params.get("groups")
    if given is None:
        return
    names = np.asarray(given)
    twice = spelled_twice(np.unique(names.astype(str))) if names.dtype.kind in "OUST" else ""
    if twice:
        warn(
            f"groups differ only in case or spaces: {twice}. They count as different groups, whose "
            "rows may be on both sides of a split; correct them if they are meant to be the same"
        )


def check_order(X: Any, **given: Any) -> None:
    """Refuse masked cells, and warn where X and its labels have different orders of one index."""
    for name, values in {"X": X, **given}.items():
        if isinstance(values, np.ma.MaskedArray) and np.ma.getmaskarray(values).any():
            raise InputError(
                f"{name} must have no masked cells, whose hidden values would be used, got some: "
                "use filled(np.nan), or leave the rows out"
            )
    index: Any = getattr(X, "index", None)
    for name, values in given.items():
        other: Any = getattr(values, "index", None)
        if not hasattr(index, "equals") or not hasattr(other, "equals") or index.equals(other):
            continue
        if len(index) == len(other) and index.is_unique and index.isin(other).all():
            warn(
                f"{name} has the index of X in another order, and rows are matched by their place: "
                f"use {name}.loc[X.index] if the index names the rows"
            )


def _check_held_out(X: Any, fit_params: Mapping[str, Any]) -> None:
    """Warn of calibration rows that the estimator's ``fit`` is given for early stopping."""
    tables = [(name, table) for name, value in fit_params.items() for table in _tables(value)]
    if not tables:
        return
    own = hash_rows(X)
    for name, table in tables:
        if table.shape[1:] != np.shape(X)[1:]:
            continue
        shared = np.isin(hash_rows(table), own)
        if shared.mean() > SHARED:
            warn(
                f"{name} has rows of X ({shared.mean():.0%} of its rows): a model that was chosen "
                "by rows that calibrate it is too certain on them. Give rows that are not in X, "
                "or let the estimator hold rows of its own out"
            )


def _tables(value: Any) -> Iterator[Any]:
    """Yield the tables (m, d) in an argument of ``fit``, such as ``[(X, y)]``."""
    if isinstance(value, list | tuple):
        for one in value:
            yield from _tables(one)
    elif len(getattr(value, "shape", ())) == 2 and value.shape[0] and value.shape[1] > 1:
        yield value


def _check_weights(codes: CodeArray, classes: NDArray[Any], weight: FloatArray | None) -> None:
    """Warn of weights that are constant within each class and differ, or that sum to little.

    Such weights balance the classes. A weight counts as repeated observations, so probabilities
    become those of a population with the weighted class frequencies.
    """
    if weight is None:
        return
    warn_of_small_weights(float(weight.sum()), int(np.count_nonzero(weight)))
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


def _check_frozen_parts(estimator: Any) -> None:
    """Refuse a supervised part that cannot be trained again, and one that changes X in place."""
    for part in parts_of(estimator):
        if isinstance(part, TransformerMixin) and getattr(part, "copy", True) is False:
            raise InputError(
                "estimator must leave X as it is, because X is read more than once, got "
                f"{type(part).__name__}(copy=False): use copy=True"
            )
    if isinstance(estimator, FrozenEstimator):
        return
    for part in parts_of(estimator):
        inner = part.estimator if isinstance(part, FrozenEstimator) else None
        if inner is not None and _supervised(inner):
            found = f"a frozen {type(inner).__name__} in {type(estimator).__name__}"
        elif isinstance(part, FunctionTransformer) and (model := _fitted_behind(part)) is not None:
            found = f"a FunctionTransformer that calls a fitted {type(model).__name__}"
        elif isinstance(cv := getattr(part, "cv", None), str) and cv == "prefit":
            found = f'{type(part).__name__}(cv="prefit")'
        else:
            continue
        _refuse_part(found)


def _refuse_part(found: str) -> None:
    raise InputError(
        "estimator must consist of parts that can be trained again, because each fold or bag "
        f"leaves rows out, got {found}: leave the part unfrozen, or fit the whole estimator and "
        "calibrate FrozenEstimator(estimator) on rows that no part of it has seen"
    )


def _check_frozen_steps(estimator: Any, data: TrainingData) -> None:
    """Refuse a frozen step before the last whose features depend on the labels it is fitted to.

    What a step of one's own does is found by fitting copies of it with labels and without.
    """
    if not isinstance(estimator, Pipeline):
        return
    frozen = {
        name: part.estimator
        for name, part in estimator.get_params(deep=True).items()
        if isinstance(part, FrozenEstimator)
    }
    if not frozen:
        return
    thawed = clone(estimator).set_params(**{name: clone(part) for name, part in frozen.items()})
    try:
        learns, sees = (
            sees_labels(steps[:-1], attrs.evolve(data, fit_params={}))
            for steps in (thawed, estimator)
        )
    except Exception:  # whatever copies do that are fitted to other rows
        return
    if learns and not sees:
        names = ", ".join(type(part).__name__ for part in frozen.values())
        _refuse_part(f"a frozen step ({names}) that learns from labels")


def _supervised(part: Any) -> bool:
    selects = isinstance(part, SelectorMixin) and not isinstance(part, VarianceThreshold)
    return selects or bool(get_tags(part).target_tags.required)


def _fitted_behind(step: FunctionTransformer) -> Any:
    """Return a fitted supervised model that a function calls, None where none is seen.

    It may be the owner of a method, an argument, or a variable of the place of its definition.
    """
    todo = [step.func, step.inverse_func, step.kw_args]
    while todo:
        one = todo.pop()
        if isinstance(one, BaseEstimator):
            if _supervised(one) and any(key.endswith("_") for key in vars(one)):
                return one
        elif isinstance(one, Mapping):
            todo.extend(one.values())
        elif isinstance(one, partial):
            todo += [one.func, *one.args, one.keywords]
        elif isinstance(one, MethodType):
            todo.append(one.__self__)
        elif isinstance(one, FunctionType):
            todo += [cell.cell_contents for cell in one.__closure__ or () if _filled(cell)]
            around = [one.__globals__.get(name) for name in one.__code__.co_names]
            todo += [value for value in around if isinstance(value, BaseEstimator)]
    return None


def _filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:  # a variable without a value yet
        return False


def _check_thresholds(estimator: Any) -> None:
    """Warn of a decision threshold inside, which calibrated probabilities do not keep."""
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

    ``pairs`` are the rows that train and those that are scored; ``ensemble`` is whether each fold
    has a calibrator of its own.
    """
    for _, test in pairs:
        if len(np.unique(test)) < len(test):
            raise InputError(
                "cv must score a row at most once in a fold, got a fold that repeats some: "
                "use a splitter of scikit-learn, or a number of folds"
            )
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
