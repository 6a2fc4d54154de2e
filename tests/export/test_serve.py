"""The services of examples/serve answer what the model answers, to many requests at once."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from vennforest import CalibratedClassifier, VennAbers, save
from vennforest.export import to_onnx, to_sql

SERVE = Path(__file__).parents[2] / "examples" / "serve"
N_REQUESTS, N_THREADS, MAX_SECONDS = 2_000, 8, 300

TABLE = "(SELECT unnest(range(len($scores))) AS i, unnest($scores) AS score)"

BROKEN = [
    b"",
    b"{",
    b"[1]",
    b'{"rows": []}',
    b'{"rows": [[1]], "rows": 5}',
    b'{"rows": [["a", "b", "c", "d"]]}',
    b'{"rows": [[1, 2, 3, 4, 5]]}',
    b'{"rows": [[1e400, 0, 0, 0]]}',
    b'{"rows": [[1' + b"0" * 400 + b", 0, 0, 0]]}",
    b"[" * 100_000,
    b" " * 2_000_000,
    "{\"rows\": [[1, 2, 3, '×']]}".encode("latin-1"),
]


@contextmanager
def service(script, path):
    """Start a service at a free port; yield a function from a body to a status and an answer."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, str(SERVE / script), str(path), str(port)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, env=environment)

    def post(body):
        request = urllib.request.Request(f"http://127.0.0.1:{port}/predict", data=body)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.status, json.loads(response.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    try:
        deadline = time.monotonic() + 120
        while True:
            assert process.poll() is None, "the service ended"
            assert time.monotonic() < deadline
            try:
                post(b"{}")
                break
            except (ConnectionError, urllib.error.URLError):
                time.sleep(0.1)
        yield post
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(20261128)
    X = rng.normal(size=(300, 4))
    y = X[:, 0] + rng.logistic(size=300) > 0
    return CalibratedClassifier(RandomForestClassifier(30, random_state=0), merge="log").fit(X, y)


def requests(n_columns):
    """Yield bodies and their rows, None for one that is broken."""
    rng = np.random.default_rng(20261129)
    for i in range(N_REQUESTS):
        if i % 8 == 7:
            yield BROKEN[i // 8 % len(BROKEN)], None
            continue
        rows = rng.normal(size=(int(rng.integers(1, 6)), n_columns))
        rows = rows if n_columns > 1 else 1 / (1 + np.exp(-3 * rows))
        document = rows.tolist()
        if i % 8 == 3:  # a forest takes missing cells, a calibrator no missing score
            document[-1][-1], rows[-1, -1] = None, np.nan
        is_refused = n_columns == 1 and np.isnan(rows).any()
        yield json.dumps({"rows": document}).encode(), None if is_refused else rows


@pytest.mark.slow
@pytest.mark.parametrize("script", ["model_file.py", "graph.py", "query.py"])
def test_every_answer_is_that_of_the_model(script, model, tmp_path):
    pytest.importorskip("starlette")
    pytest.importorskip("uvicorn")
    path, n_columns, reference = tmp_path / "model", 4, model
    if script == "model_file.py":
        pytest.importorskip("skops")
        path = path.with_suffix(".skops")
        save(model, path)
    elif script == "graph.py":
        pytest.importorskip("onnxruntime")
        path.write_bytes(to_onnx(model).SerializeToString())
    else:
        pytest.importorskip("duckdb")
        n_columns, reference = 1, VennAbers("log")
        reference.fit(model.calibration_scores_, model.calibration_y_)
        path.write_text(to_sql(reference, table=TABLE))
    cases = list(requests(n_columns))
    start = time.monotonic()
    with service(script, path) as post, ThreadPoolExecutor(N_THREADS) as threads:
        answers = list(threads.map(post, (body for body, _ in cases), timeout=MAX_SECONDS))
    assert time.monotonic() - start < MAX_SECONDS
    n_answered = 0
    for (_, rows), (status, answer) in zip(cases, answers, strict=True):
        if rows is None:
            assert status in (400, 413)
            assert answer.keys() == {"error"}
            continue
        assert status == 200, answer
        rows = rows[:, 0] if n_columns == 1 else rows
        bounds = reference.predict_multiprobability(rows)
        expected = {"p": reference.predict_proba(rows)[:, 1], "p0": bounds.p0, "p1": bounds.p1}
        assert answer.keys() == expected.keys()
        for name, values in expected.items():
            np.testing.assert_allclose(answer[name], values, rtol=0, atol=1e-12)
        n_answered += 1
    assert n_answered > N_REQUESTS / 2
