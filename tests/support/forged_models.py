"""Fitted models with one learnt value replaced, saved and read again.

``python -m support.forged_models each START STEP`` or ``drawn N SEED`` tries some, and prints each
before it is tried: a crash or a hang ends the process.
"""

import copy
import faulthandler
import json
import sys
import tempfile
import traceback
import warnings
import zipfile
from pathlib import Path

import numpy as np
import skops.io
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB

import vennforest
from vennforest import CalibratedClassifier, MixedForestClassifier, Monitor
from vennforest._messages import InputError
from vennforest.calibrators import METHODS, make_calibrator
from vennforest.export import from_json, to_json
from vennforest.persistence import model_file
from vennforest.persistence.model_file import HEADER
from vennforest.persistence.parts import to_stored

SECONDS = 60
"""Time limit of one forgery."""


def with_value(array, value):
    """Return an array with ``value`` at one place, of the same type where it can hold it."""
    forged = array.copy()
    if not forged.size:
        return forged
    place = forged.size // 2
    with np.errstate(all="ignore"):
        if forged.dtype.kind in "iub":
            info = np.iinfo(forged.dtype) if forged.dtype.kind != "b" else None
            if info is None or not np.isfinite(value) or not info.min <= value <= info.max:
                forged = forged.astype(float)
        elif forged.dtype.kind != "f":
            return np.full(forged.shape, value)
        forged.reshape(-1)[place] = value
    return forged


ARRAY_FORGERIES = {
    "nan": lambda a: with_value(a, np.nan),
    "inf": lambda a: with_value(a, np.inf),
    "1e308": lambda a: with_value(a, 1e308),
    "all 1e308": lambda a: np.full(a.shape, 1e308),
    "-1": lambda a: with_value(a, -1),
    "all -1": lambda a: np.full(a.shape, -1, a.dtype if a.dtype.kind in "if" else float),
    "million": lambda a: with_value(a, 10**6),
    "all million": lambda a: np.full(a.shape, 10**6).astype(a.dtype),
    "shorter": lambda a: a[:-1],
    "longer": lambda a: np.concatenate([a, a[-1:]]),
    "empty": lambda a: a[:0],
    "zeros": lambda a: np.zeros_like(a),
    "reversed": lambda a: a[::-1].copy(),
    "one more dimension": lambda a: a[None],
    "half precision": lambda a: a.astype(np.float16) if a.dtype.kind in "iufb" else a[:0],
}
NUMBERS = [np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-308, -1, 0, 1, 10**6, 2**62, None, "text", []]


def rows(k, n=60, seed=0):
    rng = np.random.default_rng([k, seed])
    X = np.column_stack([rng.integers(0, 2, n), rng.normal(size=(n, 3))]).astype(np.float32)
    return X, np.digitize(X[:, 1] + rng.normal(size=n) / 2, [0.0] if k == 2 else [-0.5, 0.5])


def models():
    """Yield names, fitted models and the function that asks each of them."""
    for k in (2, 3):
        X, y = rows(k)
        p = np.exp(np.random.default_rng(k).normal(size=(60, k)))
        p /= p.sum(axis=1, keepdims=True)
        for method in METHODS:
            calibrator = make_calibrator(method).fit(p[:, 1] if k == 2 else p, y)
            scores = p[:, 1] if k == 2 else p
            yield f"{method}-{k}", calibrator, ask(scores)
            if method in ("venn", "platt"):
                shifted = calibrator.with_prior({0: 0.4})
                yield f"{method}-{k}-prior", shifted, ask(scores)
        forest = RandomForestClassifier(4, max_depth=3, random_state=0)
        for name, options in {
            "forest": {},
            "exchangeable": {"subforest": "exchangeable", "merge": "log"},
            "groups": {"by": 0, "method": "platt"},
            "folds": {"calibrate_on": "cv", "cv": 3, "method": "venn"},
        }.items():
            model = CalibratedClassifier(forest, random_state=0, **options)
            yield f"{name}-{k}", model.fit(X, y), ask(X)
        mixed = CalibratedClassifier(MixedForestClassifier(4), random_state=0).fit(X, y)
        yield f"mixed-{k}", mixed, ask(X)
        bayes = CalibratedClassifier(GaussianNB(), calibrate_on="holdout", random_state=0)
        yield f"bayes-{k}", bayes.fit(X, y), ask(X)
        monitor = Monitor(mixed, random_state=0).fit(*rows(k, seed=1))
        monitor.update(*rows(k, seed=2))
        yield f"monitor-{k}", monitor, lambda model, k=k: watched(model, *rows(k, seed=3))


def ask(rows):
    def answer(model):
        answers = [model.predict_proba(rows)]
        if hasattr(model, "predict_multiprobability"):
            bounds = model.predict_multiprobability(rows)
            answers += [bounds.lower, bounds.upper]
        return np.concatenate(answers, axis=1)

    return answer


def watched(monitor, X, y):
    monitor.update(X, y)
    return np.array([1 / (1 + monitor.max_evidence_)])


