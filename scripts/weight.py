"""How much there is to read: size, how far one call travels, and which arrows point the wrong way.

    python scripts/weight.py [ROOT]

``ROOT`` is a checkout, by default the one that this file is in. The calls that are followed run in
a process of their own, in which every file and function of the package is counted that Python
enters; compiled loops are not seen.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

TARGETS = {"fit": 22, "predict_proba": 12, "predict_multiprobability": 14}
"""Files of the package that a call may pass."""

FOLLOWED = """
import json, sys
from collections import defaultdict
import numpy as np
from sklearn.datasets import load_breast_cancer
import vennforest
from vennforest import CalibratedClassifier
from vennforest import calibrators, persistence, sources  # what imports is not what calls

ROOT = vennforest.__file__.removesuffix("__init__.py")
X, y = load_breast_cancer(return_X_y=True)

def follow(call):
    seen, moves, last = set(), 0, [None]
    def note(frame, event, arg):
        nonlocal moves
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(ROOT):
            return
        if code.co_name == "<module>":
            return
        name = code.co_filename.removeprefix(ROOT).replace(chr(92), "/")
        seen.add((name, code.co_qualname))
        moves += name != last[0]
        last[0] = name
    sys.setprofile(note)
    try:
        result = call()
    finally:
        sys.setprofile(None)
    # Comprehensions and the like are part of the function around them.
    functions = {(f, q) for f, q in seen if not q.rpartition(".")[2].startswith("<")}
    return result, {"files": sorted({f for f, _ in seen}), "functions": len(functions),
                    "moves": moves}

def model():
    return CalibratedClassifier(n_jobs=1, random_state=0)

warm = model().fit(X, y)  # imports, and compiles
warm.predict_multiprobability(X[:1]), warm.predict_proba(X[:1])
fitted, found = follow(lambda: model().fit(X, y))
every = {"fit": found}
every["predict_proba"] = follow(lambda: fitted.predict_proba(X[:1]))[1]
every["predict_multiprobability"] = follow(lambda: fitted.predict_multiprobability(X[:1]))[1]
print(json.dumps(every))
"""


def travelled(root: Path) -> dict[str, dict[str, object]]:
    """Return files, number of functions and moves between files of a fit and one row's answers."""
    environment = {**os.environ, "PYTHONPATH": str(root / "src")}
    done = subprocess.run(
        [sys.executable, "-c", FOLLOWED],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, dict[str, object]] = json.loads(done.stdout)
    return found


def modules(package: Path) -> dict[str, Path]:
    """Return the modules of a package by their dotted names."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(known: Mapping[str, Path]) -> dict[str, set[str]]:
    """Return which modules each imports when it is imported itself.

    Imports within functions, and those for type checkers, run later or never and close no circle.
    """
    found: dict[str, set[str]] = {name: set() for name in known}
    for name, path in known.items():
        for node in _at_import(ast.parse(path.read_text("utf-8")).body):
            if isinstance(node, ast.Import):
                targets = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                under = [f"{node.module}.{alias.name}" for alias in node.names]
                targets = [one if one in known else node.module for one in under]
            else:
                continue
            found[name] |= {one for one in targets if one in known and one != name}
    return found


def _at_import(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.dump(node.test):
            yield from _at_import([*node.body, *node.orelse])
        elif isinstance(node, ast.Try):
            yield from _at_import([*node.body, *(s for h in node.handlers for s in h.body)])


def circles(arrows: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the sets of two or more nodes that can all be reached from one another."""
    reached = {}
    for start in arrows:
        seen, todo = set(), [start]
        while todo:
            for after in arrows.get(todo.pop(), ()):
                if after not in seen:
                    seen.add(after)
                    todo.append(after)
        reached[start] = seen
    found = {
        tuple(sorted(other for other in reached[one] if one in reached.get(other, ())))
        for one in arrows
        if one in reached[one]
    }
    return sorted(map(list, found))


