"""Calibration within groups of objects: labels, large and small groups, guarantees within them."""

from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import vennforest.tables
from vennforest import CalibratedClassifier, Venn, VennAbers
from vennforest.classifier import prediction
from vennforest.classifier.by_groups import ByGroups
from vennforest.classifier.prediction import (
    FittedClassifier,
    RowScores,
    fit_calibrators,
    predict_rows,
    predict_scores,
)
from vennforest.sources import Fold

pytestmark = pytest.mark.filterwarnings("ignore:.*out of bag.*:UserWarning")


@pytest.fixture(autouse=True)
def groups_of_twenty_are_large(monkeypatch):
    monkeypatch.setattr(prediction, "MIN_EXAMPLES_OF_GROUP", 20)


def frame(n=40):
    rng = np.random.default_rng(0)
    x, town, number = rng.normal(size=n), rng.choice(["Ulm", "Bonn"], n), rng.integers(1, 4, n)
    return pd.DataFrame({"x": x, "town": town, "number": number})


def problem(k=2, n=240, seed=0):
    """Draw objects of three groups, the last one rare, in which scores mean something else."""
    rng = np.random.default_rng(seed)
    group = rng.choice(3, n, p=[0.5, 0.4, 0.1])
    X = np.column_stack([rng.normal(size=(n, 2)), group])
    z = X[:, :1] * np.arange(k) * 1.5 + (group[:, None] - 1) * np.arange(k)
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    y = (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return X, np.array(["a", "b", "c"])[y]


def codes_of(model, fold):
    return model._state.by_codes[fold.rows]


def test_labels_are_the_same_in_every_kind_of_table():
    data = frame()
    data.loc[::7, "town"] = None
    expected = pd.Series(data["town"]).map({"Bonn": 0, "Ulm": 1}).fillna(2).astype(int).to_numpy()
    towns, codes = ByGroups.fit("town", data, 40)
    assert_array_equal(codes, expected)
    assert towns.has_missing and towns.labels.tolist() == ["Bonn", "Ulm"]
    for table in (
        data.astype({"town": "category"}),
        data.astype({"town": "string"}),
        pl.from_pandas(data),
        pa.Table.from_pandas(data),
        data.assign(town=data["town"].astype(object).mask(data["town"].isna(), np.float32("nan"))),
    ):
        assert_array_equal(towns.codes(table, 40), expected)
    pairs = data.assign(town=[("x", town) for town in data["number"]])
    assert ByGroups.fit("town", pairs, 40)[0].labels.tolist() == [f"('x', {i})" for i in (1, 2, 3)]
    nullable = data.assign(number=data["number"].astype("Int64"))
    nullable.loc[::5, "number"] = pd.NA
    numbers, codes = ByGroups.fit("number", nullable, 40)
    assert numbers.has_missing and numbers.labels.tolist() == [1.0, 2.0, 3.0]
    assert (codes[::5] == 3).all()
    expected = data["number"].to_numpy() - 1
    for table in (data, data.astype({"number": "float32"}), data.astype({"number": "category"})):
        assert_array_equal(numbers.codes(table, 40), expected)
    matrix = data[["x", "number"]].to_numpy()
    for table in (matrix, csr_array(matrix), data[["x", "number"]]):
        assert_array_equal(ByGroups.fit(1, table, 40)[1], expected)
    assert_array_equal(ByGroups.fit(lambda X: X[:, 0] > 0, matrix, 40)[1], matrix[:, 0] > 0)
    dates = pd.DataFrame({"day": pd.to_datetime(["2020-01-01", None, "2020-01-02"] * 4)})
    assert_array_equal(ByGroups.fit("day", dates, 12)[1], [0, 2, 1] * 4)


@pytest.mark.parametrize(
    ("by", "X", "message"),
    [
        ("town", np.zeros((4, 2)), "X must be a data frame"),
        ("city", frame(), "by must name a column of X"),
        (5, np.zeros((4, 2)), "position of a column"),
        (0, np.arange(8.0)[:, None], "few groups, got 8 groups of 8 rows"),
        (lambda X: X, np.zeros((4, 2)), "a label for each of 4 rows"),
        (lambda X: X[:, 0] > np.median(X[:, 0]), np.arange(8.0)[:, None], "whatever the other"),
        (lambda X: np.array([1, "a"], object)[: len(X)], np.zeros((2, 2)), "or numbers, got both"),
    ],
)
def test_groups_that_cannot_be_are_refused(by, X, message):
    with pytest.raises(ValueError, match=message):
        ByGroups.fit(by, X, len(X))


@pytest.mark.parametrize("by", [True, 1.5, ["town"]])
def test_by_is_a_column_or_a_function(by):
    with pytest.raises(ValueError, match="by must be the name or position"):
        CalibratedClassifier(by=by).fit(np.zeros((4, 2)), [0, 1, 0, 1])


def test_labels_at_prediction_are_of_the_kind_at_fit_or_unknown():
    towns, _ = ByGroups.fit("town", frame(), 40)
    with pytest.raises(ValueError, match="by must give text, as at fit, got numbers"):
        towns.codes(frame().assign(town=1), 40)
    for label in ("Köln", None):
        assert (towns.codes(frame().assign(town=label), 40) == -1).all()


@pytest.mark.parametrize("make", [lambda: VennAbers("log"), Venn], ids=["venn-abers", "venn"])
@pytest.mark.parametrize("min_examples", [2, 3])
def test_bounds_are_exact_within_large_groups_by_enumeration(make, min_examples, monkeypatch):
    """Bags of five objects of two scores, two labels and two groups, each being the new one once.

    For every group that is large with the new object, the sum of y - p over the objects whose
    bound of the true label is p is 0.
    """
    monkeypatch.setattr(prediction, "MIN_EXAMPLES_OF_GROUP", min_examples)
    n_cases = 0
    kinds = list(product((0.2, 0.8), (0, 1), (0, 1)))
    for bag in list(combinations_with_replacement(kinds, 5))[::12]:
        sums = defaultdict(Fraction)
        for i, (score, label, group) in enumerate(bag):
            if sum(g == group for *_, g in bag) < min_examples:
                continue
            scores, labels, codes = map(np.array, zip(*(bag[:i] + bag[i + 1 :]), strict=True))
            fold = Fold(GaussianNB(), scores, labels, rows=np.arange(4))
            state = FittedClassifier(np.arange(2), [fold], "", "", n_rows=4, by_codes=codes)
            state = fit_calibrators(state, [fold], make(), None)
            bounds, _ = predict_scores(
                state, [RowScores(np.array([score]), None, None)], np.array([group])
            )
            p = Fraction(float((bounds.p0, bounds.p1)[label][0])).limit_denominator(5)
            sums[group, p] += label - p
            n_cases += 1
        assert set(sums.values()) <= {0}
    assert n_cases > 120


# --- models ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "k"),
    [
        ({}, 2),
        ({"calibrate_on": "cv", "cv": 2, "merge": "log"}, 3),
        ({"calibrate_on": "cv", "cv": 3, "ensemble": False}, 2),
        ({"calibrate_on": "holdout", "method": "venn"}, 3),
        ({"method": "isotonic", "calibrate_on": "cv", "cv": 2}, 3),
    ],
    ids=str,
)
def test_large_groups_are_calibrated_by_their_own_examples(settings, k):
    X, y = problem(k)
    new, _ = problem(k, 60, seed=1)
    forest = RandomForestClassifier(30, random_state=0)
    model = CalibratedClassifier(forest, by=2, random_state=0, **settings).fit(X, y)
    bounds, p = predict_rows(model._state, new)
    assert_array_equal(p, model.predict_proba(new))
    for group in range(3):
        rows = new[:, 2] == group
        assert_array_equal(
            predict_rows(model._state, new[rows])[1], p[rows]
        )  # whatever the other rows
        of_fold = []
        for fold, calibrator in zip(model._state.folds, model.calibrators_, strict=True):
            mine = codes_of(model, fold) == group
            mine = mine if mine.sum() >= 19 else np.ones(len(mine), bool)
            scores = fold.score(new[rows])
            own = clone(calibrator).fit(
                fold.scores[mine], model.classes_[fold.codes[mine]], classes=model.classes_
            )
            if bounds is None:
                of_fold.append(own.predict_proba(scores))
                continue
            of_fold.append(own.predict_multiprobability(scores))
        if bounds is None:
            assert_allclose(p[rows], np.mean(of_fold, axis=0), atol=1e-15)
            continue
        lower, upper = (
            np.mean([getattr(m, e) for m in of_fold], axis=0) for e in ("lower", "upper")
        )
        assert_allclose(bounds.lower[rows], np.minimum(lower, p[rows]), atol=1e-15)
        assert_allclose(bounds.upper[rows], np.maximum(upper, p[rows]), atol=1e-15)


