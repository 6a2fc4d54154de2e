"""The history of a stream in blocks of rows, from which changes are dated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vennforest._validation import FloatArray, check_array, check_number
from vennforest.monitoring.bets import N_BET_BINS

MAX_BLOCKS = 1024
"""Number of blocks of a history, fewer with many classes; when all are used, pairs are joined."""

MAX_COUNTS = 2**21
"""Largest number of counts that a history keeps."""

LOG_RATIO_95 = -np.log(1 - np.sqrt(0.95))
"""Largest loss of log-likelihood of a split in the interval at .95: on either side of the change
the log ratio to it is a random walk with negative drift, whose maximum is about exponential."""


@dataclass(eq=False)
class History:
    """Counts of examples per block, and the logs of what bets pay.

    ``edges`` (m, n_bins - 1), ``shares`` (m, n_bins) and ``log_factors`` (m, n_bets, 2 n_bins) are
    of the m channels, see `evidence.STATE`; ``shares`` are the reference shares of each bin, or of
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
        """Return an empty history of m channels, from records (m,) of `evidence.STATE`."""
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
        while len(rows) and rows[-1] // self.width >= len(self.counts):
            self._join_pairs()
        blocks = rows // self.width
        for i, is_of_labels in enumerate(of_labels):
            column = np.searchsorted(self.edges[i], scores[:, i], side="right")
            column = 2 * column + hits[:, i] if is_of_labels else column
            np.add.at(self.counts[:, i], (blocks, column), 1)
        is_first = rows % self.width == 0
        self.times[blocks[is_first]] = times[is_first]

    def _join_pairs(self) -> None:
        """Join neighbouring blocks: the first half of the arrays is used then."""
        half = len(self.counts) // 2
        for values in (self.counts, self.times):
            pairs = values.reshape(half, 2, *values.shape[1:])
            values[:half] = pairs.sum(axis=1) if values is self.counts else pairs[:, 0]
            values[half:] = 0 if values is self.counts else np.nan
        self.width *= 2

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
        inside = np.flatnonzero(ratios[:, direction] >= ratios[block, direction] - LOG_RATIO_95)
        after = counts[block:].sum(axis=0)
        bet = int((self.log_factors[i, :n_bets] @ after).argmax())
        return bet, block, int(inside[0]), int(inside[-1])

    def _check_state(self) -> None:
        n_blocks, m = self.counts.shape[:2]
        check_array(self.counts, "counts", (n_blocks, m, 2 * N_BET_BINS), "i", 0)
        check_array(np.nan_to_num(self.times), "times", (n_blocks,))
        check_array(self.edges, "edges", (m, N_BET_BINS - 1))
        check_array(self.shares, "shares", (m, N_BET_BINS), low=0, high=1)
        check_array(self.log_factors, "log_factors", (m, None, 2 * N_BET_BINS))
        check_number(self.width, "width", 1, 2**58, integer=True)
