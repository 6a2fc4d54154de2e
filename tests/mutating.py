"""Kernels, merges and sources with one thing changed, and whether tests see it: ``make mutants``.

A mutant is a module in which one operator, comparison, number or statement is another. Its tests
run in a forked child, in which the library is imported anew, loops not compiled; a failure, an
error, or three times the processor time that they take otherwise kills the mutant. What survives is
printed: either the change makes no difference, or a test is missing.

mutmut leaves functions with decorators alone, which is what kernels are; other tools start Python
anew for every mutant, and the libraries that ours stands on take longer to import than most of
these tests to run.

Mutant number i of a seed is always the same as long as the source is.
"""

import argparse
import ast
import importlib.machinery
import importlib.util
import json
import os
import resource
import sys
import time
from pathlib import Path

os.environ["NUMBA_DISABLE_JIT"] = "1"

import hypothesis
import numba  # noqa: F401
import numpy as np
import pandas as pd  # noqa: F401
import pytest
import sklearn.calibration
import sklearn.ensemble  # noqa: F401

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "vennforest"
CALIBRATORS = "tests/calibrators/test_"
VENN_ABERS = (
    f"{CALIBRATORS}exactness.py::test_drawn_cases_are_those_of_the_formulas",
    f"{CALIBRATORS}venn_abers.py::test_small_sets_agree_with_exact_fractions",
    f"{CALIBRATORS}venn_abers.py::test_every_example_left_out_at_every_place",
    f"{CALIBRATORS}venn_abers.py::test_the_radix_sort_sorts_every_kind_of_number",
    f"{CALIBRATORS}venn_abers.py::test_zeros_of_either_sign_are_one_score_however_many_there_are",
    f"{CALIBRATORS}venn_abers.py::test_extreme_ranges_are_looked_up_like_any_other",
    f"{CALIBRATORS}venn_abers.py::test_reading_through_the_grid_counts_the_values_below",
    f"{CALIBRATORS}venn_abers.py::test_a_large_table_is_read_like_a_small_one",
    f"{CALIBRATORS}left_out_groups.py",
)
SOURCES = ("tests/sources/test_sources.py",)
FOREST = (
    *(
        f"tests/forest/test_forest.py::test_scores_equal_the_trees_own_to_the_last_bit[{seed}]"
        for seed in range(8)
    ),
    "tests/forest/test_forest.py",
)
TARGETS = {
    "calibrators/venn_abers/kernels.py": VENN_ABERS,
    "calibrators/venn_abers/left_out_kernels.py": VENN_ABERS,
    "calibrators/venn_abers/step_table.py": VENN_ABERS,
    "calibrators/venn_abers/smooth.py": (f"{CALIBRATORS}smooth.py",),
    "calibrators/bounded.py": ("tests/test_multiprobability.py", f"{CALIBRATORS}venn.py"),
    "calibrators/one_vs_rest.py": (
        VENN_ABERS[0],
        "tests/transductive/test_transductive.py::"
        "test_normalised_bounds_hold_every_normalised_point_of_the_box",
        "tests/transductive/test_transductive.py::test_normalised_bounds_of_zeros_say_nothing_more",
        f"{CALIBRATORS}calibrators.py",
    ),
    "multiprobability.py": ("tests/test_multiprobability.py",),
    "sources/draws.py": SOURCES,
    "sources/routing.py": ("tests/sources/test_weights_and_routing.py",),
    "sources/out_of_bag.py": SOURCES,
    "sources/kernels.py": SOURCES,
    "forest/kernels.py": FOREST,
}
"""Modules, and the tests that should see a change of them, those that see most first."""

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


def changes(node):
    """Yield functions, each of which changes one thing of a node in place."""
    if isinstance(node, ast.Compare):
        for i, operator in enumerate(node.ops):
            other = COMPARISONS[type(operator)]
            yield lambda n, i=i, other=other: n.ops.__setitem__(i, other())
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in OPERATORS:
        yield lambda n: setattr(n, "op", OPERATORS[type(n.op)]())
    elif isinstance(node, ast.BoolOp):
        yield lambda n: setattr(n, "op", ast.And() if isinstance(n.op, ast.Or) else ast.Or())
    elif isinstance(node, ast.UnaryOp):
        yield lambda n: setattr(n, "op", ast.UAdd() if isinstance(n.op, ast.USub) else ast.Not())
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield lambda n: setattr(n, "value", n.value + 1)
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        yield lambda n: setattr(n, "value", not n.value)
    elif isinstance(node, ast.Name) and node.id in NAMES:
        yield lambda n: setattr(n, "id", NAMES[n.id])
    elif isinstance(node, ast.Attribute) and node.attr in NAMES:
        yield lambda n: setattr(n, "attr", NAMES[n.attr])
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        yield lambda n: setattr(n, "test", ast.UnaryOp(ast.Not(), n.test))


def statements(node):
    """Yield functions, each of which takes a statement out of a node's body in place."""
    for field in ("body", "orelse"):
        for i, line in enumerate(getattr(node, field, None) or ()):
            if isinstance(line, ast.Assign | ast.AugAssign | ast.Continue | ast.Break | ast.Expr):
                text = isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)
                if not text:
                    yield lambda n, f=field, i=i: getattr(n, f).__setitem__(i, ast.Pass())


