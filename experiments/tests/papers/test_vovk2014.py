"""Vovk & Petej (2014) shrunken: J48, losses, splits, resumption, pages."""

import math
import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn.tree import DecisionTreeClassifier

from printed import printed_columns
from vennforest.calibrators import PlattScaling, VennAbers
from vennforest_experiments.papers import published, reproduce
from vennforest_experiments.papers.protocol.learners import MixedNaiveBayes
from vennforest_experiments.papers.protocol.store import Task
from vennforest_experiments.papers.vovk2014.classifiers import CLASSIFIERS, classifier
from vennforest_experiments.papers.vovk2014.experiment import (
    COLUMNS,
    METHODS,
    DirectIsotonic,
    Vovk2014,
    losses,
    mixed_table,
)
from vennforest_experiments.papers.vovk2014.findings import ranked
from vennforest_experiments.papers.vovk2014.j48 import J48, upper_errors
from vennforest_experiments.papers.vovk2014.report import report
from vennforest_experiments.transductive import TransductiveClassifier

# --- J48 -------------------------------------------------------------------------------------


def test_upper_errors_are_the_limit_of_the_binomial_distribution():
    """Without errors exact; with errors close to Clopper and Pearson's limit."""
    for n in (1, 2, 6, 14, 100):
        exact = stats.binomtest(0, n).proportion_ci(0.5, "exact").high
        assert upper_errors(n, 0, 0.25) == pytest.approx(n * exact)
    for n, errors in ((20, 3), (100, 1), (100, 40), (1000, 7)):
        exact = n * stats.binomtest(errors, n).proportion_ci(0.5, "exact").high
        assert upper_errors(n, errors, 0.25) == pytest.approx(exact, rel=0.05)
    # Quinlan's examples.
    for n, limit in ((6, 0.206), (9, 0.143), (1, 0.75)):
        assert upper_errors(n, 0, 0.25) / n == pytest.approx(limit, abs=5e-4)
    assert upper_errors(5, 5, 0.25) == 5
    limits = [upper_errors(10, e, 0.25) for e in np.linspace(0, 10, 101)]
    assert limits == sorted(limits)


def cut_back(X, y, weight, tree, node, rows):
    """Return the leaves' rows of a grown tree by C4.5's rules, and its limit of errors."""
    n = weight[rows].sum()
    counts = np.bincount(y[rows], weight[rows], 2)
    own = upper_errors(n, n - counts.max(), 0.25)
    if tree.children_left[node] < 0:
        return [rows], own
    column = X[rows, tree.feature[node]]
    goes = column <= tree.threshold[node]
    sides = [rows[goes], rows[~goes]]

    def bits(part):
        shares = np.bincount(y[part], weight[part], 2)
        return weight[part].sum() * stats.entropy(shares, base=2)

    saved = bits(rows) - sum(map(bits, sides))
    children = (tree.children_left[node], tree.children_right[node])
    parts = [cut_back(X, y, weight, tree, c, s) for c, s in zip(children, sides, strict=True)]
    below = sum(limit for _, limit in parts)
    present = column[weight[rows] > 0]
    if saved > np.log2(max(len(np.unique(present)) - 1, 1)) and own > below + 0.1:
        return [leaf for leaves, _ in parts for leaf in leaves], below
    return [rows], own


def test_j48_is_a_grown_tree_cut_back_from_the_leaves():
    rng = np.random.default_rng(2)
    shapes = set()
    for seed in range(45):
        n = int(rng.integers(10, 120))
        X = np.column_stack([rng.normal(size=(n, 2)).round(2), rng.integers(0, 2, (n, 2))])
        y = (X[:, 0] + X[:, 2] + rng.normal(size=n) * rng.choice([0.1, 1]) > 0.5).astype(int)
        if len(set(y)) < 2:
            continue
        weight = rng.integers(0, 3, n).astype(float) if seed % 2 else np.ones(n)
        if len(set(y[weight > 0])) < 2:
            continue
        model = J48(random_state=seed).fit(X, y, sample_weight=weight)
        grown = DecisionTreeClassifier(
            criterion="entropy", min_samples_leaf=2, random_state=seed
        ).fit(X, y, sample_weight=weight)
        leaves, _ = cut_back(X, y, weight, grown.tree_, 0, np.arange(n))
        p = np.empty(n)
        for rows in leaves:
            p[rows] = weight[rows] @ y[rows] / weight[rows].sum()
        np.testing.assert_allclose(model.predict_proba(X)[:, 1], p, atol=1e-12)
        shapes.add((grown.get_n_leaves(), len(leaves)))
    assert len(shapes) > 20
    assert sum(after > 2 for _, after in shapes) > 7


