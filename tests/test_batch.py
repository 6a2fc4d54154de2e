"""Arrow record batches in and out: the same numbers as the models' own methods, to the last bit."""

import importlib
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import vennforest
from vennforest import CalibratedClassifier
from vennforest._validation import InputError
from vennforest.batch import BatchPredictor
from vennforest.calibrators import METHODS, make_calibrator
from vennforest.calibrators.bounded import has_bounds
from vennforest.tables.open import TableFile
from vennforest.tables.vectorize import table_pipeline

pa = pytest.importorskip("pyarrow")

SEED = 8141
FOREST = RandomForestClassifier(10, max_depth=4, random_state=3)


def frame(n=150, k=2, types=("float64", "float32", "int32")):
    rng = np.random.default_rng(SEED)
    X = pd.DataFrame({f"x{j}": (5 * rng.normal(size=n)).astype(t) for j, t in enumerate(types)})
    noise = rng.normal(scale=3, size=n)
    y = pd.cut(X["x0"] + noise, k, labels=False).to_numpy().copy()
    y[:k] = np.arange(k)
    return X, np.array(["no", "yes", "perhaps"])[y]


def batches_of(X, size=None, **more):
    table = pa.Table.from_pandas(X.assign(**more), preserve_index=False)
    return table.schema, table.to_batches(max_chunksize=size)


def together(predictor, batches):
    return pa.Table.from_batches(list(predictor(batches)), predictor.schema)


def check_same(table, model, p, bounds, same=np.array_equal):
    classes = [str(c) for c in model.classes_.tolist()]
    got = np.column_stack([table[f"p({c})"].to_numpy() for c in classes])
    assert same(got, p)
    best = model.classes_[p.argmax(axis=1)]
    assert table["label"].to_pylist() == best.tolist()
    assert ("lower(no)" in table.column_names) == (bounds is not None)
    if bounds is not None:
        for name, wanted in (("lower", bounds.lower), ("upper", bounds.upper)):
            got = np.column_stack([table[f"{name}({c})"].to_numpy() for c in classes])
            assert same(got, wanted)


