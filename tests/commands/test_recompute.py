"""The figures of a page are recomputed by a script that does not know the library."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from support.commands import run
from support.report_data import calibrated

pytest.importorskip("statsmodels")
TOOL = Path(__file__).parents[2] / "tools" / "recompute.py"
WRONG = (("methods", "p", "slope_low"), ("levels", 1, "observed_high"), ("thresholds", 2, "gain"))


@pytest.fixture(scope="module")
def recompute():
    spec = importlib.util.spec_from_file_location("recompute", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_script_does_not_import_the_library():
    code = TOOL.read_text(encoding="utf-8")
    assert "import vennforest" not in code and "from vennforest" not in code


def test_fifty_figures_agree_and_a_falsified_one_is_named(recompute, tmp_path, capsys):
    y, p, rng = calibrated(300, 8, strength=1.5)
    frame = pd.DataFrame({"p": p, "y": y, "who": np.arange(300) // 2, "q": rng.random(300)})
    frame.loc[3, "p"], frame.loc[5, "y"] = np.nan, None
    data, page = tmp_path / "t.csv", tmp_path / "page.json"
    frame.to_csv(data, index=False)
    command = ["check", data, "-t", "y", "-o", tmp_path / "c.html", "--json", "--groups", "who"]
    assert run(*command, "--probability", "yes=p", "--probability", "yes=q") == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["inputs"][0]["rows"] == 300 and summary["rows"] == 298
    assert set(summary["methods"]["p"]) >= {"log_loss_low", "brier_high", "brier_skill_low"}
    page.write_text(json.dumps(summary))
    assert recompute.main(page, data) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    assert (
        len(lines) > 100
        and last.endswith("0 differ")
        and not any(line.startswith("DIFFERS") for line in lines)
    )
    assert "an input of the page" in lines[1] and "not an input" not in lines[1]
    for part, key, name in WRONG:
        summary[part][key][name] += 1e-4
    page.write_text(json.dumps(summary))
    data.write_text(data.read_text() + "\n")
    assert recompute.main(page, data) == 1
    lines = capsys.readouterr().out.splitlines()
    named = [line.split()[1] for line in lines if line.startswith("DIFFERS")]
    assert [name.rsplit(".", 1)[1] for name in named] == [name for *_, name in WRONG]
    assert "not an input of the page" in lines[1]


def test_grades_agree(recompute, tmp_path, capsys):
    y, p, _ = calibrated(300, 8, strength=1.5)
    pd.DataFrame({"pd": p, "y": y, "grade": np.digitize(p, [0.2, 0.4])}).to_csv(
        tmp_path / "t.csv", index=False
    )
    command = ["check", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "c.html", "--json"]
    assert run(*command, "--probability", "yes=pd", "--grades", "grade") == 0
    (tmp_path / "page.json").write_text(capsys.readouterr().out)
    assert recompute.main(tmp_path / "page.json", tmp_path / "t.csv") == 0
    assert capsys.readouterr().out.count("grades.") == 3 * 10
