"""Compiled loops over packed trees: arrays in, arrays out.

A node is four uint32 words, ``(threshold, feature, first, value)``. Numbers are compared by *keys*:
uint32 words in the order of the float32 numbers they stand for, NaN below them all. A step is
``at = first + 4 * (key[feature] + value > threshold)``, without a branch:

- ``first`` is the place of the left child, the right child follows it;
- ``value`` is 0 where missing values go left. Where they go right it is 2**32 - 1, that is minus
  one, and one is taken off the threshold, so the NaN key alone wraps around to the top;
- a leaf is its own ``first`` and no key exceeds its threshold 2**32 - 1; its ``value`` is the row
  of its class distribution in the forest's table.

Indices are uint64 throughout, which spares numba's test for negative ones.
"""

import numpy as np

from vennforest._jit import kernel

LEAF_KEY = np.uint32(0xFFFFFFFF)
NAN_KEY = np.uint32(0)
ZERO_KEY = np.uint32(0x80000000)
ZERO, ONE, TWO, THREE, FOUR = (np.uint64(i) for i in range(5))

MORE_STEPS = 4
"""Steps between two checks of which walkers have reached a leaf, after the first check."""

WALKERS = 1024
"""Walkers, rows times trees, that go down at once; more only where one tree has more rows."""


@kernel
def order_key(bits):
    """Return the key of the float32 number with these uint32 bits."""
    size = bits & np.uint32(0x7FFFFFFF)
    if size > np.uint32(0x7F800000):
        return NAN_KEY
    if size == np.uint32(0):
        return ZERO_KEY  # of -0.0 too
    # All bits of a negative number change, of a positive one the sign; its branch would be a guess.
    return np.uint32(bits ^ (np.uint32(0) - (bits >> np.uint32(31)) | ZERO_KEY))


@kernel
def pack_tree(
    left, right, feature, threshold, missing_left, values, offset, nodes, table, slots, n
):
    """Write one tree breadth-first from node ``offset`` on; return the table's number of rows.

    The first six arrays are scikit-learn's, of shape (n_nodes,), the last of them, ``values``, of
    shape (n_nodes, k) and as uint64 bits. ``table`` (capacity, k) contains the ``n`` distinct leaf
    distributions met so far, and ``slots`` is the hash table that finds them: row + 1, or 0.
    """
    # 1. Children as pairs, thresholds as float32, and a list of the leaves.
    size = left.size
    rounded = np.empty(size, np.float32)
    keys, features = np.empty(size, np.uint32), np.empty(size, np.uint32)
    shifts, children = np.empty(size, np.uint32), np.empty((size, 2), np.uint32)
    leaves = np.empty(size, np.uint32)
    n_leaves = ZERO
    # Whether a node is a leaf is a coin toss for the processor: no loop branches on it.
    for i in range(size):
        rounded[i] = threshold[i]
        features[i] = max(feature[i], 0)
        children[i, 0], children[i, 1] = left[i], right[i]
        leaves[n_leaves] = i
        n_leaves += np.uint64(left[i] < 0)
    # 2. Keys: the threshold's, less one where missing values go right and wrap around to the top.
    bits = rounded.view(np.uint32)
    for i in range(size):
        # Rounded down, so the same float32 numbers are not above the threshold.
        missing_right = np.uint32(missing_left[i] == 0)
        down = np.uint32(np.float64(rounded[i]) > threshold[i])
        keys[i] = order_key(bits[i]) - down - missing_right
        shifts[i] = np.uint32(0) - missing_right
    # 3. A leaf's key is above all, and its value the row of its distribution in the table.
    for i in range(n_leaves):
        leaf = np.uint64(leaves[i])
        row = find_row(values, leaf, table, slots, n)
        n += row == n
        keys[leaf], shifts[leaf] = LEAF_KEY, row
    # 4. Breadth-first, so siblings lie side by side: the next free place is that of the left
    # child, and a leaf, with no children to queue, gets its own place as ``first``.
    queue = np.zeros(size + 2, np.uint32)
    tail, start = ONE, np.uint64(offset)
    for i in range(size):
        index = np.uint64(i)
        old = np.uint64(queue[index])
        at = FOUR * (start + index)
        inner = np.uint64(keys[old] != LEAF_KEY)
        nodes[at] = keys[old]
        nodes[at + ONE] = features[old]
        nodes[at + TWO] = FOUR * (start + index + (tail - index) * inner)
        nodes[at + THREE] = shifts[old]
        queue[tail], queue[tail + ONE] = children[old, 0], children[old, 1]
        tail += TWO * inner
    return n


