"""What the site takes from the code when it is built: addresses, public names, the imports.

mkdocs calls the functions ``on_…`` (see ``mkdocs.yml``). Everything is read, nothing is imported,
so that a page cannot depend on which optional packages are installed.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"

sys.path.insert(0, str(Path(__file__).parent))

from picture_of_imports import picture  # noqa: E402

# Pages of the site that are files of the repository's root.
ROOT_PAGES = {
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
}


def literal_all(path):
    """Return ``__all__`` of a module, empty if it has none."""
    for node in ast.parse(path.read_text("utf-8")).body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if any(isinstance(t, ast.Name) and t.id == "__all__" for t in targets):
            return list(ast.literal_eval(node.value))
    return []


def first_sentence(path):
    """Return the first paragraph of a module's docstring."""
    text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return " ".join(text.split("\n\n")[0].split())


def public_modules():
    """Return the modules that users import from, with their names: ``{module: (path, names)}``.

    A module is public if no part of its name begins with ``_``, it has ``__all__``, and no package
    above it but ``vennforest`` has one, from which its names would be taken instead.
    """
    found = {}
    for path in sorted((SOURCE / "vennforest").rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if any(p.startswith("_") for p in parts) or parts[1:2] in [("commands",), ("cli",)]:
            continue
        above = [".".join(parts[:i]) for i in range(2, len(parts))]
        names = [name for name in literal_all(path) if not name.startswith("_")]
        if names and not any(a in found for a in above):
            found[".".join(parts)] = (path, names)
    return found


def interface_pages():
    """Return the pages of the interface as ``{file name: text}``.

    A name is documented once: on the page of ``vennforest`` where that exports it.
    """
    modules = public_modules()
    top = set(modules["vennforest"][1])
    pages = {}
    index = ["# Interface", "", "Whatever is not on these pages may change without notice.", ""]
    index += ["| module | |", "|---|---|"]
    for module, (path, names) in modules.items():
        page = f"{module}.md"
        index.append(f"| [`{module}`]({page}) | {first_sentence(path)} |")
        lines = [f"# `{module}`", "", first_sentence(path), ""]
        own = [name for name in names if module == "vennforest" or name not in top]
        also = [name for name in names if name not in own]
        if also:
            links = ", ".join(f"[`{name}`](vennforest.md#vennforest.{name})" for name in also)
            lines += [f"Also here: {links}.", ""]
        for name in own:
            lines += [f"::: {module}.{name}", ""]
        pages[f"api/{page}"] = "\n".join(lines)
    return {"api/index.md": "\n".join(index) + "\n", **pages}


def on_config(config):
    """Take the addresses from pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    addresses = project["tool"]["hatch"]["metadata"]["hooks"]["custom"]
    config.repo_url = addresses["repository"] or None
    config.site_url = addresses["documentation"] or None
    for i, entry in enumerate(config.nav):
        if "API" in entry:
            pages = sorted(interface_pages())
            config.nav[i] = {"API": [page for page in pages if page != "api/index.md"]}
            config.nav[i]["API"].insert(0, "api/index.md")
    return config


def on_page_markdown(markdown, page, config, files):
    """Lead links to files of the root to their pages here."""
    for name, target in ROOT_PAGES.items():
        markdown = markdown.replace(f"](../{name}", f"]({target}")
    return markdown


def on_files(files, config):
    """Add the root's pages, the pages of the interface and the picture of the imports."""
    pages = interface_pages()
    for name, target in ROOT_PAGES.items():
        text = (ROOT / name).read_text("utf-8")
        for other, page in ROOT_PAGES.items():
            text = text.replace(f"]({other}", f"]({page}")
        pages[target] = re.sub(r"\]\(docs/", "](", text)
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    files.append(File.generated(config, "pictures/architecture.svg", content=picture(ROOT)))
    return files
