"""Sentences of findings, and lists of names in them."""

from dataclasses import replace

import pandas as pd

from vennforest.metrics import IntervalEstimate
from vennforest.report.words import interval, joined, lines, paragraphs, sentences_on, ways


def test_the_finding_is_of_the_level_that_is_most_off(cancer):
    columns = ["n", "expected", "observed", "observed_low", "observed_high"]
    rows = [(10, 0.5, 0.9, 0.6, 1.0), (400, 0.2, 0.3, 0.25, 0.35), (900, 0.1, 0.1, 0.08, 0.12)]
    levels = pd.DataFrame(rows, columns=columns)
    (text,) = sentences_on("finding", replace(cancer.findings, levels=levels, positive="yes"))
    assert text.startswith("Of 400 rows with a probability near 20%, 30% were “yes”")


def test_names_are_listed_and_of_many_the_first():
    assert joined([]) == "none" and joined(["a"]) == "a" and joined(["a", 2]) == "a and 2"
    assert joined("abc") == "a, b and c" and joined("abcde", 5) == "a, b, c, d and e"
    assert joined("abcde", 2) == "a, b and 3 more"
    off = {"too low": ["A"], "steep": [], "too high": ["B", "C", "D"]}
    assert ways(off) == "too low in A and too high in B, C and D"
    assert ways(off, 1) == "too low in A and too high in B and 2 more" and ways({}) == ""


def test_text_of_templates_is_divided_by_its_marks_alone():
    assert paragraphs("one\n  two ¶ \n ¶three") == ["one two", "three"]
    assert lines(" one \n\n two\n") == ["one", "two"]


def test_estimates_have_their_interval():
    assert interval(IntervalEstimate(-1.234, -1.5, 0.004)) == "−1.23 (95% interval −1.50 to 0.00)"
