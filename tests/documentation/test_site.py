"""What the site makes of the pages: readable on a narrow screen, headed, every picture there."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS))
try:
    from narrow import narrow
finally:
    sys.path.pop(0)

PAGES = sorted(DOCS.rglob("*.md"))


def table(head, *rows):
    def line(cells, kind):
        return "<tr>\n" + "\n".join(f"<{kind}>{c}</{kind}>" for c in cells) + "\n</tr>\n"

    body = "".join(line(row, "td") for row in rows)
    return f"<table>\n<thead>\n{line(head, 'th')}</thead>\n<tbody>\n{body}</tbody>\n</table>"


def none(name):
    return None


def test_tables_of_prose_are_stacked_with_the_names_of_their_columns():
    long = "a sentence that would be torn apart in a narrow column"
    made = narrow(table(["if", "method=", "why"], ["one", "<code>two</code>", long]), none)
    assert made.startswith("<table data-stack>")
    assert '<td data-label="method="><code>two</code></td>' in made
    assert f'<td data-label="why:">{long}</td>' in made
    assert "<td>one</td>" in made
    assert "data-label" not in narrow(table(["if", "then"], [long, long]), none)


def test_tables_of_figures_are_left_as_they_are():
    for given in (
        table(["", "log loss", "rank"], ["forest", "0.3224", "1.2"], ["pool", ".32", "2"]),
        table(list("abcdef"), ["a sentence that would be torn apart"] * 6),
    ):
        assert narrow(given, none) == given


def test_code_breaks_after_punctuation_and_reads_the_same():
    code = "CalibratedClassifier(FrozenEstimator(model)).fit(X_cal, 0.25) --target COLUMN"
    made = narrow(f"<p><code>{code}</code></p>", none)
    assert "CalibratedClassifier(<wbr>FrozenEstimator(<wbr>model" in made
    assert '<span class="option">--target</span> COLUMN' in made
    assert re.sub("<[^>]*>", "", made) == code
    block = f"<pre><span></span><code>{code}\n</code></pre>"
    assert narrow(block, none) == block
    assert narrow("<code>short(x)</code>", none) == "<code>short(x)</code>"


def test_names_of_pages_become_links():
    def link(name):
        return ("../guarantee.html", "Guarantees") if name == "guarantee.md" else None

    given = "<p>see <code>docs/guarantee.md</code>, <code>docs/none.md</code></p>"
    made = narrow(given, link)
    assert '<a href="../guarantee.html">Guarantees</a>, <code>docs/none.md</code>' in made
    inside = '<a href="x"><code>docs/guarantee.md</code></a>'
    assert narrow(inside, link) == inside


@pytest.mark.parametrize("name", ["defaults", "speed", "grid"])
def test_pictures_of_tables_are_drawn_from_the_tables_as_they_stand(name):
    pytest.importorskip("matplotlib")
    sys.path.insert(0, str(DOCS))
    try:
        import make_table_pictures as drawn
    finally:
        sys.path.pop(0)
    read = {
        "defaults": drawn.rank_figures,
        "speed": drawn.speed_figures,
        "grid": drawn.grid_figures,
    }
    figures = read[name]()
    assert len(figures) > 1
    picture = (DOCS / f"pictures/{name}.svg").read_text("utf-8")
    assert f"figures {drawn.digest(figures)}" in picture, f"make pictures draws {name}.svg again"


def test_figures_of_the_tables():
    pytest.importorskip("matplotlib")
    sys.path.insert(0, str(DOCS))
    try:
        from make_table_pictures import grid_figures, rank_figures, speed_figures
    finally:
        sys.path.pop(0)
    for found in rank_figures().values():
        assert "the default" in found
        assert all(0 <= rank <= 1 for rank in found.values())
    text = (DOCS / "results/speed.md").read_text("utf-8")
    ratios = [ratio for values in speed_figures().values() for ratio in values]
    assert sum(ratio <= 1 for ratio in ratios) == text.count("| met |")
    assert sum(ratio > 1 for ratio in ratios) == text.count("| **missed** |")
    for methods, rows in grid_figures().values():
        assert {len(row) for row in rows.values()} == {len(methods)}
        assert methods[0] == "none"
