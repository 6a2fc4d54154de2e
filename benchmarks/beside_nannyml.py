"""Estimated performance beside NannyML's CBPE: the same forests, reference rows and new rows.

    python benchmarks/beside_nannyml.py run 60 PYTHON    PYTHON: of an environment with nannyml

NannyML is for Python below 3.13 and has requirements of its own, so it runs in a process of its
own. Draws are those of ``estimated_performance``, and its sets split by place: a forest of 150
trees is fitted to one part, another part with labels is the reference of both libraries, and what
each expects of the new rows, in one chunk, is compared with what is observed.
"""

import json
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

METRICS = ("accuracy", "precision", "recall", "auc")
THEIRS = ("accuracy", "precision", "recall", "roc_auc")
RESULTS = Path(__file__).parent / "results" / "beside_nannyml.md"


def cases(number, seed):
    """Yield name, rows and labels to fit to, of the reference, and new."""
    from estimated_performance import places, process

    for i in range(number):
        rng = np.random.default_rng([seed, i])
        sample, n = process(rng), int(rng.choice([400, 1500]))
        fit, reference = sample(n, "none"), sample(n, "none")
        for shift in ("none", "covariate"):
            yield f"drawn, {shift}", fit, reference, sample(1500, shift)
    for name, X, y, new, labels in places():
        order = np.random.default_rng(seed).permutation(len(y))
        one, two = order[: len(y) // 2], order[len(y) // 2 :]
        yield name, (X[one], y[one]), (X[two], y[two]), (new, labels)


def ours(forest, reference, new, shift):
    from vennforest import estimate_performance

    try:
        found = estimate_performance(forest, new, METRICS, shift=shift, reference=reference)
    except ValueError:  # no overlap
        return None
    return [found[metric] for metric in METRICS]


def run(number, python):
    from estimated_performance import realised
    from sklearn.ensemble import RandomForestClassifier

    import vennforest

    seed, rows = secrets.randbelow(10**6), []
    with tempfile.TemporaryDirectory() as folder:
        for i, (name, fit, reference, (X, y)) in enumerate(cases(number, seed)):
            forest = RandomForestClassifier(150, random_state=0).fit(*fit)
            p, q = forest.predict_proba(reference[0]), forest.predict_proba(X)
            np.savez(Path(folder) / f"{i}.npz", p=p[:, 1], y=reference[1], q=q[:, 1])
            truth = realised(q, y)
            made = {"CBPE": None}
            for shift in (None, "covariate"):
                made[shift or "default"] = ours(forest, reference, X, shift)
            rows.append((name, [truth[metric] for metric in METRICS], made))
        command = [python, __file__, "child", folder, str(len(rows))]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    version, *found = done.stdout.strip().splitlines()[-len(rows) - 1 :]
    for (_, _, made), line in zip(rows, found, strict=True):
        made["CBPE"] = json.loads(line)
    RESULTS.write_text(
        f"vennforest {vennforest.__version__}, nannyml {version}, seed {seed}, {number} draws. "
        "Mean absolute error, and in brackets how often the interval contains the observed value "
        "(CBPE's is of sampling error alone).\n\n" + table(rows),
        encoding="utf-8",
    )


def table(rows):
    lines = ["| new rows | estimate | " + " | ".join(METRICS) + " |", "|---|---|---|---|---|---|"]
    for name in dict.fromkeys(name for name, _, _ in rows):
        for way in ("CBPE", "default", "covariate"):
            own = [(truth, made[way]) for of, truth, made in rows if of == name]
            some = [(truth, made) for truth, made in own if made is not None]
            cells = []
            for j in range(len(METRICS)):
                off = [abs(truth[j] - made[j][0]) for truth, made in some]
                held = [made[j][1] <= truth[j] <= made[j][2] for truth, made in some]
                cells.append(f"{np.mean(off):.3f} ({np.mean(held):.2f})" if some else "refused")
            lines.append(f"| {name} | {way} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def child(folder, number):
    import nannyml
    import pandas as pd

    print(nannyml.__version__)
    for i in range(number):
        data = np.load(Path(folder) / f"{i}.npz")
        reference, new = (pd.DataFrame({"p": data[name]}) for name in ("p", "q"))
        for frame in (reference, new):
            frame["decided"] = (frame["p"] > 0.5).astype(int)
        reference["y"] = data["y"]
        estimator = nannyml.CBPE(
            metrics=list(THEIRS),
            y_pred_proba="p",
            y_pred="decided",
            y_true="y",
            problem_type="classification_binary",
            chunk_number=1,
        )
        found = estimator.fit(reference).estimate(new).to_df()
        last = found[found[("chunk", "period")] == "analysis"].iloc[-1]
        cells = []
        for metric in THEIRS:
            value, error = last[(metric, "value")], last[(metric, "sampling_error")]
            # It gives three standard errors; 1.96 make an interval at 95%.
            cells.append([value, value - 1.96 * error, value + 1.96 * error])
        print(json.dumps([[float(x) for x in cell] for cell in cells]))


if __name__ == "__main__":
    if sys.argv[1] == "child":
        child(sys.argv[2], int(sys.argv[3]))
    else:
        run(int(sys.argv[2]), sys.argv[3])
