"""Input and output files of commands, local or at addresses; outputs are written atomically."""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import shutil
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar, get_type_hints

from vennforest._messages import InputError
from vennforest._messages import one_line as one_line

STANDARD = "-"
"""The path of standard input and output."""

ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://(.*)", re.DOTALL)


MAX_UNPACKED_BYTES, MAX_UNPACKED_RATIO = 1 << 28, 100
"""Unpacked size up to which an archive is accepted, and ratio to the packed size of larger ones."""


class OutputError(OSError):
    """A file could not be written; the message is one sentence for the user."""


class Address(str):
    """The address of a file on another machine, such as ``s3://bucket/scores.parquet``."""


@dataclass(frozen=True)
class Input:
    """Mark an option of a command as a file to read; messages call it ``name``.

    With ``or_json``, the option may be the text of the JSON itself.
    """

    name: str
    or_json: bool = False


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


def location(path: str | os.PathLike[str]) -> Path | Address:
    """Return the path of a file on this machine, or an address, as fsspec understands the text.

    ``local://`` and ``file://`` are paths. ``memory://`` is refused, since its files vanish with
    the process, and so are chains (``zip://…::…``, ``generic://``), which may end at a file on
    this machine.
    """
    match = None if isinstance(path, Path) else ADDRESS.fullmatch(os.fspath(path))
    if match is None or Path(path).exists():
        return Path(path)
    protocol, remote_path = match[1].lower(), match[2]
    if protocol in ("memory", "generic") or "::" in remote_path:
        raise InputError(f"{shown_path(path)} is no address of a file that stays: name another")
    address = Address(f"{protocol}://{remote_path}")
    if protocol in ("file", "local"):
        with suppress(ImportError):  # the error comes when the address is opened
            from fsspec.implementations.local import LocalFileSystem

            return Path(LocalFileSystem._strip_protocol(address))
    return address


def check_files(options: Any) -> None:
    """Raise an error if an output cannot be written, or is also an input or another output."""
    inputs = [(mark.name, getattr(options, field)) for field, mark in marked(options, Input)]
    if [str(path) for _, path in inputs].count(STANDARD) > 1:
        raise InputError("standard input, -, must be read once, got it for several files")
    inputs = [(name, location(path)) for name, path in inputs if str(path) != STANDARD]
    outputs: list[tuple[str, Path | Address]] = []
    for field, mark in marked(options, Output):
        path = location(getattr(options, field))
        targets = [path, *(Path(path, file) for file in mark.files)]
        for target, (name, other_path) in product(targets, [*inputs, *outputs]):
            if is_same_file(target, other_path) or (
                (name, other_path) in inputs and _is_part(target, other_path)
            ):
                raise InputError(
                    f"the {mark.name} must not be written to the {name} itself, "
                    f"{shown_path(other_path)}, got {shown_path(target)}: name another file"
                )
        if mark.files:
            check_folder(path)
        elif isinstance(path, Path) and not is_standard(path):
            check_output(path)
        outputs += [(mark.name, target) for target in targets]


def check_folder(path: Path | Address) -> None:
    """Raise an error if a path is neither a folder nor can become one."""
    if isinstance(path, Address):
        raise InputError(f"{shown_path(path)} is an address: name a folder on this machine")
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_dir():
        raise InputError(f"{path} is a file: name a folder")
    check_output((target if target.is_dir() else target.parent) / ".vennforest")


def check_output(path: Path) -> None:
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


def is_standard(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is ``-``, for standard input or output."""
    return os.fspath(path) == STANDARD


def shown_path(path: str | os.PathLike[str]) -> str:
    """Return an output's path for messages; an address loses its password, key and signature."""
    if is_standard(path):
        return "standard output"
    text = os.fspath(path)
    if ADDRESS.match(text) is None:
        return text
    text = re.sub(r"(?<=://)[^?#]*@", "***@", text)  # keys of Azure contain slashes
    return re.sub(r"[?#].*", "?…", text, flags=re.DOTALL)


def is_same_file(path: str | os.PathLike[str], other_path: str | os.PathLike[str]) -> bool:
    """Return whether two paths or addresses, links followed, are the same file or folder."""
    path, other_path = location(path), location(other_path)
    if isinstance(path, Address) or isinstance(other_path, Address):
        return _key(path) == _key(other_path)
    try:
        if path.exists() and other_path.exists():
            return path.samefile(other_path)
        return os.path.realpath(path) == os.path.realpath(other_path)
    except (OSError, ValueError):  # an error about the path itself comes when it is opened
        return False


def _key(path: Path | Address) -> tuple[str, str]:
    """Return a text that is the same for all spellings of an address, and where it is unique."""
    if isinstance(path, Path):
        return "", os.path.realpath(path)
    protocol, _, remote_path = path.partition("://")
    try:
        import fsspec

        system = fsspec.get_filesystem_class(protocol)
        return system.__name__, os.path.normpath(system._strip_protocol(path))
    except (ImportError, ValueError):
        return protocol, os.path.normpath(remote_path)


def _is_part(output: Path | Address, table: Path | Address) -> bool:
    """Return whether an output is below the folder ``table``, or a link there leads to it."""
    (system, target), (table_system, folder) = _key(output), _key(table)
    if isinstance(table, Path) and not table.is_dir():
        return False
    if system == table_system and target.startswith(folder.rstrip("/" + os.sep) + os.sep):
        return True
    return isinstance(table, Path) and any(is_same_file(output, file) for file in files_of(table))


def files_of(path: Path) -> list[Path]:
    """Return the sorted Parquet files of a folder and the folders in it, or the file itself."""
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.rglob("*") if _is_parquet(file.relative_to(path)))


