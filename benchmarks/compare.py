"""Beside the alternatives: features, losses and speed of the packages that calibrate.

``make compare``, or ``python -m benchmarks.compare -o docs/compare.md``, runs whatever of these is
installed (``pip install 'vennforest[compare]'``) and says which versions; what is not installed is
left out, and named. Every package gets the same forest or the same scores, with its own defaults
where it has any.

Losses: a forest of 100 trees, folds of each data set. Ours and the tuned forest get the whole
training part; a package that only takes scores gets those of a third held out, from a forest that
was trained on the rest, as its documentation says. Speed: fit to 20,000 scores, answer 20,000.
"""

from __future__ import annotations

import argparse
import importlib
import platform
import time
import warnings
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split

from vennforest import CalibratedClassifier, VennAbers, __version__
from vennforest.calibrators import PooledCalibration
from vennforest.comparison import compare
from vennforest.datasets import load

PACKAGES = {
    "vennforest": "vennforest",
    "scikit-learn": "sklearn",
    "venn-abers": "venn_abers",
    "mapie": "mapie",
    "crepes": "crepes",
    "calibrated-explanations": "calibrated_explanations",
    "betacal": "betacal",
    "netcal": "netcal",
    "probmetrics": "probmetrics",
}
WORDS = Path(__file__).with_name("compare_words.md")
FLOOR = 1e-15
NAMED = "diabetes,haberman,heart_s,ionosphere,liver,sonar,breast_w,glass"
SHIPPED = {"breast cancer": load_breast_cancer, "wine": load_wine}


def installed():
    """Return ``{package: version}`` of those that can be imported, and the names of the others."""
    there, missing = {}, []
    for package, module in PACKAGES.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                importlib.import_module(module)
            there[package] = __version__ if package == "vennforest" else version(package)
        except (ImportError, PackageNotFoundError):
            missing.append(package)
    return there, missing


# Each takes a forest that is not fitted, training data and new objects, and returns probabilities
# (n, k), and bounds of the likeliest class where there are any.


def whole(make):
    """Return a way that fits one estimator to all training data."""

    def way(forest, X, y, new):
        model = make(forest).fit(X, y)
        p = model.predict_proba(new)
        if not hasattr(model, "predict_multiprobability"):
            return p, None
        m = model.predict_multiprobability(new)
        return p, np.take_along_axis(m.width, p.argmax(axis=1)[:, None], axis=1).mean()

    return way


def held_out(calibrate):
    """Return a way that calibrates the scores of a held-out third."""

    def way(forest, X, y, new):
        X, X_cal, y, y_cal = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=0)
        fitted = clone(forest).fit(X, y)
        return calibrate(fitted, X_cal, y_cal, new)

    return way


def tuned(forest, X, y, new):
    """A forest tuned for depth and leaf size by log loss, and not calibrated."""
    grid = {"min_samples_leaf": [1, 3, 10], "max_depth": [None, 8]}
    search = GridSearchCV(forest, grid, scoring="neg_log_loss", cv=3, error_score=-np.inf)
    return search.fit(X, y).predict_proba(new), None


def venn_abers_inductive(model, X, y, new):
    """venn-abers on held-out scores."""
    from venn_abers import VennAbersCalibrator

    calibrator = VennAbersCalibrator()
    p_cal, p_new = model.predict_proba(X), model.predict_proba(new)
    p = calibrator.predict_proba(p_cal=p_cal, y_cal=y, p_test=p_new)
    return p, None


def mapie_venn_abers(model, X, y, new):
    """MAPIE's Venn-Abers over a fitted model."""
    from mapie.calibration import VennAbersCalibrator

    return VennAbersCalibrator(model, cv="prefit").fit(X, y).predict_proba(new), None


def one_vs_rest(fit):
    """Return a way for a map of two classes, applied to each class and normalised."""

    def way(model, X, y, new):
        p_cal, p_new = model.predict_proba(X), model.predict_proba(new)
        k = p_cal.shape[1]
        columns = [1] if k == 2 else range(k)
        answers = [fit(p_cal[:, j], (y == j).astype(int), p_new[:, j]) for j in columns]
        p = np.column_stack(answers)
        p = np.hstack([1 - p, p]) if k == 2 else p
        total = p.sum(axis=1, keepdims=True)
        return np.where(total > 0, p / np.where(total > 0, total, 1), 1 / p.shape[1]), None

    return way


def betacal(s, y, new):
    """betacal's three parameters."""
    from betacal import BetaCalibration

    return BetaCalibration(parameters="abm").fit(s[:, None], y).predict(new)


def netcal(s, y, new):
    """netcal's logistic calibration."""
    from netcal.scaling import LogisticCalibration

    calibrator = LogisticCalibration()
    calibrator.fit(s, y)
    return np.asarray(calibrator.transform(new)).ravel()


