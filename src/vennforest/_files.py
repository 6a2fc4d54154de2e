"""Files: outputs tried before the work and written whole, and errors in one line."""

from __future__ import annotations

import errno
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path

from vennforest._messages import InputError

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


def check_output(
    path: str | os.PathLike[str], inputs: Mapping[str, str | os.PathLike[str] | None] | None = None
) -> Path:
    """Return a path that a file can be written to, tried before any work is done.

    None of the ``inputs``, by what a message calls them, may be the output, through links neither,
    nor may the output be read the next time as one of the files of a folder or pattern.
    """
    path = Path(path)
    if url_of(path) is not None:
        raise InputError(f"{shown_path(path)} is an address: name a file here, and copy it there")
    try:
        target = _target(path)
        for name, other in (inputs or {}).items():
            if other is not None and is_same_file(target, other):
                raise InputError(f"the output must not be the {name} itself, got {path} for both")
            if other is not None and _is_one_of(target, Path(other)):
                raise InputError(
                    f"the output must not be one of the files of the {name}, {other}, got {path}"
                )
        if target.is_dir():
            raise InputError(f"{path} is a folder: name a file in it")
        if target.exists() and not target.is_file():
            raise InputError(f"{path} is a pipe or a device: name a file")
        if not target.parent.is_dir():
            raise InputError(f"there is no folder {target.parent}: make it first")
        if target.exists() and not os.access(target, os.W_OK):
            raise InputError(f"{path} is protected against writing: name another file")
        part = _beside(target)
        try:
            part.touch(exist_ok=False)
            part.unlink()
        except BaseException:  # a signal too, which in a finally would come before the removal
            part.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise InputError(f"{path} cannot be written: {one_line(error)}") from error
    return path


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


def _is_one_of(target: Path, several: Path) -> bool:
    found = _pattern(several)
    return (
        found is not None and is_same_file(target.parent, found[0]) and _matches(target, found[1])
    )


def refuse_special(path: Path) -> None:
    """Refuse to read from what is there but no file: a pipe may keep one waiting for ever."""
    with suppress(FileNotFoundError, NotADirectoryError, ValueError):
        path.stat()  # Path.exists keeps what it meets to itself from Python 3.14 on
    if path.exists() and not path.is_file() and not path.is_dir():
        raise InputError(f"{path} is a pipe or a device: write its content to a file first")


def is_same_file(one: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Tell whether two paths lead to one file or folder, by links of any kind too."""
    try:
        return Path(one).samefile(other)
    except (OSError, ValueError):  # what is no path is no file; what is wrong with it is said later
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
