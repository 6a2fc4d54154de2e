"""--types: what is declared at fit holds at predict, on the page and in its code, and no longer."""

import json

import numpy as np
import pandas as pd
import pytest

from support.commands import run
from vennforest.persistence import read_header

TYPES = {
    "income": "number", "lab": "number", "seen": "date %d/%m/%Y", "ward": "category",
    "name": "drop", "smoker": "boolean",
}  # fmt: skip


def ugly(n=160, seed=0):
    rng = np.random.default_rng(seed)
    income, lab = rng.integers(500, 9000, n), rng.gamma(2, 2, n).round(2)
    frame = pd.DataFrame(
        {
            "income": [f"{v}.00" for v in income],
            "lab": [str(v) for v in lab],
            "seen": [f"{1 + i % 12:02d}/{1 + i * 5 % 12:02d}/2021" for i in range(n)],
            "ward": rng.integers(1, 6, n).astype(str),
            "name": [f"Smith {i}" for i in range(n)],
            "smoker": rng.choice(["yes", "no"], n),
        }
    ).astype(object)
    for name in ("income", "lab", "smoker"):
        frame.loc[rng.random(n) < 0.1, name] = None
    score = income / 4000 + (lab > 4) + rng.normal(size=n) / 2
    return frame.assign(y=np.where(score > 1.7, "yes", "no"))


def plain(frame):
    """The same table as one would have it: numbers and dates as such."""
    return frame.assign(
        income=frame["income"].astype(float),
        lab=frame["lab"].astype(float),
        seen=pd.to_datetime(frame["seen"], format="%d/%m/%Y"),
        smoker=frame["smoker"].map({"yes": True, "no": False}),
        ward=frame["ward"].astype("category"),
    ).drop(columns="name")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("types")
    ugly().to_csv(folder / "train.csv", index=False)
    ugly(40, seed=1).drop(columns=["y", "name"]).to_csv(folder / "new.csv", index=False)
    (folder / "t.json").write_text(json.dumps(TYPES), "utf-8")
    assert fit(folder / "train.csv", folder / "m.skops", "--types", folder / "t.json") == 0
    return folder


def fit(data, output, *more):
    # The parts that calibrate a blend are drawn by the cells as they are written.
    forest = ("--estimator", "mixed-forest", "--trees", 20, "--jobs", 1)
    return run("fit", data, "-t", "y", "-o", output, *forest, *more)


def predicted(model, data, folder, *more):
    assert run("predict", model, data, "-o", folder / "p.parquet", *more) == 0
    return pd.read_parquet(folder / "p.parquet")


def test_the_model_is_that_of_the_plain_table(folder, tmp_path):
    expected = predicted(folder / "m.skops", folder / "new.csv", tmp_path)
    plain(ugly()).to_parquet(tmp_path / "plain.parquet")
    assert fit(tmp_path / "plain.parquet", tmp_path / "m.skops") == 0
    new = plain(ugly(40, seed=1).assign(y="yes"))
    new.to_parquet(tmp_path / "new.parquet")
    answers = predicted(tmp_path / "m.skops", tmp_path / "new.parquet", tmp_path)
    pd.testing.assert_frame_equal(answers, expected, check_exact=True)
    # the declared model takes plain cells too
    new.assign(ward=new["ward"].astype(int)).to_parquet(tmp_path / "new.parquet")
    answers = predicted(folder / "m.skops", tmp_path / "new.parquet", tmp_path)
    pd.testing.assert_frame_equal(answers, expected, check_exact=True)
    types = read_header(folder / "m.skops")["types"]
    assert types["ward"] == "text" and types["seen"] == "date %d/%m/%Y" and "name" not in types


def test_the_report_uses_the_types(folder, tmp_path, capsys):
    more = ("--trees", 20, "--folds", 2, "--methods", "venn-abers", "--jobs", 1, "--json")
    more += ("--estimator", "mixed-forest")
    base = ("report", folder / "train.csv", "-t", "y", "-o", tmp_path / "r.html")
    by = ("--by", "lab", "--time", "seen")
    assert run(*base, "--types", folder / "t.json", *more, *by) == 0
    columns = json.loads(capsys.readouterr().out)["settings"]["columns"]
    assert columns["ward"] == "category" and "seen" not in columns and "name" not in columns
    assert run("check", folder / "m.skops", folder / "train.csv", "-t", "y", "--by", "ward",
               "-o", tmp_path / "s.html") == 0  # fmt: skip
