"""Calibrators as JSON: read back to the last bit, read elsewhere, and refused when altered."""

import json
import random
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError

from support.exported import draw, of_logits, of_probabilities
from vennforest import PlattScaling, VennAbers
from vennforest._validation import InputError
from vennforest.calibrators import METHODS, IsotonicCalibration, Venn
from vennforest.calibrators.base import has_bounds
from vennforest.export import from_json, to_json

READER = Path(__file__).parents[2] / "examples" / "readers" / "calibrator.js"


def same_after_reading(calibrator, new):
    text = to_json(calibrator)
    read = from_json(text)
    assert type(read) is type(calibrator)
    assert read.get_params(deep=False).keys() == calibrator.get_params(deep=False).keys()
    assert read.classes_.dtype.kind == calibrator.classes_.dtype.kind
    assert_array_equal(read.classes_, calibrator.classes_)
    assert_array_equal(read.predict_proba(new), calibrator.predict_proba(new))
    if hasattr(calibrator, "predict_multiprobability"):
        for one, other in zip(
            *(c.predict_multiprobability(new) for c in (read, calibrator)), strict=True
        ):
            assert_array_equal(one.lower, other.lower)
            assert_array_equal(one.upper, other.upper)
    names = {name for name in vars(calibrator) if name.endswith("_") and name[0] != "_"}
    assert names <= set(vars(read))
    assert to_json(read) == text
    return read


@pytest.mark.parametrize("calibrator", list(of_probabilities()), ids=str)
def test_two_classes_of_probabilities(calibrator):
    same_after_reading(calibrator, np.random.default_rng(61).random(200))


@pytest.mark.parametrize("calibrator", list(of_logits()), ids=str)
def test_two_classes_of_decision_values(calibrator):
    same_after_reading(calibrator, np.random.default_rng(62).normal(size=200) * 4)


@pytest.mark.parametrize("name", list(METHODS))
def test_more_classes(name):
    rng = np.random.default_rng(63)
    p = rng.dirichlet([1, 1, 1], 200)
    y = np.array(["a", "b", "ü"])[[rng.choice(3, p=row) for row in p]]
    same_after_reading(METHODS[name]().fit(p, y), p)


def test_labels_of_any_kind():
    for labels in (["no", "yes"], [0, 1], [False, True], [1.0, 2.0], [-(2**62), 2**62]):
        model = same_after_reading(
            PlattScaling().fit([0.1, 0.4, 0.6, 0.9], np.tile(labels, 2)), [1]
        )
        assert model.predict([0.5])[0] in labels
    with pytest.raises(ValueError, match="classes must be text, booleans or numbers"):
        dates = np.array(["2020-01-01", "2021-01-01"], "datetime64[D]")
        to_json(PlattScaling().fit([0.1, 0.9], dates))


def test_what_is_kept_and_what_is_not():
    scores, y = draw()
    model = VennAbers().fit(scores, y)
    read = same_after_reading(model, scores)
    expected = model.predict_confidence([0.2, 0.8])
    assert_array_equal(read.predict_confidence([0.2, 0.8]).lower, expected.lower)
    with pytest.raises(ValueError, match="left_out must be None"):
        read.predict_multiprobability([0.5], [0])
    same_after_reading(Venn("bins").fit(scores, y), scores)
    with pytest.raises(ValueError, match=r"numbers and text .*: use vennforest\.save"):
        to_json(Venn(np.rint).fit(scores, y))
    with pytest.raises(NotFittedError):
        to_json(VennAbers())
    assert isinstance(from_json(to_json(model)), VennAbers)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the calibrator is not JSON"),
        ("[1]", 'must be JSON with "format"'),
        ('{"format": "other"}', 'must be JSON with "format"'),
        ('{"format": "vennforest-calibrator", "version": 2}', "of version 2 .*: install a newer"),
        ('{"format": "vennforest-calibrator", "version": 1}', "damaged: the document must have"),
        ("[" * 100_000, "the calibrator is not JSON"),
    ],
)
def test_what_is_no_calibrator_is_refused(text, message):
    with pytest.raises(InputError, match=message):
        from_json(text)


