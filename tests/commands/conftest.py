"""The commands need every package of the extra ``all``."""

from importlib.util import find_spec

NEEDED = ("typer", "rich", "pandas", "pyarrow", "skops", "skrub", "matplotlib", "jinja2")
collect_ignore_glob = ["*"] if any(find_spec(name) is None for name in NEEDED) else []
