"""Files and documents in which one learnt value was replaced: refused, or answered as usual."""

import json
import os
import secrets
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import (
    BaggingClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.tree import DecisionTreeClassifier

pytest.importorskip("skops")

import vennforest
from support.forging import save_spoilt, with_nodes
from vennforest import PlattScaling, PooledCalibration, Venn
from vennforest._messages import InputError
from vennforest.export import from_json, to_json
from vennforest.persistence.parts import check_parts
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


@pytest.fixture
def forest():
    return RandomForestClassifier(3, random_state=0).fit(ROWS, ROWS[:, 0] + ROWS[:, 1] > 0)


def at(index, value):
    """Return a function that replaces cells of an array."""

    def change(array):
        array[index] = value
        return array

    return change


@pytest.mark.parametrize("value", [-1, 3, 1_000_000])
def test_features_beyond_the_row_are_refused(forest, value):
    with_nodes(forest.estimators_[1], feature=at(0, value))
    with pytest.raises(ValueError, match=r"features must be in \[0, 3\)"):
        check_parts(forest)


def test_features_of_leaves_are_refused(forest):
    tree = forest.estimators_[1]
    with_nodes(tree, feature=at(tree.tree_.children_left == -1, 1_000_000))
    with pytest.raises(ValueError, match=r"features must be in \[0, 3\)"):
        check_parts(forest)


@pytest.mark.parametrize("change", [lambda depth: depth - 1, lambda depth: 10**9])
def test_depths_are_those_of_the_nodes(forest, change):
    with_nodes(forest.estimators_[2], max_depth=change)
    with pytest.raises(ValueError, match="max_depth must be"):
        check_parts(forest)


def test_another_number_of_nodes_is_refused(forest):
    with_nodes(forest.estimators_[0], node_count=lambda n: n - 2)
    with pytest.raises(ValueError, match="node_count must be"):
        check_parts(forest)


def test_a_child_of_two_parents_is_refused(forest):
    tree = forest.estimators_[0]
    with_nodes(tree, left_child=at(0, tree.tree_.children_right[0]))
    with pytest.raises(ValueError, match="nodes must have one parent each"):
        check_parts(forest)


def test_trees_within_other_models_are_checked():
    y = ROWS[:, 0] > 0
    bag = BaggingClassifier(DecisionTreeClassifier(), 2, random_state=0).fit(ROWS, y)
    boosted = GradientBoostingClassifier(n_estimators=2).fit(ROWS, y)
    check_parts([bag, boosted])
    with_nodes(bag.estimators_[1], left_child=at(0, 10**6))
    tree = boosted.estimators_[1, 0].tree_
    tree.value[0] = np.nan
    for model in (bag, boosted):
        with pytest.raises(ValueError, match=r"children must come after|values must be finite"):
            check_parts(model)


@pytest.mark.parametrize(
    ("name", "value"), [("estimator", "a tree"), ("n_jobs", np.ones(2)), ("warm_start", {})]
)
def test_parameters_that_no_forest_has_are_refused(forest, name, value):
    setattr(forest, name, value)
    with pytest.raises(ValueError, match=name):
        check_parts(forest)


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


def test_leaves_without_probabilities_are_refused(forest):
    with_nodes(forest.estimators_[0], values=np.zeros_like)
    with pytest.raises(ValueError, match="values must sum to 1 in leaves"):
        check_parts(forest)


def test_counts_whose_sum_overflows_are_refused(tmp_path):
    model = Venn().fit([0.1, 0.2, 0.8, 0.9], [0, 1, 0, 1])
    model.counts_ = np.full((2, 2), 1e308)
    save_spoilt(model, tmp_path / "m.skops")
    with pytest.raises(InputError, match="counts_ must have a finite sum"):
        vennforest.load(tmp_path / "m.skops")
