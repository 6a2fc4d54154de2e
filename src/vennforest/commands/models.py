"""Models and calibrators read from files, and table rows converted to their inputs."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from pandas.api.types import infer_dtype

from vennforest import persistence
from vennforest._class_columns import (
    ClassColumns,
    class_columns,
    labels_of_column,
    refuse_own_output,
)
from vennforest._messages import CalibrationWarning, as_sentence, listed
from vennforest._validation import FloatArray, InputError, check_inside, text_of_label
from vennforest.batch import feature_names, number_columns, table_columns
from vennforest.calibrators import Calibrator, VennAbers
from vennforest.classifier import CalibratedClassifier
from vennforest.commands.options import Check, Watch
from vennforest.counts import ScoreCounts
from vennforest.export import from_json
from vennforest.export.json_form import columns_in_document
from vennforest.scores import is_outside, read_scores
from vennforest.sources.training_columns import ColumnDifference, TrainingColumns, differences_of
from vennforest.tables.open import TableFile, TableFormat
from vennforest.tables.read import CellColumn, with_decimal_point
from vennforest.tables.schema import check_names, find_name, read_types, texts_of
from vennforest.tables.target import typed_labels

MAX_EXAMPLES = 4_096
"""Scores that a file keeps of a calibrator that keeps none itself."""


def read_model(
    path: Path, trusted: Sequence[str] | None, types: tuple[type, ...] = (CalibratedClassifier,)
) -> Any:
    """Return the model in a file; raise an error if it is of none of the ``types``."""
    model = persistence.load(path, trusted=trusted or ())
    if not isinstance(model, types):
        raise InputError(
            f"{path} must contain a {types[0].__name__}, got a {type(model).__name__}: use it in "
            "Python, with vennforest.load"
        )
    return model


def refuse_scores(options: Check | Watch) -> None:
    """Raise an error if options name columns of scores, for a model."""
    if options.scores:
        raise InputError("--score is for a calibrator: a model reads its own columns")


def rows_for(model: Any, frame: pd.DataFrame, carried: Sequence[str] = ()) -> Any:
    """Return the rows of a table as input of a model.

    For a model fitted without column names, all columns but the ``carried`` ones are features.
    """
    if (names := feature_names(model)) is not None:
        check_names(frame.columns, names)
        return frame[names]
    features = frame.drop(columns=list(carried))
    if features.shape[1] != model.n_features_in_:
        raise InputError(
            f"the table must have {model.n_features_in_} columns, as at fit, where they had no "
            f"names, got {features.shape[1]}"
        )
    return features.to_numpy()


def open_table(path: Path, model: Any, form: TableFormat) -> TableFile:
    """Open a table for a model; its text has the decimal sign of training, unless form has one."""
    file, table = TableFile(path, form), table_columns(model)
    if file.decimal_is_detected and table is not None and table.decimal is not None:
        file.decimal, file.decimal_is_detected = table.decimal, False
    return file


def read_rows(
    path: Path, model: Any, options: Check | Watch, as_text: Iterable[str | None] = ()
) -> tuple[TableFile, pd.DataFrame, dict[str, str]]:
    """Open a table for a model, whose columns get the types and missing markers of its training.

    Of other columns those declared and those of ``as_text`` stay text, as labels do. The third
    result are the types of columns: those declared, and the dates of the model's columns.
    """
    table = table_columns(model)
    types = {} if options.types is None else read_types(options.types)
    texts, markers, trained, numbers = [*as_text, *texts_of(types)], [], {}, []
    if table is not None:
        numbers, trained = number_columns(model, table), table.as_types()
        texts += [name for name in trained if name not in numbers]
        markers = table.missing or []
    for name in types:
        if name in trained:
            raise InputError(
                f"--types must be of columns that the model does not read, got {name!r}: the model "
                f"knows it as {trained[name]}"
            )
    file = open_table(path, model, options.form)
    frame = file.read([name for name in texts if name is not None], markers)
    for name in numbers if file.decimal == "," else ():
        if name in frame and infer_dtype(frame[name]) == "string":  # refused as by predict
            cells = pa.array(frame[name], pa.string(), from_pandas=True)
            frame[name] = with_decimal_point(cells).to_pandas()
    options.row_counts[path] = len(frame)
    dates = {name: kind for name, kind in trained.items() if kind.startswith("date")}
    return file, frame, dates | types


@contextmanager
def noted(differences: Sequence[ColumnDifference], notes: list[str]) -> Iterator[None]:
    """Add columns that differ from training to ``notes``, in place of their warnings."""
    notes += [as_sentence(difference.message) for difference in differences]
    with warnings.catch_warnings():
        for difference in differences:
            warnings.filterwarnings("ignore", re.escape(difference.message), CalibrationWarning)
        yield


def column_differences(model: Any, X: Any) -> list[ColumnDifference]:
    """Return the columns of rows for a classifier that differ from training."""
    is_ours = isinstance(model, CalibratedClassifier)
    return model._state.column_differences(X) if is_ours else []


def label_of_text(classes: NDArray[Any]) -> dict[str, Any]:
    """Return a mapping from the text of each label, see `text_of_label`, to the label.

    Labels that are booleans may be written as true and false too.
    """
    labels = {text_of_label(label): label for label in classes.tolist()}
    if classes.dtype.kind == "b":
        labels |= {text.lower(): label for text, label in labels.items()}
    return labels


def labels_of_model(table: pd.DataFrame, target: str, classes: NDArray[Any]) -> NDArray[Any]:
    """Return the labels (n,) in a table in the type of a model's classes, None where missing.

    Raises
    ------
    InputError
        If no row has a label, or a label is none of the classes.
    """
    column = CellColumn(table[find_name(table.columns, target)], target)
    label_of = label_of_text(classes)
    labels = column.array.drop_null().to_pylist()
    if not labels:
        raise InputError(f"the target {target!r} is missing in every row")
    if classes.dtype.kind in "iu":  # 01 and 1.0 are 1, as at fit
        labels = typed_labels(column, target).tolist()
    texts = list(map(text_of_label, labels))
    unknown = [text for text in texts if text not in label_of]
    if unknown:
        raise InputError(
            f"the target {target!r} contains {unknown[0]!r}, a label that the model has never "
            f"seen (it was fitted to {', '.join(map(repr, list(label_of)[:8]))}): that alone is a "
            "change; leave out such rows, or fit the model again"
        )
    y: NDArray[Any] = np.full(len(column.is_present), None, dtype=object)
    y[column.is_present] = [label_of[text] for text in texts]
    return y


def with_shares(model: Any, prior: Sequence[str] | None) -> Any:
    """Return a model or calibrator adjusted to class shares given as ``LABEL=SHARE``."""
    shares = numbers_of_labels(model, prior, "--prior", "SHARE")
    return model.with_prior(shares) if shares else model


def numbers_of_labels(
    model: Any, entries: Sequence[str] | None, name: str, unit: str
) -> dict[Any, float]:
    """Return the numbers of labels that an option gives as ``LABEL=NUMBER``."""
    labels, numbers = label_of_text(model.classes_), {}
    for entry in entries or ():
        text, _, number = entry.rpartition("=")
        if labels.get(text, entry) in numbers:
            raise InputError(f"{name} of {text!r} must be given once, got it twice")
        try:
            numbers[labels[text]] = float(number)
        except (KeyError, ValueError):
            raise InputError(
                f"{name} must be LABEL={unit} with a label of {', '.join(labels)}, got {entry!r}"
            ) from None
        check_inside(numbers[labels[text]], f"{name} of {text!r}")
    return numbers


def check_probabilities_in(column: FloatArray, name: str) -> None:
    """Raise an error if a column (n,) contains numbers outside [0, 1]."""
    if is_outside(column).any():
        raise InputError(
            f"the column {name!r} must contain probabilities in [0, 1], got numbers from "
            f"{column.min():.4g} to {column.max():.4g}: divide percentages by 100, and turn "
            "scores into probabilities with vennforest calibrate and apply"
        )


def numbers_in(frame: pd.DataFrame, name: str) -> FloatArray:
    """Return a column as float64, NaN where a cell is empty."""
    column = frame[find_name(frame.columns, name)]
    return CellColumn(column, name, table="the table").floats()


# --- calibrators ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CalibratorFile:
    """A calibrator, the columns of its scores, and other entries of its file."""

    calibrator: Calibrator
    columns: ClassColumns
    entries: dict[str, Any]

    def scores_in(self, frame: pd.DataFrame) -> FloatArray:
        """Return the scores in the rows of a table, of shape (n,) or (n, k)."""
        names, classes = self.columns.names, self.columns.classes
        refuse_own_output(names, [*map(str, frame.columns)], classes)
        table = np.column_stack([numbers_in(frame, name) for name in names])
        scores = self.columns.scores_in(table, self.calibrator.on_)
        if len(classes) > 2:
            return scores
        mask_distance = self.calibrator.mask_distance_
        return read_scores(scores, 2, self.calibrator.on_, mask_distance=mask_distance).values

    def training(self) -> TrainingColumns | None:
        """Return the summary of the scores that were calibrated on, None if the file has none."""
        if (examples := self.examples()) is None:
            return None
        scores = examples[0].reshape(len(examples[0]), -1)
        names = self.columns.names[-scores.shape[1] :]
        return TrainingColumns.of(zip(names, scores.T, strict=True), len(scores))

    def differences(self, scores: FloatArray) -> list[ColumnDifference]:
        """Return the columns of scores (n,) or (n, k) that differ from those calibrated on."""
        training = self.training()
        if training is None:
            return []
        columns = dict(zip(training.names, scores.reshape(len(scores), -1).T, strict=True))
        return differences_of(training, pd.DataFrame(columns))

    def examples(self) -> tuple[FloatArray, NDArray[Any]] | None:
        """Return scores and labels of the calibration examples, None if the file has none."""
        calibrator, classes = self.calibrator, self.calibrator.classes_
        if isinstance(calibrator, VennAbers) and len(calibrator.scores_) == 1:
            reversed_at, scores = calibrator.reversed_at_, calibrator.scores_[0]
            scores = scores if reversed_at is None else reversed_at - scores
            counts = calibrator.weights_[0]
        else:
            try:
                examples = self.entries["examples"]
                scores, counts = (np.asarray(examples[n], np.float64) for n in ("scores", "counts"))
                calibrator._check_new(scores)
            except (TypeError, KeyError, ValueError):
                return None
        if counts.shape != (len(scores), len(classes)) or not (counts >= 0).all():
            return None
        repeats = np.rint(counts).astype(np.int64).ravel()
        rows = np.repeat(np.arange(len(scores)), len(classes))
        return np.repeat(scores[rows], repeats, axis=0), np.repeat(
            np.tile(classes, len(scores)), repeats
        )


def examples_to_keep(counts: ScoreCounts, calibrator: Calibrator) -> dict[str, Any]:
    """Return the examples to store for `watch`, {} if the calibrator itself stores them."""
    if len(counts.classes) == 2:
        if isinstance(calibrator, VennAbers):
            return {}
        counts = counts.coarsen(MAX_EXAMPLES)
    step = -(-len(counts) // MAX_EXAMPLES)
    scores, weights = counts.scores[::step], counts.weights[::step]
    return {"examples": {"scores": scores.tolist(), "counts": weights.tolist()}}


def is_calibrator_file(path: Path) -> bool:
    """Return whether a file begins like JSON, the format that ``calibrate`` writes."""
    try:
        with path.open("rb") as file:
            return file.read(64).lstrip()[:1] == b"{"
    except OSError:
        return False


def read_document(
    path: Path, text: str | None = None
) -> tuple[Calibrator, ClassColumns | None, dict[str, Any]]:
    """Return the calibrator in a JSON file or in its ``text``, its columns and other entries."""
    if text is None:
        text = path.read_text(encoding="utf-8", errors="replace")
        if not is_calibrator_file(path):
            raise InputError(
                f"{path} is not a calibrator: vennforest calibrate writes these, from scores such "
                "as the probabilities that predict writes for a model"
            )
    try:
        calibrator, document = from_json(text), json.loads(text)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    return calibrator._by_class(), columns_in_document(document), document.get("about", {})


def read_calibrator(
    path: Path,
    scores: Sequence[str] | None = None,
    text: str | None = None,
    table: Collection[str] = (),
) -> CalibratorFile:
    """Return the calibrator in a file and its score columns, by default those that it notes.

    ``table`` are the names of the columns of the table, which ``LABEL=COLUMN`` is told from.
    """
    calibrator, noted, entries = read_document(path, text)
    classes = calibrator.classes_.tolist()
    if noted is not None and not scores:
        return CalibratorFile(calibrator, noted, entries)
    noted_labels = {} if noted is None else {name: label for label, name in noted.by_label.items()}
    columns = class_columns(scores or (), classes, "--score", table, noted_labels)
    if calibrator.on_ == "logit" and noted and len(columns.names) < len(noted.names):
        raise InputError(
            f"--score must name both columns of logits, as {path} was calibrated on "
            f"{listed(noted.names, 2)}, got {columns.names[0]!r} alone"
        )
    name = columns.names[0]
    is_unnamed = name in (scores or ()) and not (
        name in noted_labels or labels_of_column(name, classes)
    )
    if noted is not None and noted.of_first and is_unnamed:
        raise InputError(
            f"--score must say of which class {name!r} is, as LABEL=COLUMN: "
            f"{noted.names[0]!r}, on which {path} was calibrated, is that of {classes[0]!r}"
        )
    return CalibratorFile(calibrator, columns, entries)
