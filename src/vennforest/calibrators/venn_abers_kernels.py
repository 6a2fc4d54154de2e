"""Compiled loops of Venn–Abers: isotonic fits with a new observation, perhaps without an old one.

Notation. The m distinct calibration scores have weights w and positive weights y; their cumulative
sums from the left are the points P_0 = (0, 0), ..., P_m, in arrays ``W`` and ``Y`` of length m + 1.
*Place* k lies just before score number k. A new observation of weight 1 and label v at place k
moves the points P_k, ..., P_m by (1, v), and its isotonic fit is the slope of the line that touches
P_0, ..., P_k and the moved points from below: the maximum over a <= k of the minimum over b >= k of
the slope from P_a to P_b + (1, v).

A new score equal to score number k is pooled with it. For v = 1 that gives the fit of place k, for
v = 0 that of place k + 1: p1 depends on the calibration scores below the new one, p0 on those up to
it.

Slopes are kept as rise and run, so comparisons are products; for counts below 2**26 these are
exact.

Leaving out an observation of weight w and label y at score number q moves P_{q+1}, ..., P_m by
(-w, -w y). Within P_0 ... P_q and within P_{q+1} ... P_m nothing changes, so hulls of blocks of
points (`hull_tree`) serve for every observation that is left out.
"""

import numpy as np

from vennforest._jit import kernel

CELLS_PER_STEP, MAX_CELLS = 8, 1 << 20
"""Cells of the grid that shortens a search: so many a step, and up to that number in all."""

N_PARTS = 256
"""Parts of the range of the scores by which they are ordered for look-ups in a large table."""

BLOCK_SIZE = 32
"""Points in the smallest block of the hull tree, which is searched one by one."""


@kernel
def cumulative_points(weights):
    """Return W and Y, (m + 1,), of the weights (m, 2) of the other classes and of the class."""
    m = len(weights)
    W, Y = np.zeros(m + 1), np.zeros(m + 1)
    for i in range(m):
        W[i + 1] = W[i] + (weights[i, 0] + weights[i, 1])
        Y[i + 1] = Y[i] + weights[i, 1]
    return W, Y


@kernel
def is_convex(W, Y, i, j, n):
    """Return whether P_j lies below the line from P_i to P_n."""
    return (Y[j] - Y[i]) * (W[n] - W[j]) < (Y[n] - Y[j]) * (W[j] - W[i])


# --- the fits of all places ----------------------------------------------------------------------


@kernel
def suffix_hulls(W, Y):
    """Return for every point the corner that follows it on the lower hull of it and all after it.

    -1 for the last point.
    """
    m = len(W) - 1
    following = np.empty(m + 1, np.int32)
    following[m] = -1
    # Andrew's monotone chain from the right: P_i is followed by the first corner of the hull beyond
    # it that remains a corner with P_i in front.
    for i in range(m - 1, -1, -1):
        j = np.int64(i + 1)
        n = np.int64(following[j])
        while n >= 0 and not is_convex(W, Y, i, j, n):
            j = n
            n = np.int64(following[j])
        following[i] = j
    return following


