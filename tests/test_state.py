"""Objects of files: made without their constructors, and checked as fits would be."""

import pytest
from sklearn.linear_model import LogisticRegression

from vennforest import PlattScaling, VennAbers
from vennforest._state import check_state, is_own_type, with_state


def test_types_with_a_check_are_our_own_alone():
    assert is_own_type(PlattScaling)
    for other in (LogisticRegression, dict, PlattScaling(), "vennforest.PlattScaling"):
        assert not is_own_type(other)


def test_an_object_has_the_state_and_its_constructor_is_not_called():
    class Refusing:
        def __init__(self):
            raise AssertionError

    class Restoring(Refusing):
        def __setstate__(self, state):
            self.doubled = 2 * state["number"]

    assert vars(with_state(Refusing, {"number": 3})) == {"number": 3}
    assert vars(with_state(Restoring, {"number": 3})) == {"doubled": 6}


def test_what_no_fit_leaves_is_refused():
    fitted = VennAbers().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    check_state(fitted)
    check_state(VennAbers())  # that has not been fitted
    fitted.scores_[0][:] = fitted.scores_[0][::-1].copy()
    with pytest.raises(ValueError):
        check_state(fitted)
    with pytest.raises(AttributeError, match="merge"):
        check_state(with_state(VennAbers, {}))
