"""Predictions of any model: given, of a file, of named classifiers; splits; what the page says."""

import itertools
import json
import re

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

pd = pytest.importorskip("pandas")
for extra in ("matplotlib", "jinja2", "typer", "skops", "pyarrow"):
    pytest.importorskip(extra)

import vennforest  # noqa: E402
from vennforest import CalibratedClassifier, Multiprobability, VennAbers  # noqa: E402
from vennforest.cli import main  # noqa: E402
from vennforest.monitoring.columns import holm  # noqa: E402
from vennforest.report import (  # noqa: E402
    answers,
    evaluate,
    report,
    report_model,
    report_scores,
)
from vennforest.report import event as event_module  # noqa: E402
from vennforest.report.evaluate import class_of_name  # noqa: E402
from vennforest.report.event import cost_threshold, thresholds_of  # noqa: E402
from vennforest.report.folds import forward, members_of, shuffled  # noqa: E402
from vennforest.report.learners import LEARNERS  # noqa: E402
from vennforest.report.page import recipe, render  # noqa: E402
from vennforest.report.subsets import parted, subgroups  # noqa: E402

COSTS = {"no": {"wait": 0, "treat": 1}, "yes": {"wait": 4, "treat": 1}}


def drawn(n, seed, strength=1.0, share=0.3):
    """Labels and calibrated probabilities that know as much of them as the strength says."""
    rng = np.random.default_rng(seed)
    odds = np.log(share / (1 - share)) + strength * rng.normal(size=n)
    p = 1 / (1 + np.exp(-odds))
    return np.where(rng.random(n) < p, "yes", "no"), p, rng


def test_the_baseline_is_the_best_constant():
    y, p, _ = drawn(300, 1)
    found = report(y, p)
    share = (y == "yes").mean()
    assert found.baseline.brier == pytest.approx(share * (1 - share))
    entropy = -(share * np.log(share) + (1 - share) * np.log(1 - share))
    assert found.baseline.log_loss == pytest.approx(entropy)
    assert found.baseline.auc == 0.5 and found.baseline.accuracy == max(share, 1 - share)
    m = found.measures["Predictions"]
    assert m.brier_skill == pytest.approx(1 - m.brier / (share * (1 - share)))
    assert m.log_loss_skill == pytest.approx(1 - m.log_loss / entropy)
    outcome = (y == "yes") * 1.0
    gap = -outcome * np.log(share / p) - (1 - outcome) * np.log((1 - share) / (1 - p))
    assert found.gain.loss == "log loss"
    assert found.gain.mean == pytest.approx(gap.mean())
    assert found.gain.margin == pytest.approx(1.9679 * gap.std(ddof=1) / np.sqrt(300), rel=1e-3)
    sure = report(y, np.where(np.arange(300) == 7, y != "yes", p))  # once quite sure, and wrong
    assert sure.gain.loss == "Brier score" and sure.measures["Predictions"].impossible == 1
    for constant in np.linspace(0.01, 0.99, 50):
        assert ((constant - outcome) ** 2).mean() >= found.baseline.brier - 1e-12


def test_a_model_that_cannot_rank_is_not_to_be_used():
    used = 0
    for seed in range(24):  # probabilities that have nothing to do with the labels
        y, p, rng = drawn(150, seed)
        used += report(rng.permutation(y), p).advice().action == "use"
    assert used <= 2
    y, p, _ = drawn(4000, 1, strength=2.0)
    found = report(y, p)
    assert found.advice().action == "use" and "points off" in found.advice().sentence
    assert f"AUC {found.discrimination.auc:.3f}" in answers.discrimination(found)
    swapped = report(y, 1 - p).advice()
    assert swapped.action == "stop" and "worse than chance" in swapped.sentence
    too_low = report(y, 0.02 + 0.05 * p)  # ranks as well
    assert too_low.advice().action == "recalibrate"
    assert found.summary()["verdict"] == found.headline()


