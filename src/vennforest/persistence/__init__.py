"""Save fitted models to files that contain data and no code, and load them."""

from vennforest.persistence.model_file import load, read_header, save, write_model

__all__ = ["load", "read_header", "save", "write_model"]
