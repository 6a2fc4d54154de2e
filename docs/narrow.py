"""Make a page's tables and code readable on a narrow screen, and its file names links.

Everything here works on the finished HTML of a page, so the Markdown stays plain.
"""

from __future__ import annotations

import re
from html import escape, unescape

TABLE = re.compile(r"<table>.*?</table>", re.S)
ROW = re.compile(r"<tr[^>]*>.*?</tr>", re.S)
CELL = re.compile(r"<t([hd])([^>]*)>(.*?)</t\1>", re.S)
# Code on a line of its own (with <pre> before it) scrolls, and is left alone.
BLOCK = re.compile(r"(<pre\b.*?</pre>)", re.S)
CODE = re.compile(r"<code>(.*?)</code>", re.S)
TAG = re.compile(r"(<[^>]*>)")
# Columns whose names say nothing where a cell stands below the first.
SELF_EVIDENT = {"", "Description"}
# Characters of a word of code that stays whole.
LONG = 24
PAGE = re.compile(r"(?<!\">)<code>docs/([\w/-]+\.md)</code>")


def _text(html):
    return " ".join(TAG.sub("", html).split())


def _is_prose(rows, columns):
    """Whether a table's cells are sentences or calls, which narrow columns would tear apart."""
    cells = [_text(cell) for row in rows for _, _, cell in CELL.findall(row) if _text(cell)]
    long = sum(len(cell) > 30 for cell in cells)
    return 2 <= columns <= 5 and long >= 0.2 * len(cells)


def _stack(table):
    """Mark a table of prose, whose rows stand under each other on a narrow screen.

    From three columns on each cell is told the name of its column.
    """
    head, *body = ROW.findall(table)
    names = [unescape(_text(cell)) for _, _, cell in CELL.findall(head)]
    if not body or not _is_prose(body, len(names)):
        return table
    shown = names if len(names) > 2 else [""] * len(names)

    def labelled(row):
        columns = iter(shown)

        def cell(found):
            name = next(columns, "")
            sign = "" if name.endswith("=") else ":"
            label = (
                f' data-label="{escape(name)}{sign}"'
                if name not in SELF_EVIDENT | {shown[0]}
                else ""
            )
            return f"<t{found[1]}{found[2]}{label}>{found[3]}</t{found[1]}>"

        return CELL.sub(cell, row)

    start, _, rest = table.partition(head)
    rows = ROW.sub(lambda found: labelled(found[0]), rest)
    return start.replace("<table>", "<table data-stack>") + head + rows


def _breaks(code):
    """Let long code end a line after punctuation, and no line end within the name of an option."""

    def word(found):
        token = found[0]
        if re.fullmatch(r"--?\w[\w-]*", token):
            return f'<span class="option">{token}</span>'
        if len(token) < LONG:
            return token
        return re.sub(r"(?<=\w)([.,=/]|[(\[{]+)(?=[^\W\d]|[\"'&(\[{])", r"\1<wbr>", token)

    parts = TAG.split(code)
    parts[::2] = [re.sub(r"\S+", word, part) for part in parts[::2]]
    return "".join(parts)


def narrow(html, link):
    """Return a page's HTML with tables marked, code that breaks well, and links to pages.

    ``link`` takes the name of a page's file and returns its address and title, or None.
    """

    def linked(found):
        target = link(found[1])
        return found[0] if target is None else f'<a href="{target[0]}">{target[1]}</a>'

    parts = BLOCK.split(TABLE.sub(lambda found: _stack(found[0]), html))
    for i in range(0, len(parts), 2):
        text = PAGE.sub(linked, parts[i])
        parts[i] = CODE.sub(lambda found: f"<code>{_breaks(found[1])}</code>", text)
    return "".join(parts)
