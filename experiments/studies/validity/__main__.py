"""Measure the validity of bounds: ``python -m experiments.studies.validity FILE.jsonl --help``."""

import argparse
from pathlib import Path

from experiments.studies.validity.page import page
from experiments.studies.validity.processes import PROCESSES
from experiments.studies.validity.run import Job, compact, run
from experiments.studies.validity.settings import FAMILIES

USUAL = ["oob", "default", "frozen", "holdout", "folds"]


def main():
    parser = argparse.ArgumentParser(
        prog="python -m experiments.studies.validity", description=__doc__
    )
    parser.add_argument("results", type=Path, help="file that repetitions are appended to")
    parser.add_argument(
        "--processes",
        nargs="+",
        default=list(PROCESSES),
        help="of " + ", ".join(PROCESSES) + ", and data:NAME for a data set in VENNFOREST_DATA",
    )
    parser.add_argument("--settings", nargs="+", default=USUAL, choices=list(FAMILIES))
    parser.add_argument("--n", nargs="+", type=int, default=[200])
    parser.add_argument("--trees", nargs="+", type=int, default=[10, 30, 100, 300])
    parser.add_argument("--repetitions", type=int, default=500)
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    parser.add_argument("--compact", type=Path, help="write the sums to this .jsonl.xz and stop")
    parser.add_argument("--page", type=Path, help="write the page to this file and stop")
    parser.add_argument("--with", nargs="+", type=Path, default=[], dest="others", metavar="FILE",
                        help="further files of results, for --compact and --page")  # fmt: skip
    given = parser.parse_args()
    paths = [given.results, *given.others]
    if given.compact:
        compact(paths, given.compact)
    if given.page:
        names = " --with ".join(map(str, paths))
        command = f"python -m experiments.studies.validity {names} --page {given.page}"
        # benchmarks/confidence_coverage.py makes the last section.
        known = given.page.read_text() if given.page.exists() else ""
        _, heading, intervals = known.partition("\n## Confidence intervals\n")
        given.page.write_text(page(paths, command) + heading + intervals)
    if given.compact or given.page:
        return
    jobs = [
        Job(process, n, tuple(given.trees), tuple(given.settings))
        for n in given.n
        for process in given.processes
    ]
    run(jobs, given.repetitions, given.results, given.jobs)


if __name__ == "__main__":
    main()
