"""Forests, boosters and blends of them as ONNX trees of doubles."""

import pickle

import numpy as np
import pytest
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    OneHotEncoder,
)

from export.graphs import (
    BOOSTERS,
    assert_equal,
    forest,
    of_python,
    run,
)
from support.cases import booster
from vennforest import CalibratedClassifier
from vennforest._validation import InputError
from vennforest.export import to_onnx


def roots_that_look_like_leaves(graph):
    """Return the roots whose children, a node and a leaf, have one number."""
    (trees,) = (node for node in graph.graph.node if node.op_type == "TreeEnsemble")
    each = {one.name: np.array(one.ints) for one in trees.attribute}
    left, right = each["nodes_truenodeids"], each["nodes_falsenodeids"]
    mixed = each["nodes_trueleafs"] != each["nodes_falseleafs"]
    return [root for root in each["tree_roots"] if mixed[root] and left[root] == right[root]]


@pytest.mark.parametrize("seed", range(4))
def test_forests_are_equal(seed):
    """Two and five classes, missing cells, trees grown to the end, whose votes tie: to 1e-12."""
    rng = np.random.default_rng([20261126, seed])
    k = 2 if seed % 2 else 5
    features = rng.normal(size=(500, 6)).round(1)
    y = np.digitize(features[:, 0] + rng.normal(size=500), np.linspace(-1, 1, k + 1)[1:-1])
    features[rng.random(features.shape) < 0.05] = np.nan
    votes = "hard" if seed == 2 else "soft"
    for kind, merge in ((RandomForestClassifier, "pooled"), (ExtraTreesClassifier, "log")):
        one = kind(int(rng.integers(20, 40)), bootstrap=True, random_state=seed)
        options = {} if merge == "pooled" else {"merge": merge}
        model = CalibratedClassifier(one, random_state=0, votes=votes, **options)
        model.fit(features[:350], y[:350])
        new = np.vstack([features, np.full((1, 6), np.inf)])
        graph = to_onnx(model, confidence=True)
        assert not roots_that_look_like_leaves(graph)
        found = run(graph, "X", new)
        assert all(np.isnan(answer[-1]).all() for answer in found.values())
        assert_equal({name: a[:-1] for name, a in found.items()}, of_python(model, features))


def rows_of(k, n):
    """Return rows of single precision with missing values, and labels."""
    rng = np.random.default_rng([20261127, k])
    rows = rng.normal(size=(n, 5)).astype(np.float32).astype(np.float64)
    cuts = np.linspace(-1, 1, k + 1)[1:-1]
    y = np.digitize(rows[:, 0] + 0.7 * rng.normal(size=n), cuts)
    rows[rng.random(rows.shape) < 0.05] = np.nan
    return rows, y


@pytest.mark.parametrize(("k", "merge"), [(2, "auto"), (2, "log"), (3, "auto"), (3, "log")])
def test_histogram_boosting_on_folds_is_equal(k, merge):
    rows, y = rows_of(k, 700)
    booster = HistGradientBoostingClassifier(max_iter=4, random_state=0)
    model = CalibratedClassifier(booster, cv=2, merge=merge, random_state=0)
    model.fit(rows[:300], y[:300])
    assert len(model.estimators_) == 2
    assert_equal(run(to_onnx(model, confidence=True), "X", rows), of_python(model, rows))


@pytest.mark.parametrize("package", BOOSTERS)
@pytest.mark.parametrize("k", [2, 3])
def test_boosters_are_equal(package, k):
    """XGBoost's probabilities are in single precision: a last digit may miss a step's end."""
    rows, y = rows_of(k, 4_400)
    model = CalibratedClassifier(booster(package, n_estimators=10), cv=2, random_state=0)
    model.fit(rows[:400], y[:400])
    found = run(to_onnx(model, confidence=True), "X", rows[400:])
    for name, values in of_python(model, rows[400:]).items():
        error = np.abs(found[name] - values)
        if package == "xgboost":
            assert error.max() < (1e-6 if name == "p" else 0.1), name
            assert (error < 1e-6).mean() > 0.999, name
        else:
            assert error.max() < 1e-10, name


def test_a_booster_behind_steps_that_encode_text():
    pd = pytest.importorskip("pandas")
    from sklearn.compose import ColumnTransformer

    rows, y = rows_of(2, 600)
    table = pd.DataFrame(rows[:, :2], columns=["a", "b"])
    table["colour"] = np.where(rows[:, 2] > 0, "red", "blue")
    encode = ColumnTransformer(
        [("t", OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["colour"])],
        remainder="passthrough",
    )
    model = CalibratedClassifier(
        make_pipeline(encode, booster("lightgbm", n_estimators=5)), calibrate_on="holdout"
    ).fit(table[:400], y[:400])
    from onnxruntime import InferenceSession

    session = InferenceSession(to_onnx(model, table).SerializeToString())
    found = session.run(["p"], {name: table[[name]].to_numpy() for name in table})[0]
    np.testing.assert_allclose(found, model.predict_proba(table)[:, 1], rtol=0, atol=2e-6)


