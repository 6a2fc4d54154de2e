"""Models as ONNX graphs: run in onnxruntime, they answer what they answer in Python."""

import warnings

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    OneHotEncoder,
    StandardScaler,
)

from export.graphs import NEW, X, Y, assert_equal, drawn_for, forest, of_python, run
from vennforest import CalibratedClassifier, PooledCalibration
from vennforest._validation import InputError
from vennforest.calibrators import Calibrator
from vennforest.export import to_onnx

WITH_GROUPS = np.column_stack([np.arange(200) % 2, X[:200]])


@pytest.mark.parametrize(
    ("estimator", "options"),
    [
        (RandomForestClassifier(100, max_depth=6, random_state=0), {}),
        (forest(max_depth=5), {"merge": "log"}),
        (forest(max_depth=5), {"method": "isotonic"}),
        (forest(), {"calibrate_on": "holdout", "method": "beta"}),
        (ExtraTreesClassifier(40, bootstrap=True, random_state=0), {"method": "venn"}),
        (LogisticRegression(), {"calibrate_on": "holdout"}),
        (LogisticRegression(), {"calibrate_on": "cv", "ensemble": False}),
        (make_pipeline(StandardScaler(), LogisticRegression()), {"calibrate_on": "holdout"}),
        (FrozenEstimator(LogisticRegression().fit(X, Y)), {}),
        (CalibratedClassifierCV(LogisticRegression()), {"calibrate_on": "holdout"}),
    ],
    ids=str,
)
def test_a_classifier(estimator, options):
    model = CalibratedClassifier(estimator, random_state=0, **options).fit(X[:500], Y[:500])
    found = run(to_onnx(model), "X", NEW)
    expected = of_python(model, NEW, confidence=False)
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        assert np.abs(found[name] - values).max() < 1e-9, name
    if "p0" in found:
        assert (found["p0"] <= found["p"]).all()
        assert (found["p"] <= found["p1"]).all()


def test_what_cannot_be_a_graph_says_so():
    def fails(message, estimator=None, of=(X[:200], Y[:200]), error=InputError, **options):
        one = forest() if estimator is None else estimator
        model = CalibratedClassifier(one, random_state=0, **options).fit(*of)
        with pytest.raises(error, match=message):
            to_onnx(model)

    fails("calibrate all rows in the same way, got by=0", of=(WITH_GROUPS, Y[:200]), by=0)
    fails("score new rows by all trees", subforest="exchangeable")
    categories = HistGradientBoostingClassifier(categorical_features=[0], max_iter=2)
    fails(
        "categories of its own for ONNX, got those of '0'",
        categories,
        of=(WITH_GROUPS, Y[:200]),
        cv=2,
    )
    shifted = CalibratedClassifier(forest(), calibrate_on="holdout", random_state=0)
    with pytest.raises(InputError, match="two classes after with_prior or with_mean, got 3"):
        to_onnx(shifted.fit(X[:200], np.arange(200) % 3).with_prior({1: 0.9}))
    with pytest.raises(InputError, match="model must be a table or a formula"):
        to_onnx(WithoutFormula().fit([0.1, 0.9], [0, 1]))
    with pytest.raises(TypeError, match="model must be a CalibratedClassifier or calibrator"):
        to_onnx(forest())
    assert "p0" not in run(to_onnx(PooledCalibration().fit(X[:, 0], Y)), "score", X[:9, 0])


class WithoutFormula(Calibrator):
    """A user's own calibrator, which describes no formula."""

    def _fit(self, counts):
        self.share_ = counts.class_totals[1] / counts.total

    def _predict_proba(self, scores):
        return np.tile([1 - self.share_, self.share_], (len(scores), 1))


