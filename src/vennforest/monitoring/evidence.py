"""The evidence about all labels together: what is watched, and which changes it speaks of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from vennforest._validation import FloatArray, require
from vennforest.monitoring.bets import (
    Kind,
    bets_on_labels,
    bets_on_scores,
    bets_on_share,
    thought_shares,
)
from vennforest.monitoring.channel import Channel
from vennforest.monitoring.jumpers import Form

Watch = Literal["labels", "objects"]
"""What a monitor compares: labels with scores, or scores alone."""


@dataclass(frozen=True)
class Change:
    """What the evidence says of one label.

    Attributes
    ----------
    label : object
        The class that the evidence is about.
    kind : {"scores", "share", "labels given scores"}
        What of it: scores whatever the labels, the share of the class, or the labels among objects
        with equal scores.
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
    """Return the evidence of every kind about every label, before anything came.

    Parameters
    ----------
    design : (ndarray of shape (m, c), ndarray of shape (m,))
        Scores and class numbers of the examples that decide what is bet on; one column of two
        classes (c = 1), else a column per class.
    probabilities : bool
        Whether scores are in [0, 1].
    scores : ndarray of shape (n, c)
        Of the reference.
    codes : ndarray of shape (n,)
        Its class numbers.
    k : int
        Number of classes.
    watch, form : str
        See `Monitor`.
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


def changes_of(channels: Sequence[Channel], classes: NDArray[Any]) -> list[Change]:
    """Return what the evidence says of each label, the strongest first."""
    found = []
    for channel in channels:
        k = channel.strongest()
        logs = channel.log_evidence() - np.log(len(channels))
        when = float(channel.times[k])
        change = Change(
            classes[channel.code],
            channel.bets.kind,
            float(capital_of(np.array(logs))),
            channel.bets.names[k],
            int(channel.begins[k]),
            None if np.isnan(when) else when,
        )
        found.append((logs, change))
    return [change for _, change in sorted(found, key=lambda one: -one[0])]


def check_channels(
    channels: Sequence[Channel], *, k: int, watch: Watch, form: Form, n_seen: int, log_now: float
) -> None:
    """Refuse what ``channels_of`` and then ``n_seen`` examples could not have left.

    Raises
    ------
    ValueError
        If channels are not those of k classes, or tell of other examples or other evidence.
    """
    kinds: tuple[Kind, ...] = ("scores", "share", "labels given scores")
    kinds = kinds if watch == "labels" else kinds[:1]
    wanted = [(code, kind) for code in ([1] if k == 2 else range(k)) for kind in kinds]
    require([(one.code, one.bets.kind) for one in channels] == wanted, f"channels must be {wanted}")
    for one in channels:
        one.check_form(form)
        require((one.begins < max(n_seen, 1)).all(), "begins must be examples of the stream")
    totals = {int(one.counts.sum()) for one in channels}
    require(len(totals) == 1, "counts must be of the same examples")
    require(totals.pop() > n_seen, "counts must be of the reference and the stream")
    found = max(one.log_evidence() for one in channels) - np.log(len(channels))
    same = found == log_now or np.isclose(found, log_now, rtol=0, atol=1e-6)
    require(same, "the evidence must be what scales say")


def capital_of(logs: FloatArray) -> FloatArray:
    """Return exponentials, the largest finite number where they are larger."""
    capital: FloatArray = np.exp(np.minimum(logs, 709.0))
    return capital
