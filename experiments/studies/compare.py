"""Beside the alternatives: features, losses and speed of the packages that calibrate.

``make compare``, or ``python -m experiments.studies.compare -o FILE``, runs whatever of these is
installed (``pip install 'vennforest[compare]'``) and says which versions; what is not
installed is left out, and named. Every package gets the same forest or the same scores, with its
own defaults where it has any (``experiments/studies/compare_ways.py``).

Losses: a forest of 100 trees, folds of each data set, small sets first. Ours and the tuned forest
get the whole training part; a package that takes a fitted model or scores gets a third held out, as
its documentation says, or what a user could give it by hand, the forest's out-of-bag scores. Each
measurement is kept (``--results``) and not made again for the same versions of the packages;
``--minutes 0`` makes none, and writes the page. Speed: fit to 20,000 scores, answer 20,000.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from experiments.studies.compare_ways import DEFAULT, WAYS, Split, installed
from experiments.studies.default_scores import encoder
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.impute import SimpleImputer
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold

from vennforest import VennAbers
from vennforest.calibrators import PooledCalibration
from vennforest_experiments.comparison import compare
from vennforest_experiments.datasets import catalogue, load
from vennforest_experiments.plots import CriticalDifferenceDisplay

WORDS = Path(__file__).with_name("compare_words.md")
RESULTS = Path(__file__).parent / "results" / "compare.jsonl"
FLOOR = 1e-15
SHIPPED = {"breast cancer": load_breast_cancer, "wine": load_wine}

TWINS = {
    "wine": "the shipped one",
    "australian": "credit_a",
    "cleveland": "heart_c",
    "spectf": "spect",
}
"""Sets of the same cases as another: tests of ranks take data sets to be independent."""

LEAST = 9
"""Rows of the rarest class: six remain to train, and five folds of these can be made."""

LARGEST = 4_000
"""Rows from which on a set is left to `experiments.studies.defaults`."""


def named():
    """Return the names of the sets in the catalogue that are run, small ones first."""
    facts = sorted(catalogue().values(), key=lambda entry: entry.rows)
    return [
        entry.name
        for entry in facts
        if entry.name not in TWINS
        and entry.rows <= LARGEST
        and min(entry.class_counts.values()) >= LEAST
    ]


def read(name, data_dir):
    """Return features as a table or an array, and the classes' codes."""
    if name in SHIPPED:
        X, y = SHIPPED[name](return_X_y=True, as_frame=True)
    else:
        found = load(name, data_dir)
        X, y = found.X, found.y
    return X, np.unique(y, return_inverse=True)[1]


def brier(y, p):
    """Return the mean squared distance of vectors, 0 to 2."""
    return np.mean(((p - np.eye(p.shape[1])[y]) ** 2).sum(axis=1))


def splits(X, y, folds, trees):
    """Return `Split` and test rows of every fold; text as indicators, medians for blanks."""
    found = []
    for train, test in StratifiedKFold(folds, shuffle=True, random_state=0).split(X, y):
        numbers = encoder(SimpleImputer(strategy="median")).fit(X.iloc[train])
        parts = [np.asarray(numbers.transform(X.iloc[rows]), float) for rows in (train, test)]
        found.append((Split(parts[0], y[train], parts[1], trees), test))
    return found


def measure(way, parts, y):
    """Return a way's losses, width and CPU seconds over the folds."""
    p, widths, start = np.zeros((len(y), y.max() + 1)), [], time.process_time()
    saved = sum(split.seconds for split, _ in parts)
    for split, test in parts:
        p[test], width = way(split)
        widths += [] if width is None else [width]
    seconds = time.process_time() - start + sum(split.seconds for split, _ in parts) - saved
    if not np.isfinite(p).all():
        raise ValueError("gives NaN")
    clipped = np.clip(p, FLOOR, 1)
    clipped /= clipped.sum(axis=1, keepdims=True)
    return {
        "log loss": log_loss(y, clipped, labels=np.arange(p.shape[1])),
        "Brier": float(brier(y, p)),
        "width": float(np.mean(widths)) if widths else None,
        "seconds": round(seconds, 2),
    }


