"""Draw the pictures whose figures stand in the tables of their page: ``make pictures``.

They are read from the page, so picture and table cannot disagree.
"""

from __future__ import annotations

import hashlib
import json
import re

import matplotlib.pyplot as plt
import numpy as np
from make_pictures import DOCS, FOLDER, LOOKS, rows_of, sample, save
from matplotlib.colors import TwoSlopeNorm
from sklearn.ensemble import RandomForestClassifier

from vennforest import VennAbers
from vennforest.plots import ReliabilityDisplay

METHODS = {
    "the default": None,  # the row that is not compared with itself
    "matrix scaling": "matrix, diagonal",
    "isotonic": "isotonic",
    "uncalibrated": "uncalibrated",
}


def digest(figures):
    """Return a mark of a picture's figures, which the picture carries."""
    return hashlib.sha256(json.dumps(figures, ensure_ascii=False).encode()).hexdigest()[:16]


def keep(figure, name, figures):
    """Write one picture with the mark of its figures, by which a test knows it is not old."""
    mark = {"Date": None, "Description": f"figures {digest(figures)}"}
    figure.savefig(FOLDER / f"{name}.svg", metadata=mark)
    plt.close(figure)


def rank_figures():
    """Return ``{table of docs/results/defaults.md: {name: mean rank, from 0 to 1}}``."""
    text = (DOCS / "results/defaults.md").read_text("utf-8")
    headings = re.findall(
        r"^(## .+)\n\n(?:[^|#\n].*\n\n)*\| method \| log loss \| mean", text, re.M
    )
    found = {}
    for heading in headings:
        rows = [row for row in rows_of("results/defaults.md", heading) if row[2]]
        ranks = {name: _rank(rows, pattern) for name, pattern in METHODS.items()}
        found[heading.removeprefix("## ")] = {k: v for k, v in ranks.items() if v is not None}
    return found


def _rank(rows, pattern):
    """Return the mean rank by log loss of the first row that fits; None if none does."""
    for row in rows:
        if row[-1] == "" if pattern is None else row[0] == pattern:
            return (float(row[2]) - 1) / (len(rows) - 1)
    return None


def ranks():
    """Draw the mean ranks of some methods in every table of docs/results/defaults.md."""
    tables = rank_figures()
    figure, ax = plt.subplots(figsize=(5, 1 + 0.42 * len(tables)), layout="constrained")
    for i, (table, found) in enumerate(tables.items()):
        ax.plot([min(found.values()), max(found.values())], [-i, -i], color="#b0b0b0", zorder=1)
        ax.text(0, 0.26 - i, table, fontsize=8, va="bottom")
        for name, (color, marker) in zip(METHODS, LOOKS, strict=True):
            ax.scatter(
                found.get(name, []), [-i] * (name in found), color=color, marker=marker, alpha=0.85
            )
    for name, (color, marker) in zip(METHODS, LOOKS, strict=True):
        ax.scatter([], [], color=color, marker=marker, label=name)
    _bare(ax)
    ax.set(xlim=(-0.02, 1.02), ylim=(0.4 - len(tables), 0.9))
    ax.set_xticks([0, 0.5, 1], ["first on\nevery set", "in the middle", "last on\nevery set"])
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    keep(figure, "defaults", tables)


def speed_figures():
    """Return ``{work and what it is beside: figures divided by the most that they should be}``."""
    kinds, work = {}, ""
    for cells in rows_of("results/speed.md", "# Speed"):
        first = re.split(r", | \(|: ", cells[0])[0]
        if first != "the same":
            work = first
        name = f"{work}, probabilities" if first == "the same" else work
        name += f", beside {cells[1]}" if cells[2] else f": {cells[1]}"
        if cells[5]:
            kinds.setdefault(name, []).append(float(cells[4]) / float(cells[5]))
    return kinds


