"""How rarely a monitor alarms without a change, how soon with one, and what protection costs.

    python -m experiments.studies.monitoring [--streams 1000] [--length 100000] [--repeats 40]

prints one table after another, and keeps the figures in a JSON file (``-o``). Beside the monitor:
the two martingales of MAPIE 1.6 (``OnlineMartingaleTest``: a simple jumper of rate .01, and a
kernel density of past p-values) on the same scores, 1 minus the probability of the true label, with
the same reference. They are written out here, since the package takes seconds a thousand rows;
``--peers`` compares them with the package, and protected probabilities with the package
``protected-classification``, where these are installed. Seeds were drawn once.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numba
import numpy as np
from experiments.studies.drifts import PROCESSES, Process, drawn, stream
from experiments.studies.jumpers import conformal_p_values, log_capital
from numpy.typing import NDArray
from scipy.special import logit
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from vennforest import CalibratedClassifier
from vennforest.monitoring import Monitor, ProtectedClassifier

SEED = 7_340_195_221
REFERENCE = 1000
ALPHA = 0.05
DRIFTS = ("base rate", "rotated", "lost column")


@numba.njit(cache=True)
def plug_in(p, burn_in, out):
    """MAPIE's plug-in martingale: Silverman's kernel density of reflected past p-values.

    Past values count at the middle of one of 400 cells.
    """
    counts = np.zeros(400)
    total = squares = log = 0.0
    for t in range(len(p)):
        if t > 1:
            m = 3 * t
            mean = (2 * t - total) / m
            spread = (3 * squares + 4 * t - 4 * total) / m - mean * mean
            width = np.sqrt(spread * m / (m - 1)) * (m * 3 / 4) ** -0.2
            density = 0.0
            for cell in range(400):
                if counts[cell]:
                    at = (cell + 0.5) / 400
                    for place in (-at, at, 2 - at):
                        z = (p[t] - place) / width
                        density += counts[cell] * np.exp(-z * z / 2)
            density /= t * width * np.sqrt(2 * np.pi)
            share = min(1.0, burn_in / t)
            log += np.log((1 - share) * density + share)
        out[t] = log
        counts[min(int(p[t] * 400), 399)] += 1
        total += p[t]
        squares += p[t] ** 2


def capital(scores: NDArray[Any], y: NDArray[Any], seed: int) -> dict[str, NDArray[Any]]:
    """Logarithm of every method's capital after each row behind the reference."""
    monitor = Monitor(random_state=seed % 2**32).fit_scores(scores[:REFERENCE], y[:REFERENCE])
    found = {"monitor": np.log(monitor.update_scores(scores[REFERENCE:], y[REFERENCE:]))}
    strange = np.where(y, 1 - scores, scores)
    ties = int(np.random.RandomState(seed % (2**32 - 1)).randint(2**31 - 1))
    p = conformal_p_values(strange[REFERENCE:], strange[:REFERENCE], ties)
    found["composite jumper"] = log_capital(p)
    found["MAPIE jumper"] = log_capital(p, [0.01])
    found["MAPIE plug-in"] = np.empty(len(p))
    plug_in(p, 100, found["MAPIE plug-in"])
    return found


def false_alarms(n_streams: int, length: int) -> dict[str, Any]:
    """Share of streams without a change on which there ever is an alarm."""
    alarms = {"labels": 0, "objects": 0}
    begin, spent = time.perf_counter(), 0.0
    process = PROCESSES["linear"]
    for i, seed in enumerate(seeds(n_streams, 0)):
        X, y = stream(process, "none", seed, REFERENCE + length, 0)
        scores = process.scores(X)
        if i % 2:  # few distinct scores, far from calibrated
            scores = np.round(scores**2, 1)
        for watch in alarms:
            monitor = Monitor(watch=watch, random_state=seed % 2**32)
            monitor.fit_scores(scores[:REFERENCE], y[:REFERENCE], classes=[False, True])
            start = time.perf_counter()
            monitor.update_scores(scores[REFERENCE:], y[REFERENCE:] if watch == "labels" else None)
            if watch == "labels":
                spent += time.perf_counter() - start
            alarms[watch] += monitor.alarm_ is not None
        if i % 100 == 99:
            print(f"  {i + 1} streams: {alarms}, {time.perf_counter() - begin:.0f} s", flush=True)
    return {
        "streams": n_streams,
        "length": length,
        "alarms": alarms,
        "microseconds a row": 1e6 * spent / n_streams / length,
    }


