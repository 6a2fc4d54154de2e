"""A column of probabilities is of one class, whichever door it comes through."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from support.commands import refused, run
from support.partitions import engine_of
from vennforest import PlattScaling, ScoreCounts
from vennforest.batch import BatchPredictor
from vennforest.engines._tasks import calibrate_partitions
from vennforest.export import from_json

pa = pytest.importorskip("pyarrow")

LABELS = [
    ["no", "yes"], ["+", "-"], ["0", "1"], ["False", "True"], ["a (b)", "c, d"],
    ["No", "no"], ["a=b", "p(a)"], ["a", "b", "c"], ["2", "9", "10"],
]  # fmt: skip


def draw(labels, n=200):
    """Return probabilities (n, k) in the order of the labels, and a frame of rows and labels."""
    rng = np.random.default_rng()
    p = rng.dirichlet(np.ones(len(labels)), n)
    y = [labels[rng.choice(len(labels), p=row)] for row in p]
    y[: len(labels)] = labels
    return p, pd.DataFrame({"row": np.arange(n), "y": y})


@pytest.mark.parametrize("form", ["p({})", "{}", "other"])
@pytest.mark.parametrize("labels", LABELS, ids="|".join)
def test_every_door_reads_a_column_as_that_of_its_class(tmp_path, capsys, labels, form):
    p, frame = draw(labels)
    columns = [f"other{j}" if form == "other" else form.format(c) for j, c in enumerate(labels)]
    frame = frame.assign(**dict(zip(columns, p.T, strict=True)))
    frame.to_csv(tmp_path / "t.csv", index=False)
    codes, scores = frame["y"].map(labels.index).to_numpy(), p[:, 1] if len(labels) == 2 else p
    expected = PlattScaling().fit(scores, codes).predict_proba(scores)
    loss = -np.log(expected[np.arange(len(p)), codes]).mean()
    loss_before = -np.log(p[np.arange(len(p)), codes]).mean()
    classes = [int(c) if c.isdigit() else c for c in labels]
    typed = frame.assign(y=[classes[code] for code in codes])
    table = pa.Table.from_pandas(typed, preserve_index=False)
    named = dict(zip(classes, columns, strict=True))
    every = np.random.default_rng().permutation(classes).tolist()

    def losses(*command):
        assert run("check", *command, "-t", "y", "-o", tmp_path / "p.html", "--json") == 0
        methods = json.loads(capsys.readouterr().out)["methods"]
        return [result["log_loss"] for name, result in methods.items() if name != "baseline"]

    for some in [every, *([c] for c in every if len(labels) == 2)]:
        words = [f"{c}={named[c]}" if form == "other" else named[c] for c in some]
        options = [part for word in words for part in ("-s", word)]
        fit = ("calibrate", tmp_path / "t.csv", "-t", "y", *options, "--method", "platt")
        assert run(*fit, "-o", tmp_path / "c.json") == 0
        out = tmp_path / "o.parquet"
        apply = ("apply", tmp_path / "c.json", tmp_path / "t.csv", "--id", "row", "-o", out)
        calibrator = from_json((tmp_path / "c.json").read_text(encoding="utf-8"))
        assert calibrator.classes_.tolist() == classes
        for again in ([], options):
            assert run(*apply, *again) == 0
            found = pd.read_parquet(out)[[f"p({c})" for c in labels]]
            assert_allclose(found, expected, atol=1e-9)
        capsys.readouterr()
        if form == "p({})" and some == [every[0]]:  # a page takes longer than all else
            assert_allclose(losses(tmp_path / "c.json", tmp_path / "t.csv", *options), [loss])
            option = [part for word in words for part in ("--probability", word)]
            assert_allclose(losses(tmp_path / "t.csv", *option), [loss_before])
        given = {c: named[c] for c in some} if form == "other" else [named[c] for c in some]
        batches = table.to_batches(max_chunksize=70)
        counts = ScoreCounts.from_batches(batches, score=given, target="y")
        fitted = calibrate_partitions(engine_of([typed[:90], typed[90:]]), given, "y", "platt")
        for model in (PlattScaling().fit_counts(counts), fitted):
            assert_allclose(model.predict_proba(scores), expected, atol=1e-9)
        predictor = BatchPredictor(calibrator, table.schema, columns=given, answers="p")
        found = pa.Table.from_batches(predictor(batches)).to_pandas().iloc[:, 1:]
        assert_allclose(found, expected, atol=1e-9)
