"""Formulas as nodes of ONNX graphs: each operation, and lookups at the ends of intervals."""

import numpy as np
import pytest

from export.graphs import run
from vennforest.calibrators.formula import Score, if_at_most

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from vennforest.export.onnx_graph import OPSET, GraphInput, OnnxGraph

MATRIX = np.arange(9.0).reshape(3, 3) - 4

OPERATIONS = {
    "add": (Score() + 2.5, lambda x: x + 2.5),
    "subtract": (1.0 - Score(), lambda x: 1 - x),
    "multiply": (Score() * np.array([1.0, -2.0, 3.0]), lambda x: x * [1, -2, 3]),
    "divide": (1.0 / Score(), lambda x: 1 / x),
    "min": (Score().min(0.25), lambda x: np.minimum(x, 0.25)),
    "max": (Score().max(0.25), lambda x: np.maximum(x, 0.25)),
    "log": ((Score() * Score()).log(), lambda x: np.log(x**2)),
    "exp": (Score().exp(), np.exp),
    "floor": (Score().floor(), np.floor),
    "if <=": (if_at_most(Score(), 0.5, 1.0, Score()), lambda x: np.where(x <= 0.5, 1, x)),
    "sum": (Score() - Score().sum(), lambda x: x - x.sum(axis=1, keepdims=True)),
    "largest": (Score() - Score().largest(), lambda x: x - x.max(axis=1, keepdims=True)),
    "smallest": (Score() - Score().smallest(), lambda x: x - x.min(axis=1, keepdims=True)),
    "product": (Score() @ MATRIX, lambda x: x @ MATRIX),
    "of one class": (Score() - Score().of_class(1), lambda x: x - x[:, [1]]),
}


def computed(formula, k, rows):
    """Return a formula of scores, (n,) or (n, k), in a graph that onnxruntime runs."""
    graph = OnnxGraph(k, [GraphInput("s", None if k == 2 else k)])
    return run(graph.model(graph.write({"p": formula}, "s")), "s", rows)["p"]


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_are_those_of_numpy(name):
    rows = np.random.default_rng(20261129).normal(size=(40, 3))
    rows[0], rows[1, 0] = 0.5, 0.25  # both sides of comparisons are equal
    formula, function = OPERATIONS[name]
    np.testing.assert_allclose(computed(formula, 3, rows), function(rows), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n_starts", [0, 1, 2, 3, 4, 8])
def test_an_interval_contains_its_start_and_not_its_end(n_starts):
    rng = np.random.default_rng(n_starts)
    start, entries = np.sort(rng.normal(size=n_starts)), rng.normal(size=n_starts + 1)
    ends = [np.nextafter(start, side) for side in (-np.inf, np.inf)]
    new = np.concatenate([start, *ends, [-1e300, 1e300]])
    column = Score().look_up([start], {"a": [entries]})["a"]
    expected = [entries[sum(value >= end for end in start)] for value in new]
    np.testing.assert_array_equal(computed(column, 2, new), expected)


def test_each_class_has_a_table_of_its_own():
    """Tables of different lengths lie one after the other."""
    rng = np.random.default_rng(20261129)
    starts = [np.sort(rng.normal(size=m)) for m in (1, 6, 3)]
    entries = [rng.normal(size=len(start) + 1) for start in starts]
    new = rng.normal(size=(60, 3))
    column = Score().look_up(starts, {"a": entries})["a"]
    expected = [
        [entries[j][sum(row[j] >= end for end in starts[j])] for j in range(3)] for row in new
    ]
    np.testing.assert_array_equal(computed(column, 3, new), expected)


def test_equal_constants_and_terms_are_in_the_graph_once():
    graph = OnnxGraph(2, [GraphInput("s")])
    assert graph.constant(np.ones(3)) == graph.constant(np.ones(3))
    assert graph.constant(np.ones(3)) != graph.constant(np.ones(3, np.int64))
    doubled = Score() * 2.0
    model = graph.model(graph.write({"p0": doubled, "p1": doubled + 1.0}, "s"))
    assert [node.op_type for node in model.graph.node].count("Mul") == 1
    assert [(opset.domain, opset.version) for opset in model.opset_import] == [("", OPSET)]
