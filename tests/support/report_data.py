"""Tables and predictions for evaluations."""

import numpy as np

from vennforest import Multiprobability

SCRIPT = "<script>alert('x')</script>"
COSTS = {"no": {"wait": 0, "treat": 1}, "yes": {"wait": 4, "treat": 1}}


def calibrated(n, seed, strength=1.0, share=0.3):
    """Labels and calibrated probabilities that know as much of them as the strength says."""
    rng = np.random.default_rng(seed)
    log_odds = np.log(share / (1 - share)) + strength * rng.normal(size=n)
    p = 1 / (1 + np.exp(-log_odds))
    return np.where(rng.random(n) < p, "yes", "no"), p, rng


def with_bounds(n=400, seed=0):
    """Labels, and probabilities with bounds, most of which are narrow."""
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    half_width = 0.1 * rng.random(n) ** 2
    lower, upper = np.maximum(0, p - half_width), np.minimum(1, p + half_width)
    bounds = Multiprobability(
        np.column_stack([1 - upper, lower]),
        np.column_stack([1 - lower, upper]),
        np.array(["a", "b"]),
    )
    return np.where(rng.random(n) < p, "b", "a"), (np.column_stack([1 - p, p]), bounds)


def table_of(n, seed):
    """A data frame of three numbers, the first of which predicts the labels."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    y = np.where(x[:, 0] + rng.normal(size=n) > 0.3, "yes", "no")
    return pd.DataFrame(x, columns=["a", "b", "c"]), y


def nasty_table(n=90, seed=0):
    """A data frame and labels whose names are code, with gaps, dates and letters of all kinds."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    X = pd.DataFrame({
        SCRIPT: x,
        "a $ and a $^": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
        "city": rng.choice(["Köln", "東京", None], n),
        "note": [f"note {i % 50} & <b>{i}</b>" for i in range(n)],
        "when": pd.date_range("2024-02-27", periods=n),
        "flag": rng.choice([True, False], n),
    })  # fmt: skip
    return X, np.where(x + rng.normal(size=n) > 0, SCRIPT, "no & $x^")
