"""A small HTTP service: rows of numbers in, probabilities out.

POST /predict    {"rows": [[1.5, 0.2], [0.3, null]]}    null is a missing cell
200              {"p": [0.31, 0.08], "p0": [0.29, 0.07], "p1": [0.33, 0.1]}
400              {"error": "row 1 is refused"}
"""

import json
import math
import sys

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse
from starlette.routing import Route

MAX_BYTES, MAX_ROWS = 1_000_000, 1_000


def rows_of(body, n_columns):
    """Return the rows of a request, or raise a ValueError that says what is wrong."""
    try:
        rows = json.loads(body)["rows"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ValueError('the request must be JSON with "rows"') from None
    if not isinstance(rows, list) or not 0 < len(rows) <= MAX_ROWS:
        raise ValueError(f"rows must be a list of 1 to {MAX_ROWS} rows")
    for i, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != n_columns:
            raise ValueError(f"row {i} must be a list of {n_columns} numbers")
        if not all(x is None or type(x) in (int, float) for x in row):
            raise ValueError(f"row {i} must have numbers or null")
    try:
        return [[math.nan if x is None else float(x) for x in row] for row in rows]
    except OverflowError:
        raise ValueError("numbers must be those of doubles") from None


def serve(answer, n_columns):
    """Answer on the loopback address at the port of the command line.

    ``answer`` takes rows and returns lists of numbers by name, NaN where it refuses a row.
    """

    async def predict(request):
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BYTES:
                return JSONResponse({"error": "the request is too long"}, 413)
        try:
            rows = rows_of(bytes(body), n_columns)
            answers = await run_in_threadpool(answer, rows)
            for i, values in enumerate(zip(*answers.values(), strict=True)):
                if any(x is None or math.isnan(x) for x in values):
                    raise ValueError(f"row {i} is refused")
        except ValueError as error:  # vennforest's refusals too
            return JSONResponse({"error": str(error)}, 400)
        return JSONResponse(answers)

    app = Starlette(routes=[Route("/predict", predict, methods=["POST"])])
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="warning")