def test_an_example_left_out_is_left_out_of_its_group():
    X, y = problem()
    forest = RandomForestClassifier(40, random_state=0)
    settings = {"subforest": "exchangeable", "merge": "log", "random_state": 0}
    model = CalibratedClassifier(forest, by=2, **settings).fit(X, y)
    (fold,) = model._state.folds
    new = problem(2, 40, seed=1)[0]
    new = new[new[:, 2] < 2]
    bounds = model.predict_multiprobability(new)
    scores, left_out = fold.score_for_bounds(new)
    n_shorter = 0
    for i, row in enumerate(new):
        mine = codes_of(model, fold) == row[2]
        gone = np.arange(len(mine)) == left_out[i]
        n_shorter += (mine & gone).any()
        rest = mine & ~gone
        m = VennAbers("log").fit(fold.scores[rest], fold.codes[rest], classes=[0, 1])
        m = m.predict_multiprobability(scores[[i]])
        assert_allclose([bounds.p0[i], bounds.p1[i]], [m.p0[0], m.p1[0]], atol=1e-12)
    assert n_shorter > 10


def test_small_and_unseen_groups_have_the_calibrator_of_all():
    X, y = problem(n=100)
    assert 1 < (X[:, 2] == 2).sum() < 19
    new = problem(2, 40, seed=1)[0]
    new[:5, 2], new[5, 2] = 7, np.nan
    forest = RandomForestClassifier(30, random_state=0)
    settings = {"merge": "log", "random_state": 0}
    model = CalibratedClassifier(forest, by=lambda X: X[:, 2], **settings).fit(X, y)
    with pytest.warns(UserWarning, match="6 of 40 rows are of groups without"):
        bounds, p = predict_rows(model._state, new)
    plain = CalibratedClassifier(forest, **settings).fit(X, y)
    m, q = predict_rows(plain._state, new)
    small = ~np.isin(new[:, 2], [0, 1])
    assert small.sum() > 6
    assert_array_equal(p[small], q[small])
    assert_array_equal(bounds.lower[small], m.lower[small])
    assert (p[~small] != q[~small]).any()


