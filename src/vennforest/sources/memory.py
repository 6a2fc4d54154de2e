"""Whether a fitted model remembers the labels of rows: then it was trained on them."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import _safe_indexing

from vennforest._validation import FloatArray, IntArray

MOST_ROWS = 1000
"""Rows that are looked at; half of them train a copy of the model."""

FEWEST_ROWS = 40

MOVES = 4
"""Moved rows that a row is compared with, in opposite pairs."""

DISTANCES = (1.0, 3.0)
"""How far rows are moved, in distances to the nearest other row."""

SIGNIFICANT = 4.0
"""Standard errors by which a model has to remember more than one that did not see the rows."""


MOST_SECONDS = 5.0
"""Expected processor time up to which a model is trained on all the rows again. That of the copy is
taken to rise with the square of the number of rows."""

EQUAL = 0.1
"""Differences of probabilities, in parts of those of models of other rows, that are rounding."""

FEWEST_VALUES = 5
"""Different probabilities below which models may give the same by chance."""


def remembers(model: Any, X: Any, y: NDArray[Any]) -> bool:
    """Return whether a fitted classifier was trained on rows.

    A model that was trained on a row has its probability of the row's label peak there; moved a
    little in any direction, or with a cell of another row where no column is measured, the row
    gets less. What curvature of an honest model makes of that is
    measured with a copy of the model: trained on half of the rows, and asked about both halves.
    The model remembers the rows if it is a third of the way to the half that the copy saw: it
    may have been trained on half of the rows.

    Models without such peaks, such as linear ones, are trained again on all the rows, if that takes
    seconds: one with the probabilities of this copy was trained on these rows. The answer is False
    as well where nothing can be told: of fewer than 40 rows, or a model that cannot be trained
    again.
    """
    rng = np.random.default_rng(0)
    rows = np.sort(rng.permutation(len(y))[:MOST_ROWS])
    if len(rows) < FEWEST_ROWS:
        return False
    some, labels = _safe_indexing(X, rows), y[rows]
    half = rng.permutation(len(rows)) < len(rows) // 2
    seen, unseen = np.flatnonzero(half), np.flatnonzero(~half)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            start = time.process_time()
            copy = clone(model).fit(_safe_indexing(some, seen), labels[seen])
            cost = (time.process_time() - start) * (len(y) / len(seen)) ** 2
            if not issparse(X) and len(getattr(X, "shape", ())) == 2:
                known = _Moved.of(some, *_measured(some), rng)
                for far in DISTANCES:
                    if _tell(model, copy, known, labels, seen, unseen, far):
                        return True
            if cost > MOST_SECONDS:
                return False
            again = clone(model).fit(X, y)
            given, fewer, all_rows = (_probabilities(one, some) for one in (model, copy, again))
            return _same(given, fewer, all_rows, len(seen), len(y))
    except Exception:  # a model that cannot be trained on so few rows, or takes no moved ones
        return False


def _same(model: FloatArray, copy: FloatArray, again: FloatArray, m: int, n: int) -> bool:
    """Return whether probabilities are those of a copy trained on all n rows, by one on m of them.

    Models of other rows differ from the copy by chance, nearly as much as that on m rows does
    times (m / n) ** .5. Few different values could be equal by chance.
    """
    by_chance = np.sqrt(np.mean((model - copy) ** 2) * m / n)
    difference = np.sqrt(np.mean((model - again) ** 2))
    return bool(len(np.unique(model[:, 0])) >= FEWEST_VALUES and difference < EQUAL * by_chance)


def _tell(
    model: Any,
    copy: Any,
    rows: _Moved,
    y: NDArray[Any],
    seen: IntArray,
    unseen: IntArray,
    far: float,
) -> bool:
    """Return whether the model's recall is that of rows seen, at one distance."""
    both = rows.recall(copy, y, far)
    mine, mine_error = _mean(rows.recall(model, y, far))
    of_seen, seen_error = _mean(both[seen])
    of_unseen, unseen_error = _mean(both[unseen])
    gap, more = of_seen - of_unseen, mine - of_unseen
    return (
        gap > SIGNIFICANT * np.hypot(seen_error, unseen_error)
        and more > SIGNIFICANT * np.hypot(mine_error, unseen_error)
        and more > gap / 3
    )


