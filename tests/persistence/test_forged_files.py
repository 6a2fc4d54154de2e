"""Files and documents in which one learnt value was replaced: refused, or answered as usual."""

import copy
import json
import os
import secrets
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.naive_bayes import GaussianNB

pytest.importorskip("skops")

import vennforest
from support.forging import save_spoilt
from vennforest import CalibratedClassifier, PlattScaling, PooledCalibration, Venn
from vennforest._messages import InputError
from vennforest.export import from_json, to_json
from vennforest.persistence.forests import pack_forest
from vennforest.persistence.parts import from_stored, to_stored
from vennforest.sources import Fold

ROWS = np.random.default_rng(0).normal(size=(80, 3)).astype(np.float32)


def tried(*arguments):
    """Return the lines of forgeries that were tried in another process, which may crash."""
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    command = [sys.executable, "-m", "support.forged_models", *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0, (arguments, lines[-1:], done.stderr[-2000:])
    assert lines
    return lines


def assert_refused_or_answered(lines):
    results = [line.rpartition(" => ")[2] for line in lines]
    wrong = [
        line for line, r in zip(lines, results, strict=True) if r not in ("refused", "answered")
    ]
    assert not wrong, wrong[:5]
    assert {"refused", "answered"} == set(results)


def test_some_forgeries_of_every_type():
    assert_refused_or_answered(tried("each", 0, 71))


@pytest.mark.slow
def test_each_forgery_of_each_attribute():
    assert_refused_or_answered(tried("each", 0, 1))


@pytest.mark.slow
def test_five_thousand_drawn_forgeries():
    assert_refused_or_answered(tried("drawn", 5000, secrets.randbelow(2**31)))


@pytest.fixture(scope="module")
def packed():
    forest = RandomForestClassifier(3, random_state=0).fit(ROWS, ROWS[:, 0] + ROWS[:, 1] > 0)
    return pack_forest(forest)


def changed(packed, name, index, value):
    column = packed.nodes[name].copy()
    column[index] = value
    return replace(packed, nodes={**packed.nodes, name: column})


def test_features_of_leaves_are_refused(packed):
    leaves = packed.nodes["left_child"] == -1
    with pytest.raises(ValueError, match=r"leaves must have no feature"):
        changed(packed, "feature", leaves, 1_000_000).forest()


def test_features_beyond_the_row_are_refused(packed):
    with pytest.raises(ValueError, match=r"features must be in \[0, 3\)"):
        changed(packed, "feature", 0, 3).forest()


def test_depths_are_those_of_the_nodes(packed):
    trained = RandomForestClassifier(3, random_state=0).fit(ROWS, ROWS[:, 0] + ROWS[:, 1] > 0)
    expected = [tree.tree_.max_depth for tree in trained.estimators_]
    assert [tree.tree_.max_depth for tree in packed.forest().estimators_] == expected


def test_a_child_of_two_parents_is_refused(packed):
    right = packed.nodes["right_child"][0]
    with pytest.raises(ValueError, match="nodes must have one parent each"):
        changed(packed, "left_child", 0, right).forest()


@pytest.mark.parametrize(
    ("name", "value"), [("estimator", "a tree"), ("n_jobs", np.ones(2)), ("warm_start", {})]
)
def test_parameters_that_no_forest_has_are_refused(packed, name, value):
    forest = copy.copy(packed.bare_forest)
    setattr(forest, name, value)
    with pytest.raises(ValueError, match=name):
        replace(packed, bare_forest=forest).forest()


@pytest.mark.parametrize(("name", "of_first"), [("factors_", -5e-324), ("weights_", -1e-9)])
def test_a_pool_with_a_negative_part_is_refused(name, of_first):
    pool = PooledCalibration().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    part = getattr(pool, name)
    part[0 if name == "factors_" else "platt"] = of_first
    with pytest.raises(ValueError, match=name):
        pool._check_state()


def test_a_document_without_a_parameter_is_refused():
    document = json.loads(to_json(PlattScaling().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])))
    del document["calibrator"]["targets"]
    with pytest.raises(InputError, match="targets"):
        from_json(json.dumps(document))


def test_a_fold_whose_model_gives_no_scores_is_refused():
    fold = Fold({"a": 1}, np.array([0.1, 0.9]), np.array([0, 1]))
    with pytest.raises(ValueError, match="model must have predict_proba"):
        fold._check_state()


def test_leaves_without_probabilities_are_refused(packed):
    with pytest.raises(ValueError, match="values must sum to 1 in leaves"):
        replace(packed, values=np.zeros_like(packed.values)).forest()


def test_counts_whose_sum_overflows_are_refused(tmp_path):
    model = Venn().fit([0.1, 0.2, 0.8, 0.9], [0, 1, 0, 1])
    model.counts_ = np.full((2, 2), 1e308)
    save_spoilt(model, tmp_path / "m.skops")
    with pytest.raises(InputError, match="counts_ must have a finite sum"):
        vennforest.load(tmp_path / "m.skops")


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("left", 60_000, "children"),
        ("right", 0, "children"),
        ("feature_idx", 3, "features"),
        ("feature_idx", -1, "features"),
        ("is_categorical", 1, "categories"),
    ],
)
@pytest.mark.parametrize("is_blend", [False, True])
def test_links_of_boosting_are_checked(is_blend, field, value, message):
    y = (ROWS[:, 0] > 0) * 1
    boosting = HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=2)
    members = [("a", boosting), ("b", GaussianNB())] if is_blend else boosting
    model = CalibratedClassifier(members, random_state=0).fit(ROWS, y)
    stored = to_stored(model)
    from_stored(stored)
    fold = model._state.folds[0].model.members[0].folds[1] if is_blend else model._state.folds[1]
    fold.model._predictors[2][0].nodes[field][0] = value
    with pytest.raises(ValueError, match=message):
        from_stored(stored)
