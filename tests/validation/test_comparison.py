"""Measures of two evaluations are compared as their rows could be, from their summaries alone."""

import json

import numpy as np
import pytest
from scipy.special import expit

from vennforest._validation import InputError
from vennforest.metrics import Estimates
from vennforest.validation import compare
from vennforest.validation.comparison import comparable

NO_EVENTS = {"log_loss", "brier", "auc", "observed_expected", "intercept", "slope"}


def summary(y, p, **options):
    part = comparable(Estimates(y, p, **options))
    return json.loads(json.dumps({"comparable": part}, allow_nan=False))


def drawn(rng, n, noise=0.5, k=2):
    """Return labels and the probabilities of two models of the same signal."""
    z = rng.normal(size=(n, k))
    p = np.exp(1.5 * z)
    p /= p.sum(axis=1, keepdims=True)
    y = (rng.random(n)[:, None] > p.cumsum(axis=1)).sum(axis=1).clip(0, k - 1)
    first, second = (np.exp(1.5 * z + noise * rng.normal(size=z.shape)) for _ in range(2))
    return y, *(q / q.sum(axis=1, keepdims=True) for q in (first, second))


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("has_groups", [False, True])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_paired_intervals_are_nearly_those_of_the_rows(k, has_groups, is_weighted):
    rng = np.random.default_rng(1)
    y, p, q = drawn(rng, 6000, k=k)
    options = {"groups": rng.integers(0, 900, 6000)} if has_groups else {}
    if is_weighted:
        options["sample_weight"] = rng.uniform(0.5, 2, 6000)
    frame, is_paired = compare(summary(y, p, **options), summary(y, q, **options))
    assert is_paired
    estimates = Estimates(y, q, **options)
    for name in ("log_loss", "brier", "auc"):
        direct, row = getattr(estimates, name)(versus=p), frame.loc[name]
        assert row["change"] == pytest.approx(direct.value, rel=1e-6)
        # Of 199 sums the standard error is known to a twentieth.
        assert row["high"] - row["low"] == pytest.approx(direct.high - direct.low, rel=0.15)


def test_few_rows_are_paired_exactly_whatever_their_order():
    y, p, q = drawn(np.random.default_rng(2), 180)
    frame, _ = compare(summary(y, p), summary(y, q))
    direct = Estimates(y, q).log_loss(versus=p)
    ends = frame.loc["log_loss", ["low", "high"]]
    assert ends.tolist() == pytest.approx([direct.low, direct.high], rel=1e-4)
    order = np.argsort(y, kind="stable")  # as in a table sorted by its label
    y, p, q = drawn(np.random.default_rng(2), 6000)
    order = np.argsort(y, kind="stable")
    frame, _ = compare(summary(y[order], p[order]), summary(y[order], q[order]))
    direct = Estimates(y, q).log_loss(versus=p)
    width = np.diff(frame.loc["log_loss", ["low", "high"]])[0]
    assert width == pytest.approx(direct.high - direct.low, rel=0.15)


def test_other_rows_have_the_sum_of_two_variances():
    rng = np.random.default_rng(3)
    (y, p, _), (other, q, _) = drawn(rng, 3000), drawn(rng, 2000)
    old, new = summary(y, p), summary(other, q)
    frame, is_paired = compare(old, new)
    assert not is_paired
    losses = [-np.log(p[np.arange(len(y)), y]) for y, p in ((y, p), (other, q))]
    error = np.sqrt(sum(loss.var(ddof=1) / len(loss) for loss in losses))
    row = frame.loc["log_loss"]
    assert row["change"] == pytest.approx(losses[1].mean() - losses[0].mean())
    assert (row["high"] - row["low"]) / 2 == pytest.approx(1.961 * error, rel=2e-3)


