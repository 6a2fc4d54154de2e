"""Model files changed at random, read in processes of their own: ``make fuzz``.

A file that is changed in its bytes must be refused, or predict the same. A file that is changed in
its structure, with checksums that are right, must be refused, or be another model: a forger may
write any that ``fit`` could have left. Its predictions are then probabilities within their bounds,
and its evidence is numbers from 0 on. Never may it crash, take more than 10 s or 2 GB, touch the
system, or end in an error that is none of ours. The same holds of calibrators as JSON, in which
numbers and parts are changed; every second change is of one of these.

Change number i of a seed is always the same, since it starts from the files in ``tests/models``.
A process reads a hundred changes, unless one ends badly: that one is read again, in a process that
has read no other.
"""

import argparse
import gc
import json
import os
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from collections import Counter
from pathlib import Path
from unittest import mock

import numpy as np

import vennforest
from models import make
from support.changed_documents import change_document, documents
from support.forging import array_of, bytes_of, parts_of, states, write_parts
from vennforest._validation import InputError
from vennforest.calibrators import Calibrator
from vennforest.export import json_form
from vennforest.persistence.archive import read_header

FOLDER = make.FILES
SECONDS, WALL, MEMORY = 10, 60, 2 << 30
"""Limits of a change: processor time, time of waiting, memory beyond what there is before it."""

TOGETHER = 100
"""Changes that one child reads: to make a process takes as long as to read a file."""

WATCHED = (
    "os.system", "os.exec", "os.posix_spawn", "os.spawn", "subprocess.Popen", "os.remove",
    "os.rename", "os.mkdir", "os.rmdir", "os.symlink", "shutil.", "socket.", "pickle.find_class",
    "ctypes.dlopen", "webbrowser.open",
)  # fmt: skip
"""Audit events that no prediction leads to."""

GOOD = ("refused", "same", "another model", "refused by predict")
LATE = "error in predict"
"""What ``vennforest predict`` says in a sentence, and a program does not expect."""

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
EXACT = tuple(how.__name__ for how in BYTES)
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
        if make.newer_libraries(read_header(FOLDER / f"{self.names[0]}.skops")):
            self.names = [n for n in self.names if not n.startswith(make.OF_LIBRARIES)]
        self.whole, self.rows, self.expected, self.parts, self.sum = {}, {}, {}, {}, 0
        for name in self.names:
            path = FOLDER / f"{name}.skops"
            self.whole[name], self.parts[name] = path.read_bytes(), parts_of(path)
            self.sum = zlib.crc32(self.whole[name], self.sum)
            self.rows[name] = make.rows_from_json(kept[name]["rows"])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.expected[name] = make.answers(vennforest.load(path), self.rows[name])
        self.texts = {} if only is not None else {f"json {i}": one for i, one in documents()}
        for name, (text, new) in self.texts.items():
            self.sum = zlib.crc32(text.encode(), self.sum)
            self.rows[name], self.expected[name] = new, answers_of(Calibrator.from_json(text), new)

    def changed(self, seed, number, path):
        """Write change ``number`` to a path; return the name of the file and the kind of change."""
        rng = np.random.default_rng([seed, number])
        if self.texts and number % 2:
            name = pick(rng, sorted(self.texts))
            text, how = change_document(rng, self.texts[name][0])
            path.write_text(text, encoding="utf-8")
            return name, how
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


touched, watching = [], []
"""What was done to the system while it was watched: no audit hook can be taken away again."""


def watch(event, arguments):
    if watching:
        mode = arguments[1] if event == "open" else ""
        writes = isinstance(mode, str) and set(mode) & set("wax+")
        if event.startswith(WATCHED) or writes:
            touched.append(event)


def outcome(path, rows, expected, exact):
    """Return what becomes of reading a file and predicting with it."""
    touched.clear()
    watching.append(True)
    try:
        ask = make.answers
        try:
            if path.is_file() and path.read_bytes()[:1] == b"{":
                # What other programs read follows from the rest; changed alone it would be refused.
                with mock.patch.object(json_form, "_alike", lambda own, given: True):
                    ask, model = answers_of, Calibrator.from_json(path.read_text("utf-8"))
            else:
                model = vennforest.load(path)
        except InputError:
            return "refused"
        try:
            found = ask(model, rows)
        except MemoryError:
            raise
        except ValueError:
            return "refused by predict"
        except Exception as error:
            return f"error in predict: {type(error).__name__}"
    finally:
        watching.clear()
        if touched:
            return f"TOUCHED {touched[0]}"  # noqa: B012
    same = set(found) == set(expected) and all(
        np.array_equal(found[key], expected[key]) for key in expected
    )
    if same:
        return "same"
    if exact:
        return "OTHER PREDICTIONS"
    if "evidence" in found:
        return "another model" if is_evidence(found) else "NO EVIDENCE"
    return "another model" if are_probabilities(found) else "NO PROBABILITIES"