def probmetrics(model, X, y, new):
    """probmetrics' default."""
    from probmetrics.calibrators import get_calibrator

    calibrator = get_calibrator("logistic")
    calibrator.fit(model.predict_proba(X), y)
    return np.asarray(calibrator.predict_proba(model.predict_proba(new))), None


def frozen(method):
    """Return a way with scikit-learn's calibration of a fitted model."""

    def way(model, X, y, new):
        calibrated = CalibratedClassifierCV(FrozenEstimator(model), method=method).fit(X, y)
        return calibrated.predict_proba(new), None

    return way


def calibrated_explanations(model, X, y, new):
    """calibrated-explanations' probabilities, Venn-Abers over a fitted model."""
    from calibrated_explanations import WrapCalibratedExplainer

    wrapped = WrapCalibratedExplainer(model)
    wrapped.calibrate(X, y)
    return np.asarray(wrapped.predict_proba(new)), None


WAYS = {
    "vennforest, default": (None, whole(lambda f: CalibratedClassifier(f, random_state=0))),
    "vennforest, matrix": (
        None,
        whole(lambda f: CalibratedClassifier(f, method="matrix", random_state=0)),
    ),
    "vennforest, held out": (
        None,
        held_out(
            lambda m, X, y, new: whole(lambda f: CalibratedClassifier(FrozenEstimator(f)))(
                m, X, y, new
            )
        ),
    ),
    "the forest itself": (None, whole(lambda f: f)),
    "the forest, tuned": (None, tuned),
    "scikit-learn, sigmoid, 5 folds": (
        "scikit-learn",
        whole(lambda f: CalibratedClassifierCV(f, method="sigmoid")),
    ),
    "scikit-learn, isotonic, 5 folds": (
        "scikit-learn",
        whole(lambda f: CalibratedClassifierCV(f, method="isotonic")),
    ),
    "scikit-learn, temperature, 5 folds": (
        "scikit-learn",
        whole(lambda f: CalibratedClassifierCV(f, method="temperature")),
    ),
    "scikit-learn, temperature, held out": ("scikit-learn", held_out(frozen("temperature"))),
    "venn-abers, held out": ("venn-abers", held_out(venn_abers_inductive)),
    "MAPIE, Venn-Abers, held out": ("mapie", held_out(mapie_venn_abers)),
    "calibrated-explanations, held out": (
        "calibrated-explanations",
        held_out(calibrated_explanations),
    ),
    "betacal, held out": ("betacal", held_out(one_vs_rest(betacal))),
    "netcal, logistic, held out": ("netcal", held_out(one_vs_rest(netcal))),
    "probmetrics, logistic, held out": ("probmetrics", held_out(probmetrics)),
}


def data(data_dir, named):
    """Return ``{name: (X, y)}``: the named sets where there is a folder, and the shipped ones."""
    sets = {name: shipped(return_X_y=True) for name, shipped in SHIPPED.items()}
    for name in named if data_dir else ():
        found = load(name, data_dir)
        sets[name] = found.X, found.y
    return {name: (np.asarray(X, float), np.unique(y, return_inverse=True)[1])
            for name, (X, y) in sets.items()}  # fmt: skip


def brier(y, p):
    """Return the mean squared distance of vectors, 0 to 2."""
    return np.mean(((p - np.eye(p.shape[1])[y]) ** 2).sum(axis=1))


def losses(sets, there, folds, trees=100):
    """Return ``{way: {set: (log loss, Brier score, width or None, seconds)}}``, and failures."""
    ways = {name: way for name, (package, way) in WAYS.items() if package in (None, *there)}
    results, failures = {name: {} for name in ways}, {}
    for title, (X, y) in sets.items():
        splits = list(StratifiedKFold(folds, shuffle=True, random_state=0).split(X, y))
        for name, way in ways.items():
            forest = RandomForestClassifier(trees, random_state=0)
            parts, widths, start = np.zeros((len(y), y.max() + 1)), [], time.perf_counter()
            try:
                for train, test in splits:
                    p, width = way(forest, X[train], y[train], X[test])
                    parts[test] = p
                    widths += [] if width is None else [width]
            except Exception as error:  # another package's failure is a result
                if name.startswith("vennforest"):
                    raise
                failures[name, title] = f"{type(error).__name__}: {error}".split("\n")[0][:100]
                continue
            seconds = time.perf_counter() - start
            if not np.isfinite(parts).all():
                failures[name, title] = "gives NaN"
                continue
            clipped = np.clip(parts, FLOOR, 1)
            clipped /= clipped.sum(axis=1, keepdims=True)
            results[name][title] = (
                log_loss(y, clipped, labels=np.arange(parts.shape[1])),
                brier(y, parts),
                float(np.mean(widths)) if widths else None,
                seconds,
            )
        print(title, flush=True)
    return results, failures


