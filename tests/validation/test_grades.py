"""Grades: rates, exact tests and stability, against their definitions."""

from fractions import Fraction

import numpy as np
import pytest

pd = pytest.importorskip("pandas")

from scipy.stats import beta, binom, chi2, ks_2samp, kstest  # noqa: E402

from oracles import validation as oracle  # noqa: E402
from oracles.decisions import tail  # noqa: E402
from vennforest.validation import grades, population_stability  # noqa: E402

# By probcal 0.3.0 of the table below, with intervals of level 90%.
BINOMIAL = [0.32331437764820886, 0.17887251157917408, 1.0]
LOW = [0.00822582910723213, 0.06726140110049528, 0.0]
HIGH = [0.07571079375020418, 0.14198925159098508, 0.05815507911711393]
JEFFREYS = [0.21904365210809232, 0.14877677267033124, 0.9999999978706354]


def drawn_table(rng):
    """Return labels, probabilities and grades; some grades are of a few rows."""
    k = rng.integers(2, 8)
    grade = np.concatenate([np.arange(k), rng.integers(k, size=rng.integers(20, 120))])
    pd_of_grade = np.sort(rng.choice([0, 1, 0.001, 0.5, *rng.random(8)], k))
    p = pd_of_grade[grade]
    return (rng.random(len(p)) < rng.choice([p, np.full(len(p), 0.3)])).astype(int), p, grade


def test_numbers_are_those_of_the_definitions():
    rng = np.random.default_rng(seed := np.random.SeedSequence().entropy)
    for _ in range(15):
        y, p, grade = drawn_table(rng)
        frame = grades(y, p, grade)
        assert frame.index.tolist() == [str(g) for g in range(grade.max() + 1)], seed
        for name, row in frame.iterrows():
            member = grade == int(name)
            n, events = int(member.sum()), int(y[member].sum())
            assert (row["n"], row["events"]) == (n, events)
            assert row["observed"] == events / n
            assert row["expected"] == pytest.approx(p[member].mean(), abs=1e-12)
            rate = row["expected"]
            expected = float(tail(events, n, Fraction(rate)))
            assert row["binomial"] == pytest.approx(expected, rel=1e-9, abs=1e-12), seed
            assert row["jeffreys"] == pytest.approx(oracle.beta_cdf(rate, events, n), abs=1e-9)
            assert row["jeffreys"] == pytest.approx(
                beta(events + 0.5, n - events + 0.5).cdf(rate), abs=1e-12
            )
            low, high = row["observed_low"], row["observed_high"]
            assert low == 0 if events == 0 else binom.sf(events - 1, n, low) == pytest.approx(0.025)
            assert high == 1 if events == n else binom.cdf(events, n, high) == pytest.approx(0.025)
        assert frame["too_low"].tolist() == pytest.approx(oracle.holm(frame["binomial"].tolist()))
        lower = binom.cdf(frame["events"], frame["n"], frame["expected"])
        assert frame["too_high"].tolist() == pytest.approx(oracle.holm(lower.tolist()))


@pytest.mark.parametrize("seed", range(3))
def test_the_largest_distance_of_grades_is_the_statistic_of_kolmogorov_and_smirnov(seed):
    rng = np.random.default_rng(seed)
    grade = rng.integers(0, 5, 200)
    y = (rng.random(200) < 0.1 + 0.1 * grade).astype(int)
    frame = grades(y, 0.1 + 0.1 * grade, grade)
    assert frame["ks"].abs().max() == pytest.approx(
        ks_2samp(grade[y == 1], grade[y == 0]).statistic
    )
    assert frame["ks"].iloc[-1] == pytest.approx(0, abs=1e-12)
    assert grades(np.zeros(200, int), 0.1 + 0.1 * grade, grade)["ks"].isna().all()


def test_values_of_another_package():
    y = np.repeat([0, 1, 0, 1, 0], [97, 3, 180, 20, 50])
    p = np.repeat([0.02, 0.08, 0.3], [100, 200, 50])
    frame = grades(y, p, np.repeat(list("ABC"), [100, 200, 50]), level=0.9)
    assert frame["binomial"].tolist() == pytest.approx(BINOMIAL, abs=1e-12)
    assert frame["jeffreys"].tolist() == pytest.approx(JEFFREYS, abs=1e-12)
    assert frame["observed_low"].tolist() == pytest.approx(LOW, abs=1e-12)
    assert frame["observed_high"].tolist() == pytest.approx(HIGH, abs=1e-12)


@pytest.mark.parametrize(("values", "names"), [
    ([10, 9, 2.0, np.nan], ["2", "9", "10", "missing"]),
    (["10", " 9", "2", ""], ["2", "9", "10", "missing"]),
    (["BB", "A+", "AAA", None], ["AAA", "A+", "BB", "missing"]),
    (pd.Categorical(list("xzy"), list("zyxw"), ordered=True), ["z", "y", "x"]),
])  # fmt: skip
def test_grades_are_in_their_natural_order(values, names):
    k = len(values)
    grade = np.asarray(values, dtype=object).repeat(10)
    if isinstance(values, pd.Categorical):
        grade = pd.Categorical(grade, values.categories, ordered=True)
    p = np.repeat([0.3, 0.2, 0.1, 0.01][:k], 10)
    assert grades(np.arange(10 * k) % 2, p, grade).index.tolist() == names


