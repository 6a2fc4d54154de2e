"""Which names are public, and the pages of the site that document them.

Everything is read and nothing imported, so a page cannot depend on which optional packages are
installed.
"""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("vennforest", "vennforest_experiments")


def sources():
    """Return the folders of the packages that are installed, in place or not."""
    found = [find_spec(name) for name in PACKAGES]
    return [Path(spec.origin).parent for spec in found if spec is not None]


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
    above it but the outermost has one, from which its names would be taken instead.
    """
    found = {}
    for path in (path for folder in sources() for path in sorted(folder.rglob("*.py"))):
        outer = next(folder for folder in sources() if folder in path.parents)
        parts = path.relative_to(outer.parent).with_suffix("").parts
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
        own.sort(key=lambda name: name != "CalibratedClassifier")  # what most readers look for
        also = [name for name in names if name not in own]
        if also:
            links = ", ".join(f"[`{name}`](vennforest.md#vennforest.{name})" for name in also)
            lines += [f"Also here: {links}.", ""]
        for name in own:
            lines += [f"::: {module}.{name}", ""]
        pages[f"api/{page}"] = "\n".join(lines)
    return {"api/index.md": "\n".join(index) + "\n", **pages}
