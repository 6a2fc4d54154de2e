"""What Niculescu-Mizil & Caruana (2005) conclude, and whether it holds for the numbers obtained."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from vennforest_experiments.papers.niculescu2005.experiment import LOSSES, METHODS
from vennforest_experiments.papers.niculescu2005.findings import TrialMeans
from vennforest_experiments.papers.niculescu2005.learners import LEARNERS
from vennforest_experiments.papers.protocol.reproduction import Conclusion

MAXIMUM_MARGIN = ("BST-DT", "BST-STMP", "SVM")
LITTLE_BIAS = ("ANN", "BAG-DT", "LOGREG")
FORESTS_PUSH = ("COV_TYPE", "LETTER.P1", "LETTER.P2")
CURVES = tuple(kind for kind in LEARNERS if kind != "DT")
"""Figure 7 leaves decision trees out."""


def conclusions(found: TrialMeans) -> Iterable[Conclusion]:
    """Yield the paper's conclusions."""
    yield _leaders(found, "Before calibration", ("RF", "BAG-DT", "ANN"), calibrated=False)
    yield _leaders(found, "After calibration", ("BST-DT", "RF", "SVM"), calibrated=True)
    yield _improved(found)
    yield _unimproved(found)
    yield _pushed(found)
    yield _naive_bayes(found)
    yield _little_bias(found)
    yield _forests(found)
    yield _trees(found)
    yield _small(found)
    yield _large(found)
    yield _maximum_margin_small(found)
    yield _little_bias_curves(found)
    yield _bayes_curves(found)
    yield _others(found)
    yield _venn_abers(found)


def _leaders(
    found: TrialMeans, when: str, named: tuple[str, ...], *, calibrated: bool
) -> Conclusion:
    holds, text = True, []
    for loss in LOSSES:
        value = {
            k: found.best(k, loss) if calibrated else found.mean(k, "raw", loss) for k in LEARNERS
        }
        order = sorted(LEARNERS, key=value.__getitem__)
        holds = holds and set(order[:3]) == set(named)
        text.append(f"By {loss}: " + ", ".join(f"{k} {value[k]:.4f}" for k in order[:5]))
    return Conclusion(
        f"{when} the three best learners are {', '.join(named)}.", holds, "; ".join(text) + "."
    )


def _improved(found: TrialMeans) -> Conclusion:
    named = {"BST-DT", "SVM", "BST-STMP", "NB"}
    holds, text = True, []
    for loss in LOSSES:
        order = sorted(LEARNERS, key=lambda k: -found.gain(k, loss))
        holds = holds and set(order[:4]) == named
        text.append(f"{loss} " + ", ".join(f"{k} {found.gain(k, loss):.1%}" for k in order))
    return Conclusion(
        "Calibration improves boosted trees, SVMs, boosted stumps and naïve Bayes "
        "dramatically, more than all other learners.",
        holds,
        "Reduction of the raw loss by the better calibration: " + "; ".join(text) + ".",
    )


def _unimproved(found: TrialMeans) -> Conclusion:
    nets = [found.mean("ANN", m) > found.mean("ANN", "raw") for m in ("Platt", "isotonic")]
    gain = found.gain("BAG-DT")
    return Conclusion(
        "Calibration does not help bagged trees (by less than 1% of their squared error) and "
        "hurts neural nets.",
        all(nets) and gain < 0.01,
        f"Bagged trees {gain:+.1%}. Neural nets: "
        + ", ".join(f"{m} {found.mean('ANN', m):.4f}" for m in METHODS[:3])
        + ".",
    )


def _slope_text(found: TrialMeans, kinds: Iterable[str]) -> str:
    parts = [
        f"{kind} "
        + ", ".join(
            f"{v:.2f} ({d})" for d, v in zip(found.datasets, found.slopes[kind], strict=True)
        )
        for kind in kinds
    ]
    return "Slopes: " + "; ".join(parts) + "."


