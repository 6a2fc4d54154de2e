"""Table 1 and Figure 1 of Boström (2008), and which of its conclusions hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from vennforest.comparison import Comparison, compare
from vennforest.papers.protocol.experiment import command
from vennforest.papers.protocol.reproduction import (
    Conclusion,
    Figure,
    Reproduction,
    Table,
    Values,
    draw_ranks,
)
from vennforest.papers.published import ALL, MEAN_RANK

if TYPE_CHECKING:
    from vennforest.papers.bostrom2008.experiment import Bostrom2008

METHODS = ("CT", "CT_I", "CT_P", "CT_R", "PET", "PET_I", "PET_P", "PET_R")
BETTER = "significantly better than "
CONTROL = "PET_R"

FIGURE = "vote"
"""The data set of Figure 1, housevotes."""

RANKED: Mapping[str, tuple[tuple[str, ...], bool]] = {
    "brier": (METHODS, True),
    "auc": (METHODS, False),
    # Boström's correction leaves accuracy as it is: the raw forests are not ranked again.
    "accuracy": (tuple(m for m in METHODS if m not in ("CT", "PET")), False),
    "log loss": (METHODS, True),
}
"""For each measure the methods that are ranked, and whether the smallest value is best."""

LEAVES = {
    "training": "A leaf's distribution is that of all training examples in it, with those that are "
    "out of bag for the tree, as in the paper: an out-of-bag score so knows a little of the "
    "example's own label.",
    "others": "A leaf's distribution is that of all training examples in it, as in the paper; for "
    "an out-of-bag score the example that is scored does not count, which the paper does not say.",
    "bag": "A leaf's distribution is that of the examples the tree was grown from (the paper takes "
    "all training examples). Trees are grown until leaves are pure, so that distribution and vote "
    "differ only where equal objects have different labels: CT and PET are nearly the same.",
}
"""What is said of each way to estimate."""

Measures = Mapping[str, Mapping[str, Mapping[str, float]]]


def report(experiment: Bostrom2008, measures: Measures) -> Reproduction:
    """Make the reproduction of what was measured.

    Parameters
    ----------
    experiment : Bostrom2008
        As it was run.
    measures : mapping
        By measure, method and data set.
    """
    findings = Findings(experiment, measures)
    return Reproduction(
        paper="bostrom2008",
        title="Boström (2008). Calibrating random forests. Seventh International Conference on "
        "Machine Learning and Applications, 121–126.",
        command=command(experiment, findings.datasets),
        notes=notes(experiment, findings),
        conclusions=tuple(findings.conclusions()),
        values=findings.values.all(),
        shown=tuple(findings.tables()),
        figures=tuple(findings.figures()),
    )


def notes(experiment: Bostrom2008, findings: Findings) -> tuple[str, ...]:
    """Say how it was done, and where the paper leaves it open."""
    total = len(experiment.datasets())
    return (
        "The paper says that its 34 data sets are from the UCI repository and does not list them. "
        f"{total} data sets of that repository stand in, so that only the ranks can be compared "
        "with the printed ones.",
        f"{len(findings.datasets)} of {total} data sets, stratified {experiment.folds}-fold "
        f"cross-validation{_times(experiment.repeats)} (the paper: once, 10 folds), forests of "
        f"{experiment.trees} trees (the paper: 100), seed {experiment.seed}.",
        "CT and PET are the same trees: votes of trees against the mean of their class "
        f"distributions. {LEAVES[experiment.estimation]} Every calibrator is fitted to out-of-bag "
        "scores; all trees score a new object.",
        "Platt scaling has targets 0 and 1, as in the paper; Platt and isotonic are fitted one "
        "class against the rest and normalised. Boström's correction searches A and B in 0 to 50 "
        "with r = 1/(1 + exp(B − A p)), which does not decrease; the paper leaves the signs open.",
        "The Brier score is the mean squared distance between vectors (0 to 2); AUC is the mean "
        "of the classes' areas, each against the rest, weighted by their shares (Fawcett); all are "
        "means over the folds. Missing numbers are left to the trees, which send them where they "
        "fit best; nominal columns are one-hot.",
        "The printed table has no log loss. An estimate of 0 for what happens counts with the "
        "smallest number that is not 0, which weighs heavily on raw forests and isotonic "
        "regression.",
    )


class Findings:
    """Numbers, tables and conclusions from what was measured."""

    def __init__(self, experiment: Bostrom2008, measures: Measures) -> None:
        self.experiment, self.measures = experiment, measures
        self.datasets = list(measures["brier"][CONTROL])
        self.values = Values("bostrom2008")
        self.comparisons: dict[str, Comparison] = {}
        for measure, (methods, lower) in RANKED.items():
            for method in METHODS:
                self.values.add_column("1", method, measure, measures[measure][method])
            # A set in which no fold could be measured is ranked for no method.
            columns = {
                m: {d: v for d, v in measures[measure][m].items() if not np.isnan(v)}
                for m in methods
            }
            comparison = compare(columns, lower_is_better=lower, control=CONTROL)
            self.comparisons[measure] = comparison
            self.values.add_ranks("1", measure, methods, comparison.mean_ranks)
            self.values.add("text", ALL, "", f"friedman p, {measure}", comparison.chi_square_p)
        brier = self.comparisons["brier"]
        self.values.add(
            "text",
            ALL,
            "",
            "bonferroni-dunn critical difference",
            brier.critical_difference("bonferroni-dunn"),
        )
        beaten = {worse for better, worse in brier.better("bonferroni-dunn") if better == CONTROL}
        for method in METHODS:
            if method != CONTROL:
                measure = f"{BETTER}{method}, brier"
                self.values.add("text", ALL, CONTROL, measure, float(method in beaten))
        self.beaten = beaten

    # --- tables ------------------------------------------------------------------------------

    def tables(self) -> Iterable[Table]:
        """Yield the paper's table, the numbers behind it, and tests of Brier scores."""
        names = [m for m in RANKED if m != "log loss"]
        yield Table(
            "table-1",
            "Table 1. Mean ranks",
            METHODS,
            tuple(
                (name, tuple(self.values.cell("1", MEAN_RANK, m, name) for m in METHODS))
                for name in [*names, "log loss"]
            ),
            note="1 is best. For accuracy the raw forests are not ranked, since they equal their "
            "correction. The log loss is not in the paper.",
        )
        yield Table(
            "bonferroni-dunn",
            f"Bonferroni–Dunn: {CONTROL} has a significantly better Brier score than",
            tuple(m for m in METHODS if m != CONTROL),
            (
                (
                    CONTROL,
                    tuple(
                        self.values.cell("text", ALL, CONTROL, f"{BETTER}{m}, brier")
                        for m in METHODS
                        if m != CONTROL
                    ),
                ),
            ),
            digits=0,
        )
        for measure, title in (
            ("brier", "Brier scores"),
            ("auc", "Weighted areas under the ROC curve"),
            ("accuracy", "Accuracies"),
            ("log loss", "Log losses"),
        ):
            yield Table(
                "each-" + measure.replace(" ", "-"),
                f"{title} on each data set",
                METHODS,
                tuple(
                    (d, tuple(self.values.cell("1", d, m, measure) for m in METHODS))
                    for d in [*self.datasets, "(mean)"]
                ),
            )

    # --- conclusions -------------------------------------------------------------------------

    def ranks(self, measure: str) -> dict[str, float]:
        """Return mean ranks, the best first."""
        c = self.comparisons[measure]
        pairs = zip(c.methods, c.mean_ranks.tolist(), strict=True)
        return dict(sorted(pairs, key=lambda pair: pair[1]))

    def conclusions(self) -> Iterable[Conclusion]:
        """Yield the paper's conclusions."""
        brier = self.ranks("brier")
        order = list(brier)
        places = {m: order.index(m) + 1 for m in ("PET_R", "CT_R")}
        yield Conclusion(
            "PET_R and CT_R lead on the Brier score, in this order.",
            order[:2] == ["PET_R", "CT_R"],
            f"PET_R comes in place {places['PET_R']} of 8 and CT_R in place {places['CT_R']} by "
            f"mean rank: {_listed(brier)}.",
        )
        yield self._friedman("brier", "The choice of method matters for the Brier score")
        others = [m for m in METHODS if m not in ("CT_R", CONTROL)]
        yield Conclusion(
            "PET_R has a significantly better Brier score than all others but CT_R "
            "(Bonferroni–Dunn).",
            self.beaten == set(others),
            "Significantly worse than PET_R: "
            + (", ".join(m for m in METHODS if m in self.beaten) or "none")
            + "; significantly better: "
            + (", ".join(sorted(self._beat_control())) or "none")
            + f". Critical difference {self._critical():.3f}.",
        )
        yield self._pair("CT", "PET", "Raw votes (CT) have a better Brier score than raw PET.")
        yield self._pair("PET_P", "PET", "Platt scaling improves the Brier score of PET.")
        yield self._pair("PET", "PET_I", "Isotonic regression worsens the Brier score of PET.")
        yield self._pair("PET_R", "PET", "Boström's correction improves the Brier score of PET.")
        yield self._pair("CT_R", "CT", "Boström's correction improves the Brier score of CT.")
        yield self._friedman("auc", "The choice of method matters for the AUC")
        isotonic = {"CT_I", "PET_I"}
        expected = {(b, w) for b in METHODS for w in isotonic if b not in isotonic}
        yield self._nemenyi(
            "auc",
            expected,
            "On AUC both isotonic methods are significantly worse than all others, and nothing "
            "else differs (Nemenyi).",
        )
        accuracy = self.ranks("accuracy")
        yield Conclusion(
            "PET, raw or corrected, is the most accurate.",
            next(iter(accuracy)) == "PET_R",
            f"Mean ranks: {_listed(accuracy)}.",
        )
        yield self._friedman("accuracy", "The choice of method matters for the accuracy")
        yield self._nemenyi(
            "accuracy",
            {("PET_R", "CT_I")},
            "On accuracy only PET_R and CT_I differ significantly (Nemenyi).",
        )
        yield self._unchanged()
        if FIGURE in self.datasets:
            yield self._more_extreme()

    def _friedman(self, measure: str, claim: str) -> Conclusion:
        value = self.values.get("text", ALL, "", f"friedman p, {measure}")
        return Conclusion(
            claim + " (Friedman).",
            value.value <= self.comparisons[measure].alpha,
            f"p = {value.value:.2g} (printed {value.published:.2g}).",
        )

    def _pair(self, better: str, worse: str, claim: str) -> Conclusion:
        ranks, values = self.ranks("brier"), self.measures["brier"]
        wins = sum(values[better][d] < values[worse][d] for d in self.datasets)
        return Conclusion(
            claim,
            ranks[better] < ranks[worse],
            f"Mean ranks: {better} {ranks[better]:.2f}, {worse} {ranks[worse]:.2f}; {better} is "
            f"better on {wins} of {len(self.datasets)} data sets.",
        )

    def _nemenyi(self, measure: str, expected: set[tuple[str, str]], claim: str) -> Conclusion:
        found = set(self.comparisons[measure].better("nemenyi"))
        missing, more = expected - found, found - expected
        text = f"Mean ranks: {_listed(self.ranks(measure))}."
        if missing:
            text += f" Not significant here: {_pairs(missing)}."
        if more:
            text += f" Significant here besides: {_pairs(more)}."
        return Conclusion(claim, found == expected, text)

    def _unchanged(self) -> Conclusion:
        accuracy = self.measures["accuracy"]
        changed = [
            d
            for d in self.datasets
            if any(accuracy[f"{kind}_R"][d] != accuracy[kind][d] for kind in ("CT", "PET"))
        ]
        return Conclusion(
            "Boström's correction leaves the accuracy as it is.",
            not changed,
            f"Changed on {', '.join(changed)}." if changed else "Unchanged on every data set.",
        )

    def _more_extreme(self) -> Conclusion:
        p = self.experiment.half()[1]
        shares, votes = (np.abs(p[kind][:, 1] - 0.5) for kind in ("PET", "CT"))
        near = shares >= 0.25
        moved = votes[near] > shares[near]
        return Conclusion(
            "Votes move probabilities that are relatively near 0 or 1 still nearer (Figure 1).",
            bool(2 * moved.sum() > near.sum()),
            f"Of {near.sum()} objects whose probability by PET is below .25 or above .75, CT's is "
            f"nearer to 0 or 1 for {moved.sum()}, farther for {(votes < shares)[near].sum()}.",
        )

    def _beat_control(self) -> set[str]:
        pairs = self.comparisons["brier"].better("bonferroni-dunn")
        return {better for better, worse in pairs if worse == CONTROL}

    def _critical(self) -> float:
        return self.comparisons["brier"].critical_difference("bonferroni-dunn")

    # --- figures -----------------------------------------------------------------------------

    def figures(self) -> Iterable[Figure]:
        """Yield Figure 1, where its data set is there, and critical-difference diagrams."""
        if FIGURE in self.datasets:
            yield Figure(
                "figure-1",
                "Figure 1. Housevotes, a random half to train, the other half to test: "
                "probabilities by CT and by PET",
                self._draw_figure_1,
                (5.0, 4.6),
            )
        for measure in ("brier", "auc", "accuracy"):
            yield Figure(
                f"ranks-{measure}",
                f"Mean ranks, {measure}; bars: no significant difference (Nemenyi)",
                draw_ranks(self.comparisons[measure], "nemenyi"),
                (7.0, 3.0),
            )

    def _draw_figure_1(self, ax: Any) -> None:
        _, p = self.experiment.half()
        ax.plot(p["PET"][:, 1], p["CT"][:, 1], "o", markersize=4, alpha=0.5)
        ax.plot([0, 1], [0, 1], color="0.5", linewidth=0.8)
        ax.set(
            xlabel="Probability by the forest of PETs",
            ylabel="Probability by the forest of classification trees",
            aspect="equal",
        )


def _times(repeats: int) -> str:
    return "" if repeats == 1 else f", {repeats} times"


def _listed(ranks: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {rank:.2f}" for name, rank in ranks.items())


def _pairs(pairs: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{better} over {worse}" for better, worse in sorted(pairs))
