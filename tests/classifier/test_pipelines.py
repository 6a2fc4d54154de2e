"""A pipeline that ends in an ensemble is that ensemble behind its transformers."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import vennforest
from support.cases import draw_grid
from vennforest import CalibratedClassifier
from vennforest.linear import LinearClassifier
from vennforest.sources.data import skip_shared_steps
from vennforest.tables.schema import TableColumns
from vennforest.tables.vectorize import TableEncoder, table_pipeline


def forest():
    return RandomForestClassifier(15, random_state=1)


@pytest.mark.parametrize("last", [forest(), BaggingClassifier(GaussianNB(), 9, random_state=0)])
def test_a_pipeline_is_its_ensemble_behind_its_transformers(last):
    X, y, new = draw_grid()
    scaler = StandardScaler().fit(X)
    direct = CalibratedClassifier(last, random_state=0).fit(scaler.transform(X), y)
    expected = direct.predict_proba(scaler.transform(new))
    whole = direct.estimator_.predict_proba(scaler.transform(new))
    for pipeline in (
        make_pipeline(StandardScaler(), last),
        make_pipeline("passthrough", StandardScaler(), None, last),
        make_pipeline(make_pipeline(StandardScaler()), make_pipeline("passthrough", last)),
        Pipeline([("a", StandardScaler()), ("b", Pipeline([("c", last)]))]),
    ):
        model = CalibratedClassifier(pipeline, random_state=0).fit(X, y)
        assert_array_equal(model.calibration_scores_, direct.calibration_scores_)
        assert_array_equal(model.predict_proba(new), expected)
        assert isinstance(model.estimator_, Pipeline)
        assert_array_equal(model.estimator_.predict_proba(new), whole)
    alone = CalibratedClassifier(Pipeline([("only", last)]), random_state=0)
    alone.fit(scaler.transform(X), y)
    assert_array_equal(alone.predict_proba(scaler.transform(new)), expected)


def named_columns(n=150, seed=0):
    rng = np.random.default_rng(seed)
    colour = rng.choice(["red", "green", "blue"], n)
    size = rng.normal(size=n)
    y = (size + (colour == "red") + 0.7 * rng.normal(size=n) > 0.5).astype(int)
    return {"colour": colour, "size": size}, np.array(["low", "high"])[y]


@pytest.mark.parametrize(
    ("last", "calibrate_on"), [(forest(), "auto"), (forest(), "holdout"), (GaussianNB(), "cv")]
)
def test_columns_are_picked_by_name_inside_a_pipeline(last, calibrate_on):
    columns, y = named_columns()
    settings = {"calibrate_on": calibrate_on, "merge": "log", "random_state": 0}
    hot = np.column_stack([columns["colour"] == c for c in ("blue", "green", "red")])
    plain = np.column_stack([hot, columns["size"]])
    expected = CalibratedClassifier(last, **settings).fit(plain, y).predict_proba(plain)
    hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    pick = ColumnTransformer([("hot", hot, ["colour"]), ("num", "passthrough", ["size"])])
    for frame in (pd.DataFrame, pl.DataFrame):
        X = frame(columns)
        model = CalibratedClassifier(make_pipeline(pick, last), **settings).fit(X, y)
        assert_allclose(model.predict_proba(X), expected, rtol=0, atol=1e-6)
        assert model.feature_names_in_.tolist() == ["colour", "size"]
        unseen = frame({"colour": ["pink"], "size": [0.5]})
        assert np.isfinite(model.predict_proba(unseen)).all()


def test_texts_are_rows_too():
    texts = np.array(["good fine", "bad poor", "fine nice", "poor awful"] * 20, dtype=object)
    y = np.array([1, 0, 1, 0] * 20)
    for X in (texts, texts.tolist(), pd.Series(texts)):
        for last in (forest(), LogisticRegression()):
            model = CalibratedClassifier(make_pipeline(TfidfVectorizer(), last), merge="log")
            assert_array_equal(model.fit(X, y).predict(X), y)


def test_transformers_in_the_same_state_run_once(tmp_path):
    X, y, new = draw_grid()
    frame = pd.DataFrame(X, columns=[*"abcd"]).assign(e=[*"uvw"] * 40)
    new = pd.DataFrame(new, columns=[*"abcd"]).assign(e=[*"uvwx"] * 10)
    one_hot = OneHotEncoder(handle_unknown="ignore")
    encoder = ColumnTransformer([("e", one_hot, ["e"])], remainder="passthrough")
    for n_shared, *steps in (
        (2, encoder, None),
        (1, encoder, StandardScaler()),
        (2, encoder, FrozenEstimator(StandardScaler().fit(encoder.fit_transform(frame)))),
        (0, make_pipeline(encoder, StandardScaler()), "passthrough"),
        (0, FunctionTransformer(lambda Z: Z[[*"abcd"]]), StandardScaler()),  # has no hash
    ):
        pipeline = make_pipeline(*steps, GaussianNB())
        model = CalibratedClassifier(pipeline, merge="log", random_state=0).fit(frame, y)
        pairs = skip_shared_steps(model._state.folds, new)
        for fold, (part, rows) in zip(model._state.folds, pairs, strict=True):
            assert (rows is new) == (n_shared == 0)
            assert rows is pairs[0][1]
            assert len(part.model.steps) == 3 - n_shared
            assert_array_equal(part.score(rows), fold.score(new))
        if n_shared == 2:
            vennforest.save(model, tmp_path / "m.skops")
            loaded = vennforest.load(tmp_path / "m.skops")
            assert skip_shared_steps(loaded._state.folds, new)[0][1] is not new
            assert_array_equal(loaded.predict_proba(new), model.predict_proba(new))


def test_members_of_a_blend_share_transformers(tmp_path, monkeypatch):
    X, y, new = draw_grid()
    frame = pd.DataFrame(X, columns=[*"abcd"]).assign(e=[*"uvw"] * 40)
    new = pd.DataFrame(new, columns=[*"abcd"]).assign(e=[*"uvwx"] * 10)
    members = {"forest": forest(), "bayes": GaussianNB(), "logistic": LinearClassifier()}
    pipelines = [(name, table_pipeline(member, 0)) for name, member in members.items()]
    model = CalibratedClassifier(pipelines, random_state=0).fit(frame, y)
    assert sum(weight > 0 for weight in model.blend_.values()) > 1
    blend = model._state.folds[0].model
    expected = blend.blend([[fold.score(new) for fold in m.folds] for m in blend.members])
    vennforest.save(model, tmp_path / "m.skops")
    loaded = vennforest.load(tmp_path / "m.skops")
    calls = []
    for cls in (TableColumns, TableEncoder):

        def transform(self, X, cls=cls, transform=cls.transform):
            calls.append(cls)
            return transform(self, X)

        monkeypatch.setattr(cls, "transform", transform)
    for fitted in (model, loaded):
        calls.clear()
        scores = fitted._state.folds[0].score(new)
        assert calls == [TableColumns, TableEncoder]
        assert_array_equal(scores, expected)


def doubled(X, in_place):
    if in_place:
        X *= 2
        return X
    return X * 2


def double(in_place):
    return FunctionTransformer(doubled, kw_args={"in_place": in_place})


@pytest.mark.parametrize("calibrate_on", ["auto", "holdout", "training"])
@pytest.mark.parametrize("scaler", [lambda change: StandardScaler(copy=not change), double])
@pytest.mark.parametrize(
    "model_after",
    [
        lambda step: make_pipeline(step, GaussianNB()),
        lambda step: make_pipeline(step, forest()),
        lambda step: GridSearchCV(make_pipeline(step, GaussianNB()), {}, cv=2),
        lambda step: BaggingClassifier(make_pipeline(step, GaussianNB()), 9, random_state=0),
        lambda step: [
            ("a", make_pipeline(FunctionTransformer(), step, GaussianNB())),
            ("b", make_pipeline(FunctionTransformer(), GaussianNB())),
        ],
    ],
)
def test_transformers_that_change_their_rows_change_no_others(model_after, scaler, calibrate_on):
    X, y, new = draw_grid()
    rows, p = [X, new], []
    for in_place in (False, True):
        model = CalibratedClassifier(model_after(scaler(in_place)), calibrate_on=calibrate_on)
        X, new = rows[0].astype(float), rows[1].astype(float)
        p.append(model.set_params(random_state=0).fit(X, y).predict_proba(new))
        assert_array_equal(X, rows[0])
        assert_array_equal(new, rows[1])
    assert_array_equal(*p)


@pytest.mark.parametrize("calibrate_on", ["oob", "cv", "holdout"])
def test_columns_declared_to_be_left_out_are_left_out_of_folds(calibrate_on):
    X, y, _ = draw_grid()
    frame = pd.DataFrame(X, columns=[*"abcd"]).assign(empty=None)
    pipeline = table_pipeline(forest(), 0, types={"b": "drop"})
    settings = {"calibrate_on": calibrate_on, "random_state": 0}
    model = CalibratedClassifier(pipeline, **settings).fit(frame, y)
    for fitted in model.estimators_:
        assert [*fitted[0].feature_names_in_][:3] == [*"acd"]
    members = [("forest", pipeline), ("linear", table_pipeline(LinearClassifier(), 0))]
    blend = CalibratedClassifier(members, random_state=0).fit(frame, y)
    assert blend.feature_names_in_.tolist() == [*"acd", "empty"]
