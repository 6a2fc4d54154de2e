"""Is a forest of several kinds of trees sharper, and what do scikit-learn's folds gain by trees?

``python -m experiments.studies.confirm --collection keel`` fits, on every split of
`experiments.studies.mixtures`, the default's forest, forests of several kinds of trees, and
scikit-learn's sigmoid and temperature over five folds, each forest of 300 trees. Beside them:
temperature scaling on the out-of-bag scores of one forest and of one with as many trees as five
folds have, and over folds of 60 trees. Losses and processor seconds are appended to
``results/confirm.jsonl`` split by split: a stopped run goes on where it was;
``--only-kept`` prints the tables of ``docs/results/mixtures.md``.
"""

import argparse
import copy
import json
import time
import warnings
from pathlib import Path

import numpy as np
from experiments.studies.default_scores import encoder, keel_folder, names
from experiments.studies.mixtures import losses, splits_of
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import StratifiedKFold

from vennforest import CalibratedClassifier, MixedForestClassifier

SEED = 235_220
"""Drawn once; of the forests. The splits have that of the study of mixtures."""

TREES = 300
FOLDS = 5
RESULTS = Path(__file__).with_name("results") / "confirm.jsonl"
DEFAULT = "forest, default"
MIXED = {
    "mixed forest": {},
    "mixed forest, leaves 1 3": {"min_samples_leaf": [1, 3]},
    "mixed forest, leaves and features": {
        "min_samples_leaf": [1, 3],
        "max_features": ["sqrt", 0.5],
    },
}


class Clock:
    """Processor seconds since it was last read."""

    def __init__(self):
        self.start = time.process_time()

    def read(self):
        """Return the seconds, and start again."""
        now = time.process_time()
        passed, self.start = now - self.start, now
        return passed


def folded(seen, y, new, forests, tests, method):
    """Return the mean of what scikit-learn's calibrators make of the forests of the folds.

    As ``CalibratedClassifierCV(forest, method=method, cv=5).predict_proba``, whose forests are
    fitted once for all methods.
    """
    answers = []
    for forest, test in zip(forests, tests, strict=True):
        halves = np.array_split(np.arange(len(test)), 2)
        model = CalibratedClassifierCV(
            FrozenEstimator(forest), method=method, cv=[halves, halves[::-1]]
        )  # the splits are of no account to a frozen model
        answers.append(model.fit(seen[test], y[test]).predict_proba(new))
    return np.mean(answers, axis=0)


def first_trees(forest, n_trees):
    """Return the forest of so many of the trees."""
    part = copy.copy(forest)
    part.estimators_, part.n_estimators = forest.estimators_[:n_trees], n_trees
    return part


def measure(X, y, train, test, seed):
    """Return {way: [log loss, Brier score, processor seconds]} on the test rows of a split."""
    columns = encoder()
    seen, new = columns.fit_transform(X.iloc[train]), columns.transform(X.iloc[test])
    found, clock = {}, Clock()

    def keep(way, p, shared=0.0):
        found[way] = [*losses(p, y[test]), clock.read() + shared]

    def ours(forest):
        return CalibratedClassifier(forest, random_state=seed).fit(seen, y[train])

    model = ours(RandomForestClassifier(TREES))
    keep(DEFAULT, model.predict_proba(new))
    seconds = found[DEFAULT][2]
    for method in ("temperature", "sigmoid"):
        name = "platt" if method == "sigmoid" else method
        keep(f"forest, {method}", model.recalibrate(name).predict_proba(new), seconds)
    for way, given in MIXED.items():
        keep(way, ours(MixedForestClassifier(TREES, **given)).predict_proba(new))
    many = ours(RandomForestClassifier(TREES * FOLDS))
    keep("1,500 trees, default", many.predict_proba(new))
    seconds = found["1,500 trees, default"][2]
    keep("1,500 trees, temperature", many.recalibrate("temperature").predict_proba(new), seconds)
    pairs = list(StratifiedKFold(FOLDS).split(seen, y[train]))
    forests = [
        RandomForestClassifier(TREES, random_state=seed + f).fit(seen[a], y[train][a])
        for f, (a, _) in enumerate(pairs)
    ]
    seconds = clock.read()
    tests = [b for _, b in pairs]
    for method in ("temperature", "sigmoid"):
        p = folded(seen, y[train], new, forests, tests, method)
        keep(f"five folds of 300 trees, {method}", p, seconds)
    few = [first_trees(forest, TREES // FOLDS) for forest in forests]
    p = folded(seen, y[train], new, few, tests, "temperature")
    keep("five folds of 60 trees, temperature", p, seconds / FOLDS)
    return {way: [round(float(v), 6) for v in figures] for way, figures in found.items()}


def run(collection, data_dir, minutes):
    """Measure the splits that were not, small sets first, and append them to the results."""
    start = time.monotonic()
    done = {(one["collection"], one["set"], one["split"]) for one in kept()}
    folder = data_dir if collection == "first" else keel_folder()
    for name in names(collection, folder):
        for number, X, y, train, test in splits_of(collection, name, folder):
            if (collection, name, number) in done:
                continue
            if time.monotonic() - start > 60 * minutes:
                return
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = measure(X, y, train, test, SEED + number)
            one = {"collection": collection, "set": name, "split": number}
            one |= {"k": int(y.max()) + 1, "rows": len(train), "losses": found}
            with RESULTS.open("a") as file:
                print(json.dumps(one), file=file)
            print(name, number, len(train), flush=True)


def kept():
    """Return the measured splits."""
    lines = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    return [json.loads(line) for line in lines]


def table(results):
    """Return a Markdown table of differences in loss from the default."""
    sets = {}
    for one in results:
        sets.setdefault(one["set"], []).append(list(one["losses"].values()))
    ways = list(results[0]["losses"])
    figures = np.array([np.mean(each, axis=0) for each in sets.values()])
    change = figures - figures[:, [0]]
    error = change[:, :, 0].std(axis=0, ddof=1) / np.sqrt(len(figures))
    lines = [
        "| | log loss | against the default | better on | Brier score | processor time |",
        "|---|---|---|---|---|---|",
    ]
    for j, way in enumerate(ways):
        against = f"{change[:, j, 0].mean():+.4f} ± {error[j]:.4f}" if j else ""
        won = f"{(change[:, j, 0] < 0).sum()} of {len(figures)}" if j else ""
        seconds = figures[:, j, 2].sum() / figures[:, 0, 2].sum()
        lines.append(
            f"| {way} | {figures[:, j, 0].mean():.4f} | {against} | {won} "
            f"| {figures[:, j, 1].mean():.4f} | {seconds:.2f} |"
        )
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--collection", choices=("first", "keel"), default="keel")
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--only-kept", action="store_true", help="print what was measured before")
    args = parser.parse_args()
    if not args.only_kept:
        run(args.collection, args.data_dir, args.minutes)
    for many in (False, True):
        of_kind = [
            one for one in kept() if (one["k"] > 2) == many and one["collection"] == args.collection
        ]
        if of_kind:
            print(
                f"\n{'more than two classes' if many else 'two classes'}",
                table(of_kind),
                sep="\n\n",
            )


if __name__ == "__main__":
    main()
