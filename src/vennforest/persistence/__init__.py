"""Models in files, as data that is read and never code that runs."""

from vennforest.persistence.archive import read_header
from vennforest.persistence.model_file import load, save, write_model

__all__ = ["load", "read_header", "save", "write_model"]