def test_costs_are_compared_with_the_best_constant_decision():
    y, p, rng = drawn(4000, 3, strength=2.0)
    found = report(y, p, costs=COSTS, positive="yes")
    decided = np.where(1 - p + p < (4 * p), "treat", "wait")
    paid = np.array([COSTS[a][b] for a, b in zip(y, decided, strict=True)])
    always = min((np.mean([COSTS[a][b] for a in y]), b) for b in ("wait", "treat"))
    assert found.saved.mean == pytest.approx(always[0] - paid.mean())
    assert f"always “{always[1]}”" in answers.net_benefit(found)
    assert found.advice().action == "use" and "of the money" in found.advice().sentence
    blind = report(rng.permutation(y), p, costs=COSTS, positive="yes")
    assert blind.advice().action != "use"
    assert "Always “treat”" in render(found)
    # The threshold of these costs: treat where 1 < 4 p.
    assert cost_threshold(found.costs, 1) == pytest.approx(0.25)
    assert 0.25 in thresholds_of(found)


def test_the_positive_class_is_the_rarer_one_unless_named():
    y, p, _ = drawn(200, 4)
    turned = np.where(y == "yes", "a rare one", "common")
    found = report(turned, 1 - p)  # the column is of the second class, "common"
    assert found.label == "a rare one" and "rarer" in found.positive_reason
    assert found.discrimination.auc > 0.6
    named = report(turned, p, positive="a rare one")
    assert named.label == "a rare one" and "named" in named.positive_reason
    assert named.measures["Predictions"].brier == found.measures["Predictions"].brier
    assert report([0, 1] * 20, [0.4, 0.6] * 20).label == 1
    assert "The positive class is “a rare one”: the rarer of the two" in render(found)


def test_predictions_of_every_shape():
    y, p, _ = drawn(120, 5)
    table = np.column_stack([1 - p, p])
    bounds = Multiprobability(
        np.clip(table - 0.05, 0, 1), np.clip(table + 0.05, 0, 1), np.array(["no", "yes"])
    )
    found = report(y, {"column": p, "table": table, "bounds": bounds, "both": (p, bounds)})
    assert list(found.measures) == ["column", "table", "bounds", "both"]
    assert found.measures["column"] == found.measures["table"]
    assert found.verdict.method in ("bounds", "both") and found.measures["both"].size > 0
    np.testing.assert_allclose(found.folds.estimates["both"].p[:, 1], p)
    assert vennforest.report(y, p).measures == report(y, p).measures
    assert vennforest.report.report is report
    html = found._repr_html_()
    assert html.startswith("<iframe") and "srcdoc" in html and "<script" in html
    three = np.random.default_rng(0).dirichlet(np.ones(3), 120)
    assert report(np.arange(120) % 3, three).positive is None
    for wrong, message in (
        ({}, "at least one model"),
        (p[:-1], "must be of 120 rows"),
        (p * 3, "must lie in"),
        (three, "a column for each of 2 classes"),
        (table * 0.9, "sum to 1"),
        ({"a": Multiprobability(three, three, np.arange(3))}, "of the classes"),
    ):
        with pytest.raises(ValueError, match=message):
            report(y, wrong)
    with pytest.raises(ValueError, match="a column for each of 3 classes"):
        report(np.arange(120) % 3, p)
    with pytest.raises(ValueError, match="two classes"):
        report(["a"] * 120, p)
    with pytest.raises(ValueError, match="positive must be one of"):
        report(y, p, positive="maybe")


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("p(yes)", 1), ("no", 0), ("prob_yes", 1), ("P.no", 0), ("score", None), ("noyes", None),
     ("model_no", None), ("my score yes", None)],
)  # fmt: skip
def test_columns_name_their_class(name, wanted):
    assert class_of_name(name, np.array(["no", "yes"])) == wanted


