"""Times with and without a time zone are never taken for each other."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from vennforest import CalibratedClassifier
from vennforest._validation import InputError
from vennforest.tables import TableColumns, table_pipeline

ZONED = ["2026-01-01T00:00:00+02:00", "2026-06-01T00:00:00Z", None, "2026-01-01 10:00-0500"]
NAIVE = ["2026-01-01T00:00:00", "2026-06-01", None, "2026-01-01 10:00"]


def forms(cells, utc):
    """The same times as text, as pandas's and as Arrow's timestamps."""
    text = pd.Series(cells, dtype=object)
    dates = pd.to_datetime(text, format="ISO8601", utc=utc)
    return [text, dates, dates.convert_dtypes(dtype_backend="pyarrow")]


@pytest.mark.parametrize("utc", [True, False])
def test_training_decides_whether_times_have_a_zone(utc):
    right, wrong = (forms(ZONED, True), forms(NAIVE, False))[:: 1 if utc else -1]
    rule = "with a time zone" if utc else "without a time zone"
    for trained in right:
        columns = TableColumns().fit(pd.DataFrame({"seen": trained}))
        declared = TableColumns(columns.as_types()).fit(pd.DataFrame({"seen": trained}))
        expected = columns.transform(pd.DataFrame({"seen": right[0]}))
        for fitted in (columns, declared):
            for new in right:
                found = fitted.transform(pd.DataFrame({"seen": new}))
                pd.testing.assert_frame_equal(found, expected)
            for new in wrong:
                with pytest.raises(InputError, match=rf"column 'seen' .* {rule}, as in .* row 1"):
                    fitted.transform(pd.DataFrame({"seen": new}))


def test_a_mixture_is_no_column_of_times():
    X = pd.DataFrame({"seen": [*ZONED, NAIVE[0]]})
    with pytest.raises(InputError, match=r"that all have a time zone, or none, got .* in row 5"):
        TableColumns().fit(X)
    assert TableColumns({"seen": "text"}).fit(X).kinds_ == ["text"]


def test_every_fold_reads_a_column_as_all_rows_show_it():
    """One word among 120 numbers: a fold without it would take the column for numbers."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"code": rng.integers(1, 4, 120).astype(str), "size": rng.normal(size=120)})
    X.loc[17, "code"] = "x"
    y = (X["size"] + rng.normal(size=120) > 0).astype(int)
    forest = table_pipeline(RandomForestClassifier(10, random_state=0), random_state=0)
    for options in ({"calibrate_on": "cv", "ensemble": True}, {"calibrate_on": "holdout"}):
        model = CalibratedClassifier(forest, random_state=0, **options).fit(X, y)
        assert {fitted[0].kinds_[0] for fitted in model.estimators_} == {"text"}
        assert np.isfinite(model.predict_proba(X)).all()
