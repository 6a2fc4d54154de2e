"""Write a notebook from a script whose cells begin with ``# %%``, without outputs.

``python scripts/make_notebook.py SCRIPT`` writes the notebook beside the script. The script is
what is edited and tested; the notebook is what some readers prefer.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

MARK = re.compile(r"^# %%( \[markdown\])?\n", re.M)


def cells(script):
    """Yield the kind and the text of each cell."""
    parts = MARK.split(script)
    for kind, text in zip(parts[1::2], parts[2::2], strict=True):
        if kind:
            yield "markdown", re.sub(r"^# ?", "", text.strip("\n"), flags=re.M)
        else:
            yield "code", text.strip("\n")


def notebook(script):
    """Return the notebook (nbformat 4.5) as text."""
    made = []
    for i, (kind, text) in enumerate(cells(script)):
        cell = {"cell_type": kind, "id": f"cell-{i}", "metadata": {}}
        if kind == "code":
            cell |= {"execution_count": None, "outputs": []}
        made.append(cell | {"source": text.splitlines(keepends=True)})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {
        "cells": made,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name)
        path.with_suffix(".ipynb").write_text(notebook(path.read_text("utf-8")), encoding="utf-8")
