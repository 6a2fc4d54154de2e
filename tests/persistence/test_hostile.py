"""Model files that mean harm: nothing runs, nothing is read out of bounds, no number is shown."""

import gzip
import io
import os
import struct
import time
import warnings
import zipfile
from functools import cache
from unittest import mock

import attrs
import numpy as np
import pytest
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.neighbors import KNeighborsClassifier, RadiusNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import vennforest
from models import make
from support.forging import (
    array_of,
    attributes,
    bytes_of,
    constant,
    parts_of,
    rewritten,
    save_spoilt,
    states,
    write_parts,
)
from vennforest import CalibratedClassifier, VennAbers
from vennforest._state import STORED, state_of, stored_name
from vennforest._validation import InputError
from vennforest.persistence import skops_nodes
from vennforest.persistence.forests import pack_trees, unpack_trees
from vennforest.persistence.skops_nodes import TREES as LOADER

pytestmark = pytest.mark.filterwarnings("ignore:.*out of bag.*:UserWarning")

KINDS = {name: (fit, rows) for name, fit, rows in make.models()}


@cache
def file_of(kind):
    """Return the bytes of the file of a kind of model."""
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "model.skops"
        vennforest.save(KINDS[kind][0](), path)
        return path.read_bytes()


@pytest.fixture
def saved(tmp_path):
    """Give a path to a saved model of a kind."""

    def write(kind):
        path = tmp_path / "model.skops"
        path.write_bytes(file_of(kind))
        return path

    return write


# --- nothing names a folder, a file or a callable ---------------------------------------------


class Payload:
    """Makes a folder when it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


def nested(memory):
    inner = make_pipeline(StandardScaler(), StandardScaler(), memory=memory)
    return make_pipeline(inner, LogisticRegression(max_iter=5000), memory=memory)


def memories(thing, seen=None):
    """Return every ``memory`` at any depth of an object's attributes."""
    seen = set() if seen is None else seen
    if id(thing) in seen or isinstance(thing, str | bytes | int | float | np.ndarray | type(None)):
        return []
    seen.add(id(thing))
    found = [thing.memory] if "memory" in getattr(thing, "__dict__", {}) else []
    inner = thing if isinstance(thing, list | tuple) else getattr(thing, "__dict__", {}).values()
    return found + [m for value in inner for m in memories(value, seen)]


def test_threads_and_talk_are_left_out(saved):
    path = saved("oob-two")

    def forge(schema, header, parts):
        for own in attributes(schema, "RandomForestClassifier"):
            own["n_jobs"], own["verbose"] = constant(10**9), constant(100)
        for own in attributes(schema, "Members"):
            own["n_jobs"] = constant(-(10**9))

    rewritten(path, forge)
    model = vennforest.load(path)
    assert model.estimator_.verbose == 0
    assert model.estimator_.n_jobs == os.cpu_count()
    rows = KINDS["oob-two"][1]
    whole = saved("oob-two")
    np.testing.assert_array_equal(
        model.predict_proba(rows), vennforest.load(whole).predict_proba(rows)
    )


@pytest.mark.parametrize("reads", ["filename", "file"])
def test_a_vectorizer_that_reads_files_is_refused(reads, tmp_path):
    texts = ["one two", "two three", "three one", "one one"] * 5
    steps = CountVectorizer(), LogisticRegression()
    fitted = make_pipeline(*steps).fit(texts, [0, 1] * 10)
    from sklearn.frozen import FrozenEstimator

    model = CalibratedClassifier(FrozenEstimator(fitted)).fit(texts, [0, 1] * 10)
    path = tmp_path / "model.skops"
    vennforest.save(model, path)
    np.testing.assert_array_equal(
        vennforest.load(path).predict_proba(texts), model.predict_proba(texts)
    )
    fitted.steps[0][1].input = reads
    with pytest.raises(InputError, match="must take texts themselves"):
        vennforest.save(model, path)
    save_spoilt(model, path)
    with pytest.raises(InputError, match="must take texts themselves"):
        vennforest.load(path)


