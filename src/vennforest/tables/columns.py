"""The columns a model was trained on, and new tables read as those were."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Self, get_args

import attrs
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from vennforest._messages import listed, nearest
from vennforest._state import stored
from vennforest._validation import InputError, is_frame, require
from vennforest.tables.cells import LARGEST, Column, Kind, without_markers
from vennforest.tables.types import DROP, check_types, learn_declared

if TYPE_CHECKING:
    import pandas as pd


def _each(*types: type) -> Any:
    return attrs.validators.deep_iterable(
        attrs.validators.instance_of(types), attrs.validators.instance_of(tuple)
    )


@stored("column-formats")
@attrs.frozen
class ColumnFormats:
    """What columns contain and how it is written: their names, and a kind and a format of each."""

    names: tuple[str, ...] = attrs.field(validator=_each(str))
    kinds: tuple[Kind, ...] = attrs.field(validator=_each(str))
    formats: tuple[str | None, ...] = attrs.field(validator=_each(str, type(None)))

    def __attrs_post_init__(self) -> None:
        """Refuse kinds and formats of other columns."""
        require(len(set(self.names)) == len(self.names), "columns must have different names")
        same = len(self.names) == len(self.kinds) == len(self.formats)
        require(same, "kinds and formats must be of the columns")
        require(all(kind in get_args(Kind) for kind in self.kinds), "kinds must be known")

    def each(self) -> Iterator[tuple[str, Kind, str | None]]:
        """Return the name, kind and format of one column after another."""
        return zip(self.names, self.kinds, self.formats, strict=True)


@stored("table-columns")
class TableColumns(TransformerMixin, BaseEstimator):
    """Reads every cell as what its column held in training.

    A cell is read the same way whatever else the table contains, so a file can be read in parts:
    nothing is inferred from the rows at hand. Columns that were not in training are left out.

    A column of text contains numbers, booleans, or dates if every cell is a number, is true or
    false, or is a date in one common format; cells that are blank or say NA, N/A, NaN, n/a, nan,
    null or NULL are missing. A column of categories is text.

    Parameters
    ----------
    types : dict of str to str, optional
        What columns contain where that is not to be guessed, by name:

        - ``"number"``: a cell that is none is refused.
        - ``"date"``, or with a format ``"date %d.%m.%Y"``.
        - ``"category"`` or ``"text"``: cells as they are, also numbers.
        - ``"boolean"``: true, false, yes, no, 1, 0. ``"duration"``: of that type already.
        - ``"drop"``: the column is left out.
    missing : list of str, optional
        Cells that stand for missing values, in all columns: text such as ``"n.d."``, with or
        without spaces around it, and numbers such as ``"-999"``.
    """

    _formats: ColumnFormats

    def __init__(
        self, types: dict[str, str] | None = None, missing: list[str] | None = None
    ) -> None:
        self.types = types
        self.missing = missing

    def fit(self, X: pd.DataFrame, y: object = None) -> Self:
        """Learn what each column of a pandas or polars data frame (n, d) contains.

        Raises
        ------
        InputError
            If it is not a data frame, has no columns, two of one name, or only empty ones; if
            ``types`` name another column, or a cell is not what they declare.
        """
        X = without_markers(as_pandas(X), self.missing or ())
        types = {} if self.types is None else check_types(self.types)
        X = _without_dropped(X, types)
        names = [str(name) for name in X.columns]
        if not names:
            raise InputError("X must have at least one column, got none")
        _refuse_twice(names, names)
        block = _Numbers(X)
        learnt: list[tuple[Kind, str | None]] = []
        for i, name in enumerate(names):
            if name in types:
                learnt.append(learn_declared(Column(X.iloc[:, i], name), types[name]))
            elif i in block.places:
                learnt.append(("number", None))
            else:
                learnt.append(Column(X.iloc[:, i], name).learn())
        if all(kind == "empty" for kind, _ in learnt):
            raise InputError("X must have a column with values, got empty ones only")
        kinds, formats = zip(*learnt, strict=True)
        self._formats = ColumnFormats(tuple(names), kinds, formats)
        return self

    @property
    def kinds_(self) -> list[Kind]:
        """For each column: number, boolean, date, duration, text, category or empty."""
        return list(self._formats.kinds)

    @property
    def formats_(self) -> list[str | None]:
        """How the dates of each column were written as text, None elsewhere."""
        return list(self._formats.formats)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The names of the columns, of shape (d,)."""
        return np.array(self._formats.names, dtype=object)

    @property
    def n_features_in_(self) -> int:
        """Number of columns."""
        return len(self._formats.names)

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return the columns of training, in their order, as a pandas data frame (m, d).

        They are of float64 (booleans are 0 and 1, durations seconds), of datetime64[us] in
        universal time, or of objects: str and None.

        Raises
        ------
        InputError
            If a column is missing, or a cell is not of the kind its column was in training.
        """
        check_is_fitted(self, "kinds_")
        X = without_markers(as_pandas(X), self.missing or ())
        names = [str(name) for name in X.columns]
        self.check_names(names)
        _refuse_twice(names, self.feature_names_in_.tolist())
        given = {name: i for i, name in enumerate(names)}
        block = _Numbers(X)
        columns: dict[str, Any] = {}
        for name, kind, written in self._formats.each():
            place = given[name]
            if kind == "number" and place in block.places:
                columns[name] = block.values[:, block.places[place]]
            else:
                columns[name] = Column(X.iloc[:, place], name).read(kind, written)
        return type(X)(columns, index=X.index)

    def as_types(self) -> dict[str, str]:
        """Return what each column contains, in the form of ``types``."""
        check_is_fitted(self, "kinds_")
        found = {}
        for name, kind, written in self._formats.each():
            declared = DROP if kind == "empty" else kind
            found[name] = declared if written is None else f"{declared} {written}"
        return found

    @property
    def numbers(self) -> list[str]:
        """The columns of numbers."""
        return [name for name, kind, _ in self._formats.each() if kind == "number"]

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether ``fit`` has been called."""
        return "_formats" in self.__dict__

    def to_state(self) -> Mapping[str, Any]:
        """Return what a file contains: the parameters, and what was learnt."""
        return {
            "parameters": self.get_params(deep=False),
            "formats": self.__dict__.get("_formats"),
        }

    @classmethod
    def from_state(cls, parameters: Mapping[str, Any], formats: ColumnFormats | None) -> Self:
        """Return the reader of tables; a ``ValueError`` refuses ``types`` that are none."""
        made = cls(**parameters)
        if made.types is not None:
            check_types(made.types)
        if made.missing is not None:
            _each(str)(made, attrs.fields(ColumnFormats).names, tuple(made.missing))
        if formats is not None:
            require(isinstance(formats, ColumnFormats), "formats must be of columns")
            made._formats = formats
        return made

    def check_names(self, names: Iterable[str]) -> list[str]:
        """Return the names that were not in training; an `InputError` says which is missing."""
        return unknown_names(names, self.feature_names_in_.tolist())

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Return the names of the columns, shape (d,)."""
        check_is_fitted(self, "kinds_")
        return self.feature_names_in_

    def __sklearn_tags__(self) -> Tags:
        """Take text and missing cells."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def _refuse_twice(names: list[str], known: list[str]) -> None:
    """Refuse columns of one name that are among the known ones: any of them would be taken."""
    if sum(map(set(known).__contains__, names)) > len(set(known)):
        raise InputError("X must have columns of different names, got two of the same name")


