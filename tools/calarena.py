"""Run the library's calibrators on the files of CalArena, a benchmark of post-hoc calibration.

In a clone of CalArena, with this folder on the path, its file ``custom_calibrators.py`` is the line
``from calarena import CUSTOM_CALIBRATORS``, and its own program writes the results::

    python run_benchmark.py --benchmark tabrepo-binary --calibrator vennforest-pool

Without one, this program reads the same files and writes results of the same form, with Brier score
and log loss alone. It needs h5py::

    python tools/calarena.py tabrepo-binary --benchmarks-dir FOLDER --results-dir results

``{benchmark}-experiments.csv`` lists data sets and models; ``{benchmark}.h5`` has the arrays
``probas_cal``, ``labels_cal``, ``probas_test`` and ``labels_test`` of each, of shape (n,) or (n, 2)
for two classes and (n, k) for more, with labels from 0 to k - 1.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss

from vennforest import PooledCalibration, VectorScaling, VennAbers


class Entrant:
    """A calibrator of this library, called as CalArena calls its own."""

    def __init__(self, calibrator):
        self.calibrator = calibrator

    def fit(self, p, y):
        """Fit to probabilities (n,) or (n, k) and labels (n,) from 0 to k - 1."""
        p = as_probabilities(p)
        # A class without a calibration row is one all the same.
        self.calibrator.fit(scores_of(p), np.asarray(y, int), classes=np.arange(p.shape[1]))
        return self

    def predict_proba(self, p):
        """Return calibrated probabilities (m, k)."""
        return self.calibrator.predict_proba(scores_of(as_probabilities(p)))


CUSTOM_CALIBRATORS = {
    "vennforest-pool": lambda: Entrant(PooledCalibration(on="probability")),
    "vennforest-Venn-Abers": lambda: Entrant(VennAbers("log", on="probability")),
    "vennforest-vector": lambda: Entrant(VectorScaling(on="probability")),
}


def as_probabilities(p):
    """Return probabilities (n, k) as float64 with rows that sum to 1."""
    p = np.clip(np.asarray(p, np.float64), 0, 1)
    if p.ndim == 1 or p.shape[1] == 1:
        return np.column_stack([1 - p.ravel(), p.ravel()])
    return p / p.sum(axis=1, keepdims=True)  # many are stored in single precision


def scores_of(p):
    """Return what a calibrator takes: the second column of two, else all."""
    return p[:, 1] if p.shape[1] == 2 else p


def losses(y, p):
    """Return the measures of CalArena that need no other package: both sum over the classes."""
    brier = ((p - np.eye(p.shape[1])[y]) ** 2).sum(axis=1).mean()
    return {"brier": brier, "logloss": log_loss(y, p, labels=np.arange(p.shape[1]))}


def experiment(arrays, name):
    """Return a row of results: sizes, losses on the test rows, and seconds to fit and predict."""
    p, y, p_test, y_test = (
        arrays[key][:] for key in ("probas_cal", "labels_cal", "probas_test", "labels_test")
    )
    row = {"cal_size": len(y), "test_size": len(y_test)}
    if p.ndim == 2 and p.shape[1] > 2:
        row["n_classes"] = p.shape[1]
    start = time.perf_counter()
    if name == "Base-model":
        calibrated = as_probabilities(p_test)
    else:
        calibrated = CUSTOM_CALIBRATORS[name]().fit(p, y).predict_proba(p_test)
    seconds = time.perf_counter() - start
    measures = losses(np.asarray(y_test, int), calibrated) | {"time": seconds}
    return row | {f"{name}_{measure}": value for measure, value in measures.items()}


def run(benchmark, benchmarks_dir, results_dir, names):
    """Write ``results_dir/benchmark/name.csv`` for each calibrator, and return the mean losses."""
    import h5py

    table = pd.read_csv(Path(benchmarks_dir, f"{benchmark}-experiments.csv"))
    folder = Path(results_dir, benchmark)
    folder.mkdir(parents=True, exist_ok=True)
    means = {}
    with h5py.File(Path(benchmarks_dir, f"{benchmark}.h5"), "r") as file:
        for name in names:
            read = partial(experiment, name=name)
            rows = [
                {"dataset": dataset, "model": model, **read(file[f"{dataset}/{model}"])}
                for dataset, model in zip(table["dataset"], table["model"], strict=True)
            ]
            results = pd.DataFrame(rows)
            results.to_csv(folder / f"{name}.csv", index=False)
            means[name] = (
                results.filter(like=f"{name}_")
                .mean()
                .rename(lambda column, name=name: column.removeprefix(f"{name}_"))
            )
    return pd.DataFrame(means).T


def main(arguments: list[str] | None = None) -> None:
    """Run calibrators on a benchmark and print their mean results."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("benchmark", help="such as tabrepo-binary or cv-multiclass")
    parser.add_argument("--benchmarks-dir", default="calibration_benchmarks")
    parser.add_argument("--results-dir", default="results")
    parser.add_argument("--calibrator", choices=["Base-model", *CUSTOM_CALIBRATORS])
    given = parser.parse_args(arguments)
    chosen = [given.calibrator] if given.calibrator else ["Base-model", *CUSTOM_CALIBRATORS]
    print(run(given.benchmark, given.benchmarks_dir, given.results_dir, chosen).to_string())


if __name__ == "__main__":
    main()
