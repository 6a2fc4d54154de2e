"""A calibrating stage behind classifiers of MLlib, in local mode."""

import numpy as np
import pandas as pd
import pytest

from support.engine_data import CELLS
from vennforest._validation import InputError
from vennforest.calibrators import Calibrator
from vennforest.calibrators.core.interface import make_calibrator

pytestmark = pytest.mark.slow  # a session and its workers take longer than all else
pytest.importorskip("pyspark")

from pyspark.ml import Pipeline, PipelineModel  # noqa: E402
from pyspark.ml.classification import RandomForestClassifier  # noqa: E402
from pyspark.ml.feature import VectorAssembler  # noqa: E402
from pyspark.ml.linalg import Vectors  # noqa: E402

from vennforest.engines.spark_ml import (  # noqa: E402
    ProbabilityCalibrator,
    ProbabilityCalibratorModel,
)

NAMES = ["u", "v", "w"]


def draw(k, n=400, seed=20261129):
    """Return features, labels 0.0 to k - 1, and opposite weights of training and calibration."""
    rng = np.random.default_rng([seed, k])
    frame = pd.DataFrame(rng.normal(size=(n, 3)).round(3), columns=NAMES)
    cuts = np.linspace(-0.8, 0.8, k + 1)[1:-1]
    frame["label"] = np.digitize(frame["u"] + rng.normal(size=n), cuts).astype(float)
    frame["train"] = (np.arange(n) % 2).astype(float)
    return frame.assign(calibrate=1 - frame["train"])


def forest(**options):
    return [
        VectorAssembler(inputCols=NAMES, outputCol="features"),
        RandomForestClassifier(numTrees=10, maxDepth=4, seed=3, **options),
    ]


def vectors(frame, name):
    return np.stack([one.toArray() for one in frame[name]])


def expected(method, scores, y, new, weight=None):
    """Return what the library's own calibrator says, fitted to all rows in memory."""
    k = scores.shape[1]
    vectors_kept = k > 2 and method == "temperature"
    put = (lambda s: s) if vectors_kept else CELLS
    calibrator = make_calibrator(method)
    classes = np.arange(float(k))
    calibrator.fit(put(scores), y, sample_weight=weight, classes=classes)
    found = {"p": calibrator.predict_proba(put(new))}
    if method == "venn-abers":
        bounds = calibrator.predict_multiprobability(put(new))
        intervals = calibrator.predict_confidence(put(new))
        found |= {"lower": bounds.lower, "upper": bounds.upper}
        found |= {"low95": intervals.lower, "high95": intervals.upper}
    return found


@pytest.mark.parametrize(
    ("k", "method"), [(2, "venn-abers"), (3, "venn-abers"), (2, "platt"), (3, "temperature")]
)
def test_behind_a_forest_it_is_the_calibrator_of_the_library(spark, k, method):
    frame = draw(k)
    training, rest = frame[frame["train"] == 1], frame[frame["train"] == 0]
    fitted = Pipeline(stages=forest()).fit(spark.createDataFrame(training))
    stages = [*fitted.stages, ProbabilityCalibrator(heldOut=True, method=method)]
    model = Pipeline(stages=stages).fit(spark.createDataFrame(rest))
    scores = vectors(fitted.transform(spark.createDataFrame(rest)).toPandas(), "probability")
    found = model.transform(spark.createDataFrame(frame)).toPandas()
    new = vectors(found, "probability")
    wanted = expected(method, scores, rest["label"].to_numpy(), new)
    columns = [name for name in found if name.startswith("calibrated_")]
    assert columns == [f"calibrated_{part}" for part in wanted]
    for part, values in wanted.items():
        given = vectors(found, f"calibrated_{part}")
        np.testing.assert_allclose(given, values, rtol=0, atol=1e-9, err_msg=part)


def test_in_one_pipeline_by_opposite_weights(spark, tmp_path):
    """Labels of rows of weight 0 do not move MLlib's forest, those of training no calibrator."""
    frame = draw(3)
    stage = ProbabilityCalibrator(heldOut=True, weightCol="calibrate", outputPrefix="c ")
    pipeline = Pipeline(stages=[*forest(weightCol="train"), stage])
    given = spark.createDataFrame(frame)
    model = pipeline.fit(given)
    found = model.transform(given).toPandas()
    y = frame["label"].where(frame["train"] == 1, 0.0)
    flipped = Pipeline(stages=forest(weightCol="train")).fit(
        spark.createDataFrame(frame.assign(label=y))
    )
    scores = vectors(flipped.transform(given).toPandas(), "probability")
    assert np.array_equal(scores, vectors(found, "probability"))
    wanted = expected("venn-abers", scores, frame["label"], scores, frame["calibrate"])
    assert np.abs(vectors(found, "c p") - wanted["p"]).max() < 1e-9

    pipeline.write().overwrite().save(str(tmp_path / "pipeline"))
    again = Pipeline.load(str(tmp_path / "pipeline")).getStages()[-1]
    assert again.uid == stage.uid
    assert again.extractParamMap() == stage.extractParamMap()
    for _ in range(2):
        model.write().overwrite().save(str(tmp_path / "model"))
    read = PipelineModel.load(str(tmp_path / "model"))
    assert read.stages[-1].uid == stage.uid
    assert read.transform(given).toPandas().equals(found)


