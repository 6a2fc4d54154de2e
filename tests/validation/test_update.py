"""Updates of probabilities at another site."""

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from oracles.update import closed_testing, regress
from report.reading import has_in_turn
from vennforest import CalibratedClassifier, Update, VennAbers, update
from vennforest.export import from_json, to_json
from vennforest.validation.update import UpdateRows, by_tests, gain_sentence


def draw(rng, n, groups=None):
    """Return probabilities, and labels drawn from a curve of their log-odds."""
    z = rng.normal(rng.uniform(-1.5, 1.5), rng.uniform(0.5, 2), n)
    intercept, slope, bend = rng.normal(0, 0.5), rng.uniform(0.4, 1.4), rng.choice([0, 0, 1.5])
    truth = intercept + slope * z + bend * np.tanh(z)
    if groups is not None:
        truth = truth + rng.normal(0, 1, groups.max() + 1)[groups]
    y = (rng.random(n) < expit(truth)).astype(int)
    y[:2] = 0, 1
    return expit(z), y


def check_case(rng):
    n = int(rng.choice([20, 40, 80, 200, 400]))
    groups = rng.integers(0, n // 4, n) if rng.random() < 0.4 else None
    p, y = draw(rng, n, groups)
    if groups is not None:
        groups = np.unique(groups, return_inverse=True)[1]
    choice, tests, extreme = closed_testing(p, y, groups)
    rows = UpdateRows(np.arange(2), p, y, groups)
    table = rows.test()
    line = [np.ones(n), logit(p)]
    if extreme > 25:  # separated labels: the likelihood has no maximum
        return
    assert table.index.tolist() == list(tests)
    np.testing.assert_allclose(table.to_numpy(), list(tests.values()), rtol=1e-5, atol=1e-6)
    near = min(abs(row[2] - 0.05) for row in tests.values())
    assert by_tests(table)[0] == choice or near < 1e-5
    z = logit(expit(rng.normal(0, 2, 50)))
    moved, (a, b) = (regress(columns, logit(p), y, 6.25)[1] for columns in (line[:1], line))
    for name, eta in (("keep", z), ("intercept", z + moved), ("slope", a + (1 + b) * z)):
        new = rows.fit(name).predict_proba(expit(z))
        np.testing.assert_allclose(new[:, 1], expit(eta), rtol=1e-6)


def test_tests_and_fits_are_those_of_the_oracle():
    seed = np.random.default_rng().integers(1 << 31)
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    for _ in range(20):
        check_case(rng)


def shifted(n=600, seed=3):
    rng = np.random.default_rng(seed)
    p = expit(rng.normal(-0.5, 1.5, n))
    return p, np.where(rng.random(n) < expit(logit(p) - 1), "yes", "no")


def test_a_result_is_a_calibrator_that_a_file_can_hold():
    p, y = shifted(300)
    result = update(p, y)
    assert isinstance(result, Update) and result.choice == "intercept"
    pvalues = result.tests["pvalue"]
    assert pvalues["keep"] < 0.001 and pvalues["intercept"] > 0.05
    assert has_in_turn(result.reason, [0.001, round(pvalues["intercept"], 3)])
    for choose in ("keep", "intercept", "slope", "map"):
        result = update(p, y, choose=choose)
        assert result.choice == choose and result.reason == "As chosen beforehand."
        assert result.gain["gain"] == result.gains.loc[choose, "gain"]
        read = from_json(to_json(result.calibrator))
        np.testing.assert_array_equal(read.predict_proba(p), result.predict_proba(p))
    bounds = update(p, y, choose="map", new_map="venn-abers").calibrator
    assert isinstance(bounds, VennAbers) and bounds.predict_multiprobability(p[:3]).width.min() > 0
    both = update(np.column_stack([1 - p, p]), y)
    np.testing.assert_allclose(both.predict_proba(p), update(p, y).predict_proba(p), rtol=1e-12)
    assert update(p[:30], y[:30]).predict_proba([0.0, 1.0])[:, 1].tolist() == [0, 1]


def test_gains_are_those_of_rows_that_no_update_saw():
    p, y = shifted()
    gains = update(p, y).gains
    assert gains.index.tolist() == ["keep", "intercept", "slope", "map", "auto"]
    truth = -np.log(np.where(y == "yes", p, 1 - p)).mean()
    assert gains.loc["keep", "log_loss"] == pytest.approx(truth)
    assert 0.03 < gains.loc["auto", "gain_low"] < gains.loc["auto", "gain"]
    np.testing.assert_allclose(gains["gain"], truth - gains["log_loss"], rtol=1e-12)


def test_rows_of_a_group_count_once():
    p, y = shifted(300, 5)

    def statistics(p, y, groups=None):
        return UpdateRows(np.array(["no", "yes"]), p, (y == "yes") + 0, groups).test()["statistic"]

    four, names = (np.repeat(p, 4), np.repeat(y, 4)), np.repeat(np.arange(300), 4)
    np.testing.assert_allclose(statistics(*four), 4 * statistics(p, y), rtol=1e-5)
    once = statistics(*four, names)["keep"]
    np.testing.assert_allclose(once, statistics(p, y)["keep"], rtol=0.25)
    two = update(p, y, groups=np.arange(300) % 2)  # of one group, in a fold, nothing is known
    assert two.gains.loc["auto", "gain"] == 0


def test_a_model_is_updated_by_its_probabilities():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(600, 2))
    y = (rng.random(600) < expit(2 * X[:, 0])).astype(int)
    model = CalibratedClassifier(LogisticRegression(), random_state=0).fit(X[:300], y[:300])
    new = X[300:], np.where(X[300:, 1] > 0.5, 0, y[300:])
    result = update(model, new[1], X=new[0])
    assert result.choice != "keep" and "prior" in result.gains.index
    assert result.gains.loc["prior", "gain"] > 0
    with pytest.raises(ValueError, match="X must be given"):
        update(model, y)


def test_what_cannot_be_updated_is_refused_in_a_sentence():
    p, y = shifted(40, 2)
    three = np.full((40, 3), 1 / 3)
    for probabilities, labels, options, message in (
        (p[:19], y[:19], {}, "at least 20 rows for an update, got 19"),
        (p, ["a"] * 40, {}, "two classes, got one"),
        (np.where(p > 0.8, 1, p), y, {}, r"both excluded, got 0 or 1 in \d+ of 40 rows"),
        (p * 7, y, {}, r"p must lie in \[0, 1\]"),
        (three, np.arange(40) % 3, {}, "two classes for an update, got 3"),
        (p, y, {"choose": "shift"}, "choose must be one of"),
        (p, y, {"groups": [1] * 40}, "groups must be at least two, got one"),
        (p[:-1], y, {}, "p must be of 40 rows"),
    ):
        with pytest.raises(ValueError, match=message):
            update(probabilities, labels, **options)


def test_one_rare_event_and_equal_probabilities():
    rng = np.random.default_rng(1)
    y = np.arange(40) == 7
    assert np.isfinite(update(rng.uniform(0.01, 0.1, 40), y).gains.to_numpy()).all()
    assert update(np.full(40, 0.5), y).choice == "intercept"
    assert update(np.full(40, 0.025), y).choice == "keep"
    assert update(rng.choice([0.02, 0.03], 40), y).choice == "keep"


@pytest.mark.filterwarnings("error")
def test_a_map_that_gives_labels_no_probability_has_no_gain_to_print():
    p, y = draw(np.random.default_rng(1), 300)
    gain = update(p, y, choose="map", new_map="isotonic").gain
    assert gain["log_loss"] == np.inf
    assert "log loss is infinite" in gain_sentence(gain)
