"""Venn–Abers without some calibration examples, exactly and without refitting: compiled loops.

The notation is that of ``step_kernels``. Taking away an observation of label y and weight w at
score number q moves the points P_{q+1}, ..., P_m by (-w, -w y). Where one is taken away, that
changes nothing at most new scores' places, which a comparison tells (``reach``); else the new slope
is found by Newton's method on hulls of blocks of points (``hull_tree``), which moving does not
change.

``points`` is the tuple W, Y, W_low, Y_low, ``hulls`` what ``hull_tree`` returns.
"""

import numpy as np

from vennforest._jit import kernel
from vennforest.calibrators.venn_abers.step_kernels import between, convex, two_sum

LEAF = 32
"""Points in the smallest block of the hull tree; a block is looked through one by one."""

TILT = 2e-15
"""What rounding may do to a slope where weights are not counts, relative to the slope."""


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
def hull_tree(points):
    """Build the lower hulls of the blocks of 32, 64, 128, ... points: three int32 arrays.

    ``corners``: the point numbers of all hulls, level by level, block by block; ``begins``: where
    each block's corners begin, levels one after the other, with a closing entry a level;
    ``levels``: where each level begins in ``begins``.
    """
    W, Y, W_low, Y_low = points
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
        # A block's hull comes from the points, or from the corners of its two halves: no other
        # point of them can be a corner of the whole.
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
                    if convex(W, Y, W_low, Y_low, corners[used - 2], corners[used - 1], j):
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
def lowest_in_block(points, hulls, entry, rise, run):
    """Return the corner of one hull that a line of slope rise / run touches first from below."""
    W, Y, W_low, Y_low = points
    corners, begins, _ = hulls
    low, high = begins[entry], begins[entry + 1] - 1
    # Slopes between corners rise from left to right: the line touches where they pass its own.
    while low < high:
        middle = (low + high) >> 1
        i, j = corners[middle], corners[middle + 1]
        if between(Y, Y_low, i, j) * run < rise * between(W, W_low, i, j):
            low = middle + 1
        else:
            high = middle
    return np.int64(corners[low])


@kernel
def lower(points, i, j, rise, run):
    """Return which of two points a line of slope rise / run from below touches first."""
    W, Y, W_low, Y_low = points
    if between(Y, Y_low, i, j) * run < rise * between(W, W_low, i, j):
        return np.int64(j)
    return np.int64(i)


@kernel
def lowest(points, hulls, first, last, rise, run):
    """Return the point among first ... last that a line of slope rise / run touches from below."""
    best = np.int64(first)
    left, right = first // LEAF, last // LEAF
    # Blocks that lie partly outside are looked through, whole ones are asked through the tree.
    stop = last + 1 if left == right else (left + 1) * LEAF
    for i in range(first + 1, stop):
        best = lower(points, best, i, rise, run)
    if left == right:
        return best
    for i in range(right * LEAF, last + 1):
        best = lower(points, best, i, rise, run)
    # Whole blocks left + 1 ... right - 1, as few as cover them: at each level one that has no
    # sibling on the left, and one that has none on the right.
    left += 1
    level = 0
    while left < right:
        entry = hulls[2][level]
        if left & 1:
            i = lowest_in_block(points, hulls, entry + left, rise, run)
            best = lower(points, best, i, rise, run)
            left += 1
        if right & 1:
            right -= 1
            i = lowest_in_block(points, hulls, entry + right, rise, run)
            best = lower(points, best, i, rise, run)
        left >>= 1
        right >>= 1
        level += 1
    return best


@kernel
def move(P, P_low, i, by, by_low):
    """Return P_i - by, as the sum of two numbers."""
    if P_low is None:
        return P[i] - by, 0.0
    high, low = two_sum(P[i], -by)
    return two_sum(high, low + (P_low[i] - by_low))


