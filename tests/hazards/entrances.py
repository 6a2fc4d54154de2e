"""A third round: models without peaks, models changed later, and ways in beside ``fit``."""

from __future__ import annotations

import contextlib
import io
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from hazards.drawn import DRAWN, ENTRIES, OwnEncoder, entries, one_class
from hazards.table import HAZARDS as FIRST
from hazards.table import Hazard, Rng, Verdict, coin, doubled, forest, spelled
from vennforest import Finding, audit


def on_own_rows(model: Any, as_table: Callable[[Any], Any] = np.asarray) -> Callable[[Rng], Any]:
    """Return what calibrates a frozen model on the rows it was trained on."""

    def run(rng: Rng) -> Any:
        X, y = coin(rng)
        X = as_table(X)
        return audit(FrozenEstimator(clone(model).fit(X, y)), X, y)

    return run


def on_half(model: Any) -> Callable[[Rng], Any]:
    """Return what calibrates a frozen model on rows of which it was trained on half."""

    def run(rng: Rng) -> Any:
        X, y = coin(rng, 600)
        others, of_others = coin(rng, 300)
        model.fit(np.vstack([X[:300], others]), np.concatenate([y[:300], of_others]))
        return audit(FrozenEstimator(model), X, y)

    return run


def linear_elsewhere(rng: Rng) -> list[Finding]:
    """Audit frozen models on other rows than theirs."""
    X, y = coin(rng)
    models = [model.fit(*coin(rng)) for model in (LogisticRegression(), GaussianNB())]
    models.append(LogisticRegression().fit(sparse.csr_array(X), y))
    return [finding for model in models for finding in audit(FrozenEstimator(model), *coin(rng))]


def frozen_encoder(last: Any, in_columns: bool = False) -> Callable[[Rng], Any]:
    """Return what calibrates a model behind a frozen target encoder of one's own."""

    def run(rng: Rng) -> Any:
        X, y = rng.integers(0, 30, (200, 1)).astype(str), coin(rng)[1]
        step = FrozenEstimator(OwnEncoder().fit(X, y))
        first = make_column_transformer((step, [0])) if in_columns else step
        return audit(make_pipeline(first, last), X, y)

    return run


def frozen_scaler(rng: Rng) -> list[Finding]:
    """Audit a model behind a frozen step that sees no labels."""
    step = FrozenEstimator(StandardScaler().fit(coin(rng, d=2)[0]))
    return audit(make_pipeline(make_column_transformer((step, [0, 1])), GaussianNB()), *coin(rng))


def written(X: Any, y: Any, folder: str, **columns: Any) -> Path:
    """Return the file of a table with the labels in the column y."""
    table = X if hasattr(X, "columns") else pd.DataFrame(X).add_prefix("c")
    path = Path(folder) / "table.csv"
    table.assign(y=y, **columns).to_csv(path, index=False)
    return path


def command(*words: object) -> None:
    """Run a command; what it warns of becomes a warning, and its failure an error."""
    pytest.importorskip("typer")
    from vennforest.cli import main

    printed = io.StringIO()
    with contextlib.redirect_stderr(printed), contextlib.redirect_stdout(io.StringIO()):
        code = main([str(word) for word in words])
    if code:
        raise ValueError(printed.getvalue())
    notes = [one for one in printed.getvalue().splitlines() if one.startswith(("Note", "Warning"))]
    if notes:
        warnings.warn("\n".join(notes), UserWarning, stacklevel=2)


def fit_command(make: Callable[[Rng], Any], *options: str, **columns: Any) -> Callable[[Rng], Any]:
    """Return ``vennforest fit`` on a table."""

    def run(rng: Rng) -> None:
        with tempfile.TemporaryDirectory() as folder:
            table = written(*make(rng), folder, **columns)
            model = Path(folder) / "model.skops"
            command("fit", table, "-t", "y", "-o", model, "--trees", 30, *options)

    return run


def report_command(
    make: Callable[[Rng], Any], *options: str, **columns: Any
) -> Callable[[Rng], Any]:
    """Return ``vennforest report`` on a table."""

    def run(rng: Rng) -> None:
        with tempfile.TemporaryDirectory() as folder:
            table = written(*make(rng), folder, **columns)
            quick = ("--folds", 2, "--trees", 30, "--methods", "venn-abers", "--jobs", 1)
            page = Path(folder) / "page.html"
            command("report", table, "-t", "y", "-o", page, *quick, *options)

    return run


def scored(rng: Rng, fault: str = "") -> dict[str, Any]:
    """Return scores, labels and weights of 60 rows, with a fault in one of them."""
    s, y, w = rng.random(60), np.arange(60) % 2, np.ones(60)
    s = np.sort(s)[np.argsort(np.argsort(y + rng.normal(size=60)))]
    if fault == "NaN":
        s[:9] = np.nan
    elif fault == "infinite":
        s[:9] = np.inf
    elif fault == "weights":
        w[:9] = -1
    elif fault == "one class":
        y[:] = 0
    elif fault == "sum":
        w[:] = 1 / 60
    return {"s": s, "y": y, "w": w}