@kernel
def find_row(words, at, table, slots, n):
    """Return the row of ``table`` that equals ``words[at]``, added as row n if none does."""
    mask = np.uint64(slots.size - 1)
    slot = hash_of(words, at) & mask
    while slots[slot] != 0:
        row = np.uint64(slots[slot] - 1)
        is_equal = True
        for j in range(table.shape[1]):
            is_equal &= table[row, np.uint64(j)] == words[at, np.uint64(j)]
        if is_equal:
            return np.int64(row)
        slot = (slot + ONE) & mask
    slots[slot] = n + 1
    for j in range(table.shape[1]):
        table[n, j] = words[at, np.uint64(j)]
    return n


@kernel
def fill_slots(table, n, slots):
    """Enter the first n rows of the table, all different, into empty slots."""
    mask = np.uint64(slots.size - 1)
    for row in range(n):
        slot = hash_of(table, np.uint64(row)) & mask
        while slots[slot] != 0:
            slot = (slot + ONE) & mask
        slots[slot] = row + 1


@kernel
def hash_of(words, at):
    """Return a uint64 hash of row ``at`` of uint64 words."""
    h = ZERO
    for j in range(words.shape[1]):
        h = (h ^ words[at, np.uint64(j)]) * np.uint64(0x9E3779B97F4A7C15)
        h ^= h >> np.uint64(29)
    return h ^ (h >> np.uint64(32))


@kernel
def step(nodes, keys, row, at):
    """Return the child of node ``at`` that the row whose keys begin at ``row`` goes to."""
    key = keys[row + np.uint64(nodes[at + ONE])]
    right = np.uint32(key + nodes[at + THREE]) > nodes[at]
    return np.uint64(nodes[at + TWO]) + (np.uint64(right) << TWO)


@kernel
def land(nodes, at, going, n, walker, position):
    """Store the position of a walker; return n, plus one if it is at no leaf yet."""
    at[walker] = position
    going[n] = walker
    return n + np.uint64(nodes[position] != LEAF_KEY)


@kernel
def walk(nodes, keys, row, at, going, n, steps):
    """Send n walkers down from the nodes ``at``, each with the keys of its ``row``, to leaves.

    Eight walk side by side, so their loads overlap; walkers that have reached a leaf after
    ``steps`` steps drop out. ``going`` (n,) is scratch space.
    """
    # Every row begins; rows are walked in one flat array, so a step has one index to compute.
    width = np.uint64(keys.shape[1])
    flat = keys.reshape(keys.size)
    for i in range(n):
        going[np.uint64(i)] = i
    while n > 0:
        n_left = ZERO
        n_blocked = n - n % 8
        for i in range(0, n_blocked, 8):
            # The next eight walkers: w walker, r start of its keys, a position of its node.
            o = np.uint64(i)
            w0, w1 = np.uint64(going[o]), np.uint64(going[o + ONE])
            w2, w3 = np.uint64(going[o + TWO]), np.uint64(going[o + THREE])
            o += FOUR
            w4, w5 = np.uint64(going[o]), np.uint64(going[o + ONE])
            w6, w7 = np.uint64(going[o + TWO]), np.uint64(going[o + THREE])
            r0, r1 = width * row[w0], width * row[w1]
            r2, r3 = width * row[w2], width * row[w3]
            r4, r5 = width * row[w4], width * row[w5]
            r6, r7 = width * row[w6], width * row[w7]
            a0, a1 = np.uint64(at[w0]), np.uint64(at[w1])
            a2, a3 = np.uint64(at[w2]), np.uint64(at[w3])
            a4, a5 = np.uint64(at[w4]), np.uint64(at[w5])
            a6, a7 = np.uint64(at[w6]), np.uint64(at[w7])
            # One step of each after the other: eight loads are under way at a time.
            for _ in range(steps):
                a0, a1 = step(nodes, flat, r0, a0), step(nodes, flat, r1, a1)
                a2, a3 = step(nodes, flat, r2, a2), step(nodes, flat, r3, a3)
                a4, a5 = step(nodes, flat, r4, a4), step(nodes, flat, r5, a5)
                a6, a7 = step(nodes, flat, r6, a6), step(nodes, flat, r7, a7)
            # Walkers not yet at a leaf are written back to the front of the list, in order.
            n_left = land(nodes, at, going, n_left, w0, a0)
            n_left = land(nodes, at, going, n_left, w1, a1)
            n_left = land(nodes, at, going, n_left, w2, a2)
            n_left = land(nodes, at, going, n_left, w3, a3)
            n_left = land(nodes, at, going, n_left, w4, a4)
            n_left = land(nodes, at, going, n_left, w5, a5)
            n_left = land(nodes, at, going, n_left, w6, a6)
            n_left = land(nodes, at, going, n_left, w7, a7)
        # Fewer than eight are left over: one by one.
        for i in range(n_blocked, n):
            walker = np.uint64(going[np.uint64(i)])
            position = np.uint64(at[walker])
            for _ in range(steps):
                position = step(nodes, flat, width * row[walker], position)
            n_left = land(nodes, at, going, n_left, walker, position)
        n = np.int64(n_left)
        steps = min(steps, MORE_STEPS)


