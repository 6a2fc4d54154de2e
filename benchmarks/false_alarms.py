"""Alarms of `vennforest watch` on shuffled real tables, on which nothing changes.

    python benchmarks/false_alarms.py run 230 [--seed SEED]   (so many seconds; goes on)
    python benchmarks/false_alarms.py table                   (of the finished rounds)

Each round shuffles every table (of ``VENNFOREST_DATA``, 1,600 rows at most), fits a model
to the first half as ``vennforest fit`` does, and watches the other half twice, with labels and
without, each at 1 in 20. The seed of the first run is drawn and written beside the results; table
t of round r has the seed (that seed, r, t).
"""

import argparse
import json
import os
import secrets
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from vennforest import load
from vennforest.commands.fit import fit_file
from vennforest.commands.model_rows import rows_of
from vennforest.commands.signatures import Fit
from vennforest.monitoring import Monitor
from vennforest.tables.stream import TableFile

RESULTS = Path(__file__).parent / "results" / "false_alarms.jsonl"
TEXT = ("tictactoe", "vote", "breast_cancer", "kr_vs_kp", "splice", "car")
BOTH = ("adult", "colic", "credit_a", "german")
NUMBERS = ("diabetes", "segment", "haberman", "yeast")
TABLES = (*TEXT, *BOTH, *NUMBERS)
ROWS, TREES, ALPHA = 1600, 25, 0.05


def stream(name, seed):
    """Return what a model of half a shuffled table finds in the other half."""
    folder = Path(os.environ["VENNFOREST_DATA"])
    rng = np.random.default_rng(seed)
    table = pd.read_csv(folder / f"{name}.csv.gz", dtype=str, keep_default_na=False)
    table = table.iloc[rng.permutation(len(table))[:ROWS]]
    half, number = len(table) // 2, int(rng.integers(2**31))
    found = {"rows": len(table) - half}
    with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        train, new, model = (Path(place) / one for one in ("train.csv", "new.csv", "model.skops"))
        table[:half].to_csv(train, index=False)
        table[half:].to_csv(new, index=False)
        fit_file(Fit(train, "target", model, trees=TREES, seed=number, jobs=1))
        fitted, later = load(model), pd.read_csv(new)
        later = later[later["target"].isin(fitted.classes_.tolist())]  # a rare class may be new
        rows = rows_of(fitted, TableFile(new), ["target"])
        X, y = rows.read(later[rows.columns]), later["target"].to_numpy()
        for watch in ("labels", "objects"):
            monitor = Monitor(fitted, watch=watch, alpha=ALPHA, random_state=number)
            monitor.fit().update(X, y if watch == "labels" else None)
            found[watch] = {
                "alarm": monitor.alarm_,
                "seen": monitor.n_seen_,
                "evidence": round(float(monitor.max_evidence_), 3),
            }
    return found


def read():
    return [json.loads(line) for line in RESULTS.open()] if RESULTS.exists() else []


def run(seconds, seed):
    end, done = time.monotonic() + seconds, read()
    seed = seed or (done[0]["seed"] if done else secrets.randbelow(10**6))
    place = len(done)
    while time.monotonic() < end:
        turn, t = divmod(place, len(TABLES))
        found = {"seed": seed, "round": turn, "table": TABLES[t]}
        found |= stream(TABLES[t], [seed, turn, t])
        with RESULTS.open("a") as file:
            file.write(json.dumps(found) + "\n")
        place += 1


def table():
    done = read()
    rounds = len(done) // len(TABLES)
    done = done[: rounds * len(TABLES)]
    print(f"{rounds} rounds of {len(TABLES)} tables, seed {done[0]['seed']}")
    print("| tables | streams | alarms with labels | alarms without labels |")
    print("|---|---|---|---|")
    kinds = [("text alone", TEXT), ("text and numbers", BOTH), ("numbers", NUMBERS)]
    for what, names in [*kinds, ("all", TABLES)]:
        mine = [one for one in done if one["table"] in names]
        cells = []
        for watch in ("labels", "objects"):
            n = sum(one[watch]["alarm"] is not None for one in mine)
            low, high = binomtest(n, len(mine)).proportion_ci(0.95)
            cells.append(f"{n} ({n / len(mine):.3f}; {low:.3f}–{high:.3f})")
        print(f"| {what} | {len(mine)} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("seconds", nargs="?", type=float, default=60)
    parser.add_argument("--seed", type=int)
    given = parser.parse_args()
    run(given.seconds, given.seed) if given.what == "run" else table()
