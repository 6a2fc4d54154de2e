"""Tables with text, dates and missing cells become the numbers that a forest takes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import attrs
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from vennforest._messages import needed
from vennforest._state import stored
from vennforest._validation import InputError, require
from vennforest.tables.columns import TableColumns, as_pandas

if TYPE_CHECKING:
    import pandas as pd

Encoding = Literal["number", "category", "text", "date", "empty"]
"""How a column becomes numbers."""


def table_pipeline(
    classifier: Any,
    random_state: Any = None,
    *,
    types: dict[str, str] | None = None,
    missing: list[str] | None = None,
) -> Pipeline:
    """Return a classifier that takes tables with text, dates and missing cells.

    It is what ``vennforest fit`` and ``vennforest report`` train: `TableColumns` learns what each
    column contains, `TableEncoder` turns that into numbers, and the classifier takes these.

    Parameters
    ----------
    classifier : classifier
        Takes numbers, among them NaN, as scikit-learn's forests do.
    random_state : int, RandomState instance or None, default=None
        Of the encoder of text.
    types, missing
        As of `TableColumns`.

    Returns
    -------
    Pipeline
        To be fitted to a pandas or polars data frame, alone or in a ``CalibratedClassifier``.

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


@stored("column-encoders")
@attrs.frozen(eq=False)
class ColumnEncoders:
    """How columns become numbers: the encoding of each, and encoders.

    Those of text and dates are skrub's, and one is of all categories together; ``outputs`` names
    what each column becomes.
    """

    encodings: dict[str, Encoding]
    one_hot: OneHotEncoder | None
    encoders: dict[str, Any]
    outputs: dict[str, list[str]] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        """Refuse outputs that come from no column, or that no encoder fills."""
        require(all(isinstance(name, str) for name in self.encodings), "columns must have names")
        known = get_args(Encoding)
        require(all(how in known for how in self.encodings.values()), "encodings must be known")
        encoded = [name for name, how in self.encodings.items() if how in ("text", "date")]
        require(list(self.encoders) == encoded, "encoders must be of columns of text and dates")
        categories = self.columns("category")
        require((self.one_hot is None) == (not categories), "one_hot must be of the categories")
        if self.one_hot is not None:
            n = self.one_hot.n_features_in_
            require(n == len(categories), "one_hot must be of the categories")
        object.__setattr__(self, "outputs", self._outputs())
        if not any(self.outputs.values()):
            raise InputError("X must have a column with values, got empty ones only")

    def columns(self, encoding: Encoding) -> list[str]:
        """Return the names of the columns that become numbers so."""
        return [name for name, how in self.encodings.items() if how == encoding]

    def _outputs(self) -> dict[str, list[str]]:
        """Return the names of what each column becomes, by column."""
        names: dict[str, list[str]] = {name: [] for name in self.encodings}
        if self.one_hot is not None:
            categories = self.columns("category")
            for name, kept, dropped in zip(
                categories,
                self.one_hot.categories_,
                self.one_hot.drop_idx_
                if self.one_hot.drop_idx_ is not None
                else [None] * len(categories),
                strict=True,
            ):
                names[name] = [f"{name}_{value}" for i, value in enumerate(kept) if i != dropped]
        for name in self.encodings:
            if self.encodings[name] == "number":
                names[name] = [name]
            elif name in self.encoders:
                names[name] = [str(output) for output in self.encoders[name].all_outputs_]
        return names


