"""Internal-external validation: every site as if it were alone, and a meta-analysis over sites."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import t as student
from sklearn.linear_model import LogisticRegression

from report.reading import numbers_in
from vennforest import CalibratedClassifier
from vennforest.metrics import Estimates, auc_interval, calibration_line
from vennforest.metrics.variance import SCALES
from vennforest.report import check, evaluate, sections
from vennforest.report.measures import MethodEstimates, Predictions
from vennforest.validation import internal_external
from vennforest.validation.sites import POOLED_ON, pool

SITES = np.array(["City", "North", "South"])


def table_of_sites(n=450, seed=3, shifts=(0.0, 1.0, -0.8)):
    """Columns, labels and sites whose events differ in frequency beyond what the columns say."""
    rng = np.random.default_rng(seed)
    site = rng.integers(0, 3, n)
    x = rng.normal(size=(n, 2))
    z = -0.5 + 2 * x[:, 0] + np.array(shifts)[site]
    return pd.DataFrame(x, columns=["a", "b"]), (rng.random(n) < expit(z)).astype(int), SITES[site]


@pytest.mark.parametrize("seed", range(6))
def test_means_over_sites_are_those_of_a_random_effects_meta_analysis(seed):
    meta = pytest.importorskip("statsmodels.stats.meta_analysis")
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 9))
    values, errors = rng.normal(0, rng.choice([0.0, 0.5]), k), rng.uniform(0.05, 0.4, k)
    mean, ends, range_of_new = pool(values, errors, 0.9)
    result = meta.combine_effects(values, errors**2, method_re="iterated", use_t=True)
    q = np.sum((values - mean) ** 2 / (errors**2 + result.tau2)) / (k - 1)
    variance = max(1.0, q) / np.sum(1 / (errors**2 + result.tau2))  # never below the ordinary one
    quantile = student.ppf(0.95, k - 1)
    assert mean == pytest.approx(result.mean_effect_re, abs=1e-5)
    half = quantile * variance**0.5
    assert ends == pytest.approx((mean - half, mean + half), abs=1e-3 * half)
    # The range of another site: draws of the variance between sites, by halving for each.
    draws = []
    for target in rng.chisquare(k - 1, 2000):

        def excess(between, target=target):
            weight = 1 / (errors**2 + between)
            middle = weight @ values / weight.sum()
            return weight @ (values - middle) ** 2 - target, middle, 1 / weight.sum()

        low, high = 0.0, 1e7
        while excess(0.0)[0] > 0 and high - low > 1e-9 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if excess(middle)[0] > 0 else (low, middle)
        between = low if excess(0.0)[0] > 0 else 0.0
        draws.append(rng.normal(excess(between)[1], (excess(between)[2] + between) ** 0.5))
    low, high = np.quantile(draws, (0.05, 0.95))
    expected = min(low, ends[0]), max(high, ends[1])
    assert range_of_new == pytest.approx(expected, abs=0.15 * (high - low))


def test_means_of_fewer_than_two_sites_are_undefined():
    mean, ends, range_of_new = pool(np.array([0.3]), np.array([0.1]), 0.95)
    assert np.isnan([mean, *ends, *range_of_new]).all()


def test_the_row_of_a_site_is_that_of_its_rows_alone():
    X, y, site = table_of_sites()
    p, groups = expit(X["a"].to_numpy()), np.arange(len(y)) // 2
    frame = internal_external(y, p, site, groups=groups)
    for name in SITES:
        rows = site == name
        line = calibration_line(y[rows], p[rows], groups=groups[rows])
        area = auc_interval(y[rows], p[rows], groups=groups[rows])
        row = frame.loc[name]
        assert row["n"] == rows.sum() and row["events"] == y[rows].sum()
        for measure in ("observed_expected", "slope"):
            ends = [row[measure + end] for end in ("", "_low", "_high")]
            assert ends == pytest.approx([*vars(getattr(line, measure)).values()][:3])
        ends = [row["auc" + end] for end in ("", "_low", "_high")]
        assert ends == pytest.approx([area.value, area.low, area.high])


def test_the_lines_over_sites_are_the_mean_of_their_rows_and_the_range_of_another():
    X, y, site = table_of_sites()
    p = expit(X["a"].to_numpy())
    frame = internal_external(y, p, site)
    of_sites = [Estimates(y[site == name], p[site == name]) for name in SITES]
    estimates = {
        "observed_expected": [e.observed_expected() for e in of_sites],
        "slope": [e.line().slope for e in of_sites],
        "auc": [e.auc() for e in of_sites],
    }
    for measure, name in POOLED_ON.items():
        scale, back, _ = SCALES[name]
        values, errors = np.transpose([(e.value, e.standard_error) for e in estimates[measure]])
        mean, pooled, another = pool(scale(values), errors, 0.95)
        ends = frame[[measure, f"{measure}_low", f"{measure}_high"]]
        assert ends.loc["pooled"].tolist() == pytest.approx([back(mean), *map(back, pooled)])
        assert ends.loc["another site"].tolist()[1:] == pytest.approx([*map(back, another)])
        assert another[0] <= pooled[0] < pooled[1] <= another[1]


def test_a_site_without_events_counts_half_of_one_and_has_no_slope():
    X, y, site = table_of_sites()
    p = expit(X["a"].to_numpy())
    y = np.where(site == "City", 0, y)
    frame = internal_external(y, p, site)
    others = site != "City"
    alone = internal_external(y[others], p[others], site[others])
    means = ["slope", "auc_low", "auc_high"]
    assert frame.loc["pooled", means].tolist() == pytest.approx(alone.loc["pooled", means].tolist())
    ratios = [(np.log(0.5 / (p[~others].sum() + 0.5)), 2**0.5)]
    for name in SITES[1:]:
        line = calibration_line(y[site == name], p[site == name])
        ratios.append((np.log(line.observed_expected.value), line.observed_expected.standard_error))
    mean, *_ = pool(*np.transpose(ratios), 0.95)
    assert frame.loc["pooled", "observed_expected"] == pytest.approx(np.exp(mean))


def test_of_many_classes_the_event_is_that_the_predicted_label_is_right():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 300)
    y = np.array(["a", "b", "c"])[(p.cumsum(1) < rng.random((300, 1))).sum(1)]
    site = np.repeat(SITES, 100)
    frame = internal_external(y, p, site)
    right = np.array(["a", "b", "c"])[p.argmax(1)] == y
    line = calibration_line(right, p.max(1))
    assert frame.loc["pooled", "events"] == right.sum()
    assert frame["observed_expected"].iloc[:3].mean() == pytest.approx(
        line.observed_expected.value, abs=0.03
    )


def test_one_site_is_refused():
    with pytest.raises(ValueError, match="site must have two values or more in 40 rows, got 1"):
        internal_external([0, 1] * 20, [0.4] * 40, ["a"] * 40)


@pytest.mark.parametrize("name", ["pooled", "another site"])
def test_a_site_called_like_a_line_over_sites_is_refused(name):
    with pytest.raises(ValueError, match="site must have other values than 'pooled'"):
        internal_external([0, 1] * 20, [0.4] * 40, ["a", name] * 20)


@pytest.fixture(scope="module")
def by_hospital():
    X, y, site = table_of_sites()
    site = np.where(np.arange(len(y)) < 5, None, site)
    model = LogisticRegression()
    return X, y, site, evaluate(X.to_numpy(), y, estimator=model, methods=["venn-abers"], site=site)


def test_every_site_is_predicted_by_a_model_of_the_others(by_hospital):
    X, y, site, evaluation = by_hospital
    method = evaluation.verdict.method
    named = np.flatnonzero(np.arange(len(y)) >= 5)
    for name in SITES:
        rows, others = named[site[named] == name], named[site[named] != name]
        model = CalibratedClassifier(LogisticRegression(), random_state=0)
        model = model.fit(X.to_numpy()[others], y[others])
        raw = np.mean([e.predict_proba(X.to_numpy()[rows]) for e in model.estimators_], axis=0)
        is_site = np.isin(evaluation.rows, rows)
        assert evaluation.probabilities["none"][is_site] == pytest.approx(raw)
        if method == "venn-abers":
            p = model.predict_proba(X.to_numpy()[rows])
            assert evaluation.probabilities[method][is_site] == pytest.approx(p)


def test_the_headline_names_sites_that_are_off(by_hospital):
    evaluation = by_hospital[-1]
    verdict, findings = evaluation.verdict, evaluation.findings
    assert verdict.action == "check" and verdict.failures["sites"] in verdict.sentence
    assert ". On all rows " in verdict.sentence
    assert {"North"} <= set(findings.rejected["sites"]["observed over expected"])
    assert any(numbers_in(note) == [5] for note in evaluation.notes)  # rows without a site
    table = evaluation.summary()["sections"]["sites"]["frame"]
    assert [row["Site"] for row in table] == [*SITES, "pooled", "another site"]
    assert table[1]["observed_expected"] > 1.3


def test_sites_that_are_alike_are_not_named():
    X, y, site = table_of_sites(shifts=(0, 0, 0))
    evaluation = evaluate(
        X.to_numpy(), y, estimator=LogisticRegression(), methods=["venn-abers"], site=site
    )
    assert not evaluation.verdict.failures["sites"]
    assert not any(evaluation.sections["sites"].rejected.values())


def judged_sites(rng, factors, n=150):
    """Return the section of sites at which the odds of an event are multiplied by factors."""
    z = rng.normal(-1, 1, n * len(factors))
    site = np.repeat(np.arange(len(factors)), n)
    q = expit(z) * np.array(factors)[site] / (1 - expit(z) * (1 - np.array(factors)[site]))
    y = (rng.random(len(z)) < q).astype(int)
    p = np.column_stack([1 - expit(z), expit(z)])
    estimates = MethodEstimates(p)
    predictions = Predictions(
        np.array([0, 1]), y, np.zeros(len(y), int), np.arange(len(y)), {"m": estimates}, positive=1
    )
    return sections.compared_sites(predictions, estimates, site.astype(str))


def test_a_site_without_events_is_named_and_counted():
    section = judged_sites(np.random.default_rng(5), [1, 1, 0, 1])
    assert section.rejected["observed over expected"] == ["2"]
    assert section.numbers["pooled"] == {"observed_expected": 4, "slope": 3, "auc": 3}
    frame = section.frame
    assert frame.loc["another site", "observed_expected_low"] < 0.5
    assert frame.loc["2", "observed_expected_high"] < 0.5


def test_of_right_sites_few_tables_name_one():
    rng = np.random.default_rng(6)
    named = [any(judged_sites(rng, [1.0] * 8).rejected.values()) for _ in range(30)]
    assert np.mean(named) <= 0.05 + 3 * (0.05 * 0.95 / 30) ** 0.5


def test_groups_that_are_the_sites_leave_the_rows_of_a_site_independent():
    X, y, site = table_of_sites()
    options = {"estimator": LogisticRegression(), "methods": ["venn-abers"], "site": site}
    evaluation = evaluate(X.to_numpy(), y, groups=site, **options)
    section = evaluation.sections["sites"]
    assert not section.numbers["has_groups"]
    p = evaluation.probabilities[evaluation.verdict.method]
    frame = internal_external(y[evaluation.rows], p, site[evaluation.rows])
    pd.testing.assert_frame_equal(section.frame, frame, check_names=False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"site": ["a"] * 450}, "site must have 2 to 50 different values, got 1"),
        ({"site": ["a", "b"]}, r"site must have shape \(450,\), got \(2,\)"),
        ({"site": ["a", "b"] * 225, "time": range(450)}, "site and time must not both be given"),
    ],
)
def test_sites_that_cannot_be_left_out_are_refused(options, message):
    X, y, _ = table_of_sites()
    with pytest.raises(ValueError, match=message):
        evaluate(X.to_numpy(), y, estimator=LogisticRegression(), methods=["platt"], **options)


def test_weights_are_those_of_the_measures_at_each_site():
    rng = np.random.default_rng(9)
    p, site, weight = rng.random(900), rng.choice(list("abc"), 900), rng.choice([0, 1, 2.5], 900)
    y = rng.random(900) < p
    frame = internal_external(y, p, site, sample_weight=weight)
    for name in "abc":
        of_site = site == name
        estimates = Estimates(y[of_site], p[of_site], sample_weight=weight[of_site])
        assert frame.loc[name, "n"] == (weight[of_site] > 0).sum()
        for measure in ("observed_expected", "auc"):
            estimate = getattr(estimates, measure)()
            ends = [estimate.value, estimate.low, estimate.high]
            names = [measure, f"{measure}_low", f"{measure}_high"]
            assert frame.loc[name, names].tolist() == pytest.approx(ends)
    section = check(y, p, site=site, sample_weight=weight, positive=True).sections["sites"]
    pd.testing.assert_frame_equal(section.frame, frame, check_names=False)
