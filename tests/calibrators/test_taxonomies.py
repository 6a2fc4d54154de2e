import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles import formulas as oracle
from support.cases import draw_categorised
from vennforest.calibrators.venn import taxonomies as tx


def test_fixed_taxonomies_equal_the_oracle():
    rng = np.random.default_rng(0)
    for _ in range(1500):
        k, calibration, new, weight = draw_categorised(rng)
        label = tx.LabelTaxonomy().fit(calibration, k, weight)
        assert label(new).tolist() == [oracle.label_category(s) for s in new]
        assert label.n_categories_ == k
        threshold = float(rng.choice([0.0, 0.25, 0.5, 0.75, 1.0]))
        fitted = tx.Margin(threshold).fit(calibration, k, weight)
        expected = [oracle.split_label_category(s, threshold) for s in new]
        assert fitted(new).tolist() == expected
        assert fitted.n_categories_ == 2 * k


def test_equal_width_bins_hold_what_the_formula_says():
    rng = np.random.default_rng(1)
    for _ in range(1500):
        k, calibration, new, weight = draw_categorised(rng)
        bins = int(rng.integers(1, 8))
        fitted = tx.ConfidenceBins(bins).fit(calibration, k, weight)
        assert fitted.n_categories_ == k * bins
        for score, category in zip(new, fitted(new), strict=True):
            label, within = divmod(int(category), bins)
            assert label == oracle.label_category(score)
            confidence = min(max(max(oracle.score_vector(score)), 1 / k), 1)
            place = bins * (confidence - 1 / k) / (1 - 1 / k)
            assert within - 1e-12 <= place <= within + 1 + 1e-12


def test_equal_width_bins_by_hand():
    bins = tx.ConfidenceBins(bins=5).fit(np.empty(0), 2)
    assert bins(np.array([0.5, 0.55, 0.65, 0.95, 1.0, 0.45, 0.0])).tolist() == [0, 5, 6, 9, 9, 0, 4]


def test_neighbour_cells_equal_the_oracle():
    rng = np.random.default_rng(3)
    for _ in range(1000):
        k, calibration, new, weight = draw_categorised(rng)
        cells = int(rng.integers(1, 9))
        fitted = tx.NeighbourCells(cells).fit(calibration, k, weight)
        weights = np.ones(len(calibration)) if weight is None else weight
        points = calibration.reshape(len(calibration), -1).tolist()
        expected = [
            oracle.neighbour_cell(points, weights, p, cells)
            for p in new.reshape(len(new), -1).tolist()
        ]
        assert fitted(new).tolist() == [cell for cell, _ in expected]
        assert fitted.n_categories_ == expected[0][1] <= cells


def test_cells_of_distinct_scores_hold_equally_many():
    scores = np.random.default_rng(4).random(1000)
    assert set(np.bincount(tx.NeighbourCells(8).fit(scores, 2)(scores))) == {125}


@given(
    st.lists(st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.6, 0.9, 1.0]), min_size=1, max_size=8),
    st.data(),
)
def test_a_weight_is_so_many_observations(scores, data):
    counts = data.draw(
        st.lists(st.integers(1, 4), min_size=len(scores), max_size=len(scores)), label="counts"
    )
    array, weight = np.array(scores), np.array(counts, dtype=float)
    new = np.linspace(0, 1, 41)
    weighted = tx.NeighbourCells(4).fit(array, 2, weight)
    repeated = tx.NeighbourCells(4).fit(np.repeat(array, counts), 2)
    assert weighted(new).tolist() == repeated(new).tolist()


def test_huge_weights_do_not_overflow():
    weight = np.full(4, 4e307)
    fitted = tx.NeighbourCells(2).fit(np.array([0.1, 0.2, 0.3, 0.4]), 2, weight)
    assert fitted(np.array([0.2, 0.3])).tolist() == [0, 1]


@pytest.mark.parametrize("name", tx.NAMED)
@pytest.mark.parametrize("k", [2, 4])
def test_a_category_depends_on_its_own_score_alone(name, k):
    rng = np.random.default_rng(5)
    scores = rng.random(60) if k == 2 else rng.dirichlet(np.ones(k), 60)
    fitted = tx.resolve(name).fit(scores, k)
    together = fitted(scores)
    assert together.dtype == np.intp
    assert 0 <= together.min() <= together.max() < fitted.n_categories_
    assert together.tolist() == [int(fitted(scores[i : i + 1])[0]) for i in range(60)]
    assert fitted(scores[:0]).shape == (0,)


@pytest.mark.parametrize("first", ["low", 3, (1, 2), None])
def test_a_callable_may_return_anything_hashable(first):
    def category(scores):
        values = np.empty(len(scores), dtype=object)
        for i, s in enumerate(scores):
            values[i] = first if s < 0.5 else "high"
        return values

    fitted = tx.resolve(category).fit(np.array([0.1, 0.9, 0.2]), 2)
    assert fitted.n_categories_ == 2
    codes = fitted(np.array([0.3, 0.7]))
    assert codes.tolist() == fitted(np.array([0.1, 0.9])).tolist()
    assert len(set(codes.tolist())) == 2


def test_a_category_never_met_is_minus_one():
    fitted = tx.resolve(lambda s: np.floor(s * 10).astype(int)).fit(np.array([0.1, 0.35]), 2)
    assert fitted(np.array([0.12, 0.39, 0.99])).tolist() == [0, 1, -1]
    named = tx.resolve(lambda s: np.where(s > 0.9, "exceptionally high", "low"))
    assert named.fit(np.array([0.1]), 2)(np.array([0.95, 0.2])).tolist() == [-1, 0]


def test_fitting_leaves_the_users_taxonomy_alone():
    mine = tx.NeighbourCells(3)
    tx.resolve(mine).fit(np.arange(9.0), 2)
    assert not hasattr(mine, "n_categories_")


@pytest.mark.parametrize(
    ("taxonomy", "message"),
    [
        (tx.ConfidenceBins(0), "bins must be an integer >= 1, got 0"),
        (tx.ConfidenceBins(2.5), "bins must be an integer >= 1, got 2.5"),
        (tx.ConfidenceBins(True), "bins must be an integer >= 1, got True"),
        (tx.NeighbourCells(-1), "cells must be an integer >= 1, got -1"),
        (tx.Margin(1.5), "threshold must lie in"),
        (tx.Margin(float("nan")), "threshold must lie in"),
        (tx.Margin("wide"), "threshold must lie in"),
        (tx.CallableTaxonomy(lambda s: s[:1]), "taxonomy must return 3 categories"),
        (tx.CallableTaxonomy(lambda s: s * np.nan), "equal themselves, got NaN"),
    ],
)
def test_bad_parameters_are_refused_at_fit(taxonomy, message):
    with pytest.raises(ValueError, match=message):
        taxonomy.fit(np.array([0.1, 0.2, 0.3]), 2)


@pytest.mark.parametrize("taxonomy", ["labels", 3, None, tx.Margin])
def test_what_is_no_taxonomy_is_refused(taxonomy):
    with pytest.raises(ValueError, match="taxonomy must be one of"):
        tx.resolve(taxonomy)
