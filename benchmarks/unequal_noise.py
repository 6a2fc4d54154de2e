"""Weights that decide how often a forest draws a row: when they spoil out-of-bag calibration.

    VENNFOREST_DATA=FOLDER python benchmarks/unequal_noise.py run 1800 [--seed SEED]
    python benchmarks/unequal_noise.py table

Features are those of real tables, labels are coins: the probability of every row is known, and the
mean bounds of new rows have to lie around the (weighted) share of ones among the training labels.
Each draw fits forests with class and sample weights, and one without to compare with.
The statistic is the one that ``UNEQUAL`` of ``vennforest.sources.out_of_bag`` bounds: .5 by a
simulation, lowered to .25 by these draws.
"""

import argparse
import functools
import itertools
import json
import os
import secrets
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from vennforest import VennAbers
from vennforest.forest import BagsError
from vennforest.sources import OutOfBag, TrainingData, out_of_bag, whole_scores
from vennforest_experiments.datasets.loading import load

RESULTS = Path(__file__).parent / "results" / "unequal_noise.jsonl"
SETS = ["adult", "australian", "breast_w", "covtype_30k", "credit_a", "diabetes", "german", "kc1"]
SETS += ["kr_vs_kp", "letter", "pc4", "segment", "splice", "tictactoe", "yeast"]
MOST_TRAIN = 1000
SHARES = (0.1, 0.3)
TREES = (50, 300)
CASES = {  # class_weight of the forest; weight of the rare class, and its spread within a class
    "none": (None, 1, 0),
    "balanced": ("balanced", 1, 0),
    "balanced_subsample": ("balanced_subsample", 1, 0),
    "class 1.5": ({1: 1.5}, 1, 0),
    "class 2": ({1: 2}, 1, 0),
    "class 4": ({1: 4}, 1, 0),
    "rows 1.5": (None, 1.5, 0),
    "rows 2": (None, 2, 0),
    "rows 4": (None, 4, 0),
    "rows spread": (None, 1, 0.7),
    "rows 2, spread": (None, 2, 0.7),
}


@functools.cache
def features(name):
    """Return the features of a data set as numbers, missing ones at the median."""
    X = load(name, os.environ["VENNFOREST_DATA"]).X
    columns = []
    for column in X.columns:
        values = X[column]
        if values.dtype.kind not in "fiub":
            values = values.astype("category").cat.codes
        numbers = values.to_numpy(np.float64)
        columns.append(np.where(np.isfinite(numbers), numbers, np.nanmedian(numbers)))
    return np.column_stack(columns)


def one(X, share, trees, case, rng):
    """Return what a forest's out-of-bag calibration makes of coin labels."""
    class_weight, heavy, spread = CASES[case]
    order = rng.permutation(len(X))[: 2 * MOST_TRAIN]
    train, new = np.array_split(order, 2)
    y = (rng.random(len(train)) < share).astype(int)
    weight = heavy**y * np.exp(spread * rng.normal(size=len(y)))
    truth = heavy * share / (heavy * share + 1 - share)
    forest = RandomForestClassifier(
        trees, class_weight=class_weight, random_state=int(rng.integers(2**31))
    )
    data = TrainingData(
        X[train],
        y,
        y.astype(np.intp),
        np.arange(2),
        None if heavy == 1 and not spread else weight,
        weight_param="sample_weight",
    )
    drawn = {"seed": 0, "random_state": np.random.RandomState(0), "n_jobs": None}
    try:
        (fold,) = OutOfBag().folds(forest, data, **drawn)
    except BagsError as error:
        return {"refused": error.reason}
    ratio, _, _ = out_of_bag.unequal_noise(fold.noise, fold.scores, fold.codes)
    calibrator = VennAbers().fit(fold.scores, fold.codes, sample_weight=fold.weight)
    scores = whole_scores(fold, X[new])
    p = calibrator.predict_proba(scores)[:, 1].clip(1e-6, 1 - 1e-6)
    bounds = calibrator.predict_multiprobability(scores)
    loss = -truth * np.log(p / truth) - (1 - truth) * np.log((1 - p) / (1 - truth))
    return {
        "ratio": float(ratio),
        "truth": truth,
        "seen": float(np.average(y, weights=weight)),
        "low": float(bounds.lower[:, 1].mean()),
        "high": float(bounds.upper[:, 1].mean()),
        "p": float(p.mean()),
        "loss": float(loss.mean()),
    }


