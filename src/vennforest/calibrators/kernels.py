"""Venn–Abers in compiled loops: arrays in, arrays out.

Notation. The m distinct calibration scores have weights w and positive weights y; their cumulative
sums from the left are the points P_0 = (0, 0), ..., P_m, kept as arrays ``W`` and ``Y`` of length
m + 1. *Place* k lies just before the score number k. A new observation of weight 1 and label v at
place k moves the points P_k, ..., P_m by (1, v), and its isotonic fit is the slope of the line that
touches P_0, ..., P_k and the moved points from below: the maximum over a <= k of the minimum over
b >= k of the slope from P_a to P_b + (1, v).

A new score equal to score number k pools with it. For v = 1 that gives what place k gives, for
v = 0 what place k + 1 gives, so places are all that has to be known.

Slopes are kept as numerator and denominator: with counts below 2**26 every comparison is exact.
"""

import numpy as np

from vennforest._jit import kernel

LEAF = 32
"""Points in the smallest block of the hull tree; a block is looked through one by one."""

LANES = 64
"""Binary searches that go on side by side, so that their loads overlap."""

DIGIT = 11
"""Bits of one radix pass: six passes for 64, with counters that stay in the first-level cache."""


@kernel
def radix_sort(bits, spare):
    """Sort float64 values given as uint64 bits; return the array (of the two) that holds them.

    Flipping the sign bit of positive numbers and all bits of negative ones makes the order of the
    numbers the order of the bits. A digit that all values share costs no pass.
    """
    n = len(bits)
    mask = np.uint64((1 << DIGIT) - 1)
    top = np.uint64(1 << 63)
    counts = np.zeros((6, 1 << DIGIT), np.uint32)
    for i in range(n):
        key = bits[i]
        key ^= (np.uint64(0) - (key >> np.uint64(63))) | top
        bits[i] = key
        for digit in range(6):
            counts[digit, (key >> np.uint64(DIGIT * digit)) & mask] += np.uint32(1)
    source, target = bits, spare
    for digit in range(6):
        shift = np.uint64(DIGIT * digit)
        places = counts[digit]
        if places[(source[0] >> shift) & mask] == n:
            continue
        total = np.uint32(0)
        for value in range(1 << DIGIT):
            total, places[value] = total + places[value], total
        for i in range(n):
            key = source[i]
            at = (key >> shift) & mask
            target[places[at]] = key
            places[at] += np.uint32(1)
        source, target = target, source
    for i in range(n):
        key = source[i]
        target[i] = key ^ (((key >> np.uint64(63)) - np.uint64(1)) | top)
    return target


@kernel
def merge_sorted(negatives, positives):
    """Return the distinct scores of two sorted arrays, and the cumulative points W, Y.

    The three arrays come longer than needed, with the number of distinct scores.
    """
    n, p = len(negatives), len(positives)
    x = np.empty(n + p, np.float64)
    W = np.empty(n + p + 1, np.float64)
    Y = np.empty(n + p + 1, np.float64)
    W[0] = Y[0] = 0.0
    i, j, m = 0, 0, 0
    while i < n or j < p:
        if j >= p or (i < n and negatives[i] <= positives[j]):
            score = negatives[i]
            i += 1
        else:
            score = positives[j]
            j += 1
        if m == 0 or score != x[m - 1]:
            x[m] = score
            m += 1
        W[m] = i + j
        Y[m] = j
    return x, W, Y, m


@kernel
def mirror(W, Y):
    """Return the points with the scores turned round and the classes exchanged."""
    m = len(W) - 1
    V = np.empty(m + 1, np.float64)
    Z = np.empty(m + 1, np.float64)
    for i in range(m + 1):
        V[i] = W[m] - W[m - i]
        Z[i] = V[i] - (Y[m] - Y[m - i])
    return V, Z


