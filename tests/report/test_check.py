"""Probabilities that exist already: given, or of a fitted model."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_score, recall_score

from report.reading import numbers_in
from support.report_data import calibrated, table_of
from vennforest import CalibratedClassifier, Multiprobability, VennAbers
from vennforest.report import check


def test_predictions_of_every_shape():
    y, p, _ = calibrated(120, 5)
    table = np.column_stack([1 - p, p])
    lower, upper = np.clip(table - 0.05, 0, 1), np.clip(table + 0.05, 0, 1)
    bounds = Multiprobability(lower, upper, np.array(["no", "yes"]))
    evaluation = check(y, {"column": p, "table": table, "bounds": bounds, "both": (p, bounds)})
    measures = evaluation.findings.measures
    assert list(measures) == ["column", "table", "bounds", "both"]
    assert measures["column"] == measures["table"] and measures["both"].width > 0
    assert evaluation.verdict.method in ("bounds", "both")
    np.testing.assert_allclose(evaluation.probabilities["both"][:, 1], p)
    assert check(y, p).findings.measures["Predictions"] == measures["column"]
    assert check(y, tuple(p)).findings.measures["Predictions"] == measures["column"]
    three = np.random.default_rng(0).dirichlet(np.ones(3), 120)
    assert check(np.arange(120) % 3, three).predictions.positive is None
    for wrong, message in (
        ({}, "at least one model"),
        (p[:-1], "must be of 120 rows"),
        (p * 3, "must lie in"),
        (three, "a column for each of 2 classes"),
        (table * 0.9, "sum to 1"),
        ({"a": Multiprobability(three, three, np.arange(3))}, "of the classes"),
    ):
        with pytest.raises(ValueError, match=message):
            check(y, wrong)
    with pytest.raises(ValueError, match="two classes"):
        check(["a"] * 120, p)


@pytest.fixture(scope="module")
def model():
    forest = RandomForestClassifier(30, random_state=0)
    return CalibratedClassifier(forest, random_state=0).fit(*table_of(300, 7))


def test_a_fitted_model_is_judged_with_bounds_and_intervals(model):
    new, labels = table_of(200, 8)
    evaluation = check(labels, model, X=new)
    estimates = evaluation.predictions.estimates
    np.testing.assert_array_equal(estimates["venn-abers"].p, model.predict_proba(new))
    assert estimates["venn-abers"].bounds is not None
    assert estimates["venn-abers"].confidence is not None
    np.testing.assert_array_equal(estimates["none"].p, model.estimators_[0].predict_proba(new))
    assert not evaluation.findings.origin.trained_on_rows and len(evaluation.notes) == 1
    with pytest.raises(ValueError, match="must contain labels of classes"):
        check(np.where(labels == "yes", "maybe", labels), model, X=new)
    with pytest.raises(ValueError, match="X must be given"):
        check(labels, model)
    plain = LogisticRegression().fit(*table_of(300, 7))
    assert list(check(labels, plain, X=new).findings.measures) == ["model"]


def test_equal_probabilities_stay_equal_where_every_class_has_a_column():
    y, p, _ = calibrated(400, 3)
    p = np.round(p, 1)
    both = np.column_stack([1 - p + 1e-13 * (y == "yes"), p])
    areas = [check(y, q, positive="yes").methods["auc"].iloc[0] for q in (both, p)]
    assert areas[0] == areas[1]


def test_a_model_judged_on_its_own_rows_says_so(model):
    X, y = table_of(300, 7)
    new, labels = table_of(200, 8)
    order = np.random.default_rng(0).permutation(300)
    for rows in (np.arange(300), order):
        evaluation = check(y[rows], model, X=X.iloc[rows])
        assert evaluation.verdict.action == "check" and evaluation.findings.origin.trained_on_rows
        assert evaluation.verdict.sentence.startswith("Test the model on other rows first")
        assert list(evaluation.sections) == ["predictors"]
    assert not check(labels, model, X=new).findings.origin.trained_on_rows


def test_no_coverage_is_claimed_where_calibration_is_rejected():
    X, y = table_of(3000, 7)
    elsewhere, labels = table_of(600, 8)
    labels = np.where(np.random.default_rng(0).random(600) < 0.4, "yes", labels)  # 20 points off
    model = CalibratedClassifier(LogisticRegression(), random_state=0).fit(X, y)
    heading, coverage = "How precisely the probabilities are known", "in 95% of cases"
    for rows, y, is_right in ((elsewhere, labels, False), (*table_of(600, 9), True)):
        evaluation = check(y, model, X=rows)
        assert evaluation.findings.best.is_rejected != is_right
        assert (coverage in evaluation.verdict.reasons[heading]) == is_right
        assert (coverage in str(evaluation.verdict)) == is_right


def test_a_calibrator_is_judged_on_scores():
    y, p, _ = calibrated(400, 6, strength=2.0)
    scores = 500 + 40 * np.log(p / (1 - p))
    calibrator = VennAbers().fit(scores[:200], y[:200])
    evaluation = check(y[200:], calibrator, X=scores[200:])
    expected = calibrator.predict_proba(scores[200:])
    np.testing.assert_array_equal(evaluation.probabilities["model"], expected)


def test_each_class_has_recall_precision_and_mean_probability():
    rng = np.random.default_rng(4)
    p, y = rng.dirichlet([3, 2, 1], 200), rng.choice(["a", "b", "c"], 200, p=[0.2, 0.3, 0.5])
    frame, predicted = check(y, p).classes, np.array(["a", "b", "c"])[p.argmax(axis=1)]
    np.testing.assert_allclose(frame["recall"], recall_score(y, predicted, average=None))
    np.testing.assert_allclose(frame["precision"], precision_score(y, predicted, average=None))
    np.testing.assert_allclose(frame["mean"], p.mean(axis=0))
    np.testing.assert_allclose(frame["share"], [(y == c).mean() for c in "abc"])


@pytest.mark.parametrize("k", [2, 3])
def test_values_with_weights_are_those_of_repeated_rows(k):
    rng = np.random.default_rng(3)
    p, weight = rng.dirichlet(np.ones(k), 600), rng.integers(0, 3, 600)
    y = (p.cumsum(1)[:, :-1] < rng.random((600, 1))).sum(1)
    rows = np.repeat(np.arange(600), weight)
    by = {"part": np.arange(600) % 3}
    weighted = check(y, p, sample_weight=weight, by=by)
    repeated = check(y[rows], p[rows], by={"part": by["part"][rows]})
    names = ["log_loss", "brier", "auc", "accuracy", "calibration_error", "expected", "observed"]
    names += ["observed_expected", "slope"] * (k == 2)
    for name in names:
        values = weighted.methods[name], repeated.methods[name]
        np.testing.assert_allclose(*values, rtol=1e-9, atol=1e-12, err_msg=name)
    for frame in ("levels", "classes", "subgroups", "thresholds")[: 4 if k == 2 else 3]:
        first, second = getattr(weighted, frame), getattr(repeated, frame)
        for name in {"expected", "observed", "share", "mean", "recall", "flagged"} & {*first}:
            np.testing.assert_allclose(first[name], second[name], rtol=1e-9, err_msg=name)
    low, high = (weighted.methods.iloc[0][f"log_loss_{end}"] for end in ("low", "high"))
    alone = [repeated.methods.iloc[0][f"log_loss_{end}"] for end in ("low", "high")]
    assert high - low > alone[1] - alone[0]  # of fewer observations
    noted = [numbers_in(note) for note in weighted.notes]
    assert noted[0][0] == (weight == 0).sum() and weighted.findings.rows == (weight > 0).sum()
    effective = weight.sum() ** 2 / (weight**2).sum()
    assert noted[-1] == [round(effective)] and weighted.notes[-1] in weighted.to_text()


def test_rows_lost_before_the_horizon_do_not_make_right_probabilities_wrong():
    rng = np.random.default_rng(0)
    risk, horizon = rng.uniform(0.5, 2, 4000), 2.0
    event, lost = rng.exponential(1 / (0.15 * risk)), rng.uniform(0, 4, 4000)
    p, time = 1 - np.exp(-0.15 * risk * horizon), np.minimum(event, lost)
    y = (event <= lost).astype(int)
    evaluation = check(y, p, follow_up=(time, horizon), positive=1)
    row = evaluation.methods.iloc[0]
    assert row["observed_expected_low"] < 1 < row["observed_expected_high"]
    n_lost = int(((time < horizon) & (y == 0)).sum())
    assert evaluation.findings.rows == 4000 - n_lost
    assert any(n_lost in numbers_in(note) for note in evaluation.notes)
    known = (time >= horizon) | ((y == 1) & (time <= horizon))
    naive = check((y & (time <= horizon))[known], p[known], positive=1)
    assert naive.methods.iloc[0]["observed_expected_low"] > 1


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("weighted", [False, True])
def test_one_class_has_no_gain_over_itself(label, weighted, tmp_path):
    rng = np.random.default_rng(0)
    p, weight = rng.random(60), rng.random(60) if weighted else None
    evaluation = check(np.full(60, label), p, classes=[0, 1], sample_weight=weight)
    evaluation.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "nan%" not in page and f"Brier score; by always predicting {label * 100}.0%: 0" in page


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"by": "sex"}, "by must be a dict, .* got 'sex'"),
        ({"by": np.zeros(40)}, "by must be a dict, .* got ndarray"),
        ({"by": {"sex": np.zeros(3)}}, r"by of 'sex' must have shape \(40,\), got \(3,\)"),
        ({"thresholds": 0.02}, r"thresholds must be a list of numbers in \(0, 1\), got 0.02"),
        ({"thresholds": ".02"}, "thresholds must be a list of numbers"),
        ({"thresholds": [0.2, np.nan]}, "thresholds must be a list of numbers"),
        ({"promises": 0.9}, "promises must be a dict of targets, got 0.9"),
        ({"promises": {"recal": 0.9}}, "promises must be one of .*sensitivity.*, got 'recal'"),
        ({"promises": {"precision": 2}}, "precision must lie between 0 and 1"),
        ({"site": ["a"] * 41}, r"site must have shape \(40,\), got \(41,\)"),
        ({"grades": ["a"] * 41}, r"grades must have shape \(40,\), got \(41,\)"),
        ({"segments": np.zeros(40)}, "segments must be a data frame of 40 rows, got ndarray"),
        ({"follow_up": np.ones(40)}, "follow_up must be a pair of times"),
        ({"y": [], "p": []}, "y must contain at least one label, got none"),
        ({"final_grades": ["a"] * 40}, "final_grades must be given with grades, got no grades"),
        ({"time": range(40)}, "time must be given with grades, got no grades"),
        ({"by": {"a": np.ma.masked_equal([1, 2] * 20, 1)}}, "by of 'a' must have no masked"),
        ({"sample_weight": [2, 1] * 20, "promises": {"precision": 0.5}}, "^precision must be used"),
        ({"y": [1] * 40, "classes": [0, 1], "promises": {"precision": 0.5}}, "^precision must be"),
    ],
)
def test_arguments_of_another_kind_are_refused_in_a_sentence(options, rule):
    y = [0, 1] * 20
    with pytest.raises(ValueError, match=rule):
        check(**{"y": y, "p": [0.4, 0.6] * 20, **options})


@pytest.mark.parametrize(
    "name", ["y", "p", "groups", "sample_weight", "site", "grades", "segments", "by", "follow_up"]
)
def test_columns_with_the_index_of_the_rows_in_another_order_are_warned_of(name):
    index = pd.Index([f"row {i}" for i in range(80)])
    columns = pd.DataFrame({"y": [0, 1] * 40, "p": [0.2, 0.9, 0.4, 0.6] * 20, "site": 40 * [*"ab"]})
    columns = columns.set_index(index)
    arguments = {"y": columns["y"], "p": {"clinic": columns["p"]}}
    column = columns[name if name in "yp" else "site"].iloc[::-1]
    column = {"sample_weight": columns["p"].iloc[::-1], "segments": column.to_frame()}.get(
        name, column
    )
    wrapped = {"by": {"ward": column}, "p": {"clinic": column}}
    wrapped["follow_up"] = columns["p"].iloc[::-1], 0.1
    with pytest.warns(UserWarning, match=r"has the index of the rows in another order"):
        check(**{**arguments, name: wrapped.get(name, column)})


def test_a_page_of_one_row_or_group_has_no_nan_and_no_plural(tmp_path):
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.ones(3), 60)
    y = (rng.random(60)[:, None] > p.cumsum(axis=1)).sum(axis=1)
    for n, weight in ((1, None), (60, None), (60, np.arange(60.0) > 0)):
        options = {"classes": range(3), "groups": [0] * n, "sample_weight": weight}
        evaluation = check(y[:n], {"first": p[:n], "second": p[::-1][:n]}, **options)
        evaluation.to_html(tmp_path / "page.html")
        page = re.sub(r"<[^>]*>", " ", (tmp_path / "page.html").read_text("utf-8"))
        text = page + evaluation.to_text() + repr(evaluation.verdict)
        assert re.findall(r"\bnan\b|\b1 (?:row|group)s\b|interval \)", text) == []
    assert "Left out: 1 row of weight 0." in evaluation.notes


def test_segments_are_those_of_tables_of_every_library():
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 2, 200), rng.random(200)
    frame = pd.DataFrame({"age": rng.random(200), "ward": rng.choice(["a", "b"], 200)})
    expected = check(y, p, segments=frame).sections["segments"].frame
    for table in (pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        actual = check(y, p, segments=table).sections["segments"].frame
        pd.testing.assert_frame_equal(actual, expected)