@pytest.mark.parametrize("package", BOOSTERS)
@pytest.mark.parametrize("other", [forest(), HistGradientBoostingClassifier(max_iter=4)], ids=str)
def test_blends_of_a_booster_with_trees_are_equal(package, other):
    rows, y = rows_of(2, 700)
    members = [("booster", booster(package, n_estimators=6)), ("other", other)]
    model = CalibratedClassifier(members, cv=2, random_state=0).fit(rows[:300], y[:300])
    found, expected = run(to_onnx(model), "X", rows), of_python(model, rows, confidence=False)
    for name, values in expected.items():
        assert (np.abs(found[name] - values) < 1e-6).mean() > 0.99, name
    assert np.abs(found["p"] - expected["p"]).max() < 1e-6


def test_settings_of_boosters():
    """Large numbers that single precision does not tell apart, other trees, dropped trees."""
    rows, y = rows_of(2, 500)
    seconds = 1.7e9 + np.round(10 * rows)
    for package, settings, X in (
        ("lightgbm", {}, seconds),
        ("lightgbm", {"zero_as_missing": True}, rows),
        ("lightgbm", {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.5}, rows),
        ("xgboost", {"booster": "dart", "rate_drop": 0.5, "num_parallel_tree": 2}, rows),
        ("catboost", {"grow_policy": "Lossguide"}, rows),
    ):
        model = CalibratedClassifier(
            booster(package, n_estimators=6, **settings), calibrate_on="holdout", random_state=0
        ).fit(X[:300], y[:300])
        try:
            found = run(to_onnx(model, X), "X", X)
        except InputError as error:
            assert "zero_as_missing" in settings
            assert "must answer as ONNX" in str(error)
            continue
        np.testing.assert_allclose(found["p"], model.predict_proba(X)[:, 1], rtol=0, atol=1e-7)


def test_categories_of_a_lightgbm_booster_are_named():
    pd = pytest.importorskip("pandas")
    rows, y = rows_of(2, 400)
    model = CalibratedClassifier(booster("lightgbm", n_estimators=5), calibrate_on="holdout")
    table = pd.DataFrame({"a": rows[:, 0], "b": pd.Categorical(np.where(y, "x", "y"))})
    with pytest.raises(InputError, match="categories of its own for ONNX, got those of 'b'"):
        to_onnx(model.fit(table, y))


@pytest.mark.parametrize("package", BOOSTERS)
def test_boosters_of_named_columns_and_any_labels(package):
    pd = pytest.importorskip("pandas")
    rows, y = rows_of(2, 300)
    table, labels = pd.DataFrame(rows, columns=list("abcde")), y == 1
    if package == "xgboost":  # which takes numbered labels alone, and stops early
        stopped = {"n_estimators": 90, "early_stopping_rounds": 2}
        frozen = booster(package, **stopped).fit(table, y, eval_set=[(table, y[::-1])], verbose=0)
        assert frozen.best_iteration < 89
        model = CalibratedClassifier(FrozenEstimator(frozen)).fit(table, labels)
    else:
        model = CalibratedClassifier(booster(package, n_estimators=5), cv=2).fit(table, labels)
    if package == "catboost":
        model = pickle.loads(pickle.dumps(model))
    assert model.feature_names_in_.tolist() == list("abcde")
    found = run(to_onnx(model), "X", rows)["p"]
    np.testing.assert_allclose(found, model.predict_proba(table)[:, 1], rtol=0, atol=2e-6)


@pytest.mark.parametrize("package", ["xgboost", "catboost"])
def test_categories_of_boosters_are_named(package):
    pd = pytest.importorskip("pandas")
    rows, y = rows_of(2, 200)
    table = pd.DataFrame({"a": rows[:, 0], "colour": np.where(rows[:, 1] > 0, "red", "blue")})
    if package == "xgboost":
        table, settings = table.astype({"colour": "category"}), {"enable_categorical": True}
    else:
        settings = {"cat_features": ["colour"]}
    frozen = FrozenEstimator(booster(package, n_estimators=3, **settings).fit(table, y))
    with pytest.raises(InputError, match="categories of its own for ONNX, got those of 'colour'"):
        to_onnx(CalibratedClassifier(frozen).fit(table, y), table)
