"""What spoils a calibration, how it can come in, and what has to happen: the page is made of it.

A hazard is one entry: a sentence, ways in, and a verdict for each. ``test_hazards.py`` beside it
runs them all, and the same calls without the fault, which must pass without a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    TimeSeriesSplit,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, TargetEncoder
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.class_weight import compute_sample_weight

from vennforest import CalibratedClassifier, VennAbers, audit

Rng = np.random.Generator
Outcome = Literal["refused", "warned", "right", "found"]


@dataclass(frozen=True)
class Verdict:
    """What has to happen: a right answer, or ``match`` is in an error, a warning or a finding.

    Errors, warnings and right answers are those of ``fit``, findings those of ``audit``.
    """

    outcome: Outcome
    match: str = ""


@dataclass(frozen=True)
class Hazard:
    """A fault, the ways in which it can reach the library, and the verdict for each.

    ``ways`` are named functions of a random generator; one whose verdict is "right" returns whether
    its answer is right, and one whose verdict is "found" the findings of an audit. ``honest`` is
    the same call without the fault.
    """

    name: str
    fault: str
    ways: Mapping[str, Callable[[Rng], Any]]
    verdict: Verdict
    honest: Callable[[Rng], Any] | None = None
    by_way: Mapping[str, Verdict] = field(default_factory=dict)

    def verdict_of(self, way: str) -> Verdict:
        """Return what has to happen when the fault comes in this way."""
        return self.by_way.get(way, self.verdict)


def coin(rng: Rng, n: int = 200, d: int = 5, share: float = 0.5) -> tuple[Any, Any]:
    """Return features and labels that have nothing to do with each other."""
    return rng.normal(size=(n, d)), (rng.random(n) < share).astype(int)


def forest(**settings: Any) -> RandomForestClassifier:
    """Return a small forest."""
    return RandomForestClassifier(40, random_state=0, **settings)


SETTINGS: dict[str, Any] = {}
"""Of every calibrated classifier that ``fit`` makes, unless a hazard is about them."""


def fit(estimator: Any, X: Any, y: Any, settings: Any = None, **fit_params: Any) -> Any:
    """Fit a calibrated classifier."""
    model = CalibratedClassifier(estimator, random_state=0, **{**SETTINGS, **(settings or {})})
    return model.fit(X, y, **fit_params)


def doubled(rng: Rng, jitter: float = 0.0) -> tuple[Any, Any]:
    """Return every row twice, the second time moved a little."""
    X, y = coin(rng)
    return np.vstack([X, X + jitter * rng.normal(size=X.shape)]), np.tile(y, 2)


def numbered(X: Any, rng: Rng) -> Any:
    """Return a table with a number for every row."""
    return np.column_stack([rng.permutation(len(X)), X])


def between(rng: Rng, share: float = 0.1) -> tuple[Any, Any]:
    """Return rows with as many of both classes, half of the rare ones made as SMOTE makes them."""
    X, y = coin(rng, 400, 5, share)
    rare = X[y == 1]
    away = np.linalg.norm(rare[:, None] - rare[None], axis=2)
    near = np.argsort(away, axis=1)[:, 1:4]
    wanted = int((y == 0).sum() - y.sum())
    one = rng.integers(0, len(rare), wanted)
    other = near[one, rng.integers(0, near.shape[1], wanted)]
    made = rare[one] + rng.random((wanted, 1)) * (rare[other] - rare[one])
    return np.vstack([X, made]), np.concatenate([y, np.ones(wanted, int)])


def oversampled(rng: Rng) -> tuple[Any, Any]:
    """Return rows in which rare ones are repeated until the classes are as frequent."""
    X, y = coin(rng, 400, 5, 0.1)
    again = rng.choice(np.flatnonzero(y), int((y == 0).sum() - y.sum()))
    rows = np.concatenate([np.arange(len(y)), again])
    return X[rows], y[rows]


def patients(rng: Rng) -> tuple[Any, Any]:
    """Return five visits of each patient, with the patient's number as a feature."""
    of = np.repeat(np.arange(60), 5)
    X = rng.normal(size=(60, 5))[of] + 0.01 * rng.normal(size=(300, 5))
    return np.column_stack([of, X]), rng.integers(0, 2, 60)[of]


def visits(rng: Rng) -> tuple[Any, Any]:
    """Return five visits of each patient with values of their own, and the patient's number."""
    patient = np.repeat(np.arange(60), 5)
    return np.column_stack([patient, rng.normal(size=(300, 5))]), rng.integers(0, 2, 60)[patient]


