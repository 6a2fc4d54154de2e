"""Tables need pandas, pyarrow and skrub."""

from importlib.util import find_spec

NEEDED = ("pandas", "polars", "pyarrow", "skrub")
collect_ignore_glob = ["*"] if any(find_spec(name) is None for name in NEEDED) else []
