"""Compiled loops over packed trees: arrays in, arrays out.

A node is four uint32 words, ``(threshold, feature, first, value)``. Numbers are compared by *keys*:
uint32 words in the order of the float32 numbers they stand for, NaN below them all. A step is
``at = first + 4 * (key[feature] + value > threshold)``, without a branch:

- ``first`` is the place of the left child, the right child follows it;
- ``value`` is 0 where missing values go left. Where they go right it is 2**32 - 1, that is minus
  one, and one is taken off the threshold, so that the NaN key alone wraps around to the top;
- a leaf is its own ``first`` and no key exceeds its threshold 2**32 - 1; its ``value`` is the row
  of its class distribution in the forest's table.

Indices are uint64 throughout, which spares numba's test for negative ones.
"""

from typing import Any

import numpy as np

from vennforest._jit import kernel

Word = Any
Words = Any
Floats = Any
Integer = Any

LEAF = np.uint32(0xFFFFFFFF)
NAN_KEY = np.uint32(0)
ZERO_KEY = np.uint32(0x80000000)
ONE, TWO, THREE, FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)

MORE_STEPS = 4
"""Steps between two looks at who has arrived, after the first of them."""

WALKERS = 1024
"""With fewer rows than this, several trees are walked at once."""


@kernel
def order_key(bits: Word) -> Word:
    """Return the key of the float32 number with these uint32 bits."""
    size = bits & np.uint32(0x7FFFFFFF)
    if size > np.uint32(0x7F800000):
        return NAN_KEY
    if size == np.uint32(0):
        return ZERO_KEY  # of -0.0 too
    if bits != size:
        return np.uint32(~bits)
    return np.uint32(bits | ZERO_KEY)


@kernel
def pack_tree(
    left: Words,
    right: Words,
    feature: Words,
    threshold: Floats,
    missing_left: Words,
    values: Words,
    offset: Integer,
    nodes: Words,
    table: Words,
    slots: Words,
    n: Integer,
) -> Integer:
    """Write one tree breadth-first from node ``offset`` on; return the table's number of rows.

    The first six arrays are scikit-learn's, of shape (n_nodes,), the last of them, ``values``, of
    shape (n_nodes, k) and as uint64 bits. ``table`` (capacity, k) holds the ``n`` distinct leaf
    distributions met so far, and ``slots`` is the hash table that finds them: row + 1, or 0.
    """
    rounded = np.empty(left.size, np.float32)
    for i in range(left.size):
        rounded[i] = threshold[i]
    bits = rounded.view(np.uint32)
    queue = np.empty(left.size, np.uint32)
    queue[0] = 0
    tail = ONE
    start = np.uint64(offset)
    for i in range(left.size):
        old = np.uint64(queue[np.uint64(i)])
        at = FOUR * (start + np.uint64(i))
        if left[old] < 0:
            row = find_row(values, old, table, slots, n)
            n += row == n
            nodes[at] = LEAF
            nodes[at + ONE] = 0
            nodes[at + TWO] = at
            nodes[at + THREE] = row
            continue
        # Rounded down, so that the same float32 numbers are not above the threshold.
        key = order_key(bits[old]) - np.uint32(rounded[old] > threshold[old])
        missing_right = np.uint32(not missing_left[old])
        nodes[at] = key - missing_right
        nodes[at + ONE] = feature[old]
        nodes[at + TWO] = FOUR * (start + tail)
        nodes[at + THREE] = -missing_right
        queue[tail] = left[old]
        queue[tail + ONE] = right[old]
        tail += TWO
    return n


@kernel
def find_row(words: Words, at: Integer, table: Words, slots: Words, n: Integer) -> Integer:
    """Return the row of ``table`` that equals ``words[at]``, added as row n if none does."""
    mask = np.uint64(slots.size - 1)
    slot = hash_of(words, at) & mask
    while slots[slot] != 0:
        row = np.uint64(slots[slot] - 1)
        same = True
        for j in range(table.shape[1]):
            same &= table[row, np.uint64(j)] == words[at, np.uint64(j)]
        if same:
            return np.int64(row)
        slot = (slot + ONE) & mask
    slots[slot] = n + 1
    for j in range(table.shape[1]):
        table[n, j] = words[at, np.uint64(j)]
    return n


