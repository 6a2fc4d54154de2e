"""Warnings at calls without a fault: the honest twins of tests/hazards, on drawn data.

    python benchmarks/honest_calls.py run 280 [--seed SEED]   (so many seconds; goes on)
    python benchmarks/honest_calls.py table

The twin with the least processor time so far is called next, until each has had 1,000 draws: cheap
ones get there first. Nine draws of ten leave out the pool of point calibrators (``merge="log"``),
which takes four fifths of a fit and comes after all checks. The seed of the first run is drawn and
written beside the results; draw r of a twin has the seed (that seed, r, checksum of its name).
"""

import argparse
import json
import secrets
import sys
import time
import warnings
import zlib
from pathlib import Path

import numpy as np
from scipy.stats import binomtest

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from hazards.entrances import HAZARDS
from hazards.table import SETTINGS

RESULTS = Path(__file__).parent / "results" / "honest_calls.jsonl"
MOST = 1000

ENOUGH = 600
"""Draws in which a false alarm in two hundred would be seen with a chance of 95%."""

TWINS = [hazard for hazard in HAZARDS if hazard.honest is not None]


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
    """Go on with the draws for so many seconds."""
    end = time.monotonic() + seconds
    known = [json.loads(line) for line in RESULTS.open()] if RESULTS.exists() else []
    seed = known[0]["seed"] if known else seed
    spent = dict.fromkeys((hazard.name for hazard in TWINS), 0.0)
    calls = dict.fromkeys(spent, 0)
    for row in known:
        if row["twin"] in spent:
            spent[row["twin"]] += row["seconds"]
            calls[row["twin"]] += 1
    with RESULTS.open("a", buffering=1) as out:
        while time.monotonic() < end and min(calls.values()) < MOST:
            t = min(
                (t for t, one in enumerate(TWINS) if calls[one.name] < MOST),
                key=lambda t: spent[TWINS[t].name],
            )
            name = TWINS[t].name
            SETTINGS.clear()
            if calls[name] % 10:
                SETTINGS["merge"] = "log"
            start = time.process_time()
            found = spoken(
                TWINS[t], np.random.default_rng([seed, calls[name], zlib.crc32(name.encode())])
            )
            took = round(time.process_time() - start, 4)
            row = {"seed": seed, "draw": calls[name], "twin": name, "seconds": took, "found": found}
            out.write(json.dumps(row) + "\n")
            spent[name] += took
            calls[name] += 1


def summary():
    """Return how many calls there are of how many twins, and the bounds that follow (95%)."""
    rows = [json.loads(line) for line in RESULTS.open()]
    by_twin = {hazard.name: [row for row in rows if row["twin"] == hazard.name] for hazard in TWINS}
    counts = [len(own) for own in by_twin.values()]
    warned = {n: sum(row["found"] is not None for row in own) for n, own in by_twin.items()}
    high = binomtest(sum(warned.values()), sum(counts)).proportion_ci(0.9, "exact").high
    return {
        "calls": sum(counts),
        "twins": len(counts),
        "warned": {name: count for name, count in warned.items() if count},
        "high": high,
        "enough": sum(count >= ENOUGH for count in counts),
        "fewest": min(counts),
    }


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