def _pushed(found: TrialMeans) -> Conclusion:
    wrong = [
        f"{kind} on {d}"
        for kind in MAXIMUM_MARGIN
        for d, slope in zip(found.datasets, found.slopes[kind], strict=True)
        if slope <= 1 and (kind, d) != ("BST-DT", "ADULT")
    ]
    return Conclusion(
        "Maximum margin methods (boosted trees, boosted stumps, SVMs) push estimates away from "
        "0 and 1 on every problem, except boosted trees on ADULT, which are best after few steps.",
        not wrong,
        (f"Not {', '.join(wrong)}. " if wrong else "") + _slope_text(found, MAXIMUM_MARGIN),
    )


def _naive_bayes(found: TrialMeans) -> Conclusion:
    return Conclusion(
        "Naïve Bayes pushes estimates towards 0 and 1 on every problem.",
        bool((found.slopes["NB"] < 1).all()),
        _slope_text(found, ["NB"]),
    )


def _little_bias(found: TrialMeans) -> Conclusion:
    near = {k: int(((found.slopes[k] > 0.8) & (found.slopes[k] < 1.25)).sum()) for k in LITTLE_BIAS}
    n = len(found.datasets)
    return Conclusion(
        "Neural nets, bagged trees and logistic regression have little bias: slopes between .8 "
        "and 1.25 on most problems.",
        all(2 * count > n for count in near.values()),
        ", ".join(f"{k} on {count} of {n}" for k, count in near.items())
        + ". "
        + _slope_text(found, LITTLE_BIAS),
    )


def _forests(found: TrialMeans) -> Conclusion:
    pairs = {
        d: (rf, boosted)
        for d, rf, boosted in zip(
            found.datasets, found.slopes["RF"], found.slopes["BST-DT"], strict=True
        )
        if d in FORESTS_PUSH
    }
    return Conclusion(
        f"Random forests push estimates away from 0 and 1 on {', '.join(FORESTS_PUSH)}, but "
        "less than boosted trees.",
        all(1 < rf < boosted for rf, boosted in pairs.values()) if pairs else None,
        _slope_text(found, ["RF", "BST-DT"]),
    )


def _trees(found: TrialMeans) -> Conclusion:
    value = {m: found.mean("DT", m) for m in METHODS[:3]}
    return Conclusion(
        "Platt scaling does not improve single decision trees; isotonic regression does.",
        value["isotonic"] < value["raw"] <= value["Platt"],
        ", ".join(f"{m} {v:.4f}" for m, v in value.items()) + ".",
    )


def _small(found: TrialMeans) -> Conclusion:
    small = [size for size in found.sizes if size < 200]
    wrong = [
        f"{kind} at {size}"
        for kind in CURVES
        for size in small
        if found.curve(kind, "Platt", size) >= found.curve(kind, "isotonic", size)
    ]
    meets = {
        kind: next(
            (
                s
                for s in found.sizes
                if found.curve(kind, "isotonic", s) <= found.curve(kind, "Platt", s)
            ),
            None,
        )
        for kind in CURVES
    }
    return Conclusion(
        "With fewer than about 200 calibration cases Platt scaling is better than isotonic "
        "regression for all nine learners.",
        not wrong,
        (f"Not for {', '.join(wrong)}. " if wrong else "")
        + "Isotonic regression is first at least as good with: "
        + ", ".join(f"{k} {s if s else 'none of these sizes'}" for k, s in meets.items())
        + " cases.",
    )


def _large(found: TrialMeans) -> Conclusion:
    large = [size for size in found.sizes if size >= 1000]
    behind = {
        f"{kind} at {size}": off
        for kind in CURVES
        for size in large
        if (off := found.curve(kind, "isotonic", size) - found.curve(kind, "Platt", size)) > 0.0005
    }
    if not large:
        return Conclusion(
            "With 1,000 or more calibration cases isotonic regression is as good or better.",
            None,
            "No calibration set is as large.",
        )
    return Conclusion(
        "With 1,000 or more calibration cases isotonic regression is as good as Platt scaling "
        "(within .0005) or better.",
        not behind,
        "Behind: " + ", ".join(f"{k} ({v:+.4f})" for k, v in behind.items()) + "."
        if behind
        else "For all nine learners and all such sizes.",
    )


