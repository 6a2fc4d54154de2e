"""Measures of methods, their differences, and the choice of one method."""

import numpy as np
import pytest
from scipy.stats import t as student
from sklearn.metrics import log_loss, roc_auc_score

from oracles.metrics import rows_of_auc, rows_of_slope
from support.report_data import calibrated
from vennforest import Multiprobability
from vennforest.calibrators import METHODS
from vennforest.metrics import calibration_error, calibration_line
from vennforest.report import check, numbers
from vennforest.report.comparison import choose, compare_losses, difference_over_folds
from vennforest.report.measures import (
    MethodEstimates,
    Predictions,
    chance_errors,
    measure,
    rows_for_precision,
    squared_losses,
)


def predictions_of(codes, groups=None, k=2):
    rows = np.arange(len(codes))
    positive = 1 if k == 2 else None
    return Predictions(np.arange(k), codes, 0 * rows, rows, {}, groups, positive=positive)


def test_measures_are_those_of_scikit_learn_and_ours(cancer):
    predictions = cancer.predictions
    y = np.array(["benign", "malignant"])[predictions.codes]
    for method, m in cancer.findings.measures.items():
        p = cancer.probabilities[method]
        if not m.impossible:
            assert m.log_loss == pytest.approx(log_loss(y, p), rel=1e-9)
        assert m.auc == pytest.approx(roc_auc_score(y == "malignant", p[:, 1]))
        assert m.brier == pytest.approx(np.mean((p[:, 1] - (y == "malignant")) ** 2))
        assert m.accuracy == np.mean((p[:, 1] > 0.5) == (y == "malignant"))
        assert (m.impossible > 0) == np.isinf(m.log_loss)
    frame = cancer.methods
    assert list(frame.index) == [*METHODS, "baseline"]
    assert frame.loc["venn", "width"] == cancer.findings.measures["venn"].width > 0
    assert np.isnan(frame.loc["none", "width"])


def test_the_baseline_is_the_best_constant():
    y, p, _ = calibrated(300, 1)
    evaluation = check(y, p)
    baseline, share = evaluation.findings.baseline, (y == "yes").mean()
    assert baseline.brier == pytest.approx(share * (1 - share))
    entropy = -(share * np.log(share) + (1 - share) * np.log(1 - share))
    assert baseline.log_loss == pytest.approx(entropy)
    assert baseline.auc == 0.5 and baseline.accuracy == max(share, 1 - share)
    m = evaluation.methods.loc["Predictions"]
    assert m["brier_skill"] == pytest.approx(1 - m["brier"] / (share * (1 - share)))
    outcome = (y == "yes") * 1.0
    gap = -outcome * np.log(share / p) - (1 - outcome) * np.log((1 - share) / (1 - p))
    gain = evaluation.findings.gain
    assert gain.loss == "log loss" and gain.mean == pytest.approx(gap.mean())
    quantile = student.ppf(0.975, outcome.sum() - 1)  # of the rarer outcome
    assert gain.margin == pytest.approx(quantile * gap.std(ddof=1) / np.sqrt(300), rel=1e-3)
    sure = check(y, np.where(np.arange(300) == 7, y != "yes", p))  # once quite sure, and wrong
    assert sure.findings.gain.loss == "Brier score" and sure.findings.best.impossible == 1
    for constant in np.linspace(0.01, 0.99, 50):
        assert ((constant - outcome) ** 2).mean() >= baseline.brier - 1e-12


@pytest.mark.parametrize("k", [2, 4])
def test_squared_losses_are_squared_distances(k):
    rng = np.random.default_rng(0)
    p, codes = rng.dirichlet(np.ones(k), 50), rng.integers(k, size=50)
    slow = [((p[i] - np.eye(k)[codes[i]]) ** 2).sum() / (2 if k == 2 else 1) for i in range(50)]
    np.testing.assert_allclose(squared_losses(p, codes), slow, atol=1e-12)


def test_chance_errors_are_calibration_errors_of_labels_drawn_from_the_estimates():
    p = np.random.default_rng(5).random(300)
    errors = chance_errors(p, 7)
    random = np.random.default_rng((7, 1))
    slow = [
        calibration_error((random.random(300) < p).astype(int), p, classes=[0, 1])
        for _ in range(len(errors))
    ]
    np.testing.assert_allclose(errors, slow, atol=1e-12)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("k", [2, 3])
