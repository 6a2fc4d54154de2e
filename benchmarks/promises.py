"""How often promised thresholds break their promise, where the truth is known.

    python benchmarks/promises.py run benchmarks/results/promises.jsonl
    python benchmarks/promises.py table benchmarks/results/promises.jsonl

``threshold_for`` with delta .1 on the problems of ``confidence_coverage`` that have two classes:
scores by a forest of 100 trees (held out, out of bag, five folds), and scores that are given. The
promise is compared with the truth among 20,000 new cases with known probabilities. A promise that
cannot be made is not broken. A line is one draw of data and forest; its seed is drawn, and ``run``
adds draws until each cell has as many as were asked for.
"""

import argparse
import json
import secrets
import sys
import warnings
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from vennforest import CalibratedClassifier
from vennforest.decisions import threshold_for

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.confidence_coverage import draw, truth

PROBLEMS = ("logistic", "additive", "steps", "rare")
SOURCES = ("given", "holdout", "oob", "cv")
SIZES = (500, 2000)
TREES, NEW, DELTA = 100, 20_000, 0.1
PROMISES = {
    "precision .8": {"precision": 0.8},
    "precision .8 of both": {"precision": 0.8, "abstain": True},
    "recall .9": {"recall": 0.9},
    "10 false alarms of 1,000": {"false_alarms": 10, "rows": 1000},
    "cost": {"costs": (1, 4)},
}
COST = {"logistic": 0.65, "additive": 0.75, "steps": 0.65, "rare": 0.15}


def broken(name, found, scores, p, problem):
    """Return whether a promise is broken among new cases, None where there is none."""
    if found.threshold is None:
        return None
    yes = scores >= found.threshold
    if name == "recall .9":
        return bool(p[yes].sum() < 0.9 * p.sum())
    if name.startswith("10"):
        return bool((1 - p[yes]).sum() > 0.01 * len(p))
    if name == "cost":
        return bool((1 - p[yes]).sum() + 4 * p[~yes].sum() > COST[problem] * len(p))
    missed = yes.any() and p[yes].mean() < 0.8
    if found.lower is not None:
        no = scores <= found.lower
        missed |= no.any() and (1 - p[no]).mean() < 0.8
    return bool(missed)


def measure(problem, n, source, seed):
    """Return what one draw shows."""
    rng = np.random.default_rng(seed)
    X, y = draw(problem, n, rng)
    new = rng.standard_normal((NEW, 6))
    p = truth(problem, new)
    if source == "given":  # a score that rises with the probability only by and large
        noise = rng.standard_normal(n), rng.standard_normal(NEW)
        scores, asked = X[:, 0] + 0.5 * noise[0], new[:, 0] + 0.5 * noise[1]
        given = scores, y
    else:
        forest = RandomForestClassifier(TREES, random_state=seed % 2**31, min_samples_leaf=3)
        model = CalibratedClassifier(forest, method="platt", calibrate_on=source, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)
        asked = np.mean([m.predict_proba(new)[:, 1] for m in model.estimators_], axis=0)
        given = (model,)
    row = {"problem": problem, "n": n, "source": source, "seed": seed}
    for name, options in PROMISES.items():
        more = {"cost": COST[problem]} if name == "cost" else {}
        found = threshold_for(*given, delta=DELTA, **options, **more)
        known = found.threshold is not None
        flagged = float((asked >= found.threshold).mean()) if known else None
        row[name] = [broken(name, found, asked, p, problem), flagged]
    return row


def run(path, draws, sources):
    done = Counter()
    if path.exists():
        for line in path.read_text("utf-8").splitlines():
            row = json.loads(line)
            done[row["problem"], row["n"], row["source"]] += 1
    with path.open("a", encoding="utf-8") as file:
        for _ in range(draws):
            for cell in ((q, n, s) for s in sources for n in SIZES for q in PROBLEMS):
                if done[cell] < draws:
                    done[cell] += 1
                    print(json.dumps(measure(*cell, secrets.randbits(32))), file=file, flush=True)


def table(path):
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    limit = 0
    print("| source | n | " + " | ".join(PROMISES) + " |\n|---|---|" + "---|" * len(PROMISES))
    for source in SOURCES:
        for n in SIZES:
            cells = []
            for name in PROMISES:
                by_problem = defaultdict(list)
                for row in rows:
                    if row["source"] == source and row["n"] == n:
                        by_problem[row["problem"]].append(row[name][0])
                worst, made = 0.0, []
                for seen in by_problem.values():
                    share = sum(one is True for one in seen) / len(seen)
                    error = np.sqrt(DELTA * (1 - DELTA) / len(seen))
                    limit += share > DELTA + 2 * error
                    worst = max(worst, share)
                    made.append(sum(one is not None for one in seen) / len(seen))
                cells.append(f"{worst:.2f} ({np.mean(made):.2f})")
            print(f"| {source} | {n:,} | " + " | ".join(cells) + " |")
    count = Counter((r["problem"], r["n"], r["source"]) for r in rows)
    cells = len(count) * len(PROMISES)
    print(
        f"\n{min(count.values())} to {max(count.values())} draws a cell; {limit} of {cells} cells"
    )
    print(f"above {DELTA} by more than two standard errors.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("path", type=Path)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--sources", default=",".join(SOURCES))
    options = parser.parse_args()
    if options.what == "run":
        run(options.path, options.draws, options.sources.split(","))
    else:
        table(options.path)


if __name__ == "__main__":
    main()