def test_observed_over_expected_is_compared_as_a_ratio_and_by_its_distance_from_1():
    rng = np.random.default_rng(4)
    z = rng.normal(size=8000) - 1
    y = (rng.random(8000) < expit(z)).astype(int)
    lower, higher, right = (expit(z + shift) for shift in (-0.5, 0.5, 0))
    old, new = summary(y, lower), summary(y, higher)
    row = compare(old, new)[0].loc["observed_expected"]
    assert row["change"] == pytest.approx(row["new"] / row["old"])
    assert row["pvalue"] < 1e-6
    assert compare(summary(y, right), new)[0]["verdict"]["observed_expected"] == "worse"
    assert compare(new, summary(y, right))[0]["verdict"]["observed_expected"] == "better"
    # Too low instead of too high by the same factor is no worse.
    intercepts = [line["verdict"] for line in (compare(old, new)[0].loc["intercept"],)]
    assert intercepts == [""]


@pytest.mark.parametrize("is_paired", [True, False])
def test_a_model_that_is_no_worse_is_rarely_called_worse(is_paired):
    rng, n_worse, n_seen = np.random.default_rng(5), 0, 0
    for _ in range(60):
        y, p, q = drawn(rng, 300)
        old = summary(*((y, p) if is_paired else drawn(rng, 300)[:2]))
        n_worse += (compare(old, summary(y, q))[0]["verdict"] == "worse").any()
        worse = expit(0.4 * (np.log(q[:, 1]) - np.log(q[:, 0])) + 1.0)
        n_seen += (compare(old, summary(y, worse))[0]["verdict"] == "worse").any()
    assert n_worse <= 8  # of 60 at a level of .05 at most, three standard errors above
    assert n_seen >= 57


def test_the_same_probabilities_do_not_differ():
    y, p, _ = drawn(np.random.default_rng(6), 400)
    frame, is_paired = compare(summary(y, p), summary(y, p))
    assert is_paired and (frame["pvalue"] == 1).all() and not frame["verdict"].any()


def test_rows_without_uncertain_probabilities_keep_their_place():
    y, p, q = drawn(np.random.default_rng(7), 150)
    q[:40] = np.eye(2)[y[:40]]
    frame, _ = compare(summary(y, p), summary(y, q))
    assert NO_EVENTS - set(frame.index) == set()
    parts = [Estimates(y, values).line().slope.contributions for values in (p, q)]
    assert [len(part) for part in parts] == [150, 150] and not parts[1][:40].any()


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (None, "new must be the output of check or report with --json"),
        ({"format": 99}, "new must be written by a version"),
        ({"units": "many"}, "new is damaged"),
        ({"measures": {"auc": {"value": 1}}}, "new is damaged"),
        (
            {"measures": {"auc": {"value": 1, "standard_error": 1, "blocks": [0, 1]}}},
            "new is damaged: blocks must be as many as those of old",
        ),
        ({"measures": {}}, "old and new must have a measure with an interval in common"),
    ],
)
def test_other_documents_are_refused(part, message):
    y, p, _ = drawn(np.random.default_rng(8), 60)
    new = summary(y, p)
    new["comparable"] = None if part is None else new["comparable"] | part
    with pytest.raises(InputError, match=message):
        compare(summary(y, p), new)


def test_other_classes_are_refused():
    y, p, _ = drawn(np.random.default_rng(9), 60)
    with pytest.raises(InputError, match="new must have the classes of old"):
        compare(summary(y, p), summary(np.where(y == 1, "yes", "no"), p))
    with pytest.raises(InputError, match="new must have the positive class of old, '1', got '0'"):
        compare(summary(y, p), summary(y, p, pos_label=0))


@pytest.mark.parametrize("entry", ["rows", "classes", "positive", "units", "measures"])
def test_an_entry_that_is_missing_is_named(entry):
    y, p, _ = drawn(np.random.default_rng(9), 60)
    new = summary(y, p)
    new["comparable"] = {key: new["comparable"][key] for key in new["comparable"] if key != entry}
    with pytest.raises(InputError, match=f"new is damaged: '{entry}'"):
        compare(summary(y, p), new)
