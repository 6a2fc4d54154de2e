"""A model that changes after its calibration is noticed, and one that does not is left alone."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from vennforest import CalibratedClassifier

MODELS = {
    "logistic": LogisticRegression(),
    "pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
    "bayes": GaussianNB(),
    "descent": SGDClassifier(loss="log_loss"),
    "margins": SVC(),
    "neighbours": KNeighborsClassifier(),
    "boosting": GradientBoostingClassifier(n_estimators=5),
    "forest": RandomForestClassifier(100, bootstrap=False),
    "network": MLPClassifier((4,), max_iter=20),
    "votes": VotingClassifier([("a", GaussianNB()), ("b", SVC(probability=False))]),
    "search": GridSearchCV(GaussianNB(), {"var_smoothing": [1e-9, 1e-3]}),
}
MODELS["votes"].set_params(voting="soft", b=LogisticRegression())


def drawn(rng, n=120):
    X = rng.normal(size=(n, 4))
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", MODELS)
def test_a_model_that_is_fitted_again_is_named_and_others_are_not(name):
    rng = np.random.default_rng(0)
    model = clone(MODELS[name]).fit(*drawn(rng))
    calibrated = CalibratedClassifier(FrozenEstimator(model)).fit(*drawn(rng))
    X = drawn(rng)[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        for same in (calibrated, copy.deepcopy(calibrated), pickle.loads(pickle.dumps(calibrated))):
            for _ in range(2):
                same.predict_proba(X)
                same.predict_multiprobability(X[:1])
    model.fit(*drawn(rng))
    with pytest.warns(UserWarning, match="fitted again or changed"):
        calibrated.predict_proba(X)


def test_models_that_learn_in_place_are_seen_to():
    rng = np.random.default_rng(1)
    for model in (GaussianNB(), SGDClassifier(loss="log_loss")):
        model.fit(*drawn(rng))
        calibrated = CalibratedClassifier(FrozenEstimator(model)).fit(*drawn(rng))
        model.partial_fit(*drawn(rng))
        with pytest.warns(UserWarning, match="fitted again or changed"):
            calibrated.predict_proba(drawn(rng)[0])


def test_what_a_model_notes_while_it_predicts_is_no_change():
    class Counting(GaussianNB):
        def predict_proba(self, X):
            self.n_calls_ = getattr(self, "n_calls_", 0) + 1
            self.last_ = X
            return super().predict_proba(X)

    rng = np.random.default_rng(2)
    calibrated = CalibratedClassifier(Counting()).fit(*drawn(rng))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        calibrated.predict_proba(drawn(rng)[0])