@pytest.mark.parametrize("shares", [False, True])
def test_stability_is_that_of_the_definition_and_its_distribution_is_uniform(shares):
    rng = np.random.default_rng(seed := np.random.SeedSequence().entropy)
    probabilities, n, m = rng.dirichlet([5] * 6), 700, 400
    pvalues, scaled = [], []
    for i in range(100):
        counts, others = rng.multinomial(n, probabilities), rng.multinomial(m, probabilities)
        reference = dict(enumerate(probabilities)) if shares else np.arange(6).repeat(others)
        grade = np.arange(6).repeat(counts)
        result = population_stability(grade, reference, random_state=i)
        others = n * probabilities if shares else others
        assert result.psi == pytest.approx(oracle.stability_index(counts, others), abs=1e-12), seed
        pvalues.append(result.pvalue)
        scaled.append(result.psi * (n if shares else n * m / (n + m)))
    assert kstest(pvalues, "uniform").pvalue > 1e-6, seed
    assert kstest(scaled, chi2(5).cdf).pvalue > 1e-6, seed


def test_stability_of_few_rows_is_exact():
    """Of tables with empty grades, at most 5% raise an alarm."""
    rng = np.random.default_rng(seed := np.random.SeedSequence().entropy)
    alarms = 0
    for i in range(150):
        grade, reference = (
            rng.choice(5, size, p=[0.9, 0.04, 0.03, 0.02, 0.01]) for size in (30, 40)
        )
        if len({*grade, *reference}) > 1:
            alarms += population_stability(grade, reference, random_state=i).pvalue <= 0.05
    assert alarms <= binom.ppf(1 - 1e-6, 150, 0.05), seed
    shift = population_stability(["A"] * 50 + ["B"] * 50, ["A"] * 90 + ["B"] * 10)
    assert shift.pvalue == 1e-4 and shift.psi > shift.high


def test_a_new_grade_counts_the_same_in_a_small_and_a_large_table():
    indices = [
        population_stability(np.repeat([*"ABC"], [50 * m, 48 * m, 2 * m]), {"A": 0.5, "B": 0.5}).psi
        for m in (1, 10, 1000)
    ]
    expected = (0.02 - 1e-4) * np.log(0.02 / 1e-4) - 0.02 * np.log(0.96)
    assert indices == pytest.approx([expected] * 3)


def test_grades_without_an_event_or_without_a_doubt():
    frame = grades([0] * 40, [0.0] * 20 + [1.0] * 20, ["A"] * 20 + ["B"] * 20)
    assert frame["observed"].tolist() == [0, 0] and frame["observed_low"].tolist() == [0, 0]
    assert frame["too_low"].tolist() == [1, 1] and frame["too_high"].tolist() == [1, 0]
    assert frame["jeffreys"].tolist() == [0, 1]


@pytest.mark.parametrize(("n", "grade", "message"), [
    (19, [1, 2] * 9 + [1], "y must have at least 20 rows, got 19"),
    (20, ["A"] * 20, "grade must have 2 to 100 different values, got 1: name a column"),
    (200, range(200), "grade must have 2 to 100 different values, got 200: name a column"),
    (20, [1, 2], "grade must be of 20 rows, got 2"),
])  # fmt: skip
def test_grades_refuses(n, grade, message):
    with pytest.raises(ValueError, match=message):
        grades([0, 1] * (n // 2) + [0] * (n % 2), [0.5] * n, grade)


@pytest.mark.parametrize(("reference", "message"), [
    ([], "reference must have a row or more, got none"),
    (["A"], "grade and reference must have two grades or more, got 1"),
    ({"A": 0.5, "B": 0.4}, "reference must have shares that sum to 1, got"),
    ({"A": 1.5, "B": -0.5}, "reference must have shares that sum to 1, got"),
])  # fmt: skip
def test_stability_refuses(reference, message):
    with pytest.raises(ValueError, match=message):
        population_stability(["A"] * 20, reference)


def test_prudent_bounds_are_those_of_pluto_and_tasche():
    """100, 400 and 300 borrowers, without defaults, and with 0, 2 and 1 of them."""
    n, p = (100, 400, 300), (0.001, 0.004, 0.01)
    for defaults, level, expected in [
        ((0, 0, 0), 0.5, (0.0009, 0.0010, 0.0023)),
        ((0, 0, 0), 0.99, (0.0057, 0.0066, 0.0152)),
        ((0, 2, 1), 0.9, (0.0083, 0.0095, 0.0129)),
    ]:
        rows = [np.repeat(values, n) for values in (p, ["A", "B", "C"])]
        y = np.concatenate([np.arange(m) < d for m, d in zip(n, defaults, strict=True)])
        frame = grades(y.astype(int), *rows, level=level)
        assert frame["prudent"].round(4).tolist() == pytest.approx(list(expected), abs=1.01e-4)
