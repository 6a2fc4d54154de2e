"""Calibration within groups, beside none, isotonic maps a group, and MCGrad.

    python -m experiments.studies.groups DATA_DIR [--splits 5] [-o docs/results/groups.md]

One forest of 100 trees a split, calibrated out of bag; every method has its calibration scores.
"error" is the mean over ten equally filled bins of |mean probability - share|, in the group of the
test rows where it is largest ("worst") and on average over groups ("mean"), groups of 100 test rows
or more; noise makes it larger than 0 for a perfect method. MCGrad (pip install mcgrad) is given the
default's probabilities and the group as its one categorical feature; without the package it is
left out.
"""

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from attrs import evolve
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import log_loss

from vennforest import CalibratedClassifier
from vennforest.classifier.fitted import predict_once
from vennforest.groups import Grouping

LEAST = 100
BINS = 10
CASES = {
    ("adult", 2_000): ["sex", "race", "workclass", "education", "occupation", "native-country"],
    ("adult", 10_000): ["sex", "race", "workclass", "education", "occupation", "native-country"],
    ("covtype_30k", 4_000): ["wilderness", "soil"],
    ("german", 500): ["personal_status", "savings_status"],
}
"""By data set and rows to train on; the correction's ridge was chosen on adult."""


def load(folder, name):
    frame = pd.read_csv(Path(folder) / f"{name}.csv.gz")
    y = frame.pop("target").astype(str)
    positive = {"adult": ">50K", "german": "bad", "covtype_30k": "2"}[name]
    if name == "covtype_30k":
        for kind, column in (("Wilderness_Area", "wilderness"), ("Soil_Type", "soil")):
            own = [c for c in frame if c.startswith(kind)]
            frame[column] = frame[own].to_numpy().argmax(axis=1)
    codes = {c: frame[c] for c in frame if pd.api.types.is_numeric_dtype(frame[c])}
    for c in frame:
        if c not in codes:
            codes[c] = frame[c].astype("category").cat.codes.replace(-1, np.nan)
    table = pd.DataFrame(codes)[list(frame)].astype(float)
    return table, (y == positive).to_numpy().astype(int)


def bin_error(y, p):
    bins = np.array_split(np.argsort(p, kind="stable"), BINS)
    return sum(len(b) * abs(y[b].mean() - p[b].mean()) for b in bins) / len(y)


def isotonic(scores, y, group, new, new_group, everybody):
    p = everybody.copy()
    for g in np.unique(new_group[np.isin(new_group, group)]):
        mine = group == g
        model = IsotonicRegression(out_of_bounds="clip").fit(scores[mine], y[mine])
        p[new_group == g] = model.predict(new[new_group == g])
    return p


def mcgrad(own, y, group, p, new_group):
    from mcgrad.methods import MCGrad

    train = pd.DataFrame({"p": own, "y": y, "g": group.astype(str)})
    new = pd.DataFrame({"p": p, "g": new_group.astype(str)})
    model = MCGrad().fit(train, "p", "y", categorical_feature_column_names=["g"])
    return np.asarray(model.predict(new, "p", categorical_feature_column_names=["g"]))


def by_column(plain, at, X):
    """What ``by=at`` would have fitted, with the same forest."""
    grouping, by = Grouping.fit(at, X, len(X))
    folds = [evolve(fold, by=by[fold.rows]) for fold in plain._state.folds]
    return clone(plain)._calibrate(
        plain.classes_,
        folds,
        plain.calibrate_on_,
        plain.calibrate_on_reason_,
        grouping=grouping,
        n_rows=len(X),
    )


