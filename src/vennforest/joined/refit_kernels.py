"""Venn–Abers where the new object changes scores of calibration examples: compiled loops.

The notation is that of ``step_kernels``. Isotonic fits may pool from any start: what lies left of
the new score and what lies right of it are fitted apart, and then pooled with it for as long as
they violate its order. Stretches without a change are taken from the hulls over blocks of points
(``left_out_kernels.hull_tree``), which are the isotonic fits of these blocks.
"""

import numpy as np

from vennforest._jit import kernel, step
from vennforest.calibrators.venn_abers.left_out_kernels import LEAF, count_below
from vennforest.calibrators.venn_abers.step_kernels import between


@kernel
def pool(w, y, top, weights, sums):
    """Put a block of weight w and sum y on a stack whose means increase; return its new top."""
    while top >= 0 and sums[top] * w >= y * weights[top]:
        w += weights[top]
        y += sums[top]
        top -= 1
    top += 1
    weights[top], sums[top] = w, y
    return top


@kernel
def pool_upwards(W, Y, W_low, Y_low, corners, begins, levels, a, b, top, weights, sums):
    """Pool the observations between the points P_a and P_b from the left; return the new top."""
    i = a
    while i < b:
        if i % LEAF != 0 or i + LEAF - 1 > b:
            top = pool(between(W, W_low, i, i + 1), between(Y, Y_low, i, i + 1), top, weights, sums)
            i += 1
            continue
        level, size, block = 0, LEAF, i // LEAF
        while block % 2 == 0 and i + 2 * size - 1 <= b and level + 1 < len(levels):
            level, size, block = level + 1, 2 * size, block // 2
        entry = levels[level] + block
        for c in range(begins[entry] + 1, begins[entry + 1]):
            h, j = corners[c - 1], corners[c]
            top = pool(between(W, W_low, h, j), between(Y, Y_low, h, j), top, weights, sums)
        i += size - 1
    return top


@kernel
def pool_downwards(W, Y, W_low, Y_low, corners, begins, levels, a, b, top, weights, sums):
    """Pool the observations between P_b and P_a from the right, labels turned; return the top."""
    i = b
    while i > a:
        if (i + 1) % LEAF != 0 or i - LEAF + 1 < a:
            w = between(W, W_low, i - 1, i)
            top = pool(w, w - between(Y, Y_low, i - 1, i), top, weights, sums)
            i -= 1
            continue
        level, size, block = 0, LEAF, i // LEAF
        while block % 2 == 1 and i - 2 * size + 1 >= a and level + 1 < len(levels):
            level, size, block = level + 1, 2 * size, block // 2
        entry = levels[level] + block
        for c in range(begins[entry + 1] - 1, begins[entry], -1):
            h, j = corners[c - 1], corners[c]
            w = between(W, W_low, h, j)
            top = pool(w, w - between(Y, Y_low, h, j), top, weights, sums)
        i -= size - 1
    return top


@kernel
def mark(place, marks, busy):
    """Note that something changes at a place."""
    marks[place] = 1
    busy[place >> 8] = 1


@kernel
def sort_chain(head, following, scores, chain):
    """Write a chain of numbers from ``head`` on into ``chain`` by rising score; return how many."""
    n = 0
    while head >= 0:
        chain[n] = head
        head = following[head]
        n += 1
    if n > 16:
        values = np.empty(n)
        for i in range(n):
            values[i] = scores[chain[i]]
        ordered = chain[:n][np.argsort(values)]
        for i in range(n):
            chain[i] = ordered[i]
        return n
    for i in range(1, n):
        one = chain[i]
        j = i - 1
        while j >= 0 and scores[chain[j]] > scores[one]:
            chain[j + 1] = chain[j]
            j -= 1
        chain[j + 1] = one
    return n


