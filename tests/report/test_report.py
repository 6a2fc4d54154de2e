"""The report: what it measures, what it recommends, and the page."""

import base64
import itertools
import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.metrics import log_loss, roc_auc_score

from support.browser import CHROMIUM, chromium

pd = pytest.importorskip("pandas")
for extra in ("skrub", "matplotlib", "jinja2"):
    pytest.importorskip(extra)

from vennforest import CalibratedClassifier, Multiprobability  # noqa: E402
from vennforest.classifier.prediction import predict_together  # noqa: E402
from vennforest.metrics import calibration_error  # noqa: E402
from vennforest.report import (  # noqa: E402
    CostMatrix,
    evaluate,
    numbers,
    report,
)
from vennforest.report.evaluation import compared_methods  # noqa: E402
from vennforest.report.event import confidence_of, event_of  # noqa: E402
from vennforest.report.folds import MethodEstimates, OutOfFold  # noqa: E402
from vennforest.report.measures import (  # noqa: E402
    Measures,
    _chance_errors,
    judge,
    log_losses,
    mean_difference,
    measure,
    settled_labels,
    squared_losses,
)
from vennforest.report.page import render  # noqa: E402

SCRIPT = "<script>alert('x')</script>"


def nasty_frame(n=90, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    X = pd.DataFrame(
        {
            SCRIPT: x,
            "a $ and a $^": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "city": rng.choice(["Köln", "東京", None], n),
            "note": [f"note {i % 50} & <b>{i}</b>" for i in range(n)],
            "when": pd.date_range("2024-02-27", periods=n),
            "flag": rng.choice([True, False], n),
        }
    )
    return X, np.where(x + rng.normal(size=n) > 0, SCRIPT, "no & $x^")


@pytest.fixture(scope="module")
def cancer():
    bunch = load_breast_cancer(as_frame=True)
    y = bunch.target_names[bunch.target]
    costs = {"benign": {"wait": 0, "operate": 1}, "malignant": {"wait": 5, "operate": 0.5}}
    return evaluate(
        bunch.data, y, n_folds=3, n_trees=40, costs=costs, name="breast cancer", target="diagnosis"
    )


@pytest.fixture(scope="module")
def cancer_html(cancer):
    return render(cancer, "vennforest report --example breast-cancer", rows=True)


@pytest.fixture(scope="module")
def nasty():
    X, y = nasty_frame()
    return evaluate(X, y, n_folds=3, n_trees=20, target=SCRIPT, name=SCRIPT)


def test_one_forest_scored_once_gives_what_each_model_gives_alone():
    X, y = load_breast_cancer(return_X_y=True)
    model = CalibratedClassifier(random_state=0).fit(X[:300], y[:300])
    models = [model, *(model.recalibrate(m) for m in ("platt", "venn", "isotonic"))]
    for one, (bounds, p) in zip(models, predict_together(models, X[300:]), strict=True):
        np.testing.assert_array_equal(p, one.predict_proba(X[300:]))
        if bounds is None:
            assert not hasattr(one, "predict_multiprobability")
        else:
            alone = one.predict_multiprobability(X[300:])
            np.testing.assert_array_equal(bounds.lower, alone.lower)
            np.testing.assert_array_equal(bounds.upper, alone.upper)
    stranger = CalibratedClassifier(random_state=0).fit(X[:300], y[:300])
    with pytest.raises(ValueError, match="share their estimators"):
        predict_together([model, stranger], X)


def test_every_object_is_predicted_once_by_a_forest_not_trained_on_it():
    # Labels without any relation to the one feature, which names the row: whoever has seen a row
    # knows its label, whoever has not guesses.
    rng = np.random.default_rng(1)
    X, y = rng.permutation(200)[:, None] * 1.0, rng.integers(2, size=200)
    evaluation = evaluate(X, y, n_folds=4, n_trees=30)
    assert evaluation.measures["none"].accuracy < 0.65
    folds = evaluation.folds
    assert np.bincount(folds.fold).tolist() == [50] * 4
    shares = [y[folds.fold == i].mean() for i in range(4)]
    assert max(shares) - min(shares) < 0.03
    for estimates in folds.estimates.values():
        np.testing.assert_allclose(estimates.p.sum(axis=1), 1)
        if estimates.bounds is not None:
            assert (estimates.bounds.lower <= estimates.p + 1e-12).all()
            assert (estimates.p <= estimates.bounds.upper + 1e-12).all()


def test_same_seed_same_numbers():
    X, y = nasty_frame()
    first, second, third = (
        evaluate(X, y, n_folds=2, n_trees=10, random_state=seed) for seed in (3, 3, 4)
    )
    for method in compared_methods():
        np.testing.assert_array_equal(
            first.folds.estimates[method].p, second.folds.estimates[method].p
        )
    assert first.measures != third.measures


def test_measures_are_those_of_scikit_learn_and_ours(cancer):
    y = np.array(["benign", "malignant"])[cancer.folds.codes]
    for method, m in cancer.measures.items():
        p = cancer.folds.estimates[method].p
        assert m.log_loss_clipped == pytest.approx(log_loss(y, p), rel=1e-9)
        assert m.auc == pytest.approx(roc_auc_score(y == "malignant", p[:, 1]))
        assert m.brier == pytest.approx(np.mean((p[:, 1] - (y == "malignant")) ** 2))
        assert m.accuracy == np.mean((p[:, 1] > 0.5) == (y == "malignant"))
        assert (m.impossible > 0) == np.isinf(m.log_loss)
    table = cancer.table()
    assert list(table.index) == ["baseline", *compared_methods()]
    assert table.loc["venn", "size"] == cancer.measures["venn"].size
    assert np.isnan(table.loc["none", "size"])


def test_log_loss_is_infinite_and_never_silently_clipped():
    p = np.array([[1.0, 0.0], [0.5, 0.5]])
    losses = log_losses(p, np.array([1, 0]))
    assert np.isinf(losses[0]) and losses[1] == pytest.approx(np.log(2))
    m = measure(MethodEstimates(p, None), np.array([1, 0]), np.array([0, 1]), 1)
    assert np.isinf(m.log_loss) and m.impossible == 1
    assert m.log_loss_clipped == pytest.approx((np.log(2) - np.log(2**-52)) / 2)


@pytest.mark.parametrize("k", [2, 4])
def test_squared_losses_are_squared_distances(k):
    rng = np.random.default_rng(0)
    p, codes = rng.dirichlet(np.ones(k), 50), rng.integers(k, size=50)
    slow = [((p[i] - np.eye(k)[codes[i]]) ** 2).sum() / (2 if k == 2 else 1) for i in range(50)]
    np.testing.assert_allclose(squared_losses(p, codes), slow, atol=1e-12)


def test_chance_errors_are_calibration_errors_of_labels_drawn_from_the_estimates():
    p = np.random.default_rng(5).random(300)
    found = _chance_errors(p, 7)
    random = np.random.default_rng((7, 1))
    slow = [
        calibration_error((random.random(300) < p).astype(int), p, classes=[0, 1])
        for _ in range(len(found))
    ]
    np.testing.assert_allclose(found, slow, atol=1e-12)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("k", [2, 3])
def test_the_mean_error_is_the_bias_beyond_its_spread(grouped, k):
    rng = np.random.default_rng(k)
    n = 400
    p = rng.dirichlet(np.ones(k), n)
    codes = np.array([rng.choice(k, p=0.9 * row + 0.1 * np.eye(k)[-1]) for row in p])
    groups = rng.integers(0, 150, n) if grouped else None
    found = measure(
        MethodEstimates(p, None), codes, np.arange(k), 1 if k == 2 else None, groups=groups
    )
    column = np.ones(n, int) if k == 2 else p.argmax(axis=1)
    sums, spread = {}, 0.0
    for i in range(n):
        q = p[i, column[i]]
        own = groups[i] if grouped else i
        sums[own] = sums.get(own, 0.0) + (codes[i] == column[i]) - q
        spread += q * (1 - q)
    if grouped:
        spread = sum(one**2 for one in sums.values())
    wanted = max(0.0, sum(sums.values()) ** 2 - spread) ** 0.5 / n
    assert found.mean_error == pytest.approx(wanted, abs=1e-12)
    assert found.miscalibration >= found.mean_error


def test_difference_is_the_corrected_resampled_t_interval():
    fold = np.repeat([0, 1, 2], 4)
    folds = OutOfFold(np.array([0, 1]), fold * 0, fold, fold, {}, {}, {})
    first = np.arange(12.0)
    gap = mean_difference(first, np.zeros(12), folds)
    means = [first[fold == i].mean() for i in range(3)]
    assert gap.mean == first.mean()
    # Nadeau & Bengio: (1/K + n_test/n_train) times the variance, t with K − 1 = 2 degrees.
    assert gap.margin == pytest.approx(4.302653 * np.sqrt((1 / 3 + 1 / 2) * np.var(means, ddof=1)))
    assert not mean_difference(first, first, folds).clear


def verdict_of(p_by_method, bounded, codes, fold):
    estimates = {}
    for name, p in p_by_method.items():
        table = np.column_stack([1 - p, p])
        bounds = Multiprobability(table, table, np.array([0, 1])) if name in bounded else None
        estimates[name] = MethodEstimates(table, bounds)
    folds = OutOfFold(np.array([0, 1]), codes, fold, fold, estimates, {}, {})
    measures = {m: measure(e, codes, folds.classes, 1) for m, e in estimates.items()}
    return judge(measures, folds, 0.02)


def test_the_rule_of_the_recommendation():
    rng = np.random.default_rng(0)
    n = 3000
    p = rng.random(n)
    codes, fold = (rng.random(n) < p).astype(int), np.arange(n) % 10
    coarse = np.where(p > 0.5, 0.75, 0.25)
    methods = {
        "none": p**3,
        "platt": p.clip(0.001, 0.999),
        "venn": coarse,
        "venn-abers": p * 0.98 + 0.01,
    }
    found = verdict_of(methods, ("venn", "venn-abers"), codes, fold)
    assert found.method == "venn-abers" and "with bounds" in found.rule
    assert found.against["venn"].clear and found.against["venn"].mean > 0
    assert found.against["none"].clear and found.against["none"].mean > 0
    assert verdict_of(methods, (), codes, fold).method in ("platt", "venn-abers")
    # Bounds do not make up for a log loss that is clearly worse.
    assert verdict_of(methods, ("venn",), codes, fold).method in ("platt", "venn-abers")
    # Log losses within chance of each other: the better ranking decides, and the rule says so.
    few = slice(0, 60)
    level = {"none": p[few], "venn": coarse[few], "venn-abers": (p * 0.9 + 0.05)[few]}
    found = verdict_of(level, ("venn", "venn-abers"), codes[few], fold[few])
    assert found.method == "venn-abers" and "ranking" in found.rule


def test_a_method_that_ruled_out_what_happened_is_not_level_with_others():
    """By the Brier score it is no worse, and it alone is within the tolerance."""
    rng = np.random.default_rng(1)
    p = rng.random(3000)
    codes, fold = (rng.random(3000) < p).astype(int), np.arange(3000) % 10
    sure = p.copy()
    sure[np.flatnonzero(codes == 1)[0]] = 0.0
    methods = {"none": p**2, "venn-abers": 0.5 + 0.8 * (p - 0.5), "isotonic": sure}
    found = verdict_of(methods, ("venn-abers",), codes, fold)
    assert found.method == "venn-abers" and found.against["isotonic"].loss == "Brier score"


def test_infinite_log_loss_is_compared_by_brier_score():
    codes, fold = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
    p = {"none": np.array([0.0, 0.0, 0.1, 0.9]), "venn": np.array([0.2, 0.8, 0.3, 0.6])}
    found = verdict_of(p, ("venn",), codes, fold)
    assert {gap.loss for gap in found.against.values()} == {"Brier score"}


@pytest.mark.parametrize("k", [2, 3, 5])
def test_settled_labels_and_decisions_against_vertices(k):
    rng = np.random.default_rng(k)
    middle = rng.dirichlet(np.ones(k), 60)
    half = rng.random((60, k)) * rng.choice([0.02, 0.3], (60, 1))
    bounds = Multiprobability((middle - half).clip(0, 1), (middle + half).clip(0, 1), np.arange(k))
    costs = CostMatrix(1 - np.eye(k, 3) + rng.normal(size=(k, 3)) / 5, ("a", "b", "c"))
    decided = costs.decide(middle)
    settled = costs.settled(decided, bounds)
    assert 0 < settled.sum() < 60
    for i in range(60):
        worst = -np.inf
        for vertex in vertices(bounds.lower[i], bounds.upper[i]):
            worst = max(worst, (vertex @ costs.costs)[decided[i]] - (vertex @ costs.costs).min())
        assert settled[i] == (worst <= 1e-9)
    best = bounds.lower.argmax(axis=1)
    for i, one in enumerate(settled_labels(bounds)):
        others = np.delete(bounds.upper[i], best[i])
        assert one == (bounds.lower[i, best[i]] >= others.max())


def vertices(low, high):
    """Yield the corners of {p : low <= p <= high, sum p = 1}: all but one entry at a bound."""
    k = len(low)
    for free in range(k):
        others = [j for j in range(k) if j != free]
        for ends in itertools.product((0, 1), repeat=k - 1):
            p = np.empty(k)
            p[others] = np.where(ends, high[others], low[others])
            p[free] = 1 - p[others].sum()
            if low[free] - 1e-12 <= p[free] <= high[free] + 1e-12:
                yield p


def test_costs_are_read_from_all_their_forms(tmp_path):
    classes = np.array(["a", "b"])
    wanted = [[0.0, 1.0], [5.0, 0.0]]
    named = {"b": {"a": 5, "b": 0}, "a": {"a": 0, "b": 1}}
    (tmp_path / "c.json").write_text(json.dumps(named))
    for given in (
        wanted,
        named,
        json.dumps(named),
        json.dumps(wanted),
        tmp_path / "c.json",
    ):
        assert CostMatrix.read(given, classes).costs.tolist() == wanted
    for wrong in (
        "{",
        "[[1, 2]]",
        tmp_path / "none",
        {"a": {"x": 1, "y": 2}},
        "[1, 2]",
        {"a": {"x": 1}, "b": {"x": 1}},
        [[0, np.nan], [1, 0]],
        {"a": 1, "b": 2},
        {"a": {"x": 1, "y": 2}, "b": {"x": 1, "z": 2}},
        tmp_path,
        "[[[",
        7,
        {"a": {"x": "q", "y": 2}, "b": {"x": 1, "y": 2}},
    ):
        with pytest.raises(ValueError, match="costs"):
            CostMatrix.read(wrong, classes)


def test_costs_of_decisions(cancer):
    for method, made in cancer.decisions.items():
        p = cancer.folds.estimates[method].p
        paid = [
            [[0, 1], [5, 0.5]][c][int(q @ [1, 0.5] < q @ [0, 5])]
            for c, q in zip(cancer.folds.codes, p, strict=True)
        ]
        assert made.mean_cost == pytest.approx(np.mean(paid))
        assert (made.settled is None) == (cancer.folds.estimates[method].bounds is None)


def test_rare_classes():
    X = np.random.default_rng(0).normal(size=(43, 2))
    y = ["a"] * 20 + ["b"] * 19 + ["rare"] * 3 + ["single"]
    evaluation = evaluate(X, y, n_folds=5, n_trees=20, methods=["venn-abers"])
    assert evaluation.folds.classes.tolist() == ["a", "b", "rare"]
    assert evaluation.folds.n_folds == 5 and len(evaluation.folds.codes) == 42
    single, rare, *_ = evaluation.notes
    assert "Left out: 'single'." in single
    assert "rare (3)" in rare
    few = evaluate(X[:6], ["a", "b"] * 3, n_folds=10, n_trees=20)
    assert few.folds.n_folds == 3
    assert "3 folds instead of 10" in few.notes[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"methods": ["plat"]}, r"methods must be one of .*: did you mean 'platt'"),
        ({"n_folds": 1}, "n_folds must be an integer >= 2"),
        ({"n_trees": 0}, "n_trees must be"),
        ({"positive": "maybe"}, "positive must be one of"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"costs": [[1, 2]]}, "costs must have a row"),
    ],
)
def test_refused_arguments(options, message):
    X, y = nasty_frame(30)
    with pytest.raises(ValueError, match=message):
        evaluate(X, y, **{"n_folds": 2, "n_trees": 5, **options})