@kernel
def fill_slots(table: Words, n: Integer, slots: Words) -> None:
    """Enter the first n rows of the table, all different, into empty slots."""
    mask = np.uint64(slots.size - 1)
    for row in range(n):
        slot = hash_of(table, np.uint64(row)) & mask
        while slots[slot] != 0:
            slot = (slot + ONE) & mask
        slots[slot] = row + 1


@kernel
def hash_of(words: Words, at: Integer) -> Word:
    """Return a uint64 hash of row ``at`` of uint64 words."""
    h = np.uint64(0)
    for j in range(words.shape[1]):
        h = (h ^ words[at, np.uint64(j)]) * np.uint64(0x9E3779B97F4A7C15)
        h ^= h >> np.uint64(29)
    return h ^ (h >> np.uint64(32))


@kernel
def step(nodes: Words, keys: Words, row: Integer, at: Integer) -> Integer:
    """Return the child of node ``at`` that the row whose keys begin at ``row`` goes to."""
    key = keys[row + np.uint64(nodes[at + ONE])]
    right = np.uint32(key + nodes[at + THREE]) > nodes[at]
    return np.uint64(nodes[at + TWO]) + (np.uint64(right) << TWO)


@kernel
def land(nodes: Words, at: Words, going: Words, n: Integer, walker: Integer, place: Word) -> Word:
    """Note where a walker is; return n, plus one if it still has to go on."""
    at[walker] = place
    going[n] = walker
    return n + np.uint64(nodes[place] != LEAF)


@kernel
def walk(
    nodes: Words, keys: Words, row: Words, at: Words, going: Words, n: Integer, steps: Integer
) -> None:
    """Send n walkers down from the nodes ``at``, each with the keys from ``row`` on, to leaves.

    Eight walk side by side, so that their loads overlap; who has arrived after ``steps`` steps
    drops out. ``going`` (n,) is scratch space.
    """
    for i in range(n):
        going[np.uint64(i)] = i
    while n > 0:
        kept = np.uint64(0)
        whole = n - n % 8
        for i in range(0, whole, 8):
            o = np.uint64(i)
            w0, w1 = np.uint64(going[o]), np.uint64(going[o + ONE])
            w2, w3 = np.uint64(going[o + TWO]), np.uint64(going[o + THREE])
            o += FOUR
            w4, w5 = np.uint64(going[o]), np.uint64(going[o + ONE])
            w6, w7 = np.uint64(going[o + TWO]), np.uint64(going[o + THREE])
            r0, r1, r2, r3 = row[w0], row[w1], row[w2], row[w3]
            r4, r5, r6, r7 = row[w4], row[w5], row[w6], row[w7]
            a0, a1, a2, a3 = at[w0], at[w1], at[w2], at[w3]
            a4, a5, a6, a7 = at[w4], at[w5], at[w6], at[w7]
            for _ in range(steps):
                a0, a1 = step(nodes, keys, r0, a0), step(nodes, keys, r1, a1)
                a2, a3 = step(nodes, keys, r2, a2), step(nodes, keys, r3, a3)
                a4, a5 = step(nodes, keys, r4, a4), step(nodes, keys, r5, a5)
                a6, a7 = step(nodes, keys, r6, a6), step(nodes, keys, r7, a7)
            kept = land(nodes, at, going, kept, w0, a0)
            kept = land(nodes, at, going, kept, w1, a1)
            kept = land(nodes, at, going, kept, w2, a2)
            kept = land(nodes, at, going, kept, w3, a3)
            kept = land(nodes, at, going, kept, w4, a4)
            kept = land(nodes, at, going, kept, w5, a5)
            kept = land(nodes, at, going, kept, w6, a6)
            kept = land(nodes, at, going, kept, w7, a7)
        for i in range(whole, n):
            walker = np.uint64(going[np.uint64(i)])
            place = at[walker]
            for _ in range(steps):
                place = step(nodes, keys, row[walker], place)
            kept = land(nodes, at, going, kept, walker, place)
        n = np.int64(kept)
        steps = min(steps, MORE_STEPS)