def speed():
    """Draw every figure of docs/results/speed.md divided by the most that it should be."""
    kinds = speed_figures()
    figure, ax = plt.subplots(figsize=(5, 1 + 0.4 * len(kinds)), layout="constrained")
    ax.axvline(1, color="black", linewidth=1, zorder=0)
    for i, (name, values) in enumerate(kinds.items()):
        shown = name if len(name) < 70 else f"{name[:68]}…"
        white = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
        ax.text(0.014, 0.22 - i, shown, fontsize=7, bbox=white)
        ax.plot([min(values), max(values)], [-i, -i], color="#b0b0b0", zorder=1)
        for (color, marker), side in zip(LOOKS, (np.less_equal, np.greater), strict=False):
            there = [v for v in values if side(v, 1)]
            ax.scatter(there, [-i] * len(there), color=color, marker=marker, alpha=0.8)
    for (color, marker), label in zip(LOOKS, ("goal met", "goal missed"), strict=False):
        ax.scatter([], [], color=color, marker=marker, label=label)
    _bare(ax)
    ax.set(xscale="log", xlim=(0.013, 14), ylim=(0.5 - len(kinds), 0.9))
    ax.set_xticks([0.1, 1, 10], ["a tenth", "the goal", "ten times"])
    ax.minorticks_off()
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    keep(figure, "speed", kinds)


def grid_figures():
    """Return ``{data set: (methods, {source: log losses, None where there is no cell})}``."""
    text = (DOCS / "grid.md").read_text("utf-8")
    found = {}
    for heading in re.findall(r"^## .+", text, re.M):
        methods = text.split(heading)[1].split("\n|---")[0].strip(" |\n").split(" | ")[1:]
        rows = rows_of("grid.md", heading)
        values = {row[0]: [None if v == "–" else float(v) for v in row[1:]] for row in rows}
        found[heading.removeprefix("## ")] = methods, values
    return found


def grid():
    """Draw by how much each cell of docs/grid.md changes its source's log loss."""
    tables = grid_figures()
    figure, axes = plt.subplots(len(tables), 1, figsize=(5, 8), layout="constrained")
    for ax, (name, (methods, rows)) in zip(axes, tables.items(), strict=True):
        values = np.array(list(rows.values()), dtype=float)
        change = values[:, 1:] - values[:, :1]
        norm = TwoSlopeNorm(0, vmin=-0.3, vmax=0.3)
        shown = ax.imshow(change, cmap="PuOr_r", norm=norm, aspect="auto")
        ax.set_xticks(range(len(methods) - 1), methods[1:], rotation=60, ha="right")
        ax.set_yticks(range(len(rows)), rows)
        ax.tick_params(length=0, labelsize=8)
        ax.set_title(name, fontsize=9)
        for i, j in zip(*np.nonzero(np.isnan(change)), strict=True):
            ax.text(j, i, "–" if np.isnan(values[i, j + 1]) else "×", ha="center", va="center")
    bar = figure.colorbar(shown, ax=axes, location="bottom", extend="both", shrink=0.8)
    bar.set_label("log loss, calibrated minus uncalibrated", fontsize=8)
    bar.ax.tick_params(labelsize=8)
    keep(figure, "grid", tables)


def elsewhere():
    """Draw what comes of scores that are not out of bag."""
    X, y, _ = sample(1500, 0)
    X_new, y_new, _ = sample(3000, 1)
    forest = RandomForestClassifier(150, oob_score=True, random_state=0).fit(X, y)
    new = forest.predict_proba(X_new)[:, 1]
    scores = {
        "out of bag": forest.oob_decision_function_[:, 1],
        "training rows": forest.predict_proba(X)[:, 1],
    }
    p = {name: VennAbers().fit(s, y).predict_proba(new)[:, 1] for name, s in scores.items()}
    save(ReliabilityDisplay.from_predictions(y_new, p), "other-forests")


def _bare(ax):
    ax.set_yticks([])
    ax.spines[["left", "top", "right"]].set_visible(False)


def main():
    """Draw them."""
    ranks()
    speed()
    grid()
    elsewhere()


if __name__ == "__main__":
    main()