def calibrate_command(fault: str = "") -> Callable[[Rng], Any]:
    """Return ``vennforest calibrate`` on scores."""

    def run(rng: Rng) -> None:
        with tempfile.TemporaryDirectory() as folder:
            table = Path(folder) / "scores.csv"
            pd.DataFrame(scored(rng, fault)).to_csv(table, index=False)
            named = ("-s", "s", "-t", "y", "--weight", "w")
            command("calibrate", table, *named, "-o", Path(folder) / "calibrator.json")

    return run


def by_dask(fault: str = "") -> Callable[[Rng], Any]:
    """Return a calibrator of scores in a Dask frame."""

    def run(rng: Rng) -> None:
        dask = pytest.importorskip("dask")
        tables = pytest.importorskip("dask.dataframe")
        from vennforest.engines.dask import calibrate

        frame = tables.from_pandas(pd.DataFrame(scored(rng, fault)), npartitions=3)
        with dask.config.set(scheduler="synchronous"):
            calibrate(frame, score="s", target="y", weight="w")

    return run


def by_spark(fault: str = "") -> Callable[[Rng], Any]:
    """Return a calibrator of scores in a Spark frame."""

    def run(rng: Rng) -> None:
        from support.systems import local_spark
        from vennforest.engines.spark import calibrate

        frame = local_spark().createDataFrame(pd.DataFrame(scored(rng, fault)))
        calibrate(frame, score="s", target="y", weight="w")

    return run


ENTERED = [
    Hazard(
        "frozen models without peaks",
        "a frozen linear model, naive Bayes, or any model of a sparse table, and its own rows",
        {
            "logistic": on_own_rows(LogisticRegression()),
            "pipeline": on_own_rows(make_pipeline(StandardScaler(), LogisticRegression(C=0.1))),
            "naive Bayes": on_own_rows(GaussianNB()),
            "discriminant": on_own_rows(LinearDiscriminantAnalysis()),
            "sparse": on_own_rows(LogisticRegression(), sparse.csr_array),
            "sparse tree": on_own_rows(
                DecisionTreeClassifier(max_depth=6, random_state=0), sparse.csr_array
            ),
        },
        Verdict("found", "trained on these rows"),
        linear_elsewhere,
    ),
    Hazard(
        "half of the rows",
        "a frozen model and rows of which it was trained on half",
        {
            "tree": on_half(DecisionTreeClassifier(min_samples_leaf=3, random_state=0)),
            "histograms": on_half(HistGradientBoostingClassifier(random_state=0)),
        },
        Verdict("found", "trained on these rows"),
    ),
    Hazard(
        "frozen steps that saw labels",
        "a frozen step of your own that learnt from labels and does not say so",
        {
            "out of bag": frozen_encoder(forest()),
            "folds": frozen_encoder(GaussianNB()),
            "columns": frozen_encoder(forest(), in_columns=True),
        },
        Verdict("found", "learns from labels"),
        frozen_scaler,
    ),
]

INCOMPLETE = [None if j < 9 else f"p{j // 4}" for j in range(200)]


def commands(make: Callable[[Rng], Any], *options: str, **columns: Any) -> dict[str, Any]:
    """Return the ways of a table through commands."""
    return {
        "fit command": fit_command(make, *options, **columns),
        "report command": report_command(make, *options, **columns),
    }


def engines(fault: str) -> dict[str, Any]:
    """Return the ways of scores through the command calibrate, Dask and Spark."""
    return {
        f"calibrate command, {fault}": calibrate_command(fault),
        f"Dask, {fault}": by_dask(fault),
        f"Spark, {fault}": by_spark(fault),
    }


WAYS: dict[str, dict[str, Callable[[Rng], Any]]] = {
    "exact copies": entries(doubled, *ENTRIES) | commands(doubled),
    "near-copies": commands(lambda rng: doubled(rng, 1e-3)),
    "labels spelled in two ways": entries(spelled, *ENTRIES) | commands(spelled),
    "one class": commands(one_class) | engines("one class"),
    "scores in an engine": engines("NaN") | engines("infinite") | engines("weights"),
    "weights that sum to one": engines("sum"),
    "missing groups": commands(coin, "--groups", "g", g=INCOMPLETE),
}
"""More ways for hazards of the other rounds, by their names."""

VERDICTS = {
    "near-copies": dict.fromkeys(commands(coin), Verdict("warned", "near-copy")),
    "missing groups": dict.fromkeys(commands(coin), Verdict("warned", "without a group")),
}
"""Where they differ from those of the other ways."""

HONEST = {
    "exact copies": fit_command(coin),
    "oversampling": report_command(coin),
    "one class": lambda rng: (calibrate_command()(rng), by_dask()(rng)),
}
"""The same calls without the fault."""

HAZARDS = [
    *(
        replace(
            one,
            ways={**one.ways, **WAYS.get(one.name, {})},
            by_way={**one.by_way, **VERDICTS.get(one.name, {})},
            honest=HONEST.get(one.name, one.honest),
        )
        for one in (*FIRST, *DRAWN)
    ),
    *ENTERED,
]
"""All rounds together."""
