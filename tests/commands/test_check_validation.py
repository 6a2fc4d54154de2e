"""The options ``--grades`` and ``--segments`` of the command ``check``."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ks_2samp

from support.commands import refused, run
from vennforest.metrics import auc_interval
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
    sections = json.loads(out)["sections"]
    assert set(sections) == {"updates", "promises", "grades", "segments"}
    area, p = auc_interval(table["default"], table["pd"]), table["pd"].to_numpy()
    ks = ks_2samp(p[table["default"] == 1], p[table["default"] == 0]).statistic
    gini = f"Gini is {200 * area.value - 100:.1f}% (95% interval {200 * area.low - 100:.1f}% to"
    page = (tmp_path / "c.html").read_text("utf-8")
    assert gini in page and f"and KS {100 * ks:.1f}%, by probability" in page
    section = sections["grades"]
    frame = grades(table["default"], table["pd"], table["grade"])
    psi = population_stability(table["grade"], table["grade"][:200]).psi
    for row, (name, expected) in zip(section["frame"], frame.iterrows(), strict=True):
        assert row["Grade"] == name and row["share"] == pytest.approx(expected["n"] / 600)
        for key, value in expected.items():
            assert row[key] == pytest.approx(value, abs=1e-12)
    assert "“1” are too low in 1, 2 and 3 (" in err
    assert "grades: too low in 1, 2 and 3" in err  # the headline
    assert section["numbers"]["stability"]["index"] == pytest.approx(psi)
    assert f"index is {psi:.4f}" in page
    assert "the shares of the grades differ as by chance (p = 0." in page
    assert '<a href="#grades">Grades</a>' in page and 'alt="Observed rates' in page
    assert all(f'<section id="{anchor}">' in page for anchor in sections)


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
    assert not [s for s in evaluation["sections"]["segments"]["frame"] if "final" in s["Segment"]]
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
    assert ">Final 4</th>" in page and ">Prudent bound</th>" in page
    assert "by the final grade Gini is" in page
    bound = grades(table["default"], table["pd"], table["grade"]).loc["1", "prudent"]
    assert f", bound {bound:.1%}; 2: " in paper and "by the final grade" not in paper
    assert "must be given with --grades" in refused(capsys, *command, "--final-grades", "final")


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
    note = "Labels are missing more often among recent rows, 32.5% of the last fifth of 'day'"
    assert (f"{note} against 0.0% before" in capsys.readouterr().err) == is_recent


def test_segments_are_searched(command, table, tmp_path, capsys):
    assert run(*command, "--segments", "auto", "--groups", "customer", "--grades", "grade") == 2
    assert "--grades must be used without --groups" in capsys.readouterr().err
    assert run(*command, "--segments", "auto", "--groups", "customer") == 0
    out, err = capsys.readouterr()
    rows = json.loads(out)["sections"]["segments"]["frame"]
    frame = segments(
        table[["country", "grade", "kind"]], table["default"], table["pd"], groups=table["customer"]
    )
    assert rows[0]["Segment"] == frame.index[0] and rows[0]["pvalue"] == frame["pvalue"].iloc[0]
    assert (
        "The worst is “" in err
        and "country = Peru" in err
        and "dependence observed within groups" in (tmp_path / "c.html").read_text("utf-8")
    )
    assert run(*command, "--segments", "kind", "--segments", "country") == 0
    out, err = capsys.readouterr()
    assert "grade" not in str(json.loads(out)["sections"])


@pytest.mark.parametrize(("options", "message"), [
    (["--reference", "{early}"], "--reference must be given with --grades"),
    (["--grades", "grad"], "there is no column 'grad': did you mean 'grade'"),
    (["--grades", "customer"], "grade must have 2 to 100 different values, got 300"),
    (["--grades", "kind", "-t", "kind"], "must name the scores, a column for each of 3"),
    (["--segments", "city"], "there is no column 'city'"),
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
    assert "--grades must be used with two classes, got 3" in message
    assert run(*command, "-t", "is_c", "--probability", "pd", "--json") == 0
    sentences = (tmp_path / "c.html").read_text("utf-8")
    assert "Without an event: 1." in sentences and "expected rate of 0 or 1 (1)" in sentences


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
    assert any("lost before the horizon" in note for note in page["notes"])
    assert "followed long enough" in run_and_read(capsys, *followed, "-t", "y")
    assert "--horizon must be used with --time" in refused(
        capsys, *followed, "-t", "y", "--horizon", 730
    )
    swapped = ("--horizon", 730, "--time", "out", "--until", "in")
    assert "column 'in' must contain times that are not before those in 'out'" in refused(
        capsys, *followed, "-t", "y", *swapped
    )
    assert "--time and --until must be dates or numbers both" in refused(
        capsys, *followed, "-t", "y", "--horizon", 730, "--time", "in", "--until", "p"
    )


def run_and_read(capsys, *command):
    run(*command)
    return "".join(capsys.readouterr())


def test_sites_and_weights_of_check(followed, capsys):
    sites = ("-t", "z", "--positive", "True", "--validation", "site", "--fail-on", "sites")
    assert run(*followed, *sites) == 1
    out, err = capsys.readouterr()
    page = json.loads(out)
    assert page["sections"]["sites"]["rejected"]["observed over expected"] == ["B"]
    assert "sites: observed over expected in B" in page["verdict"]["sentence"]
    assert "Failed: sites: observed over expected in B" in err
    assert [row["Site"] for row in page["sections"]["sites"]["frame"]][-1] == "another site"
    command = (*followed, "-t", "z", "--positive", "True", "--weight", "w")
    assert run(*command) == 0
    frame = pd.read_csv(followed[1])
    weighted = json.loads(capsys.readouterr().out)["methods"]["p"]
    assert weighted["expected"] == pytest.approx(np.average(frame["p"], weights=frame["w"]))
    assert "must be used without weights" in refused(capsys, *command, "--grades", "site")


def test_one_class_is_enough_where_the_other_one_is_named(tmp_path, capsys):
    frame = pd.DataFrame(
        {"p": np.repeat([0.002, 0.3], 200), "y": "no", "grade": [1] * 200 + [2] * 200}
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    command = ["check", tmp_path / "t.csv", "--probability", "p", "-t", "y", "--grades", "grade"]
    command += ["-o", tmp_path / "c.html", "--json"]
    assert "name the other one with --positive" in refused(capsys, *command)
    promise = (*command, "--positive", "yes", "--sensitivity", ".8")
    assert "promises must be of rows of two classes, got 1" in refused(capsys, *promise)
    assert run(*command, "--positive", "yes", "--fail-on", "grades") == 1
    out, err = capsys.readouterr()
    page = json.loads(out)
    assert page["positive"] == "yes" and page["verdict"]["action"] == "check"
    assert "grades: too high in 2" in err and "60.4 expected" in page["verdict"]["sentence"]
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