@kernel
def step_function(x, W, Y, following, v):
    """Return the isotonic fit of a new observation of label v as a step function of its score.

    ``following`` is what `suffix_hulls` returns. Of the n runs of places with equal fits: the
    scores between runs (n - 1,), the fits (n,), and the points a and b of the touching line, where
    ``fit = (Y_b - Y_a + v) / (W_b - W_a + 1)``.

    As k grows the fit does not decrease, so neither touching point moves back: one pass over the
    places, with the hull of the points left of the line in a queue and the hull of any suffix as
    links to the next corner, takes linear time (the idea of Vovk, Petej & Fedorova 2015, Algorithms
    1-4).
    """
    m = len(W) - 1
    queue = np.empty(m + 1, np.int32)  # corners of the hull of P_a ... P_k, P_a first
    first, last = 0, -1
    n_queued = 0  # points that have been in the queue, or never will be corners of it
    ends, fits = np.empty(m, np.float64), np.empty(m + 1, np.float64)
    a, b = np.empty(m + 1, np.int32), np.empty(m + 1, np.int32)
    n_steps = 0
    left = right = np.int64(0)
    rise, run = 0.0, 0.0
    fit = -1.0
    # Place k: a over the hull of P_0 ... P_k, b over that of the moved points P_k ... P_m.
    for k in range(m + 1):
        # A further point on or above the touching line changes nothing.
        if 0 < k <= right and (Y[k] - Y[left]) * run >= rise * (W[k] - W[left]):
            continue
        # The minimum over b for each a, its maximum over a: P_k joins the hull on the left, whose
        # last corners go while they lie on or above the line to it.
        for j in range(n_queued, k + 1):
            if 0 < j < k and not is_convex(W, Y, j - 1, j, j + 1):
                continue
            while last > first and not is_convex(W, Y, queue[last - 1], queue[last], j):
                last -= 1
            last += 1
            queue[last] = j
        n_queued = k + 1
        right = max(right, k)
        left = np.int64(queue[first])
        rise, run = Y[right] - Y[left] + v, W[right] - W[left] + 1
        moved = True
        while moved:
            moved = False
            # The minimum over b: the next corner on the right, while it does not rise faster.
            n = np.int64(following[right])
            while n >= 0 and (Y[n] - Y[right]) * run <= rise * (W[n] - W[right]):
                right = n
                rise, run = Y[right] - Y[left] + v, W[right] - W[left] + 1
                n = np.int64(following[right])
            # The maximum over a, one corner at a time: the best one depends on b.
            if first < last:
                n = np.int64(queue[first + 1])
                new_rise, new_run = Y[right] - Y[n] + v, W[right] - W[n] + 1
                if (Y[n] - Y[left]) * new_run < new_rise * (W[n] - W[left]):
                    first += 1
                    left, rise, run = n, new_rise, new_run
                    moved = True
        # The last digits of sums of weights may not make a fit leave [0, 1], or decrease.
        new_fit = min(max(rise / run, fit, 0.0), 1.0)
        if new_fit != fit:
            if n_steps:
                ends[n_steps - 1] = x[k - 1]
            fits[n_steps], a[n_steps], b[n_steps] = new_fit, left, right
            fit = new_fit
            n_steps += 1
        else:
            b[n_steps - 1] = right  # rounding may break ties between end points
    return ends[: n_steps - 1].copy(), fits[:n_steps].copy(), a[:n_steps].copy(), b[:n_steps].copy()


# --- looking up ----------------------------------------------------------------------------------


@kernel
def grid_of(values):
    """Lay a grid of equal cells over sorted values, to shorten the search in them.

    Returned is how many values lie in the cells before each one, (cells + 1,), with the origin and
    scale of `cell_of`, which does not decrease in the score, whatever the rounding, so the value
    that is searched for lies in the cell of the score.
    """
    n = len(values)
    n_cells = max(1, n, min(CELLS_PER_STEP * n, MAX_CELLS))
    begins = np.zeros(n_cells + 1, np.uint32)
    if n == 0:
        return begins, 0.0, 0.0
    scale = scale_of(values[0], values[n - 1], n_cells)
    for i in range(n):
        begins[cell_of(values[i], values[0], scale, n_cells) + 1] += np.uint32(1)
    for cell in range(n_cells):
        begins[cell + 1] += begins[cell]
    return begins, values[0], scale


@kernel
def scale_of(low, high, n_cells):
    """Return the scale that puts low ... high into so many cells, 0 where there is none."""
    span = high - low
    scale = n_cells / span if span > 0 else 0.0
    return scale if np.isfinite(span) and np.isfinite(scale) else 0.0


@kernel
def cell_of(score, origin, scale, n_cells):
    """Return the cell of a score in the grid, the first or the last one outside of it."""
    if scale == 0.0:
        return 0
    return int(min(max((score - origin) * scale, 0.0), n_cells - 1.0))


@kernel
def read_steps(scores, ends, fits, begins, origin, scale, or_equal, out):
    """Write the fit of each score: the one whose number is the count of ends below it.

    With ``or_equal`` ends equal to the score are counted too.
    """
    one = np.uint32(1)  # unsigned numbers spare the test for a negative index
    n_cells = len(begins) - 1
    for i in range(len(scores)):
        score = scores[i]
        cell = np.uint32(cell_of(score, origin, scale, n_cells))
        low, high = begins[cell], begins[cell + one]
        # The run of the score, among the ends in its cell: by halving, then one by one.
        while high - low > np.uint32(4):
            middle = (low + high) >> one
            end = ends[middle]
            if (end < score) | (or_equal & (end == score)):
                low = middle + one
            else:
                high = middle
        while low < high:
            end = ends[low]
            if not (end < score) | (or_equal & (end == score)):
                break
            low += one
        out[i] = fits[low]


