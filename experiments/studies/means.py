"""Mean of the probability of a rare event: ``python -m experiments.studies.means``.

Writes ``experiments/results/means.csv``: the mean probability of 20,000 new scores divided by their
rate, over drawn tables of 50 rows for each expected event. Scores are Beta(1, 20), and the event
has 0.4 times the score as its probability. The rate is corrected for the number of events drawn.
"""

import numpy as np
from experiments.studies.tables import RESULTS, write_rows

from vennforest.calibrators import PlattScaling, VennAbers

METHODS = {
    'VennAbers(merge="log")': VennAbers("log"),
    'VennAbers(merge="pooled")': VennAbers("pooled"),
    "PlattScaling()": PlattScaling(),
}
N_DRAWS = 60


def main():
    """Draw the tables and write the ratios."""
    seed = int(np.random.SeedSequence().entropy % 2**32)
    rows = []
    for events in (30, 90, 360):
        rng = np.random.default_rng([seed, events])
        ratios = {name: [] for name in METHODS}
        for _ in range(N_DRAWS):
            scores, new = rng.beta(1, 20, 50 * events), 0.4 * rng.beta(1, 20, 20_000)
            p = 0.4 * scores
            y = rng.random(len(p)) < p
            expected = new.mean() * y.mean() / p.mean()
            for name, calibrator in METHODS.items():
                mean = calibrator.fit(scores, y).predict_proba(new / 0.4)[:, 1].mean()
                ratios[name].append(mean / expected)
        for name, values in ratios.items():
            error = np.std(values, ddof=1) / np.sqrt(N_DRAWS)
            row = {"events": events, "method": name, "ratio": f"{np.mean(values):.4f}"}
            rows.append(row | {"standard_error": f"{error:.4f}", "draws": N_DRAWS, "seed": seed})
    write_rows(RESULTS / "means.csv", rows)


if __name__ == "__main__":
    main()
