"""What the site takes from elsewhere when it is built: addresses, pages of the root, the interface.

mkdocs calls the functions ``on_…`` (see ``mkdocs.yml``).
"""

from __future__ import annotations

import itertools
import json
import re
import sys
import tomllib
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]

sys.path.insert(0, str(Path(__file__).parent))

from interface import interface_pages  # noqa: E402

# Pages of the site that are files of the repository's root.
ROOT_PAGES = {
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
}

# A link to a file of the repository that is no page.
OUTSIDE = re.compile(r"\[([^]]*)\]\((?:\.\./)+(?:examples|experiments|tools|tests)/[^)]*\)")

TABLE = re.compile(r"<table>.*?</table>", re.S)
CELL = re.compile(r"<(t[dh])([^>]*)>(.*?)</\1>", re.S)
TAG = re.compile(r"<[^>]*>")
CODE = re.compile(r"<code.*?</code>", re.S)
BREAK = re.compile(r"[(,.=_](?=[\w(])(?![^<]*>)")

# Characters of a cell from which on a table is prose, and a small screen stacks its cells.
LONG_CELL = 60


def notebook_page(path):
    """Return a notebook as a page: its text, its code, and what that printed."""
    lines = []
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            lines += [text, ""]
            continue
        lines += ["```python", text, "```", ""]
        for output in cell["outputs"]:
            lines += ["```text", "".join(output["text"]).rstrip(), "```", ""]
    return "\n".join(lines)


def on_config(config):
    """Take the addresses from pyproject.toml, and list the pages of the interface."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    addresses = project["tool"]["hatch"]["metadata"]["hooks"]["custom"]
    config.repo_url = addresses["repository"] or None
    config.site_url = addresses["documentation"] or None
    pages = sorted(interface_pages())
    for section in config.nav:
        for entries in section.values():
            for entry in entries:
                if isinstance(entry, dict) and "API" in entry:
                    rest = [page for page in pages if page != "api/index.md"]
                    entry["API"] = ["api/index.md", *rest]
    return config


def on_page_markdown(markdown, page, config, files):
    """Lead links to files of the repository's root to their pages on the site."""
    for name, target in ROOT_PAGES.items():
        markdown = markdown.replace(f"](../../{name}", f"](../{target}")
        markdown = markdown.replace(f"](../{name}", f"]({target}")
    return OUTSIDE.sub(r"\1", markdown)  # files that are not on the site are named, not linked


def on_page_content(html, page, config, files):
    """Fit tables to small screens (see ``docs/pictures/site.css``)."""
    return TABLE.sub(lambda match: fitted_table(match[0]), html)


def fitted_table(table):
    """Let code break after punctuation, and mark tables of prose, with the title of each cell."""
    table = CODE.sub(lambda match: BREAK.sub(r"\g<0><wbr>", match[0]), table)
    cells = [(name, TAG.sub("", text).strip()) for name, _, text in CELL.findall(table)]
    titles = [text for name, text in cells if name == "th"]
    if not titles or max(len(text) for _, text in cells) < LONG_CELL:
        return table
    columns = itertools.cycle(["", *titles[1:]])

    def labelled(match):
        if match[1] == "th":
            return match[0]
        title = next(columns)
        label = f' data-label="{title}"' if title else ""
        return f"<td{match[2]}{label}>{match[3]}</td>"

    return CELL.sub(labelled, table).replace("<table>", "<table data-stack>", 1)


def on_files(files, config):
    """Add the root's pages, the notebook and the pages of the interface."""
    pages = interface_pages()
    for name, target in ROOT_PAGES.items():
        text = (ROOT / name).read_text("utf-8")
        for other, page in ROOT_PAGES.items():
            text = text.replace(f"]({other}", f"]({page}")
        pages[target] = re.sub(r"\]\(docs/", "](", text)
    pages["first-steps.md"] = notebook_page(ROOT / "examples/first_steps.ipynb")
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files