@kernel
def insert_ones(W, Y):
    """Find the isotonic fit of a new observation of label 1 at every place.

    Returns
    -------
    start : (n_steps,) int32
        The first place of each run of places with the same fit.
    a, b : (n_steps,) int32
        Where the touching line of that run meets P_0... and the moved points.

    Notes
    -----
    As k grows the fit does not decrease, so neither touching point moves back: one pass over the
    places, with the hull of the points left of the line in a queue and the hull of any suffix as
    links to the next corner, is linear (the idea of Vovk, Petej & Fedorova 2015, Algorithms 1-2).
    """
    m = len(W) - 1
    after = np.empty(m + 1, np.int32)  # the corner that follows P_i on the hull of P_i ... P_m
    after[m] = -1
    for i in range(m - 1, -1, -1):
        j = np.int64(i + 1)
        wi, yi = W[i], Y[i]
        n = np.int64(after[j])
        while n >= 0 and (Y[j] - yi) * (W[n] - wi) >= (Y[n] - yi) * (W[j] - wi):
            j = n
            n = np.int64(after[j])
        after[i] = j

    queue = np.empty(m + 1, np.int32)  # corners of the hull of P_a ... P_k, P_a first
    first, last = 0, -1
    found = np.empty((3, 1024), np.int32)
    steps = 0
    right = np.int64(0)
    value = -1.0
    for k in range(m + 1):
        wk, yk = W[k], Y[k]
        while last > first:
            i, j = queue[last - 1], queue[last]
            if (Y[j] - Y[i]) * (wk - W[i]) < (yk - Y[i]) * (W[j] - W[i]):
                break
            last -= 1
        last += 1
        queue[last] = k
        right = max(right, k)
        left = np.int64(queue[first])
        moved = True
        while moved:
            moved = False
            rise, run = Y[right] + 1 - Y[left], W[right] + 1 - W[left]
            n = np.int64(after[right])
            while n >= 0 and (Y[n] + 1 - Y[left]) * run <= rise * (W[n] + 1 - W[left]):
                right = n
                rise, run = Y[right] + 1 - Y[left], W[right] + 1 - W[left]
                n = np.int64(after[right])
            while first < last:
                n = np.int64(queue[first + 1])
                if (Y[n] - Y[left]) * run >= rise * (W[n] - W[left]):
                    break
                first += 1
                left = n
                rise, run = Y[right] + 1 - Y[left], W[right] + 1 - W[left]
                moved = True
        fit = (Y[right] + 1 - Y[left]) / (W[right] + 1 - W[left])
        if fit != value:
            if steps == found.shape[1]:
                longer = np.empty((3, 4 * steps), np.int32)
                longer[:, :steps] = found
                found = longer
            found[0, steps], found[1, steps], found[2, steps] = k, left, right
            value = fit
            steps += 1
    return found[0, :steps].copy(), found[1, :steps].copy(), found[2, :steps].copy()


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
def guide(values, cells):
    """Lay a grid of equal cells over sorted values, to shorten the search in them.

    Returns
    -------
    begins : (cells + 1,) uint32
        How many values lie in cells before this one.
    origin, scale : float
        The cell of s is (s - origin) * scale, cut to 0 ... cells - 1: it does not decrease in s,
        whatever the rounding, so the value that s is searched for lies in the cell of s.
    """
    n = len(values)
    begins = np.zeros(cells + 1, np.uint32)
    if n == 0:
        return begins, 0.0, 0.0
    span = values[n - 1] - values[0]
    scale = cells / span if span > 0 else 0.0
    if not np.isfinite(span) or not np.isfinite(scale):
        scale = 0.0
    for i in range(n):
        begins[cell_of(values[i], values[0], scale, cells) + 1] += np.uint32(1)
    for cell in range(cells):
        begins[cell + 1] += begins[cell]
    return begins, values[0], scale


@kernel
def cell_of(s, origin, scale, cells):
    """Return the cell of a score in the grid of ``guide``."""
    if scale == 0.0:
        return 0
    return int(min(max((s - origin) * scale, 0.0), cells - 1.0))


@kernel
def read_steps(scores, values, fits, begins, origin, scale, equal, out, begin, stop):
    """Look up the fits of scores begin ... stop - 1.

    The fit of s is the one whose number is the count of values below s (``equal``: up to s).
    ``LANES`` searches go on side by side, as long as the longest of them needs.
    """
    n = len(values)
    cells = len(begins) - 1
    low = np.empty(LANES, np.uint32)
    for c in range(begin, stop, LANES):
        width = min(LANES, stop - c)
        length = 0
        for i in range(width):
            cell = cell_of(scores[c + i], origin, scale, cells)
            low[i] = begins[cell]
            length = max(length, np.int64(begins[cell + 1]) - np.int64(begins[cell]))
        for i in range(width):
            low[i] = min(np.int64(low[i]), n - length)
        while length > 1:
            half = length >> 1
            for i in range(width):
                value, score = values[low[i] + half - 1], scores[c + i]
                low[i] += half if (value < score) | (equal & (value == score)) else 0
            length -= half
        if length == 1:
            for i in range(width):
                value, score = values[low[i]], scores[c + i]
                low[i] += 1 if (value < score) | (equal & (value == score)) else 0
        for i in range(width):
            out[c + i] = fits[low[i]]


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
                longer[:used] = corners[:used]
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
