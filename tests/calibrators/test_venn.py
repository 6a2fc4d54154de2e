"""Venn predictors: bounds against the oracle, taxonomies against their definitions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, softmax

from oracles import formulas as oracle
from support.cases import draw_categorised
from vennforest import Venn
from vennforest.calibrators.venn import N_VENN_BINS, bins_of, label_of

pytestmark = pytest.mark.filterwarnings("ignore:the scores of")  # of drawn labels


def quarters(scores):
    return np.floor(4 * scores.reshape(len(scores), -1)[:, 0].clip(-1, 1))


def is_positive(scores):
    return scores > 0


def bins_of_logits(scores):
    return bins_of(expit(scores) if scores.ndim == 1 else softmax(scores, axis=1))


TAXONOMIES = {"label": label_of, "bins": bins_of, quarters: quarters}


def fitted(taxonomy, scores, y, weight=None, k=2, **parameters):
    """A predictor of classes 0 ... k - 1 for scores of any range."""
    parameters.setdefault("on", "auto" if k == 2 else "score")
    venn = Venn(taxonomy, **parameters).fit(scores, y, sample_weight=weight, classes=range(k))
    venn.score_range_ = None
    return venn


def test_bounds_equal_the_oracle_over_drawn_cases():
    rng = np.random.default_rng(0)
    for number in range(240):
        k, calibration, new, weight = draw_categorised(rng)
        n = len(calibration)
        if weight is not None:
            weight[rng.random(n) < 0.2] = 0.0
            weight[rng.integers(n)] = 1.0
        y = rng.integers(0, k, n)
        left_out = None if rng.random() < 0.3 else rng.integers(-1, n, len(new))
        taxonomy, category_of = list(TAXONOMIES.items())[number % 3]
        is_probability = 0 <= calibration.min() <= calibration.max() <= 1
        if k == 2 and taxonomy == "label" and not is_probability:
            category_of = is_positive
        elif taxonomy == "bins" and not (k == 2 and is_probability):
            category_of = bins_of_logits
        m = fitted(taxonomy, calibration, y, weight, k).predict_multiprobability(new, left_out)
        categories, category = category_of(calibration).tolist(), category_of(new).tolist()
        for i in range(len(new)):
            r = -1 if left_out is None else left_out[i]
            expected = np.array(oracle.venn(categories, y, category[i], k, weight, r), float)
            assert_allclose(m.lower[i], expected[:, 0], rtol=0, atol=1e-12)
            assert_allclose(m.upper[i], expected[:, 1], rtol=0, atol=1e-12)


def test_taxonomies_are_their_definitions():
    rng = np.random.default_rng(1)
    for _ in range(100):
        k, _, new, _ = draw_categorised(rng)
        labels = [oracle.label_category(s) for s in new]
        assert label_of(new).tolist() == labels
        for score, label, category in zip(new, labels, bins_of(new).tolist(), strict=True):
            assert category // N_VENN_BINS == label
            part = category % N_VENN_BINS
            if k == 2 and label == 0:  # numbered as the score of the second class increases
                part = N_VENN_BINS - 1 - part
            confidence = min(max(max(oracle.score_vector(score)), 1 / k), 1)
            position = N_VENN_BINS * (confidence - 1 / k) / (1 - 1 / k)
            assert part - 1e-12 <= position <= part + 1 + 1e-12


def test_decision_values_are_cut_at_zero():
    assert Venn().fit([0.0, 0.4, 1.0], [0, 1, 1]).boundary_ == 0.5
    venn = Venn().fit([-2.0, -0.1, 0.1, 3.0], [0, 0, 1, 1])
    assert venn.boundary_ == 0
    assert_allclose(venn.predict_multiprobability([-0.5, 0.2]).lower[:, 1], [0, 2 / 3])


@pytest.mark.parametrize("values", [["low", "high"], [False, True]])
def test_a_function_returns_numbers_or_text(values):
    def halves(scores):
        return np.array(values)[(scores > 0.5).astype(int)]

    venn = fitted(halves, [0.1, 0.2, 0.9], [0, 1, 1])
    assert set(venn.categories_) == set(values)
    assert_allclose(venn.predict_multiprobability([0.3, 0.7]).lower[:, 1], [1 / 3, 1 / 2])
    # a category that did not occur
    assert_array_equal(fitted(halves, [0.1], [0]).predict_multiprobability([0.9]).width, [[1, 1]])


def test_wrong_taxonomies_and_merges_are_refused():
    with pytest.raises(ValueError, match=r"taxonomy must return shape \(2,\), got \(1,\)"):
        Venn(lambda s: s[:1]).fit([0.1, 0.9], [0, 1])
    with pytest.raises(ValueError, match=r"taxonomy must be one of \['label', 'bins'\] or a"):
        Venn("nearest").fit([0.1, 0.9], [0, 1])
    with pytest.raises(ValueError, match="merge must be one of"):
        Venn(merge="auto").fit([0.1, 0.9], [0, 1])
    venn = Venn().fit([0.1, 0.9], [0, 1])
    assert len(venn.predict_multiprobability([], left_out=[])) == 0


@pytest.mark.parametrize("merge", ["midpoint", "log", "brier"])
def test_bounds_are_those_of_distributions_and_merged_to_probabilities(merge):
    rng = np.random.default_rng(2)
    scores = rng.dirichlet(np.ones(3), 60)
    venn = Venn("bins", merge=merge).fit(scores, rng.integers(0, 3, 60))
    m, p = venn.predict_multiprobability(scores), venn.predict_proba(scores)
    assert m.distributions
    assert_allclose(m.width, m.width[:, :1] * np.ones(3))
    assert_allclose(m.lower.sum(axis=1) + m.width[:, 0], 1)
    assert_array_equal(p, m.merge(merge))
    assert_allclose(p.sum(axis=1), 1)
    assert ((p >= m.lower - 1e-12) & (p <= m.upper + 1e-12)).all()