MODELS = {
    "oob": {"estimator": FOREST},
    "one draw": {"estimator": FOREST, "subforest": "exchangeable"},
    "folds": {"estimator": FOREST, "calibrate_on": "cv", "cv": 2},
    "holdout": {"estimator": ExtraTreesClassifier(10, random_state=1), "calibrate_on": "holdout"},
    "no bounds": {"estimator": FOREST, "method": "platt"},
    "pipeline": {
        "estimator": make_pipeline(StandardScaler(), LogisticRegression()),
        "cv": 2,
        "method": "platt",
    },
    "table": {"estimator": table_pipeline(RandomForestClassifier(10, random_state=2))},
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("k", [2, 3])
def test_a_classifier_answers_as_it_does_itself(name, k):
    X, y = frame(k=k)
    model = CalibratedClassifier(random_state=0, **MODELS[name]).fit(X, y)
    schema, batches = batches_of(X, 40, number=np.arange(len(X)))
    predictor = BatchPredictor(model, schema, carried=["number"], rows_at_once=31)
    table = together(predictor, batches)
    bounds = None if model.method == "platt" else model.predict_multiprobability(X)
    # Matrix products of other packages round otherwise for other numbers of rows.
    same = np.allclose if name == "pipeline" else np.array_equal
    check_same(table, model, model.predict_proba(X), bounds, same)
    assert table["number"].to_pylist() == list(range(len(X)))


@pytest.mark.parametrize("types", [("float32",) * 3, ("int64",) * 3, ("float64", "int8", "bool")])
def test_columns_without_names_are_taken_in_their_order(types):
    X, y = frame(types=types)
    model = CalibratedClassifier(FOREST, subforest="exchangeable", random_state=0)
    model.fit(X.to_numpy(), y)
    schema, batches = batches_of(X, 40, other=1.0)
    with pytest.raises(InputError, match="columns must name the features, which had no"):
        BatchPredictor(model, schema)
    predictor = BatchPredictor(model, schema, columns=["x0", "x1", "x2"])
    rows, table = X.to_numpy(), together(predictor, batches)
    check_same(table, model, model.predict_proba(rows), model.predict_multiprobability(rows))


def test_columns_in_another_order_and_missing_cells():
    X, y = frame()
    X.loc[::5, "x1"] = np.nan
    model = CalibratedClassifier(FOREST, random_state=0).fit(X, y)
    whole = pa.table({"x2": X["x2"], "y": y, "x1": X["x1"], "x0": X["x0"]})
    null = whole.set_column(2, "x1", pa.array(X["x1"], from_pandas=True))
    assert null["x1"].null_count == 30
    for table in (whole, null):
        predictor = BatchPredictor(model, table.schema)
        got = together(predictor, table.to_batches())
        check_same(got, model, model.predict_proba(X), model.predict_multiprobability(X))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("k", [2, 3])
def test_a_calibrator_answers_as_it_does_itself(method, k):
    rng = np.random.default_rng(SEED)
    scores = rng.dirichlet(np.ones(k), 200)
    y = np.array(["no", "perhaps", "yes"])[[rng.choice(k, p=row) for row in scores]]
    if k == 2:
        y[y == "perhaps"] = "yes"
    model = make_calibrator(method).fit(scores, y)
    names = [f"s{j}" for j in range(k)]
    schema, batches = batches_of(pd.DataFrame(scores, columns=names), 33)
    by_label = dict(zip(model.classes_.tolist(), names, strict=True))
    for columns, values in ((by_label, scores), *([("s1", scores[:, 1])] if k == 2 else [])):
        table = together(BatchPredictor(model, schema, columns=columns), batches)
        has = has_bounds(METHODS[method])
        bounds = model.predict_multiprobability(values) if has else None
        check_same(table, model, model.predict_proba(values), bounds)


@pytest.mark.parametrize(
    ("labels", "kind"),
    [([0, 1], "int64"), ([False, True], "bool"), ([0.0, 2.0], "double"), (["a", "b"], "string")],
)
def test_labels_keep_their_type(labels, kind):
    rng = np.random.default_rng(SEED)
    y = np.array(labels)[rng.integers(0, 2, 50)]
    model = vennforest.VennAbers().fit(rng.random(50), y)
    schema, batches = batches_of(pd.DataFrame({"s": rng.random(9)}))
    predictor = BatchPredictor(model, schema, columns="s")
    assert str(predictor.schema.field("label").type) == kind
    got = together(predictor, batches)["label"].to_pylist()
    assert got == model.predict(batches[0]["s"].to_numpy()).tolist()


def test_no_rows_and_other_types_in_later_batches():
    model = vennforest.VennAbers().fit([0.1, 0.9], [0, 1])
    schema = pa.schema([("s", pa.float64())])
    predictor = BatchPredictor(model, schema, columns="s")
    assert list(predictor([])) == [] == list(predictor([pa.RecordBatch.from_pylist([], schema)]))
    fine = pa.record_batch({"s": pa.array([0, 1], pa.int32())})
    assert next(predictor([fine]))["p(1)"].to_pylist() == model.predict_proba([0, 1])[:, 1].tolist()
    text = pa.record_batch({"s": ["0.25", " 1e-1"]})
    expected = model.predict_proba([0.25, 0.1])[:, 1].tolist()
    assert next(predictor([text]))["p(1)"].to_pylist() == expected
    with pytest.raises(InputError, match=r"'s' must contain numbers, got 'a' in row 3 of part"):
        list(predictor([fine, pa.record_batch({"s": ["a"]})], "partition 4"))
    with pytest.raises(InputError, match="there is no column 's' in partition 4"):
        list(predictor([pa.record_batch({"t": [0.1]})], "partition 4"))


@pytest.mark.parametrize(
    ("value", "shown"), [(np.nan, "NaN"), (None, "NaN or nothing"), (np.inf, "inf")]
)
def test_a_score_that_is_none_is_named_by_its_row(value, shown):
    model = vennforest.VennAbers().fit([0.1, 0.9], [0, 1])
    predictor = BatchPredictor(model, pa.schema([("s", pa.float64())]), columns="s", rows_at_once=4)
    good = pa.record_batch({"s": pa.array(np.full(10, 0.3))})
    bad = pa.record_batch({"s": pa.array([0.1] * 6 + [value, 0.2])})
    with pytest.raises(InputError, match=rf"got {shown}.* in row 17 of partition 2"):
        list(predictor([good, bad], "partition 2"))


def test_a_text_file_is_read_with_the_models_markers_and_decimal_sign(tmp_path):
    X, y = frame(types=("float64", "float64"))
    X.iloc[:40] = -999.0
    table = table_pipeline(RandomForestClassifier(10, random_state=2), missing=["n.d.", "-999"])
    model = CalibratedClassifier(table, random_state=0).fit(X, y)
    path = tmp_path / "t.csv"
    cells = X.map(lambda value: f"{value!r}".replace(".", ","))
    cells.iloc[:20] = " n.d."
    cells.assign(id=[f"0{i},5" for i in range(150)]).to_csv(path, sep=";", index=False)
    file = TableFile(path)
    predictor = BatchPredictor(model, file.schema, carried=["id", "x0"])
    rows = pa.Table.from_batches(list(predictor.over(file)))
    assert rows["p(yes)"].to_pylist() == model.predict_proba(X)[:, 1].tolist()
    assert rows["id"][3].as_py() == "03,5" and rows["x0"][0].as_py() == " n.d."
    cells.loc[100, "x1"] = "1,5 mm"
    cells.to_csv(path, sep=";", index=False)
    with pytest.raises(InputError, match=r"'x1' must contain numbers, got '1,5 mm' in row 101 of"):
        list(BatchPredictor(model, file.schema).over(TableFile(path)))


def test_columns_of_the_label():
    X, y = frame(k=3)
    model = CalibratedClassifier(FOREST, random_state=0).fit(X, y)
    schema, batches = batches_of(X)
    whole = together(BatchPredictor(model, schema), batches).to_pandas()
    predictor = BatchPredictor(model, schema, of_label=True)
    table = together(predictor, batches).to_pandas()
    of_label = ["probability", "lower", "upper", "low95", "high95"]
    assert list(table)[:6] == ["label", *of_label]
    for name, prefix in zip(of_label, ("p", "lower", "upper", "low95", "high95"), strict=True):
        expected = [row[f"{prefix}({row['label']})"] for row in whole.to_dict("records")]
        np.testing.assert_array_equal(table[name], expected)


def test_what_the_model_refuses_is_named_by_rows():
    X, y = frame()
    model = CalibratedClassifier(LogisticRegression(), calibrate_on="cv", cv=2).fit(X, y)
    schema, batches = batches_of(X.assign(x0=np.where(np.arange(len(X)) == 60, np.nan, X["x0"])))
    predictor = BatchPredictor(model, schema, rows_at_once=50)
    with pytest.raises(InputError, match=r"refuses rows 51 to 100 of the table: .*NaN"):
        list(predictor(batches))


def test_columns_are_checked_before_batches_come():
    X, y = frame()
    model = CalibratedClassifier(FOREST, random_state=0).fit(X, y)
    schema, _ = batches_of(X, label="a", x3="b")
    short = schema.remove(schema.get_field_index("x1"))
    with pytest.raises(InputError, match="the table lacks the column 'x1' of training"):
        BatchPredictor(model, short)
    with pytest.raises(InputError, match=r"carried must name columns once, apart .* got 'label'"):
        BatchPredictor(model, schema, carried=["label"])
    with pytest.raises(InputError, match="there is no column 'idd'"):
        BatchPredictor(model, schema, carried=["idd"])
    with pytest.raises(InputError, match="columns must be those of training"):
        BatchPredictor(model, schema, columns=["x1", "x0", "x2"])
    calibrator = vennforest.VennAbers().fit([0.1, 0.9], [0, 1])
    with pytest.raises(InputError, match=r"columns must name the scores, .*, got none"):
        BatchPredictor(calibrator, schema)
    with pytest.raises(InputError, match=r"a column for each of 2 classes .* or that of the sec"):
        BatchPredictor(calibrator, schema, columns=["x0", "x1", "x2"])


def test_without_pyarrow_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for name in ("tables", "batch", "engines"):
        monkeypatch.delitem(sys.modules, f"vennforest.{name}", raising=False)
    for name in ("batch", "engines"):
        with pytest.raises(ImportError, match=r"need pyarrow: install it with pip install 'vennf"):
            importlib.import_module(f"vennforest.{name}")


@pytest.mark.parametrize("name", ["oob", "folds", "no bounds"])
def test_confidence_intervals_are_written(name):
    X, y = frame()
    model = CalibratedClassifier(**MODELS[name], random_state=3).fit(X, y)
    schema, batches = batches_of(X, 40)
    every = BatchPredictor(model, schema)
    table = together(every, batches)
    bounds = None if name == "no bounds" else model.predict_multiprobability(X)
    check_same(table, model, model.predict_proba(X), bounds)
    known = model.predict_confidence(X)
    for j, c in enumerate(model.classes_):
        assert np.array_equal(table[f"low95({c})"].to_numpy(), known.lower[:, j])
        assert np.array_equal(table[f"high95({c})"].to_numpy(), known.upper[:, j])
    some = BatchPredictor(model, schema, answers="confidence").schema.names
    assert some == ["label", "low95(no)", "high95(no)", "low95(yes)", "high95(yes)"]
    at = BatchPredictor(model, schema, answers="confidence", level=0.9)
    known, table = model.predict_confidence(X, 0.9), together(at, batches)
    for j, c in enumerate(model.classes_):
        assert np.array_equal(table[f"low90({c})"].to_numpy(), known.lower[:, j])
    with pytest.raises(InputError, match=r"answers must be some of .*p,.* got 'q'"):
        BatchPredictor(model, schema, answers="p,q")


def test_scores_by_name_and_the_output_of_a_calibrator():
    rng = np.random.default_rng(SEED)
    s = rng.random(60)
    model = vennforest.VennAbers().fit(s, np.where(rng.random(60) < s, "yes", "no"))
    schema, batches = batches_of(pd.DataFrame({"p(no)": 1 - s, "risk": s}))
    of_first = BatchPredictor(model, schema, columns="p(no)")
    expected = model.predict_proba(1 - (1 - s))[:, 1]
    assert np.array_equal(together(of_first, batches)["p(yes)"].to_numpy(), expected)
    with pytest.raises(InputError, match=r"of which class each column is, .* a dict, such as"):
        BatchPredictor(model, schema, columns=["risk", "p(no)"])
    with pytest.raises(InputError, match="seem to be calibrated already"):
        BatchPredictor(model, of_first.schema, columns="p(yes)")


@pytest.mark.parametrize("kind", ["far", "probabilities"])
@pytest.mark.parametrize("size", [20, 60])
def test_new_scores_are_warned_of_once_however_rows_are_divided(kind, size):
    rng = np.random.default_rng(SEED)
    z = rng.normal(0, 3, 200)
    model = vennforest.VennAbers(on="logit").fit(z, rng.random(200) < 1 / (1 + np.exp(-z)))
    new = np.linspace(0, 1, 60) if kind == "probabilities" else np.append(np.zeros(57), [90] * 3)
    schema, batches = batches_of(pd.DataFrame({"s": new}), size)
    expected = "all 60 rows" if kind == "probabilities" else "5.00% of the scores"
    with pytest.warns(match=expected) as caught:
        together(BatchPredictor(model, schema, columns="s"), batches)
    assert len(caught) == 1
