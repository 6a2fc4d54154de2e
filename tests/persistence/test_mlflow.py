"""Models in MLflow: written without pickle, and read by our loader alone."""

import numpy as np
import pytest
import sklearn
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

mlflow = pytest.importorskip("mlflow")
pd = pytest.importorskip("pandas")
pytest.importorskip("skops")

from vennforest import CalibratedClassifier, VennAbers  # noqa: E402
from vennforest._validation import InputError  # noqa: E402
from vennforest.persistence import mlflow_flavour  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*type hint.*:UserWarning")


@pytest.fixture(scope="module")
def model():
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    forest = RandomForestClassifier(20, random_state=0)
    return CalibratedClassifier(forest, random_state=0).fit(X, names), X


def check(loaded, model, X):
    found = loaded.predict(X)
    X = X.get("score", X)
    bounds = model.predict_multiprobability(X)
    assert found["label"].tolist() == model.predict(X).tolist()
    labels = model.classes_.tolist()
    p = model.predict_proba(X)
    np.testing.assert_array_equal(found[[f"p({c})" for c in labels]], p)
    np.testing.assert_array_equal(found[[f"lower({c})" for c in labels]], bounds.lower)
    np.testing.assert_array_equal(found[[f"upper({c})" for c in labels]], bounds.upper)
    intervals = model.predict_confidence(X)
    np.testing.assert_array_equal(found[[f"low95({c})" for c in labels]], intervals.lower)
    np.testing.assert_array_equal(found[[f"high95({c})" for c in labels]], intervals.upper)


def test_what_is_saved_is_loaded(model, tmp_path):
    fitted, X = model
    path = tmp_path / "model"
    mlflow_flavour.save_model(fitted, str(path))
    files = {one.name for one in path.rglob("*") if one.is_file()}
    assert "model.skops" in files
    assert not any(name.endswith((".pkl", ".pickle")) for name in files)
    check(mlflow.pyfunc.load_model(str(path)), fitted, X)


def test_what_is_logged_is_loaded(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fitted, X = model
    pytest.importorskip("sqlalchemy")
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/runs.db")
    with mlflow.start_run():
        info = mlflow_flavour.log_model(fitted, "model")
    check(mlflow.pyfunc.load_model(info.model_uri), fitted, X)


def test_a_forged_file_is_refused(model, tmp_path):
    fitted, _ = model
    path = tmp_path / "model"
    mlflow_flavour.save_model(fitted, str(path))
    (path / "data" / "model.skops").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    with pytest.raises(InputError):
        mlflow.pyfunc.load_model(str(path))


def test_a_calibrator_is_logged_with_all_versions(tmp_path):
    path, scores = tmp_path / "model", pd.DataFrame({"score": [0.1, 0.4, 0.6, 0.9]})
    model = VennAbers().fit(scores["score"], [0, 1, 0, 1])
    mlflow_flavour.save_model(model, str(path), input_example=scores)
    loaded = mlflow.pyfunc.load_model(str(path))
    check(loaded, model, scores)
    assert loaded.metadata.signature.inputs.input_names() == ["score"]
    asked = (path / "requirements.txt").read_text()
    for package in (sklearn, np):
        assert f"=={package.__version__}" in asked
