"""``fit --estimator``, ``--groups`` and Excel workbooks; names in help; suggestions."""

import json
import re

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
for extra in ("typer", "skops", "pyarrow", "skrub"):
    pytest.importorskip(extra)

from vennforest import load  # noqa: E402
from vennforest.calibrators import METHODS  # noqa: E402
from vennforest.classifier.fitting import SOURCE_NAMES  # noqa: E402
from vennforest.cli import main  # noqa: E402
from vennforest.commands import options  # noqa: E402
from vennforest.persistence import read_header  # noqa: E402
from vennforest.report.estimators import ESTIMATORS  # noqa: E402


def run(*typed):
    return main([str(one) for one in typed])


def table(n=120, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return pd.DataFrame(
        {
            "x": x.round(3),
            "patient_id": rng.permutation(np.arange(n) // 4) + 7000,
            "ward": rng.choice(["north", "south"], n),
            "y": np.where(x + rng.normal(size=n) > 0, "yes", "no"),
        }
    )


def test_help_names_what_comes_with_the_library():
    assert list(options.METHODS) == list(METHODS)
    assert set(options.SOURCES) <= set(SOURCE_NAMES)
    assert set(options.ESTIMATORS) == set(ESTIMATORS)


def test_fit_trains_a_named_estimator_and_keeps_groups_together(tmp_path, capsys):
    data, model = tmp_path / "t.csv", tmp_path / "m.skops"
    table().to_csv(data, index=False)
    fit = ("fit", data, "-t", "y", "-o", model)
    assert run(*fit, "--estimator", "logistic", "--groups", "patient_id") == 0
    fitted = load(model)
    assert "LogisticRegression" in repr(fitted.estimators_[0][-1])
    assert fitted.calibrate_on_ == "cv"
    assert "patient_id" not in fitted.estimators_[0][0].feature_names_in_
    capsys.readouterr()
    assert run(*fit, "--estimator", "forest") == 2
    assert "estimator must be one of" in capsys.readouterr().err
    assert run(*fit, "--groups", "patients") == 2
    assert "patient_id" in capsys.readouterr().err


def test_a_repeated_id_is_no_feature_unless_kept_and_the_report_says_so_first(tmp_path, capsys):
    data, page, model = tmp_path / "t.csv", tmp_path / "p.html", tmp_path / "m.skops"
    table().to_csv(data, index=False)
    fit = ("fit", data, "-t", "y", "-o", model, "--trees", 20)
    assert run(*fit) == 0
    assert "patient_id" not in load(model).estimators_[0][0].feature_names_in_
    assert run(*fit, "--keep", "patient_id") == 0
    assert "patient_id" in load(model).estimators_[0][0].feature_names_in_
    capsys.readouterr()
    options = ("--trees", 20, "--folds", 2, "--methods", "platt", "--json", "-o", page)
    assert run("report", data, "-t", "y", *options) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["verdict"]["action"] == "check"
    assert "--groups patient_id" in summary["advised"]
    first = page.read_text("utf-8").split('id="why"')[0]
    assert "Check the column “patient_id” first" in first
    assert run("report", data, "-t", "y", "--groups", "patient_id", *options) == 0
    assert json.loads(capsys.readouterr().out)["verdict"]["action"] != "check"


def test_workbooks_give_what_the_same_text_gives(tmp_path):
    pytest.importorskip("openpyxl")
    frame = table(seed=3)
    frame.loc[4, "ward"] = None
    book, text = tmp_path / "t.xlsx", tmp_path / "t.csv"
    frame.to_csv(text, index=False)
    frame.to_excel(book, sheet_name="2024", index=False)
    found = []
    for data in (book, text):
        model, out = tmp_path / "m.skops", tmp_path / "p.csv"
        assert run("fit", data, "-t", "y", "-o", model, "--trees", 20) == 0
        assert run("predict", model, data, "-o", out) == 0
        found.append(pd.read_csv(out))
    pd.testing.assert_frame_equal(*found)
    with pd.ExcelWriter(book) as writer:
        frame.to_excel(writer, sheet_name="2024", index=False)
        frame.head(30).to_excel(writer, sheet_name="2025", index=False)
    model = tmp_path / "m.skops"
    assert run("fit", book, "-t", "y", "-o", model, "--trees", 20) == 0  # the first of two sheets
    assert read_header(model)["n_rows"] == 120


@pytest.mark.parametrize(
    ("typed", "meant"), [(["repot"], "report"), (["fit", "--targt", "y"], "--target")]
)
def test_the_nearest_name_is_suggested(typed, meant, capsys):
    assert run(*typed) == 2
    assert re.search(rf"{meant}\b", capsys.readouterr().err)
