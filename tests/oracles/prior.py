"""Other shares of the classes, slowly: weighted refits, and expectation and maximisation."""

from fractions import Fraction

import numpy as np


def shifted(p, factors):
    """A distribution in fractions under other shares."""
    total = sum(f * q for f, q in zip(factors, p, strict=True))
    return [f * q / total for f, q in zip(factors, p, strict=True)]


def venn_distributions(counts):
    """The k distributions of a Venn predictor from the counts of a category."""
    total = sum(counts) + 1
    return [
        [Fraction(c + (i == y), total) for i, c in enumerate(counts)] for y in range(len(counts))
    ]


def expectation_maximisation(p, prior, steps=200_000, tol=1e-13):
    """Saerens, Latinne & Decaestecker (2002), eqs. 2.9, one step after the other."""
    q = prior.copy()
    for _ in range(steps):
        posterior = p * (q / prior)
        posterior /= posterior.sum(axis=1, keepdims=True)
        q, before = posterior.mean(axis=0), q
        if np.abs(q - before).max() < tol:
            break
    return q