def steep(rng: Rng) -> tuple[Any, Any]:
    """Return labels that a column explains but for a few errors."""
    X = rng.normal(size=(200, 5))
    return X, (X[:, 0] + 0.2 * rng.normal(size=200) > 0).astype(int)


def several(make: Callable[[Rng], tuple[Any, Any]]) -> dict[str, Callable[[Rng], Any]]:
    """Return the ways of a table: into a forest, into folds, as a data frame."""
    return {
        "fit": lambda rng: fit(forest(), *make(rng)),
        "folds": lambda rng: fit(GaussianNB(), *make(rng)),
        "data frame": lambda rng: fit(forest(), pd.DataFrame((m := make(rng))[0]), m[1]),
    }


def audited(make: Callable[[Rng], tuple[Any, Any]]) -> dict[str, Callable[[Rng], Any]]:
    """Return the ways of a table into an audit: as an array and as a data frame."""
    return {
        "array": lambda rng: audit(forest(), *make(rng)),
        "data frame": lambda rng: audit(forest(), pd.DataFrame((m := make(rng))[0]), m[1]),
    }


def fitted_tree(rng: Rng) -> FrozenEstimator:
    """Return a fitted and frozen tree."""
    return FrozenEstimator(DecisionTreeClassifier(min_samples_leaf=5).fit(*coin(rng)))


def spelled(rng: Rng) -> tuple[Any, Any]:
    """Return labels in more than one spelling."""
    X, y = coin(rng)
    return X, np.array(["no", "yes", "No", "Yes "])[y + 2 * rng.integers(0, 2, len(y))]


