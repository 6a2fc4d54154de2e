"""The command ``fit``: a table in, a model file out."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss

from vennforest._files import check_output, refused_as, shown_path
from vennforest._messages import CalibrationWarning
from vennforest._remote import local_copy, sent_whole
from vennforest._validation import InputError, check_option
from vennforest.calibrators.core.interface import check_method
from vennforest.classifier import CalibratedClassifier
from vennforest.classifier.intervals import forest_spread
from vennforest.classifier.settings import ClassifierMerge
from vennforest.commands.streams import check_suffix
from vennforest.commands.terminal import (
    busy,
    measures_sentence,
    names_in,
    print_json,
    say,
    say_notes,
    shares_of,
)
from vennforest.persistence.model_file import write_model
from vennforest.report.folds import members_of
from vennforest.report.learners import FOREST, learner_of
from vennforest.sources import Subforest
from vennforest.sources.registry import check_source, named_sources
from vennforest.tables import TableColumns, table_pipeline
from vennforest.tables.cells import PLURAL
from vennforest.tables.known_rows import sketch_rows
from vennforest.tables.read import find_column, read_table
from vennforest.tables.target import LabelledTable, split_target
from vennforest.tables.types import read_types


@dataclass(frozen=True)
class Fitted:
    """What ``fit_file`` did: rows with a label, rows of each class, columns of each kind.

    The measures are those of `_measures`; ``other_forests`` says how far another forest of this
    size would move a probability.
    """

    n_rows: int
    classes: dict[str, int]
    kinds: dict[str, int]
    measures: dict[str, float]
    seconds: float
    other_forests: str = ""


def run(data: Path, target: str, output: Path, *, as_json: bool, **options: Any) -> None:
    """Train as `fit_file`, and print a summary."""
    options["missing"] = names_in(options.get("missing", ""))
    notes: list[str] = []
    training = busy("Training")
    with training, local_copy(data) as file, sent_whole(output) as out:
        done = fit_file(file, target, out, note=notes.append, **options)
    say_notes(notes)
    if as_json:
        print_json({**asdict(done), "model": shown_path(output), "notes": notes})
        return
    kinds = ", ".join(f"{count} of {kind}" for kind, count in done.kinds.items())
    say(f"Trained on {done.n_rows:,} rows; columns: {kinds}.")
    say(f"Classes of {target!r}: {shares_of(done.classes, 1)}.")
    if done.measures:
        say(measures_sentence(done.measures))
    if done.other_forests:
        say(done.other_forests)
    say(f"Wrote {shown_path(output)} ({done.seconds:.0f} s)")


def fit_file(
    data: Path,
    target: str,
    output: Path,
    *,
    estimator: str | None = None,
    method: str = "venn-abers",
    trees: int = 300,
    calibrate_on: str = "auto",
    merge: str = "auto",
    subforest: str = "all",
    n_draws: int = 1,
    by: str | None = None,
    groups: str | None = None,
    sheet: str | None = None,
    drop: Sequence[str] = (),
    keep: Sequence[str] = (),
    types: Path | str | None = None,
    missing: Sequence[str] = (),
    guessed: Path | None = None,
    seed: int = 0,
    jobs: int | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> Fitted:
    """Train and calibrate a classifier on a table, and write it to a model file, whole or not.

    Parameters are options of ``vennforest fit``; ``note`` takes sentences for the user.
    """
    start = time.perf_counter()
    check_method(method, "--method")
    check_source(calibrate_on, "--calibrate-on")
    check_option(merge, ClassifierMerge, "--merge")
    check_option(subforest, Subforest, "--subforest")
    if jobs == 0:
        raise InputError("--jobs must be a number of processors, or -1 for all, got 0")
    options: dict[str, Any] = {
        "method": method,
        "calibrate_on": calibrate_on,
        "merge": merge,
        "subforest": subforest,
        "n_draws": n_draws,
        "by": by,
    }
    check_output(output, {"table": data, "file of types": types})
    check_suffix(output, ".skops", "model file")
    if guessed is not None:
        check_output(guessed, {"table": data, "model": output})
    declared = {} if types is None else read_types(types)
    learner = learner_of(estimator)
    frame = read_table(data, declared, missing, sheet)
    held = [] if groups is None else [find_column(frame, groups)]
    table = split_target(
        frame,
        target,
        [*drop, *(name for name in held if name not in drop)],
        name=data.name,
        keep=[*keep, *([] if by is None else [by])],
        types={name: kind for name, kind in declared.items() if name not in held},
    )
    for sentence in table.notes:
        note(sentence)
    if guessed is not None:
        table.write_types(guessed)
    if by is not None:
        find_column(table.X, by)
    members = None
    if groups is not None:
        remarks: list[str] = []
        members = members_of(frame.loc[table.X.index, groups], len(table.y), remarks)
        for sentence in remarks:
            note(sentence)
    unfitted = learner.make(trees, seed, jobs)
    model = _fit(table, missing, options, unfitted, members, seed, jobs, note)
    columns = model.estimators_[0][0]
    assert isinstance(columns, TableColumns)
    labels, counts = np.unique(table.y, return_counts=True)
    classes = {str(label): int(n) for label, n in zip(labels, counts, strict=True)}
    measures = _measures(model, table.y)
    fit_seconds = time.perf_counter() - start
    write_model(
        model,
        output,
        {
            "target": table.target,
            "columns": dict(zip(columns.feature_names_in_.tolist(), columns.kinds_, strict=True)),
            "types": columns.as_types(),
            "n_rows": len(table.y),
            "class_counts": classes,
            "data": data.name,
            "options": {
                "estimator": estimator or FOREST,
                "trees": trees,
                "seed": seed,
                "drop": list(drop),
                **({} if groups is None else {"groups": groups}),
            },
            "measures": measures,
            "seconds": round(fit_seconds, 1),
            "known_rows": sketch_rows(columns.transform(table.X)),
        },
    )
    kinds = dict(Counter(PLURAL[kind] for kind in columns.kinds_))
    spread = forest_spread(model._state)
    said = "" if spread is None else spread.sentence()
    return Fitted(len(table.y), classes, kinds, measures, time.perf_counter() - start, said)


def _fit(
    table: LabelledTable,
    missing: Sequence[str],
    options: dict[str, Any],
    estimator: Any,
    groups: NDArray[Any] | None,
    seed: int,
    jobs: int | None,
    note: Callable[[str], None],
) -> CalibratedClassifier:
    known = named_sources().get(options["calibrate_on"])
    folds = known is not None and known.several
    model = CalibratedClassifier(
        table_pipeline(
            estimator, random_state=seed, types=table.types or None, missing=list(missing) or None
        ),
        **options,
        n_jobs=None if folds else jobs,
        random_state=seed,
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")  # remarks of skrub on how columns are read
        warnings.simplefilter("always", CalibrationWarning)
        warnings.filterwarnings("always", message=".*least populated class.*")
        with refused_as():
            model.fit(table.X, table.y, **({} if groups is None else {"groups": groups}))
    for sentence in dict.fromkeys(str(warning.message) for warning in caught):
        note(f"{sentence[:1].upper()}{sentence[1:]}.")
    return model


def _measures(model: CalibratedClassifier, y: NDArray[Any]) -> dict[str, float]:
    """Evaluate predictions of the training rows, each by models that did not see it.

    ``baseline_…``: of always predicting the class frequencies. Empty where the model has seen every
    row.
    """
    if model.calibrate_on_ == "training":
        return {}
    p = model.oob_probability_
    seen = ~np.isnan(p[:, 0])
    if not seen.any():
        return {}
    p, y = p[seen], y[seen]
    classes = model.classes_
    best = p.argmax(axis=1)
    _, counts = np.unique(np.concatenate([y, classes]), return_counts=True)
    shares = (counts - 1) / len(y)
    always = np.tile(shares, (len(y), 1))
    found = {
        "rows": len(y),
        "accuracy": float(accuracy_score(y, classes[best])),
        "baseline_accuracy": float(shares.max()),
        "brier_score": float(brier_score_loss(y, p, labels=classes)),
        "baseline_brier_score": float(brier_score_loss(y, always, labels=classes)),
        "log_loss": float(log_loss(y, p, labels=classes)),
        "baseline_log_loss": float(log_loss(y, always, labels=classes)),
    }
    if hasattr(model, "predict_multiprobability"):
        width = model.oob_multiprobability_.width[seen]
        found["mean_width"] = float(width[np.arange(len(y)), best].mean())
    return found
