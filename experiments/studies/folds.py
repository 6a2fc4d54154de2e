"""Average the folds' models, or refit one on all rows? And Platt scaling on scores or log-odds.

``python -m experiments.studies.folds --collection first --data-dir DATA_DIR`` trains six families
of models on at most 700 rows of each data set: a model a fold and one of all rows. All are read
through one pool of maps, fitted to the scores of rows left out. What is compared on the test rows:

- ``folds``: the mean over the five models; ``folds in logs``: their normalised geometric mean, as
  ``ensemble=True``
- ``refit``: the model of all rows, as ``ensemble=False``
- ``half``, ``half in logs``: the mean of the two
- with ``--pairs``, ``chosen``: the better of the two where a whole fold is left out and the other
  four do the same, which needs a model for each of the ten pairs of folds left out, and ``chosen by
  five pairs``: the same from the pairs of neighbouring folds

Losses and processor seconds are appended split by split to ``results/folds.jsonl``, with pairs to
``folds_pairs.jsonl``; ``--only-kept`` prints the table of ``docs/results/folds.md``.
"""

import argparse
import json
import time
import warnings
from itertools import combinations
from pathlib import Path

import numpy as np
from experiments.studies.default_scores import encoder, keel_folder, make_model, names, read
from experiments.studies.mixtures import losses
from sklearn.impute import SimpleImputer
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from vennforest import PlattScaling, PooledCalibration
from vennforest.sources.base import model_scores

SEED = 316_810
LARGEST, TRAIN, FOLDS = 1_500, 700, 5
FAMILIES = ("network", "boosting", "svm", "neighbours", "bayes", "tree")
WAYS = ("folds", "refit", "half", "folds in logs", "half in logs")
RESULTS = Path(__file__).with_name("results")


def model_of(family):
    """Return an unfitted model of a family."""
    scaled = encoder(make_pipeline(SimpleImputer(), StandardScaler()))
    if family == "svm":
        return make_pipeline(scaled, SVC())
    if family == "neighbours":
        return make_pipeline(scaled, KNeighborsClassifier(15))
    if family == "tree":
        return make_pipeline(encoder(), DecisionTreeClassifier(random_state=0))
    if family == "bayes":
        return make_pipeline(scaled, GaussianNB(var_smoothing=1e-3))
    return make_model(family)


def log_mean(each):
    """Return the normalised geometric mean of probabilities."""
    means = np.exp(np.mean(np.log(np.maximum(each, 1e-300)), axis=0))
    return means / means.sum(axis=1, keepdims=True)


class Models:
    """The scores that models give to rows they have not seen, and the seconds of each kind."""

    def __init__(self, family, X, y, new, pairs):
        self.y, self.k = y, int(y.max()) + 1
        classes = np.arange(self.k)
        parts = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED).split(X, y)
        self.rows = [test for _, test in parts]
        self.out, self.new, self.pairs, self.seconds = {}, {}, {}, {}

        def fit(left_out):
            kept = np.setdiff1d(np.arange(len(y)), np.concatenate([[], *left_out]).astype(int))
            start = time.process_time()
            model = model_of(family).fit(X.iloc[kept], y[kept])
            kind = len(left_out)
            self.seconds[kind] = self.seconds.get(kind, 0) + time.process_time() - start
            return model

        for f in range(FOLDS):
            model = fit([self.rows[f]])
            self.out[f] = model_scores(model, X.iloc[self.rows[f]], classes)
            self.new[f] = model_scores(model, new, classes)
        self.all = model_scores(fit([]), new, classes)
        for f, g in combinations(range(FOLDS), 2) if pairs else ():
            model = fit([self.rows[f], self.rows[g]])
            self.pairs[f, g] = model_scores(model, X.iloc[self.rows[g]], classes)
            self.pairs[g, f] = model_scores(model, X.iloc[self.rows[f]], classes)

    def pool(self, parts, calibrator=None):
        """Return a calibrator fitted to (scores, rows) pairs."""
        scores, rows = zip(*parts, strict=True)
        calibrator = PooledCalibration() if calibrator is None else calibrator
        y = self.y[np.concatenate(rows)]
        return calibrator.fit(np.concatenate(scores), y, classes=np.arange(self.k))

    def left_out(self, f, others):
        """Return losses on fold f: mean of the models of the other folds, one model, half."""
        rows = self.rows[f]
        pool = self.pool([(self.pairs[f, g], self.rows[g]) for g in others])
        mean = np.mean([pool.predict_proba(self.pairs[g, f]) for g in others], axis=0)
        one = pool.predict_proba(self.out[f])
        return [losses(p, self.y[rows])[0] * len(rows) for p in (mean, one, (mean + one) / 2)]

    def measure(self, ytest):
        """Return losses on the test rows and on the folds, Platt's two forms, and seconds."""
        parts = [(self.out[f], self.rows[f]) for f in range(FOLDS)]
        pool = self.pool(parts)
        each = [pool.predict_proba(self.new[f]) for f in range(FOLDS)]
        mean, one = np.mean(each, axis=0), pool.predict_proba(self.all)
        found = {"folds": losses(mean, ytest), "refit": losses(one, ytest)}
        found["half"] = losses((mean + one) / 2, ytest)
        found["folds in logs"] = losses(log_mean(each), ytest)
        found["half in logs"] = losses(log_mean([log_mean(each), one]), ytest)
        ring = {f: [(f + 1) % FOLDS, (f - 1) % FOLDS] for f in range(FOLDS)}
        for name, of in (("nested", None), ("ring", ring)) if self.pairs else ():
            each = [
                self.left_out(f, of[f] if of else [g for g in range(FOLDS) if g != f])
                for f in range(FOLDS)
            ]
            found[name] = (np.array(each) / len(self.y)).tolist()
        try:
            for on in ("score", "logit"):
                platt = self.pool(parts, PlattScaling(on=on))
                found[f"platt {on}"] = losses(platt.predict_proba(self.all), ytest)
        except ValueError:  # scores that are no probabilities
            found.pop("platt score", None)
        return found


