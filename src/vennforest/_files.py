"""Input and output files of commands, local or at addresses; outputs are written atomically."""

from __future__ import annotations

import errno
import glob
import json
import os
import re
import secrets
import shutil
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar, get_type_hints

from vennforest._messages import InputError
from vennforest._messages import one_line as one_line

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

STANDARD = "-"
"""The path of standard input and output."""

URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+(.+)", re.DOTALL)
"""An address, with one slash where `pathlib` has dropped the other."""


ORPHANED_AFTER = 3600.0
"""Seconds without a change after which a temporary file may be that of a killed process."""


class OutputError(OSError):
    """A file could not be written; the message is one sentence for the user."""


@dataclass(frozen=True)
class Input:
    """Mark an option of a command as a file to read; messages call it ``name``."""

    name: str


@dataclass(frozen=True)
class Output:
    """Mark an option of a command as a file to write; messages call it ``name``.

    With ``files``, the option is a folder, to which files of these names may be written.
    """

    name: str
    files: tuple[str, ...] = ()


Mark = TypeVar("Mark", Input, Output)


def marked(options: Any, mark: type[Mark]) -> list[tuple[str, Mark]]:
    """Return the names and marks of the fields that are annotated with ``mark`` and not None."""
    annotations = get_type_hints(type(options), include_extras=True)
    return [
        (field, marker)
        for field, annotation in annotations.items()
        for marker in getattr(annotation, "__metadata__", ())
        if isinstance(marker, mark) and getattr(options, field) is not None
    ]


def check_files(options: Any) -> None:
    """Raise an error if an output cannot be written, or is also an input or another output."""
    paths = [(mark.name, str(getattr(options, field))) for field, mark in marked(options, Input)]
    if [path for _, path in paths].count(STANDARD) > 1:
        raise InputError("standard input, -, must be read once, got it for several files")
    paths = [(name, path) for name, path in paths if path != STANDARD]
    for field, output in marked(options, Output):
        path = str(getattr(options, field))
        targets = [path, *(str(Path(path, file)) for file in output.files)]
        for target, (name, other_path) in product(targets, paths):
            if is_same_file(target, other_path) or _is_part(target, other_path):
                raise InputError(
                    f"the {output.name} must not be written to the {name} itself, "
                    f"{shown_path(other_path)}, got {shown_path(target)}: name another file"
                )
        if output.files:
            check_folder(path)
        elif url_of(path) is None and not is_standard(path):
            check_output(path)
        paths += [(output.name, target) for target in targets]


def check_folder(path: str) -> None:
    """Raise an error if a path is neither a folder nor can become one."""
    target = Path(os.path.realpath(path))
    if url_of(path) is not None:
        raise InputError(f"{shown_path(path)} is an address: name a folder on this machine")
    if target.exists() and not target.is_dir():
        raise InputError(f"{path} is a file: name a folder")
    check_output((target if target.is_dir() else target.parent) / ".vennforest")


def check_output(path: str | os.PathLike[str]) -> None:
    """Raise an error if no file can be written to a path."""
    target = Path(os.path.realpath(path))
    try:
        if target.is_dir():
            raise InputError(f"{path} is a folder: name a file in it")
        if not target.parent.is_dir():
            raise InputError(f"there is no folder {target.parent}: make it first")
        if target.exists() and not (target.is_file() and os.access(target, os.W_OK)):
            raise InputError(f"{path} is not a file that can be written to: name another file")
        temporary = _temporary(target)
        try:
            temporary.touch(exist_ok=False)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {one_line(error)}") from error


def url_of(path: str | os.PathLike[str]) -> str | None:
    """Return an address such as ``s3://bucket/scores.parquet``, None for a path on this machine."""
    match = URL.fullmatch(os.fspath(path))
    if match is None or match[1].lower() == "file" or Path(path).exists():
        return None
    return f"{match[1].lower()}://{match[2]}"


