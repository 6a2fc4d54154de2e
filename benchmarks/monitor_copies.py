"""How much the evidence of `Monitor` depends on what it draws, and what that costs.

    python benchmarks/monitor_copies.py [--seed SEED] > results/monitor_copies.md

After a reference of 600 examples, scores are shuffled, are higher, or nothing changes. Each stream
is watched with ten seeds of the monitor: the logarithm of the largest evidence, and its standard
deviation over the seeds, for the monitor and for the first of its copies alone. False alarms are
counted over other streams of 2,000 rows, at 1 in 20. The seed is drawn unless given.
"""

import argparse
import secrets

import numpy as np

from vennforest.monitoring import Monitor

REFERENCE, SEEDS, STREAMS, QUIET = 600, 10, 12, 300
CHANGES = {"shuffled": 300, "higher": 500, "none": 1000}


def examples(rng, n, change="none"):
    scores = rng.beta(2.6 if change == "higher" else 2, 2, n)
    y = rng.random(n) < scores
    return (rng.permutation(scores) if change == "shuffled" else scores), y


def copies(monitor):
    """Return the logarithm of each copy's evidence by itself, as a monitor of one copy has it."""
    logs = [channel.log_evidence() for channel in monitor._progress.channels]
    return np.reshape(logs, (-1, 3)).max(axis=1) - np.log(3)


def main(seed):
    print(f"seed {seed}, {STREAMS} streams, {SEEDS} seeds of the monitor each\n")
    print("| change | rows | one copy: mean | deviation | monitor: mean | deviation |")
    print("|---|---|---|---|---|---|")
    for t, (change, n) in enumerate(CHANGES.items()):
        found = np.empty((2, STREAMS, SEEDS))
        for i in range(STREAMS):
            rng = np.random.default_rng([seed, t, i])
            reference, new = examples(rng, REFERENCE), examples(rng, n, change)
            for j in range(SEEDS):
                monitor = Monitor(random_state=j).fit_scores(*reference)
                monitor.update_scores(*new)
                found[:, i, j] = copies(monitor)[0], np.log(monitor.evidence_)
        cells = [f"{one.mean():.2f} | {one.std(axis=1).mean():.2f}" for one in found]
        print(f"| {change} | {n} | " + " | ".join(cells) + " |", flush=True)
    alarms = 0
    for i in range(QUIET):
        rng = np.random.default_rng([seed, len(CHANGES), i])
        monitor = Monitor(random_state=i).fit_scores(*examples(rng, REFERENCE))
        monitor.update_scores(*examples(rng, 2000))
        alarms += monitor.alarm_ is not None
    print(f"\nFalse alarms: {alarms} of {QUIET} streams of 2,000 rows.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=None)
    given = parser.parse_args()
    main(secrets.randbelow(10**6) if given.seed is None else given.seed)
