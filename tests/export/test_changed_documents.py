"""Changed documents of calibrators: refused in one sentence, or they give probabilities."""

import json

import numpy as np
import pytest

from vennforest._validation import InputError
from vennforest.calibrators import METHODS, Venn
from vennforest.export import from_json, to_json

EXTREMES = [
    *(0.0, -0.0, 5e-324, -5e-324, 1e-300, 1e-17, 1.0, -1.0, 0.5, 2.0, 37.0, 700.0),
    *(1e17, -1e17, 1e100, -1e100, 1.0001e100, 1e154, 1e300, 1e308, -1e308),
]
ODD = [None, -1, 0, 1, 2, True, "x", "log", [], {}, [0.5, 0.2], [[1]], 2**63]


def documents():
    """Yield documents of calibrators of two and three classes, and scores that they take."""
    rng = np.random.default_rng(1)
    s = rng.random(60)
    vectors = rng.dirichlet(np.ones(3), 60)
    three = np.append(np.arange(3), rng.integers(0, 3, 57))
    two = (rng.random(60) < s).astype(int)
    scores = np.array([0.0, 5e-324, 1e-17, 0.2, 0.5, 0.999, 1.0])
    for name, make in {**METHODS, "bins": lambda: Venn("bins")}.items():
        yield to_json(make().fit(s, two)), scores
        yield to_json(make().fit(vectors, three)), np.vstack([np.eye(3), np.full((1, 3), 1 / 3)])
        if name not in ("none", "beta", "bostrom"):
            yield to_json(make().fit(np.log(s / (1 - s)), two)), (scores - 0.5) * 1e308


def paths(part, path=()):
    """Yield the path of every part of a document."""
    for key, value in part.items() if isinstance(part, dict) else enumerate(part):
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from paths(value, (*path, key))


def change(rng, document):
    """Change one to three parts of a document, mostly numbers."""
    places = [path for path in paths(document) if path[0] == "calibrator" or rng.random() < 0.01]
    for index in rng.choice(len(places), int(rng.choice([1, 1, 1, 2, 3])), replace=False):
        *parents, last = places[index]
        part = document
        try:
            for key in parents:
                part = part[key]
            value = part[last]
            if isinstance(value, float):
                part[last] = [*EXTREMES, value * 1e10, -value, value / 1e10][rng.integers(24)]
            elif isinstance(value, int) and rng.random() < 0.5:
                part[last] = value + int(rng.choice([-1, 1, 1000]))
            elif rng.random() < 0.3:
                del part[last]
            else:
                part[last] = ODD[rng.integers(len(ODD))]
        except (KeyError, IndexError, TypeError):  # an earlier change has removed it
            continue


@pytest.mark.filterwarnings("ignore")
def test_a_changed_document_is_refused_or_gives_probabilities():
    cases, rng, n_read = list(documents()), np.random.default_rng(0), 0
    for _ in range(600):
        text, scores = cases[rng.integers(len(cases))]
        document = json.loads(text)
        change(rng, document)
        changed = json.dumps(document)
        try:
            calibrator = from_json(changed)
        except InputError as error:
            assert str(error).startswith("the calibrator")
            continue
        n_read += 1
        try:
            with np.errstate(all="ignore"):
                p = calibrator.predict_proba(scores)
        except ValueError:  # a kind of scores that these are not of
            continue
        assert ((p >= 0) & (p <= 1)).all(), changed
        np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-6)
    assert 50 < n_read < 500
