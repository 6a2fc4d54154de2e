"""The command ``predict``: a table in, probabilities with their bounds out, part by part."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from vennforest import persistence
from vennforest._answers import Answers, answers_for
from vennforest._files import one_line, refused_as
from vennforest._messages import listed, nearest
from vennforest._shown import columns_of, names_of
from vennforest._validation import InputError
from vennforest.calibrators import Calibrator
from vennforest.classifier.intervals import Known
from vennforest.commands.model_rows import read_model, rows_of
from vennforest.commands.options import Predict
from vennforest.commands.rows import format_of, over_rows, write_answers
from vennforest.monitoring import Monitor
from vennforest.tables.stream import Batch, TableFile


def run(options: Predict) -> None:
    """Predict every row of a table, and say how many rows."""
    over_rows(options, _predict)


def _predict(
    options: Predict,
    note: Callable[[str], None],
    progress: Callable[[int, int | None], None] | None,
) -> dict[str, Any]:
    """Predict every row of a table, and write a table of predictions in the same order.

    Returned are how many rows there are and how many got each label, the columns of the output,
    those of the table that the model does not know, and the mean width of the bounds of the
    predicted labels (None without).
    """
    path, data, how = options.model, options.data, format_of(options)
    carried = options.carried or []
    model = read_model(path, options.trusted or ())
    if isinstance(model, Calibrator):
        raise InputError(
            f"{path} contains a {type(model).__name__}, which takes scores and no table: "
            "use vennforest.load in Python"
        )
    if isinstance(model, Monitor):
        raise InputError(f"{path} contains a monitor, which predicts nothing: name its model")
    table = TableFile(data, options.decimal)
    for name in carried:
        if name not in table.names:
            near = nearest(name, table.names)
            raise InputError(f"there is no column {name!r} in {data} to copy{near}")
    reader = rows_of(model, table, carried)
    if options.keep:
        carried = [*carried, *(name for name in table.names if name not in carried)]
    target = persistence.read_header(path).get("target")
    ignored = [name for name in reader.ignored if name not in carried]
    others = [name for name in ignored if name != target]
    if others:
        what = "column" if len(others) == 1 else "columns"
        note(f"The model does not use the {what} {listed(others, 5)}.")
    taken = list(zip(carried, table.types(carried), strict=True))
    wanted = answers_for(model, options.columns, options.level, note)
    answers = _Answers(model, path, taken, options.positive, wanted)
    done, written = write_answers(
        options,
        how,
        answers.schema,
        table,
        (reader.columns, carried, reader.numbers),
        lambda batch, _: answers.of(reader.read(batch.rows), batch),
        progress,
    )
    return {
        "n_rows": done,
        "counts": dict(zip(answers.labels, answers.counts.tolist(), strict=True)),
        "columns": written,
        "ignored": ignored,
        "mean_width": answers.width / done if done and answers.bounded else None,
    }


class _Answers:
    """A model's predictions for rows, as a table: of the label, then of each class."""

    def __init__(
        self,
        model: Any,
        path: Path,
        carried: list[tuple[str, pa.DataType]],
        positive: str | None,
        answers: Answers,
    ) -> None:
        self.model, self.path, self.answers = model, path, answers
        self.bounded = hasattr(model, "predict_multiprobability")
        self.labels = [str(label) for label in model.classes_.tolist()]
        self.counts = np.zeros(len(self.labels), np.int64)
        self.width = 0.0
        self.shown = list(range(len(self.labels)))
        if positive is not None:
            if positive not in self.labels:
                raise InputError(
                    f"--positive must be one of {listed(self.labels, 10)}, got {positive!r}"
                    f"{nearest(positive, self.labels)}"
                )
            self.shown = [self.labels.index(positive)]
        self.of_label = positive is None
        numbers = [name for kind in answers.kinds for name in names_of(kind, answers.level)]
        numbers = ["probability" if name == "p" else name for name in numbers if self.of_label]
        for j in self.shown:
            numbers += columns_of(self.labels[j], answers.kinds, answers.level)
        for name, _ in carried:
            if name in ("label", *numbers):
                raise InputError(
                    f"the column {name!r} cannot be copied, since the output has one of "
                    "that name: rename it, or name the columns to copy with --id"
                )
        self.schema = pa.schema(
            [*carried, answers.fields[0], *((name, pa.float64()) for name in numbers)]
        )

    def of(self, X: Any, batch: Batch) -> pa.Table:
        """Return the predictions for some rows."""
        known = self._predict(X)
        bounds, p = known[0]
        best = p.argmax(axis=1)
        rows = np.arange(len(p))
        self.counts += np.bincount(best, minlength=len(self.counts))
        if bounds is not None:
            self.width += float(bounds.width[rows, best].sum())
        parts = self.answers.parts(known)
        columns = [part[rows, best] for part in parts if self.of_label]
        columns += [part[:, j] for j in self.shown for part in parts]
        arrays = [*batch.carried, self.answers.label(p), *map(pa.array, columns)]
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def _predict(self, X: Any) -> Known:
        try:
            with refused_as("the model refuses the table"):  # what its own checks say of the rows
                return self.answers.predict(X)
        except (InputError, MemoryError):
            raise
        except Exception as error:  # whatever a model of another package or version may do
            raise InputError(
                f"the model in {self.path} fails on this table, with {type(error).__name__}: "
                f"{one_line(error)}; with --debug it shows where"
            ) from error
