"""The command ``calibrate``: scores of any system."""

import json

import numpy as np
import pandas as pd
import pytest

from commands.calibrating import apply, calibrate, calibrator_in, draw_probabilities, read_csv
from report.reading import named_in, numbers_in
from support.commands import refused, run
from vennforest import VennAbers
from vennforest.calibrators import METHODS


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "arrow"])
def test_what_is_written_is_the_fit_and_its_answers(scored, suffix):
    frame, folder = scored
    data = folder / f"scores.{suffix}"
    if suffix in ("parquet", "arrow"):
        (frame.to_parquet if suffix == "parquet" else frame.to_feather)(data)
    else:
        frame.to_csv(data, index=False, sep="\t" if suffix == "tsv" else ",")
    assert run(*calibrate(folder, data=data.name)) == 0
    fitted = VennAbers("pooled").fit(frame["s"], frame["y"])
    read = calibrator_in(folder)
    new = np.linspace(0, 1, 99)
    np.testing.assert_allclose(
        read.predict_proba(new), fitted.predict_proba(new), rtol=0, atol=1e-12
    )
    out = folder / ("out.parquet" if suffix == "arrow" else "out.csv")
    assert run(*apply(folder, data=data.name, output=out.name)) == 0
    found = pd.read_parquet(out) if out.suffix == ".parquet" else read_csv(out)
    parts = ("p", "lower", "upper", "low95", "high95")
    answers = [f"{part}({c})" for c in ("no", "yes") for part in parts]
    assert found.columns.tolist() == ["id", "s", "y", "label", *answers]
    assert found["id"].tolist() == frame["id"].tolist()
    bounds = read.predict_multiprobability(frame["s"])
    p = read.predict_proba(frame["s"])
    known = read.predict_confidence(frame["s"])
    expected = (p, bounds.lower, bounds.upper, known.lower, known.upper)
    for j, c in enumerate(("no", "yes")):
        for part, values in zip(parts, expected, strict=True):
            np.testing.assert_array_equal(found[f"{part}({c})"], values[:, j])
    assert found["label"].tolist() == read.classes_[p.argmax(axis=1)].tolist()


@pytest.mark.parametrize("method", list(METHODS))
def test_every_method(scored, method, capsys):
    frame, folder = scored
    assert run(*calibrate(folder, "--method", method)) == 0
    assert run(*apply(folder)) == 0
    answers = read_csv(folder / "out.csv")
    calibrator = VennAbers("pooled") if method == "venn-abers" else METHODS[method]()
    expected = calibrator.fit(frame["s"], frame["y"]).predict_proba(frame["s"])[:, 1]
    np.testing.assert_allclose(answers["p(yes)"], expected, rtol=0, atol=1e-12)
    assert ("low95(yes)" in answers) == (method == "venn-abers")
    if method != "venn-abers":
        message = "got 'confidence': a "
        assert message in refused(capsys, *apply(folder, "--columns", "p,confidence"))


@pytest.mark.parametrize(("cells", "classes", "weight"), [
    (["no", "yes"], ["no", "yes"], "w"),
    (["9", "10"], [9, 10], None),
    (["1", "01", "2", "+2", "3"], [1, 1, 2, 2, 3], "half"),
])  # fmt: skip
def test_files_of_a_folder_are_calibrated_and_applied_as_their_rows(
    tmp_path, capsys, cells, classes, weight
):
    rng = np.random.default_rng(10)
    p = rng.dirichlet(np.ones(len(set(classes))), 300).round(2)
    scores = p[:, 1] if p.shape[1] == 2 else p
    cell_of_row = np.append(np.arange(len(cells)), rng.integers(0, len(cells), 300 - len(cells)))
    frame = pd.DataFrame(scores).add_prefix("s").assign(w=rng.integers(0, 4, 300), i=range(300))
    names = [name for name in frame if name.startswith("s")]
    frame = frame.assign(half=frame["w"] / 2, y=[cells[i] for i in cell_of_row])
    frame.loc[::17, "y"] = " NA"
    (tmp_path / "table").mkdir()
    for i, rows in enumerate(np.array_split(np.arange(300), 3)):
        frame.iloc[rows].to_parquet(tmp_path / "table" / f"{i}.parquet", index=False)
    (tmp_path / "table" / "_metadata.parquet").write_bytes(b"no table")
    entries = names if len(names) == 1 else [f"{c}={n}" for c, n in enumerate(names, 1)][::-1]
    options = [part for name in entries for part in ("-s", name)]
    options += ["--weight", weight] if weight else []
    assert run(*calibrate(tmp_path, *options, "--json", data="table")) == 0
    said = capsys.readouterr()
    is_labelled = np.arange(300) % 17 > 0
    assert (~is_labelled).sum() in numbers_in(said.err)
    y = np.array(classes)[cell_of_row]
    expected = VennAbers("pooled").fit(
        scores[is_labelled],
        y[is_labelled],
        sample_weight=frame[weight][is_labelled] if weight else None,
    )
    labels = expected.classes_.tolist()  # numbers in the order of numbers
    assert calibrator_in(tmp_path).classes_.tolist() == labels
    assert list(json.loads(said.out)["classes"]) == [*map(str, labels)]
    assert run(*apply(tmp_path, data="table", output="out.csv")) == 0
    answers = read_csv(tmp_path / "out.csv")
    assert answers["i"].tolist() == list(range(300))
    p = answers[[f"p({label})" for label in labels]]
    # The files' counts add up in another order, and Newton's last step follows.
    np.testing.assert_allclose(p, expected.predict_proba(scores), rtol=0, atol=1e-9)


