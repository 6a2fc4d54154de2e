"""Draw the pictures of the site that no example draws: ``make -f tools/Makefile pictures``.

The examples draw theirs (``examples/*.py PICTURE``). All are kept under version control, so
the site builds without running a model.
"""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestClassifier

from vennforest import CalibratedClassifier
from vennforest.decisions import threshold_for
from vennforest.plots import IntervalDisplay, ReliabilityDisplay

DOCS = Path(__file__).parents[1] / "docs"
FOLDER = DOCS / "pictures"

# Colours that also those tell apart who do not see all of them, each with a marker of its own.
LOOKS = [("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "^"), ("#CC79A7", "D")]


def sample(n, seed):
    """Return features, labels and the true probabilities that these were drawn with."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    p = 1 / (1 + np.exp(-5 * X[:, 0] + 4 * X[:, 1] * X[:, 2]))
    return X, (rng.random(n) < p).astype(int), p


def save(display, name):
    """Write one picture, the same for the same numbers."""
    display.figure_.savefig(FOLDER / f"{name}.svg", metadata={"Date": None})


def rows_of(page, *headings):
    """Return the cells of a page's first table below headings, one after the other."""
    text = (DOCS / page).read_text("utf-8")
    for heading in headings:
        text = text.split(f"{heading}\n", 1)[1]
    lines = iter(text.splitlines())
    next(line for line in lines if line.startswith("|---"))
    cells = []
    for line in lines:
        if not line.startswith("|"):
            break
        cells.append([cell.strip() for cell in line.strip("|").split("|")])
    return cells


def write(figure, name):
    """Write one picture of a page's figures."""
    figure.savefig(FOLDER / f"{name}.svg", metadata={"Date": None})
    plt.close(figure)


def dots(rows, names, *, xlabel, name, height=0.34):
    """Draw a line for each row with a mark for each name that has a number there."""
    figure, ax = plt.subplots(figsize=(6.8, 1.1 + height * len(rows)), layout="constrained")
    for i, (_, values) in enumerate(rows):
        there = [v for v in values if v is not None]
        ax.plot([min(there), max(there)], [-i, -i], color="#b0b0b0", zorder=1)
    for j, label in enumerate(names):
        color, marker = LOOKS[j]
        points = [(v[j], -i) for i, (_, v) in enumerate(rows) if v[j] is not None]
        ax.scatter(*zip(*points, strict=True), color=color, marker=marker, label=label, alpha=0.85)
    ax.set(xlabel=xlabel, yticks=[-i for i in range(len(rows))])
    ax.set_yticklabels([row for row, _ in rows])
    ax.tick_params(axis="y", length=0)
    ax.spines[["left", "top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=len(names), frameon=False)
    write(figure, name)


def figures():
    """Return ``{family and classes: (uncalibrated, default)}``: losses in results/defaults.md."""
    text = (DOCS / "results/defaults.md").read_text("utf-8")
    found = {}
    for family, default in [
        ("forest", "pooled"),
        ("logistic", "pooled, mean of the folds' models"),
        ("boosting", "pooled, mean of the folds' models"),
    ]:
        for classes in ("two classes", "more than two classes"):
            part = text.split(f"## {family}, the first collection, {classes}\n")[1].split("## ")[0]
            rows = [line.split(" | ") for line in part.splitlines() if line.startswith("| ")]
            loss = {row[0].removeprefix("| "): float(row[1]) for row in rows[1:]}
            found[family, classes] = loss["uncalibrated"], loss[default]
    return found


def gain():
    """Draw what the default is worth, by family and number of classes."""
    rows = [(f"{family}, {classes}", found) for (family, classes), found in figures().items()]
    dots(
        [(row, (default, raw)) for row, (raw, default) in rows],
        ["the default", "uncalibrated"],
        xlabel="mean log loss over data sets (Maps compared)",
        name="which-gain",
    )


def worst(cells):
    """Return the largest deviation in a row of results/validity.md that chance does not explain.

    Those of four standard errors or more stand in bold there; 0 if none does.
    """
    bold = re.findall(r"\*\*[+−]([.\d]+) \(", " ".join(cells))
    return max(map(float, bold), default=0.0)


def deviations():
    """Draw how far bounds are off, by the number of trees and by what spoils them."""
    settings = {
        "Venn–Abers, one draw": "one draw",
        "Venn–Abers, all trees": "all trees",
        "Venn–Abers, default": "the default: all trees, widened to contain the point",
    }
    cells = rows_of(
        "results/validity.md",
        "## By the number of trees",
        "### five normal features, signal; n = 200",
    )
    figure, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
    for (setting, label), (color, marker) in zip(settings.items(), LOOKS, strict=False):
        points = [(int(c[1]), worst(c[3:9])) for c in cells if c[0] == setting]
        ax.plot(*zip(*points, strict=True), color=color, marker=marker, label=label)
    ax.set(xscale="log", xticks=(trees := (10, 30, 100, 300, 1000)), ylim=(-0.005, None))
    ax.set_xticks(trees, [f"{t:,}" for t in trees])
    ax.minorticks_off()
    ax.set(xlabel="trees", ylabel="largest deviation")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
    write(figure, "guarantee-trees")

    processes = {
        "continuous features": "five normal features, signal; n = 200",
        "five binary features": "five binary features, signal; n = 200",
        "60 values, labels by coin": "one integer of 60 levels, coin labels; n = 200",
        "every row twice": "every row twice; n = 200",
        "groups of ten near-copies": (
            "groups of ten near-copies, coin labels; new groups; n = 200"
        ),
    }
    settings = {
        "out of bag, all trees": "Venn–Abers, all trees",
        "held-out part": "Venn–Abers, holdout",
    }
    rows = []
    for row, process in processes.items():
        cells = rows_of("results/validity.md", "## Every process, 100 trees", f"### {process}")
        bins = [c[-14:-8] for c in cells]
        found = {c[0]: worst(b) for c, b in zip(cells, bins, strict=True)}
        rows.append((row, [found.get(setting) for setting in settings.values()]))
    dots(
        rows,
        list(settings),
        xlabel="largest deviation of 4 standard errors or more, 0 where there is none",
        name="guarantee-spoilt",
    )


def groups():
    """Draw in how many groups the mean bounds miss the share, without and with ``by``."""
    rows, data, by = [], "", ""
    for cells in rows_of("results/groups.md", "<!-- table -->"):
        data, by = cells[0] or data, cells[1] or by
        if cells[2] == "none":
            rows.append((f"{data} by {by.split(' (')[0]}", [int(cells[7].rstrip("%"))]))
        elif cells[2] == "by":
            rows[-1][1].insert(0, int(cells[7].rstrip("%")))
    dots(
        rows,
        ["with by=", "without"],
        xlabel="groups outside of their mean bounds, per cent",
        name="groups-measured",
        height=0.24,
    )


def scale():
    """Draw CPU seconds and memory by rows."""
    figure, axes = plt.subplots(1, 2, figsize=(6.8, 3.8), layout="constrained")
    work = {
        "vennforest calibrate, from Parquet": "vennforest calibrate, from Parquet",
        "vennforest apply, Parquet to Parquet": "vennforest apply",
        "in memory: Venn–Abers fitted to rows": "fitted in memory",
        "in memory: scikit-learn's isotonic": "scikit-learn's isotonic, in memory",
    }
    cells = rows_of("results/scale.md", "## Time and memory")
    for (name, label), (color, marker) in zip(work.items(), [*LOOKS, ("black", "v")], strict=True):
        rows = [[float(cell) for cell in c[1:5]] for c in cells if c[0] == name]
        n, _, seconds, memory = zip(*rows, strict=True)
        axes[0].plot(n, seconds, color=color, marker=marker, label=label)
        axes[1].plot(n, memory, color=color, marker=marker)
    axes[0].set(ylabel="CPU seconds")
    axes[1].set(ylabel="peak memory, GiB", ylim=(0.1, 10))
    for ax in axes:
        ax.set(xscale="log", yscale="log", xlabel="rows with a score")
        ax.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    write(figure, "scale")


def named_groups():
    """Draw what happens to estimates when rows of a group are taken for strangers."""
    rng = np.random.default_rng(0)

    def copies(count):
        X = np.repeat(rng.normal(size=(count, 5)), 10, axis=0)
        y = np.repeat(rng.integers(0, 2, count), 10)
        return X + rng.normal(scale=0.05, size=X.shape), y, np.repeat(np.arange(count), 10)

    X, y, group = copies(60)
    X_new, y_new, _ = copies(300)
    model = CalibratedClassifier(RandomForestClassifier(100, random_state=0), random_state=0)
    p = {
        "rows as strangers": model.fit(X, y).predict_proba(X_new)[:, 1],
        "groups named": model.fit(X, y, groups=group).predict_proba(X_new)[:, 1],
    }
    save(ReliabilityDisplay.from_predictions(y_new, p), "groups-named")


def fitted_map():
    """Draw what leaves the library with a calibrator: three numbers for each score."""
    X, y, _ = sample(300, 0)
    model = CalibratedClassifier(RandomForestClassifier(150, random_state=0), random_state=0)
    model.fit(X, y)
    s = np.linspace(0, 1, 1001)
    m = model.calibrator_.predict_multiprobability(s)
    p = model.point_calibrator_.predict_proba(s)[:, 1]
    lower, upper = np.minimum(m.p0, p), np.maximum(m.p1, p)
    figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    ax.plot([0, 1], [0, 1], color="#767676", linestyle=":", linewidth=1, label="the score itself")
    look = {"color": "#0072B2", "alpha": 0.25, "label": "lower to upper"}
    ax.fill_between(s, lower, upper, step="post", **look)
    ax.plot(s, p, color="black", linewidth=1.4, label="probability")
    ax.set(xlabel="score of the model", ylabel="calibrated", xlim=(0, 1), ylim=(0, 1))
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
    write(figure, "map")


def first():
    """Draw a forest's probabilities and calibrated ones against what happened."""
    X, y, _ = sample(1000, 0)
    new, happened, _ = sample(20_000, 1)
    forest = RandomForestClassifier(300, min_samples_leaf=5, random_state=0)
    model = CalibratedClassifier(forest, random_state=0).fit(X, y)
    raw, p = model.estimator_.predict_proba(new)[:, 1], model.predict_proba(new)[:, 1]
    known = model.predict_confidence(new)
    figure, ax = plt.subplots(figsize=(7.4, 4.9), layout="constrained")
    ax.plot([0, 1], [0, 1], color="#808080", linewidth=1)
    claims = []
    for values, (color, marker) in ((raw, LOOKS[1]), (p, LOOKS[0])):
        tenths = np.minimum((10 * values).astype(int), 9)
        kept = [tenths == i for i in range(10) if (tenths == i).sum() >= 100]
        x = [values[one].mean() for one in kept]
        heights = [happened[one].mean() for one in kept]
        ax.plot(x, heights, marker, color=color, markersize=8, zorder=3)
        claims.append(f"{100 * x[1]:.0f}%” happened in {100 * heights[1]:.0f}%")
        if values is p:
            low = [known.lower[one, 1].mean() for one in kept]
            high = [known.upper[one, 1].mean() for one in kept]
            ax.hlines(heights, low, high, color=color, alpha=0.45, linewidth=5)
    size = {"fontsize": 13}
    named = "calibrated, with its\n95% confidence interval"
    ax.text(0.02, 0.98, named, color=LOOKS[0][0], va="top", **size)
    ax.text(0.3, 0.12, "the forest's own", color=LOOKS[1][0], **size)
    ax.text(0.8, 0.64, "right on average", color="#606060", **size)
    ax.set(xlim=(0, 1), ylim=(0, 1))
    ax.set_xlabel("Probability given to 20,000 new cases", **size)
    ax.set_ylabel("How often it happened", **size)
    ax.tick_params(labelsize=12)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(lambda value, _: f"{100 * value:.0f}%")
    claim = f"What the forest called “{claims[0]} of cases.\nCalibrated: “{claims[1]}."
    figure.suptitle(claim, x=0.01, ha="left", fontsize=14, fontweight="bold")
    ax.spines[["top", "right"]].set_visible(False)
    write(figure, "first")


def three_numbers():
    """Draw probability, confidence interval and bounds beside the true frequency."""
    X, y, _ = sample(1000, 0)
    new, _, truth = sample(20_000, 1)
    model = CalibratedClassifier(RandomForestClassifier(200, random_state=0), random_state=0)
    model.fit(X, y)
    score = model.estimator_.predict_proba(new)[:, 1]
    order = np.argsort(score)
    # The frequency among cases with a score: the mean truth of the 800 nearest in rank.
    mean = np.convolve(truth[order], np.full(800, 1 / 800), "valid")
    shown = order[400:-399][:: (len(order) - 800) // 150]
    frequency = mean[:: (len(order) - 800) // 150][: len(shown)]
    known, bounds = model.predict_confidence(new[shown]), model.predict_multiprobability(new[shown])
    s, p = score[shown], model.predict_proba(new[shown])[:, 1]
    figure, ax = plt.subplots(figsize=(6.8, 4.2), layout="constrained")
    light = {"color": "#56B4E9", "alpha": 0.3, "label": "95% confidence interval"}
    ax.fill_between(s, known.lower[:, 1], known.upper[:, 1], linewidth=0, **light)
    dark = {"color": "#0072B2", "alpha": 0.7, "label": "Venn–Abers bounds"}
    ax.fill_between(s, bounds.p0, bounds.p1, linewidth=0, **dark)
    ax.plot(s, p, color="#D55E00", linewidth=1.4, label="probability")
    ax.plot(s, frequency, color="black", linewidth=1.4, linestyle="--", label="true frequency")
    ax.set(xlabel="score of the forest", ylabel="probability", xlim=(0, 1), ylim=(0, 1))
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
    write(figure, "three-numbers")
    inside = {
        "confidence interval": (known.lower[:, 1] <= frequency) & (frequency <= known.upper[:, 1]),
        "bounds": (bounds.p0 <= frequency) & (frequency <= bounds.p1),
    }
    print(", ".join(f"{name} {found.mean():.2f}" for name, found in inside.items()))


def promised_thresholds():
    """Draw sensitivity and specificity of new cases, with promised thresholds of 600 others."""
    p, y = promise_sample(600, 0)
    new_p, new_y = promise_sample(100_000, 1)
    at = np.linspace(0, 1, 201)
    figure, ax = plt.subplots(figsize=(6.8, 3.4), layout="constrained")
    curves = {
        "sensitivity": [(new_p[new_y] >= t).mean() for t in at],
        "specificity": [(new_p[~new_y] < t).mean() for t in at],
    }
    for (name, values), (color, _) in zip(curves.items(), LOOKS, strict=False):
        option = "recall" if name == "sensitivity" else name
        safe, *ends = (
            threshold_for(p, y, **{option: 0.9}, delta=delta).threshold
            for delta in (0.05, 0.025, 0.975)
        )
        ax.plot(at, values, color=color, label=f"{name} of new cases")
        ax.plot(ends, [0.9, 0.9], color=color, linewidth=5, alpha=0.35, solid_capstyle="butt")
        ax.axvline(safe, color=color, linestyle="--", linewidth=1.2)
        ax.annotate(f"promised: {safe:.2f}", (safe, 0.02), (4, 0), textcoords="offset points")
        print(f"{name} at {safe:.3f}: {np.interp(safe, at, values):.3f}")
    ax.axhline(0.9, color="#b0b0b0", linewidth=0.8, zorder=0)
    ax.set(xlabel="threshold", ylabel="share", xlim=(0, 1), ylim=(0, 1.02))
    ax.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    write(figure, "promised-thresholds")


def promise_sample(n, seed):
    """Return calibrated probabilities and labels."""
    rng = np.random.default_rng(seed)
    p = rng.beta(0.7, 1.6, n)
    return p, rng.random(n) < p


def main():
    """Draw them."""
    FOLDER.mkdir(exist_ok=True)
    gain()
    deviations()
    groups()
    scale()
    named_groups()
    fitted_map()
    first()
    three_numbers()
    promised_thresholds()
    X, y, _ = sample(1500, 0)
    X_new, y_new, _ = sample(3000, 1)
    model = CalibratedClassifier(RandomForestClassifier(150, random_state=0), random_state=0)
    model.fit(X, y)
    raw, p = model.estimator_.predict_proba(X_new)[:, 1], model.predict_proba(X_new)[:, 1]
    save(ReliabilityDisplay.from_predictions(y_new, raw, name="forest"), "why-before")
    save(ReliabilityDisplay.from_predictions(y_new, p, name="forest, calibrated"), "why-after")
    for n, name in [(100, "few"), (1500, "many")]:
        model.fit(X[:n], y[:n])
        shown = X_new[:120]
        bounds = model.predict_multiprobability(shown)
        display = IntervalDisplay.from_predictions(
            y_new[:120], bounds, title=f"calibrated by {n:,} examples"
        )
        save(display, f"why-bounds-{name}")
        print(f"{n} examples: bounds {bounds.width[:, 1].mean():.3f} wide")


if __name__ == "__main__":
    main()
