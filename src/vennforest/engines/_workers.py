"""What travels to workers, and how they read rows: a model once per process, batches by name."""

from __future__ import annotations

import hashlib
import importlib
import pickle
import platform
import threading
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vennforest._program import __version__
from vennforest._validation import InputError
from vennforest.batch import BatchPredictor, check_number, matrix_of
from vennforest.sources.row_hashes import HashArray, hash_rows
from vennforest.tables.read import find_name
from vennforest.tables.scores import no_label, row_of

KEPT = 4
"""Models that a worker keeps open."""

_open: dict[str, Any] = {}
_lock = threading.Lock()


class Shipment:
    """A fitted model on its way to workers, opened once in each process.

    What runs on workers is code of this library, so they must have the same version of it and of
    scikit-learn: another one is refused by name before anything is unpacked.
    """

    def __init__(self, thing: Any) -> None:
        self._packed = _packed(thing)
        self.versions = _versions()
        self.key = hashlib.sha256(self._packed).hexdigest()

    def __len__(self) -> int:
        """Return the number of bytes that travel."""
        return len(self._packed)

    def open(self) -> Any:
        """Return the object, unpacked where this process has not done so yet."""
        with _lock:
            if self.key not in _open:
                ours = _versions()
                for name, theirs in self.versions.items():
                    if ours[name] != theirs:
                        raise InputError(
                            f"workers must have {name} {theirs}, as the model has, got "
                            f"{ours[name]} on {platform.node()}: install the same version there"
                        )
                while len(_open) >= KEPT:
                    _open.pop(next(iter(_open)))
                _open[self.key] = pickle.loads(self._packed)
            return _open[self.key]


def shipped_predictor(
    model: Any, schema: pa.Schema, options: dict[str, Any]
) -> tuple[BatchPredictor, Shipment]:
    """Return what predicts batches here, and what `open_predictor` makes it of on workers."""
    predictor = BatchPredictor(model, schema, **options)
    return predictor, Shipment((model, schema, {**options, "columns": predictor.columns}))


def open_predictor(shipped: Shipment) -> BatchPredictor:
    """Return what predicts batches, on a worker."""
    model, schema, options = shipped.open()
    return BatchPredictor(model, schema, **options)


def _packed(thing: Any) -> bytes:
    """Return an object as bytes, by what the engine has for classes of a user's own."""
    for name in ("cloudpickle", "pyspark.cloudpickle"):
        try:
            packer = importlib.import_module(name)
        except ImportError:
            continue
        packed: bytes = packer.dumps(thing)
        return packed
    return pickle.dumps(thing)


def _versions() -> dict[str, str]:
    return {"vennforest": __version__, "scikit-learn": version("scikit-learn")}


class Labelled(NamedTuple):
    """Rows of one partition: features (n, d) as float32, and labels (n,)."""

    X: NDArray[np.float32]
    y: NDArray[Any]

    def hashes(self) -> HashArray:
        """Return a hash of each row with its label, (n,)."""
        labels, code = np.unique(self.y, return_inverse=True)
        column = labels.astype(object if labels.dtype.kind == "U" else np.float64)
        of_labels = hash_rows(column.reshape(-1, 1))[code]
        return hash_rows(self.X) ^ (of_labels * np.uint64(0x9E3779B97F4A7C15))


def read_labelled(
    features: Sequence[str], target: str, batches: Iterable[pa.RecordBatch], number: int
) -> Labelled:
    """Return the rows of a partition."""
    where = f"partition {number}"
    tables: list[NDArray[np.float32]] = []
    labels: list[NDArray[Any]] = []
    for batch, done in with_rows(batches, features, target, where):
        with np.errstate(over="ignore"):
            rows = matrix_of({name: batch.column(name) for name in features})
            tables.append(rows.astype(np.float32))
        labels.append(labels_of(batch.column(target), target, where, done))
    kinds = {label_kind(y) for y in labels}
    if len(kinds) > 1:
        raise InputError(
            f"column {target!r} must contain labels of one kind, got {' and '.join(sorted(kinds))} "
            f"in {where}"
        )
    if not tables:
        return Labelled(np.empty((0, len(features)), np.float32), np.empty(0))
    return Labelled(np.concatenate(tables), np.concatenate(labels))


def with_rows(
    batches: Iterable[pa.RecordBatch], numbers: Sequence[str], target: str, where: str
) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Yield batches that have rows and the columns wanted, and how many rows came before each."""
    done = 0
    for batch in batches:
        for name in [*numbers, target]:
            find_name(batch.schema.names, name, where=f" in {where}")
        for name in numbers:
            check_number(name, batch.schema.field(name).type, where)
        if batch.num_rows:
            yield batch, done
        done += batch.num_rows


def labels_of(column: pa.Array, name: str, where: str, first: int) -> NDArray[Any]:
    """Return a column of labels."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    values = column.to_numpy(zero_copy_only=False)
    missing = column.is_null().to_numpy(zero_copy_only=False)
    if values.dtype.kind == "f":
        missing = missing | np.isnan(values)
    if missing.any():
        raise no_label(name, row_of(first + int(np.flatnonzero(missing)[0]), where))
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        text: NDArray[Any] = values.astype(str)
        return text
    if values.dtype.kind not in "biuf":
        raise InputError(
            f"column {name!r} must contain numbers, booleans or text as labels, got {column.type} "
            f"in {where}"
        )
    found: NDArray[Any] = values
    return found


def labels_of_all(found: Iterable[tuple[int, NDArray[Any]]], target: str) -> NDArray[Any]:
    """Return the labels of all partitions, by their numbers, sorted, if they are of one kind."""
    there = [(number, labels) for number, labels in found if len(labels)]
    if not there:
        raise InputError("the data must contain at least one row, got none")
    first, some = there[0]
    for number, other in there[1:]:
        if label_kind(some) != label_kind(other):
            raise InputError(
                f"column {target!r} must contain labels of one kind, got {label_kind(some)} in "
                f"partition {first} and {label_kind(other)} in partition {number}"
            )
    classes: NDArray[Any] = np.unique(np.concatenate([labels for _, labels in there]))
    return classes


def label_kind(y: NDArray[Any]) -> str:
    """Return what labels are: booleans, text or numbers."""
    return {"b": "booleans", "U": "text"}.get(y.dtype.kind, "numbers")
