"""Calibration within groups: who is in which, exact within each, and everything around it."""

import warnings
from collections import defaultdict
from fractions import Fraction
from itertools import combinations_with_replacement, product

import attrs
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import vennforest.tables
from vennforest import CalibratedClassifier, MatrixScaling, Venn, VennAbers
from vennforest.calibrators.pooled import PooledCalibration
from vennforest.classifier.fitted import (
    calibration_probabilities,
    predict_once,
    predict_together,
)
from vennforest.classifier.settings import Settings
from vennforest.groups import RIDGES, GroupCorrection, Grouping, Groups, assign, choose_ridge
from vennforest.sources import Fold, ModelScorer, model_scores

pytestmark = pytest.mark.filterwarnings("ignore:.*out of bag.*:UserWarning")

SCORES = (0.2, 0.8)


# --- which group ----------------------------------------------------------------------------


def frame(n=40):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "town": rng.choice(["Ulm", "Bonn"], n),
            "number": rng.integers(1, 4, n),
        }
    )


def test_labels_are_the_same_in_every_kind_of_table():
    data = frame()
    data.loc[::7, "town"] = None
    wanted = pd.Series(data["town"]).map({"Bonn": 0, "Ulm": 1}).fillna(2).astype(int).to_numpy()
    nullable = data.assign(number=data["number"].astype("Int64"))
    nullable.loc[::5, "number"] = pd.NA
    grouping, codes = Grouping.fit("town", data, 40)
    assert (codes == wanted).all() and grouping.missing
    assert grouping.values.tolist() == ["Bonn", "Ulm"]
    for other in (
        data.astype({"town": "category"}),
        data.astype({"town": "string"}),
        pl.from_pandas(data),
    ):
        assert (grouping.codes(other, 40) == wanted).all()
    numbers, codes = Grouping.fit("number", nullable, 40)
    assert numbers.missing and numbers.values.tolist() == [1.0, 2.0, 3.0]
    assert (codes[::5] == 3).all()
    plain = data["number"].to_numpy() - 1
    for other in (data, data.astype({"number": "float32"}), data.astype({"number": "category"})):
        assert (numbers.codes(other, 40) == plain).all()
    matrix = data[["x", "number"]].to_numpy()
    for key in (1, -1, np.int64(1)):
        assert (Grouping.fit(key, matrix, 40)[1] == plain).all()
        assert (Grouping.fit(key, csr_array(matrix), 40)[1] == plain).all()
        assert (Grouping.fit(key, data[["x", "number"]], 40)[1] == plain).all()
    assert (Grouping.fit(lambda X: X[:, 0] > 0, matrix, 40)[1] == (matrix[:, 0] > 0)).all()
    dates = pd.DataFrame({"day": pd.to_datetime(["2020-01-01", None, "2020-01-02"] * 4)})
    assert Grouping.fit("day", dates, 12)[0].missing
    assert (Grouping.fit("day", dates, 12)[1] == [0, 2, 1] * 4).all()


@pytest.mark.parametrize(
    ("by", "X", "message"),
    [
        ("town", np.zeros((4, 2)), "X must be a data frame"),
        ("city", frame(), "by must name a column of X"),
        (5, np.zeros((4, 2)), "position of a column"),
        (1.5, np.zeros((4, 2)), "by must be the name or position"),
        (True, np.zeros((4, 2)), "by must be the name or position"),
        (0, np.arange(8.0)[:, None], "few groups, got 8 groups of 8 rows"),
        (lambda X: X, np.zeros((4, 2)), "a label for each of 4 rows"),
        (lambda X: X[:, 0] > np.median(X[:, 0]), np.arange(8.0)[:, None], "whatever the other"),
        (
            lambda X: np.array([1, "a"] * 2, object)[: len(X)],
            np.zeros((4, 2)),
            "numbers or text, got both",
        ),
        (lambda X: np.array([2**53 + 2, 1] * 2)[: len(X)], np.zeros((4, 2)), "below 2\\*\\*53"),
        (Groups(0, smallest=-1), np.zeros((4, 2)), "smallest must be an integer >= 0"),
    ],
)
def test_refused_groups(by, X, message):
    with pytest.raises(ValueError, match=message):
        Grouping.fit(by, X, len(X))