@kernel
def order_by_parts(scores, low, high):
    """Return the scores in the order of the parts of the range low ... high, and that order.

    Look-ups in a table larger than a processor's cache are faster if neighbours follow each other.
    """
    n = len(scores)
    scale = scale_of(low, high, N_PARTS)
    positions = np.zeros(N_PARTS + 1, np.int64)
    for i in range(n):
        positions[cell_of(scores[i], low, scale, N_PARTS) + 1] += 1
    for part in range(N_PARTS):
        positions[part + 1] += positions[part]
    ordered, order = np.empty(n), np.empty(n, np.int64)
    for i in range(n):
        part = cell_of(scores[i], low, scale, N_PARTS)
        ordered[positions[part]], order[positions[part]] = scores[i], i
        positions[part] += 1
    return ordered, order


@kernel
def count_below(values, x):
    """Return how many of the sorted values are less than x."""
    low, length = 0, len(values)
    while length > 1:
        half = length >> 1
        low += half if values[low + half - 1] < x else 0
        length -= half
    return low + (1 if length == 1 and values[low] < x else 0)


# --- leaving out a calibration example -----------------------------------------------------------


@kernel
def hull_tree(W, Y):
    """Return the lower hulls of the blocks of 32, 64, 128, ... points: three int32 arrays.

    ``corners``: the point numbers of all hulls, level by level, block by block; ``begins``: where
    each block's corners begin, levels one after the other, with a closing entry a level;
    ``levels``: where each level begins in ``begins``.
    """
    n = len(W)
    n_blocks = (n + BLOCK_SIZE - 1) // BLOCK_SIZE
    depth, n_entries, size = 1, n_blocks + 1, n_blocks
    while size > 1:
        size = (size + 1) >> 1
        n_entries += size + 1
        depth += 1
    levels = np.empty(depth, np.int32)
    begins = np.empty(n_entries, np.int32)
    # A level has as many corners as points at most.
    corners = np.empty(depth * n, np.int32)
    used, entry, size, n_children = 0, 0, n_blocks, 0
    for level in range(depth):
        levels[level] = entry
        # A block's hull comes from the points, or from the corners of its two halves: no other
        # point of them can be a corner of it.
        for block in range(size):
            begins[entry + block] = used
            if level == 0:
                source, stop = block * BLOCK_SIZE, min(n, (block + 1) * BLOCK_SIZE)
            else:
                child = levels[level - 1] + 2 * block
                # The corners of two children are neighbours; the last block may have one child.
                source = begins[child]
                stop = begins[child + min(2, n_children - 2 * block)]
            bottom = used
            for i in range(source, stop):
                j = i if level == 0 else np.int64(corners[i])
                while used - bottom >= 2:
                    if is_convex(W, Y, corners[used - 2], corners[used - 1], j):
                        break
                    used -= 1
                corners[used] = j
                used += 1
        begins[entry + size] = used
        entry += size + 1
        n_children = size
        size = (size + 1) >> 1
    return corners[:used].copy(), begins, levels


@kernel
def lower_point(W, Y, i, j, rise, run):
    """Return which of two points a line of slope rise / run touches first from below."""
    return np.int64(j if (Y[j] - Y[i]) * run < rise * (W[j] - W[i]) else i)


@kernel
def lowest_corner(W, Y, hulls, entry, rise, run):
    """Return the corner of one hull that a line of slope rise / run touches first from below."""
    corners, begins, _ = hulls
    low, high = begins[entry], begins[entry + 1] - 1
    # Slopes between corners rise from left to right: the line touches where they pass its own.
    while low < high:
        middle = (low + high) >> 1
        i, j = corners[middle], corners[middle + 1]
        if (Y[j] - Y[i]) * run < rise * (W[j] - W[i]):
            low = middle + 1
        else:
            high = middle
    return np.int64(corners[low])


