"""Which forest calibrates best: kinds of trees, mixed in one ensemble, at equal numbers of trees.

``python -m experiments.studies.mixtures --data-dir DATA_DIR`` grows blocks of trees of every kind
(splits searched or drawn, leaf size, features at a split) and keeps, for each block, the sums of
its out-of-bag answers and of its answers for test rows. Any mixture of kinds is then a sum of
blocks, and needs no tree again. Losses go into ``results/mixtures.jsonl``; the tables
of ``docs/results/mixtures.md`` are printed. A stopped run goes on where it was.

``--tuning`` compares, on the kept sums, the leaf size and features chosen by the raw and by the
calibrated out-of-bag log loss (``docs/how-to/tuning.md``); its losses are in
``results/tuning.jsonl``.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from experiments.studies.default_scores import encoder, keel_folder, names, read
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit

from vennforest import PooledCalibration
from vennforest.forest import Membership, PackedForest

SEED = 582_414
"""Chosen before the first run; no other was tried."""

LARGEST = 2_000
TREES = 25
"""Trees in a block."""

SEARCHED = [("best", leaf, part) for leaf, part in ((1, "sqrt"), (3, "sqrt"), (10, "sqrt"))]
SEARCHED += [("best", leaf, part) for leaf, part in ((1, 0.5), (3, 0.5), (1, 1.0))]
KINDS = SEARCHED + [("random", leaf, part) for _, leaf, part in SEARCHED]
WHOLE = (("best", 1, "sqrt"), ("random", 1, "sqrt"))
"""Kinds of which there are 300 trees; of the others, 100."""

FOLDS = 5
RESULTS = Path(__file__).with_name("results") / "mixtures.jsonl"
TUNING = RESULTS.with_name("tuning.jsonl")


def n_blocks(kind):
    """Return how many blocks of trees of a kind are grown."""
    return 12 if kind in WHOLE else 4


def forest_of(kind, n_trees, seed):
    """Return an unfitted forest of one kind of trees."""
    splitter, leaf, part = kind
    make = RandomForestClassifier if splitter == "best" else ExtraTreesClassifier
    return make(
        n_trees, min_samples_leaf=leaf, max_features=part, bootstrap=True, random_state=seed
    )


def splits_of(collection, name, folder):
    """Yield (number, X, y, train, test) of a data set: two splits of small ones, else one."""
    X, y = read(collection, name, folder)
    rng = np.random.default_rng([SEED, *name.encode()])
    order = rng.permutation(len(y))[:LARGEST]
    kept = order[np.bincount(y[order])[y[order]] >= 8]
    X, y = X.iloc[kept], np.unique(y[kept], return_inverse=True)[1]
    cut = StratifiedShuffleSplit(
        2 if len(y) <= 700 else 1, test_size=0.3, random_state=int(rng.integers(2**31))
    )
    for number, (train, test) in enumerate(cut.split(X, y)):
        yield number, X, y, train, test


def grow(X, y, train, test, seed):
    """Return the sums of every block of every kind, and processor seconds of each kind."""
    columns = encoder()
    seen, new = columns.fit_transform(X.iloc[train]), columns.transform(X.iloc[test])
    rng = np.random.default_rng(seed)
    arrays = {"y": y[train], "ytest": y[test]}
    for number, kind in enumerate(KINDS):
        own, outside, answers, seconds = [], [], [], 0.0
        for _ in range(n_blocks(kind)):
            forest = forest_of(kind, TREES, int(rng.integers(2**31)))
            start = time.process_time()
            forest.fit(seen, y[train])
            seconds += time.process_time() - start
            packed = PackedForest.from_forest(forest)
            bags = Membership.from_forest(forest, len(train))
            count = bags.counts()
            mean = packed.scores(seen, bags, np.arange(len(train)))
            own.append((np.nan_to_num(mean).T * count).T)
            outside.append(count)
            answers.append(packed.scores(new) * TREES)
        arrays[f"own{number}"] = np.array(own, dtype=np.float32)
        arrays[f"count{number}"] = np.array(outside, dtype=np.int16)
        arrays[f"test{number}"] = np.array(answers, dtype=np.float32)
        arrays[f"seconds{number}"] = seconds / len(own) / TREES
    return arrays


class Blocks:
    """The kept sums of one split."""

    def __init__(self, arrays):
        self.arrays = arrays
        self.y, self.ytest = arrays["y"], arrays["ytest"]
        self.k = int(self.y.max()) + 1

    def scores(self, shares):
        """Return out-of-bag scores and test scores of {kind: trees}, and seconds to grow it."""
        own = count = new = total = seconds = 0
        for kind, n_trees in shares.items():
            number, blocks = KINDS.index(kind), n_trees // TREES
            assert blocks * TREES == n_trees
            own = own + self.arrays[f"own{number}"][:blocks].sum(axis=0, dtype=float)
            count = count + self.arrays[f"count{number}"][:blocks].sum(axis=0, dtype=int)
            new = new + self.arrays[f"test{number}"][:blocks].sum(axis=0, dtype=float)
            total += n_trees
            seconds += n_trees * float(self.arrays[f"seconds{number}"])
        free = count > 0
        return (own[free].T / count[free]).T, self.y[free], new / total, seconds

    def raw_loss(self, shares):
        """Return the log loss of the out-of-bag scores as they are."""
        cal, y, _, _ = self.scores(shares)
        cal = _sums(cal)
        return losses(np.column_stack([1 - cal, cal]) if cal.ndim == 1 else cal, y)[0]

    def calibrated_loss(self, shares):
        """Return the log loss of the calibrated out-of-bag scores, cross-fitted over five folds.

        As that of ``CalibratedClassifier.oob_probability_``: no row is in its own calibrator.
        """
        cal, y, _, _ = self.scores(shares)
        cal, total = _sums(cal), 0.0
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
        for a, b in folds.split(cal, y):
            pool = PooledCalibration(on="probabilities")
            pool.fit(cal[a], y[a], classes=np.arange(self.k))
            total += losses(pool.predict_proba(cal[b]), y[b])[0] * len(b)
        return total / len(y)

    def calibrated(self, shares):
        """Return probabilities of the test rows by the library's default map, and seconds."""
        cal, y, new, seconds = self.scores(shares)
        pool = PooledCalibration(on="probabilities").fit(_sums(cal), y, classes=np.arange(self.k))
        return pool.predict_proba(_sums(new)), seconds

    def stacked(self, groups):
        """Return probabilities by groups of trees weighed out of bag, and seconds.

        Logistic regression over the groups' log-probabilities, cross-fitted over five folds for
        the map's calibration scores.
        """
        parts = [self.scores(group) for group in groups]
        if any(len(part[1]) < len(self.y) for part in parts):
            return None
        cal, new = (np.hstack([_logs(part[j]) for part in parts]) for j in (0, 2))
        model = LogisticRegression(C=1.0, max_iter=2000)
        out = np.zeros((len(self.y), self.k))
        for a, b in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(cal, self.y):
            out[b] = clone(model).fit(cal[a], self.y[a]).predict_proba(cal[b])
        new = model.fit(cal, self.y).predict_proba(new)
        if self.k == 2:
            out, new = out[:, 1], new[:, 1]
        pool = PooledCalibration(on="probabilities").fit(out, self.y, classes=np.arange(self.k))
        return pool.predict_proba(new), sum(part[3] for part in parts)


