import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from vennforest import CalibratedClassifier, PlattScaling, VennAbers, estimate_performance
from vennforest._messages import InputError
from vennforest.performance import estimate


def problem(n, seed, k=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    raw = (
        X @ rng.normal(size=(3, k)) * 1.5 if k > 2 else np.column_stack([np.zeros(n), 2 * X[:, 0]])
    )
    p = np.exp(raw) / np.exp(raw).sum(axis=1, keepdims=True)
    return X, (rng.random(n)[:, None] > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)


@pytest.fixture(scope="module")
def model():
    return CalibratedClassifier(RandomForestClassifier(25, random_state=0), random_state=0).fit(
        *problem(800, 0)
    )


def second_column(X):
    return X[:, 1] > 0


SOURCES = [
    {"calibrate_on": "oob"}, {"calibrate_on": "holdout"}, {"calibrate_on": "cv", "cv": 3},
    {"calibrate_on": "cv", "cv": 3, "ensemble": False}, {"method": "platt"}, {"method": "none"},
    {"method": "venn"}, {"by": second_column},
]  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "k"),
    [*((settings, 2) for settings in SOURCES), (SOURCES[0], 3), (SOURCES[2], 3)],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else str(value),
)
def test_every_source_gives_figures_near_what_happens(settings, k):
    X, y = problem(1400, 1, k)
    forest = RandomForestClassifier(20, random_state=0)
    fitted = CalibratedClassifier(forest, random_state=0, **settings).fit(X[:800], y[:800])
    found = estimate_performance(fitted, X[800:], level=0.999)
    for metric in ("accuracy", "auc"):
        estimate, lower, upper = found[metric]
        assert lower <= estimate <= upper
    assert found["accuracy"][1] <= fitted.score(X[800:], y[800:]) <= found["accuracy"][2]


def test_the_threshold_and_the_positive_class_decide(model):
    X, _ = problem(250, 3)
    strict = estimate_performance(model, X, threshold=0.9)
    loose = estimate_performance(model, X, threshold=0.1)
    assert strict["precision"][0] > loose["precision"][0]
    assert strict["recall"][0] < loose["recall"][0]
    other = estimate_performance(model, X, positive=0)
    same = estimate_performance(model, X, positive=0, threshold=0.5)
    assert other["recall"][0] == pytest.approx(same["recall"][0])


def test_costs_are_those_of_decisions_of_least_expected_cost(model):
    X, _ = problem(250, 3)
    found = estimate_performance(model, X, costs=[[0, 1], [1, 0]])
    assert found["cost"][0] == pytest.approx(1 - found["accuracy"][0])
    dear = estimate_performance(model, X, costs=[[0, 1], [10, 0]])
    rigid = estimate_performance(model, X, costs=[[0, 1], [10, 0]], threshold=0.5)
    assert dear["cost"][0] < rigid["cost"][0]


def test_other_shares_of_the_classes_come_with_the_prior(model):
    X, y = problem(4000, 4)
    rare = np.r_[np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:200]]
    moved = model.with_prior({1: 200 / len(rare)})
    found = estimate_performance(moved, X[rare], level=0.999)
    for metric, value in {
        "accuracy": (moved.predict(X[rare]) == y[rare]).mean(),
        "precision": y[rare][moved.predict(X[rare]) == 1].mean(),
    }.items():
        assert found[metric][1] <= value <= found[metric][2]
    wrong = estimate_performance(model, X[rare])["precision"][0]
    truth = y[rare][model.predict(X[rare]) == 1].mean()
    assert abs(wrong - truth) > 0.1  # without the prior


def test_covariate_shift_is_seen_with_the_rows_that_were_fitted():
    rng = np.random.default_rng(5)

    def rows(n, shift):
        X = rng.normal([0, shift], size=(n, 2))
        # where the second column is high, the first says nothing, and the model cannot see that
        p = 1 / (1 + np.exp(-3 * X[:, 0] * (X[:, 1] < 0.5)))
        return X, (rng.random(n) < p).astype(int)

    X, y = rows(1500, 0)
    stump = LogisticRegression()
    model = CalibratedClassifier(stump, random_state=0).fit(X, y)
    new, labels = rows(1500, 1.0)
    truth = model.score(new, labels)
    plain = estimate_performance(model, new)["accuracy"][0]
    # a classifier of the same kind tells the rows apart
    found = estimate_performance(model, new, shift="covariate", reference=X)
    assert abs(found["accuracy"][0] - truth) < 0.5 * abs(plain - truth)
    assert found.n_examples < 1500
    pair = estimate_performance(model, new, shift="covariate", reference=(X, y))
    assert pair["accuracy"] == found["accuracy"]


def test_rows_that_all_trees_have_seen_have_a_density_ratio():
    old, new = problem(400, 10)[0], problem(300, 11)[0]
    few = RandomForestClassifier(6, random_state=0)
    for ratios in estimate.density_ratios(few, old, new, 0):
        assert np.isfinite(ratios).all() and (ratios > 0).all()