def test_a_number_of_a_model_is_no_class(tmp_path, capsys):
    y, p, rng = drawn(300, 3, strength=2.0)
    frame = pd.DataFrame({"model_0": p, "model_1": rng.random(300), "y": (y == "yes") * 1})
    frame.to_csv(tmp_path / "t.csv", index=False)
    base = ["report", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "p.html", "--json"]
    assert run(*base, "--probability", "model_0") == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["auc"]["auc"] > 0.8 and "probability of '1'" in err
    assert run(*base, "--probability", "model_0", "--probability", "model_1") == 0
    assert list(json.loads(capsys.readouterr().out)["methods"]) == ["model_0", "model_1"]


def test_a_tuple_of_probabilities_is_an_array_of_them():
    y, p, _ = drawn(60, 3)
    assert report(y, tuple(p)).measures == report(y, p).measures
    assert report(["yes", "no", "no", "yes"], (0.2, 0.7, 0.3, 0.8)).folds.codes.shape == (4,)


def test_scores_are_calibrated_on_the_other_folds():
    y, p, _ = drawn(160, 6, strength=2.0)
    scores = 500 + 40 * np.log(p / (1 - p))
    found = report_scores(y, scores, n_folds=4, methods=["venn-abers", "platt"])
    for fold in range(4):
        held = found.folds.fold == fold
        own = VennAbers().fit(scores[~held], y[~held])
        bounds = own.predict_multiprobability(scores[held])
        mine = found.folds.estimates["venn-abers"]
        np.testing.assert_allclose(mine.p[held], own.predict_proba(scores[held]))
        assert (mine.bounds.lower[held] <= bounds.lower + 1e-12).all()
    assert found.discrimination.auc > 0.7 and found.origin == "scores"
    with pytest.raises(ValueError, match="in \\[0, 1\\]"):
        report_scores(y, scores, methods=["beta"])
    with pytest.raises(ValueError, match="n_folds must be an integer >= 2, got 1"):
        report_scores(y, scores, n_folds=1)
    groups = [None, None, *(np.arange(len(y) - 2) // 3)]
    whole = report_scores(y, scores, n_folds=4, methods=["platt"], groups=groups)
    assert "rows of a group are never on both sides" in render(whole)
    assert any("2 rows without a group" in note for note in whole.notes)
    turned = report_scores(y, -scores, n_folds=4, methods=["platt"], positive="no")
    np.testing.assert_allclose(
        turned.folds.estimates["platt"].p, found.folds.estimates["platt"].p, atol=1e-12
    )
    assert turned.label == "no"


def table_of(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    y = np.where(x[:, 0] + rng.normal(size=n) > 0.3, "yes", "no")
    return pd.DataFrame(x, columns=["a", "b", "c"]), y


def test_a_model_judged_on_its_own_rows_says_so():
    X, y = table_of(300, 7)
    more, labels = table_of(200, 8)
    forest = RandomForestClassifier(30, random_state=0)
    model = CalibratedClassifier(forest, random_state=0).fit(X, y)
    own = report_model(model, X, y, n_trained=300)
    assert own.settings["seen"]
    assert own.advice().action == "check"
    fresh = report_model(model, more, labels, n_trained=300)
    assert not fresh.settings["seen"] and "300 rows" in fresh.notes[0]
    np.testing.assert_array_equal(fresh.folds.estimates["venn-abers"].p, model.predict_proba(more))
    order = np.random.default_rng(0).permutation(300)
    shuffled = report_model(model, X.iloc[order], y[order], n_trained=300)
    assert shuffled.settings["seen"]
    with pytest.raises(ValueError, match="labels of the model"):
        report_model(model, X, np.where(y == "yes", "maybe", y))


def test_no_coverage_is_claimed_where_calibration_is_rejected():
    X, y = table_of(3000, 7)
    elsewhere, labels = table_of(600, 8)
    labels = np.where(np.random.default_rng(0).random(600) < 0.4, "yes", labels)  # 20 points off
    model = CalibratedClassifier(LogisticRegression(), random_state=0).fit(X, y)
    page = answers.precision(report_model(model, elsewhere, labels), "venn-abers")
    inside, n = map(int, re.findall(r"in (\d+) of (\d+) levels", page)[0])
    assert "do not hold" in page and "95% of cases" not in page
    p, confidence = model.predict_proba(elsewhere)[:, 1], model.predict_confidence(elsewhere)
    level = np.minimum((10 * p).astype(int), 9)
    means = [
        [values[level == i].mean() for values in (confidence.lower[:, 1], labels == "yes",
                                                  confidence.upper[:, 1])]
        for i in np.unique(level)
    ]  # fmt: skip
    assert (inside, n) == (sum(low <= share <= high for low, share, high in means), len(means))
    assert inside < n / 2
    fresh, same = table_of(600, 9)
    assert "in 95% of cases" in answers.precision(report_model(model, fresh, same), "venn-abers")


def test_groups_are_never_on_both_sides():
    rng = np.random.default_rng(9)
    groups = np.repeat(np.arange(40), 5)
    label = rng.integers(0, 2, 40)[groups]
    X = rng.normal(size=(40, 4))[groups]  # names the group, and tells nothing else
    options = {"n_folds": 4, "n_trees": 20, "methods": ["venn-abers"]}
    loose = evaluate(X, label, **options)
    kept = evaluate(X, label, groups=groups, **options)
    assert loose.discrimination.auc > 0.9 and not kept.discrimination.above_chance
    for fold in range(4):
        held = kept.folds.fold == fold
        assert not set(groups[held]) & set(groups[~held])
    assert kept.settings["calibrate_on"] == "cv" and "groups=groups" in recipe(kept)
    assert (kept.discrimination.high - kept.discrimination.low) > 0.25  # 40 observations, not 200
    assert "40 groups" in answers.discrimination(kept)
    notes = []
    numbers = members_of(["a", None, "a", "", 1, "1", pd.NA], 7, notes)
    assert notes == ["3 rows without a group count as a group each."]
    assert numbers[0] == numbers[2] and len(np.unique(numbers)) == 6
    with pytest.raises(ValueError, match="at least two"):
        shuffled(np.array([0, 1, 0, 1]), np.zeros(4, np.intp), 2, 0)
    with pytest.raises(ValueError, match="groups must have shape"):
        evaluate(X, label, groups=groups[1:], **options)


def test_the_past_predicts_the_future():
    rng = np.random.default_rng(10)
    for _ in range(200):
        n = int(rng.integers(12, 60))
        time = rng.integers(0, int(rng.integers(4, 40)), n) * 1.0
        codes = rng.integers(0, 2, n)
        groups = rng.integers(0, 20, n) if rng.random() < 0.5 else None
        try:
            splits = forward(codes, time, groups, 4)
        except ValueError:
            continue
        held = np.concatenate([test for _, test in splits])
        assert len(held) == len(set(held))
        for train, test in splits:
            assert time[train].max() < time[test].min()
            if groups is not None:
                assert not set(groups[train]) & set(groups[test])
    X, y = table_of(120, 11)
    day = pd.date_range("2021-01-01", periods=120).strftime("%Y-%m-%d").to_numpy(object)
    found = evaluate(X, y, time=day, n_folds=3, n_trees=10, methods=["venn-abers"])
    assert found.origin == "time" and len(found.folds.codes) == 90
    assert any("30 of 120 rows only train" in note for note in found.notes)
    with pytest.raises(ValueError, match="numbers or dates"):
        evaluate(X, y, time=["soon"] * 120, n_trees=5)
    with pytest.raises(ValueError, match="two different times"):
        evaluate(X, y, time=np.ones(120), n_trees=5)


@pytest.mark.parametrize("name", list(LEARNERS))
def test_every_estimator_and_its_recipe(name):
    module = {"lightgbm": "lightgbm", "xgboost": "xgboost", "catboost": "catboost"}.get(name)
    if module is not None:
        pytest.importorskip(module)
    X, y = table_of(90, 12)
    X["word"] = np.where(X["b"] > 0, "left", "right")
    X.iloc[3, 0] = np.nan
    test = np.arange(90) >= 60
    with threadpool_limits(1):  # boosting spreads 60 rows over threads
        for methods in (["venn-abers"], ["platt", "venn-abers"]):
            found = evaluate(X, y, estimator=name, test=test, n_trees=10, methods=methods)
            check_recipe(found, X, y, test)


def check_recipe(found, X, y, test):
    assert found.origin == "test" and found.folds.rows.tolist() == list(range(60, 90))
    assert found.names["none"].startswith("Raw ")
    scope = {"X": X[~test], "y": y[~test], "X_new": X[test]}
    exec(compile(recipe(found), "recipe", "exec"), scope)
    np.testing.assert_allclose(
        scope["model"].predict_proba(X[test]), found.folds.estimates["venn-abers"].p, atol=1e-12
    )


def test_a_classifier_of_ones_own_and_what_is_none():
    X, y = table_of(90, 13)
    found = evaluate(
        X.to_numpy(), y, estimator=LogisticRegression(C=0.5), n_folds=2, methods=["platt"]
    )
    assert found.names["none"] == "Raw LogisticRegression" and "C=0.5" in recipe(found)
    for wrong in ("forest", LogisticRegression, 7):
        with pytest.raises(ValueError, match="estimator must be"):
            evaluate(X, y, estimator=wrong)
    with pytest.raises(ValueError, match="test must be 90 booleans"):
        evaluate(X, y, test=np.ones(90))
    for wrong in (np.zeros(90, bool), np.ones(90, bool)):
        with pytest.raises(ValueError, match="test must be True for the rows to predict"):
            evaluate(X, y, test=wrong)
    with pytest.raises(ValueError, match="got both"):
        evaluate(X, y, test=np.arange(90) > 50, time=np.arange(90))


def test_subgroups_are_adjusted_for_their_number():
    def slow(pvalues):
        order = sorted(range(len(pvalues)), key=lambda i: pvalues[i])
        found, most = [0.0] * len(pvalues), 0.0
        for place, i in enumerate(order):
            most = max(most, min(1.0, (len(pvalues) - place) * pvalues[i]))
            found[i] = most
        return found

    rng = np.random.default_rng(14)
    for _ in range(200):
        pvalues = rng.random(int(rng.integers(0, 8))).round(1).tolist()
        assert holm(np.array(pvalues)) == pytest.approx(slow(pvalues))
    y, p, rng = drawn(1200, 15)
    site = rng.choice(["north", "south", "tiny"], 1200, p=[0.5, 0.49, 0.01]).astype(object)
    y = np.where((site == "south") & (rng.random(1200) < 0.4), "yes", y)
    found = report(y, p, by={"site": site, "age": rng.normal(50, 9, 1200)}, positive="yes")
    of_site, of_age = subgroups(found)
    assert "south (too low on average)" in of_site["sentence"]
    assert "20 rows" in of_site["sentence"]
    assert [row["n"] for row in of_age["rows"]] == [300] * 4
    south = of_site["rows"][1]
    assert south["observed"] == pytest.approx((y[site == "south"] == "yes").mean())
    assert south["expected"] == pytest.approx(p[site == "south"].mean())
    assert "By site" in render(found)
    parts, order = parted(np.array([*[f"v{i}" for i in range(40)], *["v1"] * 9, None, " "], object))
    assert set(parts) == set(order) and len(order) == 13 and (parts == "missing").sum() == 2
    assert order[-2:] == ["29 other values", "missing"]
    assert parted(np.array([10.0, 9.0, 10.0], object))[1] == ["9.0", "10.0"]
    with pytest.raises(ValueError, match="by must have shape"):
        report(y, p, by={"site": site[1:]})


@pytest.mark.parametrize("share", [0.3, 0.02])
def test_levels_hold_what_was_observed(share):
    y, p, _ = drawn(3000, 16, share=share)
    found = report(y, p, positive="yes")
    rows = event_module.levels(found)
    assert sum(row["n"] for row in rows) == 3000
    edges = event_module.STEPS if share < 0.1 else event_module.EVEN
    slow = []
    for low, high in itertools.pairwise(edges):
        at = (p >= low) & (p < high) if high < 1 else p >= low
        if at.any():
            slow.append((int(at.sum()), (y[at] == "yes").mean()))
    assert [(row["n"], pytest.approx(row["observed"])) for row in rows] == slow
    z, (n, q) = 1.959963984540054, slow[0]
    centre = (q + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(q * (1 - q) / n + z * z / (4 * n * n))
    ends = rows[0]["least"], rows[0]["most"]
    assert ends == pytest.approx((centre - half, centre + half))


def test_rare_events_are_told_apart():
    y, p, _ = drawn(6000, 17, strength=1.5, share=0.002)
    found = report(y, {"good": p, "worse": np.sqrt(p * p.mean())})
    text = render(found)
    assert " 0.0 percentage points" not in text and "logarithmic" in text
    first, second = (f"{m.brier:.6f}" for m in found.measures.values())
    assert first != second and first in text and second in text


def run(*arguments):
    return main([str(argument) for argument in arguments])


def test_the_command_judges_columns_and_files(tmp_path, capsys):
    y, p, rng = drawn(150, 18, strength=2.0)
    frame = pd.DataFrame(
        {
            "p(no)": 1 - p, "p(yes)": p, "lower(yes)": p * 0.9, "upper(yes)": p * 0.9 + 0.1,
            "score": 100 * p, "word": "w", "site": rng.choice(["x", "y"], 150), "y": y,
        }
    )  # fmt: skip
    frame.loc[3, "p(yes)"] = np.nan
    table, page = tmp_path / "t.csv", tmp_path / "page.html"
    frame.to_csv(table, index=False)
    base = ["report", table, "-t", "y", "-o", page]
    assert run(*base, "--probability", "p(yes)", "--by", "site", "--json") == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert found["origin"] == "given" and found["data"]["rows"] == 149
    assert "1 rows without a probability" in err and "probability of 'yes'" in err
    assert "points off" in err  # also where nobody watches
    assert found["methods"]["p(yes)"]["size"] == pytest.approx(0.1)
    assert run(*base, "--probability", "p(yes)", "--probability", "p(no)", "--json") == 0
    assert list(json.loads(capsys.readouterr().out)["methods"]) == ["Predictions"]
    assert run(*base, "--probability", "score", "--folds", 3, "--json") == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["origin"] == "scores" and "divide them by 100" in err
    for wrong, message in (
        (["--probability", "word"], "must contain numbers"),
        (["--probability", "sc"], "there is no column 'sc'"),
        (["--probability", "score", "--model", "m"], "not both"),
        (["--probability", "score", "--test", table], "nothing is trained"),
        (["--model", tmp_path / "none.skops"], "there is no model file"),
        (["--test", table, "--time", "site"], "not both"),
        (["--groups", "no one"], "there is no column 'no one'"),
    ):
        assert run(*base, *wrong) == 2, wrong
        assert message in capsys.readouterr().err, wrong


def test_the_command_judges_a_model_and_a_table_apart(tmp_path, capsys):
    frames = []
    for i, seed in enumerate((19, 20)):
        X, y = table_of(120, seed)
        X["id"] = np.arange(120) + 1000 * i
        X["word"] = np.where(X["b"] > 0, "left", "right")
        frames.append(X.assign(y=y))
        frames[-1].to_csv(tmp_path / f"{i}.csv", index=False)
    train, test, page = tmp_path / "0.csv", tmp_path / "1.csv", tmp_path / "p.html"
    model = tmp_path / "m.skops"
    assert run("fit", train, "-t", "y", "-o", model, "--trees", 20) == 0
    assert "Left out as identifiers" in capsys.readouterr().err
    command = ["report", "-t", "y", "-o", page, "--json"]
    assert run(*command, test, "--model", model) == 0
    judged = json.loads(capsys.readouterr().out)
    assert run(*command, train, "--test", test, "--methods", "venn-abers", "--trees", 20) == 0
    apart = json.loads(capsys.readouterr().out)
    assert judged["data"]["rows"] == apart["data"]["rows"] == 120
    # fit trains what the report trains: the same numbers.
    ours, theirs = judged["methods"]["venn-abers"], apart["methods"]["venn-abers"]
    assert ours["brier"] == pytest.approx(theirs["brier"], abs=1e-12)
    frames[1].drop(columns="word").to_csv(test, index=False)
    assert run(*command, train, "--test", test) == 2
    assert "lacks the column 'word'" in capsys.readouterr().err


@pytest.mark.parametrize("options", [["--groups", "g"], ["--estimator", "logistic"]])
def test_the_report_judges_the_averaged_models_that_fit_writes(tmp_path, capsys, options):
    for i, seed in enumerate((21, 22)):
        X, y = table_of(120, seed)
        X.assign(g=np.arange(120) // 2 + 100 * i, y=y).to_csv(tmp_path / f"{i}.csv", index=False)
    train, test, page = tmp_path / "0.csv", tmp_path / "1.csv", tmp_path / "p.html"
    size = [] if "logistic" in options else ["--trees", 12]
    model = tmp_path / "m.skops"
    assert run("fit", train, "-t", "y", "-o", model, *options, *size) == 0
    capsys.readouterr()
    assert run("report", test, "-t", "y", "--model", model, "-o", page, "--json") == 0
    judged = json.loads(capsys.readouterr().out)["methods"]["venn-abers"]
    command = ["report", train, "--test", test, "-t", "y", "-o", page, "--json", *options, *size]
    assert run(*command, "--methods", "venn-abers") == 0
    evaluated = json.loads(capsys.readouterr().out)["methods"]["venn-abers"]
    for measure in ("brier", "log_loss", "size"):
        assert evaluated[measure] == pytest.approx(judged[measure], abs=1e-12)


def test_differences_and_costs_are_written_with_the_same_decimals():
    from vennforest.report.numbers import alike, with_margin

    assert with_margin(0.017, 0.16) == ("0.02", "0.16")
    assert with_margin(0.0089, 0.026) == ("0.009", "0.026")
    assert with_margin(0.016, 0.0012) == ("0.0160", "0.0012")
    assert with_margin(0.00053, 1.4e-19) == ("0.000530", "under 0.000001")  # folds all alike
    assert with_margin(0.0, 0.0) == ("0", "0")
    assert with_margin(0.25, float("inf")) == ("0.25", "–")
    assert alike([2.268, 2.24, -0.0275, -0.121, 0.0665], -0.0275) == [
        "2.268", "2.240", "−0.028", "−0.121", "0.067",
    ]  # fmt: skip
    assert alike([1200.0, 1200.0004, -0.0004], -0.0004) == ["1,200.00000", "1,200.00040",
                                                             "−0.00040"]  # fmt: skip
    assert alike([0.0, 0.0], 0.0) == ["0.000", "0.000"]


def test_it_is_said_what_calibrating_given_probabilities_would_gain():
    from sklearn.metrics import log_loss

    from vennforest.report.evaluate import calibration_gain

    rng = np.random.default_rng(21)
    true = rng.random(2000)
    y = (rng.random(2000) < true).astype(int)
    off = np.column_stack([1 - true**3, true**3])
    said = calibration_gain(y, off)
    before, after = (float(part) for part in re.findall(r"loss ([\d.]+) → ([\d.]+);", said)[0])
    assert before == pytest.approx(log_loss(y, off), abs=6e-4)
    best = log_loss(y, np.column_stack([1 - true, true]))
    assert best - 0.01 < after < best + 0.02
    assert calibration_gain(y, np.column_stack([1 - true, true])).startswith("Calibrating these")
    assert calibration_gain(y[:50], off[:50]) is None
