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

# Cells of the grid that shortens a search: so many a step, and up to that number in all.
CELLS_PER_STEP, MAX_GRID_CELLS = 4, 1 << 20
BLOCK_SIZE = 32  # points in the smallest block of the hull tree, which is searched one by one


@kernel
def cumulative_points(negative, positive, W, Y):
    """Write the cumulative sums (m + 1,) of all weights and of the positive ones."""
    W[0] = Y[0] = 0.0
    for i in range(len(negative)):
        W[i + 1] = W[i] + (negative[i] + positive[i])
        Y[i + 1] = Y[i] + positive[i]


@kernel
def is_convex(W, Y, i, j, n):
    """Return whether P_j lies below the line from P_i to P_n."""
    return (Y[j] - Y[i]) * (W[n] - W[j]) < (Y[n] - Y[j]) * (W[j] - W[i])


@kernel
def with_corner(W, Y, hull, start, size, j):
    """Add P_j to the lower hull ``hull[start : start + size]``, and return its number of corners.

    The last corners go while they lie on or above the line to P_j (Andrew's monotone chain).
    """
    while size >= 2 and not is_convex(W, Y, hull[start + size - 2], hull[start + size - 1], j):
        size -= 1
    hull[start + size] = j
    return size + 1


@kernel
def suffix_hulls(W, Y, following):
    """Write the corner that follows each point on the lower hull of it and all after it.

    ``following`` (m + 1,) has the indices of these points, -1 for the last one.
    """
    m = len(W) - 1
    following[m] = -1
    # The monotone chain from the right: P_i is followed by the first corner of the hull beyond it
    # that remains a corner with P_i in front.
    for i in range(m - 1, -1, -1):
        j = np.int64(i + 1)
        n = np.int64(following[j])
        while n >= 0 and not is_convex(W, Y, i, j, n):
            j = n
            n = np.int64(following[j])
        following[i] = j


@kernel
def step_function(W, Y, following, v, queue, places, fits, a, b):
    """Write the isotonic fit of a new observation of label v as a step function of its score.

    Neighbouring places with equal fits are a run; the number n of runs is returned. Written are,
    for each run, its first place, its fit, and the points a and b of the touching line, where
    ``fit = (Y_b - Y_a + v) / (W_b - W_a + 1)``. ``following`` is what `suffix_hulls` writes;
    ``queue`` (m + 1,) is scratch space.

    As k grows the fit does not decrease, so neither touching point moves back: one pass over the
    places, with the hull of the points left of the line in a queue and the hull of any suffix as
    links to the next corner, takes linear time (the idea of Vovk, Petej & Fedorova 2015, Algorithms
    1-4).
    """
    m = len(W) - 1
    first, size = 0, 0  # the queue has the corners of the hull of P_a ... P_k, P_a first
    n_queued = 0  # points that have been in the queue, or never will be corners of it
    n_steps = 0
    left = right = np.int64(0)
    rise, run = 0.0, 0.0
    fit = -1.0
    # Place k: a over the hull of P_0 ... P_k, b over that of the moved points P_k ... P_m.
    for k in range(m + 1):
        # A further point on or above the touching line changes nothing.
        if 0 < k <= right and (Y[k] - Y[left]) * run >= rise * (W[k] - W[left]):
            continue
        # The minimum over b for each a, its maximum over a: P_k joins the hull on the left.
        for j in range(n_queued, k + 1):
            if not 0 < j < k or is_convex(W, Y, j - 1, j, j + 1):
                size = with_corner(W, Y, queue, first, size, j)
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
            if size > 1:
                n = np.int64(queue[first + 1])
                new_rise, new_run = Y[right] - Y[n] + v, W[right] - W[n] + 1
                if (Y[n] - Y[left]) * new_run < new_rise * (W[n] - W[left]):
                    first, size = first + 1, size - 1
                    left, rise, run = n, new_rise, new_run
                    moved = True
        # The last digits of sums of weights may not make a fit leave [0, 1], or decrease.
        new_fit = min(max(rise / run, fit, 0.0), 1.0)
        if new_fit != fit:
            places[n_steps], fits[n_steps] = k, new_fit
            a[n_steps], b[n_steps] = left, right
            fit = new_fit
            n_steps += 1
        else:
            b[n_steps - 1] = right  # rounding may break ties between end points
    return n_steps


