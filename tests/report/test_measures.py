"""Measures of methods, their chance errors, and the rows that they take."""

import numpy as np
import pytest
from scipy.stats import t as student
from sklearn.metrics import log_loss, roc_auc_score

from oracles.metrics import rows_of_auc, rows_of_slope
from report.reading import numbers_in
from support.report_data import calibrated
from vennforest.calibrators import METHODS
from vennforest.metrics import calibration_error, calibration_line
from vennforest.report import check
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
    needed = evaluation.findings.rows_needed["calibration slope within ±0.1"]
    assert needed == pytest.approx(rows_for_precision(p, slope.value)[
        "calibration slope within ±0.1"], rel=1e-9)  # fmt: skip
    assert numbers_in(sentence)[-1] == n
    constant = check([0, 1] * 50, [0.5] * 100)
    sentence = constant.verdict.reasons["How many rows narrow intervals take"]
    needed = constant.findings.rows_needed
    assert not 0 < needed.pop("calibration slope within ±0.1") < 1e9 and len(needed) == 2
    *shown, _, n = (n for n in numbers_in(sentence) if n >= 100)  # before the year of the paper
    assert n == 100 and shown == pytest.approx([*needed.values()], rel=0.02)
    assert "slope" not in sentence


def test_accuracy_and_what_chance_exceeds_in_one_table_of_twenty():
    rng = np.random.default_rng(8)
    p, codes = rng.dirichlet([1, 1], 200), rng.integers(0, 2, 200)
    m = measure(predictions_of(codes), MethodEstimates(p), seed=3)
    assert m.accuracy == pytest.approx((p.argmax(axis=1) == codes).mean())
    assert m.chance_limit == pytest.approx(np.quantile(chance_errors(p[:, 1], 3), 0.95))
