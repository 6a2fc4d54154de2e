"""Warnings name the line of the user that they are about."""

import inspect
import traceback
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import TimeSeriesSplit
from sklearn.neighbors import KNeighborsClassifier

import vennforest
from vennforest import (
    CalibratedClassifier,
    MixedForestClassifier,
    VennAbers,
    decisions,
    export,
    metrics,
    report,
    validation,
)
from vennforest._messages import PACKAGE, as_sentence, nearest, not_one_of
from vennforest.calibrators import METHODS, make_calibrator

rng = np.random.default_rng(20)
X = rng.normal(size=(60, 2))
y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
RARE = np.arange(60) < 4


def fit(estimator, y=y, rows=X, sample_weight=None, **settings):
    model = CalibratedClassifier(estimator, **settings)
    return model.fit(rows, y, sample_weight=sample_weight)


LOGISTIC, FOREST = LogisticRegression(), RandomForestClassifier(30, random_state=0)
WEIGHTS = 1.0 + np.arange(60)
CASES = {
    "folds of few rows": lambda: fit(LOGISTIC, calibrate_on="cv", cv=TimeSeriesSplit(5)),
    "settings without effect": lambda: fit(LOGISTIC, calibrate_on="cv", votes="hard"),
    "few of a class, folds": lambda: fit(LOGISTIC, RARE, calibrate_on="cv"),
    "few of a class, held out": lambda: fit(LOGISTIC, RARE, calibrate_on="holdout"),
    "weights that are not taken": lambda: fit(
        KNeighborsClassifier(), sample_weight=WEIGHTS, calibrate_on="cv"
    ),
    "rows of no tree out of bag": lambda: fit(RandomForestClassifier(3, random_state=0)),
    "repeats": lambda: fit(FOREST, np.repeat(y, 2), np.repeat(X, 2, axis=0)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_warning_points_at_the_line_that_called(name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CASES[name]()
    ours = [each for each in caught if "sklearn" not in each.filename]
    assert ours
    assert {each.filename for each in ours} == {__file__}


@pytest.mark.parametrize(("given", "found"), [
    ("plat", ": did you mean 'platt'?"),
    (" Venn-Abbers", ": did you mean 'venn-abers'?"),
    ("nothing like it", ""),
    (None, ""),
])  # fmt: skip
def test_the_nearest_name_is_suggested(given, found):
    names = ["platt", "venn-abers", "isotonic"]
    assert nearest(given, names) == found
    error = not_one_of("method", iter(names), given)
    assert str(error) == f"method must be one of {names}, got {given!r}{found}"


HUGE = {
    "array": np.arange(3000.0),
    "table": pd.DataFrame({"a": np.arange(3000), "b": "x"}),
    "list": [f"label {i}" for i in range(3000)],
}


def doors():
    """Return the public calls by name: a function of keyword arguments, and these."""
    p, grade = np.linspace(0.02, 0.98, 60), np.where(X[:, 1] > 0, "A", "B")
    model = CalibratedClassifier(FrozenEstimator(LOGISTIC.fit(X, y))).fit(X, y)
    calibrator, bounds = VennAbers().fit(p, y), model.predict_multiprobability(X)
    measures = {getattr(metrics, name): {"y": y, "p": p} for name in metrics.__all__}
    functions = {f: given for f, given in measures.items() if inspect.isfunction(f)}
    functions[metrics.auc_difference] = {"y": y, "p": p, "versus": p[::-1]}
    functions[metrics.decision_curve] = {"y": y, "p": p, "thresholds": [0.5]}
    functions[metrics.threshold_table] = {"y": y, "p": p, "thresholds": [0.5]}
    functions[metrics.interval_curve] = {"y": y, "m": bounds}
    functions[decisions.threshold_for] = {"model": model, "recall": 0.5}
    functions[validation.grades] = {"y": y, "p": p, "grade": grade}
    functions[validation.population_stability] = {"grade": grade, "reference": grade}
    functions[validation.segments] = {"X": X, "y": y, "p": p, "n_draws": 9}
    functions[validation.update] = {"p": p, "y": y}
    functions[vennforest.estimate_performance] = {"model": model, "X": X}
    functions[vennforest.audit] = {"model": model, "X": X, "y": y}
    functions[export.to_sql] = {"calibrator": calibrator}
    functions[export.to_json] = {"calibrator": calibrator}
    functions[export.from_json] = {"text": export.to_json(calibrator)}
    functions[export.to_onnx] = {"model": calibrator}
    functions[vennforest.save] = {"model": model, "path": "unwritten/model.skops"}
    functions[vennforest.load] = {"path": "unwritten/model.skops"}
    functions[report.check] = {"y": y, "p": p}
    functions[vennforest.Multiprobability] = {"lower": bounds.lower, "upper": bounds.upper}
    functions[vennforest.ScoreCounts.from_scores] = {"scores": p, "y": y}
    functions[vennforest.Monitor().fit] = {"X": p, "y": y}
    for method in (model.with_prior, model.with_mean, model.recalibrate, model.predict_confidence):
        functions[method] = {}
    for method in (calibrator.predict_confidence, calibrator.predict_multiprobability):
        functions[method] = {"scores": p}
    for method in (calibrator.with_prior, calibrator.score_for, calibrator.with_mean):
        functions[method] = {}
    yield from ((f"{f.__qualname__}", f, given) for f, given in functions.items())
    for method in METHODS:
        yield fit_door(type(make_calibrator(method)), {"scores": p, "y": y})
    small = MixedForestClassifier(5)
    yield fit_door(MixedForestClassifier, {"X": X, "y": y}, n_estimators=5)
    yield fit_door(CalibratedClassifier, {"X": X, "y": y}, estimator=LOGISTIC)
    yield fit_door(CalibratedClassifier, {"X": X, "y": y}, estimator=small, calibrate_on="oob")
    yield fit_door(vennforest.Monitor, {"X": p, "y": y})


def fit_door(cls, data, **settings):
    """Return the name of a class, a call of its constructor and fit, and these arguments."""

    def fitted(**given):
        options = {name: given.pop(name) for name in parameters(cls) if name in given}
        return cls(**options).fit(**given)

    fitted.arguments = [*parameters(cls), *parameters(cls.fit)[1:]]
    return cls.__name__, fitted, {**data, **settings}


def parameters(function):
    return list(inspect.signature(function).parameters)


@pytest.mark.parametrize(
    "kind", ["table", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("array", "list"))]
)
def test_errors_abbreviate_what_they_show(kind):
    long = {}
    for name, call, given in doors():
        for argument in getattr(call, "arguments", None) or parameters(call):
            try:
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    call(**{**given, argument: HUGE[kind]})
                texts = []
            except Exception as error:
                raised_in = traceback.extract_tb(error.__traceback__)[-1].filename
                texts = [str(error)] if raised_in.startswith(PACKAGE) else []
            texts += [str(each.message) for each in caught]
            for text in texts:
                if len(text) > 600 or "\n" in text.strip():
                    long[f"{name}({argument}=)"] = text[:150]
    assert long == {}


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        ("y contains 2 groups", "y contains 2 groups."),
        ("sample_weight is constant.", "sample_weight is constant."),
        ('merge="log" has no effect', 'merge="log" has no effect.'),
        ("groups are large", "Groups are large."),
        ("some rows have no label", "Some rows have no label."),
    ],
)
def test_sentences_begin_with_a_capital_unless_an_argument_begins_them(message, sentence):
    assert as_sentence(message) == sentence
