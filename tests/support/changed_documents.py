"""Calibrators as JSON, and what becomes of them when numbers and parts are changed."""

import json

import numpy as np

from vennforest.calibrators import METHODS, Venn
from vennforest.export import to_json

EXTREMES = [
    *(0.0, -0.0, 5e-324, -5e-324, 1e-300, 1e-17, 1.0, -1.0, 0.5, 2.0, 37.0, 700.0),
    *(1e17, -1e17, 1e100, -1e100, 1.0001e100, 1e154, 1e300, 1e308, -1e308),
]
ODD = [None, -1, 0, 1, 2, True, "x", "log", [], {}, [0.5, 0.2], [[1]], 2**63]
NEW = np.array([0.0, 5e-324, 1e-17, 0.2, 0.5, 0.999, 1.0])


def documents():
    """Yield names, and documents of calibrators of two and three classes with scores to ask."""
    rng = np.random.default_rng(1)
    s = rng.random(60)
    logits = np.log(s / (1 - s))
    vectors = rng.dirichlet(np.ones(3), 60)
    three = np.append(np.arange(3), rng.integers(0, 3, 57))
    two = (rng.random(60) < s).astype(int)
    rows = np.vstack([np.eye(3), np.full((1, 3), 1 / 3)])
    calibrators = dict(METHODS)
    calibrators["venn bins"] = lambda: Venn("bins")
    for name, make in calibrators.items():
        yield f"{name} of two", (to_json(make().fit(s, two)), NEW)
        yield f"{name} of three", (to_json(make().fit(vectors, three)), rows)
        if name not in ("none", "beta", "bostrom"):
            yield f"{name} of logits", (to_json(make().fit(logits, two)), (NEW - 0.5) * 1e308)


def places(part, path=()):
    """Yield the path of every part of a document that is no object or list, or an empty one."""
    for key, one in part.items() if isinstance(part, dict) else enumerate(part):
        if isinstance(one, dict | list) and one:
            yield from places(one, (*path, key))
        else:
            yield (*path, key)


def change_document(rng, text):
    """Return a document with one to three parts changed, mostly numbers, and what was done."""
    document = json.loads(text)
    every = list(places(document["calibrator"]))
    odd = rng.integers(5) == 0
    for path in rng.choice(len(every), min(len(every), int(rng.choice([1, 1, 2, 3]))), False):
        part = document["calibrator"]
        *way, last = every[path]
        for key in way:
            part = part[key]
        old = part[last]
        if odd:
            part[last] = ODD[rng.integers(len(ODD))]
        elif isinstance(old, float):
            new = [*EXTREMES, old * 1e10, -old, old / 1e10]
            part[last] = new[rng.integers(len(new))]
        elif isinstance(old, int) and not isinstance(old, bool):
            part[last] = old + int(rng.choice([-1, 1, 1000]))
    return json.dumps(document), "odd parts" if odd else "numbers"
