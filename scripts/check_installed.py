"""Compare every installed file with the sum that its package recorded, and name the others.

Run in an environment: a file that was changed, cut short or taken away since its package was built
is one that nobody reviewed. It needs no network. What installs packages is none of them: systems
put their own certificates into pip.
"""

from __future__ import annotations

import base64
import hashlib
import sys
from importlib.metadata import distributions

from licences import TOOLS


def amiss(distribution):
    """Yield a sentence for every file of a distribution that is not what was recorded."""
    for file in distribution.files or ():
        if file.hash is None:  # the record itself, and what was compiled here
            continue
        path = file.locate()
        if not path.exists():
            yield f"{distribution.metadata['Name']}: {file} is missing"
            continue
        found = hashlib.new(file.hash.mode, path.read_bytes()).digest()
        if base64.urlsafe_b64encode(found).rstrip(b"=").decode() != file.hash.value:
            yield f"{distribution.metadata['Name']}: {file} was changed"


def main():
    """Print what is amiss; return whether anything is."""
    every = [d for d in distributions() if d.metadata["Name"].lower() not in TOOLS]
    found = [sentence for distribution in every for sentence in amiss(distribution)]
    print(*found, f"{len(every)} packages, {len(found)} files amiss", sep="\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
