"""Names of groups, sites, grades and parts: text as it stands."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from vennforest import update
from vennforest._validation import encode_groups, group_names
from vennforest.metrics import auc_interval
from vennforest.report.breakdown import parts_by_value
from vennforest.validation import (
    grades,
    internal_external,
    population_stability,
    segments,
)


@pytest.mark.parametrize(
    ("groups", "names"),
    [
        (["01", "1", " 1 ", "1.0", "1E0"], ["01", "1", "1", "1.0", "1E0"]),
        ([1, 1.0, 2.5, Decimal("3.00")], ["1", "1", "2.5", "3"]),
        (pd.Series(["01", "1"], dtype="string"), ["01", "1"]),
        (pd.Series([1, None], dtype="Int64"), ["1", None]),
        (pd.Series(["a", "b"], dtype="category"), ["a", "b"]),
        (np.array(["a", "b "]), ["a", "b"]),
        ([True, False, None], ["True", "False", None]),
        (["a", "", float("nan")], ["a", None, None]),
    ],
)
def test_text_of_a_group_stands_as_it_is_written(groups, names):
    assert group_names(groups).tolist() == names


def test_numbers_among_text_are_refused():
    for groups in ([1, "1"], np.array([1, "1"], object), pd.Series([1.0, "1"])):
        with pytest.raises(ValueError, match="groups must be text or numbers, got both"):
            encode_groups(groups, [0, 0])


def test_missing_groups_are_refused_with_their_row():
    for missing in (None, np.nan, " ", pd.NA):
        with pytest.raises(ValueError, match="for every row, got none in row 1"):
            auc_interval([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4], groups=["a", missing, "b", "c"])


def test_groups_in_the_order_of_another_index_are_reported():
    p = pd.Series(np.linspace(0.1, 0.9, 40), name="p")
    groups = pd.Series(["a", "b"] * 20).iloc[::-1]
    with pytest.warns(UserWarning, match="groups has the index of the rows in another order"):
        auc_interval([0, 1] * 20, p, groups=groups)
    with pytest.raises(ValueError, match=r"groups must have shape \(40,\), got \(2,\)"):
        update(p, [0, 1] * 20, groups=["a", "b"])


def test_codes_with_leading_zeros_are_sites_grades_and_segments_of_their_own():
    codes = np.array(["01", "1", "02", "2"] * 60)
    y, p = np.tile([0, 0, 1, 1], 60), np.linspace(0.1, 0.9, 240)
    assert [*internal_external(y, p, codes).index[:4]] == ["01", "02", "1", "2"]
    assert {*grades(y, p, codes).index} == {*codes.tolist()}
    names = [*segments(pd.DataFrame({"site": codes}), y, p, n_draws=9).index]
    assert {"site = 01", "site = 1", "site = 02", "site = 2"} <= {*names}
    assert [name for name, _ in parts_by_value(codes.astype(object))] == ["01", "02", "1", "2"]
    many = np.array([f"{i % 40:02d}" for i in range(400)], object)
    assert [name for name, _ in parts_by_value(many)][-1] == "29 other values"
    assert len(parts_by_value(np.arange(400).astype(str).astype(object))) == 4


def test_grades_and_sites_in_the_order_of_another_index_are_reported():
    p, y = pd.Series(np.linspace(0.1, 0.9, 240)), [0, 0, 1, 1] * 60
    codes = pd.Series(["01", "1"] * 120).iloc[::-1]
    for function, name in ((internal_external, "site"), (grades, "grade")):
        with pytest.warns(UserWarning, match=f"{name} has the index of the rows in another order"):
            function(y, p, codes)
    X = codes.to_frame("site")
    with pytest.warns(UserWarning, match="p has the index of the rows in another order"):
        segments(X, y, p, n_draws=9)


def test_grades_that_have_none_in_common_with_the_reference_are_refused():
    with pytest.raises(ValueError, match=r"a grade in common, got '1' and '1\.0': write both"):
        population_stability(["1", "2"], ["1.0", "2.0"])


def test_an_error_names_the_argument_that_has_text_and_numbers():
    y, p, mixed = [0, 1] * 20, np.linspace(0.1, 0.9, 40), [1, "1"] * 20
    with pytest.raises(ValueError, match=r"^site must be text or numbers"):
        internal_external(y, p, mixed)
    with pytest.raises(ValueError, match=r"^reference must be text or numbers"):
        population_stability(["1", "2"], mixed)
