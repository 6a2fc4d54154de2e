"""Every number the same everywhere: as it was, and whatever it is computed with."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from golden import make

KEPT = json.loads(make.VALUES.read_text("utf-8"))
NAMES = [name for name, _, _ in make.cases()]

FAR = 1e-7
"""Logarithms and exponentials differ in the last bits from processor to processor, and what is
fitted with them by as much as the fit's stopping rule leaves open."""

FEW = ["map-venn-abers-3-weights", "forest-venn-abers-exchangeable-3", "folds-trees-3"]
"""Linear models are none of these: how their products are summed, and in how many bits, depends on
the type and the number of rows."""


def arrays(kept):
    return {
        key: np.array([[float.fromhex(x) for x in row] for row in value])
        for key, value in kept.items()
        if key != "estimators"
    }


def test_every_case_has_its_values():
    assert list(KEPT) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_values_are_what_they_were(name):
    """Bounds of Venn and Venn-Abers are sums and quotients alone: the same to the last bit.

    Only where a bound is widened to contain a fitted probability it may differ as that does.
    """
    model, new = make.fitted(name)
    if make.trees(model) != KEPT[name]["estimators"]:
        pytest.skip("this version of scikit-learn trains other trees")
    found, expected = make.answers(model, new), arrays(KEPT[name])
    assert set(found) == set(expected)
    for key, array in found.items():
        np.testing.assert_allclose(array, expected[key], rtol=FAR, atol=FAR, err_msg=key)
        if key in ("lower", "upper") and name.startswith("map-venn"):
            sums_alone = np.abs(array - found["p"]) > FAR
            np.testing.assert_array_equal(array[sums_alone], expected[key][sums_alone], key)


def test_the_same_bits_in_another_process_with_other_threads():
    environment = {
        **os.environ,
        "PYTHONHASHSEED": "4",
        "OMP_NUM_THREADS": "4",
        "NUMBA_NUM_THREADS": "4",
        "PYTHONPATH": os.pathsep.join([str(Path(make.__file__).parents[1]), *sys.path]),
    }
    done = subprocess.run(
        [sys.executable, make.__file__, *FEW],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    assert json.loads(done.stdout) == {name: make.value(name) for name in FEW}
