"""Models in files: data that is read, never code that runs."""

from __future__ import annotations

import importlib
import json
import os
import platform
import sys
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from vennforest._files import one_line, written_whole
from vennforest._validation import InputError
from vennforest._version import __version__
from vennforest.calibrators import Calibrator
from vennforest.classifier import CalibratedClassifier
from vennforest.persistence.integrity import check_structure
from vennforest.persistence.trusted import TRUSTED
from vennforest.transductive.classifier import TransductiveClassifier

FORMAT = 1
"""Version of the file format; a reader takes its own and all before."""

HEADER, SCHEMA = "vennforest.json", "schema.json"
MODELS = (CalibratedClassifier, TransductiveClassifier, Calibrator)
LIBRARIES = ("scikit-learn", "numpy", "scipy", "skops")
"""Written into every file, with those that the model's own types come from."""

COMPARED = ("scikit-learn", "skrub", "xgboost", "lightgbm", "catboost")
"""A model fitted with one version of these may answer otherwise with another."""

PACKAGES = {"sklearn": "scikit-learn"}


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file that holds data alone.

    The file is written whole or not at all. Beside the model it says the version of the format
    and of the libraries, the names of the features and the classes.

    Parameters
    ----------
    model : CalibratedClassifier, TransductiveClassifier or calibrator
        Fitted.
    path : path-like
        By custom ``*.skops``.

    Raises
    ------
    TypeError
        If it is no model of vennforest, or holds what a file of data cannot: a function without a
        name that can be imported, or an object that skops does not know.
    NotFittedError
        Before ``fit``.
    ImportError
        If skops is not installed.

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


def load(path: str | os.PathLike[str], *, trusted: Sequence[str | type] = ()) -> Any:
    """Read a model from a file, without running anything the file says.

    Known are the types of vennforest, scikit-learn, numpy and scipy, and those of skrub that
    ``vennforest fit`` uses; a file with any other is refused, and the type named.

    Parameters
    ----------
    path : path-like
        As ``save`` wrote it.
    trusted : sequence of str or type
        More types that may be made, such as ``"xgboost.sklearn.XGBClassifier"``: only those you
        know, from a file you know.

    Returns
    -------
    CalibratedClassifier, TransductiveClassifier or calibrator
        Its predictions are those of the model that was saved, to the last bit.

    Raises
    ------
    InputError
        A ``ValueError``: it is no model file, damaged, of a newer format, or holds types that are
        not known.
    FileNotFoundError
        If there is no such file.
    ImportError
        If skops, or a library the model was made with, is not installed.

    Warns
    -----
    UserWarning
        If it was written with another version of scikit-learn or skrub, or of a library that one
        of its models comes from.
    """
    io_ = _skops()
    header = read_header(path)
    _compare_versions(header, path)
    names = [t if isinstance(t, str) else f"{t.__module__}.{t.__qualname__}" for t in trusted]
    for name in header.get("libraries", {}):
        _require(name, path)
    from skops.io.exceptions import UntrustedTypesFoundException

    try:
        content = io_.load(path, trusted=[*TRUSTED, *names])
    except UntrustedTypesFoundException:
        unknown = sorted(set(io_.get_untrusted_types(file=path)) - {*TRUSTED, *names})
        raise InputError(
            f"{os.fspath(path)} holds {_listed(unknown)}, which vennforest does not make by "
            "itself: if you know who wrote the file, and trust these types, load it with "
            f"vennforest.load(path, trusted={unknown!r}), or vennforest predict with --trust for "
            "each"
        ) from None
    except MemoryError:
        raise
    except Exception as error:  # whatever a damaged or forged file may lead to
        raise InputError(f"{os.fspath(path)} is damaged: {one_line(error)}") from error
    if not isinstance(content, MODELS):
        raise InputError(
            f"{os.fspath(path)} must hold a model of vennforest, got {type(content).__name__}"
        )
    check_structure(content, os.fspath(path))
    return content


