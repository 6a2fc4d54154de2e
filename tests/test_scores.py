"""What scores are, read by every calibrator in the same way, against a slow reader."""

import re
import warnings
from decimal import Decimal

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, log_softmax, softmax
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from support.cases import CALIBRATORS, draw_rows, rounded
from vennforest import CalibratedClassifier, VennAbers, update
from vennforest._messages import CalibrationWarning, InputError
from vennforest.calibrators import (
    BetaCalibration,
    PlattScaling,
    TemperatureScaling,
    Uncalibrated,
)
from vennforest.counts import ScoreCounts
from vennforest.export import from_json, to_json
from vennforest.metrics import brier_decomposition
from vennforest.scores import ScoreError, far_side, read_scores, round_scores

AUTOMATIC = [clone(calibrator).set_params(on="auto") for calibrator in CALIBRATORS]


def slow_kind(rows):
    """The kind of k columns of scores by the table, value by value; None where it is refused."""
    k, kinds = len(rows[0]), set()
    for row in rows:
        if min(row) < -1e-9 or max(row) > 1 + 1e-9:
            kinds.add("logit")
            continue
        digits = max(2, *(-Decimal(repr(value)).as_tuple().exponent for value in row))
        allowed = k / 2 * 10.0**-digits + 1e-9 if digits <= 6 else 1e-5
        in_half = all(float(np.float16(value)) == value for value in row)
        allowed = max(allowed, 1e-5, 2.0**-8 if in_half else 0)
        kinds.add("probability" if abs(sum(row) - 1) <= allowed else None)
    if "logit" in kinds:
        sums = [sum(row) for row in rows]
        is_percent = max(abs(s - 100) for s in sums) <= k / 2
        is_count = len(rows) >= 10 and max(abs(s / sums[0] - 1) for s in sums) < 1e-6
        is_share = min(map(min, rows)) >= 0 and (is_percent or is_count)
        return None if is_share else "logit"
    return None if None in kinds else "probability"


def draw_columns(rng):
    """Columns of scores of many kinds, some of them faulty."""
    n, k = int(rng.integers(1, 30)), int(rng.choice([2, 3, 5, 12]))
    logits = rng.normal(scale=rng.choice([0.1, 1, 4]), size=(n, k))
    p, kind = softmax(logits, axis=1), rng.integers(10)
    if kind == 0:
        return logits + rng.normal(scale=5, size=(n, 1))
    if kind == 1:
        return np.round(p, int(rng.integers(2, 7)))
    if kind == 2:
        return p.astype(np.float16)
    if kind == 3:
        return p.astype(np.float32)
    if kind == 4:
        return np.round(100 * p, int(rng.integers(0, 3)))
    if kind == 5:
        return expit(logits)
    if kind == 6:
        return np.eye(k)[rng.integers(0, k, n)]
    if kind == 8:
        return rng.multinomial(300, p)  # votes of trees
    if kind == 7:
        p[rng.integers(n)] *= 1 + rng.choice([1e-7, 1e-4, 0.004, 0.05])
    return p


def test_the_kind_of_columns_is_that_of_the_table():
    rng = np.random.default_rng(20261127)
    found = {"probability": 0, "logit": 0, None: 0}
    for _ in range(3000):
        scores = draw_columns(rng)
        values = np.asarray(scores, float)
        kind = slow_kind(values.tolist())
        found[kind] += 1
        k = values.shape[1]
        if kind is None:
            with pytest.raises(InputError):
                read_scores(scores, k)
            continue
        read = read_scores(scores, k)
        assert read.kind == kind
        if kind == "probability":
            expected = values / values.sum(axis=1, keepdims=True)
            assert_allclose(read.values, expected if k > 2 else expected[:, 1], rtol=0, atol=1e-11)
        else:
            of_first = values[:, 1] - values[:, 0]
            expected = of_first if k == 2 else values - values.max(axis=1, keepdims=True)
            assert_array_equal(read.values, expected)
        i = int(rng.integers(len(values)))  # each row is read alone
        new = {"mask_distance": read.mask_distance}
        alone = read_scores(scores[i : i + 1], k, read.kind, **new).values
        assert_array_equal(alone, read.values[i : i + 1])
    assert min(found.values()) > 100, found


