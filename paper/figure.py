"""Draw the figure of the paper, ``losses.png``, from ``experiments/results/maps.csv``."""

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

FOLDER = Path(__file__).parent
METHODS = {
    "uncalibrated": ("none", "x", "0.5"),
    "Platt": ("Platt scaling", "s", "#CC79A7"),
    "temperature": ("temperature scaling", "^", "#E69F00"),
    "Venn–Abers, log": ("Venn–Abers", "D", "#009E73"),
    "pooled": ("pool (vennforest's default)", "o", "#0072B2"),
}


def main():
    """Write ``losses.png``."""
    table = pd.read_csv(FOLDER.parent / "experiments/results/maps.csv")
    table = table[table["collection"] == "keel"].set_index(["model", "classes", "method"])
    rows = [(m, c) for c in ("two", "more") for m in ("forest", "logistic", "boosting", "network")]
    figure, ax = plt.subplots(figsize=(6.8, 3.6), layout="constrained")
    for method, (label, marker, colour) in METHODS.items():
        losses = [table.loc[(*row, method), "log_loss"] for row in rows]
        ax.plot(losses, range(len(rows)), ls="", marker=marker, color=colour, label=label)
    ax.set_yticks(range(len(rows)), [f"{model}, {classes} classes" for model, classes in rows])
    ax.invert_yaxis()
    ax.grid(axis="x", color="0.9")
    ax.set_xlabel("mean log loss on test rows")
    ax.legend(fontsize="small")
    figure.savefig(FOLDER / "losses.png", dpi=200, metadata={"Software": None})


if __name__ == "__main__":
    main()