def one_split(table, y, columns, n, seed, peers):
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    train, test = order[:n], order[n:]
    X, new = table.to_numpy()[train], table.to_numpy()[test]
    forest = RandomForestClassifier(100, random_state=seed)
    plain = CalibratedClassifier(forest, random_state=seed).fit(X, y[train])
    bounds, everybody = predict_once(plain, new)
    scores = plain.calibration_scores_
    raw = plain.estimator_.predict_proba(new)[:, 1]
    own = plain.point_calibrator_.predict_proba(scores)[:, 1]
    for column in columns:
        at = list(table.columns).index(column)
        group, new_group = (np.nan_to_num(part[:, at], nan=-1) for part in (X, new))
        within, p = predict_once(by_column(plain, at, X), new)
        said = {
            "none": everybody[:, 1],
            "by": p[:, 1],
            "isotonic": isotonic(scores, y[train], group, raw, new_group, everybody[:, 1]),
        }
        if peers:
            said["MCGrad"] = mcgrad(own, y[train], group, everybody[:, 1], new_group)
        judged = [g for g in np.unique(new_group) if (new_group == g).sum() >= LEAST]
        missed = {}
        for name, found in (("none", bounds), ("by", within)):
            missed[name] = np.mean(
                [
                    not found.p0[m].mean() - noise(y[test][m])
                    <= y[test][m].mean()
                    <= found.p1[m].mean() + noise(y[test][m])
                    for m in (new_group == g for g in judged)
                ]
            )
        widths = {"none": bounds.width[:, 1].mean(), "by": within.width[:, 1].mean()}
        for method, q in said.items():
            errors = [bin_error(y[test][new_group == g], q[new_group == g]) for g in judged]
            yield {
                "column": column,
                "groups": len(judged),
                "method": method,
                "log loss": log_loss(y[test], np.clip(q, 1e-6, 1 - 1e-6)),
                "worst": max(errors),
                "mean": float(np.mean(errors)),
                "missed": missed.get(method, np.nan),
                "width": widths.get(method, np.nan),
            }


def noise(y):
    """Two standard errors of a share."""
    return 2 * float(np.sqrt(y.mean() * (1 - y.mean()) / len(y)))


def page(rows):
    table = pd.DataFrame(rows)
    means = table.groupby(["set", "n", "column", "method"], sort=False).mean()
    lines = [
        "| data, rows to train on | groups by (how many judged) | method | log loss | worst group "
        "| mean group | width of bounds | groups whose share the mean bounds miss |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (name, n, column, method), row in means.iterrows():
        cells = [f"{row[c]:.{d}f}" for c, d in (("log loss", 4), ("worst", 3), ("mean", 4))]
        cells += [
            "" if np.isnan(row[c]) else f"{row[c]:.3f}" if c == "width" else f"{row[c]:.0%}"
            for c in ("width", "missed")
        ]
        where = f"{name}, {n:,}" if method == "none" else ""
        by = f"{column} ({row['groups']:.0f})" if method == "none" else ""
        lines.append(f"| {where} | {by} | {method} | " + " | ".join(cells) + " |")
    lines += ["", "Over all of these, beside no groups (mean difference, in how many better):", ""]
    wide = means.reset_index().pivot_table(
        index=["set", "n", "column"], columns="method", values=["log loss", "worst", "mean"]
    )
    for method in [m for m in table["method"].unique() if m != "none"]:
        parts = []
        for what in ("log loss", "worst", "mean"):
            gap = wide[what][method] - wide[what]["none"]
            parts.append(f"{what} {gap.mean():+.4f} ({(gap < 0).sum()} of {len(gap)})")
        lines.append(f"- {method}: " + ", ".join(parts))
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("-o", "--output")
    options = parser.parse_args()
    try:
        import mcgrad  # noqa: F401

        peers = True
    except ImportError:
        peers = False
        print("mcgrad is not installed: left out", file=sys.stderr)
    rows = []
    for (name, n), columns in CASES.items():
        table, y = load(options.folder, name)
        for seed in range(options.splits):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = list(one_split(table, y, columns, n, seed, peers))
            rows += [{"set": name, "n": n, **row} for row in found]
            print(name, n, seed, "done", file=sys.stderr, flush=True)
    text = page(rows)
    print(text)
    if options.output:
        begin, end = "<!-- table -->\n", "<!-- end of table -->"
        path = Path(options.output)
        before, rest = path.read_text().split(begin)
        path.write_text(before + begin + text + end + rest.split(end)[1])


if __name__ == "__main__":
    main()
