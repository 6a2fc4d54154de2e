"""What every page has: the templates, and the style and script that the file carries along."""

from __future__ import annotations

import base64
import hashlib
from datetime import UTC, datetime
from importlib import resources
from typing import TYPE_CHECKING, Any

from vennforest.report.words import versions

if TYPE_CHECKING:
    import jinja2

FOLDER = resources.files("vennforest.report").joinpath("templates")

SCRIPT = """
for (const table of document.querySelectorAll("table.sortable")) {
  for (const head of table.tHead.rows[table.tHead.rows.length - 1].cells) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      for (const other of table.tHead.querySelectorAll("th")) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const body = table.tBodies[0], at = head.cellIndex;
      const value = (row) => row.cells[at].dataset.value ?? row.cells[at].textContent.trim();
      const rows = [...body.rows].sort((a, b) => {
        const x = value(a), y = value(b), m = Number(x), n = Number(y);
        if (x === "" || y === "") return (x === "") - (y === "");
        const order = Number.isNaN(m) || Number.isNaN(n) ? x.localeCompare(y) : m - n || 0;
        return up ? order : -order;
      });
      body.append(...rows);
    });
  }
}
const closed = () => [...document.querySelectorAll("details:not([open])")];
let opened = [];
addEventListener("beforeprint", () => {
  opened = closed();
  for (const d of opened) d.open = true;
});
addEventListener("afterprint", () => { for (const d of opened) d.open = false; });
"""


def templates() -> jinja2.Environment:
    """Return the templates of pages, by the names of their files.

    Raises
    ------
    ImportError
        If jinja2 or matplotlib is not installed.
    """
    try:
        import jinja2
        import matplotlib  # noqa: F401
    except ImportError as missing:
        raise ImportError(
            "the page needs jinja2 and matplotlib: install them with pip install 'vennforest[all]'"
        ) from missing
    return jinja2.Environment(
        loader=jinja2.DictLoader(
            {
                file.name: file.read_text("utf-8")
                for file in FOLDER.iterdir()
                if file.name.endswith(".j2")
            }
        ),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def frame(command: str | None) -> dict[str, Any]:
    """Return what every page is rendered with; ``command`` is what was typed."""
    from markupsafe import Markup

    return {
        "script": Markup(SCRIPT),
        "script_hash": base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode(),
        "style": Markup(FOLDER.joinpath("page.css").read_text("utf-8")),
        "when": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "command": command,
        "versions": versions(),
    }
