"""What the archives say of the project's addresses, made from one variable of pyproject.toml."""

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

# Where each page is, below the address of the repository.
PAGES = {
    "Source": "",
    "Issues": "/issues",
    "Changelog": "/blob/main/CHANGELOG.md",
}
RELATIVE = re.compile(r"(\]\(|src=\"|href=\")(?![a-z]+:|#)")


class CustomMetadataHook(MetadataHookInterface):
    """Fill ``project.urls`` and the links of the README; none while the address is empty."""

    def update(self, metadata):
        """Add what ``tool.hatch.metadata.hooks.custom`` says to the metadata."""
        repository = self.config["repository"].rstrip("/")
        documentation = self.config["documentation"]
        urls = {"Documentation": documentation} if documentation else {}
        readme = (Path(self.root) / "README.md").read_text("utf-8")
        if repository:
            urls |= {name: repository + page for name, page in PAGES.items()}
            readme = RELATIVE.sub(rf"\1{repository}/raw/main/", readme)
        metadata["urls"] = urls
        metadata["readme"] = {"content-type": "text/markdown", "text": readme}
