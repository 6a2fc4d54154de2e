"""Models are logged to MLflow as any model of scikit-learn."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

from vennforest import CalibratedClassifier

mlflow = pytest.importorskip("mlflow")
pytest.importorskip("mlflow.sklearn")


def test_a_logged_model_predicts_the_same(tmp_path):
    X, y = load_iris(return_X_y=True)
    model = CalibratedClassifier(RandomForestClassifier(5), random_state=0).fit(X, y)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
    mlflow.create_experiment("test", artifact_location=(tmp_path / "artifacts").as_uri())
    mlflow.set_experiment("test")
    with mlflow.start_run():
        logged = mlflow.sklearn.log_model(model, name="model", serialization_format="cloudpickle")
    loaded = mlflow.sklearn.load_model(logged.model_uri)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
