"""Several labels: one training, a calibrator for each, the same answers as label by label."""

import copy
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.exceptions import DataConversionWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import vennforest
from oracles.multilabel import out_of_bag_scores
from support.forging import save_spoilt
from vennforest import CalibratedClassifier, PooledCalibration, VennAbers
from vennforest.batch import BatchPredictor
from vennforest.decisions import threshold_for
from vennforest.export import to_onnx
from vennforest.monitoring import ProtectedClassifier


def draw(n=300, q=3, seed=0, decimals=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    if decimals is not None:  # equal rows and ties
        X = X.round(decimals)
    chance = 1 / (1 + np.exp(-(X[:, :q] + X[:, [0]] - np.arange(q) / 2)))
    return X, (rng.random((n, q)) < chance).astype(int)


def forest(trees=40, seed=0, **given):
    return RandomForestClassifier(trees, random_state=seed, **given)


@pytest.fixture(scope="module")
def data():
    return draw()


@pytest.fixture(scope="module")
def model(data):
    X, Y = data
    return CalibratedClassifier(forest(), random_state=0).fit(X, Y)


CASES = [
    *((n, q, None, RandomForestClassifier, {}) for n, q in ((60, 2), (150, 5))),
    (120, 3, 0, RandomForestClassifier, {"max_samples": 0.5}),
    (100, 2, None, ExtraTreesClassifier, {"bootstrap": True}),
    (100, 3, None, RandomForestClassifier, {"max_depth": 1}),
]


@pytest.mark.parametrize(("n", "q", "decimals", "kind", "given"), CASES)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.filterwarnings("ignore:.*(copies|the same)")
def test_each_label_is_calibrated_on_naive_out_of_bag_scores(n, q, decimals, kind, given, seed):
    X, Y = draw(n, q, seed, decimals)
    new = draw(50, q, seed + 100, decimals)[0]
    plain = kind(60, random_state=seed, **given)
    model = CalibratedClassifier(plain, random_state=0).fit(X, Y)
    own = clone(plain).fit(X, Y)
    assert model.calibrate_on_ == "oob"
    scores = out_of_bag_scores(own, X)
    whole = own.predict_proba(new)
    p, bounds = model.predict_proba(new), model.predict_multiprobability(new)
    assert p.shape == bounds.lower.shape == bounds.upper.shape == (50, q)
    for j, two in enumerate(model.label_classifiers_):
        np.testing.assert_allclose(two.calibration_scores_, scores[:, j], rtol=0, atol=1e-12)
        # Exactly equal scores stay ties: sums in another order move the last digit.
        given_scores = two.calibration_scores_
        point = PooledCalibration(on="probabilities").fit(given_scores, Y[:, j])
        expected = point.predict_proba(whole[j][:, 1])
        np.testing.assert_allclose(p[:, j], expected[:, 1], rtol=0, atol=1e-12)
        found = VennAbers().fit(given_scores, Y[:, j])
        wide = found.predict_multiprobability(whole[j][:, 1]).widen(expected)
        np.testing.assert_allclose(bounds.lower[:, j], wide.lower[:, 1], rtol=0, atol=1e-12)
        np.testing.assert_allclose(bounds.upper[:, j], wide.upper[:, 1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("given", [{"calibrate_on": "cv", "cv": 3}, {"calibrate_on": "holdout"}])
@pytest.mark.parametrize(
    "estimator",
    [
        MLPClassifier((5,), max_iter=30, random_state=0),
        OneVsRestClassifier(LogisticRegression()),
        forest(10),
        make_pipeline(StandardScaler(), forest(10)),
    ],
    ids=["mlp", "one-vs-rest", "forest", "pipeline"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_folds_train_once_for_all_labels(data, estimator, given):
    X, Y = data
    X, Y, new = X[:200], Y[:200], X[200:]
    model = CalibratedClassifier(estimator, random_state=0, **given).fit(X, Y)
    p, bounds = model.predict_proba(new), model.predict_multiprobability(new)
    for j, two in enumerate(model.label_classifiers_):
        labels = two.calibration_y_
        folds = two._state.folds
        for fold in folds:
            # The model is that of the rows that are left, and scores the others.
            assert (fold.codes == Y[fold.rows, j]).all()
            rest = np.setdiff1d(np.arange(len(X)), fold.rows)
            again = clone(estimator).fit(X[rest], Y[rest]).predict_proba(X[fold.rows])
            again = again[j][:, 1] if isinstance(again, list) else again[:, j]
            np.testing.assert_allclose(fold.scores, again, rtol=0, atol=1e-12)
        assert len(labels) == len(np.concatenate([fold.rows for fold in folds]))
        np.testing.assert_allclose(p[:, j], two.predict_proba(new)[:, 1], rtol=0, atol=1e-12)
        own = two.predict_multiprobability(new)
        np.testing.assert_allclose(bounds.lower[:, j], own.lower[:, 1], rtol=0, atol=1e-12)
        np.testing.assert_allclose(bounds.upper[:, j], own.upper[:, 1], rtol=0, atol=1e-12)


def test_pooled_folds(data):
    X, Y = data
    estimator = OneVsRestClassifier(LogisticRegression())
    model = CalibratedClassifier(estimator, ensemble=False, random_state=0).fit(X, Y)
    whole = clone(estimator).fit(X, Y).predict_proba(X)
    for j, two in enumerate(model.label_classifiers_):
        point = PooledCalibration(on="probabilities").fit(two.calibration_scores_, Y[:, j])
        expected = point.predict_proba(whole[:, j])[:, 1]
        np.testing.assert_allclose(model.predict_proba(X)[:, j], expected, rtol=0, atol=1e-12)


def test_a_model_of_all_labels_scores_rows_once(data, monkeypatch):
    X, Y = data
    asked = []
    original = MLPClassifier.predict_proba
    monkeypatch.setattr(
        MLPClassifier, "predict_proba", lambda self, X: (asked.append(1), original(self, X))[1]
    )
    estimator = MLPClassifier((3,), max_iter=400, solver="lbfgs", random_state=0)
    model = CalibratedClassifier(estimator, cv=2, random_state=0).fit(X, Y)
    asked.clear()
    model.predict_proba(X)
    assert len(asked) == 2


def test_shapes_of_every_answer(model, data):
    X, Y = data
    p, intervals = model.predict_proba(X), model.predict_confidence(X, 0.9)
    bounds, oob = model.predict_multiprobability(X), model.oob_probability_
    assert p.shape == oob.shape == intervals.lower.shape == intervals.upper.shape == Y.shape
    assert (bounds.lower <= p).all() and (p <= bounds.upper).all()
    assert (intervals.lower <= p).all() and (p <= intervals.upper).all()
    labels = model.predict(X)
    assert labels.shape == Y.shape
    assert (labels == (p > 0.5)).all()
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.n_features_in_ == 5
    assert model.score(X, Y) == (labels == Y).all(axis=1).mean()
    assert len(bounds) == len(X)
    for j, two in enumerate(model.label_classifiers_):
        own = two.predict_confidence(X, 0.9)
        np.testing.assert_array_equal(intervals.upper[:, j], own.upper[:, 1])
        np.testing.assert_array_equal(oob[:, j], two.oob_probability_[:, 1])
        own = two.oob_multiprobability_
        np.testing.assert_array_equal(model.oob_multiprobability_.lower[:, j], own.lower[:, 1])


def test_what_two_classes_have_each_label_has(model, data):
    X, _ = data
    two = model.label_classifiers_[1]
    assert two.classes_.tolist() == [0, 1]
    moved = two.with_prior({1: 0.05})
    assert moved.predict_proba(X)[:, 1].mean() < two.predict_proba(X)[:, 1].mean()
    assert to_onnx(two) is not None


@pytest.mark.parametrize("method", ["platt", "venn", "isotonic"])
def test_other_methods(data, method):
    X, Y = data
    model = CalibratedClassifier(forest(), method=method, random_state=0).fit(X, Y)
    assert model.predict_proba(X).shape == Y.shape
    assert hasattr(model, "predict_multiprobability") == (method == "venn")


def test_few_trees_answer_as_each_label_does(data):
    X, Y = data
    with pytest.warns(UserWarning, match="out of bag for no tree"):
        model = CalibratedClassifier(forest(8), random_state=0).fit(X, Y)
    for j, two in enumerate(model.label_classifiers_):
        np.testing.assert_array_equal(model.predict_proba(X)[:, j], two.predict_proba(X)[:, 1])


@pytest.mark.parametrize(
    ("estimator", "given"),
    [
        (forest(20), {}),
        (forest(20), {"calibrate_on": "cv", "cv": 2}),
        (make_pipeline(StandardScaler(), forest(20)), {"cv": 2}),
        (MLPClassifier((3,), solver="lbfgs", max_iter=400, random_state=0), {"cv": 2}),
        (OneVsRestClassifier(LogisticRegression()), {"cv": 2}),
    ],
)
def test_saved_and_loaded(data, tmp_path, estimator, given):
    pytest.importorskip("skops")
    X, Y = data
    model = CalibratedClassifier(estimator, random_state=0, **given).fit(X, Y)
    vennforest.save(model, tmp_path / "model.skops")
    again = vennforest.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    one, other = again.predict_multiprobability(X), model.predict_multiprobability(X)
    np.testing.assert_array_equal(one.lower, other.lower)
    np.testing.assert_array_equal(one.upper, other.upper)
    np.testing.assert_array_equal(again.oob_probability_, model.oob_probability_)


def spoilt(fitted, change):
    """Return labels' fitted values that no training leaves, past the checks of their classes."""
    first, *others = fitted.labels
    made = copy.copy(fitted)
    labels = {
        "one label alone": (first,),
        "no classifier": (first, VennAbers()),
        "other classes": (spoilt_one(first, classes=np.array([1, 2])), *others),
        "another number of rows": (spoilt_one(first, n_rows=first.n_rows + 1), *others),
        "another source": (spoilt_one(first, calibrate_on="cv"), *others),
    }[change]
    object.__setattr__(made, "labels", labels)
    return made


def spoilt_one(one, **changes):
    made = copy.copy(one)
    for name, value in changes.items():
        object.__setattr__(made, name, value)
    return made


@pytest.mark.parametrize(
    "change",
    [
        "one label alone",
        "no classifier",
        "other classes",
        "another number of rows",
        "another source",
    ],
)
def test_a_forged_file_is_refused(data, model, tmp_path, change):
    pytest.importorskip("skops")
    made = copy.copy(model)
    made._fitted = spoilt(model._fitted, change)
    save_spoilt(made, tmp_path / "model.skops")
    with pytest.raises(ValueError):  # noqa: PT011: which check refuses first is not the point
        vennforest.load(tmp_path / "model.skops")


def test_a_forged_view_of_a_label_is_refused(data, tmp_path):
    pytest.importorskip("skops")
    X, Y = data
    model = CalibratedClassifier(OneVsRestClassifier(LogisticRegression()), cv=2).fit(X, Y)
    view = model._fitted.labels[0].folds[0].estimator
    assert type(view).__name__ == "OneLabel"
    for name, value in (("label", 3), ("label", -1), ("n_labels", 1)):
        before = getattr(view, name)
        object.__setattr__(view, name, value)
        save_spoilt(model, tmp_path / "model.skops")
        object.__setattr__(view, name, before)
        with pytest.raises(ValueError):
            vennforest.load(tmp_path / "model.skops")


def test_tables_booleans_and_lists(data, model):
    X, Y = data
    frame = pd.DataFrame(X, columns=list("abcde"))
    for y in (pd.DataFrame(Y, columns=list("uvw")), Y.astype(bool), Y.astype(float)):
        other = CalibratedClassifier(forest(), random_state=0).fit(frame, y)
        np.testing.assert_array_equal(other.predict_proba(frame), model.predict_proba(X))
    assert other.feature_names_in_.tolist() == list("abcde")
    other = CalibratedClassifier(forest(), random_state=0).fit(X, Y.tolist())
    np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))


def test_the_default_forest_and_cross_validation(data):
    X, Y = data
    scores = cross_val_score(CalibratedClassifier(random_state=0), X, Y, cv=2)
    assert ((scores > 0) & (scores < 1)).all()


def test_a_rare_label_that_a_fold_lacks():
    X, Y = draw(120)
    Y[:, 2] = 0
    Y[[3, 4], 2] = 1
    with pytest.warns(UserWarning, match="stratified"):
        model = CalibratedClassifier(forest(), calibrate_on="cv", cv=2, random_state=0).fit(X, Y)
    assert np.isfinite(model.predict_proba(X)).all()
    halves = [(np.arange(60), np.arange(60, 120)), (np.arange(60, 120), np.arange(60))]
    model = CalibratedClassifier(forest(), calibrate_on="cv", cv=halves, random_state=0).fit(X, Y)
    assert (model.label_classifiers_[2]._state.folds[1].scores == 0).all()


def test_one_column_is_raveled(data):
    X, Y = data
    with pytest.warns(DataConversionWarning):
        model = CalibratedClassifier(forest(), random_state=0).fit(X, Y[:, :1])
    assert model.predict_proba(X).shape == (len(X), 2)
    assert not hasattr(model, "label_classifiers_")


def _with(value, dtype=None):
    def change(Y):
        Y = Y.astype(dtype or np.asarray(value).dtype)
        Y[0, 0] = value
        return Y

    return change


def _constant(Y):
    return np.column_stack([Y, np.ones(len(Y), int)])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_with(2), "zeros and ones.*got 2"),
        (_with(-1), "zeros and ones.*got -1"),
        (_with(0.5), "zeros and ones.*got 0.5"),
        (_with(np.nan), "zeros and ones.*got nan"),
        (lambda Y: np.where(Y == 1, "yes", "no"), "zeros and ones"),
        (lambda Y: Y.astype(str), "zeros and ones"),
        (_with("a", object), "zeros and ones"),
        (_constant, "every column, got 1 alone in column 3"),
        (lambda Y: Y * 0, "every column, got 0 alone in column 0"),
    ],
)
def test_labels_that_are_refused(data, change, message):
    X, Y = data
    with pytest.raises(ValueError, match=message):
        CalibratedClassifier(forest(), random_state=0).fit(X, change(Y))


