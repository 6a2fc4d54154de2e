"""Warnings at calls without a fault: the honest twins of tests/hazards, on drawn data.

    python benchmarks/honest_calls.py run 280 [--seed SEED]   (so many seconds; goes on)
    python benchmarks/honest_calls.py table

Each round calls every twin once. The seed of the first run is drawn and written beside the results;
twin t of round r has the seed (that seed, r, t).
"""

import argparse
import json
import secrets
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.stats import binomtest

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from hazards.drawn import DRAWN
from hazards.table import HAZARDS

RESULTS = Path(__file__).parent / "results" / "honest_calls.jsonl"
TWINS = [hazard for hazard in (*HAZARDS, *DRAWN) if hazard.honest is not None]


def spoken(hazard, rng):
    """Return the first warning or error of an honest call, None where there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        try:
            hazard.honest(rng)
        except Exception as error:
            return f"{type(error).__name__}: {error}"[:200]
    return None


def run(seconds, seed):
    """Go on with the rounds for so many seconds."""
    end = time.monotonic() + seconds
    known = [json.loads(line) for line in RESULTS.open()] if RESULTS.exists() else []
    seed = known[0]["seed"] if known else seed
    done = {(one["round"], one["twin"]) for one in known}
    with RESULTS.open("a") as out:
        for number in range(10_000):
            for t, hazard in enumerate(TWINS):
                if (number, hazard.name) in done:
                    continue
                if time.monotonic() > end:
                    return
                found = spoken(hazard, np.random.default_rng([seed, number, t]))
                row = {"seed": seed, "round": number, "twin": hazard.name, "found": found}
                out.write(json.dumps(row) + "\n")


def table():
    """Print how often each twin was warned of."""
    rows = [json.loads(line) for line in RESULTS.open()]
    print("| honest twin of | calls | warned | at most (95%) |\n|---|---|---|---|")
    for hazard in TWINS:
        own = [row for row in rows if row["twin"] == hazard.name]
        count = sum(row["found"] is not None for row in own)
        if own:
            high = binomtest(count, len(own)).proportion_ci(0.9, "exact").high
            print(f"| {hazard.name} | {len(own)} | {count} | {high:.2%} |")
    for text in sorted({row["found"] for row in rows if row["found"]}):
        print(f"\n- {text}")


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
