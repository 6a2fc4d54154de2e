"""Kernels, merges and sources with one thing changed, and whether tests see it: ``make mutants``.

A mutant is a module in which one operator, comparison, number or statement is another. Its tests
run in a forked child, in which the library is imported anew, loops not compiled; a failure, an
error, or a second of processor time where a third was enough kills the mutant. What survives is
printed: either the change makes no difference, and `equivalent_mutants.json` says why, or a test
is missing.

mutmut leaves functions with decorators alone, which is what kernels are. cosmic-ray does not, but
it starts Python and all tests of a module anew for every mutant; here a child starts with numpy,
scipy, scikit-learn and pandas there, and runs only tests that call the changed function, first
those that killed most and take least.
"""

import argparse
import ast
import collections
import importlib.machinery
import importlib.util
import json
import os
import resource
import sys
import tempfile
import time
import zlib
from pathlib import Path

if __name__ == "__main__":  # before numba is imported; pytest imports this file too, for doctests
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    os.environ.setdefault("VENNFOREST_PATIENCE", "1")

import hypothesis
import numba  # noqa: F401
import numpy as np
import pandas as pd  # noqa: F401
import pytest
import sklearn.calibration
import sklearn.ensemble  # noqa: F401

PATIENCE = float(os.environ.get("VENNFOREST_PATIENCE", "1"))
TESTS = Path(__file__).parents[1]
SOURCE = TESTS.parent / "src" / "vennforest"
TEST_FILES = (
    "sources/test_*.py",
    "forest/test_*.py",
    "calibrators/test_[ceijlv]*.py",  # of the changed calibrators, and of all calibrators
    "monitoring/test_*.py",
    "calibrators/test_fit_counts.py",
    "export/test_to_json.py",
    "test_multiprobability.py",
    "classifier/test_training_rows.py",
)
"""Tests that mutants meet."""
MODULES = sorted(
    {
        path.relative_to(SOURCE).as_posix()
        for pattern in (
            "**/*kernels.py",
            "sources/[a-z]*.py",
            "calibrators/venn*.py",
            "calibrators/intervals.py",
            "calibrators/maps/isotonic.py",
            "calibrators/core/interface.py",
            "multiprobability.py",
        )
        for path in SOURCE.glob(pattern)
    }
)
"""Modules that are changed."""

COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Add,
    ast.Mod: ast.Add, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift,
    ast.RShift: ast.LShift, ast.BitXor: ast.BitAnd, ast.Pow: ast.Mult,
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "any": "all",
         "all": "any", "left": "right", "right": "left"}  # fmt: skip
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


def changes(node):
    """Yield what changes one thing of a node in place, with the part of it that is changed."""
    if isinstance(node, ast.Compare):
        for i, operator in enumerate(node.ops):
            other = COMPARISONS[type(operator)]
            yield node, lambda n, i=i, other=other: n.ops.__setitem__(i, other())
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in OPERATORS:
        yield node, lambda n: setattr(n, "op", OPERATORS[type(n.op)]())
    elif isinstance(node, ast.BoolOp):
        yield node, lambda n: setattr(n, "op", ast.And() if isinstance(n.op, ast.Or) else ast.Or())
    elif isinstance(node, ast.UnaryOp):  # applied twice, it does nothing
        yield node, lambda n: setattr(n, "operand", ast.UnaryOp(n.op, n.operand))
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield node, lambda n: setattr(n, "value", n.value + 1)
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        yield node, lambda n: setattr(n, "value", not n.value)
    elif isinstance(node, ast.Constant) and node.value in NAMES:
        yield node, lambda n: setattr(n, "value", NAMES[n.value])
    elif isinstance(node, ast.Name) and node.id in NAMES:
        yield node, lambda n: setattr(n, "id", NAMES[n.id])
    elif isinstance(node, ast.Attribute) and node.attr in NAMES:
        yield node, lambda n: setattr(n, "attr", NAMES[n.attr])
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        yield node.test, lambda n: setattr(n, "test", ast.UnaryOp(ast.Not(), n.test))
    if isinstance(node, ast.stmt):
        for field in ("body", "orelse"):
            for i, line in enumerate(getattr(node, field, ())):
                if isinstance(line, ast.Assign | ast.AugAssign | ast.Continue | ast.Break) or (
                    isinstance(line, ast.Expr) and isinstance(line.value, ast.Call)
                ):
                    yield line, lambda n, f=field, i=i: getattr(n, f).__setitem__(i, ast.Pass())


def said(node):
    """Return the parts of a node that only people read: annotations, decorators, messages."""
    if isinstance(node, ast.Raise):
        return [node.exc]
    if isinstance(node, ast.JoinedStr):
        return [node]
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("warnings.warn", "require"):
        return [node]
    fields = [getattr(node, "annotation", None), getattr(node, "returns", None)]
    return [*fields, *getattr(node, "decorator_list", ())]


