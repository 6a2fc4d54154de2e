"""Exports are run on drawn rows and compared with the model before they are returned."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vennforest._messages import InputError, needed, one_line
from vennforest._validation import FloatArray, IntArray
from vennforest.calibrators.base import Calibrator
from vennforest.classifier import CalibratedClassifier
from vennforest.classifier.parameters import named_estimators
from vennforest.classifier.prediction import RowScores, intervals_at, predict_scores
from vennforest.export.formulas import INTERVAL_LEVEL, starts_of_steps
from vennforest.scores import MASKED
from vennforest.sources.estimators import without_frozen

N_ROWS, N_SQL_ROWS = 200, 100
"""Rows of a proof, and of that of a query, which take longer."""

MIN_ACCEPTED, MIN_IN_RANGE = 20, 10
"""Drawn rows that the model takes, and that it scores as calibration examples, at least."""

ABSOLUTE_TOLERANCE, RELATIVE_TOLERANCE = 1e-9, 1e-5
"""Difference up to which probabilities are equal: the second is in units of p and of 1 - p."""

SCORE_TOLERANCE = 1e-5
"""Difference of scores, relative to these, up to which another step may be due to rounding."""

MAX_COLUMNS_ONE_BY_ONE = 200
"""Columns up to which each is tried by itself for missing and infinite cells."""

BEYOND_FLOAT32 = 1e300
IMPOSSIBLE = [*[np.nan] * 7, np.inf, -np.inf]
UNKNOWN = "vennforest-unknown"

Answers = dict[str, FloatArray]
"""Outputs by name: (n,) for the second of two classes, or (n, k); NaN where a row is refused."""


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

    def is_number(self) -> NDArray[np.bool_]:
        """Return which columns are numbers."""
        return np.array([column.dtype.kind == "f" for column in self.columns])


def draw_rows(cells: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Return the columns of `N_ROWS` rows: in the range of some cells, its ends, beyond, missing.

    Each column has cells that occur, numbers between neighbours, numbers beyond their range, and,
    in the last forty rows, missing and infinite ones; a column of text has a text that is new.
    """
    rng = np.random.RandomState(0)
    columns = []
    for values in cells:
        n_inside, n_present = N_ROWS * 3 // 5, N_ROWS * 4 // 5
        column = rng.choice(values, N_ROWS)
        odd = rng.random_sample(N_ROWS) < 1 / 3
        odd[:n_inside] = False
        if values.dtype.kind != "f":
            column[odd] = UNKNOWN
            columns.append(column)
            continue
        low, high = values.min(), values.max()
        if (values != np.rint(values)).any():
            between = np.interp(rng.uniform(0, len(values) - 1, N_ROWS), range(len(values)), values)
            column = np.where(np.arange(N_ROWS) % 2 == 0, between, column)
        span = high - low + 1.0
        ends = [low, high, low - span, high + span, low - 20 * span, high + 20 * span, 0.0]
        column[odd] = rng.choice(ends, odd.sum())
        missing = rng.random_sample(N_ROWS) < 0.15
        missing[:n_present] = False
        column[missing] = rng.choice(
            [np.nan] * 7 + [np.inf, -np.inf, BEYOND_FLOAT32], missing.sum()
        )
        columns.append(column)
    return columns


def cells_of(X: Any, names: Sequence[str] | None, is_text: Sequence[bool]) -> list[NDArray[Any]]:
    """Return the sorted distinct cells of the columns of rows."""
    array = np.asarray(X) if names is None else None
    cells = []
    for j, text in enumerate(is_text):
        column = array[:, j] if array is not None else X[names[j]].to_numpy()  # type: ignore[index]
        if text:
            texts = {str(cell) for cell in column if cell is not None and cell == cell}
            cells.append(np.array(sorted(texts) or [UNKNOWN], object))
            continue
        numbers = np.asarray(column, np.float64)
        cells.append(np.unique(numbers[np.isfinite(numbers)]) if len(numbers) else np.zeros(1))
    return [values if len(values) else np.zeros(1) for values in cells]


