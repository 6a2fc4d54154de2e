"""A column of probabilities is of one class, whichever door it comes through."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from report.reading import named_in, numbers_in
from support.commands import refused, run
from support.partitions import engine_of
from vennforest import IsotonicCalibration, PlattScaling, ScoreCounts, VennAbers
from vennforest.batch import BatchPredictor
from vennforest.calibrators import make_calibrator
from vennforest.engines._tasks import calibrate_partitions
from vennforest.export import from_json
from vennforest.report import Evaluation

pa = pytest.importorskip("pyarrow")

LABELS = [
    ["no", "yes"], ["+", "-"], ["0", "1"], ["False", "True"], ["a (b)", "c, d"],
    ["No", "no"], ["a=b", "p(a)"], ["a", "b", "c"], ["2", "9", "10"],
]  # fmt: skip


def draw(rng, labels, n=200):
    """Return probabilities (n, k) in the order of the labels, and a frame of rows and labels."""
    p = rng.dirichlet(np.ones(len(labels)), n)
    y = [labels[rng.choice(len(labels), p=row)] for row in p]
    y[: len(labels)] = labels
    return p, pd.DataFrame({"row": np.arange(n), "y": y})


@pytest.mark.parametrize(
    ("labels", "form"),
    [
        # Each label under the name that the library writes, and a few under others.
        pytest.param(labels, form, marks=[] if form == "p({})" or i % 4 == 3 else pytest.mark.slow)
        for i, labels in enumerate(LABELS)
        for form in ("p({})", "{}", "other")
    ],
)
def test_every_door_reads_a_column_as_that_of_its_class(
    rng, tmp_path, capsys, monkeypatch, labels, form
):
    monkeypatch.setattr(Evaluation, "to_html", lambda *_, **__: None)  # it takes longest
    p, frame = draw(rng, labels)
    columns = [f"other{j}" if form == "other" else form.format(c) for j, c in enumerate(labels)]
    frame = frame.assign(**dict(zip(columns, p.T, strict=True)))
    frame.to_csv(tmp_path / "t.csv", index=False)
    codes, scores = frame["y"].map(labels.index).to_numpy(), p[:, 1] if len(labels) == 2 else p
    expected = PlattScaling().fit(scores, codes).predict_proba(scores)
    loss = -np.log(expected[np.arange(len(p)), codes]).mean()
    loss_before = -np.log(p[np.arange(len(p)), codes]).mean()
    classes = [int(c) if c.isdigit() else c for c in labels]
    typed = frame.assign(y=[classes[code] for code in codes])
    table = pa.Table.from_pandas(typed, preserve_index=False)
    named = dict(zip(classes, columns, strict=True))
    every = rng.permutation(classes).tolist()

    def losses(*command):
        assert run("check", *command, "-t", "y", "-o", tmp_path / "p.html", "--json") == 0
        methods = json.loads(capsys.readouterr().out)["methods"]
        return [result["log_loss"] for name, result in methods.items() if name != "baseline"]

    for some in [every, *([c] for c in every if len(labels) == 2)]:
        words = [f"{c}={named[c]}" if form == "other" else named[c] for c in some]
        options = [part for word in words for part in ("-s", word)]
        fit = ("calibrate", tmp_path / "t.csv", "-t", "y", *options, "--method", "platt")
        assert run(*fit, "-o", tmp_path / "c.json") == 0
        out = tmp_path / "o.parquet"
        apply = ("apply", tmp_path / "c.json", tmp_path / "t.csv", "--id", "row", "-o", out)
        calibrator = from_json((tmp_path / "c.json").read_text(encoding="utf-8"))
        assert calibrator.classes_.tolist() == classes
        for again in ([], options):
            assert run(*apply, *again) == 0
            found = pd.read_parquet(out)[[f"p({c})" for c in labels]]
            assert_allclose(found, expected, atol=1e-9)
        capsys.readouterr()
        if form == "p({})" and some == [every[0]]:
            assert_allclose(losses(tmp_path / "c.json", tmp_path / "t.csv", *options), [loss])
            option = [part for word in words for part in ("--probability", word)]
            assert_allclose(losses(tmp_path / "t.csv", *option), [loss_before])
        given = {c: named[c] for c in some} if form == "other" else [named[c] for c in some]
        batches = table.to_batches(max_chunksize=70)
        counts = ScoreCounts.from_batches(batches, score=given, target="y")
        fitted = calibrate_partitions(engine_of([typed[:90], typed[90:]]), given, "y", "platt")
        for model in (PlattScaling().fit_counts(counts), fitted):
            assert_allclose(model.predict_proba(scores), expected, atol=1e-9)
        predictor = BatchPredictor(calibrator, table.schema, columns=given, answers="p")
        found = pa.Table.from_batches(predictor(batches)).to_pandas().iloc[:, 1:]
        assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("entries", [["p(no)"], ["no=risk"], ["risk"], ["p(no)", "p(yes)"]])
def test_a_query_reads_the_columns_that_the_calibrator_was_fitted_to(
    rng, tmp_path, capsys, entries
):
    duckdb = pytest.importorskip("duckdb")
    p, frame = draw(rng, ["no", "yes"])
    frame = frame.assign(**{"p(no)": p[:, 0], "p(yes)": p[:, 1]})
    frame["risk"] = p[:, 0] if "no=risk" in entries else p[:, 1]
    frame.to_csv(tmp_path / "t.csv", index=False)
    options = [part for entry in entries for part in ("-s", entry)]
    fit = ("calibrate", tmp_path / "t.csv", "-t", "y", *options, "-o", tmp_path / "c.json")
    assert run(*fit) == 0
    expected = from_json((tmp_path / "c.json").read_text()).predict_proba(p[:, 1])[:, 1]
    for again in ([], options):
        capsys.readouterr()
        assert run("sql", tmp_path / "c.json", "--table", "frame", *again) == 0
        query = capsys.readouterr().out
        found = duckdb.sql(f"SELECT * FROM ({query}) ORDER BY row").df()["p"]
        assert_allclose(found, expected, atol=1e-9)
    wrong = duckdb.sql('SELECT 1.5e0 AS risk, 1.5e0 AS "p(no)", 1.5e0 AS "p(yes)"').df()  # noqa: F841
    if "risk" not in entries and len(entries) == 1:
        answer = duckdb.sql(query.replace("FROM frame", "FROM wrong")).df()["p"]
        assert answer.isna().all()


def calibrated(rng, folder, entry="p(yes)"):
    p, frame = draw(rng, ["no", "yes"])
    frame = frame.assign(**{"p(no)": p[:, 0], "p(yes)": p[:, 1], "s": p[:, 1]})
    frame.to_csv(folder / "t.csv", index=False)
    assert run("calibrate", folder / "t.csv", "-t", "y", "-s", entry, "-o", folder / "c.json") == 0
    carried = [part for name in ("row", "y", "s") for part in ("--id", name)]
    assert run("apply", folder / "c.json", folder / "t.csv", *carried, "-o", folder / "o.csv") == 0
    return folder / "c.json", folder / "o.csv"


def test_no_door_calibrates_twice_in_silence(rng, tmp_path, capsys):
    calibrator, output = calibrated(rng, tmp_path)
    after = ("-o", tmp_path / "again.csv")
    page = ("-o", tmp_path / "p.html")
    for command in (
        ("apply", calibrator, output, *after),
        ("apply", calibrator, output, "-s", "yes=p(yes)", *after),
        ("apply", calibrator, output, "-s", "lower(yes)", *after),
        ("check", calibrator, output, "-t", "y", *page),
        ("watch", calibrator, output, *page),
    ):
        again = named_in(refused(capsys, *command))
        assert {"label"} < again <= {"label", "p(yes)", "lower(yes)"}
    capsys.readouterr()
    fit = ("calibrate", output, "-t", "y", "-o", tmp_path / "second.json", "-s")
    assert run(*fit, "p(yes)") == 0
    assert {"p(yes)"} <= named_in(capsys.readouterr().err)
    assert run(*fit, "s") == 0
    assert {"p(yes)"}.isdisjoint(named_in(capsys.readouterr().err))
    renamed = pd.read_csv(output).rename(columns={"label": "first_label"})
    renamed.to_csv(output, index=False)
    assert run("apply", calibrator, output, "--id", "row", *after) == 0


def test_raw_scores_beside_the_output_are_calibrated_once(rng, tmp_path):
    calibrator, output = calibrated(rng, tmp_path, "s")
    first = pd.read_csv(output)
    assert run("apply", calibrator, output, "-o", tmp_path / "again.csv") == 0
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "again.csv"), first)


def test_the_probability_of_each_rows_label_is_that_of_no_class(rng, tmp_path, capsys):
    _, output = calibrated(rng, tmp_path)
    pd.read_csv(output).assign(probability=0.7).to_csv(output, index=False)
    check = ("check", output, "-t", "y", "--probability", "probability", "-o", tmp_path / "p.html")
    fit = ("calibrate", output, "-t", "y", "-s", "probability", "-o", tmp_path / "d.json")
    for command, option in ((check, "--probability"), (fit, "--score")):
        assert named_in(refused(capsys, *command)) == {option, "p(yes)", "probability"}


def test_a_name_that_says_no_class_of_the_rows_is_refused(rng, tmp_path, capsys):
    p, frame = draw(rng, ["no", "yes"])
    frame.assign(**{"p(bad)": p[:, 0], "p_no": p[:, 0], "P(No)": p[:, 0]}).to_csv(
        tmp_path / "t.csv", index=False
    )
    fit = ("calibrate", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "c.json", "-s")
    assert named_in(refused(capsys, *fit, "p(bad)")) == {"--score", "p(no)", "no=p(bad)"}
    texts = []
    for entry in ("no=p(bad)", "p_no", "P(No)", "NO=p_no"):
        assert run(*fit, entry) == 0
        texts.append(from_json((tmp_path / "c.json").read_text()).predict_proba([0.3]))
    assert_allclose(texts, texts[:1] * 4)


def test_a_column_of_a_calibrator_keeps_its_class_under_any_order_and_name(rng, tmp_path, capsys):
    p, frame = draw(rng, ["a", "b", "c"])
    frame[["u", "v", "w"]] = p
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.rename(columns={"u": "x"}).to_csv(tmp_path / "other.csv", index=False)
    entries = ["-s", "c=w", "-s", "a=u", "-s", "b=v"]
    assert run("calibrate", tmp_path / "t.csv", "-t", "y", *entries, "-o", tmp_path / "c.json") == 0
    outputs = []
    for data, options in (("t", []), ("t", ["-s", "w", "-s", "u", "-s", "v"]),
                          ("other", ["-s", "v", "-s", "w", "-s", "a=x"])):  # fmt: skip
        out = tmp_path / "o.csv"
        command = ("apply", tmp_path / "c.json", tmp_path / f"{data}.csv", "--id", "row", *options)
        assert run(*command, "-o", out) == 0
        outputs.append(pd.read_csv(out))
        pd.testing.assert_frame_equal(outputs[-1], outputs[0])
    wrong = ("apply", tmp_path / "c.json", tmp_path / "other.csv", "-o", tmp_path / "o.csv")
    unnamed = refused(capsys, *wrong, "-s", "x", "-s", "v", "-s", "w")
    assert named_in(unnamed) == {"--score", "p(a)", "a=x"}


def test_a_class_without_a_row_is_named_by_its_column(rng, tmp_path, capsys):
    p, frame = draw(rng, ["a", "b", "c"])
    frame[["p(c)", "p(a)", "p(b)"]] = p[:, [2, 0, 1]]
    frame[frame["y"] != "b"].to_csv(tmp_path / "t.csv", index=False)
    options = [part for c in "cab" for part in ("--probability", f"p({c})")]
    command = ("check", tmp_path / "t.csv", "-t", "y", *options, "-o", tmp_path / "p.html")
    assert run(*command, "--json") == 0
    methods = json.loads(capsys.readouterr().out)["methods"]
    kept = (frame["y"] != "b").to_numpy()
    codes = frame["y"].map("abc".index).to_numpy()[kept]
    loss = -np.log(p[kept][np.arange(kept.sum()), codes]).mean()
    (found,) = (result for name, result in methods.items() if name != "baseline")
    assert_allclose(found["log_loss"], loss)


@pytest.mark.parametrize("method", ["venn-abers", "temperature", "isotonic"])
def test_two_columns_of_logits_are_read_as_their_difference(rng, tmp_path, capsys, method):
    duckdb = pytest.importorskip("duckdb")
    p, frame = draw(rng, ["no", "yes"])
    shift = rng.normal(size=(len(p), 1))
    logits = np.log(p) + shift
    frame = frame.assign(no=logits[:, 0], yes=logits[:, 1])
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = ["-s", "yes", "-s", "no"]
    fit = ("calibrate", tmp_path / "t.csv", "-t", "y", *words, "--method", method)
    assert run(*fit, "-o", tmp_path / "c.json") == 0
    calibrator = make_calibrator("venn-abers" if method == "venn-abers" else method)
    if method == "venn-abers":
        calibrator.set_params(merge="pooled")
    expected = calibrator.fit(logits, frame["y"]).predict_proba(logits)
    command = ("apply", tmp_path / "c.json", tmp_path / "t.csv", "--id", "row")
    assert run(*command, "-o", tmp_path / "o.parquet") == 0
    found = pd.read_parquet(tmp_path / "o.parquet")[["p(no)", "p(yes)"]]
    assert_allclose(found, expected, atol=1e-9)
    capsys.readouterr()
    assert run("sql", tmp_path / "c.json", "--table", "frame") == 0
    query = capsys.readouterr().out
    found = duckdb.sql(f"SELECT * FROM ({query}) ORDER BY row").df()["p"]
    assert_allclose(found, expected[:, 1], atol=1e-9)
    watch = ("watch", tmp_path / "c.json", tmp_path / "t.csv", "-t", "y")
    assert run(*watch, "-o", tmp_path / "w.html") == 0
    message = refused(capsys, *command, "-s", "yes", "-o", tmp_path / "o.csv")
    assert named_in(message) == {"--score", "no", "yes"}


def test_a_number_may_be_written_otherwise_in_the_name_of_its_column(rng, tmp_path, capsys):
    p, frame = draw(rng, ["0", "1"])
    frame["y"] = "0" + frame["y"]
    forms = ["p(0)", "p(00)", "p(0.0)", "0e5", "00=other", "+0=other"]
    frame = frame.assign(**dict.fromkeys([*forms[:4], "other"], p[:, 0]))
    frame.to_csv(tmp_path / "t.csv", index=False)
    fit = ("calibrate", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "c.json", "-s")
    expected = VennAbers("pooled").fit(p[:, 1], frame["y"].astype(int)).predict_proba([0.3])
    for form in forms:
        assert run(*fit, form) == 0
        calibrator = from_json((tmp_path / "c.json").read_text())
        assert_allclose(calibrator.predict_proba([0.3]), expected, atol=1e-9)


def test_independent_scores_of_each_class_are_calibrated_with_on_score(rng, tmp_path, capsys):
    p, frame = draw(rng, ["a", "b", "c"])
    frame[["a", "b", "c"]] = scores = p**2
    frame.to_csv(tmp_path / "t.csv", index=False)
    options = [part for c in "cab" for part in ("-s", c)]
    fit = ("calibrate", tmp_path / "t.csv", "-t", "y", *options, "--method", "isotonic")
    total = numbers_in(refused(capsys, *fit, "-o", tmp_path / "c.json"))[-1]
    assert np.isclose(total, scores.sum(axis=1), rtol=1e-5).any()
    assert run(*fit, "-o", tmp_path / "c.json", "--on", "score") == 0
    document = (tmp_path / "c.json").read_text(encoding="utf-8")
    assert json.loads(document)["scores"]["kind"] == "score"
    expected = IsotonicCalibration(on="score").fit(scores, frame["y"]).predict_proba(scores)
    assert run("apply", tmp_path / "c.json", tmp_path / "t.csv", "--id", "row",
               "-o", tmp_path / "o.parquet") == 0  # fmt: skip
    found = pd.read_parquet(tmp_path / "o.parquet")[["p(a)", "p(b)", "p(c)"]]
    assert_allclose(found, expected, atol=1e-9)
    choices = {"auto", "probability", "logit", "score"}
    assert named_in(refused(capsys, *fit, "--on", "odds")) == {"--on", "odds", *choices}


@pytest.mark.parametrize("labels", [["no", "yes"], ["a", "b", "c"], ["2", "9", "10"]])
def test_columns_name_the_classes_of_which_there_is_no_row(labels, tmp_path, capsys):
    p = draw(np.random.default_rng(0), labels)[0]
    table = pd.DataFrame(p, columns=[f"p({label})" for label in labels]).assign(y=labels[0])
    table.to_csv(tmp_path / "rows.csv", index=False)
    columns = [word for name in table.columns[:-1] for word in ("--probability", name)]
    command = ("check", tmp_path / "rows.csv", "-t", "y", *columns, "-o", tmp_path / "page.html")
    assert run(*command, "--json") == 0
    classes = json.loads(capsys.readouterr().out)["classes"]
    assert {str(label) for label in classes} == set(labels)
