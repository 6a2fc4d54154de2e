"""The report judges what fit fits, and prints the code that does it."""

import numpy as np
import pytest
from sklearn.base import clone

pd = pytest.importorskip("pandas")
for extra in ("skrub", "matplotlib", "jinja2", "pyarrow", "typer", "skops"):
    pytest.importorskip(extra)

import vennforest  # noqa: E402
from vennforest.cli import main  # noqa: E402
from vennforest.report import evaluate  # noqa: E402
from vennforest.report.page import recipe, render  # noqa: E402
from vennforest.tables.read import read_table  # noqa: E402
from vennforest.tables.target import split_target  # noqa: E402


def mixed_table(n=160, seed=0):
    """Text with one cell that is no number or date, gaps, dates, many words, a column of None."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "size": np.where(rng.random(n) < 0.1, "", np.round(x, 3).astype(str)),
            "level": np.round(rng.normal(size=n), 2).astype(str),
            "word": rng.choice(["None", "red", "blue", ""], n),
            "firm": [f"firm {i} & sons" for i in rng.integers(0, 300, n)],
            "seen": pd.date_range("2020-01-30", periods=n).strftime("%d/%m/%Y"),
            "when": pd.date_range("2020-01-30", periods=n).strftime("%Y-%m-%d"),
            "vip": rng.choice(["True", "False"], n),
        }
    )
    frame.loc[17, "level"] = "<0.5"  # text to all, though numbers to every fold that lacks it
    frame.loc[23, "when"] = "soon"
    frame["y"] = np.where(x + rng.normal(size=n) / 2 > 0, "yes", "no")
    return frame


def run(code, X, y, X_new):
    scope = {"X": X, "y": y, "X_new": X_new}
    exec(compile(code, "recipe", "exec"), scope)
    return scope["model"]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("mixed") / "t.csv"
    mixed_table().to_csv(path, index=False)
    return path


@pytest.mark.parametrize("methods", [["venn-abers"], ["platt"], []])
def test_the_printed_recipe_gives_the_numbers_of_the_report(table, methods):
    parted = split_target(read_table(table), "y")
    found = evaluate(parted.X, parted.y, n_folds=3, n_trees=25, methods=methods, random_state=4)
    code = recipe(found)
    assert code in render(found).replace("&#34;", '"')
    method = found.verdict.method
    whole = run(code, parted.X, parted.y, parted.X[:2])
    given = whole if method == "none" else whole.estimator
    columns = clone(given[0]).fit(parted.X)  # what columns hold is learnt from the whole table
    typed, rest = columns.transform(parted.X), clone(given[1:])
    asked = 0
    for fold in range(3):
        train, test = found.folds.fold != fold, found.folds.fold == fold
        model = rest if method == "none" else clone(whole).set_params(estimator=rest)
        check(model.fit(typed[train], parted.y[train]), typed[test], found, method, test)
        if train[17] and train[23]:  # a table of these rows alone has the same types
            model = run(code, parted.X[train], parted.y[train], parted.X[test])
            check(model, parted.X[test], found, method, test)
            asked += 1
    assert asked


def check(model, X_new, found, method, test):
    estimates = found.folds.estimates[method]
    np.testing.assert_array_equal(model.predict_proba(X_new), estimates.p[test])
    if estimates.bounds is not None:
        own = model.predict_multiprobability(X_new)
        np.testing.assert_array_equal(own.lower, estimates.bounds.lower[test])
        np.testing.assert_array_equal(own.upper, estimates.bounds.upper[test])


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_printed_recipe_gives_the_model_of_fit(table, tmp_path, kind):
    data = table
    if kind == "parquet":
        data = tmp_path / "t.parquet"
        mixed_table().to_parquet(data)
    path = tmp_path / "m.skops"
    command = ["fit", data, "-t", "y", "-o", path, "--trees", 25, "--seed", 6, "--jobs", 1]
    assert main([str(argument) for argument in command]) == 0
    fitted = vennforest.load(path)
    frame = mixed_table()
    found = evaluate(
        frame.drop(columns="y"), frame["y"], n_folds=2, n_trees=25, methods=["venn-abers"],
        random_state=6,
    )  # fmt: skip
    assert found.verdict.method == "venn-abers"
    model = run(recipe(found), frame.drop(columns="y"), frame["y"], frame[:3])
    new = mixed_table(seed=1).drop(columns="y")
    np.testing.assert_array_equal(model.predict_proba(new), fitted.predict_proba(new))
    own, theirs = model.predict_multiprobability(new), fitted.predict_multiprobability(new)
    np.testing.assert_array_equal(own.lower, theirs.lower)
    np.testing.assert_array_equal(own.upper, theirs.upper)


def test_one_odd_cell_is_judged_as_fit_takes_it():
    """A column of numbers with one cell of text is text in every fold, as it is to fit."""
    frame = mixed_table()
    found = evaluate(frame.drop(columns="y"), frame["y"], n_folds=4, n_trees=10, methods=["platt"])
    assert found.folds.encodings == {
        "size": "number",
        "level": "text",
        "word": "category",
        "firm": "text",
        "seen": "date",
        "when": "text",
        "vip": "number",
    }


def test_arrays_have_a_recipe_too():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 3)), rng.integers(0, 2, 90)
    found = evaluate(X, y, n_folds=3, n_trees=20, methods=["venn-abers"])
    for fold in range(3):
        train, test = found.folds.fold != fold, found.folds.fold == fold
        model = run(recipe(found), X[train], y[train], X[test])
        np.testing.assert_array_equal(
            model.predict_proba(X[test]), found.folds.estimates["venn-abers"].p[test]
        )
