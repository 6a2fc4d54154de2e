"""The predictions that the README shows are those of the commands it names."""

from pathlib import Path

import pytest
from sklearn.datasets import load_breast_cancer

pd = pytest.importorskip("pandas")
pytest.importorskip("typer")
pytest.importorskip("skops")
pytest.importorskip("skrub")
from typer.testing import CliRunner  # noqa: E402

from vennforest.cli import app  # noqa: E402

README = Path(__file__).parents[2] / "README.md"


@pytest.mark.slow
def test_the_first_predictions_of_the_readme(tmp_path):
    data = load_breast_cancer(as_frame=True)
    table = data.frame.drop(columns="target").assign(diagnosis=data.target_names[data.target])
    table[:-100].to_csv(tmp_path / "known.csv", index=False)
    table[-100:].drop(columns="diagnosis").to_csv(tmp_path / "new.csv", index=False)
    model, output = tmp_path / "model.skops", tmp_path / "predictions.csv"
    for command in (
        ["fit", tmp_path / "known.csv", "--target", "diagnosis", "-o", model],
        ["predict", model, tmp_path / "new.csv", "--positive", "malignant", "-o", output],
    ):
        ran = CliRunner().invoke(app, [str(part) for part in command])
        assert ran.exit_code == 0, ran.output
    lines = README.read_text("utf-8").splitlines()
    start = lines.index("| label | p(malignant) | lower(malignant) | upper(malignant) |") + 2
    shown = [[c.strip() for c in line.strip("|").split("|")] for line in lines[start : start + 3]]
    found = pd.read_csv(output).head(3)
    assert [[label, *(f"{v:.3f}" for v in row)] for label, *row in found.to_numpy()] == shown
