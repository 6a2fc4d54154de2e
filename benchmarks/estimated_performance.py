"""Coverage of estimated performance over drawn problems, with and without covariate shift.

    python benchmarks/estimated_performance.py run 200 [--seed SEED]   (goes on where it was)
    python benchmarks/estimated_performance.py factor 600 [--seed SEED]   (likewise)
    python benchmarks/estimated_performance.py table
    python benchmarks/estimated_performance.py real        (needs VENNFOREST_DATA)
    python benchmarks/estimated_performance.py picture

A draw is a process (linear or with interactions, a share of .1 to .5), a learner, a number of
training rows and of new ones, and whether new rows are drawn alike, from a part of the space
("covariate"), or with another relation of labels to rows ("concept"). The seed of the first run is
drawn and written beside the results; draw i has the seed (that seed, i).

``factor`` draws rows without shift alone, and asks how much wider than a sample's error the error
of the calibration has to count where the same rows trained the models (`SAME_ROWS`): its variance
times each of some factors, beside labelled rows of their own as the reference, which need none.
"""

import argparse
import json
import os
import secrets
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    accuracy_score,
    brier_score_loss,
    log_loss,
    precision_score,
    recall_score,
    roc_auc_score,
)

from vennforest import CalibratedClassifier, estimate_performance
from vennforest.performance import estimate

RESULTS = Path(__file__).parent / "results" / "estimated_performance.jsonl"
FACTORS = RESULTS.with_name("estimated_performance_factor.jsonl")
TRIED = (1.0, 1.15, 1.3, 1.45, 1.6, 1.8)
METRICS = ("accuracy", "precision", "recall", "brier", "log_loss", "auc")
SHIFTS = ("none", "covariate", "concept")


def process(rng):
    """Return a sampler of rows and labels: sample(n, shift)."""
    d = 6
    slope = rng.normal(size=d)
    cross = rng.normal(size=(d, d)) * rng.choice([0.0, 0.7])
    at = float(np.log(share := rng.uniform(0.1, 0.5)) - np.log1p(-share))
    way = rng.normal(size=d)
    way *= rng.uniform(0.5, 1.0) / np.linalg.norm(way)
    turned = rng.normal(size=d)

    def sample(n, shift):
        X = rng.normal(size=(n, d))
        if shift == "covariate":
            X += way
        of = slope if shift != "concept" else 0.7 * slope + 0.7 * turned
        raw = X @ of + np.einsum("ni,ij,nj->n", X, cross, X)
        y = rng.random(n) < 1 / (1 + np.exp(-(at + 1.2 * raw)))
        return X, y.astype(int)

    return sample


def realised(p, y):
    one = p[:, 1] > p[:, 0]
    return {
        "accuracy": accuracy_score(y, one),
        "precision": precision_score(y, one, zero_division=np.nan),
        "recall": recall_score(y, one, zero_division=np.nan),
        "brier": brier_score_loss(y, p[:, 1]),
        "log_loss": log_loss(y, p, labels=[0, 1]),
        "auc": roc_auc_score(y, p[:, 1]) if 0 < y.mean() < 1 else np.nan,
    }


def drawn_model(seed, number):
    """Return a generator, a sampler, what a draw is of, a fitted model and its rows."""
    rng = np.random.default_rng([seed, number])
    sample, n, m = process(rng), int(rng.choice([400, 1500])), int(rng.choice([200, 1500]))
    name = str(rng.choice(["forest", "logistic"]))
    estimator = (
        RandomForestClassifier(150, random_state=0)
        if name == "forest"
        else LogisticRegression(max_iter=500)
    )
    X, y = sample(n, "none")
    model = CalibratedClassifier(estimator, random_state=0).fit(X, y)
    found = {"seed": seed, "number": number, "learner": name, "n": n, "m": m}
    return rng, sample, found, model, X


def draw(seed, number):
    """Return one draw: what was estimated and what was."""
    _, sample, found, model, X = drawn_model(seed, number)
    m, found["shifts"] = found["m"], {}
    for shift in SHIFTS:
        new, labels = sample(m, shift)
        truth = realised(model.predict_proba(new), labels)
        ways = {"plain": estimate_performance(model, new, METRICS)}
        if shift == "covariate":
            ways["covariate"] = estimate_performance(
                model, new, METRICS, shift="covariate", reference=X
            )
        found["shifts"][shift] = {
            "truth": truth,
            **{way: {k: one[k] for k in METRICS} for way, one in ways.items()},
        }
    return found


