"""Names of the columns of predictions."""

from vennforest._shown import OUTPUT_KINDS, columns_of, names_of


def test_columns_of_a_class_are_its_probability_bounds_and_interval():
    assert columns_of("yes", OUTPUT_KINDS) == [
        "p(yes)", "lower(yes)", "upper(yes)", "low95(yes)", "high95(yes)"
    ]  # fmt: skip
    assert columns_of(2.0) == ["p(2.0)", "lower(2.0)", "upper(2.0)"]


def test_names_of_intervals_have_the_level_without_rounding_errors():
    levels = {0.9: "90", 0.95: "95", 0.995: "99.5", 0.99999: "99.999", 0.29: "29"}
    for level, percent in levels.items():
        assert names_of("confidence", level) == [f"low{percent}", f"high{percent}"]