def _is_parquet(path: Path) -> bool:
    """Return whether a path in a folder is of a Parquet file that is not hidden."""
    is_hidden = any(part.startswith((".", "_")) for part in path.parts)
    return path.suffix in (".parquet", ".pq") and not is_hidden


def refuse_special(path: Path) -> None:
    """Raise an error for a pipe or device, since reading it might block for ever."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise InputError(f"{path} is a pipe or a device: write its content to a file first")


def check_unpacked_size(archive: zipfile.ZipFile, size: int, name: str) -> None:
    """Raise an error for an archive of ``size`` bytes that would unpack to far too many."""
    unpacked = sum(member.file_size for member in archive.infolist())
    if unpacked > max(MAX_UNPACKED_BYTES, MAX_UNPACKED_RATIO * size):
        raise InputError(
            f"{name} would unpack to {unpacked / 2**20:,.0f} MiB, more than {MAX_UNPACKED_RATIO} "
            f"times its {size / 2**20:,.1f} MiB, as no model or table does: it is not read"
        )


def is_json(text: str | os.PathLike[str]) -> bool:
    """Return whether a text begins as JSON does, and is no path."""
    return os.fspath(text).lstrip().startswith(("{", "["))


def read_json(source: str | os.PathLike[str], name: str, form: str) -> Any:
    """Return the content of JSON text or of a JSON file; ``name`` and ``form`` are for errors.

    Raise an `InputError` if there is no such file, it is no JSON, or an object repeats a name.
    """

    def with_names_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(content := dict(pairs)) < len(pairs):
            names = ", ".join(key for key, _ in pairs)[:200]
            raise InputError(f"{name} must have each name once, got {names}")
        return content

    text = os.fspath(source)
    try:
        if not is_json(text):
            refuse_special(Path(source))
            text = Path(source).read_text(encoding="utf-8-sig")
        return json.loads(text, object_pairs_hook=with_names_once)
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(f"{name} must be {form}, and there is no file {source}") from None
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(
            f"{name} must be {form}, got JSON with a fault: {one_line(error)}"
        ) from None
    except (OSError, ValueError) as error:
        raise InputError(f"{name} cannot be read from {source}: {one_line(error)}") from None


@contextmanager
def local_copy(path: Path | Address) -> Iterator[Path]:
    """Yield a local path: the path itself, or a temporary copy of an address or standard input."""
    if isinstance(path, Path) and not is_standard(path):
        refuse_special(path)
        yield path
        return
    with TemporaryDirectory() as folder:
        copy = Path(folder, "standard input")
        if isinstance(path, Path):
            with copy.open("wb") as content:
                shutil.copyfileobj(sys.stdin.buffer, content)
        else:
            with _address_errors(path, "read", InputError):
                system, address, copy = _at(path, folder)
                is_folder = system.isdir(address)
                for file in system.find(address) if is_folder else [address]:
                    part = copy / os.path.relpath(file, address) if is_folder else copy
                    if not is_folder or _is_parquet(part.relative_to(copy)):
                        part.parent.mkdir(parents=True, exist_ok=True)
                        system.get(file, str(part))
        try:
            yield copy
        except InputError as error:
            name = copy.name if isinstance(path, Path) else shown_path(path)
            message = str(error).replace(str(copy), name)
            raise InputError(message.replace(folder + os.sep, "")) from error


def _at(address: Address, folder: str) -> tuple[Any, str, Path]:
    """Return an address's file system, its path there, and a path of that name in ``folder``."""
    import fsspec

    system, path = fsspec.core.url_to_fs(address)
    return system, path, Path(folder, path.rstrip("/").rpartition("/")[2] or "table")


@contextmanager
def _address_errors(address: Address, verb: str, kind: type[Exception]) -> Iterator[None]:
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
        raise kind(f"{shown_path(address)} cannot be {verb}: {reason}") from None


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path, and move it to the path or address if no error was raised.

    What is written to ``-`` is copied to standard output.
    """
    output = location(path)
    if is_standard(output) or isinstance(output, Address):
        with TemporaryDirectory() as folder:
            part = Path(folder, "part")
            if isinstance(output, Address):
                with _address_errors(output, "written", OutputError):
                    system, address, part = _at(output, folder)
            yield part
            if not isinstance(output, Address):
                with part.open("rb") as content:
                    shutil.copyfileobj(content, sys.stdout.buffer)
            else:
                with _address_errors(output, "written", OutputError):
                    system.put(str(part), address)
        return
    target = Path(os.path.realpath(output))  # a link is followed, and stays
    part = _temporary(target)
    try:
        try:
            part.touch(exist_ok=False)
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
        raise OutputError(f"{output} cannot be written: {one_line(error)}") from error


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write text in UTF-8 atomically; lone surrogates become escapes."""
    with written_whole(path) as part:
        # A file name in the text may contain bytes that are not UTF-8.
        part.write_text(text, encoding="utf-8", errors="backslashreplace", newline="")


def _temporary(target: Path) -> Path:
    """Return a new path beside the target for its content until it is whole."""
    return target.with_name(f".{target.name[:40]}.{secrets.token_hex(4)}.part")


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
