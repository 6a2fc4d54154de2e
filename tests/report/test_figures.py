"""Pictures of an evaluation: on the page, in files, and as numbers."""

import re

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from support.commands import run
from support.report_data import calibrated, with_bounds
from vennforest import metrics
from vennforest.commands.options import FIGURE_FILES
from vennforest.report import check
from vennforest.report.figures import ENDINGS, pictures


@pytest.fixture(scope="module")
def evaluation():
    y, p = with_bounds()
    return check(y, p)


@pytest.fixture(scope="module")
def written(evaluation, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures") / "new"
    assert evaluation.to_figures(folder, width=85) == ["calibration", "decision-curve", "intervals"]
    return folder


def test_files_contain_what_is_drawn(evaluation, written):
    assert {path.name for path in written.iterdir()} == set(FIGURE_FILES)
    starts = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}
    for name in ("calibration", "decision-curve", "intervals"):
        for ending, start in starts.items():
            assert (written / f"{name}.{ending}").read_bytes().startswith(start)
        svg = (written / f"{name}.svg").read_text("utf-8")
        assert float(re.search(r'width="([\d.]+)pt"', svg)[1]) == pytest.approx(85 / 25.4 * 72)
    predictions = evaluation.predictions
    options = predictions.for_metric(predictions.estimates["Predictions"])
    table = pd.read_csv(written / "calibration.csv")
    curve = metrics.reliability_curve(**options)
    parts = dict(iter(table.groupby("part")))
    np.testing.assert_allclose(parts["dots"]["low95"], curve.bin_low)
    np.testing.assert_allclose(parts["line"]["observed"], curve.smooth_share)
    happened = parts["rows that happened"]["rows"].sum()
    assert happened == (np.asarray(options["y"]) == options["pos_label"]).sum()
    table = pd.read_csv(written / "decision-curve.csv")
    of = {method: part.reset_index() for method, part in table.groupby("method")}
    at = of["Predictions"]["threshold"]
    expected = metrics.decision_curve(thresholds=at, versus=np.zeros(len(options["y"])), **options)
    np.testing.assert_allclose(of["Predictions"]["net_benefit"], expected.net_benefit)
    np.testing.assert_allclose(of["flag every row"]["net_benefit"], expected.everyone)
    for end in ("low", "high"):
        interval = getattr(expected, f"difference_{end}")
        np.testing.assert_allclose(of["Predictions"][end], interval)
    table = pd.read_csv(written / "intervals.csv")
    assert (table["lower"] <= table["probability"]).all() and set(table["observed"]) == {0, 1}


def test_the_same_numbers_give_the_same_files(evaluation, written, tmp_path):
    evaluation.to_figures(tmp_path, width=85)
    for file in FIGURE_FILES:
        assert (written / file).read_bytes() == (tmp_path / file).read_bytes()


def test_the_ends_of_the_axes_are_those_that_are_given(evaluation):
    for name, picture in [
        *pictures(evaluation.findings, evaluation.predictions, (0.1, 0.4)).items()
    ][:2]:
        ax = Figure(layout="constrained").subplots()
        picture.paint(ax)
        assert ax.get_xlim() == (0.1, 0.4) and ax.get_xscale() == "linear"
        assert (ax.get_ylim() == (0.1, 0.4)) == (name == "calibration")


def test_more_classes_have_no_decision_curve(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 200)
    y = np.array([rng.choice(3, p=row) for row in p])
    assert check(y, p).to_figures(tmp_path) == ["calibration"]


def test_the_names_of_the_files_are_those_of_the_option(evaluation):
    names = pictures(evaluation.findings, evaluation.predictions)
    assert [f"{n}.{ending}" for n in names for ending in ENDINGS] == [*FIGURE_FILES]


@pytest.fixture
def command(tmp_path):
    y, p, _ = calibrated(200, 3)
    path = tmp_path / "t.csv"
    pd.DataFrame({"p": p, "y": y}).to_csv(path, index=False)
    return ["check", path, "-t", "y", "--probability", "p", "-o", tmp_path / "page.html"]


def test_figures_of_a_command(command, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("vennforest.report.figures.draw", lambda *_: "")  # no page is looked at
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "calibration.svg").touch()  # an old one
    assert run(*command, "--figures", tmp_path / "figures") == 0
    assert str(tmp_path / "figures") in capsys.readouterr().err
    sizes = [path.stat().st_size for path in (tmp_path / "figures").iterdir()]
    assert len(sizes) == 8 and min(sizes) > 0


@pytest.mark.parametrize(("folder", "message"), [
    ("t.csv", "must not be written to the predictions itself"),
    ("none/figures", "there is no folder"),
    ("file", "is a file: name a folder"),
    ("s3://bucket/figures", "is an address: name a folder on this machine"),
])  # fmt: skip
def test_refused_folders(command, tmp_path, capsys, folder, message):
    (tmp_path / "file").touch()
    folder = folder if ":" in folder else tmp_path / folder
    assert run(*command, "--figures", folder) == 2
    assert message in capsys.readouterr().err


def test_figures_do_not_overwrite_the_table_or_the_page(command, tmp_path, capsys):
    table = tmp_path / "calibration.csv"
    command[1].rename(table)
    page, same = tmp_path / "calibration.svg", "must not be written to the"
    for words, message in (
        ([command[0], table, *command[2:]], f"the figures {same} predictions"),
        ([*command[:-1], page], f"the page {same} figures"),
    ):
        assert run(*words, "--figures", tmp_path) == 2
        assert message in capsys.readouterr().err
        table = table.rename(command[1])
