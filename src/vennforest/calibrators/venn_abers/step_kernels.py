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

Weights that are no counts may be of very different size, and in sums of them a new observation of
weight 1 would drown. Their sums are pairs of numbers, ``W + W_low`` and ``Y + Y_low``, with twice
the digits (Dekker 1971); for counts, whose sums are exact, ``W_low`` and ``Y_low`` are None. Of
three points the slopes from the first to the second and from the second to the third are compared:
where rounding makes these two equal, every slope of the three is as good as equal.
"""

import numpy as np

from vennforest._jit import kernel

CELLS, LARGEST_GRID = 8, 1 << 20
"""Cells a value in the grid that shortens searches, and their number from which on one will do."""

PARTS = 256
"""Parts of the range into which scores are sorted before they are looked up in a large table."""

DIGIT = 11
"""Bits of one radix pass: six passes for 64, with counters that stay in the first-level cache."""

FIRST_DIGIT = 3
"""Digits from this one to the sixth are sorted by first: sign, exponent and 21 bits of fraction."""


@kernel
def split(scores, positive, out):
    """Write scores of label 0 to the front of ``out``, the others to its end; return how many."""
    i, j = 0, len(out) - 1
    for k in range(len(scores)):
        out[i] = out[j] = scores[k]  # one of the two places is written to again
        if positive[k]:
            j -= 1
        else:
            i += 1
    return i


@kernel
def radix_pass(source, target, digit):
    """Sort keys stably by one digit; return the array (of the two) that contains them."""
    n = len(source)
    mask = np.uint64((1 << DIGIT) - 1)
    shift = np.uint64(DIGIT * digit)
    places = np.zeros(1 << DIGIT, np.uint32)
    for i in range(n):
        places[(source[i] >> shift) & mask] += np.uint32(1)
    if places[(source[0] >> shift) & mask] == n:
        return source, target
    total = np.uint32(0)
    for value in range(1 << DIGIT):
        total, places[value] = total + places[value], total
    for i in range(n):
        key = source[i]
        at = (key >> shift) & mask
        target[places[at]] = key
        places[at] += np.uint32(1)
    return target, source


@kernel
def insertion_sort(keys, most_moves):
    """Sort keys that are nearly in order; tell whether so many moves were enough."""
    left = most_moves
    for i in range(1, len(keys)):
        key = keys[i]
        j = i
        while j > 0 and keys[j - 1] > key:
            keys[j] = keys[j - 1]
            j -= 1
        keys[j] = key
        left -= i - j
        if left < 0:
            return False
    return True


@kernel
def radix_sort(bits, spare):
    """Sort float64 values given as uint64 bits; return the array (of the two) that contains them.

    Flipping the sign bit of positive numbers and all bits of negative ones makes the order of the
    numbers the order of the bits. After the digits on the left few numbers are out of order, unless
    they lie so near to each other that the digits on the right have to be gone through as well.
    """
    n = len(bits)
    top = np.uint64(1 << 63)
    for i in range(n):
        key = bits[i]
        bits[i] = key ^ ((np.uint64(0) - (key >> np.uint64(63))) | top)
    source, target = bits, spare
    for digit in range(FIRST_DIGIT, 6):
        source, target = radix_pass(source, target, digit)
    if not insertion_sort(source, 2 * n):
        for digit in range(6):
            source, target = radix_pass(source, target, digit)
    for i in range(n):
        key = source[i]
        source[i] = key ^ (((key >> np.uint64(63)) - np.uint64(1)) | top)
    return source


@kernel
def merge_sorted(negatives, positives, x, W, Y):
    """Write the distinct scores of two sorted arrays, and the cumulative points W, Y.

    Returned is the number m of distinct scores; of W and Y m + 1 numbers are written.
    """
    n, p = len(negatives), len(positives)
    W[0] = Y[0] = 0.0
    i, j, m = 0, 0, 0
    # Merge: i negatives and j positives lie at or below the score, so P of it is (i + j, j).
    while i < n or j < p:
        if i < n and j < p:
            negative, positive = negatives[i], positives[j]
            if negative <= positive:
                score = negative
                i += 1
            else:
                score = positive
                j += 1
        elif i < n:
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
    return m


@kernel
def two_sum(a, b):
    """Return a + b as the nearest number and what rounding left (Knuth; exact for any a, b)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@kernel
def between(P, P_low, i, j):
    """Return P_j - P_i, to the last digits also where both are much larger."""
    if P_low is None:
        return P[j] - P[i]
    return (P[j] - P[i]) + (P_low[j] - P_low[i])


@kernel
def convex(W, Y, W_low, Y_low, i, j, n):
    """Tell whether P_j lies below the line from P_i to P_n."""
    return between(Y, Y_low, i, j) * between(W, W_low, j, n) < between(Y, Y_low, j, n) * between(
        W, W_low, i, j
    )