def test_refused_at_prediction():
    grouping, _ = Grouping.fit("town", frame(), 40)
    numbers, codes = Grouping.fit("number", frame(), 40)
    written = frame().assign(number=frame()["number"].astype(str))
    assert (numbers.codes(written, 40) == codes).all()
    written.loc[0, "number"] = "many"
    assert numbers.codes(written, 40)[0] == -1
    with pytest.raises(ValueError, match="by must give text, as at fit, got numbers"):
        grouping.codes(frame().assign(town=1), 40)
    assert (grouping.codes(frame().assign(town="Köln"), 40) == -1).all()
    assert (grouping.codes(frame().assign(town=None), 40) == -1).all()


# --- exact within each group -----------------------------------------------------------------


def predict(calibration, groups, smallest, make, new, group):
    """The multiprobability of a new score of a group, from (score, label) pairs in groups."""
    cells, of_group = assign(np.array(groups, np.intp), None, 3, smallest)
    cell = of_group[group]
    if cell < 0:
        return None
    s, y = zip(*(calibration[i] for i in cells[cell]), strict=True)
    return make().fit(s, y, classes=[0, 1]).predict_multiprobability([new])


@pytest.mark.parametrize("make", [lambda: VennAbers("log"), Venn], ids=["venn-abers", "venn"])
@pytest.mark.parametrize("smallest", [0, 2, 3, 4])
def test_exact_within_groups_by_enumeration(make, smallest):
    """Every bag of five of two scores, two labels and three groups, each being new once.

    For every group large enough by itself, and for the small ones together, the sum of y - p over
    the objects whose bound of the true label is p is 0. With 0 there are none but large ones.
    """
    n, cases, alone = 5, 0, 0
    things = list(product(SCORES, (0, 1), (0, 1, 2)))
    # Every 23rd of the 4,368 bags.
    for bag in list(combinations_with_replacement(things, n))[::23]:
        sums = defaultdict(Fraction)
        size = [sum(g == h for *_, h in bag) for g in range(3)]
        for i, (s, y, g) in enumerate(bag):
            others = [bag[j] for j in range(n) if j != i]
            m = predict([o[:2] for o in others], [o[2] for o in others], smallest, make, s, g)
            if m is None:
                assert size[g] == 1  # nobody to be calibrated on: bounds 0 and 1
                alone += 1
                continue
            p = Fraction(float((m.p0, m.p1)[y][0])).limit_denominator(n)
            sums[g if size[g] >= smallest else "small", p] += y - p
            cases += 1
        assert set(sums.values()) <= {0}
    assert cases > 500
    assert alone > 0 or smallest > 2


def test_the_enumeration_sees_groups_that_are_told_small_without_the_new_one():
    """Counting calibration examples alone, the new object would change what is small."""
    wrong = 0
    things = list(product(SCORES, (0, 1), (0, 1, 2)))
    for bag in list(combinations_with_replacement(things, 5))[::40]:
        sums = defaultdict(Fraction)
        for i, (s, y, g) in enumerate(bag):
            others = [bag[j] for j in range(5) if j != i]
            counts = [sum(h == g for *_, h in others) for g in range(3)]
            small = [h for h in range(3) if counts[h] < 2]
            mine = [o[:2] for o in others if (o[2] in small if g in small else o[2] == g)]
            if not mine:
                continue
            m = VennAbers("log").fit(*zip(*mine, strict=True), classes=[0, 1])
            m = m.predict_multiprobability([s])
            p = Fraction(float((m.p0, m.p1)[y][0])).limit_denominator(5)
            sums["small" if g in small else g, p] += y - p
        wrong += any(sums.values())
    assert wrong > 10


