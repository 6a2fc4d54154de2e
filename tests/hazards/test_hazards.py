"""Every hazard, by every way in, is refused, warned of, found or answered rightly."""

import contextlib
import io
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hazards.audits import FOUND, nearly_doubled
from hazards.table import (
    DRAWN_BY_WEIGHT,
    REFUSED,
    RIGHT,
    WARNED,
    Hazard,
    coin,
    doubled,
    one_class,
    spelled,
)

QUICK = ("--folds", 2, "--trees", 10, "--methods", "platt", "--jobs", 1)
QUICK += ("--estimator", "mixed-forest")  # beside no others
INCOMPLETE = [None if j < 9 else f"p{j // 4}" for j in range(200)]


@pytest.fixture(autouse=True)
def empty_pictures(draw_only):
    """Leave the pictures of pages empty."""
    draw_only()


def command(*words):
    """Run a command; what it warns of becomes a warning, and its failure an error."""
    pytest.importorskip("typer")
    from vennforest.cli import main

    printed = io.StringIO()
    with contextlib.redirect_stderr(printed), contextlib.redirect_stdout(io.StringIO()):
        code = main([str(word) for word in words])
    if code:
        raise ValueError(printed.getvalue())
    notes = [n for n in printed.getvalue().splitlines() if n.startswith(("Note", "Warning"))]
    if notes:
        warnings.warn("\n".join(notes), UserWarning, stacklevel=2)


def through(make, *options, **columns):
    def run(rng, name):
        X, y = make(rng)
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            table = pd.DataFrame(X).add_prefix("c").assign(y=y, **columns)
            table.to_csv(folder / "table.csv", index=False)
            output = {
                "fit": (folder / "m.skops", "--trees", 30, "--method", "platt"),
                "report": (folder / "page.html", *QUICK),
            }[name]
            command(name, folder / "table.csv", "-t", "y", "-o", *output, *options)

    return {f"{name} command": lambda rng, name=name: run(rng, name) for name in ("fit", "report")}


WAYS = {
    "every row twice": through(doubled),
    'labels "yes" and "Yes "': through(spelled),
    "missing, continuous or mixed labels, or labels of one class": through(one_class),
}
"""More ways for hazards of `fit`, by their faults."""

ENTERED = [
    Hazard(
        "a table with near-copies, or without a group in some rows",
        "near-copy|without a group",
        {
            f"{name} ({fault})": run
            for fault, runs in {
                "near-copies": through(nearly_doubled),
                "groups": through(coin, "--groups", "g", g=INCOMPLETE),
            }.items()
            for name, run in runs.items()
        },
        through(coin)["fit command"],
    )
]


def with_more_ways(hazards):
    return [replace(h, ways={**h.ways, **WAYS.get(h.fault, {})}) for h in hazards]


HAZARDS = {
    "refused": with_more_ways(REFUSED),
    "warned": [*with_more_ways(WARNED), *ENTERED],
    "found": FOUND,
    "right": RIGHT,
}
PAGE = Path(__file__).parents[2] / "docs" / "hazards.md"
TITLES = {
    "refused": "gives an error",
    "warned": "gives a warning",
    "found": "`audit` finds it",
    "right": "The answer is right",
}
CASES = [
    pytest.param(outcome, hazard, way, id=f"{hazard.fault}: {way}")
    for outcome, hazards in HAZARDS.items()
    for hazard in hazards
    for way in hazard.ways
]


@pytest.mark.parametrize(("outcome", "hazard", "way"), CASES)
def test_a_hazard_is_not_silent(outcome, hazard, way):
    if "class_weight" in hazard.fault and not DRAWN_BY_WEIGHT:
        pytest.skip("this scikit-learn draws all rows with the same chance")
    run, rng = hazard.ways[way], np.random.default_rng(11)
    if outcome == "refused":
        with pytest.raises((ValueError, TypeError), match=hazard.match):
            run(rng)
    elif outcome == "warned":
        with pytest.warns(UserWarning, match=hazard.match):
            run(rng)
    elif outcome == "found":
        assert hazard.match in " ".join(finding.message for finding in run(rng))
    else:
        assert run(rng)


@pytest.mark.parametrize(
    ("outcome", "hazard"),
    [
        pytest.param(outcome, hazard, id=hazard.fault)
        for outcome, hazards in HAZARDS.items()
        for hazard in hazards
        if hazard.honest is not None
    ],
)
def test_the_same_call_without_the_fault_passes(outcome, hazard):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        result = hazard.honest(np.random.default_rng(12))
    if outcome == "found":
        assert result == []


def test_more_ways_are_of_hazards_that_there_are():
    assert set(WAYS) <= {hazard.fault for hazard in (*REFUSED, *WARNED)}


def rows_of_page():
    """Return the rows of the tables under each heading of the page."""
    sections = PAGE.read_text(encoding="utf-8").split("\n## ")[1:]
    return {s.partition("\n")[0]: [r for r in s.splitlines() if " | " in r][1:] for s in sections}


@pytest.mark.parametrize("outcome", TITLES)
def test_the_page_lists_the_hazards(outcome):
    (rows,) = [rows for title, rows in rows_of_page().items() if TITLES[outcome] in title]
    expected = [f"{h.fault} | {', '.join(h.ways)}" for h in HAZARDS[outcome]]
    assert rows == expected
