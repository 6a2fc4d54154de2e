"""What was found wrong on pages of real-looking tables, looked at as pictures and in print."""

import dataclasses
import json
import re
import shutil
import subprocess
import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from support.browser import CHROMIUM, chromium

pd = pytest.importorskip("pandas")
for extra in ("skrub", "matplotlib", "jinja2"):
    pytest.importorskip(extra)

from vennforest import Multiprobability  # noqa: E402
from vennforest.cli import main  # noqa: E402
from vennforest.metrics import decision_curve, ranking_curves  # noqa: E402
from vennforest.report import answers, evaluate, figures, page, report  # noqa: E402
from vennforest.report.event import event_of, levels  # noqa: E402
from vennforest.report.page import render  # noqa: E402
from vennforest.report.subsets import uncertain_rows  # noqa: E402


def run(*arguments):
    return main([str(argument) for argument in arguments])


def with_bounds(n=400, seed=0, share=None):
    """Probabilities with bounds, most of them narrow, and labels drawn from them."""
    rng = np.random.default_rng(seed)
    p = rng.random(n) if share is None else np.full(n, share)
    width = 0.2 * rng.random(n) ** 2
    low, high = np.maximum(0, p - width / 2), np.minimum(1, p + width / 2)
    bounds = Multiprobability(
        np.column_stack([1 - high, low]),
        np.column_stack([1 - low, high]),
        np.array(["a", "b"]),
    )
    y = np.where(rng.random(n) < p, "b", "a")
    return y, (np.column_stack([1 - p, p]), bounds)


@pytest.mark.browser
@pytest.mark.skipif(
    CHROMIUM is None or shutil.which("pdftotext") is None, reason="no Chromium or no pdftotext"
)
def test_tables_in_print(tmp_path):
    """One that fits on a sheet is not cut; on the next sheet of a longer one its head is seen."""
    rng = np.random.default_rng(0)
    k, n = 90, 900
    labels = np.array([f"productgroup{j:02d}" for j in range(k)])
    p = rng.dirichlet(np.ones(k), n)
    y = labels[rng.integers(0, k, n)]
    page, pdf = tmp_path / "page.html", tmp_path / "page.pdf"
    models = {f"model {i}": p for i in range(14)}
    report(y, models, classes=labels).to_html(page)
    chromium(tmp_path, page, f"--print-to-pdf={pdf}", "--no-pdf-header-footer")
    text = subprocess.run(
        ["pdftotext", "-layout", pdf, "-"], capture_output=True, text=True, check=True
    ).stdout
    sheets = [sheet for sheet in text.split("\f") if "Recall" in sheet]
    of_class = [
        sum(bool(re.match(rf" *{label} +\d", line)) for line in text.splitlines() for label in [c])
        for c in labels
    ]
    assert of_class == [1] * k  # no label is broken into two lines
    assert len(sheets) >= 2
    for sheet in text.split("\f"):
        rows = [line for line in sheet.splitlines() if re.match(r" *productgroup\d\d +\d", line)]
        assert not rows or "Recall" in sheet
        listed = [line for line in sheet.splitlines() if re.match(r" *model \d+ .*no differ", line)]
        assert len(listed) in (0, 13)


def test_levels_are_of_all_rows():
    y, predictions = with_bounds()
    found = report(y, {"m": predictions})
    p, outcome, *_ = event_of(found, found.folds.estimates["m"])
    rows = levels(found)
    slow = [at for i in range(10) if (at := (p >= i / 10) & (p < (i + 1) / 10)).any()]
    assert [level["n"] for level in rows] == [at.sum() for at in slow]
    for level, at in zip(rows, slow, strict=True):
        assert (p[at].mean(), outcome[at].mean()) == pytest.approx(
            (level["expected"], level["observed"])
        )
    assert sum(level["n"] for level in rows) == len(y)


def test_certain_predictions_that_are_all_right():
    y = np.array(["no", "yes"] * 30)
    found = report(y, {"m": (y == "yes").astype(float)})
    assert answers.reliability(found, "m").startswith("All are 0 or 1")
    y[0] = "yes"
    assert "1.7 percentage points" in answers.reliability(
        report(y, {"m": np.tile([0.0, 1.0], 30)}), "m"
    )


