"""A file layer in which one operation fails: the disk is full, broken, or takes half."""

import builtins
import errno
import io
import os
from pathlib import Path

KINDS = ("full", "broken", "short")


class Faults:
    """While it is entered, operation number ``fail_at`` on files under a folder fails.

    Opening for writing, each write, truncating, flushing to the disk, renaming, changing
    permissions and making files and folders count; closing and reading do not, and neither does
    taking files away, which is what is done after a failure.

    Attributes
    ----------
    done : list of str
        The operations so far.
    """

    def __init__(self, folder, fail_at=None, kind="full"):
        self.folder, self.fail_at, self.kind = str(folder), fail_at, kind
        self.done = []
        self._kept = {}

    def _fails(self, name, path):
        if not os.fspath(path).startswith(self.folder):
            return False
        self.done.append(name)
        return len(self.done) - 1 == self.fail_at

    def happen(self, name, path):
        if self._fails(name, path):
            self.fail()

    def fail(self):
        number = errno.EIO if self.kind == "broken" else errno.ENOSPC
        raise OSError(number, os.strerror(number))

    def write(self, file, path, data):
        if self._fails("write", path):
            if self.kind == "short":
                data = memoryview(data).cast("B") if not isinstance(data, str) else data
                file.write(data[: len(data) // 2])
                file.flush()
            self.fail()
        return file.write(data)

    def __enter__(self):
        self._patch(os, "replace", lambda call, src, dst, **k: (
            self.happen("rename", dst), call(src, dst, **k))[1])  # fmt: skip
        self._patch(os, "chmod", lambda call, path, *a, **k: (
            self.happen("chmod", path), call(path, *a, **k))[1])  # fmt: skip
        self._patch(os, "mkdir", lambda call, path, *a, **k: (
            self.happen("mkdir", path), call(path, *a, **k))[1])  # fmt: skip
        self._patch(os, "fsync", self._fsync)
        self._patch(os, "open", self._os_open)
        self._patch(io, "open", self._open)
        builtins.open = io.open
        return self

    def __exit__(self, *_):
        for (module, name), value in self._kept.items():
            setattr(module, name, value)
        builtins.open = io.open

    def _patch(self, module, name, replacement):
        call = self._kept[module, name] = getattr(module, name)
        setattr(module, name, lambda *a, **k: replacement(call, *a, **k))

    def _fsync(self, call, number):
        self.happen("fsync", Path(f"/proc/self/fd/{number}").readlink())
        return call(number)

    def _os_open(self, call, path, flags, *more, **options):
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            self.happen("open", path)
        return call(path, flags, *more, **options)

    def _open(self, call, path, mode="r", *more, **options):
        writes = isinstance(path, str | os.PathLike) and set(mode) & set("wax+")
        if writes:
            self.happen("open", path)
        file = call(path, mode, *more, **options)
        return _Faulty(file, path, self) if writes else file


class _Faulty:
    """An open file whose writes may fail."""

    def __init__(self, file, path, faults):
        self._file, self._path, self._faults = file, path, faults

    def write(self, data):
        return self._faults.write(self._file, self._path, data)

    def truncate(self, *size):
        self._faults.happen("truncate", self._path)
        return self._file.truncate(*size)

    def __getattr__(self, name):
        return getattr(self._file, name)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._file.close()
