"""What a reader meets on the pages: plain words, short sentences, links and commands that exist.

    python scripts/check_words.py

Looks at README.md and the pages of docs/ that people write, not at docs/results, where programs
write. It prints each finding with its page and line, and exits with 1 if there is one.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import typer

ROOT = Path(__file__).parents[1]
LONGEST = 40  # words of a sentence

# What to write instead. A phrase is matched without regard to case, at the borders of words.
INSTEAD = {
    r"at face value": "accurate, reliable",
    r"knows? anything about": "can predict",
    r"shares alone": "base rate",
    r"the shares of the classes": "the class frequencies",
    r"one time in twenty": "in 5% of cases",
    r"least wrong": "comes closest",
    r"least bad": "comes closest",
    r"lost in silence": "you get an error or a warning",
    r"tells? nothing of": "has no information about",
    r"in other words\?": "possible leakage",
    r"nor anyone of": "nor any other of",
    r"it goes on\.": "it continues",
    r"they gape": "they are far apart",
    r"anew": "again",
}

FENCE = re.compile(r"^```.*?^```", re.M | re.S)
INDENTED = re.compile(r"^(?: {4,}|\t)(?![-*\d]).*$", re.M)
LINK = re.compile(r"\]\(([^)\s]+)\)")
COMMAND = re.compile(r"(?:^ {4}|^\$ |\| |^)vennforest ([a-z]+)((?: .*)?)$", re.M)
OPTION = re.compile(r"(?<!\S)--[a-z][a-z0-9-]*")


def pages() -> list[Path]:
    """Return the pages that people write and read."""
    docs = [p for p in (ROOT / "docs").rglob("*.md") if "results" not in p.parts]
    return [ROOT / "README.md", *sorted(docs)]


def prose(text: str) -> str:
    """Return a page without its code, at the same lines."""

    def blank(match: re.Match[str]) -> str:
        return "\n" * match[0].count("\n")

    return INDENTED.sub("", FENCE.sub(blank, text))


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """Yield each sentence with its line; a row of a table or of a list is a paragraph."""
    for number, line in enumerate(prose(text).splitlines(), 1):
        for cell in line.split("|"):
            plain = re.sub(r"`[^`]*`", "x", LINK.sub("]", cell))
            for sentence in re.split(r"(?<=[.?!:;])\s+", plain):
                yield number, sentence


def long_sentences(text: str) -> Iterator[tuple[int, str]]:
    """Yield what is wrong with the length of sentences."""
    for number, sentence in sentences(text):
        words = len(re.findall(r"[\w’'-]*[A-Za-z][\w’'-]*", sentence))
        if words > LONGEST:
            yield number, f"a sentence of {words} words, at most {LONGEST}: {sentence[:60]}…"


def odd_words(text: str) -> Iterator[tuple[int, str]]:
    """Yield the words that have a plainer one."""
    for number, line in enumerate(prose(text).splitlines(), 1):
        for phrase, plain in INSTEAD.items():
            if found := re.search(rf"(?<!\w){phrase}(?!\w)", line, re.I):
                yield number, f'"{found[0]}": write "{plain}"'


def dead_links(path: Path, text: str, made: set[str]) -> Iterator[tuple[int, str]]:
    """Yield links to files that are not there; ``made`` are pages that the site's builder makes."""
    for match in LINK.finditer(FENCE.sub("", text)):
        target = match[1].partition("#")[0]
        if not target or "://" in target or target.startswith("mailto:"):
            continue
        name = Path(target).name
        if name in made or "api/" in target or (path.parent / target).exists():
            continue
        yield text[: match.start()].count("\n") + 1, f"there is no {target}"


def commands() -> dict[str, set[str]]:
    """Return the options of every command of the library."""
    import vennforest.cli  # noqa: F401  # registers the commands
    from vennforest.commands.arguments import app

    group = typer.main.get_command(app)
    return {
        name: {option for p in command.params for option in (*p.opts, *p.secondary_opts)}
        for name, command in getattr(group, "commands", {}).items()
    }


def unknown_options(text: str, known: dict[str, set[str]]) -> Iterator[tuple[int, str]]:
    """Yield commands in code, and their options, that the library does not have."""
    for match in COMMAND.finditer(text):
        number = text[: match.start()].count("\n") + 1
        name, rest = match[1], match[2].split("#")[0]
        if name in {"reproduce", "datasets"}:  # those of vennforest-experiments
            continue
        if name not in known:
            yield number, f"there is no command {name}"
            continue
        for option in OPTION.findall(rest):
            if option not in known[name] | {"--help"}:
                yield number, f"{name} has no option {option}"


def main() -> int:
    """Print what is wrong and return 1, or return 0."""
    made = {"first-steps.md", "changes.md", "contributing.md", "security.md", "conduct.md"}
    made |= {"architecture.svg", "libraries.svg"}
    known = commands()
    count = 0
    for path in pages():
        text = path.read_text("utf-8")
        found = [
            *long_sentences(text),
            *odd_words(text),
            *dead_links(path, text, made),
            *unknown_options(text, known),
        ]
        for number, message in sorted(found):
            print(f"{path.relative_to(ROOT)}:{number}: {message}")
        count += len(found)
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main())
