"""Parts of a model that are replaced where it is stored, and the types that files may contain."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from vennforest.persistence.forests import PackedTrees
from vennforest.persistence.parts import from_stored, is_trusted, names_of_types, to_stored


@pytest.mark.parametrize("name", ["numpy", "warnings", "check_cv", "train_test_split", "numbers"])
def test_of_the_splitters_module_splitters_alone_are_read(name):
    assert not is_trusted(f"sklearn.model_selection._split.{name}")
    for splitter in ("KFold", "GroupShuffleSplit", "RepeatedStratifiedKFold", "PredefinedSplit"):
        assert is_trusted(f"sklearn.model_selection._split.{splitter}")


def test_forests_alone_are_replaced_and_a_part_that_occurs_twice_is_one_part():
    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(3, random_state=0).fit(X, y)
    pipeline = make_pipeline(StandardScaler(), forest).fit(X, y)
    scaler, linear = pipeline[0], LogisticRegression(max_iter=500).fit(X, y)
    model = {"both": [pipeline, (forest, linear)], "again": forest}
    stored = to_stored(model)
    assert type(stored["again"]) is PackedTrees and model["again"] is forest
    assert stored["again"] is stored["both"][1][0] is stored["both"][0][1]
    assert stored["both"][0][0] is scaler and stored["both"][1][1] is linear
    assert pipeline[1] is forest  # the model itself keeps its forest
    restored = from_stored(stored)
    assert restored["again"] is restored["both"][1][0] is restored["both"][0][1]
    np.testing.assert_array_equal(
        restored["both"][0].predict_proba(X), pipeline.predict_proba(X), strict=True
    )


def test_arrays_in_files_are_stored_as_arrays(tmp_path):
    mapped = np.memmap(tmp_path / "a", dtype=np.float64, mode="w+", shape=3)
    mapped[:] = [1, 2, 3]
    (stored,) = to_stored([mapped])
    assert type(stored) is np.ndarray and stored.tolist() == [1, 2, 3]


def test_types_that_are_trusted_have_full_names():
    names = names_of_types([LogisticRegression, "own.Model", "catboost"])
    assert names == [
        "sklearn.linear_model._logistic.LogisticRegression",
        "own.Model",
        "catboost.core.CatBoostClassifier",
    ]
