"""Write a notebook from a script whose cells begin with ``# %%``, run, with what it prints.

``python tools/make_notebook.py SCRIPT`` writes the notebook beside the script; ``--check
NOTEBOOK`` runs one from top to bottom and changes nothing. The script is what is edited and tested;
the notebook is what some readers prefer, and the site shows.
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
    """Return the notebook (nbformat 4.5), not run yet."""
    made = []
    for i, (kind, text) in enumerate(cells(script)):
        cell = {"cell_type": kind, "id": f"cell-{i}", "metadata": {}}
        if kind == "code":
            cell |= {"execution_count": None, "outputs": []}
        made.append(cell | {"source": text.splitlines(keepends=True)})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {
        "cells": made,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def run(content):
    """Return the notebook with what its cells print, run in a kernel of its own.

    A cell that fails ends it with its traceback.
    """
    import nbformat
    from nbclient import NotebookClient

    done = nbformat.from_dict(content)
    for cell in done["cells"]:
        cell["source"] = "".join(cell["source"])
    NotebookClient(done, timeout=600, kernel_name="python3").execute()
    for i, cell in enumerate(content["cells"]):
        if cell["cell_type"] == "code":
            ran = done["cells"][i]
            text = "".join(o["text"] for o in ran["outputs"] if o["output_type"] == "stream")
            stream = {"name": "stdout", "output_type": "stream"}
            cell["execution_count"] = ran["execution_count"]
            cell["outputs"] = [stream | {"text": text.splitlines(keepends=True)}] if text else []
    return content


def main(arguments):
    """Write or check the notebooks that are named."""
    check = arguments[:1] == ["--check"]
    for name in arguments[check:]:
        path = Path(name)
        text = path.read_text("utf-8")
        if check:
            run(json.loads(text))
            continue
        made = json.dumps(run(notebook(text)), indent=1, ensure_ascii=False) + "\n"
        path.with_suffix(".ipynb").write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
