"""Model files changed at random, each read in a process of its own: ``make fuzz``.

A file that is changed in its bytes must be refused, or predict the same. A file that is changed in
its structure, with checksums that are right, must be refused, or be another model whose
predictions are probabilities within their bounds: a forger may write any model that ``fit`` could
have left. Never may it crash, take more than 10 s or 2 GB, touch the system, or end in an error
that is none of ours.

Change number i of a seed is always the same, since it starts from the files in ``tests/models``.
"""

import argparse
import json
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

import vennforest
from forging import array_of, bytes_of, parts_of, states, write_parts
from models import make
from vennforest._validation import InputError
from vennforest.persistence.archive import FORMAT

FOLDER = Path(make.__file__).parent / f"format{FORMAT}"
SECONDS, WALL, MEMORY = 10, 60, 2 << 30
"""Limits of a child: processor time, time in all, and memory beyond what it starts with."""

WATCHED = (
    "os.system", "os.exec", "os.posix_spawn", "os.spawn", "subprocess.Popen", "os.remove",
    "os.rename", "os.mkdir", "os.rmdir", "os.symlink", "shutil.", "socket.", "pickle.find_class",
    "ctypes.dlopen", "webbrowser.open",
)  # fmt: skip
"""Audit events that no prediction leads to."""

GOOD = ("refused", "same", "another model", "refused by predict")

NUMBERS = (
    0, 1, -1, 2, 3, 7, 64, 255, 256, 65536, 2**31 - 1, 2**31, 2**32, 2**63 - 1, -(2**63), 10**9,
    0.5, -0.5, 1.5, 1e-300, 1e300, -1e300, float("nan"), float("inf"), -float("inf"), 5e-324,
)  # fmt: skip
VALUES = (*NUMBERS, None, True, False, "", "x", "0", [], [1], {}, "smooth", "all", "venn", "none")


# --- changes ----------------------------------------------------------------------------------


def flip(rng, whole):
    data = bytearray(whole)
    for _ in range(int(rng.integers(1, 5))):
        data[rng.integers(len(data))] ^= 1 << rng.integers(8)
    return bytes(data)


def cut(rng, whole):
    start, stop = sorted(rng.integers(0, len(whole), 2))
    kind = rng.integers(3)
    if kind == 0:
        return whole[:start]
    if kind == 1:
        return whole[:start] + whole[stop:]
    return whole[:stop] + whole[start:]


def pick(rng, things):
    return things[int(rng.integers(len(things)))]


def change_numbers(rng, schema, parts):
    """Give elements of an array other values."""
    name = pick(rng, sorted(n for n in parts if n.endswith(".npy")))
    array = np.array(array_of(parts[name]))
    if not array.size:
        return
    fields = array.dtype.names
    part = array[pick(rng, fields)] if fields else array
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(int(rng.integers(1, 4))):
            place = tuple(int(rng.integers(n)) for n in part.shape)
            old = part[place]
            kind = rng.integers(4)
            try:
                if kind == 0:
                    part[place] = part.ravel()[rng.integers(part.size)]
                elif kind == 1 and part.dtype.kind in "iuf":
                    part[place] = old + part.dtype.type(pick(rng, (1, 2)))
                elif kind == 2 and part.dtype.kind in "iuf":
                    part[place] = old * part.dtype.type(pick(rng, (2, 100)))
                else:
                    part[place] = np.array(pick(rng, NUMBERS)).astype(part.dtype)
            except (ValueError, OverflowError, TypeError):
                continue
    parts[name] = bytes_of(array)


TYPES = ("f4", "f8", ">f8", "i1", "i4", "i8", "u8", "?", "c16", "U3")


def change_shape(rng, schema, parts):
    """Give an array another length, order, type or number of dimensions, or that of another."""
    names = sorted(n for n in parts if n.endswith(".npy"))
    name = pick(rng, names)
    array = np.array(array_of(parts[name]))
    kind = rng.integers(7)
    if kind == 0 and array.ndim:
        array = array[:-1]
    elif kind == 1 and array.ndim:
        array = np.concatenate([array, array[-1:]])
    elif kind == 2:
        array = array[::-1].copy() if array.ndim else array.reshape(1)
    elif kind == 3:
        array = np.stack([array, array])
    elif kind == 4 and array.dtype.names is None and array.dtype.kind in "iufb":
        with np.errstate(all="ignore"):
            array = array.astype(pick(rng, TYPES))
    elif kind == 5:
        array = array_of(parts[pick(rng, names)])
    else:
        array = array[:0] if array.ndim else np.empty(0)
    parts[name] = bytes_of(array)


