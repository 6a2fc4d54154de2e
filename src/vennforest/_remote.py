"""Files at addresses that fsspec knows (s3://, gs://, abfs://, https://, …), by way of a copy."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

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

            system, address = fsspec.core.url_to_fs(url)
            copy = Path(folder) / (address.rstrip("/").rpartition("/")[2] or "table")
            if not write:
                is_pattern = "*" in copy.name
                if not is_pattern and not system.isdir(address):
                    system.get(address, str(copy))
                else:
                    copy = Path(folder, "files")
                    for file in system.glob(address if is_pattern else f"{address}/*.parquet"):
                        system.get(file, str(copy / file.rpartition("/")[2]))
        except FileNotFoundError:
            raise InputError(f"there is no file {shown_path(url)}") from None
        except (ImportError, ValueError, OSError) as error:
            raise InputError(_refusal(error, url, "read")) from None
        try:
            yield copy
        except InputError as error:
            message = str(error).replace(str(copy), shown_path(url))
            raise InputError(message.replace(folder + os.sep, "")) from error
        if write:
            try:
                system.put(str(copy), address)
            except Exception as error:  # of the store's own type
                raise OutputError(_refusal(error, url, "written")) from None


def _refusal(error: Exception, url: str, verb: str) -> str:
    """Return a message without that of the library, which may contain a key."""
    reason = str(error) if isinstance(error, ImportError) else type(error).__name__
    if isinstance(error, OSError) and error.errno:
        reason = os.strerror(error.errno)
    return (
        f"{shown_path(url)} cannot be {verb}: {reason}; addresses need fsspec and its package for "
        "them (s3fs, gcsfs, adlfs, aiohttp): install it, or copy the file here first"
    )


def sent_whole(path: str | os.PathLike[str]) -> AbstractContextManager[Path]:
    """Give a local path to write, whose file is sent to the address at the end."""
    return local_copy(path, write=True)
