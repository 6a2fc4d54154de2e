"""Detect that a model's stream of predictions and labels has changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from vennforest._messages import warn
from vennforest._validation import (
    FloatArray,
    InputError,
    check_inside,
    check_option,
    check_scores,
    encode_labels,
    require,
    same_labels,
)
from vennforest.monitoring.evidence import (
    MAX_COUNT,
    TOP_SHARE,
    Change,
    Channel,
    Watch,
    combine,
    exp_finite,
    explain,
    n_copies,
    start_copy,
)
from vennforest.monitoring.scoring import (
    ScoredExamples,
    calibration_examples,
    score_columns,
    stream_scores,
)
from vennforest.monitoring.stream import RecentRows, check_times, label_codes
from vennforest.sources.row_hashes import HashArray, count_equal_pairs, hash_rows

MIN_REFERENCE = 40
"""Examples that the reference must have."""

DESIGN_SHARE = 0.2
"""Share of the reference that only designs the bets: else p-values would not be exact."""

MIN_REPEATED_ROWS, MIN_REPEATED_SHARE = 10, 0.05
"""Repeated rows from which on there is a warning."""

MAX_UNLABELLED_SHARE, MIN_UNLABELLED_EXCESS = 0.02, 5
"""Rows wait where missing labels exceed this share of them by so many."""

BLOCK_ROWS = 10_000
"""Rows by which the evidence of all copies is advanced together."""

MAX_SEED = 2**31 - 1


class Monitor(BaseEstimator):
    """Evidence that a stream of predictions and labels is no longer like the calibration examples.

    Each labelled example gives three smoothed p-values: of its score among all, of its label among
    all, and of its label among those with such a score, counted over a reference and the stream so
    far. While examples are exchangeable each of the three is a sequence of independent uniform
    numbers, and capital that is bet on them grows by luck alone. It is spread over many changes,
    and over the time of the change, and bet in fifteen copies (five with more than two classes)
    that differ by what is drawn at random (``docs/how-to/drift.md``).

    Parameters
    ----------
    model : classifier, default=None
        A fitted `CalibratedClassifier`, or any fitted classifier with ``predict_proba``; None:
        only scores are given (`fit_scores`, `update_scores`).
    watch : {"labels", "objects"}, default="labels"
        What to compare. ``"objects"``: scores alone, which needs no labels and sees no change of
        the labels given the scores. To use both, give each half of ``alpha``.
    alpha : float, default=0.05
        In (0, 1). If nothing changes, the probability that there is *ever* an alarm is at most
        ``alpha``.
    random_state : int, RandomState or None, default=None
        Draws the examples that design the bets, and what breaks ties among p-values.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The labels, sorted.
    n_seen_ : int
        Number of examples of the stream so far.
    n_unlabelled_ : int
        Number of rows left out because their label was missing; not of those that wait.
    n_repeated_ : int
        Number of rows left out because they came before, within up to 10,000 rows.
    alarm_ : int or None
        Number of the example, counted from 0, at which the first alarm was raised.
    alarm_time_ : float or None
        The time of that example.
    taken_ : ndarray of shape (n,)
        Which rows of the last update count; missing before the first.

    Notes
    -----
    The capital of each kind is what a fifth of the copies have or exceed, divided by five. If
    nothing changes each of R copies ever reaches 5 c with probability 1 / (5 c) at most. So R / (5
    c) do on average, and by Markov's inequality R / 5 of them together with probability 1 / c at
    most, however they depend on each other (Rüger 1978; Vovk & Wang 2020). The evidence is the
    largest of the three, divided by three; with k > 2 classes, each against the rest, the largest
    of 3 k, divided by 3 k (Bonferroni: capitals in different p-values may be neither added nor
    multiplied).

    The guarantee is exact where reference and stream are scored in the same way: with a held-out
    part, or a model fitted to other data. It is nearly exact over folds, and out of bag, where new
    objects are scored by the trees that a calibration example was out of bag for, drawn at random
    for each (Johansson et al. 2018). Rows that the model was trained on are not like new ones: do
    not send them.

    References
    ----------
    Vovk, Gammerman & Shafer (2005), *Algorithmic Learning in a Random World*, chapters 7 and 8.
    Vovk et al. (2021), Retrain or not retrain: conformal test martingales for change-point
    detection.

    Examples
    --------
    >>> import numpy as np
    >>> from vennforest.monitoring import Monitor
    >>> rng = np.random.default_rng(0)
    >>> def examples(n, shift=0.0):
    ...     score = rng.random(n)
    ...     return score, rng.random(n) < np.clip(score + shift, 0, 1)
    >>> monitor = Monitor(random_state=0).fit_scores(*examples(1000))
    >>> evidence = monitor.update_scores(*examples(2000))
    >>> monitor.alarm_ is None
    True
    >>> evidence = monitor.update_scores(*examples(500, shift=0.2))
    >>> monitor.alarm_ > 2000, monitor.explain()[0].what
    (True, 'among equal scores the class is much more frequent')
    """

    classes_: NDArray[Any]
    n_seen_: int
    n_unlabelled_: int
    n_repeated_: int
    alarm_: int | None
    alarm_time_: float | None
    taken_: NDArray[np.bool_]

    def __init__(
        self,
        model: Any = None,
        *,
        watch: Watch = "labels",
        alpha: float = 0.05,
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.watch = watch
        self.alpha = alpha
        self.random_state = random_state

    def fit(self, X: Any = None, y: ArrayLike | None = None) -> Self:
        """Take the examples that the stream is compared with.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d), optional
            Rows that the model was not trained on; None: the calibration examples of a
            `CalibratedClassifier`.
        y : array-like of shape (n,), optional
            Their labels.

        Raises
        ------
        InputError
            If there are fewer than 40, or calibration examples have weights.
        """
        self._check_parameters()
        if self.model is None:
            raise InputError("model must be a fitted classifier for fit: use fit_scores")
        if (X is None) != (y is None):
            raise InputError("X and y must be given together, or neither of them")
        if X is None:
            examples = calibration_examples(self.model)
            if examples is None:
                raise InputError(
                    "X and y must be given for a model without calibration examples, got none: "
                    "rows that the model was not trained on"
                )
            state = self.model._state
            n_rows = 0 if state.n_rows is None else state.n_rows
            self._start(examples, RecentRows.start(n_rows, state.n_equal_pairs))
            return self
        classes = np.asarray(self.model.classes_)
        scores, probabilities = stream_scores(self.model, X)
        codes = encode_labels(y, classes)[0]  # type: ignore[arg-type]
        try:
            design = calibration_examples(self.model)  # then the whole reference is compared with
        except InputError:
            design = None
        recent = RecentRows.start(len(codes), count_equal_pairs(hash_rows(X)))
        self._start(ScoredExamples(scores, codes, classes, probabilities), recent, design)
        return self

    def fit_scores(
        self, scores: ArrayLike, y: ArrayLike, *, classes: ArrayLike | None = None
    ) -> Self:
        """Take the examples that the stream is compared with, as scores.

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, k)
            Of the second of two classes, or a column per class.
        y : array-like of shape (n,)
            Labels.
        classes : array-like of shape (k,), optional
            Every class, when some may be missing from ``y``.

        Raises
        ------
        ValueError
            If scores are not finite, are of other classes, or there are fewer than 40.
        """
        self._check_parameters()
        table = check_scores(scores)
        codes, labels = encode_labels(y, classes)
        probabilities = bool(table.size and table.min() >= 0 and table.max() <= 1)
        recent = RecentRows.start(len(table), count_equal_pairs(hash_rows(table)))
        self._start(ScoredExamples(table, codes, labels, probabilities), recent)
        return self

    def _start(
        self,
        reference: ScoredExamples,
        recent_rows: RecentRows,
        design: ScoredExamples | None = None,
    ) -> None:
        """Split the reference, unless there are other examples that design the bets."""
        rng = check_random_state(self.random_state)
        codes, n, k = reference.codes, len(reference.codes), len(reference.classes)
        if n != len(reference.scores):
            raise InputError(
                f"y must have {len(reference.scores)} labels, one for each row, got {n}"
            )
        if n < MIN_REFERENCE:
            raise InputError(f"the reference must have {MIN_REFERENCE} examples or more, got {n}")
        if k < 2:
            raise InputError(
                f"y must contain two classes or more, got {reference.classes.tolist()}"
            )
        table = score_columns(reference.scores, k)
        n_design = max(1, min(n - 1, round(DESIGN_SHARE * n)))
        channels: list[Channel] = []
        for _ in range(n_copies(k)):
            if design is None:
                order = rng.permutation(n)
                designing, compared = order[:n_design], order[n_design:]
                of_design = table[designing], codes[designing]
            else:
                compared = np.arange(n)
                of_design = score_columns(design.scores, k), design.codes
            channels += start_copy(
                of_design,
                (table[compared], codes[compared]),
                k,
                self.watch,
                probabilities=(design or reference).probabilities,
            )
        seeds = rng.randint(MAX_SEED, size=len(channels))
        self._channels = [
            replace(channel, seed=int(seed)) for channel, seed in zip(channels, seeds, strict=True)
        ]
        n_watched = len(channels) // n_copies(k)
        self.classes_ = reference.classes
        self._watch = self.watch
        self._recent_rows = recent_rows
        self._log_evidence = self._log_max = -float(np.log(TOP_SHARE * n_watched))
        self.n_seen_ = self.n_unlabelled_ = self.n_repeated_ = 0
        self.alarm_ = self.alarm_time_ = None
        self._last_time: float | None = None
        self._unlabelled_excess = 0.0

    def update(
        self, X: Any, y: ArrayLike | None = None, *, time: ArrayLike | None = None
    ) -> FloatArray:
        """Take the next rows of the stream.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
            Rows as the model takes them, in the order in which their labels became known (with
            ``watch="objects"``, in which they came).
        y : array-like of shape (n,), optional
            Labels, missing where None or NaN. A few such rows are left out; where they are more
            than 2%, all rows from there on wait: they do not count and can be sent again, since
            labels of one class that come later would look like a change. Not given with
            ``watch="objects"``.
        time : array-like of shape (n,), optional
            When: numbers, or dates (taken as seconds since 1970), which must not decrease.

        Returns
        -------
        ndarray of shape (n,)
            The evidence after each row (after the row before, for rows left out).

        Raises
        ------
        NotFittedError
            Before ``fit``.
        ValueError
            If a label was never seen, time runs backwards or is missing, or the model refuses the
            rows. No row is taken then.

        Warns
        -----
        UserWarning
            If one row in twenty or more came before and is left out, or if rows wait for labels.
        """
        check_is_fitted(self, "classes_")
        if self.model is None:
            raise InputError("model must be a fitted classifier for update: use update_scores")
        return self._take(stream_scores(self.model, X)[0], y, time, hash_rows(X))

    def update_scores(
        self, scores: ArrayLike, y: ArrayLike | None = None, *, time: ArrayLike | None = None
    ) -> FloatArray:
        """Take the next examples of the stream, as scores of the kind given to ``fit_scores``.

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, k)
            Of the second of two classes, or a column per class.
        y, time
            As for ``update``.

        Returns
        -------
        ndarray of shape (n,)
            The evidence after each example. Errors and warnings are those of ``update``.
        """
        check_is_fitted(self, "classes_")
        table = check_scores(np.atleast_1d(np.asarray(scores)))
        # Rows with equal scores by a model need not be equal.
        hashes = None if self.model is not None else hash_rows(table)
        return self._take(table, y, time, hashes)

    def _take(
        self,
        scores: FloatArray,
        y: ArrayLike | None,
        time: ArrayLike | None,
        hashes: HashArray | None,
    ) -> FloatArray:
        """Take scored examples; ``hashes`` (n,) tell rows apart, None: all are new."""
        table = score_columns(scores, len(self.classes_))
        n = len(table)
        codes, is_labelled = self._codes(y, n)
        times = check_times(time, n, self._last_time)
        n_complete, self._unlabelled_excess = self._count_complete(is_labelled)
        n_missing = int((~is_labelled[n_complete:]).sum())
        is_taken = is_labelled & (np.arange(n) < n_complete)
        self.n_unlabelled_ += int((~is_labelled[:n_complete]).sum())
        if hashes is not None:
            is_taken &= self._recent_rows.add(hashes, is_taken)
        n_repeated = int(is_labelled[:n_complete].sum() - is_taken.sum())
        taken_times = None if times is None else times[is_taken]
        log_before = self._log_evidence
        log_path = self._advance(table[is_taken], codes[is_taken], taken_times)
        if times is not None and n_complete:
            self._last_time = float(times[n_complete - 1])
        self.taken_ = is_taken
        if n_complete < n:
            warn(
                f"{n - n_complete} of {n} rows, from row {n_complete + 1} on, are not counted yet, "
                f"since {n_missing} of them have no label: labels of one class that come later "
                "than others would look like a change. Send these rows again when their labels "
                "are known. If which labels are missing has nothing to do with the class (a random "
                "sample was labelled), send only rows with a label"
            )
        had_many = self._has_many_repeats(len(log_path))
        self.n_repeated_ += n_repeated
        if self._has_many_repeats() and not had_many:
            warn(
                f"{self.n_repeated_} of {self.n_seen_ + self.n_repeated_} rows came before and are "
                "left out, since each counts once: send every row once, when its label is known"
            )
        return exp_finite(np.append(log_before, log_path)[np.cumsum(is_taken)])

    def _has_many_repeats(self, n_last: int = 0) -> bool:
        """Return whether there are many repeated rows, before the last n examples."""
        n = self.n_seen_ - n_last + self.n_repeated_
        return self.n_repeated_ >= max(MIN_REPEATED_ROWS, MIN_REPEATED_SHARE * n)

    def _count_complete(self, is_labelled: NDArray[np.bool_]) -> tuple[int, float]:
        """Return how many rows come before those of which too many have no label.

        Rows wait from where missing labels exceed 2% of the rows since by most, if by 5 or more.
        The second number is the excess of the rows before, for later updates (a cumulative sum,
        Page 1954).
        """
        steps = ~is_labelled - MAX_UNLABELLED_SHARE
        walk = self._unlabelled_excess + np.cumsum(np.append(0.0, steps))
        lowest = min(float(walk.min()), 0.0)
        if walk[-1] - lowest < MIN_UNLABELLED_EXCESS:
            return len(is_labelled), float(walk[-1]) - lowest
        first = int(walk.argmin())
        return first, float(walk[first]) - lowest

    def _advance(
        self, table: FloatArray, codes: NDArray[Any], times: FloatArray | None
    ) -> FloatArray:
        """Return the logarithm of the evidence after each of these examples, (n,)."""
        k = len(self.classes_)
        log_path = np.empty(len(table))
        for first in range(0, len(table), BLOCK_ROWS):
            block = slice(first, first + BLOCK_ROWS)
            log_capital = [
                channel.advance(
                    np.ascontiguousarray(table[block, 0 if k == 2 else channel.code]),
                    codes[block] == channel.code,
                    None if times is None else times[block],
                    self.n_seen_ + first,
                )
                for channel in self._channels
            ]
            copies = np.reshape(log_capital, (n_copies(k), -1, len(log_capital[0])))
            log_path[block] = combine(copies).max(axis=0)
        if len(log_path):
            self._log_evidence = float(log_path[-1])
            self._log_max = max(self._log_max, float(log_path.max()))
            reached = log_path >= -np.log(self.alpha)
            if self.alarm_ is None and reached.any():
                first = int(reached.argmax())
                self.alarm_ = self.n_seen_ + first
                self.alarm_time_ = None if times is None else float(times[first])
        self.n_seen_ += len(log_path)
        return log_path

    def explain(self) -> list[Change]:
        """Return for every label the evidence, the change it speaks of, and since when.

        Returns
        -------
        list of Change
            The strongest first. With two classes all are about the second.

        Raises
        ------
        NotFittedError
            Before ``fit``.
        """
        check_is_fitted(self, "classes_")
        return explain(self._channels, self.classes_)

    @property
    def threshold_(self) -> float:
        """The evidence at which there is an alarm."""
        check_is_fitted(self, "classes_")
        return float(1 / self.alpha)

    @property
    def evidence_(self) -> float:
        """The evidence now: its inverse bounds the chance of so much if nothing has changed."""
        check_is_fitted(self, "classes_")
        return float(exp_finite(self._log_evidence))

    @property
    def max_evidence_(self) -> float:
        """The largest evidence so far."""
        check_is_fitted(self, "classes_")
        return float(exp_finite(self._log_max))

    def _codes(self, y: ArrayLike | None, n: int) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Return each example's class number, and whether it has a label."""
        if self._watch == "objects":
            if y is not None:
                raise InputError('y must not be given with watch="objects", which sees no labels')
            return np.zeros(n, np.intp), np.ones(n, bool)
        if y is None:
            raise InputError('y must be given with watch="labels": without labels, use "objects"')
        return label_codes(y, self.classes_, n)

    def _check_parameters(self) -> None:
        check_option(self.watch, Watch, "watch")
        check_inside(self.alpha, "alpha")

    def _check_state(self) -> None:
        self._check_parameters()
        require(self.watch == self._watch, "watch must be that of fit")
        k = len(self.classes_)
        model_classes = getattr(self.model, "classes_", self.classes_)
        require(same_labels(model_classes, self.classes_), "model must be of the same classes")
        n_kinds = 3 if self.watch == "labels" else 1
        codes = np.repeat([1] if k == 2 else np.arange(k), n_kinds).tolist() * n_copies(k)
        require([c.code for c in self._channels] == codes, "channels must be of every class")
        for channel in self._channels:
            channel._check_state()
            begins_in_stream = (channel.begins < max(self.n_seen_, 1)).all()
            require(bool(begins_in_stream), "begins must be examples of the stream")
        n_examples = {int(channel.counts.sum()) for channel in self._channels}
        same_examples = len(n_examples) == 1 and n_examples.pop() > self.n_seen_
        require(same_examples, "counts must be of the reference and the stream")
        for name in ("n_seen_", "n_unlabelled_", "n_repeated_"):
            count = getattr(self, name)
            require(isinstance(count, int) and 0 <= count <= MAX_COUNT, f"{name} must be a count")
        logs = [channel.log_evidence() for channel in self._channels]
        evidence = combine(np.reshape(logs, (n_copies(k), -1))).max()
        is_same = bool(np.isclose(evidence, self._log_evidence, rtol=0, atol=1e-6))
        require(is_same, "the evidence must be that of its copies")
        require(np.isfinite(self._log_max), "the largest evidence must be finite")
        is_excess = 0 <= self._unlabelled_excess <= MAX_COUNT
        require(is_excess, "the excess of missing labels must be a number >= 0")
        if self.alarm_ is not None:
            require(0 <= self.alarm_ < self.n_seen_, "alarm_ must be an example of the stream")