def test_priors_and_confidence_intervals_work_with_groups():
    X, y = problem(2, 900)
    new = problem(2, 200, seed=1)[0]
    model = CalibratedClassifier(LogisticRegression(), by=2, random_state=0).fit(X, y)
    p, q = model.predict_proba(new), model.with_prior({"b": 0.9}).predict_proba(new)
    odds = p * np.array([0.1, 0.9]) / model.prior_
    assert_allclose(q, odds / odds.sum(axis=1, keepdims=True), atol=1e-12)
    estimate = model.estimate_prior(new)
    assert abs(estimate.estimate[1] - model.prior_[1]) < 0.1
    intervals = model.predict_confidence(new[:20])
    row = model.predict_confidence(new[[7]])  # whatever the other rows
    assert_allclose([row.lower[0], row.upper[0]], [intervals.lower[7], intervals.upper[7]])


@pytest.mark.parametrize(
    ("settings", "k"),
    [({"calibrate_on": "cv", "cv": 2, "merge": "log"}, 3), ({"method": "platt"}, 2)],
)
def test_training_rows_are_predicted_within_groups_and_without_their_label(settings, k):
    X, y = problem(k, 150)
    forest = RandomForestClassifier(30, random_state=0)
    model = CalibratedClassifier(forest, by=2, random_state=0, **settings).fit(X, y)
    p = model.oob_probability_
    assert_allclose(p.sum(axis=1), 1)
    folds = model._state.folds
    codes = [fold.codes.copy() for fold in folds]
    codes[0][3] = (codes[0][3] + 1) % k
    changed = [replace(fold, codes=c) for fold, c in zip(folds, codes, strict=True)]
    other = clone(model)._calibrate(replace(model._state, folds=changed))
    row = folds[0].rows[3]
    assert_array_equal(other.oob_probability_[row], p[row])
    assert (other.oob_probability_ != p).any()


def test_files_keep_groups_of_columns_and_refuse_functions(tmp_path):
    data = frame(80)
    data["town"] = data["town"].mask(np.arange(80) % 9 == 0)
    y = np.where(np.random.default_rng(0).random(80) < 0.5, "no", "yes")
    forest = vennforest.tables.table_pipeline(RandomForestClassifier(10, random_state=0))
    model = CalibratedClassifier(forest, by="town", random_state=0).fit(data, y)
    vennforest.save(model, tmp_path / "model.skops")
    loaded = vennforest.load(tmp_path / "model.skops")
    (bounds, p), (same, q) = predict_rows(model._state, data), predict_rows(loaded._state, data)
    assert_array_equal(p, q)
    assert_array_equal(bounds.lower, same.lower)
    assert_array_equal(loaded._state.by_groups.labels, model._state.by_groups.labels)
    model = CalibratedClassifier(GaussianNB(), by=lambda X: X[:, 0] > 0)
    model.fit(data[["x"]].to_numpy(), y)
    with pytest.raises(ValueError, match="must be importable by name"):
        vennforest.save(model, tmp_path / "other.skops")
    assert not (tmp_path / "other.skops").exists()


def test_groups_are_those_of_the_rows_of_each_fold():
    X, _ = problem()
    forest = RandomForestClassifier(20, random_state=0)
    weight = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
    for source in ("oob", "holdout", "cv"):
        model = CalibratedClassifier(forest, calibrate_on=source, method="none", by=2)
        model.fit(X, X[:, 2], sample_weight=None if source == "oob" else weight)
        for fold in model._state.folds:  # labels are the groups, so rows in disorder would show
            assert_array_equal(codes_of(model, fold), fold.codes)


def test_numbers_and_booleans_in_text_are_the_groups_that_fit_saw_as_numbers():
    groups, _ = ByGroups.fit(0, np.array([[1.0], [0.0]] * 9), 18)
    cells = np.array([["1"], ["01"], [" false"], ["TRUE"], ["x"], ["0.0"]], object)
    assert groups.codes(cells, 6).tolist() == [1, 1, 0, 1, -1, 0]