def test_named_columns_of_text_and_numbers():
    from onnxruntime import InferenceSession
    from sklearn.compose import ColumnTransformer

    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(20261127)
    table = pd.DataFrame(
        {"colour": rng.choice(["red", "blue", "green"], 600), "size": rng.normal(size=600)}
    )
    y = (table["size"] + (table["colour"] == "red") + rng.normal(size=600) > 0).to_numpy()
    encode = ColumnTransformer(
        [("t", OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["colour"])],
        remainder="passthrough",
    )
    model = CalibratedClassifier(make_pipeline(encode, forest()), random_state=0)
    model.fit(table[:400], y[:400])
    with pytest.raises(InputError, match=r"give rows too: to_onnx\(model, X\)"):
        to_onnx(model)
    session = InferenceSession(to_onnx(model, table[:5]).SerializeToString())
    assert [one.name for one in session.get_inputs()] == ["colour", "size"]
    assert [one.type for one in session.get_inputs()] == ["tensor(string)", "tensor(double)"]
    new = table[400:]
    columns = {name: np.array(new[[name]]) for name in table}
    columns["colour"][0] = "violet"
    new = new.assign(colour=columns["colour"][:, 0])
    found = session.run(["p"], columns)[0]
    np.testing.assert_allclose(found, model.predict_proba(new)[:, 1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("has_linear", [False, True])
def test_a_blend(k, has_linear):
    rows, y = make_classification(300, 5, n_informative=4, n_redundant=1, n_classes=k)
    boosting = HistGradientBoostingClassifier(max_iter=4)
    members = [("forest", forest(max_depth=4)), ("boosting", boosting)]
    if has_linear:
        members.append(("linear", make_pipeline(StandardScaler(), LogisticRegression())))
    model = CalibratedClassifier(members, cv=2, random_state=0).fit(rows, y)
    new = np.random.default_rng().normal(size=(10_000, 5))
    expected = of_python(model, new)
    found = run(to_onnx(model, confidence=True), "X", np.vstack([new, np.full((1, 5), np.inf)]))
    assert found.keys() == expected.keys()
    tolerance, least = 1e-9 if has_linear else 1e-12, 0.9999
    for name, values in expected.items():
        assert np.isnan(found[name][-1]).all()
        assert (np.abs(found[name][:-1] - values) < tolerance).mean() > least, name


@pytest.mark.parametrize("options", [{"cv": 2}, {"cv": 2, "merge": "log"}, {"method": "isotonic"}])
def test_another_prior_of_two_classes(options):
    booster = HistGradientBoostingClassifier(max_iter=4, random_state=0)
    model = CalibratedClassifier(booster, random_state=0, **options).fit(X[:400], Y[:400])
    for shifted in (model.with_prior({1: 0.05}), model.with_mean({1: 0.2}, NEW)):
        assert_equal(run(to_onnx(shifted, confidence=True), "X", NEW), of_python(shifted, NEW))


def test_columns_are_those_of_training_in_any_order():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    table = pd.DataFrame(X[:300, :3], columns=["a", "b", "c"])
    booster = HistGradientBoostingClassifier(max_iter=3)
    settings = {"calibrate_on": "holdout", "random_state": 0}
    model = CalibratedClassifier(booster, **settings).fit(table, Y[:300])
    for rows in (table[["c", "a", "b"]].assign(d=1), pl.from_pandas(table)):
        graph = to_onnx(model, rows)
        assert [one.name for one in graph.graph.input] == ["a", "b", "c"]
    with pytest.raises(InputError, match="columns of training, got none called 'b'"):
        to_onnx(model, table[["a", "c"]])
    named = table.rename(columns={"b": "low95"})
    model = CalibratedClassifier(booster, **settings).fit(named, Y[:300])
    with pytest.raises(InputError, match="no column called like an output or step, got 'low95'"):
        to_onnx(model, named)
    model = CalibratedClassifier(booster, **settings).fit(table[["b"]], Y[:300])
    found = run(to_onnx(model, table), "b", X[:300, 1:2])
    np.testing.assert_allclose(found["p"], model.predict_proba(table[["b"]])[:, 1], 0, 1e-12)


def test_named_columns_cause_no_warnings():
    pd = pytest.importorskip("pandas")
    rows, y = drawn_for(3, 3)
    table = pd.DataFrame(rows, columns=list("abcde"))
    model = CalibratedClassifier(
        BaggingClassifier(LogisticRegression(), n_estimators=2), calibrate_on="holdout"
    ).fit(table, y)
    with warnings.catch_warnings(action="error"):
        to_onnx(model, table)
