"""False alarms and power of grouped tests: ``python -m experiments.studies.dependence``.

Writes ``experiments/results/dependence.csv``: the share of drawn tables in which Spiegelhalter's
and Kuiper's tests and that of intercept and slope, with groups, have p < .05, and the smallest of
them times three. Labels of a group depend on each other by a common normal effect, so not as the
tests assume. In half of the tables the log-odds are right, in half their slope should be .75.
"""

import numpy as np
from experiments.studies.tables import RESULTS, write_rows
from scipy.special import expit, logit
from scipy.stats import norm

from vennforest.metrics.calibration_tests import grouped_pvalues
from vennforest.metrics.dependence import intragroup_correlation

# Number of groups, rows of each (0: geometric, 3.3 on average), mean probability, and the share of
# the group's effect in the variance.
DESIGNS = {
    "pairs": (1000, 2, 0.2, 0.5),
    "triples": (300, 3, 0.05, 0.5),
    "large groups": (60, 30, 0.2, 0.2),
    "rare": (2000, 3, 0.01, 0.5),
    "few events": (300, 3, 0.02, 0.8),
    "mixed sizes": (400, 0, 0.1, 0.5),
    "independent rows": (500, 4, 0.2, 0.0),
    "one row each": (2000, 1, 0.1, 0.0),
    "copies": (500, 3, 0.1, 1.0),
}
N_TABLES = 400


def main():
    """Draw the tables and write the shares."""
    seed = int(np.random.SeedSequence().entropy % 2**32)
    rows = []
    for number, (design, (n_groups, size, mean, share)) in enumerate(DESIGNS.items()):
        rng = np.random.default_rng([seed, number])
        alarms = {1.0: [], 0.75: []}
        for _ in range(N_TABLES):
            sizes = np.full(n_groups, size) if size else rng.geometric(0.3, n_groups)
            groups = np.repeat(np.arange(n_groups), sizes)
            z = logit(mean) + 0.6 * rng.normal(size=n_groups)[groups]
            z += 0.8 * rng.normal(size=len(groups))
            latent = np.sqrt(share) * rng.normal(size=n_groups)[groups]
            latent += np.sqrt(1 - share) * rng.normal(size=len(groups))
            for slope in alarms:
                p, q = expit(z), expit(z.mean() + slope * (z - z.mean()))
                y = (norm.cdf(latent) < q).astype(float)
                pvalues = grouped_pvalues(y, p, groups, intragroup_correlation(y, p, groups))
                alarms[slope].append([value < 0.05 for value in (*pvalues, 3 * min(pvalues))])
        for slope, values in alarms.items():
            shares = [f"{value:.3f}" for value in np.mean(values, axis=0)]
            row = {"design": design, "slope": slope, "tables": N_TABLES, "seed": seed}
            names = ("spiegelhalter", "kuiper", "line", "smallest")
            rows.append(row | dict(zip(names, shares, strict=True)))
            print(rows[-1], flush=True)
    write_rows(RESULTS / "dependence.csv", rows)


if __name__ == "__main__":
    main()