def mutants(module):
    """Return the number of a node in the order of ``ast.walk``, and a change, for every mutant."""
    tree = ast.parse((SOURCE / module).read_text("utf-8"))
    unseen = set()  # annotations, decorators, and what an error message says
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AnnAssign | ast.arg | ast.Raise):
            parts = (
                [node.exc]
                if isinstance(node, ast.Raise)
                else [
                    getattr(node, "annotation", None),
                    getattr(node, "returns", None),
                    *getattr(node, "decorator_list", ()),
                ]
            )
            unseen |= {id(inner) for part in parts if part for inner in ast.walk(part)}
    found = []
    inside = {
        id(inner)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for inner in ast.walk(function)
    }
    for number, node in enumerate(ast.walk(tree)):
        if id(node) in unseen or id(node) not in inside:
            continue
        found += [(number, change) for change in changes(node)]
        if not isinstance(node, ast.IfExp | ast.Lambda):
            found += [(number, change) for change in statements(node)]
    return found


def mutated(module, which):
    """Return a module's tree with one mutant in it, its line and what the line becomes."""
    number, change = mutants(module)[which]
    tree = ast.parse((SOURCE / module).read_text("utf-8"))
    node = next(node for i, node in enumerate(ast.walk(tree)) if i == number)
    before = ast.unparse(tree).split("\n")
    change(node)
    ast.fix_missing_locations(tree)
    after = ast.unparse(tree).split("\n")
    differ = [(a, b) for a, b in zip(before, after, strict=False) if a != b][:1]
    return tree, getattr(node, "lineno", 0), differ[0] if differ else ("", "")


class Finder:
    """Finds one module as a mutant."""

    def __init__(self, name, path, tree):
        self.name, self.path, self.tree = name, path, tree

    def find_spec(self, name, path=None, target=None):
        if name != self.name:
            return None
        loader = importlib.machinery.SourceFileLoader(name, str(self.path))
        loader.get_code = lambda _: compile(self.tree, str(self.path), "exec")
        return importlib.util.spec_from_loader(name, loader)


def survives(module, tree, seconds):
    """Tell whether a module's tests pass with a mutant, in a forked child."""
    child = os.fork()
    if child == 0:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
        if tree is not None:
            dots = "vennforest." + module.removesuffix(".py").replace("/", ".")
            sys.meta_path.insert(0, Finder(dots, SOURCE / module, tree))
        hypothesis.settings.register_profile(
            "mutants", deadline=None, max_examples=25, derandomize=True, database=None
        )
        hypothesis.settings.load_profile("mutants")
        options = ["-x", "-q", "-p", "no:cacheprovider", "-W", "ignore::RuntimeWarning"]
        code = 70
        try:
            code = pytest.main([*options, *TARGETS[module]])
        finally:
            os._exit(int(code))
    status = os.waitpid(child, 0)[1]
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) not in (0, 1, 2, 70):
        raise SystemExit(f"pytest ended with {os.WEXITSTATUS(status)} for {module}")
    return status == 0


def plain_seconds(module):
    """Return the processor time of a module's tests, which have to pass without a mutant."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    if not survives(module, None, 600):
        raise SystemExit(f"the tests of {module} must pass, got a failure: {TARGETS[module]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    taken = int(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) + 1
    print(f"{module}: its tests take {taken} s", flush=True)
    return taken


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="mutants in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=0, help="stop then; 0: never")
    parser.add_argument("--state", type=Path, help="a file to go on from")
    parser.add_argument("--only", nargs="+", default=sorted(TARGETS), help="modules")
    options = parser.parse_args()
    os.environ.setdefault("VENNFOREST_PATIENCE", "2")
    every = [(m, i) for m in options.only for i in range(len(mutants(m)))]
    order = np.random.default_rng(options.seed).permutation(len(every))[: options.count]
    done = {"done": 0, "killed": {}, "of": {}, "survived": []}
    if options.state is not None and options.state.exists():
        done = json.loads(options.state.read_text())
    start, seconds = time.monotonic(), {}
    while done["done"] < len(order):
        if 0 < options.seconds < time.monotonic() - start:
            break
        module, which = every[order[done["done"]]]
        tree, line, (before, after) = mutated(module, which)
        if module not in seconds:
            seconds[module] = 10 + 3 * plain_seconds(module)
        lives = survives(module, tree, seconds[module])
        done["of"][module] = done["of"].get(module, 0) + 1
        done["killed"][module] = done["killed"].get(module, 0) + (not lives)
        if lives:
            done["survived"].append([module, which, line, before.strip(), after.strip()])
            print(f"{module}:{line}  {before.strip()}  ->  {after.strip()}", flush=True)
        done["done"] += 1
        if options.state is not None:
            options.state.write_text(json.dumps(done))
    for module, number in sorted(done["of"].items()):
        print(f"{module}: {done['killed'][module]} of {number} killed")
    print(
        f"{sum(done['killed'].values())} of {done['done']} killed; {len(every):,} there are; "
        f"seed {options.seed}"
    )


if __name__ == "__main__":
    main()
