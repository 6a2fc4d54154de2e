"""The command ``check``: columns, models and calibrators, grades, segments, sites, promises."""

import errno
import hashlib
import json
import os
import re
import shlex
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ks_2samp

from commands.calibrating import calibrate, calibrator_in, draw, draw_probabilities, read_csv
from report.reading import Page, has_in_turn, named_in, numbers_in
from support.commands import refused, run
from support.report_data import calibrated, table_of
from vennforest import PlattScaling
from vennforest.commands import check
from vennforest.commands.options import Check
from vennforest.decisions import threshold_for
from vennforest.export import from_json, to_json
from vennforest.metrics import auc_interval
from vennforest.tables.target import split_target
from vennforest.validation import grades, population_stability, segments


@pytest.fixture
def table():
    rng = np.random.default_rng(7)
    frame = pd.DataFrame({"country": rng.choice(["Peru", "Chile"], 600)})
    frame["grade"] = rng.integers(1, 5, 600)
    frame["pd"] = 0.08 * frame["grade"]
    frame["customer"] = np.arange(600) // 2
    frame["kind"] = rng.choice(list("abc"), 600)
    shifted = np.where(frame["country"] == "Peru", 0.25, 0)
    frame["default"] = (rng.random(600) < frame["pd"] + shifted) * 1
    return frame


@pytest.fixture
def command(table, tmp_path):
    table.to_csv(tmp_path / "p.csv", index=False)
    table[:200].to_csv(tmp_path / "early.csv", index=False)
    probability = ["--probability", "pd", "-o", tmp_path / "c.html"]
    return ["check", tmp_path / "p.csv", "-t", "default", *probability, "--json"]


def test_grades_are_tested_and_compared_with_earlier_ones(
    command, table, tmp_path, capsys, pictures
):
    early = tmp_path / "early.csv"
    options = ("--grades", "grade", "--reference", early, "--segments", "kind")
    assert run(*command, *options, "--sensitivity", "0.8") == 0
    out, err = capsys.readouterr()
    evaluation = json.loads(out)
    sections, verdict = evaluation["sections"], evaluation["verdict"]
    assert set(sections) == {"updates", "promises", "grades", "segments"}
    area, p = auc_interval(table["default"], table["pd"]), table["pd"].to_numpy()
    ks = ks_2samp(p[table["default"] == 1], p[table["default"] == 0]).statistic
    page, section = (tmp_path / "c.html").read_text("utf-8"), sections["grades"]
    separation = section["numbers"]["separation"]["by probability"]
    ends = [2 * end - 1 for end in (area.value, area.low, area.high)]
    assert [separation[f"gini{end}"] for end in ("", "_low", "_high")] == pytest.approx(ends)
    assert separation["ks"] == pytest.approx(ks)
    shown = [100 * ends[0], 95, 100 * ends[1], 100 * ends[2], 100 * ks]
    assert has_in_turn(re.sub("<.*?>", " ", page), shown, 0.05)
    frame = grades(table["default"], table["pd"], table["grade"])
    psi = population_stability(table["grade"], table["grade"][:200]).psi
    for row, (name, expected) in zip(section["frame"], frame.iterrows(), strict=True):
        assert row["Grade"] == name and row["share"] == pytest.approx(expected["n"] / 600)
        for key, value in expected.items():
            assert row[key] == pytest.approx(value, abs=1e-12)
    assert section["rejected"] == {"too low": ["1", "2", "3"], "too high": []}
    assert has_in_turn(err, [1, 1, 2, 3])  # the page of grade 1 and others, beside the verdict
    assert verdict["failures"]["grades"] == "grades: too low in 1, 2 and 3"
    assert verdict["failures"]["grades"] in verdict["sentence"] and verdict["sentence"] in err
    stability = section["numbers"]["stability"]
    assert stability["index"] == pytest.approx(psi) and stability["pvalue"] > 0.05
    assert has_in_turn(page, [psi, stability["pvalue"], stability["limit"]], 0.00005)
    assert "the shares of the grades differ as by chance" in page
    read = Page(page)
    assert {"#grades"} <= read.links and set(sections) <= set(read.ids)
    alternatives = [attributes["alt"] for tag, attributes in read.tags if tag == "img"]
    assert any(text.startswith("Observed rates") for text in alternatives)