def change_value(rng, schema, parts):
    """Give a number, text or None in the description another value."""
    plain = [state for state in states(schema) if state["__loader__"] == "JsonNode"]
    if plain:
        state = pick(rng, plain)
        value = pick(rng, VALUES)
        old = json.loads(state["content"])
        if type(old) in (int, float) and rng.integers(2):
            value = pick(rng, (old + 1, old - 1, -old, old * 2, old * 1000))
        state["content"] = json.dumps(value)


def change_list(rng, schema, parts):
    """Leave out, repeat or exchange members of a list or dictionary."""
    kinds = ("ListNode", "TupleNode", "DictNode")
    lists = [s for s in states(schema) if s["__loader__"] in kinds and s["content"]]
    if not lists:
        return
    content = pick(rng, lists)["content"]
    kind = rng.integers(3)
    if isinstance(content, dict):
        key = pick(rng, sorted(content))
        if kind == 0:
            del content[key]
        else:
            content[key] = content[pick(rng, sorted(content))]
    elif kind == 0:
        del content[int(rng.integers(len(content)))]
    elif kind == 1:
        content.append(pick(rng, content))
    else:
        content[int(rng.integers(len(content)))] = pick(rng, content)


def change_object(rng, schema, parts):
    """Put one object of the file in the place of another, or give it another type."""
    every = list(states(schema))
    one, other = pick(rng, every), pick(rng, every)
    kind = rng.integers(3)
    if kind == 0:
        one["__class__"], one["__module__"] = other["__class__"], other["__module__"]
    elif kind == 1:
        one["__loader__"] = other["__loader__"]
    else:
        copied = json.loads(json.dumps(other))
        one.clear()
        one.update(copied)


BYTES = (flip, cut)
STRUCTURE = (
    change_numbers,
    change_numbers,
    change_numbers,
    change_shape,
    change_value,
    change_value,
    change_list,
    change_object,
)


class Bases:
    """The kept files, what they predict, and their parts."""

    def __init__(self, only=None):
        kept = json.loads((FOLDER / "predictions.json").read_text("utf-8"))
        self.names = sorted(name for name in kept if only is None or name in only)
        self.whole, self.rows, self.expected, self.parts = {}, {}, {}, {}
        for name in self.names:
            path = FOLDER / f"{name}.skops"
            self.whole[name], self.parts[name] = path.read_bytes(), parts_of(path)
            self.rows[name] = make.rows_from_json(kept[name]["rows"])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.expected[name] = make.answers(vennforest.load(path), self.rows[name])

    def changed(self, seed, number, path):
        """Write change ``number`` to a path; return the name of the file and the kind of change."""
        rng = np.random.default_rng([seed, number])
        name = pick(rng, self.names)
        if rng.integers(5) == 0:
            how = pick(rng, BYTES)
            path.write_bytes(how(rng, self.whole[name]))
            return name, how.__name__
        schema, header, parts = self.parts[name]
        schema, parts, how = json.loads(json.dumps(schema)), dict(parts), pick(rng, STRUCTURE)
        how(rng, schema, parts)
        write_parts(path, schema, header, parts)
        return name, how.__name__


# --- what becomes of them ---------------------------------------------------------------------


def outcome(path, rows, expected, exact):
    """Return what becomes of reading a file and predicting with it."""
    touched = []
    watching = [True]

    def watch(event, arguments):
        mode = arguments[1] if event == "open" else ""
        writes = isinstance(mode, str) and set(mode) & set("wax+")
        if watching[0] and (event.startswith(WATCHED) or writes):
            touched.append(event)

    sys.addaudithook(watch)
    try:
        try:
            model = vennforest.load(path)
        except InputError:
            return "refused"
        try:
            found = make.answers(model, rows)
        except MemoryError:
            raise
        except ValueError:
            return "refused by predict"
        except Exception as error:
            return f"error in predict: {type(error).__name__}"
    finally:
        watching[0] = False
        if touched:
            return f"TOUCHED {touched[0]}"  # noqa: B012
    same = set(found) == set(expected) and all(
        np.array_equal(found[key], expected[key]) for key in expected
    )
    if same:
        return "same"
    if exact:
        return "OTHER PREDICTIONS"
    return "another model" if are_probabilities(found) else "NO PROBABILITIES"


