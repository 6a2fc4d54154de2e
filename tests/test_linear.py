"""Logistic regression as one affine map, against pipelines of scikit-learn."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import vennforest.linear
from vennforest import CalibratedClassifier, MixedForestClassifier, explain, load, save
from vennforest.export import to_onnx
from vennforest.linear import LinearClassifier, mean_model
from vennforest.report.estimators import SmallBoostingClassifier


def run(graph, rows):
    """Return the probabilities that an ONNX graph gives for rows."""
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    return session.run(["p"], {"X": rows})[0]


def rows(k, seed=0, n=150, d=5, missing=True):
    """Draw columns of several scales with missing cells, one of them constant, and labels."""
    rng = np.random.default_rng([seed, k])
    X = rng.normal(size=(n, d))
    y = (X @ rng.normal(size=(d, k)) + rng.gumbel(size=(n, k))).argmax(axis=1)
    X = (X + rng.normal(size=d)) * 10.0 ** rng.integers(-6, 7, d)
    X[:, -1] = 3.0
    if missing:
        X[rng.random((n, d)) < 0.1] = np.nan
    return X, y


def oracle(model, X, y, weight=None):
    """The same regression as a pipeline of scikit-learn."""
    imputer = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    regression = LogisticRegression(C=model.C_, tol=1e-9, max_iter=5000)
    pipeline = make_pipeline(imputer, StandardScaler(), regression)
    steps = ("standardscaler", "logisticregression")
    weights = {} if weight is None else {f"{step}__sample_weight": weight for step in steps}
    return pipeline.fit(X, y, **weights)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("case", ["plain", "missing", "weights", "empty column"])
def test_it_is_the_pipeline_of_scikit_learn(monkeypatch, k, case):
    monkeypatch.setattr(vennforest.linear, "TOLERANCE", 1e-9)
    monkeypatch.setattr(vennforest.linear, "MAX_ITERATIONS", 5000)
    X, y = rows(k, missing=case != "plain")
    if case == "empty column":
        X[:, 1] = np.nan
    weight = np.linspace(0.5, 2, len(y)) if case == "weights" else None
    model = LinearClassifier().fit(X, y, weight)
    with np.errstate(invalid="ignore"):
        expected = oracle(model, X, y, weight).predict_proba(X)
    assert_allclose(model.predict_proba(X), expected, atol=2e-5)


@pytest.mark.parametrize("k", [2, 3])
def test_the_mean_of_models_has_the_mean_of_their_logits(k):
    X, y = rows(k)
    X[0, 0] *= 1e30  # the scale of one model alone
    models = [LinearClassifier().fit(X[part::3], y[part::3]) for part in range(3)]
    expected = np.mean([model.decision_function(X) for model in models], axis=0)
    assert_allclose(mean_model(models).decision_function(X), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("k", [2, 3])
def test_five_folds_answer_as_one_product(k):
    X, y = rows(k)
    models = [LinearClassifier().fit(X[part::5], y[part::5]) for part in range(5)]
    expected = np.mean([model.decision_function(X) for model in models], axis=0)
    assert_allclose(mean_model(models).decision_function(X), expected, rtol=0, atol=5e-13)


def test_a_row_does_not_depend_on_others_and_sparse_rows_are_read_as_dense_ones():
    X, y = rows(3)
    model = LinearClassifier().fit(X, y)
    p = model.predict_proba(X)
    assert_array_equal(np.vstack([model.predict_proba(X[i : i + 1]) for i in range(len(X))]), p)
    ones = (np.random.default_rng(0).random((80, 30)) < 0.2).astype(float)
    sparse = LinearClassifier().fit(csr_array(ones), np.arange(80) % 2)
    assert_array_equal(sparse.predict_proba(csr_array(ones)), sparse.predict_proba(ones))


@pytest.mark.parametrize("scale", [1e300, 1e-300])
def test_huge_and_tiny_scales_change_nothing(scale):
    X, y = rows(2, missing=False)
    X /= np.abs(X).max(axis=0)
    p = LinearClassifier().fit(X, y).predict_proba(X)
    assert_allclose(LinearClassifier().fit(scale * X, y).predict_proba(scale * X), p, atol=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_it_passes_the_checks_of_scikit_learn():
    """A row of weight 2 is in one part, and the row twice in two, where the penalty is chosen."""
    failed = {
        check["check_name"]
        for check in check_estimator(LinearClassifier(), on_fail=None)
        if check["status"] == "failed"
    }
    kinds = ("dense", "sparse")
    assert failed <= {f"check_sample_weight_equivalence_on_{kind}_data" for kind in kinds}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("k", [2, 3])
def test_a_blend_of_the_three_models_is_saved_exported_and_explained(k, tmp_path):
    X, y = rows(k, n=120)
    X = X.astype(np.float32).astype(float)
    X[3:, 1] = np.nan  # all missing in some folds
    members = [
        ("forest", MixedForestClassifier(10, min_samples_leaf=1)),
        ("boosting", SmallBoostingClassifier()),
        ("linear", LinearClassifier()),
    ]
    model = CalibratedClassifier(members, random_state=0).fit(X, y)
    new = X[:40]
    p = model.predict_proba(new)
    alone = np.vstack([model.predict_proba(new[i : i + 1]) for i in range(len(new))])
    assert_array_equal(alone, p)
    save(model, tmp_path / "m.skops")
    assert_array_equal(load(tmp_path / "m.skops").predict_proba(new), p)
    exported = run(to_onnx(model, new), new)
    assert_allclose(exported, p[:, 1] if k == 2 else p, atol=1e-9)
    explanation = explain(model, new)
    z = explanation.base_values + explanation.values.sum(axis=1)
    expected = np.log(p / (1 - p))
    assert_allclose(z, expected[:, 1] if k == 2 else expected, atol=1e-9)


def test_the_part_of_a_cell_is_its_part_in_the_logits():
    X, y = rows(3)
    model = LinearClassifier().fit(X, y)
    parts, base = model.attributions(X)
    assert_allclose(base + parts.sum(axis=1), model.decision_function(X), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("as_rows", [np.asarray, csr_array])
def test_rows_of_weight_zero_are_left_out(as_rows):
    X, y = rows(3, missing=as_rows is np.asarray)
    weight = np.where(np.arange(len(y)) < 40, 0.0, 1.5)
    some = LinearClassifier().fit(as_rows(X[40:]), y[40:], weight[40:])
    model = LinearClassifier().fit(as_rows(X), y, weight)
    assert_array_equal(model.predict_proba(X), some.predict_proba(X))
    with pytest.raises(ValueError, match="sample_weight must be finite and not negative, got -1"):
        LinearClassifier().fit(as_rows(X), y, weight - 1)


def test_two_rows_are_enough():
    p = LinearClassifier().fit([[0.0], [1.0]], ["b", "a"]).predict_proba([[0.0], [0.5], [1.0]])
    assert_allclose(p[1], 0.5)
    assert p[0, 1] > 0.5 > p[2, 1]
