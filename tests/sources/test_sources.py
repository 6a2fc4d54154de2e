"""Where scores come from: out of bag by hand, the draw, who is left out, pipelines, bagging."""

import hashlib
import struct
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats
from sklearn.datasets import make_classification
from sklearn.ensemble import BaggingClassifier, ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from oracles import formulas as oracle
from vennforest import CalibratedClassifier, Venn, VennAbers
from vennforest.sources import model_scores
from vennforest.sources.data import _has_rows
from vennforest.sources.row_hashes import draw_examples, hash_rows


def data(k=2, n=90, seed=0, d=4):
    X, y = make_classification(
        n + 60, d, n_informative=3, n_redundant=0, n_classes=k, flip_y=0.2, random_state=seed
    )
    X = X.astype(np.float32).astype(float)
    return X[:n], y[:n], X[n:]


def forest(n_estimators=25, **parameters):
    return RandomForestClassifier(n_estimators, random_state=3, **parameters)


# --- the hash, from its description in integers ----------------------------------------------


def mixed(h):
    """The finaliser of splitmix64."""
    h ^= h >> 30
    h = h * 0xBF58476D1CE4E5B9 % 2**64
    h ^= h >> 27
    h = h * 0x94D049BB133111EB % 2**64
    return h ^ (h >> 31)


def hash_by_hand(row, kind):
    h = 0x243F6A8885A308D3
    for j, value in enumerate(row):
        if value == 0:
            continue
        form, nan = ("fI", 0x7F800001) if kind == np.float32 else ("dQ", 0x7FF0000000000001)
        bits = struct.unpack("<" + form[1], struct.pack("<" + form[0], value))[0]
        bits = nan if value != value else bits
        h = mixed(h ^ (bits + (j + 1) * 0x9E3779B97F4A7C15) % 2**64)
    return h


def draw_by_hand(h, seed, n):
    return (mixed(mixed(h ^ mixed((seed + 0x9E3779B97F4A7C15) % 2**64))) >> 32) * n >> 32


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_hash_is_the_one_described_on_every_machine(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 5)) * 10.0 ** rng.integers(-30, 30, (50, 5))
    X[rng.random(X.shape) < 0.2] = 0
    X[rng.random(X.shape) < 0.1] = np.nan
    X = X.astype(kind)
    expected = [hash_by_hand(row, kind) for row in X.tolist()]
    assert hash_rows(X).tolist() == expected
    negative = np.where(X == 0, kind(-0.0), X)
    other_nan = np.where(np.isnan(X), -X, X)
    for same in (negative, other_nan, np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2]):
        assert hash_rows(same).tolist() == expected
    columns, pointers = np.nonzero(X)[1], np.append(0, np.cumsum((X != 0).sum(axis=1)))
    shuffled = sparse.csr_array((X[X != 0], columns, pointers), X.shape)[:, ::-1][:, ::-1]
    for same in (sparse.csr_array(X), sparse.csc_matrix(X), sparse.coo_array(X), shuffled):
        assert hash_rows(same).tolist() == expected
    drawn = draw_examples(hash_rows(X), 2**31 - 5, 1000)
    assert drawn.tolist() == [draw_by_hand(h, 2**31 - 5, 1000) for h in expected]


def test_rows_with_text_are_hashed_whatever_the_others_hold():
    mixed_rows = np.array([["a", 1], ["2", 1], [2, 1.0], [None, np.nan]], dtype=object)
    hashes = hash_rows(mixed_rows)
    for i in range(4):
        assert hash_rows(mixed_rows[i : i + 1])[0] == hashes[i]
    assert len(set(hashes[[0, 2, 3]].tolist())) == 3
    assert hashes[2] == hash_rows(np.array([[2.0, 1.0]]))[0]
    with_text = np.array([["a", -0.0], ["a", 0.0], ["a", 0]], dtype=object)
    assert len(set(hash_rows(with_text).tolist())) == 1
    assert hash_rows(np.empty((3, 0), object)).tolist() == [hash_by_hand([], float)] * 3


