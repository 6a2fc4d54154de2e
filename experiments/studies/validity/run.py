"""Repetitions in batches, each written to a file as soon as it is done."""

import json
import lzma
import secrets
import warnings
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
from experiments.studies.validity.datasets import process
from experiments.studies.validity.settings import FAMILIES
from experiments.studies.validity.statistics import MEASURES, ratios, sums

REFERENCE = "Venn–Abers, all trees"
NEW_OBJECTS = 200
BATCH = 10


class Job(NamedTuple):
    """A process, a number of training examples, forests' sizes, and the settings to compare."""

    process: str
    n: int
    trees: tuple[int, ...]
    families: tuple[str, ...]

    @property
    def name(self):
        return f"{self.process} n={self.n} trees={self.trees} {'+'.join(self.families)}"


def repetition(job, drawn, rng):
    """Return {(setting, trees): measures} of one repetition of a process."""
    sample = drawn.draw(rng, job.n, NEW_OBJECTS)
    cells, reference = {}, {}
    at = MEASURES.index("log loss")
    for family in job.families:
        for setting, size, answer in FAMILIES[family](sample, job.trees, rng):
            lower, upper, probability, spread, widened = answer
            truth = sample.truth[: len(lower)]
            same = reference.get(size) if len(truth) == len(sample.truth) else None
            pairs = ratios(lower, upper, truth, probability, spread, widened, same)
            cells[setting, size] = pairs
            if setting == REFERENCE:
                reference[size] = pairs[at, 0] / pairs[at, 1]
    return cells


def batch(job, seed, repetitions=BATCH):
    """Return {"setting|trees": sums} of some repetitions with streams of one seed."""
    pairs, drawn = defaultdict(list), process(job.process)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of examples that no tree leaves out, with few trees
        for stream in np.random.SeedSequence(seed).spawn(repetitions):
            for key, value in repetition(job, drawn, np.random.default_rng(stream)).items():
                pairs[key].append(value)
    return {f"{setting}|{size}": rounded(sums(rows)) for (setting, size), rows in pairs.items()}


def records(path):
    """Yield the records of a file of results, compressed or not."""
    path = Path(path)
    if path.exists():
        with lzma.open(path, "rt") if path.suffix == ".xz" else path.open() as file:
            yield from map(json.loads, file)


def job_of(record):
    return Job(record["process"], record["n"], tuple(record["trees"]), tuple(record["families"]))


def read(*paths):
    """Return {job: (repetitions, {(setting, trees): sums})} of files of results."""
    done: dict = {}
    for record in (record for path in paths for record in records(path)):
        job = job_of(record)
        count, cells = done.get(job, (0, {}))
        for key, rows in record["cells"].items():
            setting, size = key.rsplit("|", 1)
            cell = (setting, int(size))
            cells[cell] = cells.get(cell, 0) + np.array(rows)
        done[job] = count + record["repetitions"], cells
    return done


def compact(paths, out):
    """Write one record a job: the sums of its batches, and the seeds of them all."""
    seeds = defaultdict(list)
    for record in (record for path in paths for record in records(path)):
        given = record["seed"]
        seeds[job_of(record)] += given if isinstance(given, list) else [given]
    lines = []
    for job, (count, cells) in read(*paths).items():
        rows = {f"{s}|{t}": rounded(cell, 5) for (s, t), cell in cells.items()}
        whole = {**job._asdict(), "seed": seeds[job], "repetitions": count, "cells": rows}
        lines.append(json.dumps(whole, separators=(",", ":")).replace(".0,", ",") + "\n")
    Path(out).write_bytes(lzma.compress("".join(lines).encode(), preset=9))


def rounded(cell, digits=7):
    return [[float(f"{v:.{digits}g}") for v in row] for row in cell]


def run(jobs, repetitions, path, workers=1):
    """Bring every job to so many repetitions; what a file already holds counts.

    Seeds are drawn from the system's entropy and stand beside what they gave.
    """
    if Path(path).suffix == ".xz":
        raise ValueError(f"results must not be compressed to be added to, got {path}")
    done = read(path)
    todo = [
        (job, secrets.randbits(64))
        for job in jobs
        for _ in range(-(-max(0, repetitions - done.get(job, (0,))[0]) // BATCH))
    ]

    def write(job, seed, cells):
        record = {**job._asdict(), "seed": seed, "repetitions": BATCH, "cells": cells}
        with Path(path).open("a") as file:
            file.write(json.dumps(record) + "\n")
        print(job.name, flush=True)

    if workers == 1:
        for job, seed in todo:
            write(job, seed, batch(job, seed))
        return
    with ProcessPoolExecutor(workers) as pool:
        for (job, seed), cells in zip(
            todo, pool.map(batch, *zip(*todo, strict=True)) if todo else (), strict=True
        ):
            write(job, seed, cells)
