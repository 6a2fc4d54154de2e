"""Commands that calibrate scores in a folder, and drawn scores."""

from functools import partial

import numpy as np
import pandas as pd

from vennforest.export import from_json

# By default pandas 2 reads numbers to within a unit in the last place.
read_csv = partial(pd.read_csv, float_precision="round_trip")


def draw(n=400, seed=51):
    rng = np.random.default_rng(seed)
    scores = rng.random(n).round(3)
    return scores, np.where(rng.random(n) < scores, "yes", "no")


def calibrate(folder, *more, data="scores.csv"):
    scores = () if "-s" in more else ("-s", "s")
    return "calibrate", folder / data, "-t", "y", "-o", folder / "c.json", *scores, *more


def apply(folder, *more, data="scores.csv", output="out.csv"):
    return "apply", folder / "c.json", folder / data, "-o", folder / output, *more


def calibrator_in(folder):
    return from_json((folder / "c.json").read_text(encoding="utf-8"))


def draw_probabilities(k=2, n=300):
    rng = np.random.default_rng(5)
    labels = ["no", "yes"] if k == 2 else ["a", "b", "c"]
    p = rng.dirichlet(np.ones(k), n)
    y = [labels[rng.choice(k, p=row)] for row in p]
    return pd.DataFrame(p, columns=[f"p({c})" for c in labels]).assign(y=y), labels
