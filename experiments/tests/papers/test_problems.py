"""How the papers take the data sets: encodings, rows left out, faults as published."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from vennforest_experiments.datasets import Dataset, catalogue
from vennforest_experiments.papers.protocol.problems import load_problem, one_hot, prepare, problems

PAPERS = ["johansson2018", "bostrom2008", "vovk2014", "niculescu2005", "shaker2025"]


@pytest.fixture(scope="module")
def real_data():
    """The folder of real data sets."""
    folder = os.environ.get("VENNFOREST_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs the data sets: set VENNFOREST_DATA to their folder")
    return folder


# --- preparation -----------------------------------------------------------------------------


def frame(**columns):
    return pd.DataFrame(
        {
            name: pd.Categorical(values) if isinstance(values[-1], str) else np.array(values, float)
            for name, values in columns.items()
        }
    )


def test_one_hot():
    X = frame(size=[1, np.nan, 3], two=["p", "q", "p"], gap=["u", None, "v"], many=["c", "a", "b"])
    got = one_hot(X)
    assert list(got.columns) == ["size", "two=q", "gap=u", "gap=v", "many=a", "many=b", "many=c"]
    np.testing.assert_array_equal(
        got.to_numpy(),
        [[1, 0, 1, 0, 0, 0, 1], [np.nan, 1, 0, 0, 1, 0, 0], [3, 0, 0, 1, 0, 1, 0]],
    )
    assert list(one_hot(X, every_value=True).columns)[1:3] == ["two=p", "two=q"]


def test_johansson_fills_then_leaves_out_equal_rows_whatever_the_label():
    X = frame(a=[1, 3, np.nan, 2, 1], b=["x", "x", None, "x", "x"])
    got, y = prepare(Dataset("colic", X, np.array(list("nyyny"))), "johansson2018")
    # The mean of 1, 3, 2, 1 and the commonest name fill the third row.
    np.testing.assert_array_equal(got.to_numpy()[:, 0], [1, 3, 1.75, 2])
    assert y.tolist() == ["n", "y", "y", "n"]


def test_johansson_german_lacks_eight_attributes_as_published():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 50, size=(60, 20)).astype(float)).add_prefix("a")
    X.iloc[7, 8:] = X.iloc[3, 8:]
    dataset = Dataset("german", X, np.repeat(["good", "bad"], 30))
    got, y = prepare(dataset, "johansson2018")
    assert list(got.columns) == list(X.columns[8:])
    assert len(got) == len(y) == 59
    assert prepare(dataset, "johansson2018", as_published=False)[0].shape == (60, 20)


def test_johansson_spect_has_the_test_rows_first_and_lost_a_row():
    X = pd.DataFrame({"number": np.arange(267.0)})
    dataset = Dataset("spect", X, np.arange(267).astype(str))
    got, y = prepare(dataset, "johansson2018")
    assert got["number"].tolist() == [*range(80, 267), *range(1, 80)]
    assert y.tolist() == [str(i) for i in [*range(80, 267), *range(1, 80)]]
    assert len(prepare(dataset, "johansson2018", as_published=False)[0]) == 267


def test_johansson_vote_is_a_mixture_as_published(tmp_path):
    squares = [*catalogue()["tictactoe"].columns]
    boards = ["xxxxooxoo", "bbbbbbbbb", "oxbxoxxob", "oxbxoxbox", "boxxoxbox"]
    rows = [",".join([*board, "positive"]) for board in boards]
    text = "\n".join([",".join([*squares, "target"]), *rows]) + "\n"
    (tmp_path / "tictactoe.csv").write_text(text)
    issues = {f"issue{i}": ["n", "y", "y"] for i in range(16)}
    dataset = Dataset("vote", frame(**issues), np.array(["democrat", "republican", "democrat"]))
    got, y = prepare(dataset, "johansson2018", data_dir=tmp_path)
    # Rows 4 and 5 of the board table follow: o=010, x=001, b=100, cut to sixteen columns and the
    # seventeenth as label. The second vote of "all yes" is a duplicate.
    codes = {"b": "100", "o": "010", "x": "001"}
    below = ["".join(codes[square] for square in board)[:17] for board in boards[3:]]
    expected = ["0" * 16 + "0", "1" * 16 + "1", *below]
    assert [
        "".join(f"{v:.0f}" for v in r) + str(t) for r, t in zip(got.values, y, strict=True)
    ] == (expected)
    honest, labels = prepare(dataset, "johansson2018", as_published=False)
    assert labels.tolist() == ["democrat", "republican"]
    assert len(honest) == 2


def test_niculescu_problems():
    letters = np.array(list("AMNOZ"))
    dataset = Dataset("letter", frame(a=[1, 2, 3, 4, 5]), letters)
    assert prepare(dataset, "niculescu2005", problem="LETTER.P1")[1].tolist() == [0, 0, 0, 1, 0]
    assert prepare(dataset, "niculescu2005", problem="LETTER.P2")[1].tolist() == [1, 1, 0, 0, 0]
    with pytest.raises(ValueError, match=r"problem must be one of \['LETTER.P1', 'LETTER.P2'\]"):
        prepare(dataset, "niculescu2005")
    X = frame(age=[1, 2, np.nan, 4], kind=["a", "b", "c", "a"])
    X2, y = prepare(Dataset("adult", X, np.array(["<=50K", ">50K", ">50K", ">50K"])), PAPERS[3])
    # The row with a missing cell goes, and with it the only "c".
    assert list(X2.columns) == ["age", "kind=a", "kind=b"]
    assert y.tolist() == [0, 1, 1]
    cover = Dataset("covtype_30k", frame(a=[1, 2, 3]), np.array(["1", "2", "7"]))
    assert prepare(cover, "niculescu2005")[1].tolist() == [1, 0, 0]


REMAIN = {
    "colic": 357,
    "german": 955,
    "haber": 283,
    "heartC": 302,
    "heartH": 293,
    "iono": 350,
    "kc1": 1192,
    "kc2": 369,
    "kc3": 325,
    "liver": 341,
    "mw": 379,
    "pc4": 1343,
    "spect": 218,
    "wbc": 463,
    "vote": 517,
}


@pytest.mark.parametrize("problem", problems("johansson2018"))
def test_johansson_sizes(real_data, problem):
    name = problems("johansson2018")[problem]
    X, y = load_problem("johansson2018", problem, real_data)
    assert len(X) == len(y) == REMAIN.get(problem, catalogue()[name].rows)
    assert X.notna().all().all()
    assert (X.dtypes == np.float64).all()
    if problem == "german":
        assert X.shape[1] == 27
    if problem == "vote":
        assert X.shape[1] == 16


def test_niculescu_attributes_and_shares(real_data):
    X, y = load_problem("niculescu2005", "ADULT", real_data)
    assert X.shape == (45222, 104)
    assert round(100 * y.mean()) == 25
    X, y = load_problem("niculescu2005", "COV_TYPE", real_data)
    assert X.shape[1] == 54
    assert round(100 * y.mean()) == 36
