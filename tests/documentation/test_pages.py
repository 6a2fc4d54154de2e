"""Python on the pages runs as it stands, from the top of a page to its end, on a reader's data.

What a page takes from ``examples/`` is put in as the site's builder does.
"""

import doctest
import re
import textwrap
from pathlib import Path

import numpy as np
import pytest
import sklearn

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FENCE = re.compile(r"^``` ?(?:python|\{ \.python \})\n(.*?)^```$", re.M | re.S)
# These need servers, or packages that the tests do not install.
NOT_HERE = {"scale.md"}
# A file of another library's model, which is not there; a report of five folds and all methods,
# which tests/report makes.
LINES_NOT_HERE = {"files.md": "trusted=", "report.md": "evaluate(X"}
# Enough to see that a line runs.
SMALLER = [
    (r"(RandomForestClassifier\(\s*)(\d+|trees)", r"\g<1>30"),
    (r"HistGradientBoostingClassifier\(", "HistGradientBoostingClassifier(max_iter=5, "),
]


def part(line):
    """Return the part of an example that a line of a page asks for."""
    name, _, mark = line.split('"')[1].partition(":")
    text = (ROOT / name).read_text("utf-8")
    found = text.split(f"# --8<-- [start:{mark}]\n")[1].split(f"# --8<-- [end:{mark}]")[0]
    return textwrap.dedent(found.rstrip(" "))


def blocks(path):
    """Return the page's blocks of Python, one after the other."""
    found = []
    for block in FENCE.findall(path.read_text("utf-8")):
        lines = [part(li) if li.startswith("--8<--") else f"{li}\n" for li in block.splitlines()]
        text = "".join(lines)
        for large, small in SMALLER:
            text = re.sub(large, small, text)
        found.append(text)
    return found


# README.md is a doctest of its own.
PAGES = [p for p in sorted(DOCS.rglob("*.md")) if p.name not in NOT_HERE and blocks(p)]


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
    pd = pytest.importorskip("pandas")
    pytest.importorskip("skrub")
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
    if name == "own-table.md" or name == "other-forests.md":
        tables(folder)
    elif name == "cells.md":
        pytest.importorskip("skrub")
        table = tables(folder)
        given |= {"X": table.drop(columns="left"), "y": table["left"]}
    elif name == "files.md":
        from sklearn.ensemble import RandomForestClassifier

        from vennforest import CalibratedClassifier

        pytest.importorskip("skops")
        forest = RandomForestClassifier(20, random_state=0)
        given["model"] = CalibratedClassifier(forest).fit(given["X"], given["y"])
    elif name == "promises.md":
        given["y"] = (given["X"][:, 0] > 0.2).astype(int)  # clear enough for a promise
    elif name == "explain.md":
        pytest.importorskip("shap")
    elif name == "report.md":
        pytest.importorskip("jinja2")
        given |= {name: given[name][:60] for name in "Xy"}
        p = np.clip(given["X"][:, 0] / 4 + 0.4, 0.01, 0.99)
        given |= {"p_old": p, "p_new": p**2, "patients": np.arange(60), "wards": np.arange(60) % 2}
    elif name == "shift-and-groups.md":
        pd = pytest.importorskip("pandas")
        frame = pd.DataFrame({"ward": np.repeat([1, 2], 100), "age": given["X"][:200, 0] * 9})
        given |= {"labels_before_undersampling": given["y"], "X_small": given["X"][:200]}
        given |= {"y_small": given["y"][:200], "y": given["y"][:200], "X": frame}
    return given


@pytest.fixture(autouse=True)
def configuration_of_one_page():
    """Undo what a page sets for its reader's whole session, such as metadata routing."""
    with sklearn.config_context():
        yield


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(DOCS).as_posix())
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_page(path, tmp_path, monkeypatch):
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
        without = LINES_NOT_HERE.get(path.name, "\n\n\n")
        lines = [line for line in block.splitlines() if without not in line]
        exec(compile("\n".join(lines), f"{path.name}, block {i + 1}", "exec"), names)


def test_pages_with_blocks_are_found():
    names = {path.name for path in PAGES}
    assert {"index.md", "own-table.md", "groups.md", "coming-from.md"} <= names
    assert "table_pipeline(" in "".join(blocks(DOCS / "how-to/own-table.md"))
