"""A calibrator of another package, written as CONTRIBUTING says."""

import attrs
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

import vennforest
from vennforest import CalibratedClassifier, Multiprobability
from vennforest.calibrators import METHODS
from vennforest.contributing import (
    BoundedCalibrator,
    Calibrator,
    Learnt,
    OneVsRestCalibrator,
    array,
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


@stored("frequencies")
@attrs.frozen(eq=False)
class Frequencies(Learnt):
    """How many calibration examples each class has, and the class of each."""

    counts: np.ndarray = attrs.field(validator=array(None, low=0))
    codes: np.ndarray = attrs.field(validator=array(None, kinds="i", low=0))

    @property
    def n_examples(self):
        return len(self.codes)


@stored("frequency-bounds")
class FrequencyBounds(BoundedCalibrator):
    """A Venn predictor with one category."""

    _learns = Frequencies

    def __init__(self, merge="midpoint"):
        self.merge = merge

    def _fit(self, scores, codes, weight, k):
        return Frequencies(np.bincount(codes, weight, minlength=k).astype(float), codes)

    def _multiprobability(self, scores, absent=None):
        counts = np.tile(self._learnt.counts, (len(scores), 1))
        if absent is not None:
            there = np.flatnonzero(absent.rows >= 0)
            counts[there, self._learnt.codes[absent.rows[there]]] -= 1
        total = counts.sum(axis=1, keepdims=True) + 1
        return Multiprobability(counts / total, (counts + 1) / total, self.classes_)


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


def test_one_with_bounds_leaves_examples_out_and_takes_other_shares():
    calibrator = FrequencyBounds().fit([0.1, 0.2, 0.3], ["a", "b", "b"])
    bounds = calibrator.predict_multiprobability([0.5, 0.5, 0.5], [-1, 0, 2])
    np.testing.assert_allclose(bounds.p0, [2 / 4, 2 / 3, 1 / 3])
    np.testing.assert_allclose(bounds.p1, [3 / 4, 3 / 3, 2 / 3])
    moved = calibrator.with_prior({"b": 0.5}, instead_of={"b": 0.75})
    np.testing.assert_allclose(moved.predict_multiprobability([0.5]).p1, [0.5])
    model = CalibratedClassifier(
        RandomForestClassifier(30, random_state=0),
        method=FrequencyBounds(),
        subforest="exchangeable",
        random_state=0,
    ).fit(X[:300], Y[:300])
    share = Y[:300].mean()
    new = model.predict_multiprobability(X[300:])
    assert (np.abs(new.p0 - share) < 0.01).all() and (new.width < 0.01).all()
    own = model.oob_multiprobability_
    assert (own.lower[:, 1] <= share).all() and len(own) == 300