def is_standard(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is ``-``, for standard input or output."""
    return os.fspath(path) == STANDARD


def shown_path(path: str | os.PathLike[str]) -> str:
    """Return an output's path for messages; an address loses its password, key and signature."""
    if is_standard(path):
        return "standard output"
    url = url_of(path)
    if url is None:
        return os.fspath(path)
    url = re.sub(r"(?<=://)[^?#]*@", "***@", url)  # keys of Azure contain slashes
    return re.sub(r"[?#].*", "?…", url, flags=re.DOTALL)


def is_same_file(path: str | os.PathLike[str], other_path: str | os.PathLike[str]) -> bool:
    """Return whether two paths or addresses, links followed, are the same file or folder."""
    url, other_url = url_of(path), url_of(other_path)
    if url is not None or other_url is not None:
        return url == other_url
    try:
        if Path(path).exists() and Path(other_path).exists():
            return Path(path).samefile(other_path)
        return os.path.realpath(path) == os.path.realpath(other_path)
    except (OSError, ValueError):  # an error about the path itself comes when it is opened
        return False


def files_of(path: Path) -> list[Path]:
    """Return the sorted Parquet files of a folder and the folders in it, or the file itself."""
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.rglob("*") if _is_parquet(file.relative_to(path)))


def _is_parquet(path: Path) -> bool:
    """Return whether a path in a folder is of a Parquet file that is not hidden."""
    is_hidden = any(part.startswith((".", "_")) for part in path.parts)
    return path.suffix in (".parquet", ".pq") and not is_hidden


def _is_part(output: str, table: str) -> bool:
    """Return whether an output is one of the Parquet files in or below the folder ``table``."""
    url, table_url = url_of(output), url_of(table)
    if url is not None or table_url is not None:
        return bool(url and table_url and url.startswith(table_url.rstrip("/") + "/"))
    target, folder = Path(os.path.realpath(output)), Path(os.path.realpath(table))
    is_below = folder.is_dir() and target.is_relative_to(folder)
    return is_below and _is_parquet(target.relative_to(folder))


def refuse_special(path: Path) -> None:
    """Raise an error for a pipe or device, since reading it might block for ever."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise InputError(f"{path} is a pipe or a device: write its content to a file first")


def read_json(source: str | os.PathLike[str], name: str, form: str) -> Any:
    """Return the content of JSON text or of a JSON file; ``name`` and ``form`` are for errors."""
    text = os.fspath(source)
    try:
        if not text.lstrip().startswith(("{", "[")):
            refuse_special(Path(source))
            text = Path(source).read_text(encoding="utf-8-sig")
        return json.loads(text)
    except FileNotFoundError:
        raise InputError(f"{name} must be {form}, and there is no file {source}") from None
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(
            f"{name} must be {form}, got JSON with a fault: {one_line(error)}"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{name} cannot be read from {source}: {one_line(error)}") from None


@contextmanager
def local_copy(path: Path) -> Iterator[Path]:
    """Yield a local path: the path itself, or a temporary copy of an address or standard input."""
    url = url_of(path)
    if url is None and not is_standard(path):
        refuse_special(path)
        yield path
        return
    with TemporaryDirectory() as folder:
        copy = Path(folder, "standard input")
        if url is None:
            with copy.open("wb") as content:
                shutil.copyfileobj(sys.stdin.buffer, content)
        else:
            with _address_errors(url, "read", InputError):
                system, address, copy = _at(url, folder)
                is_folder = system.isdir(address)
                for file in system.find(address) if is_folder else [address]:
                    part = copy / os.path.relpath(file, address) if is_folder else copy
                    if not is_folder or _is_parquet(part.relative_to(copy)):
                        part.parent.mkdir(parents=True, exist_ok=True)
                        system.get(file, str(part))
        try:
            yield copy
        except InputError as error:
            name = copy.name if url is None else shown_path(url)
            message = str(error).replace(str(copy), name)
            raise InputError(message.replace(folder + os.sep, "")) from error


def _at(url: str, folder: str) -> tuple[Any, str, Path]:
    """Return an address's file system, its path there, and a path of that name in ``folder``."""
    import fsspec

    system, address = fsspec.core.url_to_fs(url)
    return system, address, Path(folder, address.rstrip("/").rpartition("/")[2] or "table")


