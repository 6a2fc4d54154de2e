"""Write one small file of every kind of model, with what it predicts: ``make models``.

Once a version is released its files stay, and every later version has to read them
(``tests/persistence/test_kept_models.py``); until then they are written again after every change of
what files hold.
"""

import copy
import io
import json
import sys
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from packaging.version import Version
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import vennforest
from vennforest import (
    CalibratedClassifier,
    MixedForestClassifier,
    ScoreCounts,
    ScoreGrid,
    Venn,
    VennAbers,
)
from vennforest.calibrators.core.interface import METHODS, make_calibrator
from vennforest.calibrators.maps.isotonic import IsotonicCalibration
from vennforest.calibrators.maps.log_odds import PlattScaling
from vennforest.calibrators.venn.taxonomies import NAMED
from vennforest.groups import Groups
from vennforest.monitoring import Monitor

FILES = Path(__file__).parent / "files"

OF_LIBRARIES = ("cv-boosting", "cv-histogram", "cv-vectors", "table")
"""Beginnings of the names of models with parts that only newer libraries than ours may read."""


def newer_libraries(header):
    """Return the libraries, newer than those here, that a file with parts of theirs was made with.

    scikit-learn and skrub read what older versions of theirs wrote, as far as they say, and never
    promise to read what newer ones did.
    """
    return [
        f"{name} {written}"
        for name, written in header["libraries"].items()
        if name in ("scikit-learn", "skrub") and Version(version(name)) < Version(written)
    ]


def calibrators():
    """Yield a name and an unfitted calibrator for each method, and for what parts they keep."""
    for name in METHODS:
        yield name, make_calibrator(name)
    yield "venn-abers-log", VennAbers(merge="log")
    yield "platt-logit", PlattScaling(on="logit")
    yield "isotonic-linear", IsotonicCalibration(between="linear")
    yield "venn-smooth", Venn(merge="smooth")
    for name in NAMED:
        yield f"venn-{name}", Venn(taxonomy=name)


def drawn(k, n=40):
    """Scores that are probabilities, with ties, and their labels."""
    rng = np.random.default_rng(k)
    scores = rng.integers(1, 30, (n, k)) / 1.0
    scores /= scores.sum(axis=1, keepdims=True)
    y = (scores.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=k - 1)
    return (scores[:, 1] if k == 2 else scores), np.array(["a", "b", "c"])[y], rng.random(n) + 0.1


