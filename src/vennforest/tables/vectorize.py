"""Encoding of tables with text, dates and missing cells as numbers."""

from __future__ import annotations

import warnings
from typing import Any, Literal, Self, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.validation import check_is_fitted

from vennforest._validation import InputError, require
from vennforest.tables.schema import TableColumns, TableTransformer, as_pandas

Encoding = Literal["number", "category", "text", "date", "empty"]
"""Encodings of a column."""

TRAINED = ("category", "text")

DATE_PARTS = ("year", "month", "day", "hour", "total_seconds")

N_COMPONENTS = 30
"""Numbers that encode a text."""

MIN_VALUES_OF_TEXT = 40
"""Distinct values from which on text is not one-hot encoded."""


def table_pipeline(
    classifier: Any,
    random_state: Any = None,
    *,
    types: dict[str, str] | None = None,
    missing: list[str] | None = None,
    decimal: str | None = None,
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
    types, missing, decimal
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
        TableColumns(types, missing, decimal), TableEncoder(random_state=random_state), classifier
    )


class TableEncoder(TableTransformer):
    """Encode the columns that `TableColumns` returns as numbers.

    - Numbers stay as they are.
    - Dates become year, month, day, hour (unless all are whole days) and seconds since 1970.
    - Text of fewer than 40 distinct values is one-hot encoded (one column if there are two values);
      a value not seen in training is all zeros.
    - Text of more values becomes 30 numbers, see `NGramEncoder`.
    - Columns without any value in training are left out.

    Parameters
    ----------
    random_state : int, RandomState instance or None, default=None
        Seed of the latent semantic analysis.

    Attributes
    ----------
    encodings_ : dict of str to str
        The encoding of each column: number, category, text, date or empty.
    outputs_ : dict of str to list of str
        The names of the outputs of each column.
    """

    encodings_: dict[str, Encoding]
    outputs_: dict[str, list[str]]
    encoders_: dict[str, Any]

    def __init__(self, *, random_state: Any = None) -> None:
        self.random_state = random_state

    def fit(self, X: pd.DataFrame, y: object = None) -> Self:
        """Fit the encoders of categories and text to a data frame (n, d).

        Raises
        ------
        InputError
            If all columns are empty.
        """
        X = as_pandas(X)
        self.encodings_ = {str(name): _vector_encoding(X[name]) for name in X.columns}
        if set(self.encodings_.values()) == {"empty"}:
            raise InputError("X must have a column with values, got empty ones only")
        self.feature_names_in_ = np.array(list(self.encodings_), dtype=object)
        self.n_features_in_ = len(self.encodings_)
        self.outputs_, self.encoders_ = {}, {}
        for name, encoding in self.encodings_.items():
            outputs = [name] if encoding == "number" else []
            if encoding == "date":
                dates = X[name].dropna()
                has_hours = not (dates.dt.normalize() == dates).all()
                outputs = [f"{name}_{part}" for part in DATE_PARTS if part != "hour" or has_hours]
            elif encoding == "category":
                encoder = OneHotEncoder(
                    drop="if_binary", dtype=np.float32, handle_unknown="ignore", sparse_output=False
                ).fit(_categories(X[name]))
                self.encoders_[name] = encoder
                outputs = encoder.get_feature_names_out([name]).tolist()
            elif encoding == "text":
                text_encoder = NGramEncoder(self.random_state).fit(X[name])
                self.encoders_[name] = text_encoder
                n_digits = len(str(text_encoder.n_outputs_ - 1))
                outputs = [f"{name}_{i:0{n_digits}}" for i in range(text_encoder.n_outputs_)]
            self.outputs_[name] = outputs
        return self

    @property
    def sources_(self) -> NDArray[Any]:
        """The column that each output comes from, shape (n_outputs,)."""
        sizes = [len(names) for names in self.outputs_.values()]
        return np.repeat(np.array(list(self.encodings_), dtype=object), sizes)

    def transform(self, X: pd.DataFrame) -> NDArray[np.float32]:
        """Return the numbers, shape (m, n_outputs), in the order of the columns, as float32."""
        check_is_fitted(self, "outputs_")
        sources, X = self.sources_, as_pandas(X)
        table = np.empty((len(X), len(sources)), dtype=np.float32)
        if not len(X):
            return table
        numbers = [name for name, encoding in self.encodings_.items() if encoding == "number"]
        table[:, np.isin(sources, numbers)] = X[numbers].to_numpy(dtype=np.float32)
        for name, encoding in self.encodings_.items():
            if encoding == "date":
                cells = _date_parts(X[name], [o[len(name) + 1 :] for o in self.outputs_[name]])
            elif encoding == "category":
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # categories that are not in training
                    cells = self.encoders_[name].transform(_categories(X[name]))
            elif encoding == "text":
                cells = self.encoders_[name].transform(X[name])
            else:
                continue
            table[:, sources == name] = cells
        return table

    def _check_state(self) -> None:
        require(set(self.encodings_.values()) <= set(get_args(Encoding)), "encodings must be known")
        is_encoded = [n for n, encoding in self.encodings_.items() if encoding in TRAINED]
        require(list(self.encoders_) == is_encoded, "encoders must be of text and categories")
        require(list(self.outputs_) == list(self.encodings_), "outputs must be of the columns")

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Return the names of the outputs, shape (n_outputs,)."""
        return np.array([name for names in self.outputs_.values() for name in names], dtype=object)


class NGramEncoder(TransformerMixin, BaseEstimator):
    """Encode text by latent semantic analysis of its n-grams of 3 and 4 characters.

    The weights of n-grams (tf–idf) and the 30 components are those of the rows, but the n-grams of
    a text are taken once, however many rows it has. Components are divided by the square root of
    the sum of their variances.

    Parameters
    ----------
    random_state : int, RandomState instance or None, default=None
        Seed of the singular value decomposition.
    """

    n_outputs_: int

    def __init__(self, random_state: Any = None) -> None:
        self.random_state = random_state

    def fit(self, column: pd.Series[Any], y: object = None) -> Self:
        """Fit the weights and components to a column of text (n,); missing cells are empty text."""
        codes, texts = _distinct(column)
        self.counter_ = CountVectorizer(ngram_range=(3, 4), analyzer="char_wb")
        counts = self.counter_.fit_transform(texts)
        self.weights_ = TfidfTransformer().fit(counts[codes])
        rows = self._weighted(texts)[codes]
        self.components_ = None
        if min(rows.shape) > N_COMPONENTS:
            self.components_ = TruncatedSVD(N_COMPONENTS, random_state=self.random_state)
            vectors = self.components_.fit_transform(rows)
        else:
            vectors = rows[:, :N_COMPONENTS].toarray()
        self.n_outputs_ = vectors.shape[1]
        scale = np.sqrt(vectors.var(axis=0).sum())
        self.scale_ = float(max(scale, np.finfo(vectors.dtype).eps))
        return self

    def _weighted(self, texts: NDArray[Any]) -> Any:
        counts = self.weights_.transform(self.counter_.transform(texts))
        return counts.astype(np.float32)

    def transform(self, column: pd.Series[Any]) -> NDArray[np.float32]:
        """Return the vectors of a column of text (m,), shape (m, n_outputs)."""
        codes, texts = _distinct(column)
        rows = self._weighted(texts)
        if self.components_ is None:
            vectors = rows[:, : self.n_outputs_].toarray()
        else:
            vectors = self.components_.transform(rows)
        return np.asarray(vectors / np.float32(self.scale_), dtype=np.float32)[codes]

    def _check_state(self) -> None:
        require(self.n_outputs_ > 0 and self.scale_ > 0, "the vectors must have a scale")


def _vector_encoding(column: pd.Series[Any]) -> Encoding:
    if column.isna().all():
        return "empty"
    if column.dtype.kind in "fM":
        return "number" if column.dtype.kind == "f" else "date"
    return "category" if column.nunique() < MIN_VALUES_OF_TEXT else "text"


def _categories(column: pd.Series[Any]) -> NDArray[Any]:
    """Return the cells of a category, NaN where missing, shape (m, 1)."""
    values = column.to_numpy(dtype=object)
    return np.where(column.isna(), np.nan, values)[:, None]


def _distinct(column: pd.Series[Any]) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Return the index of each cell's text (m,), and the distinct texts."""
    codes, texts = pd.factorize(column.astype(object).fillna(""))
    return codes, np.asarray(texts)


def _date_parts(column: pd.Series[Any], parts: list[str]) -> NDArray[Any]:
    """Return some of `DATE_PARTS` of dates (m,), NaN where missing, shape (m, len(parts))."""
    seconds = (column - pd.Timestamp(0)).dt.total_seconds()
    values = [seconds if part == "total_seconds" else getattr(column.dt, part) for part in parts]
    return np.column_stack([value.to_numpy(np.float32, na_value=np.nan) for value in values])
