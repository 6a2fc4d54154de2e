"""Scores in files of any type and number: the calibrator of all rows in memory."""

import errno
import json

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
for extra in ("typer", "rich", "pyarrow"):
    pytest.importorskip(extra)

from vennforest import VennAbers  # noqa: E402
from vennforest.calibrators import make_calibrator  # noqa: E402
from vennforest.cli import main  # noqa: E402
from vennforest.export import from_json  # noqa: E402

LABELS = {
    "text": (["no", "yes"], ["no", "yes"]),
    "text of numbers": (["9", "10"], [9, 10]),
    "floats": ([0.0, 1.0], [0, 1]),
    "three": (["a", "b", "c"], ["a", "b", "c"]),
    "one class written twice": (["1", "01", "2", "+2", "3"], [1, 1, 2, 2, 3]),
}


def draw(kind="text", seed=10):
    """Return scores, labels ``y`` of which some are missing, weights, and the labels as read."""
    rng = np.random.default_rng(seed)
    n, (cells, values) = 300, LABELS[kind]
    p = rng.dirichlet(np.ones(len(set(values))), n).round(2)
    y = rng.integers(0, len(cells), n)
    y[: len(cells)] = np.arange(len(cells))
    scores = (
        {"s": p[:, 1]} if p.shape[1] == 2 else {f"s{j}": column for j, column in enumerate(p.T)}
    )
    frame = pd.DataFrame(scores).assign(y=pd.Series([cells[i] for i in y], dtype=object))
    frame["w"] = rng.integers(0, 4, n)
    frame["v"] = frame["w"] / 4
    return frame, np.array([values[i] for i in y])


def write(folder, frame, n_files=1):
    folder.mkdir(exist_ok=True)
    for i, rows in enumerate(np.array_split(np.arange(len(frame)), n_files)):
        frame.iloc[rows].to_parquet(folder / f"part{i}.parquet", index=False)
    return folder if n_files > 1 else folder / "part0.parquet"


def run(name, data, *more, folder):
    file = folder / "c.json"
    words = [data, "-t", "y", "-o", file] if name == "calibrate" else [file, data]
    return main([name, *map(str, words), *map(str, more)])


def calibrate(data, folder, *more):
    """Return what is written, but for the name of the table."""
    assert run("calibrate", data, *more, folder=folder) == 0
    document = json.loads((folder / "c.json").read_text(encoding="utf-8"))
    del document["about"]["data"]
    return document


@pytest.fixture
def fails(tmp_path, capsys):
    def check(message, data, *more, name="calibrate"):
        capsys.readouterr()
        assert run(name, data, *more, folder=tmp_path) == 2
        error = capsys.readouterr().err
        assert message in error and error.count("\n") == 1

    return check


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("weight", [None, "w", "v"])
def test_parts_are_calibrated_as_the_rows_in_memory(tmp_path, kind, weight):
    frame, y = draw(kind)
    frame.loc[::17, "y"] = " NA" if isinstance(frame["y"][0], str) else None
    has_label = np.arange(len(y)) % 17 > 0
    names = [name for name in frame if name.startswith("s")]
    scores = frame[names].to_numpy().squeeze()
    data = [write(tmp_path / f"data{n}", frame, n) for n in (1, 3)]
    for method in ("venn-abers", "isotonic", "venn"):
        options = [part for name in names for part in ("-s", name)]
        options += ["--method", method, "--increasing", "yes"] if len(names) == 1 else []
        options += ["--method", method] if len(names) > 1 else []
        options += [] if weight is None else ["--weight", weight]
        assert calibrate(data[0], tmp_path, *options) == calibrate(data[1], tmp_path, *options)
        calibrator = from_json((tmp_path / "c.json").read_bytes())
        weights = None if weight is None else frame[weight][has_label]
        expected = make_calibrator(method).fit(
            scores[has_label], y[has_label], sample_weight=weights
        )
        assert calibrator.classes_.tolist() == expected.classes_.tolist()
        difference = calibrator.predict_proba(scores) - expected.predict_proba(scores)
        assert np.abs(difference).max() <= 1e-12