def test_a_row_of_text_and_numbers_is_hashed_cell_by_cell():
    texts, numbers = ["a", "$1,000.00", "a", "1"], [1.5, 0.0, -0.0, np.nan]
    lists = [["x"], ["y"], [], None]
    table = pd.DataFrame({"text": texts, "number": numbers, "list": lists})
    expected = []
    for cells in zip(texts, numbers, lists, strict=True):
        h = 0x243F6A8885A308D3
        for j, cell in enumerate(cells):
            if cell == 0:
                continue
            if isinstance(cell, float) and cell == cell:
                bits = struct.unpack("<Q", struct.pack("<d", cell))[0]
            elif cell is None or isinstance(cell, float):
                bits = 0x7FF0000000000001
            else:
                digest = hashlib.blake2b(str(cell).encode(), digest_size=8).digest()
                bits = int.from_bytes(digest, "little")
            h = mixed(h ^ (bits + (j + 1) * 0x9E3779B97F4A7C15) % 2**64)
        expected.append(h)
    for same in (table, table.to_numpy(), table.astype({"number": "float32"})):
        assert hash_rows(same).tolist() == expected
    days = pd.DataFrame({"day": pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-01"])})
    first, second, third = hash_rows(days).tolist()
    assert first == third != second
    assert hash_rows(days.astype("datetime64[s]")).tolist() == [first, second, third]


def test_draws_are_uniform_and_differ_with_the_seed():
    rng = np.random.default_rng(0)
    hashes = hash_rows(rng.normal(size=(100_000, 3)).astype(np.float32))
    for seed in (0, 1, 2**31 - 2):
        draw = draw_examples(hashes, seed, 97)
        assert stats.chisquare(np.bincount(draw, minlength=97)).pvalue > 1e-3
    # Rows that differ in one bit, and seeds that follow each other: independent
    near = hash_rows(np.arange(100_000, dtype=np.float32)[:, None])
    first, other = draw_examples(near, 0, 10), draw_examples(near, 1, 10)
    for a, b in ((first, other), (first[1:], first[:-1])):
        table = np.bincount(10 * a + b, minlength=100)
        assert stats.chisquare(table).pvalue > 1e-3


# --- out of bag by hand ----------------------------------------------------------------------


def calibration_set(model, X, votes):
    """Out-of-bag scores (n, k) of those who have any tree, their indices, and their trees."""
    ensemble = model.estimator_
    trees = oracle.out_of_bag(ensemble, len(X))
    kept = [i for i in range(len(X)) if trees[i]]
    scores = np.array(oracle.forest_scores(ensemble, X[kept], [trees[i] for i in kept], votes))
    return scores, kept, [trees[i] for i in kept]


def column(scores):
    return scores[:, 1] if scores.shape[1] == 2 else scores


def drawn_for(model, new, n):
    """The calibration examples drawn for rows, shape (m,)."""
    hashes = [hash_by_hand(row, np.float32) for row in new.astype(np.float32).tolist()]
    seed = model._state.folds[0].seed
    return np.array([draw_by_hand(h, seed, n) for h in hashes])


def oracle_row(model, row, trees, votes="soft"):
    return np.array(oracle.forest_scores(model.estimator_, row[None], [trees], votes))


def bounds_without(make, scores, y, classes, r, new_score):
    kept = np.arange(len(y)) != r
    calibrator = make().fit(column(scores)[kept], y[kept], classes=classes)
    return calibrator.predict_multiprobability(column(new_score))


@pytest.mark.parametrize("make", [VennAbers, Venn])
@pytest.mark.parametrize("votes", ["soft", "hard"])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("trees", [4, 25])
def test_exchangeable_predictions_are_those_of_one_left_out_example(make, votes, k, trees):
    X, y, new = data(k)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = CalibratedClassifier(
            forest(trees),
            method=make(),
            subforest="exchangeable",
            merge="log",
            votes=votes,
            random_state=0,
        ).fit(X, y)
    scores, kept, trees_of = calibration_set(model, X, votes)
    assert (len(kept) < len(X)) == (trees == 4)
    assert_array_equal(model.calibration_scores_, column(scores))
    assert_array_equal(model.calibration_y_, y[kept])
    m, p = model.predict_multiprobability(new), model.predict_proba(new)
    chosen = drawn_for(model, new, len(kept))
    for i, r in enumerate(chosen):
        own = oracle_row(model, new[i], trees_of[r], votes)
        expected = bounds_without(make, scores, y[kept], range(k), r, own)
        assert_allclose(m.lower[i], expected.lower[0], rtol=0, atol=1e-12)
        assert_allclose(m.upper[i], expected.upper[0], rtol=0, atol=1e-12)
        assert_allclose(p[i], expected.merge("log")[0], rtol=0, atol=1e-12)


def test_without_a_method_a_forest_answers_with_all_its_trees():
    X, y, new = data()
    model = CalibratedClassifier(forest(), method="none", subforest="all").fit(X, y)
    assert_array_equal(model.predict_proba(new)[:, 1], model.estimator_.predict_proba(new)[:, 1])


# --- a row's answer is its own ---------------------------------------------------------------


@pytest.mark.parametrize("subforest", ["exchangeable", "all"])
def test_a_row_is_answered_alike_in_any_company_and_container(subforest):
    X, y, new = data()
    new[0, :2] = 0.0
    names = list("abcd")
    model = CalibratedClassifier(forest(), subforest=subforest, merge="log", random_state=0).fit(
        X, y
    )
    expected = model.predict_proba(new)
    order = np.random.default_rng(0).permutation(len(new))
    assert_allclose(model.predict_proba(new[order]), expected[order], rtol=0, atol=0)
    alone = np.vstack([model.predict_proba(new[i : i + 1]) for i in range(len(new))])
    assert_allclose(alone, expected, rtol=0, atol=0)
    negative = new.copy()
    negative[0, :2] = -0.0
    read_only = new.copy()
    read_only.flags.writeable = False
    for same in (
        negative,
        read_only,
        new.astype(np.float32),
        np.asfortranarray(new),
        np.repeat(new, 2, axis=0)[::2],
        new.tolist(),
        sparse.csr_array(new),
        sparse.csc_matrix(new),
    ):
        assert_allclose(model.predict_proba(same), expected, rtol=0, atol=0)
    model.set_params(n_jobs=2)
    assert_allclose(model.predict_proba(new), expected, rtol=0, atol=0)
    for frame in (pd.DataFrame, pl.DataFrame):
        X_named, new_named = (frame({c: a[:, j] for j, c in enumerate(names)}) for a in (X, new))
        named = CalibratedClassifier(
            forest(), subforest=subforest, merge="log", random_state=0, n_jobs=2
        ).fit(X_named, y)
        assert list(named.feature_names_in_) == names
        assert_allclose(named.predict_proba(new_named), expected, rtol=0, atol=0)


def test_over_many_rows_the_left_out_examples_are_uniform():
    X, y, _ = data(n=60)
    model = CalibratedClassifier(forest(20), subforest="exchangeable", random_state=0).fit(X, y)
    new = np.random.default_rng(0).normal(size=(30_000, 4))
    _, left_out = model._state.folds[0].draw(new)
    assert stats.chisquare(np.bincount(left_out, minlength=60)).pvalue > 1e-3


# --- who calibrates --------------------------------------------------------------------------


@pytest.mark.parametrize("trees", [2, 3, 5])
def test_those_out_of_bag_for_no_tree_are_left_out_with_a_warning(trees):
    X, y, new = data()
    with pytest.warns(UserWarning, match=r"\d+ of 90 examples are out of bag for no tree") as seen:
        model = CalibratedClassifier(forest(trees), subforest="exchangeable", random_state=0).fit(
            X, y
        )
    assert seen[0].filename == __file__
    assert len(model.calibration_y_) < 90
    assert np.isfinite(model.predict_proba(new)).all()
    _, left_out = model._state.folds[0].draw(new)
    assert left_out.max() < len(model.calibration_y_)


def test_nobody_out_of_bag_is_refused_with_the_way_out():
    X, y, _ = data(n=10)
    everyone = BaggingClassifier(DecisionTreeClassifier(), max_samples=10, bootstrap=False)
    with pytest.raises(ValueError, match="estimator must leave examples out of bag, got none that"):
        CalibratedClassifier(everyone, calibrate_on="oob").fit(X, y)
    for estimator in (
        BaggingClassifier(DecisionTreeClassifier(), bootstrap=False),
        ExtraTreesClassifier(),
        RandomForestClassifier(bootstrap=False),
        GaussianNB(),
    ):
        with pytest.raises(ValueError, match=r'estimator must leave.*got.*use calibrate_on="cv"'):
            CalibratedClassifier(estimator, calibrate_on="oob").fit(X, y)


@pytest.mark.parametrize(
    ("estimator", "oob"),
    [
        (None, True),
        (ExtraTreesClassifier(10), False),
        (ExtraTreesClassifier(10, bootstrap=True), True),
        (RandomForestClassifier(10, bootstrap=False), False),
        (BaggingClassifier(GaussianNB(), 10), True),
        (BaggingClassifier(GaussianNB(), 10, bootstrap=False), False),
        (BaggingClassifier(GaussianNB(), 10, bootstrap=False, max_samples=0.6), True),
        (LogisticRegression(), False),
        (LinearSVC(), False),
    ],
    ids=repr,
)
def test_auto_is_out_of_bag_for_bagged_ensembles_and_folds_for_others(estimator, oob):
    X, y, new = data()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = CalibratedClassifier(estimator, random_state=0).fit(X, y)
    assert len(model.estimators_) == (1 if oob else 5)
    assert hasattr(model, "estimator_") == oob
    assert hasattr(model, "calibrator_") == oob
    assert_allclose(model.predict_proba(new).sum(axis=1), 1, atol=1e-12)


@pytest.mark.parametrize("known", [["a", "c", "d"], ["b", "d"], ["c"]])
@pytest.mark.parametrize("method", ["predict_proba", "decision_function"])
def test_a_class_that_a_model_does_not_know_has_the_least_score(known, method):
    rng = np.random.default_rng(len(known))
    own = rng.normal(size=(20, len(known)))
    if method == "decision_function" and len(known) == 2:
        own = np.column_stack([-own[:, 0], own[:, 0]])
    given = own[:, 1] if method == "decision_function" and len(known) == 2 else own
    model = SimpleNamespace(classes_=np.array(known), **{method: lambda X: given})
    scores = model_scores(model, np.empty((20, 1)), np.array(list("abcd")))
    for j, label in enumerate("abcd"):
        if label in known:
            assert_array_equal(scores[:, j], own[:, known.index(label)])
        else:
            assert_array_equal(scores[:, j], 0 if method == "predict_proba" else own.min(axis=1))


def test_what_has_an_entry_a_row_is_cut_with_the_rows():
    assert _has_rows(np.zeros(3), 3)
    assert _has_rows([1, 2, 3], 3)
    for value in (np.float64(3), np.zeros(2), "abc", 3, np.array(3), [1]):
        assert not _has_rows(value, 3)
