"""Which rows train and which are predicted."""

import numpy as np
import pandas as pd
import pytest

from vennforest.report.splits import forward, group_codes, shuffled, times


def test_the_past_predicts_the_future():
    rng = np.random.default_rng(10)
    n_splits = 0
    for _ in range(200):
        n = int(rng.integers(12, 60))
        time = rng.integers(0, int(rng.integers(4, 40)), n) * 1.0
        codes = rng.integers(0, 2, n)
        groups = rng.integers(0, 20, n) if rng.random() < 0.5 else None
        try:
            splits = forward(codes, time, groups, 4)
        except ValueError:
            continue
        tested = np.concatenate([test for _, test in splits])
        assert len(tested) == len(set(tested))
        for train, test in splits:
            n_splits += 1
            assert time[train].max() < time[test].min()
            assert groups is None or not set(groups[train]) & set(groups[test])
    assert n_splits > 400


def test_folds_need_groups_and_times_that_differ():
    with pytest.raises(ValueError, match="at least two"):
        shuffled(np.array([0, 1, 0, 1]), np.zeros(4, np.intp), 2, 0, [])
    with pytest.raises(ValueError, match="two different times"):
        forward(np.array([0, 1, 0, 1]), np.ones(4), None, 2)
    with pytest.raises(ValueError, match="numbers or dates"):
        times(["soon"] * 20, "time")


def test_a_row_without_a_group_is_a_group():
    notes = []
    codes = group_codes(["a", None, "a ", "", "01", "1", pd.NA], 7, notes)
    assert notes == ["A group each: 3 rows without a group."]
    assert codes[0] == codes[2] and len(np.unique(codes)) == 6
    with pytest.raises(ValueError, match="groups must have shape"):
        group_codes(["a"], 2, notes)
