"""Models in MLflow: a pyfunc that is read by our loader of model files, which runs nothing."""

from __future__ import annotations

import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vennforest._answers import Answers
from vennforest._messages import needed
from vennforest._program import __version__
from vennforest.calibrators.core.interface import Calibrator
from vennforest.persistence.model_file import load, save

if TYPE_CHECKING:
    import pandas as pd

PINNED = ("scikit-learn", "numpy", "scipy", "numba", "skops", "pandas")
"""Whose versions a logged model asks for, beside ours: those that fitted and wrote it."""

MODEL = "model.skops"
"""The file within a model's folder."""


def save_model(model: Any, path: str, **options: Any) -> None:
    """Write a fitted model to a folder, as ``mlflow.pyfunc.save_model`` does.

    Parameters
    ----------
    model : CalibratedClassifier or Calibrator
        The folder contains the file that ``vennforest.save`` writes, and no pickle. A calibrator is
        asked about a table of scores.
    path : str
        The folder, which must not exist.
    **options
        Of ``mlflow.pyfunc.save_model``, such as ``input_example``, from which the signature is
        found unless it is given, too.
    """
    pyfunc = needed("mlflow.pyfunc", "models in MLflow", "mlflow")
    with tempfile.TemporaryDirectory() as folder:
        pyfunc.save_model(path=path, **_content(model, folder, options))


def log_model(model: Any, name: str, **options: Any) -> Any:
    """Log a fitted model to the active run, as ``mlflow.pyfunc.log_model`` does, and return that.

    Arguments are those of `save_model`; ``name`` is that of the model in the run.
    """
    pyfunc = needed("mlflow.pyfunc", "models in MLflow", "mlflow")
    with tempfile.TemporaryDirectory() as folder:
        return pyfunc.log_model(name=name, **_content(model, folder, options))


def _content(model: Any, folder: str, options: dict[str, Any]) -> dict[str, Any]:
    example = options.get("input_example")
    if example is not None and "signature" not in options and not isinstance(example, tuple):
        from mlflow.models import infer_signature

        answer = Predictor(model).predict(example)
        options = {**options, "signature": infer_signature(example, answer)}
    save(model, Path(folder) / MODEL)
    return {
        "loader_module": __name__,
        "data_path": str(Path(folder) / MODEL),
        "pip_requirements": [
            f"vennforest[report,save]=={__version__}",
            *(f"{name}=={version(name)}" for name in PINNED),
        ],
        **options,
    }


class Predictor:
    """What MLflow calls: rows in, probabilities with bounds and confidence intervals out."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def predict(self, data: Any, params: dict[str, Any] | None = None) -> pd.DataFrame:
        """Return the columns that ``vennforest.BatchPredictor`` writes, for rows (n, d)."""
        import pyarrow as pa

        rows: Any = data
        if isinstance(self.model, Calibrator):
            rows = np.asarray(data, np.float64)
            rows = rows[:, 0] if rows.ndim == 2 and rows.shape[1] == 1 else rows
        elif not hasattr(self.model, "feature_names_in_"):
            rows = np.asarray(data)
        answers = Answers(self.model)
        arrays = answers.arrays(answers.predict(rows))
        written = pa.Table.from_arrays(arrays, schema=pa.schema(answers.fields))
        found: pd.DataFrame = written.to_pandas()
        found.index = getattr(data, "index", found.index)
        return found


def _load_pyfunc(path: str) -> Predictor:
    """Return the model of a folder or file; MLflow calls this by its name."""
    given = Path(path)
    return Predictor(load(given / MODEL if given.is_dir() else given))
