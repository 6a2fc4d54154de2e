"""A calibrator of another package, written as CONTRIBUTING says."""

import attrs
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

import vennforest
from vennforest import CalibratedClassifier
from vennforest.calibrators import METHODS
from vennforest.contributing import (
    Calibrator,
    OneVsRestCalibrator,
    number,
    register_calibrator,
    stored,
)


@stored("power-map")
@attrs.frozen(eq=False)
class Power:
    """``p = s ** exponent`` of scores in [0, 1]."""

    exponent: float = attrs.field(validator=number(0, 100))

    def __call__(self, scores):
        return np.clip(scores, 0, 1) ** self.exponent

    def formula(self, x):
        return (self.exponent * x.clip(1e-300, 1.0).log()).exp()


@stored("power-calibration")
class PowerCalibration(OneVsRestCalibrator):
    """The power of the score whose mean is the share of the class."""

    _map_type = Power

    def _fit_map(self, scores, positive, weight):
        tried = np.linspace(0.1, 5, 50)
        means = [np.average(np.clip(scores, 0, 1) ** e, weights=weight) for e in tried]
        share = np.average(positive, weights=weight)
        return Power(float(tried[np.abs(np.array(means) - share).argmin()]))


@pytest.fixture(autouse=True)
def registered():
    register_calibrator("power", "Power", PowerCalibration)
    yield
    del METHODS["power"]


X, Y = load_breast_cancer(return_X_y=True)


def test_it_fits_by_name_and_is_saved_and_loaded(tmp_path):
    forest = RandomForestClassifier(30, random_state=0)
    model = CalibratedClassifier(forest, method="power", random_state=0).fit(X[:300], Y[:300])
    assert isinstance(model.calibrator_, PowerCalibration)
    p = model.predict_proba(X[300:])
    vennforest.save(model, tmp_path / "m.skops")
    loaded = vennforest.load(tmp_path / "m.skops")
    np.testing.assert_array_equal(loaded.predict_proba(X[300:]), p)
    with pytest.raises(ValueError, match="name must be new"):
        register_calibrator("venn", "Power", PowerCalibration)
    with pytest.raises(TypeError, match="must be a subclass of Calibrator"):
        register_calibrator("mine", "Mine", Power)


@pytest.mark.parametrize("command", ["fit", "calibrate", "report"])
def test_help_lists_it(command):
    testing = pytest.importorskip("typer.testing")
    from vennforest.cli import app

    assert "power" in testing.CliRunner().invoke(app, [command, "--help"]).output


@pytest.mark.parametrize("k", [2, 3])
def test_it_leaves_as_json_sql_and_onnx(k):
    rng = np.random.default_rng(0)
    scores = rng.random(300) if k == 2 else rng.dirichlet(np.ones(k), 300)
    y = np.append(np.arange(k), rng.integers(0, k, 300 - k))
    model = PowerCalibration().fit(scores, y)
    p = model.predict_proba(scores)
    np.testing.assert_array_equal(Calibrator.from_json(model.to_json()).predict_proba(scores), p)
    p = p[:, 1] if k == 2 else p

    duckdb = pytest.importorskip("duckdb")
    names = ["score"] if k == 2 else ["a", "b", "c"]
    columns = dict(zip(names, scores.reshape(len(scores), -1).T, strict=True))
    connection = duckdb.connect()
    connection.register("scores", {"i": np.arange(300), **columns})
    query = model.to_sql(score="score" if k == 2 else names)
    found = connection.execute(f"SELECT * FROM ({query}) ORDER BY i").fetchnumpy()
    titles = ["p"] if k == 2 else ["p_0", "p_1", "p_2"]
    answers = np.column_stack([found[title] for title in titles])
    np.testing.assert_allclose(answers.reshape(p.shape), p, rtol=0, atol=1e-13)

    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    graph = vennforest.export.to_onnx(model).SerializeToString()
    session = runtime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    (answer,) = session.run(["p"], {given.name: scores})
    np.testing.assert_allclose(answer, p, rtol=0, atol=1e-13)
