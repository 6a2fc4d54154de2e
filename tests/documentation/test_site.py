"""Tables of the site fit small screens."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("mkdocs")
sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

from hooks import fitted_table


def table(*rows):
    head = "".join(f"<th>{title}</th>" for title in ("name", "meaning"))
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def test_rows_of_prose_are_stacked_under_the_titles_of_their_columns():
    fitted = fitted_table(table(("a", "word " * 20), ("b", "c")))
    assert fitted.startswith("<table data-stack>")
    assert fitted.count('<td data-label="meaning">') == 2
    assert "<td>b</td>" in fitted


def test_rows_of_figures_keep_their_columns():
    assert fitted_table(table(("a", "0.31"))) == table(("a", "0.31"))


def test_code_breaks_after_punctuation_and_not_within_tags():
    fitted = fitted_table(table(("<code>f(a_b, c=d)</code>", '<code><a href="a.b">x.y</a></code>')))
    assert "<code>f(<wbr>a_<wbr>b, c=<wbr>d)</code>" in fitted
    assert '<a href="a.b">x.<wbr>y</a>' in fitted
