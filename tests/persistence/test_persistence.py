"""Model files: bit-identical after loading, and data that cannot run or reach outside itself."""

import inspect
import io
import json
import os
import pickle
import subprocess
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest
import scipy.special
import skops.io
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.utils import all_estimators

import vennforest
from support.forging import rewritten
from vennforest import (
    BetaCalibration,
    BostromScaling,
    CalibratedClassifier,
    IsotonicCalibration,
    MatrixScaling,
    PlattScaling,
    PooledCalibration,
    QuadraticScaling,
    ScoreCounts,
    ScoreGrid,
    SplineCalibration,
    TemperatureScaling,
    Venn,
    VennAbers,
)
from vennforest._validation import InputError
from vennforest.calibrators.venn import taxonomies
from vennforest.persistence.archive import FORMAT, read_header
from vennforest.persistence.trusted import is_estimator, is_function

pytestmark = pytest.mark.filterwarnings("ignore:.*out of bag.*:UserWarning")

CANCER = load_breast_cancer(return_X_y=True)
IRIS = load_iris(return_X_y=True)


def same_after_loading(model, X, tmp_path, **options):
    path = tmp_path / "model.skops"
    before = model.predict_proba(X)
    vennforest.save(model, path)
    loaded = vennforest.load(path, **options)
    assert type(loaded) is type(model)
    np.testing.assert_array_equal(loaded.predict_proba(X), before, strict=True)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X), strict=True)
    if hasattr(model, "predict_multiprobability"):
        one, two = model.predict_multiprobability(X), loaded.predict_multiprobability(X)
        np.testing.assert_array_equal(one.lower, two.lower, strict=True)
        np.testing.assert_array_equal(one.upper, two.upper, strict=True)
    return loaded


def forest(n=12):
    return RandomForestClassifier(n, random_state=0)


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("merge", dict, r"merge must be one of \[.*\], got <class 'dict'>"),
        ("calibrate_on", SVC, "calibrate_on must be one of .*, got <class"),
        (
            "_fitted",
            VennAbers().fit([0.1, 0.9], [0, 1])._fitted,
            "fitted must be what fit has made",
        ),
    ],
)
def test_what_load_would_refuse_is_not_saved(name, value, rule, tmp_path):
    path = tmp_path / "model.skops"
    model = CalibratedClassifier(forest(), random_state=0).fit(*CANCER)
    setattr(model, name, value)
    with pytest.raises(InputError, match=f"model must be as fit left it to be saved.*{rule}"):
        vennforest.save(model, path)
    calibrator = VennAbers().fit([0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1])
    calibrator.merge = SVC
    with pytest.raises(InputError, match=r"as fit left it .*merge must be one of"):
        vennforest.save(calibrator, path)
    assert not path.exists()


def test_a_type_as_a_parameter_is_saved_and_named_at_loading(tmp_path):
    path = tmp_path / "model.skops"
    model = CalibratedClassifier(SVC(), calibrate_on="holdout", random_state=0).fit(*IRIS)
    model.estimator.set_params(class_weight=dict)
    vennforest.save(model, path)
    with pytest.raises(
        InputError, match=r"contains builtins\.dict, which vennforest does not make"
    ):
        vennforest.load(path)
    assert vennforest.load(path, trusted=[dict]).estimator.class_weight is dict


