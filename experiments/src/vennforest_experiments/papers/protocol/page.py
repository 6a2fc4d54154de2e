"""A reproduction as a page: Markdown, self-contained HTML, figures as SVG."""

from __future__ import annotations

import base64
import io
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vennforest_experiments.papers.protocol.reproduction import Figure, Reproduction, Table

LEGEND = (
    "Each cell gives the number obtained here and, in brackets, the printed one and the difference "
    "(obtained minus printed)."
)


def svg(figure: Figure) -> str:
    """Draw a figure and return it as SVG, the same text every time.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure as Canvas
    except ImportError as missing:
        raise ImportError(
            "figures need matplotlib: install it with pip install 'vennforest[report]'"
        ) from missing
    with mpl.rc_context({"svg.hashsalt": "vennforest", "svg.fonttype": "none"}):
        canvas = Canvas(figsize=figure.size, layout="constrained")
        figure.draw(canvas.subplots())
        text = io.StringIO()
        canvas.savefig(text, format="svg", metadata={"Date": None})
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"


def heading(reproduction: Reproduction) -> str:
    """Return authors, year and short title: what comes before the journal in the full title."""
    authors, dot, rest = reproduction.title.partition("). ")
    return f"{authors}): {rest.split('. ')[0].rstrip('.')}" if dot else reproduction.title


def markdown(reproduction: Reproduction, figures: str | None) -> str:
    """Return the page in Markdown; see ``Reproduction.to_markdown``."""
    lines = [f"# {heading(reproduction)}", "", reproduction.title, ""]
    lines += ["Produced by", "", f"    {reproduction.command}", ""]
    lines += ["## How it was done", "", *(f"- {note}" for note in reproduction.notes), ""]
    lines += ["## The paper's conclusions, and whether they hold here", ""]
    for one in reproduction.conclusions:
        lines.append(f"- {one.claim} **{_capital(one.verdict)}.** {one.finding}")
    lines += ["", "## Tables", "", LEGEND, ""]
    for table in reproduction.tables():
        lines += [table.to_markdown()]
    if reproduction.figures and figures is not None:
        lines += ["## Figures", ""]
        prefix = f"{figures}/" if figures else ""
        for figure in reproduction.figures:
            lines += [f"![{figure.title}]({prefix}{figure.name}.svg)", "", figure.title, ""]
    return "\n".join(lines).rstrip() + "\n"


def html(reproduction: Reproduction) -> str:
    """Return one self-contained HTML page.

    Raises
    ------
    ImportError
        If jinja2 or matplotlib is not installed.
    """
    try:
        from jinja2 import Environment
    except ImportError as missing:
        raise ImportError(
            "pages need jinja2: install it with pip install 'vennforest[report]'"
        ) from missing
    source = resources.files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    template = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(
        source
    )
    pictures = [
        {
            "title": figure.title,
            "data": base64.b64encode(svg(figure).encode()).decode(),
        }
        for figure in reproduction.figures
    ]
    text: str = template.render(
        page=reproduction,
        heading=heading(reproduction),
        tables=[_table(table) for table in reproduction.tables()],
        pictures=pictures,
    )
    return text


def _table(table: Table) -> dict[str, Any]:
    rows = []
    for name, cells in table.rows:
        row: list[dict[str, Any] | None] = []
        for cell in cells:
            if cell is None:
                row.append(None)
                continue
            off = cell.difference
            row.append(
                {
                    "value": cell.name or table.text(cell.value),
                    "printed": cell.published_name or table.text(cell.published),
                    "difference": ""
                    if off is None or table.digits == 0
                    else table.text(off, signed=True),
                    "marked": cell.marked,
                    "differs": table.digits == 0 and bool(off),
                }
            )
        rows.append((name, row))
    return {"title": table.title, "note": table.note, "columns": table.columns, "rows": rows}


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
