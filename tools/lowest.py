"""Print the lowest version that pyproject.toml allows of every dependency, as pip's constraints.

``make -f tools/Makefile test-lowest`` installs exactly these and runs the tests with them.
"""

import re
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
DEPENDENCY = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(\[[^]]*\])?(>=(?P<lowest>[0-9.]+))?$")


def constraints(project):
    """Yield a line for each dependency that names a lowest version."""
    every = [*project["dependencies"]]
    for extra in project["optional-dependencies"].values():
        every += extra
    for dependency in dict.fromkeys(every):
        found = DEPENDENCY.match(dependency)
        if found is None:
            raise SystemExit(f"{dependency!r} must read name>=version")
        if found["lowest"]:
            yield f"{found['name']}=={found['lowest']}"


if __name__ == "__main__":
    print("\n".join(constraints(tomllib.loads(PYPROJECT.read_text("utf-8"))["project"])))