def _mean(recall: FloatArray) -> tuple[float, float]:
    """Return the mean of the known ones, and its standard error."""
    known = recall[np.isfinite(recall)]
    if len(known) < 2:
        return 0.0, np.inf
    return float(known.mean()), float(known.std(ddof=1) / np.sqrt(len(known)))


class _Moved(NamedTuple):
    """Rows, and how they are moved: in their measured columns, or else cell by cell."""

    X: Any
    columns: list[Any]
    moves: list[FloatArray]
    """Of shape (n, columns) each, as long as the way to the nearest other row."""

    @classmethod
    def of(cls, X: Any, table: FloatArray, columns: list[Any], rng: np.random.Generator) -> _Moved:
        if not columns:
            return cls(X, [], [])
        spread = table.std(axis=0)
        scaled = table / spread
        away = NearestNeighbors(n_neighbors=2).fit(scaled).kneighbors(scaled)[0][:, 1:]
        moves = []
        for _ in range(MOVES // 2):
            step = rng.normal(size=table.shape)
            step *= away / np.linalg.norm(step, axis=1, keepdims=True)
            moves += [step * spread, -step * spread]
        return cls(X, columns, moves)

    def recall(self, model: Any, y: NDArray[Any], far: float) -> FloatArray:
        """Return each row's recall, NaN where the model does not know its label, (n,)."""
        column = {label: j for j, label in enumerate(model.classes_.tolist())}
        label = np.array([column.get(one, -1) for one in y.tolist()])
        rows = np.arange(len(y))
        here = _probabilities(model, self.X)[rows, label]
        there = [_probabilities(model, moved)[rows, label] for moved in self._tables(far)]
        recall: FloatArray = np.where(label >= 0, here - np.mean(there, axis=0), np.nan)
        return recall

    def _tables(self, far: float) -> Iterator[Any]:
        """Yield the moved rows; without measured columns, with ``far`` cells of another row."""
        for move in self.moves:
            if isinstance(self.X, np.ndarray):
                moved = self.X.astype(np.float64)
                moved[:, self.columns] += far * move
                yield moved
            else:
                yield self.X.assign(
                    **{n: self.X[n] + far * move[:, j] for j, n in enumerate(self.columns)}
                )
        rng = np.random.default_rng(1)
        n, d = self.X.shape
        for _ in range(0 if self.moves else MOVES):
            moved = self.X.copy()
            cells = moved.iloc if hasattr(moved, "iloc") else moved
            for _ in range(int(far)):
                which, giver = rng.integers(0, d, n), rng.integers(0, n, n)
                for j in range(d):
                    rows = np.flatnonzero(which == j)
                    own = self.X.iloc[giver[rows], j] if hasattr(moved, "iloc") else None
                    cells[rows, j] = self.X[giver[rows], j] if own is None else own.to_numpy()
            yield moved


def _probabilities(model: Any, X: Any) -> FloatArray:
    """Return probabilities (n, k); of two classes by a logistic curve where there are none."""
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(X), np.float64)
    second = expit(model.decision_function(X))
    return np.column_stack([1 - second, second])


def _measured(X: Any) -> tuple[FloatArray, list[Any]]:
    """Return the columns of measured numbers, (n, c), and their names or places."""
    names: list[Any]
    if hasattr(X, "select_dtypes"):  # pandas
        table = X.select_dtypes("number")
        names = [name for name in table.columns if isinstance(name, str)]
        values = table[names].to_numpy(np.float64)
    else:
        values = np.asarray(X)
        if values.ndim != 2 or values.dtype.kind not in "fiu":
            return np.empty((0, 0)), []
        values, names = values.astype(np.float64), list(range(values.shape[1]))
    known = np.isfinite(values)
    used = [
        j
        for j in range(values.shape[1])
        if known[:, j].any() and len(np.unique(values[known[:, j], j])) > len(values) / 4
    ]
    middle = [np.median(values[known[:, j], j]) for j in used]
    return np.where(known[:, used], values[:, used], middle), [names[j] for j in used]
