"""Every export of drawn calibrators: the same numbers in all systems, to 1e-12."""

import json

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier

from export.graphs import of_python
from support.systems import SYSTEMS
from vennforest import (
    CalibratedClassifier,
    PooledCalibration,
    TemperatureScaling,
    VectorScaling,
    Venn,
    VennAbers,
)
from vennforest._validation import InputError
from vennforest.calibrators import METHODS, PlattScaling
from vennforest.calibrators.softmax import SoftmaxMap
from vennforest.export import to_json, to_onnx, to_sql

SEED = 20261123
SLOW = ("duckdb", "postgres", "sqlite", "spark")
"""Systems in which a query takes a second to plan."""


def draw(rng, k):
    """Return scores, labels and new scores of k classes, with ties, zeros, ends, and a NaN."""
    sharp = rng.choice([0.1, 1.0])
    scores = rng.dirichlet(np.full(k, sharp), 150)
    if rng.integers(2):  # as of a forest of twenty trees
        scores = np.array([rng.multinomial(20, row) for row in scores]) / 20
    y = np.append(np.arange(k), [rng.choice(k, p=row / row.sum()) for row in scores[k:]])
    new = np.vstack([rng.dirichlet(np.full(k, sharp), 40), scores[:20], np.eye(k)])
    if k == 2:
        s, odd = scores[:, 1], [-0.0, 0.5, 5e-324, 1e-300]
        new = np.concatenate([new[:, 1], odd, *(np.nextafter(s[:30], end) for end in (0, 1))])
        return s, y, np.append(new, [np.nan, np.inf, -np.inf])
    return scores, y, np.vstack([new, np.full((1, k), 1 / k), np.full((3, k), np.nan)])


def forests(rng):
    """Yield the calibrators of classifiers with two and five classes, and scores."""
    for k in (2, 5):
        X = rng.normal(size=(400, 4))
        cuts = np.linspace(-1, 1, k + 1)[1:-1]
        y = np.digitize(X[:, 0] + 0.5 * rng.normal(size=400), cuts)
        for merge in ("auto", "log"):
            model = CalibratedClassifier(RandomForestClassifier(30), merge=merge, random_state=0)
            model.fit(X[:300], y[:300])
            new = model.estimator_.predict_proba(X[300:340])
            new = np.append(new[:, 1], [np.nan] * 3) if k == 2 else new
            new = new if k == 2 else np.vstack([new, np.full((3, k), np.nan)])
            yield f"forest, {k} classes, {merge}", model.calibrator_, new
            if merge == "auto":
                yield f"point of a forest, {k} classes", model.point_calibrator_, new


def drawn():
    """Yield names, fitted calibrators and new scores, of which the last three rows are refused."""
    rng = np.random.default_rng(SEED)
    yield from forests(rng)
    for of in ([2], [3, 4, 5]):
        models = [method() for method in METHODS.values()]
        for merge in ("log", "brier", "midpoint"):
            models += [VennAbers(merge), Venn("bins", merge), Venn("label", merge)]
        models += [PooledCalibration()]
        models += [PlattScaling(on="probability")] if of == [2] else []
        for i, model in enumerate(models):
            scores, y, new = draw(rng, int(rng.choice(of)))
            yield f"{model}, {i}, {of[0]} classes", model.fit(scores, y), new
        if of == [2]:
            scores, y, new = draw(rng, 2)
            yield "other shares", VennAbers().fit(scores, y).with_prior({0: 0.9, 1: 0.1}), new
            for model in (VennAbers(), PlattScaling()):
                yield f"{model} reversed", model.fit(scores, 1 - y, increasing=False), new


@pytest.fixture(scope="module")
def cases():
    return list(drawn())


def check(name, found, model, new, confidence=False):
    wanted = of_python(model, new[:-3], confidence)
    assert found.keys() == wanted.keys(), name
    for part, values in wanted.items():
        given = found[part]
        said = f"{part} of {name}"
        np.testing.assert_allclose(given[:-3], values, rtol=0, atol=1e-12, err_msg=said)
        assert np.isnan(given[-3:]).all(), said


def without_tiny(new):
    tiny = (new != 0) & (np.abs(new) < 1e-150)
    return new[~tiny.reshape(len(new), -1).any(axis=1)]