@contextmanager
def _address_errors(url: str, verb: str, kind: type[Exception]) -> Iterator[None]:
    """Replace errors of a storage library by ones whose messages contain no key."""
    try:
        yield
    except Exception as error:  # of the store's own type
        reason = type(error).__name__
        if isinstance(error, ImportError | ValueError):  # the latter of an unknown protocol
            reason = (
                f"{error if isinstance(error, ImportError) else reason}; addresses need fsspec and "
                "its package for them (s3fs, gcsfs, adlfs, aiohttp): install it, or copy the file "
                "here first"
            )
        elif isinstance(error, FileNotFoundError):
            reason = os.strerror(errno.ENOENT)
        elif isinstance(error, OSError) and error.errno:
            reason = os.strerror(error.errno)
        raise kind(f"{shown_path(url)} cannot be {verb}: {reason}") from None


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path, and move it to the path or address if no error was raised.

    What is written to ``-`` is copied to standard output.
    """
    url = url_of(path)
    if is_standard(path):
        with TemporaryDirectory() as folder:
            yield (part := Path(folder, "part"))
            with part.open("rb") as content:
                shutil.copyfileobj(content, sys.stdout.buffer)
        return
    if url is not None:
        with TemporaryDirectory() as folder:
            with _address_errors(url, "written", OutputError):
                system, address, part = _at(url, folder)
            yield part
            with _address_errors(url, "written", OutputError):
                system.put(str(part), address)
        return
    target = Path(os.path.realpath(path))  # a link is followed, and stays
    _sweep(target)
    part = _temporary(target)
    try:
        try:
            part.touch(exist_ok=False)
            with _locked(part):
                yield part
            if target.exists():
                part.chmod(target.stat().st_mode & 0o777)
            with part.open("r+b") as file:  # a full disk is reported before the renaming
                os.fsync(file.fileno())
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {one_line(error)}") from error


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write text in UTF-8 atomically; lone surrogates become escapes."""
    with written_whole(path) as part:
        # A file name in the text may contain bytes that are not UTF-8.
        part.write_text(text, encoding="utf-8", errors="backslashreplace", newline="")


def _temporary(target: Path, token: str | None = None) -> Path:
    """Return a path, by default a new one, for the content of the target until it is whole."""
    checksum = zlib.crc32(os.fsencode(target.name))
    token = token or secrets.token_hex(4)
    return target.with_name(f".{target.name[:40]}.{checksum:08x}.{token}.part")


def _sweep(target: Path) -> None:
    """Remove the temporary files of writers of the target that were killed.

    A file goes if nothing was written to it for `ORPHANED_AFTER` and no process holds its lock,
    as one does that waits for rows from a pipe.
    """
    pattern = glob.escape(_temporary(target, "TOKEN").name).replace("TOKEN", "?" * 8)
    for part in target.parent.glob(pattern):
        with suppress(OSError):
            if time.time() - part.stat().st_mtime > ORPHANED_AFTER:
                with _locked(part) as is_locked:
                    if is_locked:
                        part.unlink()


@contextmanager
def _locked(part: Path) -> Iterator[bool]:
    """Lock a temporary file; yield False if another process has, or the system has no locks."""
    if fcntl is None:  # on Windows, where files that are open can neither be moved nor removed
        yield True
        return
    with part.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_locked = True
        except OSError:
            is_locked = False
        yield is_locked


@contextmanager
def refused_as(prefix: str = "") -> Iterator[None]:
    """Turn a ``ValueError`` into a one-line `InputError` that begins with ``prefix``.

    An `InputError` passes unchanged.
    """
    try:
        yield
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"{prefix}: {one_line(error)}" if prefix else one_line(error)) from error
