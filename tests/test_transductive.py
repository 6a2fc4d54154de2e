import functools
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

from oracles import formulas as oracle
from vennforest.calibrators.core.interface import normalised_bounds
from vennforest.calibrators.venn.calibrator import Venn
from vennforest.calibrators.venn.taxonomies import ConfidenceBins
from vennforest.transductive import TransductiveClassifier, isotonic_value


def draw_data(seed, n=18, k=2, d=2, discrete=False):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n + 5, d)).astype(float) if discrete else rng.normal(size=(n + 5, d))
    y = np.argsort(np.argsort(X[:, 0] + rng.normal(size=n + 5))) * k // (n + 5)
    y[:k] = range(k)
    return X[:n], y[:n], X[n:]


ESTIMATORS = {
    "naive Bayes": GaussianNB,
    "tree": functools.partial(DecisionTreeClassifier, max_depth=2, random_state=0),
    "neighbours": functools.partial(KNeighborsClassifier, 3),
    "decision values": functools.partial(RidgeClassifier, solver="cholesky"),
}


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(
    ("estimator", "discrete"),
    # The oracle keeps equal rows apart where matrix products round them differently.
    [(name, d) for name in ESTIMATORS for d in (False, True) if not (d and name.startswith("dec"))],
)
def test_venn_abers_equals_the_naive_double_loop(estimator, k, discrete):
    for seed in range(3):
        X, y, new = draw_data(seed, k=k, discrete=discrete)
        m = TransductiveClassifier(ESTIMATORS[estimator]()).fit(X, y).predict_multiprobability(new)
        for i, x in enumerate(new):
            values = oracle.transductive_venn_abers(ESTIMATORS[estimator], X, y, x, k)
            p0 = np.array([[float(min(row[j] for row in values)) for j in range(k)]])
            p1 = np.array([[float(max(row[j] for row in values)) for j in range(k)]])
            lower, upper = (p0, p1) if k == 2 else normalised_bounds(p0, p1)
            np.testing.assert_allclose(m.lower[i], lower[0], rtol=0, atol=1e-12)
            np.testing.assert_allclose(m.upper[i], upper[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("estimator", ["naive Bayes", "tree", "neighbours"])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("taxonomy", ["label", "margin", "callable"])
def test_venn_equals_the_naive_double_loop(estimator, k, taxonomy):
    def cut(scores):
        return np.floor(scores.reshape(len(scores), -1)[:, 0] * 3)

    category = {
        "label": oracle.label_category,
        "margin": lambda s: oracle.split_label_category(s, 0.5),
        "callable": lambda s: np.floor((s if k == 2 else s[0]) * 3),
    }[taxonomy]
    model = TransductiveClassifier(
        ESTIMATORS[estimator](),
        method=Venn(cut if taxonomy == "callable" else taxonomy),
    )
    for seed in range(3):
        X, y, new = draw_data(seed, k=k, discrete=seed == 2)
        m = model.fit(X, y).predict_multiprobability(new)
        for i, x in enumerate(new):
            expected = oracle.transductive_venn(ESTIMATORS[estimator], X, y, x, k, category)
            np.testing.assert_allclose(m.lower[i], [float(b) for b, _ in expected], atol=1e-12)
            np.testing.assert_allclose(m.upper[i], [float(b) for _, b in expected], atol=1e-12)


def test_isotonic_value_equals_the_oracle():
    rng = np.random.default_rng(0)
    for _ in range(2000):
        n = int(rng.integers(1, 9))
        scores = rng.choice(
            [
                rng.integers(0, 4, n) / 3,
                rng.normal(size=n),
                0.5 + np.spacing(0.5) * rng.integers(-1, 2, n),
                10.0 ** rng.choice([-300, 0, 300], n),
            ]
        )
        positive = rng.integers(0, 2, n)
        weight = rng.choice([0.5, 1.0, 3.0], n)
        at = int(rng.integers(n))
        expected = oracle.isotonic_max_min(scores, positive, weight)[float(scores[at])]
        assert isotonic_value(scores, positive, weight, at) == pytest.approx(
            float(expected), abs=1e-12
        )


def test_normalised_bounds_hold_every_normalised_point_of_the_box():
    rng = np.random.default_rng(1)
    for _ in range(500):
        k = int(rng.integers(2, 6))
        ends = np.sort(rng.choice([0, 1, 0.5, 1e-9, *rng.random(4)], (2, 1, k)), axis=0)
        p0, p1 = ends[0], np.maximum(ends[1], 1e-12)
        p0 = np.minimum(p0, p1)
        lower, upper = normalised_bounds(p0, p1)
        assert (lower >= 0).all() and (upper <= 1).all()
        assert (lower <= p0).all() and (p1 <= upper).all()
        assert lower.sum() <= 1 + 1e-12 and upper.sum() >= 1 - 1e-12
        points = p0 + (p1 - p0) * rng.choice([0, 1, rng.random()], (50, k))
        points = points[points.sum(axis=1) > 0]
        shares = points / points.sum(axis=1, keepdims=True)
        assert (shares >= lower - 1e-12).all() and (shares <= upper + 1e-12).all()
        # No bound is wider than it must be: each is met by the interval or by a corner.
        for j in range(k):
            corner = p1[0].copy()
            corner[j] = p0[0, j]
            met = min(p0[0, j], corner[j] / corner.sum())
            assert lower[0, j] == pytest.approx(met, abs=1e-12)
            corner = p0[0].copy()
            corner[j] = p1[0, j]
            met = max(p1[0, j], corner[j] / corner.sum())
            assert upper[0, j] == pytest.approx(met, abs=1e-12)


def test_normalised_bounds_of_zeros_say_nothing_more():
    zeros = np.zeros((1, 3))
    lower, upper = normalised_bounds(zeros, zeros)
    np.testing.assert_array_equal(lower, zeros)
    np.testing.assert_array_equal(upper, zeros + 1)


class RoundsByPosition(ClassifierMixin, BaseEstimator):
    """Scores by the first feature, off by one unit in the last place in every other row."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return X[:, 0] + np.spacing(X[:, 0]) * (np.arange(len(X)) % 2)


def test_equal_rows_are_one_point_of_the_fit():
    X = np.repeat([1.0, 2.0, 3.0], 4)[:, None]
    y = np.array([0, 0, 0, 1, 0, 1, 1, 0, 1, 1, 1, 0])
    new = np.array([[2.0], [3.0], [3.5]])
    got = TransductiveClassifier(RoundsByPosition()).fit(X, y).predict_multiprobability(new)
    exact = [oracle.venn_abers(X[:, 0], y, x) for x in new[:, 0]]
    np.testing.assert_allclose(got.p0, [float(p0) for p0, _ in exact])
    np.testing.assert_allclose(got.p1, [float(p1) for _, p1 in exact])


@pytest.mark.parametrize("method", ["venn-abers", "venn"])
def test_an_object_is_predicted_by_itself(method):
    X, y, new = draw_data(3, k=3)
    tree = ExtraTreeClassifier()
    model = TransductiveClassifier(tree, method=method, random_state=4).fit(X, y)
    together = model.predict_proba(new)
    np.testing.assert_array_equal(model.predict_proba(new[::-1])[::-1], together)
    np.testing.assert_array_equal(np.vstack([model.predict_proba(x[None]) for x in new]), together)
    np.testing.assert_array_equal(model.predict_proba(np.repeat(new, 2, axis=0))[::2], together)
    again = clone(model).set_params(n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(again.predict_proba(new), together)
    assert tree.random_state is None
    np.testing.assert_array_equal(model.predict(new), model.classes_[together.argmax(axis=1)])


def test_random_state_reaches_every_step_that_has_none_of_its_own():
    X, y, _ = draw_data(0)
    pipe = make_pipeline(StandardScaler(), RandomForestClassifier(3))
    one, two, other = (
        TransductiveClassifier(pipe, random_state=seed).fit(X, y)._state.template
        for seed in (1, 1, 2)
    )
    seeds = [m.get_params()["randomforestclassifier__random_state"] for m in (one, two, other)]
    assert seeds[0] == seeds[1] != seeds[2]
    fixed = RandomForestClassifier(3, random_state=9)
    assert TransductiveClassifier(fixed, random_state=1).fit(X, y)._state.template.random_state == 9


@pytest.mark.parametrize(
    "labels", [[1, 2], [-1, 1], ["no", "yes"], [False, True], [0.0, 1.0], ["b", "ä"]]
)
def test_any_labels_give_what_0_and_1_give(labels):
    X, y, new = draw_data(5)
    plain = TransductiveClassifier(GaussianNB()).fit(X, y)
    named = TransductiveClassifier(GaussianNB()).fit(X, np.array(labels)[y])
    np.testing.assert_array_equal(named.predict_proba(new), plain.predict_proba(new))
    assert named.predict(new).tolist() == np.array(labels)[plain.predict(new)].tolist()


def test_merges():
    X, y, new = draw_data(6, k=3)
    for method, usual in [("venn-abers", "log"), ("venn", "midpoint"), (Venn(merge="log"), "log")]:
        model = TransductiveClassifier(GaussianNB(), method=method).fit(X, y)
        bounds = model.predict_multiprobability(new)
        np.testing.assert_array_equal(model.predict_proba(new), bounds.merge(usual))
        model = TransductiveClassifier(GaussianNB(), method=method, merge="brier").fit(X, y)
        np.testing.assert_array_equal(model.predict_proba(new), bounds.merge("brier"))
        np.testing.assert_allclose(model.predict_proba(new).sum(axis=1), 1)


def test_a_venn_brings_its_taxonomy():
    X, y, new = draw_data(7, n=30)
    one = TransductiveClassifier(GaussianNB(), method=Venn(ConfidenceBins(2))).fit(X, y)
    two = TransductiveClassifier(GaussianNB(), method="venn").fit(X, y)
    assert not np.array_equal(one.predict_proba(new), two.predict_proba(new))


def test_decision_values_become_shares_for_venn():
    X, y, new = draw_data(8, n=25)
    model = TransductiveClassifier(LinearSVC(), method="venn", random_state=0).fit(X, y)
    margin = LinearSVC(random_state=0).fit(X, y).decision_function(X)
    assert len(set(y[margin > 0])) and len(set(y[margin <= 0]))
    m = model.predict_multiprobability(new)
    assert m.width.max() < 0.5  # with everybody below 0.5 there would be one category alone
    same = model.estimator_.predict(new) == model.predict(new)
    assert same.mean() >= 0.8


def test_tables_of_every_kind_give_the_same():
    X, y, new = draw_data(9, d=3, discrete=True)
    names = ["a", "b", "c"]
    model = TransductiveClassifier(GaussianNB())
    expected = model.fit(X, y).predict_proba(new)
    for table in (
        functools.partial(pd.DataFrame, columns=names),
        functools.partial(pl.DataFrame, schema=names),
        np.ndarray.tolist,
        np.asfortranarray,
        lambda a: a.astype(np.float32),
        lambda a: a.astype(np.int64),
    ):
        fitted = clone(model).fit(table(X), list(y))
        np.testing.assert_allclose(fitted.predict_proba(table(new)), expected, atol=1e-12)
        if hasattr(table(X), "columns"):
            assert fitted.feature_names_in_.tolist() == names
        assert fitted.n_features_in_ == 3


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.coo_array, sp.csc_array])
def test_sparse_tables_with_the_default_estimator(form):
    X, y, new = draw_data(10, n=20, d=3, discrete=True)
    dense = TransductiveClassifier().fit(X, y).predict_proba(new)
    sparse = TransductiveClassifier().fit(form(X), y).predict_proba(form(new))
    np.testing.assert_allclose(sparse, dense, atol=0.1)
    plain = LogisticRegression()
    dense = TransductiveClassifier(plain).fit(X, y).predict_proba(new)
    sparse = TransductiveClassifier(plain).fit(form(X), y).predict_proba(form(new))
    np.testing.assert_allclose(sparse, dense, atol=1e-12)


@pytest.mark.parametrize("library", [pd, pl])
def test_columns_selected_by_name_and_missing_values(library):
    X, y, new = draw_data(11, n=24)
    words = np.where(X[:, 0] > 0, "up", "down")
    X[3, 1] = np.nan

    def table(rows, text):
        return library.DataFrame({"x": rows[:, 1], "word": text})

    pipe = make_pipeline(
        make_column_transformer(
            (OneHotEncoder(sparse_output=False, handle_unknown="ignore"), ["word"]),
            remainder="passthrough",
        ),
        DecisionTreeClassifier(max_depth=2, random_state=0),
    )
    model = TransductiveClassifier(pipe).fit(table(X, words), y)
    p = model.predict_proba(table(new, np.where(new[:, 0] > 0, "up", "sideways")))
    assert np.isfinite(p).all() and len(np.unique(p[:, 1])) > 1


def test_frame_after_array_and_array_after_frame():
    X, y, new = draw_data(12)
    model = TransductiveClassifier(GaussianNB())
    frame = pd.DataFrame(X, columns=["a", "b"])
    expected = model.fit(X, y).predict_proba(new)
    with pytest.warns(UserWarning, match="feature names"):
        got = model.predict_proba(pd.DataFrame(new, columns=["a", "b"]))
    np.testing.assert_array_equal(got, expected)
    with pytest.warns(UserWarning, match="feature names"):
        got = model.fit(frame, y).predict_proba(new)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("method", ["venn-abers", "venn"])
@pytest.mark.parametrize("estimator", [GaussianNB(), DecisionTreeClassifier(max_depth=2)])
def test_a_weight_is_so_many_observations(method, estimator):
    X, y, new = draw_data(13, n=16, k=3)
    counts = np.random.default_rng(0).integers(0, 3, 16)
    counts[:3] = 1
    model = TransductiveClassifier(estimator, method=method, random_state=0)
    weighted = model.fit(X, y, sample_weight=counts).predict_multiprobability(new)
    model = TransductiveClassifier(estimator, method=method, random_state=0)
    repeated = model.fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    repeated = repeated.predict_multiprobability(new)
    np.testing.assert_allclose(weighted.lower, repeated.lower, atol=1e-12)
    np.testing.assert_allclose(weighted.upper, repeated.upper, atol=1e-12)


def test_a_class_of_weight_zero_is_no_class():
    X, y, new = draw_data(14, k=3)
    model = TransductiveClassifier(GaussianNB()).fit(X, y, sample_weight=(y != 1).astype(float))
    assert model.classes_.tolist() == [0, 2]
    assert model.predict_proba(new).shape == (5, 2)


def test_weights_through_pipelines_and_metadata_routing():
    X, y, new = draw_data(15)
    weight = np.random.default_rng(1).integers(1, 4, len(y)).astype(float)
    expected = TransductiveClassifier().fit(X, y, sample_weight=weight).predict_proba(new)
    unweighted = TransductiveClassifier().fit(X, y).predict_proba(new)
    assert not np.allclose(expected, unweighted)
    given = make_pipeline(StandardScaler(), LogisticRegression())
    got = TransductiveClassifier(given).fit(X, y, sample_weight=weight).predict_proba(new)
    np.testing.assert_array_equal(got, expected)
    with config_context(enable_metadata_routing=True):
        got = TransductiveClassifier().fit(X, y, sample_weight=weight).predict_proba(new)
    np.testing.assert_array_equal(got, expected)


def test_the_users_data_and_estimator_stay_as_they_were():
    X, y, new = draw_data(16)
    before = X.copy()
    for array in (X, y, new):
        array.flags.writeable = False
    estimator = GaussianNB()
    TransductiveClassifier(estimator).fit(X, y).predict(new)
    np.testing.assert_array_equal(X, before)
    assert not hasattr(estimator, "classes_")


class OnlyPredicts(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.repeat(self.classes_[:1], len(X))


class BackwardsClasses(GaussianNB):
    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)[::-1]
        self.inner_ = GaussianNB().fit(X, y, sample_weight)
        return self

    def predict_proba(self, X):
        return self.inner_.predict_proba(X)[:, ::-1]


@pytest.mark.parametrize("k", [2, 3])
def test_columns_are_found_by_the_models_own_classes(k):
    X, y, new = draw_data(19, k=k)
    got = TransductiveClassifier(BackwardsClasses()).fit(X, y).predict_proba(new)
    expected = TransductiveClassifier(GaussianNB()).fit(X, y).predict_proba(new)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"method": "venn-aber"}, "method must be"),
        ({"merge": "smooth"}, "merge must be one of"),
        ({"method": Venn(merge="smooth")}, "merge of method must be one of"),
        ({"method": Venn("labels")}, "taxonomy must be one of"),
        ({"estimator": FrozenEstimator(GaussianNB())}, "trained again, got a FrozenEstimator"),
    ],
)
def test_wrong_parameters_are_refused_at_fit(parameters, message):
    X, y, _ = draw_data(17)
    with pytest.raises(ValueError, match=message):
        TransductiveClassifier(**parameters).fit(X, y)


def test_wrong_data_are_refused():
    X, y, new = draw_data(18)
    with pytest.raises(TypeError, match="must have predict_proba or decision_function"):
        TransductiveClassifier(OnlyPredicts()).fit(X, y)
    model = TransductiveClassifier(GaussianNB())
    with pytest.raises(ValueError, match="y must contain at least two classes, got one class: 1"):
        model.fit(X, np.ones(len(X), int))
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.where(X > 0, X, np.nan), y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X, y[:-1])
    with pytest.raises(ValueError, match="where the estimator takes no weights"):
        TransductiveClassifier(KNeighborsClassifier()).fit(X, y, sample_weight=y + 1.0)
    with pytest.raises(ValueError, match="where the estimator takes no weights"):
        pipe = make_pipeline(StandardScaler(), KNeighborsClassifier())
        TransductiveClassifier(pipe).fit(X, y, sample_weight=y + 1.0)
    model.fit(X, y)
    with pytest.raises(ValueError, match="expecting 2 features"):
        model.predict(new[:, :1])
    with pytest.raises(ValueError, match="NaN"):
        model.predict(np.full((1, 2), np.nan))


def check(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(model, on_skip=None)


def test_check_estimator():
    check(TransductiveClassifier(GaussianNB()))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["venn-abers", "venn"])
def test_check_estimator_with_the_default_estimator(method):
    check(TransductiveClassifier(method=method))