@kernel
def fit_without(points, hulls, k, v, places, moves, gone, rise, run):
    """Return the fit of a new observation of label v at place k without some observations.

    Number i of the ``gone`` that leave stands at score number ``places[i]``, which do not decrease,
    and the points to the right of it, up to the next, move by ``-moves[i + 1]``: weight and its
    low part, positive weight and its low part. The search starts from the slope rise / run.

    With g(t) the lowest of Y - t W over the moved points from k on minus the lowest over those up
    to k, the fit is the root of g, which decreases: Newton's method on a piecewise linear function,
    kept inside a bracket that every step narrows. It ends where g is 0, exactly for counts. For
    other weights the line is tilted by more than rounding, so of points that are as good as
    equally low the one nearest to k is taken: that leaves the root within the tilt, while a
    distant one, seen from afar, would hide what a light observation near k does.
    """
    W, Y, W_low, Y_low = points
    m = len(W) - 1
    tilt = 0.0 if W_low is None else TILT
    low, high = -1.0, 2.0
    step = 0
    while True:
        steeper, flatter = rise * (1 + tilt), rise * (1 - tilt)
        wa = wa_low = ya = ya_low = wb = wb_low = yb = yb_low = 0.0
        none_left, none_right = True, True
        # Pieces between those that leave are moved as one, so hulls of their blocks stay hulls.
        # a is the lowest of Y - t W over the moved P_0 ... P_k, b that over the moved P_k ... P_m.
        for piece in range(gone + 1):
            first = 0 if piece == 0 else places[piece - 1] + 1
            last = m if piece == gone else places[piece]
            if first > last:
                continue
            if first <= k:
                i = lowest(points, hulls, first, min(last, k), steeper, run)
                w, w_low = move(W, W_low, i, moves[piece, 0], moves[piece, 1])
                y, y_low = move(Y, Y_low, i, moves[piece, 2], moves[piece, 3])
                if none_left or ((y - ya) + (y_low - ya_low)) * run < steeper * (
                    (w - wa) + (w_low - wa_low)
                ):
                    wa, wa_low, ya, ya_low = w, w_low, y, y_low
                    none_left = False
            if last >= k:
                i = lowest(points, hulls, max(first, k), last, flatter, run)
                w, w_low = move(W, W_low, i, moves[piece, 0], moves[piece, 1])
                y, y_low = move(Y, Y_low, i, moves[piece, 2], moves[piece, 3])
                if none_right or ((y - yb) + (y_low - yb_low)) * run < flatter * (
                    (w - wb) + (w_low - wb_low)
                ):
                    wb, wb_low, yb, yb_low = w, w_low, y, y_low
                    none_right = False
        # g(t) = rise' - t run' of the line from P_a to P_b + (1, v); its sign narrows the bracket.
        new_rise = (yb - ya) + (yb_low - ya_low) + v
        new_run = (wb - wa) + (wb_low - wa_low) + 1
        t = rise / run
        gap = new_rise * run - rise * new_run
        # A gap that is no number narrows it too, so the search ends whatever is given.
        if gap > 0:
            low = max(low, t)
        else:
            high = min(high, t)
        slope = new_rise / new_run
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
def dips(points, hulls, entry, rise, run, height):
    """Tell whether a block has a point with Y - t W < height for t = rise / run."""
    i = lowest_in_block(points, hulls, entry, rise, run)
    return points[1][i] - points[0][i] * (rise / run) < height


@kernel
def end_below(points, hulls, rise, run, height, last):
    """Return the first, or the last, point with Y - t W < height for t = rise / run.

    Where there is none: the number of points, or -1.
    """
    W, Y, _, _ = points
    levels = hulls[2]
    n, block, level = len(W), 0, len(levels) - 1
    if not dips(points, hulls, levels[level], rise, run, height):
        return -1 if last else n
    # Down the tree, always into the half on the wanted side that has such a point.
    while level > 0:
        level -= 1
        entry, block = levels[level], 2 * block
        if last:
            size = levels[level + 1] - entry - 1  # the last block may have one half only
            sibling = block + 1
            if sibling < size and dips(points, hulls, entry + sibling, rise, run, height):
                block = sibling
        elif not dips(points, hulls, entry + block, rise, run, height):
            block += 1
    if last:
        i = min(n, (block + 1) * LEAF) - 1
        while i >= block * LEAF and not Y[i] - W[i] * (rise / run) < height:
            i -= 1
        return i
    i, stop = block * LEAF, min(n, (block + 1) * LEAF)
    while i < stop and not Y[i] - W[i] * (rise / run) < height:
        i += 1
    return i


