"""Changed numbers in documents: refused, or probabilities, whatever other programs would read."""

import json
import random

import numpy as np
import pytest

from vennforest._validation import InputError
from vennforest.calibrators import METHODS, Calibrator
from vennforest.export import json_form

EXTREMES = [
    *(0.0, -0.0, 5e-324, -5e-324, 1e-300, 1e-17, 1.0, -1.0, 0.5, 2.0, 37.0, 700.0),
    *(1e17, -1e17, 1e100, -1e100, 1.0001e100, 1e154, 1e300, 1e308, -1e308),
]
NEW = np.array([0.0, 5e-324, 1e-17, 0.2, 0.5, 0.999, 1.0])


def numbers(part, path=()):
    """Yield the path of every number of a document."""
    for key, one in part.items() if isinstance(part, dict) else enumerate(part):
        if isinstance(one, dict | list):
            yield from numbers(one, (*path, key))
        elif isinstance(one, float):
            yield (*path, key)


def documents():
    rng = np.random.default_rng(1)
    s = rng.random(60)
    logits = np.log(s / (1 - s))
    vectors = rng.dirichlet(np.ones(3), 60)
    three = np.append(np.arange(3), rng.integers(0, 3, 57))
    two = (rng.random(60) < s).astype(int)
    rows = np.vstack([np.eye(3), np.full((1, 3), 1 / 3)])
    for name, method in METHODS.items():
        yield method.calibrator().fit(s, two).to_json(), NEW
        yield method.calibrator().fit(vectors, three).to_json(), rows
        if name not in ("none", "beta", "bostrom"):
            yield method.calibrator().fit(logits, two).to_json(), (NEW - 0.5) * 1e308


def change(cases, source, times):
    """Return how many changed documents were read, and how many of these answered."""
    read = 0
    for _ in range(times):
        text, new, places = source.choice(cases)
        document = json.loads(text)
        for path in source.sample(places, min(len(places), source.choice([1, 1, 2, 3]))):
            part = document["calibrator"]
            for key in path[:-1]:
                part = part[key]
            old = part[path[-1]]
            part[path[-1]] = source.choice([*EXTREMES, old * 1e10, -old, old / 1e10])
        try:
            calibrator = Calibrator.from_json(json.dumps(document))
        except InputError:
            continue
        read += 1
        try:
            with np.errstate(all="ignore"):
                p = calibrator.predict_proba(new)
        except ValueError:  # a kind of scores that these are not of
            continue
        assert ((p >= 0) & (p <= 1)).all(), json.dumps(document)
        np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-6)
    return read


@pytest.mark.filterwarnings("ignore")
def test_no_changed_number_gives_nan(monkeypatch):
    monkeypatch.setattr(json_form, "_alike", lambda own, given: True)
    cases = [
        (text, new, list(numbers(json.loads(text)["calibrator"]))) for text, new in documents()
    ]
    cases = [case for case in cases if case[2]]
    assert change(cases, random.Random(0), 400) > 100
