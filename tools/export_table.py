"""Write the table of the models that leave as ONNX into docs/how-to/deploy.md.

Every classifier and transformer of scikit-learn, and LightGBM, XGBoost and CatBoost, is fitted to
drawn rows, calibrated, exported and compared with `predict_proba` on other rows. Usage, from the
root of the repository: python tools/export_table.py [NAME ...]; with names it prints these alone.
"""

from __future__ import annotations

import sys
import warnings
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import all_estimators

from vennforest import CalibratedClassifier
from vennforest.export import to_onnx

PAGE = Path("docs/how-to/deploy.md")
BEGIN, END = "<!-- table of exports -->", "<!-- end of the table -->"
SETTINGS = ("two classes", "three classes", "in a blend with a forest")

MARKS = {"equal": "equal", "refused": "refused", "cannot be calibrated": "–"}
"""Words of the table for each outcome."""

BOOSTERS = {
    "LGBMClassifier": ("lightgbm", {"verbose": -1, "n_jobs": 1}),
    "XGBClassifier": ("xgboost", {"n_jobs": 1}),
    "CatBoostClassifier": (
        "catboost",
        {"verbose": 0, "thread_count": 1, "allow_writing_files": False},
    ),
}
"""Classes of other packages, with settings that keep them quiet."""


def candidates() -> Iterator[tuple[str, str, Any]]:
    """Yield the kind, name and instance of each classifier, and of pipelines with a transformer."""
    for name, (package, settings) in BOOSTERS.items():
        try:
            yield "classifier", name, getattr(import_module(package), name)(**settings)
        except ImportError:
            continue
    for kind in ("classifier", "transformer"):
        for name, cls in all_estimators(kind):
            if kind == "transformer" and issubclass(cls, ClassifierMixin):
                continue
            estimator = instance_of(name, cls)
            if kind == "transformer":
                estimator = make_pipeline(estimator, LogisticRegression())
            yield kind, name, estimator


def instance_of(name: str, cls: type) -> Any:
    """Return an estimator with few trees and one random state."""
    two = [("tree", DecisionTreeClassifier(max_depth=3)), ("linear", LogisticRegression())]
    special = {
        "ColumnTransformer": lambda: ColumnTransformer(
            [("a", StandardScaler(), [0, 1])], remainder="passthrough"
        ),
        "FeatureUnion": lambda: FeatureUnion([("a", StandardScaler()), ("b", MinMaxScaler())]),
        "VotingClassifier": lambda: cls(two, voting="soft"),
        "StackingClassifier": lambda: cls(two),
    }
    try:
        estimator = special.get(name, cls)()
    except TypeError:  # it has an estimator within
        estimator = cls(LogisticRegression())
    settings = {"n_estimators": 6, "random_state": 0}
    if not isinstance(estimator, ClassifierMixin):
        settings["n_components"] = 2
    for parameter, value in settings.items():
        if parameter in estimator.get_params(deep=False):
            estimator.set_params(**{parameter: value})
    return estimator


def draw(k: int, n: int, seed: int) -> tuple[Any, Any]:
    """Return rows (n, 4) above 0 and labels of k classes."""
    rng = np.random.default_rng([20261128, seed])
    rows = rng.gamma(3.0, size=(n, 4)).round(2)
    cuts = [3.0] if k == 2 else [2.0, 4.0]
    return rows, np.digitize(rows[:, 0] + 0.5 * rows[:, 1] - 1 + rng.normal(size=n), cuts)


def outcome(estimator: Any, setting: str) -> str:
    """Return "equal", "refused: ..." or "cannot be calibrated"; raise an error if it is wrong."""
    from onnxruntime import InferenceSession

    k = 3 if setting == SETTINGS[1] else 2
    X, y = draw(k, 240, seed=0)
    new, _ = draw(k, 300, seed=1)
    settings: dict[str, Any] = {"calibrate_on": "holdout", "random_state": 0}
    if setting == SETTINGS[2]:
        forest = RandomForestClassifier(10, random_state=0)
        estimator, settings = [("forest", forest), ("model", estimator)], {"cv": 2}
    with warnings.catch_warnings(action="ignore"):
        try:
            model = CalibratedClassifier(estimator, **settings).fit(X, y)
            if setting == SETTINGS[2]:  # a model of weight 0 would be left out
                for fold in model._state.folds:
                    fold.model.weights[:] = np.maximum(fold.model.weights, 0.5)
            expected = model.predict_proba(new)
        except Exception:
            return "cannot be calibrated"
        try:
            graph = to_onnx(model, X)
        except (ImportError, ValueError) as error:
            return f"refused: {error}"
    session = InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    (p,) = session.run(["p"], {"X": new})
    p = np.column_stack([1 - p, p]) if k == 2 else p
    # What differs by rounding may miss a step of p: in a row of a hundred.
    is_off = np.abs(p - expected).max(axis=1) > 1e-6
    if is_off.mean() > 0.01:
        raise AssertionError(f"{estimator}, {setting}: {is_off.sum()} of 300 rows differ")
    return "equal"


def table(rows: list[tuple[str, str, list[str]]]) -> str:
    """Return the page's table: names by kind and what became of them in each setting."""
    names = defaultdict(list)
    for kind, name, outcomes in rows:
        short = tuple(text.partition(":")[0] for text in outcomes)
        if set(short) != {"cannot be calibrated"}:
            names[kind, short].append(name)
    lines = [f"| | {' | '.join(SETTINGS)} |", "|---|---|---|---|"]
    for (kind, short), group in sorted(names.items()):
        cells = " | ".join(MARKS[text] for text in short)
        lines.append(f"| {kind}s: {', '.join(sorted(group, key=str.lower))} | {cells} |")
    return "\n".join(lines)


def main(wanted: list[str]) -> None:
    """Write the table, or print the outcomes of some."""
    rows = []
    for kind, name, estimator in candidates():
        if wanted and name not in wanted:
            continue
        outcomes = [outcome(estimator, setting) for setting in SETTINGS]
        print(kind, name, outcomes, flush=True)
        rows.append((kind, name, outcomes))
    if not wanted:
        before, _, rest = PAGE.read_text().partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n\n{table(rows)}\n\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main(sys.argv[1:])
