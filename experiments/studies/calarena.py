"""Run our calibrators on CalArena, the benchmark of calibration maps by Berta et al. (2026).

``python -m experiments.studies.calarena FOLDER --benchmark tabrepo-binary`` prints the board: mean
log loss, Brier score and rank of every calibrator that the benchmark published and of ours, over
the experiments of one base model (``--model``, or all of them with ``--model all``). FOLDER is a
copy of https://github.com/probkit/CalArena whose ``calibration_benchmarks`` has the benchmark's
file of scores (from https://huggingface.co/datasets/probkit/CalArena; read by h5py). Our losses
are kept in its ``results``, in the form of the published ones, and are not computed again.

Without FOLDER it prints the published board, from ``results/calarena.csv``, which ``--publish``
writes from a copy of the benchmark.

The protocol is the benchmark's: a calibrator is fitted to the calibration part of an experiment (a
data set and a model) and answers its test part; log probabilities are cut off at that of the
smallest single-precision number, the Brier score is over vectors, and a calibrator that gives no
loss for an experiment has no rank there. The benchmark's own program runs ours too: replace its
``custom_calibrators.py`` by ``from experiments.studies.calarena import CUSTOM_CALIBRATORS``.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd

from vennforest import VennAbers
from vennforest.calibrators import METHODS, PooledCalibration
from vennforest.calibrators.core.interface import make_calibrator


class ForCalArena:
    """A calibrator in that benchmark's form."""

    def __init__(self, calibrator):
        self.calibrator = calibrator

    def fit(self, p, y):
        """Calibrate; a class of which there is no example keeps its column."""
        p = columns(p)
        self.k_ = p.shape[1]
        scores = p[:, 1] if self.k_ == 2 else p
        self.calibrator.fit(scores, np.asarray(y).ravel(), classes=np.arange(self.k_))
        return self

    def predict_proba(self, p):
        """Return probabilities of every class."""
        p = columns(p)
        return self.calibrator.predict_proba(p[:, 1] if self.k_ == 2 else p)


def columns(p):
    """Return probabilities with a column per class, in double precision."""
    p = np.asarray(p, dtype=np.float64)
    if p.ndim == 1:
        p = p[:, None]
    return np.hstack([1 - p, p]) if p.shape[1] == 1 else p


def factories():
    """Return ``{name: function that makes a calibrator}``: the default first, then each method."""
    made = {
        "vennforest": lambda: ForCalArena(PooledCalibration(on="probabilities")),
        "vennforest-venn-abers-midpoint": lambda: ForCalArena(VennAbers(merge="midpoint")),
    }
    for method in METHODS:
        if method not in ("none", "pooled"):
            made[f"vennforest-{method}"] = lambda method=method: ForCalArena(
                make_calibrator(method)
            )
    return made


CUSTOM_CALIBRATORS = factories()

BENCHMARKS = ("tabrepo-binary", "tabrepo-multiclass")
PUBLISHED = Path(__file__).with_name("results") / "calarena.csv"
LOSSES = {"logloss": "log loss", "brier": "Brier score"}
LEAST = float(np.log(np.finfo(np.float32).tiny))
"""Where the benchmark cuts off log probabilities."""

KEYS = ["dataset", "model"]


def losses(p, y):
    """Return the benchmark's log loss and Brier score of probabilities (n, k)."""
    rows = np.arange(len(y))
    with np.errstate(divide="ignore"):
        own = np.maximum(np.log(p[rows, y]), LEAST)
    return float(-own.mean()), float(((p - np.eye(p.shape[1])[y]) ** 2).sum(axis=1).mean())


def run(scores, results, name, model):
    """Compute the losses of one of our calibrators that are not in the folder of results.

    Parameters
    ----------
    scores : mapping
        ``{data set: {model: {part: array}}}``, as in the benchmark's file.
    results : Path
        The folder of results of the benchmark.
    name : str
        Of the calibrator.
    model : str
        The base model, or "all".
    """
    path = results / f"{name}.csv"
    done = pd.read_csv(path).set_index(KEYS).index if path.exists() else ()
    for dataset in sorted(scores):
        for base in sorted(scores[dataset]):
            if (dataset, base) in done or model not in ("all", base):
                continue
            part = {key: np.asarray(values) for key, values in scores[dataset][base].items()}
            start = time.perf_counter()
            calibrator = CUSTOM_CALIBRATORS[name]().fit(part["probas_cal"], part["labels_cal"])
            p = calibrator.predict_proba(part["probas_test"])
            seconds = time.perf_counter() - start
            y = part["labels_test"].ravel().astype(int)
            log_loss, brier = losses(p, y)
            row = {
                "dataset": dataset,
                "model": base,
                "cal_size": len(part["labels_cal"]),
                "test_size": len(y),
                f"{name}_brier": brier,
                f"{name}_logloss": log_loss,
                f"{name}_time": seconds,
            }
            pd.DataFrame([row]).to_csv(path, mode="a", header=not path.exists(), index=False)


def board(results, model):
    """Return the calibrators' mean losses and ranks over the experiments of a base model.

    Parameters
    ----------
    results : Path
        A folder with a file of results for each calibrator.
    model : str
        The base model, or "all".

    Returns
    -------
    DataFrame
        A row for each calibrator, by mean rank of log loss. Experiments that one of ours lacks
        are left out.
    """
    tables = {path.stem: pd.read_csv(path).set_index(KEYS) for path in results.glob("*.csv")}
    # Four of the files are of an ablation, which is not on the board.
    tables = {name: table for name, table in tables.items() if not name.startswith("CB")}
    kept = None
    for name, table in tables.items():
        if name in CUSTOM_CALIBRATORS:
            kept = table.index if kept is None else kept.intersection(table.index)
    found = {}
    for loss, title in LOSSES.items():
        each = pd.DataFrame({name: table[f"{name}_{loss}"] for name, table in tables.items()})
        each = each if kept is None else each.loc[kept]
        each = each if model == "all" else each.xs(model, level="model")
        found |= {title: each.mean(), f"rank by {title}": each.rank(axis=1).mean()}
        found["experiments"] = each.notna().sum()
    return pd.DataFrame(found).sort_values("rank by log loss", kind="stable")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="a copy of the benchmark")
    parser.add_argument("--benchmark", choices=BENCHMARKS, default=BENCHMARKS[0])
    parser.add_argument("--model", default="RandomForest")
    parser.add_argument("--calibrators", nargs="+", default=["vennforest"])
    parser.add_argument("--publish", action="store_true", help="keep the published boards")
    args = parser.parse_args()
    if args.publish:
        parts = {
            (name, model): board(args.folder / "results" / name, model)
            for name in BENCHMARKS
            for model in ("RandomForest", "ExtraTrees", "all")
        }
        whole = pd.concat(parts, names=["benchmark", "model", "calibrator"])
        whole.round(6).to_csv(PUBLISHED)
    elif args.folder is None:
        whole = pd.read_csv(PUBLISHED).set_index(["benchmark", "model"]).sort_index()
        print(whole.loc[args.benchmark, args.model].to_string(index=False))
    else:
        import h5py

        results = args.folder / "results" / args.benchmark
        with h5py.File(args.folder / "calibration_benchmarks" / f"{args.benchmark}.h5") as scores:
            for name in args.calibrators:
                run(scores, results, name, args.model)
        print(board(results, args.model).to_string())


if __name__ == "__main__":
    main()