@kernel
def score_rows(
    nodes: Words,
    roots: Words,
    bits: Words,
    membership: Words,
    examples: Words,
    table: Floats,
    steps: Integer,
    means: Floats,
    leaves: Words,
) -> None:
    """Walk rows through their trees; write the means of the leaves' values, or the leaves.

    Parameters
    ----------
    nodes : uint32 array of shape (4 * n_nodes,)
    roots : uint32 array of shape (n_trees,)
        Each tree's root's place in ``nodes``.
    bits : uint32 array of shape (m, n_features)
        float32 numbers.
    membership : uint64 array of shape (n_trees, n_words)
        Which tree may score whom.
    examples : int64 array of shape (m,)
        The bit of ``membership`` that decides for a row; -1: every tree scores it.
    table : float64 array of shape (n_values, c)
    steps : int
        How many steps to take before looking who has arrived.
    means : float64 array of shape (m, c)
        Zeros; becomes the mean over a row's trees, summed in their order, NaN without a tree.
    leaves : uint32 array of shape (m, n_trees) or (m, 0)
        Unless it has no columns, becomes the row of the table for each tree that scores a row,
        and ``means`` is left alone.
    """
    m, n_features = bits.shape
    keys = np.empty(m * n_features, np.uint32)
    for i in range(m):
        for j in range(n_features):
            keys[i * n_features + j] = order_key(bits[i, j])
    counts = np.zeros(m, np.int64)
    at_once = min(max(1, WALKERS // m), roots.size)
    of_row = np.empty(m * at_once, np.uint64)
    row = np.empty(m * at_once, np.uint64)
    at = np.empty(m * at_once, np.uint64)
    going = np.empty(m * at_once, np.uint32)
    for first in range(0, roots.size, at_once):
        n = np.uint64(0)
        for tree in range(first, min(first + at_once, roots.size)):
            for i in range(m):
                example = np.uint64(max(examples[i], 0))
                word = membership[np.uint64(tree), example >> np.uint64(6)]
                of_row[n] = i
                row[n] = i * n_features
                at[n] = roots[tree]
                n += (word >> (example & np.uint64(63))) & ONE | np.uint64(examples[i] < 0)
        walk(nodes, keys, row, at, going, np.int64(n), steps)
        if leaves.shape[1] > 0:
            for w in range(n):
                tree = (
                    first + np.int64(w) // m
                )  # leaves are asked for with every tree for every row
                leaves[of_row[np.uint64(w)], tree] = nodes[at[np.uint64(w)] + THREE]
            continue
        for w in range(n):
            i = of_row[np.uint64(w)]
            value = np.uint64(nodes[at[np.uint64(w)] + THREE])
            counts[i] += 1
            for j in range(table.shape[1]):
                means[i, np.uint64(j)] += table[value, np.uint64(j)]
    if leaves.shape[1] == 0:
        for i in range(m):
            for j in range(table.shape[1]):
                means[i, j] = means[i, j] / counts[i] if counts[i] > 0 else np.nan


@kernel
def clear_bits(indices: Words, bits: Words) -> None:
    """Take the bits at these int64 places out of the uint64 words ``bits``."""
    for i in range(indices.size):
        place = np.uint64(indices[i])
        bits[place >> np.uint64(6)] &= ~(ONE << (place & np.uint64(63)))


@kernel
def count_bits(bits: Words, counts: Words) -> None:
    """Add to ``counts`` (n,) how many rows of ``bits`` (n_rows, n_words) have each bit set."""
    for t in range(bits.shape[0]):
        for i in range(counts.size):
            counts[i] += (bits[t, i >> 6] >> np.uint64(i & 63)) & ONE
