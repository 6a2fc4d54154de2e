"""The command ``reproduce``: a paper's experiment run, its tables printed."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vennforest._files import is_same_file
from vennforest._validation import InputError
from vennforest.commands.terminal import Stopped, names_in, say, show
from vennforest_experiments.commands.progress import folds_bar
from vennforest_experiments.datasets.loading import ENVIRONMENT
from vennforest_experiments.papers import reproduce


def run(
    paper: str,
    data_dir: Path | None,
    datasets: str | None,
    output: Path | None,
    *,
    repeats: int | None,
    folds: int | None,
    settings: Sequence[str],
    seed: int,
    jobs: int,
) -> None:
    """Run the experiment, and print its tables.

    Parameters
    ----------
    paper, data_dir, datasets, output, repeats, folds, settings, seed, jobs
        See ``vennforest-experiments reproduce --help``.

    Raises
    ------
    InputError
        If an option is not what it should be, or data sets are not there.
    Stopped
        If the user stops it and there is a folder that keeps what is finished.
    """
    folder = data_dir or os.environ.get(ENVIRONMENT)
    if output is not None and folder and is_same_file(output, folder):
        raise InputError(f"the output must not be the folder of data sets, got {output} for both")
    try:
        with folds_bar() as progress:
            found = reproduce(
                paper,
                data_dir,
                None if datasets is None else names_in(datasets),
                repeats=repeats,
                folds=folds,
                n_jobs=jobs,
                seed=seed,
                output=output,
                progress=progress,
                **_settings(settings),
            )
    except FileNotFoundError as error:
        raise InputError(str(error)) from error
    except KeyboardInterrupt:
        if output is None:
            raise
        raise Stopped(
            f"Stopped: what is finished is kept in {output}; the same command resumes from there."
        ) from None
    show(found.to_markdown())
    if output is not None:
        say(f"Wrote {output / 'index.html'}")


def _settings(pairs: Sequence[str]) -> dict[str, Any]:
    """Return settings as given on the command line: numbers, true and false, else text."""
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise InputError(f"--set must be followed by NAME=VALUE, got {pair!r}")
        try:
            found[name] = json.loads(text.lower())
        except json.JSONDecodeError:
            found[name] = text
    return found
