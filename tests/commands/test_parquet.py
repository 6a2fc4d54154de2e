"""Scores in Parquet files of any number: the calibrator of all rows at once."""

import contextlib
import errno
import json
import shutil

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
for extra in ("typer", "rich", "pyarrow"):
    pytest.importorskip(extra)

from vennforest import VennAbers  # noqa: E402
from vennforest.calibrators import make_calibrator  # noqa: E402
from vennforest.cli import main  # noqa: E402
from vennforest.commands import calibrate as command  # noqa: E402
from vennforest.commands.options import Calibrate  # noqa: E402
from vennforest.export import from_json  # noqa: E402

LABELS = {
    "text": ["no", "yes"],
    "text of numbers": ["9", "10"],
    "text of booleans": ["True", " false"],
    "whole numbers": [-1, 2**40],
    "floats": [0.0, 1.0],
    "booleans": [False, True],
    "three": ["a", "b", "c"],
    "one class written twice": ["1", "01", "2", "+2", "3"],
}


def draw(kind, seed, missing=True, step=0.0):
    """Return scores ``s`` or ``s0``, …, labels ``y`` with missing ones, and weights."""
    rng = np.random.default_rng(seed)
    n, labels = 300, LABELS[kind]
    k = 2 if len(labels) == 2 else 3
    p = rng.dirichlet(np.ones(k), n).round(2) + step * np.arange(n)[:, None]
    y = rng.integers(0, len(labels), n)
    y[: len(labels)] = np.arange(len(labels))
    frame = pd.DataFrame({f"s{j}": p[:, j] for j in range(k)})
    if k == 2:
        frame = pd.DataFrame({"s": p[:, 1]})
    cells = pd.Series([labels[i] for i in y], dtype=object)
    if missing:
        cells[rng.random(n) < 0.05] = None
        if isinstance(labels[0], str):
            cells[rng.random(n) < 0.05] = " NA"
            cells[rng.random(n) < 0.05] = ""
    frame["y"] = cells
    frame["w"] = rng.integers(0, 4, n)
    frame["v"] = frame["w"] / 4
    return frame


def written(folder, frame, files=1):
    folder.mkdir()
    for i, part in enumerate(np.array_split(np.arange(len(frame)), files)):
        frame.iloc[part].to_parquet(folder / f"part{i}.parquet", index=False)
    return folder if files > 1 else folder / "part0.parquet"


def calibrated(data, output, **options):
    """Return what is written, but for the name of the table."""
    command.run(Calibrate(data, output=output, **options))
    document = json.loads(output.read_text(encoding="utf-8"))
    del document["about"]["data"]
    return document


def in_memory(frame, scores, method, weight):
    """Return a calibrator fitted to the labels that are there, as the text or numbers they say."""
    cells = [one.strip() if isinstance(one, str) else one for one in frame["y"]]
    there = np.array([one is not None and one == one and one not in ("NA", "") for one in cells])
    labels = [one for one, kept in zip(cells, there, strict=True) if kept]
    if all(isinstance(one, str) and one.lower() in ("true", "false") for one in labels):
        labels = [one.lower() == "true" for one in labels]
    else:
        with contextlib.suppress(ValueError):
            labels = [int(one) for one in labels]
    rows = frame[there]
    given = rows[scores[0]] if len(scores) == 1 else rows[scores]
    w = None if weight is None else rows[weight]
    return make_calibrator(method).fit(given.to_numpy(), np.array(labels), sample_weight=w)


@pytest.mark.parametrize("kind", list(LABELS))
@pytest.mark.parametrize("weight", [None, "w", "v"])
def test_parts_are_the_whole(tmp_path, kind, weight):
    """Several files read a few rows at a time, one file read at once, and rows in memory."""
    frame = draw(kind, seed=[len(kind), 3])
    scores = [name for name in frame if name.startswith("s")]
    data = [written(tmp_path / f"data{files}", frame, files) for files in (3, 1)]
    output = tmp_path / "c.json"
    for method in ("venn-abers", "isotonic", "venn"):
        options = {"scores": scores, "target": "y", "weight": weight, "method": method}
        parts = calibrated(data[0], output, **options)
        assert parts == calibrated(data[1], output, **options)
        got = from_json(output.read_bytes())
        wanted = in_memory(frame, scores, method, weight)
        new = frame[scores[0]] if len(scores) == 1 else frame[scores]
        assert np.array_equal(got.classes_, wanted.classes_)
        p, q = got.predict_proba(new.to_numpy()), wanted.predict_proba(new.to_numpy())
        assert np.abs(p - q).max() <= 1e-12