def draw_logits(k, n=400, seed=0):
    rng = np.random.default_rng(seed)
    z = 1.5 * rng.normal(size=(n, k))
    y = (z / 1.3 + rng.gumbel(size=z.shape)).argmax(axis=1)
    return z, y


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("calibrator", AUTOMATIC, ids=repr)
def test_a_shift_of_the_logits_of_a_row_changes_nothing(calibrator, k):
    z, y = draw_logits(k)
    shift = np.random.default_rng(1).normal(scale=20, size=(len(z), 1)).round()
    model = clone(calibrator)
    assert model.fit(z, y).on_ == "logit"
    shifted = clone(model).fit(z + shift, y)
    assert_allclose(shifted.predict_proba(z + shift), model.predict_proba(z), rtol=0, atol=1e-7)
    p = clone(calibrator).set_params(on="probability").fit(softmax(z, axis=1), y)
    quality = [log_loss(y, m.predict_proba(x)) for m, x in ((model, z), (p, softmax(z, 1)))]
    assert_allclose(*quality, rtol=0.03)


@pytest.mark.parametrize("calibrator", AUTOMATIC, ids=repr)
def test_rounded_probabilities_are_probabilities(calibrator):
    z, y = draw_logits(4)
    p = softmax(z, axis=1)
    exact = clone(calibrator).fit(p, y).predict_proba(p)
    for given in (p.round(3), p.astype(np.float16)):
        model = clone(calibrator).fit(given, y)
        assert model.on_ == "probability"
        assert np.abs(model.predict_proba(given) - exact).mean() < 0.01
    with pytest.raises(InputError, match="divide by 100"):
        clone(calibrator).fit((100 * p).round(1), y)
    with pytest.raises(InputError, match=r"rows that sum to 300, .*: divide by 300"):
        clone(calibrator).fit(np.random.default_rng(1).multinomial(300, p), y)
    with pytest.raises(ScoreError, match='on="score"'):
        clone(calibrator).fit(expit(z), y)


def test_two_columns_of_logits_are_their_difference():
    z, y = draw_logits(2, seed=3)
    z += np.random.default_rng(4).normal(scale=3, size=(len(z), 1))
    for calibrator in AUTOMATIC:
        if isinstance(calibrator, BetaCalibration) or "Bostrom" in repr(calibrator):
            continue
        both = clone(calibrator).fit(z, y)
        one = clone(calibrator).set_params(on="logit").fit(z[:, 1] - z[:, 0], y)
        assert_array_equal(both.predict_proba(z), one.predict_proba(z[:, 1] - z[:, 0]))
        counted = clone(calibrator).set_params(on="logit")
        counted.fit_counts(ScoreCounts.from_scores(z, y))
        assert_allclose(counted.predict_proba(z), both.predict_proba(z), rtol=0, atol=1e-6)


def test_the_kind_is_fixed_at_fit_and_kept():
    z, y = draw_logits(3)
    small = 0.2 + 0.1 * z / np.abs(z).max()  # these would not be probabilities
    for calibrator in AUTOMATIC:
        model = clone(calibrator).fit(z, y)
        again = from_json(to_json(model))
        assert again.on_ == model.on_ == "logit" and again.on == "auto"
        assert_array_equal(again.predict_proba(small), model.predict_proba(small))
        assert clone(clone(calibrator).set_params(on="logit")).on == "logit"
        with pytest.warns(CalibrationWarning, match=r"lie in \[0, 1\] and sum to 1, as prob"):
            model.predict_proba(softmax(z, axis=1))
        of_p = clone(calibrator).fit(softmax(z, axis=1), y)
        with pytest.raises(ScoreError, match="row 1, column 2"):
            of_p.predict_proba([[0.2, 0.3, 0.5], [0.2, 0.3, 1.5]])
        with pytest.raises(ScoreError, match=r"a sum of 0\.9 in row 0"):
            of_p.predict_proba([[0.2, 0.2, 0.5]])


