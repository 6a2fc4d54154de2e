"""What the site takes from elsewhere when it is built: addresses, pages of the root, the interface.

mkdocs calls the functions ``on_…`` (see ``mkdocs.yml``).
"""

from __future__ import annotations

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
    # Files that are not on the site are named, not linked.
    return re.sub(
        r"\[([^]]*)\]\((?:\.\./)+(?:examples|experiments|tools|tests)/[^)]*\)", r"\1", markdown
    )


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