def draw_factors(seed, number):
    """Return one draw without shift: what was, and the intervals that each factor gives."""
    _, sample, found, model, _ = drawn_model(seed, number)
    new, labels = sample(found["m"], "none")
    found["truth"] = realised(model.predict_proba(new), labels)
    kept = estimate.SAME_ROWS
    for factor in TRIED:
        estimate.SAME_ROWS = factor
        one = estimate_performance(model, new, METRICS)
        found[str(factor)] = {k: one[k] for k in METRICS}
    estimate.SAME_ROWS = kept
    apart = estimate_performance(model, new, METRICS, reference=sample(found["n"], "none"))
    found["apart"] = {k: apart[k] for k in METRICS}
    return found


def run(path, one, number, seed):
    done = [json.loads(line) for line in path.open()] if path.exists() else []
    seed = seed or (done[0]["seed"] if done else secrets.randbelow(10**6))
    for i in range(len(done), number):
        with path.open("a") as file:
            file.write(json.dumps(one(seed, i)) + "\n")


def inside(truth, intervals):
    """Return which measures that are defined lie in their intervals."""
    return [
        low - 1e-12 <= truth[metric] <= up + 1e-12
        for metric, (_, low, up) in intervals.items()
        if np.isfinite([truth[metric], low]).all()
    ]


def share(of_draws):
    """Return the share inside over draws, and its standard error, draws being independent."""
    each = np.array([np.mean(one) for one in of_draws if one])
    return f"{each.mean():.3f} ± {each.std() / np.sqrt(len(each)):.3f}"


def table():
    done = [json.loads(line) for line in RESULTS.open()]
    print(f"{len(done)} draws, seed {done[0]['seed']}: coverage (mean absolute error)\n")
    print("| new rows | estimate | " + " | ".join(METRICS) + " | all |")
    print("|---|---|" + "---|" * (len(METRICS) + 1))
    ways = [("none", "plain"), ("covariate", "plain"), ("covariate", "covariate")]
    for shift, way in [*ways, ("concept", "plain")]:
        parts = [one["shifts"][shift] for one in done]
        cells = []
        for metric in METRICS:
            some = [(part["truth"], {metric: part[way][metric]}) for part in parts]
            held = np.concatenate([inside(*one) for one in some])
            off = [abs(truth[metric] - found[metric][0]) for truth, found in some]
            cells.append(f"{np.mean(held):.3f} ({np.nanmean(off):.3f})")
        every = share([inside(part["truth"], part[way]) for part in parts])
        print(f"| {shift} | {way} | " + " | ".join(cells) + f" | {every} |")
    print("\n| learner, training rows, new rows | draws | no shift | covariate shift, corrected |")
    print("|---|---|---|---|")
    for cell in sorted({(one["learner"], one["n"], one["m"]) for one in done}):
        own = [one["shifts"] for one in done if (one["learner"], one["n"], one["m"]) == cell]
        cells = [
            share([inside(one[shift]["truth"], one[shift][way]) for one in own])
            for shift, way in (("none", "plain"), ("covariate", "covariate"))
        ]
        print(f"| {cell[0]}, {cell[1]}, {cell[2]} | {len(own)} | " + " | ".join(cells) + " |")
    done = [json.loads(line) for line in FACTORS.open()]
    print(f"\n{len(done)} other draws without shift, seed {done[0]['seed']}\n")
    print("| factor | coverage | forest | logistic | 400 | 1500 |\n|---|---|---|---|---|---|")
    for factor in (*map(str, TRIED), "apart"):
        cells = [
            share([inside(one["truth"], one[factor]) for one in done if where in one.values()])
            for where in ("forest", "logistic")
        ]
        cells += [
            share([inside(one["truth"], one[factor]) for one in done if one["n"] == n])
            for n in (400, 1500)
        ]
        every = share([inside(one["truth"], one[factor]) for one in done])
        print(f"| {factor} | {every} | " + " | ".join(cells) + " |")


