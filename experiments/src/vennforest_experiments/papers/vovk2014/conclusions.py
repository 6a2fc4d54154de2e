"""What Vovk & Petej (2014) conclude, and whether it holds for the numbers obtained here."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import product

import numpy as np

from vennforest_experiments.papers.protocol.phrases import count_of
from vennforest_experiments.papers.protocol.reproduction import Conclusion
from vennforest_experiments.papers.vovk2014.classifiers import CLASSIFIERS
from vennforest_experiments.papers.vovk2014.experiment import COLUMNS, METHODS
from vennforest_experiments.papers.vovk2014.findings import MEASURES, Findings


def conclusions(f: Findings) -> Iterable[Conclusion]:
    """Yield the paper's conclusions, and how close the numbers are to the printed ones."""
    yield _infinite(f)
    yield _finite(f)
    yield _majority(f)
    yield _bagging(f)
    yield _direct(f)
    for measure, count in (("log loss", 8), ("root mean square error", 6)):
        yield _best(f, measure, count)
    for measure, count in (("log loss", 4), ("root mean square error", 3)):
        yield _equal(f, measure, count)
    for method, measure, count in (
        ("SVA", "log loss", 7),
        ("SVA", "root mean square error", 5),
        ("VA", "log loss", 6),
        ("VA", "root mean square error", 5),
    ):
        yield _beats(f, method, measure, count)
    yield from _close(f)


def _cells(f: Findings, method: str, measure: str) -> dict[tuple[str, str], float]:
    return {
        (d, k): f.losses[measure][f"{method} ({k})"][d] for d, k in product(f.datasets, CLASSIFIERS)
    }


def _infinite(f: Findings) -> Conclusion:
    cells = _cells(f, "DIR", "log loss")
    finite = [f"{d} with {k}" for (d, k), v in cells.items() if math.isfinite(v)]
    return Conclusion(
        "Direct isotonic regression suffers infinite log loss in every experiment.",
        not finite,
        f"In {len(cells) - len(finite)} of {len(cells)}"
        + (f" (finite: {', '.join(finite)})." if finite else "."),
    )


def _finite(f: Findings) -> Conclusion:
    largest = {m: max(_cells(f, m, "log loss").values()) for m in ("VA", "SVA")}
    raw = sum(math.isinf(v) for v in _cells(f, "W", "log loss").values())
    return Conclusion(
        "VA and SVA never suffer infinite log loss (Lemma 2).",
        all(math.isfinite(v) for v in largest.values()),
        f"Largest mean log error: VA {largest['VA']:.3f}, SVA {largest['SVA']:.3f}; the raw "
        f"classifiers' is infinite in {raw} of {len(f.datasets) * len(CLASSIFIERS)}.",
    )


def _majority(f: Findings) -> Conclusion:
    most, text = True, []
    for method in ("VA", "SVA"):
        ours, raw = _cells(f, method, "log loss"), _cells(f, "W", "log loss")
        better = [d for d in f.datasets if 2 * sum(ours[d, k] < raw[d, k] for k in CLASSIFIERS) > 6]
        most = most and 2 * len(better) > len(f.datasets)
        pairs = sum(ours[key] < raw[key] for key in ours)
        text.append(
            f"{method} improves most classifiers on {count_of(len(better), f.datasets)}, "
            f"and {pairs} of {len(ours)} combinations"
        )
    return Conclusion(
        "In mean log error VA and SVA improve the majority of the classifiers on most data sets.",
        most,
        "; ".join(text) + ".",
    )


def _bagging(f: Findings) -> Conclusion:
    counts = {}
    for method, measure in product(("VA", "SVA"), MEASURES):
        ours, raw = _cells(f, method, measure), _cells(f, "W", measure)
        counts[method, measure] = sum(ours[d, "JB"] < raw[d, "JB"] for d in f.datasets)
    listed = ", ".join(
        f"{method} in {measure} on {count_of(n, f.datasets)}"
        for (method, measure), n in counts.items()
    )
    return Conclusion(
        "Bagged trees are the exception: neither VA nor SVA improves their log loss or square "
        "loss on most data sets.",
        all(2 * n <= len(f.datasets) for n in counts.values()),
        f"Improved by {listed}.",
    )


