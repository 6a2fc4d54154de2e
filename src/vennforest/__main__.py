"""``python -m vennforest``, and the command ``vennforest``."""

from __future__ import annotations

import sys

NEEDED = ("typer", "rich")


def main() -> int:
    """Run the command line; without what it needs, say in one sentence what to install."""
    try:
        from vennforest.cli import main as run
    except ModuleNotFoundError as missing:
        if missing.name not in NEEDED:
            raise
        sys.stderr.write(
            f"Error: the command line needs {missing.name}: "
            "install it with pip install 'vennforest[all]'\n"
        )
        return 2
    return run()


if __name__ == "__main__":
    sys.exit(main())
