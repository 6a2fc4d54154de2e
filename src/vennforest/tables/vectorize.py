"""Encoding of tables with text, dates and missing cells as numbers."""

from __future__ import annotations

import warnings
from typing import Any, Literal, Self, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from vennforest._messages import needed
from vennforest._validation import InputError, require
from vennforest.tables.columns import TableColumns, as_pandas

Encoding = Literal["number", "category", "text", "date", "empty"]
"""Encodings of a column."""

MIN_VALUES_OF_TEXT = 40
"""Distinct values from which on text is not one-hot encoded."""


def table_pipeline(
    classifier: Any,
    random_state: Any = None,
    *,
    types: dict[str, str] | None = None,
    missing: list[str] | None = None,
) -> Pipeline:
    """Return a classifier for tables with text, dates and missing cells.

    `TableColumns` infers what each column contains, `TableEncoder` encodes that as numbers, and the
    classifier is trained on these, as ``vennforest fit`` and ``vennforest report`` do.

    Parameters
    ----------
    classifier : classifier
        A classifier of numbers that supports NaN, such as scikit-learn's forests.
    random_state : int, RandomState instance or None, default=None
        Seed of the encoder of text.
    types, missing
        Passed to `TableColumns`.

    Returns
    -------
    Pipeline
        An unfitted pipeline for pandas or polars data frames.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from vennforest import CalibratedClassifier
    >>> X = pd.DataFrame({"size": ["1", "2.5", "", "4"] * 10, "colour": ["red", "blue"] * 20})
    >>> forest = table_pipeline(RandomForestClassifier(30, random_state=0), random_state=0)
    >>> model = CalibratedClassifier(forest, random_state=0).fit(X, ["a", "b"] * 20)
    >>> model.predict(pd.DataFrame({"size": [3], "colour": ["blue"]}))
    array(['b'], dtype='<U1')
    """
    return make_pipeline(
        TableColumns(types, missing), TableEncoder(random_state=random_state), classifier
    )


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode the columns that `TableColumns` returns as numbers.

    The result is that of skrub's ``TableVectorizer`` with its default encoders, but the kinds of
    the columns are not inferred a second time, and all numbers are passed on as one block, so a
    table may have tens of thousands of them.

    - Numbers stay as they are.
    - Dates become year, month, day, hour and seconds since 1970.
    - Text of fewer than 40 distinct values is one-hot encoded (one column if there are two values);
      a value not seen in training is all zeros.
    - Text of more values becomes 30 numbers by latent semantic analysis of character n-grams.
    - Columns without any value in training are left out.

    Parameters
    ----------
    random_state : int, RandomState instance or None, default=None
        Seed of the latent semantic analysis.
    """

    encodings_: dict[str, Encoding]
    one_hot_: OneHotEncoder | None
    encoders_: dict[str, Any]

    def __init__(self, *, random_state: Any = None) -> None:
        self.random_state = random_state

    def fit(self, X: pd.DataFrame, y: object = None) -> Self:
        """Fit the encoders of categories, text and dates to a data frame (n, d).

        Raises
        ------
        InputError
            If all columns are empty.
        ImportError
            If there are dates or text of many values, and skrub is not installed.
        """
        X = as_pandas(X)
        self.encodings_ = {str(name): _vector_encoding(X[name]) for name in X.columns}
        if set(self.encodings_.values()) == {"empty"}:
            raise InputError("X must have a column with values, got empty ones only")
        self.feature_names_in_ = np.array(list(self.encodings_), dtype=object)
        self.n_features_in_ = len(self.encodings_)
        self.encoders_ = {
            name: self._encoder(X[name], encoding)
            for name, encoding in self.encodings_.items()
            if encoding in ("text", "date")
        }
        categories, self.one_hot_ = self._columns("category"), None
        if categories:
            encoder = OneHotEncoder(
                drop="if_binary", dtype=np.float32, handle_unknown="ignore", sparse_output=False
            )
            self.one_hot_ = encoder.fit(_categories(X, categories))
        return self

    def _columns(self, encoding: Encoding) -> list[str]:
        return [name for name in self.encodings_ if self.encodings_[name] == encoding]

    def _encoder(self, column: pd.Series[Any], encoding: Encoding) -> Any:
        skrub = needed("skrub", "tables with text or dates")
        encoder = skrub.DatetimeEncoder()
        if encoding == "text":
            encoder = skrub.StringEncoder(random_state=self.random_state)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of small tables with fewer n-grams than 30
            encoder.fit_transform(_for_skrub(column))
        return encoder

    @property
    def outputs_(self) -> dict[str, list[str]]:
        """The names of the outputs of each column."""
        check_is_fitted(self, "encodings_")
        names: dict[str, list[str]] = {name: [] for name in self.encodings_}
        names.update({name: [name] for name in self._columns("number")})
        for name, encoder in self.encoders_.items():
            names[name] = [str(output) for output in encoder.all_outputs_]
        for i, name in enumerate(self._columns("category")):
            assert self.one_hot_ is not None
            dropped = None if self.one_hot_.drop_idx_ is None else self.one_hot_.drop_idx_[i]
            values = enumerate(self.one_hot_.categories_[i])
            names[name] = [f"{name}_{value}" for j, value in values if j != dropped]
        return names

    @property
    def sources_(self) -> NDArray[Any]:
        """The column that each output comes from, shape (n_outputs,)."""
        sizes = [len(names) for names in self.outputs_.values()]
        return np.repeat(np.array(list(self.encodings_), dtype=object), sizes)

    def transform(self, X: pd.DataFrame) -> NDArray[np.float32]:
        """Return the numbers, shape (m, n_outputs), in the order of the columns, as float32."""
        sources = self.sources_
        X = as_pandas(X)
        table = np.empty((len(X), len(sources)), dtype=np.float32)
        if not len(X):
            return table
        numbers, categories = self._columns("number"), self._columns("category")
        table[:, np.isin(sources, numbers)] = X[numbers].to_numpy(dtype=np.float32)
        if self.one_hot_ is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # categories that are not in training
                encoded = self.one_hot_.transform(_categories(X, categories))
            table[:, np.isin(sources, categories)] = encoded
        for name, encoder in self.encoders_.items():
            table[:, sources == name] = encoder.transform(_for_skrub(X[name])).to_numpy(np.float32)
        return table

    def _check_state(self) -> None:
        require(set(self.encodings_.values()) <= set(get_args(Encoding)), "encodings must be known")
        is_encoded = [*self._columns("text"), *self._columns("date")]
        require(set(self.encoders_) == set(is_encoded), "encoders must be of text and dates")
        n_encoded = 0 if self.one_hot_ is None else self.one_hot_.n_features_in_
        require(n_encoded == len(self._columns("category")), "one_hot must be of the categories")

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Return the names of the outputs, shape (n_outputs,)."""
        return np.array([name for names in self.outputs_.values() for name in names], dtype=object)

    def __sklearn_tags__(self) -> Tags:
        """Accept text and missing cells."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        return tags


def _vector_encoding(column: pd.Series[Any]) -> Encoding:
    if column.isna().all():
        return "empty"
    if column.dtype.kind in "fM":
        return "number" if column.dtype.kind == "f" else "date"
    return "category" if column.nunique() < MIN_VALUES_OF_TEXT else "text"


def _categories(X: pd.DataFrame, names: list[str]) -> NDArray[Any]:
    """Return the cells of the categories, NaN where missing, shape (m, number of them)."""
    cells = X[names]
    values: NDArray[Any] = cells.to_numpy(dtype=object)
    return np.where(cells.isna().to_numpy(), np.nan, values)


def _for_skrub(column: pd.Series[Any]) -> Any:
    """Return a column as skrub's encoders accept it, even if all cells of a batch are missing.

    Dates stay, anything else becomes objects with "" for missing cells.
    """
    return column if column.dtype.kind == "M" else column.astype(object).fillna("")
