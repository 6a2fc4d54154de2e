"""Many classes: is the method that the report recommends right? ``python -m studies.many_classes``.

Rows of twelve classes are drawn from normal distributions of ten columns, whose centres and
frequencies are drawn too, and the report is made of 2,000 of them. A line for each draw and number
of trees has the report's advice, the recommended method's log loss and the lowest of all methods,
their difference with its 95 % interval, and confidence and accuracy of the default. The default,
and what the advice says to fit, then predict 20,000 new rows, fitted to all 2,000. Lines are
appended to a file; what is in it is not run again. A table of means is printed at the end.
"""

import argparse
import json
import re
import secrets
from collections import Counter
from pathlib import Path

import numpy as np
from sklearn.metrics import log_loss

from vennforest import CalibratedClassifier, MixedForestClassifier
from vennforest.report import evaluate

CLASSES, COLUMNS, ROWS, NEW = 12, 10, 2_000, 20_000
TREES = (30, 100, 300)
DEFAULT = "venn-abers"


def drawn(rng):
    """Return rows and labels to train on, and new ones."""
    centres = rng.normal(size=(CLASSES, COLUMNS)) * rng.uniform(0.7, 1.5)
    shares = rng.dirichlet(np.full(CLASSES, 3.0))
    y = rng.choice(CLASSES, ROWS + NEW, p=shares)
    X = centres[y] + rng.normal(size=(len(y), COLUMNS))
    return X[:ROWS], y[:ROWS], X[ROWS:], y[ROWS:]


def fitted(X, y, trees, **options):
    """Return a calibrated forest."""
    forest = MixedForestClassifier(trees, random_state=0, n_jobs=1)
    return CalibratedClassifier(forest, random_state=0, **options).fit(X, y)


def measure(rng_seed, trees):
    """Return what one report says, and what the default does to new rows."""
    X, y, X_new, y_new = drawn(np.random.default_rng(rng_seed))
    found = evaluate(X, y, n_folds=5, n_trees=trees, n_jobs=1)
    method, measures = found.verdict.method, found.measures
    best = min(measures, key=lambda name: measures[name].log_loss)
    gap = found.verdict.against.get(best)
    sentence = found.advice().sentence
    enough = re.search(r"Train about ([\d,]+) trees", sentence)
    options = {"method": method}
    if enough is not None:
        options = {"trees": int(enough[1].replace(",", ""))}
    elif sentence.startswith("Calibrate on folds"):
        options = {"method": method, "calibrate_on": "cv", "ensemble": False}
    line = {
        "action": found.advice().action,
        "sentence": sentence,
        "method": method,
        "best": best,
        "log_loss": measures[method].log_loss,
        "lowest": measures[best].log_loss,
        "worse_by": 0.0 if gap is None else -gap.mean,
        "margin": 0.0 if gap is None else gap.margin,
    }
    for kind, own in (("default", {}), ("advised", options)):
        p = fitted(X, y, **{"trees": trees, **own}).predict_proba(X_new)
        line |= {
            f"{kind}_new_log_loss": log_loss(y_new, p, labels=np.arange(CLASSES)),
            f"{kind}_new_confidence": p.max(axis=1).mean(),
            f"{kind}_new_accuracy": (p.argmax(axis=1) == y_new).mean(),
        }
    for name in dict.fromkeys([DEFAULT, method]):
        kind = "default" if name == DEFAULT else "recommended"
        line[f"{kind}_accuracy"] = measures[name].accuracy
        line[f"{kind}_confidence"] = measures[name].accuracy + measures[name].overconfidence
        line[f"{kind}_error"] = measures[name].miscalibration
    return {key: float(v) if isinstance(v, np.floating) else v for key, v in line.items()}


def main():
    """Run what is missing, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    options = parser.parse_args()
    text = options.path.read_text("utf-8") if options.path.exists() else ""
    lines = [json.loads(line) for line in text.splitlines()]
    done = {tuple(line["key"]) for line in lines}
    for draw in range(options.draws):
        for trees in TREES:
            if (options.seed, draw, trees) in done:
                continue
            found = measure([options.seed, draw], trees)
            lines.append({"key": [options.seed, draw, trees], **found})
            with options.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(lines[-1], ensure_ascii=False) + "\n")
    print("Points: accuracy minus confidence in the predicted label, mean and range.\n")
    heads = ["trees", "draws", "advice", "log loss above the lowest", "default: on the page"]
    heads += ["default: new rows", "as advised: new rows", "log loss of these two"]
    print("|", " | ".join(heads), "|\n" + len(heads) * "|---" + "|")
    for trees in TREES:
        own = [line for line in lines if line["key"][2] == trees]
        said = Counter(re.split(r"[:\d]| by ", line["sentence"])[0].strip() for line in own)
        worst = max(line["worse_by"] / (line["margin"] or np.inf) for line in own)
        cells = [trees, len(own), ", ".join(f"{n} × {what}" for what, n in said.most_common())]
        cells += [f"at most {worst:.2f} of its margin"]
        for kind in ("default", "default_new", "advised_new"):
            gaps = [100 * (line[f"{kind}_accuracy"] - line[f"{kind}_confidence"]) for line in own]
            cells.append(f"{np.mean(gaps):.1f} ({min(gaps):.1f} to {max(gaps):.1f})")
        losses = (
            np.mean([line[f"{k}_new_log_loss"] for line in own]) for k in ("default", "advised")
        )
        print("|", " | ".join(map(str, [*cells, ", ".join(f"{one:.3f}" for one in losses)])), "|")


if __name__ == "__main__":
    main()
