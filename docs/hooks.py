"""What the site takes from the code when it is built: addresses, names, imports, the notebook.

mkdocs calls the functions ``on_…`` (see ``mkdocs.yml``).
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path

from mkdocs.structure.files import File
from mkdocs.utils import get_relative_url

ROOT = Path(__file__).parents[1]

sys.path.insert(0, str(Path(__file__).parent))

from interface import interface_pages  # noqa: E402
from narrow import narrow  # noqa: E402
from picture_of_imports import picture  # noqa: E402
from picture_of_libraries import picture as picture_of_libraries  # noqa: E402

# Pages of the site that are files of the repository's root.
ROOT_PAGES = {
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
}

FIRST_STEPS = """
![Forest and calibrated probabilities against what happened](pictures/first.svg)

*The same on other data ([Why](why.md)). This page is the notebook `examples/first_steps.ipynb`.*
"""


def notebook_page(path):
    """Return a notebook as a page: its words, its code, and what that printed."""
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
    """Take the addresses from pyproject.toml."""
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
    """Lead links to files of the root to their pages here."""
    for name, target in ROOT_PAGES.items():
        markdown = markdown.replace(f"](../{name}", f"]({target}")
    return markdown


def on_page_content(html, page, config, files):
    """Make tables and code readable on a narrow screen, and names of pages links."""

    def link(name):
        file = files.get_file_from_path(name)
        if file is None or file.page is None or file.page == page:
            return None
        return get_relative_url(file.url, page.url), file.page.title

    return narrow(html, link)


def on_files(files, config):
    """Add the root's pages, the pages of the interface and the pictures of the imports."""
    pages = interface_pages()
    for name, target in ROOT_PAGES.items():
        text = (ROOT / name).read_text("utf-8")
        for other, page in ROOT_PAGES.items():
            text = text.replace(f"]({other}", f"]({page}")
        pages[target] = re.sub(r"\]\(docs/", "](", text)
    pages["first-steps.md"] = notebook_page(ROOT / "examples/first_steps.ipynb") + FIRST_STEPS
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    pictures = {"architecture": picture(ROOT), "libraries": picture_of_libraries()}
    for name, drawing in pictures.items():
        files.append(File.generated(config, f"pictures/{name}.svg", content=drawing))
    return files
