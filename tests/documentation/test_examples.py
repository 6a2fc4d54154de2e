"""Every script of examples/ runs and prints; the notebook is that of its script."""

import json
import os
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# first_steps.py is run by the test of its notebook.
EXAMPLES = [p for p in sorted((ROOT / "examples").glob("*.py")) if p.stem != "first_steps"]


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    """Return a function that runs a script as Python does, and returns what it prints."""
    monkeypatch.chdir(tmp_path)

    def result(path, *arguments, code=None):
        monkeypatch.setattr("sys.argv", [str(path), *arguments])
        code = path.read_text("utf-8") if code is None else code
        exec(compile(code, str(path), "exec"), {"__name__": "__main__"})
        return capsys.readouterr().out

    return result


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path, tmp_path, run):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    code = path.read_text("utf-8")
    if "VENNFOREST_DATA" in code and "VENNFOREST_DATA" not in os.environ:
        pytest.skip("needs the data sets of VENNFOREST_DATA")
    picture = tmp_path / "picture.svg"
    arguments = ["4000", "10"] if path.stem == "million_rows" else [str(picture)]
    with pyplot.rc_context({"backend": "agg"}):
        # Few trees are enough to see that a script runs.
        assert run(path, *arguments, code=re.sub(r"(Forest\w*\()\d+", r"\g<1>30", code))
        pyplot.close("all")
    assert picture.exists() == (arguments == [str(picture)])


def test_notebook_is_that_of_its_script(run):
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        from make_notebook import notebook
    finally:
        sys.path.pop(0)
    path = ROOT / "examples/first_steps.py"
    script = path.read_text("utf-8")
    written = json.loads(path.with_suffix(".ipynb").read_text("utf-8"))
    code = [c for c in written["cells"] if c["cell_type"] == "code"]
    printed = "".join("".join(out["text"]) for cell in code for out in cell.pop("outputs"))
    assert [cell.pop("execution_count") for cell in code] == list(range(1, len(code) + 1))
    fresh = notebook(script)
    for cell in fresh["cells"]:
        cell.pop("outputs", None), cell.pop("execution_count", None)
    assert written == fresh
    # The cells, one after the other, are the whole of the script's code, and print what it prints.
    joined = "\n".join("".join(cell["source"]) for cell in code)
    lines = [line for line in script.splitlines() if line and not line.startswith("#")]
    assert [line for line in joined.splitlines() if line and not line.startswith("#")] == lines
    number = re.compile(r"\d+\.\d+")
    now = run(path)
    assert number.sub("#", printed) == number.sub("#", now)
    figures = [[float(x) for x in number.findall(text)] for text in (printed, now)]
    assert figures[0] == pytest.approx(figures[1], rel=0.05, abs=0.01)
