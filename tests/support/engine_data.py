"""Scores and labels for every engine, and what a fit to all rows at once makes of them."""

import numpy as np
import pandas as pd

from vennforest.calibrators import make_calibrator

LABELS = {2: np.array(["no", "yes"]), 3: np.array(["a", "b", "c"])}


def draw_scores(n=2000, k=2, seed=3071):
    """Return a frame of scores ``s`` (or ``s0``, …), labels ``y`` and whole weights ``w``."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(k, 0.7), n)
    p[rng.random(n) < 0.1] = np.eye(k)[0]  # ties at 0 and 1
    p = np.round(p, 3) if seed % 2 else p
    p[:, -1] = np.clip(1 - p[:, :-1].sum(axis=1), 0, 1)
    y = np.array([rng.choice(k, p=(row + 0.1) / (row + 0.1).sum()) for row in p])
    y[:k] = np.arange(k)
    frame = pd.DataFrame({"s": p[:, 1]} if k == 2 else {f"s{j}": p[:, j] for j in range(k)})
    frame["y"] = pd.Series(LABELS[k][y]).astype(object)
    frame["w"] = rng.integers(0, 4, n)
    return frame


def score_names(k):
    return "s" if k == 2 else [f"s{j}" for j in range(k)]


def fit_rows(frame, method, k=2, weight=None):
    """Return a calibrator fitted to all rows."""
    return make_calibrator(method).fit(
        frame[score_names(k)].to_numpy(np.float64),
        frame["y"].to_numpy(),
        sample_weight=None if weight is None else frame[weight],
    )


def new_scores(k=2, seed=5):
    rng = np.random.default_rng(seed)
    new = rng.dirichlet(np.ones(k), 300)
    new[:k] = np.eye(k)
    return new[:, 1] if k == 2 else new


def check_same(got, rows, k=2, tolerance=1e-12):
    """Compare a calibrator fitted by an engine with one fitted to all rows."""
    new = new_scores(k)
    assert np.array_equal(got.classes_, rows.classes_)
    assert np.abs(got.predict_proba(new) - rows.predict_proba(new)).max() <= tolerance
    if hasattr(rows, "predict_multiprobability"):
        m, wanted = got.predict_multiprobability(new), rows.predict_multiprobability(new)
        assert np.abs(m.lower - wanted.lower).max() <= tolerance
        assert np.abs(m.upper - wanted.upper).max() <= tolerance