def test_final_grades_are_compared_with_those_of_the_model(command, table, tmp_path, capsys):
    final = table["grade"].where(table.index % 10 > 0, 4).astype(object)
    final[1] = None
    table.assign(final=final).to_csv(tmp_path / "p.csv", index=False)
    text = ("--text", tmp_path / "c.md", "--segments", "auto")
    assert run(*command, "--grades", "grade", "--final-grades", "final", *text) == 0
    evaluation = json.loads(capsys.readouterr().out)
    section, frame = evaluation["sections"]["overrides"], {}
    for row in section["frame"]:
        frame[row.pop("Grade")] = row
    assert list(frame) == ["1", "2", "3", "4", "missing"]
    segments_found = [row["Segment"] for row in evaluation["sections"]["segments"]["frame"]]
    assert {"final"}.isdisjoint(" ".join(segments_found).split())
    for model in range(1, 5):
        row, of_model = frame[str(model)], table["grade"] == model
        counts = {str(g): int((of_model & (final == g)).sum()) for g in range(1, 5)}
        counts["missing"] = int(of_model[1])
        assert {name: row[f"Final {name}"] for name in frame} == counts
        assert row["n"] == of_model.sum() and row["lower"] == 0
        assert row["final_n"] == (final == model).sum()
        assert row["observed"] == pytest.approx(table["default"][of_model].mean())
        assert row["final_observed"] == pytest.approx(table["default"][final == model].mean())
        n_higher = (of_model & (final != model) & final.notna()).sum()
        assert row["higher"] == pytest.approx(n_higher / of_model.sum())
    assert frame["missing"]["n"] == 0 and frame["missing"]["observed"] is None
    moved = (final > table["grade"]) & final.notna()
    higher = section["numbers"]["higher"]
    assert higher["n"] == moved.sum()
    assert higher["observed"] == pytest.approx(table["default"][moved].mean())
    assert higher["observed_low"] < higher["observed"] < higher["observed_high"]
    assert section["numbers"]["lower"]["observed_low"] is None
    page, paper = (tmp_path / "c.html").read_text("utf-8"), (tmp_path / "c.md").read_text("utf-8")
    sentence = f"{moved.mean():.1%} were moved to a higher grade than the model's and 0.0% to a"
    assert sentence in page.replace("&#39;", "'") and sentence in paper
    assert {"Final 4", "Prudent bound"} <= set(Page(page).text_of["th"])
    assert [*section["numbers"]["separation"]] == ["by the model's grade", "by the final grade"]
    bound = grades(table["default"], table["pd"], table["grade"]).loc["1", "prudent"]
    assert round(100 * bound, 1) in numbers_in(paper) and "by the final grade" not in paper


@pytest.mark.parametrize("is_recent", [True, False])
def test_a_note_says_if_recent_rows_lack_labels_more_often(
    command, table, tmp_path, capsys, is_recent
):
    day = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(600), "D")
    missing = np.arange(600) > 560 if is_recent else np.arange(600) % 15 == 0
    table.assign(day=day, default=table["default"].where(~missing)).to_csv(
        tmp_path / "p.csv", index=False
    )
    assert run(*command, "--grades", "grade", "--time", "day") == 0
    noted = [numbers_in(note) for note in json.loads(capsys.readouterr().out)["notes"]]
    assert ([32.5, 0.0] in noted) == is_recent  # of the last fifth, and before


def test_segments_are_searched(command, table, tmp_path, capsys):
    assert run(*command, "--segments", "auto", "--groups", "customer") == 0
    out, err = capsys.readouterr()
    rows = json.loads(out)["sections"]["segments"]["frame"]
    frame = segments(
        table[["country", "grade", "kind"]], table["default"], table["pd"], groups=table["customer"]
    )
    assert rows[0]["Segment"] == frame.index[0] and rows[0]["pvalue"] == frame["pvalue"].iloc[0]
    assert rows[0]["Segment"] in err
    assert "dependence observed within groups" in (tmp_path / "c.html").read_text("utf-8")
    assert run(*command, "--segments", "kind", "--segments", "country") == 0
    out, err = capsys.readouterr()
    sections = json.loads(out)["sections"]
    assert {"grades", "overrides", "history"}.isdisjoint(sections)
    found = " ".join(row["Segment"] for row in sections["segments"]["frame"]).split()
    assert {"kind", "country"} <= set(found) and {"grade"}.isdisjoint(found)