@stored("table-encoder")
class TableEncoder(TransformerMixin, BaseEstimator):
    """Turns the columns that `TableColumns` returns into numbers.

    Does what skrub's ``TableVectorizer`` does by default, with the same encoders, for columns whose
    kinds are known: nothing is inferred a second time, and all numbers are passed on as one block,
    so a table may have tens of thousands of them.

    - Numbers stay as they are.
    - Dates become year, month, day, hour and seconds since 1970.
    - Text of few distinct values is one-hot encoded (one column if there are two values); a value
      not seen in training is all zeros.
    - Text of many values becomes 30 numbers by latent semantic analysis of character n-grams.
    - Columns without any value in training are left out.

    Parameters
    ----------
    cardinality_threshold : int, default=40
        Text with fewer distinct values is one-hot encoded.
    random_state : int, RandomState instance or None, default=None
        Of the analysis of text.
    """

    _learnt: ColumnEncoders

    def __init__(self, *, cardinality_threshold: int = 40, random_state: Any = None) -> None:
        self.cardinality_threshold = cardinality_threshold
        self.random_state = random_state

    def fit(self, X: pd.DataFrame, y: object = None) -> Self:
        """Learn the categories and the encoders of text and dates, of a data frame (n, d).

        Raises
        ------
        InputError
            If all columns are empty.
        ImportError
            If there are dates or text of many values, and skrub is not installed.
        """
        X = as_pandas(X)
        filled = np.asarray(X.notna().any(axis=0))
        encodings: dict[str, Encoding] = {
            str(name): self._encoding(X[name]) if filled[i] else "empty"
            for i, name in enumerate(X.columns)
        }
        encoders = {
            name: self._encoder(X[name], how)
            for name, how in encodings.items()
            if how in ("text", "date")
        }
        self._learnt = ColumnEncoders(encodings, _one_hot(X, encodings), encoders)
        return self

    @property
    def encodings_(self) -> dict[str, Encoding]:
        """How each column becomes numbers: number, category, text, date, or empty (not at all)."""
        return self._learnt.encodings

    @property
    def sources_(self) -> NDArray[Any]:
        """The column that each output comes from, of shape (n_outputs,)."""
        outputs = self._learnt.outputs
        return np.repeat(self.feature_names_in_, [len(names) for names in outputs.values()])

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The names of the columns."""
        return np.array(list(self._learnt.encodings), dtype=object)

    @property
    def n_features_in_(self) -> int:
        """Number of columns."""
        return len(self._learnt.encodings)

    def transform(self, X: pd.DataFrame) -> NDArray[np.float32]:
        """Return the numbers, shape (m, n_outputs), in the order of the columns, as float32."""
        check_is_fitted(self, "sources_")
        X = as_pandas(X)
        sources = self.sources_
        table = np.empty((len(X), len(sources)), dtype=np.float32)
        if not len(X):
            return table
        by_encoding = np.array([self.encodings_[name] for name in sources], dtype=object)
        plain = self._learnt.columns("number")
        if plain:
            table[:, by_encoding == "number"] = X[plain].to_numpy(dtype=np.float32)
        if self._learnt.one_hot is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # categories not met before are none of them
                table[:, by_encoding == "category"] = self._learnt.one_hot.transform(
                    _categories(X, self._learnt.columns("category"))
                )
        for name, encoder in self._learnt.encoders.items():
            encoded = encoder.transform(_for_skrub(X[name]))
            table[:, sources == name] = encoded.to_numpy(dtype=np.float32)
        return table

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether ``fit`` has been called."""
        return "_learnt" in self.__dict__

    def to_state(self) -> Mapping[str, Any]:
        """Return what a file contains: the parameters, and what was learnt."""
        return {
            "parameters": self.get_params(deep=False),
            "learnt": self.__dict__.get("_learnt"),
        }

    @classmethod
    def from_state(cls, parameters: Mapping[str, Any], learnt: ColumnEncoders | None) -> Self:
        """Return the encoder."""
        made = cls(**parameters)
        if learnt is not None:
            require(isinstance(learnt, ColumnEncoders), "learnt must be encoders of columns")
            made._learnt = learnt
        return made

    def _encoding(self, column: pd.Series[Any]) -> Encoding:
        if column.dtype.kind == "f":
            return "number"
        if column.dtype.kind == "M":
            return "date"
        return "category" if column.nunique() < self.cardinality_threshold else "text"

    def _encoder(self, column: pd.Series[Any], encoding: Encoding) -> Any:
        skrub = needed("skrub", "tables with text or dates")
        encoder = (
            skrub.StringEncoder(random_state=self.random_state)
            if encoding == "text"
            else skrub.DatetimeEncoder()
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a small table has fewer pieces of text than 30
            encoder.fit_transform(_for_skrub(column))
        return encoder

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Return the names of the outputs, shape (n_outputs,)."""
        check_is_fitted(self, "sources_")
        return np.array([name for names in self._learnt.outputs.values() for name in names], object)

    def __sklearn_tags__(self) -> Tags:
        """Take text and missing cells."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        return tags


def _categories(X: pd.DataFrame, names: list[str]) -> NDArray[Any]:
    """Return the cells of the categories, NaN where missing, shape (m, number of them)."""
    cells = X[names]
    values: NDArray[Any] = cells.to_numpy(dtype=object)
    return np.where(cells.isna().to_numpy(), np.nan, values)


def _one_hot(X: pd.DataFrame, encodings: Mapping[str, Encoding]) -> OneHotEncoder | None:
    names = [name for name, how in encodings.items() if how == "category"]
    if not names:
        return None
    encoder = OneHotEncoder(
        drop="if_binary", dtype=np.float32, handle_unknown="ignore", sparse_output=False
    )
    return encoder.fit(_categories(X, names))


def _for_skrub(column: pd.Series[Any]) -> Any:
    """Return a column that skrub's encoders take, also where all cells of a part are missing."""
    return column if column.dtype.kind == "M" else column.astype(object).fillna("")