def test_functions_are_numpys_own_or_need_trust(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.random((40, 3)), np.arange(40) % 2
    path = tmp_path / "model.skops"
    for function in (np.log1p, os.system, eval):
        steps = FunctionTransformer(np.log1p), LogisticRegression()
        model = CalibratedClassifier(make_pipeline(*steps), cv=2).fit(X, y)
        for fitted in model.estimators_:
            fitted.steps[0][1].func = function
        vennforest.save(model, path)
        if function is np.log1p:
            vennforest.load(path).predict_proba(X)
        else:
            with pytest.raises(InputError, match=rf"contains .*{function.__name__}.*, which venn"):
                vennforest.load(path)


def test_older_and_newer_protocols_of_skops_are_refused(saved):
    for protocol in (0, 1, 99, -1, True, "2"):
        path = saved("venn-abers-2")
        rewritten(path, lambda s, h, p, v=protocol: s.update(protocol=v))
        with pytest.raises(InputError, match=r"is damaged"):
            vennforest.load(path)


# --- structure --------------------------------------------------------------------------------


def is_unfitted(thing):
    """Tell whether it is an estimator that is but a parameter of another."""
    if not hasattr(thing, "get_params"):
        return False
    if stored_name(type(thing)) is not None:
        return vars(thing).keys() <= thing.get_params(False).keys()
    return not any(name.endswith("_") for name in vars(thing))


def only(model, kind):
    """Return the first object of a type within a model."""
    todo, seen = [model], set()
    while todo:
        thing = todo.pop(0)
        if type(thing).__name__ == kind and not is_unfitted(thing):
            return thing
        if id(thing) in seen or isinstance(thing, str | int | float | type(None) | type):
            continue
        seen.add(id(thing))
        if isinstance(thing, np.ndarray):
            todo += thing.ravel().tolist() if thing.dtype == object else []
        elif isinstance(thing, dict):
            todo += thing.values()
        elif isinstance(thing, list | tuple):
            todo += thing
        elif attrs.has(type(thing)):
            todo += (getattr(thing, one.name) for one in attrs.fields(type(thing)))
        elif stored_name(type(thing)) is not None:
            todo += state_of(thing).values()
        else:
            todo += getattr(thing, "__dict__", {}).values()
    raise AssertionError(f"no {kind}")


def save_corrupted(model, kind, change, path):
    """Save a model with the fields of its first object of a type changed."""
    if kind not in {cls.__name__ for cls in STORED.values()}:
        change(only(model, kind))
        save_spoilt(model, path)
        return
    done = []

    def changed(thing):
        state = dict(state_of(thing))
        if type(thing).__name__ == kind and not is_unfitted(thing) and not done:
            done.append(thing)
            change(state)
        return state

    with mock.patch.object(skops_nodes, "state_of", changed):
        save_spoilt(model, path)
    assert done, f"no {kind}"


def put(name, value):
    """Return what gives an attribute another value, which may follow from the old one."""

    def change(thing):
        if isinstance(thing, dict) and name not in thing:  # of an object that is not frozen
            holder = next(k for k in ("parameters", "fitted") if name in thing[k])
            inner = dict(thing[holder])
            thing[holder] = inner
            thing = inner
        old = thing[name] if isinstance(thing, dict) else getattr(thing, name)
        new = value(old) if callable(value) else value
        if isinstance(thing, dict):
            thing[name] = new
        else:
            object.__setattr__(thing, name, new)

    return change


def at(index, value):
    """Return what gives an element of an array another value."""

    def change(array):
        array = np.array(array)
        array[index] = value
        return array

    return change


def more(array):
    return np.append(array, array[-1:], axis=0)


def columns(n):
    return lambda array: np.hstack([array] * n)


ZEROS = np.zeros((1, 7))


def node(field, value):
    def change(predictor):
        inner = np.flatnonzero(predictor.nodes["is_leaf"] == 0)[0]
        nodes = predictor.nodes.copy()
        nodes[field][inner] = value
        predictor.nodes = nodes

    return change


def tree_value(index, value):
    def change(tree):
        tree.value[index] = value

    return change


def tree_threshold(value):
    def change(tree):
        tree.threshold[np.flatnonzero(tree.children_left >= 0)[0]] = value

    return change


CORRUPTIONS = [
    # (kind of model, kind of part, what is done to it)
    ("oob-two", "Tree", tree_threshold(np.nan)),
    ("oob-two", "Tree", tree_value((0, 0, 0), 1.5)),
    ("oob-two", "Tree", tree_value((-1, 0, 0), np.nan)),
    ("oob-two", "Tree", tree_value((-1, 0), 0.0)),
    ("oob-two", "RandomForestClassifier", put("classes_", np.array([0, 1, 2]))),
    ("oob-two", "RandomForestClassifier", put("n_features_in_", 2**31)),
    ("oob-two", "RandomForestClassifier", put("n_features_in_", 3)),
    ("oob-two", "RandomForestClassifier", put("estimators_", lambda _: [])),
    ("oob-two", "RandomForestClassifier", put("estimators_", lambda trees: trees[:-1])),
    ("oob-two", "RandomForestClassifier", put("n_outputs_", 2)),
    ("oob-two", "DecisionTreeClassifier", put("n_features_in_", 3)),
    ("oob-two", "DecisionTreeClassifier", put("n_classes_", 3)),
    ("oob-two", "Membership", put("n", 10**6)),
    ("oob-two", "Membership", put("n", -1)),
    ("oob-two", "Membership", put("bits", lambda bits: bits[:-1])),
    ("oob-three", "Membership", put("bits", lambda bits: bits | np.uint64(2**63))),
    ("oob-two", "Membership", put("bits", np.zeros_like)),
    ("oob-two", "OutOfBagScorer", put("kept", lambda kept: np.arange(10**6))),
    ("oob-two", "OutOfBagScorer", put("kept", lambda kept: np.array([-1, 0, 1]))),
    ("oob-two", "OutOfBagScorer", put("subforest", "none")),
    ("oob-two", "OutOfBagScorer", put("seed", -1)),
    ("oob-two", "Fitted", put("n_given", 10**6)),
    ("oob-two", "Fitted", put("classes", np.array([0, 1, 2]))),
    ("oob-two", "Fitted", put("classes", np.array([1, 0]))),
    ("oob-two", "FittedClassifier", put("classes", np.array([0, 2]))),
    ("oob-two", "FittedClassifier", put("folds", lambda _: ())),
    ("oob-two", "Fold", put("codes", lambda codes: codes[:-1])),
    ("oob-two", "Fold", put("codes", at(0, 7))),
    ("oob-two", "Fold", put("scores", at(0, np.inf))),
    ("oob-three", "RandomForestClassifier", put("classes_", np.array([0, 1]))),
    ("oob-bagging-two", "BaggingClassifier", put("estimators_features_", lambda f: [f[0] + 9] * 5)),
    ("oob-bagging-two", "BaggingClassifier", put("classes_", np.arange(9))),
    ("oob-bagging-two", "GaussianNB", put("classes_", np.array([0, 5]))),
    ("cv-two", "Fold", put("codes", at(0, 200))),
    ("cv-two", "ModelScorer", put("classes", np.array([0, 9]))),
    ("cv-boosting-two", "GradientBoostingClassifier", put("classes_", np.arange(5))),
    ("cv-boosting-two", "GradientBoostingClassifier", put("n_features_in_", 2)),
    ("cv-boosting-two", "GradientBoostingClassifier", put("estimators_", columns(9))),
    ("cv-boosting-two", "GradientBoostingClassifier", put("init_", LogisticRegression())),
    ("cv-histogram-two", "TreePredictor", node("feature_idx", 2**31)),
    ("cv-histogram-two", "TreePredictor", node("feature_idx", 100)),
    ("cv-histogram-two", "TreePredictor", node("left", 2**31)),
    ("cv-histogram-two", "TreePredictor", node("left", 0)),
    ("cv-histogram-two", "TreePredictor", node("num_threshold", np.nan)),
    ("cv-histogram-two", "TreePredictor", node("is_categorical", 1)),
    ("cv-histogram-two", "HistGradientBoostingClassifier", put("n_features_in_", 3)),
    ("cv-histogram-two", "HistGradientBoostingClassifier", put("classes_", np.arange(4))),
    ("cv-histogram-two", "HistGradientBoostingClassifier", put("_baseline_prediction", ZEROS)),
    ("cv-histogram-two", "_BinMapper", put("is_categorical_", lambda c: c[:-1])),
    ("cv-histogram-two", "_BinMapper", put("bin_thresholds_", lambda b: b[:-1])),
    ("cv-vectors-two", "SVC", put("support_vectors_", lambda v: v[:-1])),
    ("cv-vectors-two", "SVC", put("_n_support", at(0, 1000))),
    ("cv-vectors-two", "SVC", put("_dual_coef_", lambda c: c[:, :-1])),
    ("cv-vectors-two", "SVC", put("support_", at(0, 10**6))),
    # numbers that are no probabilities
    ("venn-abers-2", "StepTable", put("Y", lambda Y: Y * 1000)),
    ("venn-abers-2", "StepTable", put("W", np.zeros_like)),
    ("venn-abers-grid-score-2", "Fitted", put("n_given", 40)),
    ("venn-abers-grid-score-2", "ScoreGrid", put("cells", 0)),
    ("venn-abers-grid-score-2", "ScoreGrid", put("cells", 2**40)),
    ("venn-abers-grid-score-2", "ScoreGrid", put("high", 0.0)),
    ("venn-abers-grid-logit-2", "ScoreGrid", put("high", 2.0)),
    ("venn-abers-grid-score-2", "ScoreGrid", put("on", "rank")),
    ("venn-abers-grid-score-2", "Fitted", put("grid", 16)),
    ("venn-abers-2", "StepTable", put("W", lambda W: W + 1)),
    ("venn-abers-2", "StepTable", put("Y", lambda Y: Y + 1)),
    ("venn-abers-2", "StepTable", put("W", more)),
    ("venn-abers-2", "StepTable", put("x", lambda x: x[::-1])),
    ("venn-abers-2", "StepTable", put("x", at(0, np.nan))),
    ("venn-abers-2", "StepTable", put("Y", at(1, -1.0))),
    ("venn-abers-2", "Examples", put("labels", at(0, 2))),
    ("venn-abers-2", "Examples", put("labels", lambda y: 1 - y)),
    ("venn-abers-2", "Examples", put("labels", more)),
    ("venn-abers-2", "Examples", put("scores", at(0, 7.5))),
    ("venn-abers-2", "Examples", put("scores", None)),
    ("venn-abers-2-weights", "Examples", put("weight", at(0, 0.0))),
    ("venn-abers-2-weights", "Examples", put("weight", at(0, -3.0))),
    ("venn-abers-2-weights", "Examples", put("weight", at(0, np.inf))),
    ("venn-abers-2-weights", "Examples", put("weight", lambda w: w * 2)),
    ("venn-abers-2", "Fitted", put("row_of", lambda _: np.arange(40) + 1)),
    ("venn-abers-2", "StepTables", put("tables", lambda t: t * 2)),
    ("platt-2", "PlattMap", put("slope", np.inf)),
    ("platt-2", "Standard", put("spread", 0.0)),
    ("beta-2", "Interior", put("low", -0.5)),
    ("venn-3", "Categories", put("counts", lambda c: c * 2)),
    ("venn-3", "Categories", put("cell", at(0, 10**6))),
    ("venn-3", "Categories", put("cell", at(0, -1))),
    ("venn-3", "LabelTaxonomy", put("n_categories_", 2)),
    ("venn-2-weights", "Categories", put("weight", at(0, -1.0))),
    ("venn-nearest-2", "NeighbourCells", put("_cell", lambda c: np.full_like(c, -1))),
    ("venn-nearest-2", "NeighbourCells", put("_below", np.zeros_like)),
    ("venn-nearest-2", "NeighbourCells", put("_above", lambda a: a + 100)),
    ("venn-nearest-2", "NeighbourCells", put("_coordinate", at(0, 5))),
    ("venn-nearest-2", "NeighbourCells", put("n_categories_", 10**9)),
    ("venn-confidence-bins-3", "ConfidenceBins", put("n_categories_", 29)),
    ("venn-confidence-bins-3", "ConfidenceBins", put("bins", 10**9)),
    ("venn-margin-2", "Margin", put("threshold", np.nan)),
    ("isotonic-2", "StepMap", put("values", lambda v: v * 30)),
    ("isotonic-2", "StepMap", put("values", lambda v: v[::-1])),
    ("isotonic-2", "StepMap", put("ends", lambda e: e[:-1])),
    ("isotonic-linear-2", "LinearMap", put("values", lambda v: v - 1)),
    ("isotonic-linear-2", "LinearMap", put("knots", lambda k: k[::-1])),
    ("platt-3", "Maps", put("maps", lambda m: m[:-1])),
    ("platt-2", "PlattMap", put("intercept", np.nan)),
    ("beta-2", "BetaMap", put("a", -1.0)),
    ("bostrom-2", "Sigmoid", put("A", 10**6)),
    ("temperature-2", "Temperature", put("beta", np.inf)),
    ("temperature-2", "Temperature", put("unit", 0.0)),
    ("temperature-2", "Temperature", put("interior", "nothing")),
    # groups, and other shares of the classes
    ("oob-by-two", "Groups", put("by", 1.5)),
    ("oob-by-two", "Groups", put("smallest", -1)),
    ("oob-by-two", "Grouping", put("values", lambda v: v[::-1])),
    ("oob-by-two", "Grouping", put("values", lambda v: v[:-1])),
    ("oob-by-two", "Grouping", put("values", lambda v: v[:0])),
    ("oob-by-two", "Grouping", put("values", at(0, np.nan))),
    ("oob-by-two", "Grouping", put("missing", 1)),
    ("oob-by-two", "Grouping", put("groups", 0)),
    ("oob-by-two", "GroupedFold", put("of_group", at(0, 10**6))),
    ("oob-by-two", "GroupedFold", put("of_group", at(0, -2))),
    ("oob-by-two", "GroupedFold", put("of_group", lambda g: g[:-1])),
    ("oob-by-two", "GroupedFold", put("cells", lambda _: ())),
    ("oob-by-two", "Cell", put("rows", at(-1, 10**6))),
    ("oob-by-two", "Cell", put("rows", at(0, -1))),
    ("oob-by-two", "Cell", put("rows", lambda r: r[:-1])),
    ("oob-by-two", "Cell", put("rows", lambda r: r[::-1])),
    ("oob-by-two", "Cell", put("calibrator", None)),
    ("oob-by-two", "Cell", put("point", LogisticRegression())),
    ("oob-by-two", "Fold", put("by", lambda b: b[:-1])),
    ("oob-by-two", "Fold", put("by", at(0, 10**6))),
    ("oob-by-two", "Fold", put("by", at(0, -1))),
    ("oob-by-two", "Fold", put("by", None)),
    ("oob-by-two", "CalibratedGroups", put("folds", None)),
    ("oob-by-two", "CalibratedGroups", put("folds", lambda g: g * 2)),
    ("oob-by-two", "CalibratedGroups", put("grouping", None)),
    ("oob-by-two", "CalibratedGroups", put("ridge", -1.0)),
    ("cv-by-three", "CalibratedGroups", put("folds", lambda g: g[::-1])),
    ("oob-by-three", "GroupCorrection", put("base", lambda _: VennAbers())),
    ("oob-by-three", "CorrectedMap", put("correction", None)),
    ("prior-three", "ShiftedPrior", put("shares", None)),
    ("prior-three", "ShiftedPrior", put("shares", lambda p: p * 2)),
    ("prior-three", "ShiftedPrior", put("shares", np.array([0, 0.5, 0.5]))),
    ("prior-three", "ShiftedPrior", put("factors", None)),
    ("prior-three", "ShiftedPrior", put("factors", lambda f: f[:-1])),
    ("prior-three", "ShiftedPrior", put("factors", at(0, np.inf))),
    ("prior-three", "ShiftedPrior", put("factors", at(0, -1.0))),
    ("prior-three", "ShiftedPrior", put("factors", at(0, 0.0))),
    # evidence
    ("monitor-ville", "Progress", put("form", "none")),
    ("monitor-ville", "Progress", put("form", "shiryaev-roberts")),
    ("monitor-ville", "Progress", put("watch", "objects")),
    ("monitor-ville", "Monitor", put("parameters", lambda p: {**p, "alpha": 2.0})),
    ("monitor-ville", "Monitor", put("parameters", lambda p: {**p, "form": "shiryaev-roberts"})),
    ("monitor-ville", "Monitor", put("parameters", lambda p: {**p, "alfa": 0.05})),
    ("monitor-ville", "Monitor", put("progress", 5)),
    ("monitor-ville", "Progress", put("classes", lambda c: np.append(c, "z"))),
    ("monitor-ville", "Progress", put("channels", lambda c: c[:-1])),
    ("monitor-ville", "Progress", put("channels", lambda c: (None,) * len(c))),
    ("monitor-scores-3", "Progress", put("channels", lambda c: c[::-1])),
    ("monitor-scores-3", "Progress", put("channels", lambda c: c[3:] + c[3:6])),
    ("monitor-ville", "Progress", put("channels", lambda c: c[:1] * 3)),
    ("monitor-ville", "Progress", put("seeds", lambda s: s[:-1])),
    ("monitor-ville", "Progress", put("seeds", lambda s: (-1, *s[1:]))),
    ("monitor-ville", "Progress", put("n_seen", -1)),
    ("monitor-ville", "Progress", put("n_seen", 10**6)),
    ("monitor-ville", "Progress", put("n_unlabelled", 0.5)),
    ("monitor-ville", "Progress", put("alarm", 12)),
    ("monitor-ville", "Progress", put("alarm_time", np.nan)),
    ("monitor-ville", "Progress", put("last_time", np.nan)),
    ("monitor-oob", "Monitor", put("parameters", lambda p: {**p, "model": None})),
    ("monitor-ville", "Progress", put("recent", None)),
    ("monitor-ville", "Progress", put("reference_rows", 5)),
    ("monitor-ville", "Progress", put("n_known", 10**6)),
    ("monitor-ville", "RecentRows", put("window", 1)),
    ("monitor-ville", "RecentRows", put("hashes", lambda h: np.append(h, h[:1]))),
    ("monitor-ville", "RecentRows", put("hashes", lambda h: h.astype(np.int64))),
    ("monitor-ville", "RecentRows", put("batches", np.full((1, 2), -1))),
    ("monitor-ville", "KnownRows", put("hashes", lambda h: h[::-1])),
    ("monitor-ville", "KnownRows", put("window", 0)),
    ("monitor-ville", "Progress", put("log_now", np.nan)),
    ("monitor-ville", "Progress", put("log_max", np.inf)),
    ("monitor-ville", "Progress", put("log_max", -50.0)),
    ("monitor-ville", "Progress", put("own_reference", True)),
    ("monitor-ville", "Channel", put("code", 0)),
    ("monitor-ville", "Channel", put("counts", lambda c: c[:-1])),
    ("monitor-ville", "Channel", put("counts", at((0, 0), -5))),
    ("monitor-ville", "Channel", put("counts", np.zeros_like)),
    ("monitor-ville", "Channel", put("counts", lambda c: c + 1)),
    ("monitor-ville", "Channel", put("counts", lambda c: c.astype(np.int32))),
    ("monitor-ville", "Channel", put("weights", np.zeros_like)),
    ("monitor-ville", "Channel", put("weights", lambda w: w / 2)),
    ("monitor-ville", "Channel", put("weights", at((0, 0), np.nan))),
    ("monitor-ville", "Channel", put("scales", at(0, np.nan))),
    ("monitor-ville", "Channel", put("scales", at(0, -np.inf))),
    ("monitor-ville", "Channel", put("scales", lambda s: s[:1])),
    ("monitor-ville", "Channel", put("sums", at(0, np.inf))),
    ("monitor-ville", "Channel", put("begins", at(0, 12))),
    ("monitor-ville", "Channel", put("begins", at(0, -1))),
    ("monitor-ville", "Channel", put("times", lambda t: t[:-1])),
    ("monitor-shiryaev-roberts", "Channel", put("weights", np.zeros_like)),
    ("monitor-ville", "Channel", put("weights", lambda w: w * 0.9)),
    ("monitor-ville", "Bets", put("kind", "luck")),
    ("monitor-ville", "Bets", put("edges", lambda e: e[:-1])),
    ("monitor-ville", "Bets", put("edges", lambda e: e[::-1])),
    ("monitor-ville", "Bets", put("edges", at(0, np.nan))),
    ("monitor-ville", "Bets", put("limits", at(0, 0.5))),
    ("monitor-ville", "Bets", put("factors", lambda f: f * 1.5)),
    ("monitor-ville", "Bets", put("factors", at((0, 0), -1.0))),
    ("monitor-ville", "Bets", put("factors", lambda f: f[:-1])),
    ("table", "ColumnFormats", put("kinds", lambda k: k[:-1])),
    ("table", "ColumnFormats", put("kinds", lambda k: ("code", *k[1:]))),
    ("table-types", "ColumnFormats", put("formats", lambda f: ("1,234", *f[1:]))),
    ("table-types", "ColumnFormats", put("formats", lambda f: (5, *f[1:]))),
    ("table-types", "TableColumns", put("parameters", {"types": {"size": "numbers"}})),
    ("table-types", "TableColumns", put("parameters", {"types": ["size"]})),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "part", "change"),
    CORRUPTIONS,
    ids=[f"{i}-{kind}-{part}" for i, (kind, part, _) in enumerate(CORRUPTIONS)],
)
def test_what_fit_could_not_have_left_is_refused(kind, part, change, saved):
    path = saved(kind)
    model = vennforest.load(path)
    save_corrupted(model, part, change, path)
    with pytest.raises(
        InputError, match=r"model\.skops is damaged: .*(not a result of fit|must|\d)"
    ):
        vennforest.load(path)


