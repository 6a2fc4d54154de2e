"""Columns belong to classes by name, in any order, in every public function that takes them."""

import inspect
import warnings
from importlib import import_module

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator

from vennforest import CalibratedClassifier, ScoreCounts, VennAbers, update
from vennforest._validation import InputError

PACKAGES = ["", "auditing", "batch", "calibrators", "decisions", "export", "metrics", "monitoring"]
PACKAGES += ["performance", "plots", "report", "validation"]
OTHER_MEANING = {
    "ConfidenceIntervals": "a result, whose columns are sorted",
    "CostMatrix.read": "costs are of the sorted classes of a model",
    "Evaluation": "a result",
    "Multiprobability": "a result, whose columns are sorted",
    "ScoreCounts": "counts, whose columns are sorted",
    "ScoreCounts.from_batches": "columns of tables have names",
    "BatchPredictor": "columns of tables have names, and it takes models of the library",
    "evaluate": "trains estimators",
    "explain": "takes forests of the library, whose classes are sorted",
    "make_calibrator": "makes calibrators",
    "save": "writes models of the library",
    "to_onnx": "takes models of the library; see test_onnx_takes_sorted_columns",
    "CalibratedClassifier": "keeps an estimator; see test_functions_take_a_model",
    "Monitor": "keeps a model; see test_functions_take_a_model",
}
"""Functions whose ``classes``, ``model`` or ``estimator`` are no order of columns of an array."""


def public_functions(*parameters):
    """Return the public functions, constructors and methods with one of the parameters, by name."""
    functions = {}
    for package in PACKAGES:
        module = import_module(f"vennforest.{package}".rstrip("."))
        for name in getattr(module, "__all__", []):
            value = getattr(module, name)
            members = {name: value} if callable(value) else {}
            if inspect.isclass(value):
                members |= {
                    f"{name}.{key}": getattr(value, key) for key in dir(value) if key[0] != "_"
                }
            for key, function in members.items():
                if not callable(function) or key.endswith("_request") or inspect.isabstract(value):
                    continue
                try:
                    names = inspect.signature(function).parameters
                except (TypeError, ValueError):
                    continue
                if set(parameters) & set(names) and key not in OTHER_MEANING:
                    functions[key] = value if "." in key else function
    return functions


LABELS = {
    "text": ["yes", "no", "maybe"],
    "numbers": [10, 2, 1, 33],
    "two": ["yes", "no"],
    "booleans": [True, False],
}


class Net(ClassifierMixin, BaseEstimator):
    """A classifier of rows that are its probabilities, with ``classes_`` in any order."""

    def __init__(self, classes=("no", "yes")):
        self.classes = classes

    def fit(self, X, y):
        self.classes_ = np.array(self.classes)
        return self

    def predict_proba(self, X):
        order = np.argsort(np.argsort(self.classes_))
        return np.asarray(X)[:, order]


def draw(rng, labels, n=240):
    """Return probabilities of the sorted classes and labels; of many classes the last is absent."""
    k = len(labels)
    p = np.clip(rng.dirichlet(np.ones(k), n), 1e-3, 1)
    p /= p.sum(axis=1, keepdims=True)
    codes = (np.log(p) + rng.gumbel(size=p.shape)).argmax(axis=1)
    if k > 3:
        codes[codes == k - 1] = 0
    return p, np.sort(labels)[codes]


def numbers(result, depth=0):
    """Return the numbers in a result, in their order."""
    if hasattr(result, "to_numpy") and hasattr(result, "index"):
        result = pd.DataFrame(result).select_dtypes("number").to_numpy()
    if isinstance(result, bool | int | float | np.number):
        return [float(result)]
    if isinstance(result, np.ndarray):
        return result.ravel().tolist() if result.dtype.kind in "fiub" else []
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, list | tuple):
        return [x for part in result for x in numbers(part, depth + 1)]
    if depth > 3 or not hasattr(result, "__dict__") or type(result).__module__[:10] != "vennforest":
        return []
    omitted = "classes", "column_codes_"
    parts = [v for key, v in vars(result).items() if key not in omitted and key[0] != "_"]
    return numbers(parts, depth + 1)


