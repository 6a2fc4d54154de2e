"""Models in files: data that is read, never code that runs."""

from __future__ import annotations

import json
import os
import platform
import warnings
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from vennforest._files import one_line, written_whole
from vennforest._messages import listed, warn
from vennforest._program import __version__
from vennforest._state import STORED
from vennforest._validation import InputError
from vennforest.calibrators import Calibrator
from vennforest.classifier import CalibratedClassifier
from vennforest.monitoring import Monitor
from vennforest.persistence.archive import (
    FORMAT,
    HEADER,
    SCHEMA,
    header_of,
    opened_archive,
)
from vennforest.persistence.estimators import MOST_FEATURES
from vennforest.persistence.forests import array_types
from vennforest.persistence.nodes import construct
from vennforest.persistence.skops_nodes import (
    check_states,
    named_types,
    stored_types,
    taught_skops,
)
from vennforest.persistence.trusted import import_skops, register_own, trusted_among
from vennforest.tables.columns import TableColumns

LONGEST = 300
"""Characters of an estimator's text that are kept."""


def describe(model: Any) -> dict[str, Any]:
    """Return what a fitted model is, as text and numbers; see `read_header`."""
    found: dict[str, Any] = {"written": datetime.now(UTC).isoformat(timespec="seconds")}
    if hasattr(model, "model"):  # a monitor, which may be of no model
        inner = {} if model.model is None else describe(model.model)
        return {**found, **inner}
    if isinstance(model, Calibrator):
        examples = getattr(model, "n_given", None) or None  # from counts alone it knows of none
        return {**found, "method": _text(model), "calibration_examples": examples}
    if not hasattr(model, "method"):  # watched as it is, without calibration
        return {**found, "estimator": _estimator(model)}
    method = model.method if isinstance(model.method, str) else _text(model.method)
    found |= {"method": method, "merge": model.merge}
    fitted = model._state
    parts = fitted.folds
    found |= {
        "estimator": _estimator(parts[0].estimator) if parts else "",
        "estimators": len(parts),
        "calibrate_on": model.calibrate_on_,
        "reason": model.calibrate_on_reason_,
        "calibration_examples": sum(len(part.codes) for part in parts),
        "rows": fitted.n_rows,
    }
    if fitted.shift is not None:
        found["prior"] = dict(zip(map(str, model.classes_), model.prior_.tolist(), strict=True))
    if fitted.by is not None:
        found |= {"by": _text(model.by), "groups": len(model.grouping_)}
    if model.calibrate_on_ == "oob":
        found |= {"subforest": model.subforest}
    return found


def _estimator(fitted: Any) -> str:
    """Return a fitted model as text; of a pipeline its steps."""
    if isinstance(fitted, Pipeline):
        return ", then ".join(_text(step) for _, step in fitted.steps)
    return _text(fitted)


def _text(thing: Any) -> str:
    text = " ".join(repr(thing).split())
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


MODELS = (
    CalibratedClassifier,
    Calibrator,
    Monitor,
)
LIBRARIES = ("scikit-learn", "numpy", "scipy", "skops")
"""Written into every file, with those that the model's own types come from."""

COMPARED = ("scikit-learn", "skrub", "xgboost", "lightgbm", "catboost")
"""A model fitted with one version of these may answer otherwise with another."""

FIRST_PROTOCOL = 2
"""Of skops: what its lowest supported version writes; nodes of older ones are checked less."""

