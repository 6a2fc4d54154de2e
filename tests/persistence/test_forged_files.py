"""Files and documents in which one learnt value was replaced: refused, or answered as usual."""

import json
import os
import secrets
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("skops")

import vennforest
from support.forging import save_spoilt
from vennforest import PlattScaling, PooledCalibration, Venn
from vennforest._messages import InputError
from vennforest.export import from_json, to_json
from vennforest.sources import Fold


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


def test_counts_whose_sum_overflows_are_refused(tmp_path):
    model = Venn().fit([0.1, 0.2, 0.8, 0.9], [0, 1, 0, 1])
    model.counts_ = np.full((2, 2), 1e308)
    save_spoilt(model, tmp_path / "m.skops")
    with pytest.raises(InputError, match="counts_ must have a finite sum"):
        vennforest.load(tmp_path / "m.skops")
