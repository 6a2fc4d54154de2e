"""No output of any command may be one of its inputs, under whatever name."""

import os
import shutil

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
for extra in ("typer", "rich", "skrub", "matplotlib", "jinja2", "pyarrow", "skops"):
    pytest.importorskip(extra)

from vennforest.cli import main  # noqa: E402

FIT = ("--trees", "5", "--jobs", "1")
REPORT = ("--folds", "2", "--trees", "5", "--methods", "platt", "--jobs", "1")
COSTS = '{"no": {"no": 0, "yes": 1}, "yes": {"no": 3, "yes": 0}}'


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    frame = pd.DataFrame({"x": x, "y": np.where(x + rng.normal(size=60) > 0, "yes", "no")})
    frame.to_csv(folder / "data.csv", index=False)
    (folder / "costs.csv").write_text(COSTS)  # any name does: the content tells
    command = ["fit", str(folder / "data.csv"), "-t", "y", "-o", str(folder / "model.skops"), *FIT]
    assert main(command) == 0
    (folder / "model.skops").rename(folder / "model.csv")
    return folder


@pytest.fixture
def folder(inputs, tmp_path):
    shutil.copytree(inputs, tmp_path / "in")
    return tmp_path / "in"


COMMANDS = {
    "fit": (["fit", "data.csv", "-t", "y", *FIT], ["data.csv"]),
    "predict": (["predict", "model.csv", "data.csv"], ["data.csv", "model.csv"]),
    "report": (
        ["report", "data.csv", "-t", "y", "--costs", "costs.csv", *REPORT],
        ["data.csv", "costs.csv"],
    ),
}
CASES = [(name, given) for name, (_, files) in COMMANDS.items() for given in files]


def link(how, target, path):
    if how == "itself":
        return target
    if how == "dotted":
        return target.parent / ".." / target.parent.name / target.name
    (os.link if how == "hard" else os.symlink)(target, path)
    return path


@pytest.mark.parametrize("how", ["itself", "dotted", "hard", "symbolic"])
@pytest.mark.parametrize(("name", "given"), CASES)
def test_an_output_that_is_an_input_is_refused(name, given, how, folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    command, files = COMMANDS[name]
    before = {file: (folder / file).read_bytes() for file in files}
    output = link(how, folder / given, folder / "other.csv")
    assert main([*command, "-o", str(output)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("Error: the output must not be the ") and said.count("\n") == 1
    assert {file: (folder / file).read_bytes() for file in files} == before


@pytest.mark.parametrize("name", COMMANDS)
def test_other_outputs_are_written(name, folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    command, _ = COMMANDS[name]
    output = folder / ("other.skops" if name == "fit" else "other.csv")
    assert main([*command, "-o", str(output)]) == 0
    assert output.stat().st_size
