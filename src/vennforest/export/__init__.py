"""Fitted calibrators and classifiers in other languages: JSON, SQL, step tables and ONNX."""

from typing import Any

from vennforest.export.formulas import table_of
from vennforest.export.json_form import from_json, to_json
from vennforest.export.sql import to_sql

__all__ = ["from_json", "table_of", "to_json", "to_onnx", "to_sql"]


def to_onnx(model: Any, X: Any = None, *, confidence: bool = False) -> Any:
    """Return a fitted model as an ONNX graph: see `vennforest.export.onnx_form.to_onnx`."""
    # Classifiers stand above calibrators, which need the rest of this package.
    from vennforest.export.onnx_form import to_onnx as convert

    return convert(model, X, confidence=confidence)
