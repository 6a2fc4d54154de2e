"""Drawn predictions, and what an axes shows of them."""

import numpy as np


def draw_predictions(n=200, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return np.where(rng.random(n) < p, "yes", "no"), p


def drawn(figure):
    figure.canvas.draw()
    return np.asarray(figure.canvas.buffer_rgba())


def texts(ax):
    legend = ax.get_legend()
    return [text.get_text() for text in (legend.texts if legend else ax.texts)]


def ends_of(collection):
    """Return lower and upper ends of bars, each of shape (m,)."""
    segments = np.array(collection.get_segments())
    return segments[:, 0, 1], segments[:, 1, 1]
