"""A stage of MLlib pipelines that calibrates the probabilities of the classifier before it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark import keyword_only
from pyspark.ml import Estimator, Model, util
from pyspark.ml.functions import array_to_vector, vector_to_array
from pyspark.ml.linalg import VectorUDT
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import HasLabelCol, HasProbabilityCol, HasWeightCol
from pyspark.sql import functions as sql

from vennforest._answers import kinds_of
from vennforest._shown import names_of
from vennforest._validation import FloatArray, InputError
from vennforest.batch import find_column
from vennforest.calibrators import Calibrator
from vennforest.engines._counting import quoted
from vennforest.engines._workers import Shipment, open_predictor
from vennforest.engines.spark import (
    calibrate,
    partition_number,
    received,
    said_in_a_sentence,
    sent,
)

__all__ = ["ProbabilityCalibrator", "ProbabilityCalibratorModel"]


class _Columns(HasProbabilityCol, HasLabelCol, HasWeightCol):
    """The parameters of the stage before and after it is fitted."""

    method: Param[str] = Param(
        Params._dummy(), "method", "method of calibration", TypeConverters.toString
    )
    heldOut: Param[bool] = Param(  # noqa: N815
        Params._dummy(),
        "heldOut",
        "whether the classifier was not trained on the rows given to fit",
        TypeConverters.toBoolean,
    )
    outputPrefix: Param[str] = Param(  # noqa: N815
        Params._dummy(), "outputPrefix", "what the new columns begin with", TypeConverters.toString
    )

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._setDefault(method="venn-abers", outputPrefix="calibrated_", heldOut=False)

    def _probabilities(self, frame: Any) -> Any:
        """Return the probabilities as a column of arrays."""
        name = self.getOrDefault("probabilityCol")
        find_column(name, frame.columns, "the data frame")
        kind = frame.schema[name].dataType
        if not isinstance(kind, VectorUDT):
            raise InputError(f"column {name!r} must contain MLlib's vectors, got {kind.typeName()}")
        column = frame[quoted(name, "`")]
        return sql.when(column.isNotNull(), vector_to_array(column))  # which takes no missing one

    def _names(self, k: int) -> list[str]:
        return [f"{self.getOrDefault('probabilityCol')}[{j}]" for j in range(k)]


class ProbabilityCalibrator(
    _Columns,
    Estimator["ProbabilityCalibratorModel"],
    util.DefaultParamsReadable["ProbabilityCalibrator"],
    util.DefaultParamsWritable,
):
    """Estimator of MLlib that calibrates the probabilities of a classifier fitted before.

    Fit it to rows that the classifier was not trained on: in a pipeline in which the fitted
    classifier is a stage, or with ``weightCol`` of the classifier and the calibrator opposite. A
    pipeline of an unfitted classifier and a calibrator trains both on the same rows, on which the
    classifier's probabilities are better than on new ones; nothing in the data frame shows it, so
    ``heldOut=True`` has to be said.

    Parameters
    ----------
    heldOut : bool, default=False
        True: the classifier was not trained on the rows given to ``fit`` (of weight above zero).
        ``fit`` refuses False.
    probabilityCol : str, default="probability"
        Vectors of k probabilities, as MLlib's classifiers write them.
    labelCol : str, default="label"
        Labels 0, 1, ..., k - 1, as of ``StringIndexer``.
    weightCol : str, optional
        Weights that are not negative; rows of weight 0 do not count.
    method : str, default="venn-abers"
        As of `CalibratedClassifier`.
    outputPrefix : str, default="calibrated_"
        What the names of the model's columns begin with.
    """

    @keyword_only
    def __init__(
        self,
        *,
        heldOut: bool = False,
        probabilityCol: str = "probability",
        labelCol: str = "label",
        weightCol: str | None = None,
        method: str = "venn-abers",
        outputPrefix: str = "calibrated_",
    ) -> None:
        super().__init__()
        self._set(**self._input_kwargs)

    def _fit(self, dataset: Any) -> ProbabilityCalibratorModel:
        """Return the fitted model."""
        if not self.getOrDefault("heldOut"):
            raise InputError(
                "heldOut must be True, which says that the classifier was not trained on these "
                "rows, got False: a Pipeline fits all its stages to the same rows, so put the "
                "fitted classifier into it and fit it to others, or give the classifier and the "
                "calibrator opposite weightCol"
            )
        label = self.getOrDefault("labelCol")
        weight = self.getOrDefault("weightCol") if self.isDefined("weightCol") else None
        for name in [label, *([] if weight is None else [weight])]:
            find_column(name, dataset.columns, "the data frame")
        p = self._probabilities(dataset)
        with said_in_a_sentence():
            first = dataset.select(sql.size(p)).where(p.isNotNull()).first()
        if first is None:
            raise InputError("the data frame must contain at least one row, got none")
        names = self._names(first[0])
        # Vectors of another length become missing scores, which are refused with their row.
        whole = sql.size(p) == len(names)
        columns = [sql.when(whole, p[j]).alias(name) for j, name in enumerate(names)]
        columns += [dataset[quoted(label, "`")].cast("double").alias(label)]
        columns += [] if weight is None else [dataset[quoted(weight, "`")]]
        frame = dataset.select(*columns).persist()  # read once a class
        try:
            calibrator = calibrate(
                frame,
                score=names,
                target=label,
                weight=weight,
                method=self.getOrDefault("method"),
                classes=[float(j) for j in range(len(names))],
            )
        finally:
            frame.unpersist()
        model = ProbabilityCalibratorModel(calibrator)
        model._resetUid(self.uid)
        return self._copyValues(model)  # type: ignore[no-any-return]


class ProbabilityCalibratorModel(
    _Columns, Model, util.MLReadable["ProbabilityCalibratorModel"], util.MLWritable
):
    """A fitted `ProbabilityCalibrator`.

    ``transform`` adds columns of vectors (k,): ``calibrated_p``; where the method has Venn–Abers
    or Venn bounds ``calibrated_lower`` and ``calibrated_upper``; where it has confidence intervals
    ``calibrated_low95`` and ``calibrated_high95``. A data frame with such a column is refused, and
    rows with a missing or invalid vector when they are computed.

    Attributes
    ----------
    calibrator : Calibrator
        As `vennforest.engines.spark.calibrate` returns it.
    """

    def __init__(self, calibrator: Calibrator) -> None:
        super().__init__()
        self.calibrator = calibrator

    def _transform(self, dataset: Any) -> Any:
        classes = self.calibrator.classes_.tolist()
        kinds = kinds_of(self.calibrator, None, "answers")
        parts = [part for kind in kinds for part in names_of(kind, 0.95)]
        names = self._names(len(classes))
        schema = pa.schema([(name, pa.float64()) for name in names])
        k = len(names)
        task = sent(dataset, Shipment((self.calibrator, schema, {"columns": names})))

        def answer(batches: Iterator[pd.Series]) -> Iterator[pd.DataFrame]:
            predictor = open_predictor(received(task))
            rows = (pa.record_batch(list(_matrix(one, k)), schema=schema) for one in batches)
            for found in predictor(rows, f"partition {partition_number()}"):
                columns = {part: [found[f"{part}({c})"] for c in classes] for part in parts}
                yield pd.DataFrame({part: list(np.column_stack(columns[part])) for part in parts})

        outputs = {part: self.getOrDefault("outputPrefix") + part for part in parts}
        known = {name.lower() for name in dataset.columns}  # Spark does not tell case apart
        for name in outputs.values():
            if name.lower() in known:
                raise InputError(
                    f"the data frame must have no column {name!r}, which the calibrator adds, got "
                    "one: rename it, or set another outputPrefix"
                )
        whole = f"{self.uid}_answers"
        computed = sql.pandas_udf(answer, ", ".join(f"{part} array<double>" for part in parts))
        found = dataset.withColumn(whole, computed(self._probabilities(dataset)))
        made = {outputs[part]: array_to_vector(found[whole][part]) for part in parts}
        return found.withColumns(made).drop(whole)

    def write(self) -> util.MLWriter:
        """Return what writes the model: its parameters, and the calibrator as JSON."""
        return _Writer(self)

    @classmethod
    def read(cls) -> util.MLReader[ProbabilityCalibratorModel]:
        """Return what reads it; a changed file is refused as by ``Calibrator.from_json``."""
        return _Reader()


class _Writer(util.DefaultParamsWriter):
    instance: ProbabilityCalibratorModel

    def saveImpl(self, path: str) -> None:  # noqa: N802
        document = {"calibrator": json.loads(self.instance.calibrator.to_json())}
        self.saveMetadata(self.instance, path, self.sparkSession, document)


class _Reader(util.MLReader[ProbabilityCalibratorModel]):
    def load(self, path: str) -> ProbabilityCalibratorModel:
        metadata = util.DefaultParamsReader.loadMetadata(path, self.sparkSession)
        calibrator = Calibrator.from_json(json.dumps(metadata["calibrator"]))
        model = ProbabilityCalibratorModel(calibrator)
        model._resetUid(metadata["uid"])
        util.DefaultParamsReader.getAndSetParams(model, metadata)
        return model


def _matrix(vectors: pd.Series, k: int) -> FloatArray:
    """Return vectors as columns (k, n); NaN where there is none of k numbers."""
    none = np.full(k, np.nan)
    rows = [one if one is not None and len(one) == k else none for one in vectors]
    return np.array(rows, np.float64).reshape(-1, k).T