def test_assigned_cells():
    by = np.array([0] * 5 + [1] * 2 + [2] * 3)
    cells, of_group = assign(by, None, 4, 0)
    assert of_group.tolist() == [0, 1, 2, -1, -1]
    assert [c.tolist() for c in cells] == [[0, 1, 2, 3, 4], [5, 6], [7, 8, 9]]
    cells, of_group = assign(by, None, 4, 4)
    # The third has four with a new object of its own, and calibrates the small ones besides.
    assert of_group.tolist() == [0, 2, 1, 2, 2]
    assert cells[2].tolist() == [5, 6, 7, 8, 9] and cells[1].tolist() == [7, 8, 9]
    cells, of_group = assign(by, np.repeat([1.0, 10.0, 1.0], [5, 2, 3]), 4, 5)
    assert of_group.tolist() == [0, 1, 2, 2, 2]


# --- models ----------------------------------------------------------------------------------


def problem(k=2, n=240, seed=0):
    """Objects of three groups, the last rare, in which scores mean something else."""
    rng = np.random.default_rng(seed)
    group = rng.choice(3, n, p=[0.5, 0.4, 0.1])
    X = np.column_stack([rng.normal(size=(n, 2)), group])
    z = X[:, :1] * np.arange(k) * 1.5 + (group[:, None] - 1) * np.arange(k)
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    y = (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return X, np.array(["a", "b", "c"])[y]


SETTINGS = [
    {},
    {"merge": "log"},
    {"calibrate_on": "holdout"},
    {"calibrate_on": "cv", "cv": 3},
    {"calibrate_on": "cv", "cv": 3, "merge": "log"},
    {"calibrate_on": "cv", "cv": 3, "ensemble": False},
    {"subforest": "exchangeable", "merge": "log"},
    {"method": "venn"},
    {"method": "isotonic", "calibrate_on": "cv", "cv": 3},
    {"method": "platt"},
]


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_each_group_is_as_if_calibrated_alone(settings, k):
    X, y = problem(k)
    new, _ = problem(k, 60, seed=1)
    forest = RandomForestClassifier(12, random_state=0)
    model = CalibratedClassifier(forest, by=2, random_state=0, **settings).fit(X, y)
    bounds, p = predict_once(model, new)
    assert p == pytest.approx(model.predict_proba(new), abs=0)
    for group in range(3):
        rows = new[:, 2] == group
        some = predict_once(model, new[rows])
        assert (some[1] == p[rows]).all()  # whoever else is in the call
        of_parts = []
        for part in model._state.folds:
            mine = part.by == group
            assert 0 < mine.sum() < len(mine)
            draws = list(part.scorer.sampled_scores(new[rows]))
            if draws[0].left_out is not None:
                break
            calibrator = (
                Settings.of(model)
                .calibrator_for(part.estimator)
                .fit(part.scores[mine], model.classes_[part.codes[mine]], classes=model.classes_)
            )
            of_parts.append((calibrator, draws[0].scores))
        if not of_parts:
            continue
        if bounds is None:
            each = [calibrator.predict_proba(scores) for calibrator, scores in of_parts]
            assert p[rows] == pytest.approx(np.mean(each, axis=0), abs=1e-15)
            continue
        each = [calibrator.predict_multiprobability(scores) for calibrator, scores in of_parts]
        lower = np.mean([m.lower for m in each], axis=0)
        upper = np.mean([m.upper for m in each], axis=0)
        assert bounds.lower[rows] == pytest.approx(np.minimum(lower, p[rows]), abs=1e-15)
        assert bounds.upper[rows] == pytest.approx(np.maximum(upper, p[rows]), abs=1e-15)


def test_left_out_examples_are_those_of_the_group():
    """What one draw says is what a calibrator of the group says when told by hand."""
    X, y = problem()
    new, _ = problem(2, 60, seed=1)
    model = CalibratedClassifier(
        RandomForestClassifier(12, random_state=0),
        subforest="exchangeable",
        merge="log",
        by=2,
        random_state=0,
    ).fit(X, y)
    part = model._state.folds[0]
    found = model.predict_multiprobability(new)
    gone = 0
    for i, row in enumerate(new):
        mine = np.flatnonzero(part.by == row[2])
        labels, (draw,) = model.classes_[part.codes], part.scorer.sampled_scores(row[None])
        calibrator = VennAbers("log")
        rows = np.setdiff1d(mine, draw.left_out)
        gone += len(rows) < len(mine)
        calibrator.fit(part.scores[rows], labels[rows], classes=["a", "b"])
        m = calibrator.predict_multiprobability(draw.scores)
        assert found.p0[i] == pytest.approx(m.p0[0], abs=1e-12)
        assert found.p1[i] == pytest.approx(m.p1[0], abs=1e-12)
    assert gone > 10


def test_examples_leave_from_every_cell_where_rows_have_groups():
    X, y = problem()
    families = np.repeat(np.arange(80), 3)
    model = CalibratedClassifier(
        RandomForestClassifier(60, random_state=0),
        calibrate_on="oob",
        subforest="exchangeable",
        merge="log",
        by=2,
        random_state=0,
    ).fit(X, y, groups=families)
    part = model._state.folds[0]
    new, _ = problem(2, 40, seed=1)
    found = model.predict_multiprobability(new)
    for i, row in enumerate(new):
        (draw,) = part.scorer.sampled_scores(row[None])
        mine = (part.by == row[2]) & (np.arange(len(part.codes)) != draw.left_out[0])
        m = VennAbers("log").fit(part.scores[mine], part.codes[mine], classes=[0, 1])
        m = m.predict_multiprobability(draw.scores)
        assert found.p0[i] == pytest.approx(m.p0[0]) and found.p1[i] == pytest.approx(m.p1[0])


def first_two(X):
    return X[:, :2]


def test_the_probability_is_everybodys_map_corrected():
    X, y = problem(2, 480)
    blind = make_pipeline(FunctionTransformer(first_two), LogisticRegression())
    model = CalibratedClassifier(
        blind, calibrate_on="holdout", holdout_size=0.5, by=2, random_state=0
    ).fit(X, y)
    assert model._state.by.ridge <= 30
    part, base = model._state.folds[0], model.point_calibrator_
    mine = part.by == 1
    labels = model.classes_[part.codes]
    correction = GroupCorrection(base, model._state.by.ridge).fit(
        part.scores[mine], labels[mine], classes=["a", "b"]
    )
    new = problem(2, 60, seed=1)[0]
    new = new[new[:, 2] == 1]
    p = correction.predict_proba(model.estimator_.predict_proba(new)[:, 1])
    assert model.predict_proba(new) == pytest.approx(p, abs=1e-15)
    # In each group the mean of the probabilities is near the share of the class.
    for group, rows in ((g, part.by == g) for g in range(3)):
        share = (part.codes[rows] == 1).mean()
        own = calibration_probabilities(model._state)[rows, 1].mean()
        assert abs(own - share) < (0.05 if group < 2 else 0.15)
        assert abs(own - share) < abs(base.predict_proba(part.scores[rows])[:, 1].mean() - share)
    # A group that nobody is of has the map of all.
    none = GroupCorrection(base).fit(part.scores, labels, classes=["a", "b"])
    few = GroupCorrection(base).fit(part.scores[:1], labels[:1], classes=["a", "b"])
    wide = np.abs(few.predict_proba([0.5]) - base.predict_proba([0.5])).max()
    assert wide < 0.15
    assert isinstance(none.base, PooledCalibration)


def test_groups_that_were_not_seen():
    X, y = problem()
    new = problem(2, 20, seed=1)[0]
    new[:5, 2] = 7
    new[5, 2] = np.nan
    for settings in ({}, {"method": "platt"}, {"calibrate_on": "cv", "cv": 3, "merge": "log"}):
        model = CalibratedClassifier(
            GaussianNB() if "method" in settings else RandomForestClassifier(12, random_state=0),
            by=lambda X: X[:, 2],
            random_state=0,
            **settings,
        ).fit(X, y)
        if "method" in settings:
            with pytest.raises(ValueError, match="NaN"):  # the estimator's own
                model.predict_proba(new)
            continue
        with pytest.warns(UserWarning, match="6 of 20 rows are of groups without"):
            bounds, p = predict_once(model, new)
        assert (bounds.lower[:6] == 0).all() and (bounds.upper[:6] == 1).all()
        assert (bounds.upper[6:] < 1).any()
        plain = clone(model).set_params(by=None).fit(X, y)
        if not settings:
            assert p[:6] == pytest.approx(plain.predict_proba(new[:6]), abs=1e-15)
    together = CalibratedClassifier(
        RandomForestClassifier(12, random_state=0), by=Groups(2, smallest=60), random_state=0
    ).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wide = together.predict_multiprobability(new).width.max(axis=1)
    assert (wide[:6] < 0.7).all()


def test_small_groups_are_calibrated_together():
    rng = np.random.default_rng(3)
    group = np.repeat(np.arange(12), [150, 100] + [5] * 10)
    X = np.column_stack([rng.normal(size=300), group])
    y = (rng.random(300) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
    each, small = (
        CalibratedClassifier(LogisticRegression(), by=by, calibrate_on="cv", cv=2, random_state=0)
        .fit(X, y)
        .predict_multiprobability(X)
        .width[:, 1]
        for by in (1, Groups(1, smallest=20))
    )
    assert each[group >= 2].mean() > 2 * small[group >= 2].mean()
    assert small[group < 2].mean() == pytest.approx(each[group < 2].mean())


def test_weights_count_and_zeros_are_absent():
    X, y = problem()
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    model = CalibratedClassifier(LogisticRegression(), calibrate_on="cv", by=2, random_state=0)
    model.fit(X, y, sample_weight=weight)
    assert sum(len(part.by) for part in model._state.folds) == (weight > 0).sum()
    for part, grouped in zip(model._state.folds, model._state.by.folds, strict=True):
        for cell in grouped.cells:
            assert len(set(part.by[cell.rows])) == 1
    assert model.predict_multiprobability(X).width.max() <= 1


def test_groups_with_a_prior_together_and_estimated():
    X, y = problem(2, 900)
    new = problem(2, 200, seed=1)[0]
    model = CalibratedClassifier(LogisticRegression(), by=2, random_state=0).fit(X, y)
    p, q = model.predict_proba(new), model.with_prior({"b": 0.9}).predict_proba(new)
    odds = p * np.array([0.1, 0.9]) / model.prior_
    assert q == pytest.approx(odds / odds.sum(axis=1, keepdims=True), abs=1e-12)
    found = model.estimate_prior(new)
    assert abs(found.estimate[1] - model.prior_[1]) < 0.15
    one = predict_together([model, model.recalibrate("platt")], new)
    assert (one[0][1] == p).all()
    assert (one[1][1] == model.recalibrate("platt").predict_proba(new)).all()


def test_confidence_within_groups():
    X, y = problem(2, 600)
    new = problem(2, 50, seed=1)[0]
    model = CalibratedClassifier(
        LogisticRegression(), calibrate_on="holdout", by=2, random_state=0
    ).fit(X, y)
    intervals = model.predict_confidence(new)
    for i, row in enumerate(new):
        one = model.predict_confidence(row[None])
        assert one.lower[0] == pytest.approx(intervals.lower[i])
        assert one.upper[0] == pytest.approx(intervals.upper[i])


def test_kept_in_files(tmp_path):
    data = frame(80)
    data["town"] = data["town"].mask(np.arange(80) % 9 == 0)
    y = np.where(np.random.default_rng(0).random(80) < 0.5, "no", "yes")
    for by in ("town", Groups("number", smallest=20)):
        numbers = RandomForestClassifier(10, random_state=0)
        model = CalibratedClassifier(
            vennforest.tables.table_pipeline(numbers), by=by, random_state=0
        ).fit(data, y)
        vennforest.save(model, tmp_path / "model.skops")
        kept = vennforest.load(tmp_path / "model.skops")
        one, other = predict_once(model, data), predict_once(kept, data)
        assert (one[1] == other[1]).all() and (one[0].lower == other[0].lower).all()
        assert kept.grouping_.values.tolist() == model.grouping_.values.tolist()
    model = CalibratedClassifier(LogisticRegression(), by=lambda X: X[:, 0] > 0)
    model.fit(data[["x"]].to_numpy(), y)
    with pytest.raises(TypeError, match="grouped by a column to be saved"):
        vennforest.save(model, tmp_path / "other.skops")
    assert not (tmp_path / "other.skops").exists()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda m: object.__setattr__(m._state.by, "folds", ()),
        lambda m: m._state.by.folds[0].of_group.__setitem__(0, 9),
        lambda m: m._state.by.folds[0].cells[0].rows.__setitem__(-1, 10**6),
        lambda m: object.__setattr__(m.grouping_, "values", np.array([2.0, 1.0, 0.0])),
        lambda m: m._state.folds[0].by.__setitem__(0, 5),
        lambda m: object.__setattr__(m._state.folds[0], "by", None),
        lambda m: object.__setattr__(m._state.by, "grouping", None),
        lambda m: object.__setattr__(
            m._state.by.folds[0].cells[0], "calibrator", m._state.calibrators[0]
        ),
    ],
)
def test_spoilt_models_are_refused(spoil):
    from support.forging import check_structure

    X, y = problem()
    model = CalibratedClassifier(LogisticRegression(), by=2, calibrate_on="holdout").fit(X, y)
    check_structure(model, "it")
    spoil(model)
    with pytest.raises(ValueError, match="as fit left it"):
        check_structure(model, "it")


