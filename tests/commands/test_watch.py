"""The command watch: a verdict, a page, a monitor that goes on, and what it refuses."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

import vennforest
from report.reading import Page, has_in_turn, named_in, numbers_in
from support.commands import run
from vennforest.export import from_json, to_json
from vennforest.monitoring import Monitor

ARGUMENTS = ("-t", "sold", "--time", "day")
KEPT = ("evidence", "max_evidence", "alarm_row", "rows", "changes")


def table(rng, n, change=0.0):
    shares = [0.2, 0.2, 0.6] if change else [0.4, 0.4, 0.2]
    town = rng.choice(["Ulm", "Rom", "<b>Oslo</b>"], n, p=shares)
    size = rng.normal(size=n)
    line = 1.5 * size + 1.2 * (town == "Ulm") - 1 + change
    label = np.where(rng.logistic(size=n) < line, "yes", "no")
    return pd.DataFrame({"size": size.round(6), "town": town, "sold": label})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("watch")
    rng = np.random.default_rng(0)
    table(rng, 700).to_csv(folder / "train.csv", index=False)
    fit = ("fit", folder / "train.csv", "-t", "sold", "-o", folder / "model.skops")
    assert run(*fit, "--trees", 12, "--jobs", 1) == 0
    later = pd.concat([table(rng, 300), table(rng, 400, 2.0)], ignore_index=True)
    days = pd.date_range("2024-01-01", periods=700, freq="D").strftime("%Y-%m-%d")
    later = later.assign(day=days)
    later.loc[3:6, "sold"] = None
    later.to_csv(folder / "later.csv", index=False)
    later.iloc[::-1].to_csv(folder / "reversed.csv", index=False)
    later[:250].to_csv(folder / "first.csv", index=False)
    later[250:].to_csv(folder / "second.csv", index=False)
    return folder


@pytest.fixture
def watch(folder, tmp_path, capsys):
    def result(model, data, *options):
        capsys.readouterr()
        code = run("watch", model, data, "-o", tmp_path / "w.html", *options)
        return code, *capsys.readouterr()

    return result


def test_change_is_told(folder, watch, tmp_path, pictures):
    code, out, err = watch(folder / "model.skops", folder / "later.csv", *ARGUMENTS)
    assert code == 0 and not err
    assert out.startswith("The data has changed: the chance of this if nothing had changed is less")
    page = (tmp_path / "w.html").read_text("utf-8")
    parts = "of 696 labelled rows", "What to do: ", "Columns that moved then: 'town'."
    assert all(part in out for part in parts)
    headings = re.findall("<h[23].*?>(.*?)</h", page)
    assert {"Columns before and after", "Classes before and after"} <= set(headings)
    read = Page(page)
    assert not any(text.startswith("Oslo") for text in read.text_of["b"])
    assert any("<b>Oslo</b>" in text for text in read.text)
    assert not re.search(r'(src|href)="(?!#|data:)', page)


def test_kept_monitor_goes_on_and_rows_are_put_in_order(folder, watch, tmp_path):
    model, kept, later = folder / "model.skops", tmp_path / "monitor.skops", tmp_path / "2.skops"
    expected = json.loads(watch(model, folder / "later.csv", *ARGUMENTS, "--json")[1])
    _, out, err = watch(model, folder / "reversed.csv", *ARGUMENTS, "--json")
    assert {"day"} == named_in(err)
    assert all(json.loads(out)[name] == expected[name] for name in ("evidence", "column_changes"))
    _, out, _ = watch(model, folder / "first.csv", *ARGUMENTS, "--json", "--keep", kept)
    found = json.loads(out)
    assert (
        not found["alarm"]
        and found["columns"] == found["column_changes"] == []
        and found["unlabelled"] == 4
    )
    assert found["verdict"][0].startswith("No alarm in 246 labelled rows")
    assert "no alarm" in (tmp_path / "w.html").read_text("utf-8")
    code, out, err = watch(kept, folder / "second.csv", *ARGUMENTS, "--json", "--keep", later)
    assert code == 0, err
    for name in KEPT:
        assert json.loads(out)[name] == expected[name]
    assert isinstance(vennforest.load(kept), Monitor)
    for options, message in (
        (ARGUMENTS, "time must not run backwards or be missing"),
        (("-t", "sold", "--alpha", "0.01"), "--alpha must be that with which the monitor began"),
        ((), "--target must be named, since the monitor watches labels"),
    ):
        code, _, err = watch(later, folder / "second.csv", *options)
        assert code == 2 and message in err and "np." not in err


def test_the_column_of_times_has_not_moved(folder, watch, tmp_path):
    """A model may use it as a feature, but that later rows have later times is no news."""
    train, later = pd.read_csv(folder / "train.csv"), folder / "later.csv"
    days = pd.date_range("2022-01-01", periods=len(train), freq="D").strftime("%Y-%m-%d")
    train.assign(day=days).to_csv(tmp_path / "train.csv", index=False)
    fit = ("fit", tmp_path / "train.csv", "-t", "sold", "-o", tmp_path / "m.skops")
    assert run(*fit, "--trees", 12, "--jobs", 1) == 0
    code, out, err = watch(tmp_path / "m.skops", later, *ARGUMENTS, "--json")
    assert code == 0, err
    assert {change["name"] for change in json.loads(out)["column_changes"]} == {"size", "town"}


def test_what_is_refused_is_said_in_one_sentence(folder, watch, tmp_path):
    model, later = folder / "model.skops", folder / "later.csv"
    strange = pd.read_csv(later)
    strange.loc[9, "sold"] = "perhaps"
    strange.loc[5, "day"] = None
    strange.to_csv(tmp_path / "strange.csv", index=False)
    for arguments, message in (
        ((model, folder / "train.csv", "-t", "sold"), "about 100% used for training"),
        ((model, tmp_path / "strange.csv", "-t", "sold"), "'perhaps', a label that the model has"),
        ((model, tmp_path / "strange.csv", *ARGUMENTS), "row 6 has none"),
        ((model, later, "-t", "sold", "--time", "town"), "must be numbers or dates in one format"),
        ((model, later, "-t", "sold", "--alpha", "2"), "alpha must lie between 0 and 1"),
    ):
        code, out, err = watch(*arguments)
        assert code == 2 and not out, arguments
        assert message in err and err.count("\n") == 1, err


def test_without_labels_the_performance_is_estimated_by_month(folder, watch, tmp_path):
    rng = np.random.default_rng(8)
    same = table(rng, 400)
    days = pd.date_range("2024-01-01", periods=400, freq="3h").strftime("%d.%m.%Y")
    path = tmp_path / "unlabelled.csv"
    same.drop(columns="sold").assign(day=days).to_csv(path, index=False)
    code, out, _ = watch(folder / "model.skops", path, "--time", "day", "--json")
    found = json.loads(out)
    assert code == 0 and not found["alarm"]
    truth = same["sold"].to_numpy()
    model = vennforest.load(folder / "model.skops")
    accuracy = (model.predict(same[["size", "town"]]) == truth).mean()
    estimate, lower, upper = found["expected"]["accuracy"]
    # twelve trees: out-of-bag scores are by four, and worse than those of new rows
    assert lower - 0.02 <= accuracy <= upper + 0.02 and lower < estimate < upper
    # eight rows a day: a week has 56
    assert found["period"] == "week" and sum(one["rows"] for one in found["over_time"]) == 400
    assert found["over_time"][1]["rows"] == 56
    assert all(one["accuracy"][0] for one in found["over_time"][:-1])
    page = (tmp_path / "w.html").read_text()
    assert all(part in page for part in ("Expected performance", "2024-01-01"))
    code, out, _ = watch(folder / "model.skops", path)
    assert has_in_turn(out, [estimate, lower, upper], 0.0005)


def test_a_covariate_shift_is_named_and_corrected_for(folder, watch, tmp_path):
    rng = np.random.default_rng(10)
    pool = table(rng, 2000)
    new = pool[(pool["size"] > rng.normal(0.5, 0.5, 2000))][:500]
    path, train = tmp_path / "unlabelled.csv", folder / "train.csv"
    new.drop(columns="sold").to_csv(path, index=False)
    code, out, err = watch(folder / "model.skops", path, "--reference", train)
    assert code == 0, err
    page, text = (tmp_path / "w.html").read_text(), out
    assert all(part in page for part in ("Columns beside train.csv", "same labels as before"))
    _, out, _ = watch(folder / "model.skops", path, "--reference", train, "--json")
    found = json.loads(out)
    moved = [change["name"] for change in found["shifted"] if change["p_value"] <= 0.05]
    assert moved == ["size"] and len(found["shifted"]) == 2 and found["reference"] == "train.csv"
    assert has_in_turn(text, [len(moved), len(found["shifted"])])
    assert has_in_turn(text, found["expected"]["accuracy"], 0.0005)
    assert "corrected for how frequent each kind of row is" in text
    model = vennforest.load(folder / "model.skops")
    accuracy = (model.predict(new[["size", "town"]]) == new["sold"].to_numpy()).mean()
    _, lower, upper = found["expected"]["accuracy"]
    assert lower - 0.02 <= accuracy <= upper + 0.02
    plain = json.loads(watch(folder / "model.skops", path, "--json")[1])["expected"]["accuracy"]
    assert plain != found["expected"]["accuracy"]
    shuffled = tmp_path / "shuffled.csv"
    pd.read_csv(train)[::-1].to_csv(shuffled, index=False)
    _, _, err = watch(folder / "model.skops", path, "--reference", shuffled)
    assert "got its training rows in another order" in err


def scores_of_another_system(rng, n, start, moved=0.0, form="credit"):
    raw = rng.normal(size=n) - moved
    p = 1 / (1 + np.exp(2 * raw + 1))
    written = {
        "credit": (600 + 80 * raw).round().clip(300, 850).astype(int),
        "percent": (100 * p).round(1),
        "p(bad)": p.round(4),
    }
    return pd.DataFrame({
        form: written[form],
        "region": rng.choice(["n", "s"], n),
        "day": pd.date_range(start, periods=n, freq="h").strftime("%Y-%m-%d"),
        "outcome": np.where(rng.random(n) < p, "bad", "good"),
    })  # fmt: skip


@pytest.mark.parametrize(("form", "method"), [("credit", "venn-abers"), ("p(bad)", "platt")])
def test_scores_of_another_system_are_watched(watch, tmp_path, form, method):
    rng = np.random.default_rng(10)
    old, later, calibrator = tmp_path / "old.csv", tmp_path / "later.csv", tmp_path / "c.json"
    scores_of_another_system(rng, 800, "2024-01-01", form=form).to_csv(old, index=False)
    parts = [
        scores_of_another_system(rng, 500, "2024-06-01", form=form),
        scores_of_another_system(rng, 500, "2024-06-21 20:00", 1.0, form=form),
    ]
    frame = pd.concat(parts)
    frame.to_csv(later, index=False)
    options = ("-s", form, "-t", "outcome", "--method", method, "--increasing", "auto")
    assert run("calibrate", old, *options, "-o", calibrator) == 0
    code, out, _ = watch(calibrator, later, "-t", "outcome", "--time", "day", "--json")
    found = json.loads(out)
    assert code == 0 and found["alarm"] and 500 <= found["alarm_row"] < 800
    assert {"scores"} <= set(found["kinds"]) and found["chance"] < 0.05
    assert len(re.findall(r"accuracy 0\.\d+", found["observed"])) == 2  # before and since
    assert any(found["observed"] in paragraph for paragraph in found["verdict"])
    # the same scores under the same name in the command, and without labels
    code, out, _ = watch(calibrator, later, "--score", form, "--time", "day", "--json")
    found = json.loads(out)
    _, lower, upper = found["expected"]["accuracy"]
    scores = frame[form].to_numpy(float)
    scores = 1 - scores if form == "p(bad)" else scores  # that of the first class, by its name
    p = from_json(calibrator.read_text()).predict(scores)
    assert found["alarm"] and lower < upper
    assert lower - 0.02 <= (p == frame["outcome"]).mean() <= upper + 0.02


@pytest.mark.parametrize(
    ("method", "options"), [("venn-abers", ("-t", "outcome", "--time", "day")), ("platt", ())]
)
def test_a_kept_monitor_of_scores_goes_on(watch, tmp_path, capsys, method, options):
    rng = np.random.default_rng(12)
    dates = {"old": "2024-01-01", "first": "2024-06-01", "second": "2024-07-12 16:00"}
    parts = {
        n: scores_of_another_system(rng, 500, d, 0.7 * (n == "second")) for n, d in dates.items()
    }
    parts["both"] = pd.concat([parts["first"], parts["second"]])
    for name, part in parts.items():
        part.to_csv(tmp_path / f"{name}.csv", index=False)
    old, first, second, both = (tmp_path / f"{name}.csv" for name in parts)
    calibrator, kept, later = (tmp_path / n for n in ("c.json", "kept.skops", "later.skops"))
    fit = ("-s", "credit", "-t", "outcome", "--method", method, "--increasing", "no")
    assert run("calibrate", old, *fit, "-o", calibrator) == 0
    expected = json.loads(watch(calibrator, both, *options, "--json")[1])
    assert watch(calibrator, first, *options, "--keep", kept)[0] == 0
    code, out, err = watch(kept, second, *options, "--json", "--keep", later)
    assert code == 0, err
    for name in KEPT:
        assert json.loads(out)[name] == expected[name]
    assert run("show", later, "--json") == 0
    assert json.loads(capsys.readouterr().out)["model"] == "Monitor"
    vennforest.save(vennforest.load(kept), kept)  # without its calibrator
    code, _, err = watch(kept, second, *options)
    assert code == 2 and "contains a monitor of scores: use it in Python" in err


def test_a_calibrator_without_scores_to_compare_with_is_refused(watch, tmp_path):
    rng = np.random.default_rng(11)
    scores = rng.random(200)
    made = vennforest.PlattScaling().fit(scores, rng.random(200) < scores)
    (tmp_path / "c.json").write_text(to_json(made))
    pd.DataFrame({"s": scores}).to_csv(tmp_path / "s.csv", index=False)
    code, _, err = watch(tmp_path / "c.json", tmp_path / "s.csv", "--score", "s")
    assert code == 2 and "keeps no scores" in err


def test_rows_that_wait_are_in_no_statistic_and_the_sums_add_up(folder, watch, tmp_path):
    rows = pd.read_csv(folder / "later.csv")
    late = rows["day"] >= "2025-06-01"
    rows.loc[late & (rows["sold"] == "yes"), "sold"] = None
    rows = pd.concat([rows, rows[:30]]).assign(day=None)
    rows.drop(columns="day").to_csv(tmp_path / "late.csv", index=False)
    _, out, _ = watch(folder / "model.skops", tmp_path / "late.csv", "-t", "sold", "--json")
    found = json.loads(out)
    counts = found["counts"]
    n_read, *parts = counts.values()
    assert n_read == len(rows) == sum(parts) and counts["waiting for labels"] > 100
    assert counts["counted"] == found["rows"]
    n_before, n_since = (int(n) for n in re.findall(r"\((\d+) rows\)", found["observed"]))
    assert n_before + n_since == counts["counted"]
    n_waiting = counts["waiting for labels"]
    assert any(n_waiting in numbers_in(sentence) for sentence in found["verdict"])


def test_equal_scores_are_not_repeated_rows(watch, tmp_path):
    rng = np.random.default_rng(13)
    frame = pd.DataFrame({"s": rng.random(3000).round(2)})
    frame["y"] = np.where(rng.random(3000) < frame["s"], "yes", "no")
    frame[:1000].to_csv(tmp_path / "old.csv", index=False)
    frame[1000:].to_csv(tmp_path / "new.csv", index=False)
    options = ("-s", "s", "-t", "y", "-o", tmp_path / "c.json")
    assert run("calibrate", tmp_path / "old.csv", *options) == 0
    _, out, err = watch(tmp_path / "c.json", tmp_path / "new.csv", "-t", "y", "--json")
    counts = json.loads(out)["counts"]
    assert counts["counted"] == 2000 and counts["seen before"] == 0 and not err


def test_an_alarm_fails_where_it_is_asked_for(folder, watch, tmp_path):
    model, kept = folder / "model.skops", tmp_path / "kept.skops"
    later, fail = folder / "later.csv", ("--fail-on", "alarm")
    assert watch(model, later, *ARGUMENTS, *fail, "--keep", kept)[0] == 1
    assert watch(model, folder / "first.csv", *ARGUMENTS, *fail)[0] == 0
    assert watch(model, later, *ARGUMENTS, "--fail-on", "change")[0] == 2
    # A change that began in an earlier table is not said to begin with this one.
    more = pd.read_csv(later)[400:].assign(day="2027-01-01", size=lambda d: d["size"] + 1e-4)
    more.to_csv(tmp_path / "more.csv", index=False)
    found = json.loads(watch(kept, tmp_path / "more.csv", *ARGUMENTS, "--json")[1])
    assert found["began_earlier"]
    for text in (found["verdict"][1], (tmp_path / "w.html").read_text("utf-8")):
        assert "before this table" in text
    shares = [part["share_before"] for part in found["classes"]]
    assert sum(shares) == pytest.approx(1)


def test_the_same_month_again_and_rows_with_the_same_key_are_not_counted(watch, tmp_path):
    rng = np.random.default_rng(14)
    frame = pd.DataFrame({"key": np.arange(2000), "s": rng.random(2000).round(5)})
    frame["y"] = np.where(rng.random(2000) < frame["s"], "yes", "no")
    months = [tmp_path / f"{name}.csv" for name in ("old", "may", "june")]
    for path, rows in zip(months, (slice(1000), slice(1000, 1600), slice(1400, 2000)), strict=True):
        frame[rows].to_csv(path, index=False)
    options = ("-s", "s", "-t", "y", "-o", tmp_path / "c.json")
    assert run("calibrate", months[0], *options) == 0
    previous, counted = tmp_path / "c.json", []
    for i, path in enumerate([months[1], months[1], months[2]]):
        kept = tmp_path / f"{i}.skops"
        arguments = ("-t", "y", "--id", "key", "--keep", kept, "--json")
        found = json.loads(watch(previous, path, *arguments)[1])
        counted.append((found["counts"]["counted"], found["counts"]["seen before"]))
        previous = kept
    assert counted == [(600, 0), (0, 600), (400, 200)]
    kept = tmp_path / "without.skops"
    watch(tmp_path / "c.json", months[1], "-t", "y", "--keep", kept)
    _, out, err = watch(kept, months[1], "-t", "y", "--json")
    found = json.loads(out)
    assert found["rows"] == 600 and numbers_in(err) == [600]
    assert found["counts"]["counted"] == 0 and found["counts"]["seen before"] == 600


def test_measures_of_every_month_are_kept_and_drawn(watch, tmp_path):
    rng = np.random.default_rng(15)
    frame = pd.DataFrame({"s": rng.random(2400).round(4)})
    frame["y"] = np.where(rng.random(2400) < frame["s"], "yes", "no")
    frame["day"] = pd.date_range("2026-01-01", periods=2400, freq="h").strftime("%Y-%m-%d %H:%M")
    frame[:800].to_csv(tmp_path / "old.csv", index=False)
    options = ("-s", "s", "-t", "y", "-o", tmp_path / "c.json")
    assert run("calibrate", tmp_path / "old.csv", *options) == 0
    previous, lengths = tmp_path / "c.json", []
    for i, rows in enumerate((slice(800, 1600), slice(1600, 2400))):
        frame[rows].to_csv(tmp_path / f"{i}.csv", index=False)
        arguments = ("-t", "y", "--time", "day", "--keep", tmp_path / f"{i}.skops", "--json")
        found = json.loads(watch(previous, tmp_path / f"{i}.csv", *arguments)[1])
        previous = tmp_path / f"{i}.skops"
        lengths.append(len(found["series"]))
    assert lengths[1] > lengths[0] > 0
    assert sum(part["rows"] for part in found["series"]) == 1600
    p = frame["s"][1600:]
    last = found["series"][lengths[0] :]
    total = sum(part["rows"] * part["log_loss"][0] for part in last) / 800
    y = frame["y"][1600:] == "yes"
    assert total == pytest.approx(-np.log(np.where(y, p, 1 - p)).mean(), abs=0.03)
    ends = np.cumsum([part["rows"] for part in last])
    for part, label, score in zip(last, np.split(y, ends), np.split(p, ends), strict=False):
        assert part["auc"][0] == pytest.approx(roc_auc_score(label, score), abs=0.02)
        assert part["auc"][1] < part["auc"][0] < part["auc"][2]
    # n times the index of an unchanged score is about chi-squared with 9 degrees of freedom
    assert all(
        part["stability"] is None if part["rows"] < 50 else part["stability"] < 30 / part["rows"]
        for part in last
    )
    headings = Page((tmp_path / "w.html").read_text("utf-8")).text_of
    assert {"Observed over time"} <= {*headings["h2"], *headings["h3"]}