def overlapping(n: int) -> list[tuple[Any, Any]]:
    """Return folds that score rows which they train on."""
    return [(np.arange(n), np.arange(n // 2)), (np.arange(n), np.arange(n // 2, n))]


COPIES = Verdict("warned", "exact copies")
NEAR_COPIES = Verdict("found", "near-copy")

HAZARDS = [
    Hazard("exact copies", "every row twice", several(doubled), COPIES),
    Hazard("oversampling", "rare rows repeated before fit", several(oversampled), COPIES),
    Hazard(
        "exact copies with a number",
        "every row twice beside a column that numbers the rows",
        audited(lambda rng: (numbered((m := doubled(rng))[0], rng), m[1])),
        NEAR_COPIES,
        lambda rng: audit(forest(), numbered((m := coin(rng))[0], rng), m[1]),
    ),
    Hazard(
        "near-copies",
        "every row twice, changed by .001",
        audited(lambda r: doubled(r, 1e-3)),
        NEAR_COPIES,
    ),
    Hazard(
        "several visits",
        "visits of the same patients, with the patient's number as a feature",
        audited(patients),
        NEAR_COPIES,
    ),
    Hazard(
        "repeated IDs",
        "visits of the same patients with other values each, and the patient's number",
        audited(visits),
        Verdict("found", "repeated ID"),
        lambda rng: audit(
            forest(), np.column_stack([rng.integers(18, 90, 200), (m := coin(rng))[0]]), m[1]
        ),
    ),
    Hazard(
        "leaking columns",
        "a column that was recorded after the outcome",
        audited(
            lambda rng: (np.column_stack([(m := coin(rng))[0], 3 * m[1] + rng.random(200)]), m[1])
        ),
        Verdict("found", "recorded after the outcome"),
        lambda rng: audit(forest(), *steep(rng)),
    ),
    Hazard(
        "SMOTE",
        "rare rows made from others before fit",
        audited(between),
        Verdict("found", "SMOTE"),
    ),
    Hazard(
        "balancing weights",
        'sample_weight=compute_sample_weight("balanced", y)',
        {
            name: lambda rng, model=model: fit(
                model,
                (m := coin(rng, share=0.1))[0],
                m[1],
                sample_weight=compute_sample_weight("balanced", m[1]),
            )
            for name, model in {"fit": forest(), "folds": GaussianNB()}.items()
        },
        Verdict("warned", "constant within each class"),
        lambda rng: fit(GaussianNB(), *coin(rng), sample_weight=rng.random(200) + 0.5),
    ),
    Hazard(
        "labels spelled in two ways",
        'labels "yes" and "Yes "',
        several(spelled),
        Verdict("warned", "case or spaces"),
        lambda rng: fit(forest(), (m := coin(rng))[0], np.array(["no", "yes"])[m[1]]),
    ),
    Hazard(
        "a frozen model and its own training rows",
        "FrozenEstimator(model.fit(X, y)) calibrated on the same X and y",
        {
            name: lambda rng, model=model: audit(
                FrozenEstimator(clone(model).fit(*(m := coin(rng)))), *m
            )
            for name, model in {
                "boosting": GradientBoostingClassifier(n_estimators=30),
                "pipeline": make_pipeline(StandardScaler(), DecisionTreeClassifier()),
            }.items()
        },
        Verdict("found", "trained on these rows"),
        lambda rng: audit(
            FrozenEstimator(GradientBoostingClassifier(n_estimators=30).fit(*coin(rng))), *coin(rng)
        ),
    ),
    Hazard(
        "a frozen forest and its own training rows",
        "FrozenEstimator(forest.fit(X, y)) calibrated on the same X and y",
        {
            "forest": lambda rng: (
                fit(FrozenEstimator(forest().fit(*(m := coin(rng)))), *m).calibrate_on_ == "oob"
            )
        },
        Verdict("right"),
        lambda rng: fit(FrozenEstimator(forest().fit(*coin(rng))), *coin(rng)),
    ),
    Hazard(
        "a frozen part",
        "a fitted model or supervised step frozen inside the estimator",
        {
            "voting": lambda rng: fit(
                VotingClassifier([("a", fitted_tree(rng)), ("b", GaussianNB())], voting="soft"),
                *coin(rng),
            ),
            "stacking": lambda rng: fit(StackingClassifier([("a", fitted_tree(rng))]), *coin(rng)),
            "prefit": lambda rng: fit(
                StackingClassifier([("a", fitted_tree(rng).estimator)], cv="prefit"), *coin(rng)
            ),
            "pipeline": lambda rng: fit(
                make_pipeline(StandardScaler(), fitted_tree(rng)), *coin(rng)
            ),
            "bagging": lambda rng: fit(BaggingClassifier(fitted_tree(rng)), *coin(rng)),
            "held-out part": lambda rng: fit(
                CalibratedClassifierCV(fitted_tree(rng)),
                *coin(rng),
                {"calibrate_on": "holdout", "merge": "log"},
            ),
            "selection": lambda rng: fit(
                make_pipeline(FrozenEstimator(SelectKBest(k=2).fit(*coin(rng))), forest()),
                *coin(rng),
            ),
        },
        Verdict("refused", "trained again"),
        lambda rng: fit(
            make_pipeline(FrozenEstimator(StandardScaler().fit(coin(rng)[0])), GaussianNB()),
            *coin(rng),
        ),
    ),
    Hazard(
        "rows drawn by class weight",
        'class_weight="balanced" of a forest out of bag, with a rare class',
        {
            "auto": lambda rng: (
                fit(forest(class_weight="balanced"), *coin(rng, 600, 5, 0.1)).calibrate_on_ == "cv"
            ),
            "oob": lambda rng: fit(
                forest(class_weight="balanced"), *coin(rng, 600, 5, 0.1), {"calibrate_on": "oob"}
            ),
        },
        Verdict("right"),
        lambda rng: fit(forest(), *coin(rng, 600, 5, 0.1), {"calibrate_on": "oob"}),
        {"oob": Verdict("refused", "leave class_weight and sample_weight out")},
    ),
    Hazard(
        "groups for a frozen model",
        "groups= for a frozen model, which has no folds to keep them together",
        {
            "fit": lambda rng: fit(
                FrozenEstimator(GaussianNB().fit(*coin(rng))),
                *coin(rng),
                groups=np.arange(200) // 4,
            )
        },
        Verdict("warned", "no effect with a frozen model"),
        lambda rng: fit(
            FrozenEstimator(GaussianNB().fit(*coin(rng))), *coin(rng), groups=np.arange(200)
        ),
    ),
    Hazard(
        "one example of a group left out",
        'groups= with subforest="exchangeable"',
        {
            "fit": lambda rng: fit(
                forest(),
                *coin(rng),
                {"calibrate_on": "oob", "subforest": "exchangeable"},
                groups=np.arange(200) // 2,
            )
        },
        Verdict("refused", 'subforest must be "all" where groups are given'),
        lambda rng: fit(
            forest(),
            *coin(rng),
            {"calibrate_on": "oob"},
            groups=np.arange(200) // 2,
        ),
    ),
    Hazard(
        "a calibrator for each row",
        "LeaveOneOut or very many folds with a calibrator each",
        {
            "LeaveOneOut": lambda rng: fit(GaussianNB(), *coin(rng, 40), {"cv": LeaveOneOut()}),
            "KFold": lambda rng: fit(GaussianNB(), *coin(rng, 80), {"cv": KFold(60)}),
        },
        Verdict("refused", "ensemble=False"),
        lambda rng: fit(GaussianNB(), *coin(rng, 40), {"cv": LeaveOneOut(), "ensemble": False}),
    ),
    Hazard(
        "folds that overlap",
        "a splitter that scores rows which it trains on",
        {
            "ensemble": lambda rng: fit(GaussianNB(), *coin(rng), {"cv": overlapping(200)}),
            "one model": lambda rng: fit(
                GaussianNB(), *coin(rng), {"cv": overlapping(200), "ensemble": False}
            ),
        },
        Verdict("refused", "rows that it trains on"),
    ),
    Hazard(
        "folds that split groups",
        "groups= with a splitter that does not know them",
        {
            "fit": lambda rng: fit(
                GaussianNB(),
                *coin(rng),
                {"cv": KFold(5, shuffle=True, random_state=0)},
                groups=np.repeat(np.arange(40), 5),
            )
        },
        Verdict("refused", "every group on one side"),
        lambda rng: fit(
            GaussianNB(), *coin(rng), {"cv": GroupKFold(5)}, groups=np.repeat(np.arange(40), 5)
        ),
    ),
    Hazard(
        "out of bag in time",
        'a splitter of times with calibrate_on="oob"',
        {
            "fit": lambda rng: fit(
                forest(), *coin(rng), {"cv": TimeSeriesSplit(), "calibrate_on": "oob"}
            )
        },
        Verdict("refused", "cv must be left out"),
    ),
    Hazard(
        "no bags",
        'calibrate_on="oob" where nothing is out of bag',
        {
            "extra trees": lambda rng: fit(
                ExtraTreesClassifier(20), *coin(rng), {"calibrate_on": "oob"}
            ),
            "bagging": lambda rng: fit(
                BaggingClassifier(DecisionTreeClassifier(), 20, bootstrap=False),
                *coin(rng),
                {"calibrate_on": "oob"},
            ),
        },
        Verdict("refused", "out of bag"),
        lambda rng: fit(
            ExtraTreesClassifier(60, bootstrap=True), *coin(rng), {"calibrate_on": "oob"}
        ),
    ),
    Hazard(
        "other rows for a frozen forest",
        'a frozen forest with calibrate_on="oob" and other rows, or another order',
        {
            "order": lambda rng: fit(
                FrozenEstimator(forest().fit(*(m := coin(rng)))),
                m[0][::-1],
                m[1][::-1],
                {"calibrate_on": "oob"},
            ),
            "rows": lambda rng: fit(
                FrozenEstimator(forest().fit(*coin(rng))), *coin(rng), {"calibrate_on": "oob"}
            ),
        },
        Verdict("refused", "what the frozen model was trained on"),
        lambda rng: fit(
            FrozenEstimator(forest().fit(*(m := coin(rng)))), *m, {"calibrate_on": "oob"}
        ),
    ),
    Hazard(
        "steps that see labels",
        "feature selection or target encoding before the forest",
        {
            "selection": lambda rng: (
                fit(make_pipeline(SelectKBest(k=2), forest()), *coin(rng)).calibrate_on_ == "cv"
            ),
            "encoding": lambda rng: (
                fit(
                    make_pipeline(TargetEncoder(), forest()),
                    rng.integers(0, 30, (200, 2)).astype(str),
                    coin(rng)[1],
                ).calibrate_on_
                == "cv"
            ),
        },
        Verdict("right"),
    ),
    Hazard(
        "no number",
        "NaN or infinite calibration scores",
        {
            "NaN": lambda rng: VennAbers().fit([0.1, np.nan, 0.9], [0, 1, 1]),
            "infinite": lambda rng: VennAbers().fit([0.1, np.inf, 0.9], [0, 1, 1]),
        },
        Verdict("refused", "finite|NaN"),
        lambda rng: VennAbers().fit(rng.random(20), np.arange(20) % 2),
    ),
    Hazard(
        "labels that are none",
        "missing, continuous or two-column labels",
        {
            "missing": lambda rng: fit(
                forest(), (m := coin(rng))[0], np.where(m[0][:, 0] > 1, np.nan, m[1])
            ),
            "continuous": lambda rng: fit(forest(), coin(rng)[0], rng.normal(size=200)),
            "one class": lambda rng: fit(forest(), coin(rng)[0], np.zeros(200)),
        },
        Verdict("refused", "NaN|continuous|one class"),
    ),
]
