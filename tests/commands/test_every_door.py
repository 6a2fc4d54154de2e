"""One table through every door: the same probabilities and measures wherever rows come in."""

import datetime as dt
import json
import re
from decimal import Decimal

import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import vennforest
import vennforest.engines.dask
import vennforest.engines.spark
from support.commands import run
from support.systems import local_spark
from vennforest.batch import BatchPredictor
from vennforest.export import from_json

MARKERS = ["", "n.d.", "-999"]
TARGET = "outcome?"
OF_RECOMMENDED = ("ici", "e50", "e90", "emax")
"""Figures that the recommended method alone has."""


def draw_table(rng, n, labels=("-", "+")):
    """Rows of text as in CSV, and the same rows as a program would hold them."""
    zone = dt.timezone(dt.timedelta(hours=int(rng.integers(-5, 6))))
    moments = [
        dt.datetime(2024, 1, 1, tzinfo=zone) + dt.timedelta(minutes=int(m))
        for m in rng.integers(0, 500_000, n)
    ]
    days = [dt.date(2020, 1, 1) + dt.timedelta(days=int(d)) for d in rng.integers(0, 2000, n)]
    big = (rng.integers(0, 1000, n) + 2**53).tolist()
    cents = [Decimal(int(c)).scaleb(-2) for c in rng.integers(100, 999_999, n)]
    size = rng.normal(size=n).round(int(rng.integers(2, 17)))
    zips = [f"{z:05d}" for z in rng.integers(0, 30, n) * 3001 % 100_000]
    bands = rng.choice(["-5 to 0", "=1+1", "@home", "+", 'a,"b"'], n).tolist()
    codes = rng.choice(["1", "02", "7", "x3"], n).tolist()
    member = rng.random(n) < 0.4
    columns = {
        "zip": (zips, zips),
        "band": (bands, bands),
        "member": ([str(b) for b in member.tolist()], member.tolist()),
        "seen": ([m.isoformat() for m in moments], moments),
        "born": ([d.isoformat() for d in days], days),
        "account": ([str(b) for b in big], big),
        "paid": ([str(c) for c in cents], cents),
        "size": ([repr(s) for s in size.tolist()], size.tolist()),
        "code": (codes, codes),
    }
    texts = {name: text for name, (text, _) in columns.items()}
    typed = {name: list(values) for name, (_, values) in columns.items()}
    for name in columns:
        missing = rng.random(n) < 0.08
        texts[name] = [
            str(rng.choice(MARKERS)) if gone else cell
            for gone, cell in zip(missing, texts[name], strict=True)
        ]
        typed[name] = [
            None if gone else cell for gone, cell in zip(missing, typed[name], strict=True)
        ]
    risk = size + 1.2 * member + (np.array(bands) == "-5 to 0") - 0.5 * (np.array(codes) == "02")
    limits = [0.8] if len(labels) == 2 else [0.0, 1.2]
    y = np.array(labels)[np.digitize(risk + rng.normal(size=n), limits)]
    texts[TARGET] = typed[TARGET] = y.tolist()
    return pd.DataFrame(texts), pa.table(typed)


def write_forms(folder, texts, typed):
    """Write the rows in every format; return the files by name."""
    files = {name: folder / f"new.{name}" for name in ("csv", "tsv", "parquet", "arrow", "xlsx")}
    texts.to_csv(files["csv"], index=False)
    texts.to_csv(files["tsv"], index=False, sep="\t")
    pq.write_table(typed, files["parquet"], row_group_size=37)
    pyarrow.feather.write_feather(typed, files["arrow"], compression="uncompressed")
    book = openpyxl.Workbook()
    for row in [list(texts), *texts.to_numpy().tolist()]:
        book.active.append(row)
        for cell in book.active[book.active.max_row]:
            cell.data_type = "s"  # "=1+1" is text here and no formula
    book.save(files["xlsx"])
    files["text.parquet"] = folder / "text.parquet"
    texts.to_parquet(files["text.parquet"], index=False)
    return files


def read_output(path):
    """Return predictions; those in CSV as text."""
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def read_summary(capsys, *arguments):
    capsys.readouterr()
    code = run(*arguments, "--json")
    out, err = capsys.readouterr()
    assert code == 0, err
    return json.loads(out)


DRAWS = ["first", *(pytest.param(n, marks=pytest.mark.slow) for n in range(100))]
"""One draw of every run, of the same formats and the default model, and a hundred more."""


