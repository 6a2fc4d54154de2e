"""The calibrators run on files of CalArena's layout, and what they write is of its form."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from vennforest import PooledCalibration

h5py = pytest.importorskip("h5py")
TOOLS = Path(__file__).parents[2] / "tools"
NAMES = ["Base-model", "vennforest-pool", "vennforest-Venn-Abers", "vennforest-vector"]


def drawn(rng, n, k):
    """Return overconfident probabilities in single precision, and labels."""
    logits = rng.normal(size=(n, k))
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    y = (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=k - 1)
    sharp = p**3 / (p**3).sum(axis=1, keepdims=True)
    return sharp.astype(np.float32), y.astype(np.int64)


def write(folder, benchmark, k, one_column=False):
    """Write two data sets of two models each; one has no calibration row of the last class."""
    rng = np.random.default_rng(k)
    rows = []
    with h5py.File(folder / f"{benchmark}.h5", "w") as file:
        for dataset in ("adult", "rare"):
            for model in ("RandomForest", "TabPFN-v2.6"):
                group = file.create_group(f"{dataset}/{model}")
                for part, n in (("cal", 300), ("test", 200)):
                    p, y = drawn(rng, n, k)
                    if dataset == "rare" and part == "cal" and k > 2:
                        y[y == k - 1] = 0
                    group[f"probas_{part}"] = p[:, 1] if one_column else p
                    group[f"labels_{part}"] = y
                rows.append((dataset, model, 300, 200))
    names = ["dataset", "model", "cal_size", "test_size"]
    pd.DataFrame(rows, columns=names).to_csv(folder / f"{benchmark}-experiments.csv", index=False)


@pytest.mark.parametrize(
    ("file_name", "k", "one_column"),
    [("small-binary", 2, True), ("two-binary", 2, False), ("small-multiclass", 4, False)],
)
def test_results_are_of_the_form_of_the_benchmark(
    tmp_path, capsys, monkeypatch, file_name, k, one_column
):
    write(tmp_path, file_name, k, one_column)
    monkeypatch.syspath_prepend(str(TOOLS))
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("calarena").main([file_name, "--benchmarks-dir", "."])
    printed = capsys.readouterr().out
    tables = {n: pd.read_csv(tmp_path / "results" / file_name / f"{n}.csv") for n in NAMES}
    keys = ["dataset", "model", "cal_size", "test_size", *["n_classes"] * (k > 2)]
    for name, table in tables.items():
        measures = [f"{name}_{measure}" for measure in ("brier", "logloss", "time")]
        assert list(table) == [*keys, *measures]
        assert len(table) == 4 and np.isfinite(table[measures]).all(axis=None)
    joined = tables["Base-model"].merge(tables["vennforest-pool"], on=keys)
    adult = joined[joined["dataset"] == "adult"]
    assert (adult["vennforest-pool_logloss"] < adult["Base-model_logloss"]).all()
    assert all(name in printed for name in NAMES)


def test_losses_are_those_of_the_library_on_the_file(tmp_path, monkeypatch):
    write(tmp_path, "small-binary", 2, one_column=True)
    monkeypatch.syspath_prepend(str(TOOLS))
    calarena = pytest.importorskip("calarena")
    with h5py.File(tmp_path / "small-binary.h5") as file:
        group = file["adult/RandomForest"]
        row = calarena.experiment(group, "vennforest-pool")
        p, y = group["probas_cal"][:].astype(float), group["labels_cal"][:]
        new, labels = group["probas_test"][:].astype(float), group["labels_test"][:]
    q = PooledCalibration(on="probability").fit(p, y).predict_proba(new)[:, 1]
    log_loss = -np.log(np.where(labels == 1, q, 1 - q)).mean()
    assert row["vennforest-pool_logloss"] == pytest.approx(log_loss, rel=1e-9)
    assert row["vennforest-pool_brier"] == pytest.approx(2 * ((q - labels) ** 2).mean(), rel=1e-9)


def test_calibrators_are_called_as_the_benchmark_calls_its_own(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    calarena = pytest.importorskip("calarena")
    p, y = drawn(np.random.default_rng(0), 300, 3)
    for make in calarena.CUSTOM_CALIBRATORS.values():
        calibrator = make()
        calibrator.fit(p, y)
        answer = calibrator.predict_proba(p[:20])
        assert answer.shape == (20, 3)
        np.testing.assert_allclose(answer.sum(axis=1), 1)
        assert make() is not calibrator