def out_of_bag(n_streams: int, length: int) -> dict[str, Any]:
    """Share of alarms without a change where the reference was scored otherwise than the stream.

    Forests of 50 trees on 500 rows, calibrated out of bag, and by two folds; the same forests with
    the rows of the stream scored by all their trees, which is not done.
    """
    alarms = {"out of bag": 0, "two folds": 0, "out of bag, stream by all trees": 0}
    process = PROCESSES["forest"]
    for seed in seeds(n_streams, 4):
        X, y = stream(process, "none", seed, 500 + length, 0)
        forest = RandomForestClassifier(50, min_samples_leaf=3, random_state=seed % 2**32)
        for name in alarms:
            source = {"calibrate_on": "cv", "cv": 2} if name == "two folds" else {}
            model = CalibratedClassifier(forest, random_state=seed % 2**32, **source)
            model.fit(X[:500], y[:500])
            monitor = Monitor(model, random_state=seed % 2**32).fit()
            if name.endswith("all trees"):
                monitor.update_scores(model.estimator_.predict_proba(X[500:])[:, 1], y[500:])
            else:
                monitor.update(X[500:], y[500:])
            alarms[name] += monitor.alarm_ is not None
    return {"streams": n_streams, "length": length, "alarms": alarms}


def delays(
    process: Process, drift: str, n_before: int, repeats: int, horizon: int
) -> dict[str, Any]:
    """Median rows from the change to the alarm, and how many alarms came before it."""
    found: dict[str, list[float]] = {}
    for seed in seeds(repeats, 1):
        X, y = stream(process, drift, seed, REFERENCE + n_before, horizon)
        for name, logs in capital(process.scores(X), y, seed).items():
            over = np.flatnonzero(logs >= -np.log(ALPHA))
            at = float(over[0]) - n_before if len(over) else np.inf
            found.setdefault(name, []).append(at)
    out: dict[str, Any] = {}
    for name, values in found.items():
        late = [value for value in values if value >= 0]
        median = float(np.median(late))
        out[name] = {
            "median": None if np.isinf(median) else median,
            "found": sum(np.isfinite(late)),
            "before": len(values) - len(late),
        }
    return out


def protection(process: Process, drift: str, repeats: int, n: int) -> dict[str, float]:
    """Mean log loss over n rows after a change that comes 2,000 rows after the model.

    ``refitted``: the same kind of model fitted to 3,000 other rows from after the change;
    ``recalibrated``: the model with the sigmoid of its log-odds that fits these n rows best, chosen
    with their labels.
    """
    found: dict[str, list[float]] = {}
    fresh = np.random.default_rng(SEED)
    refitted = clone(process.model()).fit(*drawn(process, drift, fresh, 3000))
    for seed in seeds(repeats, 2):
        X, y = stream(process, drift, seed, 2000, n)
        protected = ProtectedClassifier(process.model())
        protected.update(X[:2000], y[:2000])
        p = process.scores(X[2000:]).clip(1e-6, 1 - 1e-6)
        odds = logit(p)[:, None]
        best = LogisticRegression(C=1e6).fit(odds, y[2000:])
        for name, estimate in (
            ("static", p),
            ("protected", protected.update(X[2000:], y[2000:])[:, 1]),
            ("recalibrated", best.predict_proba(odds)[:, 1]),
            ("refitted", refitted.predict_proba(X[2000:])[:, 1].clip(1e-6, 1 - 1e-6)),
        ):
            found.setdefault(name, []).append(log_loss(y[2000:], estimate))
    return {name: float(np.mean(values)) for name, values in found.items()}