def test_a_sparse_y_is_refused(data):
    from scipy.sparse import csr_matrix

    X, Y = data
    with pytest.raises(ValueError, match="toarray"):
        CalibratedClassifier(forest()).fit(X, csr_matrix(Y))


@pytest.mark.parametrize(
    "given",
    [
        {"by": 0},
        {"subforest": "exchangeable"},
        {"calibrate_on": "training"},
        {"estimator": FrozenEstimator(forest().fit(*draw()))},
        {"estimator": OneVsRestClassifier(LinearSVC())},
        {"estimator": LogisticRegression()},
    ],
)
def test_settings_that_are_refused(data, given):
    X, Y = data
    with pytest.raises(ValueError, match=r"one CalibratedClassifier for each label|1d array"):
        CalibratedClassifier(**{"estimator": forest(), **given}).fit(X, Y)


@pytest.mark.parametrize("name", ["sample_weight", "groups"])
def test_metadata_is_refused(data, name):
    X, Y = data
    with pytest.raises(ValueError, match=f"{name} must be left out"):
        CalibratedClassifier(forest()).fit(X, Y, **{name: np.ones(len(X))})


def test_class_weights_of_a_forest_are_calibrated_over_folds(data):
    X, Y = data
    weighted = forest(20, class_weight="balanced")
    model = CalibratedClassifier(weighted, random_state=0).fit(X, Y)
    assert model.calibrate_on_ == "cv"
    with pytest.raises(ValueError, match="class_weight"):
        CalibratedClassifier(weighted, calibrate_on="oob").fit(X, Y)