@kernel
def lowest_point(W, Y, hulls, first, last, rise, run):
    """Return the point among first ... last that a line of slope rise / run touches from below."""
    best = np.int64(first)
    left, right = first // BLOCK_SIZE, last // BLOCK_SIZE
    # Blocks that lie partly outside are searched point by point.
    stop = last + 1 if left == right else (left + 1) * BLOCK_SIZE
    for i in range(first + 1, stop):
        best = lower_point(W, Y, best, i, rise, run)
    if left == right:
        return best
    for i in range(right * BLOCK_SIZE, last + 1):
        best = lower_point(W, Y, best, i, rise, run)
    # Blocks left + 1 ... right - 1, as few of the tree as cover them: at each level one that has no
    # sibling on the left, and one that has none on the right.
    left += 1
    level = 0
    while left < right:
        entry = hulls[2][level]
        if left & 1:
            i = lowest_corner(W, Y, hulls, entry + left, rise, run)
            best = lower_point(W, Y, best, i, rise, run)
            left += 1
        if right & 1:
            right -= 1
            i = lowest_corner(W, Y, hulls, entry + right, rise, run)
            best = lower_point(W, Y, best, i, rise, run)
        left >>= 1
        right >>= 1
        level += 1
    return best


@kernel
def lowest_moved(W, Y, hulls, first, last, q, weight, positive, rise, run):
    """Return the lowest of P_first ... P_last, those beyond P_q moved by (-weight, -positive)."""
    w, y = 0.0, 0.0
    if first <= q:
        i = lowest_point(W, Y, hulls, first, min(last, q), rise, run)
        w, y = W[i], Y[i]
    if last > q:
        i = lowest_point(W, Y, hulls, max(first, q + 1), last, rise, run)
        new_w, new_y = W[i] - weight, Y[i] - positive
        if first > q or (new_y - y) * run < rise * (new_w - w):
            w, y = new_w, new_y
    return w, y


@kernel
def fit_without(W, Y, hulls, k, v, q, weight, positive, rise, run):
    """Return the fit of a new observation of label v at place k without one at score number q.

    With g(t) the lowest of Y - t W over the moved points from k on minus the lowest over those up
    to k, the fit is the root of g, which decreases: Newton's method on a piecewise linear function
    from the slope rise / run, kept inside a bracket that every step narrows. For counts it ends
    where g is exactly 0.
    """
    m = len(W) - 1
    low, high = -1.0, 2.0
    step = 0
    while True:
        w_a, y_a = lowest_moved(W, Y, hulls, 0, k, q, weight, positive, rise, run)
        w_b, y_b = lowest_moved(W, Y, hulls, k, m, q, weight, positive, rise, run)
        # g(t) = new_rise - t new_run of the line from P_a to P_b + (1, v) narrows the bracket.
        new_rise, new_run = y_b - y_a + v, w_b - w_a + 1
        t, slope = rise / run, new_rise / new_run
        gap = new_rise * run - rise * new_run
        if gap > 0:
            low = max(low, t)
        else:
            high = min(high, t)
        if gap == 0 or slope == t:
            return slope
        # Newton's step, or now and then the middle, which ends what rounding would let go on.
        if low < slope < high and step % 8 != 7:
            rise, run = new_rise, new_run
        else:
            middle = 0.5 * (low + high)
            if not low < middle < high:
                return min(max(slope, low), high)
            rise, run = middle, 1.0
        step += 1


@kernel
def read_left_out(scores, left_out, position, label, weight, x, W, Y, hulls, v, ends, a, b, out):
    """Write the fit of each score for label v without example number ``left_out[i]``, -1: all.

    The examples have score number ``position``, a label 0 or 1 and a weight; ``ends``, ``a`` and
    ``b`` are of the `step_function` of all examples.
    """
    for i in range(len(scores)):
        # p1 depends on the scores below the new one, p0 on those up to it.
        score = scores[i] if v == 1 else np.nextafter(scores[i], np.inf)
        step = count_below(ends, score)
        # The touching line of all examples, from P_a to P_b + (1, v).
        rise, run = Y[b[step]] - Y[a[step]] + v, W[b[step]] - W[a[step]] + 1
        fit = rise / run
        r = left_out[i]
        if r >= 0:
            q, w, y = np.int64(position[r]), weight[r], label[r]
            # A positive example left of the line, or a negative one right of it, moves all points
            # beyond it up, seen from the line: they still do not touch it.
            if not (q < a[step] if y == 1 else q >= b[step]):
                k = count_below(x, score)
                fit = fit_without(W, Y, hulls, k, v, q, w, w * y, rise, run)
        out[i] = min(max(fit, 0.0), 1.0)