def places():
    """Yield tables split by place: name, rows and labels there, rows and labels elsewhere."""
    folder = Path(os.environ["VENNFOREST_DATA"])

    def read(name):
        found = pd.read_csv(folder / f"{name}.csv.gz")
        return found.drop(columns="target"), pd.factorize(found["target"], sort=True)[0]

    def numbers(X):
        made = X.copy()
        for name in made.select_dtypes(exclude="number"):
            made[name] = pd.factorize(made[name], sort=True)[0]
        return made.to_numpy(np.float64)

    X, y = read("adult")
    here = (X["native-country"] == "United-States").to_numpy()
    X = numbers(X.drop(columns="native-country"))
    yield (
        "adult: United States, other countries",
        X[here][:5000],
        y[here][:5000],
        X[~here],
        y[~here],
    )
    X, y = read("covtype_30k")
    area = X[[f"Wilderness_Area{i}" for i in range(1, 5)]].to_numpy().argmax(axis=1)
    X, y = numbers(X.loc[:, :"Horizontal_Distance_To_Fire_Points"]), (y == 1).astype(int)
    old, new = area == 0, area == 2
    yield "covtype: one wilderness area, another", X[old][:5000], y[old][:5000], X[new], y[new]
    (X, y), (new, labels) = read("heart_c"), read("heart_h")
    both = numbers(pd.concat([X, new.set_axis(X.columns, axis=1)], ignore_index=True))
    yield "heart: Cleveland, Budapest", both[: len(y)], y, both[len(y) :], labels
    (X, y), (new, labels) = read("kc1"), read("kc2")
    yield "defects: project KC1, project KC2", numbers(X), y, numbers(new), labels


def real():
    print("| set | estimate | " + " | ".join(METRICS) + " |")
    print("|---|---|" + "---|" * len(METRICS))
    for name, X, y, new, labels in places():
        model = CalibratedClassifier(RandomForestClassifier(150, random_state=0), random_state=0)
        model.fit(X, y)
        truth = realised(model.predict_proba(new), labels)
        print(f"| {name} | observed | " + " | ".join(f"{truth[k]:.3f}" for k in METRICS) + " |")
        for shift in (None, "covariate"):
            try:
                found = estimate_performance(model, new, METRICS, shift=shift, reference=X)
            except ValueError as error:
                print(f"| | {shift} | refused: {error} |" + " |" * (len(METRICS) - 1))
                continue
            cells = [
                f"{found[k][0]:.3f} ({found[k][1]:.3f}–{found[k][2]:.3f})"
                + ("" if found[k][1] <= truth[k] <= found[k][2] else " ✗")
                for k in METRICS
            ]
            print(f"| | {shift or 'plain'} | " + " | ".join(cells) + " |")


def picture(path):
    import matplotlib.pyplot as plt

    done = [json.loads(line) for line in RESULTS.open()]
    figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), sharex=True, sharey=True)
    ways = [("none", "plain"), ("covariate", "covariate"), ("concept", "plain")]
    titles = ["no shift", "covariate shift", "concept shift: not seen"]
    for ax, (shift, way), title in zip(axes, ways, titles, strict=True):
        truth = np.array([one["shifts"][shift]["truth"]["accuracy"] for one in done])
        middle, low, high = np.array([one["shifts"][shift][way]["accuracy"] for one in done]).T
        inside = (low <= truth) & (truth <= high)
        for some, color in ((inside, "C0"), (~inside, "C3")):
            ends = [(middle - low)[some], (high - middle)[some]]
            ax.errorbar(truth[some], middle[some], ends, fmt=".", color=color, lw=0.7, ms=4)
        ax.plot([0.4, 1], [0.4, 1], color="0.5", lw=0.8)
        ax.set_title(f"{title} ({inside.mean():.0%} inside)", fontsize=9)
        ax.set_xlabel("observed accuracy")
    axes[0].set_ylabel("estimated accuracy")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["run", "factor", "table", "real", "picture"])
    parser.add_argument("number", type=int, nargs="?", default=200)
    parser.add_argument("--seed", type=int, default=None)
    given = parser.parse_args()
    if given.what == "run":
        run(RESULTS, draw, given.number, given.seed)
    elif given.what == "factor":
        run(FACTORS, draw_factors, given.number, given.seed)
    else:
        {
            "table": table,
            "real": real,
            "picture": lambda: picture("docs/pictures/estimated-performance.svg"),
        }[given.what]()
