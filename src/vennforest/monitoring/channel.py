"""The evidence of one kind about one label: counts of what came, and capital on every bet."""

from __future__ import annotations

from typing import Any, Self

import attrs
import numpy as np
from numpy.typing import NDArray

from vennforest._state import stored
from vennforest._validation import FloatArray, array, number, require
from vennforest.monitoring import kernels
from vennforest.monitoring.bets import Bets
from vennforest.monitoring.jumpers import FORMS, Form

JUMPS = np.array([0.0, 0.001])
"""Share of the capital that moves to other bets at each step: none, or over a thousand steps."""

WAIT = 1000.0
"""Half of the capital is bet after so many steps, two thirds after twice as many."""

MOST = 2**62


def _double(instance: Any, attribute: Any, value: Any) -> None:
    """Validate a vector of float64, of whatever numbers."""
    sound = type(value) is np.ndarray and value.ndim == 1 and value.dtype == np.float64
    require(sound, f"{attribute.name} must be a vector of float64")


@stored("channel")
@attrs.frozen(eq=False)
class Channel:
    """The evidence of one kind about one label.

    Attributes
    ----------
    code : int
        The class that it is about.
    bets : Bets
    counts : ndarray of shape (n_bins, 2)
        Examples so far, the reference among them, without and with the label.
    weights : ndarray of shape (n_rates, n_bets + 1)
        Shares of the capital at each rate of jumping, first what is not bet yet.
    scales : ndarray of shape (n_rates,)
        Natural logarithm of the capital.
    sums : ndarray of shape (n_bets,)
        Log-likelihood ratio of each bet since it last was below zero, and
    begins : ndarray of shape (n_bets,)
        the number of the example at which it was.
    times : ndarray of shape (n_bets,)
        The time of that example; NaN where none was given.

    Raises
    ------
    ValueError
        If shapes or numbers are none that `update` could have left.
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
        n, k = self.bets.n_bins, len(self.bets.prior)
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
        n, k = bets.n_bins, len(bets.prior)
        counts = np.zeros((n, 2), np.int64)
        np.add.at(counts, (bets.cells(scores), (hits & bets.of_labels).astype(np.intp)), 1)
        weights = np.zeros((len(JUMPS), k + 1))
        scales = np.zeros(len(JUMPS))
        if form == "ville":
            weights[:, 0] = 1
        elif form == "shiryaev-roberts":
            scales[:] = -np.inf
        else:
            weights[:, 1:] = bets.prior
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
        kernels.watch(
            bets.cells(scores),
            hits if bets.of_labels else np.zeros(len(scores), np.bool_),
            n_before,
            seed,
            self.counts,
            bets.of_labels,
            bets.limits,
            bets.factors,
            bets.logs,
            bets.prior,
            JUMPS,
            WAIT,
            FORMS.index(form),
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
        return float(kernels.log_mean(self.scales))

    def strongest(self) -> int:
        """Return the likeliest bet, by what it has won since it last was at nothing."""
        return int((self.sums + np.log(self.bets.prior)).argmax())

    def check_form(self, form: Form) -> None:
        """Refuse weights that no stream leaves: all capital is somewhere, if there is some.

        Raises
        ------
        ValueError
            If they are such.
        """
        waits = self.weights[:, 0] != 0
        require(form == "ville" or not waits.any(), f"no capital waits with form {form}")
        none = (self.scales == -np.inf) & (self.weights == 0).all(axis=1)
        require(form == "shiryaev-roberts" or not none.any(), "scales must be finite")
        require(
            (np.isfinite(self.scales) | none).all(), "scales must be finite where there is capital"
        )
        sums = self.weights.sum(axis=1)
        require((none | (abs(sums - 1) < 1e-6)).all(), "weights must sum to 1")
