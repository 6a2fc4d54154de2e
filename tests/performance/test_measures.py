from typing import get_args

import numpy as np
import pytest
from sklearn.metrics import (
    accuracy_score,
    brier_score_loss,
    log_loss,
    precision_score,
    recall_score,
    roc_auc_score,
)

from oracles.performance import measures
from vennforest.performance.measures import LabelledPredictions, Metric


def drawn_case(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 25))
    kind = seed % 5
    p = rng.random(n)
    if kind == 1:
        p = np.round(p, 1)  # ties
    elif kind == 2:
        p = np.full(n, rng.random())
    elif kind == 3:
        p = rng.choice([0.0, 1.0, 1e-300, 1 - 1e-16], n)
    q = rng.random(n) if kind != 4 else rng.choice([0.0, 1.0], n)
    return p, q, rng.random(n) < p, rng.normal(size=(2, 2))


@pytest.mark.parametrize("seed", range(60))
def test_expected_measures_are_those_of_every_row_and_pair(seed):
    p, q, decided, costs = drawn_case(seed)
    paid = costs[:, decided.astype(int)].T
    given = LabelledPredictions(np.column_stack([1 - p, p]), decided.astype(int), [1], paid)
    found = given.expected(np.column_stack([1 - q, q]))
    wanted = measures(q.tolist(), p.tolist(), decided.tolist(), 1, costs.tolist())
    for metric in get_args(Metric):
        assert found[metric] == pytest.approx(wanted[metric], abs=1e-9, nan_ok=True)


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("seed", range(4))
def test_with_drawn_labels_they_are_those_of_scikit_learn(k, seed):
    rng = np.random.default_rng([k, seed])
    p = rng.dirichlet(np.ones(k), 200)
    codes = np.array([rng.choice(k, p=row) for row in p])
    decided = p.argmax(axis=1)
    counted = [1] if k == 2 else list(range(k))
    given = LabelledPredictions(p, decided, counted, None)
    found = given.of_labels(codes)
    average = {"average": "macro"} if k > 2 else {}
    squares = ((p - np.eye(k)[codes]) ** 2).sum(axis=1)
    wanted = {
        "accuracy": accuracy_score(codes, decided),
        "precision": precision_score(codes, decided, **average),
        "recall": recall_score(codes, decided, **average),
        "brier": brier_score_loss(codes, p[:, 1]) if k == 2 else squares.mean(),
        "log_loss": log_loss(codes, p),
        "auc": roc_auc_score(codes, p[:, 1] if k == 2 else p, multi_class="ovr"),
    }
    for metric, value in wanted.items():
        assert found[metric] == pytest.approx(value, abs=1e-12)
