"""The page that shows what was measured: ``docs/results/validity.md``."""

import numpy as np
from experiments.studies.validity.processes import PROCESSES
from experiments.studies.validity.statistics import BINS, MEASURES, deviations, estimate, one_sided

LIMIT = 4.0
"""z from which on a deviation is marked."""


ORDER = (
    "one draw", "all trees", "all trees, widened",
    "default", "random trees, one draw",
    "groups named, one draw", "groups named, 5 folds", "grouped draw",
    "own group", "grouped, all trees", "frozen", "holdout",
    "holdout, stratified", *(f"one of {k} folds" for k in (2, 3, 5, 10)),
    *(f"{k} folds" for k in (2, 3, 5, 10)), "5 folds, stratified",
)  # fmt: skip
"""Settings as the page lists them, those with a theorem or next to one first."""


def signed(value, digits=3):
    """Return a number as +.012: no zero before the point."""
    text = f"{value:+.{digits}f}"
    return text[0].replace("-", "−") + text[1:].removeprefix("0")


def short_z(z):
    return signed(z, 1) if abs(z) < 99 else signed(np.sign(z) * 99, 0)


def bare(value, digits=3):
    return f"{value:.{digits}f}".removeprefix("0")


def of(cell, measure):
    return estimate(cell[MEASURES.index(measure)])


def deviation_text(row):
    off, _, z = row
    if np.isnan(z):
        return "–"
    text = f"{signed(off)} ({short_z(z)})"
    return f"**{text}**" if abs(z) >= LIMIT else text


def mean_text(cell):
    """Return the two mean differences, with z where one is below zero."""
    parts = []
    for off, _, z in one_sided(cell):
        text = signed(off)
        if z < -1:
            text += f" ({short_z(z)})"
        parts.append(f"**{text}**" if z <= -LIMIT else text)
    return " / ".join(parts)


def optional(cell, measure, root=False):
    value, _, effective = of(cell, measure)
    if effective == 0:
        return ""
    return bare(np.sqrt(value) if root else value)


HEAD = (
    "setting", "trees", "repetitions", *(f"p_Y {name}" for name in BINS),
    "truth − p0 / p1 − truth", "width", "log loss", "Brier", "distance", "sd over seeds", "widened",
)  # fmt: skip


def line(cells):
    return "| " + " | ".join(cells) + " |"


def place(setting):
    """Order settings by calibrator, then by where their scores come from."""
    kind = setting.split(", ")[0] if setting.startswith("Venn") else "~"
    rest = setting.removeprefix(f"{kind}, ")
    known = next((i for i, name in enumerate(ORDER) if rest == name), len(ORDER))
    return kind != "Venn–Abers", kind, known, rest


def detail(name, n, cells, chosen):
    """Return the table of one process as lines; ``chosen(setting, trees)`` picks its rows."""
    title = f"### {PROCESSES[name].says}; n = {n}"
    lines = [title, "", line(HEAD), "|" + "---|" * len(HEAD)]
    for (setting, size), cell in sorted(cells.items(), key=lambda c: (place(c[0][0]), c[0][1])):
        if not chosen(setting, size):
            continue
        row = [setting, str(size), f"{cell[MEASURES.index('width'), 0]:.0f}"]
        row += [deviation_text(bin_) for bin_ in deviations(cell)]
        row += [mean_text(cell)]
        row += [optional(cell, m) for m in ("width", "log loss", "brier", "distance")]
        row += [optional(cell, "spread", root=True), optional(cell, "widened")]
        lines.append(line(row))
    return lines


def worst(cell):
    """Return the deviation of largest |z| as (deviation, standard error, z), NaN if none."""
    rows = deviations(cell)
    if np.isnan(rows[:, 2]).all():
        return np.full(3, np.nan)
    return rows[np.nanargmax(np.abs(rows[:, 2]))]


def summary(results, size):
    """Return a table of the worst bins: a row a setting, a column a process, at one forest size."""
    rows: dict = {}
    for key, cells in results.items():
        for (setting, trees), cell in cells.items():
            if trees == size:
                rows.setdefault(setting, {})[key] = worst(cell)
    columns = [key for key in results if any(key in found for found in rows.values())]
    names = [f"{name}, {n}" for name, n in columns]
    lines = [line(["setting", *names]), "|" + "---|" * (len(columns) + 1)]
    for setting in sorted(rows, key=place):
        found = rows[setting]
        texts = [deviation_text(found[k]) if k in found else "" for k in columns]
        lines.append(line([setting, *texts]))
    return lines


def merged(done):
    """Return {(process, n): {(setting, trees): sums}}: jobs are independent, so their sums add."""
    out: dict = {}
    for job, (_, cells) in done.items():
        whole = out.setdefault((job.process, job.n), {})
        for key, cell in cells.items():
            whole[key] = whole.get(key, 0) + cell
    places = {name: i for i, name in enumerate(PROCESSES)}
    return dict(sorted(out.items(), key=lambda i: (places.get(i[0][0], len(places)), i[0])))