def test_columns_that_are_never_split_on_are_not_shown_as_the_most_split_on():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"size": rng.normal(size=80), "same": "DE"})
    y = np.where(X["size"] + rng.normal(size=80) > 0, "yes", "no")
    found = evaluate(X, y, n_folds=2, n_trees=10, methods=["venn-abers"])
    assert [name for name, _ in page.data(found)["important"]] == ["size"]
    assert uncertain_rows(found)["names"] == ["size"]


def test_a_missing_slope_is_explained_in_print_too():
    y = np.array(["no", "yes", "yes", "no"] * 20)
    page = render(report(y, {"m": np.array([0.0, 1.0, 0.5, 0.5] * 20)}))
    assert "No intercept and slope (–) where a probability is 0 or 1" in page
    page = render(report(y, {"m": np.array([0.1, 0.9, 0.5, 0.5] * 20)}))
    assert "No intercept and slope" not in page


def named_rows(X, **options):
    y = np.array(["a", "b"] * 10)
    p = np.linspace(0.05, 0.95, 20)
    found = uncertain_rows(report(y, {"m": p}, X=X, **options))
    return [row["row"] for row in found["rows"][:3]], found["head"], found["naming"]


def test_rows_are_named_by_the_index_and_by_what_it_is():
    """The three least certain of 20 rows are, from 0, the two about a half and a next one."""
    frame = pd.DataFrame({"x": np.arange(20.0)})
    assert named_rows(None) == (["11", "10", "12"], "Row", "Rows are counted from 1")
    assert named_rows(frame.to_numpy())[1:] == ("Row", "Rows are counted from 1")
    rows, head, said = named_rows(frame)
    assert (rows, head) == (["10", "9", "11"], "Index")
    assert said == "Rows are named by the index of the data frame"
    patients = frame.set_axis(pd.Index(np.arange(20) + 1000, name="patient"))
    rows, head, said = named_rows(patients)
    assert (rows, head, said) == (["1010", "1009", "1011"], "patient", "")
    assert rows == [str(name) for name in patients.index[[10, 9, 11]]]
    twice = frame.set_axis(pd.Index(np.arange(20) // 2, name="patient"))
    rows, head, said = named_rows(twice)
    assert (rows, head) == (["11", "10", "12"], "Row")
    assert said.startswith("Rows are counted from 1")


def test_single_rows_are_shown_only_when_asked():
    y, predictions = with_bounds(n=60)
    names = pd.Index([f"patient-{i}" for i in range(60)], name="patient")
    found = report(y, {"m": predictions}, X=pd.DataFrame({"x": np.arange(60)}, index=names))
    assert "patient-" not in render(found) and "patient-" not in found._repr_html_()
    assert "patient-" in render(found, rows=True)


def test_the_command_says_of_which_file_rows_are(tmp_path, capsys):
    rng = np.random.default_rng(3)
    for name, n in (("train", 120), ("new", 60)):
        x = rng.normal(size=n)
        frame = pd.DataFrame({"x": x.round(3), "note": rng.choice(["u", "v"], n)})
        frame["y"] = np.where(x + rng.normal(size=n) > 0, "yes", "no")
        if name == "new":
            frame.loc[5:, "note"] = None
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    train, new, page = tmp_path / "train.csv", tmp_path / "new.csv", tmp_path / "page.html"
    common = ("-t", "y", "-o", page, "--trees", 10, "--methods", "venn-abers", "--rows")
    assert run("report", train, "--test", new, *common) == 0
    html = page.read_text("utf-8")
    assert "new.csv (trained on train.csv) · 60 rows" in html
    assert "Row of new.csv, from 1" in html and "Row of train.csv" not in html
    assert f"{55 / 120:.1%}" + " of the cells are missing" in html
    table = html.split("The most uncertain")[1].split("</table>")[0]
    rows = re.findall(r'<th scope="row">(\d+)</th>.*?data-value.*?</td>(.*?)</tr>', table)
    assert len(rows) == 12
    read = pd.read_csv(new)
    for number, cells in rows:
        shown = re.findall(r'class="label">([^<]*)</span>', cells)
        assert f"{read['x'][int(number) - 1]:.4g}" in shown
    assert run("report", train, "--folds", 2, *common) == 0
    assert "Row of train.csv, from 1" in page.read_text("utf-8")
    capsys.readouterr()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["--probability", "p", "--trees", 5],
            "probability nothing is trained, and --trees",
        ),
        (["--probability", "p", "--methods", "platt"], "--methods has no meaning for probabilit"),
        (["--probability", "p", "--folds", 3], "--folds has no meaning for probabilities, which"),
        (["--model", "m.skops", "--folds", 3], "with --model nothing is trained, and --folds has"),
        (["--model", "m.skops", "--methods", "platt"], "is trained, and --methods has no meaning"),
        (["--estimator", "logistic", "--trees", 5], "--trees has no meaning for --estimator logis"),
        (["--test", "{table}", "--folds", 3], "with --test there are no folds, and --folds has no"),
    ],
)
def test_options_are_refused_where_nothing_heeds_them(tmp_path, capsys, options, said):
    table = tmp_path / "t.csv"
    table.write_text("p,y\n" + "0.2,no\n0.8,yes\n" * 20)
    options = [str(option).format(table=table) for option in options]
    assert run("report", table, "-t", "y", "-o", tmp_path / "p.html", *options) == 2
    assert said in capsys.readouterr().err


