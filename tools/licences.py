"""Print the licence of everything installed beside this interpreter, and refuse unknown ones.

Run in an environment that holds vennforest and its dependencies alone: none of them may put
conditions on a user that the BSD licence does not.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import distributions

# Licences that ask for no more than their own text, and the Mozilla licence, which ends at a file.
PERMISSIVE = re.compile(
    r"BSD|MIT|Apache|PSF|Python Software Foundation|ISC|HPND|0BSD|Zlib|MPL|Unlicense|CC0", re.I
)
TOOLS = {"pip", "setuptools", "wheel"}


def licence(distribution):
    """Return what a distribution says of its licence, in the fields that there have been."""
    metadata = distribution.metadata
    classifiers = [c for c in metadata.get_all("Classifier") or [] if c.startswith("License ::")]
    told = [metadata.get("License-Expression"), *(c.split(" :: ")[-1] for c in classifiers)]
    short = (metadata.get("License") or "").strip().split("\n")[0][:60]
    found = "; ".join(t for t in [*told, short] if t and t != "OSI Approved")
    texts = [] if found else [f for f in distribution.files or [] if "LICEN" in f.name.upper()]
    return found or "; ".join(f.read_text().strip().split("\n")[0] for f in texts)


def main():
    """Print a line for each distribution; return whether one of them is not known to be free."""
    refused = False
    for distribution in sorted(distributions(), key=lambda d: d.metadata["Name"].lower()):
        name = distribution.metadata["Name"]
        if name.lower() in TOOLS:
            continue
        found = licence(distribution)
        known = bool(PERMISSIVE.search(found))
        refused |= not known
        print(f"{'' if known else 'UNKNOWN '}{name} {distribution.version}: {found or 'not told'}")
    return refused


if __name__ == "__main__":
    sys.exit(main())
