"""Several labels: are the probabilities, bounds and intervals of each label right?

    python benchmarks/multilabel.py run 40       (goes on where it was)
    python benchmarks/multilabel.py table
    python benchmarks/multilabel.py picture

Four labels of shares from .05 to .5 with known probabilities, which depend on each other; a forest
of 100 trees. The seed is drawn in the first run; draw i has the seed (that seed, i).
"""

import json
import secrets
import sys
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import log_loss

from vennforest import CalibratedClassifier
from vennforest.metrics import calibration_error

RESULTS = Path(__file__).parent / "results" / "multilabel.jsonl"
AT = np.array([-3.5, -2.0, -1.0, 0.0])


def draw(rng, n, slope):
    X = rng.normal(size=(n, 6))
    p = 1 / (1 + np.exp(-(AT + X @ slope)))
    return X, (rng.random(p.shape) < p).astype(int), p


def one(seed, i):
    rng = np.random.default_rng([seed, i])
    slope = 0.8 * rng.normal(size=(6, 4)) + 0.5 * rng.normal(size=(6, 1))
    X, Y, _ = draw(rng, n := int(rng.choice([500, 2000])), slope)
    forest = RandomForestClassifier(100, random_state=0)
    model = CalibratedClassifier(forest, random_state=0).fit(X, Y)
    new, labels, _ = draw(rng, 4000, slope)
    p, interval = model.predict_proba(new), model.predict_confidence(new)
    raw = np.column_stack([one[:, 1] for one in forest.fit(X, Y).predict_proba(new)])
    bounds = model.predict_multiprobability(new)
    found = []
    for j in range(4):
        y = labels[:, j]
        row = {"share": float(y.mean()), "width": float((bounds.upper - bounds.lower)[:, j].mean())}
        for name, q in (("raw", raw[:, j]), ("p", p[:, j])):
            q = np.clip(q, 1e-3, 1 - 1e-3)
            row[name] = [100 * float(calibration_error(y, q)), float(log_loss(y, q))]
        # The frequency among rows of like probability, in tenths of the rows.
        tenth = np.argsort(np.argsort(p[:, j])) * 10 // len(y)
        inside = [
            interval.lower[at, j].mean() <= y[at].mean() <= interval.upper[at, j].mean()
            for at in (tenth == t for t in range(10))
        ]
        row["inside"] = float(np.mean(inside))
        found.append(row)
    return {"seed": seed, "number": i, "n": n, "labels": found}


def read():
    return [json.loads(line) for line in RESULTS.open()] if RESULTS.exists() else []


def run(number):
    done = read()
    seed = done[0]["seed"] if done else secrets.randbelow(10**6)
    for i in range(len(done), number):
        with RESULTS.open("a") as file:
            file.write(json.dumps(one(seed, i)) + "\n")


def cells(done, n):
    for j in range(4):
        some = [draw["labels"][j] for draw in done if draw["n"] == n]
        mean = {key: np.mean([row[key] for row in some], axis=0) for key in some[0]}
        yield mean


def table():
    done = read()
    print(f"{len(done)} draws, seed {done[0]['seed']}")
    print(
        "| n | share | error in points, forest | calibrated | log loss, forest | calibrated |",
        end="",
    )
    print(" bounds apart | tenths inside the interval |\n|" + "---|" * 8)
    for n in (500, 2000):
        for mean in cells(done, n):
            (before, loss), (after, now) = mean["raw"], mean["p"]
            print(
                f"| {n:,} | {mean['share']:.2f} | {before:.1f} | {after:.1f} | {loss:.3f} | "
                f"{now:.3f} | {mean['width']:.3f} | {mean['inside']:.2f} |"
            )


def picture(path="docs/pictures/multilabel.svg"):
    import matplotlib.pyplot as plt

    done = read()
    figure, axes = plt.subplots(1, 2, figsize=(7, 3), sharey=True)
    for ax, n in zip(axes, (500, 2000), strict=True):
        found = list(cells(done, n))
        at = np.arange(4)
        ax.bar(at - 0.2, [mean["raw"][0] for mean in found], 0.38, color="0.7", label="forest")
        ax.bar(at + 0.2, [mean["p"][0] for mean in found], 0.38, label="calibrated")
        ax.set_xticks(at, [f"{mean['share']:.0%}" for mean in found])
        ax.set_xlabel("share of the label")
        ax.set_title(f"{n:,} rows", fontsize=9)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("calibration error, points")
    axes[0].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    if sys.argv[1] == "run":
        run(int(sys.argv[2]))
    else:
        {"table": table, "picture": picture}[sys.argv[1]]()
