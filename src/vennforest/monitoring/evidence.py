"""The evidence of a monitor: capital gained by bets, in several copies, and its explanation.

Copies differ in the random choice of examples that design the bets, and in how ties are broken.
The state is an array of records (R, m) for R copies of m channels. A channel is a kind of change
of one class. The history of the stream in blocks of rows dates changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from vennforest._validation import FloatArray, IntArray, check_array, check_number
from vennforest.monitoring.bets import BET_KINDS, BET_NAMES, N_BET_BINS, BetKind, Bets, Watched
from vennforest.monitoring.stream_kernels import JUMP_RATES, advance

MAX_BETS = max(map(len, BET_NAMES.values()))

TOP_SHARE = 5
"""The evidence is the capital that one in TOP_SHARE copies reaches, divided by TOP_SHARE."""

BLOCK_ROWS = 10_000
"""Number of rows in a block, after which the copies are combined."""

STATE = np.dtype(
    [
        ("seed", np.int64),  # of the uniform numbers that break ties among p-values
        ("edges", np.float64, N_BET_BINS - 1),  # this and the next two: see `Bets`
        ("limits", np.float64, N_BET_BINS),
        ("factors", np.float64, (MAX_BETS, 2 * N_BET_BINS)),
        # Numbers of examples so far, with the reference, without and with the label.
        ("counts", np.int64, (N_BET_BINS, 2)),
        # Shares of the capital at each jump rate: the part not bet yet, then each bet.
        ("weights", np.float64, (len(JUMP_RATES), MAX_BETS + 1)),
        ("log_capital", np.float64, len(JUMP_RATES)),
    ]
)
"""Record of one copy of one channel; unused bets have factors of 1, unused bins maximal edges."""

STATE_RANGES: dict[str, tuple[float, float]] = {
    "limits": (0, 1),
    "factors": (1e-12, 1e12),
    "counts": (0, 2**58),
    "weights": (0, 1),
    "log_capital": (-np.inf, np.inf),
}
"""The ranges of numbers of the state, outside of which a file is refused."""

MAX_BLOCKS = 1024
"""Number of blocks of a history, fewer with many classes; when all are used, pairs are joined."""

MAX_COUNTS = 2**21
"""Largest number of counts that a history keeps."""

LOG_RATIO_95 = -np.log(1 - np.sqrt(0.95))
"""Largest loss of log-likelihood of a split in the interval at .95: on either side of the change
the log ratio to it is a random walk with negative drift, whose maximum is about exponential."""


@dataclass(frozen=True)
class Change:
    """Evidence for a change that concerns one class.

    Attributes
    ----------
    label : object
        Label of the class.
    kind : {"scores", "share", "labels given scores"}
        Change of the scores, of the share of the class, or of labels given scores.
    evidence : float
        The current evidence.
    description : str
        The change that explains the stream best.
    since, since_time : int, float or None
        Number, counted from 0, and time of the first example after the change: the split of the
        stream that maximises the likelihood ratio.
    since_low, since_high : int
        Ends of a confidence interval at .95 for ``since``, if there is one lasting change.
    """

    label: Any
    kind: BetKind
    evidence: float
    description: str
    since: int
    since_time: float | None
    since_low: int
    since_high: int


class Channels(NamedTuple):
    """Score column, class, whether bets are on labels, and number of bets of m channels, (m,)."""

    columns: IntArray
    targets: IntArray
    of_labels: NDArray[np.bool_]
    n_bets: IntArray


def channels(k: int, watch: Watched) -> Channels:
    """Return a channel for each kind of bet on the second of two, or on each of k classes."""
    kinds, n_columns = BET_KINDS[watch], 1 if k == 2 else k
    columns = np.repeat(np.arange(n_columns), len(kinds))
    of_labels = np.tile([kind != "scores" for kind in kinds], n_columns)
    n_bets = np.tile([len(BET_NAMES[kind]) for kind in kinds], n_columns)
    return Channels(columns, columns + (k == 2), of_labels, n_bets)


def n_copies(k: int) -> int:
    """Return the number of copies for k classes, fewer for k > 2 to limit the time per row."""
    return 3 * TOP_SHARE if k == 2 else TOP_SHARE


def start(shape: tuple[int, ...], rng: np.random.RandomState) -> NDArray[Any]:
    """Return the initial state of ``shape``, R copies of m channels, for `set_bets` to fill."""
    state = np.zeros(shape, STATE)
    state["seed"] = rng.randint(2**31 - 1, size=shape)
    state["edges"], state["limits"], state["factors"] = np.finfo(np.float64).max, 1.0, 1.0
    state["weights"][..., 0] = 1.0
    return state


def set_bets(
    copy: NDArray[Any], watched: Channels, bets: Sequence[Bets], scores: FloatArray, codes: IntArray
) -> None:
    """Set the bets of one copy (m,) of the state, and count its reference examples in bins.

    ``scores`` (n, c) and ``codes`` (n,) are of the examples that p-values are counted over.
    """
    for i, (edges, limits, factors) in enumerate(bets):
        copy["edges"][i, : len(edges)] = edges
        copy["limits"][i, : len(limits)] = limits
        copy["factors"][i, : factors.shape[0], : factors.shape[1]] = factors
        bins = np.searchsorted(edges, scores[:, watched.columns[i]], side="right")
        hits = watched.of_labels[i] & (codes == watched.targets[i])
        np.add.at(copy["counts"][i], (bins, hits.astype(np.intp)), 1)


def advance_evidence(
    state: NDArray[Any], watched: Channels, scores: FloatArray, codes: IntArray, n_before: int
) -> FloatArray:
    """Update the state (R, m) in place, and return the evidence after each of n examples, (n,).

    ``scores`` (n, c) and ``codes`` (n,) are of the examples, before which there were ``n_before``.
    """
    evidence = np.empty(len(scores))
    channels_of_copies = [np.tile(values, len(state)) for values in watched]
    for first in range(0, len(scores), BLOCK_ROWS):
        block = slice(first, first + BLOCK_ROWS)
        log_path = np.empty((*state.shape, len(scores[block])))
        advance(
            scores[block],
            codes[block],
            n_before + first,
            *channels_of_copies,
            state.reshape(-1),
            log_path.reshape(state.size, -1),
        )
        evidence[block] = exp_finite(combine(log_path).max(axis=0))
    return evidence


def combine(log_capital: FloatArray) -> FloatArray:
    """Return the log of the evidence, (m, ...), from the log capital (R, m, ...) of its copies.

    It is the (R / 5)-th largest capital, divided by 5 (Rüger 1978; Vovk & Wang 2020) and by the
    number of channels (Bonferroni): see `Monitor`.
    """
    # Their mean would have no such law: each is a martingale only given its own past.
    copies, watched = log_capital.shape[:2]
    rank = copies - copies // TOP_SHARE
    combined: FloatArray = np.partition(log_capital, rank, axis=0)[rank]
    return np.asarray(combined - np.log(TOP_SHARE * watched))


def log_copies(state: NDArray[Any]) -> FloatArray:
    """Return the logarithm of the current capital of each copy and channel, (R, m)."""
    return np.asarray(logsumexp(state["log_capital"], axis=2) - np.log(len(JUMP_RATES)))


def exp_finite(logs: FloatArray) -> FloatArray:
    """Return exponentials, clipped to the largest finite number."""
    return np.asarray(np.exp(np.minimum(logs, 709.0)))


@dataclass(eq=False)
class History:
    """Counts of examples per block, and the logs of what bets pay.

    ``edges`` (m, n_bins - 1), ``shares`` (m, n_bins) and ``log_factors`` (m, n_bets, 2 n_bins) are
    of the m channels, see `STATE`; ``shares`` are the reference shares of each bin, or of
    the label in each bin. ``counts`` (n_blocks, m, 2 n_bins) are of the columns of ``log_factors``,
    ``times`` (n_blocks,) those of the first example of each block of ``width`` examples, NaN if
    unknown.
    """

    edges: FloatArray
    shares: FloatArray
    log_factors: FloatArray
    counts: NDArray[np.int32]
    times: FloatArray
    width: int = 1

    @classmethod
    def of_bets(cls, bets: NDArray[Any], of_labels: NDArray[np.bool_]) -> History:
        """Return an empty history of m channels, from records (m,) of `STATE`."""
        n_blocks = min(MAX_BLOCKS, 2 * max(8, MAX_COUNTS // (4 * N_BET_BINS * len(bets))))
        limits = bets["limits"]
        return cls(
            edges=bets["edges"].copy(),
            shares=np.where(of_labels[:, None], 1 - limits, np.diff(limits, prepend=0.0, axis=1)),
            log_factors=np.log(bets["factors"]),
            counts=np.zeros((n_blocks, len(bets), 2 * N_BET_BINS), np.int32),
            times=np.full(n_blocks, np.nan),
        )

    def append(
        self,
        scores: FloatArray,
        hits: NDArray[np.bool_],
        of_labels: NDArray[np.bool_],
        times: FloatArray,
        n_before: int,
    ) -> None:
        """Count examples that follow ``n_before`` others.

        ``scores`` and ``hits``, whether an example has the channel's label, are (n, m). Unknown
        ``times`` (n,) are NaN.
        """
        rows = n_before + np.arange(len(scores))
        half = len(self.counts) // 2
        while len(rows) and rows[-1] // self.width >= len(self.counts):
            # Neighbouring blocks are joined: the first half of the arrays is used then.
            self.counts[:half] = self.counts[::2] + self.counts[1::2]
            self.times[:half] = self.times[::2]
            self.counts[half:], self.times[half:] = 0, np.nan
            self.width *= 2
        blocks = rows // self.width
        for i, is_of_labels in enumerate(of_labels):
            column = np.searchsorted(self.edges[i], scores[:, i], side="right")
            column = 2 * column + hits[:, i] if is_of_labels else column
            np.add.at(self.counts[:, i], (blocks, column), 1)
        is_first = rows % self.width == 0
        self.times[blocks[is_first]] = times[is_first]

    def date(self, i: int, of_labels: bool, n_bets: int) -> tuple[int, int, int, int]:
        """Return indices of the bet and block that date a change of channel i, and of an interval.

        The block is the first after the change; the interval of blocks is at .95.

        From a block on, the log factors of a bet, less their mean given the reference, have sum E
        and variance V. With the bet's size reduced to a share t, the log-likelihood ratio is about
        t E - t² V / 2. The change is dated where its maximum over t in [0, 1] and all bets is
        largest (Siegmund 1988 for the interval).
        """
        counts = self.counts[:, i, :].astype(np.float64)
        logs, shares = self.log_factors[i, :n_bets], self.shares[i]
        if of_labels:
            slopes = logs[:, 1::2] - logs[:, ::2]
            n_in_bin = counts[:, ::2] + counts[:, 1::2]
            gains = (counts[:, 1::2] - n_in_bin * shares) @ slopes.T
            variances = n_in_bin @ (slopes**2 * (shares * (1 - shares))).T
        else:
            logs = logs[:, : len(shares)]
            centred = logs - (logs @ shares)[:, None]
            gains = counts[:, : len(shares)] @ centred.T
            variances = counts.sum(axis=1)[:, None] * (centred**2 @ shares)
        E, V = (np.cumsum(v[::-1], axis=0)[::-1] for v in (gains, variances))
        t = np.clip(np.divide(E, V, out=np.zeros_like(E), where=V > 0), 0, 1)
        ratios = t * E - t**2 * V / 2
        block = int(ratios.max(axis=1).argmax())
        direction = int(ratios[block].argmax())
        blocks = np.flatnonzero(ratios[:, direction] >= ratios[block, direction] - LOG_RATIO_95)
        after = counts[block:].sum(axis=0)
        bet = int((self.log_factors[i, :n_bets] @ after).argmax())
        return bet, block, int(blocks[0]), int(blocks[-1])

    def _check_state(self) -> None:
        n_blocks, m = self.counts.shape[:2]
        check_array(self.counts, "counts", (n_blocks, m, 2 * N_BET_BINS), "i", 0)
        check_array(np.nan_to_num(self.times), "times", (n_blocks,))
        check_array(self.edges, "edges", (m, N_BET_BINS - 1))
        check_array(self.shares, "shares", (m, N_BET_BINS), low=0, high=1)
        check_array(self.log_factors, "log_factors", (m, None, 2 * N_BET_BINS))
        check_number(self.width, "width", 1, 2**58, integer=True)
