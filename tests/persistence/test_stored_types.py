"""Registered types in files: by their short names, made by their constructors, from anywhere."""

import subprocess
import sys
import tempfile
from pathlib import Path

import attrs
import numpy as np
import pytest

import vennforest
from support.forging import parts_of, rewritten, states
from vennforest import _state
from vennforest._messages import InputError
from vennforest._state import stored
from vennforest._validation import array
from vennforest.calibrators import Calibrator
from vennforest.calibrators.core.interface import Learnt


@stored("test-shares")
@attrs.frozen(eq=False)
class Shares(Learnt):
    """The share of each class, twice."""

    p: np.ndarray = attrs.field(validator=array(None, low=0, high=1))
    again: object = None


@stored("test-always-shares")
class AlwaysShares(Calibrator):
    """Gives every score the shares of the classes."""

    _keeps_columns = False
    _learns = Shares

    def _fit(self, scores, codes, weight, k):
        found = Shares(np.bincount(codes, weight, minlength=k) / len(codes))
        return Shares(found.p, (found, found))

    def _predict_proba(self, scores):
        return np.tile(self._learnt.p, (len(scores), 1))


def schema_of(model):
    """Return the description that a file of a model holds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.skops"
        vennforest.save(model, path)
        return parts_of(path)[0]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "model.skops"
    vennforest.save(AlwaysShares().fit([0.1, 0.2, 0.3, 0.4], [0, 1, 1, 1]), path)
    return path


def test_a_registered_type_needs_no_trust(path):
    model = vennforest.load(path)
    assert type(model) is AlwaysShares
    np.testing.assert_array_equal(model.predict_proba([0.5]), [[0.25, 0.75]])


def test_what_stands_twice_is_written_and_made_once(path):
    model = vennforest.load(path)
    learnt = model._fitted.learnt
    assert learnt.again[0] is learnt.again[1] and learnt.again[0].p is learnt.p
    schema = schema_of(model)
    shares = [one["__loader__"] for one in states(schema) if one["__class__"] == "test-shares"]
    assert sorted(shares) == ["CachedNode", "VennforestStateNode", "VennforestStateNode"]


def test_files_name_the_package_of_a_type_and_no_module():
    schema = schema_of(AlwaysShares().fit([0.1, 0.2], [0, 1]))
    named = {(one["__module__"], one["__class__"]) for one in states(schema)}
    assert (AlwaysShares.__module__.partition(".")[0], "test-always-shares") in named


def test_a_state_that_the_constructor_refuses_is_damage(path):
    def forge(schema, header, parts):
        for one in states(schema):
            if one["__class__"] == "test-shares" and "content" in one:
                one["content"] = {"q": one["content"]["p"]}

    rewritten(path, forge)
    with pytest.raises(InputError, match="is damaged: a Shares in it is not a result of fit"):
        vennforest.load(path)


def test_what_load_would_refuse_is_not_saved(tmp_path):
    model = AlwaysShares().fit([0.1, 0.2, 0.3, 0.4], [0, 1, 1, 1])
    model._fitted.learnt.p[0] = np.nan
    with pytest.raises(InputError, match=r"must be as fit left it.*p must be finite"):
        vennforest.save(model, tmp_path / "model.skops")
    assert not list(tmp_path.iterdir())


def test_a_type_that_nobody_registered_is_named_with_its_package(path, monkeypatch):
    package = AlwaysShares.__module__.partition(".")[0]
    monkeypatch.delitem(_state.STORED, "test-shares")
    with pytest.raises(
        InputError, match=f"contains 'test-shares', which {package} registers: import"
    ):
        vennforest.load(path)


def test_a_name_is_taken_once():
    with pytest.raises(ValueError, match="name must be new, got 'test-shares', which Shares has"):

        @stored("test-shares")
        class Other:
            pass


def test_a_fresh_process_knows_every_type_of_ours(tmp_path):
    pytest.importorskip("skrub")
    from models import make

    fit = {name: fit for name, fit, _ in make.models()}
    strict = [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-c"]
    for name in ("table", "monitor-scores-2", "oob-by-two"):
        vennforest.save(fit[name](), tmp_path / name)
        code = f"import vennforest; vennforest.load({str(tmp_path / name)!r})"
        subprocess.run([*strict, code], check=True)
