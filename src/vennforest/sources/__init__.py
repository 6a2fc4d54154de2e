"""Sources of calibration scores.

A source is an object with one method, ``folds(estimator, data, *, seed, random_state, n_jobs)``,
which returns a list of `Fold`. Users may write their own and give an instance to ``calibrate_on``
of `CalibratedClassifier`; bounds are valid only where no score depends on its own label.

``estimator`` is not fitted and must be cloned; its unset seeds are drawn already. ``data`` is a
`TrainingData`, rows of weight zero included. ``seed`` is for later draws, for new objects, and
``random_state`` for the draws of a split; ``n_jobs`` is the number of threads, or of models fitted
at once.

Examples
--------
A model trained on the first half of the rows and calibrated on the second, for data in order of
time:

>>> import numpy as np
>>> class FirstHalf:
...     def folds(self, estimator, data, **settings):
...         past, recent = np.array_split(np.arange(len(data)), 2)
...         model = data.rows(past).fit(estimator)
...         return [data.rows(recent).fold(model)]
>>> from sklearn.datasets import load_breast_cancer
>>> from sklearn.naive_bayes import GaussianNB
>>> from vennforest import CalibratedClassifier
>>> X, y = load_breast_cancer(return_X_y=True)
>>> model = CalibratedClassifier(GaussianNB(), calibrate_on=FirstHalf()).fit(X, y)
>>> len(model.calibration_scores_)
284
"""

from vennforest.sources.data import CalibrationExamples, Fold, OutOfBagFold, Subforest, TrainingData
from vennforest.sources.estimators import model_scores, with_seed

__all__ = [
    "CalibrationExamples",
    "Fold",
    "OutOfBagFold",
    "Subforest",
    "TrainingData",
    "model_scores",
    "with_seed",
]
