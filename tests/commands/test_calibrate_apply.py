"""The commands calibrate and apply: scores of any system, in tables of any size."""

import json
import shlex
from functools import partial

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
for extra in ("typer", "rich", "pyarrow"):
    pytest.importorskip(extra)

from vennforest import IsotonicCalibration, TemperatureScaling, VennAbers  # noqa: E402
from vennforest.calibrators import METHODS  # noqa: E402
from vennforest.calibrators.base import has_bounds  # noqa: E402
from vennforest.cli import main  # noqa: E402
from vennforest.export import from_json, to_json  # noqa: E402

# By default pandas 2 reads numbers to within a unit in the last place.
read_csv = partial(pd.read_csv, float_precision="round_trip")


def draw(n=400, seed=51):
    rng = np.random.default_rng(seed)
    scores = rng.random(n).round(3)
    return scores, np.where(rng.random(n) < scores, "yes", "no")


@pytest.fixture
def table(tmp_path):
    scores, y = draw()
    frame = pd.DataFrame({"id": np.arange(len(y)), "s": scores, "y": y})
    frame.to_csv(tmp_path / "scores.csv", index=False)
    return frame, tmp_path


def calibrate(folder, *more, data="scores.csv", code=0):
    command = ["calibrate", str(folder / data), "-t", "y", "-o", str(folder / "c.json")]
    assert main([*command, *([] if "-s" in more else ["-s", "s"]), *more]) == code


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "arrow"])
def test_what_is_written_is_the_fit_and_its_answers(table, suffix):
    frame, folder = table
    data = folder / f"scores.{suffix}"
    if suffix == "parquet":
        frame.to_parquet(data)
    elif suffix == "arrow":
        frame.to_feather(data)
    else:
        frame.to_csv(data, index=False, sep="\t" if suffix == "tsv" else ",")
    calibrate(folder, data=data.name)
    fitted = VennAbers().fit(frame["s"], frame["y"])
    read = from_json((folder / "c.json").read_text(encoding="utf-8"))
    new = np.linspace(0, 1, 99)
    np.testing.assert_allclose(
        read.predict_proba(new), fitted.predict_proba(new), rtol=0, atol=1e-12
    )
    out = folder / ("out.parquet" if suffix == "arrow" else "out.csv")
    command = ["apply", str(folder / "c.json"), str(data), "-o", str(out)]
    assert main(command) == 0
    found = pd.read_parquet(out) if out.suffix == ".parquet" else read_csv(out)
    parts = ("p", "lower", "upper", "low95", "high95")
    answers = [f"{part}({c})" for c in ("no", "yes") for part in parts]
    assert found.columns.tolist() == ["id", "s", "y", "label", *answers]
    assert found["id"].tolist() == frame["id"].tolist()
    bounds = read.predict_multiprobability(frame["s"])
    p = read.predict_proba(frame["s"])
    known = read.predict_confidence(frame["s"])
    for j, c in enumerate(("no", "yes")):
        np.testing.assert_array_equal(found[f"low95({c})"], known.lower[:, j])
        np.testing.assert_array_equal(found[f"high95({c})"], known.upper[:, j])
        np.testing.assert_array_equal(found[f"p({c})"], p[:, j])
        np.testing.assert_array_equal(found[f"lower({c})"], bounds.lower[:, j])
        np.testing.assert_array_equal(found[f"upper({c})"], bounds.upper[:, j])
    assert found["label"].tolist() == read.classes_[p.argmax(axis=1)].tolist()


