"""What ``import vennforest`` gives, and what it does not do yet."""

import subprocess
import sys

import pytest

import vennforest


def test_every_public_name_is_there():
    for name in vennforest.__all__:
        assert getattr(vennforest, name) is not None
    assert set(vennforest.__all__) <= set(dir(vennforest))
    assert vennforest.metrics.__name__ == "vennforest.metrics"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        vennforest.nothing  # noqa: B018


def test_importing_is_light():
    """What takes a second is imported when it is first used, under the eyes of the caller."""
    code = "import sys, vennforest; print(len({'numpy', 'sklearn', 'numba'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"