def functions(tree):
    """Yield the functions of a module and the methods of its classes, with their names."""
    for node in tree.body:
        if isinstance(node, FUNCTION):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, FUNCTION):
                    yield f"{node.name}.{inner.name}", inner


def mutants(module):
    """Return the mutants of a module: the places of function and node, the change."""
    tree = ast.parse((SOURCE / module).read_text("utf-8"))
    found = []
    for place, (_, function) in enumerate(functions(tree)):
        nodes = list(ast.walk(function))
        unread = {id(i) for node in nodes for part in said(node) if part for i in ast.walk(part)}
        for number, node in enumerate(nodes):
            if id(node) not in unread:
                count = sum(id(part) not in unread for part, _ in changes(node))
                found += [(place, number, which) for which in range(count)]
    return found


def mutated(module, place, number, which):
    """Return a module's tree with a mutant in it, and what a reader calls it."""
    tree = ast.parse((SOURCE / module).read_text("utf-8"))
    name, function = list(functions(tree))[place]
    before = ast.unparse(function).split("\n")
    node = list(ast.walk(function))[number]
    list(changes(node))[which][1](node)
    ast.fix_missing_locations(tree)
    after = ast.unparse(function).split("\n")
    at = next((i for i, pair in enumerate(zip(before, after, strict=False)) if len({*pair}) > 1), 0)
    same = before[:at].count(before[at])
    again = f" [{same + 1}]" if same else ""
    return tree, f"{name}: {before[at].strip()}{again} -> {after[at].strip()}"


class Finder:
    """Finds one module as a mutant."""

    def __init__(self, module, tree):
        self.name = "vennforest." + module.removesuffix(".py").replace("/", ".")
        self.path, self.tree = str(SOURCE / module), tree

    def find_spec(self, name, path=None, target=None):
        if name != self.name:
            return None
        loader = importlib.machinery.SourceFileLoader(name, self.path)
        loader.get_code = lambda _: compile(self.tree, self.path, "exec")
        return importlib.util.spec_from_file_location(name, self.path, loader=loader)


class Watcher:
    """Notes which functions of the library each test calls, its processor time, and what fails."""

    def __init__(self, trace, quick=()):
        self.seconds, self.tests, self.failed = {}, {}, []
        self.trace, self.quick, self.seen = trace, quick, set()

    def see(self, frame, event, _):
        if frame.f_code.co_filename.startswith(str(SOURCE)):
            self.seen.add(frame.f_code)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        self.seen.clear()
        start = time.process_time()
        sys.settrace(self.see if self.trace else None)
        result = yield
        sys.settrace(None)
        self.seconds[item.nodeid] = time.process_time() - start
        for code in self.seen:
            function = f"{Path(code.co_filename).relative_to(SOURCE).as_posix()} {code.co_qualname}"
            self.tests.setdefault(function.split(".<locals>")[0], set()).add(item.nodeid)
        if self.failed and not self.trace:
            item.session.shouldfail = True
        return result

    def pytest_collectreport(self, report):
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_runtest_logreport(self, report):
        # conftest.py shows as skipped what it ends: of a test that was quick before, a failure.
        ended = report.skipped and "need compiled loops" in str(report.longrepr)
        if report.failed or (ended and report.nodeid in self.quick):
            self.failed.append(report.nodeid)


def start(tests, folder, mutant=None, quick=(), limit=1200):
    """Fork a child that runs tests, with a mutant or noting what they reach; return its number."""
    child = os.fork()
    if child:
        return child
    code = 70
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        if mutant is not None:
            resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
            sys.meta_path.insert(0, Finder(*mutant))
        hypothesis.settings.register_profile(
            "mutants", deadline=None, max_examples=25, derandomize=True, database=None
        )
        hypothesis.settings.load_profile("mutants")
        watcher = Watcher(mutant is None, quick)
        options = ["-q", "-p", "no:cacheprovider", "-W", "ignore::RuntimeWarning"]
        code = pytest.main([*options, *tests], plugins=[watcher])
        tests = {function: sorted(ones) for function, ones in watcher.tests.items()}
        found = {"seconds": watcher.seconds, "tests": tests, "failed": watcher.failed}
        (folder / str(os.getpid())).write_text(json.dumps(found))
    finally:
        os._exit(int(code))


def run(tasks, jobs, folder, stop=float("inf")):
    """Yield what each task left, in the order of their ends, at most ``jobs`` at a time.

    A task is a thing to name it by and a function that returns the arguments of ``start``.
    """
    tasks, running = collections.deque(tasks), {}
    while tasks or running:
        while tasks and len(running) < jobs and time.monotonic() < stop:
            name, arguments = tasks.popleft()
            tests, *rest = arguments()
            if tests:
                running[start(tests, folder, *rest)] = name
            else:
                yield name, 0, {"failed": []}
        if not running:
            return
        child, status = os.wait()
        left = folder / str(child)
        found = json.loads(left.read_text()) if left.exists() else {"failed": []}
        yield running.pop(child), status, found


