"""Calibrators as JSON, read and applied by the reader in R."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from vennforest import PlattScaling, VennAbers
from vennforest.calibrators import IsotonicCalibration, Venn

READER = Path(__file__).parents[2] / "examples" / "readers" / "calibrator.R"

SCRIPT = """
arguments <- commandArgs(TRUE)
source(arguments[1])
scores <- as.numeric(readLines(arguments[2]))
for (path in arguments[-(1:2)]) {
  answers <- apply_calibrator(read_calibrator(path), scores)
  cat(names(answers), "\\n")
  cells <- as.matrix(answers)
  cells[] <- ifelse(is.na(cells), "nan", sprintf("%a", cells))
  cat(apply(cells, 1, paste, collapse = " "), sep = "\\n")
}
"""

MODELS = {
    "venn-abers": VennAbers(),
    "venn-abers, log": VennAbers("log"),
    "isotonic": IsotonicCalibration(),
    "platt": PlattScaling(),
    "platt on log-odds": PlattScaling(on="logit"),
    "venn": Venn("confidence-bins"),
}


def can_run():
    if shutil.which("Rscript") is None or not READER.exists():
        return False
    asked = ["Rscript", "--vanilla", "-e", "library(jsonlite)"]
    return subprocess.run(asked, capture_output=True).returncode == 0


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """Return the fitted models, the scores, and what R says of each."""
    if not can_run():
        pytest.skip("needs Rscript with jsonlite, and the examples")
    folder = tmp_path_factory.mktemp("r")
    rng = np.random.default_rng(4409)
    s = rng.random(3000)
    y = np.where(rng.random(3000) < s**2, "yes", "no")
    neighbours = [np.nextafter(s[:400], to) for to in (-1, 2)]
    new = np.concatenate([rng.random(2000), s[:400], *neighbours, [0.0, -0.0, 1.0, 5e-324]])
    given = [*(value.hex() for value in new.tolist()), "NaN", "Inf", "-Inf"]
    (folder / "scores.txt").write_text("\n".join(given) + "\n")
    (folder / "run.R").write_text(SCRIPT)
    fitted = {name: model.fit(s, y) for name, model in MODELS.items()}
    paths = [folder / f"{i}.json" for i in range(len(fitted))]
    for path, model in zip(paths, fitted.values(), strict=True):
        path.write_text(model.to_json(), encoding="utf-8")
    command = ["Rscript", "--vanilla", folder / "run.R", READER, folder / "scores.txt", *paths]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    found = {}
    for i, name in enumerate(fitted):
        names, *rows = said[i * (len(given) + 1) : (i + 1) * (len(given) + 1)]
        cells = np.array([[float.fromhex(cell) for cell in row.split()] for row in rows])
        found[name] = dict(zip(names.split(), cells.T, strict=True))
    return fitted, new, found


@pytest.mark.parametrize("name", MODELS)
def test_the_reader_in_r(answers, name):
    """Bounds to the last bit; sigmoids to the last digit, in which libraries' exp differ."""
    fitted, new, found = answers
    model, said = fitted[name], found[name]
    assert all(np.isnan(column[-3:]).all() for column in said.values())
    p = model.predict_proba(new)[:, 1]
    np.testing.assert_allclose(said["p"][:-3], p, rtol=0, atol=1e-15)
    if name in ("isotonic", "venn", "venn-abers, log"):
        np.testing.assert_array_equal(said["p"][:-3], p)
    if hasattr(model, "predict_multiprobability"):
        bounds = model.predict_multiprobability(new)
        np.testing.assert_array_equal(said["p0"][:-3], bounds.p0)
        np.testing.assert_array_equal(said["p1"][:-3], bounds.p1)
    else:
        assert set(said) == {"p"}