def _maximum_margin_small(found: TrialMeans) -> Conclusion:
    size = found.sizes[0]
    return Conclusion(
        "Maximum margin methods gain from calibration even with a small calibration set.",
        all(found.curve(k, "Platt", size) < found.curve(k, "raw", size) for k in MAXIMUM_MARGIN),
        f"With {size} cases, raw and Platt: "
        + ", ".join(
            f"{k} {found.curve(k, 'raw', size):.4f}, {found.curve(k, 'Platt', size):.4f}"
            for k in MAXIMUM_MARGIN
        )
        + ".",
    )


def _little_bias_curves(found: TrialMeans) -> Conclusion:
    first, last = found.sizes[0], found.sizes[-1]
    worse = all(
        found.curve(k, m, first) > found.curve(k, "raw", first)
        for k in LITTLE_BIAS
        for m in ("Platt", "isotonic")
    )
    gains = {
        k: 1
        - min(found.curve(k, m, last) for m in ("Platt", "isotonic")) / found.curve(k, "raw", last)
        for k in LITTLE_BIAS
    }
    return Conclusion(
        "Neural nets, bagged trees and logistic regression are hurt by small calibration sets "
        "and gain little (less than 2%) from large ones.",
        worse and all(g < 0.02 for g in gains.values()),
        f"With {first} cases both calibrations hurt {'all' if worse else 'not all'} three; "
        f"with {last} the better one gains "
        + ", ".join(f"{k} {g:+.1%}" for k, g in gains.items())
        + ".",
    )


def _bayes_curves(found: TrialMeans) -> Conclusion:
    helped = [
        size
        for size in found.sizes
        if min(found.curve("NB", m, size) for m in ("Platt", "isotonic"))
        < found.curve("NB", "raw", size)
    ]
    last = found.sizes[-1]
    platt, isotonic = (found.curve("NB", m, last) for m in ("Platt", "isotonic"))
    return Conclusion(
        "Calibration helps naïve Bayes at almost all sizes (all but two at most), and isotonic "
        "regression more than Platt scaling when there is more data.",
        len(helped) >= len(found.sizes) - 2 and isotonic < platt,
        f"Helps with {', '.join(map(str, helped)) or 'no'} cases; with {last}: Platt "
        f"{platt:.4f}, isotonic {isotonic:.4f}.",
    )


def _others(found: TrialMeans) -> Conclusion:
    from_size = {}
    for kind in ("KNN", "RF", "DT"):
        helps = [
            min(found.curve(kind, m, s) for m in ("Platt", "isotonic"))
            < found.curve(kind, "raw", s)
            for s in found.sizes
        ]
        first = next((i for i in range(len(helps)) if all(helps[i:])), None)
        from_size[kind] = None if first is None else found.sizes[first]
    return Conclusion(
        "Memory-based learning, random forests and decision trees gain once the calibration "
        "set is large enough.",
        all(size is not None for size in from_size.values()),
        "It always helps from this size on: "
        + ", ".join(f"{k} {s or 'never'}" for k, s in from_size.items())
        + ".",
    )


def _venn_abers(found: TrialMeans) -> Conclusion:
    first, last = found.sizes[0], found.sizes[-1]
    better = {
        (m, size): sum(found.curve(k, m, size) < found.curve(k, "isotonic", size) for k in LEARNERS)
        for m in METHODS[3:]
        for size in (first, last)
    }
    return Conclusion(
        "Not in the paper: with little data Venn–Abers has a smaller squared error than "
        "isotonic regression for every learner.",
        all(better[m, first] == len(LEARNERS) for m in METHODS[3:]),
        "; ".join(
            f"{m} with {size} cases: for {n} of {len(LEARNERS)}" for (m, size), n in better.items()
        )
        + ". Mean log losses (Figure 8) over all learners: "
        + ", ".join(
            f"{m} {np.mean([found.mean(k, m, 'log loss') for k in LEARNERS]):.4f}" for m in METHODS
        )
        + ".",
    )
