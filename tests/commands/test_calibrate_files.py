"""Scores in files of any type and number: the calibrator of all rows in memory."""

import json

import numpy as np
import pandas as pd
import pytest

from vennforest import VennAbers
from vennforest.calibrators import make_calibrator
from vennforest.cli import main
from vennforest.export import from_json

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


def test_a_folder_is_calibrated_and_applied(tmp_path):
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
    assert run("apply", data, "-o", data / "out.csv", folder=tmp_path) == 0
    assert len(pd.read_csv(data / "out.csv")) == 300
