"""A rare event, patients who come more than once, and costs that differ a hundredfold."""

import sys

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import log_loss

from vennforest import CalibratedClassifier
from vennforest.decisions import CostMatrix


def stays(n_patients, seed):
    """Return features, outcome (1 in 20 or so) and patient of hospital stays; several a patient."""
    rng = np.random.default_rng(seed)
    frailty = rng.normal(size=n_patients)
    visits = rng.integers(1, 5, n_patients)
    patient = np.repeat(np.arange(n_patients), visits)
    age = rng.normal(65, 12, n_patients)[patient]
    marker = frailty[patient] + rng.normal(scale=0.7, size=len(patient))
    pressure = rng.normal(size=len(patient))
    log_odds = -4.3 + 1.1 * marker + 0.03 * (age - 65) + 0.7 * (pressure > 1) * marker
    y = (rng.random(len(patient)) < 1 / (1 + np.exp(-log_odds))).astype(int)
    return np.column_stack([age, marker, pressure]), y, patient


def main(picture=None):
    """Calibrate with patients kept together, and decide at known costs."""
    X, y, patient = stays(700, seed=1)
    X_new, y_new, _ = stays(900, seed=2)  # other patients
    print(f"{y.sum()} events in {len(y)} stays of {patient.max() + 1} patients")

    # groups: a stay is scored by trees that saw no stay of the same patient. Repeating or
    # dropping rows to balance the classes would put the probabilities off; nothing is balanced.
    forest = RandomForestClassifier(300, min_samples_leaf=3, random_state=0)
    model = CalibratedClassifier(forest, calibrate_on="oob", random_state=0)
    model.fit(X, y, groups=patient)
    p = model.predict_proba(X_new)[:, 1]
    m = model.predict_multiprobability(X_new)
    raw = model.estimator_.predict_proba(X_new)[:, 1]
    print(f"log loss of the forest {log_loss(y_new, raw):.4f}, calibrated {log_loss(y_new, p):.4f}")
    print(f"share {y_new.mean():.3f}; mean bounds {m.p0.mean():.3f} to {m.p1.mean():.3f}")

    # A missed event costs 40, an examination 1, whatever it finds.
    costs = {0: {"leave": 0, "examine": 1}, 1: {"leave": 40, "examine": 1}}
    matrix = CostMatrix.read(costs, model.classes_)
    decided = matrix.decide(model.predict_proba(X_new))
    names = np.array(matrix.decisions)[decided]
    # The same decision wherever the probability lies between its bounds; else a doctor looks.
    at_p0, at_p1 = (matrix.decide(np.column_stack([1 - p, p])) for p in (m.p0, m.p1))
    safe = np.where(at_p0 == at_p1, names, "a doctor looks")
    missed = 40 * y_new
    for name, examine in [
        ("as decided", names == "examine"),
        ("everybody", np.full(len(y_new), True)),
        ("nobody", np.full(len(y_new), False)),
    ]:
        cost = np.where(examine, 1, missed).mean()
        print(f"examine {name:10s}: cost {cost:.3f} a stay, {examine.mean():.0%} examined")
    for name in ("examine", "leave", "a doctor looks"):
        print(f"whatever is true within the bounds, {name}: {(safe == name).mean():.0%}")
    if picture:
        from vennforest.plots import ReliabilityDisplay

        display = ReliabilityDisplay.from_predictions(y_new, {"forest": raw, "calibrated": p})
        display.figure_.savefig(picture, metadata={"Date": None})


if __name__ == "__main__":
    main(*sys.argv[1:])
