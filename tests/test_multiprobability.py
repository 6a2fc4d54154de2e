"""Bounds of probabilities, and the four ways from two numbers to one."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from vennforest import Multiprobability
from vennforest.multiprobability import merge_folds, scale_into_bounds

MERGES = ("log", "brier", "midpoint")


def two(p0, p1, classes=("no", "yes")):
    p0, p1 = np.atleast_1d(p0), np.atleast_1d(p1)
    return Multiprobability(
        np.column_stack([1 - p1, p0]), np.column_stack([1 - p0, p1]), np.array(classes)
    )


def many(n, k, seed):
    """Return bounds that some distribution lies between, as Venn prediction gives them."""
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(rng.integers(0, 20), rng.dirichlet(np.full(k, 0.3)), size=n)
    total = counts.sum(axis=1, keepdims=True) + 1
    return Multiprobability(counts / total, (counts + 1) / total, np.arange(k))


@pytest.mark.parametrize(("p0", "p1"), [(0.2, 0.3), (0.0, 1.0), (0.0, 0.1), (0.9, 1.0)])
def test_merges_of_two_classes_equalise_the_regrets(p0, p1):
    # Vovk & Petej (2014), section 4: the minimax probability makes the regret for either label
    # the same, for log loss and for square loss.
    p = two(p0, p1).merge("log")[0, 1]
    regret1 = np.log(p1) - np.log(p)
    regret0 = np.log(1 - p0) - np.log(1 - p)
    assert_allclose(regret1, regret0, atol=1e-12)
    p = two(p0, p1).merge("brier")[0, 1]
    assert_allclose((1 - p) ** 2 - (1 - p1) ** 2, p**2 - p0**2, atol=1e-12)
    assert two(p0, p1).merge("midpoint")[0, 1] == (p0 + p1) / 2


def scaled(p, low, up):
    """Return a row moved into bounds, by looking at every bend of the sum of the clipped row."""
    q = np.maximum(p, 1e-100)
    total = [(np.clip(c * q, low, up).sum(), c) for c in sorted([*(low / q), *(up / q)])]
    below = [pair for pair in total if pair[0] <= 1]
    above = [pair for pair in total if pair[0] > 1]
    if not below or not above:  # no point of the bounds sums to 1
        return low if not below else up
    (s0, c0), (s1, c1) = below[-1], above[0]
    ends = np.clip(c0 * q, low, up), np.clip(c1 * q, low, up)
    share = (1 - s0) / (s1 - s0)
    return ends[0] * (1 - share) + ends[1] * share


@pytest.mark.parametrize("k", [3, 12])
@pytest.mark.parametrize("how", MERGES)
def test_merges_of_many_classes_are_scaled_into_the_bounds(k, how):
    m = many(100, k, k)
    p = m.merge(how)
    formula = {
        "log": m.upper / (1 - m.lower + m.upper),
        "brier": m.upper + (m.lower**2 - m.upper**2) / 2,
        "midpoint": (m.lower + m.upper) / 2,
    }[how]
    assert_allclose(p, [scaled(*row) for row in zip(formula, m.lower, m.upper, strict=True)])
    assert_allclose(p.sum(axis=1), 1, atol=1e-12)
    assert ((m.lower <= p) & (p <= m.upper)).all()


@pytest.mark.parametrize("k", [2, 5, 12])
def test_rows_are_scaled_into_bounds_of_every_kind(k):
    rng = np.random.default_rng(k)
    n = 1000
    p = rng.dirichlet(np.full(k, 0.5), n) * rng.choice([1e-20, 1, 3], (n, 1))
    p[rng.random((n, k)) < 0.2] = 0
    ends = np.sort(rng.random((2, n, k)) * rng.choice([0.1, 0.5, 1], (n, k)), axis=0)
    ends[1][rng.random((n, k)) < 0.2] = 1
    ends[0][rng.random((n, k)) < 0.4] = 0
    same = rng.random((n, k)) < 0.1  # no room at all
    ends[0] = np.where(same, ends[1], ends[0])
    low, up = ends
    found = scale_into_bounds(p, low, up)
    assert ((low <= found) & (found <= up)).all()
    possible = (low.sum(axis=1) <= 1) & (up.sum(axis=1) >= 1)
    assert 50 < possible.sum() < n - 50
    expected = np.array([scaled(*row) for row in zip(p, low, up, strict=True)])
    assert_allclose(found[possible], expected[possible], atol=1e-12)
    assert_allclose(found[possible].sum(axis=1), 1, atol=1e-12)
    # every entry at the bound that is nearer to what cannot be had
    assert_allclose(found[up.sum(axis=1) < 1], up[up.sum(axis=1) < 1])
    assert_allclose(found[low.sum(axis=1) > 1], low[low.sum(axis=1) > 1])
    p = np.array([[np.nan] * 3, [0.2, 0.3, 0.5]])  # rows of NaN stay NaN
    assert_array_equal(scale_into_bounds(p, np.zeros((2, 3)), np.ones((2, 3))), p)


def test_labels_and_their_intervals():
    m = Multiprobability(
        np.array([[0.2, 0.5, 0.1], [0.3, 0.3, 0.3]]),
        np.array([[0.3, 0.6, 0.2], [0.4, 0.4, 0.4]]),
        np.array(["a", "b", "c"]),
    )
    assert_array_equal(m.labels(), ["b", "a"])  # the first of equals
    low, up = m.of_label()
    assert_array_equal(low, [0.5, 0.3])
    assert_array_equal(up, [0.6, 0.4])
    assert_allclose(m.width, 0.1)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="p0 and p1 must be of two classes, got 3"):
        _ = many(2, 3, 0).p0
    with pytest.raises(ValueError, match=r"merge must be one of \['log', .*\], got 'mean'"):
        two(0.1, 0.2).merge("mean")


def test_folds_are_merged_by_geometric_means():
    rng = np.random.default_rng(0)
    low = rng.random((5, 40)) * 0.9
    up = low + 0.01 + rng.random((5, 40)) * (0.99 - low)
    folds = [two(p0, p1) for p0, p1 in zip(low, up, strict=True)]
    gm1, gm0 = np.prod(up, axis=0) ** 0.2, np.prod(1 - low, axis=0) ** 0.2
    p = merge_folds(folds, "log", [fold.merge("log") for fold in folds])
    assert_allclose(p[:, 1], gm1 / (gm0 + gm1), atol=1e-12)
    assert_allclose(p.sum(axis=1), 1)
    p = merge_folds(folds, "brier", [fold.merge("brier") for fold in folds])
    assert_allclose(p[:, 1], np.mean(up + low**2 / 2 - up**2 / 2, axis=0), atol=1e-12)
    opposites = [two(0.0, 1e-9), two(1 - 1e-9, 1.0)]
    p = merge_folds(opposites, "log", [fold.merge("log") for fold in opposites])
    assert_allclose(p, [[0.5, 0.5]])


def test_bounds_as_a_data_frame():
    m = two([0.1, 0.2, 0.3], [0.4, 0.5, 0.6])
    frame = m.to_frame()
    assert list(frame) == ["lower(no)", "upper(no)", "lower(yes)", "upper(yes)"]
    assert_array_equal(frame, np.column_stack([m.lower[:, 0], m.upper[:, 0], m.p0, m.p1]))
    p = m.merge("log")
    named = m.to_frame(p, index=["x", "y", "z"])
    assert list(named)[:3] == ["p(no)", "lower(no)", "upper(no)"]
    assert_array_equal(named["p(yes)"], p[:, 1])
    assert named.loc["z", "upper(yes)"] == 0.6
    with pytest.raises(ValueError, match=r"p must have shape \(3, 2\), got \(3,\)"):
        m.to_frame(p[:, 1])
    assert len(m[:0].to_frame()) == 0
    assert [len(row) for row in m] == [1, 1, 1]
    assert m[-1].p1 == 0.6
    assert_array_equal(m[np.array([True, False, True])].p0, [0.1, 0.3])


@pytest.mark.parametrize(("lower", "upper"), [
    ([[0.9, 0.2]], [[0.1, 0.3]]), ([[0.1, 0.2]], [[0.3, 1.3]]), ([[-0.1, 0.2]], [[0.3, 0.4]]),
    ([[np.nan, 0.2]], [[0.3, 0.4]]), ([[0.1, 0.2]], [[0.3, np.nan]]),
])  # fmt: skip
def test_bounds_that_are_none_are_refused(lower, upper):
    good = np.array([[0.1, 0.2]]), np.array([[0.3, 0.4]])
    Multiprobability(*good, np.array(["a", "b"]))
    with pytest.raises(ValueError, match=r"lower at most upper, got .* in row 1"):
        Multiprobability(
            np.vstack([good[0], lower]), np.vstack([good[1], upper]), np.array(["a", "b"])
        )
