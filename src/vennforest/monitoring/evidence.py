"""The evidence of a monitor: capital gained by bets, in several copies, and its explanation.

Copies differ in the random choice of examples that design the bets, and in how ties are broken.
The state is an array of records (R, m) for R copies of m channels. A channel is a kind of change
of one class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from vennforest._validation import FloatArray, IntArray, check_array, require
from vennforest.monitoring.bets import BET_KINDS, BET_NAMES, N_BET_BINS, BetKind, Bets, Watched
from vennforest.monitoring.history import History
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


def explain_changes(
    state: NDArray[Any], history: History, classes: NDArray[Any], watch: Watched
) -> list[Change]:
    """Return the evidence for each kind of change and class, the strongest first."""
    watched, kinds = channels(len(classes), watch), BET_KINDS[watch]
    evidence = combine(log_copies(state))
    changes = []
    for i in np.argsort(-evidence, kind="stable").tolist():
        kind = kinds[i % len(kinds)]
        bet, block, low, high = history.date(i, bool(watched.of_labels[i]), len(BET_NAMES[kind]))
        time = float(history.times[block])
        changes.append(
            Change(
                label=classes[watched.targets[i]],
                kind=kind,
                evidence=exp_finite(evidence[i]).item(),
                description=BET_NAMES[kind][bet],
                since=block * history.width,
                since_time=None if np.isnan(time) else time,
                since_low=low * history.width,
                since_high=high * history.width,
            )
        )
    return changes


def check_evidence(state: NDArray[Any], k: int, watch: Watched) -> None:
    """Raise a ValueError for a state of another shape, or with numbers out of their range."""
    shape = n_copies(k), len(channels(k, watch).columns)
    require(state.dtype == STATE and state.shape == shape, "state must be of every class")
    ranges = {
        "limits": (0, 1),
        "factors": (1e-12, 1e12),
        "counts": (0, 2**58),
        "weights": (0, 1),
        "log_capital": (-np.inf, np.inf),
    }
    for name, (low, high) in ranges.items():
        check_array(state[name], name, state[name].shape, "if", low, high)


def exp_finite(logs: FloatArray) -> FloatArray:
    """Return exponentials, clipped to the largest finite number."""
    return np.asarray(np.exp(np.minimum(logs, 709.0)))
