"""Internal-external validation: every site as if it were alone, and a meta-analysis over sites."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import t as student
from sklearn.linear_model import LogisticRegression

from vennforest import CalibratedClassifier
from vennforest.metrics import Estimates, auc_interval, calibration_line
from vennforest.report import evaluate, sections
from vennforest.validation import internal_external
from vennforest.validation.sites import SCALES, pool

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
    for measure, (scale, back) in SCALES.items():
        values, errors = np.transpose([(e.value, e.standard_error) for e in estimates[measure]])
        mean, pooled, another = pool(scale(values), errors, 0.95)
        ends = frame[[measure, f"{measure}_low", f"{measure}_high"]]
        assert ends.loc["pooled"].tolist() == pytest.approx([back(mean), *map(back, pooled)])
        assert ends.loc["another site"].tolist()[1:] == pytest.approx([*map(back, another)])
        assert another[0] <= pooled[0] < pooled[1] <= another[1]


def test_a_site_without_events_is_left_out_of_the_means():
    X, y, site = table_of_sites()
    y = np.where(site == "City", 0, y)
    frame = internal_external(y, expit(X["a"]), site)
    others = site != "City"
    alone = internal_external(y[others], expit(X["a"])[others], site[others])
    means = ["observed_expected", "slope", "auc_low", "auc_high"]
    assert frame.loc["pooled", means].tolist() == pytest.approx(alone.loc["pooled", means].tolist())


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
    sentence = evaluation.verdict.sentence
    assert "Look at these parts before use: sites: observed over expected in " in sentence
    assert "North" in sentence and ". On all rows " in sentence
    assert "5 rows have no site and are left out." in evaluation.notes
    table = evaluation.summary()["sections"]["sites"]["frame"]
    assert [row["Site"] for row in table] == [*SITES, "pooled", "another site"]
    assert table[1]["observed_expected"] > 1.3


def test_sites_that_are_alike_are_not_named():
    X, y, site = table_of_sites(shifts=(0, 0, 0))
    evaluation = evaluate(
        X.to_numpy(), y, estimator=LogisticRegression(), methods=["venn-abers"], site=site
    )
    assert "sites" not in evaluation.verdict.sentence
    assert not any(evaluation.sections["sites"].rejected.values())


@pytest.mark.parametrize(("half_widths", "is_off"), [(1.37, False), (1.42, True)])
def test_sites_are_tested_at_a_level_adjusted_for_their_number(monkeypatch, half_widths, is_off):
    """Eight intervals together at 5%: each has 1.395 of its half-width at 95%."""
    half = 0.3 / half_widths
    row = {"observed_expected": np.exp([0.3, 0.3 - half, 0.3 + half]), "slope": [1, 0.9, 1.1]}
    row["auc"] = [0.8, 0.7, 0.9]
    columns = {
        f"{name}{end}": [value] * 6
        for name, values in row.items()
        for end, value in zip(("", "_low", "_high"), values, strict=True)
    }
    frame = pd.DataFrame({"n": 9, **columns}, index=[*"abcd", "pooled", "another site"])
    monkeypatch.setattr(sections, "internal_external", lambda **options: frame)
    predictions = SimpleNamespace(groups=None, estimates={"m": 0}, for_metric=lambda e: {})
    section = sections.compared_sites(predictions, None, np.array([*"abcd"]))
    assert any(section.rejected.values()) == is_off


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
        ({"site": ["a", "b"]}, r"site must have shape \(450,\), got 2 values"),
        ({"site": ["a", "b"] * 225, "time": range(450)}, "site and time must not both be given"),
    ],
)
def test_sites_that_cannot_be_left_out_are_refused(options, message):
    X, y, _ = table_of_sites()
    with pytest.raises(ValueError, match=message):
        evaluate(X.to_numpy(), y, estimator=LogisticRegression(), methods=["platt"], **options)
