"""Models as ONNX graphs: run in onnxruntime, they answer what they answer in Python."""

import pickle
import threading
import time
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.model_selection import GridSearchCV, TunedThresholdClassifierCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    KBinsDiscretizer,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from vennforest import CalibratedClassifier, PooledCalibration
from vennforest._validation import InputError
from vennforest.calibrators import Calibrator
from vennforest.export import onnx_models, proof, to_onnx
from vennforest.linear import LinearClassifier

X, Y = make_classification(900, 6, random_state=0, flip_y=0.2)
NEW = X[500:]
WITH_GROUPS = np.column_stack([np.arange(200) % 2, X[:200]])


def run(model, name, values):
    from onnxruntime import InferenceSession

    session = InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_outputs()]
    return dict(zip(names, session.run(None, {name: values}), strict=True))


def of_python(model, X, confidence=True):
    """Return what a model answers in Python, (n,) for the second of two classes or (n, k)."""
    answers = {"p": model.predict_proba(X)}
    if hasattr(model, "predict_multiprobability"):
        bounds = model.predict_multiprobability(X)
        answers |= {"p0": bounds.lower, "p1": bounds.upper}
    if confidence:
        intervals = model.predict_confidence(X)
        answers |= {"low95": intervals.lower, "high95": intervals.upper}
    return {name: a[:, 1] if a.shape[1] == 2 else a for name, a in answers.items()}


def assert_equal(found, expected):
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=0, atol=1e-12, err_msg=name)


def forest(**options):
    return RandomForestClassifier(20, random_state=0, **options)


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


def test_named_columns_of_text_and_numbers():
    from onnxruntime import InferenceSession
    from sklearn.compose import ColumnTransformer
    from sklearn.preprocessing import OneHotEncoder

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


class Halved(LogisticRegression):
    """A subclass whose probabilities are no longer those of its coefficients."""

    def predict_proba(self, X):
        return (super().predict_proba(X) + 0.5) / 2


def test_a_model_that_is_converted_wrongly_is_refused():
    model = CalibratedClassifier(Halved(), calibrate_on="holdout").fit(X, Y)
    with pytest.raises(InputError, match=r"of Halved must answer as ONNX .* of 200 drawn rows, by"):
        to_onnx(model)
    model = CalibratedClassifier(LabelSpreading(), calibrate_on="holdout").fit(X, Y)
    with pytest.raises(InputError, match=r"must be one that skl2onnx converts: .*LabelSpreading"):
        to_onnx(model)


@pytest.mark.parametrize("frozen", [False, True])
def test_a_model_without_a_number_of_columns_is_refused_by_name(frozen):
    estimator = SVC(kernel=np.inner).fit(X[:200], Y[:200])
    model = CalibratedClassifier(FrozenEstimator(estimator) if frozen else estimator)
    model.fit(X[200:], Y[200:])
    with pytest.raises(InputError, match=r"number of columns, got .* without n_features_in_"):
        to_onnx(model)


def test_a_calibrated_model_of_this_library_within_another_is_refused_by_name():
    model = CalibratedClassifier(CalibratedClassifier(LogisticRegression(), calibrate_on="cv"))
    with pytest.raises(InputError, match=r"find a shape calculator for .*CalibratedClassifier"):
        to_onnx(model.fit(X, Y))


def test_a_conversion_that_does_not_end_is_stopped(monkeypatch):
    def endless():
        while True:
            pass

    n_threads = threading.active_count()
    monkeypatch.setattr(onnx_models, "MAX_SECONDS", 0.2)
    with pytest.raises(TimeoutError, match="it did not end within"):
        onnx_models.within_limit(endless)
    deadline = time.monotonic() + 20
    while threading.active_count() > n_threads:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def drawn_for(seed, k):
    """Return rows with ties and equal cells, some missing, and labels of k classes."""
    rng = np.random.default_rng([20261128, seed])
    rows = rng.normal(2, 1, size=(500, 5)).round(1)
    y = np.digitize(rows[:, 0] + rng.logistic(size=500) / 2, [2.0] if k == 2 else [1.0, 2.5])
    return rows, y


