"""No command writes to a file that it reads, or writes two outputs to one file."""

import os
import re
from dataclasses import MISSING, fields
from itertools import combinations
from typing import get_type_hints

import pytest
from typer.models import ArgumentInfo

from vennforest._files import Input, Output, check_files
from vennforest._messages import InputError
from vennforest.commands.options import Options, Predict, TableOptions, app

COMMANDS = [*Options.__subclasses__(), *TableOptions.__subclasses__()]
COMMANDS.remove(TableOptions)


def annotations(command):
    return {
        name: getattr(hint, "__metadata__", ())
        for name, hint in get_type_hints(command, include_extras=True).items()
    }


def marked(command, kind):
    return [
        name
        for name, marks in annotations(command).items()
        if any(isinstance(m, kind) for m in marks)
    ]


def pairs_of(command):
    outputs = marked(command, Output)
    return [
        *((output, read) for output in outputs for read in marked(command, Input)),
        *combinations(outputs, 2),
    ]


PAIRS = [(command, *pair) for command in COMMANDS for pair in pairs_of(command)]
IDS = [f"{command.__name__.lower()}-{a}-{b}" for command, a, b in PAIRS]


def arguments_of(command, **paths):
    required = {f.name: "x" for f in fields(command) if f.init and f.default is MISSING}
    options = command(**{**required, **paths})
    return {f.name: getattr(options, f.name) for f in fields(command) if f.init}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_path_is_declared_as_input_or_output(command):
    declared = {*marked(command, Input), *marked(command, Output)}
    hints = get_type_hints(command)
    paths = [f.name for f in fields(command) if f.init and "Path" in str(hints[f.name])]
    for name, marks in annotations(command).items():
        is_named = any(
            isinstance(mark, ArgumentInfo)
            or re.match("FILE|FOLDER|TABLE|JSON", getattr(mark, "metavar", None) or "")
            for mark in marks
        )
        paths += [name] if is_named else []
    assert paths and set(paths) <= declared


@pytest.mark.parametrize(("command", "output", "other"), PAIRS, ids=IDS)
@pytest.mark.parametrize("link", ["itself", "dotted", "symbolic", "hard", "local", "file"])
def test_one_file_under_two_names_is_refused_and_stays(command, output, other, link, tmp_path):
    target, path = tmp_path / "file.csv", tmp_path / "link.csv"
    target.write_text("s,y\n1,a\n")
    if link == "itself":
        path = target
    elif link == "dotted":
        path = tmp_path / ".." / tmp_path.name / target.name
    elif link in ("local", "file"):
        path = f"{link}://{target}"
    else:
        (os.link if link == "hard" else os.symlink)(target, path)
    name = command.__name__.lower()
    (run,) = (entry.callback for entry in app.registered_commands if entry.name == name)
    for paths in ((path, target), (target, path)):
        files = dict(zip((output, other), paths, strict=True))
        with pytest.raises(InputError, match=r"must not be written to the|is a file: name a fold"):
            run(**arguments_of(command, **files))
    assert target.read_text() == "s,y\n1,a\n"


@pytest.mark.parametrize(
    ("command", "output", "other"),
    [(command, a, b) for command, a, b in PAIRS if b in marked(command, Input)],
)
def test_a_part_of_a_table_and_one_address_are_refused(command, output, other, tmp_path):
    folder = tmp_path / "table"
    folder.mkdir()
    (folder / "a.parquet").touch()
    (folder / "c.parquet").symlink_to(tmp_path / "elsewhere.parquet")
    (tmp_path / "elsewhere.parquet").touch()
    cases = [
        (folder / "b.parquet", folder),
        (folder / "out.csv", folder),
        (f"local://{folder}/out.csv", folder),
        (folder / "out.csv", f"file://{folder}/"),
        (tmp_path / "elsewhere.parquet", folder),
        ("s3://bucket/x.csv", "s3://bucket/x.csv"),
        ("s3://bucket/table/x.parquet", "s3://bucket/table"),
    ]
    for path, table in cases:
        with pytest.raises(InputError, match="must not be written to"):
            check_files(command(**arguments_of(command, **{output: path, other: table})))


def test_other_files_of_a_folder_may_be_written(tmp_path):
    (tmp_path / "a.parquet").touch()
    for output, data in [
        (tmp_path / "out.csv", tmp_path / "a.parquet"),
        (tmp_path / "new.parquet", tmp_path / "a.parquet"),
        ("s3://bucket/out.csv", "s3://bucket/in.csv"),
        ("s3://bucket/in.csv", "in.csv"),
    ]:
        check_files(Predict(model=tmp_path / "m.skops", data=data, output=output))
