"""Export of fitted calibrators and classifiers to JSON, SQL and ONNX."""

from vennforest.export.json_form import from_json, to_json
from vennforest.export.onnx_form import to_onnx
from vennforest.export.sql import to_sql

__all__ = ["from_json", "to_json", "to_onnx", "to_sql"]
