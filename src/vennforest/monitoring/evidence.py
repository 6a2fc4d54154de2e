"""The evidence about labels: what is bet on each, what it has won, and which change it is of.

Bets depend on which examples decide about them, and p-values on how ties are broken, both by
chance: evidence is gathered in several copies that differ in both, and `combined`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import attrs
import numpy as np
from numpy.typing import NDArray

from vennforest._validation import FloatArray, array, number, require
from vennforest.monitoring import stream_kernels
from vennforest.monitoring.bets import (
    Bets,
    Kind,
    bets_on_labels,
    bets_on_scores,
    bets_on_share,
    thought_shares,
)

Form = Literal["ville", "shiryaev-roberts"]
"""How evidence is kept, and with that what an alarm guarantees."""

Watch = Literal["labels", "objects"]
"""What a monitor compares: labels with scores, or scores alone."""

JUMPS = np.array([0.0, 0.001])
"""Share of the capital that moves to other bets at each step: none, or over a thousand steps."""

WAIT = 1000.0
"""Half of the capital is bet after so many steps, two thirds after twice as many."""

TOP = 5
"""The evidence is that of the copy below the top fifth, divided by five."""

MOST = 2**62


def _double(instance: Any, attribute: Any, value: Any) -> None:
    """Validate a vector of float64, of whatever numbers."""
    sound = type(value) is np.ndarray and value.ndim == 1 and value.dtype == np.float64
    require(sound, f"{attribute.name} must be a vector of float64")


@attrs.frozen(eq=False)
class Channel:
    """The evidence of one kind about one class, ``code``.

    ``counts`` (n_bins, 2) are the examples so far, the reference among them, without and with the
    label. ``scales`` (n_rates,) are natural logarithms of the capital at each rate of jumping, and
    ``weights`` (n_rates, n_bets + 1) its shares, first what is not bet yet. ``sums`` (n_bets,) are
    the log-likelihood ratio of each bet since it last was below zero, ``begins`` the number of the
    example at which it was, and ``times`` its time, NaN where none was given.
    """

    code: int = attrs.field(validator=number(0, integer=True))
    bets: Bets = attrs.field(validator=attrs.validators.instance_of(Bets))
    counts: NDArray[np.int64] = attrs.field(validator=array(None, 2, kinds="i", low=0))
    weights: FloatArray = attrs.field(validator=array(len(JUMPS), None, low=0, high=1 + 1e-6))
    scales: FloatArray = attrs.field(validator=_double)
    sums: FloatArray = attrs.field(validator=array(None))
    begins: NDArray[np.int64] = attrs.field(validator=array(None, kinds="i", low=0, high=MOST))
    times: FloatArray = attrs.field(validator=_double)

    def __attrs_post_init__(self) -> None:
        """Refuse evidence of other bets or bins."""
        n, k = self.bets.n_bins, len(self.bets.factors)
        require(len(self.counts) == n, f"counts must be of {n} bins")
        require(self.counts.max() <= MOST // n, "counts must be of fewer examples")
        int64 = self.counts.dtype == self.begins.dtype == np.int64
        require(int64, "counts and begins must be of type int64")
        require(self.weights.shape[1] == k + 1, f"weights must be of {k} bets")
        require(self.scales.shape == JUMPS.shape, f"scales must have shape {JUMPS.shape}")
        same = self.sums.shape == self.begins.shape == self.times.shape == (k,)
        require(same, f"sums, begins and times must be of {k} bets")

    @classmethod
    def of(
        cls, code: int, bets: Bets, scores: FloatArray, hits: NDArray[np.bool_], form: Form
    ) -> Self:
        """Return the evidence before anything came, with a reference."""
        n, k = bets.n_bins, len(bets.factors)
        counts = np.zeros((n, 2), np.int64)
        np.add.at(counts, (bets.cells(scores), (hits & bets.of_labels).astype(np.intp)), 1)
        weights = np.zeros((len(JUMPS), k + 1))
        scales = np.zeros(len(JUMPS))
        if form == "ville":
            weights[:, 0] = 1
        else:
            scales[:] = -np.inf
        sums, begins, times = np.zeros(k), np.zeros(k, np.int64), np.full(k, np.nan)
        return cls(code, bets, counts, weights, scales, sums, begins, times)

    def update(
        self,
        scores: FloatArray,
        hits: NDArray[np.bool_],
        times: FloatArray | None,
        *,
        n_before: int,
        seed: int,
        form: Form,
    ) -> FloatArray:
        """Return the logarithm of the evidence after each of these examples, (n,)."""
        out = np.empty(len(scores))
        bets = self.bets
        stream_kernels.watch(
            bets.cells(scores),
            hits if bets.of_labels else np.zeros(len(scores), np.bool_),
            n_before,
            seed,
            self.counts,
            bets.of_labels,
            bets.limits,
            bets.factors,
            bets.logs,
            JUMPS,
            WAIT,
            form == "ville",
            self.weights,
            self.scales,
            self.sums,
            self.begins,
            out,
        )
        if times is not None:
            new = self.begins >= n_before
            self.times[new] = times[self.begins[new] - n_before]
        return out

    def log_evidence(self) -> float:
        """Return the logarithm of the evidence now."""
        return float(stream_kernels.log_mean(self.scales))

    def strongest(self) -> int:
        """Return the likeliest bet, by what it has won since it last was at nothing."""
        return int(self.sums.argmax())

    def check_form(self, form: Form) -> None:
        """Refuse weights that no stream leaves: all capital is somewhere, if there is some."""
        waits = self.weights[:, 0] != 0
        require(form == "ville" or not waits.any(), f"no capital waits with form {form}")
        none = (self.scales == -np.inf) & (self.weights == 0).all(axis=1)
        require(form == "shiryaev-roberts" or not none.any(), "scales must be finite")
        require(
            (np.isfinite(self.scales) | none).all(), "scales must be finite where there is capital"
        )
        sums = self.weights.sum(axis=1)
        require((none | (abs(sums - 1) < 1e-6)).all(), "weights must sum to 1")


@dataclass(frozen=True)
class Change:
    """What the evidence says of one label.

    Attributes
    ----------
    label : object
        The class that the evidence is about.
    kind : {"scores", "share", "labels given scores"}
        Scores whatever the labels, the share of the class, or labels among equal scores.
    evidence : float
        Now: capital, or the statistic, divided by how many are watched.
    what : str
        The change that explains the stream best, of those that are bet on.
    since : int
        Number of the first example of it, counted from 0.
    since_time : float or None
        The time of that example.
    """

    label: Any
    kind: Kind
    evidence: float
    what: str
    since: int
    since_time: float | None


def n_copies(k: int) -> int:
    """Return how often the evidence about each of k classes is gathered.

    More classes have more evidence to begin with, and fewer copies bound what a row costs.
    """
    return 3 * TOP if k == 2 else TOP


def channels_of(
    design: tuple[FloatArray, NDArray[Any]],
    probabilities: bool,
    scores: FloatArray,
    codes: NDArray[Any],
    *,
    k: int,
    watch: Watch,
    form: Form,
) -> list[Channel]:
    """Return one copy of the evidence of every kind about every label, before anything came.

    Scores (m, c) and class numbers (m,) of the design decide what is bet on; c is 1 with two
    classes, else k. Scores (n, c) and class numbers (n,) of the reference are counted.
    """

    def watched(j: int) -> Iterator[Channel]:
        code = 1 if k == 2 else j
        own, column, hits = scores[:, j].copy(), design[0][:, j].copy(), codes == code
        yield Channel.of(code, bets_on_scores(column), own, hits, form)
        if watch == "labels":
            shares = thought_shares(column, design[1] == code, probabilities=probabilities)
            bets = bets_on_share(float(shares.mean()))
            yield Channel.of(code, bets, own, hits, form)
            yield Channel.of(code, bets_on_labels(column, shares), own, hits, form)

    return [channel for j in range(scores.shape[1]) for channel in watched(j)]


def combined(logs: FloatArray) -> FloatArray:
    """Return the logarithm of the evidence, (watched, ...), from those of R copies of it.

    It is that of the (R / 5)-th largest, divided by 5, and by how many are watched: see `Monitor`.
    The mean of the copies would have no such law: each is a martingale only given its own past.
    """
    copies, watched = logs.shape[:2]
    place = copies - copies // TOP
    found: FloatArray = np.partition(logs, place, axis=0)[place] - np.log(TOP * watched)
    return found


def log_start(form: Form, watched: int) -> float:
    """Return the logarithm of the evidence before anything came."""
    return -np.inf if form == "shiryaev-roberts" else -float(np.log(TOP * watched))


def changes_of(channels: Sequence[Channel], classes: NDArray[Any]) -> list[Change]:
    """Return what the evidence says of each label, the strongest first."""
    copies = n_copies(len(classes))
    logs = np.array([one.log_evidence() for one in channels]).reshape(copies, -1)
    evidence, watched = combined(logs), logs.shape[1]
    found = []
    for j in np.argsort(-evidence, kind="stable").tolist():
        # What the copy says whose evidence it is.
        copy = int(np.argsort(logs[:, j], kind="stable")[copies - copies // TOP])
        channel = channels[copy * watched + j]
        k = channel.strongest()
        when = float(channel.times[k])
        found.append(
            Change(
                classes[channel.code],
                channel.bets.kind,
                float(capital_of(evidence[j])),
                channel.bets.names[k],
                int(channel.begins[k]),
                None if np.isnan(when) else when,
            )
        )
    return found


def check_channels(
    channels: Sequence[Channel], *, k: int, watch: Watch, form: Form, n_seen: int, log_now: float
) -> None:
    """Refuse what ``channels_of`` and then ``n_seen`` examples could not have left."""
    kinds: tuple[Kind, ...] = ("scores", "share", "labels given scores")
    kinds = kinds if watch == "labels" else kinds[:1]
    copies = n_copies(k)
    wanted = [(code, kind) for code in ([1] if k == 2 else range(k)) for kind in kinds] * copies
    require([(one.code, one.bets.kind) for one in channels] == wanted, f"channels must be {wanted}")
    for one in channels:
        one.check_form(form)
        require((one.begins < max(n_seen, 1)).all(), "begins must be examples of the stream")
    totals = {int(one.counts.sum()) for one in channels}
    require(len(totals) == 1, "counts must be of the same examples")
    require(totals.pop() > n_seen, "counts must be of the reference and the stream")
    logs = np.array([one.log_evidence() for one in channels]).reshape(copies, -1)
    found = combined(logs).max()
    same = found == log_now or np.isclose(found, log_now, rtol=0, atol=1e-6)
    require(same, "the evidence must be what scales say")


def capital_of(logs: FloatArray | float) -> FloatArray:
    """Return exponentials, the largest finite number where they are larger."""
    capital: FloatArray = np.exp(np.minimum(logs, 709.0))
    return capital
