"""``python -m vennforest_experiments``."""

import sys

from vennforest_experiments.cli import main

if __name__ == "__main__":
    sys.exit(main())
