"""False alarms and power of the search for segments: ``python -m experiments.studies.segments``.

Writes ``experiments/results/segments.csv``: the share of drawn tables in which an alarm is raised
at level .05, by ``vennforest.validation.segments`` and by ``MulticalibrationError`` of mcgrad
(``pip install mcgrad``) with its default settings. The latter does not adjust its p-value for the
number of segments; its line "adjusted" alarms where its largest statistic exceeds that of 95% of
the tables without a fault, which a user does not know.

A table has 2,000 rows, three numbers, three categories and probabilities with mean .2. A fault
adds 1 to the log-odds of the rows in a box of two numbers, or of one value of a category, each in
half of the tables, that contains a share of the rows. With groups, the five rows of a group have a
common effect on their labels, which leaves the probability of each row as it is.
"""

import argparse

import numpy as np
import pandas as pd
from experiments.studies.tables import RESULTS, write_rows
from scipy.special import expit, logit
from scipy.stats import norm

from vennforest.validation import segments

N_ROWS = 2_000
NUMBERS = ["age", "income", "balance"]
CATEGORIES = ["country", "product", "branch"]


def table(rng, share, n_group=1):
    """Return features, labels, probabilities and groups; a share of the rows has a fault."""
    X = pd.DataFrame(rng.normal(size=(N_ROWS, 3)), columns=NUMBERS)
    rare = share or 0.05
    for name in CATEGORIES:
        X[name] = rng.choice(list("abcd"), N_ROWS, p=[rare, *[(1 - rare) / 3] * 3])
    p = expit(-1.7 + X["age"] - 0.5 * X["income"] + 0.5 * (X["product"] == "b")).to_numpy()
    is_off = np.zeros(N_ROWS, dtype=bool)
    if share and rng.random() < 0.5:
        is_off = (X[rng.choice(CATEGORIES)] == "a").to_numpy()
    elif share:
        first, second = rng.choice(NUMBERS, 2, replace=False)
        edge = norm.ppf(1 - np.sqrt(share))
        is_off = ((X[first] > edge) & (X[second] > edge)).to_numpy()
    groups = np.arange(N_ROWS) // n_group
    common, own = rng.normal(size=N_ROWS)[groups], rng.normal(size=N_ROWS)
    latent = own if n_group == 1 else (common + own) / np.sqrt(2)
    y = (norm.cdf(latent) < expit(logit(p) + is_off)).astype(int)
    return X, y, p, groups


def alarm(X, y, p, groups=None, seed=0):
    """Tell whether the search raises an alarm."""
    frame = segments(X, y, p, groups=groups, n_draws=199, random_state=seed)
    return frame["pvalue"].iloc[0] <= 0.05


def peer(X, y, p):
    """Return the p-value and the statistic of the largest calibration error by mcgrad."""
    from mcgrad.metrics import MulticalibrationError

    error = MulticalibrationError(
        X.assign(y=y, p=p), "y", "p",
        categorical_segment_columns=CATEGORIES, numerical_segment_columns=NUMBERS,
    )  # fmt: skip
    return float(error.mce_pvalue), float(error.mce_sigma)


def main():
    """Draw the tables and write the shares."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--tables", type=int, default=1_000, help="without a fault")
    parser.add_argument("--faulty", type=int, default=200, help="with each fault")
    parser.add_argument("--seed", type=int, default=int(np.random.SeedSequence().entropy % 2**32))
    options = parser.parse_args()
    print(f"seed {options.seed}")
    rows, limit = [], None
    for share, n_group in [(0, 1), (0, 5), (0.01, 1), (0.05, 1), (0.2, 1)]:
        rng = np.random.default_rng([options.seed, int(100 * share), n_group])
        n_tables = options.faulty if share else options.tables
        alarms, peers = [], []
        for seed in range(n_tables):
            X, y, p, groups = table(rng, share, n_group)
            alarms.append(alarm(X, y, p, groups if n_group > 1 else None, seed))
            if n_group == 1:
                peers.append(peer(X, y, p))
        results = {"vennforest": np.mean(alarms)}
        if peers:
            pvalues, statistics = np.array(peers).T
            limit = np.quantile(statistics, 0.95) if limit is None else limit
            results |= {
                "mcgrad": np.mean(pvalues <= 0.05),
                "mcgrad, adjusted": np.mean(statistics > limit),
            }
        for method, value in results.items():
            row = {"fault in": share, "rows of a group": n_group, "tables": n_tables}
            rows.append(row | {"method": method, "alarms": f"{value:.3f}", "seed": options.seed})
            print(rows[-1], flush=True)
    write_rows(RESULTS / "segments.csv", rows)


if __name__ == "__main__":
    main()
