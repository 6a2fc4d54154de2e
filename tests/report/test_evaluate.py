"""Training in cross-validation: what is predicted by which model, and how data are read."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from support.report_data import nasty_table, table_of
from vennforest import CalibratedClassifier, Multiprobability
from vennforest._validation import InputError
from vennforest.metrics import calibration_distances
from vennforest.report import check, evaluate
from vennforest.report.estimators import ESTIMATORS
from vennforest.report.measures import MethodEstimates
from vennforest.report.training import _predicted, notes_of_folds, pool_folds
from vennforest.tables import table_pipeline

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


def test_a_fold_has_the_intervals_of_its_model_at_level_95():
    X, y = load_iris(return_X_y=True)
    model = CalibratedClassifier(LogisticRegression(max_iter=500), random_state=0).fit(X, y)
    confidence = _predicted(model, ["venn-abers"], X[::9])["venn-abers"].confidence
    expected = model.predict_confidence(X[::9], level=0.95)
    np.testing.assert_allclose(confidence.lower, expected.lower, atol=1e-12)
    np.testing.assert_allclose(confidence.upper, expected.upper, atol=1e-12)


def test_a_class_that_a_fold_never_saw_has_probability_0_and_no_interval():
    p, ends = np.array([[0.4, 0.6]]), np.array([[0.3, 0.5]])
    confidence = Multiprobability(ends, ends + 0.2, np.array(["a", "b"]))
    estimates = {"platt": MethodEstimates(p, None, confidence)}
    folds = [(np.array([0]), np.array([0, 1]), estimates)]
    pooled = pool_folds(folds, "platt", 1, np.array(["a", "b", "c"]), np.array([0]))
    assert pooled.p.tolist() == [[0.4, 0.6, 0.0]]
    assert pooled.confidence.lower.tolist() == [[0.3, 0.5, 0.0]]
    assert pooled.confidence.upper.tolist() == [[0.5, 0.7, 1.0]]


def test_every_row_is_predicted_once_by_a_forest_not_trained_on_it():
    # Labels without any relation to the one feature, which names the row: whoever has seen a row
    # knows its label, whoever has not guesses.
    rng = np.random.default_rng(1)
    X, y = rng.permutation(200)[:, None] * 1.0, rng.integers(2, size=200)
    evaluation = evaluate(X, y, n_folds=4, n_trees=30)
    assert evaluation.methods.loc["none", "accuracy"] < 0.65
    predictions = evaluation.predictions
    assert np.bincount(predictions.fold).tolist() == [50] * 4
    shares = [y[predictions.fold == i].mean() for i in range(4)]
    assert max(shares) - min(shares) < 0.03
    for estimates in predictions.estimates.values():
        np.testing.assert_allclose(estimates.p.sum(axis=1), 1)
        if estimates.bounds is not None:
            assert (estimates.bounds.lower <= estimates.p + 1e-12).all()
            assert (estimates.p <= estimates.bounds.upper + 1e-12).all()
        if estimates.confidence is not None:
            low, high = estimates.confidence.lower, estimates.confidence.upper
            assert (low <= estimates.p).all() and (estimates.p <= high).all()
            assert 0.01 < np.mean(high - low) < 0.9


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


@pytest.mark.parametrize("grouped", [False, True])
def test_the_numbers_of_a_method_do_not_depend_on_the_methods_compared(grouped):
    """Widened to contain the point of another method, intervals were too wide for this one."""
    X, y = table_of(120, 21)
    groups = np.arange(120) // 2 if grouped else None
    options = {"groups": groups, "n_folds": 2, "n_trees": 10}
    together = evaluate(X, y, **options).predictions.estimates
    for method in ("venn-abers", "venn", "platt"):
        alone = evaluate(X, y, methods=[method], **options).predictions.estimates
        for kind in ("bounds", "confidence"):
            first, second = getattr(together[method], kind), getattr(alone[method], kind)
            if first is not None:
                np.testing.assert_array_equal(first.lower, second.lower)
                np.testing.assert_array_equal(first.upper, second.upper)
        np.testing.assert_array_equal(together[method].p, alone[method].p)


def test_warnings_of_folds_that_differ_in_counts_are_one_note():
    texts = ["6 of 22 rows are new", "column 3 is odd", "5 of 1,023 rows are new"]
    assert notes_of_folds([*texts, "column 4 is odd", "column 3 is odd"]) == [
        "In folds, for example: 6 of 22 rows are new.",
        "In folds: column 3 is odd.",
        "In folds: column 4 is odd.",
    ]


@pytest.mark.parametrize("estimator", [None, "logistic"])
def test_folds_are_at_most_the_groups(estimator):
    X, y = table_of(240, 22)
    hospital = np.array(["north", "south", "west"])[np.arange(240) % 3]
    options = {"estimator": estimator, "n_trees": 10, "methods": ["venn-abers"]}
    evaluation = evaluate(X, y, groups=hospital, **options)
    assert evaluation.predictions.n_folds == 3
    assert "There are 3 groups: 3 folds instead of 5." in evaluation.notes
    assert "In folds: there are 2 groups: 2 folds instead of 5." in evaluation.notes
    two = evaluate(X, y, groups=hospital == "west", **options)
    assert any("rows to train on are of one group" in note for note in two.notes)
    with pytest.raises(ValueError, match="groups must be at least two, got 1"):
        evaluate(X, y, groups=["all"] * 240, **options)


@pytest.mark.parametrize("name", list(ESTIMATORS))
def test_every_named_estimator(name):
    if name in ("lightgbm", "xgboost", "catboost"):
        pytest.importorskip(name)
    X, y = table_of(90, 12)
    X["word"] = np.where(X["b"] > 0, "left", "right")
    X.iloc[3, 0] = np.nan
    with threadpool_limits(1):  # boosting spreads 60 rows over threads
        evaluation = evaluate(X, y, estimator=name, **QUICK)
        evaluation.model.fit(X, y).predict_proba(X)
    assert evaluation.methods.loc["none", "name"].startswith("Raw ")
    assert evaluation.findings.auc.value >= 0.5


def test_an_estimator_of_ones_own():
    X, y = table_of(90, 13)
    model = LogisticRegression(C=0.5)
    evaluation = evaluate(X.to_numpy(), y, estimator=model, n_folds=2, methods=["platt"])
    assert evaluation.methods.loc["none", "name"] == "Raw LogisticRegression"
    assert evaluation.model.estimator is model
    for wrong in ("forest", LogisticRegression, 7):
        with pytest.raises(ValueError, match="estimator must be"):
            evaluate(X, y, estimator=wrong)


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
    assert "40 groups" in grouped.verdict.reasons["How well it predicts “label”"]


def test_rows_in_order_of_time():
    X, y = table_of(120, 11)
    day = pd.date_range("2021-01-01", periods=120).strftime("%Y-%m-%d").to_numpy(object)
    evaluation = evaluate(X, y, time=day, n_folds=3, n_trees=10, methods=["venn-abers"])
    assert evaluation.findings.origin.kind == "time" and evaluation.rows.tolist() == list(
        range(30, 120)
    )
    assert any("30 of 120 rows only train" in note for note in evaluation.notes)


def test_rare_classes():
    X = np.random.default_rng(0).normal(size=(43, 2))
    y = ["a"] * 20 + ["b"] * 19 + ["rare"] * 3 + ["single"]
    evaluation = evaluate(X, y, n_folds=5, n_trees=20, methods=["venn-abers"])
    assert evaluation.classes["n"].to_dict() == {"a": 20, "b": 19, "rare": 3}
    assert "Left out: 'single'." in evaluation.notes[0]
    few = evaluate(X[:6], ["a", "b"] * 3, n_folds=10, n_trees=20, methods=["platt"])
    assert few.predictions.n_folds == 3 and "3 folds instead of 10" in few.notes[0]


def test_refused_arguments_and_data():
    X, y = nasty_table(30)
    for options, message in (
        ({"methods": ["plat"]}, r"methods must be one of .*: did you mean 'platt'"),
        ({"positive": "maybe"}, "positive must be one of"),
        ({"costs": [[1, 2]]}, "costs must have a row"),
        ({"tolerance": 2}, r"tolerance must lie in \(0, 1\), got 2"),
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
    assert (verdict.action, verdict.column) == ("check", "repair") and "“repair”" in str(verdict)
    assert not evaluate(X[["heat"]], y, **options).findings.origin.suspects


def test_it_prints_a_few_lines(cancer):
    lines = repr(cancer).splitlines()
    assert lines[0] == "breast cancer: 569 rows, 2 classes"
    assert lines[1] == cancer.verdict.sentence
    assert len(lines) < 20 and "Venn–Abers" in "".join(lines[2:])


@pytest.mark.parametrize("signal", [0.0, 3.0])
def test_a_loss_above_that_of_the_base_rate_is_called_higher(signal):
    """Distances from the smooth curve are those of the metric, for the recommended method."""
    rng = np.random.default_rng(11)
    x = rng.normal(size=200)
    y = np.where(signal * x + rng.normal(size=200) > 0, "yes", "no")
    evaluation = check(y, 1 / (1 + np.exp(-2 * x)), positive="yes")
    c, predictions = evaluation.findings, evaluation.predictions
    reasons = evaluation.verdict.reasons
    text = next(reasons[name] for name in reasons if name.startswith("How well it predicts"))
    skills = evaluation.methods.loc[c.method, "brier_skill"]
    word = "lower" if skills > 0 else "higher"
    assert f"% {word} than that of always predicting" in text and "is \u2212" not in text
    assert evaluation.verdict.figures[3][1].startswith(f"{word} Brier score")
    assert (skills > 0) == (signal > 0)
    p = predictions.estimates[c.method].p[:, 1]
    distances = calibration_distances(predictions.codes, p)
    assert evaluation.methods.loc[c.method, "ici"] == pytest.approx(distances.ici.value)
    chance = evaluation.methods.loc[c.method, "emax_by_chance"]
    assert chance == pytest.approx(distances.by_chance["emax"])


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


def test_an_estimator_that_reads_columns_by_name_is_refused():
    X = pd.DataFrame({"a": np.arange(40.0), "t": ["u", "v"] * 20})
    with pytest.raises(InputError, match=r"estimator must be a classifier of numbers .* Pipeline"):
        evaluate(X, np.arange(40) % 2, estimator=table_pipeline(LogisticRegression()))
