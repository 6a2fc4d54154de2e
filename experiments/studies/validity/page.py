"""``docs/results/validity.md``: what a row means, and the rows."""

import platform

import numpy as np
import sklearn
from experiments.studies.validity.datasets import PREFIX
from experiments.studies.validity.processes import PROCESSES
from experiments.studies.validity.run import NEW_OBJECTS, REFERENCE, read
from experiments.studies.validity.statistics import ENOUGH
from experiments.studies.validity.table import (
    LIMIT,
    detail,
    line,
    merged,
    of,
    place,
    signed,
    summary,
)

from vennforest import __version__

SIZE = 100
"""Trees of the forests that every process is shown for."""

BY_SIZE = (("normals", 200), ("levels", 200))
SETTINGS = ("one draw", "all trees", "all trees, widened",
            "default", "5 folds", "holdout")  # fmt: skip
MAIN = {f"Venn–Abers, {setting}" for setting in SETTINGS}

TEXT = """# How far the bounds are off, measured

`docs/guarantee.md` says what is proved of which setting. This page says what is measured, with \
data from processes whose true probabilities are known. It is made by

    {command}

from {path}, which holds the sums over repetitions and the seeds that they were drawn with \
(scikit-learn {sklearn}, numpy {numpy}, Python {python}, vennforest {version}). No seed was \
chosen: each was drawn from the system's entropy when its batch began. Further repetitions, \
processes or numbers of trees are measured into a file of one's own (`python -m \
experiments.studies.validity more.jsonl --help`) and added with `--with more.jsonl`.

## What a row means

In every repetition a training set is drawn, a forest is grown and calibrated, and {objects} new \
objects are given bounds.

- **p_Y** is the bound that belongs to the object's true label: the upper one if the object is of \
the class, else the lower one. Theorem 1 says that among objects with p_Y near .2 two in ten are \
of the class. A column holds *frequency minus p_Y* over the objects whose p_Y lies in the bin, \
with z in brackets. Below .5 a negative and above .5 a positive deviation means that the bounds \
are too cautious, the opposite that they are too sure.
- **truth − p0 / p1 − truth**: the mean statement, E p0 ≤ frequency ≤ E p1, holds where neither \
is below zero.
- **width** of the bounds; **log loss** and **Brier** of the probability p1 / (1 − p0 + p1) that \
the bounds give (of the point they were widened to hold, in the rows *widened*); **distance** of \
their middle from the true probability; **sd over seeds** of a bound, by the seed of the draw \
alone; **widened**: the share of objects whose bounds did not hold the point.

The repetitions are the independent units, not the objects in them: standard errors are those of a \
ratio of sums over repetitions. The label of a new object is not drawn: it counts with its true \
probability as either. Bins that fewer than {enough} effective repetitions reach are left out \
(–). Deviations of {limit:.0f} standard errors or more are **bold**; the largest of six |z| is \
above 2.5 in one row in fourteen by chance alone.

Settings: *one draw* is `subforest="exchangeable"`; *all trees* is `subforest="all"`. These \
are not widened. *default* is what a forest gives with no option set, the bounds of all trees \
stretched to hold the pool's probability; *widened* are bounds stretched to hold Platt scaling on \
the log-odds of the score of all trees. *frozen*: the forest is grown on one half and calibrated \
on the other. \
*holdout*: a third at random. *K folds*: a forest of 1/K of the trees for each fold, bounds \
averaged; *one of K folds*: its first fold alone. *Stratified* splits fix the class counts. \
*grouped draw*, *own group*, *grouped, all trees*: identical rows of the features are one group, \
out of bag where a tree saw none of them; the group drawn leaves the calibration set, a new object \
with identical rows takes their group for the one drawn, or nobody is drawn. *groups named*: \
`groups` are given, and the bags hold a tenth of the rows. *random trees*: extra trees of one \
feature a split, with bags. \
"""


FOLDS = """## What exactness costs on data

Means over {count} data sets ({names}), 300 trees in all. Ten times a fifth of the rows is drawn \
at random to be tested; the settings have the same rows. The difference is to the log loss of \
*all trees* on the same rows."""

SAME_ROWS = """## What grouping identical rows costs on data

The same for {count} data sets with repeated rows ({names}), twenty fifths."""


def _means(done, family, size):
    """Return a table of means over data sets and their names, from jobs that have a family."""
    rows: dict = {}
    chosen = {
        job.process.removeprefix(PREFIX): cells
        for job, (_, cells) in done.items()
        if job.process.startswith(PREFIX) and family in job.families
    }
    for cells in chosen.values():
        for (setting, trees), cell in cells.items():
            if trees == size and not setting.startswith("Venn, "):
                numbers = [of(cell, m)[0] for m in ("width", "log loss", "brier")]
                difference = of(cell, "loss over all trees")[0]
                rows.setdefault(setting, []).append([*numbers, difference])
    head = ("setting", "width", "log loss", "Brier", "log loss over all trees", "better on")
    lines = [line(head), "|" + "---|" * len(head)]
    for setting in sorted(rows, key=place):
        found = np.array(rows[setting])
        if setting.endswith("all draws"):
            continue  # of other objects
        width, loss, brier, difference = found.mean(axis=0)
        ahead = int((found[:, 3] < 0).sum())
        texts = [f"{v:.4f}".removeprefix("0") for v in (width, loss, brier)]
        if setting == REFERENCE:
            lines.append(line([setting, *texts, "", ""]))
        else:
            against = f"{ahead} of {len(found)}"
            lines.append(line([setting, *texts, signed(difference, 4), against]))
    return lines, sorted(chosen)


def page(paths, command):
    """Return the page as text."""
    done = read(*paths)
    results = {key: cells for key, cells in merged(done).items() if key[0] in PROCESSES}
    out = [
        TEXT.format(
            command=command,
            path=", ".join(f"`{path}`" for path in paths),
            sklearn=sklearn.__version__,
            numpy=np.__version__,
            python=platform.python_version(),
            version=__version__,
            objects=NEW_OBJECTS,
            enough=ENOUGH,
            limit=LIMIT,
        ),
        "",
        f"## The worst bin of every setting and process, {SIZE} trees",
        "",
        "A column is a process and its number of training examples. Rows whose data is not "
        "exchangeable with the new objects (" + ", ".join(
            f"*{name}*: {process.says}"
            for name, process in PROCESSES.items()
            if not process.exchangeable
        ) + ") show what happens to those who do it.",
        "",
        *summary(results, SIZE),
        "",
        "## By the number of trees",
        "",
        "![Largest deviation by the number of trees](../pictures/guarantee-trees.svg)",
        "",
    ]  # fmt: skip
    for key in BY_SIZE:
        if key in results:
            out += [*detail(*key, results[key], lambda s, _: s in MAIN), ""]
    out += [f"## Every process, {SIZE} trees", ""]
    for key, cells in results.items():
        out += [*detail(*key, cells, lambda _, size: size == SIZE), ""]
    for family, title in (("folds", FOLDS), ("same-rows", SAME_ROWS)):
        lines, names = _means(done, family, 300)
        if names:
            out += [title.format(count=len(names), names=", ".join(names)), "", *lines, ""]
    return "\n".join(out).rstrip() + "\n"
