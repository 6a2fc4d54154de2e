"""The zip archive that a model file is: what it says it contains, read before anything else."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from vennforest._files import one_line
from vennforest._program import __version__
from vennforest._validation import InputError

FORMAT = 1
"""Version of the file format."""

HEADER, SCHEMA = "vennforest.json", "schema.json"

FREE = 1 << 28
"""Bytes that any file may unpack to."""

MOST_RATIO = 100
"""Beyond these, how many times its own size a file may unpack to. Models pack to a half or a tenth;
what packs to a thousandth is made to fill the memory."""

MOST_HEADER = 1 << 26
"""Bytes that the header may have; a name for each of a million columns takes less."""


@contextmanager
def opened_archive(path: str | os.PathLike[str]) -> Iterator[zipfile.ZipFile]:
    """Open a model file whose parts, as declared, are not larger than they can honestly be.

    Reading a part stops at its declared size.
    """
    shown = os.fspath(path)
    with Path(path).open("rb") as file:
        _check_start(file, shown)
        with _damage_named(shown):
            archive = zipfile.ZipFile(file)
        with archive:
            names = archive.namelist()
            if len(set(names)) < len(names):
                raise InputError(f"{shown} is damaged: it contains two parts of one name")
            check_unpacked(archive, os.fstat(file.fileno()).st_size, shown)
            yield archive


@contextmanager
def _damage_named(shown: str) -> Iterator[None]:
    """Say in one sentence that a file is damaged, whatever a forged archive may lead to."""
    try:
        yield
    except InputError:
        raise
    except (zipfile.BadZipFile, ValueError, OSError, EOFError, NotImplementedError) as error:
        raise InputError(
            f"{shown} is damaged or was cut short, and has no whole model: {one_line(error)}"
        ) from error
    except Exception as error:  # zlib.error, among others
        raise InputError(f"{shown} is damaged: {one_line(error)}") from error


def _check_start(file: IO[bytes], shown: str) -> None:
    head = file.read(4)
    if head[:1] == b"\x80":
        raise InputError(
            f"{shown} is a pickle, which runs code when it is loaded, and no model file: "
            "write the model with vennforest.save"
        )
    if not head.startswith(b"PK"):
        raise InputError(f"{shown} is not a model file: vennforest.save and fit write these")
    file.seek(0)


def check_unpacked(archive: zipfile.ZipFile, size: int, shown: str) -> None:
    """Refuse an archive of this size that says it unpacks to more than it honestly can."""
    declared = sum(part.file_size for part in archive.infolist())
    if declared > max(FREE, MOST_RATIO * size):
        raise InputError(
            f"{shown} would unpack to {declared / 2**20:,.0f} MiB, more than {MOST_RATIO} times "
            f"its {size / 2**20:,.1f} MiB, as no model does: it is not read"
        )


def check_nested(content: io.BytesIO, shown: str) -> None:
    """Refuse an archive within an archive (scipy's ``.npz``) that would unpack to too much."""
    with zipfile.ZipFile(content) as archive:
        check_unpacked(archive, len(content.getbuffer()), shown)
    content.seek(0)


def header_of(archive: zipfile.ZipFile, shown: str) -> dict[str, Any]:
    """Return what a model file says about itself."""
    names = set(archive.namelist())
    with _damage_named(shown):
        if HEADER in names and archive.getinfo(HEADER).file_size > MOST_HEADER:
            raise InputError(f"{shown} is damaged: its header has more than {MOST_HEADER} bytes")
        text = archive.read(HEADER) if HEADER in names else b""
        header: Any = json.loads(text) if text else None
    if header is None and SCHEMA in names:
        raise InputError(f"{shown} was written by skops alone: write it with vennforest.save")
    if header is None or SCHEMA not in names:
        raise InputError(f"{shown} is a zip archive, but not a model file of vennforest")
    written = header.get("format") if isinstance(header, dict) else None
    if type(written) is not int or written < 1:
        raise InputError(f"{shown} is damaged: its header names no format")
    if written > FORMAT:
        raise InputError(
            f"{shown} is of format {written}, written by vennforest {_version_of(header)}, and "
            f"this is vennforest {__version__}, which reads formats up to {FORMAT}: "
            "upgrade vennforest"
        )
    libraries = header.get("libraries", {})
    if not isinstance(libraries, dict) or not all(isinstance(v, str) for v in libraries.values()):
        raise InputError(f"{shown} is damaged: its header names no libraries")
    known: dict[str, Any] = header
    return known


def _version_of(header: dict[str, Any]) -> str:
    written = header.get("vennforest")
    return written if isinstance(written, str) else "of another version"


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what a model file says about itself, where it is one of a format that is read.

    These are ``format``, ``vennforest``, ``python``, ``libraries`` (versions), ``model`` (its
    type), ``classes``, ``features`` (names, or None), ``n_features`` and ``description`` (how it
    was fitted and calibrated, and when it was written); files of ``vennforest fit`` also say
    ``target``, ``columns``, ``n_rows``, ``class_counts``, ``data`` (the file's name), ``options``,
    ``measures`` and ``seconds``.
    """
    with opened_archive(path) as archive:
        return header_of(archive, os.fspath(path))
