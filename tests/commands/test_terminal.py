"""What a terminal shows: shares, warnings, and no control characters."""

import json
import warnings

import pandas as pd

from support.commands import run
from vennforest._validation import InputError
from vennforest.commands.terminal import shares_text

FAST = ("--folds", "2", "--trees", 20, "--methods", "venn-abers", "--jobs", "1")


def test_the_most_frequent_class_is_named_first():
    assert shares_text({"a": 1, "b": 3}, 0) == "'b' 75%, 'a' 25%"


CONTROL = [chr(i) for i in (*range(32), *range(127, 160), *range(0x202A, 0x202F), 0x2066)]


def assert_harmless(text):
    assert not set(text.replace("\n", "")) & set(CONTROL), repr(text)


def test_names_cannot_steer_the_terminal(table, tmp_path, capsys, monkeypatch):
    evil = "a\x1b]0;owned\x07\x9b2J\u202egpj.exe\x7f"
    monkeypatch.chdir(tmp_path)
    frame = pd.read_csv(table).rename(columns={"x": evil}).dropna(subset="y")
    frame.assign(y=frame["y"] + evil).to_csv(evil + ".csv", index=False)
    model, data = evil + ".skops", evil + ".csv"
    wrong = [
        ("fit", data + "v", "-t", "y"),
        ("fit", data, "-t", evil + "!"),
        ("fit", data, "-t", "y", "-o", evil + "/m"),
        ("fit", data, "--" + evil),
    ]
    for command in (
        *wrong,
        *((*command, "--debug") for command in wrong),
        ("fit", data, "-t", "y", "-o", model, "--trees", "5", "--jobs", "1"),
        ("predict", model, data, "-o", evil + ".parquet", "--json"),
        ("predict", model, table, "-o", evil + ".parquet"),
        ("report", data, "-t", "y", "-o", evil + ".html", "--json", *FAST),
    ):
        run(*command)
        out, err = capsys.readouterr()
        assert_harmless(err)
        assert_harmless(out)
        if "--json" in command:  # what was escaped is read as it was
            assert repr(evil)[1:-1] in repr(json.loads(out))


def test_warnings_are_sentences(table, tmp_path, capsys, monkeypatch):
    def old(*_, **__):
        for stacklevel in (1, 2):  # said once, wherever they come from
            warnings.warn("written with \x1b[31m1.0\nand so on", UserWarning, stacklevel)
        raise InputError("refused")

    monkeypatch.setattr("vennforest.persistence.load", old)
    assert run("predict", tmp_path / "m.skops", table, "-o", tmp_path / "o.csv") == 2
    err = capsys.readouterr().err
    assert_harmless(err)
    assert err.startswith("Warning: written with \\x1b[31m1.0 and so on\n") and ".py" not in err
    assert err.count("Warning") == 1
