"""What is said out of fold of labels that are noise: nothing is learnt from nothing."""

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from support.cases import draw_noise
from vennforest import CalibratedClassifier


def members_of_columns(n):
    """Return two models of all six columns, and n - 2 of two columns each."""
    columns = [range(6)] * 2 + [[i % 6, (i + 1 + i // 6) % 6] for i in range(n - 2)]
    kinds = [LogisticRegression(C=0.1), GaussianNB()]
    return [
        (f"m{i}", make_pipeline(make_column_transformer(("passthrough", [*some])), kinds[i % 2]))
        for i, some in enumerate(columns)
    ]


@pytest.mark.filterwarnings("ignore:the columns of scores rank")  # as those of noise may
@pytest.mark.parametrize(("k", "n_models", "n_draws"), [
    (3, 4, 5),
    *(pytest.param(k, n, 16, marks=pytest.mark.slow) for k in (2, 3, 4, 10) for n in (2, 25)),
])  # fmt: skip
def test_a_blend_shows_no_skill(k, n_models, n_draws):
    """A row out of fold scores a little low for its own label, which no map may read backwards."""
    auc, difference, covered = [], [], []
    for seed in range(n_draws):
        X, y = draw_noise(300, k, seed)
        new, labels = draw_noise(500, k, 100 + seed)
        model = CalibratedClassifier(members_of_columns(n_models), random_state=seed).fit(X, y)
        p = model.oob_probability_
        auc.append(roc_auc_score(y, p[:, 1] if k == 2 else p, multi_class="ovr"))
        difference.append(log_loss(y, p) - log_loss(labels, model.predict_proba(new)))
        confidence = model.predict_confidence(new)
        covered.append(((confidence.lower <= 1 / k) & (confidence.upper >= 1 / k)).mean())
    assert np.mean(auc) < 0.5 + 3 * np.std(auc) / n_draws**0.5
    assert np.mean(difference) > -3 * np.std(difference) / n_draws**0.5
    assert np.mean(covered) > 0.93
