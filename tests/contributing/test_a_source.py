"""A source, added from outside as CONTRIBUTING.md says: fitted by name, in help, saved, loaded."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

import vennforest
from vennforest import CalibratedClassifier
from vennforest.cli import main
from vennforest.contributing import (
    Fold,
    ModelScorer,
    model_scores,
    named_sources,
    register_source,
)


class FirstHalf:
    """Train on the first half of the rows, calibrate on the second: data in order of time."""

    def folds(self, estimator, data, *, seed, random_state, n_jobs):
        past, recent = np.array_split(np.arange(len(data)), 2)
        model = data.rows(past).fit(estimator)
        held = data.rows(recent)
        scores = model_scores(model, held.X, data.classes)
        scorer = ModelScorer(model, data.classes)
        return [Fold(model, scores, held.codes, held.weight, scorer, rows=held.numbers)]


if "first-half" not in named_sources():
    register_source("first-half", lambda settings: FirstHalf(), description="on the later half")

X, y = make_classification(400, flip_y=0.2, random_state=0)


def fitted():
    forest = RandomForestClassifier(20, random_state=0)
    return CalibratedClassifier(forest, calibrate_on="first-half", random_state=0).fit(X, y)


def test_it_is_fitted_by_its_name():
    model = fitted()
    assert model.calibrate_on_ == "first-half"
    assert np.array_equal(model.calibration_y_, y[200:])
    forest = RandomForestClassifier(20, random_state=0).fit(X[:200], y[:200])
    assert np.array_equal(model.calibration_scores_, forest.predict_proba(X[200:])[:, 1])
    assert np.isnan(model.oob_probability_[:200]).all()


def test_help_and_messages_list_it(capsys):
    assert main(["fit", "--help"]) == 0
    assert "first-half" in capsys.readouterr().out.replace("\n", " ")
    with pytest.raises(ValueError, match="first-half"):
        CalibratedClassifier(calibrate_on="no such source").fit(X, y)


def test_it_is_saved_loaded_and_shown(tmp_path, capsys):
    model = fitted()
    vennforest.save(model, tmp_path / "model.skops")
    again = vennforest.load(tmp_path / "model.skops")
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.calibrate_on_ == "first-half"
    assert main(["show", str(tmp_path / "model.skops")]) == 0
    assert "on the later half" in " ".join(capsys.readouterr().out.split())


def test_a_name_is_given_once():
    with pytest.raises(ValueError, match="name must be new"):
        register_source("cv", lambda settings: FirstHalf(), description="")
