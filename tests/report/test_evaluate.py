"""Training in cross-validation: what is predicted by which model, and how data are read."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from report.reading import named_in, numbers_in
from support.report_data import nasty_table, table_of
from vennforest.report import evaluate

QUICK = {"n_folds": 2, "n_trees": 10, "methods": ["venn-abers"]}


def mixed_table(n=160, seed=0):
    """Text with one cell that is no number or date, gaps, dates, many words, a column of None."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    frame = pd.DataFrame({
        "size": np.where(rng.random(n) < 0.1, "", np.round(x, 3).astype(str)),
        "level": np.round(rng.normal(size=n), 2).astype(str),
        "word": rng.choice(["None", "red", "blue", ""], n),
        "firm": [f"firm {i} & sons" for i in rng.integers(0, 300, n)],
        "seen": pd.date_range("2020-01-30", periods=n).strftime("%d/%m/%Y"),
        "when": pd.date_range("2020-01-30", periods=n).strftime("%Y-%m-%d"),
        "vip": rng.choice(["True", "False"], n),
    })  # fmt: skip
    frame.loc[17, "level"] = "<0.5"  # text to all, though numbers to every fold that lacks it
    frame.loc[23, "when"] = "soon"
    return frame, np.where(x + rng.normal(size=n) / 2 > 0, "yes", "no")


def test_same_seed_same_numbers():
    X, y = nasty_table()
    first, second, third = (
        evaluate(X, y, n_folds=2, n_trees=5, random_state=seed, methods=["venn-abers", "beta"])
        for seed in (3, 3, 4)
    )
    for method in first.probabilities:
        np.testing.assert_array_equal(first.probabilities[method], second.probabilities[method])
    assert not first.methods.equals(third.methods)


@pytest.mark.parametrize("grouped", [False, True])
def test_the_report_judges_what_the_recommended_model_is(grouped):
    """The model, fitted to the other folds, predicts what the report says, with its bounds."""
    X, y = mixed_table()
    groups = np.array([f"{i // 2:03}" for i in range(160)]) if grouped else None
    options = {"methods": ["venn-abers"], "groups": groups, "random_state": 4}
    evaluation = evaluate(X, y, n_folds=2, n_trees=8, **options)
    predictions, method = evaluation.predictions, "venn-abers"
    assert evaluation.model.method == evaluation.verdict.method
    assert evaluation.findings.settings["calibrate_on"] == ("cv" if grouped else "oob")
    pipeline = evaluation.model.estimator
    columns = clone(pipeline[0]).fit(X)  # what columns contain is learnt from the whole table
    typed = columns.transform(X)
    # The advice may be folds, which is another model than the one that was judged.
    judged = {"method": method, "calibrate_on": evaluation.findings.settings["calibrate_on"]}
    model = clone(evaluation.model).set_params(estimator=pipeline[1:], **judged)
    for fold in range(2):
        train, test = predictions.fold != fold, predictions.fold == fold
        groups_of_fold = {"groups": groups[train]} if grouped else {}
        model.fit(typed[train], y[train], **groups_of_fold)
        p, estimates = model.predict_proba(typed[test]), predictions.estimates[method]
        np.testing.assert_allclose(p, estimates.p[test], atol=1e-12)
        bounds = model.predict_multiprobability(typed[test])
        np.testing.assert_allclose(bounds.lower, estimates.bounds.lower[test], atol=1e-12)
        intervals = model.predict_confidence(typed[test])
        np.testing.assert_allclose(intervals.upper, estimates.confidence.upper[test], atol=1e-12)


@pytest.mark.parametrize("estimator", [None, "logistic"])
def test_folds_are_at_most_the_groups(estimator):
    X, y = table_of(240, 22)
    hospital = np.array(["north", "south", "west"])[np.arange(240) % 3]
    options = {"estimator": estimator, "n_trees": 10, "methods": ["venn-abers"]}
    evaluation = evaluate(X, y, groups=hospital, **options)
    assert evaluation.predictions.n_folds == 3
    noted = [numbers_in(note) for note in evaluation.notes]
    assert [3, 3, 5] in noted and [2, 2, 5] in noted  # groups, and folds in place of those asked
    two = evaluate(X, y, groups=hospital == "west", **options)
    assert any("rows to train on are of one group" in note for note in two.notes)
    with pytest.raises(ValueError, match="groups must be at least two, got 1"):
        evaluate(X, y, groups=["all"] * 240, **options)