def table(n=60):
    """A table as ``vennforest fit`` takes them: numbers, text, dates and missing cells."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=n).round(2),
            "town": rng.choice(["Ulm", "東京", "a b"], n),
            "name": [f"{i % 44:02}" for i in range(n)],
            "day": (pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D")),
        }
    )
    frame["day"] = frame["day"].dt.strftime("%Y-%m-%d")
    frame.loc[::7, ["size", "town", "day"]] = None
    frame["label"] = np.where(rng.normal(size=n) + (frame["town"] == "Ulm") > 0.3, "yes", "no")
    return frame


def models():
    """Yield a name, a function that fits such a model, and rows for it to predict."""
    for k in (2, 3):
        scores, y, weight = drawn(k)
        for name, calibrator in calibrators():
            for suffix, w in (("", None), ("-weights", weight)):
                if suffix and name not in ("venn-abers", "venn"):
                    continue
                fit = lambda c=calibrator, s=scores, y=y, w=w: c.fit(s, y, sample_weight=w)  # noqa: E731
                yield f"{name}-{k}{suffix}", fit, scores[:6]
    scores, y, _ = drawn(2)
    for on in ("score", "logit"):
        counts = ScoreCounts.from_scores(scores, y, grid=ScoreGrid(cells=16, on=on))
        fit = lambda counts=counts: VennAbers().fit_counts(counts)  # noqa: E731
        yield f"venn-abers-grid-{on}-2", fit, scores[:6]
    two, three = load_breast_cancer(return_X_y=True), load_iris(return_X_y=True)
    forest = RandomForestClassifier(5, max_depth=2, random_state=0)
    small = RandomForestClassifier(2, max_depth=2, random_state=0)
    boosting = GradientBoostingClassifier(n_estimators=1, max_depth=1, random_state=0)
    histogram = HistGradientBoostingClassifier(
        max_iter=2, max_leaf_nodes=4, min_samples_leaf=3, random_state=0
    )
    frozen = FrozenEstimator(LogisticRegression(max_iter=5000).fit(two[0][:80, :4], two[1][:80]))
    for data, X, y in (
        ("two", two[0][::9, :4], two[1][::9]),
        ("three", three[0][::3], three[1][::3]),
    ):
        kinds = {
            "oob": CalibratedClassifier(forest),
            "oob-exchangeable": CalibratedClassifier(
                forest, subforest="exchangeable", merge="smooth"
            ),
            "oob-all": CalibratedClassifier(forest, subforest="all", votes="hard"),
            "oob-extra": CalibratedClassifier(
                ExtraTreesClassifier(5, bootstrap=True, max_depth=2, random_state=0)
            ),
            "oob-mixed": CalibratedClassifier(
                MixedForestClassifier(5, max_depth=2, min_samples_leaf=[1, 3], random_state=0)
            ),
            "oob-bagging": CalibratedClassifier(BaggingClassifier(GaussianNB(), 5, random_state=0)),
            "oob-pipeline": CalibratedClassifier(make_pipeline(StandardScaler(), forest)),
            "holdout": CalibratedClassifier(small, calibrate_on="holdout"),
            "training": CalibratedClassifier(small, calibrate_on="training", method="isotonic"),
            "cv": CalibratedClassifier(small, calibrate_on="cv", cv=2),
            "cv-pooled": CalibratedClassifier(small, calibrate_on="cv", cv=2, ensemble=False),
            "cv-boosting": CalibratedClassifier(boosting, cv=2, method="platt"),
            "cv-histogram": CalibratedClassifier(histogram, cv=2, method="beta"),
            "cv-vectors": CalibratedClassifier(SVC(), cv=2, method="platt"),
        }
        if data == "two":
            kinds["frozen"] = CalibratedClassifier(frozen)
        else:
            kinds = {name: kinds[name] for name in ("oob", "cv-histogram")}
        for name, model in kinds.items():
            model.set_params(random_state=0)
            yield f"{name}-{data}", lambda m=model, X=X, y=y: m.fit(X, y), X[:6]
    yield from grouped_and_shifted()
    yield from watching()
    frame = table()
    yield "table", lambda: fit_table(frame), frame.drop(columns="label").iloc[:8]
    euros = frame.assign(size=[f"{1000 * v:,.2f} €" for v in frame["size"].fillna(0)])
    types = {"size": "number", "day": "date %Y-%m-%d", "name": "category", "town": "drop"}
    rows = euros.drop(columns=["label", "town"]).iloc[:8]
    yield "table-types", lambda: fit_table(euros, types), rows


def in_groups(k, n=90):
    """Rows whose first column is a group, one of them rare, and their labels."""
    rng = np.random.default_rng(10 + k)
    X = np.column_stack([rng.integers(0, 3, n), rng.normal(size=(n, 3)).round(2)])
    X[:4, 0] = 7
    noise = rng.logistic(size=n)
    return X, np.array(["a", "b", "c"])[
        np.digitize(2 * X[:, 1] + X[:, 0] - 1 + noise, [0, 2][: k - 1])
    ]


def grouped_and_shifted():
    """Yield models that calibrate within groups, and for other shares of the classes."""
    forest = RandomForestClassifier(5, max_depth=2, random_state=0)
    for data, k in (("two", 2), ("three", 3)):
        X, y = in_groups(k)
        kinds = {
            "oob-by": CalibratedClassifier(forest, by=0),
            "oob-by-smallest": CalibratedClassifier(forest, by=Groups(0, smallest=20)),
            "cv-by": CalibratedClassifier(forest, by=0, calibrate_on="cv", cv=2),
            "oob-by-platt": CalibratedClassifier(forest, by=0, method="platt"),
        }
        for name, model in kinds.items():
            model.set_params(random_state=0)
            rows = np.vstack([X[:8], [[5.0, 0, 0, 0]]])  # and of a group that was not seen
            yield f"{name}-{data}", lambda m=model, X=X, y=y: m.fit(X, y), rows
        shares = {"a": 0.1, "b": 0.9} if k == 2 else {"c": 0.02}
        for name, by in (("prior", None), ("prior-by", 0)):
            model = CalibratedClassifier(forest, by=by, random_state=0)
            yield (
                f"{name}-{data}",
                lambda m=model, X=X, y=y, s=shares: m.fit(X, y).with_prior(s),
                X[:8],
            )


def watching():
    """Yield monitors, before a stream and within one."""
    X, y = in_groups(2)
    plain = GaussianNB().fit(X[::3], y[::3])
    forest = RandomForestClassifier(5, max_depth=2, random_state=0)
    later = np.arange(12.0)

    def within(monitor, X, y=y, labels=True):
        given = (y[:12],) if labels else ()
        update = monitor.update if monitor.model is not None else monitor.update_scores
        update(X[:12], *given, time=later)
        return monitor

    for form in ("ville", "shiryaev-roberts"):
        monitor = Monitor(plain, form=form, random_state=0)
        yield f"monitor-{form}", lambda m=monitor: within(m.fit(X, y), -X), -X[12:20]
    monitor = Monitor(plain, watch="objects", random_state=0)
    yield "monitor-objects", lambda m=monitor: within(m.fit(X, y), -X, labels=False), -X[12:20]
    model = CalibratedClassifier(forest, random_state=0)
    yield (
        "monitor-oob",
        lambda m=model: within(Monitor(m.fit(X, y), random_state=0).fit(), -X),
        -X[12:20],
    )
    for k in (2, 3):
        scores, labels, _ = drawn(k, 60)
        monitor = Monitor(random_state=0)
        yield (
            f"monitor-scores-{k}",
            lambda m=monitor, s=scores, y=labels: m.fit_scores(s, y),
            scores[:8] / 2,
        )


def fit_table(frame, types=None):
    """Return what ``vennforest fit`` makes of a table."""
    import tempfile

    from vennforest.commands.fit import fit_file
    from vennforest.commands.signatures import Fit

    with tempfile.TemporaryDirectory() as folder:
        data, model = Path(folder) / "data.csv", Path(folder) / "model.skops"
        frame.to_csv(data, index=False)
        declared = None
        if types is not None:
            declared = Path(folder) / "types.json"
            declared.write_text(json.dumps(types), "utf-8")
        fit_file(Fit(data, "label", model, trees=4, jobs=1, types=declared))
        return vennforest.load(model)


def answers(model, rows):
    """Return what a model predicts of rows: probabilities, and bounds where it has them.

    Of a monitor: the evidence after each of them, as if they came next, and what it speaks of.
    """
    if isinstance(model, Monitor):
        return evidence(copy.deepcopy(model), rows)
    found = {"p": model.predict_proba(rows)}
    if hasattr(model, "predict_multiprobability"):
        bounds = model.predict_multiprobability(rows)
        found.update(lower=bounds.lower, upper=bounds.upper)
    return found


def evidence(monitor, rows):
    """Return what a monitor says of rows whose labels go round, and the changes behind it."""
    update = monitor.update if monitor.model is not None else monitor.update_scores
    labels = [monitor.classes_[np.arange(len(rows)) % len(monitor.classes_)]]
    found = update(rows, *(labels if monitor.watch == "labels" else []))
    changes = monitor.explain()
    return {
        "evidence": np.append(found, [monitor.max_evidence_, monitor.evidence_]),
        "changes": np.array([change.evidence for change in changes]),
        "since": np.array([change.since for change in changes]),
    }


def rows_as_json(rows):
    """Return rows in a form that is read again with ``rows_from_json``."""
    return rows.to_csv(index=False) if isinstance(rows, pd.DataFrame) else rows.tolist()


def rows_from_json(rows):
    """Return the rows that were written with ``rows_as_json``."""
    if isinstance(rows, str):
        return pd.read_csv(io.StringIO(rows), dtype={"town": object, "name": object, "day": object})
    return np.array(rows)


def main(folder=None):
    """Write all files of the present format."""
    folder = FILES if folder is None else Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.skops"):
        old.unlink()
    kept = {}
    for name, fit, rows in models():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = fit()
            vennforest.save(model, folder / f"{name}.skops")
            found = answers(model, rows_from_json(rows_as_json(rows)))
        kept[name] = {"rows": rows_as_json(rows)} | {key: v.tolist() for key, v in found.items()}
    (folder / "predictions.json").write_text(json.dumps(kept, ensure_ascii=False), "utf-8")
    size = sum(path.stat().st_size for path in folder.glob("*"))
    print(f"{len(kept)} models, {size / 1024:.0f} KiB, in {folder}")


if __name__ == "__main__":
    main(*sys.argv[1:])
