"""Venn–Abers without one calibration example, exactly and without refitting: compiled loops.

The notation is that of ``kernels``. Taking away an observation of label y and weight w at score
number q moves the points P_{q+1}, ..., P_m by (-w, -w y). Most of the time that changes nothing at
the new score's place, which a comparison tells (``reach``); else the new slope is found by Newton's
method on hulls of blocks of points (``hull_tree``), which moving does not change.
"""

import numpy as np

from vennforest._jit import kernel

LEAF = 32
"""Points in the smallest block of the hull tree; a block is looked through one by one."""


@kernel
def count_below(values, x):
    """Return how many of the sorted values are less than x."""
    low, length = 0, len(values)
    while length > 1:
        half = length >> 1
        low += half if values[low + half - 1] < x else 0
        length -= half
    return low + (1 if length == 1 and values[low] < x else 0)


@kernel
def count_up_to(values, x):
    """Return how many of the sorted values are less than or equal to x."""
    low, length = 0, len(values)
    while length > 1:
        half = length >> 1
        low += half if values[low + half - 1] <= x else 0
        length -= half
    return low + (1 if length == 1 and values[low] <= x else 0)


@kernel
def hull_tree(W, Y):
    """Build the lower hulls of the blocks of 32, 64, 128, ... points.

    Returns
    -------
    corners : int32 array
        Point numbers of all hulls, level by level, block by block.
    begins : int32 array
        Where each block's corners begin in ``corners``, levels one after the other, with a closing
        entry a level.
    levels : int32 array
        Where each level begins in ``begins``.
    """
    n = len(W)
    blocks = (n + LEAF - 1) // LEAF
    depth, entries, size = 1, blocks + 1, blocks
    while size > 1:
        size = (size + 1) >> 1
        entries += size + 1
        depth += 1
    levels = np.empty(depth, np.int32)
    begins = np.empty(entries, np.int32)
    corners = np.empty(n, np.int32)
    used, entry, size, children = 0, 0, blocks, 0
    for level in range(depth):
        levels[level] = entry
        for block in range(size):
            begins[entry + block] = used
            if level == 0:
                source, to = block * LEAF, min(n, (block + 1) * LEAF)
            else:
                below = levels[level - 1]
                source = begins[below + 2 * block]
                # the two children lie side by side; the last block may have one child only
                to = begins[below + min(2 * block + 2, children)]
            if used + to - source > len(corners):
                longer = np.empty(2 * len(corners) + to - source, np.int32)
                for i in range(used):
                    longer[i] = corners[i]
                corners = longer
            bottom = used
            for at in range(source, to):
                j = at if level == 0 else np.int64(corners[at])
                while used - bottom >= 2:
                    h, i = corners[used - 2], corners[used - 1]
                    if (Y[i] - Y[h]) * (W[j] - W[h]) < (Y[j] - Y[h]) * (W[i] - W[h]):
                        break
                    used -= 1
                corners[used] = j
                used += 1
        begins[entry + size] = used
        entry += size + 1
        children = size
        size = (size + 1) >> 1
    return corners[:used].copy(), begins, levels


@kernel
def lowest_in_block(W, Y, corners, begin, stop, rise, run):
    """Return the corner of one hull that a line of slope rise / run touches first from below."""
    low, high = begin, stop - 1
    while low < high:
        middle = (low + high) >> 1
        i, j = corners[middle], corners[middle + 1]
        if (Y[j] - Y[i]) * run < rise * (W[j] - W[i]):
            low = middle + 1
        else:
            high = middle
    return np.int64(corners[low])


