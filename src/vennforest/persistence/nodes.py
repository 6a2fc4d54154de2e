"""Objects made of what a model file describes, each checked before and after it is made.

skops reads a file to nodes, one an object, asks whether their types are trusted, and then makes the
objects. Here we ask whether what their constructors take is what it should be, since some of these
are compiled code that believes it, and of what was made whether ``fit`` could have left it.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from vennforest._validation import InputError, check_array, check_number, require
from vennforest.persistence.archive import check_nested
from vennforest.persistence.estimators import check_part

SCALARS = "biufSUMm"
"""Kinds of numpy's numbers, texts and dates: the only scalars that are made from arrays."""


def construct(root: Any, shown: str) -> Any:
    """Return the object that a tree of audited nodes describes, each part checked once it is made.

    Compiled code follows places in arrays without looking, scikit-learn's as well as ours: a
    forged file could read memory that is not its own. And a number that is not a probability would
    be shown as one. What is ours checks itself when it is constructed; what is scikit-learn's is
    checked by the rules of ``vennforest.persistence.estimators``. Parts are made before what they
    are parts of, so no constructor and no rule meets one that was not checked.
    """
    for node in _nodes(root):
        kind = type(node).__name__
        if kind == "CachedNode":  # stands for another
            continue
        if kind == "NdArrayNode" and node.type == "numpy":
            _check_array(node)
        elif kind == "SparseMatrixNode":
            check_nested(node.children["content"], shown)
        elif kind == "TreeNode":
            _check_tree(node.children["args"].construct())
        made = node.construct()
        tame(made)
        check_part(made)
    return root.construct()


def _nodes(root: Any) -> Iterator[Any]:
    """Yield every node once, children before their parents."""
    seen: set[int] = set()
    todo: list[tuple[Any, bool]] = [(root, False)]
    while todo:
        node, done = todo.pop()
        if done:
            yield node
        elif isinstance(node, dict):
            todo.extend((child, False) for child in node.values())
        elif isinstance(node, list | tuple):
            todo.extend((child, False) for child in node)
        elif hasattr(node, "children") and id(node) not in seen:
            seen.add(id(node))
            todo.append((node, True))
            todo.append((getattr(node, "cached", None), False))
            todo.extend((child, False) for child in node.children.values())


def tame(thing: Any) -> None:
    """Take from a part what would write to files or the terminal, or start too many threads.

    None of it has to do with a prediction.

    ``memory`` is a folder that joblib unpickles from, ``verbose`` prints, and ``n_jobs`` is at most
    the number of processors here. A vectorizer that reads files whose names are in its input
    is refused.
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


@cache
def _processors() -> int:
    return os.cpu_count() or 1


def _check_array(node: Any) -> None:
    """Refuse an array whose bytes are more or less than those of its numbers."""
    content: io.BytesIO = node.children["content"]
    if node.class_name != "ndarray":
        found = getattr(np, node.class_name, None)
        sound = isinstance(found, type) and issubclass(found, np.generic)
        require(
            sound and np.dtype(found).kind in SCALARS and found is not np.void,
            f"{node.class_name} must be a number",
        )
    content.seek(0)
    version = np.lib.format.read_magic(content)
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(version)
    if read is None:
        raise ValueError(f"an array must be of numpy's format 1 or 2, got {version}")
    shape, _, dtype = read(content)
    numbers = 1
    for length in shape:
        check_number(length, "the length of an array", 0, 2**62, integer=True)
        numbers *= int(length)
    left = len(content.getbuffer()) - content.tell()
    content.seek(0)
    require(not dtype.hasobject, "an array must contain no objects")
    require(numbers * dtype.itemsize == left, "an array must be as long as it says")
    require(node.class_name == "ndarray" or numbers == 1, "a number must be one")


def _check_tree(args: Any) -> None:
    """Refuse what scikit-learn's tree is made from, unless there are as many classes as outputs."""
    require(isinstance(args, tuple) and len(args) == 3, "a tree must be made from three numbers")
    n_features, n_classes, n_outputs = args
    check_number(n_features, "n_features", 1, 2**31 - 1, integer=True)
    check_number(n_outputs, "n_outputs", 1, 2**20, integer=True)
    check_array(n_classes, "n_classes", (int(n_outputs),), "i", 1, 2**20)
    require(n_classes.dtype == np.intp, "n_classes must be of a platform's own integers")