@pytest.mark.parametrize("data", [CANCER, IRIS], ids=["two", "three"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"subforest": "all", "votes": "hard"},
        {"subforest": "exchangeable", "merge": "log"},
        {"estimator": ExtraTreesClassifier(10, bootstrap=True)},
        {"estimator": BaggingClassifier(GaussianNB(), 6, max_features=0.5)},
        {"estimator": make_pipeline(StandardScaler(), forest())},
        {"calibrate_on": "holdout", "method": "isotonic"},
        {"calibrate_on": "training", "method": "beta"},
        {"calibrate_on": "cv", "method": "temperature", "cv": StratifiedKFold(3)},
        {"calibrate_on": "cv", "cv": 3, "ensemble": False, "method": "none"},
        {"estimator": HistGradientBoostingClassifier(max_iter=4), "cv": 3},
        {"estimator": GradientBoostingClassifier(n_estimators=3), "cv": 2},
        {"estimator": SVC(), "cv": 2, "method": PlattScaling(on="score")},
        {"method": Venn(taxonomy="nearest")},
    ],
    ids=str,
)
def test_every_source(data, options, tmp_path):
    X, y = data
    options = {"estimator": forest(), "random_state": 3, **options}
    model = CalibratedClassifier(**options).fit(X, y)
    loaded = same_after_loading(model, X[::3], tmp_path)
    np.testing.assert_array_equal(loaded.calibration_scores_, model.calibration_scores_)
    np.testing.assert_array_equal(loaded.calibration_y_, model.calibration_y_)
    other, again = model.recalibrate("venn"), loaded.recalibrate("venn")
    np.testing.assert_array_equal(other.predict_proba(X), again.predict_proba(X))


def test_frozen_text_labels_weights_and_random_state(tmp_path):
    X, y = CANCER
    labels = np.array(["no", "yes "])[y]
    fitted = LogisticRegression(max_iter=5000).fit(X[:300], labels[:300])
    weight = np.linspace(0, 2, len(X) - 300)
    model = CalibratedClassifier(FrozenEstimator(fitted)).fit(X[300:], labels[300:], weight)
    same_after_loading(model, X, tmp_path)
    state = np.random.RandomState(4)
    same_after_loading(CalibratedClassifier(forest(), random_state=state).fit(X, y), X, tmp_path)


def mixed_frame(n=300):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=n),
            "town": rng.choice(["Ulm", "東京", "a b"], n),
            "name": [f"firm {i % 97} of {i}" for i in range(n)],
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
        }
    )
    frame.loc[::7, ["size", "town", "name", "day"]] = None
    return frame, np.where(rng.normal(size=n) + (frame["town"] == "Ulm") > 0.3, "yes", "no")


def test_pipelines_over_data_frames(tmp_path):
    from skrub import StringEncoder, TableVectorizer

    X, y = mixed_frame()
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["town"]), remainder="drop"
    )
    same_after_loading(CalibratedClassifier(make_pipeline(encode, forest())).fit(X, y), X, tmp_path)
    vectorize = TableVectorizer(high_cardinality=StringEncoder(random_state=0))
    model = CalibratedClassifier(make_pipeline(vectorize, forest()), random_state=0).fit(X, y)
    loaded = same_after_loading(model, X, tmp_path)
    assert list(loaded.feature_names_in_) == list(X.columns)
    header = read_header(tmp_path / "model.skops")
    assert header["features"] == list(X.columns) and header["classes"] == ["no", "yes"]
    assert {"skrub", "scikit-learn", "numpy", "scipy", "skops"} <= set(header["libraries"])


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "calibrator",
    [
        VennAbers(),
        VennAbers(merge="brier"),
        Venn(),
        Venn(merge="smooth"),
        *(Venn(taxonomy=name) for name in taxonomies.NAMED),
        PlattScaling(),
        PlattScaling(targets="hard", on="logit"),
        IsotonicCalibration(),
        IsotonicCalibration(between="linear"),
        BostromScaling(),
        BetaCalibration(),
        TemperatureScaling(),
        MatrixScaling("full"),
        QuadraticScaling(),
        SplineCalibration(),
        PooledCalibration(),
    ],
    ids=str,
)
def test_every_calibrator(calibrator, classes, tmp_path):
    rng = np.random.default_rng(1)
    scores = rng.integers(0, 30, (150, classes)) + 0.5  # with ties
    scores /= scores.sum(axis=1, keepdims=True)
    y = (scores.cumsum(axis=1) < rng.random((150, 1))).sum(axis=1).clip(max=classes - 1)
    for weight in (None, rng.random(150)):
        model = calibrator.fit(scores, y, sample_weight=weight)
        loaded = same_after_loading(model, scores, tmp_path)
        if hasattr(model, "predict_multiprobability"):
            for left_out in (np.arange(150), np.full(150, -1)):  # before and after it is prepared
                one = model.predict_multiprobability(scores, left_out)
                two = loaded.predict_multiprobability(scores, left_out)
                np.testing.assert_array_equal(one.lower, two.lower)
                np.testing.assert_array_equal(one.upper, two.upper)
            again = same_after_loading(model, scores, tmp_path)  # saved after it is prepared
            three = again.predict_multiprobability(scores, np.arange(150))
            first = model.predict_multiprobability(scores, np.arange(150))
            np.testing.assert_array_equal(three.lower, first.lower)


