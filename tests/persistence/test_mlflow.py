"""Models are logged to MLflow as any model of scikit-learn."""

import re
from pathlib import Path

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
    page = (Path(__file__).parents[2] / "docs/how-to/deploy.md").read_text("utf-8")
    (lines,) = re.findall(r"^```\n(logged = .*?)^```$", page, re.M | re.S)
    names = {"mlflow": mlflow, "model": model, "X": X}
    with mlflow.start_run():
        exec(lines, names)
    np.testing.assert_array_equal(names["p"], model.predict_proba(X))