@pytest.mark.parametrize("method", list(METHODS))
def test_every_method(table, method, capsys):
    frame, folder = table
    calibrate(folder, "--method", method)
    assert (
        main(
            [
                "apply",
                str(folder / "c.json"),
                str(folder / "scores.csv"),
                "-o",
                str(folder / "out.csv"),
            ]
        )
        == 0
    )
    found = read_csv(folder / "out.csv")
    p = found["p(yes)"]
    unknown = capsys.readouterr().err.count("No columns of confidence intervals: a ")
    assert ("low95(yes)" in found) == (method == "venn-abers") == (unknown == 0)
    explicit = ["--columns", "p,confidence"] if unknown else ["--columns", "p"]
    again = [str(folder / name) for name in ("c.json", "scores.csv")]
    wanted = 2 if unknown else 0
    assert main(["apply", *again, "-o", str(folder / "o.csv"), *explicit]) == wanted
    fitted = METHODS[method]().fit(frame["s"], frame["y"])
    np.testing.assert_allclose(p, fitted.predict_proba(frame["s"])[:, 1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("method", ["venn-abers", "isotonic", "temperature", "venn"])
def test_more_than_two_classes(tmp_path, method):
    rng = np.random.default_rng(52)
    p = rng.multinomial(20, [0.4, 0.4, 0.2], 200) / 20
    frame = pd.DataFrame(p, columns=["a", "b", "c"])
    frame["y"] = np.array(["x", "y", "z"])[[rng.choice(3, p=row) for row in p]]
    frame.to_csv(tmp_path / "scores.csv", index=False)
    calibrate(tmp_path, "-s", "a", "-s", "b", "-s", "c", "--method", method)
    out = tmp_path / "out.csv"
    assert (
        main(["apply", str(tmp_path / "c.json"), str(tmp_path / "scores.csv"), "-o", str(out)]) == 0
    )
    found = read_csv(out)
    fitted = METHODS[method]().fit(p, frame["y"])
    expected = fitted.predict_proba(p)
    names = [f"p({label})" for label in "xyz"]
    np.testing.assert_allclose(found[names], expected, rtol=0, atol=1e-12)
    assert ("lower(x)" in found.columns) == has_bounds(METHODS[method])
    if has_bounds(METHODS[method]):
        lower = fitted.predict_multiprobability(p).lower
        np.testing.assert_allclose(found[[f"lower({c})" for c in "xyz"]], lower, atol=1e-12)


def test_weights_labels_and_rows_without_a_label(tmp_path, capsys):
    frame = pd.DataFrame(
        {
            "s": [0.1, 0.2, 0.8, 0.9, 0.5, 0.7],
            "y": ["9", "10", "10", "9", "", "10"],
            "w": [1, 2, 3, 1, 1, 0],
        }
    )
    frame.to_csv(tmp_path / "scores.csv", index=False)
    calibrate(tmp_path, "--weight", "w", "--method", "isotonic", "--json")
    said = capsys.readouterr()
    assert "1 rows have no 'y' and are left out" in said.err
    summary = json.loads(said.out)
    assert summary["classes"] == {"9": 2, "10": 5}  # numbers, so in the order of numbers
    assert summary["positive"] == "10"
    read = from_json((tmp_path / "c.json").read_text(encoding="utf-8"))
    assert read.classes_.tolist() == [9, 10]
    fitted = IsotonicCalibration().fit(
        [0.1, 0.2, 0.8, 0.9], [9, 10, 10, 9], sample_weight=[1, 2, 3, 1]
    )
    np.testing.assert_array_equal(
        read.predict_proba([0.15, 0.85]), fitted.predict_proba([0.15, 0.85])
    )


ERRORS = [
    ("s,y\n0.1,a\n,b\n", [], "column 's' must contain finite scores, got NaN or nothing in row 2"),
    (
        "s,y\n0.1,a\nnan,b\n",
        [],
        "column 's' must contain finite scores, got NaN or nothing in row 2",
    ),
    ("s,y\n0.1,a\n0.2,b\ninf,b\n", [], "must contain finite scores, got inf in row 3"),
    ("s,y\n0.1,a\n0.2,b\nhigh,b\n", [], "must contain numbers, got 'high' in row 3"),
    ("s,y\n0.1,a\n0.2,a\n", [], "must have two classes or more, got 'a' alone"),
    ("s,y\n0.1,\n0.2,\n", [], "the target 'y' is missing in every row"),
    ("s,y\n0.1,a\n1.2,b\n", ["--method", "beta"], "scores must be in [0, 1]"),
    ("s,y\n0.1,a\n0.2,b\n", ["--method", "best"], "--method must be one of"),
    ("s,y\n0.1,a\n0.2,b\n", ["--weight", "u"], "there is no column 'u'"),
    ("s,y,w\n0.1,a,1\n0.2,b,-2\n", ["--weight", "w"], "not negative, got -2 in row 2"),
    ("t,y\n0.1,a\n0.2,b\n", [], "there is no column 's' in"),
    ("s,y\n0.1,a\n0.2,b\n0.3,c\n", [], "--score must name 3 columns for the 3 classes of 'y'"),
]


@pytest.mark.parametrize(("text", "more", "message"), ERRORS)
def test_what_is_wrong_is_said_in_one_sentence(tmp_path, capsys, text, more, message):
    (tmp_path / "scores.csv").write_text(text)
    calibrate(tmp_path, *more, code=2)
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
    assert not (tmp_path / "c.json").exists()


def test_errors_of_apply(table, capsys):
    _, folder = table
    calibrate(folder, "--method", "beta")
    document = (folder / "c.json").read_text(encoding="utf-8")

    def fails(message, text=None, calibrator="c.json", more=()):
        if text is not None:
            (folder / "new.csv").write_text(text)
        capsys.readouterr()
        command = [
            "apply",
            str(folder / calibrator),
            str(folder / "new.csv"),
            "-o",
            str(folder / "out.csv"),
            *more,
        ]
        assert main(command) == 2
        said = capsys.readouterr().err
        assert message in said
        assert said.count("\n") == 1
        assert not (folder / "out.csv").exists()

    fails("scores must be in [0, 1]", "s\n0.1\n0.5\n1.5\n0.2\n")
    fails("must contain finite scores, got NaN or nothing in row 2", "s,t\n0.1,1\n,1\n")
    fails("there is no column 's' in", "t\n0.1\n")
    fails("got 'p(yes)': rename it", "s,p(yes)\n0.1,1\n")
    fails("got 'label': rename it", "s,label\n0.1,1\n")
    fails("there is no column to copy 'i' in", "s,id\n0.1,1\n", more=["--id", "i"])
    fails("--score must name one column, got 2", "s,t\n0.1,1\n", more=["-s", "s", "-s", "t"])
    fails("there is no calibrator", calibrator="none.json")
    (folder / "bad.json").write_text(document.replace('"values": [', '"values": ["x", '))
    fails("bad.json: the calibrator is damaged", calibrator="bad.json")
    (folder / "bad.json").write_text("{}")
    fails("bad.json: the calibrator must be JSON with", calibrator="bad.json")


def test_columns_that_are_carried_along(table):
    frame, folder = table
    calibrate(folder)
    frame.assign(label=frame["y"]).to_csv(folder / "new.csv", index=False)
    command = ["apply", str(folder / "c.json"), str(folder / "new.csv"), "-o"]
    assert main([*command, str(folder / "out.csv"), "--id", "y", "--id", "id"]) == 0
    found = read_csv(folder / "out.csv")
    assert found.columns.tolist()[:3] == ["y", "id", "label"]
    assert found["y"].tolist() == frame["y"].tolist()


def test_decimal_commas_and_two_columns_of_two_classes(tmp_path):
    rows = "".join(f"0,{10 - i};0,{10 + i};{'ja' if i % 3 else 'nein'}\n" for i in range(80))
    (tmp_path / "scores.csv").write_text("a;b;y\n" + rows.replace("0,-", "-0,"))
    calibrate(tmp_path, "-s", "a", "-s", "b", "--method", "temperature")
    read = from_json((tmp_path / "c.json").read_text(encoding="utf-8"))
    assert isinstance(read, TemperatureScaling)
    assert read.classes_.tolist() == ["ja", "nein"]
    assert (
        main(
            [
                "apply",
                str(tmp_path / "c.json"),
                str(tmp_path / "scores.csv"),
                "-o",
                str(tmp_path / "out.csv"),
            ]
        )
        == 0
    )


def pasted(text, command):
    """Run the line of an output that holds a command, as a shell would read it."""
    line = next(line for line in text.splitlines() if f"vennforest {command} " in line)
    return main(shlex.split(line[line.index("vennforest ") :])[1:])


@pytest.mark.parametrize("columns", [["bad_p"], ["p bad"], ["good p"]])
def test_the_command_that_check_prints_works_as_it_stands(tmp_path, monkeypatch, capsys, columns):
    rng = np.random.default_rng(9)
    bad = rng.random(1500)
    y = np.where(rng.random(1500) < bad**2, "bad", "good")
    frame = pd.DataFrame({"bad_p": bad, "p bad": bad, "good p": 1 - bad, "y": y})
    (tmp_path / "a table").mkdir()
    frame.to_csv(tmp_path / "a table" / "off.csv", index=False)
    monkeypatch.chdir(tmp_path)
    named = [part for name in columns for part in ("--probability", name)]
    positive = ["--positive", "bad"] if columns == ["bad_p"] else []
    assert main(["check", "a table/off.csv", "-t", "y", *named, *positive]) == 0
    said = capsys.readouterr().err
    assert pasted(said, "calibrate") == 0
    read = from_json((tmp_path / "calibrator.json").read_text(encoding="utf-8"))
    assert main(["apply", "calibrator.json", "a table/off.csv", "-o", "out.csv"]) == 0
    p = read_csv(tmp_path / "out.csv")["p(bad)"]
    assert read.classes_.tolist() == ["bad", "good"] and np.abs(p - bad**2).mean() < 0.05


@pytest.mark.parametrize("method", list(METHODS))
def test_show_says_what_a_calibrator_is(table, method, capsys):
    frame, folder = table
    calibrate(folder, "--method", method, "--increasing", "yes")
    capsys.readouterr()
    assert main(["show", str(folder / "c.json"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    counts = frame["y"].value_counts()
    assert found["method"] == method and found["bounds"] == has_bounds(METHODS[method])
    assert found["rows"] == len(frame) and found["scores"] == ["s"] and found["target"] == "y"
    assert found["class_counts"] == {"no": counts["no"], "yes": counts["yes"]}
    assert found["increasing"] is True
    assert main(["show", str(folder / "c.json")]) == 0
    shown = capsys.readouterr().out
    assert METHODS[method].title in shown and f"'yes' {counts['yes'] / len(frame):.1%}" in shown


def test_show_tells_direction_grid_and_classes_and_refuses_other_json(tmp_path, capsys):
    s, y = draw()
    frame = pd.DataFrame({"risk": 1 - s, "y": y})
    frame.to_csv(tmp_path / "scores.csv", index=False)
    calibrate(tmp_path, "-s", "risk", "--increasing", "no")
    capsys.readouterr()
    assert main(["show", str(tmp_path / "c.json"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["increasing"] is False
    # of three classes, and without what the command notes beside it
    p = np.random.default_rng(3).dirichlet(np.ones(3), 200)
    three = np.array(["a", "b", "c"])[p.argmax(axis=1)]
    (tmp_path / "three.json").write_text(to_json(VennAbers().fit(p, three)), encoding="utf-8")
    assert main(["show", str(tmp_path / "three.json"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["increasing"] is None and found["rows"] is None and found["scores"] == []
    assert found["class_counts"] == {one: (three == one).sum() for one in "abc"}
    assert main(["show", str(tmp_path / "three.json")]) == 0
    assert "'a'" in capsys.readouterr().out
    (tmp_path / "other.json").write_text('{"format": "other"}')
    assert main(["show", str(tmp_path / "other.json")]) == 2
    assert "calibrator" in capsys.readouterr().err


@pytest.mark.parametrize("way", ["yes", "no"])
@pytest.mark.parametrize("method", ["venn-abers", "platt"])
def test_check_of_a_calibrator_is_that_of_its_answers(tmp_path, method, way, capsys):
    from vennforest.report import check

    s, y = draw(900)
    s = s if way == "yes" else 1 - s
    frame = pd.DataFrame({"s": s, "y": y})
    frame[:500].to_csv(tmp_path / "scores.csv", index=False)
    frame[500:].rename(columns={"s": "now"}).to_csv(tmp_path / "later.csv", index=False)
    calibrate(tmp_path, "--method", method, "--increasing", way)
    capsys.readouterr()
    command = ["check", str(tmp_path / "c.json"), str(tmp_path / "later.csv"), "-t", "y", "--json"]
    command += ["-o", str(tmp_path / "r.html")]
    assert main(command) == 2  # it has no column of that name
    capsys.readouterr()
    assert main([*command, "--score", "now"]) == 0
    of_file = json.loads(capsys.readouterr().out)["methods"]["model"]
    calibrator = from_json((tmp_path / "c.json").read_text(encoding="utf-8"))
    p = calibrator.predict_proba(frame["s"][500:])
    expected = check(frame["y"][500:], p).methods.loc["Predictions"]
    assert of_file["log_loss"] == pytest.approx(expected["log_loss"], rel=1e-12)
    assert of_file["brier"] == pytest.approx(expected["brier"], rel=1e-12)
    assert (of_file["width"] is not None) == (method == "venn-abers")
    unknown = frame[500:].assign(y="maybe").rename(columns={"s": "now"})
    unknown.to_csv(tmp_path / "later.csv", index=False)
    assert main([*command, "--score", "now"]) == 2


def test_apply_for_other_shares_of_the_classes(table, capsys):
    frame, folder = table
    share = float((frame["y"] == "yes").mean())
    for method in ("venn-abers", "isotonic"):  # the shares are in the calibrator, or in its file
        calibrate(folder, "--method", method)
        out = folder / "out.csv"
        command = ["apply", str(folder / "c.json"), str(folder / "scores.csv"), "-o", str(out)]
        assert main(command) == 0
        before = read_csv(out)["p(yes)"]
        assert main([*command, "--prior", "yes=0.1"]) == 0
        own, other = before * 0.1 / share, (1 - before) * 0.9 / (1 - share)
        np.testing.assert_allclose(read_csv(out)["p(yes)"], own / (own + other), atol=1e-12)
        capsys.readouterr()
        for wrong in ("maybe=0.1", "yes", "yes=often", "yes=1.5"):
            assert main([*command, "--prior", wrong]) == 2
            assert "0.1" in (said := capsys.readouterr().err) or "got" in said
    moved = VennAbers().fit(frame["s"], frame["y"]).with_prior({"yes": 0.1})
    (folder / "moved.json").write_text(to_json(moved), encoding="utf-8")
    assert main(["show", str(folder / "moved.json"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["prior"] == {"no": 0.9, "yes": 0.1}
    watched = ["watch", str(folder / "moved.json"), str(folder / "scores.csv"), "-s", "s"]
    assert main([*watched, "-o", str(folder / "watch.html")]) == 2
    assert "with_prior" in capsys.readouterr().err


def exports(folder, n=2000, seed=9):
    """Write tables as other systems export them: scores 300-850, percentages, class columns."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    y = rng.random(n) < 1 / (1 + np.exp(1 - 1.3 * x))
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.sort(rng.integers(0, 330, n)), unit="D")
    points = np.round(575 - 95 * x).clip(300, 850).astype(int)
    z = np.exp(2 * rng.normal(size=(n, 3)))
    p = z / z.sum(axis=1, keepdims=True)
    names = np.array(["cat", "dog", "owl"])
    drawn = names[(rng.random(n)[:, None] > p.cumsum(axis=1)[:, :2]).sum(axis=1)]
    tables = {
        "points": {
            "day": day.strftime("%d/%m/%Y"),
            "points": points,
            "y": np.where(y, "bad", "ok"),
        },
        "classes": {"day": day, **dict(zip(names, p.round(4).T, strict=True)), "y": drawn},
    }
    for name, columns in tables.items():
        pd.DataFrame(columns).to_csv(folder / f"{name}.csv", index=False)


@pytest.mark.parametrize(
    ("name", "scores"),
    [("points", ["points"]), ("classes", ["cat", "dog", "owl"])],
)
def test_exports_of_other_systems(tmp_path, capsys, name, scores):
    exports(tmp_path)
    data, file = str(tmp_path / f"{name}.csv"), str(tmp_path / "c.json")
    named = [part for one in scores for part in ("-s", one)]
    assert main(["calibrate", data, "-t", "y", "-o", file, *named]) == 0
    assert main(["show", file]) == 0
    assert main(["apply", file, data, "-o", str(tmp_path / "out.csv")]) == 0
    out = read_csv(tmp_path / "out.csv")
    p = out[[column for column in out if column.startswith("p(")]].to_numpy()
    assert p.sum(axis=1) == pytest.approx(1)
    exports(tmp_path, seed=10)
    later = pd.read_csv(data)
    later[scores] = later[scores].sample(frac=1, random_state=0).to_numpy()  # say nothing now
    later.to_csv(tmp_path / "later.csv", index=False)
    watch = ["watch", file, str(tmp_path / "later.csv"), "--time", "day", "--json"]
    capsys.readouterr()
    assert main([*watch, "-o", str(tmp_path / "w.html")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["expected"]["accuracy"][0] > 0.6
    assert len(found["over_time"]) > 5
    assert not found["alarm"]  # scores alone are as before
    assert main([*watch, "-o", str(tmp_path / "w.html"), "-t", "y"]) == 0
    assert json.loads(capsys.readouterr().out)["alarm"]
    check = ["check", file, data, "-t", "y", "--by", "day", "--json"]
    assert main([*check, "-o", str(tmp_path / "r.html")]) == 0
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Observed and expected by" in page


def test_scores_are_no_probabilities_to_check(tmp_path, capsys):
    exports(tmp_path)
    command = ["check", str(tmp_path / "points.csv"), "-t", "y", "--probability", "points"]
    assert main([*command, "-o", str(tmp_path / "r.html")]) == 2
    error = capsys.readouterr().err
    assert "must contain probabilities in [0, 1]" in error and "vennforest calibrate" in error
