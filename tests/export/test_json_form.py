"""Calibrators as JSON: read back to the last bit, read elsewhere, and refused when altered."""

import copy
import json
from functools import reduce
from operator import getitem

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from support.exported import draw, of_logits, of_probabilities
from vennforest import PlattScaling, VennAbers
from vennforest._validation import InputError
from vennforest.calibrators import METHODS, Venn
from vennforest.export import from_json, to_json


def same_after_reading(calibrator, new):
    text = to_json(calibrator)
    read = from_json(text)
    assert type(read) is type(calibrator)
    assert read.get_params(deep=False).keys() == calibrator.get_params(deep=False).keys()
    assert read.classes_.dtype.kind == calibrator.classes_.dtype.kind
    assert_array_equal(read.classes_, calibrator.classes_)
    assert_array_equal(read.predict_proba(new), calibrator.predict_proba(new))
    if hasattr(calibrator, "predict_multiprobability"):
        one, other = (c.predict_multiprobability(new) for c in (read, calibrator))
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


@pytest.mark.parametrize("k", [2, 3])
def test_many_scores_are_put_together_where_no_answer_changes(rng, k):
    scores = rng.dirichlet(np.ones(k), 70_000)
    y = (rng.random((len(scores), 1)) > np.cumsum(scores, axis=1)).sum(axis=1)
    scores = scores[:, 1] if k == 2 else scores
    model = VennAbers().fit(scores, y)
    new = scores[:300]
    read = same_after_reading(model, new)
    assert max(map(len, read.scores_)) < 25_000 < len(model.scores_[0])
    for method in ("likelihood-ratio", "exact"):
        one, other = (c.predict_confidence(new, 0.9, method) for c in (read, model))
        assert_array_equal(one.lower, other.lower)
        assert_array_equal(one.upper, other.upper)


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
        to_json(Venn().fit(scores, y).set_params(taxonomy=np.rint))
    with pytest.raises(NotFittedError):
        to_json(VennAbers())
    with pytest.raises(InputError, match=r"got LogisticRegression\(\): use vennforest\.save"):
        to_json(LogisticRegression())
    assert isinstance(from_json(to_json(model)), VennAbers)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n_values", [1, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", list(METHODS))
def test_changed_numbers_are_refused_or_give_probabilities(rng, name, n_values):
    """Every number of a document in turn is made huge, negative, missing or text."""
    scores = rng.random(20)
    document = json.loads(to_json(METHODS[name]().fit(scores, rng.random(20) < scores)))
    for path in list(number_paths(document["calibrator"])):
        for value in rng.choice(np.array([1e308, -1, None, "x"], object), n_values, replace=False):
            changed = copy.deepcopy(document)
            *parents, last = path
            reduce(getitem, parents, changed["calibrator"])[last] = value
            try:
                calibrator = from_json(json.dumps(changed))
            except InputError as error:
                assert str(error).startswith("the calibrator")
                continue
            try:
                p = calibrator.predict_proba(scores)
            except ValueError:  # the changed range of scores does not contain these
                continue
            assert ((p >= 0) & (p <= 1)).all()


def test_probabilities_are_reversed_at_one_alone():
    scores = np.linspace(0.01, 0.99, 60)
    document = json.loads(to_json(VennAbers().fit(scores, scores > 0.4)))
    document["calibrator"]["reversed_at_"] = 0.0
    with pytest.raises(InputError, match="reversed_at_ must be one of"):
        from_json(json.dumps(document))


def number_paths(part, path=()):
    """Yield the paths to the numbers of a document."""
    for key, value in part.items() if isinstance(part, dict) else enumerate(part):
        if isinstance(value, dict | list):
            yield from number_paths(value, (*path, key))
        elif isinstance(value, float):
            yield (*path, key)


@pytest.mark.parametrize(("text", "message"), [
    ("", "the calibrator is not JSON"),
    ("[1]", 'must be JSON with "format"'),
    ('{"format": "other"}', 'must be JSON with "format"'),
    ('{"format": "vennforest-calibrator", "version": 2}', "of version 2 .*: install a newer"),
    ('{"format": "vennforest-calibrator", "version": 1}', "damaged: the document must have"),
    ("[" * 100_000, "the calibrator is not JSON"),
])  # fmt: skip
def test_what_is_no_calibrator_is_refused(text, message):
    with pytest.raises(InputError, match=message):
        from_json(text)
