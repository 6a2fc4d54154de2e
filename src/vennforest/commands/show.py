"""The command ``show``: what a model or a calibrator is, in a few lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from vennforest._messages import InputError, listed
from vennforest.calibrators import METHODS
from vennforest.calibrators.base import has_bounds
from vennforest.commands.calibrator_file import CalibratorFile, is_calibrator_file, read_document
from vennforest.commands.options import Show
from vennforest.commands.terminal import measures_sentence, print_json, show
from vennforest.persistence.archive import read_header

MAX_COLUMNS, MAX_CLASSES = 20, 10
"""Columns and classes that are listed by name."""


def run(options: Show) -> None:
    """Print what a model file or a calibrator says of itself."""
    path = options.model
    if path.is_dir():
        raise InputError(f"{path} is a folder: name a model file in it")
    if not path.exists():
        raise InputError(f"there is no model file {path}")
    is_calibrator = is_calibrator_file(path)
    about = describe_calibrator(path) if is_calibrator else read_header(path)
    if options.as_json:
        print_json(about)
        return
    try:
        lines = list(calibrator_lines(about) if is_calibrator else model_lines(about))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path} is damaged: it cannot be described") from error
    for name, line in [("File", f"{path}, {path.stat().st_size / 1e6:,.1f} MB"), *lines]:
        if line:
            show(f"{name:12}{' '.join(line.split())}")


def describe_calibrator(path: Path) -> dict[str, Any]:
    """Return what a calibrator is, without what it has learnt."""
    calibrator, document = read_document(path)
    about = document.get("about", {})
    file = CalibratorFile(calibrator, about.get("scores", []), about)
    classes, counts = [str(label) for label in calibrator.classes_], file.class_counts()
    names = [name for name, method in METHODS.items() if method is type(calibrator)]
    prior = calibrator.shift_
    return {
        "vennforest": document.get("vennforest"),
        "method": names[0] if names else type(calibrator).__name__,
        "parameters": calibrator.get_params(deep=False),
        "bounds": has_bounds(calibrator),
        "rows": about.get("rows"),
        "data": about.get("data"),
        "target": about.get("target"),
        "scores": file.scores,
        "classes": classes,
        "class_counts": {} if counts is None else dict(zip(classes, counts.tolist(), strict=True)),
        "prior": {} if prior is None else dict(zip(classes, prior.shares.tolist(), strict=True)),
        "increasing": None if len(classes) > 2 else not file.reversed,
        "formulas": document["reading"] is not None,
    }


def calibrator_lines(about: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what `describe_calibrator` returns as pairs of a name and a line."""
    yield "Written", f"by vennforest {about['vennforest']}"
    parameters = ", ".join(f"{name} {value}" for name, value in about["parameters"].items())
    method = about["method"]
    title = METHODS[method].title if method in METHODS else method
    bounds = "with bounds" if about["bounds"] else "without bounds"
    yield "Calibrator", f"{title}, {bounds}" + (f" ({parameters})" if parameters else "")
    yield "Fitted to", _rows(about)
    yield "Target", about["target"] or ""
    yield "Classes", _classes(about)
    yield "Prior", ", ".join(f"{label!r} {share:.2%}" for label, share in about["prior"].items())
    yield "Scores", ", ".join(map(repr, about["scores"]))
    if about["increasing"] is not None:
        likelier = "likelier" if about["increasing"] else "less likely"
        yield "Direction", f"a higher score: {about['classes'][1]!r} is {likelier}"
    yield "Elsewhere", "" if about["formulas"] else "no formula for other programs"


def model_lines(header: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what the header of a model file says as pairs of a name and a line."""
    fitted = header["description"]
    written = str(fitted.get("written", "")).replace("T", " ").replace("+00:00", " UTC")
    libraries = header["libraries"]
    yield "Written", f"{written} by vennforest {header['vennforest']}, Python {header['python']}"
    n_models = fitted.get("estimators", 1)
    estimator = fitted.get("estimator", "")
    yield "Model", f"{header['model']}: {n_models} x {estimator}" if estimator else header["model"]
    yield "Trained on", _rows({"rows": fitted.get("rows"), **header})
    yield "Target", str(header.get("target", ""))
    yield "Classes", _classes(header)
    yield "Columns", _columns(header)
    if fitted.get("method"):
        yield "Calibrated", _calibration(fitted)
    yield "Measured", measures_sentence(header.get("measures", {}))
    options = header.get("options", {})
    yield "Options", ", ".join(f"{name} {value}" for name, value in options.items() if value != [])
    yield "Libraries", ", ".join(f"{name} {number}" for name, number in libraries.items())
    changed = [
        f"{name} {_installed(name)}"
        for name, number in libraries.items()
        if _installed(name) != number
    ]
    yield "Installed", f"other versions: {', '.join(changed)}" if changed else ""


def _rows(about: Mapping[str, Any]) -> str:
    n_rows, data = about.get("n_rows", about.get("rows")), about.get("data")
    return (f"{n_rows:,} rows" if n_rows else "") + (f" of {data}" if data else "")


def _classes(about: Mapping[str, Any]) -> str:
    counts = about.get("class_counts") or {}
    if not counts:
        return listed(about["classes"], MAX_CLASSES)
    total = sum(counts.values())
    return listed(
        sorted(counts, key=lambda label: -float(counts[label])),
        MAX_CLASSES,
        lambda label: f"{label!r} {counts[label] / total:.1%} ({counts[label]:,.12g})",
    )


def _columns(header: Mapping[str, Any]) -> str:
    kinds, types = header.get("columns") or {}, header.get("types") or {}
    if not kinds:
        n_columns, names = header.get("n_features") or 0, header.get("features") or []
        return f"{n_columns}: {listed(names, MAX_COLUMNS)}" if names else f"{n_columns or ''}"
    numbers = ", ".join(f"{n} {kind}" for kind, n in Counter(kinds.values()).items())
    names = [f"{name!r} ({types.get(name, kind)})" for name, kind in kinds.items()]
    return f"{numbers}: {listed(names, MAX_COLUMNS, str)}"


def _calibration(fitted: Mapping[str, Any]) -> str:
    parts = [f"by {fitted['method']}"]
    if "calibrate_on" in fitted:
        parts.append(f"{fitted['calibrate_on']} (since {fitted['reason']})")
    if fitted.get("calibration_examples"):
        parts.append(f"{fitted['calibration_examples']:,} examples")
    parts += [f"{name} {fitted[name]}" for name in ("merge", "subforest") if name in fitted]
    if "by" in fitted:
        parts.append(f"within {fitted['groups']} groups by {fitted['by']}")
    return ", ".join(parts)


def _installed(name: str) -> str:
    try:
        return version(name)
    except (PackageNotFoundError, ValueError):
        return "not installed"
