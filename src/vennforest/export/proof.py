"""Exports are run on drawn rows and compared with the model before they are returned."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vennforest._messages import InputError, needed, one_line
from vennforest._validation import FloatArray, IntArray
from vennforest.calibrators.base import Calibrator
from vennforest.classifier import CalibratedClassifier
from vennforest.classifier.parameters import named_estimators
from vennforest.export.formulas import output_formulas, tables_of
from vennforest.export.onnx_graph import OnnxGraph
from vennforest.scores import MASKED
from vennforest.sources.estimators import without_frozen

N_ROWS, N_SQL_ROWS = 200, 100
"""Rows of a proof, and of that of a query, which take longer."""

MIN_ACCEPTED, MIN_IN_RANGE = 20, 10
"""Drawn rows that the model takes, and that it scores as calibration examples, at least."""

ABSOLUTE_TOLERANCE, RELATIVE_TOLERANCE = 1e-9, 1e-5
"""Difference up to which probabilities are equal: the second is in units of p and of 1 - p."""

SCORE_TOLERANCE, MAX_SHARE_OF_STEPS = 1e-5, 0.02
"""Relative difference of scores up to which another step may be due to rounding, and the share of
drawn rows that may have the answers of one."""

BEYOND_FLOAT32 = 1e300
UNKNOWN = "vennforest-unknown"
SCORES = "vennforest_scores"
"""Name of the outputs of a graph with the scores by each fold, before the number of the fold."""

Answers = dict[str, FloatArray]
"""Outputs by name: (n,) for the second of two classes, or (n, k); NaN where a row is refused."""


# --- answers -------------------------------------------------------------------------------------


def answers_of(answer: Callable[[IntArray], Answers], n: int) -> Answers:
    """Return the answers for n rows, NaN where ``answer`` raises an error for the row.

    Rows that are refused together are asked in halves. Raises the last error if none is answered.
    """
    parts: list[tuple[IntArray, Answers]] = []
    blocks = [np.arange(n)]
    while blocks:
        index = blocks.pop()
        try:
            parts.append((index, answer(index)))
        except Exception:
            if len(index) == 1 and not blocks and not parts:
                raise
            blocks += np.array_split(index, 2) if len(index) > 1 else []
    _, first = parts[0]
    answers = {name: np.full((n, *values.shape[1:]), np.nan) for name, values in first.items()}
    for index, part in parts:
        for name, values in part.items():
            answers[name][index] = values
    return answers


def python_answers(model: Any, take: Callable[[Any], Any], n: int, confidence: bool) -> Answers:
    """Return what a classifier or calibrator answers for the rows ``take(index)`` of n."""

    def answer(index: IntArray) -> Answers:
        rows = take(index)
        answers = {"p": model.predict_proba(rows)}
        if hasattr(model, "predict_multiprobability"):
            bounds = model.predict_multiprobability(rows)
            answers |= {"p0": bounds.lower, "p1": bounds.upper}
        if confidence:
            intervals = model.predict_confidence(rows)
            answers |= {"low95": intervals.lower, "high95": intervals.upper}
        return {name: part[:, 1] if part.shape[1] == 2 else part for name, part in answers.items()}

    with warnings.catch_warnings(action="ignore"):  # drawn rows are not the user's
        return answers_of(answer, n)


def run_graph(graph: Any, feed: dict[str, NDArray[Any]]) -> Answers:
    """Return the outputs of a graph by name; where it stops at a row, as for a new text, NaN."""
    runtime = needed("onnxruntime", "ONNX graphs, which are run before they are returned,")
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    try:
        providers = ["CPUExecutionProvider"]
        session = runtime.InferenceSession(graph.SerializeToString(), options, providers)
        names = [output.name for output in session.get_outputs()]

        def answer(index: IntArray) -> Answers:
            values = session.run(names, {name: column[index] for name, column in feed.items()})
            return dict(zip(names, values, strict=True))

        return answers_of(answer, len(next(iter(feed.values()))))
    except Exception as error:
        raise InputError(
            f"model must be one that onnxruntime runs: {type(error).__name__}, {one_line(error)}"
        ) from error


def prove(
    name: str,
    format_name: str,
    answers: Answers,
    expected: Answers,
    excused: dict[str, NDArray[np.bool_]] | None = None,
) -> None:
    """Raise an `InputError` if an export answers otherwise than expected.

    Rows (n,) of outputs may be ``excused``, if they are few.
    """
    for output, values in expected.items():
        difference = np.abs(answers[output] - values)
        tolerance = ABSOLUTE_TOLERANCE + RELATIVE_TOLERANCE * np.minimum(values, 1 - values)
        is_equal = (difference <= tolerance) | (np.isnan(values) & np.isnan(answers[output]))
        is_wrong = np.asarray(~is_equal.reshape(len(values), -1).all(axis=1))
        if excused and is_wrong.mean() <= MAX_SHARE_OF_STEPS:
            is_wrong &= ~excused[output]
        if not is_wrong.any():
            continue
        size = "an answer where the model refuses a row, or none where it answers"
        if np.isfinite(difference[is_wrong]).any():
            size = f"by up to {np.nanmax(difference[is_wrong]):.2g}"
        raise InputError(
            f"{name} must answer as {format_name} what it does in Python, got another {output!r} "
            f"for {is_wrong.sum()} of {len(is_wrong)} drawn rows, {size}: it is not exported; use "
            "vennforest.save"
        )


# --- calibrators ---------------------------------------------------------------------------------


def draw_scores(calibrator: Calibrator, n: int) -> FloatArray:
    """Return scores (n,) or (n, k): at steps, between and beyond these, at the ends, and NaN."""
    rng, k, kind = np.random.RandomState(0), len(calibrator.classes_), calibrator.on_
    starts = np.zeros(0)
    with suppress(ValueError):  # a calibrator without formulas has no steps
        tables = tables_of(output_formulas(calibrator).values())
        starts = np.unique(np.concatenate([starts, *(table.start[1:] for table in tables)]))
        starts = starts[np.abs(starts) < -MASKED / 2]
    is_probability = kind == "probability" or calibrator._reads == "probability"
    if is_probability or not len(starts):
        starts = np.append(starts[(starts >= 0) & (starts <= 1)], np.linspace(0.0, 1.0, 21))
    if kind == "probability" and k > 2:
        scores = rng.dirichlet(np.full(k, 0.5), n)
        scores[: min(k, n)] = np.eye(k)[:n]
    else:
        picked = rng.choice(starts, (n, k) if k > 2 else n)
        span = np.ptp(starts) + 1.0
        between = rng.uniform(starts.min() - 0.2 * span, starts.max() + 0.2 * span, picked.shape)
        scores = np.where(rng.random_sample(picked.shape) < 0.5, picked, between)
        if is_probability:
            scores = np.clip(scores, 0.0, 1.0)
    scores[-2:] = np.nan
    return np.asarray(scores)


def prove_calibrator(
    calibrator: Calibrator,
    format_name: str,
    take: Callable[[Any], Any],
    answers: Answers,
    confidence: bool,
) -> None:
    """Raise an `InputError` if an export answers otherwise than the calibrator.

    ``take`` returns scores by their index; columns are in the order of the classes.
    """
    n = len(answers["p"])
    expected = python_answers(calibrator._by_class(), take, n, confidence)
    prove(type(calibrator).__name__, format_name, answers, expected)


# --- classifiers ---------------------------------------------------------------------------------


@dataclass
class Rows:
    """Drawn rows as the arrays of their columns, and how Python and a graph take them."""

    columns: list[NDArray[Any]]
    names: list[str] | None
    frame: Any
    inputs: Sequence[str]

    def for_python(self, index: IntArray | slice) -> Any:
        """Return rows as the model takes them."""
        columns = [column[index] for column in self.columns]
        if self.names is None:
            return np.column_stack(columns)
        return self.frame(dict(zip(self.names, columns, strict=True)))

    def for_graph(self) -> dict[str, NDArray[Any]]:
        """Return all rows as a graph takes them."""
        if self.inputs == ["X"]:
            return {"X": np.column_stack(self.columns)}
        pairs = zip(self.inputs, self.columns, strict=True)
        return {name: column[:, None] for name, column in pairs}

    def numbers(self) -> IntArray:
        """Return the indices of the columns of numbers."""
        return np.flatnonzero([column.dtype.kind == "f" for column in self.columns])


def draw_rows(cells: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Return the columns of `N_ROWS` rows: in the range of some cells, its ends, beyond, missing.

    Each column has cells that occur, numbers between neighbours, numbers beyond their range, and,
    in the last forty rows, missing and infinite ones; a column of text has a text that is new.
    """
    rng, number = np.random.RandomState(0), np.arange(N_ROWS)
    columns = []
    for values in cells:
        column = rng.choice(values, N_ROWS)
        is_odd = (rng.random_sample(N_ROWS) < 1 / 3) & (number >= N_ROWS * 3 // 5)
        if values.dtype.kind != "f":
            column[is_odd] = UNKNOWN
            columns.append(column)
            continue
        low, high = values.min(), values.max()
        if (values != np.rint(values)).any():
            between = np.interp(rng.uniform(0, len(values) - 1, N_ROWS), range(len(values)), values)
            column = np.where(number % 2 == 0, between, column)
        span = high - low + 1.0
        ends = [low, high, low - span, high + span, low - 20 * span, high + 20 * span, 0.0]
        column[is_odd] = rng.choice(ends, is_odd.sum())
        impossible = rng.choice([*[np.nan] * 7, np.inf, -np.inf, BEYOND_FLOAT32], N_ROWS)
        is_impossible = (rng.random_sample(N_ROWS) < 0.15) & (number >= N_ROWS * 4 // 5)
        columns.append(np.where(is_impossible, impossible, column))
    return columns


def distinct_cells(column: NDArray[Any], is_text: bool) -> NDArray[Any]:
    """Return the sorted distinct cells of a column."""
    if is_text:
        texts = {str(cell) for cell in column if cell is not None and cell == cell}
        return np.array(sorted(texts) or [UNKNOWN], object)
    numbers = np.asarray(column, np.float64)
    numbers = np.unique(numbers[np.isfinite(numbers)])
    return numbers if len(numbers) else np.zeros(1)


def cells_of_graph(graph: OnnxGraph, d: int) -> list[Any]:
    """Return numbers of each of d columns that the constants and splits of a graph name."""
    rng, array_of = np.random.RandomState(1), graph.onnx.numpy_helper.to_array
    tables = [rng.standard_normal((60, d)), 30 * rng.standard_normal((20, d))]
    for tensor in [*graph.constants.values(), *graph.initializers]:
        if tensor.data_type in (tensor.FLOAT, tensor.DOUBLE) and list(tensor.dims[-1:]) == [d]:
            values = array_of(tensor).reshape(-1, d)
            tables.append(values[:N_ROWS].astype(np.float64))
    cells = list(np.concatenate(tables).T)
    for node in graph.nodes:
        if node.op_type == "TreeEnsemble":
            entries = {entry.name: entry for entry in node.attribute}
            features = np.array(entries["nodes_featureids"].ints)
            splits = array_of(entries["nodes_splits"].t)
            if features.max() < d:
                cells = [np.append(part, splits[features == j]) for j, part in enumerate(cells)]
    return [np.unique(part[np.abs(part) < np.finfo(np.float32).max]) for part in cells]


@dataclass
class Expected:
    """A model's answers for drawn rows, and its scores by each fold for those that it takes."""

    answers: Answers
    accepted: IntArray
    scores: list[FloatArray]


def expected_answers(model: CalibratedClassifier, rows: Rows, confidence: bool) -> Expected:
    """Return the model's answers for drawn rows; raise an error if too few are like training's."""
    rule = "X must be rows like those of training, to be compared before the graph is returned, got"
    try:
        answers = python_answers(model, rows.for_python, N_ROWS, confidence)
    except Exception as error:
        raise InputError(f"{rule} drawn rows that the model refuses: {one_line(error)}") from error
    accepted = np.flatnonzero(np.isfinite(answers["p"].reshape(N_ROWS, -1)).all(axis=1))
    folds, x = model._state.folds, rows.for_python(accepted)
    with warnings.catch_warnings(action="ignore"):
        scores = [fold.score(x) for fold in folds]
    examples = folds[0].scores
    is_in_range = (scores[0] >= examples.min(axis=0)) & (scores[0] <= examples.max(axis=0))
    n_in_range = is_in_range.reshape(len(accepted), -1).all(axis=1).sum()
    if len(accepted) < MIN_ACCEPTED or n_in_range < MIN_IN_RANGE:
        raise InputError(
            f"{rule} {n_in_range} drawn rows with scores like those of calibration: "
            "to_onnx(model, X)"
        )
    return Expected(answers, accepted, scores)


def refused_cells(
    model: CalibratedClassifier, rows: Rows, row: int
) -> tuple[NDArray[np.bool_], FloatArray]:
    """Return which columns (d,) must not be missing, and the largest numbers of each (d,).

    These are infinite where infinity is a number; columns of text must not be asked. ``row`` is the
    number of a row that the model takes.
    """
    n = len(rows.columns) + 1

    def refused(cell: float) -> NDArray[np.bool_]:
        # The same row again and again, each with another cell, and the last one as it is.
        columns = [np.repeat(column[row], n) for column in rows.columns]
        for j in rows.numbers():
            columns[j][j] = cell
        p = python_answers(model, replace(rows, columns=columns).for_python, n, False)["p"]
        return np.isnan(p.reshape(n, -1)[:-1, 0])

    limits = np.where(refused(np.inf), np.finfo(np.float64).max, np.inf)
    largest_single = np.finfo(np.float32).max * (1 + 2.0**-25)  # what rounds to infinity
    limits = np.where(refused(BEYOND_FLOAT32), np.nextafter(largest_single, 0), limits)
    return refused(np.nan), limits


def prove_classifier(
    model: CalibratedClassifier, expected: Expected, answers: Answers, *, p_is_smooth: bool
) -> None:
    """Raise an `InputError` if a graph answers otherwise than the model.

    ``answers`` are those of the graph with the scores of each fold. Where an output is a step,
    scores that differ by rounding may miss it.
    """
    is_near = np.zeros(N_ROWS, bool)
    is_near[expected.accepted] = True
    for i, scores in enumerate(expected.scores):
        distance = np.abs(answers[f"{SCORES}{i}"][expected.accepted] - scores) / (
            1 + np.abs(scores)
        )
        is_near[expected.accepted] &= (
            (distance <= SCORE_TOLERANCE).reshape(len(scores), -1).all(axis=1)
        )
    excused = {name: is_near & (name != "p" or not p_is_smooth) for name in expected.answers}
    estimators = named_estimators(model.estimator).values()
    names = [type(without_frozen(estimator)).__name__ for estimator in estimators]
    name = f"{type(model).__name__} of {', '.join(names)}"
    prove(name, "ONNX", answers, expected.answers, excused)
