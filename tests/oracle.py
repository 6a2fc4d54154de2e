"""Slow, obvious versions of every algorithm, straight from the papers' formulas.

Nothing here is fast or clever on purpose: what the library computes is compared with these.
"""

from __future__ import annotations

from fractions import Fraction

# --- Venn–Abers ------------------------------------------------------------------------------


def isotonic_max_min(scores, labels, weights=None):
    """Isotonic fit as exact fractions: {score: max over a <= s of min over b >= s of the mean}."""
    weights = [1] * len(scores) if weights is None else weights
    totals = {}
    for s, y, w in zip(scores, labels, weights, strict=True):
        weight, positive = totals.get(float(s), (Fraction(0), Fraction(0)))
        w = Fraction(float(w))
        totals[float(s)] = (weight + w, positive + w * Fraction(float(y)))
    points = sorted(s for s in totals if totals[s][0] > 0)
    fitted = {}
    for k, s in enumerate(points):
        best = None
        for a in range(k + 1):
            weight = sum((totals[x][0] for x in points[a:k]), Fraction(0))
            positive = sum((totals[x][1] for x in points[a:k]), Fraction(0))
            smallest = None
            for b in range(k, len(points)):
                weight += totals[points[b]][0]
                positive += totals[points[b]][1]
                mean = positive / weight
                smallest = mean if smallest is None else min(smallest, mean)
            best = smallest if best is None else max(best, smallest)
        fitted[s] = best
    return fitted


def venn_abers(scores, labels, s, weights=None, left_out=-1):
    """(p0, p1) of the inductive Venn–Abers predictor at s, by refitting for both labels."""
    weights = [1] * len(scores) if weights is None else weights
    kept = [i for i in range(len(scores)) if i != left_out]
    fits = []
    for label in (0, 1):
        fitted = isotonic_max_min(
            [scores[i] for i in kept] + [s],
            [labels[i] for i in kept] + [label],
            [weights[i] for i in kept] + [1],
        )
        fits.append(fitted[float(s)])
    return tuple(fits)

# --- Venn predictors and taxonomies ----------------------------------------------------------


def venn(categories, labels, category, n_classes, weights=None, left_out=-1):
    """Johansson et al. (2018), eqs. 3 and 4: [(L_j, U_j) of every class j], exact fractions."""
    counts = [Fraction(0)] * n_classes
    for i, (c, label) in enumerate(zip(categories, labels, strict=True)):
        if c == category and i != left_out:
            counts[label] += 1 if weights is None else Fraction(float(weights[i]))
    if not any(counts):
        return [(Fraction(0), Fraction(1))] * n_classes
    total = sum(counts) + 1
    return [(c / total, (c + 1) / total) for c in counts]


def score_vector(score):
    """One score a class: a single score is that of the second of two classes."""
    return [float(s) for s in score] if hasattr(score, "__len__") else [1 - score, float(score)]


def label_category(score):
    """The class with the largest score, the first of equals; class 1 where a single s > 0.5."""
    if not hasattr(score, "__len__"):
        return 1 if score > 0.5 else 0
    vector = score_vector(score)
    return vector.index(max(vector))


def split_label_category(score, kind, threshold):
    """V2, V3 and V4 of Papadopoulos (2013)."""
    largest, second = sorted(score_vector(score), reverse=True)[:2]
    measure = {"largest": largest, "second": second, "margin": largest - second}[kind]
    return 2 * label_category(score) + (1 if measure > threshold else 0)


def weighted_quantile(values, weights, part, whole):
    """The smallest value with part/whole of the weight at or below it."""
    total = sum(Fraction(float(w)) for w in weights)
    for value in sorted(values):
        below = sum(Fraction(float(w)) for v, w in zip(values, weights, strict=True) if v <= value)
        if below * whole >= part * total:
            return value
    raise AssertionError("the largest value has all the weight at or below it")


def confidence_quantile_category(calibration, weights, score, bins):
    """Bins of equal weight of the largest score within the predicted label."""
    label = label_category(score)
    same = [i for i, s in enumerate(calibration) if label_category(s) == label]
    if not same:
        return bins * label
    values = [max(score_vector(calibration[i])) for i in same]
    own = [weights[i] for i in same]
    edges = {weighted_quantile(values, own, part, bins) for part in range(1, bins)}
    return bins * label + sum(1 for edge in edges if edge < max(score_vector(score)))


def neighbour_cell(points, weights, point, cells):
    """The point's cell, numbered from the lower parts to the upper ones, and the number of cells."""
    # The spread as a float: two that round to the same are equally wide.
    spreads = [
        max(p[d] for p in points) / 2 - min(p[d] for p in points) / 2 for d in range(len(point))
    ]
    d = spreads.index(max(spreads))
    if cells == 1 or spreads[d] == 0:
        return 0, 1
    values = [p[d] for p in points]
    cut = weighted_quantile(values, weights, cells // 2, cells)
    if cut == max(values):
        cut = max(v for v in values if v < cut)
    low = [i for i, v in enumerate(values) if v <= cut]
    high = [i for i, v in enumerate(values) if v > cut]
    below = neighbour_cell([points[i] for i in low], [weights[i] for i in low], point, cells // 2)
    above = neighbour_cell(
        [points[i] for i in high], [weights[i] for i in high], point, cells - cells // 2
    )
    cell = below[0] if point[d] <= cut else below[1] + above[0]
    return cell, below[1] + above[1]


def transductive_scores(estimator, X, y, x, label):
    """Train on the training set plus (x, label) and score everybody with that model."""
    extended = [*X, x]
    model = estimator.fit(extended, [*y, label])
    if hasattr(model, "predict_proba"):
        scores = model.predict_proba(extended)
        return [row[1] for row in scores] if len(scores[0]) == 2 else [list(row) for row in scores]
    scores = model.decision_function(extended)
    return [list(row) for row in scores] if scores.ndim == 2 else list(scores)


def transductive_venn_abers(make_estimator, X, y, x, n_classes):
    """Vovk & Petej (2014), Algorithm 1: every class's isotonic value for each tentative label.

    Returns values[v][j]: of the indicator of class j, read at x, in the model trained with (x, v).
    Two classes: the one fit of class 1, and its complement for class 0.
    """
    values = []
    for v in range(n_classes):
        scores = transductive_scores(make_estimator(), X, y, x, v)
        labels = [*y, v]
        if n_classes == 2:
            p = isotonic_max_min(scores, labels)[float(scores[-1])]
            values.append([1 - p, p])
            continue
        row = []
        for j in range(n_classes):
            column = [s[j] for s in scores]
            fitted = isotonic_max_min(column, [int(label == j) for label in labels])
            row.append(fitted[float(column[-1])])
        values.append(row)
    return values


def transductive_venn(make_estimator, X, y, x, n_classes, category):
    """The transductive Venn predictor: [(min, max) over tentative labels] of every class."""
    shares = []
    for v in range(n_classes):
        scores = transductive_scores(make_estimator(), X, y, x, v)
        categories = [category(s) for s in scores]
        mates = [
            label for label, c in zip([*y, v], categories, strict=True) if c == categories[-1]
        ]
        shares.append([Fraction(mates.count(j), len(mates)) for j in range(n_classes)])
    return [(min(s[j] for s in shares), max(s[j] for s in shares)) for j in range(n_classes)]

# --- Platt, isotonic, Boström, beta, temperature ---------------------------------------------

# --- forests: votes, out-of-bag membership and scores ----------------------------------------

# --- measures --------------------------------------------------------------------------------

# --- comparison of methods over data sets ----------------------------------------------------
