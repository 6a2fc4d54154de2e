"""Serve an ONNX graph, by onnxruntime and numpy alone: python graph.py model.onnx 8000"""

import sys

import numpy as np
import onnxruntime
from service import serve

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1  # requests are answered side by side
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
(rows_input,) = session.get_inputs()
names = [output.name for output in session.get_outputs()]


def answer(rows):
    values = session.run(names, {rows_input.name: np.array(rows, np.float64)})
    return {name: column.tolist() for name, column in zip(names, values, strict=True)}


if __name__ == "__main__":
    serve(answer, rows_input.shape[1])
