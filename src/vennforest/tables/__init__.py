"""Tables in files and data frames: one reader for fit, predict and report."""

from vennforest.tables.columns import TableColumns
from vennforest.tables.vectorize import TableEncoder, table_pipeline

__all__ = ["TableColumns", "TableEncoder", "table_pipeline"]
