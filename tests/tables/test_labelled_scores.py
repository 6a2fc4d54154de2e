"""Scores and labels of a table in any file: the same labels and numbers, or the same refusal."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from vennforest._validation import InputError
from vennforest.tables.labelled_scores import LabelledScores
from vennforest.tables.open import TableFile

LABELS = {
    "text": (["no", "yes"], ["no", "yes"]),
    "text of numbers": (["9", "10"], [9, 10]),
    "text of booleans": (["True", " false"], ["True", "false"]),
    "whole numbers": ([-1, 2**40], [-1, 2**40]),
    "large numbers": ([2**53, 2**53 + 1], [2**53, 2**53 + 1]),
    "floats": ([0.0, 1.0], [0, 1]),
    "booleans": ([False, True], [False, True]),
    "one class written twice": (["1", "01", "2", "+2"], [1, 2]),
}


def table(kind="text", n=300):
    rng = np.random.default_rng(0)
    labels = LABELS[kind][0]
    cells = pd.Series([labels[i] for i in rng.integers(0, len(labels), n)], dtype=object)
    frame = pd.DataFrame({"s": rng.random(n).round(2), "w": rng.integers(0, 4, n)})
    cells[rng.random(n) < 0.1] = None
    if isinstance(labels[0], str):
        cells[rng.random(n) < 0.05] = " NA"
    return frame.assign(y=cells)


def read(path, **more):
    scores = LabelledScores(TableFile(path), ["s"], "y", **more)
    return scores, pa.Table.from_batches(list(scores.batches()))


@pytest.mark.parametrize("kind", LABELS)
def test_every_format_gives_the_same_labels_and_numbers(tmp_path, kind):
    """But for True and False, which stay as they are written in text."""
    frame = table(kind)
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_csv(tmp_path / "comma.csv", index=False, sep=";", decimal=",")
    frame.to_parquet(tmp_path / "t.parquet")
    frame.assign(s=frame["s"].map(str)).to_parquet(tmp_path / "text.parquet")
    tables = []
    for name in ("t.csv", "comma.csv", "t.parquet", "text.parquet"):
        scores, rows = read(tmp_path / name, weight="w")
        is_text = kind == "booleans" and name.endswith("csv")
        convert = str if is_text else lambda label: label
        assert scores.classes == [convert(label) for label in LABELS[kind][1]]
        assert (scores.n_rows, scores.left_out.n_unlabelled) == (len(rows), len(frame) - len(rows))
        cells = rows.to_pydict()
        tables.append(
            cells | {"y": list(map(str, cells["y"])) if kind == "booleans" else cells["y"]}
        )
    assert tables[0] == tables[1] == tables[2] == tables[3]
    has_label = ~frame["y"].isin([None, " NA"])
    assert tables[0]["s"] == frame["s"][has_label].tolist()


@pytest.mark.parametrize(("name", "value", "message"), [
    ("s", np.nan, "column 's' must contain finite scores, got NaN or nothing in row 151 of"),
    ("s", np.inf, "column 's' must contain finite scores, got inf in row 151 of"),
    ("s", "5%", "column 's' must contain numbers, got '5%' in row 151 of"),
    ("w", -2.0, "column 'w' must contain finite weights .* got -2 in row 151 of"),
])  # fmt: skip
def test_a_wrong_number_is_refused_where_the_row_has_a_label(tmp_path, name, value, message):
    frame = table().astype({name: object})
    frame.loc[150, [name, "y"]] = [value, "yes"]
    frame.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(InputError, match=message):
        read(tmp_path / "t.csv", weight="w")
    frame.loc[150, "y"] = None
    frame.to_csv(tmp_path / "t.csv", index=False)
    read(tmp_path / "t.csv", weight="w")