def places(part, path=()):
    """Yield the path of every part of a document."""
    yield path
    for key, one in part.items() if isinstance(part, dict) else enumerate(part):
        if isinstance(one, dict | list):
            yield from places(one, (*path, key))
        else:
            yield (*path, key)


ODD = [None, -1, 0, 1, 2, 0.5, -0.5, 1.5, 1e308, True, "x", "log", [], {}, [0.5, 0.2], [[1]], 7e99]


def test_an_altered_document_is_refused_or_gives_probabilities():
    """Whatever one part becomes: an error in one sentence, or probabilities all the same."""
    source = random.Random(64)
    new = np.random.default_rng(65).random(50)
    refused = accepted = 0
    documents = [to_json(one) for one in of_probabilities()]
    for _ in range(400):
        document = json.loads(source.choice(documents))
        path = source.choice(list(places(document))[1:])
        part = document
        for key in path[:-1]:
            part = part[key]
        if source.random() < 0.15:
            del part[path[-1]]
        elif source.random() < 0.3 and isinstance(part[path[-1]], float):
            part[path[-1]] *= source.choice([0.9, 1.1, -1.0, 1e10])
        else:
            part[path[-1]] = source.choice(ODD)
        try:
            read = from_json(json.dumps(document))
        except InputError as error:
            assert str(error).startswith("the calibrator")
            refused += 1
            continue
        accepted += 1
        try:
            with np.errstate(all="ignore"):
                p = read.predict_proba(new)
        except ValueError:  # a grid or a kind of scores that these are not of
            continue
        assert p.shape == (50, 2)
        assert ((p >= 0) & (p <= 1)).all()
        np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-9)
    assert refused > 100
    assert accepted > 20


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
@pytest.mark.skipif(not READER.exists(), reason="needs the examples")
def test_the_reader_in_javascript(tmp_path):
    rng = np.random.default_rng(66)
    scores, y = draw()
    new = rng.random(40)
    models = [
        *(method().fit(scores, y) for method in METHODS.values()),
        VennAbers("log").fit(scores, y),
        IsotonicCalibration("linear").fit(scores, y),
        PlattScaling(on="logit").fit(scores, y),
        Venn("bins").fit(scores, y),
    ]
    vectors = rng.dirichlet(np.ones(4), 40)
    labels = np.append(np.arange(4), rng.integers(0, 4, 36))
    many = [method().fit(vectors, labels) for method in METHODS.values() if not has_bounds(method)]
    script = (
        "const {read, apply} = require(process.argv[2]);"
        "const scores = JSON.parse(process.argv[4]).concat([NaN, Infinity, -Infinity]);"
        "for (const path of process.argv.slice(5))"
        "  console.log(JSON.stringify(scores.map(s => apply(read(path), s))));"
    )
    (tmp_path / "run.js").write_text(script)

    def answers_of(fitted, asked):
        paths = []
        for i, model in enumerate(fitted):
            paths.append(tmp_path / f"{i}.json")
            paths[-1].write_text(to_json(model), encoding="utf-8")
        command = ["node", tmp_path / "run.js", READER, "-", json.dumps(asked.tolist()), *paths]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return zip(fitted, map(json.loads, done.stdout.splitlines()), strict=True)

    for model, (*answers, nan, above, below) in answers_of(models, new):
        assert nan == above == below
        assert set(nan.values()) == {None}
        p = [one["p"] for one in answers]
        np.testing.assert_allclose(p, model.predict_proba(new)[:, 1], rtol=0, atol=1e-14)
        if hasattr(model, "predict_multiprobability"):
            bounds = model.predict_multiprobability(new)
            assert [one["p0"] for one in answers] == bounds.p0.tolist()
            assert [one["p1"] for one in answers] == bounds.p1.tolist()
    for model, answers in answers_of(many, vectors):
        p = [one["p"] for one in answers[:-3]]
        np.testing.assert_allclose(p, model.predict_proba(vectors), rtol=0, atol=1e-14)