@pytest.mark.parametrize("depth", [0, -3, 10**9])
@pytest.mark.parametrize("kind", ["oob-two", "cv-boosting-two"])
def test_the_depth_of_trees_is_counted_anew(depth, kind, saved):
    path = saved(kind)

    def forge(schema, header, parts):
        for state in states(schema):
            if state["__loader__"] == "TreeNode":
                state["content"]["content"]["max_depth"] = constant(depth)
            if state["__loader__"] == LOADER:
                file = state["content"]["depths"]["file"]
                parts[file] = bytes_of(np.full_like(array_of(parts[file]), depth))

    rewritten(path, forge)
    with pytest.raises(InputError, match=r"max_depth must be|depths must be"):
        vennforest.load(path)


@pytest.mark.parametrize("place", [0, 2])
@pytest.mark.parametrize("value", [2**31, 2**62, 0, -1, "x"])
def test_trees_are_not_even_made_with_numbers_that_do_not_fit(place, value, saved):
    path = saved("cv-boosting-two")

    def forge(schema, header, parts):
        forged = 0
        for state in states(schema):
            if state["__loader__"] == "TreeNode":
                state["__reduce__"]["args"]["content"][place] = constant(value)
                forged += 1
        assert forged

    rewritten(path, forge)
    with pytest.raises(InputError, match="is damaged"):
        vennforest.load(path)


