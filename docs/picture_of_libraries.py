"""Draw how many modules of the package import each library, from the imports themselves."""

from __future__ import annotations

import sys
from html import escape

import grimp

PACKAGE = "vennforest"
WIDTH, ROW, LEFT = 560, 22, 118
# So many rooms are named beside a bar; of more a reader learns nothing.
NAMED = 3


def importers():
    """Return ``{library: modules that import it}``, the most used first, without running any."""
    graph = grimp.build_graph(PACKAGE, include_external_packages=True)
    found = {}
    for module in graph.modules:
        if module.split(".")[0] not in {PACKAGE, *sys.stdlib_module_names}:
            found[module] = sorted(graph.find_modules_that_directly_import(module))
    return dict(sorted(found.items(), key=lambda pair: (-len(pair[1]), pair[0])))


def picture():
    """Return the drawing, an SVG."""
    found = importers()
    most = max(len(modules) for modules in found.values())
    lines = []
    for i, (library, modules) in enumerate(found.items()):
        y = ROW * i + 34
        wide = max(2, 150 * len(modules) / most)
        rooms = sorted({m.split(".")[1] for m in modules if "." in m})
        words = f"{len(modules)}" + (f": {', '.join(rooms)}" if len(rooms) <= NAMED else "")
        lines.append(
            f'<text x="{LEFT - 6}" y="{y + 5}" class="name">{escape(library)}</text>'
            f'<rect x="{LEFT}" y="{y - 7}" width="{wide:.0f}" height="14"/>'
            f'<text x="{LEFT + wide + 6:.0f}" y="{y + 5}">{escape(words)}</text>'
        )
    high = ROW * len(found) + 30
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {high}"
 width="{WIDTH}" height="{high}" role="img" aria-label="Libraries and the modules that import them">
<style>
rect {{ fill: #80cbc4; }}
text {{ font: 14px sans-serif; fill: #123; }}
.name {{ text-anchor: end; }}
</style>
<rect width="{WIDTH}" height="{high}" style="fill:#fff"/>
<text x="{LEFT}" y="16">modules that import it, and their rooms where they are few</text>
{chr(10).join(lines)}
</svg>
"""