@pytest.mark.parametrize(
    "dtype", ["float32", "int8", "uint64", "bool", "Float64", "boolean", "str", "category"]
)
def test_types_of_scores(tmp_path, dtype):
    """The calibrator of the same numbers as float64, whatever they are stored as."""
    frame = draw("text", seed=10, missing=False)
    whole = dtype in ("int8", "uint64", "bool", "boolean")
    frame["s"] = (frame["s"] > 0.4).astype(float) if whole else frame["s"]
    frame["s"] = frame["s"].astype("float32").astype(float) if dtype == "float32" else frame["s"]
    other = frame.assign(s=frame["s"].astype(bool if "bool" in dtype else float).astype(dtype))
    other["y"] = other["y"].astype("category")
    found = [
        calibrated(written(tmp_path / name, one), tmp_path / "c.json", scores=["s"], target="y")
        for name, one in (("plain", frame), ("other", other))
    ]
    assert found[0] == found[1]


ERRORS = [
    ({"s": np.nan}, [], "column 's' must contain finite scores, got NaN or nothing in row 151 of"),
    ({"s": np.inf}, [], "column 's' must contain finite scores, got inf in row 151 of"),
    (
        {"v": None},
        ["--weight", "v"],
        "column 'v' must contain finite weights that are not negative, got NaN",
    ),
    ({"v": -2.0}, ["--weight", "v"], "not negative, got -2 in row 151 of"),
]


@pytest.mark.parametrize(("cells", "more", "message"), ERRORS)
def test_rows_that_are_wrong_are_named(tmp_path, capsys, cells, more, message):
    frame = draw("text", seed=12, missing=False)
    for name, value in cells.items():
        frame.loc[150, name] = value
        frame.loc[250, name] = value
    data = written(tmp_path / "data", frame, 3)
    assert run("calibrate", data, *more, folder=tmp_path) == 2
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1
    assert not (tmp_path / "c.json").exists()
    frame.loc[[150, 250], "y"] = None  # rows without a label do not count
    shutil.rmtree(data)
    assert run("calibrate", written(tmp_path / "data", frame, 3), *more, folder=tmp_path) == 0


def run(name, data, *more, folder):
    if name == "calibrate":
        more = ("-s", "s", "-t", "y", "-o", str(folder / "c.json"), *more)
        return main([name, str(data), *more])
    return main([name, str(folder / "c.json"), str(data), *more])


def test_calibrated_and_applied_over_a_pattern(tmp_path, capsys):
    frame = draw("text", seed=13, missing=False).assign(i=np.arange(300))
    data = written(tmp_path / "data", frame, 3)
    (data / "_metadata.parquet").write_bytes(b"no table")
    assert run("calibrate", data, folder=tmp_path) == 0
    fitted = VennAbers().fit(frame["s"], frame["y"])
    read = from_json((tmp_path / "c.json").read_text(encoding="utf-8"))
    p = fitted.predict_proba(frame["s"])
    assert np.array_equal(read.predict_proba(frame["s"]), p)
    out = tmp_path / "out.parquet"
    pattern = data / "part?.parquet"
    assert run("apply", pattern, "-o", str(out), folder=tmp_path) == 0
    found = pd.read_parquet(out)
    assert found["i"].tolist() == list(range(300))
    assert np.array_equal(found["p(yes)"], p[:, 1])
    assert np.array_equal(
        found["lower(yes)"], fitted.predict_multiprobability(frame["s"]).lower[:, 1]
    )
    capsys.readouterr()
    for given in (data / "part9.parquet", data / "part1.parquet"):
        assert run("apply", pattern, "-o", str(given), folder=tmp_path) == 2
        said = capsys.readouterr().err
        assert "must not be written to the table of scores itself" in said
    assert run("apply", data, "-o", str(data / "out.parquet"), folder=tmp_path) == 2
    assert run("apply", data, "-o", str(data / "out.csv"), folder=tmp_path) == 0
    assert len(pd.read_csv(data / "out.csv")) == 300


