"""Models and transformers of scikit-learn as ONNX graphs of doubles."""

import threading
import time

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.model_selection import GridSearchCV, TunedThresholdClassifierCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    KBinsDiscretizer,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from export.graphs import BOOSTERS, X, Y, assert_equal, drawn_for, forest, of_python, run
from support.cases import booster
from vennforest import CalibratedClassifier
from vennforest._validation import InputError
from vennforest.export import onnx_models, to_onnx
from vennforest.linear import LinearClassifier


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


def test_a_member_that_cannot_be_converted_is_named():
    class Neighbours(KNeighborsClassifier):
        pass

    model = CalibratedClassifier(BaggingClassifier(Neighbours()), calibrate_on="holdout")
    with pytest.raises(InputError, match=r"one that skl2onnx converts: .*Neighb"):
        to_onnx(model.fit(X[:200], Y[:200]), X)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(
    "ensemble",
    [
        OneVsOneClassifier(forest()),
        OneVsOneClassifier(make_pipeline(StandardScaler(), LogisticRegression())),
        BaggingClassifier(RidgeClassifier(), n_estimators=4, random_state=0),
        BaggingClassifier(
            VotingClassifier([("a", LogisticRegression()), ("b", DecisionTreeClassifier())]),
            n_estimators=4,
            random_state=0,
        ),
        *(
            StackingClassifier(
                [("a", LogisticRegression()), ("b", LinearSVC())], stack_method=method, cv=2
            )
            for method in ("predict", "decision_function")
        ),
    ],
    ids=["pairs of forests", "pairs", "votes", "votes of votes", "predictions", "decisions"],
)
def test_ensembles_of_decisions_and_votes_are_equal(ensemble, k):
    rows, y = drawn_for(k, k)
    model = CalibratedClassifier(ensemble, calibrate_on="holdout", random_state=0)
    model.fit(rows[:300], y[:300])
    assert_equal(run(to_onnx(model, rows), "X", rows), of_python(model, rows, confidence=False))


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("kind", ["voting", "stacking", "one against the rest"])
def test_members_read_columns_by_their_names(kind, k):
    pandas = pytest.importorskip("pandas")
    rows, y = drawn_for(k, k)
    table = pandas.DataFrame({"a": rows[:, 0], "colour": np.where(rows[:, 1] > 2, "red", "blue")})
    encode = ColumnTransformer([("t", OneHotEncoder(), ["colour"])], remainder="passthrough")
    member = make_pipeline(encode, LogisticRegression())
    members = [("a", member), ("b", make_pipeline(encode, DecisionTreeClassifier(max_depth=2)))]
    ensemble = {
        "voting": VotingClassifier(members, voting="soft"),
        "stacking": StackingClassifier(members, cv=2),
        "one against the rest": OneVsRestClassifier(member),
    }[kind]
    model = CalibratedClassifier(ensemble, calibrate_on="holdout", random_state=0)
    graph = to_onnx(model.fit(table[:300], y[:300]), table)
    from onnxruntime import InferenceSession

    session = InferenceSession(graph.SerializeToString())
    feed = {name: table[[name]].to_numpy() for name in table}
    p = of_python(model, table, confidence=False)["p"]
    np.testing.assert_allclose(session.run(["p"], feed)[0], p, rtol=0, atol=1e-6)


def test_members_of_a_bag_may_lack_classes():
    rows, y = drawn_for(3, 3)
    y = np.where((y == 2) & (np.arange(len(y)) % 9 > 0), 0, y)
    bag = BaggingClassifier(LinearDiscriminantAnalysis(), max_samples=12, random_state=0)
    model = CalibratedClassifier(bag, calibrate_on="holdout", random_state=0).fit(rows, y)
    assert any(len(member.classes_) < 3 for member in model.estimators_[0].estimators_)
    assert_equal(run(to_onnx(model, rows), "X", rows), of_python(model, rows, confidence=False))