def upward(root: Path, arrows: Mapping[str, set[str]]) -> list[str]:
    """Return imports that run against the layers of a contract in ``pyproject.toml``."""
    import tomllib

    settings = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    found = []
    for contract in settings.get("tool", {}).get("importlinter", {}).get("contracts", ()):
        if contract["type"] != "layers":
            continue
        for container in contract.get("containers", ()):
            height = {
                part.strip(" ()"): -number
                for number, layer in enumerate(contract["layers"])
                for part in layer.replace(":", "|").split("|")
            }
            for one, others in arrows.items():
                for other in others:
                    a, b = (_child(name, container) for name in (one, other))
                    if a in height and b in height and height[a] < height[b]:
                        found.append(f"{one} -> {other}")
    return found


def _child(name: str, container: str) -> str | None:
    inside = name.startswith(container + ".")
    return name[len(container) + 1 :].partition(".")[0] if inside else None


def without_mirror(root: Path, known: Mapping[str, Path]) -> list[str]:
    """Return folders of tests that mirror no package, and tests at the root of no module."""
    package = {name.split(".")[1] for name in known if name.count(".")}
    folders = {p.name for p in (root / "tests").iterdir() if any(p.glob("test_*.py"))}
    return sorted(folders - package)


def lines(paths: Iterable[Path]) -> tuple[int, int]:
    """Return how many lines there are, and how many hold code: no comment, no docstring."""
    every = code = 0
    for path in paths:
        text = path.read_text("utf-8")
        every += len(text.splitlines())
        plain = set()
        for node in ast.walk(ast.parse(text)):
            has_body = isinstance(
                node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
            )
            if has_body and ast.get_docstring(node, clean=False) is not None:
                first = node.body[0]
                plain |= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
        for number, line in enumerate(text.splitlines(), 1):
            code += number not in plain and bool(line.strip()) and line.strip()[0] != "#"
    return every, code


def main(root: Path) -> None:
    """Print everything as one table."""
    package = root / "src" / "vennforest"
    known = modules(package)
    every, code = lines(known.values())
    pages = [*(root / "docs").rglob("*.md"), *root.glob("*.md")]
    tables = [page for page in pages if "results" in page.parts]
    words, of_tables = (
        sum(len(page.read_text("utf-8").split()) for page in part)
        for part in (set(pages) - set(tables), tables)
    )
    print(f"{'files':28}{len(known):8,}")
    print(f"{'lines':28}{every:8,}   {code:,} of code")
    print(f"{'words of pages':28}{words:8,}   on {len(pages) - len(tables)} pages")
    print(f"{'words of results':28}{of_tables:8,}   in {len(tables)} files")
    arrows = imports(known)
    print(f"{'circles of imports':28}{len(circles(arrows)):8,}")
    for circle in circles(arrows):
        print(f"    {' '.join(circle)}")
    inside: dict[str, set[str]] = defaultdict(set)
    wrong = upward(root, arrows)
    print(f"{'imports against a layer':28}{len(wrong):8,}")
    for one in wrong:
        print(f"    {one}")
    for folder in sorted({name.split(".")[1] for name in known if name.count(".") > 1}):
        inside[folder] = {name for name in known if name.startswith(f"vennforest.{folder}.")}
    bare = [name for name in inside if not _has_contract(root, f"vennforest.{name}")]
    print(f"{'packages without layers':28}{len(bare):8,}   {' '.join(bare)}")
    lonely = without_mirror(root, known)
    print(f"{'test folders of no package':28}{len(lonely):8,}   {' '.join(lonely)}")
    print(f"\n{'followed':28}{'files':>8}{'at most':>10}{'functions':>12}{'moves':>8}")
    for call, found in travelled(root).items():
        files = found["files"]
        assert isinstance(files, list)
        print(
            f"{call:28}{len(files):8,}{TARGETS[call]:10,}{found['functions']:12,}"
            f"{found['moves']:8,}"
        )
        if "--files" in sys.argv:
            print("    " + "\n    ".join(files))


def _has_contract(root: Path, container: str) -> bool:
    return f'"{container}"' in (root / "pyproject.toml").read_text("utf-8")


if __name__ == "__main__":
    given = [one for one in sys.argv[1:] if not one.startswith("--")]
    main(Path(given[0]).resolve() if given else Path(__file__).resolve().parents[1])