def test_groups_are_never_on_both_sides():
    rng = np.random.default_rng(9)
    groups = np.repeat(np.arange(40), 5)
    label = rng.integers(0, 2, 40)[groups]
    X = rng.normal(size=(40, 4))[groups]  # names the group, and tells nothing else
    options = {"n_folds": 4, "n_trees": 20, "methods": ["venn-abers"]}
    loose, grouped = evaluate(X, label, **options), evaluate(X, label, groups=groups, **options)
    auc = grouped.findings.auc
    assert loose.findings.auc.value > 0.9 and not auc.low > 0.5
    fold = grouped.predictions.fold
    for i in range(4):
        assert not set(groups[fold == i]) & set(groups[fold != i])
    assert auc.high - auc.low > 0.25  # 40 observations, not 200
    assert grouped.findings.groups == 40
    assert 40 in numbers_in(grouped.verdict.reasons["How well it predicts “label”"])


def test_rows_in_order_of_time():
    X, y = table_of(120, 11)
    day = pd.date_range("2021-01-01", periods=120).strftime("%Y-%m-%d").to_numpy(object)
    evaluation = evaluate(X, y, time=day, n_folds=3, n_trees=10, methods=["venn-abers"])
    assert evaluation.findings.origin.kind == "time" and evaluation.rows.tolist() == list(
        range(30, 120)
    )
    assert any(numbers_in(note)[:2] == [30, 120] for note in evaluation.notes)  # only train


def test_rare_classes():
    X = np.random.default_rng(0).normal(size=(43, 2))
    y = ["a"] * 20 + ["b"] * 19 + ["rare"] * 3 + ["single"]
    evaluation = evaluate(X, y, n_folds=5, n_trees=20, methods=["venn-abers"])
    assert evaluation.classes["n"].to_dict() == {"a": 20, "b": 19, "rare": 3}
    assert named_in(evaluation.notes[0]) == {"single"}
    few = evaluate(X[:6], ["a", "b"] * 3, n_folds=10, n_trees=20, methods=["platt"])
    assert few.predictions.n_folds == 3 and numbers_in(few.notes[0])[-2:] == [3, 10]


def test_refused_arguments_and_data():
    X, y = nasty_table(30)
    for options, message in (
        ({"methods": ["plat"]}, r"methods must be one of .*: did you mean 'platt'"),
        ({"positive": "maybe"}, "positive must be one of"),
        ({"costs": [[1, 2]]}, "costs must have a row"),
        ({"tolerance": 2}, "tolerance must lie between 0 and 1, both excluded, got 2"),
        ({"y": y[:-1]}, "y must have shape"),
        ({"X": X.assign(bad=np.inf)}, "got inf"),
        ({"y": ["a"] * 29 + ["b"]}, "two classes"),
        (dict(zip("Xy", load_iris(return_X_y=True), strict=True), positive=1), "two classes only"),
    ):
        with pytest.raises(ValueError, match=message):
            evaluate(**{"X": X, "y": y, **QUICK, "n_trees": 5, **options})


def test_one_odd_cell_is_judged_as_fit_takes_it():
    """A column of numbers with one cell of text is text in every fold, as it is to fit."""
    X, y = mixed_table()
    evaluation = evaluate(X, y, n_folds=4, n_trees=10, methods=["platt"])
    assert evaluation.findings.settings["columns"] == {
        "size": "number", "level": "text", "word": "category", "firm": "text", "seen": "date",
        "when": "text", "vip": "number",
    }  # fmt: skip


def test_a_column_that_reveals_the_outcome_is_to_be_checked_first():
    rng = np.random.default_rng(2)
    y = np.where(rng.random(200) < 0.4, "failed", "ok")
    X = pd.DataFrame({"heat": rng.normal(size=200), "repair": np.where(y == "failed", 3.0, 0.0)})
    options = {"n_folds": 2, "n_trees": 10, "methods": ["platt"]}
    verdict = evaluate(X, y, **options).verdict
    assert (verdict.action, verdict.column) == ("check", "repair")
    assert verdict.column in verdict.sentence
    assert not evaluate(X[["heat"]], y, **options).findings.origin.suspects


def test_tables_of_every_library_give_the_same_evaluation():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=90), "t": rng.choice(["u", "v"], 90)})
    y = np.where(X["a"] + rng.normal(size=90) > 0, "yes", "no")
    tables = X, pl.from_pandas(X), pa.Table.from_pandas(X), pa.RecordBatch.from_pandas(X)
    losses = [
        evaluate(table, y, estimator=LogisticRegression(), methods=["platt"], n_folds=2)
        .methods["log_loss"]
        .tolist()
        for table in tables
    ]
    assert all(of_table == losses[0] for of_table in losses)
