"""Detection of changes in a model's stream of predictions and labels."""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import check_is_fitted

from vennforest._class_columns import class_probabilities, column_codes, in_class_order
from vennforest._messages import shown, warn
from vennforest._validation import (
    FloatArray,
    InputError,
    IntArray,
    check_array,
    check_inside,
    check_number,
    check_option,
    check_order,
    count_rows,
    encode_labels,
    is_missing,
    label_vector,
    name_of_every_row,
    require,
)
from vennforest.classifier import CalibratedClassifier
from vennforest.classifier.blend import BlendedModel
from vennforest.monitoring import evidence
from vennforest.monitoring.bets import BET_KINDS, BET_NAMES, Watched, design_bets
from vennforest.monitoring.evidence import Change, History
from vennforest.monitoring.stream import check_new_rows, hash_for_model, times_as_numbers
from vennforest.scores import check_scores, columns
from vennforest.sources import CalibrationExamples, Fold, OutOfBagFold
from vennforest.sources.estimators import as_read
from vennforest.sources.row_hashes import HashArray, count_equal_pairs, draw_examples, hash_rows

MIN_REFERENCE = 40

DESIGN_SHARE = 0.2
"""Share of the reference that designs the bets; p-values are counted over the rest, to be exact."""

MIN_REPEATED_ROWS, MIN_REPEATED_SHARE = 10, 0.05
"""Minimum number and share of repeated rows that raise a warning."""

MIN_TRAINING_SHARE_TO_WARN = 0.1
"""Minimum share of training rows that raises a warning."""

MAX_UNLABELLED_SHARE, MIN_UNLABELLED_EXCESS = 0.02, 5
"""Rows wait if the number of missing labels exceeds this share of the rows by this number."""


MIN_REMEMBERED_ROWS, MAX_REMEMBERED_ROWS, MAX_REMEMBERED_KEYS = 30, 10_000, 1_000_000

MAX_LOG_CHANCE = -50.0
"""Logarithm of the largest chance that an update equals another one for it to be remembered."""

MAX_SHARE_EQUAL_BY_CHANCE = 0.05
"""Largest expected share of new rows that equal a remembered row by chance."""


