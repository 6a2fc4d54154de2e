"""Smooth expected calibration error: kernel smoothing in place of bins, no free parameter."""

from __future__ import annotations

import numpy as np
from scipy.fft import dct, idct
from scipy.optimize import brentq

from vennforest._validation import FloatArray

GRIDS = tuple(2**power for power in range(12, 21, 2))
POINTS_A_BANDWIDTH = 128


def smooth_error(outcome: FloatArray, p: FloatArray, weight: FloatArray) -> float:
    """Return the smooth expected calibration error, in [0, 1].

    Parameters
    ----------
    outcome : ndarray of shape (n,)
        In {0.0, 1.0}.
    p : ndarray of shape (n,)
        Estimates in [0, 1].
    weight : ndarray of shape (n,)
        Non-negative.

    Notes
    -----
    smECE_σ = ∫ |Σ w_i (y_i − p_i) K_σ(t, p_i) / Σ w_i| dt over [0, 1], with K_σ the Gaussian kernel
    of width σ reflected at 0 and 1; it does not increase with σ, and smECE is the σ with
    smECE_σ = σ (Błasiok & Nakkiran 2023, arXiv:2309.12236).

    The reflected Gaussian kernel is the heat kernel of [0, 1] with insulated ends, so smoothing
    multiplies the k-th cosine coefficient by exp(−(π k σ)² / 2). Residuals are shared out between
    the two next points of a grid that is refined until a bandwidth spans 128 of its steps: a
    relative error below 2e-5 from σ = 3e-5 upwards, below that an absolute one of 3e-7.
    """
    residual = weight * (outcome - p) / weight.sum()
    bandwidth = 0.0
    if not residual.any():
        return bandwidth
    for size in GRIDS:
        spectrum = _spectrum(p, residual, size)
        bandwidth = _fixed_point(spectrum, bandwidth, 1e-2)
        if bandwidth * size >= POINTS_A_BANDWIDTH:
            break
    return _fixed_point(spectrum, bandwidth, 1e-9)


def _spectrum(p: FloatArray, residual: FloatArray, size: int) -> FloatArray:
    """Return cosine coefficients (size + 1,) of the density of the residuals (n,) at p (n,)."""
    place = p * size
    left = np.minimum(place.astype(np.intp), size - 1)
    part = place - left
    mass = np.bincount(left, weights=residual * (1 - part), minlength=size + 1)
    mass += np.bincount(left + 1, weights=residual * part, minlength=size + 1)
    mass[[0, -1]] *= 2  # an end of the interval meets its own mirror image
    spectrum: FloatArray = dct(mass * size, type=1)
    return spectrum


def _fixed_point(spectrum: FloatArray, guess: float, precision: float) -> float:
    """Return the bandwidth that equals the error smoothed with it, from a guess (0: none)."""
    frequency = (np.pi * np.arange(len(spectrum))) ** 2 / 2

    def excess(bandwidth: float) -> float:
        smoothed = np.abs(idct(spectrum * np.exp(-frequency * bandwidth**2), type=1))
        mean = (smoothed.sum() - (smoothed[0] + smoothed[-1]) / 2) / (len(spectrum) - 1)
        return float(mean) - bandwidth

    low, high = guess * 0.97, guess * 1.03
    if not (guess and excess(low) > 0 > excess(high)):
        unsmoothed = excess(0.0)
        if unsmoothed <= 1e-15:
            return 0.0
        # Smoothing only lowers the error: the fixed point lies at or below the unsmoothed one.
        low, high = 0.0, min(1.0, unsmoothed * (1 + 1e-9))
        if excess(high) >= 0:
            return high
    return float(brentq(excess, low, high, xtol=max(1e-12, precision * high / 4), rtol=precision))