def places(value, path=()):
    """Yield the paths of the numbers and arrays in an object, and how to forge each."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "iufbU":
            yield from ((path, ("array", name)) for name in ARRAY_FORGERIES)
    elif isinstance(value, int | float | np.generic) and path and not isinstance(value, bool):
        yield from ((path, ("number", i)) for i in range(len(NUMBERS)))
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            yield from places(item, (*path, i))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*path, key))
    elif type(value).__module__.startswith("vennforest.") or not path:
        yield from places(state_of(value), path)


def state_of(value):
    return value.__getstate__() if hasattr(value, "__getstate__") else vars(value)


def part_of(value, key):
    return value[key] if isinstance(value, list | tuple | dict) else state_of(value)[key]


def forged(model, path, forgery):
    """Return a copy of a model in which the value at ``path`` is replaced."""
    stored = copy.deepcopy(to_stored(model))
    parts = [stored]
    for key in path:
        parts.append(part_of(parts[-1], key))
    kind, name = forgery
    new = ARRAY_FORGERIES[name](parts[-1]) if kind == "array" else NUMBERS[name]
    for key, part in zip(reversed(path), reversed(parts[:-1]), strict=True):
        if isinstance(part, tuple):
            new = type(part)([*part[:key], new, *part[key + 1 :]])
        elif isinstance(part, list | dict):
            part[key], new = new, part
        else:
            vars(part)[key], new = new, part
    return stored


def documents():
    """Yield names, documents and questions of the calibrators that JSON can hold."""
    for name, model, question in models():
        if not isinstance(model, CalibratedClassifier | Monitor):
            try:
                yield f"json-{name}", json.loads(to_json(model)), question
            except ValueError:
                continue


JSON_VALUES = [
    *NUMBERS[3:], {"number": "nan"}, {"number": "inf"}, "nan", True, {}, [0], [1e308, 1e308],
]  # fmt: skip


def json_places(value, path=()):
    if path and path[0] == "reading":  # for other programs alone
        return
    if isinstance(value, dict | list) and path:
        yield path, "missing"
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        if isinstance(item, dict | list):
            yield from json_places(item, (*path, key))
        yield from (((*path, key), i) for i in range(len(JSON_VALUES)))
        if isinstance(value, list) and key > 3:
            break


def forged_json(document, path, forgery):
    document = copy.deepcopy(document)
    part = document
    for key in path[:-1]:
        part = part[key]
    if forgery == "missing":
        del part[path[-1]]
    else:
        part[path[-1]] = JSON_VALUES[forgery]
    return json.dumps(document)


def cases():
    """Return the name, model, question, path and forgery of every forged file.

    The first have each forgery of each attribute once; their number is returned too.
    """
    every = [
        (name, model, question, path, forgery)
        for name, model, question in models()
        for path, forgery in places(to_stored(model))
    ]
    every += [
        (name, document, question, path, forgery)
        for name, document, question in documents()
        for path, forgery in json_places(document)
    ]
    first = {}
    for case in every:
        name, _, _, path, forgery = case
        attribute = tuple(key for key in path if isinstance(key, str))[-2:]
        first.setdefault((name.startswith("json"), attribute, forgery), case)
    distinct = {id(case) for case in first.values()}
    return [*first.values(), *(case for case in every if id(case) not in distinct)], len(distinct)


def read_again(model, path, forgery, file):
    """Read what a forged document or file has."""
    if isinstance(model, dict):
        return from_json(forged_json(model, path, forgery))
    stored = forged(model, path, forgery)
    try:
        skops.io.dump(stored, file)
        with zipfile.ZipFile(file, "a") as archive:
            archive.writestr(HEADER, json.dumps(model_file._header(model, ())))
    except (TypeError, ValueError, AttributeError) as error:
        raise InputError("no file has such a value") from error
    return vennforest.load(file)


def result(model, question, path, forgery, file):
    """Return "refused", "answered", or what is wrong with the answer."""
    try:
        read = read_again(model, path, forgery, file)
        answer = question(read)
    except (InputError, MemoryError):
        return "refused"
    except ValueError as error:  # at prediction, with a sentence of the library's own
        is_own = any(
            "vennforest" in f.filename for f in traceback.extract_tb(error.__traceback__)[-1:]
        )
        return "refused" if is_own else f"{type(error).__name__}: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    is_valid = np.isfinite(answer).all() and answer.min() >= 0 and answer.max() <= 1
    return "answered" if is_valid else "no probabilities"


def main():
    """Try cases START, START + STEP, ... of the distinct ones, or N drawn ones of all by a SEED."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    (every, n_distinct), how = cases(), sys.argv[1]
    for _, model, question in models():
        question(model)  # which compiles what the limit of time is not meant for
    first, second = map(int, sys.argv[2:4])
    numbers = range(first, n_distinct, second)
    if how == "drawn":
        numbers = np.random.default_rng(second).permutation(len(every))[:first]
    with tempfile.TemporaryDirectory() as folder:
        for number in numbers:
            name, model, question, path, forgery = every[number]
            print(number, name, path, forgery, end=" ", flush=True)
            faulthandler.dump_traceback_later(SECONDS, exit=True)
            print(
                "=>", result(model, question, path, forgery, Path(folder) / "m.skops"), flush=True
            )
            faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    main()