def test_the_mean_error_is_the_bias_beyond_its_spread(grouped, k):
    rng = np.random.default_rng(k)
    n = 400
    p = rng.dirichlet(np.ones(k), n)
    codes = np.array([rng.choice(k, p=0.9 * row + 0.1 * np.eye(k)[-1]) for row in p])
    groups = rng.integers(0, 150, n) if grouped else None
    m = measure(predictions_of(codes, groups, k), MethodEstimates(p))
    column = np.ones(n, int) if k == 2 else p.argmax(axis=1)
    q = p[np.arange(n), column]
    residual, spread = (codes == column) - q, (q * (1 - q)).sum()
    if grouped:
        pairs = (groups[:, None] == groups) & ~np.eye(n, dtype=bool)
        largest = (pairs * np.minimum.outer(q, q) * (1 - np.maximum.outer(q, q))).sum()
        spread += np.clip((pairs * np.outer(residual, residual)).sum(), 0, largest)
    expected = max(0.0, residual.sum() ** 2 - spread) ** 0.5 / n
    assert m.mean_error == pytest.approx(expected, abs=1e-12)
    assert m.miscalibration >= m.mean_error


@pytest.mark.parametrize("grouped", [False, True])
def test_how_often_probabilities_are_called_miscalibrated(grouped):
    """Calibrated ones in at most 2% of draws, those off by twice the tolerance in most."""
    rng = np.random.default_rng(4)
    n_exceeding = {0.0: 0, 0.04: 0}
    for error in n_exceeding:
        for _ in range(25):
            groups = np.repeat(np.arange(400), 5) if grouped else None
            p = rng.beta(2, 5, 2000)
            codes = (rng.random(2000) < p + error).astype(int)
            if grouped:  # calibrated on average, and alike within groups
                p = rng.beta(2, 5, 400)[groups]
                codes = (rng.random(400)[groups] < p + 2 * error).astype(int)
            estimates = MethodEstimates(np.column_stack([1 - p, p]))
            m = measure(predictions_of(codes, groups), estimates)
            n_exceeding[error] += m.exceeds(0.02)
    assert n_exceeding[0.0] <= 3 and n_exceeding[0.04] >= 18


def test_difference_is_the_corrected_resampled_t_interval():
    fold = np.repeat([0, 1, 2], 4)
    predictions = Predictions(np.array([0, 1]), fold * 0, fold, fold, {})
    first = np.arange(12.0)
    gap = difference_over_folds(first, np.zeros(12), predictions)
    means = [first[fold == i].mean() for i in range(3)]
    assert gap.mean == first.mean()
    # Nadeau & Bengio: (1/K + n_test/n_train) times the variance, t with K − 1 = 2 degrees.
    assert gap.margin == pytest.approx(4.302653 * np.sqrt((1 / 3 + 1 / 2) * np.var(means, ddof=1)))
    assert not difference_over_folds(first, first, predictions).clear


def choice_of(p_by_method, bounded, codes, fold):
    estimates = {}
    for name, p in p_by_method.items():
        table = np.column_stack([1 - p, p])
        bounds = Multiprobability(table, table, np.array([0, 1])) if name in bounded else None
        estimates[name] = MethodEstimates(table, bounds)
    predictions = Predictions(np.array([0, 1]), codes, fold, fold, estimates, positive=1)
    measures = {m: measure(predictions, e) for m, e in estimates.items()}
    method, rule = choose(measures, predictions, 0.02)
    against = {m: compare_losses(m, method, predictions) for m in measures}
    return method, rule, against


def test_the_rule_of_the_recommendation():
    rng = np.random.default_rng(0)
    n = 3000
    p = rng.random(n)
    codes, fold = (rng.random(n) < p).astype(int), np.arange(n) % 10
    coarse = np.where(p > 0.5, 0.75, 0.25)
    methods = {
        "none": p**3, "platt": p.clip(0.001, 0.999), "venn": coarse, "venn-abers": p * 0.98 + 0.01,
    }  # fmt: skip
    method, rule, against = choice_of(methods, ("venn", "venn-abers"), codes, fold)
    assert method == "venn-abers" and "with bounds" in rule
    assert against["venn"].clear and against["venn"].mean > 0
    assert against["none"].clear and against["none"].mean > 0
    assert choice_of(methods, (), codes, fold)[0] in ("platt", "venn-abers")
    # Bounds do not make up for a log loss that is clearly worse.
    assert choice_of(methods, ("venn",), codes, fold)[0] in ("platt", "venn-abers")
    # Log losses within chance of each other: the better ranking decides, and the rule says so.
    few = slice(0, 60)
    level = {"none": p[few], "venn": coarse[few], "venn-abers": (p * 0.9 + 0.05)[few]}
    method, rule, _ = choice_of(level, ("venn", "venn-abers"), codes[few], fold[few])
    assert method == "venn-abers" and "ranking" in rule