def first_node(field, value):
    def change(nodes):
        nodes[field][0] = value
        return nodes

    return change


PACKED = [
    ("counts", lambda c: c[:-1], "depths must have shape"),
    ("counts", lambda c: np.append(c, 1), "depths must have shape"),
    ("counts", at(0, 0), "counts must be"),
    ("counts", at(0, -1), "counts must be"),
    ("counts", at(0, 2**62), "counts must be"),
    ("counts", lambda c: np.full_like(c, 2**30), "less than"),
    ("counts", lambda c: c + np.array([1, -1, 0, 0, 0]), "not a result of fit"),
    ("counts", lambda c: c.astype(float), "counts must not be of type"),
    ("counts", lambda c: c[:, None], "counts must have shape"),
    ("counts", lambda c: c[:0], "there must be a tree"),
    ("depths", lambda d: d[:-1], "depths must have shape"),
    ("depths", lambda d: d + 1, "max_depth must be"),
    ("seeds", lambda s: s[1:], "seeds must have shape"),
    ("seeds", at(0, -1), "seeds must be"),
    ("seeds", at(0, 2**32), "seeds must be"),
    ("values", lambda v: v[:-1], "values must have shape"),
    ("values", lambda v: v[:, :1], "values must have shape"),
    ("values", lambda v: np.column_stack([v, v[:, 0]]), "values must have shape"),
    ("values", lambda v: v.astype(np.float32), "values must not be of type"),
    ("values", at((0, 0), np.nan), "values must be finite"),
    ("values", at((0, 0), 2.0), "shares must be in"),
    ("values", np.zeros_like, "shares of a leaf must sum to 1"),
    ("nodes", lambda n: n[:-1], "nodes must be"),
    ("nodes", lambda n: n[:, None], "nodes must be"),
    ("nodes", lambda n: n["threshold"], "scikit-learn's type"),
    ("nodes", lambda n: n[["left_child", "right_child"]], "incompatible dtype"),
    ("nodes", first_node("left_child", 10**6), "children|child"),
    ("nodes", first_node("left_child", -2), "children|child|leaves"),
    ("nodes", first_node("right_child", 0), "children|child"),
    ("nodes", first_node("feature", 10**6), "features must be in"),
    ("nodes", first_node("feature", -3), "features must be in"),
    ("nodes", first_node("threshold", np.nan), "thresholds must be numbers"),
]
"""Arrays of all trees of a forest, what is done to them, and what is said of it."""