@kernel
def add(sums, at, value):
    """Add a value to the sum of three numbers in row ``at``, which rounds after 150 bits."""
    sums[at, 0], rest = two_sum(sums[at, 0], value)
    sums[at, 1], rest = two_sum(sums[at, 1], rest)
    sums[at, 2] += rest


@kernel
def cumulate(numbers, weight, label, m):
    """Return the cumulative points as pairs of numbers: W, W_low, Y, Y_low, each (m + 1,).

    Example i of weight ``weight[i]`` and label 0 or 1 stands at score number ``numbers[i]``.
    """
    at_score = np.zeros((2 * m, 3), np.float64)
    for i in range(len(numbers)):
        add(at_score, 2 * np.int64(numbers[i]) + np.int64(label[i]), weight[i])
    # P_(k+1) = P_k + (w_k, y_k), added in triples and rounded once, to a pair.
    points = np.zeros((4, m + 1), np.float64)
    total = np.zeros((2, 3), np.float64)  # of all weight, and of the positive
    for k in range(m):
        for part in range(3):
            add(total, 0, at_score[2 * k, part])
            add(total, 0, at_score[2 * k + 1, part])
            add(total, 1, at_score[2 * k + 1, part])
        for kind in range(2):
            high, low = two_sum(total[kind, 0], total[kind, 1])
            high, low = two_sum(high, low + total[kind, 2])
            points[2 * kind, k + 1], points[2 * kind + 1, k + 1] = high, low
    return points[0], points[1], points[2], points[3]


@kernel
def suffix_hulls(W, Y, W_low, Y_low, after):
    """Write for every point the corner that follows it on the hull of it and all after it."""
    m = len(W) - 1
    after[m] = -1
    # Andrew's monotone chain from the right: what follows P_i is the first corner of the hull
    # beyond it that stays one with P_i in front.
    for i in range(m - 1, -1, -1):
        j = np.int64(i + 1)
        n = np.int64(after[j])
        while n >= 0 and not convex(W, Y, W_low, Y_low, i, j, n):
            j = n
            n = np.int64(after[j])
        after[i] = j


@kernel
def insert(W, Y, W_low, Y_low, after, v, queue, found):
    """Find the isotonic fit of a new observation of label v at every place.

    What ``suffix_hulls`` wrote is read; ``queue`` (m + 1,) and ``found`` (3, m + 1) are written to.
    Returned are the first place of each run of places with the same fit, and a and b, where the
    touching line of that run meets P_0... and the moved points, each (n_steps,) int32.

    As k grows the fit does not decrease, so neither touching point moves back: one pass over the
    places, with the hull of the points left of the line in a queue and the hull of any suffix as
    links to the next corner, is linear (the idea of Vovk, Petej & Fedorova 2015, Algorithms 1-4).
    """
    m = len(W) - 1
    first, last = 0, -1  # of the queue: corners of the hull of P_a ... P_k, P_a first
    done = 0  # points that have been in the queue, or never will be corners of it
    steps = 0
    left = right = np.int64(0)
    rise, run = 0.0, 0.0
    value = -1.0
    before = -1, -1
    # Place k: a over the hull of P_0 ... P_k, b over that of the moved points P_k ... P_m.
    for k in range(m + 1):
        # Above the touching line a further point changes nothing. Rounding must not decide that.
        exact = W_low is None
        if exact and 0 < k <= right and (Y[k] - Y[left]) * run >= rise * (W[k] - W[left]):
            continue
        # The minimum over b for each a, its maximum over a: P_k joins the hull on the left, whose
        # last corners go while they lie on or above the line to it.
        for j in range(done, k + 1):
            if 0 < j < k and not convex(W, Y, W_low, Y_low, j - 1, j, j + 1):
                continue
            while last > first and not convex(W, Y, W_low, Y_low, queue[last - 1], queue[last], j):
                last -= 1
            last += 1
            queue[last] = j
        done = k + 1
        # Here the line from P_a to P_b + (1, v) is that of the place before, or starts at P_k.
        right = max(right, k)
        left = np.int64(queue[first])
        rise, run = between(Y, Y_low, left, right) + v, between(W, W_low, left, right) + 1
        moved = True
        while moved:
            moved = False
            # The minimum over b: the next corner on the right, while it does not rise faster.
            n = np.int64(after[right])
            while n >= 0 and between(Y, Y_low, right, n) * run <= rise * between(
                W, W_low, right, n
            ):
                right = n
                rise, run = between(Y, Y_low, left, right) + v, between(W, W_low, left, right) + 1
                n = np.int64(after[right])
            # One step only: seen from a right point that lags behind, the next may be too much.
            if first < last:
                n = np.int64(queue[first + 1])
                new_rise = between(Y, Y_low, n, right) + v
                new_run = between(W, W_low, n, right) + 1
                if between(Y, Y_low, left, n) * new_run < new_rise * between(W, W_low, left, n):
                    first += 1
                    left, rise, run = n, new_rise, new_run
                    moved = True
        # Equal touching points are the same step; so are equal slopes of different ones.
        if left == before[0] and right == before[1]:
            continue
        before = left, right
        fit = rise / run
        if fit != value:
            found[0, steps], found[1, steps], found[2, steps] = k, left, right
            value = fit
            steps += 1
    return found[0, :steps].copy(), found[1, :steps].copy(), found[2, :steps].copy()


