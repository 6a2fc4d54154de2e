"""Updates of the probabilities of any model for another population."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from scipy.stats import chi2
from scipy.stats import f as fisher
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from vennforest._class_columns import class_probabilities, column_codes
from vennforest._messages import needed
from vennforest._validation import (
    FloatArray,
    InputError,
    IntArray,
    check_count,
    check_option,
    check_order,
    encode_groups,
    encode_labels,
)
from vennforest.calibrators import Calibrator, PlattScaling, Uncalibrated, make_calibrator
from vennforest.calibrators.newton import MARGINS
from vennforest.calibrators.softmax import smoothed_shares
from vennforest.counts import ScoreCounts
from vennforest.metrics._inputs import check_probabilities
from vennforest.metrics.dependence import intragroup_correlation, variance_of_sums
from vennforest.metrics.logistic import LogisticFit, fit_offset_regression
from vennforest.metrics.losses import log_losses
from vennforest.metrics.smooth import spline_features
from vennforest.metrics.variance import mean_estimate, units_of
from vennforest.prior import ShiftedPrior, shift_probabilities

if TYPE_CHECKING:
    import pandas as pd

Choice = Literal["auto", "keep", "intercept", "slope", "map"]

TEST_LEVEL = 0.05
"""Level of each test."""

PRECISION = 1 / 0.4**2
"""Precision of the normal priors of the intercept, with mean 0, and of the slope, with mean 1."""

MIN_UPDATE_ROWS = 20
MIN_ROWS_FOR_SPLINE = 30
"""Rows of the rarer class from which on a curve of the log-odds is tested."""

UPDATE_KNOT_QUANTILES = (0.05, 0.35, 0.65, 0.95)
N_UPDATE_FOLDS, N_UPDATE_FOLDS_OF_MANY, MANY_ROWS = 10, 3, 20_000
"""Folds, and those from so many rows on."""

N_COEFFICIENTS = {"keep": 0, "intercept": 1, "slope": 2}
COMPARED = {"keep": "keeping", "intercept": "a moved intercept", "slope": "intercept and slope"}

TITLES = {
    "keep": "Keep the probabilities",
    "intercept": "Move the intercept",
    "slope": "Intercept and slope",
    "prior": "Prior shift",
    "map": "A new map",
    "auto": "Chosen by tests",
}


@dataclass(frozen=True, eq=False)
class Update:
    """Probabilities updated for another population: see `update`.

    Attributes
    ----------
    choice : {"keep", "intercept", "slope", "map"}
        The chosen update.
    reason : str
        The reason for the choice, as a sentence.
    gain : series
        Gain of the choice: its row of ``gains``, or that of ``"auto"``.
    calibrator : Calibrator
        The map from old probabilities to new ones, which ``vennforest.export.to_json`` writes.
    tests : data frame
        The largest model against each smaller one: ``statistic``, ``df`` and ``pvalue``. Indexed by
        choice.
    gains : data frame
        Log loss of each update and of the choice by tests (``"auto"``) on rows that it was not
        fitted to, and its ``gain`` over keeping the probabilities, with the 95% interval
        ``gain_low`` to ``gain_high``.
    """

    choice: str
    reason: str
    gain: pd.Series
    calibrator: Calibrator
    tests: pd.DataFrame
    gains: pd.DataFrame

    def predict_proba(self, scores: ArrayLike) -> FloatArray:
        """Return updated probabilities (n, 2), in the sorted order of the classes.

        Old ones are (n,) of the second class, or (n, 2) in the order in which `update` had them:
        that of ``classes_`` of the classifier, if it had one.
        """
        return self.calibrator.predict_proba(scores)


def update(
    p: Any,
    y: ArrayLike,
    *,
    X: Any = None,
    groups: ArrayLike | None = None,
    choose: Choice = "auto",
    new_map: str | Calibrator = "spline",
    random_state: int = 0,
) -> Update:
    """Update the probabilities of any classifier with labelled rows of another population.

    The probabilities are kept, or the intercept of their log-odds is moved, or intercept and slope,
    or a new map is fitted.

    Parameters
    ----------
    p : array-like of shape (n,) or (n, 2), or fitted classifier
        Probabilities of the second class or of both, between 0 and 1, both excluded; or a
        classifier, whose probabilities of the rows of ``X`` are updated.
    y : array-like of shape (n,)
        Labels of two classes; at least 20 rows.
    X : data frame or array of shape (n, d), optional
        Rows as the classifier takes them.
    groups : array-like of shape (n,), optional
        Rows of one group, as of a patient, stay in one fold, and count as one observation in tests
        and intervals.
    choose : {"auto", "keep", "intercept", "slope", "map"}
        ``"auto"``: by tests.
    new_map : str or Calibrator, default="spline"
        The new map: any ``method`` of `CalibratedClassifier`.
    random_state : int
        Seeds the folds.

    Returns
    -------
    Update
        With ``predict_proba``, ``choice``, ``reason``, ``calibrator``, ``tests`` and ``gains``.

    Raises
    ------
    ValueError
        If there are fewer than 20 rows, not exactly two classes, or probabilities of 0 or 1.

    Notes
    -----
    The closed testing procedure of Vergouwe et al. (2017, Statistics in Medicine 36, 4529-4539)
    tests the largest model against keeping, then against a moved intercept, then against intercept
    and slope, each by a likelihood-ratio test at level 5%, and ends at the first that is not
    rejected. The largest model is a logistic regression on a restricted cubic spline of the
    log-odds with four knots (Harrell 2015); with fewer than 30 rows of a class, intercept and
    slope. With groups, the statistic is divided by the mean design effect (Rotnitzky & Jewell 1990)
    and compared with an F distribution.

    Intercept and slope are posterior modes under normal priors around 0 and 1 with standard
    deviation 0.4: few rows move them less. Gains are over ten folds (three from 20,000 rows on),
    tests included; simulated, their intervals contained the expected gain in 90% of cases.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.05, 0.6, 500)
    >>> y = rng.random(500) < p / 2  # half as frequent here
    >>> result = update(p, y)
    >>> result.choice
    'intercept'
    >>> result.predict_proba([0.4]).round(2)
    array([[0.81, 0.19]])
    """
    check_option(choose, Choice, "choose")
    check_count(random_state, "random_state", 0)
    prior = labels = codes_of_columns = None
    if hasattr(p, "predict_proba"):
        if X is None:
            raise InputError("X must be given for a fitted classifier, got None")
        codes_of_columns = column_codes(p.classes_)
        (p, labels), prior = class_probabilities(p, X), class_shares_of(p)
    check_order(p if X is None else X, y=y, groups=groups)
    codes, labels = encode_labels(y, labels)
    rows = UpdateRows(labels, check_probabilities(p, labels), codes, groups, prior, new_map)
    if (k := len(labels)) > 2:
        raise InputError(
            f"y must contain two classes for an update, got {k}: update the probability of one "
            "class against all others, or fit a calibrator"
        )
    tests, gains = rows.test(), rows.gains(random_state)
    choice, reason = by_tests(tests) if choose == "auto" else (choose, "As chosen beforehand.")
    gain: Any = gains.loc[choose]
    calibrator = rows.fit(choice)
    calibrator.column_codes_ = codes_of_columns
    return Update(choice, reason, gain, calibrator, tests, gains)


class UpdateRows:
    """Probabilities (n, k) with labels of another population, and the updates fitted to them.

    ``codes`` (n,) are the columns of the labels among ``classes``, and ``prior`` (k,) the shares of
    the classes for which the probabilities are right, if they are known.
    """

    def __init__(
        self,
        classes: NDArray[Any],
        p: FloatArray,
        codes: IntArray,
        groups: ArrayLike | None = None,
        prior: FloatArray | None = None,
        new_map: str | Calibrator = "spline",
    ) -> None:
        self.classes, self.codes, self.prior, self.new_map = classes, codes, prior, new_map
        self.p = np.column_stack([1 - p, p]) if p.ndim == 1 else p
        n, k = len(codes), len(classes)
        if not n or np.ptp(codes) == 0:
            raise InputError("y must contain at least two classes, got one")
        if self.p.shape != (n, k):
            raise InputError(f"p must be of {n} rows and {k} classes, got shape {p.shape}")
        if n < MIN_UPDATE_ROWS:
            raise InputError(f"y must have at least {MIN_UPDATE_ROWS} rows for an update, got {n}")
        certain = int((self.p <= 0).any(axis=1).sum())
        if certain:
            raise InputError(
                f"p must lie between 0 and 1, both excluded, got 0 or 1 in {certain:,} of {n:,} "
                "rows, whose log-odds are infinite: fit a calibrator instead, or clip p"
            )
        self.groups = encode_groups(groups, codes)
        if self.groups is not None and self.groups.max() == 0:
            raise InputError("groups must be at least two, got one")

    def take(self, rows: IntArray) -> UpdateRows:
        """Return a part of the rows."""
        part = copy.copy(self)
        part.p, part.codes = self.p[rows], self.codes[rows]
        if self.groups is not None:
            part.groups = encode_groups(self.groups[rows], rows)
        return part

    @property
    def z(self) -> FloatArray:
        """The log-odds (n,) of the second of two classes."""
        return np.log(self.p[:, 1]) - np.log(self.p[:, 0])

    def test(self) -> pd.DataFrame:
        """Test the most flexible update of two classes against each simpler one.

        Returns a row for each simpler choice with ``statistic``, ``df`` and ``pvalue`` of its
        likelihood-ratio test (Vergouwe et al. 2017), with groups an F test: see `update`.
        """
        pandas = needed("pandas", "data frames")
        z, is_large = self.z, np.bincount(self.codes, minlength=2).min() >= MIN_ROWS_FOR_SPLINE
        X = spline_features(z, np.unique(np.quantile(z, UPDATE_KNOT_QUANTILES if is_large else ())))
        X = X if np.ptp(z) > 0 else X[:, :1]
        largest = self._regress(X)
        smaller_models = {choice: m for choice, m in N_COEFFICIENTS.items() if m < X.shape[1]}
        if self.groups is not None:
            p = expit(z + X @ largest.theta)
            correlation = intragroup_correlation(self.codes.astype(np.float64), p, self.groups)
            inverse = np.linalg.pinv(largest.hessian, hermitian=True)
            robust = inverse @ variance_of_sums(X, p, self.groups, correlation) @ inverse
        rows = {}
        for choice, smaller in smaller_models.items():
            df = X.shape[1] - smaller
            gain = largest.log_likelihood - self._regress(X[:, :smaller]).log_likelihood
            statistic = max(0.0, 2 * gain)
            if self.groups is None:
                pvalue = chi2.sf(statistic, df)
            else:
                # The mean factor by which groups inflate the variance of the last coefficients.
                part = np.s_[smaller:, smaller:]
                ratio = np.linalg.pinv(inverse[part], hermitian=True) @ robust[part]
                statistic /= max(1.0, float(np.trace(ratio)) / len(ratio))
                pvalue = fisher.sf(statistic / df, df, max(1, self.groups.max()))
            rows[choice] = (statistic, df, float(pvalue))
        names = ["statistic", "df", "pvalue"]
        frame: pd.DataFrame = pandas.DataFrame.from_dict(rows, orient="index", columns=names)
        return frame

    def _regress(self, X: FloatArray, precision: float = 0.0) -> LogisticFit:
        """Fit what is added to the log-odds: a logistic regression on X (n, d)."""
        features = np.repeat(X[:, None, :], len(self.classes) - 1, axis=1)
        precisions = np.full(features[0].size, precision)
        return fit_offset_regression(np.log(self.p), features, self.codes, precision=precisions)

    def fit(self, choice: str) -> Calibrator:
        """Return one of the updates, as a calibrator of the probabilities."""
        scores = self.p[:, 1] if len(self.classes) == 2 else self.p
        labels = self.classes[self.codes]
        if choice == "map":
            new_map = self.new_map if len(self.classes) == 2 else "vector"
            return make_calibrator(new_map).fit(scores, labels, classes=self.classes)
        counts = ScoreCounts.from_scores(scores, labels, classes=self.classes)
        if choice == "slope":
            slope = PlattScaling(on="probability")._fit_checked(counts)
            theta = self._regress(np.column_stack([np.ones(len(scores)), self.z]), PRECISION).theta
            slope.clip_ = np.array([[MARGINS[0], 1 - MARGINS[0]]])
            slope.center_, slope.scale_ = np.zeros(1), np.ones(1)
            slope.intercept_, slope.slope_ = theta[:1], 1 + theta[1:]
            return slope
        calibrator = Uncalibrated()._fit_checked(counts)
        if choice == "keep":
            return calibrator
        if choice == "prior" and self.prior is not None:
            shares = smoothed_shares(counts)
            factors = shares / self.prior
        else:
            theta = self._regress(np.ones((len(scores), 1)), PRECISION).theta
            factors = np.exp(np.append(0.0, theta))
            shares = shift_probabilities(self.p, factors).mean(axis=0)
        calibrator.shift_ = ShiftedPrior(shares, factors / factors.max())
        return calibrator

    def gains(self, random_state: int = 0) -> pd.DataFrame:
        """Return the log loss over folds of each update, and its gain over keeping."""
        pandas = needed("pandas", "data frames")
        is_binary = len(self.classes) == 2
        omitted = [] if is_binary else ["slope", "auto"]
        omitted += ["prior"] if self.prior is None else []
        losses = {c: np.empty(len(self.codes)) for c in TITLES if c not in omitted}
        for train, test in self._splits(random_state):
            part = self.take(train)
            with warnings.catch_warnings(action="ignore"):  # the same in every fold
                calibrators = {c: part.fit(c) for c in losses if c != "auto"}
            if is_binary:
                calibrators["auto"] = calibrators[by_tests(part.test())[0]]
            scores, codes = self.p[test, 1] if is_binary else self.p[test], self.codes[test]
            for choice, calibrator in calibrators.items():
                losses[choice][test] = log_losses(calibrator.predict_proba(scores), codes)
        rows, weight = {}, np.ones(len(self.codes))
        units = units_of((self.codes == self.codes.max()).astype(float), weight, self.groups)
        for choice, loss in losses.items():
            with np.errstate(invalid="ignore"):  # both infinite
                difference = losses["keep"] - loss
            gain = mean_estimate(difference, weight, self.groups, units, null=0.0)
            rows[choice] = (loss.mean(), gain.value, gain.low, gain.high)
        names = ["log_loss", "gain", "gain_low", "gain_high"]
        frame: pd.DataFrame = pandas.DataFrame.from_dict(rows, orient="index", columns=names)
        return frame

    def _splits(self, random_state: int) -> list[tuple[IntArray, IntArray]]:
        """Return stratified folds, of whole groups where there are any."""
        n_units = len(self.codes) if self.groups is None else int(self.groups.max()) + 1
        splitter = StratifiedKFold if self.groups is None else StratifiedGroupKFold
        n_folds = N_UPDATE_FOLDS if len(self.codes) < MANY_ROWS else N_UPDATE_FOLDS_OF_MANY
        folds = splitter(min(n_folds, n_units), shuffle=True, random_state=random_state)
        with warnings.catch_warnings(action="ignore", category=UserWarning):  # of a rare class
            return list(folds.split(self.p, self.codes, self.groups))


def by_tests(tests: pd.DataFrame) -> tuple[str, str]:
    """Return the choice by closed testing, and the reason."""
    rejected = (tests["pvalue"] < TEST_LEVEL).to_numpy()
    n_rejected = int(np.append(rejected, False).argmin())
    comparisons = [
        f"than {COMPARED[choice]} (p {'< 0.001' if p < 0.001 else f'= {p:.3f}'})"
        for choice, p in zip(tests.index, tests["pvalue"], strict=True)
    ]
    better = " and ".join(comparisons[:n_rejected])
    sentence = f"The largest model is better {better}" if better else "The largest model is"
    if n_rejected < len(tests):
        join = ", but not significantly better " if better else " not significantly better "
        sentence += join + comparisons[n_rejected]
    return [*N_COEFFICIENTS, "map"][n_rejected], f"{sentence}."


def class_shares_of(model: Any) -> FloatArray | None:
    """Return the class shares (k,) a model's probabilities are for; None if unknown or one is 0."""
    shares: FloatArray | None = getattr(model, "prior_", None)
    if isinstance(model, Calibrator):
        shares = model.class_shares_ if model.shift_ is None else model.shift_.shares
    return None if shares is None or (shares == 0).any() else shares


def gain_sentence(gain: pd.Series) -> str:
    """Return a sentence on the gain of an update; "" if the probabilities are always kept."""
    if gain["gain"] == 0:
        return ""
    if not np.isfinite(gain["log_loss"]):
        return (
            "On rows that it was not fitted to, the log loss is infinite: labels occurred to which "
            "it gives the probability 0."
        )
    return (
        f"On rows that it was not fitted to, the log loss is {gain['log_loss']:.4f}, a gain of "
        f"{gain['gain']:.4f} over keeping (95% interval {gain['gain_low']:.4f} to "
        f"{gain['gain_high']:.4f})."
    )
