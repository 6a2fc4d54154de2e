"""Validation of arguments, and of fitted attributes read from a file.

All functions raise a ValueError that names the argument or attribute.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, NamedTuple, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.utils import get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, column_or_1d, validate_data

from vennforest._messages import InputError as InputError
from vennforest._messages import listed, not_one_of, plain_number, shown, warn

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
CodeArray = NDArray[np.integer[Any]]
"""Class indices, which may be of a small integer type."""

SMALLEST_TOTAL_WEIGHT = 1e-300
"""Sum of weights below which single ones may be subnormal, which have few digits."""

MAX_WEIGHT_RATIO, MAX_WEIGHT_FACTOR, MAX_MEAN_COUNT = 1e9, 10.0, 10.0
"""Largest weight divided by the smallest one above zero (sums keep 7 digits of the smallest);
effective number of observations divided by the sum of the weights; mean of counts without a 1."""


def label_vector(y: ArrayLike, n: int | None = None) -> NDArray[Any]:
    """Return labels as an array of shape (n,); without ``n`` they may have any length."""
    if y is None:  # in the words that scikit-learn's checks expect
        raise InputError("y must be given: this requires y to be passed, but the target y is None")
    refuse_masked(y, "y")
    if hasattr(getattr(y, "dtype", None), "numpy_dtype"):  # pandas's nullable integers stay such
        y = cast(Any, y).to_numpy()
    if isinstance(y, list | tuple) and len({isinstance(label, str) for label in y}) > 1:
        y = np.array(y, object)  # numpy would turn numbers among text into text
    try:
        labels: NDArray[Any] = column_or_1d(y, warn=True)
    except (TypeError, ValueError) as error:
        shape = np.asarray(y, object).shape
        if len(shape) == 1:
            raise InputError(f"y must be text, integers or booleans, got: {error}") from error
        way_out = ": give one label for each row, such as Y.argmax(axis=1) of indicators"
        raise InputError(
            f"y must have shape ({'n' if n is None else n},), got {shape}{way_out if shape else ''}"
        ) from None
    if n is not None and len(labels) != n:
        raise InputError(f"y must have shape ({n},), got {labels.shape}")
    return labels


def count_rows(X: Any, low: int = 0) -> int:
    """Return the number of rows of an array or table.

    Raises an error if it is below ``low``, or cells are masked.
    """
    if type(X) is not np.ndarray:
        refuse_masked(X, "X")
    try:
        n = int(_num_samples(X))
    except TypeError:  # a number, None or a generator
        raise InputError(f"X must be an array or table of rows, got {shown(X)}") from None
    if n < low:
        raise InputError("X must contain at least one row, got none")
    return n


def check_rows(model: Any, X: Any, dtype: type, allow_nan: bool) -> Any:
    """Return rows as an array or CSR array of a float type, or raise the model's own error.

    ``model`` is fitted. Rows of sparse arrays have no missing cells.
    """
    if (
        type(X) is np.ndarray
        and X.dtype.char in "fd"
        and X.ndim == 2
        and len(X)
        and X.shape[1] == model.n_features_in_
        and not hasattr(model, "feature_names_in_")
    ):
        # For a single row scikit-learn's check takes twice as long as all trees of a forest.
        with np.errstate(over="ignore", invalid="ignore"):
            rows: Any = X.astype(dtype, copy=False)
            if np.isfinite(rows.sum()):
                return rows
    is_sparse: bool = issparse(X)
    return validate_data(
        model,
        X,
        dtype=dtype,
        accept_sparse="csr",
        reset=False,
        ensure_all_finite="allow-nan" if allow_nan and not is_sparse else True,
    )


def encode_labels(
    y: ArrayLike, classes: ArrayLike | None = None, n: int | None = None
) -> tuple[IntArray, NDArray[Any]]:
    """Return the index of each label (n,) in the sorted classes, and the classes (k,).

    ``classes`` lists every class; by default those in ``y``. With ``n``, other lengths are refused.
    """
    y = label_vector(y, n)
    if y.dtype.kind == "O" and all(isinstance(c, bool | np.bool_ | Integral) for c in y.tolist()):
        y = np.array(y.tolist())
    if y.dtype.kind in "biu" and classes is None and len(y):
        low = y.min()
        span = int(y.max()) - int(low) + 1
        if span <= 1 << 16:  # counting is faster than sorting
            shifted = np.subtract(y, low, dtype=np.intp)
            # The smallest and the largest label occur.
            occurs = np.bincount(shifted, minlength=span) > 0 if span > 2 else np.ones(span, bool)
            if occurs.all():
                return shifted, np.arange(span, dtype=y.dtype) + low
            return (np.cumsum(occurs) - 1)[shifted], np.flatnonzero(occurs).astype(y.dtype) + low
    missing = is_missing(y)
    if missing.any():
        row = int(missing.argmax())
        raise InputError(
            f"y must have a label in every row, of text, integers or booleans, got {y[row]!s} in "
            f"row {row} (counted from 0): leave out the rows whose label is missing"
        )
    labels = _sorted_labels(y, "y")
    try:
        check_classification_targets(y)
    except (TypeError, ValueError) as error:  # of scikit-learn, which does not name a rule
        raise InputError(
            f"y must have a label in every row, of text, integers or booleans, got: {error}"
        ) from error
    if classes is None:
        return np.searchsorted(labels, y).astype(np.intp), labels
    labels = _sorted_labels(np.asarray(classes), "classes")
    if labels.shape != np.shape(classes) or not len(labels):
        raise InputError(f"classes must be a list that names each class once, got {shown(classes)}")
    try:
        codes = np.searchsorted(labels, y).clip(max=len(labels) - 1)
        unknown = np.asarray(labels[codes] != y)
    except TypeError:  # text among numbers
        codes, unknown = np.zeros(len(y), np.intp), ~np.isin(y.astype(object), labels.tolist())
    if unknown.any():
        wrong = y[unknown].tolist()[0]
        raise ValueError(
            f"y must contain labels of classes {shown(labels.tolist())}, got {wrong!r}"
        )
    return codes.astype(np.intp), labels


def refuse_one_class(labels: NDArray[Any]) -> None:
    """Raise an error unless there are two distinct labels (k,) or more."""
    if len(labels) < 2:
        raise ValueError(
            "y must contain at least two classes (or name them with classes=), "
            f"got one class: {labels.tolist()[0]!r}"
        )


def _sorted_labels(labels: NDArray[Any], name: str) -> NDArray[Any]:
    """Return the distinct labels in sorted order; refuse labels of types that have no order."""
    try:
        return np.unique(labels)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in labels.tolist()})
        raise ValueError(
            f"{name} must contain labels that can be sorted, got {' and '.join(kinds)}: leave out "
            "the rows without a label, or turn all labels into text"
        ) from None


def check_count(value: object, name: str, low: int = 1) -> None:
    """Raise an error unless a value is an integer of at least ``low``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < low:
        raise InputError(f"{name} must be an integer >= {low}, got {shown(value)}")