# --- losses and ranks ------------------------------------------------------------------------


def test_losses_are_equations_12_and_13():
    y, p, q = np.array([1, 0, 1]), np.array([0.5, 0.2, 0.9]), np.array([0.4, 0.3, 1.0])
    found = losses(y, p, q)
    assert found["log loss"] == pytest.approx(-(math.log(0.5) + math.log(0.8) + math.log(0.9)) / 3)
    assert found["root mean square error"] == pytest.approx(math.sqrt((0.36 + 0.09) / 3))
    assert losses(y, np.array([0.5, 1.0, 0.9]), q)["log loss"] is None
    assert losses(y, np.array([1.0, 0.0, 1.0]), q)["log loss"] == 0
    small = np.array([0.5, 1e-30, 0.5])
    found = losses(y, np.array([0.5, 1.0, 0.5]), q, small)["log loss"]
    assert found == pytest.approx((2 * math.log(2) + 30 * math.log(10)) / 3)


def test_ranks_of_the_printed_tables_are_the_printed_table_3():
    for measure, number in (("log loss", "1"), ("root mean square error", "2")):
        columns = printed_columns("vovk2014", number, measure)
        printed = {
            (row.dataset, int(row.value)): row.method
            for row in published.load("vovk2014")
            if row.table == "3" and row.measure == f"{measure} rank"
        }
        agreed = 0
        for d in columns["W (J)"]:
            order = ranked({name: column[d] for name, column in columns.items()})
            losses_in_order = [loss for _, _, loss in order]
            assert losses_in_order == sorted(losses_in_order)
            for place in (1, 2, 3):
                method = printed[d, place].split()[0]
                mine = {m: loss for m, _, loss in order}[method]
                # Three printed decimals leave ties open, nothing else.
                assert abs(mine - losses_in_order[place - 1]) <= 0.0011
                agreed += f"{order[place - 1][0]} ({order[place - 1][1]})" == printed[d, place]
        assert agreed >= 20


# --- the experiment --------------------------------------------------------------------------


@pytest.fixture
def data_dir(tmp_path):
    """Made files in place of Labor and Liver: other columns, types guessed."""
    rng = np.random.default_rng(3)
    folder = tmp_path / "data"
    folder.mkdir()
    for name, n in (("labor", 24), ("liver", 21)):
        x = rng.normal(size=n).round(3)
        word = np.where(x + rng.normal(size=n) > 0, "up", np.where(rng.random(n) < 0.5, "no", ""))
        y = np.where(x + 0.7 * rng.normal(size=n) > 0, "good", "bad")
        rows = zip(x, word, y, strict=True)
        cells = [f"{a if i % 7 else ''},{w},{t}" for i, (a, w, t) in enumerate(rows)]
        (folder / f"{name}.csv").write_text("\n".join(["number,word,target", *cells]) + "\n")
    return str(folder)


def small(data_dir, **options):
    return Vovk2014(data_dir=data_dir, repeats=2, transductive_repeats=1, **options)


def test_splits_are_permutations_and_those_of_va_differ(data_dir):
    this = small(data_dir)
    train, test = this.split(Task("Labor", 0, 0))
    assert (len(train), len(test)) == (16, 8)
    assert sorted([*train, *test]) == list(range(24))
    for other in (Task("Labor", 1, 0), Task("Labor", 0, 1)):
        assert this.split(other)[1].tolist() != test.tolist()
    assert (
        this.split(Task("Labor", 0, 1))[1].tolist() == this.split(Task("Labor", 0, 6))[1].tolist()
    )
    tasks = this.tasks(["Labor"])
    assert len(tasks) == len(set(tasks)) == 2 + 6
    assert len(Vovk2014(repeats=1).tasks(["Labor"])) == 1 + 6