def cells_of_graph(onnx: Any, graph: Any, d: int) -> list[NDArray[Any]]:
    """Return numbers of each of d columns that the constants and splits of a graph name."""
    rng = np.random.RandomState(1)
    cells = [[rng.standard_normal(60), 30 * rng.standard_normal(20)] for _ in range(d)]
    for tensor in graph.initializer:
        if tensor.data_type in (tensor.FLOAT, tensor.DOUBLE) and list(tensor.dims[-1:]) == [d]:
            values = onnx.numpy_helper.to_array(tensor).reshape(-1, d).astype(np.float64)
            for j in range(d):
                cells[j].append(values[:N_ROWS, j])
    for node in graph.node:
        if node.op_type == "TreeEnsemble":
            entries = {entry.name: entry for entry in node.attribute}
            features = np.array(entries["nodes_featureids"].ints)
            splits = onnx.numpy_helper.to_array(entries["nodes_splits"].t)
            for j in range(d if features.max() < d else 0):
                cells[j].append(splits[features == j])
    joined = [np.concatenate(part) for part in cells]
    return [np.unique(part[np.abs(part) < np.finfo(np.float32).max]) for part in joined]


def refused_cells(model: CalibratedClassifier, rows: Rows) -> tuple[NDArray[np.bool_], FloatArray]:
    """Return which columns (d,) must not be missing, and the largest numbers of each (d,).

    These are infinite where infinity is a number; columns of text must not be asked.
    """
    row = _accepted_row(model, rows)
    numbers = np.flatnonzero(rows.is_number())
    single = len(numbers) > MAX_COLUMNS_ONE_BY_ONE

    def refuses(columns: Iterable[Any], cell: float) -> bool:
        changed = [column[row : row + 1].copy() for column in rows.columns]
        for j in columns:
            changed[j][0] = cell
        try:
            model.predict_proba(Rows(changed, rows.names, rows.frame, []).for_python(slice(1)))
        except Exception:
            return True
        return False

    def refused(cell: float) -> NDArray[np.bool_]:
        mask = np.zeros(len(rows.columns), bool)
        if len(numbers) and refuses(numbers, cell):
            if single and refuses(numbers[:1], cell) and refuses(numbers[-1:], cell):
                mask[numbers] = True
            else:
                mask[numbers] = [refuses([j], cell) for j in numbers]
        return mask

    with _quietly():
        limits = np.where(refused(np.inf), np.finfo(np.float64).max, np.inf)
        largest_single = np.finfo(np.float32).max * (1 + 2.0**-25)  # what rounds to infinity
        limits = np.where(refused(BEYOND_FLOAT32), np.nextafter(largest_single, 0), limits)
        return refused(np.nan), limits


