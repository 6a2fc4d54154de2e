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

RESULTS = Path(__file__).parent / "results" / "honest_calls.json"
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


def read():
    """Return the seed, None before the first run, and what is known of each twin by its name."""
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"seed": None, "twins": {}}
    none = {"calls": 0, "seconds": 0.0, "found": []}
    return known["seed"], {one.name: known["twins"].get(one.name, dict(none)) for one in TWINS}


def run(seconds, seed):
    """Go on with the draws for so many seconds."""
    end = time.monotonic() + seconds
    begun, known = read()
    seed = seed if begun is None else begun
    try:
        while time.monotonic() < end:
            left = [one for one in TWINS if known[one.name]["calls"] < MOST]
            if not left:
                break
            hazard = min(left, key=lambda one: known[one.name]["seconds"])
            own = known[hazard.name]
            SETTINGS.clear()
            if own["calls"] % 10:
                SETTINGS["merge"] = "log"
            start = time.process_time()
            rng = np.random.default_rng([seed, own["calls"], zlib.crc32(hazard.name.encode())])
            found = spoken(hazard, rng)
            own["found"] = own["found"] if found is None else [*own["found"], found]
            own["seconds"] = round(own["seconds"] + time.process_time() - start, 2)
            own["calls"] += 1
    finally:
        RESULTS.write_text(json.dumps({"seed": seed, "twins": known}, indent=1) + "\n")


def summary():
    """Return how many calls there are of how many twins, and the bounds that follow (95%)."""
    _, known = read()
    counts = [own["calls"] for own in known.values()]
    warned = {name: len(own["found"]) for name, own in known.items() if own["found"]}
    high = binomtest(sum(warned.values()), sum(counts)).proportion_ci(0.9, "exact").high
    return {
        "calls": sum(counts),
        "twins": len(counts),
        "warned": warned,
        "high": high,
        "enough": sum(count >= ENOUGH for count in counts),
        "fewest": min(counts),
    }


def table():
    """Print how often each twin was warned of."""
    _, known = read()
    print("| honest twin of | calls | warned | at most (95%) |\n|---|---|---|---|")
    for name, own in known.items():
        calls, count = own["calls"], len(own["found"])
        if calls:
            high = binomtest(count, calls).proportion_ci(0.9, "exact").high
            print(f"| {name} | {calls} | {count} | {high:.2%} |")
    for text in sorted({text for own in known.values() for text in own["found"]}):
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
