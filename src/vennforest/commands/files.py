"""The files of a command: inputs as files on this machine, and names of outputs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from vennforest._files import Input, marked, refuse_special
from vennforest._messages import InputError
from vennforest._remote import local_copy

Options = TypeVar("Options")


@contextmanager
def local_inputs(options: Options) -> Iterator[Options]:
    """Give options with the paths of local copies in the place of addresses."""
    with ExitStack() as stack:
        paths = {}
        for field, _ in marked(options, Input):
            if isinstance(path := getattr(options, field), Path):
                refuse_special(path)
                paths[field] = stack.enter_context(local_copy(path))
        yield replace(options, **paths)  # type: ignore[type-var]


def check_suffix(path: Path, suffix: str) -> None:
    """Refuse an output whose name does not end in the suffix of its format."""
    if path.suffix.lower() != suffix:
        raise InputError(f"--output must end in {suffix}, the format that is written, got {path}")
