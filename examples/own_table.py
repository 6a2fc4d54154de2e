"""From a table with text, dates and missing cells to a calibrated model, in a few lines.

The table is made here, as a file such as an export gives it; put the path of yours in its place.
On the command line it is ``vennforest report``, ``fit`` and ``predict`` with the same file.
"""

# --8<-- [start:table]
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

import vennforest
from vennforest import CalibratedClassifier
from vennforest.tables import table_pipeline


def write_table(path, n=1000, seed=0):
    """Write customers who leave or stay, with blanks, a date and a free text."""
    rng = np.random.default_rng(seed)
    months = rng.integers(1, 72, n)
    plan = rng.choice(["basic", "family", "pro"], n, p=[0.5, 0.3, 0.2])
    calls = rng.poisson(1.5, n)
    spent = rng.gamma(3, 20, n).round(2)
    since = pd.Timestamp("2026-01-01") - pd.to_timedelta(months * 30, unit="D")
    note = rng.choice(["asked for a lower price", "moved house", "billing error", ""], n)
    log_odds = -0.6 - 0.03 * months + 0.5 * calls + 0.8 * (note == "billing error")
    left = rng.random(n) < 1 / (1 + np.exp(-log_odds + 0.9 * (plan == "family")))
    table = pd.DataFrame({"since": since.strftime("%Y-%m-%d"), "plan": plan, "calls": calls})
    table["spent"], table["note"] = spent, note
    table.loc[rng.random(n) < 0.1, "calls"] = np.nan
    table["left"] = np.where(left, "yes", "no")
    table.to_csv(path, index=False)


# --8<-- [end:table]


def main(picture=None):
    """Fit, judge, save and load."""
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name, "customers.csv")
    write_table(path)
    # --8<-- [start:fit]
    table = pd.read_csv(path)
    X, y = table.drop(columns="left"), table["left"]
    X, X_new, y, y_new = train_test_split(X, y, random_state=0)

    forest = table_pipeline(RandomForestClassifier(200, random_state=0), random_state=0)
    model = CalibratedClassifier(forest, random_state=0).fit(X, y)
    print(model.calibrate_on_, "because", model.calibrate_on_reason_)

    p = model.predict_proba(X_new)
    m = model.predict_multiprobability(X_new)
    shown = X_new.assign(p=p[:, 1].round(3), lower=m.p0.round(3), upper=m.p1.round(3), left=y_new)
    print(shown.head(8).to_string(index=False))
    # --8<-- [end:fit]
    # --8<-- [start:judge]
    raw = model.estimator_.predict_proba(X_new)
    print(f"log loss of the forest {log_loss(y_new, raw):.3f}, calibrated {log_loss(y_new, p):.3f}")
    share = (y_new == "yes").mean()
    print(f"mean bounds {m.p0.mean():.3f} to {m.p1.mean():.3f}, observed {share:.3f}")
    # --8<-- [end:judge]
    file = Path(folder.name, "model.skops")
    # --8<-- [start:save]
    vennforest.save(model, file)
    again = vennforest.load(file)
    assert np.array_equal(again.predict_proba(X_new), p)
    # --8<-- [end:save]
    if picture:
        from vennforest.plots import IntervalDisplay

        display = IntervalDisplay.from_predictions(y_new.to_numpy(), m)
        display.figure_.savefig(picture, metadata={"Date": None})
    folder.cleanup()


if __name__ == "__main__":
    main(*sys.argv[1:])
