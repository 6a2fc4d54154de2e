"""What a monitor found, as one HTML page."""

from __future__ import annotations

import base64
import hashlib
import os
from datetime import UTC, datetime
from importlib import resources

import numpy as np

from vennforest._files import written_whole
from vennforest.plots import EvidenceDisplay
from vennforest.report.figures import draw
from vennforest.report.page import SCRIPT
from vennforest.report.watched import Watched, shown
from vennforest.report.words import versions

MOST_COLUMNS = 50
"""Of more columns the most different are listed."""


def render(found: Watched, command: str | None = None) -> str:
    """Return the page.

    Parameters
    ----------
    found : Watched
        What it is about.
    command : str, optional
        What was typed.

    Raises
    ------
    ImportError
        If jinja2 or matplotlib is not installed.
    """
    try:
        import jinja2
        import matplotlib  # noqa: F401
        from markupsafe import Markup
    except ImportError as missing:
        raise ImportError(
            "the page needs jinja2 and matplotlib: install them with pip install 'vennforest[all]'"
        ) from missing
    folder = resources.files("vennforest.report").joinpath("templates")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(folder.joinpath("watch.html.j2").read_text("utf-8"))
    page: str = template.render(
        found=found,
        monitor=found.monitor,
        shown=shown,
        verdict=found.verdict(),
        picture=Markup(_picture(found)),
        columns=found.columns[:MOST_COLUMNS],
        script=Markup(SCRIPT),
        script_hash=base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode(),
        style=Markup(folder.joinpath("page.css").read_text("utf-8")),
        when=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        command=command,
        versions=versions(),
    )
    return page


def _picture(found: Watched) -> str:
    times = found.times
    if times is not None and found.dates:
        times = times.astype("datetime64[us]")
    began = found.began
    display = EvidenceDisplay(
        {"Evidence": np.maximum(found.evidence, 1e-12)},
        threshold=found.monitor.threshold_,
        times=times,
        began=began,
    )
    return draw(
        "evidence",
        (9.0, 3.6),
        lambda ax: display.plot(ax=ax),
        "Evidence of a change over the rows of the stream, on a logarithmic scale",
    )


def write_page(found: Watched, path: str | os.PathLike[str], command: str | None = None) -> None:
    """Write the page, whole or not at all."""
    page = render(found, command)
    with written_whole(path) as part:
        part.write_text(page, encoding="utf-8")