def test_sources_hand_groups_on():
    X, y = problem()

    class Silent:
        def folds(self, estimator, data, *, seed, random_state, n_jobs):
            model = data.fit(estimator)
            scores = model_scores(model, data.X, data.classes)
            scorer = ModelScorer(model, data.classes)
            return [Fold(model, scores, data.codes, data.weight, scorer)]

    with pytest.raises(TypeError, match=r"Fold\.by, from TrainingData\.by"):
        CalibratedClassifier(GaussianNB(), calibrate_on=Silent(), by=2).fit(X, y)
    forest = RandomForestClassifier(20, random_state=0)
    for source in ("oob", "holdout", "cv", "training"):
        model = CalibratedClassifier(forest, calibrate_on=source, by=2).fit(X, X[:, 2])
        for (
            part
        ) in model._state.folds:  # labels are the groups here, so that mixed up rows would show
            assert (part.by == part.codes).all()
    folds = CalibratedClassifier(GaussianNB(), cv=GroupKFold(2), by=2)
    folds.fit(X, y, groups=X[:, 2] == 2)
    # A group of which a fold has no calibration examples: [0, 1] in that fold, its own in others.
    m = folds.predict_multiprobability(X)
    assert m.width[X[:, 2] == 2, 1].mean() > 0.45