@pytest.mark.parametrize(("options", "message"), [
    (["--reference", "{early}"], "--reference must be given with --grades"),
    (["--grades", "grad"], "there is no column 'grad': did you mean 'grade'"),
    (["--grades", "customer"], "grade must have 2 to 100 different values, got 300"),
    (["--grades", "kind", "-t", "kind"], "must name the scores, a column for each of 3"),
    (["--segments", "city"], "there is no column 'city'"),
    (["--final-grades", "kind"], "--final-grades must be given with --grades"),
    (["--grades", "grade", "--groups", "customer"], "--grades must be used without groups"),
    (["--grades", "kind", "--weight", "grade"], "must be used without weights"),
    (["--fail-on", "drift"], "--fail-on must be any of misc"),
    (["--fail-on", "grades"], "--fail-on grades must be used with --grades"),
    (["--sensitivity", "90"], "--sensitivity must lie between"),
    (["--segments", "customer", "--tolerance", "0"], "below 100 percentage points, got 0"),
])  # fmt: skip
def test_what_cannot_be_tested(command, tmp_path, capsys, options, message):
    options = [option.format(early=tmp_path / "early.csv") for option in options]
    if "-t" in options:
        i = command.index("-t")
        command = [*command[:i], *command[i + 2 :]]
    assert message in refused(capsys, *command, *options)


def test_grades_without_an_event_and_more_classes(tmp_path, capsys):
    frame = pd.DataFrame({"p(a)": [0.5, 0.3, 0.2] * 20, "p(b)": [0.3, 0.4, 0.3] * 20})
    frame["p(c)"] = 1 - frame["p(a)"] - frame["p(b)"]
    frame["y"], frame["grade"] = list("abc") * 20, [1, 2] * 30
    frame["pd"], frame["is_c"] = [0.0, 0.4] * 30, [0, 0, 0, 1] * 15
    frame.to_csv(tmp_path / "t.csv", index=False)
    command = ["check", tmp_path / "t.csv", "-o", tmp_path / "c.html", "--grades", "grade"]
    columns = [word for name in "abc" for word in ("--probability", f"p({name})")]
    message = refused(capsys, *command, "-t", "y", *columns)
    assert "grades must be used with two classes, got 3" in message
    assert run(*command, "-t", "is_c", "--probability", "pd", "--json") == 0
    page = (tmp_path / "c.html").read_text("utf-8")
    for sentence in ("Without an event: 1.", "expected rate of 0 or 1 (1)"):
        assert sentence in page


@pytest.fixture
def followed(tmp_path):
    """Rows of which some are lost before two years, without a label; sites, of which one is off."""
    rng = np.random.default_rng(3)
    n, horizon = 4000, 730
    risk = rng.uniform(0.5, 2, n)
    event, lost = rng.exponential(365 / (0.15 * risk)), rng.uniform(0, 2 * horizon, n)
    entry = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 300, n), "D")
    until = entry + pd.to_timedelta(np.minimum(event, lost).astype(int), "D")
    frame = pd.DataFrame({"p": 1 - np.exp(-0.15 * risk * horizon / 365), "in": entry, "out": until})
    frame["y"] = np.where(event <= lost, 1.0, np.nan)
    frame.loc[lost >= horizon, "y"] = frame["y"].fillna(0)
    frame["site"], frame["w"] = rng.choice([*"ABCD"], n), rng.integers(1, 4, n)
    frame["z"] = rng.random(n) < np.where(frame["site"] == "B", 0.5 * frame["p"], frame["p"])
    frame.to_csv(tmp_path / "f.csv", index=False)
    return ["check", tmp_path / "f.csv", "--probability", "p", "-o", tmp_path / "f.html", "--json"]


