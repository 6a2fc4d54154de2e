"""The program where packages of the command line are missing."""

import subprocess
import sys


def test_without_typer_one_sentence():
    code = (
        "import sys; sys.modules['typer'] = None\n"
        "from vennforest.__main__ import main; sys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "pip install 'vennforest[all]'" in done.stderr
