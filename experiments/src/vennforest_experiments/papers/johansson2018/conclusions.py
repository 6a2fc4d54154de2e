"""What Johansson et al. (2018) conclude, and whether it holds for the numbers obtained here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from vennforest_experiments.papers import published
from vennforest_experiments.papers.johansson2018.experiment import METHODS, SETUPS, VENN
from vennforest_experiments.papers.johansson2018.findings import Findings
from vennforest_experiments.papers.protocol.phrases import count_of, list_pairs
from vennforest_experiments.papers.protocol.reproduction import Conclusion
from vennforest_experiments.papers.published import ALL, BETTER


def conclusions(f: Findings) -> Iterable[Conclusion]:
    """Yield the paper's conclusions, and how close the numbers are to the printed ones."""
    yield _close(f, "accuracy", 0.02)
    yield _close(f, "interval size", 0.002)
    yield _sizes(f)
    yield _oob_on_average(f)
    yield _oob_everywhere(f)
    yield from _most_accurate(f)
    yield _significant(f)
    yield from _bias(f)
    yield from _reliable(f)
    yield _valid(f)
    yield eq_13_or_variance(f)


def _close(f: Findings, measure: str, limit: float) -> Conclusion:
    off = {
        d: abs(v.difference)
        for d in f.datasets
        if (v := f.values.get("4", d, "VP-oob", measure)).difference is not None
    }
    far = sorted((d for d in off if off[d] > limit), key=lambda d: -off[d])
    worst = max(off, key=lambda d: off[d])
    mean = float(np.mean(list(off.values())))
    text = f"Largest difference {off[worst]:.4f} ({worst}), mean {mean:.4f}."
    if far:
        text += " Further off: " + ", ".join(f"{d} {off[d]:.4f}" for d in far) + "."
    return Conclusion(
        f"Agreement with the printed numbers: VP-oob's {measure} is within {limit} on every data "
        "set.",
        not far,
        text,
    )


def _sizes(f: Findings) -> Conclusion:
    order = ("VP-oob", "VP-cal", "VAP-oob", "VAP-cal")
    sizes = f.measures["interval size"]
    wrong = [
        d for d in f.datasets if not all(sizes[a][d] < sizes[b][d] for a, b in pairwise(order))
    ]
    means = ", ".join(f"{s} {f.mean('interval size', s):.4f}" for s in order)
    return Conclusion(
        f"Interval sizes are in the order {' < '.join(order)} on every data set.",
        not wrong,
        f"On {count_of(len(f.datasets) - len(wrong), f.datasets)}{_but(wrong)}. Means: {means}.",
    )


def _oob_on_average(f: Findings) -> Conclusion:
    gain = {m: f.mean("accuracy", f"{m}-oob") - f.mean("accuracy", f"{m}-cal") for m in METHODS}
    listed = ", ".join(
        f"{m} {'holds' if g > 0 else 'does not hold'} ({g:+.4f})" for m, g in gain.items()
    )
    return Conclusion(
        "Out-of-bag calibration is more accurate on average than a calibration set, for every "
        "method.",
        all(g > 0 for g in gain.values()),
        listed.replace("-", "−") + ".",
    )


def _oob_everywhere(f: Findings) -> Conclusion:
    text, holds = [], True
    for m in ("VP", "VAP"):
        accuracy = f.measures["accuracy"]
        worse = [d for d in f.datasets if accuracy[f"{m}-oob"][d] <= accuracy[f"{m}-cal"][d]]
        holds = holds and not worse
        text.append(f"{m}: on {count_of(len(f.datasets) - len(worse), f.datasets)}{_but(worse)}")
    printed = [
        f"{m}: {d}"
        for m in ("VP", "VAP")
        for d in f.datasets
        if f.printed("6", f"{m}-oob", "accuracy", d) < f.printed("6", f"{m}-cal", "accuracy", d)
    ]
    also = f" The printed table itself has exceptions: {', '.join(printed)}." if printed else ""
    return Conclusion(
        "Venn and Venn–Abers predictors are more accurate out of bag on every data set.",
        holds,
        "; ".join(text) + "." + also,
    )


def _most_accurate(f: Findings) -> Iterable[Conclusion]:
    means = {s: f.mean("accuracy", s) for s in SETUPS}
    order = sorted(SETUPS, key=lambda s: -means[s])
    ranks = dict(zip(f.accuracy.methods, f.accuracy.mean_ranks.tolist(), strict=True))
    by_rank = sorted(SETUPS, key=lambda s: ranks[s])
    yield Conclusion(
        "VP-oob is the most accurate setup overall.",
        order[0] == "VP-oob",
        "By mean accuracy: "
        + ", ".join(f"{s} {means[s]:.4f}" for s in order[:5])
        + "; by mean rank: "
        + ", ".join(f"{s} {ranks[s]:.2f}" for s in by_rank[:5])
        + ".",
    )
    oob = [s for s in SETUPS if s.endswith("oob")]
    cal = [s for s in SETUPS if s.endswith("cal")]
    worst, best = min(oob, key=means.__getitem__), max(cal, key=means.__getitem__)
    yield Conclusion(
        "Every out-of-bag setup is more accurate on average than every setup with a "
        "calibration set.",
        means[worst] > means[best],
        f"Least accurate out of bag: {worst} {means[worst]:.4f}; most accurate with a "
        f"calibration set: {best} {means[best]:.4f}.",
    )