def test_refitted_and_cloned():
    X, y = problem()
    model = CalibratedClassifier(GaussianNB(), by=Groups(2, 5)).fit(X, y)
    assert clone(model).by == Groups(2, 5)
    model.set_params(by=None).fit(X, y)
    with pytest.raises(AttributeError, match="groups with by="):
        model.grouping_  # noqa: B018
    with pytest.raises(ValueError, match="by must be the name"):
        CalibratedClassifier(by=[1]).fit(X, y)
    with pytest.raises(ValueError):
        CalibratedClassifier(GaussianNB(), by=2).fit(X, y).predict_proba(X[:0])


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(
    "settings",
    [{}, {"merge": "log"}, {"calibrate_on": "cv", "cv": 3}, {"method": "platt"}],
    ids=str,
)
def test_training_rows_within_groups(settings, k):
    X, y = problem(k, 150)
    forest = RandomForestClassifier(40, random_state=0)
    model = CalibratedClassifier(forest, by=2, random_state=0, **settings).fit(X, y)
    p = model.oob_probability_
    assert p.sum(axis=1) == pytest.approx(1) and p.min() >= 0
    if "method" in settings:
        return
    bounds = model.oob_multiprobability_
    assert (bounds.lower <= p + 1e-12).all() and (p <= bounds.upper + 1e-12).all()
    for part in model._state.folds:
        for i in range(0, len(part.codes), 11):
            mine = np.flatnonzero(part.by == part.by[i])
            rest = mine[mine != i]
            if not len(rest):
                continue
            calibrator = VennAbers("log")
            calibrator.fit(
                part.scores[rest], model.classes_[part.codes[rest]], classes=model.classes_
            )
            m = calibrator.predict_multiprobability(part.scores[[i]])
            row = part.rows[i]
            assert bounds.lower[row] == pytest.approx(np.minimum(m.lower[0], p[row]))
            assert bounds.upper[row] == pytest.approx(np.maximum(m.upper[0], p[row]))
            if settings == {"merge": "log"}:
                assert p[row] == pytest.approx(m.merge("log")[0])