@kernel
def lowest(W, Y, corners, begins, levels, first, last, rise, run):
    """Return the point among first ... last that a line of slope rise / run touches from below."""
    best = first
    height = Y[first] * run - W[first] * rise
    left, right = first // LEAF, last // LEAF
    # Blocks that lie partly outside are looked through, whole ones are asked through the tree.
    stop = last + 1 if left == right else (left + 1) * LEAF
    for i in range(first + 1, stop):
        h = Y[i] * run - W[i] * rise
        if h < height:
            best, height = i, h
    if left == right:
        return best
    for i in range(right * LEAF, last + 1):
        h = Y[i] * run - W[i] * rise
        if h < height:
            best, height = i, h
    left += 1
    level = 0
    while left < right:
        entry = levels[level]
        if left & 1:
            i = lowest_in_block(
                W, Y, corners, begins[entry + left], begins[entry + left + 1], rise, run
            )
            h = Y[i] * run - W[i] * rise
            if h < height:
                best, height = i, h
            left += 1
        if right & 1:
            right -= 1
            i = lowest_in_block(
                W, Y, corners, begins[entry + right], begins[entry + right + 1], rise, run
            )
            h = Y[i] * run - W[i] * rise
            if h < height:
                best, height = i, h
        left >>= 1
        right >>= 1
        level += 1
    return best


@kernel
def fit_without(W, Y, corners, begins, levels, k, v, q, y, w, rise, run):
    """Return the fit of a new observation of label v at place k without one observation.

    That one has label y and weight w and stands at score number q, so that P_{q+1}, ..., P_m move
    by (-w, -w y). The search starts from the slope rise / run.

    Notes
    -----
    With g(t) the lowest of Y - t W over the moved points from k on minus the lowest over those up
    to k, the fit is the root of g, which decreases: Newton's method on a piecewise linear function,
    kept inside a bracket that every step narrows. It ends where g is 0, exactly for counts.
    """
    m = len(W) - 1
    low, high = -1.0, 2.0
    for step in range(200):
        if q < k:
            a = lowest(W, Y, corners, begins, levels, 0, q, rise, run)
            i = lowest(W, Y, corners, begins, levels, q + 1, k, rise, run)
            wa, ya = W[a], Y[a]
            if (Y[i] - w * y) * run - (W[i] - w) * rise < ya * run - wa * rise:
                wa, ya = W[i] - w, Y[i] - w * y
            b = lowest(W, Y, corners, begins, levels, k, m, rise, run)
            wb, yb = W[b] - w, Y[b] - w * y
        else:
            a = lowest(W, Y, corners, begins, levels, 0, k, rise, run)
            wa, ya = W[a], Y[a]
            b = lowest(W, Y, corners, begins, levels, k, q, rise, run)
            i = lowest(W, Y, corners, begins, levels, q + 1, m, rise, run)
            wb, yb = W[b], Y[b]
            if (Y[i] - w * y) * run - (W[i] - w) * rise < yb * run - wb * rise:
                wb, yb = W[i] - w, Y[i] - w * y
        new_rise, new_run = yb + v - ya, wb + 1 - wa
        t = rise / run
        gap = new_rise * run - rise * new_run
        if gap > 0:
            low = max(low, t)
        elif gap < 0:
            high = min(high, t)
        slope = new_rise / new_run
        if gap == 0 or slope == t:
            return slope
        if low < slope < high and step % 8 != 7:
            rise, run = new_rise, new_run
        else:
            middle = 0.5 * (low + high)
            if not low < middle < high:
                return slope
            rise, run = middle, 1.0
    return rise / run


@kernel
def first_below(W, Y, corners, begins, levels, rise, run, height):
    """Return the first point with Y - t W < height for t = rise / run, or the number of points."""
    n = len(W)
    level = len(levels) - 1
    block = 0
    entry = levels[level]
    i = lowest_in_block(W, Y, corners, begins[entry], begins[entry + 1], rise, run)
    if not Y[i] - W[i] * (rise / run) < height:
        return n
    while level > 0:
        level -= 1
        block *= 2
        entry = levels[level]
        i = lowest_in_block(
            W, Y, corners, begins[entry + block], begins[entry + block + 1], rise, run
        )
        if not Y[i] - W[i] * (rise / run) < height:
            block += 1
    for i in range(block * LEAF, min(n, (block + 1) * LEAF)):
        if Y[i] - W[i] * (rise / run) < height:
            return i
    return min(n, (block + 1) * LEAF)


