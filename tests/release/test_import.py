"""What the package imports, and when."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import vennforest

HEAVY = ("numpy", "scipy", "sklearn", "numba", "pandas", "matplotlib", "skops", "skrub")


def imported_by(code):
    """Return which heavy packages a new process has imported after running the code."""
    ask = f"import sys\n{code}\nprint(*[name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1].split()


def test_the_package_imports_nothing_before_it_is_used():
    # Help on a command names what is registered, and only then imports it.
    code = "import vennforest; vennforest.__version__; dir(vennforest); "
    code += "from vennforest.cli import main; main(['--help']); main(['fit'])"
    assert imported_by(code) == []
    code = (
        "from vennforest import CalibratedClassifier; import vennforest.plots, vennforest.metrics"
    )
    imported = set(imported_by(code))
    assert "sklearn" in imported and not {"skops", "skrub", "matplotlib"} & imported


def test_every_name_is_there():
    for name in vennforest.__all__:
        assert getattr(vennforest, name) is not None
        assert name in dir(vennforest)
    for module in (
        path.parent.name for path in Path(vennforest.__file__).parent.glob("*/__init__.py")
    ):
        assert getattr(vennforest, module) is import_module(f"vennforest.{module}"), module
    scope = {}
    exec("from vennforest import *", scope)
    assert scope["VennAbers"] is vennforest.VennAbers
    with pytest.raises(AttributeError, match="module 'vennforest' has no attribute 'nonsense'"):
        _ = vennforest.nonsense
