"""The command ``report``: a table in, a page out."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vennforest import persistence
from vennforest._files import check_output, one_line
from vennforest._validation import FloatArray, InputError
from vennforest.calibrators import Calibrator
from vennforest.commands.terminal import names_in, print_json, progress_bar, say
from vennforest.decisions.costs import cost_file
from vennforest.multiprobability import Multiprobability
from vennforest.report import (
    CostMatrix,
    Evaluation,
    evaluate,
    report,
    report_model,
    report_scores,
)
from vennforest.report.given import class_of_name
from vennforest.tables.cells import Column
from vennforest.tables.columns import TableColumns
from vennforest.tables.read import find_column, read_table
from vennforest.tables.stream import TableFile
from vennforest.tables.target import LabelledTable, load_example, split_target

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Columns:
    """The columns that rows are split or looked at by.

    Attributes
    ----------
    groups, time : str or None
    by, drop, keep : list of str
    """

    groups: str | None = None
    time: str | None = None
    by: Sequence[str] = ()
    drop: Sequence[str] = ()
    keep: Sequence[str] = ()

    def unused(self) -> list[str]:
        """Return those that are not to predict from: groups and time."""
        return [name for name in (self.groups, self.time) if name is not None]


@dataclass(frozen=True)
class Judged:
    """What is judged instead of models that the report trains.

    Attributes
    ----------
    probability : list of str
        Columns of probabilities or scores.
    model : Path or None
        A model file.
    trusted : list of str
        Types that it may hold.
    """

    probability: Sequence[str] = ()
    model: Path | None = None
    trusted: Sequence[str] = ()


@dataclass(frozen=True, eq=False)
class _Table:
    """A table that was read: what is predicted, and the values of other columns of its rows."""

    labelled: LabelledTable
    values: dict[str, Any] = field(default_factory=dict)
    test: Any = None


def run(
    data: Path | None,
    target: str | None,
    output: Path,
    *,
    as_json: bool,
    example: str | None,
    test: Path | None,
    columns: Columns,
    judged: Judged,
    costs: str | None,
    **options: Any,
) -> None:
    """Evaluate, write the page, and say what it says.

    Parameters
    ----------
    data, target, output, example, test, costs
        See ``vennforest report --help``.
    columns : Columns
    judged : Judged
    as_json : bool
        Print a summary.
    **options
        Of `evaluate`.

    Raises
    ------
    InputError
        If a file or option is not what it should be.
    """
    check_output(
        output,
        {
            "table": data,
            "file of costs": None if costs is None else cost_file(costs),
            "table to test on": test,
            "model": judged.model,
        },
    )
    _check(test, columns, judged, options)
    table = _read(data, target, example, test, columns, judged)
    matrix = None if costs is None else CostMatrix.read(costs, np.unique(table.labelled.y))
    for note in table.labelled.notes:
        say(f"Note: {note}")
    if judged.probability:
        evaluation = _given(table, columns, judged, matrix, options)
    elif judged.model is not None:
        evaluation = _of_model(table, data, columns, judged, matrix, options)
    else:
        evaluation = _trained(table, columns, matrix, options)
    for note in evaluation.notes:
        if note not in table.labelled.notes:
            say(f"Note: {note}")
    evaluation.to_html(output, command=shlex.join(["vennforest", *sys.argv[1:]]))
    if as_json:
        print_json({**evaluation.summary(), "report": str(output)})
    for line in evaluation.headline()[:3]:
        say(line)
    if sys.stderr.isatty():
        say(f"Wrote {output} ({evaluation.seconds:.0f} s)")


def _check(test: Path | None, columns: Columns, judged: Judged, options: dict[str, Any]) -> None:
    """Refuse options that do not go together."""
    given = {
        "--probability": bool(judged.probability),
        "--model": judged.model is not None,
        "--estimator": options["estimator"] is not None,
    }
    named = [name for name, there in given.items() if there]
    if len(named) > 1:
        raise InputError(f"give one of {' and '.join(named)}, not both")
    ready = next((name for name in ("--probability", "--model") if given[name]), None)
    if ready and test is not None:
        raise InputError(f"with {ready} nothing is trained: give the table to test on as DATA")
    if ready and columns.time is not None:
        raise InputError(f"with {ready} nothing is trained, and --time has no meaning")
    if test is not None and columns.time is not None:
        raise InputError("give --test or --time, not both")


def _read(
    data: Path | None,
    target: str | None,
    example: str | None,
    test: Path | None,
    columns: Columns,
    judged: Judged,
) -> _Table:
    """Return the table of files or an example, split into X and y."""
    if (data is None) == (example is None):
        raise InputError(
            "name a file, or an example with --example"
            if data is None
            else "name a file or an example with --example, not both"
        )
    if example is not None:
        if test is not None or judged.probability or judged.model or columns.unused():
            raise InputError("an example has no other options: name a file")
        return _with_values(load_example(example, target, list(columns.drop)), columns, None)
    assert data is not None
    if target is None:
        raise InputError("name the column to predict with --target")
    frame = read_table(data)
    held = None
    if test is not None:
        frame, held = _joined(frame, read_table(test), test)
    for name in (*columns.unused(), *columns.by):
        find_column(frame, name)
    left = {*columns.unused(), *judged.probability} - {target}
    drop = list(dict.fromkeys([*columns.drop, *left]))
    if judged.probability:  # nothing is trained: no column has to be left, and none is judged
        drop = list(columns.drop)
        labelled = split_target(frame, target, drop, name=data.name, screened=False)
    else:
        screened = judged.model is None
        labelled = split_target(
            frame, target, drop, name=data.name, keep=list(columns.keep), screened=screened
        )
    return _with_values(labelled, columns, frame, held)


def _joined(frame: pd.DataFrame, more: pd.DataFrame, path: Path) -> tuple[pd.DataFrame, Any]:
    """Return the rows of two tables with the columns of the first, and which are of the second."""
    import pandas as pd

    missing = [name for name in frame.columns if name not in more.columns]
    if missing:
        raise InputError(f"{path} lacks the column {missing[0]!r} of the table to train on")
    both = pd.concat([frame, more[frame.columns]])
    held = np.repeat([False, True], [len(frame), len(more)])
    return both, held


def _with_values(
    labelled: LabelledTable, columns: Columns, frame: pd.DataFrame | None, held: Any = None
) -> _Table:
    """Keep the values of the columns asked for, of the rows that have a label."""
    if frame is None:
        return _Table(labelled, {name: labelled.X[find_column(labelled.X, name)].to_numpy(object)
                                 for name in columns.by})  # fmt: skip
    known = Column(frame[labelled.target], labelled.target).there
    wanted = dict.fromkeys([*columns.unused(), *columns.by])
    values = {name: frame[name][known].to_numpy(object) for name in wanted}
    return _Table(labelled, values, None if held is None else held[known])


def _common(table: _Table, columns: Columns, costs: CostMatrix | None) -> dict[str, Any]:
    """Return what every evaluation is given."""
    return {
        "groups": None if columns.groups is None else table.values[columns.groups],
        "by": {name: table.values[name] for name in columns.by},
        "costs": costs,
        "name": table.labelled.name,
        "target": table.labelled.target,
        "notes": table.labelled.notes,
    }


def _trained(
    table: _Table, columns: Columns, costs: CostMatrix | None, options: dict[str, Any]
) -> Evaluation:
    methods = options["methods"]
    with progress_bar("Folds") as progress:
        return evaluate(
            table.labelled.X,
            table.labelled.y,
            estimator=options["estimator"],
            methods=None if methods is None else names_in(methods),
            n_folds=options["folds"],
            n_trees=options["trees"],
            subforest=options["subforest"],
            n_draws=options["n_draws"],
            positive=options["positive"],
            random_state=options["seed"],
            n_jobs=options["jobs"],
            time=None if columns.time is None else table.values[columns.time],
            test=table.test,
            progress=progress,
            **_common(table, columns, costs),
        )


def _given(
    table: _Table,
    columns: Columns,
    judged: Judged,
    costs: CostMatrix | None,
    options: dict[str, Any],
) -> Evaluation:
    """Evaluate columns of probabilities, or of scores."""
    X, y = table.labelled.X, table.labelled.y
    names = [find_column(X, name) for name in judged.probability]
    read = {name: _numbers(X[name], name) for name in names}
    there = np.all([np.isfinite(values) for values in read.values()], axis=0)
    common = _common(table, columns, costs)
    notes = list(common.pop("notes"))
    if not there.all():
        notes.append(f"{int((~there).sum()):,} rows without a probability are left out.")
        common["by"] = {name: values[there] for name, values in common["by"].items()}
        if common["groups"] is not None:
            common["groups"] = common["groups"][there]
    if not there.any():
        raise InputError(f"the column {names[0]!r} holds no number in any row with a label")
    X, y = X[there], y[there]
    read = {name: values[there] for name, values in read.items()}
    labels = np.unique(y)
    shared = {"positive": options["positive"], "random_state": options["seed"], "X": X}
    outside = [name for name, v in read.items() if v.min() < -1e-9 or v.max() > 1 + 1e-9]
    of_classes = _by_class(names, labels)
    if outside:
        if len(names) > 1 and of_classes is None:
            raise InputError(
                f"the column {outside[0]!r} holds numbers outside [0, 1]: give one column of "
                "scores at a time, or a column a class"
            )
        methods = options["methods"]
        scores = _matrix(read, of_classes) if of_classes else _of_second(read, labels, options)
        notes.append(_no_probabilities(outside[0], read[outside[0]]))
        return report_scores(
            y,
            scores,
            methods=None if methods is None else names_in(methods),
            n_folds=options["folds"],
            notes=notes,
            **shared,
            **common,
        )
    if of_classes:
        predictions: dict[str, Any] = {"Predictions": _matrix(read, of_classes)}
        bounds = _bounds(X, of_classes, labels)
        if bounds is not None:
            predictions = {"Predictions": (predictions["Predictions"], bounds)}
    else:
        if len(labels) != 2:
            raise InputError(
                f"--probability must name a column for each of {len(labels)} classes, by names "
                f"such as 'p({labels[0]})', got {', '.join(names)}"
            )
        predictions = {}
        for name, values in read.items():
            at = _column_of(name, labels, options)
            p = np.column_stack([1 - values, values] if at == 1 else [values, 1 - values])
            predictions[name] = p
            bounds = _bounds(X, {at: name}, labels)
            if bounds is not None:
                predictions[name] = (p, bounds)
            notes.append(
                f"{name!r} is taken for the probability of {str(labels[at])!r}"
                + ("." if options["positive"] is not None else "; --positive names another.")
            )
    return report(y, predictions, notes=notes, **shared, **common)


def _numbers(cells: pd.Series[Any], name: str) -> FloatArray:
    column = Column(cells, name)
    kind, _ = column.learn()
    if kind not in ("number", "boolean"):
        raise InputError(f"the column {name!r} must hold numbers, got {kind}")
    values: FloatArray = column.read(kind).to_numpy(dtype=np.float64)
    return values


def _by_class(names: Sequence[str], labels: Any) -> dict[int, str] | None:
    """Return the column of each class by its number, None unless each class has one."""
    if len(names) < 2 or len(names) != len(labels):
        return None
    found = {class_of_name(name, labels): name for name in names}
    return found if None not in found and len(found) == len(labels) else None  # type: ignore[return-value]


def _matrix(read: dict[str, FloatArray], of_classes: dict[int, str]) -> FloatArray:
    return np.column_stack([read[of_classes[j]] for j in range(len(of_classes))])


def _column_of(name: str, labels: Any, options: dict[str, Any]) -> int:
    """Return which class a lone column is of: as named, by its name, else the second."""
    positive = options["positive"]
    if positive is not None and str(positive) in labels.astype(str):
        return int(np.flatnonzero(labels.astype(str) == str(positive))[0])
    found = class_of_name(name, labels)
    return 1 if found is None else found


def _of_second(read: dict[str, FloatArray], labels: Any, options: dict[str, Any]) -> FloatArray:
    """Return one column of scores as those of the class that the report takes it for."""
    (name, values), *_ = read.items()
    if options["positive"] is not None:
        return values
    return values if _column_of(name, labels, options) == 1 else -values


def _no_probabilities(name: str, values: FloatArray) -> str:
    cent = ""
    if values.min() >= 0 and 1.5 < values.max() <= 100:
        cent = " If they are per cent, divide them by 100."
    return (
        f"{name!r} holds numbers from {values.min():.4g} to {values.max():.4g}, no probabilities: "
        f"they are calibrated here, in cross-validation.{cent}"
    )


def _bounds(X: pd.DataFrame, of_classes: dict[int, str], labels: Any) -> Multiprobability | None:
    """Return bounds where columns lower(c) and upper(c) stand beside those of probabilities."""
    low, high = np.zeros((len(X), len(labels))), np.ones((len(X), len(labels)))
    for j in of_classes:
        names = [f"lower({labels[j]})", f"upper({labels[j]})"]
        if any(name not in X.columns for name in names):
            return None
        low[:, j], high[:, j] = (_numbers(X[name], name) for name in names)
        if len(of_classes) == 1:
            low[:, 1 - j], high[:, 1 - j] = 1 - high[:, j], 1 - low[:, j]
    if not (np.isfinite(low) & np.isfinite(high) & (low <= high)).all():
        return None
    return Multiprobability(low.clip(0, 1), high.clip(0, 1), labels)


def _of_model(
    table: _Table,
    data: Path | None,
    columns: Columns,
    judged: Judged,
    costs: CostMatrix | None,
    options: dict[str, Any],
) -> Evaluation:
    """Evaluate a model in a file."""
    assert judged.model is not None and data is not None
    if not judged.model.is_file():
        raise InputError(f"there is no model file {judged.model}")
    try:
        model = persistence.load(judged.model, trusted=judged.trusted)
    except OSError as error:
        raise InputError(f"{judged.model} cannot be read: {one_line(error)}") from error
    if isinstance(model, Calibrator):
        raise InputError(
            f"{judged.model} holds a {type(model).__name__}, which takes scores and no table: "
            "give the probabilities it makes with --probability"
        )
    header = persistence.read_header(judged.model)
    X = _as_trained(model, table, data)
    try:
        return report_model(
            model,
            X,
            table.labelled.y,
            n_trained=header.get("n_rows"),
            positive=options["positive"],
            random_state=options["seed"],
            **_common(table, columns, costs),
        )
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"the model refuses the table: {one_line(error)}") from error


def _as_trained(model: Any, table: _Table, data: Path) -> Any:
    """Return the rows with a label as the model takes them."""
    fitted = getattr(model, "estimators_", None) or [getattr(model, "estimator_", None)]
    step = getattr(fitted[0], "steps", [(None, None)])[0][1]
    whole = table.labelled.X
    if isinstance(step, TableColumns):
        names = step.feature_names_in_.tolist()
        file = TableFile(data)
        step.check_names(file.names)
        kinds = zip(names, step.kinds_, strict=True)
        numbers = [name for name, kind in kinds if kind == "number"]
        import pandas as pd

        parts = [batch.rows for batch in file.batches(names, [], 1_000_000, numbers)]
        return pd.concat(parts, ignore_index=True).iloc[whole.index.to_numpy()]
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        missing = [str(name) for name in names if str(name) not in whole.columns]
        if missing:
            raise InputError(f"the table lacks the column {missing[0]!r} of training")
        return whole[[str(name) for name in names]]
    try:
        return whole.to_numpy(dtype=np.float64)
    except ValueError as error:
        raise InputError(f"the model takes numbers: {one_line(error)}") from error
