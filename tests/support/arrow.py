"""What the installed pyarrow can write."""

import io

import pyarrow
from pyarrow import parquet


def _writes_views():
    """Return whether Parquet files may have columns of the type string_view."""
    try:
        table = pyarrow.table({"a": pyarrow.array(["b"], pyarrow.string_view())})
        parquet.write_table(table, io.BytesIO())
    except pyarrow.ArrowNotImplementedError:  # before pyarrow 21
        return False
    return True


TEXT_TYPES = [pyarrow.string(), pyarrow.large_string()]
"""Types of text in Parquet files that the installed pyarrow can write."""
if _writes_views():
    TEXT_TYPES.append(pyarrow.string_view())