def test_counts_and_own_taxonomy(tmp_path):
    for grid in (None, ScoreGrid(cells=20)):
        counts = ScoreCounts.from_counts([0.1, 0.5, 0.7], [3, 2, 1], [1, 2, 4], grid=grid)
        for calibrator in (VennAbers(), Venn("nearest", merge="smooth"), PlattScaling()):
            same_after_loading(calibrator.fit_counts(counts), np.linspace(0, 1, 50), tmp_path)
    scores, y = np.linspace(0, 1, 60), np.arange(60) % 3 > 0
    model = Venn(taxonomy=np.rint).fit(scores, y)
    same_after_loading(model, scores, tmp_path)


def test_scikit_learns_bounds_of_floats_survive(tmp_path):
    scores = np.array([-1e300, -1e-300, 0.0, np.nextafter(0, 1), 1e-300, 1.0, 1e300])
    model = VennAbers().fit(
        scores, [0, 1, 0, 0, 1, 0, 1], sample_weight=[1e-300, 1, 1e9, 1, 2, 3, 1]
    )
    same_after_loading(model, scores, tmp_path)


class Payload:
    """Runs a command when it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


class Foreign(LogisticRegression):
    """A classifier that vennforest does not know."""


def test_a_pickle_is_refused_and_nothing_runs(tmp_path):
    path, trap = tmp_path / "model.skops", tmp_path / "trap"
    path.write_bytes(pickle.dumps(Payload(trap)))
    with pytest.raises(InputError, match="is a pickle, which runs code"):
        vennforest.load(path)
    assert not trap.exists()


FORGERIES = {
    "a function": (
        {"__class__": "mkdir", "__module__": "os", "__loader__": "FunctionNode"},
        "os.mkdir",
    ),
    "a type": (
        {"__class__": "Popen", "__module__": "subprocess", "__loader__": "TypeNode"},
        "Popen",
    ),
    "a call": (
        {
            "__class__": "system",
            "__module__": "os",
            "__loader__": "ConstructorFromReduceNode",
            "content": {
                "__class__": "tuple",
                "__module__": "builtins",
                "__loader__": "TupleNode",
                "content": [
                    {
                        "__class__": "str",
                        "__module__": "builtins",
                        "__loader__": "JsonNode",
                        "content": '"touch trap"',
                        "is_json": True,
                    }
                ],
            },
        },
        "os.system",
    ),
    "a module of the forger's": (
        {"__class__": "Evil", "__module__": "evil_module", "__loader__": "ObjectNode"},
        "evil_module.Evil",
    ),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_foreign_types_are_named_refused_and_not_even_imported(forgery, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "evil_module.py").write_text("open('trap', 'w')\nclass Evil: pass\n")
    node, name = FORGERIES[forgery]
    path = tmp_path / "model.skops"
    vennforest.save(VennAbers().fit([0.1, 0.9], [0, 1]), path)
    rewritten(path, lambda s, h, p: s["content"].update(extra=node))
    with pytest.raises(InputError, match=name) as refused:
        vennforest.load(path)
    assert "\n" not in str(refused.value) and "trusted=[" in str(refused.value)
    assert not (tmp_path / "trap").exists() and "evil_module" not in sys.modules


def test_a_foreign_model_needs_trust(tmp_path):
    X, y = CANCER
    model = CalibratedClassifier(Foreign(max_iter=200), cv=2).fit(
        StandardScaler().fit_transform(X), y
    )
    path = tmp_path / "model.skops"
    vennforest.save(model, path)
    name = f"{Foreign.__module__}.Foreign"
    with pytest.raises(InputError, match=rf"contains {name}, which vennforest does not make"):
        vennforest.load(path)
    for trusted in (name, Foreign):
        loaded = vennforest.load(path, trusted=[trusted])
        np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("package", ["xgboost", "lightgbm"])
def test_boosters_need_trust(package, tmp_path):
    module = pytest.importorskip(package)
    X, y = IRIS
    name = {"xgboost": "XGBClassifier", "lightgbm": "LGBMClassifier"}[package]
    options = {"verbose": -1} if package == "lightgbm" else {}
    booster = getattr(module, name)(n_estimators=3, n_jobs=1, **options)
    model = CalibratedClassifier(booster, cv=2).fit(X, y)
    path = tmp_path / "model.skops"
    vennforest.save(model, path)
    with pytest.raises(InputError, match=rf"{package}\.sklearn\.{name}.*trusted=\[") as refused:
        vennforest.load(path)
    said = str(refused.value)
    trusted = json.loads(said[said.index("trusted=") + 8 : said.index("]") + 1].replace("'", '"'))
    same_after_loading(model, X, tmp_path, trusted=trusted)
    assert package in read_header(path)["libraries"]


def forest_file(tmp_path):
    X, y = CANCER
    path = tmp_path / "model.skops"
    vennforest.save(CalibratedClassifier(forest(2), calibrate_on="cv", cv=2).fit(X, y), path)
    return path


@pytest.mark.parametrize("field", ["left_child", "right_child", "feature"])
@pytest.mark.parametrize("value", [10**6, -5, 0])
def test_trees_that_point_outside_themselves_are_refused(field, value, tmp_path):
    if (field, value) == ("feature", 0):
        value = 30
    path = forest_file(tmp_path)

    def forge(schema, header, parts):
        changed = 0
        for name in [name for name in parts if name.endswith(".npy")]:
            array = np.load(io.BytesIO(parts[name]))
            if array.dtype.names and field in array.dtype.names:
                array[field][0] = value
                out = io.BytesIO()
                np.save(out, array)
                parts[name] = out.getvalue()
                changed += 1
        assert changed

    rewritten(path, forge)
    with pytest.raises(InputError, match="in it is not a result of fit"):
        vennforest.load(path)


def test_histogram_trees_are_checked_too(tmp_path):
    X, y = CANCER
    model = CalibratedClassifier(HistGradientBoostingClassifier(max_iter=2), cv=2).fit(X, y)
    from support.forging import check_structure

    check_structure(model, "model")
    model.estimators_[1]._predictors[0][0].nodes["right"][0] = 4000
    with pytest.raises(InputError, match="TreePredictor"):
        check_structure(model, "model")


def test_step_tables_and_bit_sets_are_checked(tmp_path):
    X, y = CANCER
    model = VennAbers().fit([0.1, 0.4, 0.9], [0, 1, 1])
    (table,) = model.tables_
    for wrong in ({"W": table.sums.W[:-1]}, {"x": table.x[::-1]}, {"Y": table.sums.Y * np.nan}):
        with pytest.raises(ValueError):
            type(table).__new__(type(table)).__setstate__({**table.__getstate__(), **wrong})
    from support.forging import check_structure

    model = CalibratedClassifier(forest()).fit(X, y)
    object.__setattr__(model._state.folds[0].scorer.membership, "n", 10**6)
    with pytest.raises(InputError, match="bits must have shape"):
        check_structure(model, "model")


def test_parts_that_are_incomplete_or_classes(tmp_path):
    from support.forging import attributes, check_structure

    path = tmp_path / "model.skops"
    isotonic = IsotonicCalibration().fit([0.1, 0.4, 0.9], [0, 1, 1])
    check_structure(isotonic, "model")
    vennforest.save(isotonic, path)
    (step,) = isotonic.maps_
    for kind in (type(step), str):  # callable, as a map is
        node = {
            "__class__": kind.__name__,
            "__module__": kind.__module__,
            "__loader__": "TypeNode",
        }

        def forge(schema, header, parts, node=node):
            (learnt,) = attributes(schema, "Maps")
            learnt["maps"]["content"] = [node]

        rewritten(path, forge)
        if kind is not str:
            with pytest.raises(InputError, match=r"contains .*StepMap, which vennforest does not"):
                vennforest.load(path)
        with pytest.raises(InputError, match="maps must contain maps"):
            vennforest.load(path, trusted=[kind])
    venn = Venn().fit([0.1, 0.4, 0.9], [0, 1, 1])
    check_structure(venn, "model")
    learnt = venn._learnt
    # Equal, and yet none that compiled loops take.
    object.__setattr__(learnt, "counts", learnt.counts.astype(complex))
    with pytest.raises(InputError, match="counts must not be of type complex128"):
        check_structure(venn, "model")
    model = CalibratedClassifier(forest()).fit(*CANCER)
    vennforest.save(model, path)

    def leave_out(schema, header, parts):
        for own in attributes(schema, "OutOfBagScorer"):
            del own["seed"]

    rewritten(path, leave_out)
    with pytest.raises(InputError, match=r"OutOfBagScorer in it is .*seed"):
        vennforest.load(path)
    model.estimators_[0].n_estimators = int
    with pytest.raises(InputError, match="n_estimators must be an integer"):
        check_structure(model, "model")


def test_every_flipped_or_missing_byte_is_seen_or_harmless(tmp_path):
    scores = np.linspace(0, 1, 40)
    model = VennAbers().fit(scores, scores > 0.4)
    expected = model.predict_proba(scores)
    path = tmp_path / "model.skops"
    vennforest.save(model, path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for at in rng.integers(0, len(whole), 150):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x15]) + whole[at + 1 :])
        try:
            loaded = vennforest.load(path)
        except InputError:
            refused += 1
        else:
            np.testing.assert_array_equal(loaded.predict_proba(scores), expected)
    assert refused > 50
    for end in rng.integers(0, len(whole), 30):
        path.write_bytes(whole[:end])
        with pytest.raises(InputError):
            vennforest.load(path)


def test_files_that_are_none(tmp_path):
    with pytest.raises(FileNotFoundError):
        vennforest.load(tmp_path / "none.skops")
    path = tmp_path / "x.skops"
    path.write_text("label,probability\n")
    with pytest.raises(InputError, match="is not a model file"):
        vennforest.load(path)
    skops.io.dump(LogisticRegression(), path)
    with pytest.raises(InputError, match="written by skops alone"):
        vennforest.load(path)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("a", "b")
    with pytest.raises(InputError, match="zip archive, but not a model file"):
        vennforest.load(path)


def test_versions_are_checked(tmp_path):
    path = tmp_path / "model.skops"
    vennforest.save(VennAbers().fit([0.1, 0.9], [0, 1]), path)
    header = read_header(path)
    assert header["format"] == FORMAT and header["vennforest"] == vennforest.__version__
    rewritten(path, lambda s, h, p: h["libraries"].update({"scikit-learn": "1.6.0"}))
    with pytest.warns(UserWarning, match=r"written with scikit-learn 1\.6\.0 and is read with"):
        vennforest.load(path)
    rewritten(path, lambda s, h, p: h.update(format=FORMAT + 1, vennforest="9.0"))
    with pytest.raises(
        InputError, match=rf"format {FORMAT + 1}, written by vennforest 9\.0.*upgrade"
    ):
        vennforest.load(path)
    rewritten(path, lambda s, h, p: h.update(format="1"))
    with pytest.raises(InputError, match="names no format"):
        vennforest.load(path)


def test_what_cannot_be_saved_leaves_the_old_file(tmp_path):
    path = tmp_path / "model.skops"
    path.write_text("old")
    for model, error, message in [
        (VennAbers(), NotFittedError, "not fitted"),
        (LogisticRegression(), TypeError, "got LogisticRegression"),
        (
            Venn(taxonomy=lambda s: s > 0.5).fit([0.1, 0.9], [0, 1]),
            TypeError,
            "define it at the top of a module",
        ),
        (
            CalibratedClassifier(
                RandomForestClassifier(5, class_weight={False: 1, True: 3}), random_state=0
            ).fit(CANCER[0], CANCER[1].astype(bool)),
            TypeError,
            "keys of type bool",
        ),
    ]:
        with pytest.raises(error, match=message):
            vennforest.save(model, path)
        assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_the_import_of_vennforest_leaves_skops_alone():
    code = "import sys, vennforest; print(sorted({'skops', 'skrub', 'typer'} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


# --- skops without its lists of what it trusts ------------------------------------------------


def test_an_estimator_is_what_skops_would_find_by_its_search():
    from skops.io._trusted_types import SKLEARN_ESTIMATOR_TYPE_NAMES

    assert len(SKLEARN_ESTIMATOR_TYPE_NAMES) > 150
    assert all(map(is_estimator, SKLEARN_ESTIMATOR_TYPE_NAMES))
    every = {
        f"{place}.{name}"
        for module, content in list(sys.modules.items())
        if module.startswith("sklearn")
        for name, kind in inspect.getmembers(content, inspect.isclass)
        for place in (module, kind.__module__)
    }
    assert len(every) > 2000
    # What is behind sklearn.experimental is found by both once it is switched on, as by tests here.
    now = {f"{kind.__module__}.{kind.__name__}" for _, kind in all_estimators()}
    assert set(SKLEARN_ESTIMATOR_TYPE_NAMES) <= now
    assert {name for name in every if is_estimator(name)} <= now
    for name in ("sklearn", "RandomForestClassifier", "sklearn..Pipeline", "", "sklearn._x.Y"):
        assert not is_estimator(name)


def test_a_function_is_what_skops_would_find_by_its_search():
    from skops.io._trusted_types import SCIPY_UFUNC_TYPE_NAMES

    assert len(SCIPY_UFUNC_TYPE_NAMES) > 200
    assert all(map(is_function, SCIPY_UFUNC_TYPE_NAMES))
    every = {
        f"{module}.{name}"
        for module, content in list(sys.modules.items())
        if module.startswith(("scipy", "numpy")) or module in ("os", "builtins")
        for name in dir(content)
    }
    assert len(every) > 5000
    found = {name for name in every if is_function(name)}
    public = {name.rpartition(".")[2] for name in SCIPY_UFUNC_TYPE_NAMES}
    names = {name.rpartition(".")[2] for name in found}
    assert public <= names
    # The search takes a function for that of the first module which has it, such as a test's.
    others = [vars(module) for name, module in sys.modules.items() if name[:6] != "scipy."]
    for own in names - public:
        assert any(other.get(own) is getattr(scipy.special, own) for other in others)
    for name in found:
        module, _, own = name.rpartition(".")
        assert getattr(sys.modules[module], own) is getattr(scipy.special, own)
    for name in ("expit", ".expit", "scipy.special._not_there.expit", "scipy.special._ufuncs.os"):
        assert not is_function(name)


COMMAND = """
import sys
from vennforest import _program
_program.OWN_PROCESS = True
import scipy.special, sklearn.utils, vennforest
search, listed = sklearn.utils.all_estimators, dir(scipy.special)
model = vennforest.load(sys.argv[1])
from skops.io import _trusted_types
assert _trusted_types.SKLEARN_ESTIMATOR_TYPE_NAMES == []
assert _trusted_types.SCIPY_UFUNC_TYPE_NAMES == []
assert sklearn.utils.all_estimators is search
assert dir(scipy.special) == listed and "cbrt" in listed
assert not any(name.startswith("sklearn.gaussian_process") for name in sys.modules)
print(model.predict_proba([[0.5, 0.5]]).tolist())
"""


def test_a_command_reads_models_without_the_searches(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.random((60, 2))
    # One that no other module has by name: skops would call it that module's.
    steps = FunctionTransformer(scipy.special.cbrt), StandardScaler(), LogisticRegression()
    model = CalibratedClassifier(make_pipeline(*steps), cv=2).fit(X, X[:, 0] > rng.random(60))
    path = tmp_path / "model.skops"
    vennforest.save(model, path)
    child = [sys.executable, "-W", "ignore", "-c", COMMAND, str(path)]
    said = subprocess.run(child, check=True, capture_output=True, text=True).stdout
    assert json.loads(said) == model.predict_proba([[0.5, 0.5]]).tolist()