def answer(name, owner, columns, values, new):
    """Return the numbers that a function gives, or a fitted object for new columns."""
    function, bound = owner, ()
    if "." in name:
        member = name.split(".")[1]
        is_static = not inspect.isfunction(inspect.getattr_static(owner, member))
        instance = owner if is_static else owner()
        if not is_static and "random_state" in instance.get_params():
            instance.set_params(random_state=0)
        function = getattr(instance, member)
    signature = inspect.signature(function).parameters
    required = {
        key: columns if key in ("p", "scores", "X", "versus", "other") else values[key]
        for key, parameter in signature.items()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
    }
    named = ["classes", "random_state", *(["pos_label"] if columns.shape[1] > 2 else [])]
    optional = {key: values[key] for key in named if key in signature}
    if name.endswith(".fit"):
        required |= {"X" if "X" in signature else "scores": columns, "y": values["y"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = function(*bound, **required, **optional)
        if hasattr(result, "predict_proba"):
            return numbers(result.predict_proba(new))
        if hasattr(result, "fit_counts") or isinstance(result, ScoreCounts):
            return numbers(VennAbers().fit_counts(result).predict_proba(new))
        if hasattr(result, "evidence_"):
            return numbers(result.update(new, values["new_y"]))
    return numbers(result)


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("name", public_functions("classes"))
def test_functions_take_columns_in_the_order_that_classes_name(rng, name, labels):
    owner = public_functions("classes")[name]
    (p, y), (new, new_y) = draw(rng, labels), draw(rng, labels, 50)
    common = {"y": y, "new_y": new_y, "random_state": 0, "pos_label": y[0]}
    common |= {"thresholds": [0.2, 0.5], "site": np.arange(len(y)) % 4}
    expected = answer(name, owner, p, {**common, "classes": np.sort(labels)}, new)
    assert expected or "Display" in name
    for named in (labels, labels[::-1], list(rng.permutation(np.array(labels, object)))):
        order = np.argsort(np.argsort(np.array(named)))
        values = {**common, "classes": named}
        result = answer(name, owner, p[:, order], values, new[:, order])
        assert_allclose(result, expected, rtol=1e-6, atol=1e-9, err_msg=str(named))


def of_model(function, model, X, y, new):
    """Return the numbers that a function gives for a fitted model."""
    signature = inspect.signature(function).parameters
    key = next(key for key in ("model", "estimator", "p") if key in signature)
    values = {key: model, "y": y, "X": X, "reference": (X, y), "random_state": 0, "precision": 0.6}
    if function.__name__ == "estimate_performance":
        values["X"] = new
    if function.__name__ == "threshold_for":
        values = {"model": model, "precision": 0.3, "pos_label": y[0]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(**{key: v for key, v in values.items() if key in signature})


def shown(result):
    curve = getattr(result, "curves", getattr(result, "curve", result))
    return numbers(curve), str(getattr(result, "verdict", ""))


MODEL_FUNCTIONS = public_functions("model", "estimator") | {
    name: function
    for name, function in public_functions("p").items()
    if "classifier" in (inspect.getdoc(function) or "").split("Returns")[0]
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("name", MODEL_FUNCTIONS)
def test_functions_take_a_model_whose_classes_are_in_any_order(rng, name, labels):
    function = MODEL_FUNCTIONS[name]
    if "." in name:
        function = getattr(function, name.split(".")[1])
    (X, y), (new, _) = draw(rng, labels), draw(rng, labels, 60)
    results = []
    for named in (np.sort(labels).tolist(), labels):
        net = Net(named).fit(X, y)
        calibrated = CalibratedClassifier(FrozenEstimator(net), random_state=0)
        for model in (net, calibrated.fit(new, draw_labels(new, labels))):
            try:
                results.append(shown(of_model(function, model, X, y, new)))
            except (InputError, AttributeError, TypeError) as error:
                results.append(([], f"{type(error).__name__} {str(error)[:60]}"))
    for sorted_result, other in zip(results[:2], results[2:], strict=True):
        assert_allclose(other[0], sorted_result[0], rtol=1e-6, atol=1e-9)
        assert other[1] == sorted_result[1]
    is_binary_only = len(labels) > 2 and name == "update"
    assert is_binary_only or any(values or not text for values, text in results)


def draw_labels(p, labels):
    return np.sort(labels)[(np.arange(len(p)) + p.argmax(axis=1)) % min(len(labels), 3)]


def test_an_update_of_a_model_takes_its_columns_as_the_model_gives_them(rng):
    X, y = draw(rng, ["no", "yes"])
    p = [
        update(net, y, X=X, choose="slope").predict_proba(net.predict_proba(X))
        for net in (Net(names).fit(X, y) for names in (("no", "yes"), ("yes", "no")))
    ]
    assert_allclose(p[0], p[1], rtol=1e-6)


def test_counts_of_parts_keep_the_order_of_their_columns(rng):
    labels = ["yes", "no", "maybe"]
    (p, y), order = draw(rng, labels), np.argsort(np.argsort(labels))
    whole = VennAbers().fit(p, y).predict_proba(p)
    parts = [
        ScoreCounts.from_scores(p[rows][:, order], y[rows], classes=labels)
        for rows in (slice(100), slice(100, None))
    ]
    fitted = VennAbers().fit_counts(sum(parts))
    assert_allclose(fitted.predict_proba(p[:, order]), whole, rtol=1e-6)
    assert_allclose(
        fitted.predict_proba(pd.DataFrame(p, columns=np.sort(labels))), whole, rtol=1e-6
    )
    with pytest.raises(ValueError, match="counts must be of the same classes to be added"):
        parts[0] + ScoreCounts.from_scores(p, y, classes=np.sort(labels))


def test_counts_decide_together_what_two_columns_are(rng):
    """Parts of logits that happen to look like probabilities are logits as the others are."""
    z = rng.normal(size=200) * 2
    logits = np.column_stack([1 - z, z])  # rows sum to 1
    logits[:20] = np.column_stack([np.linspace(0, 1, 20), np.linspace(1, 0, 20)])
    y = (rng.random(200) < 0.5).astype(int)
    parts = [
        ScoreCounts.from_scores(logits[rows], y[rows], classes=[0, 1])
        for rows in (slice(20), slice(20, None))
    ]
    expected = VennAbers().fit(logits, y).predict_proba(logits)
    fitted = VennAbers().fit_counts(parts[0] + parts[1])
    assert fitted.on_ == "logit"
    assert_allclose(fitted.predict_proba(logits), expected, rtol=1e-9)
