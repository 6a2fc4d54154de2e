"""Boosted trees: calibrated on folds, and a model that somebody else has fitted."""

import sys

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from vennforest import CalibratedClassifier


def main(picture=None):
    """Calibrate a boosted model twice, and compare it with its own probabilities."""
    X, y = make_classification(
        2000, 15, n_informative=6, flip_y=0.15, class_sep=0.7, random_state=0
    )
    X, X_new, y, y_new = train_test_split(X, y, test_size=600, random_state=0)
    boosting = HistGradientBoostingClassifier(max_iter=50, random_state=0)

    # --8<-- [start:folds]
    # Five models, one a fold; each row is scored by the model that did not see it.
    model = CalibratedClassifier(boosting, calibrate_on="cv", cv=5, random_state=0).fit(X, y)
    p = model.predict_proba(X_new)
    m = model.predict_multiprobability(X_new)
    # --8<-- [end:folds]

    # --8<-- [start:frozen]
    # A fitted model is never touched. The rows given to fit only calibrate: it must not have
    # seen them.
    fitted = boosting.fit(X[:900], y[:900])
    frozen = CalibratedClassifier(FrozenEstimator(fitted), random_state=0).fit(X[900:], y[900:])
    p_frozen = frozen.predict_proba(X_new)
    # --8<-- [end:frozen]

    # --8<-- [start:one]
    # One model in production instead of five: the same scores of folds calibrate one model that
    # is trained on all rows.
    single = CalibratedClassifier(boosting, calibrate_on="cv", ensemble=False, random_state=0)
    p_single = single.fit(X, y).predict_proba(X_new)
    # --8<-- [end:one]

    raw = boosting.fit(X, y).predict_proba(X_new)
    for name, q in [
        ("boosting itself", raw),
        ("calibrated on folds", p),
        ("one model", p_single),
        ("fitted model, 500 new rows", p_frozen),
    ]:
        print(f"{name:28s} log loss {log_loss(y_new, q):.3f}")
    assert np.all((m.lower <= p + 1e-12) & (p <= m.upper + 1e-12))
    if picture:
        from vennforest.plots import ReliabilityDisplay

        display = ReliabilityDisplay.from_predictions(
            y_new, {"boosting itself": raw[:, 1], "calibrated on folds": p[:, 1]}
        )
        display.figure_.savefig(picture, metadata={"Date": None})


if __name__ == "__main__":
    main(*sys.argv[1:])
