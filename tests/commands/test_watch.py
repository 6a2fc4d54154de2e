"""The command watch: a verdict, a page, a monitor that goes on, and what it refuses."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import vennforest
from vennforest.cli import main
from vennforest.commands.fit import fit_file
from vennforest.monitoring import Monitor, ProtectedClassifier

ARGUMENTS = ("-t", "sold", "--time", "day")


def table(rng, n, change=0.0):
    shares = [0.2, 0.2, 0.6] if change else [0.4, 0.4, 0.2]
    town = rng.choice(["Ulm", "Rom", "<b>Oslo</b>"], n, p=shares)
    size = rng.normal(size=n)
    line = 1.5 * size + 1.2 * (town == "Ulm") - 1 + change
    label = np.where(rng.logistic(size=n) < line, "yes", "no")
    return pd.DataFrame({"size": size.round(3), "town": town, "sold": label})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("watch")
    rng = np.random.default_rng(0)
    table(rng, 700).to_csv(folder / "train.csv", index=False)
    fit_file(folder / "train.csv", "sold", folder / "model.skops", trees=12, jobs=1)
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
    def run(model, data, *options):
        code = main(["watch", str(model), str(data), "-o", str(tmp_path / "w.html"), *options])
        out, err = capsys.readouterr()
        return code, out, err

    return run


def test_change_is_told(folder, watch, tmp_path):
    code, out, err = watch(
        folder / "model.skops", folder / "later.csv", "-t", "sold", "--time", "day"
    )
    assert code == 0 and not err
    assert out.startswith("The data has changed: the evidence passed 20 at labelled row ")
    assert "of 696 labelled rows" in out
    assert "at most 1 in 20" in out and "Columns that moved then: 'town'." in out
    page = (tmp_path / "w.html").read_text("utf-8")
    assert "Columns before and after" in page and "Classes before and after" in page
    assert "<b>Oslo" not in page and "&lt;b&gt;Oslo" in page
    assert not re.search(r'(src|href)="(?!#)', page)


def test_no_change_is_no_alarm(folder, watch, tmp_path):
    code, out, _ = watch(folder / "model.skops", folder / "first.csv", "-t", "sold", "--json")
    found = json.loads(out)
    assert code == 0 and not found["alarm"] and found["columns"] == [] and found["unlabelled"] == 4
    assert found["verdict"][0].startswith("No alarm in 246 labelled rows")
    assert "no alarm" in (tmp_path / "w.html").read_text("utf-8")


def test_kept_monitor_goes_on(folder, watch, tmp_path):
    kept = tmp_path / "monitor.skops"
    whole = watch(
        folder / "model.skops", folder / "later.csv", "-t", "sold", "--time", "day", "--json"
    )
    options = (*ARGUMENTS, "--json", "--keep", str(kept))
    watch(folder / "model.skops", folder / "first.csv", *options)
    code, out, err = watch(kept, folder / "second.csv", *options)
    assert code == 0, err
    expected, found = json.loads(whole[1]), json.loads(out)
    for name in ("evidence", "max_evidence", "alarm_row", "rows", "changes"):
        assert found[name] == expected[name]
    assert isinstance(vennforest.load(kept), Monitor)
    code, _, err = watch(kept, folder / "second.csv", "-t", "sold", "--time", "day")
    assert code == 2 and "time must not run backwards" in err and "np." not in err
    code, _, err = watch(kept, folder / "second.csv", "-t", "sold", "--alpha", "0.01")
    assert code == 2 and "alpha must be what the monitor began with, 0.05" in err
    code, _, err = watch(kept, folder / "second.csv")
    assert code == 2 and "name their column with --target" in err
    code, _, err = watch(kept, folder / "train.csv", "-t", "sold")
    assert code == 2 and "rows that the model was fitted to" in err
    assert (
        main(["predict", str(kept), str(folder / "first.csv"), "-o", str(tmp_path / "p.csv")]) == 2
    )


def test_rows_are_put_in_order(folder, watch):
    ordered = watch(
        folder / "model.skops", folder / "later.csv", "-t", "sold", "--time", "day", "--json"
    )
    turned = watch(
        folder / "model.skops", folder / "reversed.csv", "-t", "sold", "--time", "day", "--json"
    )
    assert "The rows were put in the order of 'day'." in turned[2]
    expected, found = json.loads(ordered[1]), json.loads(turned[1])
    assert found["evidence"] == expected["evidence"] and found["columns"] == expected["columns"]


def test_objects_alone(folder, watch):
    code, out, _ = watch(folder / "model.skops", folder / "later.csv", "--form", "cusum")
    assert code == 0 and " rows" in out and "labelled" not in out


def test_what_is_refused_is_said_in_one_sentence(folder, watch, tmp_path):
    model, later = folder / "model.skops", folder / "later.csv"
    strange = pd.read_csv(later)
    strange.loc[9, "sold"] = "perhaps"
    strange.loc[5, "day"] = None
    strange.to_csv(tmp_path / "strange.csv", index=False)
    strange.drop(columns="town").to_csv(tmp_path / "narrow.csv", index=False)
    for arguments, message in (
        ((model, folder / "train.csv", "-t", "sold"), "about 100% of it are rows that the model"),
        (
            (model, tmp_path / "strange.csv", "-t", "sold"),
            "'perhaps', a label that the model has never",
        ),
        ((model, tmp_path / "strange.csv", "-t", "sold", "--time", "day"), "row 6 has none"),
        ((model, later, "-t", "sold", "--time", "town"), "must hold numbers, or dates as"),
        ((model, tmp_path / "narrow.csv"), "the table lacks the column 'town'"),
        ((model, later, "-t", "sould"), "did you mean 'sold'?"),
        ((model, later, "-t", "sold", "--alpha", "2"), "alpha must be a number between 0 and 1"),
        ((model, later, "-t", "sold", "--form", "x"), "form must be one of"),
        ((tmp_path / "none.skops", later), "there is no model file"),
        ((model, later, "-t", "sold", "--keep", str(tmp_path / "w.html")), "where the page is"),
    ):
        code, out, err = watch(*arguments)
        assert code == 2 and not out, arguments
        assert message in err and err.count("\n") == 1, err


def test_rows_of_training_look_too_good(folder, watch, tmp_path):
    plain = tmp_path / "plain.skops"
    vennforest.save(vennforest.load(folder / "model.skops"), plain)  # without the sketch of rows
    code, out, _ = watch(plain, folder / "train.csv", "-t", "sold")
    assert code == 0 and "The data has changed" in out and "check that these are new rows" in out


def test_protected_model_predicts_tables(folder, tmp_path):
    model = vennforest.load(folder / "model.skops")
    protected = ProtectedClassifier(model)
    rows = pd.read_csv(folder / "first.csv").dropna()
    protected.update(rows[["size", "town"]], rows["sold"])
    vennforest.save(protected, tmp_path / "protected.skops")
    output = tmp_path / "p.csv"
    kept, data = str(tmp_path / "protected.skops"), str(folder / "first.csv")
    assert main(["predict", kept, data, "-o", str(output)]) == 0
    found = pd.read_csv(output)
    expected = protected.predict_proba(pd.read_csv(folder / "first.csv")[["size", "town"]])
    np.testing.assert_allclose(found[["p(no)", "p(yes)"]].to_numpy(), expected)
    assert main(["watch", kept, data, "-o", str(tmp_path / "w.html")]) == 0
