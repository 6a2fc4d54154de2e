"""The zip archive of a model file: its size limits and its header."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from vennforest._files import check_unpacked_size, one_line
from vennforest._messages import InputError
from vennforest._program import __version__

FORMAT_VERSION = 1
"""Version of the file format."""

HEADER, SCHEMA = "vennforest.json", "schema.json"
"""Members of the archive that describe the model: written by vennforest and by skops."""


@contextmanager
def open_archive(path: str | os.PathLike[str]) -> Iterator[tuple[zipfile.ZipFile, dict[str, Any]]]:
    """Yield the archive and header of a model file; raise an error if its size is too large."""
    name = os.fspath(path)
    with Path(path).open("rb") as file:
        head = file.read(4)
        if head[:1] == b"\x80":
            raise InputError(
                f"{name} is a pickle, which runs code when it is loaded, and no model file: "
                "write the model with vennforest.save"
            )
        if not head.startswith(b"PK"):
            raise InputError(f"{name} is not a model file: vennforest.save and fit write these")
        try:
            with zipfile.ZipFile(file) as archive:
                check_unpacked_size(archive, os.fstat(file.fileno()).st_size, name)
                for member in archive.infolist():
                    if member.filename.endswith(".npz"):  # an archive within the archive
                        with archive.open(member) as part, zipfile.ZipFile(part) as nested:
                            check_unpacked_size(nested, member.file_size, name)
                yield archive, _header_of(archive, name)
        except (InputError, ImportError, MemoryError):
            raise
        except Exception as error:  # zlib.error, KeyError of a missing member, ...
            raise InputError(f"{name} is damaged or was cut short: {one_line(error)}") from error


def _header_of(archive: zipfile.ZipFile, name: str) -> dict[str, Any]:
    """Return the header of an open model file."""
    if not {HEADER, SCHEMA} <= set(archive.namelist()):
        raise InputError(f"{name} is a zip archive that vennforest.save has not written")
    header: Any = json.loads(archive.read(HEADER))
    version = header.get("format") if isinstance(header, dict) else None
    if type(version) is not int or version < 1:
        raise InputError(f"{name} is damaged: its header names no format")
    if version > FORMAT_VERSION:
        raise InputError(
            f"{name} is of format {version}, written by vennforest {header.get('vennforest')}, and "
            f"this is vennforest {__version__}, which reads formats up to {FORMAT_VERSION}: "
            "upgrade vennforest"
        )
    return dict(header)


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the header of a model file.

    Returns
    -------
    dict
        ``format``, ``vennforest``, ``python``, ``libraries`` (versions), ``model`` (its type),
        ``classes``, ``features`` (names, or None), ``n_features`` and ``description`` (how the
        model was fitted and calibrated, and when it was written). Files of ``vennforest fit`` also
        have ``target``, ``columns``, ``types``, ``n_rows``, ``class_counts``, ``data`` (the file's
        name) and ``measures``.
    """
    with open_archive(path) as (_, header):
        return header