def _sums(scores):
    """Return scores whose rows sum to one exactly enough after single precision."""
    return scores if scores.ndim == 1 else scores / scores.sum(axis=1, keepdims=True)


def _logs(scores):
    """Return log-odds (n, 1) or centred log-probabilities (n, k)."""
    if scores.ndim == 1:
        p = np.clip(scores, 1e-3, 1 - 1e-3)
        return np.log(p / (1 - p))[:, None]
    logs = np.log(np.clip(scores, 1e-3, 1))
    return logs - logs.mean(axis=1, keepdims=True)


def losses(p, y):
    """Return mean log loss and mean Brier score over vectors."""
    rows = np.arange(len(y))
    wrong = p.copy()
    wrong[rows, y] -= 1
    own = np.clip(p[rows, y], 1e-15, 1)
    return [float(-np.log(own).mean()), float((wrong**2).sum(axis=1).mean())]


def equal(kinds, n_trees):
    """Return {kind: trees}, as equal as whole blocks allow."""
    blocks, rest = divmod(n_trees // TREES, len(kinds))
    return {kind: TREES * (blocks + (j < rest)) for j, kind in enumerate(kinds)}


RF, ET = WHOLE
MIXTURES = {
    "forest": {RF: 300},
    "extra trees": {ET: 300},
    "half and half": equal([RF, ET], 300),
    "forest, leaves 1 3 10": equal([("best", leaf, "sqrt") for leaf in (1, 3, 10)], 300),
    "forest, features mixed": equal([("best", 1, part) for part in ("sqrt", 0.5, 1.0)], 300),
    "extra trees, features mixed": equal([("random", 1, p) for p in ("sqrt", 0.5, 1.0)], 300),
    "both, features mixed": equal(
        [(s, 1, part) for part in ("sqrt", 0.5, 1.0) for s in ("best", "random")], 300
    ),
    "both, features sqrt and half": equal(
        [(s, 1, part) for part in ("sqrt", 0.5) for s in ("best", "random")], 300
    ),
    "both, leaves 1 3": equal(
        [(s, leaf, "sqrt") for leaf in (1, 3) for s in ("best", "random")], 300
    ),
    "both, leaves and features": equal(
        [
            (s, leaf, part)
            for leaf, part in ((1, "sqrt"), (3, "sqrt"), (1, 0.5), (3, 0.5))
            for s in ("best", "random")
        ],
        300,
    ),
    "all kinds": equal(KINDS, 300),
    "extra trees, all features": {("random", 1, 1.0): 100},
    "forest, 100 trees": {RF: 100},
    "half and half, 100 trees": equal([RF, ET], 100),
    "eight kinds, 200 trees": equal([k for k in KINDS if k[1] < 10][:8], 200),
}
GROUPS = {
    "stack of two": [{RF: 150}, {ET: 150}],
    "stack of six": [
        {kind: 50}
        for kind in (
            RF,
            ET,
            ("best", 1, 0.5),
            ("random", 1, 0.5),
            ("best", 10, "sqrt"),
            ("random", 1, 1.0),
        )
    ],
}


def measure(blocks):
    """Return {mixture: [log loss, Brier score, seconds]} of one split."""
    found = {}
    for name, shares in MIXTURES.items():
        p, seconds = blocks.calibrated(shares)
        found[name] = [*losses(p, blocks.ytest), seconds]
    for name, groups in GROUPS.items():
        if (both := blocks.stacked(groups)) is not None:
            found[name] = [*losses(both[0], blocks.ytest), both[1]]
    return found


def measure_settings(blocks):
    """Return [raw and calibrated out-of-bag loss, test loss] of 100 trees of every searched kind.

    The test loss is that after calibration.
    """
    found = []
    for kind in SEARCHED:
        shares = {kind: 100}
        test = losses(blocks.calibrated(shares)[0], blocks.ytest)[0]
        each = [blocks.raw_loss(shares), blocks.calibrated_loss(shares), test]
        found.append([round(loss, 6) for loss in each])
    return found


def run_tuning(keep):
    """Measure the settings of every kept split that was not measured, and append the losses."""
    lines = TUNING.read_text().splitlines() if TUNING.exists() else []
    done = {(one["set"], one["split"]) for one in map(json.loads, lines)}
    for path in sorted(keep.glob("first-*.npz"), key=lambda path: path.stat().st_size):
        name, number = path.stem.removeprefix("first-").rsplit("-", 1)
        if (name, int(number)) in done:
            continue
        with np.load(path) as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            blocks = Blocks(dict(file))
            one = {"set": name, "split": int(number), "k": blocks.k, "rows": len(blocks.y)}
            one["losses"] = measure_settings(blocks)
        with TUNING.open("a") as file:
            print(json.dumps(one), file=file)


def chosen(results, many, by):
    """Return what choosing by a column of losses changes against the first setting, set by set.

    The changes are those of the out-of-bag loss it was chosen by and of the test loss,
    (sets, 2), means of splits; then the share of splits in which each setting was chosen,
    (settings,), means of sets.
    """
    changes, settings = {}, {}
    for one in results:
        if (one["k"] > 2) == many:
            found = np.array(one["losses"])
            best = int(np.argmin(found[:, by]))
            changes.setdefault(one["set"], []).append((found[best] - found[0])[[by, 2]])
            settings.setdefault(one["set"], []).append(np.arange(len(found)) == best)
    means = [np.array([np.mean(v, axis=0) for v in each.values()]) for each in (changes, settings)]
    return means[0], means[1].mean(axis=0)


def tuning_table(results):
    """Return Markdown tables: what was gained by tuning, and which settings were chosen."""
    lines = [
        "| | chosen by the | out-of-bag loss it was chosen by | test log loss, calibrated "
        "| better / worse / equal |",
        "|---|---|---|---|---|",
    ]
    shares = ["| | chosen by the | " + " | ".join(f"{leaf}, {part}" for _, leaf, part in SEARCHED)]
    shares = [shares[0] + " |", "|---" * (len(SEARCHED) + 2) + "|"]
    for many in (False, True):
        for by, name in enumerate(("raw loss", "calibrated loss")):
            change, share = chosen(results, many, by)
            classes = f"{'more' if many else 'two'} classes, {len(change)} sets"
            own, test = (f"{d.mean():+.4f} ± {d.std(ddof=1) / len(d) ** 0.5:.4f}" for d in change.T)
            counts = " / ".join(str((np.sign(change[:, 1]) == s).sum()) for s in (-1, 1, 0))
            lines.append(f"| {classes} | {name} | {own} | {test} | {counts} |")
            shares.append(f"| {classes} | {name} | " + " | ".join(f"{s:.2f}" for s in share) + " |")
    return "\n".join([*lines, "", *shares])


def run(args):
    """Grow what is not there yet, and return what every split measures."""
    folder = args.data_dir if args.collection == "first" else keel_folder()
    found = []
    for name in names(args.collection, folder):
        for number, X, y, train, test in splits_of(args.collection, name, folder):
            path = args.keep / f"{args.collection}-{name}-{number}.npz"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if not path.exists():
                    np.savez(path, **grow(X, y, train, test, [SEED, number, *name.encode()]))
                with np.load(path) as file:
                    blocks = Blocks(dict(file))
                kept = {"set": name, "split": number, "k": blocks.k, "rows": len(blocks.y)}
                found.append(kept | {"losses": measure(blocks)})
            print(name, number, len(y), flush=True)
    return found


def of_kind(results, many):
    """Return the names of the mixtures and their figures, (sets, mixtures, 3), means of splits."""
    sets = {}
    for one in results:
        if (one["k"] > 2) == many:
            sets.setdefault(one["set"], []).append(one["losses"])
    every = [
        name for name in (*MIXTURES, *GROUPS) if all(name in r for v in sets.values() for r in v)
    ]
    return every, np.array(
        [np.mean([[r[name] for name in every] for r in v], axis=0) for v in sets.values()]
    )


def table(results, many):
    """Return a Markdown table: differences from the forest of 300 trees."""
    every, figures = of_kind(results, many)
    base = figures[:, [every.index("forest")]]
    change = figures - base
    error = change[:, :, 0].std(axis=0, ddof=1) / np.sqrt(len(figures))
    lines = [
        "| ensemble | log loss | against the forest | better on | Brier score | processor time |",
        "|---|---|---|---|---|---|",
    ]
    for j, name in enumerate(every):
        against = f"{change[:, j, 0].mean():+.4f} ± {error[j]:.4f}" if name != "forest" else ""
        won = f"{(change[:, j, 0] < 0).sum()} of {len(figures)}" if name != "forest" else ""
        seconds = figures[:, j, 2].sum() / base[:, 0, 2].sum()
        lines.append(
            f"| {name} | {figures[:, j, 0].mean():.4f} | {against} | {won} "
            f"| {figures[:, j, 1].mean():.4f} | {seconds:.2f} |"
        )
    return "\n".join(lines)


def picture(results, path):
    """Draw the differences in log loss from the forest, with standard errors."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "mixtures"
    from matplotlib.figure import Figure

    figure = Figure((7, 3.6), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for ax, many in zip(axes, (False, True), strict=True):
        every, figures = of_kind(results, many)
        change = figures[:, :, 0] - figures[:, [every.index("forest")], 0]
        shown = [n for n in every if "100" not in n and "200" not in n and n != "forest"]
        shown = [n for n in shown if n in MIXTURES][::-1]
        for place, name in enumerate(n for n in shown if n != "extra trees, all features"):
            d = change[:, every.index(name)]
            ax.errorbar(d.mean(), place, xerr=d.std(ddof=1) / len(d) ** 0.5, fmt="o", color="C0")
        ax.set_yticks(range(len(shown) - 1), [n for n in shown if n != "extra trees, all features"])
        ax.axvline(0, color="grey", linewidth=0.8)
        ax.set_title("more than two classes" if many else "two classes")
        ax.set_xlabel("log loss minus the forest's")
    figure.savefig(path, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--keep", type=Path, default=Path("mixtures"))
    parser.add_argument("--collection", choices=("first", "keel"), default="first")
    parser.add_argument("--only-kept", action="store_true", help="print what was measured before")
    parser.add_argument("--tuning", action="store_true", help="choices of leaf size and features")
    parser.add_argument("--picture", type=Path)
    args = parser.parse_args()
    if args.tuning:
        if not args.only_kept:
            run_tuning(args.keep)
        print(tuning_table([json.loads(line) for line in TUNING.read_text().splitlines()]))
        return
    if not args.only_kept:
        args.keep.mkdir(exist_ok=True)
        lines = [json.dumps(one) for one in run(args)]
        RESULTS.write_text("\n".join(lines) + "\n")
    results = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    print(table(results, False), table(results, True), sep="\n\n")
    if args.picture:
        picture(results, args.picture)


if __name__ == "__main__":
    main()
