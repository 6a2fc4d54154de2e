"""How predictions are written as columns: label, probabilities, bounds, confidence intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vennforest._messages import needed
from vennforest._shown import KINDS, columns_of
from vennforest._validation import FloatArray, InputError
from vennforest.calibrators import Calibrator
from vennforest.calibrators.base import has_bounds, merged
from vennforest.calibrators.intervals import check_level
from vennforest.classifier.fitted import predict_once
from vennforest.classifier.intervals import Known, predict_known

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = needed("pyarrow", "record batches")


class Answers:
    """Columns of predictions: ``label``, and of each class what is wanted of it.

    ``kinds`` are of ``"p"`` (column ``p(c)`` of class c), ``"bounds"`` (``lower(c)``, ``upper(c)``;
    left out where there are none) and ``"confidence"`` (``low95(c)``, ``high95(c)``, named by their
    ``level``); as one string they are separated by commas. None: all that the model gives. An error
    message calls them ``name``.
    """

    def __init__(
        self,
        model: Any,
        kinds: str | Sequence[str] | None = None,
        name: str = "answers",
        level: float = 0.95,
    ) -> None:
        check_level(level)
        self._model, self.level = model, float(level)
        types = {"i": pa.int64(), "u": pa.uint64(), "b": pa.bool_(), "f": pa.float64()}
        kind = types.get(model.classes_.dtype.kind, pa.string())
        labels = model.classes_.tolist()
        self._labels = pa.array(map(str, labels) if kind == pa.string() else labels, kind)
        self.kinds = kinds_of(model, kinds, name)
        names = [one for label in labels for one in columns_of(label, self.kinds, self.level)]
        self.fields: list[Any] = [
            pa.field("label", kind),
            *(pa.field(name, pa.float64()) for name in names),
        ]

    def predict(self, rows: Any) -> Known:
        """Return what the model predicts of rows, or a calibrator of scores (n,) or (n, k)."""
        wanted = "confidence" in self.kinds
        if isinstance(self._model, Calibrator):
            known = self._model.predict_confidence(rows, self.level) if wanted else None
            if not has_bounds(self._model):
                return (None, self._model.predict_proba(rows)), known
            bounds = self._model.predict_multiprobability(rows)
            scores = np.ascontiguousarray(rows, np.float64)
            return (bounds, merged(self._model, bounds, scores)), known
        if wanted:
            return predict_known(self._model, rows, self.level)
        return predict_once(self._model, rows), None

    def parts(self, known: Known) -> list[FloatArray]:
        """Return what is written of each class: tables (n, k)."""
        (bounds, p), confidence = known
        of_kind: dict[str, list[FloatArray]] = {"p": [p]}
        for kind, ends in (("bounds", bounds), ("confidence", confidence)):
            if ends is not None:
                of_kind[kind] = [ends.lower, ends.upper]
        return [table for kind in self.kinds for table in of_kind[kind]]

    def label(self, p: FloatArray) -> pa.Array:
        """Return the most probable labels for probabilities (n, k)."""
        return self._labels.take(pa.array(p.argmax(axis=1)))

    def arrays(self, known: Known) -> list[pa.Array]:
        """Return the columns of some rows."""
        parts, p = self.parts(known), known[0][1]
        every = [pa.array(part[:, j]) for j in range(p.shape[1]) for part in parts]
        return [self.label(p), *every]


def kinds_of(model: Any, kinds: str | Sequence[str] | None, name: str) -> list[str]:
    """Return which kinds of columns are written of a model."""
    given = {"p", *(["bounds"] if has_bounds(model) else [])}
    unknown = no_confidence(model)
    if unknown is None:
        given.add("confidence")
    if kinds is None:
        return [kind for kind in KINDS if kind in given]
    asked = kinds.split(",") if isinstance(kinds, str) else list(kinds)
    wanted = [kind.strip() for kind in asked]
    for kind in wanted:
        if kind not in KINDS:
            raise InputError(f"{name} must be some of {','.join(KINDS)}, got {kind!r}")
    if "confidence" in wanted and unknown is not None:
        raise InputError(f"{name} must leave out confidence: {unknown}")
    found = [kind for kind in KINDS if kind in wanted and kind in given]
    if not found:
        raise InputError(f"{name} must have p: the {type(model).__name__} gives no bounds")
    return found


def no_confidence(model: Any) -> str | None:
    """Return why a model gives no confidence intervals; None: it does."""
    if callable(getattr(model, "predict_confidence", None)):
        return None
    return (
        f"a {type(model).__name__} has no confidence intervals (a CalibratedClassifier and a "
        "VennAbers calibrator have)"
    )


def answers_for(
    model: Any, kinds: str | None, level: float, note: Callable[[str], None]
) -> Answers:
    """Return what a command writes of a model, and note why there are no confidence intervals."""
    unknown = no_confidence(model)
    if kinds is None and unknown is not None:
        note(f"No columns of confidence intervals: {unknown}.")
    return Answers(model, kinds, "--columns", level)


def first_refused(calibrator: Calibrator, scores: FloatArray) -> int:
    """Return the first row of scores (n,) or (n, k) that a calibrator refuses; there is one."""
    low, high = 0, len(scores) - 1
    while low < high:  # all rows before the first are taken together
        middle = (low + high) // 2
        try:
            calibrator.predict_proba(scores[: middle + 1])
        except ValueError:
            high = middle
        else:
            low = middle + 1
    return low