def _significant(f: Findings) -> Conclusion:
    ours = set(f.venn_accuracy.better("bergmann-hommel"))
    theirs = {
        (row.method, row.measure.removeprefix(BETTER))
        for row in published.load("johansson2018")
        if row.table == "5" and row.measure.startswith(BETTER) and row.value == 1
    }
    p = f.values.get("text", ALL, "VP-oob", "p against VAP-oob")
    return Conclusion(
        "Significant differences of accuracy between the Venn predictors: "
        + list_pairs(theirs)
        + ".",
        ours == theirs,
        f"Here: {list_pairs(ours) or 'none'}. VP-oob against VAP-oob: p = {p.value:.2g} "
        f"(printed {p.published}).",
    )


def _bias(f: Findings) -> Iterable[Conclusion]:
    bias = {s: f.mean("confidence minus accuracy", s) for s in SETUPS}

    def listed(methods: Iterable[str]) -> str:
        names = [f"{m}-{source}" for m in methods for source in ("cal", "oob")]
        return (", ".join(f"{s} {bias[s]:+.4f}" for s in names) + ".").replace(" -", " −")

    yield Conclusion(
        "Raw forests are too pessimistic on average.",
        bias["RF-cal"] < 0 and bias["RF-oob"] < 0,
        listed(["RF"]),
    )
    yield Conclusion(
        "Platt scaling and isotonic regression are too optimistic on average.",
        all(bias[f"{m}-{s}"] > 0 for m in ("Platt", "Iso") for s in ("cal", "oob")),
        listed(["Platt", "Iso"]),
    )
    least = sorted(SETUPS, key=lambda s: abs(bias[s]))
    yield Conclusion(
        "The Venn predictors' mean confidence is the closest to their accuracy.",
        set(least[:2]) == {"VP-cal", "VP-oob"},
        "Closest first: "
        + (", ".join(f"{s} {bias[s]:+.4f}" for s in least[:4]) + ".").replace(" -", " −"),
    )
    better = [m for m in METHODS if abs(bias[f"{m}-oob"]) < abs(bias[f"{m}-cal"])]
    yield Conclusion(
        "Out-of-bag calibration brings mean confidence closer to accuracy for all methods.",
        len(better) == len(METHODS),
        f"For {', '.join(better) or 'none'}; " + listed(METHODS),
    )


def _reliable(f: Findings) -> Iterable[Conclusion]:
    ranks = dict(zip(f.reliability.methods, f.reliability.mean_ranks.tolist(), strict=True))
    others = [s for s in SETUPS if s not in VENN]
    text = "Mean ranks: " + ", ".join(
        f"{s} {ranks[s]:.2f}" for s in sorted(SETUPS, key=ranks.__getitem__)
    )
    yield Conclusion(
        "All four Venn and Venn–Abers setups are better calibrated (eq. 13, mean rank) than "
        "the raw forest, Platt scaling and isotonic regression.",
        max(ranks[s] for s in VENN) < min(ranks[s] for s in others),
        text + ".",
    )
    yield Conclusion(
        "Isotonic regression is worse calibrated (eq. 13, mean rank) than the raw forest.",
        bool(ranks["Iso-cal"] > ranks["RF-cal"] and ranks["Iso-oob"] > ranks["RF-oob"]),
        ", ".join(f"{s} {ranks[s]:.2f}" for s in ("Iso-cal", "RF-cal", "Iso-oob", "RF-oob")) + ".",
    )
    yield Conclusion(
        "For Venn predictors a calibration set gives slightly better calibration (eq. 13, mean "
        "rank) than out-of-bag examples.",
        ranks["VP-cal"] < ranks["VP-oob"],
        f"VP-cal {ranks['VP-cal']:.2f}, VP-oob {ranks['VP-oob']:.2f}.",
    )


def _valid(f: Findings) -> Conclusion:
    counts, far = {}, 0.0
    for setup in VENN:
        counts[setup] = sum(f.inside(setup, d) for d in f.datasets)
        for d in f.datasets:
            low, high, a = (f.measures[n][setup][d] for n in ("low", "high", "accuracy"))
            far = max(far, low - a, a - high)
    n = len(f.datasets)
    return Conclusion(
        "All four Venn setups are valid: the accuracy lies in the mean interval on most data sets.",
        all(2 * count > n for count in counts.values()),
        "Inside: "
        + ", ".join(f"{s} on {count_of(c, f.datasets)}" for s, c in counts.items())
        + f"; the largest distance from an interval is {far:.4f}.",
    )


def eq_13_or_variance(f: Findings) -> Conclusion:
    """Compare the printed Table 2 with the reliability of eq. 13 and with the variance."""
    off: dict[str, list[float]] = {"reliability": [], "variance": []}
    for setup in SETUPS:
        for d in f.datasets:
            printed = f.printed("2", setup, "reliability", d)
            for measure, column in off.items():
                column.append(abs(f.measures[measure][setup][d] - printed))
    rel, var = (np.array(off[m]) for m in ("reliability", "variance"))
    closer = int((var < rel).sum())
    follows = "the variance of the estimates" if var.mean() < rel.mean() else "eq. 13"
    return Conclusion(
        "The printed Table 2 gives the reliability of eq. 13.",
        bool(rel.mean() <= var.mean()),
        f"The printed column follows {follows}: its mean absolute difference from the "
        f"variance obtained here is {var.mean():.4f}, from eq. 13 {rel.mean():.4f}, and the "
        f"variance is closer in {closer} of {len(rel)} cells.",
    )


def _but(names: Sequence[str]) -> str:
    return f" (not on {', '.join(names)})" if names else ""
