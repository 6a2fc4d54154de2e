"""Which conclusions of Niculescu-Mizil & Caruana (2005) hold, from the numbers obtained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vennforest._validation import FloatArray
from vennforest.papers.niculescu2005.learners import LEARNERS
from vennforest.papers.protocol.reproduction import Conclusion

METHODS = ("raw", "Platt", "isotonic", "Venn–Abers", "smooth Venn–Abers")
LOSSES = ("squared error", "log loss")
MARGIN = ("BST-DT", "BST-STMP", "SVM")
CALM = ("ANN", "BAG-DT", "LOGREG")
FORESTS_PUSH = ("COV_TYPE", "LETTER.P1", "LETTER.P2")
CURVES = tuple(kind for kind in LEARNERS if kind != "DT")
"""Figure 7 leaves decision trees out."""


@dataclass(frozen=True)
class Measured:
    """What the trials gave, averaged.

    Attributes
    ----------
    datasets : sequence of str
        The problems.
    sizes : sequence of int
        Of the calibration sets in the learning curves.
    losses : mapping
        By learner, method and loss: means over the problems, one a trial, shape (t,).
    by_problem : mapping
        The same: means over the trials, one a problem.
    curves : mapping
        By learner and method: squared errors, means over the problems, shape (sizes, trials).
    slopes : mapping
        By learner: the slope on each problem, mean over the trials.
    """

    datasets: Sequence[str]
    sizes: Sequence[int]
    losses: Mapping[tuple[str, str, str], FloatArray]
    by_problem: Mapping[tuple[str, str, str], FloatArray]
    curves: Mapping[tuple[str, str], FloatArray]
    slopes: Mapping[str, FloatArray]

    def mean(self, kind: str, method: str, loss: str = "squared error") -> float:
        """Return a mean over trials and problems."""
        return float(self.losses[kind, method, loss].mean())

    def best(self, kind: str, loss: str = "squared error") -> float:
        """Return the smaller of the losses after Platt scaling and isotonic regression."""
        return min(self.mean(kind, "Platt", loss), self.mean(kind, "isotonic", loss))

    def gain(self, kind: str, loss: str = "squared error") -> float:
        """Return by which share the better calibration makes the raw loss smaller."""
        return 1 - self.best(kind, loss) / self.mean(kind, "raw", loss)

    def curve(self, kind: str, method: str, size: int) -> float:
        """Return the mean squared error with a calibration set of that size."""
        return float(self.curves[kind, method][self.sizes.index(size)].mean())


class Conclusions:
    """The paper's conclusions, one after another.

    Parameters
    ----------
    measured : Measured
        What the trials gave.
    """

    def __init__(self, measured: Measured) -> None:
        self.datasets, self.sizes, self.slopes = measured.datasets, measured.sizes, measured.slopes
        self.mean, self.best, self.gain = measured.mean, measured.best, measured.gain
        self.curve = measured.curve

    def all(self) -> Iterable[Conclusion]:
        """Yield the paper's conclusions."""
        yield self._leaders("Before calibration", ("RF", "BAG-DT", "ANN"), calibrated=False)
        yield self._leaders("After calibration", ("BST-DT", "RF", "SVM"), calibrated=True)
        yield self._improved()
        yield self._unimproved()
        yield self._pushed()
        yield self._naive_bayes()
        yield self._calm()
        yield self._forests()
        yield self._trees()
        yield self._small()
        yield self._large()
        yield self._margin_small()
        yield self._calm_curves()
        yield self._bayes_curves()
        yield self._others()
        yield self._venn_abers()

    def _leaders(self, when: str, named: tuple[str, ...], *, calibrated: bool) -> Conclusion:
        holds, text = True, []
        for loss in LOSSES:
            value = {
                k: self.best(k, loss) if calibrated else self.mean(k, "raw", loss) for k in LEARNERS
            }
            order = sorted(LEARNERS, key=value.__getitem__)
            holds = holds and set(order[:3]) == set(named)
            text.append(f"By {loss}: " + ", ".join(f"{k} {value[k]:.4f}" for k in order[:5]))
        return Conclusion(
            f"{when} the three best learners are {', '.join(named)}.", holds, "; ".join(text) + "."
        )

    def _improved(self) -> Conclusion:
        named = {"BST-DT", "SVM", "BST-STMP", "NB"}
        holds, text = True, []
        for loss in LOSSES:
            order = sorted(LEARNERS, key=lambda k: -self.gain(k, loss))
            holds = holds and set(order[:4]) == named
            text.append(f"{loss} " + ", ".join(f"{k} {self.gain(k, loss):.1%}" for k in order))
        return Conclusion(
            "Calibration improves boosted trees, SVMs, boosted stumps and naïve Bayes "
            "dramatically, more than all others.",
            holds,
            "Shares of the raw loss that the better calibration saves: " + "; ".join(text) + ".",
        )

    def _unimproved(self) -> Conclusion:
        nets = [self.mean("ANN", m) > self.mean("ANN", "raw") for m in ("Platt", "isotonic")]
        gain = self.gain("BAG-DT")
        return Conclusion(
            "Calibration does not help bagged trees (by less than 1% of their squared error) and "
            "hurts neural nets.",
            all(nets) and gain < 0.01,
            f"Bagged trees {gain:+.1%}. Neural nets: "
            + ", ".join(f"{m} {self.mean('ANN', m):.4f}" for m in METHODS[:3])
            + ".",
        )

    def _slope_text(self, kinds: Iterable[str]) -> str:
        parts = [
            f"{kind} "
            + ", ".join(
                f"{v:.2f} ({d})" for d, v in zip(self.datasets, self.slopes[kind], strict=True)
            )
            for kind in kinds
        ]
        return "Slopes: " + "; ".join(parts) + "."

    def _pushed(self) -> Conclusion:
        wrong = [
            f"{kind} on {d}"
            for kind in MARGIN
            for d, slope in zip(self.datasets, self.slopes[kind], strict=True)
            if slope <= 1 and (kind, d) != ("BST-DT", "ADULT")
        ]
        return Conclusion(
            "Maximum margin methods (boosted trees, boosted stumps, SVMs) push estimates away from "
            "0 and 1 on every problem, but for boosted trees on ADULT, best after few steps.",
            not wrong,
            (f"Not {', '.join(wrong)}. " if wrong else "") + self._slope_text(MARGIN),
        )

    def _naive_bayes(self) -> Conclusion:
        return Conclusion(
            "Naïve Bayes pushes estimates towards 0 and 1 on every problem.",
            bool((self.slopes["NB"] < 1).all()),
            self._slope_text(["NB"]),
        )

    def _calm(self) -> Conclusion:
        near = {k: int(((self.slopes[k] > 0.8) & (self.slopes[k] < 1.25)).sum()) for k in CALM}
        n = len(self.datasets)
        return Conclusion(
            "Neural nets, bagged trees and logistic regression have little bias: slopes between .8 "
            "and 1.25 on most problems.",
            all(2 * count > n for count in near.values()),
            ", ".join(f"{k} on {count} of {n}" for k, count in near.items())
            + ". "
            + self._slope_text(CALM),
        )

    def _forests(self) -> Conclusion:
        pairs = {
            d: (rf, boosted)
            for d, rf, boosted in zip(
                self.datasets, self.slopes["RF"], self.slopes["BST-DT"], strict=True
            )
            if d in FORESTS_PUSH
        }
        return Conclusion(
            f"Random forests push estimates away from 0 and 1 on {', '.join(FORESTS_PUSH)}, but "
            "less than boosted trees.",
            all(1 < rf < boosted for rf, boosted in pairs.values()) if pairs else None,
            self._slope_text(["RF", "BST-DT"]),
        )

    def _trees(self) -> Conclusion:
        value = {m: self.mean("DT", m) for m in METHODS[:3]}
        return Conclusion(
            "Platt scaling cannot mend single decision trees, isotonic regression helps.",
            value["isotonic"] < value["raw"] <= value["Platt"],
            ", ".join(f"{m} {v:.4f}" for m, v in value.items()) + ".",
        )

    def _small(self) -> Conclusion:
        small = [size for size in self.sizes if size < 200]
        wrong = [
            f"{kind} at {size}"
            for kind in CURVES
            for size in small
            if self.curve(kind, "Platt", size) >= self.curve(kind, "isotonic", size)
        ]
        meets = {
            kind: next(
                (
                    s
                    for s in self.sizes
                    if self.curve(kind, "isotonic", s) <= self.curve(kind, "Platt", s)
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
            + "Isotonic regression is first as good with: "
            + ", ".join(f"{k} {s if s else 'none of these sizes'}" for k, s in meets.items())
            + " cases.",
        )

    def _large(self) -> Conclusion:
        large = [size for size in self.sizes if size >= 1000]
        behind = {
            f"{kind} at {size}": off
            for kind in CURVES
            for size in large
            if (off := self.curve(kind, "isotonic", size) - self.curve(kind, "Platt", size))
            > 0.0005
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

    def _margin_small(self) -> Conclusion:
        size = self.sizes[0]
        return Conclusion(
            "Maximum margin methods gain from calibration even with a small calibration set.",
            all(self.curve(k, "Platt", size) < self.curve(k, "raw", size) for k in MARGIN),
            f"With {size} cases, raw and Platt: "
            + ", ".join(
                f"{k} {self.curve(k, 'raw', size):.4f}, {self.curve(k, 'Platt', size):.4f}"
                for k in MARGIN
            )
            + ".",
        )

    def _calm_curves(self) -> Conclusion:
        first, last = self.sizes[0], self.sizes[-1]
        worse = all(
            self.curve(k, m, first) > self.curve(k, "raw", first)
            for k in CALM
            for m in ("Platt", "isotonic")
        )
        gains = {
            k: 1
            - min(self.curve(k, m, last) for m in ("Platt", "isotonic"))
            / self.curve(k, "raw", last)
            for k in CALM
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

    def _bayes_curves(self) -> Conclusion:
        helped = [
            size
            for size in self.sizes
            if min(self.curve("NB", m, size) for m in ("Platt", "isotonic"))
            < self.curve("NB", "raw", size)
        ]
        last = self.sizes[-1]
        platt, isotonic = (self.curve("NB", m, last) for m in ("Platt", "isotonic"))
        return Conclusion(
            "Calibration helps naïve Bayes at almost all sizes (all but two at most), and isotonic "
            "regression more than Platt scaling when there is more data.",
            len(helped) >= len(self.sizes) - 2 and isotonic < platt,
            f"Helps with {', '.join(map(str, helped)) or 'no'} cases; with {last}: Platt "
            f"{platt:.4f}, isotonic {isotonic:.4f}.",
        )

    def _others(self) -> Conclusion:
        from_size = {}
        for kind in ("KNN", "RF", "DT"):
            helps = [
                min(self.curve(kind, m, s) for m in ("Platt", "isotonic"))
                < self.curve(kind, "raw", s)
                for s in self.sizes
            ]
            first = next((i for i in range(len(helps)) if all(helps[i:])), None)
            from_size[kind] = None if first is None else self.sizes[first]
        return Conclusion(
            "Memory-based learning, random forests and decision trees gain once the calibration "
            "set is large enough.",
            all(size is not None for size in from_size.values()),
            "Always from: " + ", ".join(f"{k} {s or 'never'}" for k, s in from_size.items()) + ".",
        )

    def _venn_abers(self) -> Conclusion:
        first, last = self.sizes[0], self.sizes[-1]
        better = {
            (m, size): sum(
                self.curve(k, m, size) < self.curve(k, "isotonic", size) for k in LEARNERS
            )
            for m in METHODS[3:]
            for size in (first, last)
        }
        return Conclusion(
            "Ours, not the paper's: with little data Venn–Abers has a smaller squared error than "
            "isotonic regression for every learner.",
            all(better[m, first] == len(LEARNERS) for m in METHODS[3:]),
            "; ".join(
                f"{m} with {size} cases: for {n} of {len(LEARNERS)}"
                for (m, size), n in better.items()
            )
            + ". Mean log losses (Figure 8) over all learners: "
            + ", ".join(
                f"{m} {np.mean([self.mean(k, m, 'log loss') for k in LEARNERS]):.4f}"
                for m in METHODS
            )
            + ".",
        )
