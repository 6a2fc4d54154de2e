"""Transductive prediction: the estimator is trained again for every object and tentative label."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any, Literal, Self

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import isotonic_regression
from scipy.sparse import issparse, vstack
from scipy.special import expit, softmax
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Tags, _safe_indexing, check_random_state, get_tags, validation
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    has_fit_parameter,
    validate_data,
)
from threadpoolctl import ThreadpoolController

from vennforest._state import stored
from vennforest._validation import (
    FloatArray,
    IntArray,
    check_array,
    check_option,
    check_scores,
    check_weights,
    encode_labels,
    is_frame,
    labels,
    require,
)
from vennforest.calibrators.base import normalised_bounds
from vennforest.calibrators.venn.calibrator import Venn
from vennforest.calibrators.venn.taxonomies import Taxonomy, resolve
from vennforest.multiprobability import Merge, Multiprobability
from vennforest.sources.base import model_scores, with_seed
from vennforest.sources.row_hashes import hash_rows


def check_table(X: Any) -> Any:
    """Return frames as they are, sparse matrices by rows, and everything else as an array."""
    if is_frame(X):
        return X
    if issparse(X):
        matrix: Any = X
        return matrix.tocsr()
    return validation.check_array(X, dtype=None, ensure_all_finite=False)


def stack(above: Any, below: Any) -> Any:
    """Return the rows of two tables as one."""
    if issparse(above) or issparse(below):
        return vstack([above, below], format="csr")
    if not (is_frame(above) and is_frame(below)):
        return np.concatenate([np.asarray(above), np.asarray(below)])
    # pandas and polars both have concat; neither has to be installed for this module.
    library = sys.modules[type(above).__module__.partition(".")[0]]
    if library.__name__ == "polars":
        return library.concat([above, below], how="vertical_relaxed")
    return library.concat([above, below], ignore_index=True)


def first_of_equal_rows(X: Any) -> IntArray:
    """Return for each row the number of the first row with the same values, shape (n,)."""
    _, first, number = np.unique(hash_rows(X), return_index=True, return_inverse=True)
    return first[number]


TransductiveMerge = Literal["auto", "log", "brier", "midpoint"]
"""How `TransductiveClassifier` makes one probability of its bounds."""


@stored("fitted-transductive")
@attrs.frozen(eq=False)
class FittedTransductive:
    """The training set, kept for the trainings to come, and how they go."""

    template: Any
    """Not fitted, its seeds drawn."""
    estimator: Any
    """Trained on the training set alone."""
    X: Any
    codes: IntArray
    classes: NDArray[Any] = attrs.field(validator=labels)
    weight: FloatArray | None
    taxonomy: Taxonomy | None
    """None: Venn-Abers."""
    merge: Merge
    feature_names: NDArray[Any] | None

    def __attrs_post_init__(self) -> None:
        """Refuse a training set of other rows, and settings of no such value."""
        X, n = self.X, len(self.codes)
        require(len(X.shape) == 2 and X.shape[0] == n, "X must have a row for each label")
        check_array(self.codes, "codes", (n,), "i", 0, len(self.classes) - 1)
        if self.weight is not None:
            check_array(self.weight, "weight", (n,), low=0)
            require((self.weight > 0).all(), "weight must be above zero")
        names = self.feature_names
        require(names is None or len(names) == X.shape[1], "feature_names must be of every column")
        require(
            self.taxonomy is None or isinstance(self.taxonomy, Taxonomy),
            "taxonomy must be a Taxonomy",
        )
        check_option(self.merge, TransductiveMerge, "merge")
        require(str(self.merge) != "auto", "merge must be settled")
        for model in (self.template, self.estimator):
            require(hasattr(model, "fit"), "estimator must be a classifier")


@stored("transductive-classifier")
class TransductiveClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Classifier whose bounds come from retraining with each new object under every label.

    For each new object x and each label v a clone of the estimator is trained on the training set
    plus (x, v), and all n + 1 examples are scored by that model. All data train and all data
    calibrate, and the bounds are valid without any part set aside (Vovk & Petej 2014, Theorem 1);
    the price is one training for every object and class.

    Parameters
    ----------
    estimator : classifier, default=None
        With ``predict_proba`` or ``decision_function``. None: logistic regression on standardised
        features (of sparse data scaled only, so they stay sparse). The theorem asks for an
        estimator that treats its training examples alike, whatever their order: logistic
        regression does so without any randomness.
    method : {"venn-abers", "venn"} or Venn, default="venn-abers"
        ``"venn-abers"`` is Algorithm 1 of Vovk & Petej (2014); ``"venn"`` counts labels in the
        category of x; a `Venn` brings its own taxonomy and merge. Taxonomies are fitted to the
        scores of all examples, x included, which keeps learnt edges valid; decision values are
        first mapped by the logistic function (two classes) or softmax (more).
    merge : {"auto", "log", "brier", "midpoint"}, default="auto"
        How ``predict_proba`` makes one probability of the bounds: see `Multiprobability.merge`.
        ``"auto"`` is ``"log"`` for Venn-Abers and ``"midpoint"`` for Venn. There is no
        ``"smooth"``: no two objects share a set of calibration scores.
    n_jobs : int, default=None
        How many objects are worked on at a time, as in scikit-learn.
    random_state : int, RandomState instance or None, default=None
        Fixes every ``random_state`` of the estimator that is None, once for all trainings, so
        models differ by the tentative label alone.

    Notes
    -----
    Equal rows are given equal scores (that of the first of them): matrix products can differ in
    the last bit by a row's position, and isotonic regression would keep such rows apart.

    *Venn-Abers, two classes.* The isotonic fit to all n + 1 scores and labels, read at x, is p_v;
    the lower bound of the second class is the smaller of p_0 and p_1 and the upper one the larger.
    (As a rule p_0 < p_1; the two come from different models, so the order can turn.)

    *More classes.* The k models of an object serve all classes: the model trained with (x, v) gives
    for each class j the isotonic fit of the indicator of j to score column j, with x labelled
    ``v == j``, read at x. The largest of the k values is the upper bound of j against the
    rest (as a rule that with v = j), the smallest is the lower one; the one under the true label
    is calibrated for j. `normalised_bounds` widens them to be right after normalisation, too.

    *Venn.* P^v(j) is the share of label j in the category of x, x counted with label v; bounds are
    the smallest and the largest over v. Weights are repeated observations, and x weighs 1.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.arange(12.0)[:, None], np.array([0, 0, 0, 1, 0, 0, 1, 1, 0, 1, 1, 1])
    >>> model = TransductiveClassifier().fit(X, y)
    >>> m = model.predict_multiprobability([[0.5], [9.5]])
    >>> m.p0.round(3), m.p1.round(3)
    (array([0. , 0.6]), array([0.333, 1.   ]))
    """

    _fitted: FittedTransductive

    def __init__(
        self,
        estimator: Any = None,
        *,
        method: Literal["venn-abers", "venn"] | Venn = "venn-abers",
        merge: TransductiveMerge = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.merge = merge
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Keep the training set, and train the estimator on it once.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, n_features)
            Whatever the estimator takes.
        y : array-like of shape (n,)
            Labels of any dtype, at least two different ones.
        sample_weight : array-like of shape (n,), optional
            Non-negative; a weight of 2 is the observation twice, of 0 its absence. Every step of
            a pipeline that takes weights receives them. A new object weighs 1.

        Raises
        ------
        ValueError
            If a parameter has none of its values, the data do not fit, there are fewer than two
            classes, or weights are given to an estimator that takes none.
        TypeError
            If the estimator has neither ``predict_proba`` nor ``decision_function``.
        """
        taxonomy, merge = self._check_parameters()
        X, y = validate_data(self, check_table(X), y, skip_check_array=True)
        check_consistent_length(X, y)
        codes, classes = encode_labels(y)
        weight = check_weights(sample_weight, len(codes))
        if weight is not None and (weight == 0).any():
            kept = np.flatnonzero(weight > 0)
            X, codes, weight = _safe_indexing(X, kept), codes[kept], weight[kept]
            present, codes = np.unique(codes, return_inverse=True)
            classes = classes[present]
        if len(classes) < 2:
            raise ValueError(
                f"y must contain at least two classes, got one class: {classes.tolist()[0]!r}"
            )
        template = self._seeded(issparse(X))
        estimator = _train(clone(template), X, classes[codes], weight)
        _score(estimator, _safe_indexing(X, [0]), classes)
        names = getattr(self, "feature_names_in_", None)
        self._fitted = FittedTransductive(
            template, estimator, X, codes, classes, weight, taxonomy, merge, names
        )
        return self

    @property
    def _state(self) -> FittedTransductive:
        check_is_fitted(self)
        return self._fitted

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether ``fit`` has been called."""
        return "_fitted" in self.__dict__

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, sorted."""
        return self._state.classes

    @property
    def estimator_(self) -> Any:
        """Trained on the training set alone, to check it at ``fit``; others predict."""
        return self._state.estimator

    def to_state(self) -> dict[str, Any]:
        """Return the parameters and what fitting made of them, None before ``fit``."""
        return {
            "parameters": self.get_params(deep=False),
            "fitted": self._fitted if self.__sklearn_is_fitted__() else None,
        }

    @classmethod
    def from_state(cls, *, parameters: dict[str, Any], fitted: FittedTransductive | None) -> Self:
        """Return the classifier of a state."""
        model = cls(**parameters)
        if fitted is not None:
            require(isinstance(fitted, FittedTransductive), "fitted must be what fit has made")
            require(
                issparse(fitted.X) or type(fitted.X) is np.ndarray,
                "X must be an array or a sparse matrix",
            )
            named = model.estimator is None or hasattr(model.estimator, "fit")
            require(named, "estimator must be a classifier")
            model._check_parameters()
            model._fitted, model.n_features_in_ = fitted, fitted.X.shape[1]
            if fitted.feature_names is not None:
                model.feature_names_in_ = fitted.feature_names
        return model

    def _check_parameters(self) -> tuple[Taxonomy | None, Merge]:
        """Return the taxonomy (None: Venn-Abers) and the merge that the parameters mean."""
        check_option(self.merge, TransductiveMerge, "merge")
        usual: Merge = "midpoint"
        if isinstance(self.method, Venn):
            taxonomy, usual = resolve(self.method.taxonomy), self.method.merge
            check_option(usual, TransductiveMerge, "merge of method")
        elif self.method == "venn":
            taxonomy = resolve("label")
        elif self.method == "venn-abers":
            taxonomy, usual = None, "log"
        else:
            raise ValueError(
                f'method must be "venn-abers", "venn" or a Venn instance, got {self.method!r}'
            )
        return taxonomy, usual if self.merge == "auto" else self.merge

    def _given(self, sparse: bool) -> Any:
        """Return the estimator, or the default one for dense or sparse data."""
        if self.estimator is not None:
            return self.estimator
        steps = StandardScaler(with_mean=not sparse), LogisticRegression()
        if get_config()["enable_metadata_routing"]:
            for step in steps:
                step.set_fit_request(sample_weight=True)
        return make_pipeline(*steps)

    def _seeded(self, sparse: bool) -> Any:
        """Return an untrained estimator that is trained the same way every time."""
        if isinstance(self.estimator, FrozenEstimator):
            raise ValueError(
                "estimator must be one that can be trained again, got a FrozenEstimator: "
                "use CalibratedClassifier"
            )
        return with_seed(self._given(sparse), check_random_state(self.random_state))

    def predict_multiprobability(self, X: Any) -> Multiprobability:
        """Return lower and upper probabilities of every class.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (m, n_features)
            New objects. Each is predicted by itself: the others play no part.

        Returns
        -------
        Multiprobability
            Bounds of shape (m, k), in [0, 1].

        Raises
        ------
        ValueError
            If the features are not those of ``fit``.
        """
        fitted = self._state
        X = validate_data(self, check_table(X), reset=False, skip_check_array=True)
        _score(fitted.estimator, X, fitted.classes)  # refuses at once what the estimator refuses
        everything, n = stack(fitted.X, X), len(fitted.codes)
        first = first_of_equal_rows(everything)
        values = Parallel(n_jobs=self.n_jobs)(
            delayed(_values_of_object)(
                fitted.template,
                _safe_indexing(everything, [*range(n), row]),
                fitted.codes,
                fitted.classes,
                fitted.weight,
                np.append(first[:n], min(first[row], n)),
                fitted.taxonomy,
            )
            for row in range(n, len(first))
        )
        stacked = np.array(values)
        lower, upper = stacked.min(axis=1), stacked.max(axis=1)
        if fitted.taxonomy is None and len(fitted.classes) > 2:
            lower, upper = normalised_bounds(lower, upper)
        return Multiprobability(lower, upper, fitted.classes)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return probabilities of every class, shape (m, k), rows summing to 1: merged bounds."""
        return self._predict(X)[1]

    def _predict(self, X: Any) -> tuple[Multiprobability, FloatArray]:
        """Return bounds and probabilities, with one training for each label of each object."""
        bounds = self.predict_multiprobability(X)
        return bounds, bounds.merge(self._state.merge)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable label of each object, shape (m,), the first of equals."""
        best = self.predict_proba(X).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[best]
        return labels

    def __sklearn_tags__(self) -> Tags:
        """Describe to scikit-learn a classifier that takes what its estimator takes."""
        tags = super().__sklearn_tags__()
        given = get_tags(self._given(sparse=True))
        tags.input_tags.sparse = given.input_tags.sparse
        tags.input_tags.allow_nan = given.input_tags.allow_nan
        tags.input_tags.string = given.input_tags.string
        tags.input_tags.categorical = given.input_tags.categorical
        return tags


def isotonic_value(scores: FloatArray, positive: FloatArray, weight: FloatArray, at: int) -> float:
    """Return the isotonic fit to labels (n,) at the score number ``at``, in [0, 1].

    Equal scores are one point: their labels are averaged first.
    """
    distinct, place = np.unique(scores, return_inverse=True)
    weights = np.bincount(place, weights=weight, minlength=len(distinct))
    means = np.bincount(place, weights=weight * positive) / weights
    return float(isotonic_regression(means, weights=weights).x[place[at]])


def _values_of_object(
    template: Any,
    X: Any,
    codes: IntArray,
    classes: NDArray[Any],
    weight: FloatArray | None,
    first: IntArray,
    taxonomy: Taxonomy | None,
) -> FloatArray:
    """Return (k, k): for each tentative label of the last row of X, a probability of each class.

    ``first`` has for each row of X the first row that is equal to it.
    """
    k = len(classes)
    all_weights = np.ones(len(first)) if weight is None else np.append(weight, 1.0)
    values = np.empty((k, k))
    for v in range(k):
        labels = np.append(codes, v)
        given = None if weight is None else all_weights
        with _thread_pools().limit(limits=1):
            model = _train(clone(template), X, classes[labels], given)
            scores = _score(model, X, classes, as_shares=taxonomy is not None)[first]
        if taxonomy is not None:
            category = clone(taxonomy).fit(scores, k, all_weights)(scores)
            mates = category == category[-1]
            counts = np.bincount(labels[mates], weights=all_weights[mates], minlength=k)
            values[v] = counts / counts.sum()
        elif k == 2:
            p = isotonic_value(scores, labels == 1, all_weights, -1)
            values[v] = 1 - p, p
        else:
            for j in range(k):
                values[v, j] = isotonic_value(scores[:, j], labels == j, all_weights, -1)
    return values


@cache
def _thread_pools() -> ThreadpoolController:
    """Return what limits the threads of BLAS and OpenMP, on whose number last bits depend."""
    return ThreadpoolController()


def _train(model: Any, X: Any, y: NDArray[Any], weight: FloatArray | None) -> Any:
    """Train the model; every step of a pipeline that takes weights receives them."""
    if weight is None:
        return model.fit(X, y)
    steps = {"sample_weight": model}
    if isinstance(model, Pipeline):
        if get_config()["enable_metadata_routing"]:
            return model.fit(X, y, sample_weight=weight)
        steps = {f"{name}__sample_weight": step for name, step in model.steps}
    last = list(steps.values())[-1]
    if not has_fit_parameter(last, "sample_weight"):
        raise ValueError(
            "sample_weight must be None where the estimator takes no weights, "
            f"got weights for {type(last).__name__}"
        )
    takers = [name for name, step in steps.items() if has_fit_parameter(step, "sample_weight")]
    return model.fit(X, y, **dict.fromkeys(takers, weight))


def _score(model: Any, X: Any, classes: NDArray[Any], as_shares: bool = False) -> FloatArray:
    """Return finite scores (n,) of the second of two classes, or (n, k), of a trained model."""
    scores = check_scores(model_scores(model, X, classes), "scores of the estimator")
    if not as_shares or hasattr(model, "predict_proba"):
        return scores
    return expit(scores) if scores.ndim == 1 else softmax(scores, axis=1)
