"""The search for segments, against its definition, and its error rates."""

import numpy as np
import pyarrow as pa
import pytest

pd = pytest.importorskip("pandas")

from scipy.stats import binom  # noqa: E402

from oracles import validation as oracle  # noqa: E402
from vennforest.validation import segments  # noqa: E402
from vennforest.validation.segments import _deviance  # noqa: E402


def drawn_table(rng, n):
    """Return columns of letters and digits, labels and probabilities, some of them 0 or 1."""
    X = pd.DataFrame({name: rng.choice(list("abc"), n, p=[0.6, 0.3, 0.1]) for name in ("u", "v")})
    X["w"] = rng.integers(1, 4, n)
    X.loc[rng.random(n) < 0.1, "v"] = None
    p = rng.choice([0, 0.1, 0.5, 0.9, 1], n, p=[0.1, 0.3, 0.3, 0.2, 0.1])
    return X, (rng.random(n) < rng.choice([p, np.full(n, 0.5)])).astype(int), p


def cells(X, p):
    """Return the rows of every segment by name, from the values themselves."""
    X, values = pd.DataFrame({"predicted probability": p}).join(X), {}
    for name in X:
        counts = X[name].value_counts()
        rare = counts.index[counts < 20]
        other = f": {len(rare)} other values"
        texts = [f" = {v:.6g}" if isinstance(v, float | int) else f" = {v}" for v in X[name]]
        texts = [other if v in rare else t for v, t in zip(X[name], texts, strict=True)]
        values[name] = [
            " missing" if pd.isna(v) else t for v, t in zip(X[name], texts, strict=True)
        ]
    rows = {"all rows": list(range(len(p)))}
    names = [name for name in values if len(set(values[name])) > 1]
    for number, a in enumerate(names):
        for b in [None, *names[number + 1 :]]:
            for i in range(len(p)):
                text = a + values[a][i] + (f" and {b}{values[b][i]}" if b else "")
                rows.setdefault(text, []).append(i)
    return {name: members for name, members in rows.items() if len(members) >= 20}


