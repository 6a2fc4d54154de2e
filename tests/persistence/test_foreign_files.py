"""Files that ``save`` did not write, or that were changed: refused, and nothing in them runs."""

import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression

skops = pytest.importorskip("skops.io")

import vennforest  # noqa: E402
from support.forging import rewritten, save_spoilt  # noqa: E402
from vennforest import (  # noqa: E402
    CalibratedClassifier,
    IsotonicCalibration,
    PlattScaling,
    Venn,
    VennAbers,
)
from vennforest._messages import InputError  # noqa: E402
from vennforest.persistence import read_header  # noqa: E402
from vennforest.persistence.model_file import FORMAT_VERSION  # noqa: E402

X, Y = load_breast_cancer(return_X_y=True)
X, Y = X[::5], Y[::5]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "model.skops"
    scores = np.linspace(0, 1, 40)
    vennforest.save(VennAbers().fit(scores, scores > 0.4), path)
    return path


class Payload:
    """Runs a command when it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


class Foreign(LogisticRegression):
    """A classifier that vennforest does not know."""


def test_files_of_other_kinds(tmp_path):
    with pytest.raises(FileNotFoundError):
        vennforest.load(tmp_path / "none.skops")
    path, trap = tmp_path / "x.skops", tmp_path / "trap"
    path.write_text("label,probability\n")
    with pytest.raises(InputError, match="is not a model file"):
        vennforest.load(path)
    path.write_bytes(pickle.dumps(Payload(trap)))
    with pytest.raises(InputError, match="is a pickle, which runs code"):
        vennforest.load(path)
    assert not trap.exists()
    skops.dump(LogisticRegression(), path)
    with pytest.raises(InputError, match=r"zip archive that vennforest\.save has not"):
        vennforest.load(path)


def node(name, loader, **more):
    module, _, kind = name.rpartition(".")
    return {"__class__": kind, "__module__": module, "__loader__": loader, **more}


def call_of(name, argument):
    text = node("builtins.str", "JsonNode")
    arguments = [{**text, "content": json.dumps(argument), "is_json": True}]
    content = node("builtins.tuple", "TupleNode", content=arguments)
    return node(name, "ConstructorFromReduceNode", content=content)


FORGERIES = {
    "os.mkdir": node("os.mkdir", "FunctionNode"),
    "os.system": call_of("os.system", "touch trap"),
    "evil_module.Evil": node("evil_module.Evil", "ObjectNode"),
    # This one has no check of its state.
    "vennforest.calibrators.formula.Score": node(
        "vennforest.calibrators.formula.Score", "ObjectNode"
    ),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_other_types_are_named_and_not_imported(name, path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "evil_module.py").write_text("open('trap', 'w')\nclass Evil: pass\n")

    def forge(schema, header, parts):
        schema["content"]["content"]["extra"] = FORGERIES[name]

    rewritten(path, forge)
    with pytest.raises(InputError, match=name) as refused:
        vennforest.load(path)
    assert "\n" not in str(refused.value) and "trusted=[" in str(refused.value)
    assert not (tmp_path / "trap").exists() and "evil_module" not in sys.modules


@pytest.mark.parametrize("name", ["vennforest.monitoring.gone.History", "vennforest.linear.Gone"])
def test_a_type_of_another_version_is_named_and_not_to_be_trusted(name, path):
    rewritten(path, lambda s, h, p: s["content"]["content"].update(extra=node(name, "ObjectNode")))
    for trusted in ((), (name,)):
        with pytest.raises(InputError, match=f"{name}, which this one, .* does not have: read it"):
            vennforest.load(path, trusted=trusted)


def test_a_users_own_classifier_needs_trust(tmp_path):
    model = CalibratedClassifier(Foreign(max_iter=9000), cv=2).fit(X, Y)
    path = tmp_path / "model.skops"
    vennforest.save(model, path)
    name = f"{Foreign.__module__}.Foreign"
    with pytest.raises(InputError, match=rf"contains {name}, which vennforest does not read"):
        vennforest.load(path)
    for trusted in (name, Foreign):
        loaded = vennforest.load(path, trusted=[trusted])
        np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_versions_are_compared(path):
    header = read_header(path)
    assert header["format"] == FORMAT_VERSION and header["vennforest"] == vennforest.__version__
    rewritten(path, lambda s, h, p: h["libraries"].update({"scikit-learn": "1.6.0"}))
    with pytest.warns(UserWarning, match=r"written with scikit-learn 1\.6\.0 and is read with"):
        vennforest.load(path)
    rewritten(path, lambda s, h, p: h["libraries"].update({"scikit-learn": "1", "catboost": "1"}))
    with pytest.warns(UserWarning), pytest.raises(ImportError, match=r"vennforest\[boosters\]"):
        vennforest.load(path)
    rewritten(path, lambda s, h, p: h.update(format=FORMAT_VERSION + 1, vennforest="9.0"))
    with pytest.raises(
        InputError, match=rf"format {FORMAT_VERSION + 1}, written by .* 9\.0.*upgrade"
    ):
        vennforest.load(path)
    rewritten(path, lambda s, h, p: h.update(format="1"))
    with pytest.raises(InputError, match="names no format"):
        vennforest.load(path)


def test_flipped_and_missing_bytes_are_seen_or_harmless(path):
    scores = np.linspace(0, 1, 40)
    expected, content = vennforest.load(path).predict_proba(scores), path.read_bytes()
    rng = np.random.default_rng(0)
    n_refused = 0
    for at in rng.integers(0, len(content), 60):
        path.write_bytes(content[:at] + bytes([content[at] ^ 0x15]) + content[at + 1 :])
        try:
            loaded = vennforest.load(path)
        except InputError:
            n_refused += 1
        else:
            np.testing.assert_array_equal(loaded.predict_proba(scores), expected)
    assert n_refused > 20
    for end in rng.integers(0, len(content), 20):
        path.write_bytes(content[:end])
        with pytest.raises(InputError):
            vennforest.load(path)


def test_an_archive_that_unpacks_to_gigabytes_is_not_read(path, tmp_path, monkeypatch):
    monkeypatch.setattr("vennforest._files.MAX_UNPACKED_BYTES", 1 << 20)
    zeros = bytes(1 << 24)
    rewritten(path, lambda schema, header, parts: parts.update(bomb=zeros))
    with pytest.raises(InputError, match="would unpack to"):
        vennforest.load(path)


def test_commands_and_loading_import_neither_torch_nor_dask(path):
    code = (
        "import sys, types\n"
        "class Finder:\n"
        "    def find_spec(self, name, *_):\n"
        "        assert name not in ('torch', 'dask'), name\n"
        "sys.meta_path.insert(0, Finder())\n"
        "import vennforest.commands.predict, vennforest.commands.watch\n"
        "vennforest.load(sys.argv[1])\n"
        "assert sys.modules.get('torch', 0) == 0 and sys.modules.get('dask', 0) == 0"
    )
    subprocess.run([sys.executable, "-c", code, path], check=True)


@pytest.mark.parametrize("make", [VennAbers, Venn, IsotonicCalibration, PlattScaling])
def test_fitted_arrays_out_of_range_are_refused(make, tmp_path):
    """Kernels follow these arrays: a NaN, a wrong order or length is found when they are read."""
    rng = np.random.default_rng(3)
    scores = rng.random(60)
    y = (scores > rng.random(60)).astype(int)
    fitted = vars(make().fit(scores, y))
    arrays = [n for n, value in fitted.items() if isinstance(value, np.ndarray) and value.size > 1]
    n_refused = 0
    for name in arrays:
        for spoil in (
            lambda a: np.where(np.arange(a.size).reshape(a.shape) == 1, np.nan, a.astype(float)),
            lambda a: a[:-1],
        ):
            model = make().fit(scores, y)
            setattr(model, name, spoil(fitted[name]))
            save_spoilt(model, tmp_path / "m.skops")
            try:
                loaded = vennforest.load(tmp_path / "m.skops")
            except InputError:
                n_refused += 1
            else:
                p = loaded.predict_proba(scores)
                assert np.isfinite(p).all() and (p >= 0).all() and (p <= 1).all(), name
    assert n_refused
