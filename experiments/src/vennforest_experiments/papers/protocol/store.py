"""A file of finished folds, from which a stopped run resumes."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from vennforest._files import OutputError, one_line, written_whole
from vennforest._messages import warn
from vennforest._validation import InputError

FOLDS_FILE = "folds.jsonl"
"""The file in the output folder that holds the settings and one line per finished fold."""

Record = dict[str, Any]
"""A fold's results: anything that JSON can hold, without NaN and infinity."""


class Task(NamedTuple):
    """One unit of work: a fold of a repeat on a data set.

    Experiments without folds number their random splits as repeats and use fold 0.
    """

    dataset: str
    repeat: int
    fold: int


class Store:
    """A file of finished folds, one JSON line each, which ends with a checksum of itself.

    A line that is not what was written is dropped with a warning, so that its fold is run again.

    Parameters
    ----------
    folder : Path
        The output folder; created if it does not exist.
    settings : mapping
        Everything that the folds' numbers depend on; written to the first line of the file.

    Raises
    ------
    ValueError
        If the folder holds folds of other settings, or its first line is damaged.
    """

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        self.path = folder / FOLDS_FILE
        self.settings: dict[str, Any] = json.loads(json.dumps(dict(settings)))
        folder.mkdir(parents=True, exist_ok=True)
        self._drop_unfinished_line()
        if not self.path.exists() or not self.path.stat().st_size:
            self._append({"settings": self.settings})
        self._check_settings()

    def read(self) -> dict[Task, dict[str, Any]]:
        """Return the line of each finished task; damaged ones are dropped from the file."""
        first, *texts = self._texts()
        lines = [_checked(text, _OF_A_FOLD) for text in texts]
        damaged = [number for number, line in enumerate(lines, 2) if line is None]
        if damaged:
            shown = ", ".join(map(str, damaged[:5])) + (", …" if len(damaged) > 5 else "")
            which = f"line {shown} is" if len(damaged) == 1 else f"lines {shown} are"
            warn(f"in {self.path} {which} damaged and left out: what was there is run again")
            whole = [text for text, line in zip(texts, lines, strict=True) if line is not None]
            with written_whole(self.path) as part:
                part.write_bytes(b"".join([first, *whole]))
        found: dict[Task, dict[str, Any]] = {}
        for line in lines:
            if line is not None:
                found.setdefault(Task(line["dataset"], line["repeat"], line["fold"]), line)
        return found

    def append(self, task: Task, data: str, seconds: float, record: Record) -> None:
        """Write a finished fold."""
        self._append(
            {**task._asdict(), "data": data, "seconds": round(seconds, 3), "record": record}
        )

    def _append(self, line: Mapping[str, Any]) -> None:
        text = json.dumps(line, allow_nan=False, separators=(",", ":"))
        data = _with_sum(text.encode())
        # One unbuffered write: if the process is killed, the line is complete, missing, or at worst
        # cut off, in which case the next run drops it.
        try:
            with self.path.open("ab", buffering=0) as file:
                if file.write(data) < len(data):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(file.fileno())
        except OSError as error:
            raise OutputError(f"{self.path} cannot be written: {one_line(error)}") from error

    def _drop_unfinished_line(self) -> None:
        if not self.path.exists():
            return
        with self.path.open("rb+") as file:
            text = file.read()
            whole = text.rfind(b"\n") + 1
            if whole < len(text):
                file.truncate(whole)

    def _texts(self) -> list[bytes]:
        with self.path.open("rb") as file:
            return list(file)

    def _check_settings(self) -> None:
        line = _checked(self._texts()[0], {"settings"})
        if line is None:
            raise InputError(
                f"output must hold finished folds of known settings, got a damaged first line in "
                f"{self.path}: choose another folder, or remove that file to start over"
            )
        stored = line["settings"]
        if stored == self.settings:
            return
        names = [n for n in {**stored, **self.settings} if stored.get(n) != self.settings.get(n)]
        there = ", ".join(f"{name}={stored.get(name)!r}" for name in names)
        here = ", ".join(f"{name}={self.settings.get(name)!r}" for name in names)
        raise InputError(
            f"output must be the folder of a run with the same settings ({here}), got {there} in "
            f"{self.path}: choose another folder, or remove that file to start over"
        )


_OF_A_FOLD = {"dataset", "repeat", "fold", "data", "seconds", "record"}


def _with_sum(text: bytes) -> bytes:
    """Return a JSON object with the checksum of what it was without, as a line."""
    return b'%s,"sum":"%s"}\n' % (text[:-1], _sum(text))


def _sum(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest()[:16].encode()


def _checked(line: bytes, wanted: set[str]) -> dict[str, Any] | None:
    """Return what a line holds; None if it is not as it was written."""
    text = line.rpartition(b',"sum":"')[0] + b"}"
    if line != _with_sum(text):
        return None
    found: dict[str, Any] = json.loads(text)
    return found if isinstance(found, dict) and wanted <= set(found) else None
