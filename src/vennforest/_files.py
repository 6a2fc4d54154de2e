"""Files: outputs tried before the work and written whole, and errors in one line."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from vennforest._errors import InputError


def check_output(
    path: str | os.PathLike[str], inputs: Mapping[str, str | os.PathLike[str] | None] | None = None
) -> Path:
    """Return a path that a file can be written to, tried before any work is done.

    Parameters
    ----------
    path : path-like
        Where the file shall be.
    inputs : mapping of str to path-like or None, optional
        What the work reads, by what an error calls it.

    Raises
    ------
    InputError
        If it is a folder, its folder is missing or cannot be written to, or it is an input, by
        another name or link perhaps.
    """
    path = Path(path)
    for name, given in (inputs or {}).items():
        refuse_same(path, given, name)
    if path.is_dir():
        raise InputError(f"{path} is a folder: name a file in it")
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent}: make it first")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise InputError(f"{path.parent} cannot be written to: {one_line(error)}") from error
    return path


def refuse_same(
    output: str | os.PathLike[str], given: str | os.PathLike[str] | None, name: str
) -> None:
    """Refuse an output that is an input, whatever links lead to it.

    Raises
    ------
    InputError
        If they are one file or folder.
    """
    same = False
    with suppress(OSError, ValueError):  # what is no path is no input in a file
        same = given is not None and Path(output).exists() and Path(output).samefile(given)
    if same:
        raise InputError(f"the output must not be the {name}, got {os.fspath(output)} for both")


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path beside the wanted one, and rename it when all went well.

    Whatever stops the work, no half-written file is left and an old one stays as it was.

    Parameters
    ----------
    path : path-like
        Where the file shall be.
    """
    path = Path(path)
    target = path.resolve() if path.is_symlink() else path
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    os.close(handle)
    part = Path(name)
    try:
        yield part
        if target.exists():
            part.chmod(target.stat().st_mode & 0o777)
        else:
            mask = os.umask(0)
            os.umask(mask)
            part.chmod(0o666 & ~mask)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def one_line(error: BaseException) -> str:
    """Return what an error says in one line of at most 200 letters."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    text = " ".join(str(error).split())
    text = text.removeprefix("Error tokenizing data. C error: ")
    return text if len(text) <= 200 else text[:199] + "…"