def test_calibrators_take_scores():
    rng = np.random.default_rng(7)
    scores = rng.normal(size=3000)
    y = (rng.random(3000) < 1 / (1 + np.exp(-2 * scores))).astype(int)
    reference = scores[1000:2000], y[1000:2000]
    for calibrator in (VennAbers(), PlattScaling()):
        calibrator.fit(scores[:1000], y[:1000])
        found = estimate_performance(calibrator, scores[2000:], reference=reference, level=0.999)
        truth = (calibrator.predict(scores[2000:]) == y[2000:]).mean()
        assert found["accuracy"][1] <= truth <= found["accuracy"][2]
        with pytest.raises(InputError, match="reference must be given with a"):
            estimate_performance(calibrator, scores[2000:])


@pytest.mark.parametrize(("change", "named"), [
    ({"X": 29}, "X must have 30 rows"),
    ({"level": 1.0}, "level"),
    ({"shift": "concept"}, "shift"),
    ({"shift": "covariate"}, "reference"),
    ({"reference": np.zeros((5, 3))}, "800 rows"),
    ({"reference": (np.zeros((40, 3)), [7] * 40)}, "y must contain labels of classes"),
])  # fmt: skip
def test_what_cannot_be_estimated_is_refused(model, change, named):
    given = {"X": 100, **change}
    X = problem(given.pop("X"), 8)[0]
    with pytest.raises(ValueError, match=named):
        estimate_performance(model, X, **given)


def test_measures_that_are_not_defined_are_nan():
    rng = np.random.default_rng(10)
    scores = np.r_[rng.random(500) * 0.1, 0.9 + 0.1 * rng.random(500)]
    y = (scores > 0.5).astype(int)
    calibrator = VennAbers().fit(scores, y)
    found = estimate_performance(calibrator, scores[:40], reference=(scores, y))
    assert np.isnan(found["auc"]).all() and np.isnan(found["precision"]).all()
    assert np.isfinite(found["accuracy"]).all()


def test_rows_of_kinds_that_were_never_seen_are_refused_or_warned_of(model):
    X, _ = problem(800, 0)
    with pytest.raises(InputError, match="label some"):
        estimate_performance(model, X + 50, shift="covariate", reference=X)
    rng = np.random.default_rng(12)
    new = problem(800, 15)[0]
    some = np.where(rng.random(800)[:, None] < 0.6, new, new + 2.5)
    with pytest.warns(UserWarning, match="of the new rows"):
        estimate_performance(model, some, shift="covariate", reference=X)


def test_any_classifier_is_judged_by_labelled_rows():
    X, y = problem(2000, 6)
    plain = LogisticRegression().fit(X[:500], y[:500])
    found = estimate_performance(plain, X[900:], reference=(X[500:900], y[500:900]), level=0.999)
    assert found["accuracy"][1] <= plain.score(X[900:], y[900:]) <= found["accuracy"][2]
    assert found.n_examples == 400
    table = found.table()
    assert list(table.columns) == ["estimate", "lower", "upper"]
    assert list(table.index) == ["accuracy", "precision", "recall", "brier", "log_loss", "auc"]


def test_models_without_examples_of_their_own_are_refused():
    X, y = problem(300, 9)
    trained = CalibratedClassifier(LogisticRegression(), calibrate_on="training").fit(X, y)
    with pytest.raises(InputError, match="training"):
        estimate_performance(trained, X)
    with pytest.raises(InputError, match="model must be a fitted classifier"):
        estimate_performance("model", X)


def test_rows_that_the_model_was_fitted_to_are_refused(model):
    X, y = problem(800, 0)
    with pytest.raises(InputError, match="X must be new rows, got about 100% used for training"):
        estimate_performance(model, X[:200])
    with pytest.raises(InputError, match="got its training rows in another order"):
        estimate_performance(model, problem(100, 3)[0], reference=(X[::-1], y[::-1]))


def test_an_interval_is_the_central_part_of_what_was_drawn():
    draws = np.column_stack([np.arange(101.0), np.full(101, np.nan)])
    draws[0, 1] = 1.0  # of the second measure, too few are defined
    np.testing.assert_allclose(estimate._central_interval(draws, 0.9), [[5, np.nan], [95, np.nan]])


def test_an_estimate_for_few_alike_rows_lies_in_its_interval(model):
    X = problem(60, 3)[0]
    for rows in (X[:30], np.repeat(X[:1], 40, axis=0), np.repeat(X[X[:, 0].argmax()][None], 30, 0)):
        for level in (0.05, 0.5):
            estimated = estimate_performance(model, rows, threshold=0.9, level=level)
            ends = np.column_stack([estimated.lower, estimated.estimate, estimated.upper])
            assert (np.diff(ends[np.isfinite(ends[:, 1])]) >= 0).all()
