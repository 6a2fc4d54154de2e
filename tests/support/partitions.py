"""Tables in partitions, a plain engine, and the oracles: the fit to all rows of one machine."""

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

from vennforest._validation import InputError
from vennforest.calibrators import make_calibrator
from vennforest.engines._forest import grow_crew, join_forests, plan_crews
from vennforest.engines._tasks import run_task
from vennforest.sources import Fold

FEATURES = ["u", "v", "w"]


def cut(frame, *sizes):
    """Return parts of a frame with these numbers of rows, the last takes the rest."""
    ends = [0, *np.cumsum(sizes), len(frame)]
    return [frame.iloc[a:b] for a, b in itertools.pairwise(ends)]


def engine_of(parts):
    """Return what runs tasks on data frames in this process, batch by batch."""
    import pyarrow as pa

    def run(columns, task):
        tables = [pa.Table.from_pandas(part[list(columns)], preserve_index=False) for part in parts]
        return {n: run_task(task, t.to_batches(max_chunksize=40), n) for n, t in enumerate(tables)}

    return run


def draw_scores(n=900, k=2, seed=3071):
    """Return a frame of scores ``s`` (or ``s0``, …) with ties, labels ``y`` and weights ``w``."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(k, 0.7), n).round(3)
    p[rng.random(n) < 0.1] = np.eye(k)[0]
    p[:, -1] = np.clip(1 - p[:, :-1].sum(axis=1), 0, 1)
    y = np.array([rng.choice(k, p=(row + 0.1) / (row + 0.1).sum()) for row in p])
    y[:k] = np.arange(k)
    frame = pd.DataFrame({"s": p[:, 1]} if k == 2 else {f"s{j}": p[:, j] for j in range(k)})
    labels = np.array(["no", "yes"] if k == 2 else ["a", "b", "c"])
    frame["y"] = pd.Series(labels[y]).astype(object)
    frame["w"] = rng.integers(0, 4, n)
    return frame


def score_names(k):
    return "s" if k == 2 else {"c": "s2", "a": "s0", "b": "s1"}


def check_class_columns(engine, frame_of, collect):
    """Check that an engine takes columns as those of the classes that their names say.

    ``frame_of`` makes a data frame of the engine, and ``collect`` one of pandas.
    """
    frame = draw_scores(300)
    frame = frame.rename(columns={"s": "p(yes)"})
    frame["p(no)"] = frame["risk"] = 1 - frame["p(yes)"]
    parts, named = frame_of(frame), ["p(yes)", "p(no)"]
    expected = make_calibrator("platt").fit(frame["p(yes)"], frame["y"])
    p = expected.predict_proba(frame["p(yes)"])[:, 1]
    for columns in (named, "p(no)", {"no": "risk"}):
        calibrator = engine.calibrate(parts, score=columns, target="y", method="platt")
        predictions = engine.predict(parts, calibrator, columns=columns, carried=["y", "risk"])
        np.testing.assert_allclose(collect(predictions)["p(yes)"], p, atol=1e-9)
    with pytest.raises(InputError, match="seem to be calibrated already"):
        engine.predict(predictions, calibrator, columns="p(yes)", carried=["risk"])
    with pytest.raises(InputError, match=r"of which class each column is, .* by a dict"):
        engine.calibrate(parts, score=["p(yes)", "risk"], target="y")


def check_calibrator(calibrator, frame, method="venn-abers", k=2, weight=None, tolerance=1e-9):
    """Compare a calibrator fitted by an engine with one fitted to all rows."""
    expected = make_calibrator(method).fit(
        frame["s" if k == 2 else ["s0", "s1", "s2"]].to_numpy(np.float64),
        frame["y"].to_numpy(),
        sample_weight=None if weight is None else frame[weight],
    )
    scores = np.random.default_rng(5).dirichlet(np.ones(k), 300)
    scores[:k] = np.eye(k)
    scores = scores[:, 1] if k == 2 else scores
    assert np.array_equal(calibrator.classes_, expected.classes_)
    np.testing.assert_allclose(
        calibrator.predict_proba(scores), expected.predict_proba(scores), rtol=0, atol=tolerance
    )
    if hasattr(expected, "predict_multiprobability"):
        bounds = calibrator.predict_multiprobability(scores)
        np.testing.assert_allclose(
            bounds.lower, expected.predict_multiprobability(scores).lower, rtol=0, atol=tolerance
        )


def draw_features(n=240, k=2, seed=7):
    """Return a frame of three features of 32 bits, and labels ``y``."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 3)).round(4).astype(np.float32), columns=FEATURES)
    y = np.digitize(X["u"] + rng.normal(size=n), np.linspace(-1, 1, k - 1) if k > 2 else [0])
    return X.assign(y=np.array(["no", "yes", "zero"])[y])


def slow_scores(crews, trees, X, home, k, votes="soft"):
    """Score each row by the trees of the partitions that it is not in, one after another."""
    partition_of_tree = [number for number, crew in crews.items() for _ in range(crew.n_estimators)]
    p = np.stack([tree.predict_proba(X) for tree in trees])
    if votes == "hard":
        p = np.eye(k)[p.argmax(axis=2)]
    scores = np.array(
        [p[np.array(partition_of_tree) != h, i].mean(axis=0) for i, h in enumerate(home)]
    )
    return scores[:, 1] if k == 2 else scores


@dataclass(frozen=True)
class Partitions:
    """A source of calibration scores: each tree sees one partition, others score its rows."""

    home: Any
    votes: str = "soft"

    def folds(self, estimator, data, *, seed, random_state, n_jobs):
        X = np.asarray(data.X, np.float32)
        crews = plan_crews(estimator, np.unique(self.home).tolist())
        forests = []
        for number, crew in crews.items():
            rows = self.home == number
            forests.append(grow_crew(crew, X[rows], data.y[rows], data.classes))
        forest = join_forests(forests)
        forest.feature_names_in_ = np.array(FEATURES, dtype=object)
        trees, k = forest.estimators_, len(data.classes)
        scores = slow_scores(crews, trees, X, self.home, k, self.votes)
        return [Fold(forest, scores, data.codes, classes=data.classes)]


def check_forest(model, alone, X):
    """Compare a fit over partitions with that of one machine."""
    assert np.array_equal(model.classes_, alone.classes_)
    scores, expected = (np.sort(m.calibration_scores_, axis=0) for m in (model, alone))
    np.testing.assert_allclose(scores, expected, atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(X), alone.predict_proba(X), rtol=0, atol=1e-8)
    bounds, expected = model.predict_multiprobability(X), alone.predict_multiprobability(X)
    np.testing.assert_allclose(bounds.lower, expected.lower, rtol=0, atol=1e-8)
    np.testing.assert_allclose(bounds.upper, expected.upper, rtol=0, atol=1e-8)