def test_costs_of_a_table_have_as_many_decimals_and_no_exponents(tmp_path):
    table = tmp_path / "t.csv"
    rng = np.random.default_rng(0)
    y = np.where(rng.random(300) < 0.3, "yes", "no")
    x = rng.normal(size=300) + (y == "yes")
    pd.DataFrame({"x": x, "y": y}).to_csv(table, index=False)
    page = tmp_path / "p.html"
    options = ("--methods", "platt", "--folds", 2, "--trees", 20)
    for scale, decimals in ((1, 3), (1_000_000, 0)):
        costs = {"yes": {"act": 0, "wait": 5 * scale}, "no": {"act": scale, "wait": 0}}
        given = ("--costs", json.dumps(costs))
        assert run("report", table, "-t", "y", "-o", page, *options, *given) == 0
        section = page.read_text("utf-8").split('id="costs"')[1].split("</section>")[0]
        matrix, found = section.split('id="cost-table"')
        assert f"<td>{5 * scale:,}</td>" in matrix
        cells = re.findall(r'<td data-value="([^"]+)"[^>]*>([^<%]+)</td>', found)
        assert len(cells) == 6
        for value, text in cells:
            assert text == f"{float(value):,.{decimals}f}"


def test_amounts_that_are_read_as_text_do_not_end_the_report():
    """Their codes fit the rows that they are made from, so out-of-bag scores are refused."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"amount": [f"${v:,.2f}" for v in np.exp(rng.normal(10, 1, 400))]})
    X["age"] = rng.integers(20, 80, 400)
    y = np.where(rng.random(400) < 0.3, "yes", "no")
    found = evaluate(X, y, n_folds=2, n_trees=20, methods=["venn-abers"])
    assert any("calibrated on inner folds, since the steps" in note for note in found.notes)
    plain = X.assign(amount=X["amount"].str.replace("[$,]", "", regex=True).astype(float))
    found = evaluate(plain, y, n_folds=2, n_trees=20, methods=["venn-abers"])
    assert not any("inner folds" in note for note in found.notes)
    assert found.settings["calibrate_on"] == "oob"


def test_given_models_are_shown_together():
    y, p = with_bounds()[0], np.random.default_rng(5).random(len(with_bounds()[0]))
    found = report(y, {"old": p, "new": p**2, "third": np.sqrt(p)})
    assert set(answers.shown_first(found)) == {"old", "new", "third"}
    text = render(found)
    assert all(f"“{name}” ({colour})" in text for name, colour in zip(
        answers.shown_first(found), ("blue", "orange", "green"), strict=True))  # fmt: skip
    best, second, _ = (f"“{name}”" for name in answers.shown_first(found))
    assert f"that of {second}" in answers.recommendation(found)
    assert best in found.advice().sentence or found.advice().action != "use"


def test_pictures_of_ranking_and_decisions_are_what_was_computed(monkeypatch):
    from matplotlib.figure import Figure

    y, (p, bounds) = with_bounds()
    found = report(y, {"a": (p, bounds)}, positive="b")
    painted = {}

    def draw(name, size, paint, alt):
        painted[name] = ax = Figure(layout="constrained").subplots()
        paint(ax)

    monkeypatch.setattr("vennforest.report.figures.draw", draw)
    figures.ranking(found)
    curves = ranking_curves(y, p[:, 1], pos_label="b")
    for kind, x, height in (
        ("roc", curves.false_positive_rate, curves.true_positive_rate),
        ("precision-recall", curves.recall, curves.precision),
        ("gain", curves.depth, curves.gain),
    ):
        line = painted[f"ranking-{kind}"].lines[1]
        np.testing.assert_array_equal(line.get_xdata(), x)
        np.testing.assert_array_equal(line.get_ydata(), height)
    figures.net_benefit(found)
    line = painted["net-benefit"].lines[2]
    wanted = decision_curve(y, p[:, 1], line.get_xdata(), pos_label="b")
    np.testing.assert_array_equal(line.get_ydata(), wanted.net_benefit)
    assert not painted["net-benefit"].collections  # given probabilities have no intervals


def test_evidence_is_drawn():
    from matplotlib.figure import Figure

    n = figures.MOST_POINTS * 3
    evidence = np.exp(np.cumsum(np.random.default_rng(3).normal(size=n)) / 10)
    for few, times in ((n, None), (500, np.arange("2024-01", 500, dtype="datetime64[D]"))):
        ax = Figure().subplots()
        figures.paint_evidence(ax, {"a": evidence[:few]}, 20.0, 100, times)
        line = ax.lines[0]
        assert len(line.get_xdata()) == min(few, figures.MOST_POINTS)
        assert max(line.get_ydata()) == pytest.approx(np.log10(evidence[:few].max()))
    assert np.array_equal(line.get_ydata(), np.log10(evidence[:500]))


def test_what_is_advised_keeps_groups_and_estimator(tmp_path, capsys):
    """Without its groups the report, and the model, would be of other folds."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 120)
    frame = pd.DataFrame({"y": y, "person": np.arange(120) // 2 + 1000, "x": rng.normal(size=120)})
    frame.assign(leak=3 * y + rng.random(120)).to_csv(tmp_path / "t.csv", index=False)
    given = ("report", tmp_path / "t.csv", "-t", "y", "--groups", "person", "--folds", 2)
    given += ("--methods", "platt", "-o", tmp_path / "p.html", "--estimator", "logistic")
    assert run(*given) == 0
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.endswith("--drop leak --groups person --estimator logistic")
    frame["x"] += 2 * y
    found = evaluate(frame[["x"]], y, n_folds=2, n_trees=12, estimator="random-forest")
    off = dataclasses.replace(
        found.measures[found.verdict.method],
        calibration_error=0.2,
        pvalue=0.0,
        overconfidence=-0.1,
        impossible=0,
    )
    found.suspects.clear()
    found.measures[found.verdict.method] = off
    found.settings["files"] = {"data": "t.csv", "target": "y"}
    assert "--estimator random-forest --trees" in found.advice().command


def test_notes_of_folds_come_in_the_order_of_the_warnings():
    class Loud(LogisticRegression):
        def fit(self, X, y):
            for name in "cabfed":
                warnings.warn(f"the setting {name} is old", UserWarning, stacklevel=2)
            return super().fit(X, y)

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    found = evaluate(X, (X[:, 0] > 0).astype(int), estimator=Loud(), n_folds=2, methods=["platt"])
    settings = [note.split()[5] for note in found.notes if "is old" in note]
    assert settings == list("cabfed")
