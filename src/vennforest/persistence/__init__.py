"""Models in files, as data that is read and never code that runs, and as graphs."""

from vennforest.persistence.archive import read_header
from vennforest.persistence.model_file import load, save, write_model
from vennforest.persistence.onnx_form import to_onnx

__all__ = ["load", "read_header", "save", "to_onnx", "write_model"]
