"""Python on the pages runs as it stands, from the top of a page to its end, on a reader's data."""

import doctest
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.ensemble import RandomForestClassifier

from vennforest import CalibratedClassifier

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FENCE = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)
# Lines that need a cluster, another library's model, or minutes (tests/report makes reports).
UNTESTED_LINES = {
    "large-data.md": ("spark", "dask"),
    "files.md": ("trusted=",),
    "report.md": ("evaluation", "check(y"),
}
# Packages of a page that the tests' environment need not have.
PACKAGES = {"boosters.md": ("lightgbm", "xgboost", "catboost", "fastapi")}
# Sizes that are enough to see that a line runs.
SMALLER = [
    (r"(RandomForestClassifier\(\s*)\d+", r"\g<1>20"),
    (r"RandomForestClassifier\(\)", "RandomForestClassifier(20)"),
    (r"HistGradientBoostingClassifier\((?!\n)", "HistGradientBoostingClassifier(max_iter=5, "),
    (r"max_iter=90", "max_iter=5"),
]


def blocks(path):
    """Return the page's blocks of Python, one after the other."""
    found = []
    for text in FENCE.findall(path.read_text("utf-8")):
        for large, small in SMALLER:
            text = re.sub(large, small, text)
        found.append(text)
    return found


# README.md is a doctest of its own.
PAGES = [p for p in sorted(DOCS.rglob("*.md")) if blocks(p)]


def data():
    """Return what a reader has: numbers and labels, and who the rows are of."""
    rng = np.random.default_rng(0)

    def drawn(n):
        X = rng.normal(size=(n, 3))
        return X, (X[:, 0] + rng.logistic(size=n) > 1.5).astype(int)

    X, y = drawn(1060)
    here = {"X": X[:1000], "y": y[:1000], "X_new": X[1000:], "y_new": y[1000:]}
    here |= dict(zip(("X_same", "y_same"), drawn(560), strict=True))
    here |= dict(zip(("X_worn", "y_worn"), drawn(560), strict=True))
    here["y_worn"] = 1 - here["y_worn"]
    return here | {"patient": np.arange(1000) // 2}


def tables(folder):
    """Write the tables that pages read."""
    rng = np.random.default_rng(0)
    n = 80
    table = pd.DataFrame({"plan": rng.choice(["basic", "pro"], n), "calls": rng.poisson(2, n)})
    table["left"] = np.where(rng.random(n) < 0.2 + 0.1 * table["calls"].clip(0, 6), "yes", "no")
    table.to_csv(folder / "customers.csv", index=False)
    scores = pd.DataFrame({"score": rng.random(n), "y": rng.integers(0, 2, n)})
    scores.to_csv(folder / "oob.csv", index=False)
    scores[["score"]].to_csv(folder / "new.csv", index=False)
    return table


def of_page(name, given, folder):
    """Return what the text of a page says is there, besides the data."""
    if name in ("own-table.md", "other-models.md"):
        tables(folder)
    elif name == "cells.md":
        table = tables(folder)
        given |= {"X": table.drop(columns="left"), "y": table["left"]}
    elif name == "files.md":
        forest = RandomForestClassifier(20, random_state=0)
        given["model"] = CalibratedClassifier(forest).fit(given["X"], given["y"])
    elif name == "another-site.md":
        given |= {"p": np.clip(given["X"][:, 0] / 4 + 0.4, 0.01, 0.99), "patients": np.arange(1000)}
    elif name == "report.md":
        given |= {name: given[name][:60] for name in "Xy"}
        p = np.clip(given["X"][:, 0] / 4 + 0.4, 0.01, 0.99)
        given |= {"p_old": p, "p_new": p**2, "patients": np.arange(60), "wards": np.arange(60) % 2}
    return given


@pytest.fixture(autouse=True)
def configuration_of_one_page():
    """Undo what a page sets for its reader's whole session, such as metadata routing."""
    with sklearn.config_context():
        yield


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(DOCS).as_posix())
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore:The argument 'eval_set' is deprecated")
def test_page(path, tmp_path, monkeypatch):
    for package in PACKAGES.get(path.name, ()):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    names = of_page(path.name, data(), tmp_path)
    for i, block in enumerate(blocks(path)):
        if block.startswith(">>>"):
            example = doctest.DocTestParser().get_doctest(block, names, path.name, None, 0)
            flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
            results = doctest.DocTestRunner(optionflags=flags).run(example, clear_globs=False)
            assert not results.failed
            names |= example.globs
            continue
        untested = UNTESTED_LINES.get(path.name, ())
        lines = [line for line in block.splitlines() if not any(u in line for u in untested)]
        exec(compile("\n".join(lines), f"{path.name}, block {i + 1}", "exec"), names)


def test_pages_with_blocks_are_found():
    names = {path.name for path in PAGES}
    assert {"index.md", "own-table.md", "groups.md", "coming-from.md"} <= names
    assert "table_pipeline(" in "".join(blocks(DOCS / "how-to/own-table.md"))


def test_pages_are_plain_markdown():
    for page in DOCS.rglob("*.md"):
        assert "--8<--" not in page.read_text("utf-8"), page


def test_links_between_pages_lead_somewhere():
    def anchors(page):
        headings = re.findall(r"^#+ (.*)", page.read_text("utf-8"), re.M)
        return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}

    roots = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
    for page in [*DOCS.rglob("*.md"), *roots]:
        for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
            if re.match(r"[a-z]+:", link):
                continue
            name, _, anchor = link.partition("#")
            target = (page.parent / name).resolve() if name else page
            assert target.exists(), (page, link)
            assert not anchor or anchor in anchors(target), (page, link)
