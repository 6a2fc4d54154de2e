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
    assert list(sections) == ["updates", "promises", "grades", "segments"]
    area, p = auc_interval(table["default"], table["pd"]), table["pd"].to_numpy()
    ks = ks_2samp(p[table["default"] == 1], p[table["default"] == 0]).statistic
    gini = f"Gini is {200 * area.auc - 100:.1f}% (95% interval {200 * area.low - 100:.1f}% to"
    separation = sections["grades"]["sentences"][2]
    assert gini in separation and f"and KS {100 * ks:.1f}%, by probability" in separation
    section = sections["grades"]
    frame = grades(table["default"], table["pd"], table["grade"])
    psi = population_stability(table["grade"], table["grade"][:200]).psi
    for row, (name, expected) in zip(section["table"], frame.iterrows(), strict=True):
        assert row["Grade"] == name and row["share"] == pytest.approx(expected["n"] / 600)
        for key, value in expected.items():
            assert row[key] == pytest.approx(value, abs=1e-12)
    assert section["sentences"][0] in err and "too low in 1, 2, 3 (" in err
    assert "grades: too low in 1, 2, 3" in err  # the headline
    assert f"index is {psi:.4f}" in section["sentences"][-1]
    assert "the shares of the grades differ as by chance (p = 0." in section["sentences"][-1]
    page = (tmp_path / "c.html").read_text("utf-8")
    assert '<a href="#grades">Grades</a>' in page and 'alt="Observed rates' in page
    assert all(f'<section id="{anchor}">' in page for anchor in sections)


def test_segments_are_searched(command, table, capsys):
    assert run(*command, "--segments", "auto", "--groups", "customer", "--grades", "grade") == 2
    assert "--grades must be used without --groups" in capsys.readouterr().err
    assert run(*command, "--segments", "auto", "--groups", "customer") == 0
    out, err = capsys.readouterr()
    rows = json.loads(out)["sections"]["segments"]["table"]
    frame = segments(
        table[["country", "grade", "kind"]], table["default"], table["pd"], groups=table["customer"]
    )
    assert rows[0]["Segment"] == frame.index[0] and rows[0]["pvalue"] == frame["pvalue"].iloc[0]
    assert (
        "The worst is “" in err
        and "country = Peru" in err
        and "dependence observed within groups" in out
    )
    assert run(*command, "--segments", "kind", "--segments", "country") == 0
    out, err = capsys.readouterr()
    assert "grade" not in str(json.loads(out)["sections"]) and "Labels were drawn" in out


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
    sentences = " ".join(json.loads(capsys.readouterr().out)["sections"]["grades"]["sentences"])
    assert "Without an event: 1." in sentences and "expected rate of 0 or 1 (1)" in sentences