def look_up(state, jobs, folder, save):
    """Find out how long every test takes and which functions it calls, file by file."""
    files = [file.as_posix() for pattern in TEST_FILES for file in sorted(TESTS.glob(pattern))]
    tasks = [(file, lambda file=file: ([file],)) for file in files if file not in state["files"]]
    for file, _, found in run(tasks, jobs, folder):
        if "seconds" not in found:
            raise SystemExit(f"{file} must come to an end, got none")
        for test in found["failed"]:
            print(f"{test} fails without a mutant: left out")
        for function, tests in found["tests"].items():
            found["tests"][function] = [test for test in tests if test not in found["failed"]]
        print(f"{file}: {len(found['seconds'])} tests, {sum(found['seconds'].values()):.0f} s")
        state["files"][file] = found
        save()


def chosen(state, module, text, each):
    """Return the tests that call a function, best first, as many as take ``each`` seconds.

    Also those of them that are quick.
    """
    function = f"{module} {text.split(':')[0]}"
    seconds = {
        test: found["seconds"][test]
        for found in state["files"].values()
        for test in found["tests"].get(function, ())
    }
    kills = collections.Counter(test for _, test in state["results"][module].values())
    order = sorted(seconds, key=lambda test: (seconds[test] + 0.01) / (1 + kills[test]))
    total = np.cumsum([seconds[test] for test in order])
    quick = {test for test in order if seconds[test] < PATIENCE / 3}
    return order[: np.searchsorted(total, each) + 1], quick


def draw(seed, count):
    """Return ``count`` mutants, from every module a share, at least five, in mixed order."""
    every = {module: mutants(module) for module in MODULES}
    total = sum(map(len, every.values()))
    drawn = []
    for module, ones in every.items():
        order = np.random.default_rng([seed, zlib.crc32(module.encode())]).permutation(len(ones))
        share = min(len(ones), max(5, round(count * len(ones) / total)))
        drawn += [((i + 0.5) / share, module, ones[k]) for i, k in enumerate(order[:share])]
    return [(module, one) for _, module, one in sorted(drawn)], total


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=300, help="mutants in all, about")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=0, help="stop then; 0: never")
    parser.add_argument("--state", type=Path, help="a file to go on from", required=True)
    parser.add_argument("--each", type=float, default=15, help="seconds of tests for a mutant")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--survivors", action="store_true", help="try those of the file again")
    options = parser.parse_args()
    state = {"files": {}, "results": {}}
    if options.state.exists():
        state = json.loads(options.state.read_text())
    same = json.loads((Path(__file__).parent / "equivalent_mutants.json").read_text("utf-8"))
    stop = time.monotonic() + options.seconds if options.seconds else float("inf")
    folder = Path(tempfile.mkdtemp())

    def save():
        options.state.write_text(json.dumps(state))

    look_up(state, options.jobs, folder, save)
    drawn, total = draw(options.seed, options.count)
    tasks = []
    for module, one in drawn:
        tree, text = mutated(module, *one)
        known = state["results"].setdefault(module, {}).get(text)
        if known is None or (known[0] == "survived" and options.survivors):

            def arguments(module=module, tree=tree, text=text):
                tests, quick = chosen(state, module, text, options.each)
                return tests, (module, tree), quick, 10 + int(3 * options.each)

            if text not in same.get(module, {}):
                tasks.append(((module, text), arguments))
    for (module, text), status, found in run(tasks, options.jobs, folder, stop):
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) in (4, 5) and not found["failed"]:
            raise SystemExit(f"pytest found no tests for {module}, {text}: remove {options.state}")
        result = "survived" if status == 0 else "killed"
        state["results"][module][text] = [result, (found["failed"] or [None])[0]]
        if result == "survived":
            print(f"{module} {text}", flush=True)
        save()

    counts = collections.Counter()
    for module, one in drawn:
        text = mutated(module, *one)[1]
        result = state["results"][module].get(text, ["to do"])[0]
        counts[module, "equivalent" if text in same.get(module, {}) else result] += 1
    for module in [*MODULES, None]:
        kinds = {
            kind: sum(n for (m, k), n in counts.items() if k == kind and module in (m, None))
            for kind in ("killed", "survived", "equivalent", "to do")
        }
        tried = kinds["killed"] + kinds["survived"]
        print(f"{module or 'all'}: {kinds['killed']} of {tried} killed, {kinds}")
    print(f"seed {options.seed}; there are {total:,} mutants")


if __name__ == "__main__":
    main()
