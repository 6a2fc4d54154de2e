"""The version is one text for the package, its metadata and the command line."""

from importlib.metadata import version

import vennforest
from support.commands import run
from vennforest import _program


def test_the_version_is_the_same_everywhere(capsys):
    assert vennforest.__version__ == _program.__version__ == version("vennforest")
    assert run("--version") == 0
    assert capsys.readouterr().out.split() == ["vennforest", _program.__version__]
