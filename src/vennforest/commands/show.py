"""The command ``show``: what a model file says of its model, or a calibrator of itself."""

from __future__ import annotations

import platform
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from vennforest._messages import InputError, listed
from vennforest._program import __version__
from vennforest.calibrators import METHODS, VennAbers
from vennforest.calibrators.base import has_bounds
from vennforest.commands.calibrator_file import CalibratorFile, is_calibrator_file, read_document
from vennforest.commands.options import Show
from vennforest.commands.terminal import measures_sentence, print_json

COLUMNS = 40
"""Columns that are listed by name."""


def run(options: Show) -> None:
    """Print what a model file says, or what a calibrator is; as JSON the header as it stands."""
    from vennforest.persistence.archive import read_header

    model = options.model
    if model.is_dir():
        raise InputError(f"{model} is a folder: name a model file in it")
    if not model.exists():
        raise InputError(f"there is no model file {model}")
    try:
        size = model.stat().st_size
        if is_calibrator_file(model):
            header = about_calibrator(model)
            described = calibrator_lines(header, str(model), size)
        else:
            header = read_header(model)
            described = lines(header, str(model), size)
    except OSError as error:
        raise InputError(f"{model} cannot be read: {error.strerror or error}") from error
    if options.as_json:
        print_json(header)
        return
    rows = [(name, line) for name, line in described if line]
    width = max(len(name) for name, _ in rows)
    for name, line in rows:
        shown = "".join(c if c.isprintable() else "�" for c in f"{name:{width}}  {line}".rstrip())
        encoding = sys.stdout.encoding or "utf-8"
        print(shown.encode(encoding, "replace").decode(encoding))  # noqa: T201


def about_calibrator(path: Path) -> dict[str, Any]:
    """Return what a calibrator's file is, without what it has learnt."""
    calibrator, document = read_document(path)
    about = _Part(document).part("about")
    read = CalibratorFile(calibrator, about.list("scores"), about.content)
    counts, classes = read.class_counts(), [str(label) for label in calibrator.classes_]
    fitted = None if counts is None else dict(zip(classes, counts.tolist(), strict=True))
    rows, made = about.text("rows"), type(calibrator)
    names = [name for name, calibrator_class in METHODS.items() if calibrator_class is made]
    shift = calibrator.shift_
    tables = calibrator.tables_ if isinstance(calibrator, VennAbers) else ()
    return {
        "format": document["format"],
        "version": document["version"],
        "vennforest": document.get("vennforest"),
        "method": names[0] if names else made.__name__,
        "parameters": calibrator.get_params(deep=False),
        "bounds": has_bounds(calibrator),
        "scores": read.scores,
        "target": about.text("target") or None,
        "data": about.text("data") or None,
        "rows": int(rows) if rows.isdecimal() else None,
        "classes": classes,
        "class_counts": fitted,
        "prior": None if shift is None else dict(zip(classes, shift.shares.tolist(), strict=True)),
        "increasing": None if len(classes) > 2 else not read.reversed,
        "distinct_scores": max((len(table.x) for table in tables), default=None),
        "formulas": document["reading"] is not None,
    }


WAYS = {
    None: "a column for each class: a higher score, that class is likelier",
    False: "a higher score: {} is less likely (scores are reversed)",
    True: "a higher score: {} is likelier",
}


def calibrator_lines(about: Mapping[str, Any], name: str, size: int) -> Iterator[tuple[str, str]]:
    """Yield what `about_calibrator` says as pairs of a name and a line."""
    yield "File", f"{name}, {size / 1e6:,.1f} MB, {about['format']} {about['version']}"
    yield "Written", f"by vennforest {about['vennforest'] or ''}"
    parameters = ", ".join(f"{key} {value}" for key, value in about["parameters"].items())
    bounds = "with bounds" if about["bounds"] else "without bounds"
    title = METHODS[about["method"]].title if about["method"] in METHODS else about["method"]
    yield "Calibrator", f"{title}, {bounds}" + (f" ({parameters})" if parameters else "")
    rows, data, distinct = about["rows"], about["data"], about["distinct_scores"]
    yield "Fitted to", (f"{rows:,} rows" if rows else "") + (f" of {data}" if data else "")
    yield "", "" if distinct is None else f"{distinct:,} distinct scores"
    yield "Target", about["target"] or ""
    yield "Classes", _classes(_Part(about))
    prior = about["prior"] or {}
    yield "Shares set", ", ".join(f"{label!r} {share:.2%}" for label, share in prior.items())
    yield "Scores", ", ".join(map(repr, about["scores"]))
    yield "Direction", WAYS[about["increasing"]].format(repr(about["classes"][1]))
    yield "Elsewhere", "" if about["formulas"] else "no formula for other programs"


