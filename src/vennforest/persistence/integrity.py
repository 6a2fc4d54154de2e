"""Checks of what was made from a file: that every part is one that ``fit`` could have left."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator

from vennforest._files import one_line
from vennforest._validation import InputError
from vennforest.persistence.estimators import RULES

PLAIN = (str, bytes, int, float, bool, type(None), type, np.generic, np.dtype)


def check_structure(model: Any, name: str) -> None:
    """Refuse a model that ``fit`` could not have left, and take from it what acts on its own.

    Compiled code follows places in arrays without looking, scikit-learn's as well as ours: a
    forged file could read memory that is not its own. And a number that is not a probability would
    be shown as one. What is ours checks itself (``check_loaded``); what is scikit-learn's is
    checked by the rules of ``vennforest.persistence.estimators``.

    Parameters
    ----------
    model : object
        As it was read.
    name : str
        What the error message calls the file.

    Raises
    ------
    InputError
        If a part is none that ``fit`` could have left: a tree whose child, feature or class does
        not exist, a step table that falls, bits of other examples.
    """
    try:
        parts = list(_parts(model))
    except ValueError as error:
        raise InputError(f"{name} is damaged: {error}") from error
    for thing in parts:
        tame(thing)
    # First of all parts what compiled code follows, then what may ask a part for something.
    for last in (False, True):
        for thing in parts:
            for kind, rule, after in RULES:
                if after is last and isinstance(thing, kind):
                    _check(rule, thing, name)
    for thing in parts:
        if is_dataclass(thing):
            _check(_check_fields, thing, name)
        if getattr(type(thing), "check_loaded", None) is not None:
            _check(_check_fitted, thing, name)


def _check(rule: Any, thing: Any, name: str) -> None:
    try:
        rule(thing)
    except MemoryError:
        raise
    except Exception as error:  # a missing attribute, or one of another type
        raise InputError(
            f"{name} is damaged: a {type(thing).__name__} in it is not a result of fit "
            f"({one_line(error)})"
        ) from error


def _check_fields(thing: Any) -> None:
    """Refuse an object that lacks a field."""
    for field in fields(thing):
        getattr(thing, field.name)


def _check_fitted(thing: Any) -> None:
    """Let a part check itself, unless it is an estimator that is but a parameter of another."""
    parameter = isinstance(thing, BaseEstimator) and (
        vars(thing).keys() <= thing.get_params(False).keys()
    )
    if not parameter:
        thing.check_loaded()


def tame(thing: Any) -> None:
    """Take from a part what would write to files or the terminal, or start too many threads.

    None of it has to do with a prediction.

    ``memory`` is a folder that joblib unpickles from, ``verbose`` prints, and ``n_jobs`` is at most
    the number of processors here. A vectorizer that reads files whose names are in its input
    is refused.

    Raises
    ------
    InputError
        If it would read files.
    """
    own = getattr(thing, "__dict__", None)
    if not isinstance(own, dict):
        return
    if own.get("memory") is not None:
        own["memory"] = None
    if own.get("verbose"):
        own["verbose"] = False if own["verbose"] is True else 0
    for name in own.keys() & {"n_jobs", "_n_jobs"}:
        jobs = own[name]
        if jobs is not None and not (type(jobs) is int and jobs and abs(jobs) <= _processors()):
            own[name] = None if type(jobs) is not int or not jobs else _processors()
    if own.get("input", "content") in ("filename", "file"):
        raise InputError(
            f"a {type(thing).__name__} must take texts themselves, got one that reads files whose "
            "names are in its input"
        )


def _processors() -> int:
    return os.cpu_count() or 1


def _parts(model: Any) -> Iterator[Any]:
    """Yield every object that a model consists of, once."""
    seen: dict[int, Any] = {}
    todo = [model]
    while todo:
        thing = todo.pop()
        if isinstance(thing, type) and thing.__module__.partition(".")[0] == "vennforest":
            raise ValueError(f"the class {thing.__name__} stands where one of its objects must")
        if isinstance(thing, PLAIN) or id(thing) in seen:
            continue
        seen[id(thing)] = thing
        if isinstance(thing, np.ndarray):
            if thing.dtype == object:
                todo.extend(thing.ravel().tolist())
            continue
        yield thing
        if isinstance(thing, dict):
            todo.extend(thing.values())
        elif isinstance(thing, list | tuple | set):
            todo.extend(thing)
        elif not issparse(thing):
            todo.extend(getattr(thing, "__dict__", {}).values())