def splits_of(collection, name, folder):
    """Yield (number, X, y, train, test): two splits of sets of up to 300 rows, else one."""
    X, y = read(collection, name, folder)
    X, y = X.iloc[:LARGEST], y[:LARGEST]
    kept = np.bincount(y)[y] >= 12
    X, y = X.iloc[kept], np.unique(y[kept], return_inverse=True)[1]
    if len(np.unique(y)) < 2:
        return
    n_train = min(TRAIN, int(0.7 * len(y)))
    cut = StratifiedShuffleSplit(2 if len(y) <= 300 else 1, train_size=n_train, random_state=SEED)
    for number, (train, test) in enumerate(cut.split(X, y)):
        yield number, X, y, train, test


def kept(results):
    """Return the measured splits."""
    lines = results.read_text().splitlines() if results.exists() else []
    return [json.loads(line) for line in lines]


def run(collection, families, data_dir, minutes, pairs, results):
    """Measure the splits that were not, small sets first, and append them to the results."""
    start = time.monotonic()
    done = {(r["collection"], r["family"], r["set"], r["split"]) for r in kept(results)}
    folder = data_dir if collection == "first" else keel_folder()
    for name in names(collection, folder):
        for number, X, y, train, test in splits_of(collection, name, folder):
            for family in families:
                if (collection, family, name, number) in done:
                    continue
                if time.monotonic() - start > 60 * minutes:
                    return
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        models = Models(family, X.iloc[train], y[train], X.iloc[test], pairs)
                        found = models.measure(y[test])
                except ValueError as error:  # boosting refuses a column without values in a fold
                    print(name, number, family, error, flush=True)
                    continue
                one = {"collection": collection, "family": family, "set": name, "split": number}
                one |= {"k": models.k, "rows": len(train), "losses": rounded(found)}
                one["seconds"] = [round(s, 3) for _, s in sorted(models.seconds.items())]
                with results.open("a") as file:
                    print(json.dumps(one), file=file)
            print(name, number, len(train), flush=True)


def ways(losses):
    """Return the test log loss of each way, and of Platt's two forms where there are any."""
    found = {name: losses[name][0] for name in WAYS if name in losses}
    for name, kept_as in (("chosen", "nested"), ("chosen by five pairs", "ring")):
        if kept_as not in losses:
            continue
        folds, refit, _ = np.sum(losses[kept_as], axis=0)
        found[name] = found["folds" if folds <= refit else "refit"]
    return found


def table(results):
    """Return a Markdown table: mean log loss of each way, and its excess over the better of two."""
    names = list(ways(results[0]["losses"]))
    lines = ["| | sets | " + " | ".join(names) + " | folds minus refit |"]
    lines.append("|---" * (len(names) + 3) + "|")
    for family in FAMILIES:
        sets = {}
        for one in results:
            if one["family"] == family:
                sets.setdefault(one["set"], []).append(list(ways(one["losses"]).values()))
        if len(sets) < 5:
            continue
        each = np.array([np.mean(of_set, axis=0) for of_set in sets.values()])
        best = each.mean(axis=0)[:2].min()
        cells = [f"{m:.4f} ({m - best:+.4f})" for m in each.mean(axis=0)]
        change = each[:, 0] - each[:, 1]
        error = change.std(ddof=1) / len(change) ** 0.5
        lines.append(
            f"| {family} | {len(sets)} | {' | '.join(cells)} | {change.mean():+.4f} ± {error:.4f} |"
        )
    return "\n".join(lines)


def rounded(found):
    """Return the losses with six decimals."""
    return {name: np.round(values, 6).tolist() for name, values in found.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--collection", choices=("first", "keel"), default="first")
    parser.add_argument("--families", nargs="+", default=FAMILIES)
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--only-kept", action="store_true", help="print what was measured before")
    parser.add_argument("--pairs", action="store_true", help="a model for each pair of folds too")
    args = parser.parse_args()
    results = RESULTS / ("folds_pairs.jsonl" if args.pairs else "folds.jsonl")
    if not args.only_kept:
        run(args.collection, args.families, args.data_dir, args.minutes, args.pairs, results)
    if measured := [one for one in kept(results) if one["collection"] == args.collection]:
        print(table(measured))
