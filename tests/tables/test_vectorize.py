"""Text, dates and categories as numbers."""

import numpy as np
import pandas as pd
import pytest
import skrub

from vennforest.tables import TableColumns, TableEncoder


def mixed_table(seed, n=300):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({
        "number": rng.normal(size=n),
        "few": rng.choice(["x", "y", "ü", None], n),
        "two": rng.choice(["u", "v"], n),
        "two or none": rng.choice(["u", "v", None], n),
        "many": [f"firm {i} and {i % 7}" if i % 11 else None for i in rng.integers(0, 300, n)],
        "day": pd.date_range("2020-01-01", periods=n),
        "hour": pd.date_range("2020-01-01", periods=n, freq="7h"),
        "category": pd.Categorical(rng.choice(["p", "q", "r"], n)),
        "empty": None,
        "constant": "k",
        "boolean": rng.choice([True, False], n),
        "forty": [f"t{i % 40}" for i in range(n)],
        "word": rng.choice([None, "None", "?"], n),
        "later": np.where(np.arange(n) < 200, None, "x"),
    })  # fmt: skip
    frame.loc[3:50, ["day", "hour"]] = pd.NaT
    return frame[list(rng.permutation(frame.columns))]


@pytest.mark.parametrize("seed", range(2))
def test_the_encoder_does_what_skrub_does_with_columns_of_known_kinds(seed):
    read = TableColumns().fit_transform(mixed_table(seed))
    # As categories, text is not taken for numbers, dates or missing cells a second time.
    text = {name: read[name].astype("category") for name in read if read[name].dtype.kind == "O"}
    theirs = skrub.TableVectorizer(high_cardinality=skrub.StringEncoder(random_state=5))
    ours = TableEncoder(random_state=5)
    expected = theirs.fit_transform(read.assign(**text).iloc[:200])
    found = ours.fit_transform(read.iloc[:200])
    assert ours.get_feature_names_out().tolist() == list(expected.columns)
    assert ours.sources_.tolist() == [theirs.output_to_input_[name] for name in expected.columns]
    assert {ours.encodings_["empty"], ours.encodings_["later"]} == {"empty"}
    np.testing.assert_array_equal(found, expected.to_numpy(np.float32))
    expected = theirs.transform(read.assign(**text).iloc[200:])
    np.testing.assert_array_equal(ours.transform(read.iloc[200:]), expected.to_numpy(np.float32))


def test_rows_are_encoded_alone_as_together():
    frame = mixed_table(9)
    columns = TableColumns().fit(frame)
    encoder = TableEncoder(random_state=0).fit(columns.transform(frame.iloc[:150]))
    together = encoder.transform(columns.transform(frame))
    for i in (0, 7, 40, 299):  # some of their cells are missing, some not met before
        alone = encoder.transform(columns.transform(frame.iloc[[i]]))
        np.testing.assert_allclose(alone[0], together[i], rtol=1e-5, atol=1e-6)
    assert encoder.transform(columns.transform(frame.iloc[:0])).shape == (0, together.shape[1])