def class_index(classes: NDArray[Any], label: Any, name: str = "pos_label") -> int:
    """Return the index of a label, by default that of the second of two classes."""
    labels = classes.tolist()
    if label is None and len(labels) == 2:
        return 1
    if len(labels) == 1:
        raise InputError(f"y must contain two classes or more, got one: {shown(labels[0])}")
    if np.ndim(label) or label not in labels:
        raise not_one_of(name, labels, label)
    return int(labels.index(label))


def check_inside(value: Any, name: str) -> float:
    """Return a number as a float; raise an error unless it is in (0, 1)."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < 1:
        raise InputError(f"{name} must lie between 0 and 1, both excluded, got {shown(value)}")
    return float(value)


def numbers_of(values: Any, rule: str) -> FloatArray:
    """Return numbers as a C-contiguous float64 array; an error says the rule.

    Complex numbers, dates and times, of whatever library, are no numbers.
    """
    try:
        kind = getattr(getattr(values, "dtype", None), "kind", None)
        if kind is None and not isinstance(values, list | tuple):  # of polars and Arrow
            kind = np.asarray(values).dtype.kind
        if kind is not None and kind in "cmM":
            raise TypeError("complex numbers, dates or times")
        return np.asarray(values, np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise InputError(f"{rule}, got {error}") from None


def check_weights(
    sample_weight: ArrayLike | None, n: int, *, warns: bool = True
) -> FloatArray | None:
    """Return weights as float64 of shape (n,), or None if every weight is 1.

    With ``warns``, weights that cannot be meant as numbers of observations are warned of.
    """
    if sample_weight is None:
        return None
    refuse_masked(sample_weight, "sample_weight")
    weight = numbers_of(sample_weight, "sample_weight must be numbers")
    if weight.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), got {weight.shape}")
    with np.errstate(over="ignore"):
        total = weight.sum()
    if not np.isfinite(total) or (weight < 0).any():
        wrong = weight[~np.isfinite(weight) | (weight < 0)]
        value = wrong[0] if len(wrong) else f"the sum {total}"
        raise ValueError(f"sample_weight must be finite and not negative, got {value}")
    if n and total == 0:
        raise ValueError("sample_weight must contain a weight above zero, got all zeros")
    if (weight == 1).all():
        return None
    sums = WeightSums.of(weight)
    sums.check()
    if warns:
        sums.warn()
    return weight.copy()


class WeightSums(NamedTuple):
    """What decides whether weights can be counted as observations: `of` those above zero.

    ``n`` is their number, ``total`` their sum, ``squares`` the sum of their squares over that of
    the largest one, and ``are_whole`` tells whether all are integers.
    """

    n: int = 0
    total: float = 0.0
    squares: float = 0.0
    smallest: float = math.inf
    largest: float = 0.0
    are_whole: bool = True

    @classmethod
    def of(cls, weight: FloatArray) -> WeightSums:
        """Return the sums of weights (n,), which are not negative."""
        weight = weight[weight > 0]
        largest = float(weight.max(initial=0.0))
        squares = float(np.square(weight / (largest or 1.0)).sum())
        are_whole = bool((weight % 1 == 0).all())
        ends = float(weight.min(initial=math.inf)), largest
        return cls(len(weight), float(weight.sum()), squares, *ends, are_whole)

    def plus(self, part: WeightSums) -> WeightSums:
        """Return the sums of these weights and of others."""
        largest = max(self.largest, part.largest)
        squares = sum(s.squares * (s.largest / (largest or 1.0)) ** 2 for s in (self, part))
        n, total = self.n + part.n, self.total + part.total
        ends = min(self.smallest, part.smallest), largest
        return WeightSums(n, total, squares, *ends, self.are_whole and part.are_whole)

    @property
    def effective_size(self) -> float:
        """Kish's effective number of observations: the squared sum over the sum of squares."""
        return (self.total / self.largest) ** 2 / self.squares

    def check(self, name: str = "sample_weight") -> None:
        """Refuse weights of which some are lost beside others, or in subnormal numbers."""
        if 0 < self.total < SMALLEST_TOTAL_WEIGHT:
            raise InputError(
                f"{name} must sum to {SMALLEST_TOTAL_WEIGHT:g} or more, got {self.total:g}: divide "
                "the weights by their mean"
            )
        if self.n and self.largest > MAX_WEIGHT_RATIO * self.smallest:
            raise InputError(
                f"{name} must differ by a factor of at most {MAX_WEIGHT_RATIO:g}, got "
                f"{self.smallest:g} and {self.largest:g}: set the smallest to 0, or cap the largest"
            )

    def warn(self, name: str = "sample_weight") -> None:
        """Warn of weights that make far fewer, or more, observations than there are rows.

        Integers are counts if one is 1, if they are equal, or if their mean is below ten.
        """
        if not self.n:
            return
        factor = self.effective_size / self.total
        is_mean_small = self.total < MAX_MEAN_COUNT * self.n
        are_counts = self.are_whole and (is_mean_small or self.smallest in (1.0, self.largest))
        is_small = self.total < min(2, self.n) or factor > MAX_WEIGHT_FACTOR
        if is_small or (self.total > self.n * (1 + 1e-9) and not are_counts):
            consequence = "too few to calibrate on" if is_small else "so intervals are too narrow"
            warn(
                f"{name} sums to {plain_number(self.total, 4)} for {self.n:,} rows: each counts "
                f"as that many observations, {consequence}. If the weights are no counts, multiply "
                f"them by {factor:.3g}, so that they sum to the effective number of observations, "
                f"{plain_number(self.effective_size, 4)}"
            )