PACKAGES = {"sklearn": "scikit-learn"}


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file that contains data alone.

    The file is written whole or not at all. Beside the model it says the version of the format
    and of the libraries, the names of the features and the classes. The ``memory`` of a pipeline,
    a folder of its own, is left out.

    Parameters
    ----------
    model : CalibratedClassifier, calibrator or Monitor
        Fitted.
    path : path-like
        By custom ``*.skops``.

    Raises
    ------
    TypeError
        If it is not a model of vennforest, or contains what a file of data cannot: a function with
        no name that can be imported, or an object that skops does not know.
    InputError
        A ``ValueError``: a parameter or an attribute was set after ``fit`` to what ``fit`` would
        not have left, so ``load`` would refuse the file.

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
    ``vennforest fit`` uses; a file with any other is refused, and the type named. So is one that
    ``fit`` could not have left: trees, step tables and bit sets that do not belong together. What
    does not bear on predictions is taken from it: ``memory``, ``verbose``, and an ``n_jobs`` above
    the number of processors.

    Parameters
    ----------
    path : path-like
        As ``save`` wrote it.
    trusted : sequence of str or type
        More types that may be made, such as ``"xgboost.sklearn.XGBClassifier"``: only those you
        know, from a file you know.

    Returns
    -------
    CalibratedClassifier, calibrator or Monitor
        Its predictions are those of the model that was saved, to the last bit.

    Raises
    ------
    InputError
        A ``ValueError``: it is not a model file, damaged, of a newer format, or contains unknown
        types.
    ImportError
        If a library that the model was made with is not installed.

    Warns
    -----
    UserWarning
        If it was written with another version of scikit-learn or skrub, or of a library that one
        of its models comes from.
    """
    import_skops()
    shown = os.fspath(path)
    extra = [t if isinstance(t, str) else f"{t.__module__}.{t.__qualname__}" for t in trusted]
    with opened_archive(path) as archive:
        header = header_of(archive, shown)
        _compare_versions(header, shown)
        for name in header.get("libraries", {}):
            _require(name, shown)
        try:
            return _construct(archive, shown, extra)
        except (InputError, MemoryError):
            raise
        except Exception as error:  # whatever a damaged or forged file may lead to
            raise InputError(
                f"{shown} is damaged: {one_line(error)}{_other_versions(header)}"
            ) from error


def _construct(archive: zipfile.ZipFile, shown: str, extra: Sequence[str] | None) -> Any:
    """Make the object that the archive describes, once its types and sizes are seen to be right.

    What ``skops.io.load`` does, with a look at the nodes between its steps; ``extra`` None trusts
    all types.
    """
    from skops.io._audit import get_tree
    from skops.io._protocol import PROTOCOL
    from skops.io._utils import read_schema

    taught_skops()
    schema, context = read_schema(archive)
    if not FIRST_PROTOCOL <= context.protocol <= PROTOCOL:
        raise InputError(f"{shown} is damaged: it is of protocol {context.protocol} of skops")
    _check_registered(stored_types(schema), shown)
    every = named_types(schema)
    known = [*trusted_among(every), *extra] if extra is not None else list(every)
    root = get_tree(schema, context, trusted=known)
    unknown = sorted(root.get_unsafe_set() - set(known))
    if unknown:
        raise InputError(
            f"{shown} contains {listed(unknown, 6, str)}, which vennforest does not make by "
            "itself: if you know who wrote the file, and trust these types, load it with "
            f"vennforest.load(path, trusted={unknown!r}), or vennforest predict with --trust for "
            "each"
        )
    content = construct(root, shown)
    if not isinstance(content, MODELS):
        raise InputError(
            f"{shown} must contain a model of vennforest, got {type(content).__name__}"
        )
    if extra is not None and not extra:  # other types may take other rows
        _ask(getattr(content, "model", content))
    return content


def _ask(model: Any) -> None:
    """Ask a classifier about one row, which finds parts that do not fit together.

    Only where any row may be asked about: a forest takes zeros, and a table may lack all cells.
    """
    if not isinstance(model, CalibratedClassifier) or model.by is not None:
        return
    asked = [fold.estimator for fold in model._state.folds]
    tables = [isinstance(one, Pipeline) and isinstance(one[0], TableColumns) for one in asked]
    forests = [type(one) in array_types() for one in asked]
    if not all(tables) and not all(forests):
        return
    row: Any = np.zeros((1, min(model.n_features_in_, MOST_FEATURES)))
    if all(tables):
        import pandas as pd

        row = pd.DataFrame(np.nan, index=[0], columns=asked[0][0].feature_names_in_)
    with warnings.catch_warnings(), np.errstate(all="ignore"), suppress(ValueError):
        warnings.simplefilter("ignore")  # a row without the names of its columns
        model.predict_proba(row)


def _check_registered(named: Iterable[tuple[str, str]], shown: str) -> None:
    """Refuse stored types that nothing has registered, once our own modules have."""
    for package, name in sorted(named):
        if name in STORED:
            continue
        if package == "vennforest":
            register_own()
        if name not in STORED:
            raise InputError(
                f"{shown} contains {name!r}, which {package} registers: import {package} before "
                "vennforest.load"
                if package != "vennforest"
                else f"{shown} is damaged: vennforest has no type {name!r}"
            )


def _other_versions(header: Mapping[str, Any]) -> str:
    """Return what to install where the reason may be another version than at ``save``."""
    written = header.get("libraries", {})
    others = [f"{n}=={written[n]}" for n in COMPARED if written.get(n, _version(n)) != _version(n)]
    return f"; it was written with {' and '.join(others)}, which may read it" if others else ""


def write_model(
    model: Any, path: str | os.PathLike[str], about: Mapping[str, Any] | None = None
) -> None:
    """Write a model with more about it in the header, such as the columns it was fitted to."""
    if not isinstance(model, MODELS):
        raise TypeError(
            "model must be a CalibratedClassifier, calibrator or Monitor, got "
            f"{type(model).__name__}"
        )
    check_is_fitted(model, "classes_")
    by = getattr(model, "by", None)
    if callable(by) or callable(getattr(by, "by", None)):
        raise TypeError(
            "model must be grouped by a column to be saved, got one grouped by a function, which "
            "a file of data cannot contain: put its labels into a column of X"
        )
    import_skops()
    with written_whole(path) as part:
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
            origins = _write(model, file)
        check_readable(part)
        with zipfile.ZipFile(part, "a", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
            header = {**_header(model, origins), **(about or {})}
            file.writestr(HEADER, json.dumps(header, indent=2, ensure_ascii=False))


def _write(model: Any, file: zipfile.ZipFile) -> set[str]:
    """Write what a model is made of; return the packages that its types come from."""
    from skops.io._utils import get_state

    context = taught_skops()(zip_file=file)
    try:
        state = get_state(model, context)
    except OSError:  # of the file, not of the model
        raise
    except Exception as error:
        raise TypeError(
            "model must consist of what a file of data can contain, "
            f"got something it cannot: {one_line(error)}"
        ) from error
    # What skops.io.dump writes, but for white space: that takes most of its time.
    state["protocol"] = context.protocol
    state["_skops_version"] = version("skops")
    origins = set(check_states(state))
    try:
        file.writestr(SCHEMA, json.dumps(state))
    except TypeError as error:
        raise TypeError(
            f"model must contain dictionaries with keys of text or numbers alone: {error}"
        ) from error
    return origins


def check_readable(path: Path) -> None:
    """Refuse a file that ``load`` would refuse, by reading it."""
    with opened_archive(path) as archive:
        try:
            _construct(archive, "model", None)
        except MemoryError:
            raise
        except Exception as error:  # a parameter of any type, an attribute that is gone
            raise InputError(
                "model must be as fit left it to be saved, got one that was changed: "
                f"{one_line(error)}"
            ) from error


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
        "description": describe(model),
    }


def _compare_versions(header: Mapping[str, Any], shown: str) -> None:
    written = header.get("libraries", {})
    for name in COMPARED:
        was, now = written.get(name), _version(name)
        if was and now and was != now:
            warn(
                f"{shown} was written with {name} {was} and is read with {now}: its "
                f"predictions may differ, or fail; install {name}=={was}, or fit the model again"
            )


def _require(name: str, shown: str) -> None:
    if name in COMPARED and _version(name) is None:
        raise ImportError(
            f"{shown} contains a model made with {name}: install it with pip install {name}"
        )


@cache  # what is installed is looked for on the disk
def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
