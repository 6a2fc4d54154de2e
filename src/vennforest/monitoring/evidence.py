"""The evidence of a monitor: capital gained by bets, in several copies, and what it says.

Bets depend on which examples design them, and p-values on how ties are broken, both at random:
evidence is gathered in several copies that differ in both, and combined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from vennforest._validation import FloatArray, check_array, require
from vennforest.monitoring import stream_kernels
from vennforest.monitoring.bets import (
    BET_NAMES,
    Bets,
    Kind,
    bets_on_labels,
    bets_on_scores,
    bets_on_share,
    expected_shares,
)

Watch = Literal["labels", "objects"]
"""What a monitor compares: labels with scores, or scores alone."""

JUMP_RATES = np.array([0.0, 0.001])
"""Share of the capital that moves to other bets at each step: none, or over a thousand steps."""

HALF_BET_AFTER = 1000.0
"""Half of the capital is bet after so many steps, two thirds after twice as many."""

TOP_SHARE = 5
"""The evidence is what a fifth of the copies reach, divided by five."""

MAX_COUNT = 2**62


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
        Now: capital, divided by how many kinds of it are watched.
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


@dataclass(frozen=True, eq=False)
class Channel:
    """One copy of the evidence of one kind about one class; `advance` changes its arrays.

    Parameters
    ----------
    code : int
        Index of the class.
    seed : int
        Of the uniform numbers that break ties among p-values.
    bets : Bets
        What is bet on.
    counts : int64 ndarray of shape (n_bins, 2)
        Examples so far, the reference among them, without and with the label.
    weights : ndarray of shape (n_rates, n_bets + 1)
        Shares of the capital at each rate of jumping: not bet yet, then of each bet.
    log_capital : ndarray of shape (n_rates,)
        Natural logarithm of the capital at each rate.
    sums : ndarray of shape (n_bets,)
        Log-likelihood ratio of each bet since it last was below zero (Page 1954).
    begins : int64 ndarray of shape (n_bets,)
        Number of the example at which it was.
    times : ndarray of shape (n_bets,)
        Time of that example, NaN where none was given.
    """

    code: int
    seed: int
    bets: Bets
    counts: NDArray[np.int64]
    weights: FloatArray
    log_capital: FloatArray
    sums: FloatArray
    begins: NDArray[np.int64]
    times: FloatArray

    @classmethod
    def start(
        cls, code: int, seed: int, bets: Bets, scores: FloatArray, hits: NDArray[np.bool_]
    ) -> Channel:
        """Return the evidence before the stream, with the scores and labels of the reference."""
        n_bets = len(bets.factors)
        counts = np.zeros((bets.n_bins, 2), np.int64)
        np.add.at(counts, (bets.bins(scores), (hits & bets.of_labels).astype(np.intp)), 1)
        weights = np.zeros((len(JUMP_RATES), n_bets + 1))
        weights[:, 0] = 1
        return cls(
            code,
            seed,
            bets,
            counts,
            weights,
            np.zeros(len(JUMP_RATES)),
            np.zeros(n_bets),
            np.zeros(n_bets, np.int64),
            np.full(n_bets, np.nan),
        )

    def advance(
        self,
        scores: FloatArray,
        hits: NDArray[np.bool_],
        times: FloatArray | None,
        n_before: int,
    ) -> FloatArray:
        """Take n more examples and return the logarithm of the capital after each, (n,)."""
        log_path = np.empty(len(scores))
        bets = self.bets
        stream_kernels.advance(
            bets.bins(scores),
            hits if bets.of_labels else np.zeros(len(scores), np.bool_),
            n_before,
            self.seed,
            self.counts,
            bets.of_labels,
            bets.limits,
            bets.factors,
            bets.log_factors,
            JUMP_RATES,
            HALF_BET_AFTER,
            self.weights,
            self.log_capital,
            self.sums,
            self.begins,
            log_path,
        )
        if times is not None:
            is_new = self.begins >= n_before
            self.times[is_new] = times[self.begins[is_new] - n_before]
        return log_path

    def log_evidence(self) -> float:
        """Return the logarithm of the capital now."""
        return float(stream_kernels.log_mean(self.log_capital))

    def _check_state(self) -> None:
        # Kernels index by bins, bets and examples without checking them.
        bets, n_bets = self.bets, len(self.bets.factors)
        bets._check_state()
        require(isinstance(self.code, int) and self.code >= 0, "code must be a class number")
        require(isinstance(self.seed, int) and self.seed >= 0, "seed must be a number >= 0")
        check_array(self.counts, "counts", (bets.n_bins, 2), "i", 0, MAX_COUNT // bets.n_bins)
        check_array(self.weights, "weights", (len(JUMP_RATES), n_bets + 1), "f", 0, 1 + 1e-6)
        require(bool((abs(self.weights.sum(axis=1) - 1) < 1e-6).all()), "weights must sum to 1")
        check_array(self.log_capital, "log_capital", JUMP_RATES.shape)
        check_array(self.sums, "sums", (n_bets,))
        check_array(self.begins, "begins", (n_bets,), "i", 0, MAX_COUNT)
        require(
            isinstance(self.times, np.ndarray)
            and self.times.shape == (n_bets,)
            and self.times.dtype == np.float64,
            "times must be of every bet",
        )
        is_int64 = self.counts.dtype == self.begins.dtype == np.int64
        require(is_int64, "counts and begins must be int64")


def n_copies(k: int) -> int:
    """Return in how many copies the evidence about each of k classes is gathered.

    With more classes there is more evidence to begin with, and fewer copies bound the time a row
    takes.
    """
    return 3 * TOP_SHARE if k == 2 else TOP_SHARE


def start_copy(
    design: tuple[FloatArray, NDArray[Any]],
    reference: tuple[FloatArray, NDArray[Any]],
    k: int,
    watch: Watch,
    *,
    probabilities: bool,
) -> list[Channel]:
    """Return one copy of the evidence of every kind about every label, before the stream.

    ``design`` has the scores (m, c) and class numbers (m,) that the bets are designed for,
    ``reference`` those that the stream is compared with; c is 1 with two classes, else k. Seeds
    are 0.
    """
    channels = []
    for j in range(reference[0].shape[1]):
        code = 1 if k == 2 else j
        scores, hits = reference[0][:, j].copy(), reference[1] == code
        designed = design[0][:, j].copy()
        bets = [bets_on_scores(designed)]
        if watch == "labels":
            shares = expected_shares(designed, design[1] == code, probabilities=probabilities)
            bets += [bets_on_share(float(shares.mean())), bets_on_labels(designed, shares)]
        channels += [Channel.start(code, 0, kind, scores, hits) for kind in bets]
    return channels


def combine(log_capital: FloatArray) -> FloatArray:
    """Return the logarithm of the evidence, (watched, ...), from that of R copies of its capital.

    It is the (R / 5)-th largest capital, divided by 5 and by how many are watched: see `Monitor`.
    The mean of the copies would have no such law: each is a martingale only given its own past.
    """
    copies, watched = log_capital.shape[:2]
    rank = copies - copies // TOP_SHARE
    combined: FloatArray = np.partition(log_capital, rank, axis=0)[rank]
    evidence: FloatArray = combined - np.log(TOP_SHARE * watched)
    return evidence


def explain(channels: Sequence[Channel], classes: NDArray[Any]) -> list[Change]:
    """Return what the evidence says of each label, the strongest first."""
    copies = n_copies(len(classes))
    logs = np.array([channel.log_evidence() for channel in channels]).reshape(copies, -1)
    evidence = combine(logs)
    changes = []
    for j in np.argsort(-evidence, kind="stable").tolist():
        # The copy whose capital is the evidence explains it.
        copy = int(np.argsort(logs[:, j], kind="stable")[copies - copies // TOP_SHARE])
        channel = channels[copy * logs.shape[1] + j]
        bet = int(channel.sums.argmax())
        time = float(channel.times[bet])
        changes.append(
            Change(
                classes[channel.code],
                channel.bets.kind,
                float(exp_finite(evidence[j])),
                BET_NAMES[channel.bets.kind][bet],
                int(channel.begins[bet]),
                None if np.isnan(time) else time,
            )
        )
    return changes


def exp_finite(logs: FloatArray | float) -> FloatArray:
    """Return exponentials, at most the largest finite number."""
    capital: FloatArray = np.exp(np.minimum(logs, 709.0))
    return capital