@kernel
def read_fits(x, W, Y, W_low, Y_low, start, a, b, label):
    """Return the scores between runs of places, and the fit of each run.

    The last digits of sums of weights may not make a fit leave [0, 1], or be less than the one
    before it; for counts neither happens.
    """
    n = len(start)
    ends = np.empty(n - 1, np.float64)
    fits = np.empty(n, np.float64)
    least = 0.0
    for i in range(n):
        if i:
            ends[i - 1] = x[start[i] - 1]
        rise = between(Y, Y_low, a[i], b[i]) + label
        # The slope from P_a to P_b + (1, v), not below that of the place before (monotone in k).
        least = min(max(least, rise / (between(W, W_low, a[i], b[i]) + 1)), 1.0)
        fits[i] = least
    return ends, fits


@kernel
def guide(values):
    """Lay a grid of equal cells over sorted values, to shorten the search in them.

    There are ``CELLS`` a value, as long as that is not a matter of memory. Returned is how many
    values lie in cells before each one, (cells + 1,) uint32, with origin and scale: the cell of s
    is (s - origin) * scale, cut to 0 ... cells - 1. It does not decrease in s, whatever the
    rounding, so the value that s is searched for lies in the cell of s.
    """
    n = len(values)
    cells = max(1, n, min(CELLS * n, LARGEST_GRID))
    begins = np.zeros(cells + 1, np.uint32)
    if n == 0:
        return begins, 0.0, 0.0
    scale = scale_of(values[0], values[n - 1], cells)
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
def read_steps(scores, values, fits, begins, origin, scale, equal, out, numbers):
    """Look up the fits of scores.

    The fit of s is the one whose number is the count of values below s (``equal``: up to s). The
    grid leaves few values to a cell; where it leaves many the search begins with halving. It is
    written to the place of the score in ``out``, or the one that ``numbers`` gives.
    """
    one = np.uint32(1)  # unsigned numbers spare the test for a negative index
    cells = len(begins) - 1
    for i in range(len(scores)):
        s = scores[i]
        cell = np.uint32(cell_of(s, origin, scale, cells))
        low, high = begins[cell], begins[cell + one]
        # The k of the score, among the values of its cell: by halving, then one by one.
        while high - low > np.uint32(4):
            middle = (low + high) >> one
            value = values[middle]
            if (value < s) | (equal & (value == s)):
                low = middle + one
            else:
                high = middle
        while low < high:
            value = values[low]
            if not (value < s) | (equal & (value == s)):
                break
            low += one
        if numbers is None:
            out[i] = fits[low]
        else:
            out[numbers[i]] = fits[low]


@kernel
def sort_into_parts(scores, low, scale, ordered, numbers):
    """Write scores and their numbers, sorted by which part of a range they are in.

    Look-ups in a table that no cache contains find what they need there when neighbours come in
    turn.
    """
    counts = np.zeros(PARTS + 1, np.int64)
    for i in range(len(scores)):
        counts[cell_of(scores[i], low, scale, PARTS) + 1] += 1
    for part in range(PARTS):
        counts[part + 1] += counts[part]
    for i in range(len(scores)):
        part = cell_of(scores[i], low, scale, PARTS)
        ordered[counts[part]] = scores[i]
        numbers[counts[part]] = i
        counts[part] += 1


@kernel
def scale_of(low, high, cells):
    """Return the scale that puts low ... high into so many cells, 0 where there is none."""
    span = high - low
    scale = cells / span if span > 0 else 0.0
    return scale if np.isfinite(span) and np.isfinite(scale) else 0.0


@kernel
def group(x, W, Y, W_low, Y_low, edges, mean, weight, positive):
    """Add up the weights of scores between one edge and the next, both ascending.

    Writes the mean score, the weight and the positive weight of each group that has any, and
    returns their number.
    """
    m = len(x)
    groups, start, edge = 0, 0, 0
    total = 0.0
    for i in range(m):
        # the last digits of sums of weights may make a part negative, or larger than the whole
        total += x[i] * max(between(W, W_low, i, i + 1), 0.0)
        while edge < len(edges) and edges[edge] <= x[i]:
            edge += 1
        if i + 1 < m and (edge == len(edges) or x[i + 1] < edges[edge]):
            continue
        whole = between(W, W_low, start, i + 1)
        if whole > 0:
            mean[groups] = min(max(total / whole, x[0]), x[m - 1])
            weight[groups] = whole
            positive[groups] = min(max(between(Y, Y_low, start, i + 1), 0.0), whole)
            groups += 1
        start, total = i + 1, 0.0
    return groups
