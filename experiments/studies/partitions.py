"""What bags by partition cost: one forest on all rows beside forests grown on partitions of them.

``python -m experiments.studies.partitions [-o FILE]`` prints a table of docs/results/scale.md:
accuracy, log loss, Brier score and mean width of the bounds on rows that were held out, over 1 to
64 partitions drawn at random; 1 is the ordinary forest, out of bag by its bootstrap samples.
"""

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np
from attrs import evolve
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import train_test_split

from vennforest import CalibratedClassifier
from vennforest.sources import OutOfBag, Partitions
from vennforest_experiments.datasets import load

DATASETS = ("adult", "covtype_30k", "letter")
PARTITIONS = (1, 2, 4, 8, 16, 32, 64)
TREES = 64


def measure(name, X, y, n_partitions, seed):
    """Return a record of one forest of one split."""
    X, X_new, y, y_new = train_test_split(X, y, test_size=1 / 3, random_state=seed)
    source = Partitions(n_partitions) if n_partitions > 1 else OutOfBag()
    forest = RandomForestClassifier(TREES, random_state=seed)
    start = time.perf_counter()
    model = CalibratedClassifier(forest, calibrate_on=source, random_state=seed).fit(X, y)
    seconds = time.perf_counter() - start
    p = model.predict_proba(X_new)
    codes = np.searchsorted(model.classes_, y_new)
    truth = np.eye(len(model.classes_))[codes]
    best, rows = p.argmax(axis=1), np.arange(len(p))
    widths = {}
    for subforest in ("all", "exchangeable"):
        # The same forest, asked in the other way.
        folds = [
            evolve(fold, scorer=evolve(fold.scorer, subforest=subforest))
            for fold in model._state.folds
        ]
        other = clone(model)._calibrate(
            model.classes_, folds, "Partitions", subforest, n_rows=len(X)
        )
        bounds = other.predict_multiprobability(X_new)
        widths[subforest] = float((bounds.upper - bounds.lower)[rows, best].mean())
    own = model.recalibrate("none").predict_proba(X_new)
    return {
        "data": name,
        "rows": len(X),
        "partitions": n_partitions,
        "seed": seed,
        "accuracy": accuracy_score(codes, best),
        "log_loss": log_loss(truth, p),
        "brier": float(((p - truth) ** 2).sum(axis=1).mean()),
        "forest_brier": float(((own - truth) ** 2).sum(axis=1).mean()),
        "width": widths["all"],
        "width_exchangeable": widths["exchangeable"],
        "nodes": int(sum(tree.tree_.node_count for tree in model.estimator_.estimators_)),
        "fit_seconds": round(seconds, 2),
    }


def numbers(X):
    """Return a table as numbers, categories as theirs."""
    if isinstance(X, np.ndarray):
        return X
    coded = {n: c.cat.codes if c.dtype.name == "category" else c for n, c in X.items()}
    return np.column_stack([np.asarray(c, np.float32) for c in coded.values()])


def run(output, splits):
    """Measure what is not in the file yet."""
    records = []
    if output.exists():
        records = [json.loads(line) for line in output.read_text().splitlines()]
    done = {(r["data"], r["partitions"], r["seed"]) for r in records}
    for seed in range(splits):
        for name in DATASETS:
            data = load(name, os.environ.get("VENNFOREST_DATA"))
            X, y = numbers(data.X), np.asarray(data.y)
            for n_partitions in PARTITIONS:
                if (name, n_partitions, seed) not in done:
                    records.append(measure(name, X, y, n_partitions, seed))
                    with output.open("a") as file:
                        file.write(json.dumps(records[-1]) + "\n")
    return records


def table(records):
    """Return the rows of a Markdown table: means over the splits."""
    lines = [
        "| data | rows | partitions | accuracy | log loss | Brier score | of the forest alone | "
        "width, all trees | width, exchangeable | nodes |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    names = ("accuracy", "log_loss", "brier", "forest_brier", "width", "width_exchangeable")
    for name in DATASETS:
        for n_partitions in PARTITIONS:
            some = [r for r in records if (r["data"], r["partitions"]) == (name, n_partitions)]
            if some:
                means = [f"{np.mean([r[key] for r in some]):.3f}" for key in names]
                nodes = np.mean([r["nodes"] for r in some])
                lines.append(
                    f"| {name} | {some[0]['rows']:,} | {n_partitions} | {' | '.join(means)} | "
                    f"{nodes:,.0f} |"
                )
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=Path("partitions.jsonl"))
    parser.add_argument("--splits", type=int, default=2)
    given = parser.parse_args()
    print("\n".join(table(run(given.output, given.splits))))


if __name__ == "__main__":
    main()
