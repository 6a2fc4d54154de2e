"""Recompute the figures of a page from its data, without vennforest.

    vennforest check P.csv --probability p --target y --json > page.json
    python tools/recompute.py page.json P.csv

Needs pandas, scipy and statsmodels. DATA is the table of ``check``; for a model, what ``predict
--keep`` writes of it; for ``report``, what ``--write-predictions`` writes. Each figure is printed
with its recomputed value; the exit code is 1 where one differs, and 2 where there is nothing to
compare. ``definitions`` in the JSON says what the figures are.
"""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import statsmodels.api as sm
from scipy import optimize, stats
from scipy.special import expit, logit
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

TOLERANCE = 1e-6
Z = stats.norm.ppf(0.975)


def read(path):
    """Return a table."""
    is_parquet = str(path).endswith((".parquet", ".pq"))
    return pd.read_parquet(path) if is_parquet else pd.read_csv(path)


def names_of(column):
    """Return labels as text, 1.0 as 1, and None where they are missing."""
    texts = column.map(lambda v: str(int(v)) if isinstance(v, float) and v == v // 1 else str(v))
    return texts.str.strip().where(column.notna(), None)


def codes_of(column):
    """Return the code of each group; a row without one is a group of its own."""
    names = names_of(column)
    return pd.factorize(
        names.where(names.notna(), "row " + pd.Series(names.index.astype(str), names.index))
    )[0]


def share(hit, groups=None):
    """Return the share of True and Wilson's interval, for the effective rows of groups."""
    hit = np.asarray(hit, float)
    if not len(hit):
        return np.nan, np.nan, np.nan
    n, mean = len(hit), hit.mean()
    if groups is not None:
        sums = pd.DataFrame({"residual": hit - mean, "n": 1}).groupby(np.asarray(groups)).sum()
        m = len(sums)
        if m == 1:
            return mean, 0.0, 1.0
        effect = (sums["n"] ** 2).sum() / n
        if 0 < mean < 1:
            effect = max(1, m / (m - 1) * (sums["residual"] ** 2).sum() / (n * mean * (1 - mean)))
        n = n / effect * (Z / stats.t.ppf(0.975, m - 1)) ** 2
    return mean, *proportion_confint(mean * n, n, 0.05, "wilson")


def units_of(y, groups=None):
    """Return Kish's effective number of rows, or groups, of the rarer outcome."""
    return min(effective(y == k, groups) for k in (0, 1))


def effective(rows, groups=None):
    """Return the number of some rows, or Kish's effective number of the groups they are in."""
    if groups is None:
        return float(rows.sum())
    sizes = pd.Series(groups[rows]).value_counts().to_numpy(float)
    return sizes.sum() ** 2 / (sizes @ sizes) if len(sizes) else 0.0


def error_of(contributions, groups=None):
    """Return the standard error of a sum of contributions over rows or groups."""
    sums = contributions if groups is None else pd.Series(contributions).groupby(groups).sum()
    return float((sums**2).sum() * len(sums) / max(1, len(sums) - 1)) ** 0.5


def student(value, error, units, scale=None):
    """Return an estimate, Student's interval on a scale, and the standard error there."""
    forward, back, slope = {
        None: (float, float, 1.0),
        "log": (np.log, np.exp, 1 / value),
        "logit": (logit, expit, 1 / (value * (1 - value))),
    }[scale]
    error *= slope
    half = stats.t.ppf(0.975, max(1, units - 1)) * error
    return value, back(forward(value) - half), back(forward(value) + half), error


def mean(values, groups, units):
    """Return a mean with an interval of its logarithm."""
    if not np.isfinite(values).all():
        return np.mean(values), np.nan, np.nan
    m = values.mean()
    return student(m, error_of((values - m) / len(values), groups), units, "log")[:3]


def auc(y, p, groups=None):
    """Return the AUC, DeLong's interval in its log-odds, for groups Obuchowski's, and its error.

    With fewer than 30 rows, or groups, of the rarer outcome the ends are Newcombe's.
    """
    m, n = int(y.sum()), int((1 - y).sum())
    area = stats.mannwhitneyu(p[y == 1], p[y == 0]).statistic / (m * n)
    ranks = stats.rankdata(p)
    correct = np.where(y == 1, ranks, len(y) + 1 - ranks)
    within = np.empty(len(y))
    within[y == 1], within[y == 0] = stats.rankdata(p[y == 1]), stats.rankdata(-p[y == 0])
    influence = ((correct - within) / np.where(y == 1, n, m) - area) / np.where(y == 1, m, n)
    units, error = units_of(y, groups), error_of(influence, groups)
    if groups is None:
        error = sum(
            influence[y == k] @ influence[y == k] * c / (c - 1) for k, c in ((1, m), (0, n))
        )
        error **= 0.5
    estimate = student(area, error, units, "logit")
    if units >= 30:
        return estimate
    if groups is not None:
        m, n = (effective(y == k, groups) for k in (1, 0))

    def excess(a):
        spread = 1 + ((m + n) / 2 - 1) * ((1 - a) / (2 - a) + a / (1 + a))
        return (a - area) ** 2 - Z**2 * a * (1 - a) * spread / (m * n)

    ends = optimize.brentq(excess, 1e-12, area), optimize.brentq(excess, area, 1 - 1e-12)
    return area, *ends, estimate[3]


def regression(y, p, groups, slope):
    """Return calibration slope, or intercept with slope 1, its interval and its error.

    With groups the variance is that of leaving one out, with one Newton step.
    """
    inside = (p > 0) & (p < 1)
    y, z = y[inside], logit(p[inside])
    X, offset = (sm.add_constant(z), None) if slope else (np.ones((len(z), 1)), z)
    fit = sm.GLM(y, X, sm.families.Binomial(), offset=offset).fit(tol=1e-12)
    if groups is None:
        return student(fit.params[-1], fit.bse[-1], np.inf)
    groups, q = groups[inside], fit.fittedvalues
    total, steps = X.T @ (X * (q * (1 - q))[:, None]), []
    for group in np.unique(groups):
        part = groups == group
        own = X[part].T @ (X[part] * (q * (1 - q))[part, None])
        steps.append(np.linalg.solve(total - own, X[part].T @ (y - q)[part])[-1])
    m = len(steps)
    error = (np.square(steps).sum() * (m - 1) / m) ** 0.5
    return student(fit.params[-1], error, units_of(y, groups))


def observed_expected(y, p, groups):
    """Return events over expected events, an interval of the logarithm, and its error.

    With fewer than ten events the ends are exact; with such groups they are not recomputed.
    """
    ratio, units = y.sum() / p.sum(), units_of(y, groups)
    estimate = student(ratio, error_of((y - ratio * p) / p.sum(), groups), units, "log")
    if units >= 10:
        return estimate
    if groups is not None:
        return (ratio,)
    low, high = proportion_confint(y.sum(), len(y), 0.05, "beta")
    return ratio, low / p.mean(), high / p.mean(), estimate[3]


def distances(y, p):
    """Return ICI, E50, E90 and Emax: distances from a spline of the log-odds."""
    inside = (p > 0) & (p < 1)
    y, p = y[inside], p[inside]
    z, order = logit(p), np.argsort(p, kind="stable")
    information = np.cumsum((p * (1 - p))[order])
    rarer, shares = min(y.sum(), (1 - y).sum()), ()
    for least, quantiles in (
        (50, (0.1, 0.5, 0.9)),
        (100, (0.05, 0.35, 0.65, 0.95)),
        (200, (0.05, 0.275, 0.5, 0.725, 0.95)),
    ):
        shares = quantiles if rarer >= least else shares
    at = np.searchsorted(information, np.array(shares) * information[-1] * (1 - 1e-12))
    knots, columns = z[order[at]], [np.ones(len(z)), z]
    if len(np.unique(knots)) < len(shares):
        return None
    for knot in knots[:-2]:
        before, last = knots[-2:]
        ends = (last - knot) * np.maximum(z - before, 0) ** 3 - (before - knot) * np.maximum(
            z - last, 0
        ) ** 3
        columns.append(
            (np.maximum(z - knot, 0) ** 3 - ends / (last - before)) / (last - knots[0]) ** 2
        )
    fit = sm.GLM(y, np.column_stack(columns), sm.families.Binomial()).fit(tol=1e-12)
    distance = np.sort(np.abs(p - fit.fittedvalues))
    e50, e90 = (distance[int(np.ceil(q * len(distance) * (1 - 1e-12))) - 1] for q in (0.5, 0.9))
    return distance.mean(), e50, e90, distance.max()


def with_ends(name, values):
    """Return an estimate and the ends of its interval by name."""
    return dict(zip((name, f"{name}_low", f"{name}_high"), values, strict=False))


def of_method(P, codes, positive, groups, is_recommended):
    """Return the measures of probabilities (n, k)."""
    n, k = P.shape
    truth = np.eye(k)[codes]
    halves = 2 if k == 2 else 1
    squared = ((P - truth) ** 2).sum(1) / halves
    reference = ((truth.mean(0) - truth) ** 2).sum(1) / halves
    with np.errstate(divide="ignore"):
        losses = -np.log(P[np.arange(n), codes])
    column = P.argmax(1) if positive is None else np.full(n, positive)
    p, y = P[np.arange(n), column], (column == codes).astype(float)
    bins = np.minimum(np.ceil(p * 15 - 1e-12), 15)
    table = pd.DataFrame({"gap": y - p, "n": 1}).groupby(bins).sum()
    units, ratio = units_of(y, groups), squared.mean() / reference.mean()
    residual = (squared - ratio * reference) / reference.sum()
    _, low, high, _ = student(ratio, error_of(residual, groups), units, "log")
    if units < 30:
        low = high = np.nan
    figures = {
        **with_ends("log_loss", mean(losses, groups, units)),
        **with_ends("brier", mean(squared, groups, units)),
        **with_ends("brier_skill", (1 - ratio, 1 - high, 1 - low)),
        "accuracy": (P.argmax(1) == codes).mean(),
        "overconfidence": P.max(1).mean() - (P.argmax(1) == codes).mean(),
        "calibration_error": table["gap"].abs().sum() / n,
        "impossible": int((P[np.arange(n), codes] == 0).sum()),
    }
    if positive is None:
        areas = [auc((codes == j) * 1.0, P[:, j])[0] for j in range(k)]
        return figures | {"auc": truth.mean(0) @ areas}, y, p
    figures |= with_ends("auc", auc(y, p, groups)[:3])
    figures |= with_ends("observed_expected", observed_expected(y, p, groups))
    figures |= with_ends("intercept", regression(y, p, groups, slope=False))
    figures |= with_ends("slope", regression(y, p, groups, slope=True))
    if is_recommended and (smooth := distances(y, p)) is not None:
        figures |= dict(zip(("ici", "e50", "e90", "emax"), smooth, strict=True))
    return figures, y, p


def of_threshold(t, y, p, groups):
    """Return the effects of flagging rows from a threshold on."""
    flagged, event = p >= t, y == 1
    subsets = {
        "sensitivity": (event, flagged),
        "specificity": (~event, ~flagged),
        "positive_value": (flagged, event),
        "negative_value": (~flagged, ~event),
    }
    row = {"flagged": flagged.mean()}
    for name, (among, hit) in subsets.items():
        some = None if groups is None else groups[among]
        row |= with_ends(name, share(hit[among], some))
    odds = t / (1 - t)
    benefit = np.where(event, 1.0, -odds)
    row["net_benefit"] = (flagged * benefit).mean()
    row["gain"] = row["net_benefit"] - max(0.0, benefit.mean())
    return row


def of_grades(y, p, grade):
    """Return the tests of grades, in the order of their names."""
    frame = pd.DataFrame({"y": y, "p": p}).groupby(np.asarray(grade))
    n, events, expected = frame.size(), frame["y"].sum(), frame["p"].mean()
    low, high = proportion_confint(events, n, 0.05, "beta")
    upper, lower = stats.binom.sf(events - 1, n, expected), stats.binom.cdf(events, n, expected)
    columns = {
        "n": n,
        "events": events,
        "expected": expected,
        "observed": events / n,
        "observed_low": np.where(events > 0, low, 0),
        "observed_high": np.where(events < n, high, 1),
        "binomial": upper,
        "jeffreys": stats.beta.cdf(expected, events + 0.5, n - events + 0.5),
        "too_low": multipletests(upper, method="holm")[1],
        "too_high": multipletests(lower, method="holm")[1],
    }
    return pd.DataFrame(columns, index=n.index).to_dict("index")


def random_effects(values, errors):
    """Return weights, mean, generalised Q / (k - 1), and variance between sites (Paule & Mandel).

    statsmodels' iteration gives 0 for it where a step goes too far by rounding.
    """

    def at(between):
        weight = 1 / (errors**2 + between)
        mean = weight @ values / weight.sum()
        return weight, mean, weight @ (values - mean) ** 2 / (len(values) - 1), between

    if at(0.0)[2] <= 1:
        return at(0.0)
    highest = len(values) * np.ptp(values) ** 2
    return at(optimize.brentq(lambda between: at(between)[2] - 1, 0.0, highest, xtol=1e-14))


def of_sites(y, p, site, groups):
    """Return the measures of each site, and over sites by random effects."""
    rows, scales = (
        {},
        {
            "observed_expected": (np.log, np.exp),
            "slope": (np.array, np.array),
            "auc": (logit, expit),
        },
    )
    errors = {measure: [] for measure in scales}
    for name in np.unique(site):
        part = np.asarray(site == name)
        some = None if groups is None else groups[part]
        rows[name] = {"n": int(part.sum()), "events": int(y[part].sum())}
        of_site = {
            "observed_expected": observed_expected(y[part], p[part], some),
            "slope": regression(y[part], p[part], some, slope=True),
            "auc": auc(y[part], p[part], some),
        }
        for measure, estimate in of_site.items():
            rows[name] |= with_ends(measure, estimate[:3])
            errors[measure].append(estimate[3])
    frame = pd.DataFrame(rows).T
    rows["pooled"] = {"n": len(y), "events": int(y.sum())}
    for measure, (scale, back) in scales.items():
        of_sites = np.asarray(errors[measure])
        weight, middle, ratio, _ = random_effects(
            scale(np.asarray(frame[measure], float)), of_sites
        )
        half = stats.t.ppf(0.975, len(of_sites) - 1) * (max(1.0, ratio) / weight.sum()) ** 0.5
        rows["pooled"] |= with_ends(measure, back(middle + half * np.array([0.0, -1.0, 1.0])))
    return rows


def figures_of(page, data):
    """Yield path, figure of the page, and recomputed figure."""
    names, best = page["roles"], page["verdict"]["method"]
    classes = list(page["classes"])
    label = names_of(data[page["target"]])
    columns = [column for of in names["probabilities"].values() for column in of.values()]
    counted = label.notna() & np.isfinite(data[columns].apply(pd.to_numeric, errors="coerce")).all(
        axis=1
    )
    data, codes = data[counted], label[counted].map(classes.index).to_numpy()
    yield "rows", page["rows"], len(data)
    groups = None if names["groups"] is None else codes_of(data[names["groups"]])
    positive = None if page["positive"] is None else classes.index(page["positive"])
    for method, of in names["probabilities"].items():
        P = np.zeros((len(data), len(classes)))
        for name, column in of.items():
            P[:, classes.index(name)] = data[column]
        if len(of) == 1:
            P[:, 1 - classes.index(name)] = 1 - data[column]
        total = P.sum(1, keepdims=True)
        P = np.where(np.abs(total - 1) <= 1e-12, P, P / total)  # division would part equal values
        figures, y, p = of_method(P, codes, positive, groups, method == best)
        for name, value in figures.items():
            yield f"methods.{method}.{name}", page["methods"][method][name], value
        if method != best:
            continue
        for j, name in enumerate(classes):
            hits = (P.argmax(1) == j) & (codes == j)
            row_of = {"n": (codes == j).sum(), "mean": P[:, j].mean(), "share": (codes == j).mean()}
            row_of["recall"] = hits.sum() / row_of["n"]
            if (P.argmax(1) == j).any():
                row_of["precision"] = hits.sum() / (P.argmax(1) == j).sum()
            for key, value in row_of.items():
                yield f"classes.{name}.{key}", page["classes"][name][key], value
        level = np.searchsorted(page["level_edges"][1:-1], p, side="right")
        for row, i in zip(page["levels"], np.unique(level), strict=True):
            part = level == i
            row_of = {"n": part.sum(), "expected": p[part].mean()}
            row_of |= with_ends(
                "observed", share(y[part], None if groups is None else groups[part])
            )
            yield from ((f"levels.{i}.{key}", row[key], value) for key, value in row_of.items())
        for row in page.get("thresholds", ()):
            t = row["threshold"]
            for key, value in of_threshold(t, y, p, groups).items():
                yield f"thresholds.{t:g}.{key}", row[key], value
        if names["grades"] is not None:
            grades = of_grades(y, p, names_of(data[names["grades"]]).fillna("missing"))
            for row in page["sections"]["grades"]["frame"]:
                for key, value in grades[row["Grade"]].items():
                    yield f"grades.{row['Grade']}.{key}", row[key], value
        if names["validation"] is not None:
            by_group = names["validation"] == "by-group"
            site = names_of(data[names["groups" if by_group else "validation"]])
            sites = of_sites(y, p, site, None if by_group else groups)
            for row in page["sections"]["sites"]["frame"]:
                for key, value in sites.get(row["Site"], {}).items():
                    yield f"sites.{row['Site']}.{key}", row[key], value


def differs(figure, value):
    """Return whether a figure of the page, None for infinite and NaN, is not the recomputed one."""
    if figure is None or not np.isfinite(value):
        return figure is not None or bool(np.isfinite(value))
    return abs(figure - value) > TOLERANCE * max(1.0, abs(value))


def main(page_path, data_path):
    """Print the figures; return the exit code."""
    page = json.loads(Path(page_path).read_text(encoding="utf-8"))
    digest = hashlib.sha256(Path(data_path).read_bytes()).hexdigest()
    known = digest in {file["sha256"] for file in page["inputs"]}
    print(f"{page['command']} (vennforest {page['version']})")
    print(f"{data_path}: {'an input of the page' if known else 'not an input of the page'}")
    n = n_wrong = 0
    for name, figure, value in figures_of(page, read(data_path)):
        wrong = differs(figure, float(value))
        n, n_wrong = n + 1, n_wrong + wrong
        print(f"{'DIFFERS' if wrong else 'same':8}{name:48}{figure!s:>24}{float(value):>24.12g}")
    print(f"{n} figures recomputed, {n_wrong} differ")
    return 1 if n_wrong else 0 if n > 1 else 2


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    raise SystemExit(main(*sys.argv[1:]))