MODELS = {
    "logistic": LogisticRegression(),
    "SVC": SVC(),
    "SVC, polynomials": SVC(kernel="poly", degree=2, C=0.5),
    "LDA": LinearDiscriminantAnalysis(),
    "SGD near certainty": SGDClassifier(loss="log_loss", alpha=1e-3, random_state=0),
    "liblinear": make_pipeline(StandardScaler(), LogisticRegression(C=100.0)),
    "AdaBoost": AdaBoostClassifier(n_estimators=6, random_state=0),
    "gradient boosting": GradientBoostingClassifier(n_estimators=6, random_state=0),
    "bagging": BaggingClassifier(n_estimators=4, random_state=0),
    "voting": VotingClassifier(
        [("a", LogisticRegression()), ("b", DecisionTreeClassifier(max_depth=3))],
        voting="soft",
        weights=[2, 1],
    ),
    "Binarizer": make_pipeline(Binarizer(threshold=2.0), LogisticRegression()),
    "products": make_pipeline(PolynomialFeatures(3), StandardScaler(), LogisticRegression()),
    "bins": make_pipeline(KBinsDiscretizer(4, encode="onehot-dense"), LogisticRegression()),
    "imputer": make_pipeline(
        SimpleImputer(strategy="median", add_indicator=True), StandardScaler(), LogisticRegression()
    ),
    "tree": DecisionTreeClassifier(max_depth=5, random_state=0),
}
TAKE_MISSING = ("imputer", "tree", "bagging")


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_models_of_scikit_learn_are_equal(name, k):
    """Where rows and calibration examples have the same cells too, whose scores are step ends."""
    rows, y = drawn_for(k, k)
    if name in TAKE_MISSING:
        rows[np.random.default_rng(k).random(rows.shape) < 0.1] = np.nan
    model = CalibratedClassifier(MODELS[name], calibrate_on="holdout", random_state=0)
    model.fit(rows[:300], y[:300])
    refused = np.full((2, 5), 1.0)
    refused[0, 1] = np.inf
    if name not in TAKE_MISSING:
        refused[1, 3] = np.nan
    found = run(to_onnx(model, rows), "X", np.vstack([rows, refused]))
    assert np.isnan(found["p"][500]).all()
    assert np.isnan(found["p"][501]).all() == (name not in TAKE_MISSING)
    expected = of_python(model, rows, confidence=False)
    for part, values in expected.items():
        np.testing.assert_allclose(found[part][:500], values, rtol=0, atol=1e-9, err_msg=part)


def test_rows_of_training_are_asked_for_where_none_can_be_drawn():
    rows = 1e7 + np.arange(400.0).reshape(200, 2)[:, :1]  # no part of the model tells their range
    y = np.arange(200) % 7 < 3
    model = CalibratedClassifier(
        make_pipeline(OneHotEncoder(sparse_output=False), LogisticRegression()),
        calibrate_on="holdout",
    ).fit(np.tile(rows[:5], (40, 1)), y)
    with pytest.raises(InputError, match="X must be rows like those of training"):
        to_onnx(model)
    graph = to_onnx(model, rows[:5])
    np.testing.assert_allclose(run(graph, "X", rows[:5])["p"], model.predict_proba(rows[:5])[:, 1])


def rows_of(k, n):
    """Return rows of single precision with missing values, and labels."""
    rng = np.random.default_rng([20261127, k])
    rows = rng.normal(size=(n, 5)).astype(np.float32).astype(np.float64)
    cuts = np.linspace(-1, 1, k + 1)[1:-1]
    y = np.digitize(rows[:, 0] + 0.7 * rng.normal(size=n), cuts)
    rows[rng.random(rows.shape) < 0.05] = np.nan
    return rows, y


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


@pytest.mark.parametrize(("k", "merge"), [(2, "auto"), (2, "log"), (3, "auto"), (3, "log")])
def test_histogram_boosting_on_folds_is_equal(k, merge):
    rows, y = rows_of(k, 700)
    booster = HistGradientBoostingClassifier(max_iter=4, random_state=0)
    model = CalibratedClassifier(booster, cv=2, merge=merge, random_state=0)
    model.fit(rows[:300], y[:300])
    assert len(model.estimators_) == 2
    assert_equal(run(to_onnx(model, confidence=True), "X", rows), of_python(model, rows))


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


