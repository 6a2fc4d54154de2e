"""Put faults into the library, one after the other, and see whether the tests notice them.

Usage: python tools/mutants.py [--each SECONDS] [PART_OF_A_FILE_NAME]

Each fault is a replacement of text in one file of a copy of ``src``. The tests of its package run
until the first one fails. Faults that no test notices are printed, and the exit code is 1.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = {
    "_class_columns.py": ["commands/test_class_columns.py"],
    "auditing": ["auditing", "hazards"],
    "calibrators": ["calibrators", "theorems/test_enumeration.py", "export"],
    "classifier": ["classifier", "test_groups.py"],
    "counts.py": ["test_counts.py", "calibrators"],
    "forest": ["forest", "sources"],
    "groups.py": ["test_groups.py"],
    "multiprobability.py": ["test_multiprobability.py"],
    "prior.py": ["test_prior.py"],
    "sources": ["sources", "classifier", "hazards"],
}
"""Tests of a package or module; by default the folder with its name."""

FAULTS = [
    ("calibrators/direction.py", "if m * n == 0:", "if m * n == 1:"),
    (
        "calibrators/direction.py",
        "is_outside = (scores < low) | (scores > high)",
        "is_outside = (scores < low) & (scores > high)",
    ),
    ("calibrators/sigmoid.py", "s = score.clip(low, high)", "s = score.clip(low, 1.0)"),
    (
        "calibrators/newton.py",
        "negative * (1 - low) + positive * high",
        "negative + (1 - low) + positive * high",
    ),
    ("calibrators/newton.py", "total * p - positive", "total + p - positive"),
    ("calibrators/softmax.py", "(1.0 - p[0], p[0])", "(p[0], 1.0 - p[0])"),
    ("calibrators/spline.py", "t = z - knots[k]", "t = z + knots[k]"),
    (
        "calibrators/spline.py",
        "np.diff(np.eye(m), axis=0) / np.sqrt",
        "np.diff(np.eye(m), axis=0) * np.sqrt",
    ),
    (
        "calibrators/isotonic.py",
        "isotonic_regression(share, weights",
        "isotonic_regression(share, increasing=False, weights",
    ),
    (
        "calibrators/bostrom.py",
        "raised = 1.0 - (1.0 - probability) * q",
        "raised = 1.0 - (1.0 + probability) * q",
    ),
    ("calibrators/bostrom.py", "(q * (q * square + linear))", "(q * (q + square + linear))"),
    ("calibrators/pool.py", "n_folds = 1 if counts.total >=", "n_folds = 1 if counts.total <"),
    ("calibrators/base.py", "divided_by_sum(scores)", "scores"),
    ("calibrators/formula.py", "return self.max(low).min(high)", "return self.max(low).max(high)"),
    (
        "calibrators/formula.py",
        "largest = reduce(Term.max, logits)",
        "largest = reduce(Term.min, logits)",
    ),
    ("calibrators/venn.py", "(counts + 1) / total", "(counts + 2) / total"),
    ("calibrators/venn_abers_kernels.py", "right = max(right, k)", "right = min(right, k)"),
    (
        "calibrators/venn_abers_kernels.py",
        "if gap == 0 or slope == t:",
        "if gap == 1 or slope == t:",
    ),
    (
        "calibrators/venn_abers_kernels.py",
        "<= rise * (W[n] - W[right])",
        ">= rise * (W[n] - W[right])",
    ),
    ("calibrators/venn_abers_kernels.py", "out[i] = fits[low]", "out[i] = fits[0]"),
    (
        "calibrators/intervals.py",
        "of_examples = float((residual**2).sum())",
        "of_examples = float((residual**2).max())",
    ),
    (
        "calibrators/intervals.py",
        "np.minimum(self.lower, p), np.maximum(self.upper, p)",
        "np.maximum(self.lower, p), np.maximum(self.upper, p)",
    ),
    (
        "calibrators/interval_kernels.py",
        "first_not_above(last - i - 1, 1.0 - theta, above)",
        "first_not_above(last - i, 1.0 - theta, above)",
    ),
    ("counts.py", "before = np.cumsum(total) - total", "before = np.cumsum(total)"),
    ("counts.py", "column_stack([total - weight, weight])", "column_stack([total, weight])"),
    ("counts.py", "self.moved_to(center - self.scores)", "self.moved_to(center + self.scores)"),
    (
        "multiprobability.py",
        "if self.lower.shape[1] != len(self.classes):",
        "if self.lower.shape[1] == len(self.classes):",
    ),
    ("multiprobability.py", "total = 0.0", "total = 0.1"),
    ("prior.py", "information[0] >", "information[-1] >"),
    ("groups.py", "index < len(self.labels)", "index <= len(self.labels)"),
    ("forest/walk_kernels.py", "(tail - index) * inner", "(tail + index) * inner"),
    ("forest/walk_kernels.py", "n += row == n", "n += row != n"),
    ("forest/bags.py", "may_score = ~is_seen[groups]", "may_score = is_seen[groups]"),
    ("forest/bags.py", "high[smaller] = low[larger]", "high[larger] = low[smaller]"),
    ("forest/packed.py", "n * part // n_parts for", "(n - 1) * part // n_parts for"),
    ("forest/members.py", "scores[:, member.classes_]", "scores[:, : len(member.classes_)]"),
    ("sources/splits.py", "<= n - 1:", "<= n + 1:"),
    (
        "sources/data.py",
        "np.maximum(of_score - 1 / len(self.membership), 0)",
        "np.maximum(of_score + 1 / len(self.membership), 0)",
    ),
    ("sources/checks.py", "counts[number] > 1", "counts[number] > 2"),
    ("sources/row_hashes.py", ">> np.uint64(32)", ">> np.uint64(33)"),
    ("classifier/prediction.py", "if point is not None:", "if point is None:"),
    ("classifier/training_rows.py", "total / count[:, None, None]", "total / count.max()"),
    ("classifier/folds.py", 'not in ("None", repr(', 'in ("None", repr('),
    ("classifier/classifier.py", "self.votes = votes", "self.votes = 'soft'"),
    ("monitoring/bets.py", "expit(logit(share) + shift)", "expit(logit(share) - shift / 9)"),
    (
        "monitoring/bets.py",
        "(1 - new) / (1 - share), new / share",
        "(1 - new) / (1 - share), new * share",
    ),
    (
        "monitoring/stream_kernels.py",
        "n_bin = counts[cell, 0] + counts[cell, 1]",
        "n_bin = counts[cell, 1] + counts[cell, 1]",
    ),
    ("monitoring/monitor.py", "(path >= self.threshold_)", "(path >= 9 * self.threshold_)"),
    ("decisions/costs.py", "expected <= expected.min(", "expected <= expected.max("),
    (
        "decisions/thresholds.py",
        "min_examples(share, delta / n_starts)",
        "min_examples(share, delta)",
    ),
    ("performance/measures.py", "denominator > 1e-12", "denominator > 1"),
    (
        "metrics/calibration_error.py",
        "share @ (problem.p - mean) ** 2",
        "share @ (problem.p + mean) ** 2",
    ),
    ("metrics/calibration_error.py", "share @ gap**2", "share @ gap**3"),
    ("metrics/calibration_error.py", "problem.p - problem.outcome", "problem.p + problem.outcome"),
    ("metrics/logistic.py", "max(1, len(sums) - 1)", "max(1, len(sums) + 1)"),
    ("metrics/calibration_tests.py", "(1 - 2 * q) ** 2", "(2 - 2 * q) ** 2"),
    ("metrics/calibration_tests.py", "2 / half**2", "3 / half**2"),
    ("metrics/ranking.py", "pairs = (m + n) / 2 - 1", "pairs = (m + n) / 2 + 1"),
    ("metrics/curves.py", 'searchsorted(first, x, "left")', 'searchsorted(first, x, "right")'),
    (
        "metrics/logistic.py",
        "TOLERANCE * max(1.0, abs(value))",
        "1e6 * TOLERANCE * max(1.0, abs(value))",
    ),
    (
        "performance/estimate.py",
        'if name != "cost" or costs is not None',
        'if name == "cost" or costs is not None',
    ),
    ("auditing/copies.py", "<= MIN_SHARE_OF_COPIES * len(sampled)", "<= 9 * len(sampled)"),
    ("auditing/columns.py", "agreement < MIN_AGREEMENT_OF_IDS", "agreement > MIN_AGREEMENT_OF_IDS"),
    ("commands/report.py", '"missing", ', ""),
    ("tables/text.py", r"(?:[eE][-+]?\d+)?", ""),
    ("tables/files.py", ">= MAX_EXACT_FLOAT", "> MAX_EXACT_FLOAT"),
    ("_class_columns.py", "of_first=codes[0] == 0", "of_first=False"),
    ("_class_columns.py", "key=lambda pair: pair[0] or 0", "key=lambda pair: 0"),
    ("_class_columns.py", '"probability" not in table and', '"probability" in table and'),
]
"""File, text, replacement of its first occurrence."""


def run_tests(module, source, seconds):
    """Return whether the tests of a module fail with the library in a folder."""
    top = module.split("/")[0]
    environment = {**os.environ, "PYTHONPATH": f"{source}:{ROOT / 'experiments/src'}"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--tb=no", "-n0", "-pno:cacheprovider"]
    tests = [f"tests/{name}" for name in TESTS.get(top, [top])]
    try:
        result = subprocess.run(
            [*command, *tests], cwd=ROOT, env=environment, capture_output=True, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        return True  # an endless loop, if the time is long enough
    if result.returncode in (4, 5):
        raise SystemExit(f"pytest found no tests for {module}: {result.stdout.decode()[-500:]}")
    return result.returncode != 0  # below 0: a kernel that reads beyond an array may crash


def main():
    """Return whether any fault was not noticed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--each", type=float, default=600, help="seconds of tests for a fault")
    parser.add_argument("part", nargs="?", default="", help="part of the name of a changed file")
    options = parser.parse_args()
    survivors, n_faults = [], 0
    with tempfile.TemporaryDirectory() as folder:
        source = Path(shutil.copytree(ROOT / "src", Path(folder) / "src"))
        for module, text, replacement in FAULTS:
            if options.part not in module:
                continue
            path = source / "vennforest" / module
            original = path.read_text("utf-8")
            if text not in original:
                raise SystemExit(f"{module} no longer contains {text!r}: change tools/mutants.py")
            path.write_text(original.replace(text, replacement, 1), "utf-8")
            failed = run_tests(module, source, options.each)
            path.write_text(original, "utf-8")
            n_faults += 1
            print(
                "killed  " if failed else "SURVIVED",
                f"{module}: {text} -> {replacement}",
                flush=True,
            )
            if not failed:
                survivors.append(module)
    print(f"{n_faults - len(survivors)} of {n_faults} faults are noticed by the tests")
    return bool(survivors)


if __name__ == "__main__":
    sys.exit(main())
