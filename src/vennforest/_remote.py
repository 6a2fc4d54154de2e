"""Files in object stores and on web servers: copied here to be read, and sent there once written.

Tables are looked at more than once and out of their order, which a stream is not made for.
"""

from __future__ import annotations

import base64
import http.client
import os
import re
import shutil
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from vennforest._files import PASSWORD, OutputError, one_line, shown_path, url_of
from vennforest._messages import InputError

WEB = ("http", "https")
STORES = ("s3", "gs", "gcs", "abfs", "abfss")
SHORTEST = 4
"""Letters from which on part of an address may be a secret."""

PATIENCE = 60
"""Seconds to wait for an answer of a web server."""


@contextmanager
def local_copy(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a path to read: the one that is named, or a copy of what an address stands for.

    Of an object store it may be a folder, or a pattern with ``*`` in the last part of the name; the
    copies are then in one folder.
    """
    url = url_of(path)
    if url is None:
        yield Path(path)
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = _fetched(url, Path(folder))
        try:
            yield copy
        except InputError as error:
            named = str(error).replace(str(copy), shown_path(url))
            raise InputError(named.replace(folder + os.sep, "")) from error


@contextmanager
def sent_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a path to write: the one that is named, or one that is sent to an address at the end."""
    url = url_of(path)
    if url is None:
        yield Path(path)
        return
    if urlsplit(url).scheme in WEB:
        raise InputError(
            f"{shown_path(url)} cannot be written: web servers can only be read: write a file and "
            "upload it"
        )
    system, place = _store(url)
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / (_name(place) or "output")
        yield written
        try:
            with written.open("rb") as source, system.open_output_stream(place) as target:
                shutil.copyfileobj(source, target, 1 << 20)
        except OSError as error:
            raise OutputError(
                f"{shown_path(url)} cannot be written: {_reason(error, url)}"
            ) from None


def _fetched(url: str, folder: Path) -> Path:
    try:
        if urlsplit(url).scheme in WEB:
            copy = folder / (_name(unquote(urlsplit(url).path)) or "table")
            source = urllib.request.urlopen(_asked(url), timeout=PATIENCE)
            with source, copy.open("wb") as file:
                shutil.copyfileobj(source, file, 1 << 20)
            return copy
        return _fetched_from_store(url, folder)
    except InputError:
        raise
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise InputError(f"{shown_path(url)} cannot be read: {_reason(error, url)}") from None


def _asked(url: str) -> urllib.request.Request:
    """Return what is asked of a web server: a name and password go into a header."""
    user, _, server = urlsplit(url).netloc.rpartition("@")
    plain = urlsplit(url)._replace(netloc=server).geturl()
    asked = urllib.request.Request(plain, headers={"Accept-Encoding": "identity"})
    if user:
        word = base64.b64encode(unquote(user).encode()).decode()
        asked.add_unredirected_header("Authorization", f"Basic {word}")
    return asked


def _reason(error: Exception, url: str) -> str:
    """Return what an error says in one line, without the secrets of an address."""
    reason = getattr(error, "reason", error)  # of urllib's errors
    text = getattr(reason, "strerror", None) or str(reason)
    place = urlsplit(url)
    secrets = [url, place.netloc.rpartition("@")[0], *re.split("[&=]", place.query)[1::2]]
    found = PASSWORD.search(url)
    secrets += re.split("[:@]", found[0]) if found else []
    for one in sorted({*secrets, *map(unquote, secrets)}, key=len, reverse=True):
        if len(one) >= SHORTEST:
            text = text.replace(one, "***")
    return one_line(ValueError(text))


def _fetched_from_store(url: str, folder: Path) -> Path:
    from pyarrow import fs

    system, place = _store(url)
    name, parent = _name(place), place.rstrip("/").rpartition("/")[0]
    about = system.get_file_info(place)
    if about.type == fs.FileType.File:
        copy = folder / name
        _copy(system, place, copy)
        return copy
    if about.type == fs.FileType.Directory:
        parent, pattern = place, "*.p*q*"
    elif any(letter in name for letter in "*?["):
        pattern = name
    else:
        raise InputError(f"there is no file {shown_path(url)}")
    found = [
        one.path
        for one in system.get_file_info(fs.FileSelector(parent, allow_not_found=True))
        if one.type == fs.FileType.File
        and fnmatchcase(_name(one.path), pattern)
        and not _name(one.path).startswith((".", "_"))
    ]
    if not found:
        raise InputError(f"there is no file {shown_path(url)}")
    copies = folder / "files"
    copies.mkdir()
    for one in found:
        _copy(system, one, copies / _name(one))
    return copies if about.type == fs.FileType.Directory else copies / pattern


def _copy(system: Any, place: str, copy: Path) -> None:
    with system.open_input_stream(place, compression=None) as source, copy.open("wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)


def _store(url: str) -> tuple[Any, str]:
    """Return the file system of an address, as pyarrow has it, and the place there."""
    scheme, _, _, query, _ = urlsplit(url)
    if scheme.startswith("abfs") and "enable_tls=false" in query:  # pyarrow would end the process
        raise InputError(f"{shown_path(url)} must be read with TLS: leave enable_tls=false out")
    try:
        from pyarrow import ArrowException, fs
    except ImportError as missing:
        raise InputError(
            f"{shown_path(url)} needs pyarrow: install it with pip install 'vennforest[all]'"
        ) from missing
    try:
        if scheme in STORES:
            system, place = fs.FileSystem.from_uri(url.replace("gcs://", "gs://", 1))
            return system, place
        import fsspec

        own, place = fsspec.core.url_to_fs(url)
        return fs.PyFileSystem(fs.FSSpecHandler(own)), place
    except (ImportError, ValueError, OSError, ArrowException) as error:
        raise InputError(
            f"{shown_path(url)} cannot be opened: {_reason(error, url)}; s3://, gs://, abfs:// "
            "and https:// are known, and what fsspec has where it is installed: copy the file "
            "here first"
        ) from None


def _name(place: str) -> str:
    return place.rstrip("/").rpartition("/")[2]