def refuse_masked(values: Any, name: str) -> None:
    """Raise an error for masked entries, which numpy converts to what lies below the mask."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        n_masked = int(np.ma.getmaskarray(values).sum())
        raise InputError(
            f"{name} must have no masked entries, got {n_masked}: leave these rows out, or fill "
            "missing cells with numpy.nan"
        )


def check_order(X: Any, /, **aligned: Any) -> None:
    """Warn where the labels, weights or groups have the index of the rows X in another order.

    Masked entries of any are refused.
    """
    for name, values in {"rows": X, **aligned}.items():
        refuse_masked(values, name)
    index: Any = getattr(X, "index", None)
    if not hasattr(index, "equals"):
        return
    for name, values in aligned.items():
        labels: Any = getattr(values, "index", None)
        if not hasattr(labels, "equals") or index.equals(labels) or len(index) != len(labels):
            continue
        if index.is_unique and index.isin(labels).all():
            warn(
                f"{name} has the index of the rows in another order, and rows are matched by their "
                f"place: reorder {name} with .loc if the index names the rows"
            )


def check_option(value: object, options: Any, name: str, alternative: str = "") -> None:
    """Raise an error unless a value is one of ``options``, names or a ``Literal`` type."""
    allowed = get_args(options) or options
    if not isinstance(value, str) or value not in allowed:
        raise not_one_of(name, allowed, value, alternative)


def is_missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return a boolean mask (n,) of the values that are None, NaN, NaT or pandas's NA."""
    if values.dtype.kind == "O":
        cells = ((cell, type(cell).__name__) for cell in values.tolist())
        missing = [cell is None or name == "NAType" or cell != cell for cell, name in cells]
        return np.array(missing, dtype=bool)
    return np.asarray(values != values)