@step
def note_changes(i, objects, examples, x, new, pending):
    """Step 1: note what leaves its score and what comes to one; return how many come.

    The object itself comes first. What leaves is taken off at once where every weight is 1; else
    it is stamped, because a sum of weights would lose digits, and the rest is added up in step 2.
    """
    own, label, offsets, rows, changed = objects
    numbers, labels, weight, stamps = examples
    scores, ws, ys = new
    marks, busy, more_w, more_y, heads, following = pending
    scores[0], ws[0], ys[0] = own[i], 1.0, label[i]
    n = 1
    for c in range(offsets[i], offsets[i + 1]):
        e = np.int64(rows[c])
        place = np.int64(numbers[e])
        if changed[c] == x[place]:
            continue
        w = 1.0
        if len(weight):
            w = weight[e]
            stamps[e] = i
        else:
            more_w[place] -= 1.0
            more_y[place] -= labels[e]
        mark(2 * place + 1, marks, busy)
        scores[n], ws[n], ys[n] = changed[c], w, w * labels[e]
        n += 1
    for j in range(n):
        place = count_below(x, scores[j])
        if place < len(x) and x[place] == scores[j]:
            more_w[place] += ws[j]
            more_y[place] += ys[j]
            mark(2 * place + 1, marks, busy)
        else:
            following[j], heads[place] = heads[place], j
            mark(2 * place, marks, busy)
    return n


@step
def order_changes(i, own, examples, x, W, Y, W_low, Y_low, new, pending, chain, events):
    """Step 2: write the observations that differ, from left to right; return how many, and whose.

    Each is the observations from point ``at`` to point ``to``, which become one of weight
    ``event_w`` and sum ``event_y``; the second number is that of the object's own. Going through
    the marks gives them in order, without sorting.
    """
    labels, weight, stamps, order, members = examples
    scores, ws, ys = new
    marks, words, busy, more_w, more_y, heads, following = pending
    at, to, event_w, event_y = events
    n, centre = 0, -1
    for block in range(len(busy)):
        if busy[block] == 0:
            continue
        busy[block] = 0
        for word in range(32 * block, 32 * block + 32):
            if words[word] == 0:
                continue
            for spot in range(8 * word, 8 * word + 8):
                if marks[spot] == 0:
                    continue
                marks[spot] = 0
                place = spot >> 1
                if spot & 1:  # at a score: what it had, less what left, and what came
                    w, y = more_w[place], more_y[place]
                    if len(weight) == 0:
                        w += between(W, W_low, place, place + 1)
                        y += between(Y, Y_low, place, place + 1)
                    else:
                        for c in range(members[place], members[place + 1]):
                            e = order[c]
                            if stamps[e] != i:
                                w += weight[e]
                                y += weight[e] * labels[e]
                    more_w[place] = more_y[place] = 0.0
                    if x[place] == own[i]:
                        centre = n
                    at[n], to[n] = place, place + 1
                    event_w[n], event_y[n] = w, y
                    n += 1
                    continue
                # In the gap before a score: what came, equal scores as one.
                found = sort_chain(heads[place], following, scores, chain)
                heads[place] = -1
                for c in range(found):
                    j = chain[c]
                    if c > 0 and scores[j] == scores[chain[c - 1]]:
                        event_w[n - 1] += ws[j]
                        event_y[n - 1] += ys[j]
                        continue
                    if scores[j] == own[i]:
                        centre = n
                    at[n] = to[n] = place
                    event_w[n], event_y[n] = ws[j], ys[j]
                    n += 1
    return n, centre


@step
def pool_left(centre, events, W, Y, W_low, Y_low, corners, begins, levels, weights, sums):
    """Step 3: fit what lies left of the object; return the top of the stack of blocks.

    Stretches without a change come from the hulls of their blocks; an observation from which
    everything has gone is left out.
    """
    at, to, event_w, event_y = events
    top, point = -1, 0
    for event in range(centre):
        top = pool_upwards(
            W, Y, W_low, Y_low, corners, begins, levels, point, at[event], top, weights, sums
        )
        if event_w[event] > 0:
            top = pool(event_w[event], event_y[event], top, weights, sums)
        point = to[event]
    return pool_upwards(
        W, Y, W_low, Y_low, corners, begins, levels, point, at[centre], top, weights, sums
    )