def booster(package, **settings):
    name, quiet = {
        "xgboost": ("XGBClassifier", {"n_jobs": 1}),
        "lightgbm": ("LGBMClassifier", {"n_jobs": 1, "verbose": -1}),
        "catboost": (
            "CatBoostClassifier", {"thread_count": 1, "verbose": 0, "allow_writing_files": False},
        ),
    }[package]  # fmt: skip
    return getattr(pytest.importorskip(package), name)(**quiet, **settings)


BOOSTERS = ["xgboost", "lightgbm", "catboost"]


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
    from sklearn.preprocessing import OneHotEncoder

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


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(
    "kind", ["bagging", "stacking", "voting", "one against the rest", "search"]
)
@pytest.mark.parametrize("package", ["vennforest", *BOOSTERS])
def test_ensembles_of_boosters_and_linear_models_are_equal(kind, k, package):
    rows, y = drawn_for(k, k)
    member = booster(package, n_estimators=4) if package in BOOSTERS else LinearClassifier()
    ensemble = {
        "bagging": BaggingClassifier(member, n_estimators=3, max_features=0.5, random_state=0),
        "stacking": StackingClassifier([("a", member), ("b", LogisticRegression())], cv=2),
        "voting": VotingClassifier([("a", member), ("b", clone(member))], voting="soft"),
        "one against the rest": OneVsRestClassifier(member),
        "search": GridSearchCV(TunedThresholdClassifierCV(member) if k == 2 else member, {}, cv=2),
    }[kind]
    model = CalibratedClassifier(ensemble, calibrate_on="holdout", random_state=0)
    model.fit(rows[:300], y[:300])
    found = run(to_onnx(model, rows), "X", rows)
    for part, values in of_python(model, rows, confidence=False).items():
        np.testing.assert_allclose(found[part], values, rtol=0, atol=1e-6, err_msg=part)


def test_one_against_the_rest_of_models_without_probabilities():
    rows, y = drawn_for(3, 3)
    model = CalibratedClassifier(OneVsRestClassifier(RidgeClassifier()), calibrate_on="holdout")
    found = run(to_onnx(model.fit(rows, y), rows, confidence=True), "X", rows)
    assert_equal(found, of_python(model, rows))


def test_a_neighbouring_step_is_excused_in_few_rows():
    expected, excused = {"p0": np.full(200, 0.3)}, {"p0": np.arange(200) != 4}
    for n_rows in (4, 5):
        answers = {"p0": np.where(np.arange(200) < n_rows, 0.4, 0.3)}
        if n_rows == 4:
            proof.prove("Model", "ONNX", answers, expected, excused)
    with pytest.raises(InputError, match="another 'p0' for 5 of 200 drawn rows, by"):
        proof.prove("Model", "ONNX", answers, expected, excused)
    answers["p0"][:4] = 0.3
    with pytest.raises(InputError, match="another 'p0' for 1 of 200 drawn rows, by"):
        proof.prove("Model", "ONNX", answers, expected, excused)


@pytest.mark.parametrize("seed", range(3))
def test_scores_near_certainty_are_not_taken_for_those_of_examples(seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(1, 1, (260, 4)).round(2)
    y = rows[:, 0] + 0.5 * rows[:, 1] + rng.normal(size=260) / 2 > 1.5
    estimator = SGDClassifier(loss="log_loss", random_state=0)  # log-odds of 10 to 100
    model = CalibratedClassifier(estimator, calibrate_on="holdout", random_state=0).fit(rows, y)
    found = run(to_onnx(model, rows, confidence=True), "X", rows)
    for part, values in of_python(model, rows).items():
        np.testing.assert_allclose(found[part], values, rtol=0, atol=1e-9, err_msg=part)


def test_a_member_that_cannot_be_converted_is_named():
    class Neighbours(KNeighborsClassifier):
        pass

    model = CalibratedClassifier(BaggingClassifier(Neighbours()), calibrate_on="holdout")
    with pytest.raises(InputError, match=r"one that skl2onnx converts: .*Neighb"):
        to_onnx(model.fit(X[:200], Y[:200]), X)


def test_a_bag_whose_members_vote_is_refused():
    model = CalibratedClassifier(BaggingClassifier(LinearSVC()), calibrate_on="holdout")
    with pytest.raises(InputError, match=r"got a BaggingClassifier over LinearSVC, which vote"):
        to_onnx(model.fit(X[:200], Y[:200]), X)


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
