"""Identifiers, constants, leaks and misread cells are found, and what is none is left alone."""

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("skrub")

from vennforest.tables import screening  # noqa: E402
from vennforest.tables.target import split_target  # noqa: E402


def frame(n=120, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "row": np.arange(n) + 5,
            "back": np.arange(n)[::-1],
            "shuffled": rng.permutation(n),
            "customer_id": rng.permutation(10**6)[:n],
            "uuid": [f"{v:x}" for v in rng.integers(2**60, 2**62, n)],
            "name": [f"Smith {i}" for i in range(n)],
            "nearly": [f"k{i}" for i in range(n - 3)] + ["k0"] * 3,
            "salary": rng.permutation(10**6)[:n],
            "size": rng.normal(size=n),
            "word": rng.choice(["a", "b"], n),
            "note": [f"the patient number {i} came in the morning and was seen" for i in range(n)],
            "day": pd.date_range("2021-01-01", periods=n).strftime("%Y-%m-%d"),
            "money": [f"{v:,} €" for v in rng.permutation(10**6)[:n] + 10**6],
        }
    )


def test_identifiers_are_found_and_nothing_else():
    found = screening.identifiers(frame())
    assert list(found) == ["row", "back", "shuffled", "customer_id", "uuid", "name", "nearly"]
    assert found["row"] == "running numbers" and "nearly every row" in found["nearly"]
    assert screening.identifiers(frame(19)) == {}


