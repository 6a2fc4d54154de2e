"""What a model file describes, checked before any object is made of it.

skops reads a file to nodes, one an object, and then makes the objects. Between the two it asks
whether the types are trusted; here we ask whether what their constructors take is what it should
be, since some of these are compiled code that believes it.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import numpy as np

from vennforest._loaded import expect, expect_array, expect_number
from vennforest.persistence.archive import check_nested

SCALARS = "biufSUMm"
"""Kinds of numpy's numbers, texts and dates: the only scalars that are made from arrays."""


def check_nodes(root: Any, shown: str) -> None:
    """Refuse nodes of which no object may be made.

    Parameters
    ----------
    root : skops node
        Audited: all types are trusted.
    shown : str
        What error messages call the file.

    Raises
    ------
    ValueError
        If an array is not as long as it says, a scalar is none, or a tree has other outputs than
        numbers of classes.
    InputError
        If an array unpacks to too much.
    """
    for node in _nodes(root):
        kind = type(node).__name__
        if kind == "NdArrayNode" and node.type == "numpy":
            _check_array(node)
        elif kind == "SparseMatrixNode":
            check_nested(node.children["content"], shown)
        elif kind == "TreeNode":
            _check_tree(node.children["args"].construct())


def _nodes(root: Any) -> Iterator[Any]:
    """Yield every node once, children before their parents."""
    seen: set[int] = set()
    todo: list[tuple[Any, bool]] = [(root, False)]
    while todo:
        node, done = todo.pop()
        if done:
            yield node
            continue
        if isinstance(node, dict):
            todo.extend((child, False) for child in node.values())
        elif isinstance(node, list | tuple):
            todo.extend((child, False) for child in node)
        elif hasattr(node, "children") and id(node) not in seen:
            seen.add(id(node))
            todo.append((node, True))
            todo.extend((child, False) for child in node.children.values())


def _check_array(node: Any) -> None:
    """Refuse an array whose bytes are more or less than those of its numbers."""
    content: io.BytesIO = node.children["content"]
    if node.class_name != "ndarray":
        found = getattr(np, node.class_name, None)
        sound = isinstance(found, type) and issubclass(found, np.generic)
        expect(
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
        expect_number(length, "the length of an array", 0, 2**62, integer=True)
        numbers *= int(length)
    left = len(content.getbuffer()) - content.tell()
    content.seek(0)
    expect(not dtype.hasobject, "an array must hold no objects")
    expect(numbers * dtype.itemsize == left, "an array must be as long as it says")
    expect(node.class_name == "ndarray" or numbers == 1, "a number must be one")


def _check_tree(args: Any) -> None:
    """Refuse what scikit-learn's tree is made from, unless there are as many classes as outputs."""
    expect(isinstance(args, tuple) and len(args) == 3, "a tree must be made from three numbers")
    n_features, n_classes, n_outputs = args
    expect_number(n_features, "n_features", 1, 2**31 - 1, integer=True)
    expect_number(n_outputs, "n_outputs", 1, 2**20, integer=True)
    expect_array(n_classes, "n_classes", (int(n_outputs),), "i", 1, 2**20)
    expect(n_classes.dtype == np.intp, "n_classes must be of a platform's own integers")