@kernel
def grid_of(values):
    """Return how many of sorted values (n,) lie before each of c cells, (c + 1,), origin and scale.

    Cells are those of `cell_of`, which does not decrease in the score, whatever the rounding, so
    the value that is searched for lies in the cell of the score.
    """
    n = len(values)
    n_cells = max(1, n, min(CELLS_PER_STEP * n, MAX_GRID_CELLS))
    begins = np.zeros(n_cells + 1, np.uint32)
    if n == 0:
        return begins, 0.0, 0.0
    span = values[-1] - values[0]
    scale = n_cells / span if span > 0 else 0.0
    if not (np.isfinite(span) and np.isfinite(scale)):
        scale = 0.0
    for i in range(n):
        begins[cell_of(values[i], values[0], scale, n_cells) + 1] += np.uint32(1)
    for cell in range(n_cells):
        begins[cell + 1] += begins[cell]
    return begins, values[0], scale


@kernel
def cell_of(score, origin, scale, n_cells):
    """Return the cell of a score in the grid, the first or the last one outside of it."""
    if scale == 0.0:
        return 0
    return int(min(max((score - origin) * scale, 0.0), n_cells - 1.0))


@kernel
def read_fits(scores, ends, fits, begins, origin, scale, or_equal, out):
    """Write to ``out`` (n,) the fit of each score: entry j of ``fits`` if j ends lie below it.

    With ``or_equal``, ends that are equal to the score count too. ``begins``, ``origin`` and
    ``scale`` are the grid that shortens the search.
    """
    unit = np.uint32(1)  # unsigned numbers spare the test for a negative index
    n_cells = len(begins) - 1
    for i in range(len(scores)):
        score = scores[i]
        cell = np.uint32(cell_of(score, origin, scale, n_cells))
        low, high = begins[cell], begins[cell + unit]
        # The run of the score, among the ends in its cell: by halving, then one by one.
        while high - low > np.uint32(4):
            middle = (low + high) >> unit
            end = ends[middle]
            if (end < score) | (or_equal & (end == score)):
                low = middle + unit
            else:
                high = middle
        while low < high:
            end = ends[low]
            if not (end < score) | (or_equal & (end == score)):
                break
            low += unit
        out[i] = fits[low]


@kernel
def read_steps(scores, p0, p1, out):
    """Write p0 and p1 of scores (n,), each read from its table of fits, to ``out`` (2, n)."""
    read_fits(scores, *p0, True, out[0])
    read_fits(scores, *p1, False, out[1])
    for i in range(len(scores)):
        out[0, i] = min(out[0, i], out[1, i])  # rounding of large sums may exceed the difference