def unknown_names(names: Iterable[str], known: list[str]) -> list[str]:
    """Return the names of a table's columns that are not among the known ones."""
    given = dict.fromkeys(names)
    expected = dict.fromkeys(known)
    missing = [name for name in expected if name not in given]
    extra = [name for name in given if name not in expected]
    if missing:
        close = get_close_matches(missing[0], extra, n=1, cutoff=0.6)
        hint = f": is {close[0]!r} what {missing[0]!r} was?" if close else ""
        what = "column" if len(missing) == 1 else "columns"
        raise InputError(f"the table lacks the {what} {listed(missing, 5)} of training{hint}")
    return extra


def _without_dropped(X: pd.DataFrame, types: dict[str, str]) -> pd.DataFrame:
    """Return a table without the columns to drop, once all that are named are there."""
    names = [str(name) for name in X.columns]
    for name in types:
        if name not in names:
            near = nearest(name, names)
            raise InputError(f"types must name columns of the table, got {name!r}{near}")
    unwanted = [name for name, declared in types.items() if declared == DROP]
    kept = [i for i, name in enumerate(names) if name not in unwanted]
    return X.iloc[:, kept] if unwanted else X


def as_pandas(X: Any) -> pd.DataFrame:
    """Return a pandas data frame, made of one of another library if need be."""
    if is_frame(X) and hasattr(X, "to_pandas"):
        X = X.to_pandas()
    if not hasattr(X, "iloc"):
        raise InputError(f"X must be a pandas or polars DataFrame, got {type(X).__name__}")
    frame: pd.DataFrame = X
    return frame


class _Numbers:
    """The columns of numbers in which nothing needs a closer look, read together.

    One by one they take a millisecond each, and a table may have tens of thousands. ``places`` says
    which column of ``values`` contains each: float64, up to what 32 bits contain, not all NaN.
    """

    def __init__(self, X: pd.DataFrame) -> None:
        plain = np.array(
            [isinstance(kind, np.dtype) and kind.kind in "iuf" for kind in X.dtypes], dtype=bool
        )
        places = np.flatnonzero(plain)
        values = X.iloc[:, places].to_numpy(dtype=np.float64)
        missing = np.isnan(values)
        sound = ~missing.all(axis=0) & (missing | (np.abs(values) <= LARGEST)).all(axis=0)
        self.values: NDArray[np.float64] = values[:, sound]
        self.places = {int(place): i for i, place in enumerate(places[sound])}
