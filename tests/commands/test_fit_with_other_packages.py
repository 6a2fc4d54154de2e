"""``fit`` with boosting packages, and with summaries that fail."""

import sys
from types import ModuleType

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
for extra in ("typer", "skops", "pyarrow", "skrub"):
    pytest.importorskip(extra)

from sklearn.tree import DecisionTreeClassifier  # noqa: E402

import vennforest  # noqa: E402
from vennforest.cli import main  # noqa: E402


class XGBClassifier(DecisionTreeClassifier):
    """Take classes numbered from 0 only, as XGBoost does."""

    def __init__(self, n_estimators=1, random_state=None, n_jobs=None, max_depth=2):
        super().__init__(random_state=random_state, max_depth=max_depth)
        self.n_estimators, self.n_jobs = n_estimators, n_jobs

    def fit(self, X, y, sample_weight=None):
        if np.unique(y).tolist() != list(range(len(np.unique(y)))):
            raise ValueError(f"Invalid classes inferred from unique values of `y`, got {y[:2]}")
        return super().fit(X, y, sample_weight)


XGBClassifier.__module__ = "xgboost.sklearn"


@pytest.fixture
def packages(monkeypatch):
    xgboost = ModuleType("xgboost")
    xgboost.sklearn = ModuleType("xgboost.sklearn")
    xgboost.XGBClassifier = xgboost.sklearn.XGBClassifier = XGBClassifier
    for name, module in {"xgboost": xgboost, "xgboost.sklearn": xgboost.sklearn}.items():
        monkeypatch.setitem(sys.modules, name, module)


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=120)
    frame = pd.DataFrame({"x": x, "y": np.where(x + rng.normal(size=120) > 0, "yes", "no")})
    frame.to_csv(tmp_path / "t.csv", index=False)
    return tmp_path / "t.csv"


def run(*words):
    return main([*map(str, words)])


def test_xgboost_takes_labels_of_text(packages, table, tmp_path, capsys):
    model, out = tmp_path / "m.skops", tmp_path / "p.csv"
    assert run("fit", table, "-t", "y", "-o", model, "--estimator", "xgboost", "--jobs", 1) == 0
    trust = ("--trust", "xgboost.sklearn.XGBClassifier")
    assert run("predict", model, table, "-o", out, *trust) == 0
    predicted = pd.read_csv(out)
    assert set(predicted["label"]) == {"no", "yes"}
    labels = pd.read_csv(table)["y"]
    assert (predicted["label"] == labels).mean() > 0.6
    assert predicted["p(yes)"][labels == "yes"].mean() > predicted["p(yes)"][labels == "no"].mean()


def test_a_summary_that_fails_does_not_fail_the_command(table, tmp_path, capsys, monkeypatch):
    def broken(*_):
        raise ValueError("scores must be in [0, 1], got 1.0000000000000002")

    monkeypatch.setattr("vennforest.commands.fit.seed_sentence", broken)
    assert run("fit", table, "-t", "y", "-o", tmp_path / "m.skops", "--trees", 5) == 0
    assert "Wrote " in capsys.readouterr().err
    assert vennforest.load(tmp_path / "m.skops").classes_.tolist() == ["no", "yes"]
