"""The option ``--by`` of ``vennforest fit``."""

import numpy as np
import pandas as pd
import pytest

from vennforest import load
from vennforest.cli import main

PROBABILITIES = ["label", "probability", "lower", "upper"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("by")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=200).round(3),
            "town": rng.choice(["Ulm", "Bonn", None], 200),
            "vip": rng.choice([True, False], 200),
            "level": rng.choice([1, 2, 3], 200),
        }
    )
    p = 1 / (1 + np.exp(-frame["x"] - (frame["town"] == "Ulm") - frame["vip"]))
    frame["y"] = np.where(rng.random(200) < p, "yes", "no")
    frame.to_csv(folder / "data.csv", index=False)
    frame.to_parquet(folder / "data.parquet")
    return folder


@pytest.mark.parametrize("column", ["town", "vip", "level"])
def test_groups_by_a_column(folder, column, capsys):
    model = folder / "m.skops"
    command = ["fit", str(folder / "data.csv"), "--target", "y", "-o", str(model), "--trees", "20"]
    assert main([*command, "--jobs", "1", "--by", column]) == 0
    assert len(load(model).groups_) in (2, 3)
    capsys.readouterr()
    assert main(["show", str(model)]) == 0
    assert f"groups by '{column}'" in capsys.readouterr().out
    found = []
    for suffix in ("csv", "parquet"):
        out = folder / "p.parquet"
        assert main(["predict", str(model), str(folder / f"data.{suffix}"), "-o", str(out)]) == 0
        found.append(pd.read_parquet(out)[PROBABILITIES])
    pd.testing.assert_frame_equal(*found)
    assert (found[0]["upper"] - found[0]["lower"]).mean() < 0.6
    capsys.readouterr()


def test_a_column_that_there_is_not(folder, capsys):
    command = ["fit", str(folder / "data.csv"), "--target", "y", "-o", str(folder / "n.skops")]
    for column, message in (("city", "there is no column 'city'"), ("x", "into few groups")):
        assert main([*command, "--trees", "20", "--by", column]) == 2
        assert message in capsys.readouterr().err
    assert not (folder / "n.skops").exists()
