"""The adapter for CalArena, against a file in that benchmark's format."""

import numpy as np
import pytest
from experiments.studies.calarena import CUSTOM_CALIBRATORS

from vennforest import BetaCalibration, PooledCalibration

FORMS = {
    "binary": lambda p: p,
    "binary, a column": lambda p: p[:, None],
    "multiclass": lambda p: np.column_stack([0.7 * (1 - p), 0.3 * (1 - p), p]),
}


def experiment(form, seed=0):
    """Return a group as the benchmark's file holds it: single precision, labels from 0."""
    rng = np.random.default_rng(seed)
    part = {}
    for name, n in (("cal", 200), ("test", 50)):
        p = rng.random(n)
        y = (rng.random(n) < p**2).astype(np.int64)
        if form == "multiclass":
            y = np.where(y == 1, 2, rng.integers(0, 2, n))
        part[f"probas_{name}"] = FORMS[form](p).astype(np.float32)
        part[f"labels_{name}"] = y
    return part


@pytest.fixture(scope="module", params=list(FORMS))
def group(request, tmp_path_factory):
    """Return the experiment, read from a file where h5py is installed."""
    part = experiment(request.param)
    try:
        import h5py
    except ImportError:
        return part
    path = tmp_path_factory.mktemp("calarena") / "small.h5"
    with h5py.File(path, "w") as file:
        for name, values in part.items():
            file[f"adult/forest/{name}"] = values
    with h5py.File(path) as file:
        return {name: values[:] for name, values in file["adult/forest"].items()}


@pytest.mark.parametrize("name", CUSTOM_CALIBRATORS)
def test_every_calibrator_answers(name, group):
    calibrator = CUSTOM_CALIBRATORS[name]()
    calibrator.fit(group["probas_cal"], group["labels_cal"])
    p = calibrator.predict_proba(group["probas_test"])
    k = 3 if group["probas_cal"].shape[1:] == (3,) else 2
    assert p.shape == (50, k)
    assert p.dtype == np.float64
    np.testing.assert_allclose(p.sum(axis=1), 1)


def test_the_answers_are_those_of_the_calibrators():
    group = experiment("binary")
    scores, y = group["probas_cal"].astype(float), group["labels_cal"]
    new = group["probas_test"].astype(float)
    for name, ours in [
        ("vennforest", PooledCalibration(on="probabilities")),
        ("vennforest-beta", BetaCalibration()),
    ]:
        there = CUSTOM_CALIBRATORS[name]()
        there.fit(group["probas_cal"], y)
        expected = ours.fit(scores, y).predict_proba(new)
        np.testing.assert_array_equal(there.predict_proba(group["probas_test"]), expected)


def test_a_class_without_examples_keeps_its_column():
    group = experiment("multiclass")
    seen = group["labels_cal"] != 1
    for name in CUSTOM_CALIBRATORS:
        calibrator = CUSTOM_CALIBRATORS[name]()
        calibrator.fit(group["probas_cal"][seen], group["labels_cal"][seen])
        assert calibrator.predict_proba(group["probas_test"]).shape == (50, 3), name