def test_refused_data():
    X, y = nasty_frame(30)
    with pytest.raises(ValueError, match="a label for each"):
        evaluate(X, y[:-1])
    with pytest.raises(ValueError, match="infinite"):
        evaluate(X.assign(bad=np.inf), y)
    with pytest.raises(ValueError, match="two classes"):
        evaluate(X, ["a"] * 29 + ["b"])
    iris = load_iris()
    with pytest.raises(ValueError, match="two classes only"):
        evaluate(iris.data, iris.target, positive=1)


def test_columns_of_every_kind(tmp_path):
    from decimal import Decimal

    n = 40
    X = pd.DataFrame(
        {
            "decimal": [Decimal(i) for i in range(n)],
            "mixed": ["a", 1, None, 2.5] * (n // 4),
            "list": [[1, 2], [3]] * (n // 2),
            "bool and none": [True, None] * (n // 2),
            "delta": pd.to_timedelta(range(n), unit="h"),
            "category": pd.Categorical(["x", "y"] * (n // 2)),
            "empty": [None] * n,
            "int64": pd.array([1, None] * (n // 2), dtype="Int64"),
            "period": pd.period_range("2020-01", periods=n, freq="M"),
            "constant": 1,
        }
    )
    evaluation = evaluate(X, ["p", "q"] * (n // 2), n_folds=2, n_trees=10, methods=["platt"])
    assert evaluation.measures["none"].accuracy > 0.9
    evaluation.to_html(tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size > 10_000


def test_polars_frames_and_arrays(tmp_path):
    polars = pytest.importorskip("polars")
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 2)), rng.integers(2, size=60)
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1]})
    options = {"n_folds": 2, "n_trees": 10, "methods": ["venn-abers"]}
    pages = [evaluate(X, y, **options) for X in (frame, polars.from_pandas(frame), x, x.tolist())]
    pages[1].to_html(tmp_path / "page.html")
    assert pages[1].measures == pages[0].measures
    assert pages[3].measures == pages[2].measures


class Page(HTMLParser):
    """Collects tags, attributes and text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text.append(data)


def test_the_page_needs_nothing_from_elsewhere_and_escapes_names(nasty):
    html = render(nasty, f"vennforest report {SCRIPT}", rows=True)
    page = Page(html)
    assert sum(tag == "script" for tag, _ in page.tags) == 1
    assert SCRIPT not in html.replace("&lt;", "⟨")
    assert any(SCRIPT in text for text in page.text)
    for tag, attrs in page.tags:
        assert tag not in ("link", "iframe", "object", "embed", "base")
        assert attrs.get("src", "data:image/svg+xml").startswith("data:image/svg+xml")
        assert tag != "img" or attrs["alt"]
        for name in ("href", "xlink:href"):
            assert attrs.get(name, "#").startswith("#")
        assert not any(name.startswith("on") for name in attrs)
    assert not re.search(r"url\((?!#)|@import", html)
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    links = {attrs["href"][1:] for tag, attrs in page.tags if tag == "a"}
    assert links <= set(ids)


def test_the_page_says_what_the_numbers_say(cancer, cancer_html):
    html = cancer_html
    text = " ".join(" ".join(Page(html).text).split())
    m = cancer.measures
    for number in (m["none"].brier, m["venn-abers"].auc, m["platt"].calibration_error):
        assert f"{number:.3f}" in text
    assert f"{100 * m['none'].calibration_error:.1f} percentage points" in text
    assert "vennforest report --example breast-cancer" in text
    assert f'method="{cancer.verdict.method}"' in text
    assert "operate" in text
    infinite = [name for name in m if np.isinf(m[name].log_loss)]
    assert text.count("log loss infinite") == len(infinite)
    assert ("∞" in text) == bool(infinite)


BASE = Measures(
    log_loss=0.3, log_loss_clipped=0.3, impossible=0, brier=0.1, auc=0.9, accuracy=0.9,
    calibration_error=0.02, chance_error=0.02, chance_limit=0.03, mean_error=0.0, pvalue=0.5,
    overconfidence=0.0,
)  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "action"),
    [
        ({}, "use"),
        ({"pvalue": 0.001}, "use"),  # small, though more than chance
        ({"pvalue": 0.001, "calibration_error": 0.1}, "recalibrate"),
        ({"pvalue": 0.05, "calibration_error": 0.1}, "collect"),
        ({"impossible": 2, "log_loss": np.inf}, "recalibrate"),
        ({"chance_limit": 0.2}, "collect"),
    ],
)
@pytest.mark.parametrize("origin", ["given", "folds"])
def test_the_advice_follows_the_numbers(cancer, changes, action, origin):
    method = cancer.verdict.method
    measures = {**cancer.measures, method: replace(BASE, **changes), "none": BASE}
    changed = replace(cancer, measures=measures, origin=origin)
    wanted = "stop" if (origin, action) == ("folds", "recalibrate") else action
    assert changed.advice().action == wanted
    assert changed.headline()[0] == changed.advice().sentence


def test_the_tolerance_decides(cancer):
    off = replace(BASE, pvalue=0.001, calibration_error=0.1)
    measures = {**cancer.measures, "none": BASE, cancer.verdict.method: off}
    for tolerance, action in ((0.02, "stop"), (0.2, "use")):
        assert replace(cancer, measures=measures, tolerance=tolerance).advice().action == action
    X, y = nasty_frame(30)
    with pytest.raises(ValueError, match="tolerance must lie in"):
        evaluate(X, y, n_folds=2, n_trees=5, tolerance=2)


@pytest.mark.parametrize(("trees", "enough"), [(30, 300), (60, 600), (100, 1000), (200, None)])
def test_an_underconfident_forest_is_told_how_many_trees_would_do(cancer, trees, enough):
    """The error, .2, falls as 1 / trees: a tolerance of .02 needs ten times as many."""
    flat = replace(BASE, pvalue=0.001, calibration_error=0.2, chance_error=0, overconfidence=-0.1)
    measures = {**cancer.measures, "none": BASE, cancer.verdict.method: flat}
    settings = {**cancer.settings, "n_trees": trees, "files": {"data": "t.csv", "target": "y"}}
    advice = replace(cancer, measures=measures, settings=settings, tolerance=0.02).advice()
    wanted = f"--trees {enough}" if enough else f"--calibrate-on cv --trees {trees}"
    assert wanted in advice.command


def test_a_raw_forest_that_is_off_is_to_be_recalibrated_and_columns_are_checked_first(cancer):
    off = replace(BASE, pvalue=0.001, calibration_error=0.1)
    measures = {**cancer.measures, cancer.verdict.method: BASE, "none": off}
    found = replace(cancer, measures=measures, settings={**cancer.settings, "files": {
        "data": "t b.csv", "target": "y"}})  # fmt: skip
    assert found.advice().action == "recalibrate"
    assert found.advice().command.startswith("vennforest fit 't b.csv' -t y")
    for why, option in (("leak", "--drop"), ("id", "--groups")):
        checked = replace(found, suspects={"code": why}).advice()
        assert checked.action == "check" and checked.command.endswith(f"{option} code")
    assert replace(found, suspects={"code": "id"}, folds=replace(
        found.folds, groups=found.folds.codes)).advice().action != "check"  # fmt: skip
    blind = replace(found, discrimination=replace(found.discrimination, auc=0.51, low=0.45,
                                                  high=0.57))  # fmt: skip
    assert blind.advice().action == "stop"
    unread = replace(blind, suspects={"price": "text"}).advice()
    assert unread.action == "check" and "“price”" in unread.sentence
    assert replace(found, suspects={"price": "text"}).advice() == found.advice()
    few = replace(found, discrimination=replace(found.discrimination, auc=0.6, low=0.4, high=0.8))
    assert few.advice().action == "collect"
    # Four times the rows halve the interval: an effect of .1 at a half-width of .2 is seen in four
    # studies of five at a half-width of .07, with eight times the rows.
    assert "about 4,700 rows" in few.advice().sentence


@pytest.mark.parametrize("grouped", [False, True])
def test_how_often_probabilities_are_called_miscalibrated(grouped):
    """Calibrated ones in at most 2 % of draws, those off by twice the tolerance in most."""
    rng = np.random.default_rng(4)
    said = {0.0: 0, 0.04: 0}
    for off in said:
        for _ in range(25):
            group = np.repeat(np.arange(400), 5)
            p = rng.beta(2, 5, 2000)
            codes = (rng.random(2000) < p + off).astype(int)
            if grouped:  # calibrated on average, and alike within groups
                p = rng.beta(2, 5, 400)[group]
                codes = (rng.random(400)[group] < p + 2 * off).astype(int)
            estimates = MethodEstimates(np.column_stack([1 - p, p]), None)
            own = {"groups": group} if grouped else {}
            said[off] += measure(estimates, codes, np.array([0, 1]), 1, **own).exceeds(0.02)
    assert said[0.0] <= 3 and said[0.04] >= 18


def test_a_column_that_reveals_the_outcome_is_to_be_checked_first():
    rng = np.random.default_rng(2)
    y = np.where(rng.random(200) < 0.4, "failed", "ok")
    X = pd.DataFrame({"heat": rng.normal(size=200), "repair": np.where(y == "failed", 3.0, 0.0)})
    options = {"n_folds": 2, "n_trees": 10, "methods": ["platt"]}
    advice = evaluate(X, y, **options).advice()
    assert advice.action == "check" and "“repair”" in advice.sentence
    assert evaluate(X[["heat"]], y, **options).suspects == {}


def test_percentages_never_round_to_certainty():
    assert numbers.percent(0.99999) == "99.9990%" and numbers.percent(1.0) == "100.0%"
    assert numbers.percent(0.00001) == "0.0010%" and numbers.percent(0.0) == "0.0%"
    assert numbers.percent(1e-9) == "under 0.0001%" and numbers.percent(1 - 1e-9) == "over 99.9999%"
    assert numbers.percent(0.123) == "12.3%" and numbers.percent(0.002) == "0.20%"
    for p in (1e-12, 1e-7, 0.00042, 0.0099, 0.5, 0.9951, 1 - 1e-5, 1 - 1e-12):
        text = numbers.probability(p)
        assert text.startswith("<") or text.startswith(">") or 0 < float(text) < 1
    assert numbers.probability(0.0) == "0.000" and numbers.probability(1.0) == "1.000"


def test_no_distance_or_interval_is_said_to_be_nothing():
    assert numbers.points(0.0000004) == "under 0.0001 percentage points"
    assert numbers.points(0.00042) == "0.042 percentage points"
    assert numbers.points(-0.131) == "13.1 percentage points" and numbers.points(0) == (
        "0 percentage points"
    )
    assert numbers.area(0.99996) == ">0.999" and numbers.area(1.0) == "1.000"
    # Methods whose scores differ in the fifth decimal are told apart.
    assert numbers.decimals([0.00201, 0.00203, None, float("nan")]) == 6
    assert numbers.decimals([0.1, 0.3]) == 3 and numbers.decimals([]) == 3
    assert numbers.decimals([0.00033]) == 5 and numbers.decimals([0.99934, 0.99967]) == 5


def test_methods_without_bounds_make_a_page_without_intervals():
    iris = load_iris(as_frame=True)
    evaluation = evaluate(iris.data, iris.target, n_folds=2, n_trees=10, methods=["platt"])
    assert list(evaluation.folds.estimates) == ["none", "platt"]
    html = render(evaluation)
    assert 'id="intervals"' not in html


def test_many_classes_and_rows_are_drawn_in_part():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(50), 12)
    X = rng.normal(size=(600, 3)) + rng.normal(size=(50, 3))[y] * 2
    evaluation = evaluate(X, y, n_folds=2, n_trees=10, methods=["platt", "venn-abers"])
    html = render(evaluation)
    assert "the 12 most frequent of 50 classes" in html
    pictures = re.findall(r"data:image/svg.xml;base64,([^\"]+)", html)
    assert any(b"400 of 600 shown" in base64.b64decode(one) for one in pictures)
    assert html.count('alt="Reliability diagram of class') == 12
    assert len(Page(html).tags) < 20_000


def test_a_file_is_written_whole_or_not_at_all(cancer, tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    monkeypatch.setattr("vennforest.report.page.render", lambda *_, **__: "new")
    path.write_text("old")
    monkeypatch.setattr("pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        cancer.to_html(path)
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_summary_is_json(cancer):
    text = json.dumps(cancer.summary(), allow_nan=False)
    found = json.loads(text)
    assert found["recommended"] == cancer.verdict.method
    assert found["methods"]["venn"]["size"] == cancer.measures["venn"].size
    assert found["data"]["classes"] == {"benign": 357, "malignant": 212}


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium to open the page in")
def test_in_a_browser(cancer_html, nasty, tmp_path):
    page = tmp_path / "page.html"
    nasty.to_html(page)
    seen = chromium(tmp_path, page, "--dump-dom")
    assert "CONSOLE" not in seen.stderr
    assert "aria-sort" not in seen.stdout.split("</style>")[1].split("<script>")[0]
    assert seen.stdout.count("<button") > 10  # the page's own script was let run
    found = driven(tmp_path, page, "--window-size=500,900", "--force-dark-mode")
    number = [float(cell.replace("∞", "inf")) for cell in found["up"]]
    assert number == sorted(number) and len(set(number)) > 2
    down = [float(cell.replace("∞", "inf")) for cell in found["down"]]
    assert down == sorted(number, reverse=True)
    assert found["width"] <= 500  # tables scroll, the page does not
    assert min(found["pictures"]) > 0.85 * found["width"]
    assert found["details"] > 3 and found["before"] == 0 == found["printing"]
    dark, ink = found["paper"], found["ink"]
    page.write_text(cancer_html, "utf-8")
    found = driven(tmp_path, page, "--window-size=1200,900")
    assert min(found["pictures"]) >= 480
    assert found["cut"] == []  # at this width every column of every table is seen
    light, pen = found["paper"], found["ink"]
    assert sum(dark) < 150 < 600 < sum(light) and sum(pen) < 200 < 500 < sum(ink)


def driven(tmp_path, page, *options):
    """What is seen of the page by a script that clicks, opens and prints."""
    # A policy that lets the script run beside the page's own.
    html = re.sub(r"script-src '[^']*'", "script-src 'unsafe-inline'", page.read_text("utf-8"))
    script = """<script>
      const heads = document.querySelectorAll("#comparison thead th");
      const column = (i) => [...document.querySelectorAll("#comparison tbody tr")]
        .map((row) => row.cells[i].textContent.replace("✓", "").trim());
      const all = [...document.querySelectorAll("details")];
      const open = () => all.filter((one) => one.open).length;
      const colour = (name) => getComputedStyle(document.body)[name].match(/\\d+/g).map(Number);
      heads[1].querySelector("button").click();
      const up = column(1);
      heads[1].querySelector("button").click();
      const found = {up, down: column(1), width: document.documentElement.scrollWidth,
        details: all.length, before: open(), paper: colour("backgroundColor").slice(0, 3),
        ink: colour("color").slice(0, 3), pictures: [...document.querySelectorAll("figure img")]
          .map((one) => one.getBoundingClientRect().width).filter((width) => width > 0)};
      dispatchEvent(new Event("beforeprint"));
      found.printing = open();
      for (const one of all) one.open = true;
      found.cut = [...document.querySelectorAll(".scroll")]
        .filter((one) => one.scrollWidth > one.clientWidth + 1)
        .map((one) => one.closest("section").id);
      document.title = JSON.stringify(found);
    </script></body>"""
    changed = page.with_name("driven.html")
    changed.write_text(html.replace("</body>", script), "utf-8")
    seen = chromium(tmp_path, changed, *options, "--dump-dom")
    return json.loads(re.search(r"<title>(\{.*?)</title>", seen.stdout).group(1))


@pytest.mark.browser
@pytest.mark.skipif(
    CHROMIUM is None or shutil.which("pdftotext") is None, reason="no Chromium or no pdftotext"
)
def test_print_is_short(cancer_html, tmp_path):
    page, pdf = tmp_path / "page.html", tmp_path / "page.pdf"
    page.write_text(cancer_html, "utf-8")
    chromium(tmp_path, page, f"--print-to-pdf={pdf}", "--no-pdf-header-footer")
    text = subprocess.run(
        ["pdftotext", "-layout", pdf, "-"], capture_output=True, text=True, check=True
    ).stdout
    sheets = [sheet for sheet in text.split("\f") if sheet.strip()]
    assert "AUC" in sheets[0]  # no empty first page
    row = next(line for line in text.splitlines() if line.split()[:1] == ["Temperature"])
    assert len(row.replace("✓", "").split()) == 8  # the name and every measure, down to the last
    assert len(sheets) <= 6


def test_an_evaluation_carries_what_is_known_of_frequencies():
    """Intervals around every calibrated method's probability, of the event looked at."""
    X, y = load_breast_cancer(return_X_y=True)
    made = evaluate(X, y, n_folds=2, n_trees=30, methods=["venn-abers", "platt"])
    for method, one in made.folds.estimates.items():
        known = confidence_of(made, one)
        if method == "none":
            assert known is None
            continue
        p = event_of(made, one)[0]
        assert (known[0] <= p + 1e-12).all()
        assert (p <= known[1] + 1e-12).all()
        assert 0.01 < np.mean(known[1] - known[0]) < 0.5
    assert made.confidence is made.folds.estimates[made.verdict.method].confidence
    spread = made.folds.forest
    assert spread.n_trees == 30
    assert "120 trees" in spread.sentence()


def test_misspelt_keywords_are_refused_before_anything_runs():

    y, p = [0, 1] * 20, [0.5] * 40
    for call in (lambda **k: evaluate(None, None, **k), lambda **k: report(y, p, **k)):
        with pytest.raises(TypeError, match=r"unexpected keyword argument 'toleranse'"):
            call(toleranse=0.03)
        with pytest.raises(ValueError, match=r"tolerance must lie in \(0, 1\), got 3"):
            call(tolerance=3)
