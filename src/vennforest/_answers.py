"""How predictions are written as columns: of every row its label, probabilities and bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vennforest._shown import columns_of
from vennforest._validation import FloatArray
from vennforest.calibrators import Calibrator
from vennforest.calibrators.core.bounded import has_bounds, merged
from vennforest.classifier.prediction import Prediction
from vennforest.multiprobability import Multiprobability

if TYPE_CHECKING:
    import pyarrow as pa


class Answers:
    """Columns of predictions: ``label``, and of each class ``p(c)``, ``lower(c)``, ``upper(c)``.

    Parameters
    ----------
    model : classifier or calibrator
        Fitted.

    Attributes
    ----------
    fields : list of pyarrow.Field
    """

    def __init__(self, model: Any) -> None:
        pa = need_pyarrow()
        self._labels, kind = label_column(model.classes_)
        of_each = 3 if has_bounds(model) else 1
        classes = model.classes_.tolist()
        names = [name for label in classes for name in columns_of(label)[:of_each]]
        self.fields: list[Any] = [
            pa.field("label", kind),
            *(pa.field(name, pa.float64()) for name in names),
        ]

    def arrays(self, bounds: Multiprobability | None, p: FloatArray) -> list[pa.Array]:
        """Return the columns of some rows: bounds and probabilities (n, k)."""
        import pyarrow as pa

        parts = [p] if bounds is None else [p, bounds.lower, bounds.upper]
        label = pa.array(self._labels[p.argmax(axis=1)], self.fields[0].type)
        return [label, *(pa.array(part[:, j]) for j in range(p.shape[1]) for part in parts)]


def label_column(classes: NDArray[Any]) -> tuple[NDArray[Any], pa.DataType]:
    """Return the labels as they are written, and their Arrow type."""
    import pyarrow as pa

    types = {"i": pa.int64(), "u": pa.uint64(), "b": pa.bool_(), "f": pa.float64()}
    kind = types.get(classes.dtype.kind, pa.string())
    if kind == pa.string():
        return np.array([str(label) for label in classes.tolist()], dtype=object), kind
    return classes, kind


def of_calibrator(calibrator: Calibrator, scores: FloatArray) -> Prediction:
    """Return the bounds, if there are any, and the probabilities of scores (n,) or (n, k)."""
    if not has_bounds(calibrator):
        return None, calibrator.predict_proba(scores)
    bounds = calibrator.predict_multiprobability(scores)
    return bounds, merged(calibrator, bounds, np.ascontiguousarray(scores, np.float64))


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


def need_pyarrow() -> Any:
    """Return pyarrow.

    Raises
    ------
    ImportError
        Saying what to install.
    """
    try:
        import pyarrow
    except ImportError as missing:
        raise ImportError(
            "record batches need pyarrow: install it with pip install 'vennforest[all]'"
        ) from missing
    return pyarrow
