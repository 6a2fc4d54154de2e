"""The command ``fit``: estimators, groups, types, markers of missing cells, and the summary."""

import itertools
import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from report.reading import has_in_turn
from support.commands import refused, run
from vennforest import CalibratedClassifier, load, save
from vennforest.linear import LinearClassifier
from vennforest.persistence import read_header
from vennforest.report.estimators import NumberedLabels

FAST = ("--trees", 15, "--jobs", 1, "--estimator", "mixed-forest")


def table(n=120, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return pd.DataFrame({
        "x": x.round(3),
        "patient_id": rng.permutation(np.arange(n) // 4) + 7000,
        "ward": rng.choice(["north", "south"], n),
        "y": np.where(x + rng.normal(size=n) > 0, "yes", "no"),
    })  # fmt: skip


@pytest.fixture
def data(tmp_path):
    table().to_csv(tmp_path / "t.csv", index=False)
    return tmp_path / "t.csv"


def columns_of(model):
    return load(model).estimators_[0][0]


def test_the_summary_says_what_was_learnt(data, tmp_path, capsys):
    model = tmp_path / "m.skops"
    assert run("fit", data, "-t", "y", "-o", model, *FAST, "--json") == 0
    summary = json.loads(capsys.readouterr().out)
    y, fitted, measures = table()["y"].to_numpy(), load(model), summary["measures"]
    assert summary["classes"] == pd.Series(y).value_counts().to_dict() and summary["n_rows"] == 120
    p = fitted.oob_probability_
    rows = ~np.isnan(p[:, 0])
    p, y = p[rows], y[rows]
    is_label = y[:, None] == fitted.classes_
    shares = is_label.mean(axis=0)
    width = fitted.oob_multiprobability_.width[rows]
    assert measures["rows"] == rows.sum() and measures["mean_width"] == pytest.approx(width.mean())
    for name, value in (
        ("accuracy", (fitted.classes_[p.argmax(axis=1)] == y).mean()),
        ("brier_score", ((p - is_label) ** 2).sum(axis=1).mean() / 2),
        ("baseline_accuracy", shares.max()),
        ("baseline_brier_score", (1 - (shares**2).sum()) / 2),
    ):
        assert measures[name] == pytest.approx(value)
    more = ("--method", "platt", "--calibrate-on", "holdout", "--seed", 3)
    answers = []
    for _ in range(2):  # the same seed gives the same model
        assert run("fit", data, "-t", "y", "-o", model, *FAST, *more) == 0
        out, err = capsys.readouterr()
        assert out == "" and all(part in err for part in ("Trained on 120 rows", f"Wrote {model}"))
        answers.append(load(model).predict_proba(table()[["x", "ward"]]))
    np.testing.assert_array_equal(*answers)


@pytest.mark.parametrize(("options", "message"), [
    (("-t", "y", "--method", "magic"), "method must be one of"),
    (("-t", "y", "--estimator", "Blend"), "'blend'], got 'Blend': did you mean 'blend'"),
    (("-t", "y", "--calibrate-on", "no"), "calibrate_on must be"),
    (("-t", "y", "--groups", "patients"), "patient_id"),
    (("-t", "y", "--by", "city"), "there is no column 'city'"),
    (("-t", "y", "--by", "x"), "into few groups"),
])  # fmt: skip
def test_what_cannot_be_fitted(data, capsys, monkeypatch, options, message):
    monkeypatch.chdir(data.parent)
    fast = () if "--estimator" in options else FAST
    assert message in refused(capsys, "fit", data, *fast, *options)
    assert list(data.parent.iterdir()) == [data]


def test_a_named_estimator_is_trained_and_groups_stay_together(data, tmp_path):
    model = tmp_path / "m.skops"
    options = ("--estimator", "logistic", "--groups", "patient_id", "--jobs", 1)
    assert run("fit", data, "-t", "y", "-o", model, *options) == 0
    fitted = load(model)
    assert type(fitted.estimators_[0][-1]) is LinearClassifier
    assert fitted.calibrate_on_ == "cv"
    assert "patient_id" not in columns_of(model).feature_names_in_


def blend_of(data, model):
    table(60).to_csv(data, index=False)
    options = ("--estimator", "blend", "--trees", 15, "--jobs", 1, "--drop", "patient_id")
    assert run("fit", data, "-t", "y", "-o", model, *options) == 0
    return read_header(model)["description"]["estimator"]


def test_the_summary_and_the_header_of_a_blend_have_its_weights(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("vennforest.report.estimators.BLENDED", ("mixed-forest", "logistic"))
    weights = blend_of(tmp_path / "t.csv", tmp_path / "m.skops")
    assert re.fullmatch(r"Blend of mixed-forest \(0\.\d\d\), logistic \(0\.\d\d\)", weights)
    assert f"{weights}." in capsys.readouterr().err
    description = read_header(tmp_path / "m.skops")["description"]
    assert description["estimators"] == 6  # one forest, and a linear model of each fold
    assert description["reason"].startswith("mixed-forest: ")


@pytest.mark.slow
def test_a_blend_of_forest_boosting_and_logistic_regression_predicts_a_table(tmp_path):
    data, path, answers = tmp_path / "t.csv", tmp_path / "m.skops", tmp_path / "p.csv"
    blend_of(data, path)
    model = load(path)
    assert list(model.blend_) == ["mixed-forest", "small-boosting", "logistic"]
    assert run("predict", path, data, "-o", answers) == 0
    p = pd.read_csv(answers)["p(yes)"]
    np.testing.assert_allclose(p, model.predict_proba(table(60)[["x", "ward"]])[:, 1])


def test_a_repeated_id_is_no_feature_unless_kept_and_the_report_says_so_first(
    data, tmp_path, capsys
):
    page, model = tmp_path / "p.html", tmp_path / "m.skops"
    fit = ("fit", data, "-t", "y", "-o", model, *FAST)
    assert run(*fit) == 0
    assert "patient_id" not in columns_of(model).feature_names_in_
    assert run(*fit, "--keep", "patient_id") == 0
    assert "patient_id" in columns_of(model).feature_names_in_
    capsys.readouterr()
    options = (*FAST, "--folds", 2, "--methods", "platt", "--json", "-o", page)
    assert run("report", data, "-t", "y", *options) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["verdict"]["action"] == "check"
    assert ("--groups", "patient_id") in itertools.pairwise(summary["advised"].split())
    assert summary["verdict"]["column"] == "patient_id"
    first = page.read_text("utf-8").split('id="why"')[0]
    assert summary["verdict"]["sentence"] in first
    assert run("report", data, "-t", "y", "--groups", "patient_id", *options) == 0
    assert json.loads(capsys.readouterr().out)["verdict"]["action"] != "check"


@pytest.mark.parametrize("column", ["town", "vip"])
def test_groups_by_a_column(tmp_path, column, capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({
        "x": rng.normal(size=200).round(3),
        "town": rng.choice(["Ulm", "Bonn", None], 200),
        "vip": rng.choice([True, False], 200),
    })  # fmt: skip
    p = 1 / (1 + np.exp(-frame["x"] - (frame["town"] == "Ulm") - frame["vip"]))
    frame["y"] = np.where(rng.random(200) < p, "yes", "no")
    frame.to_csv(tmp_path / "data.csv", index=False)
    frame.to_parquet(tmp_path / "data.parquet")
    model, out = tmp_path / "m.skops", tmp_path / "p.parquet"
    assert run("fit", tmp_path / "data.csv", "-t", "y", "-o", model, *FAST, "--by", column) == 0
    assert len(load(model)._state.by_groups) in (2, 3)
    predictions = []
    for suffix in ("csv", "parquet"):
        assert run("predict", model, tmp_path / f"data.{suffix}", "-o", out) == 0
        predictions.append(pd.read_parquet(out)[["label", "probability", "lower", "upper"]])
    pd.testing.assert_frame_equal(*predictions)
    assert (predictions[0]["upper"] - predictions[0]["lower"]).mean() < 0.6


class Numbered(DecisionTreeClassifier):
    """Takes classes numbered from 0 only, as XGBoost does."""

    def fit(self, X, y, sample_weight=None):
        if np.unique(y).tolist() != [0, 1]:
            raise ValueError(f"Invalid classes inferred from unique values of `y`, got {y[:2]}")
        return super().fit(X, y, sample_weight)


def test_an_estimator_of_another_package_gets_numbers_and_needs_trust(tmp_path, capsys):
    model, x, y = tmp_path / "m.skops", table()[["x"]], table()["y"]
    fitted = CalibratedClassifier(NumberedLabels(Numbered(max_depth=2)), cv=2).fit(x, y)
    save(fitted, model)
    x.to_csv(tmp_path / "x.csv", index=False)
    command = ("predict", model, tmp_path / "x.csv", "-o", tmp_path / "p.csv")
    assert "vennforest predict with --trust" in refused(capsys, *command)
    assert run(*command, "--trust", f"{Numbered.__module__}.Numbered") == 0
    p = pd.read_csv(tmp_path / "p.csv")["p(yes)"]
    np.testing.assert_allclose(p, fitted.predict_proba(x)[:, 1])


def test_an_audit_that_fails_does_not_fail_the_command(data, tmp_path, capsys, monkeypatch):
    def broken(*_, **__):
        raise ValueError("scores must be in [0, 1], got 1.0000000000000002")

    monkeypatch.setattr("vennforest.commands.fit.audit_notes", broken)
    assert run("fit", data, "-t", "y", "-o", tmp_path / "m.skops", *FAST) == 0
    assert load(tmp_path / "m.skops").classes_.tolist() == ["no", "yes"]


def test_marks_of_missing_cells(tmp_path, capsys):
    rng = np.random.default_rng(0)
    value = rng.normal(5, 2, 60).round(2)
    cells = value.astype(str).astype(object)
    cells[::9], cells[4::17] = "n.d.", "-"
    frame = pd.DataFrame({"lab": cells, "age": rng.integers(20, 80, 60)})
    path, model, output = tmp_path / "t.csv", tmp_path / "m.skops", tmp_path / "p.csv"
    frame.assign(y=np.where(value > 5, "u", "v")).to_csv(path, index=False)
    assert run("fit", path, "-t", "y", "-o", model, *FAST) == 0
    advice = re.search(r"--missing=(\S+)", capsys.readouterr().err.replace("'", ""))
    assert advice is not None and advice[1].rstrip(".") in ("-,n.d.", "-,n.d")
    assert run("fit", path, "-t", "y", "-o", model, *FAST, "--missing", "n.d.,-") == 0
    columns, fitted = columns_of(model), load(model)
    assert columns.kinds_ == ["number", "number"] and columns.missing == ["n.d.", "-"]
    assert run("predict", model, path, "-o", output) == 0
    p = fitted.predict_proba(frame)
    assert np.allclose(pd.read_csv(output)["p(u)"], p[:, 0], rtol=1e-12)
    blank = frame.replace({"lab": {"n.d.": None, "-": None}})
    assert np.array_equal(p, fitted.predict_proba(blank))


def test_classes_of_few_rows_are_named(tmp_path, capsys):
    y = [*"ab" * 20, *"ccddd"]
    frame = pd.DataFrame({"x": np.arange(len(y)) % 7, "y": y})
    frame.to_csv(tmp_path / "t.csv", index=False)
    fit = ("fit", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "m.skops", "--jobs", 1)
    assert run(*fit, "--estimator", "logistic") == 0
    assert has_in_turn(capsys.readouterr().err, [2, 4, 5])  # classes, and rows of each
