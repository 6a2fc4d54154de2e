"""What the leaves of a forest contain, and which examples are out of bag in them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import attrs
import numpy as np
from numpy.typing import NDArray

from vennforest._state import stored
from vennforest._validation import CodeArray, FloatArray, IntArray, array, require
from vennforest.forest.membership import Membership
from vennforest.forest.packed import PackedForest

CELLS_AT_ONCE = 1 << 24
"""Leaves of examples that are held at once, at least those of one tree."""

TOLERANCE = 1e-6
"""How far a leaf's distribution may be from what its bag's examples give: weights round."""


@stored("leaf-index")
@attrs.frozen(eq=False)
class LeafIndex:
    """From the leaves of a packed forest to the examples that are out of bag in them.

    ``totals`` (n_nodes,): weight of the bag's examples in each node, 0 in inner nodes;
    ``examples`` (n_pairs,): calibration examples that are out of bag in a tree, leaf by leaf;
    ``begins`` (n_nodes + 1,): where each node's begin. With bags of n draws about 1.5 bytes for
    each example and tree.
    """

    totals: FloatArray = attrs.field(validator=array(None, low=0))
    begins: NDArray[np.int64] = attrs.field(validator=array(None, kinds="i", low=0))
    examples: NDArray[np.int32] = attrs.field(validator=array(None, kinds="i", low=0))

    def __attrs_post_init__(self) -> None:
        begins, examples = self.begins, self.examples
        require(begins.dtype == np.int64, "begins must be of type int64")
        require(examples.dtype == np.int32, "examples must be of type int32")
        require(len(begins) == len(self.totals) + 1, "begins must be of every node, and one more")
        require(begins[0] == 0 and begins[-1] == len(examples), "begins must be of all examples")
        require((begins[1:] >= begins[:-1]).all(), "begins must not decrease")

    @classmethod
    def build(
        cls,
        forest: PackedForest,
        X: Any,
        codes: CodeArray,
        bags: Iterable[FloatArray],
        membership: Membership,
        numbers: IntArray,
        n_jobs: int | None = None,
    ) -> Self:
        """Send the training examples (n, d), of class numbers (n,), through all trees.

        ``bags`` gives for each tree what each example weighs in its leaves, (n,): 0 where it is not
        in the bag. ``numbers`` (n,) are those among the calibration examples; -1: it is none.
        """
        n, k = len(codes), len(forest.classes_)
        edges = np.append(forest.roots // 4, len(forest.nodes)).astype(np.int64)
        totals = np.zeros(len(forest.nodes))
        begins = np.zeros(len(forest.nodes) + 1, np.int64)
        found: list[NDArray[np.int32]] = []
        rows = forest.check_rows(X)
        each = iter(bags)
        at_once = max(1, CELLS_AT_ONCE // n)
        for first in range(0, len(forest), at_once):
            part = slice(first, first + at_once)
            places = np.ascontiguousarray(forest.leaves(rows, part, n_jobs=n_jobs).T)
            free = Membership(membership.bits[part], n).dense()
            for t, (nodes, outside) in enumerate(zip(places, free, strict=True), first):
                start, stop = edges[t], edges[t + 1]
                leaf = nodes.astype(np.int64) - start
                contents = class_weights(leaf, codes, next(each), int(stop - start), k)
                totals[start:stop] = contents.sum(axis=1)
                _check_contents(forest, contents, start, t)
                out = np.flatnonzero(outside & (numbers >= 0))
                found.append(numbers[out[np.argsort(leaf[out], kind="stable")]].astype(np.int32))
                begins[start + 1 : stop + 1] = np.bincount(leaf[out], minlength=stop - start)
        return cls(totals, np.cumsum(begins), np.concatenate(found))


def class_weights(
    nodes: IntArray, codes: CodeArray, weight: FloatArray, n_nodes: int, k: int
) -> FloatArray:
    """Return the weight of each class in each node, (n_nodes, k), of examples (n,) in nodes."""
    contents = np.bincount(nodes * k + codes, weight, n_nodes * k)
    return contents.reshape(n_nodes, k).astype(np.float64)


def _check_contents(forest: PackedForest, contents: FloatArray, start: int, tree: int) -> None:
    """Refuse a tree whose leaves contain something else than these contents (n_nodes, k)."""
    total = contents.sum(axis=1)
    used = np.flatnonzero(total > 0)
    held = forest.distributions[forest.nodes[start + used, 3]]
    off = np.abs(contents[used] / total[used, None] - held)
    if off.size and off.max() > TOLERANCE:
        worst = int(off.max(axis=1).argmax())
        raise ValueError(
            "forest must contain in each leaf the class frequencies of the examples in its tree's "
            f"bag, got {held[worst].tolist()} where tree {tree} drew "
            f"{contents[used[worst]].tolist()}: its trees were grown from other samples than "
            "estimators_samples_ says, or their leaves were changed (as monotonic_cst does)"
        )