def test_logits_that_are_called_so_and_look_like_probabilities_are_announced():
    z, y = draw_logits(2)
    p = softmax(z, axis=1)[:, 1]
    with pytest.warns(CalibrationWarning, match='fit with on="probability"'):
        PlattScaling(on="logit").fit(p, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PlattScaling(on="probability").fit(p, y)
        PlattScaling(on="logit").fit(p[:20], y[:20])  # too few to doubt


def test_scores_of_each_class_are_maps_of_one_column_each():
    rng = np.random.default_rng(2)
    s, y = rng.random((300, 3)), rng.integers(0, 3, 300)
    s[np.arange(300), y] += 0.2
    alone = np.column_stack(
        [
            PlattScaling(on="score").fit(s[:, j], y == j).predict_proba(s[:, j])[:, 1]
            for j in range(3)
        ]
    )
    p = PlattScaling(on="score").fit(s, y).predict_proba(s)
    assert_allclose(p, alone / alone.sum(axis=1, keepdims=True), rtol=0, atol=1e-12)
    with pytest.raises(InputError, match="must lie in"):
        Uncalibrated(on="score").fit(s, y)


def test_small_scores_that_fall_are_negated_and_none_collide():
    rng = np.random.default_rng(5)
    s = np.sort(10.0 ** rng.uniform(-40, 0, 400))[::-1].copy()
    y = (rng.random(400) < np.linspace(0.05, 0.95, 400)).astype(int)
    for merge in ("log", "pooled"):
        falling = VennAbers(merge, on="score").fit(s, y, increasing=False)
        rising = VennAbers(merge, on="score").fit(-s, y)
        found = falling.predict_multiprobability(s)
        assert_array_equal(found.lower, rising.predict_multiprobability(-s).lower)
        assert_array_equal(from_json(to_json(falling)).predict_proba(s), falling.predict_proba(s))


def test_a_row_is_answered_alike_alone_and_among_others():
    z, y = draw_logits(2)
    s = 100 * (z[:, 1] - z[:, 0])
    model = VennAbers().fit(s, y)
    with pytest.warns(CalibrationWarning, match="far outside"):
        alone = model.predict_proba([1e6])
    with pytest.warns(CalibrationWarning, match="far outside"):
        among = model.predict_proba([*s[:99], 1e6])
    assert_array_equal(alone[0], among[-1])


def test_scores_are_rounded_to_forty_bits():
    rng = np.random.default_rng(6)
    s = rng.normal(size=4000) * 10.0 ** rng.integers(-300, 295, 4000)
    found = round_scores(s)
    assert_allclose(found, s, rtol=2.0**-40)
    mantissa = np.frexp(found)[0] * 2.0**40
    assert_array_equal(mantissa, np.rint(mantissa))
    is_tie = np.abs(np.frexp(s)[0] * 2.0**40 % 1 - 0.5) < 1e-3
    assert_array_equal(found[~is_tie], rounded(s)[~is_tie])
    assert_array_equal(round_scores(found), found)
    big = np.array([0.0, -0.0, 1.7e308, -1.7e308, 5e-324])
    assert_array_equal(round_scores(big), big)


def test_ties_with_calibration_rows_do_not_depend_on_the_size_of_the_batch():
    X, y, _ = draw_rows(n=400)
    model = CalibratedClassifier(
        LogisticRegression(), calibrate_on="training", merge="log", random_state=0
    ).fit(X, y)
    whole = model.predict_multiprobability(X)
    for size in (1, 7, 64):
        for start in range(0, len(X), size):
            some = model.predict_multiprobability(X[start : start + size])
            assert_array_equal(some.lower, whole.lower[start : start + size])


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_impossible_scores_are_named_by_row_and_column(value):
    z, y = draw_logits(3)
    z[7, 2] = value
    with pytest.raises(ScoreError, match="in row 7, column 2"):
        VennAbers().fit(z, y)
    one = log_softmax(z[:, :2], axis=1)[:, 0]
    one[9] = value
    with pytest.raises(ScoreError, match=r"in row 9 \(counted from 0\)"):
        PlattScaling().fit(one, y > 0)
    masked = np.where(np.arange(3) == 1, -np.inf, draw_logits(3)[0])
    masked[5] = -np.inf
    with pytest.raises(ScoreError, match="finite logit in every row, got -inf in all columns"):
        VennAbers().fit(masked, np.arange(400) % 3)


@pytest.mark.parametrize("k", [2, 3])
def test_minus_infinity_is_a_logit_in_counts_and_batches_too(k):
    pa = pytest.importorskip("pyarrow")
    x, y = draw_logits(k)
    x[7, 1] = -np.inf
    names = [f"p({label})" for label in np.unique(y).tolist()]
    batch = pa.record_batch({"y": y.tolist(), **dict(zip(names, x.T, strict=True))})
    expected = TemperatureScaling(on="logit").fit(x, y).predict_proba(x)
    counted = ScoreCounts.from_scores(x, y, on="logit")
    batches = ScoreCounts.from_batches([batch], score=names, target="y")
    for counts in (counted, batches):
        model = TemperatureScaling(on="logit").fit_counts(counts)
        assert_allclose(model.predict_proba(x), expected, atol=1e-9)
        assert model.predict_proba(x)[7, 1] < 1e-200
    with pytest.raises(ValueError, match="must be finite, got -inf"):
        ScoreCounts.from_batches([batch], score=names, target="y", on="score")
    if k == 2:
        one = ScoreCounts.from_batches([batch], score=names[1], target="y", on="logit")
        first = {np.unique(y).tolist()[0]: names[1]}
        reverse = ScoreCounts.from_batches([batch], score=first, target="y", on="logit")
        assert_array_equal(np.sort(-reverse.scores), np.sort(one.scores))
        with pytest.raises(ValueError, match="must be finite, got -inf"):
            ScoreCounts.from_batches([batch], score=names[1], target="y")


def test_masked_entries_are_refused_wherever_they_are():
    rng = np.random.default_rng(0)
    p, y = rng.random(90), rng.integers(0, 2, 90)
    mask = np.arange(90) < 9
    masked_p, masked_y, masked_weight = (
        np.ma.masked_array(values, mask) for values in (p, y, np.ones(90))
    )
    fitted = VennAbers().fit(np.ma.masked_array(p), y)
    X = np.ma.masked_array(np.column_stack([p, p]), np.column_stack([mask, mask]))
    model = CalibratedClassifier(LogisticRegression(), method="platt").fit(X.data, y)
    for refused in (
        lambda: VennAbers().fit(masked_p, y),
        lambda: VennAbers().fit(p, masked_y),
        lambda: VennAbers().fit(p, y, sample_weight=masked_weight),
        lambda: fitted.predict_proba(masked_p),
        lambda: ScoreCounts.from_scores(p, masked_y),
        lambda: brier_decomposition(y, masked_p),
        lambda: brier_decomposition(masked_y, p),
        lambda: update(masked_p, y),
        lambda: update(p, y, groups=masked_y),
        lambda: model.fit(X, y),
        lambda: model.predict_proba(X),
    ):
        with pytest.raises(ValueError, match="must have no masked entries, got"):
            refused()


def test_dates_and_complex_numbers_are_no_scores():
    for values in (
        np.array(["2020-01-01"], "datetime64[D]"),
        np.array([1], "m8[s]"),
        np.array([1j]),
    ):
        with pytest.raises(ValueError, match="scores must be numbers in a dense array, got"):
            read_scores(values, 2)


def test_labels_are_read_as_they_are_written_or_refused_by_one_sentence():
    s, y = [0.1, 0.4, 0.6, 0.9], np.array([0, 1, 0, 1])
    expected = VennAbers().fit(s, y).predict_proba(s)
    for labels in (y.astype(object), (y == 1).astype(object), [False, 1, 0, True]):
        assert_array_equal(VennAbers().fit(s, labels).predict_proba(s), expected)
    days = np.array(["2020-01-01", "NaT", "2020-01-02", "NaT"], "datetime64[D]")
    decimals = [Decimal(int(label)) for label in y]
    for labels in (decimals, days, y.astype("S"), s, [0, 1, 0, np.nan], [0, 1, 0, np.inf]):
        with pytest.raises(InputError, match="y must have a label in every row, of text"):
            VennAbers().fit(s, labels)
    with pytest.raises(ValueError, match="labels that can be sorted, got int and str"):
        VennAbers().fit(s, [1, "a", 1, "a"])


def draw_heavy_tails(rng, n):
    """Scores of one of several distributions whose largest value may be far from all others."""
    return [
        rng.standard_cauchy(n),
        rng.lognormal(0, 3, n),
        np.floor(3 * rng.pareto(1, n)),
        rng.normal(size=n) * 10.0 ** rng.integers(-8, 9),
        rng.beta(0.1, 5, n) * 1e-40,
        rng.poisson(3, n) - 1.0,
    ][rng.integers(6)]


def test_scores_with_heavy_tails_are_not_taken_for_markers(rng):
    far = []
    for _ in range(300):
        x = draw_heavy_tails(rng, int(rng.choice([20, 200, 1000])))
        far.append(far_side(x, np.ones(len(x))).any())
    assert np.mean(far) < 0.03


@pytest.mark.parametrize("calibrator", [PlattScaling(), VennAbers(), TemperatureScaling()])
@pytest.mark.parametrize("numbers", [[-9999], [1e300], [998, 999], [-999, -99, 999]])
def test_scores_that_bend_the_map_of_all_others_are_named(calibrator, numbers):
    rng = np.random.default_rng(0)
    x, marked = rng.normal(size=200), np.resize(numbers, 20)
    y = rng.random(200) < expit(2 * x)
    shown = re.escape(", ".join(f"{number:g}" for number in numbers))
    with pytest.warns(CalibrationWarning, match=f"20 of 200 examples have scores of {shown}"):
        clone(calibrator).fit(np.append(x[:180], marked), y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(calibrator).fit(x, y)


@pytest.mark.parametrize("mask", [-1e9, float(np.finfo(np.float32).min)])
def test_masked_logits_are_minus_infinity_at_fit(mask):
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=(200, 4)), rng.integers(0, 4, 200)
    is_masked = (rng.random(z.shape) < 0.2) & (np.arange(4) != y[:, None])
    models = [
        TemperatureScaling().fit(np.where(is_masked, of_mask, z), y) for of_mask in (mask, -np.inf)
    ]
    assert models[0].temperature_ == models[1].temperature_ < 100


def test_counts_of_probabilities_that_are_called_logits_are_doubted_as_scores_are():
    p, y = np.linspace(0.01, 0.99, 60), np.arange(60) % 3 > 0
    with pytest.warns(CalibrationWarning, match="and are read as logits"):
        PlattScaling(on="logit").fit_counts(ScoreCounts.from_scores(p, y, on="logit"))


def test_an_error_names_the_first_wrong_score():
    x = np.full(9, 0.5)
    x[[4, 7]] = np.nan
    with pytest.raises(ScoreError, match=r"got NaN in row 4 \(counted from 0\)") as caught:
        read_scores(x, 2)
    assert (caught.value.row, caught.value.column) == (4, None)
    p = np.tile([0.2, 0.3, 0.5], (9, 1))
    p[[5, 8], [2, 1]] = 1.5, 1.2
    with pytest.raises(ScoreError, match=r"got 1\.5 in row 5, column 2 ") as caught:
        read_scores(p, 3, "probability")
    assert (caught.value.row, caught.value.column) == (5, 2)
