"""The space of scores cut into cells that hold nearly equally many examples, as by a k-d tree."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vennforest._state import check_array, require
from vennforest._validation import FloatArray, IntArray
from vennforest.calibrators.venn.taxonomy import quantiles

_Node = tuple[int, float, int, int, int]


class CellTree(NamedTuple):
    """A tree whose leaves are cells, the root first; arrays of shape (n_nodes,)."""

    coordinate: IntArray  # the column of scores that the node cuts; 0 in leaves
    cut: FloatArray  # scores at or below it go below; inf in leaves
    below: IntArray  # the child at or below the cut; of a leaf itself
    above: IntArray  # the child above
    cell: IntArray  # the leaf's cell, from 0; -1 in inner nodes


def cut_cells(points: FloatArray, weight: FloatArray, cells: int) -> CellTree:
    """Cut the space of points (n, d) into cells, at most so many.

    Where it is cut, `NeighbourCells` says.
    """
    nodes: list[_Node] = []
    _cut(points, weight, cells, nodes, 0)
    coordinate, cut, below, above, cell = zip(*nodes, strict=True)
    return CellTree(
        np.array(coordinate, np.intp),
        np.array(cut),
        np.array(below, np.intp),
        np.array(above, np.intp),
        np.array(cell, np.intp),
    )


def _cut(
    points: FloatArray, weight: FloatArray, cells: int, nodes: list[_Node], first: int
) -> tuple[int, int]:
    """Append the tree over these points, with cells from ``first`` on.

    Returned is its root, and the first number that is no cell of it.
    """
    at = len(nodes)
    # Halved, so that the spread of huge scores stays finite.
    spread = points.max(axis=0) / 2 - points.min(axis=0) / 2
    widest = int(spread.argmax())
    values = points[:, widest]
    if cells == 1 or values.min() == values.max():
        nodes.append((0, np.inf, at, at, first))
        return at, first + 1
    cut = quantiles(values, weight, np.array([cells // 2]), cells)[0]
    if cut == values.max():
        cut = values[values < cut].max()
    nodes.append((widest, float(cut), 0, 0, -1))
    low = values <= cut
    below, first = _cut(points[low], weight[low], cells // 2, nodes, first)
    above, first = _cut(points[~low], weight[~low], cells - cells // 2, nodes, first)
    nodes[at] = (widest, float(cut), below, above, -1)
    return at, first


def check_tree(tree: CellTree, n_cells: int, columns: int) -> None:
    """Refuse arrays that are no tree of cells over scores of so many columns.

    Every node but the first is a child once, of a node before it, so that there are no circles;
    every cell is that of one leaf.

    Raises
    ------
    ValueError
        Saying which, by the names that `NeighbourCells` keeps them under.
    """
    n = len(tree.cell)
    require(1 <= n_cells <= n, "n_categories_ must be that of the leaves")
    for name, low, high in (
        ("coordinate", 0, columns - 1),
        ("below", 0, n - 1),
        ("above", 0, n - 1),
        ("cell", -1, n_cells - 1),
    ):
        check_array(getattr(tree, name), f"_{name}", (n,), "i", low, high)
    require(tree.cut.shape == (n,) and not np.isnan(tree.cut).any(), "_cut_at is wrong")
    inner = np.flatnonzero(tree.cell < 0)
    below, above = tree.below[inner], tree.above[inner]
    require((below > inner).all() and (above > inner).all(), "children must come after parents")
    children = np.sort(np.concatenate([below, above]))
    require(np.array_equal(children, np.arange(1, n)), "every node must be a child once")
    cells = np.sort(tree.cell[tree.cell >= 0])
    require(np.array_equal(cells, np.arange(n_cells)), "cells must be leaves")


def cell_of(tree: CellTree, points: FloatArray) -> IntArray:
    """Return the cell of each of the points (m, d), shape (m,)."""
    rows = np.arange(len(points))
    node = np.zeros(len(points), np.intp)
    while (tree.cell[node] < 0).any():
        low = points[rows, tree.coordinate[node]] <= tree.cut[node]
        node = np.where(low, tree.below[node], tree.above[node])
    return tree.cell[node]