class Monitor(BaseEstimator):
    """Detect that a stream of predictions and labels no longer follows the calibration examples.

    Each labelled example has three smoothed p-values: of its score, of its label, and of its label
    given the score, counted over a reference and the stream so far. While examples are
    exchangeable, each is a sequence of independent uniform numbers, and capital that is bet on
    them grows only by chance.

    Parameters
    ----------
    model : classifier, default=None
        A fitted `CalibratedClassifier`, or any fitted classifier with ``predict_proba``. If None, X
        in all methods are scores, (n,) of the second of two classes or (n, k).
    watch : {"labels", "objects"}, default="labels"
        ``"labels"`` compares scores and labels. ``"objects"`` compares scores alone: it requires no
        labels, and misses changes of the labels given the scores. For both, use two monitors with
        ``alpha / 2`` each.
    alpha : float, default=0.05
        Probability, in (0, 1), that there is *ever* an alarm if nothing changes, at most.
    random_state : int, RandomState or None, default=None
        Seed for the choice of the examples that design the bets, and for ties among p-values.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The sorted labels.
    column_codes_ : ndarray of shape (k,), or None
        Without a model, the class, by number, of each column of scores; None: they are sorted.
    n_seen_ : int
        Number of examples of the stream so far.
    n_unlabelled_, n_repeated_ : int
        Number of rows left out because they had no label (without those that wait), or because they
        repeated a key, a whole earlier update, or one of up to 10,000 earlier rows of the model
        (a single score is not a row).
    evidence_, max_evidence_ : float
        The current evidence, and the largest so far.
    threshold_ : float
        The evidence that raises an alarm, ``1 / alpha``.
    alarm_, alarm_time_ : int, float or None
        Number, counted from 0, and time of the example that raised the first alarm.
    reference_shares_ : ndarray of shape (k,)
        Share of each class among the examples that the stream is compared with.
    taken_ : ndarray of shape (n,)
        Mask of the rows of the last update that were used.

    Notes
    -----
    Capital is bet in R = 15 copies (5 with more than two classes) that differ in random choices.
    For each kind of p-value, the capital that a fifth of the copies reach is divided by five. The
    result ever reaches c with probability at most 1 / c (Rüger 1978; Vovk & Wang 2020). The
    evidence is the largest of the three results, divided by three; with k > 2 classes, each against
    the rest, it is the largest of 3 k, divided by 3 k (Bonferroni).

    The guarantee is exact if reference and stream are scored in the same way: with a held-out
    part, or a model fitted to other data. It is approximate over folds and out of bag. See Vovk et
    al. (2021), Retrain or not retrain: conformal test martingales for change-point detection.

    Examples
    --------
    >>> import numpy as np
    >>> from vennforest.monitoring import Monitor
    >>> rng = np.random.default_rng(0)
    >>> def examples(n, shift=0.0):
    ...     score = rng.random(n)
    ...     return score, rng.random(n) < np.clip(score + shift, 0, 1)
    >>> monitor = Monitor(random_state=0).fit(*examples(1000))
    >>> evidence = monitor.update(*examples(2000))
    >>> monitor.alarm_ is None
    True
    >>> evidence = monitor.update(*examples(500, shift=0.2))
    >>> monitor.alarm_ > 2000, monitor.explain()[0].description
    (True, 'among equal scores the class is much more frequent')
    """

    def __init__(
        self,
        model: Any = None,
        *,
        watch: Watched = "labels",
        alpha: float = 0.05,
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.watch = watch
        self.alpha = alpha
        self.random_state = random_state

    def fit(
        self, X: Any = None, y: ArrayLike | None = None, *, classes: ArrayLike | None = None
    ) -> Self:
        """Fit the monitor to the examples that the stream is compared with.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d), optional
            40 or more rows that the model was not trained on; by default the calibration examples
            of a `CalibratedClassifier`.
        y : array-like of shape (n,), optional
            Labels of the rows.
        classes : array-like of shape (k,), optional
            All classes in the order of the columns of scores, if there is no model and it is not
            the sorted one or some may be missing from ``y``.

        Raises
        ------
        ValueError
            If there are fewer than 40 examples, or calibration examples have weights.
        """
        check_option(self.watch, Watched, "watch")
        check_inside(self.alpha, "alpha")
        if (X is None) != (y is None):
            raise InputError("X and y must be given together")
        check_order(X, y=y)
        if X is None and self.model is None:
            raise InputError("X and y must be given without a model: scores and their labels")
        if y is None:
            scores, codes = calibration_examples(self.model)
            labels = self.model.classes_
            self.column_codes_ = None
            n, n_equal_pairs = self.model._state.n_rows or 0, self.model._state.n_equal_pairs
        else:
            classes = classes if self.model is None else self.model.classes_
            codes, labels = encode_labels(y, classes, count_rows(X))
            self.column_codes_ = column_codes(classes)
            scores, hashes = self._scores_and_hashes(X, labels)
            n, n_equal_pairs = len(scores), count_equal_pairs(hashes)
        if len(labels) < 2:
            raise InputError(f"y must contain two classes or more, got {shown(labels.tolist())}")
        if len(codes) < MIN_REFERENCE:
            name = "X" if self.model is None or y is not None else "the calibration examples"
            raise InputError(f"{name} must have {MIN_REFERENCE} rows or more, got {len(codes)}")
        self.classes_, self._watch = labels, self.watch
        # Three more pairs could have been equal and were not (the rule of three).
        share = (3 + n_equal_pairs) / max(n * (n - 1) / 2, 1)
        window = int(min(MAX_REMEMBERED_ROWS, MAX_SHARE_EQUAL_BY_CHANCE / share))
        # With scores alone equal scores are not a row that came before, nor are common rows.
        is_told = self.model is not None and window >= MIN_REMEMBERED_ROWS
        self._window = window if is_told else 0
        self.reference_shares_ = np.bincount(codes, minlength=len(labels)) / len(codes)
        self._remembered = self._batches = np.empty(0, np.uint64)
        self._state, self._history = self._design(scores, codes)
        self.threshold_ = 1 / self.alpha
        self.evidence_ = self.max_evidence_ = 1 / (evidence.TOP_SHARE * self._state.shape[1])
        self.n_seen_ = self.n_unlabelled_ = self.n_repeated_ = 0
        self.alarm_: int | None = None
        self.alarm_time_: float | None = None
        self._last_time: float | None = None
        self._unlabelled_excess = 0.0
        return self

    def _design(self, scores: FloatArray, codes: IntArray) -> tuple[NDArray[Any], History]:
        """Return the initial state and history.

        Bets are designed by a different sample in each copy, and by all examples for the history.
        """
        rng, n, k = check_random_state(self.random_state), len(scores), len(self.classes_)
        n_design, probabilities = round(DESIGN_SHARE * n), True
        if self.model is None:
            probabilities = bool(scores.min() >= 0 and scores.max() <= 1)
        elif isinstance(self.model, CalibratedClassifier):
            folds = self.model._state.folds
            probabilities = all(hasattr(fold.model, "predict_proba") for fold in folds)
        orders = [rng.permutation(n) for _ in range(evidence.n_copies(k))]
        watched = evidence.channels(k, self.watch)
        state = evidence.start((len(orders), len(watched.columns)), rng)
        for copy, order in zip(state, orders, strict=True):
            rows, compared = order[:n_design], order[n_design:]
            bets = design_bets(scores[rows], codes[rows], k, self.watch, probabilities)
            evidence.set_bets(copy, watched, bets, scores[compared], codes[compared])
        all_examples = evidence.start((len(watched.columns),), rng)
        bets = design_bets(scores, codes, k, self.watch, probabilities)
        evidence.set_bets(all_examples, watched, bets, scores, codes)
        return state, History.of_bets(all_examples, watched.of_labels)

    def _scores_and_hashes(self, X: Any, classes: NDArray[Any]) -> tuple[FloatArray, HashArray]:
        """Return scores (n, c) and hashes (n,) of rows; without a model X are scores."""
        if self.model is not None:
            hashes = hash_for_model(self.model, X)
            share = check_new_rows(self.model, hashes)
            if share >= MIN_TRAINING_SHARE_TO_WARN:
                warn(f"about {share:.0%} of the rows were used for training: leave them out")
            return stream_scores(self.model, X), hashes
        named = None if self.column_codes_ is None else classes[self.column_codes_]
        X = in_class_order(X if hasattr(X, "__len__") else [X], classes, named=named)
        scores = as_score_columns(check_scores(X), max(2, len(classes)))
        return scores, hash_rows(scores)

    def update(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        time: ArrayLike | None = None,
        ids: ArrayLike | None = None,
    ) -> FloatArray:
        """Update the evidence with the next rows of the stream.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
            Input rows of the model, in the order in which their labels became known.
        y : array-like of shape (n,), optional
            Labels, None or NaN where missing; not given with ``watch="objects"``. A few rows
            without a label are left out. If they are more than 2%, the rows from there on wait:
            they are not used and can be passed again, since late labels of one class look like a
            change.
        time : array-like of shape (n,), optional
            Non-decreasing times, as numbers or dates (converted to seconds since 1970).
        ids : array-like of shape (n,), optional
            Keys of the rows, compared as text. A row with one of the latest million keys is left
            out. Without keys, the rows are left out if they are those of an earlier update, with
            the same labels, and that is no chance.

        Returns
        -------
        ndarray of shape (n,)
            The evidence after each row; a row that is left out repeats the value before it.

        Raises
        ------
        ValueError
            If a label is unknown, time decreases or is missing, or the model was fitted to most of
            the rows. The monitor is not changed then.

        Warns
        -----
        UserWarning
            If rows are repeated, wait for labels, or were used to fit the model.
        """
        check_is_fitted(self, "classes_")
        check_order(X, y=y, time=time, ids=ids)
        scores, hashes = self._scores_and_hashes(X, self.classes_)
        n = len(scores)
        if (y is None) == (self._watch == "labels"):
            raise InputError('y must be given with watch="labels", and only with it')
        codes, is_labelled = np.zeros(n, np.intp), np.ones(n, bool)
        if y is not None:
            codes, is_labelled = label_codes(y, self.classes_, n)
        times = np.full(n, np.nan) if time is None else check_times(time, n, self._last_time)
        n_complete, self._unlabelled_excess = self._count_complete(is_labelled)
        is_counted = is_labelled & (np.arange(n) < n_complete)
        if ids is not None:
            hashes = hash_rows(name_of_every_row(ids, n, "ids").astype(str)[:, None])
        window = self._window if ids is None else MAX_REMEMBERED_KEYS
        self._remembered, is_new = remember_rows(self._remembered, window, hashes, is_counted)
        batch = None if ids is not None else hash_batch(hashes, codes, is_labelled)
        is_repeated_batch = batch is not None and batch in self._batches
        if is_repeated_batch:
            is_new[:] = False
        elif batch is not None:
            self._batches = np.append(self._batches, batch)
        self.taken_ = is_taken = is_counted & is_new
        before = self.evidence_
        path = self._advance(scores[is_taken], codes[is_taken], times[is_taken])
        if time is not None and n_complete:
            self._last_time = float(times[n_complete - 1])
        self.n_unlabelled_ += int(n_complete - is_counted.sum())
        n_repeated = int(is_counted.sum() - is_taken.sum())
        self.n_repeated_ += n_repeated
        n_labelled = self.n_seen_ + self.n_repeated_
        if n_complete < n:
            warn(
                f"{n - n_complete} of {n} rows, from row {n_complete + 1} on, are not counted yet, "
                f"since {(~is_labelled[n_complete:]).sum()} of them have no label: send these rows "
                "again when their labels are known"
            )
        min_repeated = max(MIN_REPEATED_ROWS, MIN_REPEATED_SHARE * n_labelled)
        if is_repeated_batch:
            warn(f"these {n} rows came before, in this order, and are not counted again")
        elif n_repeated and self.n_repeated_ >= min_repeated:
            warn(
                f"{self.n_repeated_} of {n_labelled} rows came before and are left out: send every "
                "row once, when its label is known"
            )
        return np.asarray(np.append(before, path)[np.cumsum(is_taken)])

    def _count_complete(self, is_labelled: NDArray[np.bool_]) -> tuple[int, float]:
        """Return the number of rows before those that wait, and the excess of missing labels."""
        # They wait from where missing labels exceed 2% of the rows since by most (Page 1954).
        steps = ~is_labelled - MAX_UNLABELLED_SHARE
        walk = self._unlabelled_excess + np.cumsum(np.append(0.0, steps))
        lowest = min(float(walk.min()), 0.0)
        if walk[-1] - lowest < MIN_UNLABELLED_EXCESS:
            return len(is_labelled), float(walk[-1]) - lowest
        first = int(walk.argmin())
        return first, float(walk[first]) - lowest

    def _advance(self, scores: FloatArray, codes: IntArray, times: FloatArray) -> FloatArray:
        """Return the evidence after each of n new examples, (n,); the first alarm is noted.

        Unknown ``times`` (n,) are NaN.
        """
        watched = evidence.channels(len(self.classes_), self._watch)
        hits = codes[:, None] == watched.targets
        columns = scores[:, watched.columns]
        self._history.append(columns, hits, watched.of_labels, times, self.n_seen_)
        path = evidence.advance_evidence(self._state, watched, scores, codes, self.n_seen_)
        if len(path):
            self.evidence_ = float(path[-1])
            self.max_evidence_ = max(self.max_evidence_, float(path.max()))
        if self.alarm_ is None and self.max_evidence_ >= self.threshold_:
            first = int((path >= self.threshold_).argmax())
            self.alarm_ = self.n_seen_ + first
            self.alarm_time_ = None if np.isnan(times[first]) else float(times[first])
        self.n_seen_ += len(path)
        return path

    def explain(self) -> list[Change]:
        """Return the evidence for each kind of change and class, the strongest first."""
        check_is_fitted(self, "classes_")
        kinds, history = BET_KINDS[self._watch], self._history
        watched = evidence.channels(len(self.classes_), self._watch)
        log_evidence = evidence.combine(evidence.log_copies(self._state))
        changes = []
        for i in np.argsort(-log_evidence, kind="stable").tolist():
            kind = kinds[i % len(kinds)]
            n_bets, of_labels = len(BET_NAMES[kind]), bool(watched.of_labels[i])
            bet, block, low, high = history.date(i, of_labels, n_bets)
            time = float(history.times[block])
            changes.append(
                Change(
                    label=self.classes_[watched.targets[i]],
                    kind=kind,
                    evidence=evidence.exp_finite(log_evidence[i]).item(),
                    description=BET_NAMES[kind][bet],
                    since=block * history.width,
                    since_time=None if np.isnan(time) else time,
                    since_low=low * history.width,
                    since_high=high * history.width,
                )
            )
        return changes

    def _check_state(self) -> None:
        check_option(self._watch, Watched, "watch")
        model_classes = np.unique(getattr(self.model, "classes_", self.classes_))
        require(np.array_equal(model_classes, self.classes_), "model must be of the same classes")
        shape = (len(self.classes_),)
        check_array(self.reference_shares_, "reference_shares_", shape, low=0, high=1)
        for name in ("n_seen_", "n_unlabelled_", "n_repeated_", "_window"):
            check_number(getattr(self, name), name, 0, 2**58, integer=True)
        for name in ("evidence_", "max_evidence_", "threshold_", "_unlabelled_excess"):
            check_number(getattr(self, name), name, 0)
        k, state = len(self.classes_), self._state
        size = evidence.n_copies(k), len(evidence.channels(k, self._watch).columns)
        is_state = state.dtype == evidence.STATE and state.shape == size
        require(is_state, "state must be of every class")
        for name, (low, high) in evidence.STATE_RANGES.items():
            check_array(state[name], name, state[name].shape, "if", low, high)
        require(type(self._history) is History, "history must be one of blocks")
        n_channels = self._history.counts.shape[1]
        require(n_channels == self._state.shape[1], "history must be of channels")
        check_array(self._remembered, "remembered rows", (None,), "u")
        check_array(self._batches, "remembered updates", (None,), "u")
        if self.alarm_ is not None:
            check_number(self.alarm_, "alarm_", 0, self.n_seen_ - 1, integer=True)


def calibration_examples(model: Any) -> tuple[FloatArray, IntArray]:
    """Return scores (n, c) and class indices (n,) of the calibration examples of a model."""
    problem = None
    if not isinstance(model, CalibratedClassifier):
        problem = "X and y must be given for a model without calibration examples, got none"
    else:
        check_is_fitted(model, "classes_")
        examples = CalibrationExamples.of(model._state.folds)
        if examples.weight is not None:
            problem = "calibration examples must not have weights to be compared with a stream"
        elif model.calibrate_on_ == "training":
            problem = 'calibrate_on must not be "training", whose scores no new row is like'
        elif model._state.shift is not None:
            problem = "calibration examples must be of the shares that with_prior has set"
    if problem is not None:
        raise InputError(f"{problem}: give X and y, rows that the model was not trained on")
    return as_score_columns(examples.scores, len(model.classes_)), examples.codes


def stream_scores(model: Any, X: Any) -> FloatArray:
    """Return scores (n, c) of rows, comparable with those of the calibration examples.

    Each row is scored by the model of a random fold, or by the trees of a random example.
    """
    if not isinstance(model, CalibratedClassifier):
        if not hasattr(model, "predict_proba"):
            raise InputError(f"model must have predict_proba, got {type(model).__name__}")
        scores, classes = class_probabilities(model, X)
    else:
        check_is_fitted(model, "classes_")
        scores, classes = _comparable_scores(model._state.folds, X), model.classes_
    return as_score_columns(scores, len(classes))


def _comparable_scores(folds: list[Fold], X: Any) -> FloatArray:
    """Return the scores (n,) or (n, k) of rows, each by the model of a fold drawn by its hash."""
    if len(folds) == 1:
        return _fold_scores(folds[0], X)
    fold_of_row = draw_examples(hash_rows(as_read(X, folds[0].model)), 0, len(folds))
    scores = np.empty((len(fold_of_row), *folds[0].scores.shape[1:]))
    for k, fold in enumerate(folds):
        rows = np.flatnonzero(fold_of_row == k)
        if len(rows):
            scores[rows] = _fold_scores(fold, _safe_indexing(X, rows))
    return scores


def _fold_scores(fold: Fold, X: Any) -> FloatArray:
    if isinstance(fold, OutOfBagFold):
        return replace(fold, subforest="exchangeable").score_for_bounds(X)[0]
    if isinstance(fold.model, BlendedModel):
        members = fold.model.members
        return fold.model.blend([[_comparable_scores(member.folds, X)] for member in members])
    return fold.score(X)


def as_score_columns(scores: FloatArray, k: int) -> FloatArray:
    """Return scores as an array (n, c), where c is 1 for two classes and k for more."""
    table = columns(scores, k)
    return table[:, None] if table.ndim == 1 else table


def check_times(time: ArrayLike, n: int, last: float | None) -> FloatArray:
    """Return times (n,) as numbers; raise an error if they decrease or are before ``last``."""
    values: NDArray[Any] = np.atleast_1d(np.asarray(time))
    if values.shape != (n,):
        raise InputError(f"time must have shape ({n},), got {values.shape}")
    times = times_as_numbers(values)
    # A missing time is never as late as the one before.
    is_wrong = ~(np.diff(times, prepend=times[:1] if last is None else last) >= 0)
    if is_wrong.any():
        row = int(is_wrong.argmax())
        raise InputError(
            f"time must not run backwards or be missing, got {values[row]} in row {row}: sort the "
            "rows by time"
        )
    return times


def label_codes(
    y: ArrayLike, classes: NDArray[Any], n: int
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return class indices (n,), 0 for missing labels, and a mask (n,) of those not missing."""
    rows: Any = y if hasattr(y, "__len__") and not isinstance(y, str) else [y]
    labels = label_vector(rows, n)
    is_labelled = ~is_missing(labels)
    codes = np.zeros(n, np.intp)
    if is_labelled.any():
        present = labels[is_labelled]
        if present.dtype.kind == "O":
            present = np.array(present.tolist())  # of their own type
        codes[is_labelled] = encode_labels(present, classes)[0]
    return codes, is_labelled


def hash_batch(
    hashes: HashArray, codes: NDArray[np.intp], is_labelled: NDArray[np.bool_]
) -> np.uint64 | None:
    """Return a hash of rows (n,) with their labels, in their order.

    None if they are few, or if rows drawn as these are could well be the same by chance.
    """
    rows = np.column_stack([hashes, codes, is_labelled]).astype(np.uint64)
    shares = np.unique(rows, axis=0, return_counts=True)[1] / max(len(rows), 1)
    if len(rows) * (shares * np.log(shares)).sum() > MAX_LOG_CHANCE:
        return None
    return np.uint64(int.from_bytes(blake2b(rows.tobytes(), digest_size=8).digest(), "little"))


def remember_rows(
    remembered: HashArray, window: int, hashes: HashArray, is_counted: NDArray[np.bool_]
) -> tuple[HashArray, NDArray[np.bool_]]:
    """Return the updated hashes of remembered rows, and a mask (n,) of rows not among them."""
    is_new = np.ones(len(hashes), bool)
    if not window:
        return remembered, is_new
    order = dict.fromkeys(remembered.tolist())  # a dict keeps the order of its keys
    for row in np.flatnonzero(is_counted).tolist():
        value = int(hashes[row])
        if value in order:
            is_new[row] = False
            del order[value]  # the latest time counts
        elif len(order) == window:
            del order[next(iter(order))]
        order[value] = None
    return np.array(list(order), np.uint64), is_new