def run(path, sets, data_dir, there, folds, trees, minutes):
    """Measure what is not in the file yet, set by set, until the time is up; return everything."""
    ways = {name: way for name, (package, way) in WAYS.items() if package in (None, *there)}
    found = [json.loads(line) for line in path.open()] if path.exists() else []

    def key(r):
        return r["set"], r["way"], r["folds"], r["trees"], json.dumps(r["versions"])

    done = {key(record) for record in found}
    start = time.monotonic()
    for title in sets:
        parts = None
        for name, way in ways.items():
            used = ["vennforest", "scikit-learn", WAYS[name][0]]
            versions = {package: there[package] for package in dict.fromkeys(used) if package}
            record = {"set": title, "way": name, "folds": folds, "trees": trees}
            record["versions"] = versions
            if key(record) in done or time.monotonic() - start >= 60 * minutes:
                continue
            if parts is None:
                X, y = read(title, data_dir)
                parts = splits(X, y, folds, trees)
                record["rows"] = len(y)
            record["classes"] = int(y.max()) + 1
            try:
                record |= measure(way, parts, y)
            except Exception as error:  # another package's failure is a result
                if name.startswith("vennforest"):
                    raise
                record["failure"] = f"{type(error).__name__}: {error}".split("\n")[0][:100]
            found.append(record)
            with path.open("a") as file:
                file.write(json.dumps(record) + "\n")
        print(title, flush=True)
    return [r for r in found if r["folds"] == folds and r["trees"] == trees]


def complete(records, there):
    """Return ``{set: {way: record}}`` of the sets that every way has run, and failures."""
    ways = [name for name, (package, _) in WAYS.items() if package in (None, *there)]
    sets = {}
    for r in records:
        if all(there.get(package) == v for package, v in r["versions"].items()):
            sets.setdefault(r["set"], {})[r["way"]] = r
    sets = {title: rows for title, rows in sets.items() if set(rows) >= set(ways)}
    failures = [r for rows in sets.values() for r in rows.values() if "failure" in r]
    return sets, failures


def speed(there, n=20_000, repeats=5):
    """Return ``{what: (seconds to fit n scores, seconds to answer n)}``, medians of CPU time."""
    rng = np.random.default_rng(0)
    s, new = rng.random(n), rng.random(n)
    y = (rng.random(n) < s**2).astype(int)
    two, two_new = np.column_stack([1 - s, s]), np.column_stack([1 - new, new])

    def venn_abers():
        from venn_abers import VennAbers as Peer

        peer = Peer()
        peer.fit(two, y)
        return lambda: peer.predict_proba(two_new)

    def isotonic():
        from sklearn.isotonic import IsotonicRegression

        model = IsotonicRegression(out_of_bounds="clip").fit(s, y)
        return lambda: model.predict(new)

    def ours(calibrator):
        def fit():
            model = calibrator.fit(s, y)
            return lambda: model.predict_proba(new)

        return fit

    def betacal():
        from betacal import BetaCalibration

        model = BetaCalibration(parameters="abm").fit(s[:, None], y)
        return lambda: model.predict(new)

    def netcal():
        from netcal.scaling import LogisticCalibration

        model = LogisticCalibration()
        model.fit(s, y)
        return lambda: model.transform(new)

    def probmetrics(name):
        def fit():
            from probmetrics.calibrators import get_calibrator

            model = get_calibrator(name)
            model.fit(two, y)
            return lambda: model.predict_proba(two_new)

        return fit

    work = {
        "vennforest, Venn–Abers": (None, ours(VennAbers(merge="log"))),
        "venn-abers, Venn–Abers": ("venn-abers", venn_abers),
        "scikit-learn, isotonic regression (no bounds)": ("scikit-learn", isotonic),
        "vennforest, pool (the default's point)": (
            None,
            ours(PooledCalibration(on="probabilities")),
        ),
        "probmetrics, logistic": ("probmetrics", probmetrics("logistic")),
        "probmetrics, sms": ("probmetrics", probmetrics("sms")),
        "betacal": ("betacal", betacal),
        "netcal, logistic": ("netcal", netcal),
    }
    found = {}
    for name, (package, fit) in work.items():
        if package in (None, *there):
            fit()()
            times = []
            for _ in range(repeats):
                marks = [time.process_time()]
                model = fit()
                marks.append(time.process_time())
                model()
                marks.append(time.process_time())
                times.append(np.diff(marks))
            found[name] = np.median(times, axis=0)
    return found