def _direct(f: Findings) -> Conclusion:
    means = {
        m: float(np.mean(list(_cells(f, m, "root mean square error").values()))) for m in METHODS
    }
    return Conclusion(
        "In square loss DIR is comparable to VA and SVA: its mean error over all combinations "
        "is within .02 of theirs.",
        abs(means["DIR"] - means["VA"]) <= 0.02 and abs(means["DIR"] - means["SVA"]) <= 0.02,
        "Means of the root mean square error: "
        + ", ".join(f"{m} {v:.4f}" for m, v in means.items())
        + ".",
    )


def _winners(f: Findings, measure: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {method: [] for method in METHODS}
    for d in f.datasets:
        found[f.ranks[measure, d][0][0]].append(d)
    return found


def _best(f: Findings, measure: str, count: int) -> Conclusion:
    won = _winners(f, measure)
    ours = len(won["VA"]) + len(won["SVA"])
    listed = "; ".join(f"{m}: {', '.join(names)}" for m, names in won.items() if names)
    return Conclusion(
        f"In {measure} the best method is VA or SVA on most data sets ({count} of 9 in the "
        "paper), and elsewhere W, never DIR.",
        2 * ours > len(f.datasets) and not won["DIR"],
        f"On {count_of(ours, f.datasets)}. Best: {listed}.",
    )


def _equal(f: Findings, measure: str, count: int) -> Conclusion:
    won = {m: len(names) for m, names in _winners(f, measure).items()}
    return Conclusion(
        f"In {measure} VA and SVA are best on equally many data sets ({count} each in the "
        "paper; its introduction, which gives SVA seven of nine in log loss, contradicts its "
        "own Table 3)."
        if measure == "log loss"
        else f"In {measure} VA and SVA are best on equally many data sets ({count} each in "
        "the paper).",
        won["VA"] == won["SVA"],
        f"VA on {count_of(won['VA'], f.datasets)}, SVA on {won['SVA']}.",
    )


def _beats(f: Findings, method: str, measure: str, count: int) -> Conclusion:
    better = []
    for d in f.datasets:
        loss = {m: value for m, _, value in f.ranks[measure, d]}
        if loss[method] < loss["W"]:
            better.append(d)
    return Conclusion(
        f"{method}, with its best classifier, has a smaller {measure} than W on most data sets "
        f"({count} of 9 in the paper).",
        2 * len(better) > len(f.datasets),
        f"On {count_of(len(better), f.datasets)}: {', '.join(better) or 'none'}.",
    )


def _close(f: Findings) -> Iterable[Conclusion]:
    for measure, number in MEASURES.items():
        off: dict[str, list[float]] = {}
        infinite = both = 0
        for d, column in product(f.datasets, COLUMNS):
            value = f.values.get(number, d, column, measure)
            if value.published is None:
                continue
            kinds = {math.isinf(value.value), math.isinf(value.published)}
            if kinds == {False}:
                off.setdefault(d, []).append(abs(value.value - value.published))
            infinite += len(kinds) == 2
            both += kinds == {True}
        every = [one for column in off.values() for one in column]
        worst = sorted(off, key=lambda d: -float(np.mean(off[d])))
        text = f"Mean absolute difference {np.mean(every):.3f}; by data set: " + ", ".join(
            f"{d} {np.mean(off[d]):.3f}" for d in worst
        )
        if both or infinite:
            text += f"; infinite in both {both} times, in only one of them {infinite} times"
        yield Conclusion(
            f"Agreement with the printed numbers: {measure} is within .05 on average, with other "
            "implementations of the classifiers.",
            bool(np.mean(every) <= 0.05),
            text + ".",
        )
