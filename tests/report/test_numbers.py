"""Numbers in words: enough digits to tell them apart, and no more."""

import pytest

from vennforest.report import numbers
from vennforest.report.numbers import rounded_down


def test_percentages_never_round_to_certainty():
    assert numbers.percent(0.99999) == "99.9990%" and numbers.percent(1.0) == "100.0%"
    assert numbers.percent(1e-9) == "<0.0001%" and numbers.percent(1 - 1e-9) == ">99.9999%"
    assert numbers.percent(0.123) == "12.3%" and numbers.percent(0.002) == "0.20%"
    for p in (1e-12, 1e-7, 0.00042, 0.0099, 0.5, 0.9951, 1 - 1e-5, 1 - 1e-12):
        text = numbers.probability(p)
        assert text.startswith("<") or text.startswith(">") or 0 < float(text) < 1
    assert numbers.probability(0.0) == "0.000" and numbers.probability(1.0) == "1.000"


def test_numbers_have_as_many_digits_as_tell_them_apart():
    assert numbers.points(0.0000004) == "<0.0001" and numbers.points(-0.131) == "13.1"
    assert numbers.area(0.99996) == ">0.999" and numbers.area(1.0) == "1.000"
    assert numbers.common_decimals([0.00201, 0.00203, float("nan")]) == 6
    assert numbers.common_decimals([0.1, 0.3]) == 3 and numbers.common_decimals([]) == 3
    assert numbers.with_margin(0.017, 0.16) == "0.02 ± 0.16"
    assert numbers.with_margin(0.016, 0.0012) == "0.0160 ± 0.0012"
    assert numbers.with_margin(0.0, 0.0) == "0 ± 0"
    assert numbers.amounts([1200.0, 1200.0004], -0.0004) == ["1,200.00000", "1,200.00040"]


@pytest.mark.parametrize(
    ("value", "words"),
    [(1.0, "1"), (19.999999999, "20"), (49, "20"), (1234, "1,000"), (1e300, "1,000,000")],
)
def test_chances_are_rounded_to_the_cautious_side(value, words):
    assert rounded_down(value) == words


def test_rows_are_rounded_up_and_amounts_have_a_sign():
    assert numbers.rounded_up(1201) == "1,300" and numbers.rounded_up(1200) == "1,200"
    assert numbers.about(7.2) == "about 8 rows" and numbers.about(float("nan")) == "more rows"
    assert numbers.signed(-0.123) == "−12.3%" and numbers.signed(0.0004) == "0%"
    assert numbers.signed(-4.0) == "−400%"
    assert numbers.pvalue(0.0009) == "< 0.001" and numbers.pvalue(0.0123) == "= 0.012"
    assert [numbers.of_100(share) for share in (0.0, 0.12, 0.031, 0.0031)] == [
        "0", "12", "3.1", "0.31",
    ]  # fmt: skip
    assert (
        numbers.ends((0.5, 0.4, None)) == "0.500 (0.400 to nan)" and numbers.ends([None] * 3) == "–"
    )
