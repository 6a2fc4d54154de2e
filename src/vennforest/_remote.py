"""Files at addresses that fsspec knows (s3://, gs://, abfs://, https://, …), by way of a copy."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from vennforest._files import OutputError, shown_path, url_of
from vennforest._messages import InputError


@contextmanager
def local_copy(path: str | os.PathLike[str], *, write: bool = False) -> Iterator[Path]:
    """Give a local path: the path itself, or a copy of the file at an address.

    The file is copied here before it is read, or there once it is written (``write``). A folder,
    or a pattern with ``*`` in the last part of the name, becomes a folder of copies.
    """
    url = url_of(path)
    if url is None:
        yield Path(path)
        return
    with TemporaryDirectory() as folder:
        try:
            import fsspec

            system, place = fsspec.core.url_to_fs(url)
            copy = Path(folder) / (place.rstrip("/").rpartition("/")[2] or "table")
            if not write:
                copy = _fetched(system, place, copy, url)
        except (ImportError, ValueError, OSError) as error:
            raise _refusal(error, url, "read") from None
        try:
            yield copy
        except InputError as error:
            named = str(error).replace(str(copy), shown_path(url))
            raise InputError(named.replace(folder + os.sep, "")) from error
        if write:
            try:
                system.put(str(copy), place)
            except Exception as error:  # of the store's own type
                raise OutputError(str(_refusal(error, url, "written"))) from None


def _fetched(system: Any, place: str, copy: Path, url: str) -> Path:
    is_pattern = any(letter in copy.name for letter in "*?[")
    pattern = f"{place.rstrip('/')}/*.p*q*" if not is_pattern and system.isdir(place) else place
    paths = system.glob(pattern) if pattern != place or is_pattern else [place]
    if not paths or not system.exists(paths[0]):
        raise InputError(f"there is no file {shown_path(url)}")
    if pattern == place and not is_pattern:
        system.get(place, str(copy))
        return copy
    files = copy.parent / "files"
    files.mkdir()
    for name in paths:
        system.get(name, str(files / name.rpartition("/")[2]))
    return files


def _refusal(error: Exception, url: str, verb: str) -> InputError:
    """Return an error without the address in the library's message, which may contain a key."""
    if isinstance(error, InputError):
        return error
    reason = str(error) if isinstance(error, ImportError) else type(error).__name__
    if isinstance(error, OSError) and error.errno:
        reason = os.strerror(error.errno)
    return InputError(
        f"{shown_path(url)} cannot be {verb}: {reason}; addresses need fsspec and its package for "
        "them (s3fs, gcsfs, adlfs, aiohttp): install it, or copy the file here first"
    )


def sent_whole(path: str | os.PathLike[str]) -> AbstractContextManager[Path]:
    """Give a local path to write, whose file is sent to the address at the end."""
    return local_copy(path, write=True)
