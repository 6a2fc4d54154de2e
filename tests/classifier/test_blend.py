"""Several estimators as one calibrated model."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, RepeatedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from support.cases import draw_noise
from vennforest import CalibratedClassifier, audit, estimate_performance, load, save
from vennforest.calibrators import VectorScaling
from vennforest.calibrators.newton import fit_blend
from vennforest.classifier import prediction
from vennforest.sources.row_hashes import hash_rows


def rows(k=2, n=300, seed=0):
    X, y = make_classification(
        n, 8, n_informative=5, n_classes=k, flip_y=0.15, random_state=seed, class_sep=0.8
    )
    return X[:-60], np.array(list("abcd"))[y[:-60]], X[-60:], np.array(list("abcd"))[y[-60:]]


def estimators(*others):
    forest = RandomForestClassifier(40, random_state=1)
    return [("forest", forest), ("bayes", GaussianNB()), *others]


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("ensemble", [True, False])
def test_scores_are_those_of_models_that_did_not_see_the_row(k, ensemble):
    X, y, new, _ = rows(k)
    cv = KFold(4, shuffle=True, random_state=3)
    # A splitter takes the forest to folds too; without one its trees out of bag score.
    for with_splitter in (True, False):
        options = {"cv": cv if with_splitter else 4}
        model = CalibratedClassifier(
            estimators(), ensemble=ensemble, random_state=5, **options
        ).fit(X, y)
        blend = model.estimator_
        classes, n = model.classes_, len(y)
        codes = np.searchsorted(classes, y)
        by_hand = {}
        # folds
        of_row = np.full(n, -1)
        for fold in blend.members[1].folds if ensemble else []:
            of_row[fold.rows] = np.flatnonzero([f is fold for f in blend.members[1].folds])[0]
        if ensemble:
            p = np.empty((n, k))
            for i in range(len(blend.members[1].folds)):
                fitted = GaussianNB().fit(X[of_row != i], y[of_row != i])
                p[of_row == i] = fitted.predict_proba(X[of_row == i])
            by_hand["bayes"] = p
        if not with_splitter:
            forest = blend.members[0].folds[0].model
            p = np.empty((n, k))
            bags = [np.bincount(bag, minlength=n) > 0 for bag in forest.estimators_samples_]
            for i in range(n):
                free = [
                    tree.predict_proba(X[i : i + 1])[0]
                    for tree, bag in zip(forest.estimators_, bags, strict=True)
                    if not bag[i]
                ]
                p[i] = np.mean(free, axis=0)
            by_hand["forest"] = p
        for member in blend.members:
            if member.name in by_hand:
                scores = np.empty((n, k))
                for fold in member.folds:
                    column = fold.scores
                    scores[fold.rows] = np.column_stack([1 - column, column]) if k == 2 else column
                assert_allclose(scores, by_hand[member.name], atol=1e-9)
        # the map of each member's scores, then the weights: each part by those without it
        scores = [np.empty((n, *m.folds[0].scores.shape[1:])) for m in blend.members]
        for of_member, member in zip(scores, blend.members, strict=True):
            for fold in member.folds:
                of_member[fold.rows] = fold.scores
        of_folds = [[fold.score(new) for fold in member.folds] for member in blend.members]
        order = np.unique(hash_rows(X), return_inverse=True)[1]
        part, expected = (
            np.random.RandomState(0).permutation(n)[order] % prediction.N_PARTS,
            np.empty((n, k)),
        )
        for held in range(prediction.N_PARTS):
            held_out = [[of_member[part == held]] for of_member in scores]
            rest = [of_member[part != held] for of_member in scores]
            expected[part == held] = blend_by_hand(rest, codes[part != held], held_out)
        assert_allclose(
            model.calibration_scores_, expected[:, 1] if k == 2 else expected, atol=1e-9
        )
        assert_array_equal(model.calibration_y_, classes[codes])
        expected = blend_by_hand(scores, codes, of_folds)
        assert_allclose(blend.predict_proba(new), expected, atol=1e-9)


def blend_by_hand(scores, codes, new):
    """Return the probabilities of new scores, a list of those by each fold for each model."""
    maps = [VectorScaling().fit(s, codes) for s in scores]
    logs = [np.log(m.predict_proba(s)) for m, s in zip(maps, scores, strict=True)]
    weights, b = fit_blend(np.array(logs), codes)
    z = b
    for w, m, of_folds in zip(weights, maps, new, strict=True):
        z = z + w * np.log(np.mean([m.predict_proba(s) for s in of_folds], axis=0))
    return np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)


def test_the_folds_are_shared_by_all():
    X, y, *_ = rows()
    model = CalibratedClassifier(
        [("a", GaussianNB()), ("b", LogisticRegression()), ("c", LinearSVC())], random_state=0
    ).fit(X, y)
    first, *others = model.estimator_.members
    for member in others:
        for fold, same in zip(first.folds, member.folds, strict=True):
            assert_array_equal(fold.rows, same.rows)


@pytest.mark.parametrize("k", [2, 3])
def test_a_blend_answers_everything_that_a_model_answers(k, tmp_path):
    X, y, new, _ = rows(k)
    groups = np.arange(len(y)) // 2
    model = CalibratedClassifier(estimators(), random_state=0, by=lambda X: X[:, 0] > 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y, groups=groups, sample_weight=1.0 + (np.arange(len(y)) % 2))
    p, bounds = model.predict_proba(new), model.predict_multiprobability(new)
    confidence = model.predict_confidence(new)
    assert model.calibrate_on_ == "cv"
    assert set(model.blend_) == {"forest", "bayes"}
    assert_allclose(p.sum(axis=1), 1)
    for low, high in ((bounds.lower, bounds.upper), (confidence.lower, confidence.upper)):
        assert ((low <= p + 1e-12) & (p <= high + 1e-12)).all()
    assert np.isfinite(model.oob_probability_).all()
    assert_allclose(model.predict_proba(new[3:4])[0], p[3], rtol=1e-12)
    shifted = model.with_prior({"a": 0.2})
    assert shifted.predict_proba(new)[:, 0].mean() < p[:, 0].mean()
    assert model.recalibrate("platt").predict_proba(new).shape == p.shape
    plain = CalibratedClassifier(estimators(), random_state=0).fit(X, y)
    assert plain.calibrate_on_ == "oob and cv"
    estimate_performance(plain, new)
    audit(plain, X, y)
    save(plain, tmp_path / "blend.skops")
    loaded = load(tmp_path / "blend.skops")
    assert_array_equal(loaded.predict_proba(new), plain.predict_proba(new))
    assert loaded.blend_ == plain.blend_


@pytest.mark.parametrize("k", [2, 3])
def test_a_copy_of_an_estimator_changes_nothing(k):
    X, y, new, _ = rows(k)
    members = [("bayes", GaussianNB()), ("linear", LogisticRegression())]
    model = CalibratedClassifier(members, random_state=0).fit(X, y)
    copied = [members[0], ("copy", GaussianNB()), members[1]]
    with_copy = CalibratedClassifier(copied, random_state=0).fit(X, y)
    assert_allclose(with_copy.predict_proba(new), model.predict_proba(new), rtol=1e-9)
    weights = with_copy.blend_
    assert weights["bayes"] == weights["copy"]
    assert_allclose(weights["bayes"] + weights["copy"], model.blend_["bayes"], rtol=1e-9)


def test_results_are_the_same_for_any_number_of_threads():
    X, y, new, _ = rows(3)
    fitted = [
        CalibratedClassifier(estimators(), random_state=0, n_jobs=n).fit(X, y) for n in (1, 2)
    ]
    assert_array_equal(fitted[0].predict_proba(new), fitted[1].predict_proba(new))
    assert fitted[0].blend_ == fitted[1].blend_


def test_parameters_of_estimators_are_set_by_name():
    model = CalibratedClassifier(estimators())
    assert model.get_params()["forest__n_estimators"] == 40
    assert isinstance(model.get_params()["bayes"], GaussianNB)
    copy = clone(model).set_params(forest__n_estimators=7, bayes=LogisticRegression())
    assert copy.estimator[0][1].n_estimators == 7
    assert isinstance(copy.estimator[1][1], LogisticRegression)
    assert model.estimator[0][1].n_estimators == 40
    assert "forest" not in model.get_params(deep=False)


def test_metadata_goes_to_the_estimators_that_request_it():
    X, y, *_ = rows()
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y))
    with config_context(enable_metadata_routing=True):
        members = [
            ("a", GaussianNB().set_fit_request(sample_weight=True)),
            ("b", GaussianNB().set_fit_request(sample_weight=False)),
        ]
        model = CalibratedClassifier(members, random_state=0).set_fit_request(sample_weight=True)
        model.fit(X, y, sample_weight=weight)
    first, second = model.estimator_.members
    assert not np.allclose(first.folds[0].scores, second.folds[0].scores)
    rest = np.setdiff1d(np.arange(len(y)), first.folds[0].rows)
    weighted = GaussianNB().fit(X[rest], y[rest], sample_weight=weight[rest])
    assert_allclose(first.folds[0].model.theta_, weighted.theta_)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([("a", GaussianNB()), ("a", LogisticRegression())], "not unique"),
        ([("a", GaussianNB())], "two or more"),
        ([], "two or more"),
        ([("cv", GaussianNB()), ("b", GaussianNB())], "constructor arguments"),
        ([("splitter", GaussianNB()), ("b", GaussianNB())], "other names than"),
        ([("self", GaussianNB()), ("b", GaussianNB())], "other names than"),
        ([("method_mapping", GaussianNB()), ("b", GaussianNB())], "other names than"),
        ([("a", GaussianNB()), ("a_", GaussianNB())], "ends in an underscore, got 'a_'"),
        ([("a__b", GaussianNB()), ("b", GaussianNB())], "__"),
    ],
)
def test_bad_lists_are_refused(members, message):
    X, y, *_ = rows()
    with pytest.raises(ValueError, match=message):
        CalibratedClassifier(members).fit(X, y)


@pytest.mark.parametrize(
    "members",
    [
        [GaussianNB(), GaussianNB()],
        [("a", None), ("b", 3)],
        (("a", GaussianNB()), ("b", GaussianNB())),  # of which set_params can replace none
    ],
)
def test_lists_of_other_things_are_refused(members):
    X, y, *_ = rows()
    with pytest.raises(TypeError, match="estimator must be"):
        CalibratedClassifier(members).fit(X, y)


def test_the_reason_is_that_of_each_model():
    X, y, *_ = rows()
    model = CalibratedClassifier(estimators(), random_state=0).fit(X, y, groups=np.arange(240) // 2)
    assert model.calibrate_on_ == "cv"
    reasons = model.calibrate_on_reason_.split("; ")
    assert reasons[0] == "forest: groups were given, and folds keep each of them together"
    assert reasons[1].split(": ")[0] == ", ".join(name for name, _ in estimators()[1:])
    assert len(reasons) == 2


def test_frozen_models_of_other_classes_are_refused():
    X, y, *_ = rows(3)
    some = y != "c"
    frozen = [
        ("a", FrozenEstimator(GaussianNB().fit(X, y))),
        ("b", FrozenEstimator(GaussianNB().fit(X[some], y[some]))),
    ]
    with pytest.raises(ValueError, match="same classes"):
        CalibratedClassifier(frozen).fit(X, y)


def test_frozen_models_are_blended_on_rows_that_they_have_not_seen():
    X, y, new, _ = rows(2, 500)
    half = len(y) // 2
    members = [
        ("a", FrozenEstimator(GaussianNB().fit(X[:half], y[:half]))),
        ("b", FrozenEstimator(LogisticRegression().fit(X[:half], y[:half]))),
    ]
    model = CalibratedClassifier(members).fit(X[half:], y[half:])
    assert model.calibrate_on_ == "frozen"
    assert model.predict_proba(new).shape == (60, 2)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("grouped", [False, True])
def test_no_row_of_a_blend_is_predicted_with_its_own_label(k, grouped, monkeypatch):
    # Frozen models score a row whatever its label: the whole prediction has to stay.
    monkeypatch.setattr(prediction, "N_PARTS", 3)
    X, y = draw_noise(140, k, 3)
    members = [
        (name, FrozenEstimator(estimator.fit(X[:80], y[:80])))
        for name, estimator in (("a", GaussianNB()), ("b", LogisticRegression()))
    ]
    X, y = X[80:], y[80:]
    groups = np.arange(60) // 3 if grouped else None

    def fit(labels):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of groups with frozen models
            model = CalibratedClassifier(members, by=lambda X: X[:, 0] > 5)
            model.fit(X, labels, groups=groups)
        return model, model.with_prior(dict(enumerate(np.arange(1, k + 1) / sum(range(k + 1)))))

    other = y.copy()
    other[7] = (y[7] + 1) % k
    mates = np.arange(6, 9) if grouped else [7]
    for before, after in zip(fit(y), fit(other), strict=True):
        assert_array_equal(before.oob_probability_[mates], after.oob_probability_[mates])
        bounds, others = before.oob_multiprobability_, after.oob_multiprobability_
        assert_array_equal(bounds.lower[mates], others.lower[mates])
        assert (before.oob_probability_ != after.oob_probability_).any()
        shape = (60, k)[: before.calibration_scores_.ndim]
        a, b = (m.calibration_scores_.reshape(shape)[mates] for m in (before, after))
        assert_array_equal(a, b)


def test_one_group_is_refused_by_a_blend_of_frozen_models():
    X, y = draw_noise(60, 2, 0)
    members = [(name, FrozenEstimator(GaussianNB().fit(X, y))) for name in "ab"]
    with pytest.raises(ValueError, match="groups must be two or more with several estimators"):
        CalibratedClassifier(members).fit(X, y, groups=np.zeros(60))


class OutOfMemory(GaussianNB):
    def fit(self, X, y):
        raise MemoryError("Unable to allocate 80 GiB")


def test_an_estimator_that_fails_is_named_and_its_error_stays_what_it_is():
    X, y, *_ = rows()
    with pytest.raises(MemoryError, match="80 GiB") as caught:
        CalibratedClassifier([("big", OutOfMemory()), ("bayes", GaussianNB())]).fit(X, y)
    assert caught.value.__notes__ == ["estimator 'big' must fit the data"]
    X = X.copy()
    X[5, 2] = np.nan
    with pytest.raises(ValueError, match="NaN") as caught:
        CalibratedClassifier(estimators()).fit(X, y)
    assert caught.value.__notes__ == ["estimator 'bayes' must fit the data"]


def test_an_estimator_may_be_dropped():
    X, y, new, _ = rows()
    members = estimators(("linear", LogisticRegression()))
    model = CalibratedClassifier(members, random_state=0).set_params(linear="drop").fit(X, y)
    without = CalibratedClassifier(estimators(), random_state=0).fit(X, y)
    assert_array_equal(model.predict_proba(new), without.predict_proba(new))
    one = CalibratedClassifier(members, random_state=0).set_params(linear="drop", forest="drop")
    alone = CalibratedClassifier(GaussianNB(), random_state=0).fit(X, y)
    assert_array_equal(one.fit(X, y).predict_proba(new), alone.predict_proba(new))
    with pytest.raises(ValueError, match='one that is not "drop"'):
        one.set_params(bayes="drop").fit(X, y)


class Recorder(GaussianNB):
    def fit(self, X, y, scale=None, shift=None):
        self.received_ = scale, shift
        return super().fit(X, y)


def test_fit_parameters_go_to_the_estimator_that_they_name():
    X, y, *_ = rows()
    model = CalibratedClassifier([("a", Recorder()), ("b", Recorder())], cv=2)
    members = model.fit(X, y, a__scale=2, shift=3).estimator_.members
    assert [m.folds[0].model.received_ for m in members] == [(2, 3), (None, 3)]


@pytest.mark.parametrize("ensemble", [True, False])
def test_a_constant_estimator_has_weight_zero_and_a_warning(ensemble):
    X, y, new, _ = rows()
    members = estimators(("constant", DummyClassifier(random_state=0)))
    with pytest.warns(UserWarning, match="'constant' gives every row the same score"):
        model = CalibratedClassifier(members, ensemble=ensemble, random_state=0).fit(X, y)
    assert model.blend_["constant"] == 0
    without = CalibratedClassifier(estimators(), ensemble=ensemble, random_state=0).fit(X, y)
    assert_allclose(model.predict_proba(new), without.predict_proba(new), atol=1e-8)


def test_repeated_folds_and_drawn_subforests_are_refused():
    X, y, *_ = rows()
    with pytest.raises(ValueError, match="at most once"):
        CalibratedClassifier(estimators(), cv=RepeatedKFold(n_splits=3, n_repeats=2)).fit(X, y)
    with pytest.raises(ValueError, match="subforest"):
        CalibratedClassifier(estimators(), subforest="exchangeable").fit(X, y)


@pytest.mark.parametrize("source", ["cv", "holdout", "training"])
def test_every_source_takes_several_estimators(source):
    X, y, new, _ = rows()
    model = CalibratedClassifier(estimators(), calibrate_on=source, random_state=0).fit(X, y)
    assert model.calibrate_on_ == source
    assert model.predict_proba(new).shape == (60, 2)


def test_one_estimator_has_no_blend():
    X, y, *_ = rows()
    model = CalibratedClassifier(GaussianNB()).fit(X, y)
    assert not hasattr(model, "blend_")


def test_models_of_different_columns_add_up():
    # The logit is the sum of what each model sees, so that both weights are about 1.
    rng = np.random.default_rng(11)
    X = rng.normal(size=(3000, 4))
    y = rng.random(3000) < 1 / (1 + np.exp(-X.sum(axis=1)))
    members = {
        name: make_pipeline(make_column_transformer(("passthrough", columns)), LogisticRegression())
        for name, columns in {"first": [0, 1], "second": [2, 3]}.items()
    }

    def fit(estimator):
        model = CalibratedClassifier(estimator, random_state=0).fit(X[:1000], y[:1000])
        p = model.predict_proba(X[1000:])[:, 1]
        return model, -np.log(np.where(y[1000:], p, 1 - p)).mean()

    model, loss = fit(list(members.items()))
    assert all(0.8 < weight < 1.4 for weight in model.blend_.values())
    assert loss < min(fit(estimator)[1] for estimator in members.values()) - 0.05


@pytest.mark.parametrize("k", [2, 3])
def test_separable_scores_of_few_rows_give_no_certainty(k):
    # A second pool, of scores that are calibrated already, gave a wrong row 1e-9.
    rng = np.random.default_rng(8)
    y = np.arange(90) % k
    X = rng.normal(size=(90, 4)) + 5 * np.eye(4)[y]
    members = [("bayes", GaussianNB()), ("linear", LogisticRegression())]
    p = CalibratedClassifier(members, random_state=0).fit(X, y).predict_proba(X)
    assert (p[np.arange(90), y] > 0.9).all()
    assert p.min() > 1e-6