def write_model(
    model: Any, path: str | os.PathLike[str], about: Mapping[str, Any] | None = None
) -> None:
    """Write a model with more about it in the header, such as the columns it was fitted to."""
    if not isinstance(model, MODELS):
        raise TypeError(
            "model must be a CalibratedClassifier, TransductiveClassifier or calibrator, "
            f"got {type(model).__name__}"
        )
    check_is_fitted(model, "classes_")
    if hasattr(getattr(model, "_X", None), "columns"):
        raise TypeError(
            "model must be fitted to an array to be saved, got one fitted to a data frame: a "
            "TransductiveClassifier keeps its training data, and a file holds arrays alone"
        )
    _skops()
    from skops.io._utils import SaveContext, get_state

    with (
        written_whole(path) as part,
        zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file,
    ):
        fast = _FastNames(file)
        context = SaveContext(zip_file=fast)
        try:
            state = get_state(model, context)
        except Exception as error:
            raise TypeError(
                "model must consist of what a file of data can hold, "
                f"got something it cannot: {one_line(error)}"
            ) from error
        # What skops.io.dump writes, but for white space: that takes most of its time.
        state["protocol"] = context.protocol
        state["_skops_version"] = version("skops")
        origins = set(_check_state(state))
        try:
            file.writestr(SCHEMA, json.dumps(state))
        except TypeError as error:
            raise TypeError(
                f"model must hold dictionaries with keys of text or numbers alone: {error}"
            ) from error
        header = {**_header(model, origins), **(about or {})}
        file.writestr(HEADER, json.dumps(header, indent=2, ensure_ascii=False))


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what a model file says about itself.

    Parameters
    ----------
    path : path-like
        As ``save`` wrote it.

    Returns
    -------
    dict
        ``format``, ``vennforest``, ``python``, ``libraries`` (versions), ``model`` (its type),
        ``classes``, ``features`` (names, or None) and ``n_features``; files of ``vennforest fit``
        also say ``target`` and ``columns``.

    Raises
    ------
    InputError
        If it is no model file, damaged, or of a newer format.
    FileNotFoundError
        If there is no such file.
    """
    shown = os.fspath(path)
    with Path(path).open("rb") as file:
        head = file.read(4)
    if head[:1] == b"\x80":
        raise InputError(
            f"{shown} is a pickle, which runs code when it is loaded, and no model file: "
            "write the model with vennforest.save"
        )
    if not head.startswith(b"PK"):
        raise InputError(f"{shown} is not a model file: vennforest.save and fit write these")
    try:
        with zipfile.ZipFile(path) as file:
            names = set(file.namelist())
            text = file.read(HEADER) if HEADER in names else b""
            header: dict[str, Any] | None = json.loads(text) if text else None
    except (zipfile.BadZipFile, ValueError, OSError, EOFError, NotImplementedError) as error:
        raise InputError(
            f"{shown} is damaged or was cut short, and holds no whole model: {one_line(error)}"
        ) from error
    except Exception as error:  # zlib.error, and what a forged archive may lead to
        raise InputError(f"{shown} is damaged: {one_line(error)}") from error
    if header is None and SCHEMA in names:
        raise InputError(f"{shown} was written by skops alone: write it with vennforest.save")
    if header is None or SCHEMA not in names:
        raise InputError(f"{shown} is a zip archive, but not a model file of vennforest")
    written = header.get("format") if isinstance(header, dict) else None
    if type(written) is not int or written < 1:
        raise InputError(f"{shown} is damaged: its header names no format")
    if written > FORMAT:
        raise InputError(
            f"{shown} is of format {written}, written by vennforest "
            f"{header.get('vennforest', 'of a later version')}, and this is vennforest "
            f"{__version__}, which reads formats up to {FORMAT}: upgrade vennforest"
        )
    return header


class _FastNames:
    """A zip file that knows its names as a set: skops looks each array up among them."""

    def __init__(self, file: zipfile.ZipFile) -> None:
        self._file = file
        self._names: dict[str, None] = {}

    def namelist(self) -> Mapping[str, None]:
        return self._names

    def writestr(self, name: str, data: Any) -> None:
        self._names[name] = None
        self._file.writestr(name, data)


def _header(model: Any, origins: set[str]) -> dict[str, Any]:
    names = {PACKAGES.get(origin, origin) for origin in origins} - {"vennforest", "builtins"}
    libraries = {name: found for name in sorted({*LIBRARIES, *names}) if (found := _version(name))}
    features = getattr(model, "feature_names_in_", None)
    return {
        "format": FORMAT,
        "vennforest": __version__,
        "python": platform.python_version(),
        "libraries": libraries,
        "model": type(model).__name__,
        "classes": [str(label) for label in model.classes_],
        "classes_dtype": str(model.classes_.dtype),
        "features": None if features is None else [str(name) for name in features],
        "n_features": getattr(model, "n_features_in_", None),
    }


def _check_state(state: Any) -> Iterator[str]:
    """Yield the packages that a model's types come from, refuse what could not be read again."""
    todo = [state]
    while todo:
        node = todo.pop()
        if isinstance(node, list | tuple):
            todo.extend(node)
        elif isinstance(node, dict):
            loader = node.get("__loader__")
            if isinstance(loader, str):
                module, name = node["__module__"], node["__class__"]
                if loader in ("FunctionNode", "TypeNode", "ObjectNode") and not _found(
                    module, name
                ):
                    raise TypeError(
                        "model must hold functions and types that can be imported by name, "
                        f"got {module}.{name}: define it at the top of a module"
                    )
                if loader == "DictNode":
                    _check_keys(node["key_types"]["content"])
                yield module.split(".")[0]
            todo.extend(value for value in node.values() if isinstance(value, dict | list | tuple))


def _check_keys(types: Sequence[Mapping[str, Any]]) -> None:
    for key in types:
        if key["__class__"] in ("bool", "bool_", "NoneType"):
            raise TypeError(
                f"model must not hold a dictionary with keys of type {key['__class__']}, "
                "which a file would give back as others: use numbers or text "
                "(as in class_weight={0: 1, 1: 5})"
            )


def _found(module: str, name: str) -> bool:
    return hasattr(sys.modules.get(module), name) or hasattr(importlib.import_module(module), name)


def _compare_versions(header: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    written = header.get("libraries", {})
    for name in COMPARED:
        was, now = written.get(name), _version(name)
        if was and now and was != now:
            warnings.warn(
                f"{os.fspath(path)} was written with {name} {was} and is read with {now}: its "
                f"predictions may differ, or fail; install {name}=={was}, or fit the model again",
                UserWarning,
                stacklevel=3,
            )


def _require(name: str, path: str | os.PathLike[str]) -> None:
    if name in COMPARED and _version(name) is None:
        raise ImportError(
            f"{os.fspath(path)} holds a model made with {name}: install it with pip install {name}"
        )


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _skops() -> Any:
    try:
        import skops.io
    except ImportError as missing:
        raise ImportError(
            "model files need skops: install it with pip install 'vennforest[all]'"
        ) from missing
    return skops.io


def _listed(names: Sequence[str], most: int = 6) -> str:
    shown = ", ".join(names[:most])
    return shown + (f" and {len(names) - most} more types" if len(names) > most else "")
