"""Calibrators of more than two classes in other systems: drawn ones answer what they do here."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from vennforest import PooledCalibration, ScoreCounts, ScoreGrid, Venn, VennAbers
from vennforest.calibrators import METHODS, Calibrator
from vennforest.calibrators.venn.taxonomies import NAMED, ConfidenceBins

READERS = Path(__file__).parents[2] / "examples" / "readers"


def draw(rng):
    """Return scores, labels and new scores of three to five classes, with ties and zeros."""
    k, sharp = int(rng.integers(3, 6)), rng.choice([0.1, 1.0])
    scores = rng.dirichlet(np.full(k, sharp), 150)
    if rng.integers(2):  # as of a forest of twenty trees
        scores = np.array([rng.multinomial(20, row) for row in scores]) / 20
    y = np.append(np.arange(k), [rng.choice(k, p=row / row.sum()) for row in scores[k:]])
    new = [rng.dirichlet(np.full(k, sharp), 40), scores[:20], np.eye(k), np.full((1, k), 1 / k)]
    return scores, y, np.vstack(new)


def drawn():
    rng = np.random.default_rng(20261123)
    for merge in ("log", "brier", "midpoint", "smooth"):
        yield VennAbers(merge), *draw(rng)
        yield Venn(ConfidenceBins(int(rng.integers(1, 6))), merge), *draw(rng)
    for name in NAMED:
        yield Venn(name, str(rng.choice(["log", "brier", "midpoint", "smooth"]))), *draw(rng)
    for method in METHODS.values():
        yield method.make(), *draw(rng)
    yield PooledCalibration([VennAbers("log"), METHODS["platt"].make()]), *draw(rng)


CASES = [(model.fit(scores, y), new) for model, scores, y, new in drawn()]
NAMES = [str(model) for model, _ in CASES]


def expected(model, new):
    """Return p, and with bounds p0 and p1, each (n, k)."""
    found = {"p": model.predict_proba(new)}
    if hasattr(model, "predict_multiprobability"):
        bounds = model.predict_multiprobability(new)
        found |= {"p0": bounds.lower, "p1": bounds.upper}
    return found


def check(found, model, new):
    wanted = expected(model, new)
    assert found.keys() == wanted.keys()
    for name, values in wanted.items():
        np.testing.assert_allclose(found[name], values, rtol=0, atol=1e-12, err_msg=name)


@pytest.mark.parametrize(("model", "new"), CASES, ids=NAMES)
def test_in_duckdb(model, new):
    duckdb = pytest.importorskip("duckdb")
    import pyarrow as pa

    names = [f"score of {label}" for label in model.classes_]
    columns = dict(zip(names, np.vstack([new, np.full(new.shape[1], np.nan)]).T, strict=True))
    given = pa.table({"row": np.arange(len(new) + 1), **columns})
    with duckdb.connect() as connection:
        connection.register("scores", given)
        sql = model.to_sql(score=names)
        answers = connection.sql(f"SELECT * FROM ({sql}) ORDER BY row").to_arrow_table()
    assert all(answers[name][-1].as_py() is None for name in answers.column_names[len(names) + 1 :])
    found = {
        name: np.column_stack([answers[f"{name}_{c}"][:-1].to_numpy() for c in model.classes_])
        for name in expected(model, new)
    }
    check(found, model, new)


@pytest.mark.parametrize(("model", "new"), CASES, ids=NAMES)
def test_in_onnxruntime(model, new):
    for package in ("onnx", "onnxruntime"):
        pytest.importorskip(package)
    from onnxruntime import InferenceSession

    from vennforest.export import to_onnx

    session = InferenceSession(to_onnx(model).SerializeToString())
    answers = session.run(None, {"scores": np.vstack([new, np.full(new.shape[1], np.nan)])})
    found = dict(zip([one.name for one in session.get_outputs()], answers, strict=True))
    assert all(np.isnan(one[-1]).all() for one in found.values())
    check({name: one[:-1] for name, one in found.items()}, model, new)


@pytest.mark.parametrize(("model", "new"), CASES, ids=NAMES)
def test_as_json(model, new):
    check(expected(Calibrator.from_json(model.to_json()), new), model, new)


def write(folder, as_text):
    """Write the models and their scores, and return their paths."""
    paths = []
    for i, (model, new) in enumerate(CASES):
        paths.append((folder / f"{i}.json", folder / f"{i}.scores"))
        paths[-1][0].write_text(model.to_json(), encoding="utf-8")
        paths[-1][1].write_text(as_text(new))
    return [str(path) for both in paths for path in both]


JAVASCRIPT = """
const fs = require("fs"), [reader, ...paths] = process.argv.slice(2);
const {read, apply} = require(reader);
for (let i = 0; i < paths.length; i += 2) {
  const reading = read(paths[i]), answers = {};
  for (const row of JSON.parse(fs.readFileSync(paths[i + 1], "utf8")))
    for (const [name, one] of Object.entries(apply(reading, row)))
      (answers[name] = answers[name] || []).push(one);
  console.log(JSON.stringify(answers));
}
"""

R = """
arguments <- commandArgs(TRUE)
source(arguments[1])
for (i in seq(2, length(arguments), 2)) {
  scores <- as.matrix(read.table(arguments[i + 1]))
  answers <- apply_calibrator(read_calibrator(arguments[i]), unname(scores))
  cat(toJSON(lapply(answers, unclass), digits = NA), "\\n", sep = "")
}
"""


def can_run_r():
    if shutil.which("Rscript") is None:
        return False
    asked = ["Rscript", "--vanilla", "-e", "library(jsonlite)"]
    return subprocess.run(asked, capture_output=True).returncode == 0


@pytest.mark.parametrize("language", ["javascript", "r"])
@pytest.mark.skipif(not READERS.exists(), reason="needs the examples")
def test_the_readers(tmp_path, language):
    if language == "javascript":
        if shutil.which("node") is None:
            pytest.skip("needs node")
        (tmp_path / "run.js").write_text(JAVASCRIPT)
        paths = write(tmp_path, lambda new: json.dumps(new.tolist()))
        command = ["node", str(tmp_path / "run.js"), str(READERS / "calibrator.js"), *paths]
    else:
        if not can_run_r():
            pytest.skip("needs Rscript with jsonlite")
        (tmp_path / "run.R").write_text(R)
        rows = lambda new: "\n".join(" ".join(map(repr, row)) for row in new.tolist())  # noqa: E731
        paths = write(tmp_path, rows)
        reader = str(READERS / "calibrator.R")
        command = ["Rscript", "--vanilla", str(tmp_path / "run.R"), reader, *paths]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    for line, (model, new) in zip(lines, CASES, strict=True):
        check({name: np.array(one) for name, one in json.loads(line).items()}, model, new)


def test_counts_on_a_grid():
    rng = np.random.default_rng(20261124)
    scores, y, new = draw(rng)
    for grid in (ScoreGrid(cells=40), ScoreGrid(cells=300, on="logit")):
        counts = ScoreCounts.from_scores(scores, y, grid=grid)
        test_in_duckdb(VennAbers().fit_counts(counts), new)


def test_scaling_into_bounds():
    """Drawn rows, some with zeros, and with bounds that leave one point: to 1e-12."""
    from vennforest.calibrators.core.formula import Score, written
    from vennforest.calibrators.core.interface import scaled_formulas
    from vennforest.multiprobability import scale_into_bounds

    class Python:
        def __init__(self, columns):
            self.columns = columns

        def score(self, column):
            return self.columns[column]

        def number(self, value):
            return np.float64(value)

        def apply(self, operation, *terms):
            if operation == "if <=":
                return np.where(terms[0] <= terms[1], *terms[2:])
            named = {"min": np.minimum, "max": np.maximum}
            return named.get(operation, getattr(np, operation, None))(*terms)

        def keep(self, term):
            return term

    rng = np.random.default_rng(20261125)
    for _ in range(300):
        k = int(rng.integers(3, 8))
        at = rng.dirichlet(np.full(k, rng.choice([0.05, 1.0])), 30)
        lower = at * rng.choice([0.0, 1.0, rng.random()], at.shape)
        upper = at + (1 - at) * rng.choice([0.0, 1.0, rng.random()], at.shape)
        p = rng.random(at.shape) * rng.choice([0.0, 1.0, 1e-200, 1e-9], at.shape)
        columns = [*p.T, *lower.T, *upper.T]
        terms = [Score(j) for j in range(3 * k)]
        made = scaled_formulas(*(tuple(terms[i * k : i * k + k]) for i in range(3)))
        with np.errstate(all="ignore"):
            found = np.column_stack(written(made, Python(columns)))
        wanted = scale_into_bounds(p, lower, upper)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)