@pytest.mark.parametrize(("name", "change", "said"), PACKED, ids=range(len(PACKED)))
def test_arrays_that_are_no_forest_are_refused(name, change, said, saved):
    path = saved("oob-two")

    def forge(schema, header, parts):
        forged = [state for state in states(schema) if state["__loader__"] == LOADER]
        assert len(forged) == 1
        file = forged[0]["content"][name]["file"]
        parts[file] = bytes_of(change(array_of(parts[file]).copy()))

    rewritten(path, forge)
    with pytest.raises(InputError, match=rf"is damaged: .*({said})"):
        vennforest.load(path)


@pytest.mark.parametrize(
    ("part", "type_name"),
    [
        ("forest", "sklearn.ensemble._bagging.BaggingClassifier"),
        ("forest", "sklearn.tree._classes.DecisionTreeClassifier"),
        ("tree", "sklearn.tree._classes.DecisionTreeRegressor"),
        ("tree", "sklearn.ensemble._forest.RandomForestClassifier"),
        ("itself", "os.PathLike"),
    ],
)
def test_other_types_are_no_forest(part, type_name, saved):
    path = saved("oob-two")

    def forge(schema, header, parts):
        for state in states(schema):
            if state["__loader__"] == LOADER:
                node_ = state if part == "itself" else state["content"][part]
                node_["__module__"], _, node_["__class__"] = type_name.rpartition(".")

    rewritten(path, forge)
    with pytest.raises(InputError, match=r"is damaged|does not make by itself"):
        vennforest.load(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [("n_features_in_", 2**31), ("n_features_in_", 0), ("n_features_in_", "x"), ("classes_", 3)],
)
def test_trees_of_a_forest_are_made_of_numbers_that_fit(name, value, saved):
    path = saved("oob-two")

    def forge(schema, header, parts):
        for state in states(schema):
            if state["__loader__"] == LOADER:
                state["content"]["tree"]["content"]["content"][name] = constant(value)

    rewritten(path, forge)
    with pytest.raises(InputError, match="is damaged"):
        vennforest.load(path)


