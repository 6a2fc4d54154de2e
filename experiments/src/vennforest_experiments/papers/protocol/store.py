"""A file of finished folds, from which a stopped run resumes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

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
    """A file of finished folds, one JSON line each.

    An unfinished last line, as a killed run leaves it, is removed; another line that is no JSON is
    left out with a warning. Their folds are run again.

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
        if self.path.exists():
            text = self.path.read_bytes()
            os.truncate(self.path, text.rfind(b"\n") + 1)
        if not self.path.exists() or not self.path.stat().st_size:
            self._append({"settings": self.settings})
        self._check_settings()

    def read(self) -> dict[Task, dict[str, Any]]:
        """Return the line of each finished task."""
        folds: dict[Task, dict[str, Any]] = {}
        for number, text in enumerate(self.path.read_text("utf-8").splitlines()[1:], 2):
            line = _parse(text)
            if line is None:
                warn(f"line {number} of {self.path} is damaged: its fold is run again")
            else:
                folds.setdefault(Task(line["dataset"], line["repeat"], line["fold"]), line)
        return folds

    def append(self, task: Task, data: str, seconds: float, record: Record) -> None:
        """Write a finished fold."""
        self._append(
            {**task._asdict(), "data": data, "seconds": round(seconds, 3), "record": record}
        )

    def _append(self, line: Mapping[str, Any]) -> None:
        text = json.dumps(line, allow_nan=False, separators=(",", ":"))
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")

    def _check_settings(self) -> None:
        with self.path.open(encoding="utf-8") as file:
            line = _parse(file.readline())
        advice = f"in {self.path}: choose another folder, or remove that file to start over"
        if line is None or "settings" not in line:
            raise InputError(f"output must have a readable first line, got a damaged one {advice}")
        stored = line["settings"]
        names = [n for n in {**stored, **self.settings} if stored.get(n) != self.settings.get(n)]
        if names:
            in_file = ", ".join(f"{name}={stored.get(name)!r}" for name in names)
            asked = ", ".join(f"{name}={self.settings.get(name)!r}" for name in names)
            raise InputError(
                f"output must be the folder of a run with the same settings ({asked}), "
                f"got {in_file} {advice}"
            )


def _parse(text: str) -> dict[str, Any] | None:
    try:
        line = json.loads(text)
    except json.JSONDecodeError:
        return None
    return line if isinstance(line, dict) else None