@kernel
def walk_rows(nodes, roots, bits, membership, examples, table, steps, means):
    """Walk rows through their trees and write the means of the leaves' values.

    Parameters
    ----------
    nodes : uint32 array of shape (4 * n_nodes,)
    roots : uint32 array of shape (n_trees,)
        Each tree's root's place in ``nodes``.
    bits : uint32 array of shape (m, n_features)
        The rows' float32 numbers, as their bits.
    membership : uint64 array of shape (n_trees, n_words)
        Bits of the examples that each tree may score, as in `Membership`.
    examples : int64 array of shape (m,)
        The bit of ``membership`` that decides for a row; -1: every tree scores it.
    table : float64 array of shape (n_values, c)
        Scores of each distribution of a leaf.
    steps : int
        Number of steps before the first check of which rows have reached a leaf.
    means : float64 array of shape (m, c)
        Zeros; set to the mean over a row's trees, summed in their order, NaN without a tree.
    """
    # 1. The rows' numbers become keys, once for all trees.
    m, n_features = bits.shape
    keys = np.empty((m, n_features), np.uint32)
    for i in range(m):
        for j in range(n_features):
            keys[i, j] = order_key(bits[i, j])
    # 2. So many trees at a time that there are about a thousand walkers to hide each other's loads.
    counts = np.zeros(m, np.int64)
    at_once = min(max(1, WALKERS // m), roots.size)
    row = np.empty(m * at_once, np.uint32)
    at = np.empty(m * at_once, np.uint32)
    going = np.empty(m * at_once, np.uint32)
    for first in range(0, roots.size, at_once):
        # 3. A walker for each row and each tree that may score it: every tree, or those that have
        # the row's example out of bag. Without a branch: n moves on by 0 or 1.
        n = ZERO
        for tree in range(first, min(first + at_once, roots.size)):
            for i in range(m):
                example = np.uint64(max(examples[i], 0))
                word = membership[np.uint64(tree), example >> np.uint64(6)]
                row[n], at[n] = i, roots[tree]
                n += (word >> (example & np.uint64(63))) & ONE | np.uint64(examples[i] < 0)
        walk(nodes, keys, row, at, going, np.int64(n), steps)
        # 4. Add up the leaves' values, in the order of the trees: sums do not depend on threads.
        for w in range(n):
            i = np.uint64(row[np.uint64(w)])
            value = np.uint64(nodes[np.uint64(at[np.uint64(w)]) + THREE])
            counts[i] += 1
            if table.shape[1] == 1:
                means[i, ZERO] += table[value, ZERO]
                continue
            for j in range(table.shape[1]):
                means[i, np.uint64(j)] += table[value, np.uint64(j)]
    # 5. From sums to means; a row without a tree has none.
    for i in range(m):
        for j in range(table.shape[1]):
            means[i, j] = means[i, j] / counts[i] if counts[i] > 0 else np.nan