@pytest.mark.parametrize("field", ["left_child", "right_child"])
def test_two_parents_of_one_node_are_refused(field, saved):
    """A packed tree is written breadth-first: with shared children it would outgrow its place."""
    path = saved("oob-three")

    def forge(schema, header, parts):
        for name, data in parts.items():
            array = array_of(data)
            if array.dtype.names and field in array.dtype.names and len(array) > 4:
                array[field][0] = len(array) - 1
                parts[name] = bytes_of(array)

    rewritten(path, forge)
    with pytest.raises(InputError, match="child of one other"):
        vennforest.load(path)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("kind", [RandomForestClassifier, ExtraTreesClassifier])
def test_forests_are_the_same_after_packing(kind, k, tmp_path):
    rng = np.random.default_rng(k)
    X, y = rng.normal(size=(80, 4)), rng.integers(0, k, 80)
    X[rng.random(X.shape) < 0.1] = np.nan
    fitted = kind(7, max_depth=None, bootstrap=True, random_state=3, oob_score=True).fit(X, y)
    again = unpack_trees(pack_trees(fitted))
    for one, other in zip(fitted.estimators_, again.estimators_, strict=True):
        assert list(vars(one)) != [] and vars(one).keys() == vars(other).keys()
        assert one.random_state == other.random_state
        mine, theirs = one.tree_.__getstate__(), other.tree_.__getstate__()
        for field in mine["nodes"].dtype.names:  # what lies between the fields is anything
            assert mine["nodes"][field].tobytes() == theirs["nodes"][field].tobytes()
        assert mine["values"].tobytes() == theirs["values"].tobytes()
        assert (mine["max_depth"], mine["node_count"]) == (
            theirs["max_depth"],
            theirs["node_count"],
        )
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    np.testing.assert_array_equal(again.feature_importances_, fitted.feature_importances_)
    for a, b in zip(again.estimators_samples_, fitted.estimators_samples_, strict=True):
        np.testing.assert_array_equal(a, b)
    packed = pack_trees(fitted)
    assert not hasattr(packed.forest, "estimators_")
    # scikit-learn's records have gaps, in which the process's memory must not reach the file.
    assert packed.nodes.tobytes() == pack_trees(fitted).nodes.tobytes()
    filled = sum(packed.nodes.dtype[name].itemsize for name in packed.nodes.dtype.names)
    gaps = packed.nodes.view(np.uint8).reshape(len(packed.nodes), -1)[:, filled:]
    assert not gaps.any()
    fresh = rng.normal(size=(80, 4))  # rows that the forest was not trained on: not out of bag
    model = CalibratedClassifier(FrozenEstimator(fitted)).fit(fresh, y)
    vennforest.save(model, tmp_path / "m.skops")
    schema, _, parts = parts_of(tmp_path / "m.skops")
    assert sum(state["__loader__"] == LOADER for state in states(schema)) == 1
    assert len(parts) < 60
    loaded = vennforest.load(tmp_path / "m.skops")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.estimator_.estimator is loaded._state.folds[0].scorer.model.estimator