def answers_of(calibrator, new):
    """Return a calibrator's probabilities and bounds."""
    found = {"p": calibrator.predict_proba(new)}
    if hasattr(calibrator, "predict_multiprobability"):
        bounds = calibrator.predict_multiprobability(new)
        found |= {"lower": bounds.lower, "upper": bounds.upper}
    return found


def is_evidence(found):
    """Tell whether evidence is numbers from 0 on, and changes begin at an example."""
    return all(np.isfinite(found[key]).all() and (found[key] >= 0).all() for key in found)


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


def is_running(child):
    """Tell whether a process computes, or would if it were let, and does not wait for something."""
    return Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] in "RD"


def in_child(work):
    """Return the lines that ``work(say)`` says in a forked child, and its end if that was bad."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            warnings.simplefilter("ignore")
            sys.addaudithook(watch)
            work(lambda line: os.write(write, line.encode()[:900] + b"\n"))
            os._exit(0)
        finally:
            os._exit(1)
    os.close(write)
    said, ended = b"", "CRASHED"
    while True:
        if not select.select([read], [], [], WALL)[0]:
            if is_running(child):  # where others take the processors; its own time is limited
                continue
            os.kill(child, signal.SIGKILL)
            ended = "HANGS"
            break
        more = os.read(read, 1 << 16)
        if not more:
            break
        said += more
    os.close(read)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU:
        ended = "HANGS"
    return said.decode().splitlines(), ended if status else None


def limited(path, rows, expected, exact):
    """Return what becomes of a file, within limits that count from here."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(used.ru_utime + used.ru_stime) + 1 + SECONDS
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))
    try:
        return outcome(path, rows, expected, exact)
    except MemoryError:
        return "OUT OF MEMORY"
    except BaseException as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return f"UNKNOWN ERROR {type(error).__name__} in {Path(last.filename).name}"


def alone(*arguments):
    """Return what becomes of a file in a child that reads no other."""
    lines, ended = in_child(lambda say: say(limited(*arguments)))
    return ended or lines[0]


def is_bad(said):
    return not said.startswith((*GOOD, LATE))


def read_changes(bases, seed, numbers, path, say):
    """Say for each change its file, its kind, what becomes of it and the seconds that it took."""
    for number in numbers:
        name, how = bases.changed(seed, number, path)
        began = time.monotonic()
        said = limited(path, bases.rows[name], bases.expected[name], how in EXACT)
        say(json.dumps([name, how, said, round(time.monotonic() - began, 2)]))
        if is_bad(said):
            break


def fuzz(count, seed, seconds=0, state=None, show=False):
    """Run changes up to number ``count``; return how many had which outcome, and the bad ones."""
    bases = Bases()
    done = {"files": bases.sum, "done": 0, "counts": {}, "bad": [], "late": [],
            "slowest": [0, None]}  # fmt: skip
    if state is not None and state.exists():
        done = json.loads(state.read_text())
        if done.get("files") != bases.sum:
            sys.exit(f"{state} counts changes of other model files: remove it")
    counts, start = Counter(done["counts"]), time.monotonic()
    gc.collect()
    gc.freeze()  # so that children copy less
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.skops"
        while done["done"] < count and not 0 < seconds < time.monotonic() - start:
            numbers = range(done["done"], min(count, done["done"] + TOGETHER))
            lines, ended = in_child(lambda say, n=numbers: read_changes(bases, seed, n, path, say))
            found = [json.loads(line) for line in lines]
            if ended and len(found) < len(numbers):
                found.append([*bases.changed(seed, numbers[len(found)], path), ended, 0])
            for number, (name, how, said, took) in zip(numbers, found, strict=False):
                kind = (
                    "json" if name.startswith("json") else "bytes" if how in EXACT else "structure"
                )
                counts[f"{kind}: {said}"] += 1
                if is_bad(said):
                    bases.changed(seed, number, path)
                    again = alone(path, bases.rows[name], bases.expected[name], how in EXACT)
                    done["bad"].append([number, name, how, said, f"alone: {again}"])
                elif said.startswith(LATE):
                    done["late"].append([number, name, how, said])
                if took > done["slowest"][0]:
                    done["slowest"] = [took, [number, name, how]]
            done["done"], done["counts"] = done["done"] + len(found), dict(counts)
            if state is not None:
                state.write_text(json.dumps(done))
            if show and (done["done"] % 1000 == 0 or done["done"] == count):
                print(done["done"], dict(counts), done["bad"][-3:], flush=True)
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
