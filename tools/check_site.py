"""Walk through the built site: dead links, missing names, whatever is loaded from elsewhere.

``python tools/check_site.py SITE`` reads the pages as they are on disk and asks no network;
links to other sites are counted, not followed.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))

from interface import public_modules  # noqa: E402

# Elements whose address a browser fetches while it shows the page.
LOADING = {"script": "src", "img": "src", "source": "src", "iframe": "src", "link": "href"}
# <link rel=…> that are read, and not fetched.
NOT_FETCHED = {"canonical", "next", "prev", "edit", "alternate"}


class Page(HTMLParser):
    """Collect the anchors and addresses of a page."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.links, self.loaded, self.pictures = {"", "__top"}, [], [], []
        self.title = False
        text = path.read_text("utf-8")
        self.torn = re.findall(r"<p>\s*\|[^<]*", text)  # rows that stand apart from their table
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        """Take note of one element."""
        a = dict(attrs)
        self.anchors.update(v for v in (a.get("id"), a.get("name")) if v)
        self.title |= tag == "h1"
        if tag == "a" and a.get("href"):
            self.links.append(a["href"])
        address = a.get(LOADING.get(tag, ""))
        if address and not (tag == "link" and set((a.get("rel") or "").split()) & NOT_FETCHED):
            self.loaded.append(address)
        if tag == "img":
            self.pictures.append((a.get("src"), a.get("alt")))


def unlisted(site):
    """Return pages of docs/ that no entry of the navigation leads to."""
    listed = (ROOT / "mkdocs.yml").read_text("utf-8")
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    return {page for page in pages if f" {page}\n" not in listed}


def problems(site):
    """Yield a sentence for everything that is amiss."""
    pages = {path.resolve(): Page(path) for path in sorted(site.rglob("*.html"))}
    if not pages:
        yield f"{site} must hold pages"
    for path, page in pages.items():
        name = path.relative_to(site.resolve())
        if name.name == "404.html":
            continue
        if not page.title:
            yield f"{name} must have a title"
        for row in page.torn:
            yield f"{name}: the row {row!r} must be in its table"
        for source, alt in page.pictures:
            if not alt:
                yield f"{name}: the picture {source} must be described"
        for address in page.loaded:
            if urlsplit(address).scheme not in ("", "data") or address.startswith("//"):
                yield f"{name} must load nothing from elsewhere, got {address}"
        for address in {*page.links, *page.loaded}:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                yield f"{name} leads to {address}, which is not there"
            elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
                yield f"{name} leads to {address}: the page has no such heading"
    for name in sorted(unlisted(site)):
        yield f"{name} must have its place in mkdocs.yml"
    modules = public_modules()
    top = set(modules["vennforest"][1])
    for module, (_, names) in modules.items():
        page = pages.get((site / "api" / f"{module}.html").resolve())
        for public in names:
            if module != "vennforest" and public in top:
                continue
            if page is None or f"{module}.{public}" not in page.anchors:
                yield f"{module}.{public} must be documented"


if __name__ == "__main__":
    found = list(problems(Path(sys.argv[1])))
    for sentence in found:
        sys.stderr.write(f"{sentence}\n")
    sys.exit(bool(found))