def run(seconds, seed):
    """Go on with draws for so many seconds."""
    warnings.simplefilter("ignore")
    out_of_bag.UNEQUAL = np.inf
    end = time.monotonic() + seconds
    known = [json.loads(line) for line in RESULTS.open()] if RESULTS.exists() else []
    seed = known[0]["seed"] if known else seed
    done = {(row["draw"], row["set"], row["share"], row["trees"], row["case"]) for row in known}
    blocks = list(itertools.product(range(len(SETS)), SHARES, TREES))
    with RESULTS.open("a", buffering=1) as out:
        for draw in range(100):
            order = np.random.default_rng([seed, draw]).permutation(len(blocks))
            for (s, share, trees), case in itertools.product((blocks[b] for b in order), CASES):
                key = (draw, SETS[s], share, trees, case)
                if key in done:
                    continue
                if time.monotonic() > end:
                    return
                # The same rows and labels for each case, to compare them.
                rng = np.random.default_rng([seed, draw, s, int(10 * share), trees])
                found = one(features(SETS[s]), share, trees, case, rng)
                row = dict(zip(("draw", "set", "share", "trees", "case"), key, strict=True))
                out.write(json.dumps({"seed": seed, **row, **found}) + "\n")


BINS = (-1, 0.1, 0.25, 0.5, 1, 2, np.inf)


def table():
    """Print the bias and the loss by the statistic, and the statistic by case."""
    rows = [json.loads(line) for line in RESULTS.open()]
    plain = {}
    for row in rows:
        if row["case"] == "none" and "loss" in row:
            plain[row["draw"], row["set"], row["share"], row["trees"]] = row
    print("| statistic | fits | share within the mean bounds | of the plain forest | ", end="")
    print("mean p / share | loss beyond that of the plain forest |\n|---|---|---|---|---|---|")
    for low, high in itertools.pairwise(BINS):
        some = [row for row in rows if row["case"] != "none" and low < row.get("ratio", -1) <= high]
        if not some:
            continue
        beside = [plain[row["draw"], row["set"], row["share"], row["trees"]] for row in some]
        within, reference = (
            np.mean([one["low"] <= one["seen"] <= one["high"] for one in these])
            for these in (some, beside)
        )
        bias = np.mean([row["p"] / row["seen"] for row in some])
        more = np.array([row["loss"] - one["loss"] for row, one in zip(some, beside, strict=True)])
        error = more.std() / np.sqrt(len(more))
        print(
            f"| {max(low, 0):g} to {high:g} | {len(some)} | {within:.1%} | {reference:.1%} "
            f"| {bias:.3f} | {more.mean():.4f} ± {error:.4f} |"
        )
    print(
        "\n| case | trees | refused for other reasons | statistic, 10% to 90% |\n|---|---|---|---|"
    )
    for case in CASES:
        for trees in TREES:
            own = [row for row in rows if row["case"] == case and row["trees"] == trees]
            ratios = [row["ratio"] for row in own if "ratio" in row]
            ends = np.quantile(ratios, [0.1, 0.9]) if ratios else (np.nan, np.nan)
            refused = len(own) - len(ratios)
            print(f"| {case} | {trees} | {refused} of {len(own)} | {ends[0]:.2f}–{ends[1]:.2f} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("seconds", nargs="?", type=float, default=60)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    given = parser.parse_args()
    if given.what == "run":
        run(given.seconds, given.seed)
    else:
        table()