@pytest.fixture(params=DRAWS)
def is_first(request):
    return request.param == "first"


ORDERED_LABELS = [["-", "+"], ["0", "1"], ["False", "True"], ["a (b)", "a=b"], ["9", "10"]]
ORDERED_LABELS += [["low", "mid", "high"], ["2", "1", "0"]]
"""Labels of drawn models."""

OF_MODELS = {
    "--estimator": [
        "mixed-forest", "random-forest", "extra-trees", "hist-gradient-boosting", "logistic",
        "blend",
    ],
    "--method": [
        "none", "platt", "isotonic", "beta", "temperature", "bostrom", "vector", "spline", "venn",
        "venn-abers", "venn-abers",
    ],
    "--calibrate-on": ["auto", "auto", "oob", "holdout", "cv"],
    "--by": [None, None, "member", "band"],
    "--groups": [None, None, None, "zip"],
}  # fmt: skip
"""Options of ``fit`` that are drawn; some go together, others are refused."""


def draw_model(rng, capsys, is_first, *command):
    """Fit a model of drawn options, which ``fit`` does not refuse, with 20 trees."""
    while True:
        drawn = {name: values[rng.integers(len(values))] for name, values in OF_MODELS.items()}
        if is_first:
            drawn = {}
        options = [part for pair in drawn.items() if pair[1] for part in pair]
        if not is_first and rng.random() < 0.3:
            options.append("--one-model")
        print(options)
        if run(*command, *options, "--trees", 20, "--jobs", 1) == 0:
            return
        error = capsys.readouterr().err
        assert re.search("Error: .* must ", error), error
        print(error)


def test_the_same_answers_at_every_door(rng, is_first, tmp_path, capsys):
    labels = ["-", "+"] if is_first else ORDERED_LABELS[rng.integers(len(ORDERED_LABELS))]
    texts, _ = draw_table(rng, 200, labels)
    texts.to_csv(tmp_path / "train.csv", index=False)
    markers = ("--missing", "n.d.", "--missing=-999")
    keep = [f"--types={json.dumps({'zip': 'category', 'account': 'number'})}"]
    command = ("fit", tmp_path / "train.csv", "--target", TARGET, "-o", tmp_path / "m.skops")
    draw_model(rng, capsys, is_first, *command, *markers, *keep)
    texts, typed = draw_table(rng, 90, labels)
    # In the new rows the column of text happens to hold numbers alone.
    texts.loc[texts["code"] == "x3", "code"] = "7"
    codes = [None if c is None else "7" if c == "x3" else c for c in typed["code"].to_pylist()]
    typed = typed.set_column(typed.schema.get_field_index("code"), "code", pa.array(codes))
    model, files = vennforest.load(tmp_path / "m.skops"), write_forms(tmp_path, texts, typed)
    features = texts.drop(columns=TARGET)
    expected = model.predict_proba(features)
    answers = [f"p({label})" for label in model.classes_.tolist()]
    frames = {
        "pandas": typed.to_pandas().drop(columns=TARGET),
        "pandas on Arrow": typed.to_pandas(types_mapper=pd.ArrowDtype).drop(columns=TARGET),
        "polars": pl.from_arrow(typed).drop(TARGET),
        "polars text": pl.from_pandas(features),
    }
    for name, frame in frames.items():
        np.testing.assert_allclose(model.predict_proba(frame), expected, 0, 1e-12, err_msg=name)
    predictor = BatchPredictor(model, typed.schema)
    batches = pa.Table.from_batches(predictor(typed.to_batches(max_chunksize=13)))
    found = batches.to_pandas()[answers].to_numpy()
    np.testing.assert_allclose(found, expected, 0, 1e-12)
    dd = pytest.importorskip("dask.dataframe")
    parts = dd.from_pandas(features, npartitions=4)
    found = vennforest.engines.dask.predict(parts, model).compute()[answers]
    np.testing.assert_allclose(found.to_numpy(), expected, 0, 1e-12)
    pages = ("csv", "parquet" if is_first else rng.choice(list(files)[1:]))
    check_at_every_door(tmp_path, files, pages, expected, texts[TARGET].tolist(), capsys, answers)
    if not is_first:
        found = spark_answers(model, features, answers)
        np.testing.assert_allclose(found, expected, 0, 1e-12)