@pytest.mark.parametrize(
    "dtype", ["float32", "int8", "uint64", "bool", "Float64", "boolean", "str", "category"]
)
def test_types_of_scores(tmp_path, dtype):
    """The calibrator of the same numbers as float64, whatever they are stored as."""
    frame, _ = draw()
    if dtype in ("int8", "uint64", "bool", "boolean"):
        frame["s"] = (frame["s"] > 0.4).astype(float)
    if dtype == "float32":
        frame["s"] = frame["s"].astype(dtype).astype(float)
    typed = frame.assign(s=frame["s"].astype(bool if "bool" in dtype else float).astype(dtype))
    options = ("-s", "s", "--increasing", "yes")
    documents = [
        calibrate(write(tmp_path / name, table), tmp_path, *options)
        for name, table in (("plain", frame), ("typed", typed.astype({"y": "category"})))
    ]
    assert documents[0] == documents[1]


def test_a_folder_is_calibrated_and_applied(tmp_path, fails):
    frame, y = draw()
    frame["i"] = np.arange(300)
    data = write(tmp_path / "data", frame, 3)
    (data / "_metadata.parquet").write_bytes(b"no table")
    calibrate(data, tmp_path, "-s", "s", "--increasing", "yes")
    fitted = VennAbers().fit(frame["s"], y)
    out = tmp_path / "out.parquet"
    assert run("apply", data, "-o", out, folder=tmp_path) == 0
    applied = pd.read_parquet(out)
    assert applied["i"].tolist() == list(range(300))
    assert np.array_equal(applied["p(yes)"], fitted.predict_proba(frame["s"])[:, 1])
    for given in (data / "part9.parquet", data / "part1.parquet"):
        message = "must not be written to the table of scores itself"
        fails(message, data, "-o", given, name="apply")
    assert run("apply", data, "-o", data / "out.csv", folder=tmp_path) == 0
    assert len(pd.read_csv(data / "out.csv")) == 300


def test_files_of_a_table_that_do_not_fit_together(tmp_path, fails):
    frame, _ = draw()
    data = write(tmp_path / "data", frame, 2)
    last, options = data / "part2.parquet", ("-s", "s", "--increasing", "yes")
    frame.drop(columns="s").to_parquet(last)
    fails("must have the same columns, got none called 's' in", data, *options)
    frame.assign(s="0.5").to_parquet(last)
    fails("must be of one type in all files", data, *options)
    last.write_text("s,y\n1,2\n")
    fails("part2.parquet cannot be read as Parquet", data, *options)
    (tmp_path / "empty").mkdir()
    fails("there is no Parquet file in", tmp_path / "empty", *options)
    frame[:0].to_parquet(last)
    calibrate(data, tmp_path, *options)
    frame[:0].to_parquet(tmp_path / "none.parquet")
    fails("the target 'y' is missing in every row", tmp_path / "none.parquet", *options)


def test_integers_in_one_file_and_fractions_in_another(tmp_path):
    frame, y = draw("floats")
    data = write(tmp_path / "data", frame).parent
    frame.assign(s=frame["w"] % 2).astype({"y": int}).to_parquet(data / "a.parquet")
    calibrate(data, tmp_path, "-s", "s", "--method", "venn", "--increasing", "yes")
    scores = np.concatenate([frame["w"] % 2, frame["s"]])
    expected = make_calibrator("venn").fit(scores, np.tile(y, 2)).predict_proba(scores)
    calibrator = from_json((tmp_path / "c.json").read_bytes())
    assert np.array_equal(calibrator.predict_proba(scores), expected)


def test_a_damaged_file_and_a_full_disk(tmp_path, fails, monkeypatch):
    data, options = write(tmp_path / "data", draw()[0]), ("-s", "s", "--increasing", "yes")
    content = bytearray(data.read_bytes())
    content[40:400] = bytes(360)
    (tmp_path / "broken.parquet").write_bytes(content)
    fails("broken.parquet", tmp_path / "broken.parquet", *options)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    fails("cannot be written: No space left on device", data, *options)
    assert not (tmp_path / "c.json").exists()


def test_the_summary(tmp_path, capsys):
    frame, _ = draw()
    frame.loc[:20, "y"] = None
    data = write(tmp_path / "data", frame)
    options = ("-s", "s", "--increasing", "yes", "--json")
    assert run("calibrate", data, *options, folder=tmp_path) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["n_rows"] == 279
    assert "21 rows have no 'y' and are left out" in err