def test_forests_that_differ_in_more_are_written_tree_by_tree(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.integers(0, 2, 40)

    def changed(name, value):
        fitted = RandomForestClassifier(4, random_state=0).fit(X, y)
        setattr(fitted.estimators_[2], name, value)
        return fitted

    for fitted in (
        changed("random_state", None),
        changed("random_state", np.random.RandomState(0)),
        changed("extra_", 1),
        changed("max_depth", 3),
        changed("classes_", np.array([0.0, 2.0])),
    ):
        assert pack_trees(fitted) is None
    assert pack_trees(RandomForestClassifier()) is None
    assert pack_trees(RandomForestClassifier(2).fit(X, np.ones(40))) is None
    fitted = changed("random_state", None)
    model = CalibratedClassifier(FrozenEstimator(fitted)).fit(X, y)
    vennforest.save(model, tmp_path / "m.skops")
    np.testing.assert_array_equal(
        vennforest.load(tmp_path / "m.skops").predict_proba(X), model.predict_proba(X)
    )


def test_skops_itself_writes_as_ever(tmp_path, saved):
    import skops.io

    vennforest.load(saved("oob-two"))
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.integers(0, 2, 40)
    fitted = RandomForestClassifier(3, random_state=0).fit(X, y)
    written = skops.io.dumps(fitted)
    assert LOADER.encode() not in zipfile.ZipFile(io.BytesIO(written)).read("schema.json")
    again = skops.io.loads(written, trusted=["sklearn.tree._tree.Tree"])
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))