def check_protected() -> None:
    """Compare with the package ``protected-classification``, which mixes for the Brier score."""
    import importlib

    package = importlib.import_module("protected_classification.protected_classification")
    process = PROCESSES["linear"]
    X, y = stream(process, "more frequent", seeds(1, 3)[0], 500, 1000)
    p = process.model().predict_proba(X)
    start = time.perf_counter()
    theirs = package.ProtectedClassification().predict_proba(y=y.astype(int), test_probs=p)
    took = time.perf_counter() - start
    start = time.perf_counter()
    ours = ProtectedClassifier(process.model()).update(X, y)
    spent = time.perf_counter() - start
    for name, estimate, seconds in (
        ("the model", p, 0.0),
        ("protected-classification", theirs, took),
        ("ours", ours, spent),
    ):
        loss, brier = log_loss(y, estimate), float(np.mean((estimate[:, 1] - y) ** 2))
        print(f"{name}: log loss {loss:.4f}, Brier score {brier:.4f}, {seconds:.3f} s")


def seeds(n: int, part: int) -> list[int]:
    """Seeds of one part of the benchmark."""
    drawn = np.random.SeedSequence([SEED, part]).generate_state(n, np.uint32)
    return [int(seed) for seed in drawn]


def check_mapie() -> None:
    """Compare what is written out here with MAPIE's own, on p-values that drift."""
    from mapie.exchangeability_testing.martingales import OnlineMartingaleTest

    p = np.random.default_rng(3).random(1500) ** 1.3
    for name, method in (("jumper", "jumper_martingale"), ("plug-in", "plugin_martingale")):
        own = OnlineMartingaleTest(test_method=method, warn=False)
        theirs = []
        for value in p.tolist():
            if name == "jumper":
                theirs.append(own.update_simple_jumper_martingale(value))
            else:
                theirs.append(own.update_plugin_martingale(value))
            own.pvalue_history.append(value)
        ours = np.empty(len(p))
        if name == "jumper":
            ours = log_capital(p, [0.01])
        else:
            plug_in(p, 100, ours)
        gap = np.abs(np.log(theirs) - ours).max()
        print(f"MAPIE's {name}: log capital {ours[-1]:.3f}, largest difference {gap:.2g}")


def row(name: str, cells: dict[str, Any], horizon: int) -> str:
    """A line of the table of delays."""
    shown = []
    for value in cells.values():
        median = "never" if value["median"] is None else f"{value['median']:,.0f}"
        shown.append(f"{median} ({value['found']}/{value['before']})")
    return f"| {name} | " + " | ".join(shown) + " |"


def excess_row(name: str, found: dict[str, float]) -> str:
    """A line of the table of losses."""
    cells = [f"{value:.4f}" for value in found.values()]
    for best in ("refitted", "recalibrated"):
        excess = found["static"] - found[best]
        left = (found["protected"] - found[best]) / excess if excess > 0.002 else float("nan")
        cells.append(f"{left:.2f}")
    return f"| {name} | " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--length", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--horizon", type=int, default=20_000)
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    figures: dict[str, Any] = {}
    if arguments.peers:
        check_mapie()
        check_protected()
    print("Rows from the change to the alarm: median (found / alarms before the change)")
    for process in PROCESSES.values():
        for n_before in (1000, 10_000):
            for drift in DRIFTS:
                cells = delays(process, drift, n_before, arguments.repeats, arguments.horizon)
                name = f"{process.name}, {drift}, after {n_before:,}"
                if not figures.get("delays"):
                    figures["delays"] = {}
                    print("| change |", " | ".join(cells), "|", flush=True)
                figures["delays"][name] = cells
                print(row(name, cells, arguments.horizon), flush=True)
    print("Mean log loss over 8,000 rows; excess over the refitted model, and what of it is left")
    figures["protection"] = {}
    for process in PROCESSES.values():
        for drift in ("none", *DRIFTS, "more frequent", "noise"):
            found = protection(process, drift, max(1, arguments.repeats // 4), 8000)
            figures["protection"][f"{process.name}, {drift}"] = found
            print(excess_row(f"{process.name}, {drift}", found), flush=True)
    print("Streams without a change, scores from forests that calibrate on their own rows")
    figures["forests"] = out_of_bag(2 * arguments.repeats, 10_000)
    print(figures["forests"], flush=True)
    print("Streams without a change")
    figures["false alarms"] = false_alarms(arguments.streams, arguments.length)
    print(figures["false alarms"])
    if arguments.output:
        arguments.output.write_text(json.dumps(figures, indent=1, default=float) + "\n")


if __name__ == "__main__":
    main()