def losses_table(sets):
    """Return the lines of the table over some sets, best mean rank of log loss first."""
    names = [
        n for n in WAYS if all(n in rows and "failure" not in rows[n] for rows in sets.values())
    ]
    tables = {
        what: np.array([[rows[n][what] for n in names] for rows in sets.values()])
        for what in ("log loss", "Brier", "seconds")
    }
    compared = {
        what: compare(tables[what], lower_is_better=True, methods=names)
        for what in ("log loss", "Brier")
    }
    ranks = {what: np.asarray(c.mean_ranks) for what, c in compared.items()}
    own = tables["log loss"][:, names.index(DEFAULT)]
    lines = [
        "| | log loss | mean rank | better than the default on | Brier score | mean rank | width "
        "| CPU seconds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for i in np.argsort(ranks["log loss"], kind="stable"):
        widths = [rows[names[i]]["width"] for rows in sets.values()]
        width = "" if None in widths else f"{np.mean(widths):.3f}"
        better = (tables["log loss"][:, i] < own).sum()
        lines.append(
            f"| {names[i]} | {tables['log loss'][:, i].mean():.4f} | {ranks['log loss'][i]:.2f} | "
            f"{'' if names[i] == DEFAULT else f'{better} of {len(sets)}'} | "
            f"{tables['Brier'][:, i].mean():.4f} | {ranks['Brier'][i]:.2f} | {width} | "
            f"{tables['seconds'][:, i].sum():.0f} |"
        )
    difference = compared["log loss"].critical_difference()
    apart = ranks["log loss"] - ranks["log loss"][names.index(DEFAULT)]
    told = (
        f"Two mean ranks differ significantly from {difference:.2f} on (Nemenyi, 5%): by log loss "
        f"the default is ahead of {sum(apart >= difference)} of the {len(names) - 1} others and "
        f"behind {sum(apart <= -difference) or 'none'}; the rest are too near to tell."
    )
    return [*lines, "", told], compared["log loss"]


def page(there, missing, records, times, folds, trees):
    """Return the page as text, and the comparison over all sets."""
    sets, failures = complete(records, there)
    parts = {
        "Two classes": {t: rows for t, rows in sets.items() if rows[DEFAULT]["classes"] == 2},
        "More than two classes": {
            t: rows for t, rows in sets.items() if rows[DEFAULT]["classes"] > 2
        },
    }
    lines = [WORDS.read_text("utf-8").rstrip("\n"), "", "## Losses", ""]
    lines.append(
        f"{len(sets)} data sets, {folds} folds each, forests of {trees} trees, text as indicators, "
        "medians for missing cells; means over the data sets; log loss cut off at 1e-15, Brier "
        "score over vectors; rank 1 is best. Width: mean width of the bounds of the likeliest "
        "class, where the package was asked for bounds. CPU seconds: all fits and answers, on one "
        "thread."
    )
    _, compared = losses_table(sets)
    picture = "![Mean ranks by log loss over all data sets; bars join what does not differ]"
    lines += ["", f"{picture}(../pictures/compare.svg)", ""]
    lines += [f"Mean ranks by log loss over all {len(sets)}: 1 is best, and what a bar joins does "
              "not differ significantly (Nemenyi, 5%)."]  # fmt: skip
    for heading, some in parts.items():
        if not some:
            continue
        lines += ["", f"### {heading}", "", f"{len(some)} data sets: {', '.join(some)}.", ""]
        lines += losses_table(some)[0]
    if failures:
        lines += ["", "Failures:", ""]
        lines += [f"- {r['way']} on {r['set']}: {r['failure']}" for r in failures]
    left = [f"{name} (the cases of {why})" for name, why in TWINS.items()]
    lines += [
        "",
        f"Left out: sets in which a class has fewer than {LEAST} rows, sets with more than "
        f"{LARGEST:,} rows, and {', '.join(left)}.",
    ]
    if waiting := [name for name in named() if name not in sets]:
        lines[-1] += f" Not run yet: {', '.join(waiting)}."
    lines += ["", "## Speed", ""]
    lines += [
        "Seconds of CPU to fit 20,000 scores of two classes, and to answer 20,000 new ones, "
        "medians of five; no forest is in it. The pool's time goes into fitting five maps twice, "
        "to all scores and without a part that weighs them, and into choosing their shrinkage.",
        "",
        "| | fit | answer |",
        "|---|---|---|",
    ]
    lines += [f"| {name} | {fit:.4f} | {answer:.4f} |" for name, (fit, answer) in times.items()]
    told = ", ".join(f"{name} {v}" for name, v in there.items())
    lines += ["", "## Versions", "", f"Python {platform.python_version()}, {told}."]
    if missing:
        lines += ["", f"Not installed, and not run: {', '.join(missing)}."]
    return "\n".join(lines) + "\n", compared


def draw(compared, path):
    """Draw the mean ranks over all sets."""
    display = CriticalDifferenceDisplay.from_comparison(compared)
    with plt.rc_context({"svg.hashsalt": "vennforest"}):
        display.figure_.savefig(path, metadata={"Date": None}, bbox_inches="tight")


def main():
    """Run and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=Path("docs/results/compare.md"))
    parser.add_argument("--data-dir", type=Path, help="folder of the named data sets")
    parser.add_argument("--sets", help="names of sets, with commas between them; not all")
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=np.inf, help="then the page is written")
    parser.add_argument("--results", type=Path, default=RESULTS, help="kept measurements")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    there, missing = installed()
    sets = args.sets.split(",") if args.sets else [*SHIPPED, *named()]
    records = run(args.results, sets, args.data_dir, there, args.folds, args.trees, args.minutes)
    text, compared = page(there, missing, records, speed(there), args.folds, args.trees)
    args.output.write_text(text, encoding="utf-8")
    draw(compared, args.output.parent / "pictures" / "compare.svg")


if __name__ == "__main__":
    main()
