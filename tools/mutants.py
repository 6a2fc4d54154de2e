"""Put faults into the library, one after the other, and see whether the tests notice them.

Usage: python tools/mutants.py [--each SECONDS] [PART_OF_A_FILE_NAME]

Each fault is a replacement of text in one file of a copy of ``src``. The tests of its package, or
those that it names, run until the first one fails. Faults that no test notices are printed, and the
exit code is 1.
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
    "classifier": ["classifier"],
    "counts.py": ["test_counts.py", "calibrators"],
    "forest": ["forest", "sources"],
    "multiprobability.py": ["test_multiprobability.py", "calibrators/test_intervals.py"],
    "prior.py": ["test_prior.py"],
    "sources": ["sources", "classifier", "hazards"],
}
"""Tests of a package or module; by default the folder with its name."""

FAULTS = [
    ("calibrators/direction.py", "if m * n == 0:", "if m * n == 1:"),
    (
        "calibrators/direction.py",
        "((values < low) | (values > high)) & ~are",
        "((values < low) & (values > high)) & ~are",
    ),
    ("calibrators/sigmoid.py", "s = scores.clip(*map(entry_or_row, self.clip_.T))", "s = scores"),
    (
        "calibrators/newton.py",
        "negative * (1 - low) + positive * high",
        "negative + (1 - low) + positive * high",
    ),
    ("calibrators/newton.py", "total * p - positive", "total + p - positive"),
    ("calibrators/softmax.py", "2 * size * deviation * np.exp", "3 * size * deviation * np.exp"),
    ("calibrators/spline.py", "/ np.diff(knots) / 2", "/ np.diff(knots) / 3"),
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
        "raised, shrunk = 1.0 - (1.0 - scores) * q",
        "raised, shrunk = 1.0 - (1.0 + scores) * q",
    ),
    ("calibrators/bostrom.py", "(q * (q * square + linear))", "(q * (q + square + linear))"),
    ("calibrators/pool.py", "n_folds = 1 if counts.total >=", "n_folds = 1 if counts.total <"),
    ("calibrators/formula.py", "return self.max(low).min(high)", "return self.max(low).max(high)"),
    (
        "calibrators/formula.py",
        "powers = (scaled - scaled.largest())",
        "powers = (scaled - scaled.smallest())",
    ),
    ("calibrators/venn.py", "(counts + 1) / total", "(counts + 2) / total"),
    (
        "calibrators/venn_abers.py",
        "steps.a[stays], steps.b[stays], steps.places[stays]]",
        "steps.a[stays], steps.b[stays]]",
    ),
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
        "multiprobability.py",
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
    (
        "calibrators/base.py",
        "counts.moved_to(center - counts.scores)",
        "counts.moved_to(center + counts.scores)",
    ),
    (
        "multiprobability.py",
        "if self.lower.shape[1] != len(self.classes):",
        "if self.lower.shape[1] == len(self.classes):",
    ),
    (
        "multiprobability.py",
        "total = 0.0\n        for j in range(k):\n            q",
        "total = 0.1\n        for j in range(k):\n            q",
    ),
    ("prior.py", "information[0] >", "information[-1] >"),
    ("classifier/by_groups.py", "index < len(self.labels)", "index <= len(self.labels)"),
    ("forest/walk_kernels.py", "(tail - index) * inner", "(tail + index) * inner"),
    ("forest/walk_kernels.py", "n += row == n", "n += row != n"),
    ("forest/bags.py", "may_score = ~is_seen[groups]", "may_score = is_seen[groups]"),
    ("forest/bags.py", "tree.value[leaves, 0] > 0", "tree.value[leaves, 0] >= 0"),
    ("forest/members.py", "n * part // n_parts for", "(n - 1) * part // n_parts for"),
    ("forest/members.py", "scores[:, member.classes_]", "scores[:, : len(member.classes_)]"),
    ("sources/splits.py", "<= n - 1:", "<= n + 1:"),
    (
        "sources/data.py",
        "np.maximum(of_score - 1 / len(self.membership), 0)",
        "np.maximum(of_score + 1 / len(self.membership), 0)",
    ),
    ("sources/checks.py", "counts[number] > 1", "counts[number] > 2"),
    ("sources/row_hashes.py", "^ start)) >> np.uint64(32)", "^ start)) >> np.uint64(33)"),
    (
        "classifier/prediction.py",
        "if calibration.point is not None:",
        "if calibration.point is None:",
    ),
    ("classifier/training_rows.py", "total / count[:, None, None]", "total / count.max()"),
    ("classifier/folds.py", 'not in ("None", repr(', 'in ("None", repr('),
    ("classifier/classifier.py", "self.votes = votes", "self.votes = 'soft'"),
    ("monitoring/bets.py", "expit(logit(share) + shift)", "expit(logit(share) - shift / 9)"),
    (
        "monitoring/bets.py",
        "(1 - new) / (1 - share), new / share] for",
        "(1 - new) / (1 - share), new * share] for",
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
        "metrics/estimates.py",
        "share @ (problem.p - mean) ** 2",
        "share @ (problem.p + mean) ** 2",
    ),
    ("metrics/estimates.py", "share @ gap**2", "share @ gap**3"),
    ("metrics/variance.py", "max(1, len(sums) - 1)", "max(1, len(sums) + 1)"),
    ("metrics/calibration_tests.py", "features[:, 1] = 1 - 2 * p", "features[:, 1] = 1 + 2 * p"),
    ("metrics/calibration_tests.py", "2 / half**2", "3 / half**2"),
    ("metrics/auc.py", "pairs = (m + n) / 2 - 1", "pairs = (m + n) / 2 + 1"),
    ("metrics/curves.py", 'searchsorted(first, x, "left")', 'searchsorted(first, x, "right")'),
    ("metrics/logistic.py", "gradient @ step <= slack", "gradient @ step >= slack"),
    (
        "performance/estimate.py",
        'if name != "cost" or costs is not None',
        'if name == "cost" or costs is not None',
    ),
    ("auditing/copies.py", "<= MIN_SHARE_OF_COPIES * len(sampled)", "<= 9 * len(sampled)"),
    ("auditing/columns.py", "agreement < MIN_AGREEMENT_OF_IDS", "agreement > MIN_AGREEMENT_OF_IDS"),
    ("_class_columns.py", "of_first=codes[0] == 0", "of_first=False"),
    ("_class_columns.py", "key=lambda pair: pair[0] or 0", "key=lambda pair: 0"),
    ("_class_columns.py", '"probability" not in table and', '"probability" in table and'),
]
"""File, text, replacement of its first occurrence."""

APPLICATION_FAULTS = {
    "commands/test_report.py::the_advised_command_reads_the_table_as_the_report_did": [
        ("commands/report.py", '"types", "missing"', '"types"'),
        ("commands/report.py", "words += options.words(is_kept)", "words += []"),
    ],
    "commands/test_report.py::the_advised_command_keeps_groups_and_estimator": [
        (
            "commands/report.py",
            '"--drop" if is_leak else "--groups"',
            '"--groups" if is_leak else "--drop"',
        ),
    ],
    "commands/test_report.py::an_underconfident_forest_is_advised_to_calibrate_on_folds": [
        (
            "commands/report.py",
            "if verdict.on_folds else []",
            "if not verdict.on_folds else []",
        ),
    ],
    "commands/test_check.py::what_check_advises_reads_the_table_and_the_model_as_check_did": [
        ("commands/check.py", 'options.words(["prior", *FORM])', 'options.words(["prior"])'),
        ("commands/check.py", 'options.words(["prior", *FORM])', "options.words(FORM)"),
        ("commands/check.py", ', *_repeated("--trust", options.trusted)', ""),
        ("commands/options.py", "words.append(option)", "pass"),
    ],
    "commands/test_check.py::the_advised_update_is_that_of_the_page_with_the_groups": [
        ("commands/check.py", 'options.words(["groups"])', "options.words([])"),
    ],
    "commands/test_check.py::the_command_that_check_prints_works_as_it_stands": [
        (
            "commands/check.py",
            "models[evaluation.verdict.method].entries",
            "models[evaluation.verdict.method].names",
        ),
    ],
    "commands/test_check.py::check_judges_a_column_as_of_its_class_whatever_is": [
        ("commands/check.py", "if columns.of_first else [1 - p, p]", "if False else [1 - p, p]"),
    ],
    "commands/test_calibrators.py::rows_without_a_score_are_kept": [
        (
            "tables/target.py",
            "self.n_rows - self.left_out.n_unscored",
            "self.n_rows",
        ),
    ],
    "commands/test_calibrate.py::what_cannot_be_calibrated": [
        ("commands/calibrate.py", "if 0.5 - area > MIN", "if area - 0.5 > MIN"),
    ],
    "commands/test_calibrate.py::the_probability_of_the_first_of_two_classes_is": [
        (
            "commands/calibrate.py",
            "classes[0 if rows.columns.of_first else 1]",
            "classes[1 if rows.columns.of_first else 0]",
        ),
    ],
    "commands/test_fit.py::the_summary_says_what_was_learnt": [
        (
            "commands/fit.py",
            "np.average(y == label, weights=weight) for label",
            "1 / len(classes) for label",
        ),
        ("commands/fit.py", "p.argmax(axis=1)].mean())", "p.argmax(axis=1)].max())"),
    ],
    "commands/test_watch.py::kept_monitor_goes_on_and_rows_are_put_in_order": [
        (
            "commands/watch.py",
            'np.argsort(numbers, kind="stable")',
            'np.argsort(-numbers, kind="stable")',
        ),
    ],
    "commands/test_watch.py::scores_of_another_system_are_watched": [
        (
            "commands/watch.py",
            ".fit(calibrator._check_new(examples[0]), examples[1]",
            ".fit(calibrator._check_new(examples[0]), examples[1][::-1]",
        ),
    ],
    "commands/test_calibrators.py::apply_for_other_shares_of_the_classes": [
        (
            "commands/calibrators.py",
            "with_shares(file.calibrator, options.prior)",
            "file.calibrator",
        ),
    ],
    "commands/test_models.py::examples_of_a_calibrator_are_the_scores_that_it_was_given": [
        ("commands/models.py", "scores if reversed_at is None else reversed_at - scores", "scores"),
    ],
    "commands/test_check.py::a_check_that_fails_a_build": [
        (
            "report/verdict.py",
            'excludes 1" if low > 1 or high < 1',
            'excludes 1" if low < 1 or high > 1',
        ),
        ("commands/pages.py", "options.tolerance / 100", "options.tolerance"),
    ],
    "commands/test_terminal.py::the_most_frequent_class_is_named_first": [
        ("commands/terminal.py", "key=lambda item: -item[1]", "key=lambda item: item[1]"),
    ],
    "commands/test_calibrators.py::a_calibrator_as_a_query": [
        ("commands/calibrators.py", '"confidence": confidence', '"confidence": False'),
    ],
    "commands/test_calibrators.py": [
        (
            "commands/calibrators.py",
            "calibrator.reversed_at_ is None",
            "calibrator.reversed_at_ is not None",
        ),
    ],
    "commands/test_check.py::grades_are_tested_and_compared_with_earlier_ones": [
        (
            "report/sections.py",
            '(("share", grade), ("reference", reference))',
            '(("share", reference), ("reference", grade))',
        ),
        (
            "report/templates/sentences.txt.j2",
            '"have changed beyond chance" if of.pvalue <= 0.05',
            '"have changed beyond chance" if of.pvalue > 0.05',
        ),
    ],
    "validation/test_sites.py::of_right_sites_few_tables_name_one": [
        ("report/sections.py", "level = 1 - 0.05 / (2 * len(names))", "level = 1 - 0.05"),
    ],
    "report/test_breakdown.py::net_benefit_is_that_of_the_decision_curve": [
        (
            "metrics/estimates.py",
            "flagging.net_gain(event, none + 1, at, level, -1.0, odds)",
            "flagging.net_gain(event, none, at, level, -1.0, odds)",
        ),
    ],
    "report/test_breakdown.py::levels_hold_what_was_observed": [
        ("report/breakdown.py", 'event.p, side="right"', 'event.p, side="left"'),
        (
            "report/findings.py",
            "min(DEFAULT_TOLERANCE, share / 5)",
            "min(DEFAULT_TOLERANCE, share)",
        ),
    ],
    "report/test_comparison.py::costs_are_compared_with_the_best_constant_decision": [
        ("report/comparison.py", "float(gap[1 - positive] / (gap", "float(gap[positive] / (gap"),
        (
            "report/comparison.py",
            "of_rows[:, int(of_constants.argmin())]",
            "of_rows[:, int(of_constants.argmax())]",
        ),
    ],
    "report/test_breakdown.py::subgroups_contain_what_was_observed": [
        (
            "report/breakdown.py",
            "with_ends(key, estimate.value, estimate.low, estimate.high)",
            "with_ends(key, estimate.value, estimate.high, estimate.low)",
        ),
    ],
    "report/test_comparison.py::difference_is_the_corrected_resampled_t_interval": [
        ("report/comparison.py", "(1 / k + ratio)", "(1 / k)"),
    ],
    "report/test_check.py::each_class_has_recall_precision_and_mean_probability": [
        (
            "report/comparison.py",
            '"recall": hits / counts,',
            '"recall": hits / np.bincount(predicted, minlength=k),',
        ),
        (
            "report/comparison.py",
            '"mean": np.average(p, axis=0, weights=weight)',
            '"mean": counts / weight.sum()',
        ),
    ],
    "report/test_measures.py::accuracy_and_what_chance_exceeds_in_one_table_of_twenty": [
        ("report/measures.py", "np.quantile(chance, 0.95)", "np.quantile(chance, 0.9)"),
        (
            "report/measures.py",
            "accuracy=mean(p.argmax(axis=1) == codes)",
            "accuracy=mean(p.argmax(axis=1) != codes)",
        ),
    ],
    "report/test_numbers.py::rows_are_rounded_up_and_amounts_have_a_sign": [
        ("report/numbers.py", "math.ceil(n / step - 1e-9)", "math.floor(n / step - 1e-9)"),
    ],
    "report/test_comparison.py::slope_and_observed_over_expected_are_each_tested_at_half_the": [
        (
            "report/comparison.py",
            "level=1 - CALIBRATION_TEST_LEVEL / 2",
            "level=1 - CALIBRATION_TEST_LEVEL * 20",
        ),
    ],
    "report/test_words.py::the_finding_is_of_the_level_that_is_most_off": [
        ("report/findings.py", "int(gap.to_numpy().argmax())", "int(gap.to_numpy().argmin())"),
    ],
    "report/test_verdict.py::the_reason_says_what_the_tests_say": [
        (
            "report/templates/sentences.txt.j2",
            '{{ "" if m.is_rejected else "do not " }}reject',
            '{{ "do not " if m.is_rejected else "" }}reject',
        ),
    ],
    "report/test_watched.py::shares_before_and_since_a_change_are_those_of_its_rows": [
        (
            "report/watched.py",
            'monitor.reference_shares_[j] if when == "before"',
            '1 / len(of_classes) if when == "before"',
        ),
    ],
    "report/test_numbers.py::chances_are_rounded_to_the_cautious_side": [
        (
            "report/numbers.py",
            "max(digit for digit in (1, 2, 5) if digit * power <= value)",
            "min(digit for digit in (1, 2, 5) if digit * power <= value)",
        ),
    ],
    "report/test_watched.py::shares_before_and_since_a_change_are_those_of_its_rows_or": [
        (
            "report/watched.py",
            'slice(0, n_until)), ("since", slice(n_until, None))',
            'slice(n_until, None)), ("since", slice(0, n_until))',
        ),
    ],
    "report/test_training.py::a_fold_has_the_intervals_of_its_model_at_level_95": [
        ("report/training.py", "CONFIDENCE_LEVEL = 0.95", "CONFIDENCE_LEVEL = 0.9"),
    ],
    "report/test_training.py::a_class_that_a_fold_never_saw_has_probability_0_and_no_interval": [
        (
            "report/training.py",
            "high = np.ones((n, len(classes)))",
            "high = np.zeros((n, len(classes)))",
        ),
    ],
    "report/test_splits.py": [
        ("report/splits.py", "np.flatnonzero(part < i), np", "np.flatnonzero(part != i), np"),
    ],
    "report/test_sections.py::a_gain_within_chance_is_no_advice": [
        (
            "report/sections.py",
            "better += [name] if low > 0 else []",
            "better += [name] if gain.mean > 0 else []",
        ),
    ],
    "report/test_methods_text.py::numbers_are_those_of_the_measures": [
        (
            "report/templates/paper.md.j2",
            '"rejected" if m.is_rejected',
            '"rejected" if not m.is_rejected',
        ),
    ],
    "report/test_page.py::a_column_shows_what_its_title_says": [
        (
            "report/templates/columns.html.j2",
            '("sensitivity", "Sensitivity", "percent")',
            '("specificity", "Sensitivity", "percent")',
        ),
        (
            "report/templates/columns.html.j2",
            '("adjusted", "p if calibrated, adjusted", "pvalue")',
            '("pvalue", "p if calibrated, adjusted", "pvalue")',
        ),
        (
            "report/templates/columns.html.j2",
            '("confidence_low", "95% from"',
            '("bound_low", "95% from"',
        ),
    ],
    "commands/test_check.py::thresholds_with_a_promise_are_on_the_page": [
        ("report/sections.py", '"specificity": (~flagged, ~y)', '"specificity": (~flagged, y)'),
        (
            "report/sections.py",
            "for delta in (0.05, 0.025, 0.975)",
            "for delta in (0.05, 0.05, 0.95)",
        ),
    ],
    "report/test_findings.py::the_positive_class_is_the_rarer_one_unless_named": [
        ("report/findings.py", "int(counts.argmin())", "int(counts.argmax())"),
    ],
    "report/test_figures.py::files_contain_what_is_drawn": [
        ("report/figures.py", '"low95", "high95", "rows")', '"high95", "low95", "rows")'),
    ],
    "report/test_sections.py::updates_are_those_of_update": [
        (
            "report/sections.py",
            "[TITLES[name] for name in frame.index]",
            "[TITLES['keep'] for name in frame.index]",
        ),
    ],
    "tables/test_open.py::decimal": [
        ("tables/read.py", r"(?:[eE][-+]?\d+)?", ""),
        ("tables/open.py", '"," if self.is_detected and self._has_commas() else "."', '"."'),
    ],
    "tables/test_open.py": [
        ("tables/open.py", "present]) >= MAX_EXACT_FLOAT", "present]) > MAX_EXACT_FLOAT"),
        (
            "tables/open.py",
            "if max(map(abs, ends)) >= MAX_EXACT_FLOAT",
            "if max(ends) >= MAX_EXACT_FLOAT",
        ),
    ],
    "commands/test_predict.py::carried_columns_keep_type_and_value_in_parquet_and_every": [
        ("tables/write.py", r'r"\1:\2"', r'r"\1"'),
    ],
    "tables/test_write.py::an_apostrophe_goes_before_a_formula": [
        ("tables/write.py", r"[=+\-@\t\r＝＋－＠]", r"[=+\-\t\r＝＋－＠]"),
    ],
    "tables/test_schema.py::text_in_several_formats_is_no_date": [
        ("tables/schema.py", "(1, N_CELLS_TRIED_FIRST, len(cells))", "(1, N_CELLS_TRIED_FIRST)"),
    ],
    "tables/test_target.py::a_wrong_number_is_refused_where": [
        ("tables/read.py", 'f"row {row + 1:,} of {table}"', 'f"row {row:,} of {table}"'),
        (
            "tables/target.py",
            "row_name(n_before + int(rows[row]), table)",
            "row_name(n_before + row, table)",
        ),
    ],
    "tables/test_read.py::durations_are_numbers_of_seconds": [
        ("tables/read.py", "pa.float64()), 1e6)", "pa.float64()), 1e3)"),
    ],
    "tables/test_schema.py::a_column_of_booleans_has_words_for_each": [
        (
            "tables/read.py",
            '("false", "0", "0.0", "no", "n", "f")',
            '("false", "0", "0.0", "no", "f")',
        ),
    ],
    "tables/test_notes.py": [
        ("tables/notes.py", "if width == n:", "if width >= n:"),
        ("tables/notes.py", "{low:g} to {high:g}", "{high:g} to {low:g}"),
    ],
    "tables/test_target.py": [
        ("tables/target.py", "2 * n_classes > len(y)", "n_classes > len(y)"),
        ("tables/target.py", "X = X[labels.is_present]", "X = X[: len(y)]"),
    ],
    "tables/test_vectorize.py::the_encoder_does_what_skrub_does_with_columns_of_known_kinds": [
        ("tables/vectorize.py", 'drop="if_binary"', 'drop="first"'),
    ],
    "monitoring/test_columns.py": [
        (
            "monitoring/columns.py",
            "(len(p_values) - np.arange(len(p_values)))",
            "np.arange(1, len(p_values) + 1)",
        ),
        ("monitoring/columns.py", "in shares[:, largest]", "in shares[::-1, largest]"),
    ],
    "monitoring/test_evidence.py": [
        ("monitoring/evidence.py", "rank = copies - copies // TOP_SHARE", "rank = copies - 1"),
        ("monitoring/evidence.py", "np.log(TOP_SHARE * watched)", "np.log(TOP_SHARE)"),
    ],
    "monitoring/test_monitor.py::examples_that_design_the_bets_are_not_counted_against": [
        ("monitoring/monitor.py", "order[:n_design], order[n_design:]", "order[:n_design], order"),
    ],
    "monitoring/test_monitor.py::times_are_kept": [
        ("monitoring/stream.py", "dates.astype(np.int64) / 1e6", "dates.astype(np.int64) / 1e3"),
    ],
    "monitoring/test_repeats.py::a_repeated_row_is_remembered_from_its_latest_time_on": [
        ("monitoring/monitor.py", "del order[value]  # the latest", "pass  # the latest"),
    ],
    "monitoring/test_bets.py::bins_of_a_score_have_as_many_examples_each": [
        (
            "monitoring/bets.py",
            "edges = edges[edges > scores.min()]",
            "edges = edges[edges > scores.max()]",
        ),
    ],
    "validation/test_grades.py": [
        (
            "validation/grades.py",
            "binom.sf(events - 1, n, expected)",
            "binom.sf(events, n, expected)",
        ),
        ("validation/grades.py", '"too_low": holm(upper)', '"too_low": upper'),
    ],
    "validation/test_grades.py::stability_of_few_rows_is_exact": [
        ("validation/grades.py", "(reached + 1) / (N_DRAWS + 1)", "reached / N_DRAWS"),
    ],
    "validation/test_grades.py::grades_are_in_their_natural_order": [
        (
            "validation/grades.py",
            "np.lexsort((names, keys, names == MISSING))",
            "np.lexsort((names, keys))",
        ),
    ],
    "validation/test_segments.py::statistics_and_p_values_are_those_of_the_definition": [
        ("validation/segments.py", "(sizes >= MIN_ROWS)", "(sizes > MIN_ROWS)"),
    ],
    "validation/test_segments.py": [
        ("validation/segments.py", "order[::-1]], axis=1)[:, ::-1]", "order], axis=1)"),
    ],
    "validation/test_sites.py": [
        (
            "validation/sites.py",
            "half = float(stdtrit(k - 1, tail))",
            "half = float(stdtrit(k, tail))",
        ),
        ("validation/sites.py", "np.sqrt(1 / totals + between)", "np.sqrt(1 / totals)"),
    ],
    "validation/test_update.py": [
        ("validation/update.py", "df = X.shape[1] - smaller", "df = X.shape[1]"),
        ("validation/update.py", "theta[:1], 1 + theta[1:]", "theta[:1], theta[1:]"),
    ],
    "report/test_sections.py::a_model_has_the_prior_shift_beside_them": [
        ("validation/update.py", "factors = shares / self.prior", "factors = self.prior / shares"),
    ],
    "validation/test_update.py::gains_are_those_of_rows_that_no_update_saw": [
        (
            "validation/update.py",
            'difference = losses["keep"] - loss',
            'difference = loss - losses["keep"]',
        ),
    ],
}
"""The same for the application, by the file of the tests that should notice, and a part of their
names."""


def run_tests(tests, source, seconds):
    """Return whether tests fail with the library in a folder; ``tests`` are arguments of pytest."""
    environment = {**os.environ, "PYTHONPATH": f"{source}:{ROOT / 'experiments/src'}"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--tb=no", "-n0", "-pno:cacheprovider"]
    try:
        result = subprocess.run(
            [*command, *tests], cwd=ROOT, env=environment, capture_output=True, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        return True  # an endless loop, if the time is long enough
    if result.returncode in (4, 5):
        raise SystemExit(f"pytest found no tests in {tests}: {result.stdout.decode()[-500:]}")
    return result.returncode != 0  # below 0: a kernel that reads beyond an array may crash


def all_faults():
    """Yield the file, text and replacement of each fault, and the arguments of pytest."""
    for module, text, replacement in FAULTS:
        top = module.split("/")[0]
        yield module, text, replacement, [f"tests/{name}" for name in TESTS.get(top, [top])]
    for name, faults in APPLICATION_FAULTS.items():
        file, _, test = name.partition("::")
        for fault in faults:
            yield *fault, [f"tests/{file}", *(["-k", test] if test else [])]


def main():
    """Return whether any fault was not noticed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--each", type=float, default=600, help="seconds of tests for a fault")
    parser.add_argument("part", nargs="?", default="", help="part of the name of a changed file")
    options = parser.parse_args()
    survivors, n_faults = [], 0
    with tempfile.TemporaryDirectory() as folder:
        source = Path(shutil.copytree(ROOT / "src", Path(folder) / "src"))
        for module, text, *_ in all_faults():
            if text not in (source / "vennforest" / module).read_text("utf-8"):
                raise SystemExit(f"{module} no longer contains {text!r}: change tools/mutants.py")
        for module, text, replacement, tests in all_faults():
            if options.part not in module:
                continue
            path = source / "vennforest" / module
            original = path.read_text("utf-8")
            path.write_text(original.replace(text, replacement, 1), "utf-8")
            failed = run_tests(tests, source, options.each)
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