def spark_answers(model, frame, names, **options):
    """Return columns of the predictions of Spark, in the order of the rows."""
    frame = frame.assign(row_number=np.arange(len(frame)))
    lazy = local_spark().createDataFrame(frame).repartition(3)
    lazy = vennforest.engines.spark.predict(lazy, model, carried=["row_number"], **options)
    return lazy.toPandas().sort_values("row_number")[names].to_numpy()


def check_at_every_door(folder, files, pages, expected, y, capsys, answers):
    by_model, by_file, watched = {}, {}, {}
    page = ["--target", TARGET, "-o", folder / "c.html"]
    columns = [part for name in answers for part in ("--probability", name)]
    if len(answers) == 2:
        page += ["--positive", answers[-1][2:-1]]
        columns = columns[2:]
    for name, path in files.items():
        for ending in ("parquet", "csv"):
            out = folder / f"out.{name}.{ending}"
            command = ("predict", folder / "m.skops", path, "-o", out, "--id", TARGET)
            assert run(*command, "--id", "band") == 0
            frame = read_output(out)
            found = frame[answers].to_numpy(np.float64)
            np.testing.assert_allclose(found, expected, 0, 1e-12, err_msg=name)
            assert frame[TARGET].tolist() == y
            if name not in pages:
                continue
            summary = read_summary(capsys, "check", out, *columns, *page)
            by_file[name, ending] = measures(summary)
        if name not in pages:
            continue
        command = ("check", folder / "m.skops", path, *page)
        by_model[name] = measures(read_summary(capsys, *command))
        command = ("watch", folder / "m.skops", path, "--target", TARGET)
        watched[name] = read_summary(capsys, *command, "-o", folder / "w.html")
    first = by_model["csv"]
    for found in [*by_model.values(), *by_file.values()]:
        assert found.keys() == first.keys()
        np.testing.assert_allclose(figures_of(found), figures_of(first), 1e-9, 1e-12)
    for name, found in watched.items():
        assert figures_of(found) == pytest.approx(figures_of(watched["csv"]), rel=1e-9), name


def measures(summary):
    """The figures of the probabilities in a summary of ``check``."""
    figures = [of for name, of in summary["methods"].items() if name not in ("none", "baseline")][
        -1
    ]
    counts = {"rows": summary["rows"], **summary["classes"]}
    return {
        k: np.nan if v is None else v
        for k, v in (counts | figures).items()
        if k not in ("name", "width", "certain") and not k.startswith(OF_RECOMMENDED)
    }


def figures_of(value):
    """The numbers in a summary of ``watch``, in order."""
    if isinstance(value, dict):
        ignored = ("seconds", "report", "command", "inputs", "data")
        return [x for k, below in value.items() if k not in ignored for x in figures_of(below)]
    if isinstance(value, list):
        return [x for below in value for x in figures_of(below)]
    return [value] if isinstance(value, int | float) else []


LABELS = [["+", "-"], ["0", "1"], ["False", "True"], ["a (b)", "a=b"], ["a", "b", "c"]]
METHODS = ["beta", "spline", "venn-abers", "venn", "platt", "isotonic", "temperature"]
"""Methods; the first two are of probabilities and logits alone."""


def draw_scores(rng, labels, kind, n):
    """Return scores (n, k) of a kind, the last row -inf where that has a meaning, and labels."""
    k = len(labels)
    p = rng.dirichlet(np.ones(k), n)
    y = np.array(labels)[[rng.choice(k, p=row) for row in p]]
    y[:k] = labels
    with np.errstate(divide="ignore"):
        if kind == "probability":
            p = p.round(9)
            p[:, -1] = (1 - p[:, :-1].sum(axis=1)).round(9)
            p[-1] = np.eye(k)[0]
            return p.clip(0, 1), y
        logits = np.log(p) + rng.normal(size=(n, 1))
    if kind == "logit":
        logits[-1, rng.integers(k)] = -np.inf
    return logits, y