def test_a_horizon_makes_right_probabilities_right(followed, tmp_path, capsys):
    until = ("--horizon", 730, "--time", "in", "--until", "out")
    assert run(*followed, "-t", "y", *until, "--fail-on", "oe") == 0
    page = json.loads(capsys.readouterr().out)
    n_lost = int(pd.read_csv(followed[1])["y"].isna().sum())
    assert page["rows"] == 4000 - n_lost
    assert any(n_lost in numbers_in(note) for note in page["notes"])
    run(*followed, "-t", "y")
    assert "followed long enough" in "".join(capsys.readouterr())
    for options, message in (
        ([], "--horizon must be used with --time"),
        (["--time", "out", "--until", "in"], "'in' must contain times that are not before those"),
        (["--time", "in", "--until", "p"], "--time and --until must be dates or numbers both"),
    ):
        assert message in refused(capsys, *followed, "-t", "y", "--horizon", 730, *options)


def test_sites_and_weights_of_check(followed, capsys):
    sites = ("-t", "z", "--positive", "True", "--validation", "site", "--fail-on", "sites")
    assert run(*followed, *sites) == 1
    out, err = capsys.readouterr()
    page = json.loads(out)
    assert page["sections"]["sites"]["rejected"]["observed over expected"] == ["B"]
    failure = page["verdict"]["failures"]["sites"]
    assert (
        failure == "sites: observed over expected in B" and failure in page["verdict"]["sentence"]
    )
    assert err.endswith(f"Failed: {failure}.\n")
    assert [row["Site"] for row in page["sections"]["sites"]["frame"]][-1] == "another site"
    command = (*followed, "-t", "z", "--positive", "True", "--weight", "w")
    assert run(*command) == 0
    frame = pd.read_csv(followed[1])
    weighted = json.loads(capsys.readouterr().out)["methods"]["p"]
    assert weighted["expected"] == pytest.approx(np.average(frame["p"], weights=frame["w"]))


