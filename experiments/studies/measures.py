"""Coverage of the intervals of measures: ``python -m experiments.studies.measures``.

Writes ``experiments/results/measures.csv``: for every measure, with two and three classes, rows,
20 uneven and 100 groups, with and without weights, and for many to few events, the share of drawn
tables in which a 95% interval has an interval at all, and in which that contains the true value.
Log-odds are wrong by an intercept and a slope, but for ``ici_if_calibrated``, the calibration index
of right ones, which is 0. Labels of a group share a normal effect. Weights are
the inverse of the chance to be drawn, which depends on the score, so true values are those of all
scores. A design that is in the file already is not drawn again.
"""

from itertools import product

import numpy as np
from experiments.studies.tables import RESULTS, append_row, read_rows
from scipy.special import expit, logit, softmax
from scipy.stats import norm

from vennforest.metrics import Estimates

PATH = RESULTS / "measures.csv"
N_DRAWS = 400
N_POPULATION = 60_000
EVENTS = {"many": (600, 0.3), "some": (600, 0.012), "few": (300, 0.006)}
"""Rows, and the share of the event, or of the rarest class."""

GROUPS = ("none", "20 uneven", "100")


class Population:
    """Scores, probabilities p and p_other of two models, frequencies q and weights."""

    def __init__(self, k, share, is_weighted, rng):
        z = logit(share) + 1.5 * rng.normal(size=N_POPULATION)
        other = z + 0.7 * rng.normal(size=N_POPULATION)
        self.weight = np.exp(0.4 * (z - z.mean())) if is_weighted else np.ones(N_POPULATION)
        if k == 2:
            self.p, self.p_other = (np.column_stack([1 - expit(v), expit(v)]) for v in (z, other))
            q = expit(0.2 + 0.85 * z)
            self.q = np.column_stack([1 - q, q])
        else:
            u = rng.normal(size=N_POPULATION)
            logits, noise = np.column_stack([0 * z, u, z]), 0.7 * rng.normal(size=(N_POPULATION, 3))
            self.p, self.p_other = softmax(logits, axis=1), softmax(logits + noise, axis=1)
            self.q = softmax(0.85 * logits + [0.2, 0, 0], axis=1)

    def truths(self, thresholds):
        """Return the values of all measures in the population."""
        k = self.q.shape[1]
        y = np.repeat(np.arange(k), len(self.q))
        p, p_other = (np.tile(values, (k, 1)) for values in (self.p, self.p_other))
        weight = self.q.T.ravel()
        everything = Estimates(y, p, sample_weight=weight, classes=range(k))
        values = {name: e.value for name, e in measures(everything, p_other, thresholds).items()}
        if k == 2:
            values |= {"ici": np.abs(self.q - self.p)[:, 1].mean(), "ici_if_calibrated": 0.0}
        return values

    def draw(self, n, groups, rng, q=None):
        """Return labels, rows and group codes of a sample; ``q`` are other frequencies."""
        q = self.q if q is None else q
        chance = 1 / self.weight
        rows = rng.choice(len(chance), n, p=chance / chance.sum())
        codes, effect, u = None, 0.0, rng.normal(size=n)
        if groups != "none":
            m = int(groups.split()[0])
            sizes = rng.gamma(1, 1, m) + 0.1 if "uneven" in groups else np.ones(m)
            codes = np.sort(rng.choice(m, n, p=sizes / sizes.sum()))
            effect = rng.normal(size=m)[codes]
            u = np.sqrt(0.15) * effect + np.sqrt(0.85) * u
            # Rows of a group have similar scores.
            order = np.argsort(0.5 * rng.normal(size=m)[codes] + rng.normal(size=n))
            rows = rows[np.argsort(self.p[rows, -1], kind="stable")][np.argsort(order)]
        y = (norm.cdf(u)[:, None] < np.cumsum(q[rows][:, ::-1], axis=1)).argmax(axis=1)
        return self.q.shape[1] - 1 - y, rows, codes


def measures(estimates, p_other, thresholds):
    """Return the measures with intervals, by name."""
    e = estimates
    values = {"auc": e.auc(), "log_loss": e.log_loss(), "brier": e.brier()}
    values |= {"log_loss_skill": e.log_loss_skill(), "brier_skill": e.brier_skill()}
    values |= {"auc_difference": e.auc(versus=p_other)}
    values |= {"log_loss_difference": e.log_loss(versus=p_other)}
    values |= {"brier_difference": e.brier(versus=p_other)}
    if e.positive is not None:
        line = e.line()
        values |= {
            name: getattr(line, name) for name in ("observed_expected", "intercept", "slope")
        }
        curve = e.net_benefit(thresholds, versus=p_other)
        for i, name in enumerate(("low", "high")):
            for key in ("net_benefit", "difference"):
                ends = [getattr(curve, key + end)[i] for end in ("", "_low", "_high")]
                values[f"{key}_{name}"] = type(line.slope)(*ends)
    return values


def study(k, groups, is_weighted, events, seed):
    """Return a row of the file for each measure."""
    n, share = EVENTS[events]
    rng = np.random.default_rng([seed, k, GROUPS.index(groups), is_weighted, n, int(1000 * share)])
    calibrated_rng = np.random.default_rng([seed, GROUPS.index(groups), is_weighted, n])
    population = Population(k, share, is_weighted, rng)
    thresholds = population.p[:, 1].mean() * np.array([0.5, 1.5])
    truths, hits, present, count = population.truths(thresholds), {}, {}, []

    def estimates_of(y, rows, codes):
        weight = population.weight[rows] if is_weighted else None
        options = {"classes": range(k), "groups": codes, "sample_weight": weight}
        return Estimates(y, population.p[rows], **options)

    for _ in range(N_DRAWS):
        y, rows, codes = population.draw(n, groups, rng)
        count.append(np.bincount(y, minlength=k).min())
        estimates = estimates_of(y, rows, codes)
        values = measures(estimates, population.p_other[rows], thresholds)
        if k == 2:
            values["ici"] = estimates.distances().ici
            calibrated = population.draw(n, groups, calibrated_rng, population.p)
            values["ici_if_calibrated"] = estimates_of(*calibrated).distances().ici
        for name, e in values.items():
            has_interval = bool(np.isfinite(e.low) and np.isfinite(e.high))
            present.setdefault(name, []).append(has_interval)
            if has_interval:
                hits.setdefault(name, []).append(e.low <= truths[name] <= e.high)
    return [
        {
            "measure": name,
            "classes": k,
            "groups": groups,
            "weights": "yes" if is_weighted else "no",
            "events": events,
            "mean_events": f"{np.mean(count):.1f}",
            "tables": len(has_intervals),
            "with_interval": f"{np.mean(has_intervals):.3f}",
            "coverage": f"{np.mean(hits[name]):.3f}" if name in hits else "",
            "seed": seed,
        }
        for name, has_intervals in present.items()
    ]


def main():
    """Draw the tables of the designs that are not in the file, and append their rows."""
    keys = ("classes", "groups", "weights", "events")
    done = {tuple(row[key] for key in keys) for row in read_rows(PATH)}
    designs = product((2, 3), GROUPS, (False, True), EVENTS)
    for k, groups, is_weighted, events in designs:
        if (str(k), groups, "yes" if is_weighted else "no", events) not in done:
            seed = int(np.random.SeedSequence().entropy % 2**32)
            for row in study(k, groups, is_weighted, events, seed):
                append_row(PATH, row)
            print(k, groups, is_weighted, events, flush=True)


if __name__ == "__main__":
    main()