def test_training_rows_are_predicted_without_their_label():
    """A label that is flipped changes nothing of what is said of its own row."""
    X, y = problem(2, 150)
    model = CalibratedClassifier(
        LogisticRegression(), calibrate_on="holdout", holdout_size=0.6, by=2, random_state=0
    ).fit(X, y)
    part = model._state.folds[0]
    before = model.oob_probability_
    for i in (3, 20, 40):
        codes = part.codes.copy()
        codes[i] = 1 - codes[i]
        other = clone(model)._calibrate(
            model.classes_,
            [attrs.evolve(part, codes=codes)],
            "holdout",
            "it was asked for",
            grouping=model.grouping_,
            n_rows=150,
        )
        row = part.rows[i]
        assert other.oob_probability_[row] == pytest.approx(before[row], abs=0.02)
        assert calibration_probabilities(model._state)[i] != pytest.approx(
            calibration_probabilities(other._state)[i], abs=1e-6
        )


def test_the_ridge_is_that_of_the_least_held_out_loss():
    rng = np.random.default_rng(0)
    n = 400
    by, p = rng.integers(0, 4, n), rng.random(n)
    groups = [np.flatnonzero(by == g) for g in range(4)]
    for shift in (0.0, 1.0):
        z = np.log(p / (1 - p)) + shift * (by - 1.5)
        codes = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)
        losses = []
        for ridge in RIDGES:
            total = 0.0
            for rows in groups:
                for held in range(4):
                    own, rest = rows[held::4], np.delete(rows, np.arange(held, len(rows), 4))
                    model = MatrixScaling("shared", ridge=ridge, shrinkage=0, on="probabilities")
                    said = model.fit(p[rest], codes[rest]).predict_proba(p[own])
                    total -= np.log(said[np.arange(len(own)), codes[own]]).sum()
            losses.append(total)
        found = choose_ridge(np.column_stack([1 - p, p]), codes, np.ones(n), groups)
        assert found == RIDGES[int(np.argmin(losses))]
        assert (found >= 100) == (shift == 0)