def lines(header: Mapping[str, Any], name: str, size: int) -> Iterator[tuple[str, str]]:
    """Yield what a header says as pairs of a name and a line; whatever is not there is empty.

    A header is text from a file: nothing in it is taken for granted.
    """
    about = _Part(header)
    how = about.part("description")
    yield "File", f"{name}, {size / 1e6:,.1f} MB, format {about.text('format')}"
    by = f"vennforest {about.text('vennforest')}, Python {about.text('python')}"
    when = how.text("written").replace("T", " ").replace("+00:00", " UTC")
    yield "Written", f"{when}, by {by}" if when else f"by {by}"
    yield "Model", about.text("model")
    yield "", _counted(how, "estimators", how.text("estimator"))
    rows = about.text("n_rows") or how.text("rows")
    data = about.text("data")
    yield "Trained on", (f"{_number(rows)} rows" if rows else "") + (f" of {data}" if data else "")
    yield "Target", about.text("target")
    yield "Classes", _classes(about)
    yield from _columns(about)
    yield "Calibrated", _calibrated(how)
    yield "", how.text("by") and f"within {how.text('groups')} groups by {how.text('by')}"
    yield "", how.text("reason") and f"since {how.text('reason')}"
    measures = about.mapping("measures")
    yield "Measured", measures_sentence(measures)
    options = about.mapping("options")
    yield "Options", ", ".join(f"{key} {value}" for key, value in options.items() if value != [])
    libraries = {key: str(value) for key, value in about.mapping("libraries").items()}
    yield "Libraries", ", ".join(f"{key} {value}" for key, value in libraries.items())
    here = [f"vennforest {__version__}", f"Python {platform.python_version()}"]
    for key, was in libraries.items():
        now = _installed(key)
        here += [] if now == was else [f"{key} {now or 'not installed'}"]
    yield "Here", ", ".join(here)


class _Part:
    """A dictionary from a file, of which nothing is known."""

    def __init__(self, content: Any) -> None:
        self.content = content if isinstance(content, dict) else {}

    def text(self, name: str) -> str:
        value = self.content.get(name)
        return "" if value is None or isinstance(value, dict | list) else str(value)

    def mapping(self, name: str) -> dict[str, Any]:
        value = self.content.get(name)
        return value if isinstance(value, dict) else {}

    def list(self, name: str) -> list[str]:
        value = self.content.get(name)
        return [str(one) for one in value] if isinstance(value, list) else []

    def part(self, name: str) -> _Part:
        return _Part(self.content.get(name))


def _number(text: str) -> str:
    return f"{int(text):,}" if text.isdecimal() else text


def _counted(part: _Part, name: str, what: str) -> str:
    n = part.text(name)
    return f"{n} models: {what}" if what and n not in ("", "1") else what


def _classes(about: _Part) -> str:
    counts = {k: n for k, n in about.mapping("class_counts").items() if isinstance(n, int | float)}
    names = about.list("classes")
    total = sum(counts.values())
    if total > 0:
        most = sorted(counts, key=lambda label: -counts[label])
        return listed(
            most, 10, lambda one: f"{one!r} {counts[one] / total:.1%} ({counts[one]:,.12g})"
        )
    return listed(names, 10)


def _columns(about: _Part) -> Iterator[tuple[str, str]]:
    kinds = {name: str(kind) for name, kind in about.mapping("columns").items()}
    types = {name: str(declared) for name, declared in about.mapping("types").items()}
    names = list(kinds) or about.list("features")
    n = about.text("n_features") or str(len(names))
    if kinds:
        counted = ", ".join(f"{count} {kind}" for kind, count in Counter(kinds.values()).items())
        yield "Columns", f"{len(kinds)}: {counted}"
    elif n != "0":
        yield "Columns", n if names else f"{n}, without names"
    written = {
        name: kind if kind == "empty" else types.get(name, kind) for name, kind in kinds.items()
    }
    shown = {name: f"{name!r} ({written[name]})" if name in kinds else repr(name) for name in names}
    yield "", listed(shown.values(), COLUMNS, str)


def _calibrated(how: _Part) -> str:
    from vennforest.sources.registry import DESCRIPTIONS

    method, source = how.text("method"), how.text("calibrate_on")
    if not method:
        return ""
    text = f"by {method}"
    if source:
        text += f", {DESCRIPTIONS.get(source, source)}"
    examples = how.text("calibration_examples")
    text += f", with {_number(examples)} examples" if examples else ""
    for name in ("merge", "subforest"):
        value = how.text(name)
        text += f", {name} {value}" if value else ""
    return text


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except (PackageNotFoundError, ValueError):
        return None