def are_probabilities(found):
    """Tell whether predictions are probabilities, within bounds that are some too."""
    p = found["p"]
    sound = np.isfinite(p).all() and (p >= 0).all() and (p <= 1).all()
    sound = sound and np.allclose(p.sum(axis=1), 1, rtol=0, atol=1e-9)
    if sound and "lower" in found:
        lower, upper = found["lower"], found["upper"]
        sound = np.isfinite(lower).all() and (lower >= 0).all() and (upper <= 1).all()
        sound = sound and (lower <= p + 1e-9).all() and (p <= upper + 1e-9).all()
    return bool(sound)


def in_child(path, rows, expected, exact):
    """Return what becomes of a file in a forked child with limits."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            said = _limited(path, rows, expected, exact)
        except MemoryError:
            said = "OUT OF MEMORY"
        except BaseException as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            said = f"UNKNOWN ERROR {type(error).__name__} in {Path(last.filename).name}"
        os.write(write, said.encode()[:500])
        os._exit(0)
    os.close(write)
    limit = time.monotonic() + WALL
    try:
        while os.waitpid(child, os.WNOHANG)[0] == 0:
            if time.monotonic() > limit:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return "HANGS"
            time.sleep(0.002)
        return os.read(read, 1000).decode() or "CRASHED"
    finally:
        os.close(read)


def _limited(path, rows, expected, exact):
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    warnings.simplefilter("ignore")
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    return outcome(path, rows, expected, exact)


def fuzz(count, seed, seconds=0, state=None, show=False):
    """Run changes up to number ``count``; return how many had which outcome, and the bad ones."""
    done = {"done": 0, "counts": {}, "bad": [], "late": [], "slowest": [0, None]}
    if state is not None and state.exists():
        done = json.loads(state.read_text())
    counts, start = Counter(done["counts"]), time.monotonic()
    bases = Bases()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.skops"
        while done["done"] < count and not 0 < seconds < time.monotonic() - start:
            number = done["done"]
            name, how = bases.changed(seed, number, path)
            exact = how in [change.__name__ for change in BYTES]
            began = time.monotonic()
            said = in_child(path, bases.rows[name], bases.expected[name], exact)
            took = time.monotonic() - began
            counts[f"{'bytes' if exact else 'structure'}: {said}"] += 1
            if said.startswith("error in predict"):
                done["late"].append([number, name, how, said])
            elif not said.startswith(GOOD):
                done["bad"].append([number, name, how, said])
            if took > done["slowest"][0]:
                done["slowest"] = [round(took, 2), [number, name, how]]
            done["done"], done["counts"] = number + 1, dict(counts)
            if number % 500 == 499 or done["done"] == count:
                if state is not None:
                    state.write_text(json.dumps(done))
                if show:
                    print(done["done"], dict(counts), done["bad"][-3:], flush=True)
    if state is not None:
        state.write_text(json.dumps(done))
    return done


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000, help="changes in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=0, help="stop then; 0: never")
    parser.add_argument("--state", type=Path, help="a file to go on from")
    parser.add_argument("--keep", type=Path, help="write the one change --number to this file")
    parser.add_argument("--number", type=int)
    options = parser.parse_args()
    if options.keep is not None:
        print(Bases().changed(options.seed, options.number, options.keep))
        return
    done = fuzz(options.count, options.seed, options.seconds, options.state, show=True)
    print(f"{done['done']} changes of seed {options.seed}; slowest {done['slowest']}")
    for said, number in sorted(done["counts"].items(), key=lambda item: -item[1]):
        print(f"{number:9,}  {said}")
    for late in done["late"][:20]:
        print("late", *late)
    for bad in done["bad"]:
        print("BAD", *bad)
    sys.exit(bool(done["bad"]))


if __name__ == "__main__":
    main()
