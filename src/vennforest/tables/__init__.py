"""Tables in files and data frames: one reader for fit, predict and report."""

from vennforest._messages import needed

for package in ("pandas", "pyarrow"):
    needed(package, "tables")

from vennforest.tables.schema import TableColumns  # noqa: E402
from vennforest.tables.vectorize import TableEncoder, table_pipeline  # noqa: E402

__all__ = ["TableColumns", "TableEncoder", "table_pipeline"]