@step
def pool_right(n, centre, last, events, W, Y, W_low, Y_low, corners, begins, levels, weights, sums):
    """Step 4: fit what lies right of it, from the right and with labels turned, in the same way."""
    at, to, event_w, event_y = events
    top, point = -1, last
    for event in range(n - 1, centre, -1):
        top = pool_downwards(
            W, Y, W_low, Y_low, corners, begins, levels, to[event], point, top, weights, sums
        )
        if event_w[event] > 0:
            w = event_w[event]
            top = pool(w, w - event_y[event], top, weights, sums)
        point = at[event]
    return pool_downwards(
        W, Y, W_low, Y_low, corners, begins, levels, to[centre], point, top, weights, sums
    )


@step
def pool_centre(w, y, left, weights, sums, right, weights_right, sums_right):
    """Step 5: return the mean of the object's own block, pooled while a neighbour violates it."""
    while True:
        if left >= 0 and sums[left] * w >= y * weights[left]:
            w += weights[left]
            y += sums[left]
            left -= 1
        elif right >= 0 and sums_right[right] * w >= (w - y) * weights_right[right]:
            w += weights_right[right]
            y += weights_right[right] - sums_right[right]
            right -= 1
        else:
            break
    return min(max(y / w, 0.0), 1.0)


@kernel
def read_joined(
    own,
    label,
    offsets,
    rows,
    changed,
    numbers,
    labels,
    weight,
    order,
    members,
    x,
    W,
    Y,
    W_low,
    Y_low,
    corners,
    begins,
    levels,
    out,
):
    """Find the isotonic fit at each new score, with the changed scores of calibration examples.

    Parameters
    ----------
    own, label : (m,)
        New scores and their labels, 0 or 1.
    offsets, rows, changed : (m + 1,), (n_changed,), (n_changed,)
        Where the changed examples of each new score begin, their numbers and new scores.
    numbers, labels, weight : (n,), (n,), (n,) or (0,) where every weight is 1
        Of the calibration examples: the place of their score, label, weight.
    order, members : (n,), (len(x) + 1,)
        The examples by their place, and where each place's begin; only read with weights.
    out : (m,)
        Becomes the fits.

    Notes
    -----
    What changes is kept at 2 p + 1 for the score number p and at 2 p for the gap before it.
    """
    n_scores = len(x)
    most = 1
    for i in range(len(own)):
        most = max(most, offsets[i + 1] - offsets[i] + 1)
    marks = np.zeros((2 * n_scores // 256 + 1) * 256, np.uint8)
    words = marks.view(np.uint64)
    busy = np.zeros(len(marks) >> 8, np.uint8)
    # What comes to each score, and what leaves it; the first of those that come to a gap.
    more_w, more_y = np.zeros(n_scores), np.zeros(n_scores)
    heads = np.full(n_scores + 1, -1, np.int32)
    following, chain = np.empty(most, np.int32), np.empty(most, np.int32)
    new = np.empty(most), np.empty(most), np.empty(most)
    at, to = np.empty(2 * most, np.int64), np.empty(2 * most, np.int64)
    event_w, event_y = np.empty(2 * most), np.empty(2 * most)
    events = at, to, event_w, event_y
    stamps = np.full(len(labels) if len(weight) else 0, -1, np.int64)
    room = len(W) + 2 * most
    weights, sums = np.empty(room), np.empty(room)
    weights_right, sums_right = np.empty(room), np.empty(room)
    objects = own, label, offsets, rows, changed
    for i in range(len(own)):
        note_changes(
            i,
            objects,
            (numbers, labels, weight, stamps),
            x,
            new,
            (marks, busy, more_w, more_y, heads, following),
        )
        n, centre = order_changes(
            i,
            own,
            (labels, weight, stamps, order, members),
            x,
            W,
            Y,
            W_low,
            Y_low,
            new,
            (marks, words, busy, more_w, more_y, heads, following),
            chain,
            events,
        )
        left = pool_left(centre, events, W, Y, W_low, Y_low, corners, begins, levels, weights, sums)
        right = pool_right(
            n,
            centre,
            n_scores,
            events,
            W,
            Y,
            W_low,
            Y_low,
            corners,
            begins,
            levels,
            weights_right,
            sums_right,
        )
        out[i] = pool_centre(
            event_w[centre],
            event_y[centre],
            left,
            weights,
            sums,
            right,
            weights_right,
            sums_right,
        )