def test_a_method_that_ruled_out_what_happened_is_not_level_with_others():
    """By the Brier score it is no worse, and it alone is within the tolerance."""
    rng = np.random.default_rng(1)
    p = rng.random(3000)
    codes, fold = (rng.random(3000) < p).astype(int), np.arange(3000) % 10
    sure = p.copy()
    sure[np.flatnonzero(codes == 1)[0]] = 0.0
    methods = {"none": p**2, "venn-abers": 0.5 + 0.8 * (p - 0.5), "isotonic": sure}
    method, _, against = choice_of(methods, ("venn-abers",), codes, fold)
    assert method == "venn-abers" and against["isotonic"].loss == "Brier score"


def test_percentages_never_round_to_certainty():
    assert numbers.percent(0.99999) == "99.9990%" and numbers.percent(1.0) == "100.0%"
    assert numbers.percent(1e-9) == "<0.0001%" and numbers.percent(1 - 1e-9) == ">99.9999%"
    assert numbers.percent(0.123) == "12.3%" and numbers.percent(0.002) == "0.20%"
    for p in (1e-12, 1e-7, 0.00042, 0.0099, 0.5, 0.9951, 1 - 1e-5, 1 - 1e-12):
        text = numbers.probability(p)
        assert text.startswith("<") or text.startswith(">") or 0 < float(text) < 1
    assert numbers.probability(0.0) == "0.000" and numbers.probability(1.0) == "1.000"


def test_numbers_have_as_many_digits_as_tell_them_apart():
    assert numbers.points(0.0000004) == "<0.0001" and numbers.points(-0.131) == "13.1"
    assert numbers.area(0.99996) == ">0.999" and numbers.area(1.0) == "1.000"
    assert numbers.common_decimals([0.00201, 0.00203, float("nan")]) == 6
    assert numbers.common_decimals([0.1, 0.3]) == 3 and numbers.common_decimals([]) == 3
    assert numbers.with_margin(0.017, 0.16) == "0.02 ± 0.16"
    assert numbers.with_margin(0.016, 0.0012) == "0.0160 ± 0.0012"
    assert numbers.with_margin(0.0, 0.0) == "0 ± 0"
    assert numbers.amounts([1200.0, 1200.0004], -0.0004) == ["1,200.00000", "1,200.00040"]


def test_rows_for_narrow_intervals():
    rng = np.random.default_rng(6)
    for _ in range(300):
        p = rng.beta(*rng.uniform(0.1, 5, 2), int(rng.integers(2, 40))).round(
            int(rng.integers(1, 17))
        )
        if len(set(p[(p > 0) & (p < 1)])) < 2:
            continue
        auc = rng.uniform(0.51, 0.99)
        slope, area, ratio = rows_for_precision(p, auc).values()
        assert slope == pytest.approx(rows_of_slope(p.tolist(), 0.1), rel=1e-6)
        assert np.ceil(area) == rows_of_auc(p.mean(), auc, 0.05)
        variance = (1 - p.mean()) / p.mean()  # of the log of observed over expected
        assert ratio == pytest.approx(variance / (0.1 / 1.96) ** 2, rel=1e-12)
    # The paper's example of the AUC: 4,252 rows for a share of 0.018 and an AUC of 0.8.
    assert np.ceil(rows_for_precision(np.full(5, 0.018), 0.8)["AUC within ±0.05"]) == 4252


def test_the_slope_is_as_precise_as_the_rows_promise():
    rng = np.random.default_rng(7)
    population = rng.beta(1, 4, 100_000)
    n = round(rows_for_precision(population, 0.8)["calibration slope within ±0.1"])
    p = rng.choice(population, n)
    y = rng.random(n) < p
    slope = calibration_line(y, p).slope
    assert (slope.high - slope.low) / 2 == pytest.approx(0.1, rel=0.1)
    evaluation = check(y, p)
    sentence = evaluation.verdict.reasons["How many rows narrow intervals take"]
    assert "Riley et al. 2021" in sentence and f"here are {n:,}." in sentence
    reasons = check([0, 1] * 50, [0.5] * 100).verdict.reasons
    constant = reasons["How many rows narrow intervals take"]
    assert "slope" not in constant and "number of events" in constant


def test_accuracy_and_what_chance_exceeds_in_one_table_of_twenty():
    rng = np.random.default_rng(8)
    p, codes = rng.dirichlet([1, 1], 200), rng.integers(0, 2, 200)
    m = measure(predictions_of(codes), MethodEstimates(p), seed=3)
    assert m.accuracy == pytest.approx((p.argmax(axis=1) == codes).mean())
    assert m.chance_limit == pytest.approx(np.quantile(chance_errors(p[:, 1], 3), 0.95))
    assert numbers.rounded_up(1201) == "1,300" and numbers.rounded_up(1200) == "1,200"
