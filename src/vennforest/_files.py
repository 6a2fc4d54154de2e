"""Files: outputs tried before the work and written whole, and errors in one line."""

from __future__ import annotations

import errno
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from vennforest._messages import InputError

STREAM = "-"
"""Standard input or output in the place of a file."""

PARTS = ("*.parquet", "*.pq")
"""Which files of a folder are the parts of a table."""

LONGEST_HINT = 40
"""Letters of a file's name that the temporary file beside it is called by."""

URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+(.+)", re.DOTALL)
"""An address; one slash after the colon is what a path makes of two."""

PASSWORD = re.compile(r"(?<=://)[^?#]*:[^?#]*@")
"""A name and a password before the server's name; keys of Azure contain slashes."""


def url_of(path: str | os.PathLike[str]) -> str | None:
    """Return an address such as ``s3://bucket/scores.parquet``, None for a path on this machine."""
    found = URL.fullmatch(os.fspath(path))
    if found is None or found[1].lower() == "file" or Path(path).exists():
        return None
    return f"{found[1].lower()}://{found[2]}"


def shown_path(path: str | os.PathLike[str]) -> str:
    """Return what messages call a path: of an address without a password, key or signature."""
    url = url_of(path)
    if url is None:
        return os.fspath(path)
    if not url.startswith("abfs"):  # of which a name alone is that of a container
        url = re.sub(r"(?<=://)(?!anonymous@)[^/?#]*@", "***@", url)
    return re.sub(r"[?#].*", "?…", PASSWORD.sub("***@", url), flags=re.DOTALL)


class OutputError(OSError):
    """A file could not be written; the message is one sentence for the user."""


@dataclass(frozen=True)
class Input:
    """Mark the option of a command as a file to read, which messages call ``name``."""

    name: str


@dataclass(frozen=True)
class Output:
    """Mark the option of a command as a file to write, which messages call ``name``.

    With ``stream`` it may be ``-``, standard output.
    """

    name: str
    stream: bool = False


Mark = TypeVar("Mark", Input, Output)


def marked(options: Any, mark: type[Mark]) -> list[tuple[str, Mark]]:
    """Return the fields that a dataclass of options annotates with `Input`, or with `Output`."""
    annotations = get_type_hints(type(options), include_extras=True)
    return [
        (field, marker)
        for field, annotation in annotations.items()
        for marker in getattr(annotation, "__metadata__", ())
        if isinstance(marker, mark) and getattr(options, field) is not None
    ]


def check_files(options: Any) -> None:
    """Refuse a command's output that cannot be written, or that is an input or another output."""
    inputs = [(mark.name, str(getattr(options, field))) for field, mark in marked(options, Input)]
    outputs = []
    for field, output_mark in marked(options, Output):
        path = str(getattr(options, field))
        if path != STREAM:
            outputs.append((output_mark.name, path))
        elif not output_mark.stream:
            raise InputError(f"the {output_mark.name} must be a file, got {STREAM}")
    if sum(path == STREAM for _, path in inputs) > 1:
        raise InputError("only one input can be standard input, got - twice")
    for i, (name, output) in enumerate(outputs):
        for other, path in [*inputs, *outputs[:i]]:
            if is_same_file(output, path):
                raise InputError(
                    f"the {name} must not be written to the {other} itself, got {shown_path(path)} "
                    f"and {shown_path(output)}: name another file"
                )
            if _is_part(output, path):
                raise InputError(
                    f"the {name} must not be written to one of the files of the {other}, "
                    f"{shown_path(path)}, got {shown_path(output)}: name another file"
                )
        if url_of(output) is None:
            check_output(output)


def check_output(path: str | os.PathLike[str]) -> None:
    """Refuse a path that no file can be written to, before any work is done."""
    path = Path(path)
    try:
        target = _target(path)
        if target.is_dir():
            raise InputError(f"{path} is a folder: name a file in it")
        if target.exists() and not target.is_file():
            raise InputError(f"{path} is a pipe or a device: name a file")
        if not target.parent.is_dir():
            raise InputError(f"there is no folder {target.parent}: make it first")
        if target.exists() and not os.access(target, os.W_OK):
            raise InputError(f"{path} is protected against writing: name another file")
        temporary = _beside(target)
        try:
            temporary.touch(exist_ok=False)
            temporary.unlink()
        except BaseException:  # a signal too, which in a finally would come before the removal
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise InputError(f"{path} cannot be written: {one_line(error)}") from error


