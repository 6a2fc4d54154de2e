"""What a monitor found, as one HTML page."""

from __future__ import annotations

import os

import numpy as np

from vennforest._files import written_whole
from vennforest.plots import EvidenceDisplay
from vennforest.report.figures import draw
from vennforest.report.layout import frame, templates
from vennforest.report.watched import Watched, shown

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
    template = templates().get_template("watch.html.j2")
    from markupsafe import Markup

    page: str = template.render(
        found=found,
        monitor=found.monitor,
        shown=shown,
        verdict=found.verdict(),
        picture=Markup(_picture(found)),
        columns=found.columns[:MOST_COLUMNS],
        **frame(command),
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