def group_cells(groups: Any, name: str = "groups") -> tuple[list[Any], NDArray[np.bool_]]:
    """Return the groups of the rows that have one, text or others, and a mask (n,) of these rows.

    Raises
    ------
    InputError
        If there are numbers among text, which could be the same or other groups.
    """
    refuse_masked(groups, name)
    values = np.asarray(groups, object if isinstance(groups, list | tuple) else None)
    values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    if values.ndim != 1:
        raise InputError(f"{name} must have shape (n,), got {values.shape}")
    present = ~is_missing(values)
    if values.dtype.kind in "SM":
        values = values.astype(str)
    cells = values[present].tolist()
    if len({isinstance(cell, str) for cell in cells}) > 1:
        wrong = next(cell for cell in cells if not isinstance(cell, str))
        raise InputError(
            f"{name} must be text or numbers, got both, such as {wrong!r} among text: turn all "
            "into text"
        )
    return cells, present


def group_names(groups: Any, name: str = "groups") -> NDArray[Any]:
    """Return the name of each row's group as text or None where it is missing, objects (n,).

    Text stands as it is written, without white space around it: "01" and "1" are two groups. Text
    of white space alone is missing, and whole numbers have no fraction. For errors see
    `group_cells`.
    """
    cells, present = group_cells(groups, name)
    names = np.full(len(present), None, object)
    names[present] = [text_of_label(cell).strip() or None for cell in cells]
    return names


def has_leading_zeros(names: Iterable[str]) -> bool:
    """Return whether a text is written like 007, as codes are and numbers are not."""
    return re.search(r"(?:\A|\0)\s*[-+]?0\d", "\0".join(names)) is not None


def encode_groups(groups: Any, X: Any) -> IntArray | None:
    """Return the code of the group of each row of X, (n,), None without groups; see `group_names`.

    Missing groups are refused.
    """
    if groups is None:
        return None
    check_order(X, groups=groups)
    names = name_of_every_row(groups, count_rows(X))
    return np.unique(names, return_inverse=True)[1].astype(np.intp)


def name_of_every_row(groups: Any, n: int, name: str = "groups") -> NDArray[Any]:
    """Return the groups (n,) of n rows, integers as they are, others as text; see `group_names`.

    Missing ones are refused.
    """
    dtype = getattr(groups, "dtype", None)
    is_code = isinstance(dtype, np.dtype) and dtype.kind in "iu"  # nullable ones may be missing
    names = np.asarray(groups) if is_code else group_names(groups, name)
    if names.shape != (n,):
        raise InputError(f"{name} must have shape ({n},), got {names.shape}")
    missing = is_missing(names)
    if missing.any():
        raise InputError(
            f"{name} must have a value for every row, got none in row {int(missing.argmax())} "
            "(counted from 0): give each such row one of its own"
        )
    return names if is_code else names.astype(str)