@pytest.mark.parametrize("confidence", [False, True])
@pytest.mark.parametrize(
    "system", [pytest.param(name, marks=[pytest.mark.slow] * (name == "spark")) for name in SYSTEMS]
)
def test_the_same_numbers(system, confidence, cases):
    some = [one for one in cases if not confidence or isinstance(one[1], VennAbers)]
    if system in SLOW:  # each database gets others of those that are no forest's
        some = some[:6] + some[6 + list(SLOW).index(system) :: 6]
    if system == "postgres":  # it refuses products that are too small to be told from 0
        some = [(name, model, without_tiny(new)) for name, model, new in some]
    answers = SYSTEMS[system]([case[1:] for case in some], confidence)
    for (name, model, new), found in zip(some, answers, strict=True):
        check(name, found, model, new, confidence)


def test_more_classes_are_exported_before_their_shares_change():
    moved = VennAbers().fit(np.eye(3), [0, 1, 2]).with_prior({0: 0.7})
    with pytest.raises(ValueError, match="to be exported after with_prior"):
        to_sql(moved, score={0: "a", 1: "b", 2: "c"})
    assert json.loads(to_json(moved))["reading"] is None


def test_no_intervals_of_what_gives_none():
    model = PlattScaling().fit([0.1, 0.9], [0, 1])
    for export in (to_json, to_sql):
        with pytest.raises(InputError, match="confidence must be False: PlattScaling gives no"):
            export(model, confidence=True)


def test_single_rows_have_the_numbers_of_many(cases):
    for name, model, new in cases:
        singles = [model.predict_proba(row) for row in np.split(new[:-3], len(new) - 3)]
        np.testing.assert_array_equal(
            np.concatenate(singles), model.predict_proba(new[:-3]), err_msg=name
        )


@pytest.mark.parametrize("model", [PooledCalibration(), VectorScaling(), VennAbers("log")], ids=str)
def test_graphs_and_documents_of_many_classes_are_small(model):
    """Operations are of all classes together; a row alone has the bits of a row among others."""
    rng = np.random.default_rng(20261127)
    k = 12 if model.__class__ is VennAbers else 60
    logits = rng.normal(size=(300, k)) * 2
    y = np.append(np.arange(k), (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)[k:])
    model = clone(model).fit(logits, y)
    # Log-odds differ in the last digits: at the very scores of a step's end, steps would differ.
    new = np.vstack([logits[:20] + 0.01 * rng.random((20, k)), np.full((3, k), np.nan)])
    (found,) = SYSTEMS["onnx"]([(model, new)], False)
    check(str(model), found, model, new)
    if k == 60:
        (found,) = SYSTEMS["javascript"]([(model, new)], False)
        check(str(model), found, model, new)
        assert len(to_onnx(model).graph.node) < 150
    rows = [model.predict_proba(row[None]) for row in logits[:20]]
    np.testing.assert_array_equal(np.concatenate(rows), model.predict_proba(logits[:20]))


def test_a_full_matrix_is_one_product():
    k = 30
    logits = np.random.default_rng(20261127).normal(size=(200, k))
    model = SoftmaxMap("full").fit(logits, np.arange(200) % k)
    graph = to_onnx(model)
    assert [node.op_type for node in graph.graph.node].count("MatMul") == 1
    (found,) = SYSTEMS["onnx"]([(model, logits)], False)
    np.testing.assert_allclose(found["p"], model.predict_proba(logits), rtol=0, atol=1e-12)


@pytest.mark.parametrize("system", ["duckdb", "sqlite", "onnx", "javascript"])
def test_a_logit_of_minus_infinity_has_the_probability_of_the_limit(system):
    logits = np.log(np.random.default_rng(20261127).dirichlet(np.ones(3), 60))
    y, inf = np.arange(60) % 3, np.inf
    new = np.vstack([logits[:2], [[-inf, 0, 1], [-inf, -inf, 0]], np.full((3, 3), np.nan)])
    new[-1], new[-2] = [-inf, -inf, -inf], [0, inf, 1]
    two = np.array([0.4, -inf, -800.0, np.nan, inf, np.nan])
    cases = [(TemperatureScaling().fit(logits, y), new), (VennAbers().fit(logits, y), new)]
    cases.append((PlattScaling(on="logit").fit(logits[:, 0], y > 0), two))
    for (model, new), found in zip(cases, SYSTEMS[system](cases, False), strict=True):
        check(f"{model} with -inf", found, model, new)