def test_scores_are_calibrated_alike_at_every_door(rng, is_first, tmp_path, capsys):
    duckdb, dd = pytest.importorskip("duckdb"), pytest.importorskip("dask.dataframe")
    labels = LABELS[rng.integers(len(LABELS))]
    kind = rng.choice(["probability", "logit", "score"][: 3 if len(labels) == 2 else 2])
    method = rng.choice(METHODS[2:] if kind == "score" else METHODS)
    print(labels, kind, method)
    scores, y = draw_scores(rng, labels, kind, 150)
    names = rng.choice(["p({})", "{}", "score of {}"])
    columns = [names.format(label) for label in labels]
    used = rng.permutation(len(labels))
    if len(labels) == 2 and (kind == "score" or rng.random() < 0.5):
        used = used[:1] if kind == "probability" else np.array([1])
    entries = [f"{labels[j]}={columns[j]}" if "of" in names else columns[j] for j in used]
    frame = pd.DataFrame(dict(zip(columns, scores.T, strict=True))).assign(**{TARGET: y})
    frame.to_csv(tmp_path / "train.csv", index=False)
    options = [part for entry in entries for part in ("-s", entry)]
    document = tmp_path / "c.json"
    fit = ("calibrate", tmp_path / "train.csv", "-t", TARGET, *options, "-o", document)
    on = "logit" if kind == "logit" else "auto"
    assert run(*fit, "--method", method, "--on", on) == 0, capsys.readouterr().err
    calibrator = from_json(document.read_text(encoding="utf-8"))

    new, y = draw_scores(rng, labels, kind, 60)
    texts, typed = draw_table(rng, 60)
    texts, typed = texts.drop(columns=TARGET), typed.drop_columns(TARGET)
    is_missing = rng.random(60) < 0.1
    for j in used:
        cells = [repr(value) for value in new[:, j].tolist()]
        marks = rng.choice(["", "NA", " nan"], 60)
        texts[columns[j]] = np.where(is_missing, marks, cells)
        values = new[:, j].tolist()
        if kind == "probability" and rng.random() < 0.5:
            values = [Decimal(repr(value)).quantize(Decimal("1e-9")) for value in values]
        values = [None if gone else v for gone, v in zip(is_missing, values, strict=True)]
        typed = typed.append_column(columns[j], pa.array(values))
    ordered = [columns[j] for j in sorted(used)]
    given = new[:, used[0]] if len(used) == 1 else new
    if len(used) == 1 and used[0] == 0:
        given = 1 - given
    expected = np.full((60, len(labels)), np.nan)
    expected[~is_missing] = calibrator.predict_proba(given[~is_missing])
    answers = [f"p({label})" for label in calibrator.classes_]

    files = write_forms(tmp_path, texts, typed)
    for name, path in files.items():
        out = tmp_path / f"out.{rng.choice(['parquet', 'csv'])}"
        apply = ("apply", document, path, "-o", out, "--missing-scores", "keep")
        assert run(*apply, *options * int(rng.integers(2)), "--id", "zip", "--id", "paid") == 0
        found = read_output(out)[answers].replace("", "nan").to_numpy(np.float64)
        np.testing.assert_allclose(found, expected, 0, 1e-12, err_msg=name)
    by_label = {calibrator.classes_[j]: columns[j] for j in used}
    whole = typed.filter(pa.array(~is_missing))
    predictor = BatchPredictor(calibrator, typed.schema, columns=by_label)
    found = pa.Table.from_batches(predictor(whole.to_batches(max_chunksize=13))).to_pandas()
    np.testing.assert_allclose(found[answers].to_numpy(), expected[~is_missing], 0, 1e-12)
    frame = whole.to_pandas()[ordered]
    if "of" not in names:
        for table in (frame, pl.from_arrow(whole.select(ordered))):
            found = calibrator.predict_proba(table)
            np.testing.assert_allclose(found, expected[~is_missing], 0, 1e-12)
    parts = dd.from_pandas(typed.to_pandas()[ordered], npartitions=3)
    lazy = vennforest.engines.dask.predict(
        parts, calibrator, columns=by_label, carried=[], missing_scores="keep"
    )
    np.testing.assert_allclose(lazy.compute()[answers].to_numpy(), expected, 0, 1e-12)
    capsys.readouterr()
    assert run("sql", document, "--table", "numbered") == 0
    numbered = typed.append_column("row_number", pa.array(range(60)))  # noqa: F841
    sql = f"SELECT * FROM ({capsys.readouterr().out}) ORDER BY row_number"
    rows = duckdb.sql(sql).df()
    of_query = expected[:, 1:] if len(labels) == 2 else expected
    of_labels = ["p"] if len(labels) == 2 else [f"p_{label}" for label in labels]
    found = rows[of_labels].to_numpy(np.float64, na_value=np.nan)
    np.testing.assert_allclose(found, of_query, 0, 1e-9)
    if not is_first:
        features = typed.to_pandas()[ordered].astype(float)
        settings = {"columns": by_label, "missing_scores": "keep"}
        found = spark_answers(calibrator, features, answers, **settings)
        np.testing.assert_allclose(found.astype(float), expected, 0, 1e-12)