def _in_batches(model, X):
    batch = pa.record_batch(dict(zip("abcde", X.T, strict=True)))
    return BatchPredictor(model, batch.schema, columns=list("abcde")).predict(batch)


@pytest.mark.parametrize(
    "use",
    [
        lambda model, X: model.with_prior({1: 0.5}),
        lambda model, X: model.estimate_prior(X),
        lambda model, X: model.recalibrate("platt"),
        lambda model, X: model.seed_deviation(X),
        lambda model, X: vennforest.explain(model, X),
        lambda model, X: to_onnx(model),
        lambda model, X: threshold_for(model, precision=0.9),
        lambda model, X: vennforest.estimate_performance(model, X),
        lambda model, X: _in_batches(model, X),
        lambda model, X: vennforest.Monitor(model).fit(X, X[:, 0] > 0),
        lambda model, X: ProtectedClassifier(model).predict_proba(X),
        lambda model, X: model.predict_confidence(X, method="exact", simultaneous=True),
        lambda model, X: model.calibration_scores_,
        lambda model, X: model.prior_,
        lambda model, X: model.estimator_,
    ],
)
def test_everything_else_asks_for_one_label(model, data, use):
    with pytest.raises(ValueError, match="label"):
        use(model, data[0])


def test_classes_in_one_column_each_are_warned_of():
    from vennforest.classifier.multilabel import check_label_table

    rng = np.random.default_rng(5)
    classes = rng.integers(0, 3, 60)
    with pytest.warns(UserWarning, match=r"y\.argmax\(axis=1\)"):
        check_label_table(np.eye(3)[classes])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_label_table(rng.integers(0, 2, (60, 3)))