@pytest.mark.parametrize("by_group", [False, True])
def test_statistics_and_p_values_are_those_of_the_definition(by_group):
    rng = np.random.default_rng(seed := np.random.SeedSequence().entropy)
    for number in range(10):
        n = int(rng.integers(60, 200))
        X, y, p = drawn_table(rng, n)
        groups = rng.integers(n // 3, size=n) if by_group else None
        frame = segments(X, y, p, groups=groups, n_draws=19, random_state=number)
        rows = {k: v for k, v in cells(X, p).items() if len(v) < n or k == "all rows"}
        assert set(frame.index) == set(rows), seed
        draws = np.random.default_rng([number, n])
        codes = None if groups is None else np.unique(groups, return_inverse=True)[1]

        if codes is None:
            labels = (draws.random((19, n)) < p).astype(int)
        else:
            # Rows take the number of their group with the square root of the correlation.
            share = np.sqrt(oracle.pair_correlation(y, p, codes))
            own = draws.random((19, n))
            if share > 0:
                common = draws.random((19, codes.max() + 1))[:, codes]
                own = np.where(draws.random((19, n)) < share, common, own)
            labels = (own < p).astype(int)
        tables = [y, *labels]
        statistics, *simulated = np.array(
            [[oracle.scaled_deviance(rows[name], t, p) for name in frame.index] for t in tables]
        )
        simulated = np.array(simulated)
        assert frame["statistic"].tolist() == pytest.approx(statistics.tolist(), abs=1e-8), seed
        statistics, simulated = np.round(statistics, 8), np.round(simulated, 8)
        assert frame["pvalue"].tolist() == oracle.step_down(statistics.tolist(), simulated.tolist())
        for name, row in frame.iterrows():
            assert row["n"] == len(rows[name])
            assert row["expected"] == pytest.approx(p[rows[name]].mean(), abs=1e-12)
            assert row["observed"] == y[rows[name]].mean()


def test_the_deviance_of_one_segment():
    rng = np.random.default_rng(seed := np.random.SeedSequence().entropy)
    for _ in range(300):
        n = int(rng.integers(1, 12))
        p = rng.choice([0, 1, 0.01, 0.2, 0.5, np.nextafter(0.5, 1)], n)
        y = rng.integers(2, size=n)
        sums = (np.array([float(v)]) for v in (y.sum(), n, p.sum(), (p * (1 - p)).sum()))
        expected = oracle.scaled_deviance(range(n), y, p)
        assert _deviance(*sums)[0] == pytest.approx(expected, rel=1e-6, abs=1e-8), seed


@pytest.mark.slow
@pytest.mark.parametrize("n_group", [1, 4])
def test_tables_without_a_fault_raise_an_alarm_in_five_of_a_hundred(n_group):
    rng = np.random.default_rng(seed := np.random.SeedSequence().entropy)
    alarms = 0
    for number in range(1000):
        X = pd.DataFrame({"x": rng.normal(size=400), "c": rng.choice(list("abcd"), 400)})
        p = rng.beta(1, 3, 400)
        uniform = rng.random(400 // n_group).repeat(n_group)  # a group has one fate
        groups = None if n_group == 1 else np.arange(400) // n_group
        frame = segments(X, uniform < p, p, groups=groups, n_draws=99, random_state=number)
        alarms += frame["pvalue"].iloc[0] <= 0.05
    assert alarms <= binom.ppf(1 - 1e-6, 1000, 0.05), seed


def test_large_numbers_are_named_in_full():
    loans = np.arange(5_000_001, 5_000_201)
    names = segments(pd.DataFrame({"loan": loans}), loans % 2, np.full(200, 0.5), n_draws=9).index
    assert "loan 5,000,001 to 5,000,040" in names


def test_a_fault_is_named_in_words():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.integers(18, 90, 4000), "sales": rng.random(4000)})
    X["country"] = rng.choice(["Peru", "Chile", "Cuba"], 4000)
    X["id"] = [f"row {i}" for i in range(4000)]
    X["spent"] = np.where(rng.random(4000) < 0.8, 0, rng.random(4000))
    p = np.full(4000, 0.3)
    y = rng.random(4000) < np.where((X["country"] == "Peru") & (X["age"] > 75), 0.7, 0.3)
    frame = segments(X, y, p, n_draws=99)
    assert frame.index[0] == "age 77 to 89 and country = Peru"
    assert frame["pvalue"].iloc[0] == 0.01
    assert "spent = 0" in frame.index and not frame.index.str.contains("id|predicted").any()
    X["when"], X.index = pd.date_range("2020", periods=4000, freq="12h"), X.index[::-1]
    X["country"] = X["country"].astype("category")
    later = segments(X, y, p, n_draws=99)
    assert later.index[0] == frame.index[0] and "when = 2021" in later.index
    X = X.drop(columns="when").astype({"country": object})
    assert segments(X.to_numpy(), y, p, n_draws=9).index[0] == "0 77 to 89 and 2 = Peru"


def test_arrow_tables_have_the_segments_of_their_data_frame(rng):
    frame = pd.DataFrame({"age": rng.normal(size=200), "ward": rng.choice(["a", "b"], 200)})
    y, p = rng.integers(0, 2, 200), rng.random(200)
    expected = segments(frame, y, p, n_draws=9)
    for table in (pa.Table.from_pandas(frame), pa.RecordBatch.from_pandas(frame)):
        pd.testing.assert_frame_equal(segments(table, y, p, n_draws=9), expected)


@pytest.mark.parametrize(("n", "X", "message"), [
    (19, [[1]] * 19, "y must have at least 20 rows, got 19"),
    (30, [[i] for i in range(29)], "X must be a table of 30 rows, got"),
    (30, [[f"id {i}"] for i in range(30)], "X must have a column with values in 20 rows"),
    (30, [["x"]] * 30, "X must have a column with values in 20 rows or more, got rarer ones"),
])  # fmt: skip
def test_segments_refuses(n, X, message):
    with pytest.raises(ValueError, match=message):
        segments(X, np.arange(n) % 2, [0.5] * n)