def test_one_class_is_enough_where_the_other_one_is_named(tmp_path, capsys):
    frame = pd.DataFrame(
        {"p": np.repeat([0.002, 0.3], 200), "y": "no", "grade": [1] * 200 + [2] * 200}
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    command = ["check", tmp_path / "t.csv", "--probability", "p", "-t", "y", "--grades", "grade"]
    command += ["-o", tmp_path / "c.html", "--json"]
    for options, message in (
        ([], "name the other one with --positive"),
        (
            ["--positive", "yes", "--sensitivity", ".8"],
            "sensitivity must be promised for rows of two classes",
        ),
    ):
        assert message in refused(capsys, *command, *options)
    assert run(*command, "--positive", "yes", "--fail-on", "grades") == 1
    out, err = capsys.readouterr()
    page = json.loads(out)
    assert page["positive"] == "yes" and page["verdict"]["action"] == "check"
    assert page["sections"]["grades"]["rejected"] == {"too low": [], "too high": ["2"]}
    assert page["verdict"]["failures"]["grades"] in err
    assert 60.4 in numbers_in(page["verdict"]["sentence"])  # expected, by the mean probability
    assert [row["events"] for row in page["sections"]["grades"]["frame"]] == [0, 0]
    low, high = (page["methods"]["p"][f"observed_expected_{end}"] for end in ("low", "high"))
    assert low == 0 and 0 < high < 0.1


def test_grades_over_time_have_a_long_run_average(command, table, tmp_path, capsys):
    years = np.array(["2021-06-30", "2022-06-30", "2023-06-30"])[np.arange(600) % 3]
    table.assign(day=years).to_csv(tmp_path / "p.csv", index=False)
    assert run(*command, "--grades", "grade", "--time", "day") == 0
    rows = json.loads(capsys.readouterr().out)["sections"]["history"]["frame"]
    for row in rows:
        of_grade = table[table["grade"].astype(str) == row["Grade"]]
        rates = of_grade.groupby(years[of_grade.index])["default"].mean()
        periods = [key for key in row if key[:2] == "20" and not key.endswith("_n")]
        assert [row[period] for period in periods] == pytest.approx(rates.tolist())
        assert row["long_run"] == pytest.approx(rates.mean())


def test_a_number_of_a_model_is_no_class(tmp_path, capsys):
    y, p, rng = calibrated(300, 3, strength=2.0)
    frame = pd.DataFrame({"model_0": p, "model_1": rng.random(300), "y": (y == "yes") * 1})
    frame.to_csv(tmp_path / "t.csv", index=False)
    base = ["check", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "p.html", "--json"]
    assert run(*base, "--probability", "model_0") == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["auc"]["value"] > 0.8 and summary["positive"] == "1"
    assert summary["methods"]["model_0"]["expected"] == pytest.approx(p.mean())
    assert run(*base, "--probability", "model_0", "--probability", "model_1") == 0
    methods = json.loads(capsys.readouterr().out)["methods"]
    assert list(methods) == ["model_0", "model_1", "baseline"]


@pytest.fixture
def predictions(tmp_path):
    y, p, rng = calibrated(150, 18, strength=2.0)
    frame = pd.DataFrame({
        "p(no)": 1 - p, "p(yes)": p, "lower(yes)": p * 0.9, "upper(yes)": p * 0.9 + 0.1,
        "lower(no)": 0.9 - p * 0.9, "upper(no)": 1 - p * 0.9,
        "score": 100 * p, "points": 500 + 300 * p, "word": "w",
        "site": rng.choice(["x", "y"], 150), "y": y,
    })  # fmt: skip
    frame.loc[3, "p(yes)"] = np.nan
    frame.to_csv(tmp_path / "t.csv", index=False)
    return ["check", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "page.html", "--json"]


def test_columns_of_probabilities_are_judged_with_their_bounds(predictions, capsys):
    assert run(*predictions, "--probability", "p(yes)", "--by", "site") == 0
    out, err = capsys.readouterr()
    summary = json.loads(out)
    assert summary["rows"] == 149 and {row["part"] for row in summary["subgroups"]} == {"x", "y"}
    assert [1] in [numbers_in(note) for note in summary["notes"]]  # without a probability
    taken_for = "'p(yes)' is taken for the probability of 'yes'"
    assert any(note.startswith(taken_for) for note in summary["notes"])
    mean = pd.read_csv(predictions[1])["p(yes)"].mean()
    assert summary["positive"] == "yes"
    assert summary["methods"]["p(yes)"]["expected"] == pytest.approx(mean)
    assert summary["verdict"]["action"] == "collect"
    assert summary["verdict"]["sentence"] in err  # also where nobody watches
    assert summary["methods"]["p(yes)"]["width"] == pytest.approx(0.1)
    assert run(*predictions, "--probability", "p(yes)", "--probability", "p(no)") == 0
    assert list(json.loads(capsys.readouterr().out)["methods"]) == ["Predictions", "baseline"]


@pytest.mark.parametrize(("options", "message"), [
    (["--probability", "word"], "must contain numbers"),
    (["--probability", "sc"], "there is no column 'sc'"),
    (["--probability", "score"], "divide percentages by 100"),
    (["--probability", "points"], "vennforest calibrate"),
    (["--probability", "p(yes)", "{table}"], "not both"),
    ([], "a table with --probability COLUMN, or a model and a table"),
    (["--probability", "p(yes)", "--groups", "no one"], "there is no column 'no one'"),
    (["--probability", "p(yes)", "--folds", "3"], "--folds"),
])  # fmt: skip
def test_what_cannot_be_checked(predictions, capsys, options, message):
    options = [str(option).format(table=predictions[1]) for option in options]
    assert run(*predictions, *options) == 2
    assert message in capsys.readouterr().err


def test_a_model_is_checked_on_a_table(tmp_path, capsys):
    for i, seed in enumerate((19, 20)):
        X, y = table_of(120, seed)
        X["id"] = np.arange(120) + 1000 * i
        X["word"] = np.where(X["b"] > 0, "left", "right")
        X.assign(y=y).to_csv(tmp_path / f"{i}.csv", index=False)
    train, test, model = tmp_path / "0.csv", tmp_path / "1.csv", tmp_path / "m.skops"
    assert run("fit", train, "-t", "y", "-o", model, "--trees", 20, "--jobs", 1) == 0
    options = ("-t", "y", "-o", tmp_path / "c.html", "--json")
    assert run("predict", model, test, "--keep", "-o", tmp_path / "p.csv") == 0
    capsys.readouterr()
    assert run("check", model, test, *options) == 0
    of_model = json.loads(capsys.readouterr().out)["methods"]["venn-abers"]
    assert run("check", tmp_path / "p.csv", "--probability", "p(yes)", *options) == 0
    of_column = json.loads(capsys.readouterr().out)["methods"]["p(yes)"]
    for measure in ("brier", "log_loss", "auc", "width"):
        assert of_model[measure] == pytest.approx(of_column[measure], abs=1e-9)
    missing = tmp_path / "none.skops"
    assert refused(capsys, "check", missing, test, *options) == (
        f"{missing}: {os.strerror(errno.ENOENT)}"
    )
    assert run("check", model, train, *options) == 0
    out, err = capsys.readouterr()
    evaluation = json.loads(out)
    assert evaluation["origin"]["trained_on_rows"] and evaluation["verdict"]["action"] == "check"
    assert evaluation["verdict"]["sentence"] in err


def test_a_check_that_fails_a_build(tmp_path, capsys):
    rng = np.random.default_rng(3)
    p = rng.random(1000)
    frame = pd.DataFrame({"right": p, "off": p**3, "y": rng.random(1000) < p})
    frame.to_csv(tmp_path / "p.csv", index=False)
    command = ("check", tmp_path / "p.csv", "-t", "y", "-o", tmp_path / "c.html", "--probability")
    on = ("--fail-on", "miscalibrated")
    assert run(*command, "right", *on) == 0
    assert run(*command, "off", *on, "--tolerance", "40") == 0
    capsys.readouterr()
    assert run(*command, "off", *on, "--json") == 1
    out, err = capsys.readouterr()
    failure = json.loads(out)["verdict"]["failures"]["miscalibrated"]
    assert failure and err.endswith(f"Failed: {failure}.\n")
    assert run(*command, "off", "--fail-on", "oe,miscalibrated") == 1
    assert run(*command, "right", "--fail-on", "oe,miscalibrated") == 0


def test_the_advised_update_is_that_of_the_page_with_the_groups(tmp_path, capsys):
    rng = np.random.default_rng(4)
    z = rng.normal(size=4000) - 2
    frame = pd.DataFrame({"p": 1 / (1 + np.exp(-z)), "who": rng.integers(0, 2000, 4000)})
    frame["y"] = (rng.random(4000) < 1 / (1 + np.exp(-z - 0.5))).astype(int)
    frame.to_csv(tmp_path / "p.csv", index=False)
    command = ("check", tmp_path / "p.csv", "-t", "y", "--probability", "p", "--json")
    assert run(*command, "--groups", "who", "-o", tmp_path / "c.html") == 0
    summary = json.loads(capsys.readouterr().out)
    advised = f"vennforest calibrate {tmp_path / 'p.csv'} -t y -s p --update intercept --groups who"
    assert summary["advised"] == advised
    assert summary["sections"]["updates"]["numbers"]["choice"] == "intercept"
    digest = hashlib.sha256((tmp_path / "p.csv").read_bytes()).hexdigest()
    assert summary["inputs"][0]["sha256"] == digest and summary["rows"] == 4000
    assert run(*advised.split()[1:], "-o", tmp_path / "c.json") == 0


def test_thresholds_with_a_promise_are_on_the_page(tmp_path, capsys):
    rng = np.random.default_rng(4)
    p = rng.random(900).round(2)
    frame = pd.DataFrame({"p": p, "y": rng.random(900) < p, "site": rng.integers(0, 300, 900)})
    frame.to_csv(tmp_path / "p.csv", index=False)
    command = ("check", tmp_path / "p.csv", "-t", "y", "-o", tmp_path / "c.html", "--json")
    command += ("--probability", "p", "--positive", "True")
    targets = {"sensitivity": 0.9, "specificity": 0.8, "precision": 0.7}
    words = [word for name, share in targets.items() for word in (f"--{name}", share)]
    for options, groups in (((), None), (("--groups", "site"), frame["site"])):
        assert run(*command, *words, *options) == 0
        table = json.loads(capsys.readouterr().out)["sections"]["promises"]["frame"]
        for row, (key, share) in zip(table, targets.items(), strict=True):
            promise = {"recall" if key == "sensitivity" else key: share}
            expected = threshold_for(p, frame["y"], **promise, groups=groups)
            assert row["threshold"] == expected.threshold
            assert row["Promise"] == f"{key} of {100 * share:.0f}%"
            found = row["flagged"], row[key]
            assert found == pytest.approx((expected.flagged, expected.observed))
            assert row[f"{key}_low"] < row[key] < row[f"{key}_high"]
            if key != "precision":
                ends = {"delta": 0.025}, {"delta": 0.975}
                ends = [threshold_for(p, frame["y"], **promise, groups=groups, **e) for e in ends]
                assert [row["threshold_low"], row["threshold_high"]] == sorted(
                    end.threshold for end in ends
                )
    page = (tmp_path / "c.html").read_text("utf-8")
    assert all(row["Promise"] in page for row in table)
    assert run(*command, "--precision", ".99") == 0
    section = json.loads(capsys.readouterr().out)["sections"]["promises"]
    assert section["frame"][0]["threshold"] is None and len(section["numbers"]["reasons"]) == 1
    assert "Thresholds that keep the promises: none." in (tmp_path / "c.html").read_text("utf-8")
    p = rng.dirichlet([1, 1, 1], 90)
    frame = pd.DataFrame(p, columns=["p(a)", "p(b)", "p(c)"]).assign(y=[*"abc"] * 30)
    frame.to_csv(tmp_path / "p.csv", index=False)
    names = [word for name in frame.columns[:3] for word in ("--probability", name)]
    command = ("check", tmp_path / "p.csv", "-t", "y", *names, "--precision", ".9")
    assert numbers_in(refused(capsys, *command)) == [3]  # classes


def test_what_check_advises_reads_the_table_and_the_model_as_check_did(monkeypatch):
    frame = pd.DataFrame({"p": [0.2, 0.8], "y": ["no", "yes"]})
    table = split_target(frame, "y", screened=False)
    evaluation = SimpleNamespace(verdict=SimpleNamespace(method="p"))
    monkeypatch.setattr(check, "check", lambda *arguments, **options: evaluation)
    form = {"decimal": ",", "delimiter": "|", "encoding": "cp1250", "sheet": "s", "no_header": True}
    words = ["--decimal", ",", "--delimiter", "|", "--encoding", "cp1250", "--sheet", "s"]
    words += ["--no-header"]
    options = Check(predictions=Path("t.csv"), target="y", probability=["p"], **form)
    commands = check._check_columns(options, table, frame).commands
    assert commands == [["calibrate", "t.csv", "-t", "y", "-s", "p", *words]]
    model = SimpleNamespace(classes_=np.array(["no", "yes"]), n_features_in_=1)
    more = {"data": Path("t.csv"), "prior": ["yes=.1"], "trusted": ["a.B"]}
    options = Check(predictions=Path("m.skops"), target="y", **more, **form)
    outcome = check._judge_model(options, model, frame[["y"]], table, frame)
    predict = ["predict", "m.skops", "t.csv", "--keep", "-o", "scored.csv", "--trust", "a.B"]
    assert outcome.commands[0] == [*predict, "--prior", "yes=.1", *words]
    assert outcome.commands[1] == ["calibrate", "scored.csv", "-t", "y", "-s", "p(yes)"]


def test_a_calibrator_is_updated_as_the_tests_choose_or_fitted_anew(tmp_path, monkeypatch):
    scores, y = np.arange(60.0), np.arange(60) % 3 == 0
    frame = pd.DataFrame({"s": scores, "y": np.where(y, "yes", "no")})
    (tmp_path / "c.json").write_text(to_json(PlattScaling().fit(scores, frame["y"])))
    options = Check(predictions=tmp_path / "c.json", data=Path("t.csv"), target="y", scores=["s"])
    options = replace(options, decimal=",", groups="who")
    table, labels = split_target(frame, "y", screened=False), frame[["y"]]
    outcome = check._judge_model(options, None, labels, table, pd.DataFrame({"who": scores}))
    form = ["--decimal", ","]
    for choice, commands in (
        ("keep", [["calibrate", "t.csv", "-t", "y", "-s", "s", *form]]),
        ("slope", [
            ["apply", str(tmp_path / "c.json"), "t.csv", "-o", "scored.csv", "-s", "s", *form],
            ["calibrate", "scored.csv", "-t", "y", "-s", "p(yes)", "--update", "slope",
             "--groups", "who"],
        ]),
    ):  # fmt: skip
        evaluation = SimpleNamespace(findings=SimpleNamespace(choice=choice))
        advised = check._next_commands(options, evaluation, outcome)
        assert [words for _, words in advised] == commands


def pasted(text, command):
    """Run the line of an output that holds a command, as a shell would read it."""
    line = next(line for line in text.splitlines() if f"vennforest {command} " in line)
    return run(*shlex.split(line[line.index("vennforest ") :])[1:])


@pytest.mark.parametrize("columns", [["bad_p"], ["p bad"], ["good"]])
def test_the_command_that_check_prints_works_as_it_stands(tmp_path, monkeypatch, capsys, columns):
    rng = np.random.default_rng(9)
    bad = rng.random(1500)
    y = np.where(rng.random(1500) < bad**2, "bad", "good")
    frame = pd.DataFrame({"bad_p": bad, "p bad": bad, "good": 1 - bad, "y": y})
    (tmp_path / "a table").mkdir()
    frame.to_csv(tmp_path / "a table" / "off.csv", index=False)
    monkeypatch.chdir(tmp_path)
    named = [part for name in columns for part in ("--probability", name)]
    positive = ["--positive", "bad"] if columns != ["good"] else []
    assert run("check", "a table/off.csv", "-t", "y", *named, *positive) == 0
    said = capsys.readouterr().err
    assert pasted(said, "calibrate") == 0
    read = from_json((tmp_path / "calibrator.json").read_text(encoding="utf-8"))
    assert run("apply", "calibrator.json", "a table/off.csv", "-o", "out.csv") == 0
    p = read_csv(tmp_path / "out.csv")["p(bad)"]
    assert read.classes_.tolist() == ["bad", "good"] and np.abs(p - bad**2).mean() < 0.05


@pytest.mark.parametrize(("method", "way"), [("venn-abers", "no"), ("platt", "yes")])
def test_check_of_a_calibrator_is_that_of_its_answers(tmp_path, method, way, capsys):
    from vennforest.report import check

    s, y = draw(900)
    s = s if way == "yes" else 1 - s
    frame = pd.DataFrame({"s": s, "y": y})
    frame[:500].to_csv(tmp_path / "scores.csv", index=False)
    frame[500:].rename(columns={"s": "now"}).to_csv(tmp_path / "later.csv", index=False)
    assert run(*calibrate(tmp_path, "--method", method, "--increasing", way)) == 0
    command = ("check", tmp_path / "c.json", tmp_path / "later.csv", "-t", "y", "--json")
    command += ("-o", tmp_path / "r.html")
    assert named_in(refused(capsys, *command)) == {"s", "now"}  # what it takes, and what there is
    assert run(*command, "--score", "now") == 0
    of_file = json.loads(capsys.readouterr().out)["methods"]["model"]
    p = calibrator_in(tmp_path).predict_proba(frame["s"][500:])
    expected = check(frame["y"][500:], p).methods.loc["Predictions"]
    assert of_file["log_loss"] == pytest.approx(expected["log_loss"], rel=1e-12)
    assert of_file["brier"] == pytest.approx(expected["brier"], rel=1e-12)
    assert (of_file["width"] is not None) == (method == "venn-abers")


def test_check_judges_a_column_as_of_its_class_whatever_is_positive(tmp_path, capsys):
    frame, _ = draw_probabilities()
    frame.to_csv(tmp_path / "p.csv", index=False)
    command = ("check", tmp_path / "p.csv", "-t", "y", "-o", tmp_path / "c.html", "--json")
    losses = []
    for more in (["p(yes)"], ["p(yes)", "--positive", "no"], ["p(no)", "--positive", "yes"]):
        assert run(*command, "--probability", *more) == 0
        losses.append(json.loads(capsys.readouterr().out)["methods"][more[0]]["log_loss"])
    np.testing.assert_allclose(losses, losses[0], rtol=1e-9)