def text_of_label(label: Any) -> str:
    """Return a label or the name of a group as text, the same for 1, 1.0 and "1"."""
    is_whole = isinstance(label, float | np.floating | Decimal) and label == label // 1
    return str(int(label)) if is_whole else str(label)


def is_frame(X: object) -> bool:
    """Return whether X is a data frame of any library."""
    return hasattr(X, "columns") and hasattr(X, "dtypes") and not isinstance(X, np.ndarray)


def is_arrow(X: object) -> bool:
    """Return whether X is a table or record batch of Arrow, and no frame with such a column."""
    return hasattr(X, "column_names") and not is_frame(X)


def without_arrow(X: Any) -> Any:
    """Return a table or record batch of Arrow as a pandas data frame, other rows as they are."""
    return X.to_pandas() if is_arrow(X) else X


def refuse_equal_names(names: Sequence[str]) -> None:
    """Raise an error if two columns of a data frame have the same name."""
    if len(set(names)) < len(names):
        name = next(name for name in names if names.count(name) > 1)
        raise InputError(f"X must have columns of different names, got two of the name {name!r}")


def refuse_text(X: Any, estimator: Any, error: Exception) -> None:
    """Raise an error that explains ``error`` if cells that are no numbers caused it."""
    conversion = r"could not convert|[dD][tT]ypes?\b|float\(\) argument|Complex data|a sequence"
    if isinstance(error, InputError) or not is_frame(X) or not re.search(conversion, str(error)):
        return
    columns = [str(name) for name in X.columns if np.asarray(X[name]).dtype.kind not in "fiub"]
    if columns and not get_tags(estimator).input_tags.string:
        name = type(estimator).__name__
        raise InputError(
            f"X must contain numbers for {name}, got other cells in {listed(columns, 3)}: use "
            f"CalibratedClassifier(table_pipeline({name}(...))), with from vennforest.tables "
            "import table_pipeline"
        ) from error


def require(is_kept: Any, rule: str) -> None:
    """Raise a ValueError with the message ``rule`` unless ``is_kept``."""
    if not is_kept:
        raise ValueError(rule)


def check_number(
    value: Any, name: str, low: float = -math.inf, high: float = math.inf, *, integer: bool = False
) -> None:
    """Raise an error unless a value is a finite number, or integer, in [``low``, ``high``]."""
    is_number = isinstance(value, Integral if integer else Real)
    is_number = is_number and not isinstance(value, bool | np.bool_)
    require(
        is_number and math.isfinite(value) and low <= value <= high,
        f"{name} must be {'an integer' if integer else 'a number'} in [{low}, {high}]",
    )


def check_array(
    value: Any,
    name: str,
    shape: tuple[int | None, ...],
    kinds: str = "f",
    low: float = -math.inf,
    high: float = math.inf,
) -> None:
    """Raise an error unless a value is an array of finite numbers in [``low``, ``high``].

    None in ``shape`` stands for any length. ``kinds`` are the allowed codes of ``dtype.kind``,
    where ``"f"`` stands for float64 alone.
    """
    # Workers of joblib are handed large arrays as maps of files.
    require(type(value) in (np.ndarray, np.memmap), f"{name} must be an array")
    require(
        value.ndim == len(shape)
        and all(n is None or n == m for n, m in zip(shape, value.shape, strict=True)),
        f"{name} must have shape {shape}",
    )
    require(
        value.dtype.kind in kinds and (value.dtype.kind != "f" or value.dtype == np.float64),
        f"{name} must not be of type {value.dtype}",
    )
    if value.dtype.kind in "fiub" and value.size:
        require(
            np.isfinite(value).all() and value.min() >= low and value.max() <= high,
            f"{name} must be finite and in [{low}, {high}]",
        )


def check_increasing(value: Any, name: str) -> None:
    """Raise an error unless an array is strictly increasing."""
    require((value[1:] > value[:-1]).all(), f"{name} must increase")


def check_labels(classes: Any, name: str = "classes_") -> None:
    """Raise an error unless an array contains two or more distinct labels in sorted order."""
    is_vector = type(classes) is np.ndarray and classes.ndim == 1
    require(is_vector and len(classes) >= 2, f"{name} must name two classes or more")
    try:
        check_increasing(classes, name)
    except TypeError as error:
        raise ValueError(f"{name} must be of one type") from error
