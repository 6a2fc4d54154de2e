"""Sections of the page: titles, columns of tables, sentences and pictures of what was found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from vennforest._messages import as_sentence
from vennforest.report import numbers
from vennforest.report.alternatives import BLEND
from vennforest.report.figures import Picture, rates
from vennforest.report.sections import MAX_RATIO, Section
from vennforest.report.words import Words, clause_of, joined
from vennforest.validation.sites import NEW_SITE, POOLED
from vennforest.validation.update import TITLES

Columns = Sequence[tuple[str, str, str]]
"""Name in a data frame, title, and form (see `page.to_text`), for each column of a table."""

MAX_LISTED = 5
"""Most names in a sentence of the page; the text for a paper names all."""

OBSERVED = ("observed", "Observed, 95% interval", "probability")
EXPECTED = ("expected", "Expected", "probability")
ROWS, EVENTS = ("n", "Rows", "count"), ("events", "Events", "count")


DESCRIBED = [("missing", "Missing", "count"), ("share", "Share", "percent")]


class SectionView(NamedTuple):
    """How a section looks.

    ``sentences`` takes the words, the section and the most names to list; the first sentence stands
    in the text for a paper too.
    """

    title: str
    columns: Columns
    sentences: Callable[[Words, Section, int | None], list[str]]
    picture: Callable[[Words, Section], Picture | None] = lambda words, section: None


def _promises(w: Words, s: Section, n: int | None) -> list[str]:
    assert s.frame is not None
    thresholds = s.frame["threshold"].dropna().map(numbers.probability)
    texts = [f"{text} for a {promise}" for promise, text in thresholds.items()]
    unit = "rows" if w.f.groups is None else "groups, one row of each"
    return [
        f"Thresholds that keep the promises: {joined(texts, n)}.",
        f"Rows with a probability of {w.event} from the threshold on are flagged. Over the drawing "
        f"of these {unit}, each promise fails with probability 5% at most. Intervals of thresholds "
        "are of those whose sensitivity or specificity is exactly the target.",
        *map(as_sentence, s.numbers["reasons"]),
    ]


def _models(w: Words, s: Section, n: int | None) -> list[str]:
    loss, better = s.numbers["loss"], s.numbers["better"]
    sentence = f"Lower in {loss} than the {w.noun}, beyond chance: {joined(better)}."
    return [
        w.blend if BLEND in better else sentence,
        f"Other models on the same {w.f.folds} folds, each calibrated by the default method. The "
        "blend weighs all of them by the log loss of the rows that calibrate. Intervals are over "
        "the rows, for these trained models. Seconds are those of training in all folds; the "
        "blend's include those of its models.",
    ]


def missing_text(w: Words, s: Section, n: int | None) -> str:
    """Return a sentence on the missing cells of each predictor, and how they are handled."""
    assert s.frame is not None
    missing = s.frame["missing"].dropna()
    missing = missing[missing > 0].sort_values(ascending=False, kind="stable")
    texts = [f"{name} in {m:,.0f} ({numbers.percent(m / w.f.rows)})" for name, m in missing.items()]
    if not texts:
        return f"No predictor has missing cells in these {w.rows}."
    how = w.f.settings.get("missing", "as the model handles them")
    text = f"Missing cells of predictors, of {w.rows}: {joined(texts, n)}."
    return f"{text} How they are handled: {how}."


def _predictors(w: Words, s: Section, n: int | None) -> list[str]:
    return [
        missing_text(w, s, n),
        "Of numbers the table has the median and quartiles, of other columns the share of their "
        "most frequent values.",
    ]


def _grades(w: Words, s: Section, n: int | None) -> list[str]:
    frame = s.frame
    assert frame is not None
    result = "not off beyond chance in any grade"
    if any(s.rejected.values()):
        result = clause_of({way: names for way, names in s.rejected.items() if names}, n)
    sentences = [
        f"Probabilities of {w.event} are {result} (exact binomial tests, adjusted for {len(frame)} "
        "grades by Holm's method, 5% for each direction).",
        "Binomial p and Jeffreys p are of each grade alone, and small where probabilities are too "
        "low. Jeffreys p is the test of the ECB's instructions for validation. Rows are taken to "
        "be independent.",
    ]
    separation = s.numbers["separation"]
    if separation:
        parts = []
        for name, values in separation.items():
            gini = [
                f"{numbers.fixed(100 * values[k], 1)}%" for k in ("gini", "gini_low", "gini_high")
            ]
            parts.append(
                f"{name} Gini is {gini[0]} (95% interval {gini[1]} to {gini[2]}) and KS "
                f"{numbers.percent(values['ks'])}"
            )
        sentences.append(
            f"Separation: {', '.join(parts)}. Gini is 2 AUC − 1, and KS the largest distance of "
            "the shares of events and of other rows up to a grade, or a probability."
        )
    if len(empty := frame.index[frame["events"] == 0]):
        sentences.append(f"Without an event: {joined(empty, n)}. There only too high can be seen.")
    if len(sure := frame.index[frame["expected"].isin([0, 1])]):
        sentences.append(
            f"An expected rate of 0 or 1 ({joined(sure, n)}) is refuted by a single row; Jeffreys "
            "p says nothing there."
        )
    if stability := s.numbers.get("stability"):
        change = (
            "have changed beyond chance" if stability["pvalue"] <= 0.05 else "differ as by chance"
        )
        sentences.append(
            f"The population stability index is {stability['index']:.4f}: the shares of the grades "
            f"{change} (p = {numbers.fixed(stability['pvalue'], 4)}). Of unchanged shares it would "
            f"exceed {stability['limit']:.4f} in 5% of samples of these sizes."
        )
    return sentences


def _picture_of_grades(w: Words, s: Section) -> Picture:
    frame = s.frame
    assert frame is not None
    expected = frame["expected"].tolist()
    return rates(
        frame.index.tolist(),
        frame[["observed", "observed_low", "observed_high"]].to_numpy(),
        f"Share of {w.event}",
        "Observed rates with 95% intervals, and expected rates, by grade",
        expected,
        log=0 < 20 * min(expected) < max(expected),
    )


def _history(w: Words, s: Section, n: int | None) -> list[str]:
    return [
        f"Observed rates of {w.event} by grade and period: {joined(s.numbers['parts'], n)}. The "
        "long-run average is the mean of the periods' rates; expected is the mean probability."
    ]


def _segments(w: Words, s: Section, n: int | None) -> list[str]:
    frame = s.frame
    assert frame is not None
    worst = frame.iloc[0]
    label = "the predicted label" if w.f.positive is None else w.event
    assumption = (
        "Labels were drawn anew from the probabilities: with right probabilities of independent "
        "rows, at most 5% of tables have any p below 5%."
        if w.f.groups is None
        else "Labels were drawn anew, with the dependence observed within groups: with right "
        "probabilities and many groups, about 5% of tables have any p below 5%."
    )
    return [
        f"Probabilities of {label} are off beyond chance in {s.numbers['off'] or 'none'} of "
        f"{s.numbers['segments']:,} segments. The worst is “{frame.index[0]}”: "
        f"{numbers.percent(worst['expected'])} expected, {numbers.percent(worst['observed'])} "
        f"observed in {numbers.rows(int(worst['n']))} (p = {numbers.fixed(worst['pvalue'], 3)}).",
        f"Segments of one and two columns with {s.numbers['min_rows']} rows or more were searched, "
        f"and p-values are adjusted for the whole search. {assumption} Segments overlap; of those "
        "with the same rows one is listed.",
    ]


def _sites(w: Words, s: Section, n: int | None) -> list[str]:
    frame: Any = s.frame
    pooled = []
    for measure, title in (
        ("observed_expected", "observed over expected"),
        ("slope", "slope"),
        ("auc", "C"),
    ):
        ends = [numbers.fixed(frame.loc[POOLED, measure + end], 2) for end in ("", "_low", "_high")]
        new = [numbers.fixed(frame.loc[NEW_SITE, measure + end], 2) for end in ("_low", "_high")]
        pooled.append(
            f"{title} {ends[0]} (95% interval {ends[1]} to {ends[2]}; of another site expected "
            f"from {new[0]} to {new[1]})"
        )
    off = clause_of({way: names for way, names in s.rejected.items() if names}, n)
    result = f"Off beyond chance: {off}" if off else "No site is off beyond chance"
    dependence = "groups" if s.numbers["has_groups"] else "rows of a site"
    how = "Each site was predicted by a model of the others (internal-external validation)"
    if not w.origin.is_trained_here:
        how = "The probabilities were compared at each site"
    return [
        f"{how}. Pooled over {len(frame) - 2} sites: {'; '.join(pooled)}. {result} (more than "
        f"{MAX_RATIO:g} from 1; 5%, adjusted for {s.numbers['intervals']} intervals).",
        f"Intervals treat {dependence} as independent. The pooled line is the mean of a "
        "meta-analysis with random effects (Debray et al. 2017), and the last one the range in "
        "which 95% of other sites are expected: of few sites it is wide.",
    ]


def _updates(w: Words, s: Section, n: int | None) -> list[str]:
    if s.frame is None:
        return [f"No updates are compared: {s.numbers['reason']}."]
    together = ", with groups kept together" if w.f.groups is not None else ""
    sentences = [
        "Are these rows of another place or time than those that the probabilities were made for? "
        "Then they may be kept, or updated with these rows. The table has the log loss of rows "
        f"that the update was not fitted to{together}."
    ]
    if choice := s.numbers.get("choice"):
        sentences.append(
            f"Tests choose: {TITLES[choice].lower()}. {s.numbers['why']} vennforest calibrate with "
            "--update auto writes the update."
        )
    return sentences


SECTIONS = {
    "promises": SectionView(
        "Promised thresholds",
        [
            ("threshold", "Threshold", "probability"),
            *((name, name.capitalize(), "percent")
              for name in ("flagged", "sensitivity", "specificity", "precision")),
        ],
        _promises,
    ),
    "models": SectionView(
        "Other models",
        [("loss", "Loss", "number"), ("gain", "Gain, 95% interval", "number"),
         ("seconds", "Seconds", "short")],
        _models,
    ),
    "predictors": SectionView("Predictors", DESCRIBED, _predictors),
    "sites": SectionView(
        "Sites",
        [ROWS, EVENTS, ("observed_expected", "Observed / expected", "short"),
         ("slope", "Slope", "short"), ("auc", "C (AUC)", "number")],
        _sites,
    ),
    "grades": SectionView(
        "Grades",
        [ROWS, EVENTS, EXPECTED, OBSERVED, ("binomial", "Binomial p", "pvalue"),
         ("jeffreys", "Jeffreys p", "pvalue"), ("too_low", "p too low, adjusted", "pvalue"),
         ("too_high", "p too high, adjusted", "pvalue"), ("ks", "KS", "percent"),
         ("share", "Share", "percent"), ("reference", "Share in reference", "percent")],
        _grades,
        _picture_of_grades,
    ),
    "history": SectionView(
        "Grades over time",
        [EXPECTED, ("long_run", "Long-run average", "probability")],
        _history,
    ),
    "segments": SectionView(
        "Segments",
        [ROWS, EXPECTED, ("observed", "Observed", "probability"),
         ("pvalue", "p if calibrated, adjusted", "pvalue")],
        _segments,
    ),
    "updates": SectionView(
        "Another population",
        [("log_loss", "Log loss", "number"), ("gain", "Gain over keeping, 95% interval", "number")],
        _updates,
    ),
}  # fmt: skip
"""The sections in their order on the page."""


def subgroup_sentences(words: Words, n: int | None = MAX_LISTED) -> dict[Any, str]:
    """Return a sentence on the parts by each column."""
    subgroups = words.f.subgroups
    if subgroups is None:
        return {}
    n_tested, sentences = int(subgroups["pvalue"].notna().sum()), {}
    for column, parts in subgroups.groupby(level="column", sort=False):
        rejected = parts[parts["adjusted"] < 0.05]
        names = rejected.index.get_level_values("part")
        text = "not rejected for any part"
        if len(rejected):
            ways = [
                f"too {'high' if p > y else 'low'}"
                for p, y in zip(rejected["expected"], rejected["observed"], strict=True)
            ]
            by_way = {
                way: [n for n, w in zip(names, ways, strict=True) if w == way]
                for way in dict.fromkeys(ways)
            }
            text = f"rejected: on average {clause_of(by_way, n)}"
        sentences[column] = f"Calibration is {text} (parts tested: {n_tested}, adjusted by Holm)."
    return sentences