def test_a_changed_file_is_refused(spark, tmp_path):
    given = spark.createDataFrame(
        [(Vectors.dense([1 - p, p]), float(p > 0.4)) for p in np.linspace(0, 1, 20).tolist()],
        ["probability", "label"],
    )
    model = ProbabilityCalibrator(heldOut=True, method="platt").fit(given)
    document = model.calibrator.to_json()
    assert Calibrator.from_json(document).to_json() == document
    model.save(str(tmp_path / "model"))
    (path,) = (tmp_path / "model" / "metadata").glob("part-*")
    text = path.read_text()
    assert text.count('"slope"') > 0
    path.write_text(text.replace('"slope"', '"slop"'))
    (path.parent / f".{path.name}.crc").unlink()
    with pytest.raises(InputError, match="the calibrator is damaged"):
        ProbabilityCalibratorModel.load(str(tmp_path / "model"))


def test_what_is_refused(spark):
    from pyspark.errors import PySparkException

    rows = [(Vectors.dense([0.4, 0.6]), 0.0, 0.6), (Vectors.sparse(2, [1], [1.0]), 1.0, 1.0)] * 9
    names = ["probability", "label", "p"]
    given = spark.createDataFrame(rows, names)
    stage = ProbabilityCalibrator(heldOut=True)
    fitted = stage.fit(given)
    with pytest.raises(InputError, match="there is no column 'lable' in the data frame: did you"):
        stage.copy({stage.labelCol: "lable"}).fit(given)
    with pytest.raises(InputError, match="column 'p' must contain MLlib's vectors, got double"):
        ProbabilityCalibrator(heldOut=True, probabilityCol="p").fit(given)
    with pytest.raises(InputError, match="must contain at least one row, got none"):
        stage.fit(given.limit(0))
    for odd in (None, Vectors.dense([0.2, 0.3, 0.5]), Vectors.dense([0.2, np.nan])):
        some = spark.createDataFrame([*rows, (odd, 1.0, 0.5)], given.schema)
        said = r"'probability\[\d\]' must contain finite scores, got NaN or nothing in row \d"
        with pytest.raises(InputError, match=said):
            stage.fit(some)
        with pytest.raises(PySparkException, match=said):
            fitted.transform(some).collect()
    some = spark.createDataFrame([*rows, (rows[0][0], 2.0, 0.5)], given.schema)
    with pytest.raises(InputError, match=r"'label' must contain labels of classes"):
        stage.fit(some)


def test_columns_of_the_user_stay(spark):
    """Neither the names that are written nor the one that is used on the way are taken."""
    rows = [(Vectors.dense([1 - p, p]), float(p > 0.4), p) for p in np.linspace(0, 1, 20).tolist()]
    given = spark.createDataFrame(rows, ["probability", "label", "mine"])
    model = ProbabilityCalibrator(heldOut=True).fit(given)
    for name in ("calibrated_p", "calibrated_high95", "Calibrated_P"):
        with pytest.raises(InputError, match=r"no column 'calibrated_.*rename it, or set"):
            model.transform(given.withColumnRenamed("mine", name))
        other = model.copy({model.outputPrefix: "again_"})
        assert name in other.transform(given.withColumnRenamed("mine", name)).columns
    with pytest.raises(InputError, match="must have no column 'calibrated_p'"):
        model.transform(model.transform(given))
    kept = model.transform(given.withColumnRenamed("mine", "calibrated_answers")).toPandas()
    assert kept["calibrated_answers"].tolist() == [row[2] for row in rows]


def test_rows_of_training_are_no_calibration_rows(spark):
    """On labels of a coin, MLlib's forest is right on the rows it was trained on.

    Calibrated on these, new rows are far from the half that is true; calibrated on others, most of
    their intervals contain it.
    """
    rng = np.random.default_rng(20261130)
    tables = [
        spark.createDataFrame(
            pd.DataFrame(rng.normal(size=(400, 3)), columns=NAMES).assign(
                label=rng.integers(0, 2, 400).astype(float)
            )
        )
        for _ in range(3)
    ]
    assembler, classifier = forest()
    classifier = classifier.copy({classifier.maxDepth: 10})
    with pytest.raises(InputError, match=r"heldOut must be True, which says .* got False: a Pip"):
        Pipeline(stages=[assembler, classifier, ProbabilityCalibrator()]).fit(tables[0])
    fitted = Pipeline(stages=[assembler, classifier]).fit(tables[0])
    stages = [*fitted.stages, ProbabilityCalibrator(heldOut=True)]
    contained = []
    for calibration_rows in tables[:2]:
        model = Pipeline(stages=stages).fit(calibration_rows)
        new = model.transform(tables[2]).toPandas()
        low, high = vectors(new, "calibrated_low95")[:, 1], vectors(new, "calibrated_high95")[:, 1]
        contained.append(((low <= 0.5) & (high >= 0.5)).mean())
    assert contained[0] < 0.3
    assert contained[1] > 0.7
