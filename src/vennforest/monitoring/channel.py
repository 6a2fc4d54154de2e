"""The evidence of one kind about one label: counts of what came, and capital on every bet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from vennforest._loaded import expect, expect_array
from vennforest._validation import FloatArray
from vennforest.monitoring import kernels
from vennforest.monitoring.bets import Bets
from vennforest.monitoring.jumpers import FORMS, Form

JUMPS = np.array([0.0, 0.001])
"""Share of the capital that moves to other bets at each step: none, or over a thousand steps."""

WAIT = 1000.0
"""Half of the capital is bet after so many steps, two thirds after twice as many."""

MOST = 2**62


@dataclass(frozen=True)
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
    """

    code: int
    bets: Bets
    counts: NDArray[np.int64]
    weights: FloatArray
    scales: FloatArray
    sums: FloatArray
    begins: NDArray[np.int64]
    times: FloatArray

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

    def check_loaded(self) -> None:
        """Refuse evidence of other bets or bins.

        Raises
        ------
        ValueError
            If shapes or numbers are none that ``update`` could have left.
        """
        expect(isinstance(self.bets, Bets), "bets must be Bets")
        n, k = self.bets.n_bins, len(self.bets.prior)
        expect_array(self.counts, "counts", (n, 2), "i", 0, MOST // n)
        expect(self.counts.dtype == np.int64, "counts must be of type int64")
        expect_array(self.weights, "weights", (len(JUMPS), k + 1), low=0, high=1 + 1e-6)
        expect(type(self.scales) is np.ndarray, "scales must be an array")
        expect(self.scales.shape == JUMPS.shape, f"scales must have shape {JUMPS.shape}")
        expect(self.scales.dtype == np.float64, "scales must be float64")
        expect_array(self.sums, "sums", (k,))
        expect_array(self.begins, "begins", (k,), "i", 0, MOST)
        expect(self.begins.dtype == np.int64, "begins must be of type int64")
        expect(type(self.times) is np.ndarray, "times must be an array")
        expect(self.times.shape == (k,) and self.times.dtype == np.float64, "times must be float64")

    def check_form(self, form: Form) -> None:
        """Refuse weights that no stream leaves: all capital is somewhere, if there is some.

        Raises
        ------
        ValueError
            If they are such.
        """
        waits = self.weights[:, 0] != 0
        expect(form == "ville" or not waits.any(), f"no capital waits with form {form}")
        none = (self.scales == -np.inf) & (self.weights == 0).all(axis=1)
        expect(form == "shiryaev-roberts" or not none.any(), "scales must be finite")
        expect(
            (np.isfinite(self.scales) | none).all(), "scales must be finite where there is capital"
        )
        sums = self.weights.sum(axis=1)
        expect((none | (abs(sums - 1) < 1e-6)).all(), "weights must sum to 1")
