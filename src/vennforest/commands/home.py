"""The user's home, in which no command makes a folder unasked."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path


def spare_the_home() -> None:
    """Have what is imported later make its folders elsewhere, for this process only.

    skrub makes one for data sets, of which commands fetch none. matplotlib keeps a list of fonts
    and works without one, so that its folders are used where they are, and else not made.
    """
    os.environ.setdefault("SKB_DATA_DIRECTORY", tempfile.gettempdir())
    if "matplotlib" in sys.modules or "MPLCONFIGDIR" in os.environ:
        return
    with suppress(RuntimeError):  # there may be no home
        home = Path.home()
        settings = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
        if (settings / "matplotlib").is_dir() or (home / ".matplotlib").is_dir():
            return
    folder = tempfile.mkdtemp(prefix="vennforest-")
    os.environ["MPLCONFIGDIR"] = folder
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
