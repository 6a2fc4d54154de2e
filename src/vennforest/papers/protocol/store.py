"""A file of finished folds, from which a stopped run resumes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

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
    """A file of finished folds, one JSON line each.

    Parameters
    ----------
    folder : Path
        The output folder; created if it does not exist.
    settings : mapping
        Everything that the folds' numbers depend on; written to the first line of the file.

    Raises
    ------
    ValueError
        If the folder holds folds of other settings, or a damaged line.
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
        """Return the line of each finished task."""
        lines = self._lines()
        next(lines)
        found: dict[Task, dict[str, Any]] = {}
        for line in lines:
            found.setdefault(Task(line["dataset"], line["repeat"], line["fold"]), line)
        return found

    def append(self, task: Task, data: str, seconds: float, record: Record) -> None:
        """Write a finished fold."""
        self._append(
            {**task._asdict(), "data": data, "seconds": round(seconds, 3), "record": record}
        )

    def _append(self, line: Mapping[str, Any]) -> None:
        text = json.dumps(line, allow_nan=False, separators=(",", ":")) + "\n"
        # One unbuffered write: if the process is killed, the line is complete, missing, or at worst
        # cut off, in which case the next run drops it.
        with self.path.open("ab", buffering=0) as file:
            file.write(text.encode())

    def _drop_unfinished_line(self) -> None:
        if not self.path.exists():
            return
        with self.path.open("rb+") as file:
            text = file.read()
            whole = text.rfind(b"\n") + 1
            if whole < len(text):
                file.truncate(whole)

    def _lines(self) -> Iterator[dict[str, Any]]:
        with self.path.open(encoding="utf-8") as file:
            for number, text in enumerate(file, 1):
                try:
                    line = json.loads(text)
                except json.JSONDecodeError:
                    line = None
                wanted = {"settings"} if number == 1 else {"dataset", "repeat", "fold", "record"}
                if not isinstance(line, dict) or not wanted <= set(line):
                    raise InputError(
                        f"output must hold finished folds, got a damaged line {number} in "
                        f"{self.path}: remove the line, or the file to start over"
                    )
                yield line

    def _check_settings(self) -> None:
        stored = next(self._lines())["settings"]
        if stored == self.settings:
            return
        names = [n for n in {**stored, **self.settings} if stored.get(n) != self.settings.get(n)]
        there = ", ".join(f"{name}={stored.get(name)!r}" for name in names)
        here = ", ".join(f"{name}={self.settings.get(name)!r}" for name in names)
        raise InputError(
            f"output must be the folder of a run with the same settings ({here}), got {there} in "
            f"{self.path}: choose another folder, or remove that file to start over"
        )