def test_neighbours_of_classes_that_there_are_none_of(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.arange(40) % 2
    model = CalibratedClassifier(KNeighborsClassifier(3, algorithm="brute"), cv=2).fit(X, y)
    path = tmp_path / "model.skops"
    vennforest.save(model, path)
    np.testing.assert_array_equal(vennforest.load(path).predict_proba(X), model.predict_proba(X))
    model.estimators_[0]._y[0] = 10**6
    with pytest.raises(InputError, match="_y must be"):
        vennforest.save(model, path)
    save_spoilt(model, path)
    with pytest.raises(InputError, match="_y must be"):
        vennforest.load(path)


# --- sizes ------------------------------------------------------------------------------------


def test_what_would_unpack_to_gigabytes_is_refused_before_it_is_read(saved):
    path = saved("venn-abers-2")
    schema, header, parts = parts_of(path)
    write_parts(path, schema, header, parts)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        file.writestr("bomb.npy", bytes(20 << 24))
    assert path.stat().st_size < 1 << 21
    start = time.perf_counter()
    with pytest.raises(InputError, match=r"would unpack to 320 MiB, more than 100 times its"):
        vennforest.load(path)
    assert time.perf_counter() - start < 1


def test_a_size_that_is_declared_too_small_is_all_that_is_read(saved):
    """The directory of the archive lies: nothing beyond what it says is unpacked."""
    path = saved("venn-abers-2")
    schema, header, parts = parts_of(path)
    largest = max(parts, key=lambda name: len(parts[name]))
    whole = len(parts[largest])
    parts[largest] += bytes(1 << 22)
    write_parts(path, schema, header, parts)
    data = bytearray(path.read_bytes())
    size = struct.pack("<L", whole + (1 << 22))
    assert data.count(size) == 2
    path.write_bytes(bytes(data).replace(size, struct.pack("<L", whole)))
    with pytest.raises(InputError, match="is damaged"):
        vennforest.load(path)


@pytest.mark.parametrize("shape", [(10**12,), (2**62, 2**62), (-1,), (0, 10**18), (41,)])
def test_arrays_are_as_long_as_they_say(shape, saved):
    path = saved("venn-abers-2")

    def forge(schema, header, parts):
        for name, data in parts.items():
            out = io.BytesIO()
            about = {"descr": "<f8", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_2_0(out, about)
            parts[name] = out.getvalue() + data[-320:]

    rewritten(path, forge)
    with pytest.raises(InputError, match="is damaged"):
        vennforest.load(path)


def test_scalars_are_numbers(saved):
    """``numpy.void`` of a number is as many bytes as the number says."""
    path = saved("oob-two")

    def forge(schema, header, parts):
        for own in attributes(schema, "Membership"):
            own["n"] = {
                "__class__": "void",
                "__module__": "numpy",
                "__loader__": "NdArrayNode",
                "type": "numpy",
                "file": "n.npy",
            }
        parts["n.npy"] = bytes_of(np.array(10**13))

    rewritten(path, forge)
    with pytest.raises(InputError, match="void must be a number"):
        vennforest.load(path)


def test_two_parts_of_one_name_are_refused(saved):
    path = saved("venn-abers-2")
    with zipfile.ZipFile(path, "a") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        file.writestr("schema.json", "{}")
    with pytest.raises(InputError, match="two parts of one name"):
        vennforest.load(path)


def test_whole_and_weighted_fits_of_extreme_weights_are_read_again(tmp_path):
    """The checks take what ``fit`` makes, however far apart the weights are."""
    rng = np.random.default_rng(5)
    path = tmp_path / "model.skops"
    for _ in range(60):
        n = int(rng.integers(2, 40))
        scores = rng.choice([0.0, 0.25, np.nextafter(0.25, 1), 0.5, 1.0, *rng.random(6)], n)
        y = np.append(rng.integers(0, 2, n - 2), [0, 1])
        weight = 10.0 ** rng.choice([-300, -12, 0, 3, 12], n) * rng.random(n)
        weight[0] = rng.choice([0.0, weight[0]])
        with np.errstate(all="ignore"):
            model = VennAbers("log").fit(scores, y, sample_weight=weight, classes=[0, 1])
        vennforest.save(model, path)
        loaded = vennforest.load(path)
        one, two = model.predict_multiprobability(scores), loaded.predict_multiprobability(scores)
        np.testing.assert_array_equal(one.lower, two.lower)
        np.testing.assert_array_equal(one.upper, two.upper)


def test_a_gzipped_model_is_no_model(tmp_path):
    path = tmp_path / "model.skops"
    path.write_bytes(gzip.compress(file_of("venn-abers-2")))
    with pytest.raises(InputError, match="is not a model file"):
        vennforest.load(path)


def test_missing_values_and_categories_pass_the_checks(tmp_path):
    """What honest models hold: infinite thresholds, categories, features of a pipeline."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = (X[:, 0] + rng.normal(size=200) > 0).astype(int)
    X[:, 3] = rng.integers(0, 5, 200)
    X[rng.random((200, 4)) < 0.3] = np.nan
    X[:, 1] = np.where(y == 1, np.nan, 1.0)
    path = tmp_path / "model.skops"
    for estimator in (
        RandomForestClassifier(10, random_state=0),
        HistGradientBoostingClassifier(max_iter=5, categorical_features=[3], random_state=0),
        make_pipeline(StandardScaler(), HistGradientBoostingClassifier(max_iter=3)),
    ):
        model = CalibratedClassifier(estimator, random_state=0, cv=2).fit(X, y)
        vennforest.save(model, path)
        # Of two types that boosting of categories needs; the checks are the same.
        loaded = vennforest.load(path, trusted=OF_CATEGORIES)
        np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


OF_CATEGORIES = ["functools.partial", "sklearn.utils.validation.check_array"]


@pytest.mark.parametrize(
    "model",
    [
        RadiusNeighborsClassifier(0.01, algorithm="brute"),  # no neighbour of a row of zeros
        LogisticRegression(),
        QuadraticDiscriminantAnalysis(),
        DummyClassifier(),
        SGDClassifier(),
        make_pipeline(TfidfVectorizer(), LogisticRegression()),
    ],
)
def test_classifiers_that_are_asked_on_loading_are_taken(model, tmp_path):
    """One row of zeros is enough to see whether arrays fit together, and does no harm."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)) + 5, np.arange(40) % 2
    X = ["red blue", "blue"] * 20 if hasattr(model, "steps") else X
    model.fit(X, y)
    frozen = vennforest.CalibratedClassifier(FrozenEstimator(model), method="platt").fit(X, y)
    vennforest.save(frozen, tmp_path / "m.skops")
    loaded = vennforest.load(tmp_path / "m.skops")
    np.testing.assert_array_equal(loaded.predict_proba(X), frozen.predict_proba(X))


def without(kind, name):
    return lambda schema, parts: [one.pop(name) for one in attributes(schema, kind)]


def instead(kind, name, value):
    return lambda schema, parts: [
        one.update({name: constant(value)}) for one in attributes(schema, kind)
    ]


def with_a_list_for_a_number(schema, parts):
    for one in attributes(schema, "DecisionTreeClassifier"):
        if "n_classes_" in one:
            name = one["n_classes_"]["file"]
            parts[name] = bytes_of(np.atleast_1d(array_of(parts[name])))


def with_a_type_for_a_model(schema, parts):
    for one in attributes(schema, "FrozenEstimator"):
        one["estimator"] |= {"__loader__": "TypeNode"}


def with_a_piece_far_away(schema, parts):
    for one in attributes(schema, "TfidfVectorizer"):
        pieces = one["vocabulary_"]["content"]
        pieces[max(pieces)] = constant(10**5)


FOUND_LATE = [
    ("oob-two", without("RandomForestClassifier", "max_samples")),
    ("holdout-two", with_a_list_for_a_number),
    ("table-types", with_a_piece_far_away),
    ("frozen-two", with_a_type_for_a_model),
    ("cv-vectors-two", instead("SVC", "_sparse", 4)),
    ("cv-histogram-two", instead("HistGradientBoostingClassifier", "_loss", 4)),
]


@pytest.mark.parametrize(("kind", "change"), FOUND_LATE, ids=range(len(FOUND_LATE)))
def test_what_other_libraries_would_say_in_predict(kind, change, saved):
    """Each was an AttributeError, TypeError or IndexError there, as ``make fuzz`` found."""
    path = saved(kind)
    rewritten(path, lambda schema, header, parts: change(schema, parts))
    with pytest.raises(ValueError, match=r"is damaged: |boundary must be a number"):
        vennforest.load(path).predict_proba(KINDS[kind][1])
