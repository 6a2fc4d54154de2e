"""Slow, obvious versions of every algorithm, straight from the papers' formulas.

Nothing here is fast or clever on purpose: what the library computes is compared with these.
"""

import decimal
import math
from decimal import Decimal
from fractions import Fraction

import scipy.optimize


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


def venn_abers(scores, labels, s, weights=None, left_out=-1, new_weights=(1, 1)):
    """(p0, p1) of the inductive Venn–Abers predictor at s, by refitting for both labels."""
    weights = [1] * len(scores) if weights is None else weights
    examples = [*zip(scores, labels, weights, strict=True)]
    kept = [one for i, one in enumerate(examples) if i != left_out]
    fits = []
    for label in (0, 1):
        extended = [*kept, (s, label, new_weights[label])]
        fits.append(isotonic_max_min(*zip(*extended, strict=True))[float(s)])
    return tuple(fits)


def venn(categories, labels, category, n_classes, weights=None, left_out=-1):
    """Johansson et al. (2018), eqs. 3 and 4: [(L_j, U_j) of every class j], exact fractions."""
    counts = [Fraction(0)] * n_classes
    for i in range(len(labels)):
        if i != left_out and categories[i] == category:
            counts[labels[i]] += 1 if weights is None else Fraction(float(weights[i]))
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


def platt_targets(labels, weights=None, targets="smoothed"):
    """Niculescu-Mizil & Caruana (2005), eq. 4, or the labels themselves."""
    weights = [1.0] * len(labels) if weights is None else weights
    if targets == "hard":
        return [float(y) for y in labels]
    n1 = sum(w for w, y in zip(weights, labels, strict=True) if y == 1)
    n0 = sum(w for w, y in zip(weights, labels, strict=True) if y == 0)
    return [(n1 + 1) / (n1 + 2) if y == 1 else 1 / (n0 + 2) for y in labels]


def logistic_fit(columns, targets, weights=None, steps=100):
    """Maximum likelihood coefficients and intercept, by halved Newton steps with 60 digits.

    ``columns`` are lists, one a feature; the maximum must be finite.
    """
    with decimal.localcontext(prec=60):
        rows = [
            [*(Decimal(float(v)) for v in row), Decimal(1)] for row in zip(*columns, strict=True)
        ]
        targets = [Decimal(float(t)) for t in targets]
        weights = [1.0] * len(rows) if weights is None else weights
        weights = [Decimal(float(w)) for w in weights]
        d = len(rows[0])
        theta = [Decimal(0)] * d

        def value(theta, row):
            return sum((c * v for c, v in zip(theta, row, strict=True)), Decimal(0))

        def loss(theta):
            return sum(
                w * ((1 + value(theta, row).exp()).ln() - t * value(theta, row))
                for row, t, w in zip(rows, targets, weights, strict=True)
            )

        for _ in range(steps):
            # The equations (hessian | gradient), solved by elimination.
            system = [[Decimal(0)] * (d + 1) for _ in range(d)]
            for row, t, w in zip(rows, targets, weights, strict=True):
                p = 1 / (1 + (-value(theta, row)).exp())
                for j in range(d):
                    for k in range(d):
                        system[j][k] += w * p * (1 - p) * row[j] * row[k]
                    system[j][d] += w * (p - t) * row[j]
            for j in range(d):
                system[j] = [v / system[j][j] for v in system[j]]
                for i in range(d):
                    if i != j:
                        system[i] = [
                            v - system[i][j] * u for v, u in zip(system[i], system[j], strict=True)
                        ]
            step = [system[j][d] for j in range(d)]
            length, before = Decimal(1), loss(theta)
            while length > Decimal("1e-30") and before < loss(
                [c - length * s for c, s in zip(theta, step, strict=True)]
            ):
                length /= 2
            theta = [c - length * s for c, s in zip(theta, step, strict=True)]
            if max(abs(s) for s in step) < Decimal("1e-25") * (1 + max(abs(c) for c in theta)):
                return [float(c) for c in theta]
        raise ArithmeticError("no finite maximum was found")


def isotonic_read(fitted, s):
    """Read a fit {score: Fraction} at s: the value of the next score above, or the last."""
    return fitted[min((x for x in fitted if x >= float(s)), default=max(fitted))]


def bostrom_correct(p, A, B):
    """Boström (2008), section 2.3.2, of one vector, with r = 1 / (1 + exp(B - A max p))."""
    winner = max(range(len(p)), key=lambda j: (p[j], -j))
    r = 1 / (1 + math.exp(B - A * p[winner]))
    return [v + r * (1 - v) if j == winner else v * (1 - r) for j, v in enumerate(p)]


def bostrom_losses(vectors, codes, weights=None):
    """Calibration-set Brier score over vectors of each A, B in 0 ... 50: {(A, B): score}."""
    weights = [1.0] * len(codes) if weights is None else weights
    losses = {}
    for A in range(51):
        for B in range(51):
            total = 0.0
            for p, code, w in zip(vectors, codes, weights, strict=True):
                corrected = bostrom_correct(p, A, B)
                total += w * sum((v - (j == code)) ** 2 for j, v in enumerate(corrected))
            losses[A, B] = total / sum(weights)
    return losses


def temperature_fit(logits, codes, weights=None):
    """Return the inverse temperature that minimises the log loss, by bounded minimisation."""
    weights = [1.0] * len(codes) if weights is None else weights

    def loss(log_beta):
        total = 0.0
        for row, code, w in zip(logits, codes, weights, strict=True):
            z = [math.exp(log_beta) * v for v in row]
            largest = max(z)
            total += w * (largest + math.log(sum(math.exp(v - largest) for v in z)) - z[code])
        return total

    found = scipy.optimize.minimize_scalar(
        loss, bounds=(-8, 8), method="bounded", options={"xatol": 1e-10}
    )
    return math.exp(found.x)


