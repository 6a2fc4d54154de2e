"""What the image of the page on deployment does while it is built, as far as it needs no Docker."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from support.commands import run

PAGE = Path(__file__).parents[2] / "docs/how-to/deploy.md"
DOCKERFILE = re.search(r"```dockerfile\n(.*?)```", PAGE.read_text("utf-8"), re.S)[1]


def test_the_image_names_its_parts():
    settings = re.search(r"^ENV (.*)$", DOCKERFILE, re.M)[1].split()
    folder = dict(setting.split("=") for setting in settings)["NUMBA_CACHE_DIR"]
    assert f"chmod -R a+rwX {folder}" in DOCKERFILE
    assert re.search(r"^FROM python:3\.(11|12|13|14)-slim$", DOCKERFILE, re.M)


@pytest.mark.slow
def test_what_the_image_compiles_is_not_compiled_again(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(80, 2)), columns=["a", "b"])
    table["y"] = np.where(table["a"] + rng.normal(size=80) > 0, "yes", "no")
    table.to_csv(tmp_path / "rows.csv", index=False)
    model = tmp_path / "model.skops"
    assert run("fit", tmp_path / "rows.csv", "-t", "y", "--trees", "20", "-o", model) == 0
    cache = tmp_path / "numba-cache"
    line = re.search(r"^RUN vennforest (.*?) && ", DOCKERFILE, re.M)[1]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "NUMBA_CPU_NAME": "generic"}

    def predict():
        output = tmp_path / "out.parquet"
        arguments = [part.replace("/tmp/rows.parquet", str(output)) for part in shlex.split(line)]
        command = [sys.executable, "-m", "vennforest", *arguments]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        files = {path: path.stat().st_mtime_ns for path in cache.rglob("*.nb?")}
        return pd.read_parquet(output), files

    first, compiled = predict()
    assert compiled
    again, kept = predict()
    assert kept == compiled
    pd.testing.assert_frame_equal(first, again)