def test_numbers_of_rows_are_found_where_rows_are_missing_and_quantities_are_not():
    """Rows that were filtered leave gaps in running numbers; a range of a number says what chance
    would do: n rows drawn from m whole numbers have n(n-1)/2m pairs of equals."""
    rng = np.random.default_rng(3)
    n = 686
    dropped = pd.DataFrame({"Kunde": np.delete(np.arange(700), rng.permutation(700)[: 700 - n])})
    assert list(screening.identifiers(dropped)) == ["Kunde"]
    bank = pd.DataFrame({"account": rng.permutation(250_000)[:10_000] + 15_565_701.0})
    assert list(screening.identifiers(bank)) == ["account"]
    wide = pd.DataFrame({"salary": rng.permutation(n * (n - 1) // 18)[:n]})  # 9 pairs
    assert screening.identifiers(wide) == {}
    drawn = 0
    for _ in range(300):
        values = rng.integers(0, n * (n - 1) // 20, n)  # 10 pairs, where there is no reason
        drawn += bool(screening.identifiers(pd.DataFrame({"salary": values})))
    assert drawn == 0


@pytest.mark.parametrize(
    ("name", "is_one", "of_person"),
    [
        ("CustomerId", True, True),
        ("patientID", True, True),
        ("RowNo", True, False),
        ("Kunden-Nr.", True, False),
        ("loan_id", True, False),
        ("userName", False, True),
        ("paid", False, False),
        ("Humid", False, False),
        ("casino", False, False),
        ("reuser", False, False),
        ("AID", False, False),
    ],
)
def test_names_of_identifiers_and_of_persons(name, is_one, of_person):
    assert bool(screening.ID.search(name)) == is_one
    assert bool(screening.PERSON.search(name)) == of_person


def test_identifiers_are_left_out_named_and_brought_back():
    table = frame().assign(y=np.tile(["u", "v"], 60))
    parted = split_target(table, "y")
    assert list(parted.X.columns) == ["salary", "size", "word", "note", "day", "money"]
    note = next(note for note in parted.notes if "identifiers" in note)
    assert "'customer_id': a different number in every row" in note and "--keep" in note
    kept = split_target(table, "y", keep=["name", "row"])
    assert {"name", "row"} <= set(kept.X.columns) and "uuid" not in kept.X.columns
    assert list(split_target(table, "y", screened=False).X.columns) == list(frame().columns)
    alone = split_target(table[["name", "y"]], "y")
    assert list(alone.X.columns) == ["name"] and "and are kept" in alone.notes[0]
    with pytest.raises(ValueError, match="there is no column"):
        split_target(table, "y", keep=["no one"])


def test_a_column_that_alone_predicts_the_label_is_named():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 400)
    X = pd.DataFrame(
        {
            "code": np.array(["d1", "d2", "h"])[y],
            "other code": [f"{'xyz'[k]}{rng.integers(4)}" for k in y],
            "number": y * 10 + rng.normal(size=400),
            "filled": np.where(y == 2, 1.0, np.nan),
            "good": y + rng.normal(size=400),
            "noise": rng.normal(size=400),
        }
    )
    assert screening.leaks(X, y) == ["code", "other code", "number"]
    assert screening.leaks(X, y == 2) == ["code", "other code", "number", "filled"]
    assert "alone predict the label" in split_target(X.assign(y=y), "y").notes[0]
    from sklearn.datasets import load_breast_cancer, load_iris, load_wine

    for load in (load_breast_cancer, load_iris, load_wine):  # strong columns are no leaks
        bunch = load(as_frame=True)
        assert screening.leaks(bunch.data, bunch.target.to_numpy()) == []
    rare = np.zeros(300, int)
    rare[:4] = 1
    assert screening.leaks(pd.DataFrame({"x": rare}), rare) == []  # too few to say


def test_what_became_text_is_named():
    n = 60
    X = pd.DataFrame(
        {
            "income": [f"{1000 + 7 * i:,} €" for i in range(n)],
            "rate": [f"{i / 4}%" for i in range(n)],
            "lab": ["<0.5", *[str(i / 7) for i in range(n - 1)]],
            "comma": [f"{i},5" for i in range(n)],
            "left": pd.date_range("2021-01-20", periods=n).strftime("%d-%b-%Y"),
            "either": [f"{1 + i % 12:02d}/{1 + i * 5 % 12:02d}/2021" for i in range(n)],
            "clear": pd.date_range("2021-01-01", periods=n).strftime("%d/%m/%Y"),
            "iso": pd.date_range("2021-01-01", periods=n).strftime("%Y-%m-%d"),
            "grade": ["1a", "2b", "3c"] * 20,
            "word": ["left", "right"] * 30,
        }
    )
    said = list(screening.misread(X).values())
    named = [next(name for name in X if repr(name) in text) for text in said]
    wanted = ["income", "rate", "lab", "comma", "either"]
    assert [name for name in named if name != "left"] == wanted
    assert "'<0.5'" in said[2] and "day and month could be either" in said[-1]
    assert screening.similar_labels(["Yes", "yes ", "no", "No  way", "no way"]) == [
        "The labels 'Yes', 'yes ' differ by case or spaces alone, and are taken for different "
        "classes.",
        "The labels 'No  way', 'no way' differ by case or spaces alone, and are taken for "
        "different classes.",
    ]
    assert screening.constants(X.assign(k=1, e=None)) == ["k"]


def test_what_comes_in_several_rows_is_named():
    rng = np.random.default_rng(2)
    who = np.repeat(np.arange(80), rng.integers(1, 7, 80))
    n = len(who)
    y = rng.integers(0, 2, 80)[who]
    X = pd.DataFrame(
        {
            "who": [f"w{k}" for k in who],  # one label each
            "patient": rng.integers(0, 80, n),  # by its name
            "age": rng.integers(20, 90, n),
            "word": rng.choice([f"v{i}" for i in range(60)], n),
            "size": rng.normal(size=n),
        }
    )
    assert list(screening.repeaters(X, y)) == ["who", "patient"]
    assert list(screening.repeaters(X, rng.integers(0, 2, n))) == ["patient"]
    note = next(n for n in split_target(X.assign(y=y), "y").notes if "--groups who" in n)
    assert "80 values" in note


def test_the_format_suggested_for_dates_reads_the_cell_shown():
    n = 120
    days = pd.date_range("2022-08-08", periods=n)
    mixed = [f"{d:%d.%m.%y}" if i % 2 == 0 else f"{d:%Y.%m.%d}" for i, d in enumerate(days)]
    (sentence,) = screening.misread(pd.DataFrame({"mixed": mixed})).values()
    assert "such as '08.08.22'" in sentence and '{"mixed": "date %d.%m.%y"}' in sentence
    years = [f"{d:%Y/%m/%d}" if i % 9 else f"{d:%d.%m.%y}" for i, d in enumerate(days[::-1])]
    (sentence,) = screening.misread(pd.DataFrame({"years": years[1:]})).values()
    assert '{"years": "date %Y/%m/%d"}' in sentence
    other = [f"{d:%d-%B-%y}" if i % 9 else "today" for i, d in enumerate(days)][1:]
    (sentence,) = screening.misread(pd.DataFrame({"other": other})).values()
    assert sentence.endswith("Write them as 2021-01-25.")


def test_times_with_and_without_a_time_zone_are_screened():
    y = np.arange(120) // 60
    days = pd.Series(pd.date_range("2022-08-08 03:00", periods=120, freq="7h"))
    days += pd.to_timedelta(y * 50, unit="D")
    days[5] = None
    for times in (days, days.dt.tz_localize("Europe/Vienna", ambiguous="NaT"), days - days[0]):
        X = pd.DataFrame({"when": times, "size": np.random.default_rng(0).normal(size=120)})
        assert screening.leaks(X, y) == ["when"]