@kernel
def reach(points, hulls, a, b, v, heaviest):
    """Find, for every step, which observations may change its fit by leaving.

    One of label 0 left of score number ``first`` changes nothing, nor does one of label 1 at or
    right of score number ``last``: two arrays (n_steps,) of int32.

    An observation outside of the block a ... b moves all points beyond it, seen from the block, by
    w (y - t) up or down. Up changes nothing; down by w t (label 0, to the left) or w (1 - t) (label
    1, to the right) changes nothing while those points stay on or above the touching line.
    """
    W, Y, W_low, Y_low = points
    n_steps = len(a)
    first = np.empty(n_steps, np.int32)
    last = np.empty(n_steps, np.int32)
    # Rounding may only ever make the reach longer, never shorter.
    slack = 1e-6 * max(1.0, heaviest) + 1e-12 * W[-1]
    for i in range(n_steps):
        rise, run = between(Y, Y_low, a[i], b[i]) + v, between(W, W_low, a[i], b[i]) + 1
        t = rise / run
        # Heights over lines of slope t: of the touching line, and how far down a neighbour may go.
        line = Y[a[i]] - t * W[a[i]]
        below, above = line + heaviest * t + slack, line - (v - t) + heaviest * (1 - t) + slack
        first[i] = min(a[i], end_below(points, hulls, rise, run, below, False))
        last[i] = max(b[i], end_below(points, hulls, rise, run, above, True))
    return first, last


@kernel
def read_left_out(scores, left_out, groups, examples, x, points, hulls, v, steps, out):
    """Look up p_v of scores, each without some calibration examples.

    Number i is read without example ``left_out[i]``, -1: without none. Where ``groups`` has starts,
    it is read without ``members[starts[g]], ..., members[starts[g + 1] - 1]`` for ``g =
    left_out[i]``, in the order of their scores. ``examples`` are the score number, label and weight
    (an empty array: 1 each) of every example, ``steps`` those of the fit with all examples, and
    what ``reach`` returns for them.
    """
    W, Y, W_low, Y_low = points
    (members, starts), (position, label, weight) = groups, examples
    ends, a, b, first, last = steps
    longest = np.int64(1)
    for g in range(len(starts) - 1):
        longest = max(longest, starts[g + 1] - starts[g])
    places = np.empty(longest, np.int64)
    moves = np.zeros((longest + 1, 4), np.float64)
    for i in range(len(scores)):
        # The fit with all examples: its step, and the line from P_a to P_b + (1, v).
        # p1 depends on the values below the score, p0 on those up to it (``kernels``).
        s = scores[i] if v == 1 else np.nextafter(scores[i], np.inf)
        step = count_below(ends, s)
        rise = between(Y, Y_low, a[step], b[step]) + v
        run = between(W, W_low, a[step], b[step]) + 1
        r = left_out[i]
        untouched = r < 0
        gone = np.int64(0)
        if not untouched and len(starts) == 0:
            gone = np.int64(1)
            q, y = np.int64(position[r]), label[r]
            places[0] = q
            moves[1, 0] = 1.0 if len(weight) == 0 else weight[r]
            moves[1, 2] = moves[1, 0] if y == 1 else 0.0
            # Outside of the step's reach an example changes nothing (``reach``).
            # a fit of 0 or 1 stays; sums that round to that may be of something else
            if y == 1:
                untouched = q < a[step] or q >= last[step] or (rise == run and W_low is None)
            else:
                untouched = q < first[step] or q >= b[step] or (rise == 0 and W_low is None)
        elif not untouched:
            gone = starts[r + 1] - starts[r]
            untouched = gone == 0
            # Cumulative moves of the pieces between a group's examples, as pairs of numbers.
            for n in range(gone):
                e = members[starts[r] + n]
                places[n] = position[e]
                w = 1.0 if len(weight) == 0 else weight[e]
                high, low = two_sum(moves[n, 0], w)
                moves[n + 1, 0], moves[n + 1, 1] = two_sum(high, low + moves[n, 1])
                high, low = two_sum(moves[n, 2], w if label[e] == 1 else 0.0)
                moves[n + 1, 2], moves[n + 1, 3] = two_sum(high, low + moves[n, 3])
        if untouched:
            fit = rise / run
        else:
            # Else the touching line is searched for again, from the old one on.
            k = count_below(x, s)
            fit = fit_without(points, hulls, k, v, places, moves, gone, rise, run)
        out[i] = min(max(fit, 0.0), 1.0)
