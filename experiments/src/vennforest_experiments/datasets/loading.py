"""Find a named data set in a folder, in the cache or on OpenML, and type its columns."""

from __future__ import annotations

import os
import warnings
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.datasets import fetch_openml, get_data_home

from vennforest_experiments.datasets.catalogue import Entry, catalogue

if TYPE_CHECKING:
    from collections.abc import Sequence


ENVIRONMENT = "VENNFOREST_DATA"
"""The environment variable that names the local folder of data sets."""

Place = Literal["folder", "cache", "openml"]


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set ready to use.

    Parameters
    ----------
    name : str
        Its name.
    X : pandas.DataFrame of shape (n, d)
        Numeric columns as float64 with NaN for missing cells, nominal columns as categoricals of
        strings with missing cells left missing.
    y : ndarray of shape (n,)
        The labels, as strings.
    """

    name: str
    X: pd.DataFrame
    y: NDArray[np.str_]


@dataclass(frozen=True)
class Listing:
    """One line of the list of data sets.

    Parameters
    ----------
    name, source, licence, note : str
        As in the catalogue.
    rows, features, classes : int
        Its size.
    papers : tuple of str
        The papers that use it.
    place : {"folder", "cache", "openml"} or None
        The first place that has it; ``"openml"`` means only that its ID there is known.
    """

    name: str
    rows: int
    features: int
    classes: int
    papers: tuple[str, ...]
    source: str
    licence: str
    note: str
    place: Place | None


def load(name: str, data_dir: str | os.PathLike[str] | None = None) -> Dataset:
    """Load a data set by name: from the local folder, else the cache, else OpenML.

    Parameters
    ----------
    name : str
        A name in the catalogue, or that of any file ``NAME.csv`` or ``NAME.csv.gz`` in the folder
        whose column ``target`` holds the labels.
    data_dir : path, optional
        The local folder; by default the one named by the environment variable ``VENNFOREST_DATA``.

    Returns
    -------
    Dataset
        Column types come from the catalogue; in a file that is not in it, a column is numeric if
        all of its values are numbers. Empty cells and ``?`` are missing.

    Raises
    ------
    FileNotFoundError
        If no place has it; the message says which were tried.
    ValueError
        If the file has no column ``target``, a missing label, or text in a numeric column, or if
        OpenML's data are not those of the catalogue.
    ImportError
        If pandas is not installed.

    Notes
    -----
    Data from OpenML are kept in the cache, a folder ``vennforest`` in scikit-learn's data home
    (`sklearn.datasets.get_data_home`). Their labels may be spelt differently.
    """
    entry = catalogue().get(name)
    for folder in (_folder(data_dir), _cache()):
        path = _file(folder, name)
        if path is not None:
            return _read(path, name, entry)
    return _download(name, entry, data_dir)


def available(data_dir: str | os.PathLike[str] | None = None) -> list[Listing]:
    """List the data sets of the catalogue, with the place each would be loaded from.

    Parameters
    ----------
    data_dir : path, optional
        The local folder; by default the one named by the environment variable ``VENNFOREST_DATA``.
    """
    folder, cache = _folder(data_dir), _cache()
    lines = []
    for entry in catalogue().values():
        place: Place | None = "openml" if entry.openml is not None else None
        if _file(folder, entry.name):
            place = "folder"
        elif _file(cache, entry.name):
            place = "cache"
        lines.append(
            Listing(
                name=entry.name,
                rows=entry.rows,
                features=entry.features,
                classes=entry.classes,
                papers=entry.papers,
                source=entry.source,
                licence=entry.licence,
                note=entry.note,
                place=place,
            )
        )
    return lines


def _folder(data_dir: str | os.PathLike[str] | None) -> Path | None:
    chosen = data_dir if data_dir is not None else os.environ.get(ENVIRONMENT)
    return Path(chosen).expanduser() if chosen else None


def _cache() -> Path | None:
    try:
        return Path(get_data_home()) / "vennforest"
    except OSError:  # a home directory that cannot be written to has no cache
        return None


def _file(folder: Path | None, name: str) -> Path | None:
    if folder is None:
        return None
    for ending in (".csv", ".csv.gz"):
        path = folder / f"{name}{ending}"
        if path.is_file():
            return path
    return None


def _read(path: Path, name: str, entry: Entry | None) -> Dataset:
    frame = pd.read_csv(path, dtype=str, keep_default_na=False, na_values=["", "?"])
    if "target" not in frame:
        raise ValueError(f"{path} must have a column target, got {list(frame.columns)}")
    if entry is not None and set(frame.columns) != {*entry.columns, "target"}:
        entry = None
    return _dataset(name, frame.drop(columns="target"), frame["target"], entry)


def _dataset(name: str, X: Any, labels: Any, entry: Entry | None) -> Dataset:
    if labels.isna().any():
        row = int(np.flatnonzero(labels.isna())[0])
        raise ValueError(f"target must be given in every row of {name}, got none in row {row}")
    nominal = _guess_nominal(X) if entry is None else entry.nominal
    columns = {
        column: _categories(X[column]) if column in nominal else _numbers(X[column], name)
        for column in X.columns
    }
    y = labels.astype(str).to_numpy(dtype=np.str_)
    return Dataset(name, pd.DataFrame(columns), y)


def _numbers(column: Any, name: str) -> Any:
    numbers = pd.to_numeric(column, errors="coerce").astype(np.float64)
    text = column.notna() & numbers.isna()
    if text.any():
        raise ValueError(
            f"column {column.name} of {name} must hold numbers, got {column[text].iloc[0]!r}"
        )
    return numbers


def _categories(column: Any) -> Any:
    values = sorted({str(value) for value in column.dropna()})
    texts = column.astype(object).where(column.notna(), None).map(str, na_action="ignore")
    return pd.Series(pd.Categorical(texts, categories=values), index=column.index)


def _guess_nominal(X: Any) -> frozenset[str]:
    return frozenset(
        column
        for column in X.columns
        if pd.to_numeric(X[column].dropna(), errors="coerce").isna().any()
    )


def _download(name: str, entry: Entry | None, data_dir: str | os.PathLike[str] | None) -> Dataset:
    folder, cache = _folder(data_dir), _cache()
    if entry is None or entry.openml is None:
        reason = "no ID there is known for this name"
        raise FileNotFoundError(_nowhere(name, folder, cache, reason))
    try:
        with warnings.catch_warnings():
            # The catalogue deliberately asks for a target column that OpenML ignores.
            warnings.filterwarnings("ignore", message="target_column=.*is_ignore")
            # Retries need no warning; the error says that the last one failed.
            warnings.filterwarnings("ignore", message="A network error occurred")
            bunch = fetch_openml(
                data_id=entry.openml,
                target_column=entry.openml_target or "default-target",
                as_frame=True,
                parser="liac-arff",
                cache=False,
            )
    except (OSError, HTTPException, ValueError) as error:  # no network, refused, or damaged
        reason = f"ID {entry.openml}: {error}"
        raise FileNotFoundError(_nowhere(name, folder, cache, reason)) from error
    dataset = _from_openml(entry, bunch.data, bunch.target)
    if cache is not None:
        _keep(dataset, cache)
    return dataset


def _nowhere(name: str, folder: Path | None, cache: Path | None, reason: str) -> str:
    place = f"{folder} has no {name}.csv or {name}.csv.gz" if folder else "none was named"
    return (
        f"name must be that of a data set that can be found, got {name!r}: "
        f"local folder ({place}; give data_dir or set {ENVIRONMENT}), "
        f"cache ({cache} has no such file), "
        f"OpenML ({reason})"
    )


def _from_openml(entry: Entry, X: Any, target: Any) -> Dataset:
    """Check that OpenML's data are the catalogue's, and name and type the columns.

    If the catalogue's columns are all there, they are matched by name; else by position, in which
    case there must be as many.
    """
    where = f"OpenML's data set {entry.openml}"
    if set(entry.columns) <= set(X.columns):
        X = X[list(entry.columns)]
    elif X.shape[1] == entry.features:
        X = X.set_axis(list(entry.columns), axis=1)
    else:
        raise ValueError(
            f"{where} must have the {entry.features} features of {entry.name}, "
            f"got {X.shape[1]}: {_short(X.columns)}"
        )
    dataset = _dataset(entry.name, X, target, entry)
    counts = sorted(np.unique(dataset.y, return_counts=True)[1].tolist())
    if counts != sorted(entry.class_counts.values()):
        raise ValueError(
            f"{where} must have the class counts of {entry.name}, "
            f"{sorted(entry.class_counts.values())}, got {counts}"
        )
    return dataset


def _short(names: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(str(one) for one in list(names)[:most])
    return shown + (", …" if len(names) > most else "")


def _keep(dataset: Dataset, cache: Path) -> None:
    part = cache / f"{dataset.name}.{os.getpid()}.part"
    try:
        cache.mkdir(parents=True, exist_ok=True)
        frame = dataset.X.assign(target=dataset.y)
        frame.to_csv(part, index=False, compression="gzip")
        part.replace(cache / f"{dataset.name}.csv.gz")  # never a half-written file under the name
    except OSError:  # on a full or read-only disk the next call downloads again
        with suppress(OSError):
            part.unlink()
