"""One table through every door: the same probabilities and measures wherever rows come in."""

import datetime as dt
import json
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
from support.commands import run
from vennforest.batch import BatchPredictor

MARKERS = ["", "n.d.", "-999"]
TARGET = "outcome?"
OF_RECOMMENDED = ("ici", "e50", "e90", "emax")
"""Figures that the recommended method alone has."""


def draw_table(rng, n):
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
    y = np.where(risk + rng.normal(size=n) > 0.8, "+", "-")
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


def read_summary(capsys, *arguments):
    capsys.readouterr()
    code = run(*arguments, "--json")
    out, err = capsys.readouterr()
    assert code == 0, err
    return json.loads(out)


@pytest.fixture
def drawn(request, tmp_path, capsys):
    rng = np.random.default_rng(request.param)
    texts, _ = draw_table(rng, 260)
    texts.to_csv(tmp_path / "train.csv", index=False)
    markers = ("--missing", "n.d.", "--missing=-999")
    keep = [f"--types={json.dumps({'zip': 'category', 'account': 'number'})}"]
    command = ("fit", tmp_path / "train.csv", "--target", TARGET, "-o", tmp_path / "m.skops")
    assert run(*command, *markers, *keep, "--trees", 15, "--jobs", 1) == 0
    new_texts, new_typed = draw_table(rng, 90)
    # In the new rows the column of text happens to hold numbers alone.
    is_word = new_texts["code"] == "x3"
    new_texts.loc[is_word, "code"] = "7"
    codes = [None if c is None else "7" if c == "x3" else c for c in new_typed["code"].to_pylist()]
    at = new_typed.schema.get_field_index("code")
    new_typed = new_typed.set_column(at, "code", pa.array(codes))
    return tmp_path, new_texts, new_typed, capsys


DRAWS = [
    0,
    *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 101)),
]


@pytest.mark.parametrize("drawn", DRAWS, indirect=True)
def test_the_same_answers_at_every_door(drawn):
    folder, texts, typed, capsys = drawn
    model, files = vennforest.load(folder / "m.skops"), write_forms(folder, texts, typed)
    features = texts.drop(columns=TARGET)
    expected = model.predict_proba(features)
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
    found = batches.to_pandas()[["p(+)", "p(-)"]].to_numpy()
    np.testing.assert_allclose(found, expected, 0, 1e-12)
    dd = pytest.importorskip("dask.dataframe")
    parts = dd.from_pandas(features, npartitions=4)
    found = vennforest.engines.dask.predict(parts, model).compute()[["p(+)", "p(-)"]]
    np.testing.assert_allclose(found.to_numpy(), expected, 0, 1e-12)
    check_at_every_door(folder, files, expected, texts[TARGET].tolist(), capsys)


def check_at_every_door(folder, files, expected, y, capsys):
    by_model, by_file, watched = {}, {}, {}
    for name, path in files.items():
        for ending in ("parquet", "csv"):
            out = folder / f"out.{name}.{ending}"
            command = ("predict", folder / "m.skops", path, "-o", out, "--id", TARGET)
            assert run(*command, "--id", "band") == 0
            frame = (
                pd.read_parquet(out)
                if ending == "parquet"
                else pd.read_csv(out, float_precision="round_trip", keep_default_na=False)
            )
            found = frame[["p(+)", "p(-)"]].to_numpy()
            np.testing.assert_allclose(found, expected, 0, 1e-12, err_msg=name)
            assert frame[TARGET].tolist() == y
            page = ("--target", TARGET, "-o", folder / "c.html", "--positive", "+")
            summary = read_summary(capsys, "check", out, "--probability", "p(+)", *page)
            by_file[name, ending] = measures(summary)
        command = ("check", folder / "m.skops", path, "--target", TARGET, "--positive", "+")
        by_model[name] = measures(read_summary(capsys, *command, "-o", folder / "c.html"))
        command = ("watch", folder / "m.skops", path, "--target", TARGET)
        watched[name] = read_summary(capsys, *command, "-o", folder / "w.html")
    first = by_model["csv"]
    for found in [*by_model.values(), *by_file.values()]:
        assert found.keys() == first.keys()
        np.testing.assert_allclose(list(found.values()), list(first.values()), 1e-9, 1e-12)
    for name, found in watched.items():
        assert figures_of(found) == pytest.approx(figures_of(watched["csv"]), rel=1e-9), name


def measures(summary):
    """The figures of the probabilities in a summary of ``check``."""
    methods = summary["methods"]
    figures = methods["p(+)"] if "p(+)" in methods else methods["venn-abers"]
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
