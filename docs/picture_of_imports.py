"""Draw which rooms of the package import which, from the imports themselves."""

from __future__ import annotations

import tomllib
from html import escape
from pathlib import Path

import grimp

PACKAGE = "vennforest"
WIDTH, ROW, HIGH = 860, 62, 34


def layers(root):
    """Return the rooms of each layer, the topmost first, from the contract that they keep."""
    project = tomllib.loads((Path(root) / "pyproject.toml").read_text("utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    [contract] = [c for c in contracts if c.get("containers") == [PACKAGE]]
    return [[room.strip(" ()") for room in layer.split("|")] for layer in contract["layers"]]


def imports(rooms):
    """Return ``{room: rooms it imports}``, read from the source, without running it."""
    graph = grimp.build_graph(PACKAGE, include_external_packages=False)
    found = {room: set() for room in rooms}
    for module in graph.modules:
        room = module.split(".")[1] if "." in module else None
        for imported in graph.find_modules_directly_imported_by(module):
            other = imported.split(".")[1] if "." in imported else None
            if room in found and other in found and other != room:
                found[room].add(other)
    return found


def reach(edges, start, seen=None):
    """Return every room that ``start`` reaches."""
    seen = set() if seen is None else seen
    for room in edges[start] - seen:
        seen.add(room)
        reach(edges, room, seen)
    return seen


def reduced(edges):
    """Return the edges that no longer path implies."""
    return {
        (a, b)
        for a, direct in edges.items()
        for b in direct
        if not any(b in reach(edges, c) for c in direct - {b} if a not in reach(edges, c))
    }


def picture(root):
    """Return the drawing, an SVG."""
    rows = layers(root)
    edges = imports([room for row in rows for room in row])
    place = {}
    for i, row in enumerate(rows):
        for j, room in enumerate(row):
            place[room] = (WIDTH * (j + 0.5) / len(row), ROW * (i + 0.5) + 8)
    lines, boxes = [], []
    for a, b in sorted(reduced(edges)):
        (x0, y0), (x1, y1) = place[a], place[b]
        start, end = y0 + HIGH / 2, y1 - HIGH / 2 - 5
        middle = (start + end) / 2
        lines.append(
            f'<path d="M{x0:.0f} {start:.0f} C{x0:.0f} {middle:.0f} {x1:.0f} {middle:.0f} '
            f'{x1:.0f} {end:.0f}" class="import" marker-end="url(#head)"/>'
        )
    for room, (x, y) in place.items():
        wide = max(70, 9.2 * len(room) + 18)
        boxes.append(
            f'<g><rect x="{x - wide / 2:.0f}" y="{y - HIGH / 2:.0f}" width="{wide:.0f}" '
            f'height="{HIGH}" rx="6"/><text x="{x:.0f}" y="{y + 5:.0f}">{escape(room)}</text></g>'
        )
    high = ROW * len(rows) + 16
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {high}" role="img"
 aria-label="Rooms of vennforest and what they import">
<style>
rect {{ fill: #e0f2f1; stroke: #00796b; }}
text {{ font: 15px monospace; text-anchor: middle; fill: #123; }}
.import {{ fill: none; stroke: #78909c; stroke-width: 1.3; }}
</style>
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"
 orient="auto"><path d="M0 0L8 4L0 8z" fill="#78909c"/></marker></defs>
<rect width="{WIDTH}" height="{high}" style="fill:#fff;stroke:none"/>
{chr(10).join(lines)}
{chr(10).join(boxes)}
</svg>
"""