def out_of_bag(ensemble, n):
    """For each example the list of the trees whose training sample lacks it."""
    samples = [{int(i) for i in drawn} for drawn in ensemble.estimators_samples_]
    return [[t for t, drawn in enumerate(samples) if i not in drawn] for i in range(n)]


def tree_answers(forest, X, votes):
    """A list of (m, k) arrays, one a tree: class distributions, or one vote a row."""
    answers = []
    for tree in forest.estimators_:
        p = tree.predict_proba(X)
        if votes == "hard":
            for i in range(len(p)):
                winner = 0
                for j in range(1, p.shape[1]):
                    if p[i, j] > p[i, winner]:
                        winner = j
                p[i] = 0.0
                p[i, winner] = 1.0
        answers.append(p)
    return answers


def forest_scores(forest, X, trees_of_row, votes):
    """Mean answer, (m, k), of the trees that are named for each row; NaN where none is."""
    answers = tree_answers(forest, X, votes)
    means = []
    for i, trees in enumerate(trees_of_row):
        total = [0.0] * answers[0].shape[1]
        for t in trees:
            total = [a + float(b) for a, b in zip(total, answers[t][i], strict=True)]
        means.append([a / len(trees) if trees else float("nan") for a in total])
    return means


def _bin_of(value, bins):
    """Bin of one estimate: edges are (k/K, (k+1)/K], the first one with 0; or (edge, next edge]."""
    if bins == "distinct":
        return value
    edges = [Fraction(k, bins) for k in range(1, bins)] if isinstance(bins, int) else list(bins)
    return sum(value > float(edge) for edge in edges)


def quantile_bins(p, n_bins, weights=None):
    """Bin of every estimate: how many of the quantiles of order b/K lie below it."""
    weights = [1] * len(p) if weights is None else weights
    total = sum(Fraction(w) for w in weights)
    quantiles = []
    for b in range(1, n_bins):
        for value in sorted(set(p)):
            below = sum(Fraction(w) for v, w in zip(p, weights, strict=True) if v <= value)
            if below >= total * b / n_bins:
                quantiles.append(value)
                break
    return [sum(q < value for q in quantiles) for value in p]


def _means_of_bins(outcome, p, codes, weights):
    """[(n_k, r_k, φ_k)] of the non-empty bins."""
    found = []
    for code in sorted(set(codes)):
        rows = [i for i, c in enumerate(codes) if c == code and weights[i] > 0]
        n_k = math.fsum(weights[i] for i in rows)
        if rows:
            r_k = math.fsum(weights[i] * p[i] for i in rows) / n_k
            phi_k = math.fsum(weights[i] * outcome[i] for i in rows) / n_k
            found.append((n_k, r_k, phi_k))
    return found


def brier_decomposition(outcome, p, bins, weights=None):
    """(reliability, resolution, uncertainty, sharpness, Brier), Johansson et al. (2018), eq. 13."""
    weights = [1] * len(p) if weights is None else weights
    n = math.fsum(weights)
    base = math.fsum(w * y for w, y in zip(weights, outcome, strict=True)) / n
    mean = math.fsum(w * q for w, q in zip(weights, p, strict=True)) / n
    means = _means_of_bins(outcome, p, [_bin_of(q, bins) for q in p], weights)
    reliability = math.fsum(n_k * (r_k - phi_k) ** 2 for n_k, r_k, phi_k in means) / n
    resolution = math.fsum(n_k * (phi_k - base) ** 2 for n_k, _, phi_k in means) / n
    sharpness = math.fsum(w * (q - mean) ** 2 for w, q in zip(weights, p, strict=True)) / n
    brier = math.fsum(w * (y - q) ** 2 for w, y, q in zip(weights, outcome, p, strict=True)) / n
    return reliability, resolution, base * (1 - base), sharpness, brier


def calibration_gaps(outcome, p, codes, weights=None):
    """[(share of observations, |r_k − φ_k|)] of the non-empty bins."""
    weights = [1] * len(p) if weights is None else weights
    means = _means_of_bins(outcome, p, codes, weights)
    return [(n_k / math.fsum(weights), abs(r_k - phi_k)) for n_k, r_k, phi_k in means]


def expected_calibration_error(outcome, p, bins=15, weights=None):
    """ECE over bins of equal width."""
    gaps = calibration_gaps(outcome, p, [_bin_of(q, bins) for q in p], weights)
    return math.fsum(share * gap for share, gap in gaps)


def spiegelhalter_z(codes, p):
    """Brier score over vectors minus its mean under p, over its standard deviation; p (n, k)."""
    excess = variance = 0.0
    for code, row in zip(codes, p, strict=True):
        labels = range(len(row))
        scores = [sum((q - (j == label)) ** 2 for j, q in enumerate(row)) for label in labels]
        mean = math.fsum(q * s for q, s in zip(row, scores, strict=True))
        excess += scores[code] - mean
        variance += math.fsum(q * (s - mean) ** 2 for q, s in zip(row, scores, strict=True))
    return excess / math.sqrt(variance)


def cumulative_differences(outcome, p):
    """Range of C_k / σ with C_k summed at every change of the estimate."""
    walk = [0.0]
    for value in sorted(set(p)):
        rows = [i for i, q in enumerate(p) if q <= value]
        walk.append(math.fsum(outcome[i] - p[i] for i in rows))
    sigma = math.sqrt(math.fsum(q * (1 - q) for q in p))
    return (max(walk) - min(walk)) / sigma
