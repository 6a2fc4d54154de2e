"""Detect that a model's stream of predictions and labels has changed."""

from __future__ import annotations

from numbers import Real
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
    Change,
    Channel,
    Form,
    Watch,
    capital_of,
    changes_of,
    channels_of,
    combined,
    log_start,
    n_copies,
)
from vennforest.monitoring.known_rows import KnownRows, are_known
from vennforest.monitoring.progress import NO_ROWS, SEEDS, Progress, RecentRows
from vennforest.monitoring.scoring import (
    Scored,
    calibration_examples,
    stream_scores,
)
from vennforest.monitoring.stream import check_times, label_codes, score_columns
from vennforest.sources.row_hashes import HashArray, hash_rows

LEAST = 40
"""Examples that a monitor needs before the stream."""

DESIGN = 0.2
"""Share of the reference that only decides what is bet on: else p-values would not be exact."""

MANY = 10
"""Repeated rows from which on they are warned of."""

REPEATED = 0.05
"""Share of repeated rows from which on they are said to be some."""

UNLABELLED = 0.02
"""Share of rows that may have no label."""

MISSING = 5
"""Missing labels beyond that share from which on rows wait."""

AT_ONCE = 10_000
"""Rows by which the evidence of all copies is advanced together."""


class Monitor(BaseEstimator):
    """Evidence that a stream of predictions and labels is no longer like the calibration examples.

    Of every labelled example come three smoothed p-values: of its score among all, of its label
    among all, and of its label among those with such a score, counted over a reference and the
    stream so far. While examples are exchangeable each of the three is a sequence of independent
    uniform numbers, and capital that is bet on them grows but by luck. It is spread over many
    changes, and over the time of the change, and bet in fifteen copies (five with more than two
    classes) that differ by what is drawn at random (``docs/drift.md``).

    Parameters
    ----------
    model : classifier, default=None
        A fitted `CalibratedClassifier`, or any fitted classifier with ``predict_proba``; None:
        only scores are given (`fit_scores`, `update_scores`).
    watch : {"labels", "objects"}, default="labels"
        What to compare. ``"objects"``: scores alone, which needs no labels and sees no change of
        the labels given the scores. To use both, give each half of ``alpha``.
    form : {"ville", "shiryaev-roberts"}, default="ville"
        What an alarm means. ``"ville"``: if nothing changes, the probability that there is *ever*
        one is at most ``alpha``. The other is for streams without end: if nothing changes there is
        one within n examples with probability ``n / run_length`` at most, so there are
        ``run_length / 2`` examples or more before one on average.
    alpha : float, default=0.05
        In (0, 1); for ``form="ville"``.
    run_length : int, default=10000
        At least 2; for the other form.
    random_state : int, RandomState or None, default=None
        Draws the examples of the design, and what breaks ties among p-values.

    Attributes
    ----------
    taken_ : ndarray of shape (n,)
        Which rows of the last update count; not there before one.

    Raises
    ------
    InputError
        A ``ValueError``, if a parameter has no such value.

    Notes
    -----
    Of each kind the capital is what a fifth of the copies have or exceed, divided by five. If
    nothing changes each of R copies ever reaches 5 c with probability 1 / (5 c) at most. So R / (5
    c) do on average, and by Markov's inequality R / 5 of them together with probability 1 / c at
    most, however they depend on each other (Rüger 1978; Vovk & Wang 2020). The evidence is the
    largest of the three, divided by three; with k > 2 classes, each against the rest, the largest
    of 3 k, divided by 3 k (Bonferroni: capitals in different p-values may be neither added nor
    multiplied).

    The guarantee is exact where reference and stream are scored in the same way: with a held-out
    part, or a model fitted to other data. Over folds it is nearly so, and out of bag, where new
    objects are scored by the trees that a calibration example was out of bag for, drawn at random
    for each (Johansson et al. 2018).

    References
    ----------
    Vovk, Gammerman & Shafer (2005), *Algorithmic Learning in a Random World*, chapters 7 and 8.
    Vovk et al. (2021), Retrain or not retrain: conformal test martingales for change-point
    detection. Shin, Ramdas & Rinaldo (2023), E-detectors.

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

    def __init__(
        self,
        model: Any = None,
        *,
        watch: Watch = "labels",
        form: Form = "ville",
        alpha: float = 0.05,
        run_length: int = 10_000,
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.watch = watch
        self.form = form
        self.alpha = alpha
        self.run_length = run_length
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
            own = calibration_examples(self.model)
            if own is None:
                raise InputError(
                    "X and y must be given for a model without calibration examples, got none: "
                    "rows that the model was not trained on"
                )
            return self._begin(own, rows=None, own_reference=True)
        classes = np.asarray(self.model.classes_)
        scores, probabilities = stream_scores(self.model, X)
        codes = encode_labels(y, classes)[0]  # type: ignore[arg-type]
        try:
            designed = calibration_examples(self.model)  # then the whole reference is compared with
        except InputError:
            designed = None
        reference = Scored(scores, codes, classes, probabilities)
        return self._begin(reference, designed, rows=KnownRows.of(X))

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
        inside = bool(table.size and table.min() >= 0 and table.max() <= 1)
        return self._begin(Scored(table, codes, labels, inside), rows=KnownRows.of(table))

    def _begin(
        self,
        given: Scored,
        designed: Scored | None = None,
        *,
        rows: KnownRows | None,
        own_reference: bool = False,
    ) -> Self:
        """Split design from reference, and set all capital to what it is before the stream."""
        rng = check_random_state(self.random_state)
        codes, n, k = given.codes, len(given.codes), len(given.classes)
        if n != len(given.scores):
            raise InputError(f"y must have {len(given.scores)} labels, one for each row, got {n}")
        if n < LEAST:
            raise InputError(f"the reference must have {LEAST} examples or more, got {n}")
        if k < 2:
            raise InputError(f"y must contain two classes or more, got {given.classes.tolist()}")
        table, kept = score_columns(given.scores, k), np.arange(n)
        first = max(1, min(n - 1, round(DESIGN * n)))
        if designed is not None:
            of_design = score_columns(designed.scores, k), designed.codes
        channels: list[Channel] = []
        for _ in range(n_copies(k)):
            if designed is None:
                order = rng.permutation(n)
                of_design, kept = (table[order[:first]], codes[order[:first]]), order[first:]
            channels += channels_of(
                of_design,
                (designed or given).probabilities,
                table[kept],
                codes[kept],
                k=k,
                watch=self.watch,
                form=self.form,
            )
        start = log_start(self.form, len(channels) // n_copies(k))
        self._progress = Progress(
            classes=given.classes,
            watch=self.watch,
            form=self.form,
            channels=tuple(channels),
            seeds=tuple(int(seed) for seed in rng.randint(SEEDS, size=len(channels))),
            own_reference=own_reference,
            log_now=start,
            log_max=start,
            recent=RecentRows(0 if rows is None else rows.window),
            reference_rows=None if own_reference else rows,
        )
        return self

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
            When: numbers, or dates (kept as seconds since 1970), which must not decrease.

        Returns
        -------
        ndarray of shape (n,)
            The evidence after each row (after the row before, for rows left out).

        Raises
        ------
        NotFittedError
            Before ``fit``.
        ValueError
            If a label was never seen, time runs backwards or is missing, the rows are those of an
            earlier update or of the reference again, or the model refuses them. Nothing is taken
            then.

        Warns
        -----
        UserWarning
            If one row in twenty or more was sent before, or if rows wait for labels.
        """
        check_is_fitted(self, "classes_")
        if self.model is None:
            raise InputError("model must be a fitted classifier for update: use update_scores")
        scores = stream_scores(self.model, X)[0]
        return self._take(scores, y, time, hash_rows(X))

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
        # Scores that the model gave say less of a row than its cells, which are not known here.
        hashes = None if self.model is not None else hash_rows(table)
        return self._take(table, y, time, hashes)

    def _take(
        self,
        scores: FloatArray,
        y: ArrayLike | None,
        time: ArrayLike | None,
        hashes: HashArray | None,
    ) -> FloatArray:
        """Take scored examples; ``hashes`` (n,) tell one row from another, None: nothing does."""
        progress, k = self._progress, len(self.classes_)
        table = score_columns(scores, k)
        n = len(table)
        codes, known = self._labels(y, n)
        times = check_times(time, n, progress.last_time)
        complete, excess = self._n_complete(known)
        waiting = n - complete
        if waiting:
            missing = int((~known[complete:]).sum())
            table, codes, known = table[:complete], codes[:complete], known[:complete]
            times = None if times is None else times[:complete]
            hashes = None if hashes is None else hashes[:complete]
        compared = met = 0
        taken = known
        if hashes is not None:
            compared, met = self._refuse_known(hashes, codes)
            twins = [rows.twins for rows in self._known_rows()]
            new = progress.recent.take(hashes, codes, known, twins[0] if twins else NO_ROWS)
            taken = known & new
        when = None if times is None else times[taken]
        found = self._advance(table[taken], codes[taken], when)
        self._progress = progress.after(
            n_seen=progress.n_seen + len(found),
            n_unlabelled=progress.n_unlabelled + int((~known).sum()),
            n_repeated=progress.n_repeated + int((known & ~taken).sum()),
            excess=excess,
            n_compared=progress.n_compared + compared,
            n_known=progress.n_known + met,
            last_time=float(times[-1]) if times is not None and complete else progress.last_time,
            **self._evidence(found, when),
        )
        self.taken_ = np.append(taken, np.zeros(waiting, bool))
        if waiting:
            warn(
                f"{waiting} of {n} rows, from row {complete + 1} on, are not counted yet, since "
                f"{missing} of them have no label: labels of one class that come later than others "
                "would look like a change. Send these rows again when their labels are known. If "
                "which labels are missing has nothing to do with the class (a random sample was "
                "labelled), send only rows with a label"
            )
        now = self._progress
        if _many_repeats(now) and not _many_repeats(progress):
            warn(
                f"{now.n_repeated} of {now.n_seen + now.n_repeated} rows came before and are left "
                "out, since each counts once: send every row once, when its label is known"
            )
        if len(found) < n:
            found = np.append(progress.log_now, found)[np.cumsum(self.taken_)]
        return capital_of(found)

    def _n_complete(self, known: NDArray[np.bool_]) -> tuple[int, float]:
        """Return how many rows come before those of which too many have no label.

        They begin where missing labels exceed 2% of the rows since by most, if by 5 or more. The
        second number is what these rows leave of that excess to later updates (a cumulative sum,
        Page 1954).
        """
        walk = self._progress.excess + np.cumsum(np.append(0.0, ~known - UNLABELLED))
        lowest = min(float(walk.min()), 0.0)
        if walk[-1] - lowest < MISSING:
            return len(known), float(walk[-1]) - lowest
        first = int(walk.argmin())
        return first, float(walk[first]) - lowest

    def _advance(
        self, table: FloatArray, codes: NDArray[Any], times: FloatArray | None
    ) -> FloatArray:
        """Return the logarithm of the evidence after each of these examples, (n,)."""
        progress, k = self._progress, len(self.classes_)
        found = np.empty(len(table))
        for first in range(0, len(table), AT_ONCE):
            block = slice(first, first + AT_ONCE)
            logs = [
                channel.update(
                    np.ascontiguousarray(table[block, 0 if k == 2 else channel.code]),
                    codes[block] == channel.code,
                    None if times is None else times[block],
                    n_before=progress.n_seen + first,
                    seed=seed,
                    form=progress.form,
                )
                for channel, seed in zip(progress.channels, progress.seeds, strict=True)
            ]
            of_copies = np.reshape(logs, (n_copies(k), -1, len(logs[0])))
            found[block] = combined(of_copies).max(axis=0)
        return found

    def _known_rows(self) -> list[KnownRows]:
        """Return the sketch of the rows of the reference."""
        rows = self._progress.reference_rows
        return [] if rows is None else [rows]

    def _refuse_known(self, hashes: HashArray, codes: NDArray[Any]) -> tuple[int, int]:
        """Refuse rows from before the stream, and batches of it that come again.

        Otherwise return how many rows were compared with those before it, and how many are known.
        """
        progress = self._progress
        n, compared, met = len(hashes), 0, 0
        for rows in self._known_rows():
            told, known = rows.compared(hashes)
            compared, met = compared + int(told.sum()), met + int(known.sum())
        if met and are_known(progress.n_compared + compared, progress.n_known + met):
            raise InputError(
                f"the stream must be of new rows, got {met} of {n} of the reference or training, "
                "on which drift cannot be assessed: leave them out, and begin again with fit if "
                "some were sent before"
            )
        if progress.recent.has_batch(hashes, codes):
            raise InputError(
                f"the stream must go on with new rows, got the {n} rows of an earlier update again"
            )
        return compared, met

    def _evidence(self, found: FloatArray, times: FloatArray | None) -> dict[str, Any]:
        """Return the evidence now, the largest, and where it first was enough for an alarm."""
        if not len(found):
            return {}
        before = self._progress
        top = max(before.log_max, float(found.max()))
        now: dict[str, Any] = {"log_now": float(found[-1]), "log_max": top}
        if before.alarm is None and top >= self._log_threshold():
            at = int(np.argmax(found >= self._log_threshold()))
            now["alarm"] = before.n_seen + at
            now["alarm_time"] = None if times is None else float(times[at])
        return now

    def explain(self) -> list[Change]:
        """Say for every label what the evidence is, what it speaks of, and since when.

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
        return changes_of(self._progress.channels, self.classes_)

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, sorted, of shape (k,)."""
        return self._progress.classes

    @property
    def n_seen_(self) -> int:
        """Number of examples of the stream so far."""
        return self._progress.n_seen

    @property
    def n_unlabelled_(self) -> int:
        """Number of rows left out because their label was missing; not of those that wait."""
        return self._progress.n_unlabelled

    @property
    def n_repeated_(self) -> int:
        """Number of rows left out because they came before, within up to 10,000 rows."""
        return self._progress.n_repeated

    @property
    def alarm_(self) -> int | None:
        """Number of the example, counted from 0, at which there was an alarm first, or None."""
        return self._progress.alarm

    @property
    def alarm_time_(self) -> float | None:
        """The time of that example, or None."""
        return self._progress.alarm_time

    @property
    def threshold_(self) -> float:
        """The evidence at which there is an alarm."""
        check_is_fitted(self, "classes_")
        return float(np.exp(self._log_threshold()))

    @property
    def evidence_(self) -> float:
        """Now: one divided by it is the largest chance of so much if nothing has changed."""
        check_is_fitted(self, "classes_")
        return float(capital_of(self._progress.log_now))

    @property
    def max_evidence_(self) -> float:
        """The largest evidence so far."""
        check_is_fitted(self, "classes_")
        return float(capital_of(self._progress.log_max))

    def _log_threshold(self) -> float:
        # What has been gathered keeps its form until the next fit, whatever is set meanwhile.
        ville = self._progress.form == "ville"
        return float(-np.log(self.alpha) if ville else np.log(self.run_length))

    def _labels(self, y: ArrayLike | None, n: int) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Return each example's class number, and whether it is known."""
        if self._progress.watch == "objects":
            if y is not None:
                raise InputError('y must not be given with watch="objects", which sees no labels')
            return np.zeros(n, np.intp), np.ones(n, bool)
        if y is None:
            raise InputError('y must be given with watch="labels": without labels, use "objects"')
        return label_codes(y, self.classes_, n)

    def _check_parameters(self) -> None:
        check_option(self.watch, Watch, "watch")
        check_option(self.form, Form, "form")
        check_inside(self.alpha, "alpha")
        if not isinstance(self.run_length, Real) or not 2 <= float(self.run_length) < np.inf:
            raise InputError(f"run_length must be a number >= 2, got {self.run_length!r}")

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether ``fit`` has been called."""
        return "_progress" in self.__dict__

    def _check_state(self) -> None:
        progress = self._progress
        require(isinstance(progress, Progress), "progress must be of a monitor")
        self._check_parameters()
        kept = (self.watch, self.form) == (progress.watch, progress.form)
        require(kept, "watch and form must be those of fit")
        own = getattr(self.model, "classes_", progress.classes)
        require(same_labels(own, progress.classes), "model must be of the same classes")
        if progress.own_reference:
            require(calibration_examples(self.model), "model must have a reference")


def _many_repeats(progress: Progress) -> bool:
    among = progress.n_seen + progress.n_repeated
    return progress.n_repeated >= max(MANY, REPEATED * among)
