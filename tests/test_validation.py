"""Arguments of the wrong type are refused by one sentence, whatever function they are given to."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from vennforest import (
    CalibratedClassifier,
    Monitor,
    Multiprobability,
    ScoreCounts,
    VennAbers,
    audit,
    estimate_performance,
    update,
)
from vennforest.decisions import threshold_for
from vennforest.export import to_json
from vennforest.metrics import (
    auc_difference,
    auc_interval,
    calibration_distances,
    calibration_error,
    interval_curve,
    reliability_curve,
    threshold_table,
)
from vennforest.validation import grades, population_stability, segments

P = np.linspace(0.05, 0.95, 40)
Y = np.arange(40) % 3 == 0
MODEL = VennAbers().fit(P, Y)
BOUNDS = MODEL.predict_multiprobability(P)
CLASSIFIER = CalibratedClassifier(FrozenEstimator(LogisticRegression().fit(P[:, None], Y)))
CLASSIFIER.fit(P[::-1, None] / 2, Y)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: calibration_error(Y, P, sample_weight=["a"] * 40), "sample_weight must be num"),
        (lambda: MODEL.fit(P, Y, sample_weight="a"), "sample_weight must be numbers, got could"),
        (lambda: threshold_table(Y, P, thresholds=["a"]), "thresholds must be numbers"),
        (lambda: calibration_distances(Y, P, n_draws="9"), "n_draws must be an integer >= 1"),
        (lambda: calibration_distances(Y, P, random_state=2.5), "random_state must be an integer"),
        (lambda: segments(P[:, None], Y, P, random_state=-1), "random_state must be an integer"),
        (lambda: update(P, Y, random_state="a"), "random_state must be an integer >= 0, got 'a'"),
        (lambda: population_stability("ab", "ba", random_state=None), "random_state must be"),
        (lambda: MODEL.with_prior({False: "a"}), "shares must be at least 1e-12 and"),
        (lambda: MODEL.predict_confidence(P, level=[0.9]), "level must lie between 0 and 1"),
        (lambda: threshold_for(P, Y, cost=1, costs=(1, "a")), "costs must be numbers"),
        (lambda: Multiprobability([[0.1]], [[0.2]], [1]), "lower must be a numpy array of floats"),
        (lambda: calibration_error(Y, P, pos_label=P), "pos_label must be one of"),
        (lambda: calibration_error(csr_array(Y[None] * 1), P), "y must have shape"),
        (lambda: threshold_table(Y, P, [[0.1, 0.2]]), r"thresholds must have shape \(t,\)"),
        (lambda: interval_curve(Y, BOUNDS, confidence=0.9), r"confidence must have shape \(40, 2"),
        (lambda: segments("ab", Y, P), "X must be a table of 40 rows, got 'ab'"),
        (lambda: to_json(MODEL, score=[1]), r"score must name columns of scores, got \[1\]"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


ODD_CALLS = {
    "one row of a threshold": (lambda: threshold_for(P[:1], Y[:1], recall=0.5), "two classes or"),
    "no grades": (lambda: population_stability(P[:0], P), "grade must have a row or more"),
    "ragged p": (lambda: update([[0.1], [0.2, 0.3], *P[2:, None]], Y), "p must be numbers in a"),
    "no versus": (lambda: auc_difference(Y, P, None), "versus must be numbers in a dense array|sh"),
    "a number for p": (lambda: auc_difference(Y, 0.5, P), r"p must have shape \(n,\)"),
    "no labels of grades": (lambda: grades(None, P, Y), "y must be given"),
    "labels by a generator": (lambda: segments(P[:, None], (c for c in Y), P), "y must have shape"),
    "masked scores of a monitor": (lambda: watched(MASKED, Y), "rows must have no masked"),
    "masked labels of a monitor": (lambda: watched(P, np.ma.array(Y, mask=P < 0.1)), "y must have"),
    "a missing nullable group": (
        lambda: auc_interval(Y, P, groups=pd.Series(np.arange(40), dtype="Int64").mask(P < 0.1)),
        "groups must have a value for every row, got none in row 0",
    ),
}
MASKED = np.ma.array(P, mask=P < 0.1)


def watched(scores, y):
    """Evidence of a monitor after rows."""
    monitor = Monitor(random_state=0).fit(P, Y)
    monitor.update(scores, y)
    return monitor.evidence_


@pytest.mark.parametrize(("call", "message"), ODD_CALLS.values(), ids=list(ODD_CALLS))
def test_odd_rows_are_refused_by_a_sentence_of_this_library(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_monitor_takes_one_row_or_any_array(rng):
    expected = watched(P, Y)
    for scores in (P.tolist(), pd.Series(P, rng.permutation(40)), P.astype(object), P[:, None]):
        assert watched(scores, pd.Series(Y, dtype="boolean")) == expected
    assert watched(P[0], Y[0]) == watched(P[:1], Y[:1]) == watched([P[0]], [bool(Y[0])])


LABEL_READERS = {
    "calibrator": lambda y: VennAbers().fit(P, y),
    "counts": lambda y: ScoreCounts.from_scores(P, y),
    "classifier": lambda y: CalibratedClassifier().fit(P[:, None], y),
    "measure": lambda y: reliability_curve(y, P),
    "intervals": lambda y: interval_curve(y, MODEL.predict_multiprobability(P)),
    "threshold": lambda y: threshold_for(P, y, precision=0.5),
    "monitor": lambda y: Monitor().fit(P, y),
    "audit": lambda y: audit(CalibratedClassifier(), P[:, None], y),
    "performance": lambda y: estimate_performance(MODEL, P, reference=(P, y)),
}
"""Everything that takes labels."""


@pytest.mark.parametrize("read", LABEL_READERS.values(), ids=LABEL_READERS)
@pytest.mark.parametrize(
    ("y", "message"),
    [
        (Y[:-1], r"y must have shape \(40,\), got \(39,\)"),
        (
            np.eye(2)[Y.astype(int)],
            r"y must have shape \(40,\), got \(40, 2\): give one label for each",
        ),
    ],
    ids=["short", "one-hot"],
)
def test_labels_that_are_not_one_for_each_row_are_refused(read, y, message):
    with pytest.raises(ValueError, match=message):
        read(y)


ROW_READERS = {
    "fit": lambda X: CalibratedClassifier().fit(X, Y),
    "predict": lambda X: CLASSIFIER.predict_proba(X),
    "audit": lambda X: audit(CalibratedClassifier(), X, Y),
    "mean": lambda X: CLASSIFIER.with_mean({True: 0.2}, X),
    "performance": lambda X: estimate_performance(MODEL, X, reference=(P, Y)),
}
"""Everything that takes rows."""


@pytest.mark.parametrize("read", ROW_READERS.values(), ids=ROW_READERS)
@pytest.mark.parametrize("X", [None, 0.5], ids=["none", "number"])
def test_rows_that_are_no_array_are_refused(read, X):
    with pytest.raises(ValueError, match=rf"X must be an array or table of rows, got {X}"):
        read(X)


@pytest.mark.parametrize("name", ["fit", "predict", "mean"])
def test_a_table_without_rows_is_refused(name):
    with pytest.raises(ValueError, match="X must contain at least one row, got none"):
        ROW_READERS[name](P[:0, None])


def test_sparse_rows_are_read_by_a_model_that_was_fitted_to_a_data_frame():
    frame = pd.DataFrame({"a": P, "b": P[::-1]})
    model = CalibratedClassifier(FrozenEstimator(LogisticRegression().fit(frame, Y))).fit(frame, Y)
    with pytest.warns(UserWarning, match="feature names"):
        p = model.predict_proba(csr_array(frame.to_numpy()))
    np.testing.assert_allclose(p, model.predict_proba(frame), rtol=1e-12)


def test_more_folds_than_rows_are_refused():
    rule = "cv must be at most the number of rows of the largest class, 4, got 5"
    with pytest.raises(ValueError, match=rule):  # few rows are divided by class
        CalibratedClassifier(LogisticRegression()).fit(P[:8, None], [0, 1] * 4)
    with pytest.raises(ValueError, match="cv must be at most the number of rows, 40, got 50"):
        CalibratedClassifier(LogisticRegression(), cv=50).fit(P[:40, None], [0, 1] * 20)


@pytest.mark.parametrize("y", [np.where(Y, np.nan, 0.0), np.where(Y, None, "a")])
def test_an_audit_refuses_missing_labels(y):
    with pytest.raises(ValueError, match="y must"):
        audit(CalibratedClassifier(), P[:, None], y)


def test_an_audit_reads_an_arrow_table():
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"x": P, "copy": Y.astype(float)})
    found = audit(CalibratedClassifier(), table, Y)
    assert [f.kind for f in found] == [
        f.kind for f in audit(CalibratedClassifier(), table.to_pandas(), Y)
    ]


MOMENTS = np.datetime64("2024-01-01") + np.arange(40)


@pytest.mark.parametrize("library", ["numpy", "pandas", "polars", "pyarrow"])
def test_dates_of_any_library_are_neither_scores_nor_weights(library):
    module = pytest.importorskip(library)
    make = {"numpy": "asarray", "pyarrow": "array"}.get(library, "Series")
    dates = getattr(module, make)(MOMENTS)
    with pytest.raises(ValueError, match="scores must be numbers in a dense array, got"):
        VennAbers().fit(dates, Y)
    with pytest.raises(ValueError, match="sample_weight must be numbers, got"):
        VennAbers().fit(P, Y, sample_weight=dates)


def test_complex_weights_and_labels_are_refused():
    with pytest.raises(ValueError, match="sample_weight must be numbers, got complex"):
        VennAbers().fit(P, Y, sample_weight=P + 1j)
    with pytest.raises(ValueError, match="y must be text, integers or booleans"):
        VennAbers().fit(P, Y + 1j)


def test_subnormal_weights_are_refused():
    with pytest.raises(ValueError, match="sample_weight must sum to 1e-300 or more, got"):
        VennAbers().fit(P, Y, sample_weight=np.full(40, 5e-324))


@pytest.mark.parametrize("missing", [None, np.nan, pd.NaT, pd.NA], ids=str)
def test_a_missing_label_is_named_with_its_row(missing):
    message = (
        r"y must have a label in every row, of .+, got .+ in row 7 \(counted from 0\): leave out"
    )
    for y in ([*"ab" * 3, "a", missing, *"ab" * 16], [*[0, 1] * 3, 0, missing, *[0, 1] * 16]):
        with pytest.raises(ValueError, match=message):
            VennAbers().fit(P, y)


def test_numbers_of_nullable_types_are_read():
    scores = pd.Series(P, dtype="Float64")
    expected = MODEL.predict_proba(P)
    assert (VennAbers().fit(scores, Y).predict_proba(scores) == expected).all()
    scores[3] = pd.NA
    with pytest.raises(ValueError, match="scores must be finite, got NaN in row 3"):
        MODEL.predict_proba(scores)


def test_labels_that_are_dates_are_watched():
    labels = MOMENTS[Y.astype(int)]
    monitor = Monitor(watch="labels").fit(P, labels)
    assert len(monitor.update(P[:3], labels[:3])) == 3