def files_of(path: Path) -> list[Path] | None:
    """Return the files that a folder or a pattern stands for, sorted; None: the path is neither.

    Of a folder these are the Parquet files, without those that begin with a dot or underscore. In
    a pattern ``*``, ``?`` and ``[…]`` stand in the name of the file.
    """
    found = _pattern(path)
    if found is None:
        return None
    folder, patterns = found
    try:
        return sorted(
            one for one in folder.iterdir() if _matches(one, patterns) and not one.is_dir()
        )
    except OSError:  # no such folder, or one that cannot be read
        return []


def _pattern(path: Path) -> tuple[Path, tuple[str, ...]] | None:
    try:
        if path.is_dir():
            return path, PARTS
        if path.exists() or not any(letter in path.name for letter in "*?["):
            return None
    except (OSError, ValueError):  # no path at all
        return None
    return path.parent, (path.name,)


def _matches(path: Path, patterns: tuple[str, ...]) -> bool:
    hidden = patterns is PARTS and path.name.startswith((".", "_"))
    return not hidden and any(fnmatchcase(path.name, pattern) for pattern in patterns)


def _is_part(output: str, table: str) -> bool:
    """Tell whether a path is one of the files that a folder or pattern stands for."""
    url, pattern = url_of(output), url_of(table)
    if url is not None and pattern is not None:
        folder = pattern.rstrip("/") + "/"
        return fnmatchcase(url, pattern) or url.startswith(folder)
    found = _pattern(Path(table))
    if url is not None or found is None:
        return False
    target = Path(os.path.realpath(output))
    return is_same_file(target.parent, found[0]) and _matches(target, found[1])


def refuse_special(path: Path) -> None:
    """Refuse to read from what is there but no file: a pipe may keep one waiting for ever."""
    with suppress(FileNotFoundError, NotADirectoryError, ValueError):
        path.stat()  # Path.exists keeps what it meets to itself from Python 3.14 on
    if path.exists() and not path.is_file() and not path.is_dir():
        raise InputError(f"{path} is a pipe or a device: write its content to a file first")


def is_same_file(path: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Tell whether two paths or addresses lead to one file or folder, by links of any kind too."""
    url, other_url = url_of(path), url_of(other)
    if url is not None or other_url is not None:
        return url == other_url
    try:
        if Path(path).exists() and Path(other).exists():
            return Path(path).samefile(other)
        return os.path.realpath(path) == os.path.realpath(other)
    except (OSError, ValueError):  # an error about the path itself comes when it is opened
        return False


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path beside the wanted one, and rename it when all went well.

    Whatever stops the work, no half-written file is left and an old one stays as it was.
    """
    path = Path(path)
    try:
        target = _target(path)
        part = _beside(target)
        try:
            part.touch(exist_ok=False)
            yield part
            if target.exists():
                part.chmod(target.stat().st_mode & 0o777)
            _flush(part)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {one_line(error)}") from error


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write text in UTF-8, whole or not at all; what is no letter becomes an escape."""
    with written_whole(path) as part:
        # A table may contain the name of a file, which need be no text.
        part.write_text(text, encoding="utf-8", errors="backslashreplace", newline="")


def _target(path: Path) -> Path:
    """Return the file that a path leads to: a link is followed, and stays."""
    with suppress(FileNotFoundError, NotADirectoryError):
        os.lstat(path)  # refuses a name that is too long
    if not path.is_symlink():
        return path
    with suppress(RuntimeError):  # of a circle before Python 3.13, which leaves it as it is
        target = path.resolve()
        if not target.is_symlink():
            return target
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))


def _beside(target: Path) -> Path:
    """Return a path in the same folder that nothing has yet."""
    return target.with_name(f".{target.name[:LONGEST_HINT]}.{secrets.token_hex(4)}.part")


def _flush(path: Path) -> None:
    """Have the disk take what was written, so its refusal is heard before the renaming."""
    with path.open("r+b") as file:
        os.fsync(file.fileno())


@contextmanager
def refused_as(what: str = "") -> Iterator[None]:
    """Turn a ``ValueError`` into an `InputError`: one line after "the model refuses the table"."""
    try:
        yield
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"{what}: {one_line(error)}" if what else one_line(error)) from error


def one_line(error: BaseException) -> str:
    """Return what an error says in one line of at most 200 characters."""
    if isinstance(error, OSError) and error.strerror:
        # Libraries wrap what the system says in words of their own.
        number = error.errno or 0
        return os.strerror(number) if number in errno.errorcode else error.strerror
    text = " ".join(str(error).split())
    text = text.removeprefix("Error tokenizing data. C error: ")
    return text if len(text) <= 200 else text[:199] + "…"
