"""Tables read as commands read them."""

from vennforest.tables.open import TableFile, TableFormat


def read_table(path, as_text=(), missing=(), form=None):
    """Return the rows of a table in a file."""
    return TableFile(path, form or TableFormat()).read(as_text, missing)