def speed(there, n=20_000, repeats=3):
    """Return ``{what: seconds}`` of fitting n scores and answering n, medians."""
    rng = np.random.default_rng(0)
    s, new = rng.random(n), rng.random(n)
    y = (rng.random(n) < s**2).astype(int)
    two, two_new = np.column_stack([1 - s, s]), np.column_stack([1 - new, new])

    def ours():
        VennAbers(merge="log").fit(s, y).predict_proba(new)

    def pooled():
        PooledCalibration(on="probabilities").fit(s, y).predict_proba(new)

    def venn_abers():
        from venn_abers import VennAbers as Peer

        peer = Peer()
        peer.fit(two, y)
        peer.predict_proba(two_new)

    def isotonic():
        from sklearn.isotonic import IsotonicRegression

        IsotonicRegression(out_of_bounds="clip").fit(s, y).predict(new)

    def logistic():
        from probmetrics.calibrators import get_calibrator

        calibrator = get_calibrator("logistic")
        calibrator.fit(two, y)
        calibrator.predict_proba(two_new)

    work = {
        "vennforest, Venn–Abers": (None, ours),
        "venn-abers, Venn–Abers": ("venn-abers", venn_abers),
        "scikit-learn, isotonic regression (no bounds)": ("scikit-learn", isotonic),
        "vennforest, pool (the default's point)": (None, pooled),
        "probmetrics, logistic": ("probmetrics", logistic),
        "betacal": ("betacal", lambda: betacal(s, y, new)),
        "netcal, logistic": ("netcal", lambda: netcal(s, y, new)),
    }
    found = {}
    for name, (package, run) in work.items():
        if package in (None, *there):
            run()
            times = []
            for _ in range(repeats):
                start = time.perf_counter()
                run()
                times.append(time.perf_counter() - start)
            found[name] = float(np.median(times))
    return found


def page(there, missing, results, failures, times, sets, folds):
    """Return the page as text."""
    complete = {name: found for name, found in results.items() if len(found) == len(sets)}
    names = list(complete)
    lines = [WORDS.read_text("utf-8").rstrip("\n"), "", "## Losses", ""]
    lines.append(
        f"Means over {len(sets)} data sets ({', '.join(sets)}), {folds} folds, forests of "
        "100 trees; log loss cut off at 1e-15, Brier score over vectors; rank 1 is best. "
        "*Held out*: a third of the training part calibrates, and does not train. Width: mean "
        "width of the bounds of the likeliest class, where the package was asked for bounds. "
        "Seconds: all fits and answers, on a machine that was busy otherwise: only large "
        "ratios mean anything."
    )
    tables = [np.array([[complete[n][s][i] for n in names] for s in sets]) for i in (0, 1)]
    compared = [compare(table, lower_is_better=True, methods=names) for table in tables]
    ranks = [np.asarray(c.mean_ranks) for c in compared]
    lines += ["", "| | log loss | mean rank | Brier score | mean rank | width | seconds |"]
    lines += ["|---|---|---|---|---|---|---|"]
    for i in np.argsort(ranks[0]):
        widths = [complete[names[i]][s][2] for s in sets]
        width = "" if None in widths else f"{np.mean(widths):.3f}"
        seconds = sum(complete[names[i]][s][3] for s in sets)
        lines.append(
            f"| {names[i]} | {tables[0][:, i].mean():.4f} | {ranks[0][i]:.2f} | "
            f"{tables[1][:, i].mean():.4f} | {ranks[1][i]:.2f} | {width} | {seconds:.0f} |"
        )
    difference = compared[0].critical_difference()
    lines += ["", f"Two mean ranks differ significantly from {difference:.2f} on (Nemenyi, 5%)."]
    for (name, title), why in failures.items():
        lines.append(f"- {name} on {title}: {why}")
    lines += [
        "",
        "## Speed",
        "",
        "Fit to 20,000 scores, answer 20,000; two classes, medians.",
        "",
    ]
    lines += ["| | seconds |", "|---|---|"]
    lines += [f"| {name} | {seconds:.4f} |" for name, seconds in times.items()]
    told = ", ".join(f"{name} {v}" for name, v in there.items())
    lines += ["", "## Versions", "", f"Python {platform.python_version()}, {told}."]
    if missing:
        lines += ["", f"Not installed, and not run: {', '.join(missing)}."]
    return "\n".join(lines) + "\n"


def main():
    """Run and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=Path("docs/compare.md"))
    parser.add_argument("--data-dir", type=Path, help="folder of the named data sets")
    parser.add_argument("--sets", default=NAMED, help="names of these, with commas between them")
    parser.add_argument("--folds", type=int, default=5)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    there, missing = installed()
    sets = data(args.data_dir, args.sets.split(","))
    results, failures = losses(sets, there, args.folds)
    text = page(there, missing, results, failures, speed(there), sets, args.folds)
    args.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
