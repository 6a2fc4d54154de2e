"""The closed testing procedure of updates, from its description: Vergouwe et al. (2017)."""

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize import minimize
from scipy.stats import chi2, f

from oracles.validation import pair_correlation


def curve(z, knots):
    """Return functions of z that are natural cubic splines: one for each knot."""
    columns = []
    for values in np.eye(len(knots)):
        spline = CubicSpline(knots, values, bc_type="natural")
        slope = spline.derivative()
        inside = np.clip(z, knots[0], knots[-1])
        columns.append(spline(inside) + slope(inside) * (z - inside))
    return columns


def regress(columns, z, y, precision=0.0):
    """Return log likelihood and coefficients of a logistic regression with the offset z."""
    X = np.array(columns).T if len(columns) else np.empty((len(z), 0))

    def loss(theta):
        eta = z + X @ theta
        value = np.logaddexp(0, np.where(y == 1, -eta, eta)).sum()
        residual = 1 / (1 + np.exp(-eta)) - y
        return value + precision * theta @ theta / 2, X.T @ residual + precision * theta

    if not X.shape[1]:
        return -loss(np.empty(0))[0], np.empty(0)
    best = minimize(loss, np.zeros(X.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-9})
    log_likelihood = -loss(best.x)[0] + precision * best.x @ best.x / 2
    return log_likelihood, best.x


def closed_testing(p, y, groups=None):
    """Return the choice, (statistic, df, p-value) of each test, and the largest log-odds."""
    z = np.log(p / (1 - p))
    models = {"keep": [], "intercept": [np.ones(len(z))], "slope": [np.ones(len(z)), z]}
    largest = models["slope"]
    if min(sum(y == 0), sum(y == 1)) >= 30:
        largest = curve(z, np.quantile(z, [0.05, 0.35, 0.65, 0.95]))
    best, theta = regress(largest, z, y)
    extreme = np.abs(z + np.array(largest).T @ theta).max()
    tests = {}
    for choice, columns in models.items():
        df = len(largest) - len(columns)
        if df == 0:
            continue
        statistic = 2 * (best - regress(columns, z, y)[0])
        pvalue = chi2.sf(statistic, df)
        if groups is not None:
            # Contrasts that are zero in the smaller model, whatever the basis of the larger one.
            X, smaller = np.array(largest).T, np.array(columns).T.reshape(len(z), -1)
            q = 1 / (1 + np.exp(-z - X @ theta))
            inverse = np.linalg.pinv((X * (q * (1 - q))[:, None]).T @ X)
            m = len(np.unique(groups))
            covariance = np.minimum.outer(q, q) * (1 - np.maximum.outer(q, q))
            same = (groups[:, None] == groups) & ~np.eye(len(q), dtype=bool)
            covariance *= pair_correlation(y, q, groups) * same
            covariance += np.diag(q * (1 - q))
            robust = inverse @ (X.T @ covariance @ X) @ inverse
            inside = np.linalg.lstsq(X, smaller, rcond=None)[0]
            contrast = np.linalg.svd(inside.T)[2][len(columns) :] if len(columns) else np.eye(df)
            ratio = np.linalg.pinv(contrast @ inverse @ contrast.T) @ contrast @ robust @ contrast.T
            statistic /= max(1, np.trace(ratio) / df)
            pvalue = f.sf(statistic / df, df, m - 1)
        tests[choice] = statistic, df, pvalue
    for choice in tests:
        if tests[choice][2] >= 0.05:
            return choice, tests, extreme
    return ["keep", "intercept", "slope", "map"][len(tests)], tests, extreme