def test_methods_are_what_they_are_called(data_dir):
    this = small(data_dir)
    X, y = this.data("Labor")
    train, test = this.split(Task("Labor", 0, 0))
    record = this.run(Task("Labor", 0, 0))
    assert set(record) == {c for c in COLUMNS if not c.startswith("VA")}
    X, n_values = mixed_table(this, "Labor")
    model = MixedNaiveBayes(n_values, density="kernel").fit(X[train], y[train])
    s, new = model.predict_proba(X[train])[:, 1], model.predict_proba(X[test])[:, 1]
    m = VennAbers("log").fit(s, y[train]).predict_multiprobability(new)
    expected = losses(y[test], m.p1 / (1 - m.p0 + m.p1), m.p1 + m.p0**2 / 2 - m.p1**2 / 2)
    assert record["SVA (NB)"] == pytest.approx(expected)
    raw = model.predict_proba(X[test])[:, 0]
    assert record["W (NB)"] == pytest.approx(losses(y[test], new, new, raw))
    svm = classifier("SVM", n_values, "kernel").fit(X[train], y[train])
    platt = PlattScaling(targets="hard", on="score").fit(svm.decision_function(X[train]), y[train])
    p = platt.predict_proba(svm.decision_function(X[test]))[:, 1]
    assert record["W (SVM)"] == pytest.approx(losses(y[test], p, p), rel=1e-6)
    direct = DirectIsotonic().fit(s, y[train]).predict_proba(new)[:, 1]
    assert record["DIR (NB)"] == pytest.approx(losses(y[test], direct, direct))
    task = Task("Labor", 0, 1 + CLASSIFIERS.index("NB"))
    train, test = this.split(task)
    m = TransductiveClassifier(model).fit(X[train], y[train])
    m = m.predict_multiprobability(X[test])
    expected = losses(y[test], m.p1 / (1 - m.p0 + m.p1), m.p1 + m.p0**2 / 2 - m.p1**2 / 2)
    assert this.run(task)["VA (NB)"] == pytest.approx(expected)


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_every_classifier_takes_missing_cells(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    X[::5, 0] = np.nan
    X[:, 1] = X[:, 1] > 0
    y = (rng.normal(size=40) > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = classifier(kind, (0, 2), "kernel").fit(X, y)
    assert model.predict(X).shape == (40,)


@pytest.mark.slow
def test_a_shrunken_run_resumes_and_does_not_depend_on_jobs(data_dir, tmp_path):
    options = {"repeats": 2, "transductive_repeats": 1, "datasets": ["Labor"]}
    one = reproduce("vovk2014", data_dir, output=tmp_path / "one", n_jobs=1, **options)
    file = tmp_path / "one" / "folds.jsonl"
    kept = file.read_text().splitlines()[:4]
    file.write_text("\n".join(kept) + '\n{"dataset": "Lab')
    options |= {"output": tmp_path / "one", "n_jobs": 2}
    seen = []
    again = reproduce("vovk2014", data_dir, progress=seen.append, **options)
    assert (seen[0].resumed, seen[-1].done, seen[-1].total) == (3, 8, 8)
    assert again.values == one.values
    page = again.to_markdown("figures")
    assert page.startswith("# Vovk & Petej (2014): Venn–Abers predictors\n")
    assert "2/3 is used instead" in page
    assert "∞" in page
    html = (tmp_path / "one" / "index.html").read_text()
    assert "Table 1a" in html
    assert "Proposition 2" in html


def test_values_are_means_over_splits_beside_the_print(data_dir):
    this = Vovk2014(data_dir=data_dir, repeats=2, transductive_repeats=2)
    records = {}
    for task in this.tasks(["Labor"]):
        columns = COLUMNS if task.fold == 0 else ()
        at = 0.2 + 0.1 * task.repeat
        records[task] = {
            c: {"log loss": None if c == "DIR (J)" and task.repeat else at,
                "root mean square error": at}
            for c in columns
            if not c.startswith("VA")
        }  # fmt: skip
        if task.fold:
            name = f"VA ({CLASSIFIERS[task.fold - 1]})"
            records[task] = {name: {"log loss": 2 * at, "root mean square error": at / 2}}
    found = report(this, records, ["Labor"])
    values = {(v.table, v.method, v.measure): v for v in found.values if v.dataset == "Labor"}
    assert values["1", "W (NB)", "log loss"].value == pytest.approx(0.25)
    assert values["1", "W (NB)", "log loss"].published == 1.854
    assert values["1", "VA (NB)", "log loss"].value == pytest.approx(0.5)
    assert values["1", "DIR (J)", "log loss"].value == math.inf
    assert values["1", "DIR (J)", "log loss"].difference == 0
    assert values["3", "VA (J)", "root mean square error rank"].value == 1
    verdicts = {c.claim: c.holds for c in found.conclusions}
    assert not next(h for c, h in verdicts.items() if c.startswith("Direct isotonic"))
    assert not next(h for c, h in verdicts.items() if c.startswith("In log loss the best method"))
    names = [cell.name for cell in found.tables()[-1].rows[0][1]]
    assert names[0] == "VA (J)"
    assert {name.split()[0] for name in names} <= set(METHODS)