FALLING = "".join(f"{i},{'ab'[(i < 50) != (i % 5 == 0)]}\n" for i in range(100))
ERRORS = [
    (f"s,y\n{FALLING}", [], "give --increasing no if high scores mean that 'b' is less likely"),
    ("s,y\n0.1,a\n,b\n", [], "column 's' must contain finite scores, got NaN or nothing in row 2"),
    ("s,y\n0.1,a\n0.2,a\n", [], "must have two classes or more, got 'a' alone"),
    ("s,y\n0.1,\n0.2,\n", [], "the target 'y' is missing in every row"),
    ("s,y\n0.1,a\n1.2,b\n", ["--method", "beta"], "scores must lie in [0, 1]"),
    ("s,y\n0.1,a\n0.2,b\n", ["--method", "best"], "--method must be one of"),
    ("t,y\n0.1,a\n0.2,b\n", [], "there is no column 's' in"),
    (
        "s,y\n0.1,a\n0.2,b\n0.3,c\n",
        [],
        "must name the scores, a column for each of 3 classes ('a', 'b', 'c'), got s",
    ),
]


@pytest.mark.parametrize(("text", "more", "message"), ERRORS)
def test_what_cannot_be_calibrated(tmp_path, capsys, text, more, message):
    (tmp_path / "scores.csv").write_text(text)
    assert message in refused(capsys, *calibrate(tmp_path, *more))
    assert not (tmp_path / "c.json").exists()


@pytest.mark.parametrize("k", [2, 3])
def test_a_wrong_score_has_no_row_since_distinct_scores_are_read(tmp_path, capsys, k):
    frame, _ = draw_probabilities(k)
    frame.iloc[200, :k] = 1.5 if k == 2 else 0.25
    frame.to_csv(tmp_path / "scores.csv", index=False)
    columns = ("p(yes)",) if k == 2 else ("p(a)", "p(b)", "p(c)")
    options = [part for name in columns for part in ("-s", name)]
    message = refused(capsys, *calibrate(tmp_path, *options, "--on", "probability"))
    assert numbers_in(message) == ([0, 1, 1.5] if k == 2 else [1, 0.75])


@pytest.mark.parametrize("named", [True, False])
def test_columns_of_scores_are_of_the_classes_that_their_names_say(tmp_path, capsys, named):
    frame, labels = draw_probabilities(3)
    if not named:
        frame.columns = ["u", "v", "w", "y"]
    names = list(frame)[:3]
    frame.to_csv(tmp_path / "scores.csv", index=False)
    entries = names if named else [f"{c}={n}" for c, n in zip(labels, names, strict=True)]
    options = [word for i in (2, 0, 1) for word in ("-s", entries[i])]
    if not named:
        wrong = refused(capsys, *calibrate(tmp_path, "-s", "u", "-s", "v", "-s", "w"))
        assert {"--score", "a=u"} <= named_in(wrong)
    assert run(*calibrate(tmp_path, *options)) == 0
    expected = VennAbers("pooled").fit(frame[names], frame["y"]).predict_proba(frame[names])
    for more in ((), options):
        assert run(*apply(tmp_path, "--id", "y", *more)) == 0
        out = read_csv(tmp_path / "out.csv")[[f"p({c})" for c in labels]]
        np.testing.assert_allclose(out, expected, atol=1e-12)


@pytest.mark.parametrize("entries", [
    ["p(yes)", "p(no)"], ["p(no)", "p(yes)"], ["p(no)"], ["no=p(no)"], ["p(yes)"]
])  # fmt: skip
def test_the_probability_of_the_first_of_two_classes_is_subtracted_from_1(
    tmp_path, capsys, entries
):
    frame, _ = draw_probabilities()
    frame.to_csv(tmp_path / "scores.csv", index=False)
    options = [word for entry in entries for word in ("-s", entry)]
    assert run(*calibrate(tmp_path, *options)) == 0
    label = "no" if len(entries) == 1 and "no" in entries[0] else "yes"
    assert named_in(capsys.readouterr().err.splitlines()[0]) == {label}
    assert run(*apply(tmp_path, "--id", "y")) == 0
    expected = VennAbers("pooled").fit(frame["p(yes)"], frame["y"])
    p = expected.predict_proba(frame["p(yes)"])[:, 1]
    np.testing.assert_allclose(read_csv(tmp_path / "out.csv")["p(yes)"], p, atol=1e-9)


def test_scores_of_the_first_class_that_are_no_probabilities_are_refused(tmp_path, capsys):
    frame, _ = draw_probabilities()
    frame.assign(no=5 * frame["p(no)"]).to_csv(tmp_path / "scores.csv", index=False)
    message = refused(capsys, *calibrate(tmp_path, "-s", "no"))
    assert all(part in message for part in ("its probabilities, in [0, 1]", "'yes=no'"))
    twice = refused(capsys, *calibrate(tmp_path, "-s", "p(no)", "--increasing", "no"))
    assert {"--increasing", "p(no)", "no"} <= named_in(twice)
