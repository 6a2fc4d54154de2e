"""Losses and widths of the ways to score a new object out of bag, over the named data sets.

``python -m experiments.studies.joined --data-dir DATA_DIR [--results FILE]`` adds one line of JSON
a data set to the file, goes on where it was stopped, and prints the table of ``docs/joined.md``.
"""

import argparse
import json
import os
import warnings
from pathlib import Path

import numpy as np
from experiments.studies.validity.datasets import table
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import KFold

from vennforest import CalibratedClassifier
from vennforest.joined import HonestForest
from vennforest_experiments.datasets import available

MOST_ROWS = 2000
TREES = 100

SETTINGS = {
    "all trees": {"subforest": "all", "merge": "smooth"},
    "one draw": {"subforest": "exchangeable", "merge": "smooth"},
    "ten draws": {"subforest": "exchangeable", "merge": "smooth", "n_draws": 10},
    "joined": {"subforest": "joined", "merge": "smooth"},
    "joined, five draws": {"subforest": "joined", "merge": "smooth", "n_draws": 5},
    "honest forest": {"calibrate_on": HonestForest(), "merge": "smooth"},
    "default: all trees, pooled": {},
    "joined, pooled": {"subforest": "joined"},
}


def log_loss(p, y):
    """Return the mean log loss, a certainty that fails counting 34.5."""
    return float(-np.log(np.maximum(p[np.arange(len(y)), y], 1e-15)).mean())


def brier_score(p, y):
    """Return the mean squared error of the probability of the second class, or of all summed."""
    squares = ((p - np.eye(p.shape[1])[y]) ** 2).sum(axis=1)
    return float(squares.mean() / (2 if p.shape[1] == 2 else 1))


def measure(X, y):
    """Return {setting: [log loss, Brier score, mean width, share of rows widened]}."""
    rng = np.random.default_rng(0)
    order = rng.permutation(len(y))[:MOST_ROWS]
    X, y = X[order], y[order]
    often = np.flatnonzero(np.bincount(y) >= 5)
    X, y = X[np.isin(y, often)], np.searchsorted(often, y[np.isin(y, often)])
    found = {name: [] for name in SETTINGS}
    for train, test in KFold(3, shuffle=True, random_state=0).split(X):
        if len(np.unique(y[train])) < len(often):
            continue
        for name, options in SETTINGS.items():
            model = CalibratedClassifier(
                RandomForestClassifier(TREES, random_state=0), random_state=0, **options
            )
            try:
                model.fit(X[train], y[train])
            except ValueError:  # honest trees need every class among those that they grow on
                found[name] = None
                break
            p, m = model.predict_proba(X[test]), model.predict_multiprobability(X[test])
            widened = 0.0 if m.widened is None else float(m.widened.mean())
            width = float((m.upper - m.lower).mean())
            found[name].append([log_loss(p, y[test]), brier_score(p, y[test]), width, widened])
        if None in found.values():
            break
    means = {name: np.mean(rows, axis=0).tolist() for name, rows in found.items() if rows}
    whole = None not in found.values()
    return {"k": len(often), "n": len(y), "settings": means if whole else None}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--results", type=Path, default=Path("joined.jsonl"))
    args = parser.parse_args()
    os.environ["VENNFOREST_DATA"] = args.data_dir
    lines = args.results.read_text().splitlines() if args.results.exists() else []
    done = {one["name"]: one for one in map(json.loads, lines)}
    for entry in available(data_dir=args.data_dir):
        if entry.name in done:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            done[entry.name] = {"name": entry.name, **measure(*table(entry.name))}
        with args.results.open("a") as file:
            file.write(json.dumps(done[entry.name]) + "\n")
    for title, chosen in (
        ("two classes", [o for o in done.values() if o["settings"] and o["k"] == 2]),
        ("more classes", [o for o in done.values() if o["settings"] and o["k"] > 2]),
    ):
        print(f"\n{len(chosen)} data sets with {title}:\n")
        print("| | log loss | Brier score | width | rows widened |\n|---|---|---|---|---|")
        for name in SETTINGS:
            loss, brier, width, widened = np.mean([o["settings"][name] for o in chosen], axis=0)
            print(f"| {name} | {loss:.4f} | {brier:.4f} | {width:.4f} | {widened:.0%} |")


if __name__ == "__main__":
    main()