@kernel
def last_below(W, Y, corners, begins, levels, rise, run, height):
    """Return the last point with Y - t W < height for t = rise / run, or -1."""
    n = len(W)
    level = len(levels) - 1
    block = 0
    entry = levels[level]
    i = lowest_in_block(W, Y, corners, begins[entry], begins[entry + 1], rise, run)
    if not Y[i] - W[i] * (rise / run) < height:
        return -1
    blocks = (n + LEAF - 1) // LEAF
    while level > 0:
        level -= 1
        size = blocks
        for _ in range(level):
            size = (size + 1) >> 1
        block = 2 * block + 1
        if block >= size:
            block -= 1
            continue
        entry = levels[level]
        i = lowest_in_block(
            W, Y, corners, begins[entry + block], begins[entry + block + 1], rise, run
        )
        if not Y[i] - W[i] * (rise / run) < height:
            block -= 1
    for i in range(min(n, (block + 1) * LEAF) - 1, block * LEAF - 1, -1):
        if Y[i] - W[i] * (rise / run) < height:
            return i
    return block * LEAF - 1


@kernel
def reach(W, Y, corners, begins, levels, a, b, v, heaviest):
    """Find, for every step, which observations may change its fit by leaving.

    Returns
    -------
    first : (n_steps,) int32
        An observation of label 0 left of score number ``first`` changes nothing.
    last : (n_steps,) int32
        An observation of label 1 at or right of score number ``last`` changes nothing.

    Notes
    -----
    An observation outside of the block a ... b moves all points beyond it, seen from the block, by
    w (y - t) up or down. Up changes nothing; down by w t (label 0, to the left) or w (1 - t) (label
    1, to the right) changes nothing while those points stay on or above the touching line.
    """
    n_steps = len(a)
    first = np.empty(n_steps, np.int32)
    last = np.empty(n_steps, np.int32)
    # Rounding may only ever make the reach longer, never shorter.
    slack = 1e-6 * max(1.0, heaviest) + 1e-12 * W[-1]
    for i in range(n_steps):
        rise, run = Y[b[i]] + v - Y[a[i]], W[b[i]] + 1 - W[a[i]]
        t = rise / run
        line = Y[a[i]] - t * W[a[i]]
        first[i] = min(
            a[i],
            first_below(W, Y, corners, begins, levels, rise, run, line + heaviest * t + slack),
        )
        last[i] = max(
            b[i],
            last_below(
                W,
                Y,
                corners,
                begins,
                levels,
                rise,
                run,
                line - (v - t) + heaviest * (1 - t) + slack,
            ),
        )
    return first, last


@kernel
def read_left_out(
    scores,
    left_out,
    position,
    label,
    weight,
    x,
    W,
    Y,
    corners,
    begins,
    levels,
    v,
    ends,
    a,
    b,
    first,
    last,
    out,
    begin,
    stop,
):
    """Look up p_v of scores begin ... stop - 1, each without calibration example left_out[i]."""
    for i in range(begin, stop):
        step = count_below(ends, scores[i]) if v == 1 else count_up_to(ends, scores[i])
        rise = Y[b[step]] + v - Y[a[step]]
        run = W[b[step]] + 1 - W[a[step]]
        r = left_out[i]
        if r < 0:
            out[i] = rise / run
            continue
        q, y = np.int64(position[r]), label[r]
        if y == 1:
            untouched = q < a[step] or q >= last[step] or rise == run
        else:
            untouched = q < first[step] or q >= b[step] or rise == 0
        if untouched:
            out[i] = rise / run
            continue
        k = count_below(x, scores[i]) if v == 1 else count_up_to(x, scores[i])
        w = 1.0 if len(weight) == 0 else weight[r]
        out[i] = fit_without(W, Y, corners, begins, levels, k, v, q, float(y), w, rise, run)
