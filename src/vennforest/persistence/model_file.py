"""Save and load models: skops files with a list of trusted types, and a header."""

from __future__ import annotations

import json
import os
import platform
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from vennforest._files import check_unpacked_size, one_line, written_whole
from vennforest._messages import InputError, how_to_install, listed, needed, warn
from vennforest._program import __version__
from vennforest._state import is_own_type
from vennforest.persistence.parts import (
    from_stored,
    is_absent,
    is_trusted,
    names_of_types,
    to_stored,
)

FORMAT_VERSION = 1
"""Version of the file format."""

HEADER, SCHEMA = "vennforest.json", "schema.json"
"""Members of the archive that describe the model: written by vennforest and by skops."""

SAVED_LIBRARIES = ("scikit-learn", "numpy", "scipy", "skops")
"""Libraries whose versions are in every header, besides those of a model's types."""

VERSIONED = ("scikit-learn", "skrub", "xgboost", "lightgbm", "catboost")
"""Libraries whose predictions may differ between versions."""

MAX_DESCRIPTION = 300
"""Characters of an estimator's text in the header."""


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file that contains data alone.

    Parameters
    ----------
    model : CalibratedClassifier, calibrator or Monitor
        A fitted model.
    path : path-like
        Path of the file, by convention with the suffix ``.skops``. An existing file is replaced
        once the new one is complete.

    Raises
    ------
    TypeError
        If the model contains an object that cannot be stored, such as a lambda function.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import vennforest
    >>> model = vennforest.VennAbers().fit([0.1, 0.4, 0.6, 0.9], ["no", "no", "yes", "yes"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "model.skops"
    ...     vennforest.save(model, path)
    ...     vennforest.load(path).predict([0.2, 0.8])
    array(['no', 'yes'], dtype='<U3')
    """
    write_model(model, path)


def write_model(
    model: Any, path: str | os.PathLike[str], extra: Mapping[str, Any] | None = None
) -> None:
    """Write a fitted model to a file with ``extra`` entries in the header, such as its columns."""
    if not is_own_type(type(model)):
        raise TypeError(
            "model must be a fitted CalibratedClassifier, calibrator or Monitor, got "
            f"{type(model).__name__}"
        )
    check_is_fitted(model, "classes_")
    skops = _skops()
    with written_whole(path) as part:
        try:
            skops.dump(to_stored(model), part, compression=zipfile.ZIP_DEFLATED, compresslevel=1)
        except (OSError, MemoryError):
            raise
        except Exception as error:
            raise TypeError(
                f"model must consist of what a file of data can contain: {one_line(error)}"
            ) from error
        with zipfile.ZipFile(part) as archive:
            types = sorted(_types_in(archive))
        check_readable(part, types)
        # How a classifier, a calibrator or the model of a monitor came to be.
        record = getattr(getattr(model, "model", model), "record_", {})
        header = {**_header(model, types), **record, **(extra or {})}
        with zipfile.ZipFile(part, "a", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            text = json.dumps(header, indent=2, ensure_ascii=False)
            archive.writestr(HEADER, text.encode("utf-8", "backslashreplace"))


def _skops() -> Any:
    """Return skops.io without torch and dask, which its list of scikit-learn's types would import.

    They take seconds and hundreds of megabytes.
    """
    is_new = "skops.io" not in sys.modules
    names = ("torch", "dask", "cupy", "jax") if is_new else ()
    hidden = [name for name in names if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    try:
        return needed("skops.io", "model files")
    finally:
        for name in hidden:
            del sys.modules[name]


def check_readable(path: Path, types: Sequence[str]) -> None:
    """Raise an `InputError` if a file with these types could not be loaded."""
    try:
        from_stored(_skops().load(path, trusted=types))
    except MemoryError:
        raise
    except Exception as error:  # a parameter of another type, a function without a name
        raise InputError(
            "model must be as fit left it to be saved, and functions in it must be importable by "
            f"name, got one that cannot be read again: {one_line(error)}"
        ) from error


def load(path: str | os.PathLike[str], *, trusted: Sequence[str | type] = ()) -> Any:
    """Read a model from a file, without running code from it.

    A file may contain types of vennforest, types that skops trusts, trees of scikit-learn, and
    those of skrub's ``TableVectorizer``. The fitted state of vennforest's own types, of forests and
    of histogram boosting is checked; other arrays are not, so load files from people you trust.

    Parameters
    ----------
    path : path-like
        A file that ``save`` wrote.
    trusted : sequence of str or type
        More types that the file may contain, such as ``"xgboost.sklearn.XGBClassifier"``. The names
        ``"lightgbm"``, ``"xgboost"`` and ``"catboost"`` stand for the types of their classifiers.

    Returns
    -------
    CalibratedClassifier, calibrator or Monitor
        Its predictions are those of the model that was saved, to the last bit.

    Raises
    ------
    InputError
        If the file is not a model file, is damaged, has a newer format, or contains unknown types.
    ImportError
        If a library that the model was made with is not installed.

    Warns
    -----
    UserWarning
        If scikit-learn, skrub, XGBoost, LightGBM or CatBoost has another version than at ``save``.
    """
    skops = _skops()
    name = os.fspath(path)
    with open_archive(path) as (archive, header):
        types = _types_in(archive)
        for library in VERSIONED:
            saved, installed = header.get("libraries", {}).get(library), _installed(library)
            if saved and installed is None:
                raise ImportError(
                    f"{name} contains a model made with {library}: {how_to_install(library)}"
                )
            if saved and saved != installed:
                warn(
                    f"{name} was written with {library} {saved} and is read with {installed}: its "
                    f"predictions may differ, or fail; install {library}=={saved}, or fit the "
                    "model again"
                )
        if absent := sorted(filter(is_absent, types)):
            raise InputError(
                f"{name}, written by vennforest {header.get('vennforest')}, contains "
                f"{listed(absent, 6, str)}, which this one, {__version__}, does not have: read it "
                "with the one that wrote it, or make the file again"
            )
        trusted_types = [*filter(is_trusted, types), *names_of_types(trusted)]
        try:
            model = from_stored(skops.load(archive.fp, trusted=trusted_types))
        except (MemoryError, ImportError):
            raise
        except Exception as error:
            unknown = {*skops.get_untrusted_types(file=archive.fp)}.difference(trusted_types)
            if unknown:
                names = sorted(unknown)
                raise InputError(
                    f"{name} contains {listed(names, 6, str)}, which vennforest does not read by "
                    "itself: if you know who wrote the file, and trust these types, load it with "
                    f"vennforest.load(path, trusted={names!r}), or vennforest predict with "
                    "--trust for each"
                ) from None
            raise InputError(f"{name} is damaged: {one_line(error)}") from error
    if not is_own_type(type(model)):
        raise InputError(f"{name} must contain a model, got {type(model).__name__}")
    return model


@contextmanager
def open_archive(path: str | os.PathLike[str]) -> Iterator[tuple[zipfile.ZipFile, dict[str, Any]]]:
    """Yield the archive and header of a model file; raise an error if its size is too large."""
    name = os.fspath(path)
    with Path(path).open("rb") as file:
        head = file.read(4)
        if head[:1] == b"\x80":
            raise InputError(
                f"{name} is a pickle, which runs code when it is loaded, and no model file: "
                "write the model with vennforest.save"
            )
        if not head.startswith(b"PK"):
            raise InputError(f"{name} is not a model file: vennforest.save and fit write these")
        try:
            with zipfile.ZipFile(file) as archive:
                check_unpacked_size(archive, os.fstat(file.fileno()).st_size, name)
                for member in archive.infolist():
                    if member.filename.endswith(".npz"):  # an archive within the archive
                        with archive.open(member) as part, zipfile.ZipFile(part) as nested:
                            check_unpacked_size(nested, member.file_size, name)
                if not {HEADER, SCHEMA} <= set(archive.namelist()):
                    raise InputError(
                        f"{name} is a zip archive that vennforest.save has not written"
                    )
                header: Any = json.loads(archive.read(HEADER))
                version = header.get("format") if isinstance(header, dict) else None
                if type(version) is not int or version < 1:
                    raise InputError(f"{name} is damaged: its header names no format")
                if version > FORMAT_VERSION:
                    raise InputError(
                        f"{name} is of format {version}, written by vennforest "
                        f"{header.get('vennforest')}, and this is vennforest {__version__}, which "
                        f"reads formats up to {FORMAT_VERSION}: upgrade vennforest"
                    )
                yield archive, header
        except (InputError, ImportError, MemoryError):
            raise
        except Exception as error:  # zlib.error, KeyError of a missing member, ...
            raise InputError(f"{name} is damaged or was cut short: {one_line(error)}") from error


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the header of a model file.

    Returns
    -------
    dict
        ``format``, ``vennforest``, ``python``, ``libraries`` (versions), ``model`` (its type),
        ``classes``, ``features`` (names, or None), ``n_features`` and ``description`` (how the
        model was fitted and calibrated, and when it was written). Files of ``vennforest fit`` also
        have ``target``, ``columns``, ``types``, ``n_rows``, ``class_counts``, ``data`` (the file's
        name) and ``measures``.
    """
    with open_archive(path) as (_, header):
        return header


def _types_in(archive: zipfile.ZipFile) -> set[str]:
    """Return the full names of the types in the schema of a skops file."""
    types = set()

    def add_type(node: dict[str, Any]) -> dict[str, Any]:
        if isinstance(node.get("__class__"), str) and isinstance(node.get("__module__"), str):
            types.add(f"{node['__module__']}.{node['__class__']}")
        return node

    json.loads(archive.read(SCHEMA), object_hook=add_type)
    return types


def _header(model: Any, types: Sequence[str]) -> dict[str, Any]:
    packages = {name.partition(".")[0].replace("sklearn", "scikit-learn") for name in types}
    names = sorted({*SAVED_LIBRARIES, *packages} - {"vennforest", "builtins"})
    features = getattr(model, "feature_names_in_", None)
    return {
        "format": FORMAT_VERSION,
        "vennforest": __version__,
        "python": platform.python_version(),
        "libraries": {name: installed for name in names if (installed := _installed(name))},
        "model": type(model).__name__,
        "classes": [str(label) for label in model.classes_],
        "features": None if features is None else [str(name) for name in features],
        "n_features": getattr(model, "n_features_in_", None),
        "description": describe(model),
    }


def describe(model: Any) -> dict[str, Any]:
    """Return how a model was fitted and calibrated, as text and numbers."""
    entries: dict[str, Any] = {"written": datetime.now(UTC).isoformat(timespec="seconds")}
    if hasattr(model, "model"):  # a monitor, which may watch scores without a model
        return entries if model.model is None else {**entries, **describe(model.model)}
    if not hasattr(model, "calibrate_on_"):
        return {**entries, "method": _text(model)}
    estimators = model.estimators_
    is_pipeline = isinstance(estimators[0], Pipeline)
    steps = [step for _, step in estimators[0].steps] if is_pipeline else estimators[:1]
    n_models = len(estimators)
    if hasattr(model, "blend_"):
        n_models = sum(len(member.folds) for member in estimators[0].members)
    entries |= {
        "method": _text(model.method),
        "merge": model.merge,
        "estimator": ", then ".join(map(_text, steps)),
        "estimators": n_models,
        "calibrate_on": model.calibrate_on_,
        "reason": model.calibrate_on_reason_,
        "calibration_examples": len(model.calibration_y_),
        "rows": model._state.n_rows,
    }
    if model._state.shift is not None:
        entries["prior"] = dict(zip(map(str, model.classes_), model.prior_.tolist(), strict=True))
    if model.by is not None:
        entries |= {"by": _text(model.by), "groups": len(model._state.by_groups)}
    if model.calibrate_on_ == "oob":
        entries["subforest"] = model.subforest
    return entries


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else " ".join(repr(value).split())
    return text if len(text) <= MAX_DESCRIPTION else text[: MAX_DESCRIPTION - 1] + "…"


def _installed(name: str) -> str | None:
    """Return the version of a package, None if it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