def test_files_of_a_table_that_do_not_fit_together(tmp_path, capsys):
    frame = draw("text", seed=14, missing=False)
    data = written(tmp_path / "data", frame, 2)

    def fails(message, name="calibrate", given=data):
        capsys.readouterr()
        more = ["-o", str(tmp_path / "out.csv")] if name == "apply" else []
        assert run(name, given, *more, folder=tmp_path) == 2
        said = capsys.readouterr().err
        assert message in said and said.count("\n") == 1
        assert not (tmp_path / "out.csv").exists()

    frame.drop(columns="s").to_parquet(data / "part2.parquet")
    fails("must have the same columns, got none called 's' in")
    frame.assign(s="0.5").to_parquet(data / "part2.parquet")
    fails("must be of one type in all files")
    (data / "part2.parquet").write_bytes(b"PAR1 and nothing else")
    fails("part2.parquet cannot be read")
    (data / "part2.parquet").write_text("s,y\n1,2\n")
    fails("part2.parquet cannot be read as Parquet")
    (data / "part2.parquet").unlink()
    (tmp_path / "empty").mkdir()
    for empty in (data / "*.pq", tmp_path / "empty"):
        fails("there is no Parquet file in", given=empty)
    frame[:0].to_parquet(data / "part2.parquet")
    assert run("calibrate", data, folder=tmp_path) == 0
    frame.loc[200, "s"] = np.nan
    frame.to_parquet(data / "part1.parquet")
    fails("column 's' must contain finite scores, got NaN or nothing in row 351 of", "apply")
    frame[:0].to_parquet(tmp_path / "none.parquet")
    fails("the target 'y' is missing in every row", given=tmp_path / "none.parquet")


def test_integers_in_one_file_and_fractions_in_another(tmp_path):
    frame = draw("floats", seed=15, missing=False)
    data = written(tmp_path / "data", frame)
    frame.assign(s=frame["w"] % 2).astype({"y": int}).to_parquet(data.parent / "a.parquet")
    output = tmp_path / "c.json"
    calibrated(data.parent, output, scores=["s"], target="y", method="venn")
    every = np.concatenate([frame["w"] % 2, frame["s"]])
    fitted = make_calibrator("venn").fit(every, np.tile(frame["y"].astype(int), 2))
    read = from_json(output.read_bytes())
    assert np.array_equal(read.predict_proba(every), fitted.predict_proba(every))


def test_a_damaged_file_and_a_full_disk(tmp_path, capsys, monkeypatch):
    frame = pd.concat([draw("text", seed=17)] * 40)
    data = written(tmp_path / "data", frame)
    raw = bytearray(data.read_bytes())
    raw[40:400] = bytes(360)
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(raw)
    assert run("calibrate", broken, folder=tmp_path) == 2
    said = capsys.readouterr().err
    assert "broken.parquet" in said and said.count("\n") == 1

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    # The labels were drawn whatever the scores are, and their copies make that a direction.
    assert run("calibrate", data, "--increasing", "yes", folder=tmp_path) == 2
    assert "cannot be written: No space left on device" in capsys.readouterr().err
    assert not (tmp_path / "c.json").exists()


def test_many_labels_are_refused_before_they_are_counted(tmp_path, capsys):
    n = 20_000
    frame = pd.DataFrame({"s": np.linspace(0, 1, n), "y": [f"name {i}" for i in range(n)]})
    assert run("calibrate", written(tmp_path / "data", frame), folder=tmp_path) == 2
    assert "distinct values" in capsys.readouterr().err
    frame["y"] = frame["y"].str[:7]  # 1,100 of them
    frame["y"] = [f"name {i % 1100}" for i in range(n)]
    shutil.rmtree(tmp_path / "data")
    assert run("calibrate", written(tmp_path / "data", frame), folder=tmp_path) == 2
    assert "distinct values" in capsys.readouterr().err


def test_a_target_with_a_fraction_and_one_class(tmp_path, capsys):
    frame = draw("floats", seed=18)
    frame["y"] = frame["y"].astype(float)
    frame.loc[5, "y"] = 0.5
    assert run("calibrate", written(tmp_path / "data", frame), folder=tmp_path) == 2
    assert "must have 2 classes for 1 column(s)" in capsys.readouterr().err
    frame["y"] = frame["y"].where(frame["y"] == 1)
    shutil.rmtree(tmp_path / "data")
    assert run("calibrate", written(tmp_path / "data", frame), folder=tmp_path) == 2
    assert "must have two classes or more, got '1' alone" in capsys.readouterr().err


def test_the_summary(tmp_path, capsys):
    frame = draw("text", seed=19)
    assert run("calibrate", written(tmp_path / "data", frame), "--json", folder=tmp_path) == 0
    said = capsys.readouterr()
    there = frame["y"].isin(["no", "yes"])
    assert json.loads(said.out)["n_rows"] == there.sum()
    assert f"{(~there).sum()} rows have no 'y' and are left out" in said.err
