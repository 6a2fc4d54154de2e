"""Files: which of them a command reads and writes, outputs written whole, errors in one line."""

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

MAX_HINT = 40
"""Letters of a file's name in the name of its temporary file."""

MAX_ERROR = 200
"""Characters of another library's error in a message."""

URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+(.+)", re.DOTALL)
"""An address; `pathlib` leaves one slash of two."""

PASSWORD = re.compile(r"(?<=://)[^?#]*:[^?#]*@")
"""A name and a password before the server's name; keys of Azure contain slashes."""


class OutputError(OSError):
    """A file could not be written; the message is one sentence for the user."""


@dataclass(frozen=True)
class Input:
    """Mark the option of a command as a file to read, which messages call ``name``."""

    name: str


@dataclass(frozen=True)
class Output:
    """Mark the option of a command as a file to write, which messages call ``name``."""

    name: str


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
    earlier = inputs
    for field, output in marked(options, Output):
        path = str(getattr(options, field))
        for name, other in earlier:
            if is_same_file(path, other) or _is_part(path, other):
                raise InputError(
                    f"the {output.name} must not be written to the {name} itself, "
                    f"{shown_path(other)}, got {shown_path(path)}: name another file"
                )
        if url_of(path) is None:
            check_output(path)
        earlier = [*earlier, (output.name, path)]


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


def url_of(path: str | os.PathLike[str]) -> str | None:
    """Return an address such as ``s3://bucket/scores.parquet``, None for a path on this machine."""
    match = URL.fullmatch(os.fspath(path))
    if match is None or match[1].lower() == "file" or Path(path).exists():
        return None
    return f"{match[1].lower()}://{match[2]}"


def shown_path(path: str | os.PathLike[str]) -> str:
    """Return a path as messages show it: an address without its password, key or signature."""
    url = url_of(path)
    if url is None:
        return os.fspath(path)
    if not url.startswith("abfs"):  # where a name without a password is that of a container
        url = re.sub(r"(?<=://)(?!anonymous@)[^/?#]*@", "***@", url)
    return re.sub(r"[?#].*", "?…", PASSWORD.sub("***@", url), flags=re.DOTALL)


def is_same_file(path: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Return whether two paths or addresses lead to one file or folder, also by links."""
    url, other_url = url_of(path), url_of(other)
    if url is not None or other_url is not None:
        return url == other_url
    try:
        if Path(path).exists() and Path(other).exists():
            return Path(path).samefile(other)
        return os.path.realpath(path) == os.path.realpath(other)
    except (OSError, ValueError):  # an error about the path itself comes when it is opened
        return False


def files_of(path: Path) -> list[Path] | None:
    """Return the sorted files of a folder or pattern, None if the path is neither.

    Of a folder these are the Parquet files, without those that begin with a dot or underscore. In
    a pattern ``*``, ``?`` and ``[…]`` stand in the name of the file.
    """
    folder = _folder_of(path)
    if folder is None:
        return None
    try:
        return sorted(
            file for file in folder.iterdir() if _belongs(file, path) and not file.is_dir()
        )
    except OSError:  # no such folder, or one that cannot be read
        return []


def _folder_of(path: Path) -> Path | None:
    """Return a folder, or the folder of a pattern; None for a file."""
    try:
        if path.is_dir():
            return path
        is_pattern = not path.exists() and any(letter in path.name for letter in "*?[")
    except (OSError, ValueError):  # no path at all
        return None
    return path.parent if is_pattern else None


def _belongs(file: Path, path: Path) -> bool:
    """Return whether the name of a file in the folder of ``path`` is one that ``path`` means."""
    if not path.is_dir():
        return fnmatchcase(file.name, path.name)
    return file.suffix in (".parquet", ".pq") and not file.name.startswith((".", "_"))


def _is_part(output: str, table: str) -> bool:
    """Return whether an output is one of the files that a folder or pattern means."""
    url, pattern = url_of(output), url_of(table)
    if url is not None and pattern is not None:
        return fnmatchcase(url, pattern) or url.startswith(pattern.rstrip("/") + "/")
    folder = _folder_of(Path(table))
    if url is not None or folder is None:
        return False
    target = Path(os.path.realpath(output))
    return is_same_file(target.parent, folder) and _belongs(target, Path(table))


def refuse_special(path: Path) -> None:
    """Refuse to read from a pipe or device, which may keep one waiting for ever."""
    with suppress(FileNotFoundError, NotADirectoryError, ValueError):
        path.stat()  # raises, such as for a name that is too long, where Path.exists may not
    if path.exists() and not path.is_file() and not path.is_dir():
        raise InputError(f"{path} is a pipe or a device: write its content to a file first")


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path beside a file, and rename it to the file if all went well.

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
            with part.open("r+b") as file:  # a full disk is told before the renaming
                os.fsync(file.fileno())
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {one_line(error)}") from error


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write text in UTF-8, whole or not at all; lone surrogates become escapes."""
    with written_whole(path) as part:
        # The name of a file may be in it, which need not be text.
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
    """Return a new path in the same folder."""
    return target.with_name(f".{target.name[:MAX_HINT]}.{secrets.token_hex(4)}.part")


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
    """Return the message of an error in one line of at most `MAX_ERROR` characters."""
    if isinstance(error, OSError) and error.strerror:
        # Libraries put the message of the system into words of their own.
        number = error.errno or 0
        return os.strerror(number) if number in errno.errorcode else error.strerror
    text = " ".join(str(error).split())
    return text if len(text) <= MAX_ERROR else text[: MAX_ERROR - 1] + "…"