def _accepted_row(model: CalibratedClassifier, rows: Rows) -> int:
    """Return the first drawn row that the model takes."""
    error: Exception | None = None
    with _quietly():
        for i in range(N_ROWS // 2):
            try:
                model.predict_proba(rows.for_python(slice(i, i + 1)))
                return i
            except Exception as refusal:
                error = refusal
    assert error is not None
    raise InputError(
        "X must be rows like those of training, to be compared before the graph is returned, "
        f"got drawn rows that the model refuses: {one_line(error)}"
    )


def check_graph(
    model: CalibratedClassifier,
    rows: Rows,
    graph: Any,
    with_scores: Callable[[], Any],
    *,
    confidence: bool,
    p_is_smooth: bool,
) -> None:
    """Raise an `InputError` if a graph answers otherwise than the model.

    ``with_scores`` returns the graph with the scores of each fold as further outputs. Where an
    output is a step, which scores that differ by rounding may miss, it must be that of the scores
    in the graph, and at most one calibration example lies between these and Python's.
    """
    feed = rows.for_graph()
    answers, state = run_graph(graph, feed), model._state
    n = N_ROWS
    blocks = [np.arange(n)[part] for part in (slice(120), slice(120, 160), slice(160, n))]
    expected = _answers_in_python(model, rows.for_python, blocks, confidence)
    accepted = np.flatnonzero(np.isfinite(expected["p"]).reshape(n, -1).all(axis=1))
    _check_rows_tell(model, rows, accepted)
    equal = {name: _is_equal(answers[name], values) for name, values in expected.items()}
    suspects = [i for i in accepted if not all(rows_equal[i] for rows_equal in equal.values())]
    if suspects:
        index = np.array(suspects)
        answers_with = run_graph(with_scores(), feed)
        scores = [answers_with[f"vennforest_scores{i}"][index] for i in range(len(state.folds))]
        python_rows = rows.for_python(index)
        near = np.ones(len(index), bool)
        with _quietly():
            for fold, of_graph in zip(state.folds, scores, strict=True):
                near &= _is_neighbour(of_graph, fold.score(python_rows), fold.scores)
            near &= np.isfinite(np.column_stack(scores)).all(axis=1)
            index, scores = index[near], [part[near] for part in scores]
            if len(index):
                row_scores = [RowScores(part, None, part) for part in scores]
                prediction = predict_scores(state, row_scores, None)
                steps = {"p": prediction.p}
                if prediction.bounds is not None:
                    steps |= {"p0": prediction.bounds.lower, "p1": prediction.bounds.upper}
                if confidence:
                    ends = intervals_at(state, row_scores, None, INTERVAL_LEVEL)
                    ends = ends.widen(prediction.p)
                    steps |= {"low95": ends.lower, "high95": ends.upper}
                for output, rows_equal in equal.items():
                    if output != "p" or not p_is_smooth:
                        rows_equal[index] |= _is_equal(
                            answers[output][index], _of_second(steps[output])
                        )
    names = [
        type(without_frozen(part)).__name__ for part in named_estimators(model.estimator).values()
    ]
    name = f"{type(model).__name__} of {', '.join(names)}"
    _refuse_difference(name, "ONNX", answers, expected, equal)


def _check_rows_tell(model: CalibratedClassifier, rows: Rows, accepted: IntArray) -> None:
    """Raise an error if drawn rows are too few, or score unlike any calibration example."""
    fold, n_in_range = model._state.folds[0], 0
    if len(accepted) >= MIN_ACCEPTED:
        with _quietly():
            scores = fold.score(rows.for_python(accepted)).reshape(len(accepted), -1)
        examples = fold.scores.reshape(len(fold.scores), -1)
        low, high = examples.min(axis=0), examples.max(axis=0)
        n_in_range = int(((scores >= low) & (scores <= high)).all(axis=1).sum())
    if n_in_range < MIN_IN_RANGE:
        raise InputError(
            "X must be rows like those of training, to be compared before the graph is returned, "
            f"got {n_in_range} drawn rows with scores like those of calibration: to_onnx(model, X)"
        )


def _is_neighbour(a: FloatArray, b: FloatArray, examples: FloatArray) -> NDArray[np.bool_]:
    """Return the rows (n,) between whose scores by two systems lies at most one example."""
    near = np.abs(a - b) <= SCORE_TOLERANCE * (1 + np.abs(b))
    for j, column in enumerate(examples.reshape(len(examples), -1).T):
        values = np.unique(column)
        first, second = (scores.reshape(len(scores), -1)[:, j] for scores in (a, b))
        steps = np.abs(values.searchsorted(first, "right") - values.searchsorted(second, "right"))
        near.reshape(len(near), -1)[:, j] &= steps <= 1
    return np.asarray(near.reshape(len(near), -1).all(axis=1))


def run_graph(graph: Any, feed: dict[str, NDArray[Any]]) -> Answers:
    """Return the outputs of a graph by name."""
    runtime = needed("onnxruntime", "ONNX graphs, which are run before they are returned,")
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = runtime.InferenceSession(
            graph.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        parts = _run_rows(session, feed)
    except Exception as error:
        raise InputError(
            f"model must be one that onnxruntime runs: {type(error).__name__}, {one_line(error)}"
        ) from error
    return dict(zip([output.name for output in session.get_outputs()], parts, strict=True))


def _run_rows(session: Any, feed: dict[str, NDArray[Any]]) -> list[FloatArray]:
    """Return the outputs of a graph; where it stops at a row, as for an unknown text, NaN."""
    try:
        return list(session.run(None, feed))
    except Exception as error:
        rows: list[Any] = []
        for i in range(len(next(iter(feed.values())))):
            try:
                rows.append(session.run(None, {name: x[i : i + 1] for name, x in feed.items()}))
            except Exception:
                rows.append(None)
        answered = next((row for row in rows if row is not None), None)
        if answered is None:
            raise error
        refused = [np.full_like(output, np.nan) for output in answered]
        return [
            np.concatenate(part) for part in zip(*(row or refused for row in rows), strict=True)
        ]


# --- calibrators ---------------------------------------------------------------------------------


def draw_scores(calibrator: Calibrator, n: int) -> FloatArray:
    """Return scores (n,) or (n, k): at steps, between and beyond these, at the ends, and NaN."""
    rng, k, kind = np.random.RandomState(0), len(calibrator.classes_), calibrator.on_
    starts = np.zeros(0)
    with suppress(ValueError):  # a calibrator without formulas has no steps
        starts = starts_of_steps(calibrator)
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


def check_calibrator(
    calibrator: Calibrator, format_name: str, scores: FloatArray, answers: Answers, confidence: bool
) -> None:
    """Raise an `InputError` if an export answers for scores otherwise than the calibrator."""
    expected = python_answers(calibrator, scores, confidence)
    equal = {name: _is_equal(answers[name], values) for name, values in expected.items()}
    _refuse_difference(type(calibrator).__name__, format_name, answers, expected, equal)


def python_answers(calibrator: Calibrator, scores: FloatArray, confidence: bool) -> Answers:
    """Return what a calibrator answers for scores, of which the last two are refused.

    Columns of scores are in the order of the classes, as exports have them.
    """
    calibrator = calibrator._by_class()
    blocks = [np.arange(len(scores) - 2), np.arange(len(scores) - 2, len(scores))]
    return _answers_in_python(calibrator, lambda index: scores[index], blocks, confidence)


# --- comparison ----------------------------------------------------------------------------------


def _quietly() -> Any:
    """Return a context without warnings: drawn rows are not the user's."""
    return warnings.catch_warnings(action="ignore")


def _of_second(p: FloatArray) -> FloatArray:
    """Return the numbers (n,) of the second of two classes, or those (n, k) of more."""
    return p[:, 1] if p.shape[1] == 2 else p


def _answers_in_python(
    model: Any, take: Callable[[Any], Any], blocks: Sequence[IntArray], confidence: bool
) -> Answers:
    """Return the answers for rows; those of a block that is refused are asked one by one."""

    def answers_of(index: IntArray) -> list[FloatArray]:
        rows = take(index)
        values = [model.predict_proba(rows)]
        if hasattr(model, "predict_multiprobability"):
            bounds = model.predict_multiprobability(rows)
            values += [bounds.lower, bounds.upper]
        if confidence:
            intervals = model.predict_confidence(rows)
            values += [intervals.lower, intervals.upper]
        return [_of_second(value) for value in values]

    parts, k = [], len(model.classes_)
    names = ["p", *["p0", "p1"] * hasattr(model, "predict_multiprobability")]
    names += ["low95", "high95"] * confidence
    with _quietly():
        for block in blocks:
            try:
                parts.append(answers_of(block))
                continue
            except Exception:
                pass  # a row is refused
            for i in block:
                try:
                    parts.append(answers_of(np.array([i])))
                except Exception:
                    parts.append([np.full((1, k) if k > 2 else 1, np.nan)] * len(names))
    columns = zip(*parts, strict=True)
    return {name: np.concatenate(values) for name, values in zip(names, columns, strict=True)}


def _is_equal(values: FloatArray, expected: FloatArray) -> NDArray[np.bool_]:
    """Return the rows (n,) whose numbers are equal up to rounding, or NaN in both."""
    tolerance = ABSOLUTE_TOLERANCE + RELATIVE_TOLERANCE * np.minimum(expected, 1 - expected)
    close = (np.abs(values - expected) <= tolerance) | (np.isnan(values) & np.isnan(expected))
    return np.asarray(close.reshape(len(close), -1).all(axis=1))


def _refuse_difference(
    name: str, format_name: str, answers: Answers, expected: Answers, equal: dict[str, Any]
) -> None:
    """Raise an `InputError` for the output that differs the most, if one does."""
    for output, rows_equal in equal.items():
        if rows_equal.all():
            continue
        wrong = ~rows_equal
        difference = np.abs(answers[output] - expected[output])[wrong]
        size = (
            f"by up to {np.nanmax(difference):.2g}"
            if np.isfinite(difference).any()
            else ("an answer where the model refuses a row, or none where it answers")
        )
        raise InputError(
            f"{name} must answer as {format_name} what it does in Python, got another {output!r} "
            f"for {wrong.sum()} of {len(wrong)} drawn rows, {size}: it is not exported; use "
            "vennforest.save"
        )