@kernel
def hull_tree(W, Y):
    """Return the lower convex hulls of blocks of 32, 64, ... points P_i = (W_i, Y_i), i < n.

    ``corners`` (depth, n) and ``sizes`` (depth, n_blocks) have a row for each size of block. The
    hull of the block that begins with P_i has the points
    ``corners[level, i : i + sizes[level, block]]``.
    """
    n, depth = len(W), 1
    while BLOCK_SIZE << (depth - 1) < n:
        depth += 1
    corners = np.empty((depth, n), np.int32)
    sizes = np.zeros((depth, (n - 1) // BLOCK_SIZE + 1), np.int32)
    for i in range(n):
        block = i // BLOCK_SIZE
        sizes[0, block] = with_corner(W, Y, corners[0], block * BLOCK_SIZE, sizes[0, block], i)
    for level in range(1, depth):
        width = BLOCK_SIZE << (level - 1)
        # A corner of a block is one of its halves'.
        for half in range((n - 1) // width + 1):
            block, begin = half >> 1, half * width
            start = block * 2 * width
            for i in corners[level - 1, begin : begin + sizes[level - 1, half]]:
                size = with_corner(W, Y, corners[level], start, sizes[level, block], i)
                sizes[level, block] = size
    return corners, sizes


@kernel
def lower_point(W, Y, i, j, rise, run):
    """Return which of two points a line of slope rise / run touches first from below."""
    return np.int64(j if (Y[j] - Y[i]) * run < rise * (W[j] - W[i]) else i)


@kernel
def lowest_corner(W, Y, hulls, level, block, rise, run):
    """Return the corner of one hull that a line of slope rise / run touches first from below."""
    corners, sizes = hulls
    low = block * (BLOCK_SIZE << level)
    high = low + sizes[level, block] - 1
    # Slopes between corners rise from left to right: the line touches where they pass its own.
    while low < high:
        middle = (low + high) >> 1
        i, j = corners[level, middle], corners[level, middle + 1]
        if (Y[j] - Y[i]) * run < rise * (W[j] - W[i]):
            low = middle + 1
        else:
            high = middle
    return np.int64(corners[level, low])


@kernel
def lowest_point(W, Y, hulls, first, last, rise, run):
    """Return the point among first ... last that a line of slope rise / run touches from below."""
    best = i = np.int64(first)
    top = len(hulls[0]) - 1
    level = 0
    # From left to right in blocks of the tree, as large as fit, and single points beside them.
    while i <= last:
        while level < top and not i & ((BLOCK_SIZE << (level + 1)) - 1):
            level += 1
        while level >= 0 and (
            i & ((BLOCK_SIZE << level) - 1) or i + (BLOCK_SIZE << level) > last + 1
        ):
            level -= 1
        if level < 0:
            best = lower_point(W, Y, best, i, rise, run)
            level, i = 0, i + 1
        else:
            j = lowest_corner(W, Y, hulls, level, i // (BLOCK_SIZE << level), rise, run)
            best = lower_point(W, Y, best, j, rise, run)
            i += BLOCK_SIZE << level
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
def read_left_out(scores, left_out, examples, x, points, hulls, p0, p1, out):
    """Write p0 and p1 of each score, without example number ``left_out[i]``, to ``out`` (2, n).

    -1 stands for all examples. ``height`` and ``slope`` are those of the lower hull of all points,
    at each W and beyond it; ``p0`` and ``p1`` are of the `step_function` of all examples.
    """
    (position, label, weight), (W, Y, height, slope) = examples, points
    rounding = 1e-12 * W[-1]
    for v in range(2):
        ends, a, b = p1 if v == 1 else p0
        for i in range(len(scores)):
            # p1 depends on the scores below the new one, p0 on those up to it.
            score = scores[i] if v == 1 else np.nextafter(scores[i], np.inf)
            step = np.searchsorted(ends, score)
            # The touching line of all examples, from P_a to P_b + (1, v).
            left, right = a[step], b[step]
            rise, run = Y[right] - Y[left] + v, W[right] - W[left] + 1
            fit = rise / run
            r = left_out[i]
            if r >= 0 and weight[r] > 0:
                q, w = np.int64(position[r]), weight[r]
                # Left of the line a positive example moves all points beyond it up, seen from it,
                # and a negative one w t down for slope t; right of it a negative one moves them up,
                # and a positive one w (1 - t) down. They still do not touch the line where the
                # hull, which is below all of them, is high enough at P_q and rises away from it.
                if label[r]:
                    is_far = q < left or (
                        q >= right
                        and slope[q] >= fit
                        and height[q + 1] - Y[right] - fit * (W[q + 1] - W[right])
                        > w * (1 - fit) + rounding
                    )
                else:
                    is_far = q >= right or (
                        q < left
                        and slope[q] <= fit
                        and height[q] - Y[left] - fit * (W[q] - W[left]) > w * fit + rounding
                    )
                if not is_far:
                    k = np.searchsorted(x, score)
                    fit = fit_without(W, Y, hulls, k, v, q, w, w * label[r], rise, run)
            out[v, i] = min(max(fit, 0.0), 1.0)
    for i in range(len(scores)):
        out[0, i] = min(out[0, i], out[1, i])
