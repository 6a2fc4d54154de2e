"""Probability estimates with the observed labels, and their measures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from vennforest._messages import InputError, shown
from vennforest._validation import FloatArray, check_count, check_inside, check_option, class_index
from vennforest.metrics import calibration_tests, curves, flagging
from vennforest.metrics._inputs import (
    ClassEstimates,
    EventEstimates,
    Strategy,
    bin_codes,
    binned,
)
from vennforest.metrics.auc import roc_area, score_interval
from vennforest.metrics.calibration_line import CalibrationLine, line_of
from vennforest.metrics.losses import log_losses, squared_losses
from vennforest.metrics.smooth import CalibrationDistances, distances_of, smooth_curve
from vennforest.metrics.variance import (
    IntervalEstimate,
    interval_estimate,
    mean_estimate,
    observations,
    one_minus,
    ratio_estimate,
    share_interval,
)
from vennforest.multiprobability import BoundsOfClasses

MIN_UNITS = 30
"""Rows or groups of the rarer outcome below which the interval of an area is a score interval, and
the Brier skill has none."""

MAX_LEVEL_OF_DISTANCES = 0.995

Versus = ArrayLike | ClassEstimates | None
"""Other probabilities of the same rows, or none."""


ErrorKind = Literal["expected", "maximum", "root-mean-square", "confidence", "classwise"]
"""Summaries of the differences between mean estimates and observed shares of bins."""


@dataclass(frozen=True)
class BrierDecomposition:
    """Murphy's decomposition of the Brier score.

    Attributes
    ----------
    reliability : float
        Mean squared distance of the bins' mean estimates from their observed shares; 0 is best.
    resolution : float
        Mean squared distance of the bins' observed shares from the overall one; larger is better.
    uncertainty : float
        Brier score if every row's estimate is the overall share.
    sharpness : float
        Variance of the estimates.
    brier : float
        The Brier score: for two classes of the positive one (in [0, 1]), for more of the vectors
        (in [0, 2]).
    """

    reliability: float
    resolution: float
    uncertainty: float
    sharpness: float
    brier: float


@dataclass(frozen=True)
class LossIntervals:
    """Losses with their confidence intervals, or the differences from other probabilities' losses.

    Attributes
    ----------
    log_loss, brier : IntervalEstimate
        See `Estimates.log_loss` and `Estimates.brier`.
    brier_skill : IntervalEstimate
        1 − Brier score / that of the class shares, or of the other probabilities.
    """

    log_loss: IntervalEstimate
    brier: IntervalEstimate
    brier_skill: IntervalEstimate


class Estimates(ClassEstimates):
    """Probability estimates with the observed labels, validated once; measures are methods.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels of any dtype.
    p : array-like of shape (n,) or (n, k)
        Probability of the positive class, or of every class; in [0, 1].
    sample_weight : array-like of shape (n,), optional
        Non-negative weights, such as those of a survey. A row is one observation whatever its
        weight: intervals are those of Kish's effective number of rows. Repeat rows that stand for
        several observations.
    groups : array-like of shape (n,), optional
        Groups of dependent rows, each of which counts as one observation in intervals and tests;
        by default all rows are independent.
    classes : array-like of shape (k,), optional
        All classes in the order of the columns of ``p``, if it is not the sorted one or some may be
        missing from ``y``.
    pos_label : label, optional
        The positive class; by default the second of two. With more than two classes and no
        ``pos_label``, measures of one event are of the event that the predicted label is right.
    follow_up : tuple of array-like of shape (n,) and float, optional
        For an event within a horizon: the time until the event (where ``y`` is positive) or until
        the row was last seen, and the horizon. Rows that were lost before it are left out, and the
        others weigh more: the inverse of the Kaplan-Meier estimate of being followed so long.

    Raises
    ------
    ValueError
        For invalid options, and for labels, estimates and weights of different lengths.

    Notes
    -----
    Measures with an interval are `IntervalEstimate`: value, ends, standard error and p-value.
    Intervals are Student's, for one degree of freedom less than there are rows, or groups, of the
    rarer outcome; where no interval is valid its ends are NaN, as with one group, and with
    different weights if fewer than 15 effective rows or groups of a class are expected. Ends beyond
    the possible values are clipped. Intervals are conditional on the fitted model: they ignore the
    variation of training sets.

    Examples
    --------
    >>> estimates = Estimates([0, 0, 1, 1] * 50, [0.1, 0.3, 0.6, 0.9] * 50)
    >>> loss = estimates.log_loss()
    >>> round(loss.value, 3), round(loss.low, 3), round(loss.high, 3)
    (0.27, 0.246, 0.295)
    """

    @cached_property
    def units(self) -> float:
        """Effective number of rows, or groups, of the rarer outcome; 0 if no interval is valid.

        That is so if fewer than 15 of a class are expected, of different weights.
        """
        classes = self.one_vs_rest() if np.ptp(self.weight) > 0 else ()
        is_valid = all(of_class.units for of_class in classes)
        return self.main.units if is_valid else 0.0

    def auc(self, *, versus: Versus = None, level: float = 0.95) -> IntervalEstimate:
        """Return the area under the ROC curve, or its difference from that of other probabilities.

        With more than two classes it is the mean of the one-vs-rest areas, weighted by the shares
        of the classes. The p-value is that of an area of 1/2, or of no difference.

        Parameters
        ----------
        versus : array-like of shape (n,) or (n, k), or Estimates, optional
            Other probabilities of the same rows.
        level : float
            Confidence level of the interval, in (0, 1).

        Notes
        -----
        The variance is that of DeLong, DeLong & Clarke-Pearson (1988), for groups Obuchowski's
        (1997). The interval is symmetric in the log-odds of the area; with fewer than 30 rows or
        groups of the rarer outcome it is the score interval with the variance of Hanley & McNeil
        (1982), as proposed by Newcombe (2006, method 5).
        """
        check_inside(level, "level")
        value, contributions = roc_area(self, self.p)
        largest = np.bincount(self.codes, minlength=len(self.labels)).argmax()
        in_class = self.codes == (largest if self.positive is None else self.positive)
        counts = [observations(self.weight, self.groups, side) for side in (in_class, ~in_class)]
        is_valid = self.units > 0 or (np.ptp(self.weight) == 0 and self.main.are_enough)
        units = min(counts) if is_valid else 0.0
        if versus is not None:
            rival, of_rival = roc_area(self, self.versus(versus))
            gain = value - rival, contributions - of_rival
            difference = interval_estimate(*gain, self.groups, units, level, null=0.0)
            return difference.within(-1.0, 1.0)
        estimate = IntervalEstimate(value)
        if not (is_valid and np.isfinite(value)):
            return estimate
        if 0 < value < 1 and units >= 2:
            estimate = interval_estimate(
                value, contributions, self.groups, units, level, "log-odds", null=0.5
            )
        if units < MIN_UNITS or not np.isfinite(estimate.low):
            z = float(ndtri((1 + level) / 2))
            ends = score_interval(value, max(1.0, counts[0]), max(1.0, counts[1]), z)
            estimate = replace(estimate, low=ends[0], high=ends[1])
        return estimate

    def log_loss(self, *, versus: Versus = None, level: float = 0.95) -> IntervalEstimate:
        """Return the mean of −ln of the observed class's probability, or its difference.

        It is infinite, without an interval, if a probability was 0. The interval is symmetric in
        the logarithm, and that of a difference, paired by row, in the difference; see `auc` for the
        parameters.
        """
        return self._loss(log_losses, versus, level)

    def brier(self, *, versus: Versus = None, level: float = 0.95) -> IntervalEstimate:
        """Return the Brier score, or its difference from that of other probabilities.

        It is the mean squared error of the positive class's probability with two classes; with more
        the squared distance of the vectors, from 0 to 2. See `log_loss` for the interval.
        """
        return self._loss(squared_losses, versus, level)

    def _loss(self, loss: Any, versus: Any, level: float) -> IntervalEstimate:
        check_inside(level, "level")
        options: Any = {"weight": self.weight, "groups": self.groups, "units": self.units}
        options["level"] = level
        losses = loss(self.p, self.codes)
        largest = min(self.p.shape[1] - 1.0, 2.0) if loss is squared_losses else np.inf
        if versus is None:
            return mean_estimate(losses, scale="log", **options).within(0.0, largest)
        with np.errstate(invalid="ignore"):
            difference = losses - loss(self.versus(versus), self.codes)
        return mean_estimate(difference, null=0.0, **options).within(-largest, largest)

    def log_loss_skill(self, *, versus: Versus = None, level: float = 0.95) -> IntervalEstimate:
        """Return 1 − log loss / that of the class shares, or of other probabilities.

        The interval is symmetric in the logarithm of the ratio, so it stays below 1. With weights
        it needs 30 rows or groups of the rarer outcome.
        """
        has_interval = self.units >= MIN_UNITS or np.ptp(self.weight) == 0
        return self._skill(log_losses, versus, level, has_interval)

    def brier_skill(self, *, versus: Versus = None, level: float = 0.95) -> IntervalEstimate:
        """Return 1 − Brier score / that of the class shares, or of other probabilities.

        With fewer than 30 rows or groups of the rarer outcome it has no interval.
        """
        return self._skill(squared_losses, versus, level, self.units >= MIN_UNITS)

    def _skill(self, loss: Any, versus: Any, level: float, has_interval: bool) -> IntervalEstimate:
        check_inside(level, "level")
        if versus is None:
            shares = np.bincount(self.codes, weights=self.weight, minlength=self.p.shape[1])
            rival = np.broadcast_to(shares / shares.sum(), self.p.shape)  # of one class exactly 1
        else:
            rival = self.versus(versus)
        # The shares are estimated too, but they minimise the loss: its derivative is 0 there.
        losses, of_rival = loss(self.p, self.codes), loss(rival, self.codes)
        ratio = ratio_estimate(
            losses, of_rival, self.weight, self.groups, self.units, level, null=1.0
        )
        return one_minus(ratio) if has_interval else IntervalEstimate(1 - ratio.value)

    def line(self, *, level: float = 0.95) -> CalibrationLine:
        """Return calibration intercept and slope, and the ratio of observed to expected events.

        p-values are those of ratio 1, intercept 0 and slope 1.

        Notes
        -----
        Cox (1958): logit P(y = 1) = a + b logit p, fitted by maximum likelihood; the intercept is
        that of the same model with b = 1 (Van Calster et al. 2019). Their intervals are Wald's, for
        groups and weights with the variance of leaving one out and one Newton step (CR3). They are
        NaN if the likelihood has no maximum (labels separated by p, or of one class).

        The interval of O/E is symmetric in its logarithm, with the variance Σ (y − p O/E)² / O².
        With fewer than ten rows, or groups, of the rarer outcome, none included, it is the exact
        one of the observed share, divided by the mean probability.
        """
        check_inside(level, "level")
        return line_of(self.of_event(), level)

    def calibration_and_ranking(self, level: float = 0.95) -> dict[str, IntervalEstimate]:
        """Return observed over expected, slope and AUC.

        With more than two classes the first two are of the event that the predicted label is right.
        """
        line = line_of(self.main, level)
        ratio, slope = line.observed_expected, line.slope
        return {"observed_expected": ratio, "slope": slope, "auc": self.auc(level=level)}

    def observed_expected(self, *, level: float = 0.95) -> IntervalEstimate:
        """Return the ratio of observed to expected events, with its interval: see `line`."""
        return self.line(level=level).observed_expected

    def distances(
        self, *, level: float = 0.95, n_draws: int = 200, random_state: int = 0
    ) -> CalibrationDistances:
        """Return the integrated calibration index with its interval, E50, E90 and Emax.

        Parameters
        ----------
        level : float
            Confidence level of the interval, at most 0.995.
        n_draws, random_state : int
            Number of draws of the curve's coefficients, more for a high level, and their seed.

        Notes
        -----
        Austin & Steyerberg (2019), Statistics in Medicine 38, 4051-4065, with the curve of
        `reliability_curve`. The distances are biased upwards: ``by_chance`` are those that
        calibrated probabilities would have. The interval of the index is a score interval of its
        square less the variance of the curve, by draws of the curve's coefficients. Rows whose p is
        0 or 1 are left out, and all numbers are NaN if the curve has no maximum of the likelihood.
        """
        check_inside(level, "level")
        if level > MAX_LEVEL_OF_DISTANCES:
            raise ValueError(f"level must be at most {MAX_LEVEL_OF_DISTANCES}, got {level}")
        check_count(n_draws, "n_draws")
        check_count(random_state, "random_state", 0)
        return distances_of(self.of_event(), level, n_draws, random_state)

    def net_benefit(
        self, thresholds: ArrayLike, *, versus: Versus = None, level: float = 0.95
    ) -> flagging.DecisionCurve:
        """Return the net benefit of decisions at thresholds, with pointwise intervals.

        Parameters
        ----------
        thresholds : array-like of shape (t,)
            Thresholds in (0, 1).
        versus, level
            As in `auc`.

        Notes
        -----
        Vickers & Elkin (2006): the net benefit at threshold t is TP / n − w FP / n with the weight
        w = t / (1 − t) of a false positive. A difference is a mean over rows. Student's interval
        uses the variance of this mean after half a row is added to each of the four kinds of rows
        that contribute, as for paired proportions (Bonett & Price 2012), times the design effect
        of groups, at least 1.

        Examples
        --------
        >>> y, p, q = [0, 0, 1, 1] * 50, [0.1, 0.2, 0.6, 0.7] * 50, [0.1, 0.6, 0.2, 0.7] * 50
        >>> curve = Estimates(y, p).net_benefit([0.5], versus=q)
        >>> curve.difference, curve.difference_low.round(2), curve.difference_high.round(2)
        (array([0.5]), array([0.43]), array([0.57]))
        """
        at = flagging.check_thresholds(thresholds)
        if ((at <= 0) | (at >= 1)).any():
            raise ValueError("thresholds must lie in (0, 1), got 0 or 1")
        check_inside(level, "level")
        event = self.of_event()
        outcome, p, weight, _ = event
        odds, none = at / (1 - at), np.zeros(len(p))
        everyone = np.asarray(weight @ outcome - weight @ (1 - outcome) * odds) / weight.sum()
        benefit = flagging.net_gain(event, none, at, level, -odds, 1.0)
        over_all = flagging.net_gain(event, none + 1, at, level, -1.0, odds)
        # The gain over the better one is the smaller of two gains, end by end.
        is_undefined = np.isnan(benefit) | np.isnan(over_all)
        gain = np.where(is_undefined, np.nan, np.minimum(benefit, over_all))
        gains, columns = {"net_benefit": benefit, "gain": gain}, dict[str, FloatArray]()
        if versus is not None:
            rival, largest = self.versus(versus)[:, self.positive], np.maximum(1.0, odds)
            difference = flagging.net_gain(event, rival, at, level, -largest, largest)
            gains["difference"] = difference
            columns["versus"] = benefit[0] - difference[0]
        for name, ends in gains.items():
            columns |= dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))
        return flagging.DecisionCurve(threshold=at, everyone=everyone, **columns)

    def threshold_table(
        self,
        thresholds: ArrayLike,
        *,
        bounds: BoundsOfClasses | None = None,
        level: float | None = None,
    ) -> flagging.ThresholdTable:
        """Return shares and predictive values of flagging rows at thresholds.

        Parameters
        ----------
        thresholds : array-like of shape (t,)
            Thresholds in [0, 1].
        bounds : Multiprobability or ConfidenceIntervals, optional
            Bounds for the same rows, required for ``sure_yes``, ``sure_no`` and ``depends``.
        level : float, optional
            Confidence level of Wilson's intervals, in (0, 1). By default none are computed.
        """
        at = flagging.check_thresholds(thresholds)
        outcome, p, weight, groups = self.of_event()
        misses, hits = flagging.weight_around(p, weight * outcome, at)
        rejections, alarms = flagging.weight_around(p, weight * (1 - outcome), at)
        counts: dict[str, FloatArray] = {}
        if bounds is not None:
            n = len(self.is_counted)
            if not isinstance(bounds, BoundsOfClasses) or len(bounds) != n:
                rule = f"bounds must be a Multiprobability of {n} rows"
                raise InputError(f"{rule}, got {shown(bounds)}")
            column = class_index(bounds.classes, self._pos_label)
            (_, at_low), (sure_no, at_high) = (
                flagging.weight_around(end[self.is_counted, column], weight, at)
                for end in (bounds.lower, bounds.upper)
            )
            counts = {"sure_yes": at_low, "sure_no": sure_no, "depends": at_high - at_low}
        ends: dict[str, list[tuple[float, float]]] = {}
        if level is not None:
            check_inside(level, "level")
            happened = outcome > 0
            for flagged in p >= at[:, None]:
                shares = {
                    "sensitivity": (happened, flagged),
                    "specificity": (~happened, ~flagged),
                    "positive_value": (flagged, happened),
                    "negative_value": (~flagged, ~happened),
                }
                for name, (among, hit) in shares.items():
                    pair = (np.nan, np.nan)
                    if among.any():
                        some = None if groups is None else groups[among]
                        of_among = hit[among].astype(np.float64)
                        pair = share_interval(of_among, some, weight[among], level)
                    ends.setdefault(name, []).append(pair)
        return flagging.ThresholdTable(
            threshold=at,
            flagged=flagging.share_of(hits + alarms, misses + rejections),
            sensitivity=flagging.share_of(hits, misses),
            specificity=flagging.share_of(rejections, alarms),
            positive_value=flagging.share_of(hits, alarms),
            negative_value=flagging.share_of(rejections, misses),
            intervals={name: tuple(np.transpose(pairs)) for name, pairs in ends.items()},
            **counts,
        )

    def tests(self, rows: Any = slice(None)) -> calibration_tests.CalibrationTests:
        """Test the calibration of all classes; see `CalibrationTests`.

        Parameters
        ----------
        rows : slice, mask or indices
            Rows that are tested, by default all; their correlation in groups is that of all rows.

        Notes
        -----
        "class means" compares r = Σ (Y − p), Y the indicators of the k classes, with its variance
        V = Σ (diag p − p p') under calibration: r' V⁻ r has a χ² distribution with k − 1 degrees of
        freedom. With groups it is divided by the mean design effect (Rao & Scott 1984). Classes of
        which fewer than ten observations are expected are one class there.
        """
        return calibration_tests.tests_of(self, rows)

    def spiegelhalter(self) -> calibration_tests.CalibrationTest:
        """Test calibration by the difference between the Brier score and its expected value.

        Spiegelhalter (1986): z = Σ (y − p)(1 − 2p) / √(Σ (1 − 2p)² p (1 − p)), above 0 if the Brier
        score is worse than expected, standard normal in large samples of independent observations
        with P(y = 1) = p. All classes are tested at once, unless ``pos_label`` names one. If the
        variance is 0, z is 0 with p-value 1 if the numerator is 0, and infinite with p-value 0 if
        not.
        """
        if self.positive is not None and self.p.shape[1] > 2:
            event = self.of_event()
            p = np.column_stack([1 - event.p, event.p])
            return calibration_tests.spiegelhalter(event.outcome.astype(np.intp), p, self.weight)
        return calibration_tests.spiegelhalter(self.codes, self.p, self.weight)

    def kuiper(self) -> calibration_tests.CalibrationTest:
        """Test calibration by the range of the cumulative differences between labels and estimates.

        The statistic is (max C_k − min C_k) / σ, C_0 = 0 among them: C_k is Σ (y_i − p_i) over the
        k smallest estimates, σ² = Σ p_i (1 − p_i) (Arrieta-Ibarra et al. 2022, arXiv:2205.09680;
        Tygert 2022, arXiv:2202.00100). In large samples of independent, calibrated observations C/σ
        is a Brownian motion on [0, 1], whose range has Feller's (1951) law. C_k is evaluated only
        where the estimate changes, so the order of equal estimates does not matter. With few
        distinct estimates or observations the p-value is too large, but never (in the limit) too
        small.
        """
        return calibration_tests.kuiper(self.main)

    def calibration_error(
        self,
        *,
        kind: ErrorKind = "expected",
        bins: int = 15,
        strategy: Strategy = "uniform",
    ) -> float:
        """Return the calibration error over bins of the estimates, in [0, 1]; 0 is best.

        It is biased upwards, like the reliability of `brier_decomposition`.

        Parameters
        ----------
        kind : str
            With r_k the mean estimate, φ_k the observed share and n_k the count of bin k:

            - ``"expected"`` (ECE): Σ n_k |r_k − φ_k| / N;
            - ``"maximum"``: max |r_k − φ_k|;
            - ``"root-mean-square"``: √(Σ n_k (r_k − φ_k)² / N);
            - ``"confidence"``: ECE of the confidence in the predicted label (Guo et al. 2017);
            - ``"classwise"``: mean over the classes of the ECE of each against the rest (Kull et
              al. 2019).

            The first three evaluate the positive class; with more than two classes and no
            ``pos_label``, the confidence in the predicted label.
        bins, strategy
            As in `brier_decomposition`; ``"quantile"`` makes it the adaptive error.

        Examples
        --------
        >>> Estimates([0, 0, 1, 1], [0.25, 0.25, 0.75, 0.75]).calibration_error()
        0.25
        """
        check_option(kind, ErrorKind, "kind")
        problems = [self.of_predicted() if kind == "confidence" else self.main]
        if kind == "classwise":
            problems = list(self.one_vs_rest())
        errors = []
        for problem in problems:
            n_k, r_k, phi_k = binned(problem, bins, strategy)
            share, gap = n_k / n_k.sum(), np.abs(r_k - phi_k)
            if kind == "maximum":
                errors.append(gap.max())
            elif kind == "root-mean-square":
                errors.append(np.sqrt(share @ gap**2))
            else:
                errors.append(share @ gap)
        return float(np.mean(errors))

    def overconfidence(self) -> float:
        """Return the mean confidence in the predicted label minus the accuracy, in [-1, 1].

        Estimates are overconfident above 0 and underconfident below (Johansson et al. 2018, Table
        1).
        """
        event = self.of_predicted()
        return float(np.average(event.p - event.outcome, weights=event.weight))

    def brier_decomposition(
        self, *, bins: int = 100, strategy: Strategy = "uniform"
    ) -> BrierDecomposition:
        """Split the Brier score into reliability, resolution and uncertainty.

        With more than two classes and no ``pos_label``, every term is a sum over the classes, each
        against the rest.

        Parameters
        ----------
        bins : int
            Number of bins, closed to the right.
        strategy : {"uniform", "quantile"}
            Bins of equal width, or of equal count, where equal estimates share a bin.

        Notes
        -----
        With n_k of N observations in bin k, r_k their mean estimate, φ_k the share of positives
        among them and ȳ the overall share (Murphy 1973; Johansson et al. 2018, eq. 13): reliability
        Σ n_k (r_k − φ_k)² / N, resolution Σ n_k (φ_k − ȳ)² / N, uncertainty ȳ (1 − ȳ). Reliability
        minus resolution plus uncertainty is the Brier score only where all estimates in a bin are
        equal (Stephenson, Coelho & Jolliffe 2008).

        The estimates are biased: the variance of φ_k increases reliability and resolution, most
        with few observations per bin (Bröcker 2012; Ferro & Fricker 2012). Compare only results
        with equal bins and n.

        Examples
        --------
        >>> estimates = Estimates(["no", "no", "yes", "yes"], [0.2, 0.2, 0.2, 0.8])
        >>> estimates.brier_decomposition()
        BrierDecomposition(reliability=0.0233..., resolution=0.0833..., uncertainty=0.25, ...)
        """
        terms = []
        for problem in self.one_vs_rest() if self.positive is None else [self.of_event()]:
            share = problem.weight / problem.weight.sum()
            base, mean = share @ problem.outcome, share @ problem.p
            n_k, r_k, phi_k = binned(problem, bins, strategy)
            n_k = n_k / n_k.sum()
            reliability, resolution = n_k @ (r_k - phi_k) ** 2, n_k @ (phi_k - base) ** 2
            sharpness = share @ (problem.p - mean) ** 2
            brier = share @ (problem.outcome - problem.p) ** 2
            terms.append((reliability, resolution, base * (1 - base), sharpness, brier))
        return BrierDecomposition(*np.sum(terms, axis=0).tolist())

    def reliability_curve(
        self,
        *,
        bins: int = 10,
        strategy: Strategy = "quantile",
        level: float = 0.95,
        band: curves.Band = "smooth",
    ) -> curves.ReliabilityCurve:
        """Return the bins, curves and band of a reliability diagram.

        Parameters
        ----------
        bins, strategy
            As in `brier_decomposition`.
        level : float
            Confidence level of intervals and band, in (0, 1).
        band : {"smooth", "confidence"}
            ``"smooth"``: the pointwise confidence band of the smooth curve, that is of the
            best-fitting spline; it ignores the bias of the spline, and can miss a frequency that
            bends more. ``"confidence"``: the simultaneous confidence band of `calibration_band`.

        Notes
        -----
        The smooth curve has five knots if there are 200 rows of each outcome (Van Calster et al.
        2016), and fewer, or none, with fewer rows; its band is that of the delta method. Rows whose
        estimate is 0 or 1 are left out of it. The CORP curve is that of Dimitriadis, Gneiting &
        Jordan (2021).
        """
        check_inside(level, "level")
        check_option(band, curves.Band, "band")
        event = self.main
        fit = curves.recalibrate(event)
        of_distinct = EventEstimates(fit.observed, fit.p, fit.weight)
        n_k, r_k, phi_k = binned(of_distinct, bins, strategy)
        codes = bin_codes(event.p, bins, strategy, event.weight)
        parts = (event.take(codes == code) for code in np.unique(codes))
        bin_low, bin_high = np.array(
            [share_interval(part.outcome, part.groups, part.weight, level) for part in parts]
        ).T
        steps = np.flatnonzero(np.diff(fit.fitted) > 0)
        corners = np.unique(np.concatenate([[0], steps, steps + 1, [len(fit.fitted) - 1]]))
        smooth_estimate, smooth_share, band_low, band_high = smooth_curve(event, level)
        band_estimate = smooth_estimate
        if band == "confidence":
            x, low, high = curves.confidence_band(event, level)
            # Between two points the lower bound is that of the left one, the upper of the right.
            band_estimate = np.repeat(x, 3)[1:-1]
            band_low, band_high = np.repeat(low, 3)[:-2], np.repeat(high, 3)[2:]
        return curves.ReliabilityCurve(
            bin_estimate=r_k,
            bin_share=phi_k,
            bin_weight=n_k,
            bin_low=bin_low,
            bin_high=bin_high,
            smooth_estimate=smooth_estimate,
            smooth_share=smooth_share,
            corp_estimate=fit.p[corners],
            corp_share=fit.fitted[corners],
            band=band,
            band_estimate=band_estimate,
            band_low=band_low,
            band_high=band_high,
            estimate=fit.p,
            positives=fit.weight * fit.observed,
            negatives=fit.weight * (1 - fit.observed),
            line=line_of(event, level),
            auc=None if self.positive is None else self.auc(level=level),
            event=self.event,
            level=level,
        )

    def calibration_band(self, *, level: float = 0.95) -> curves.CalibrationBand:
        """Return a band that contains the whole calibration curve with the given confidence.

        The calibration curve is the probability of the event given the estimate. The band is valid
        for any number of independent rows, if the curve is non-decreasing; it may be discontinuous.

        Notes
        -----
        Dimitriadis, Dümbgen, Henzi, Puke & Ziegel (2023): every interval of neighbouring estimates
        has an upper bound for the curve at its left end and a lower one at its right end, those of
        Clopper & Pearson with error (1 − level) / (m (m + 1)) each; the band is the minimum of the
        upper bounds to the right and the maximum of the lower ones to the left. The m distinct
        estimates are grouped into 200 of equal count if there are more, so the cost is n log n
        steps and m² bounds. If the bounds cross, no non-decreasing curve fits the labels; the band
        is widened to contain the isotonic regression.

        Examples
        --------
        >>> estimates = Estimates([0] * 30 + [1] * 30, [0.2] * 30 + [0.7] * 30)
        >>> x, lower, upper = estimates.calibration_band()
        >>> x, upper.round(2)
        (array([0. , 0.2, 0.7, 1. ]), array([0.15, 0.15, 1.  , 1.  ]))
        """
        check_inside(level, "level")
        return curves.confidence_band(self.of_event(), level)

    def losses(self, *, versus: Versus = None, level: float = 0.95) -> LossIntervals:
        """Return log loss, Brier score and Brier skill; see these methods.

        Examples
        --------
        >>> intervals = Estimates([0, 0, 1, 1] * 50, [0.1, 0.3, 0.6, 0.9] * 50).losses()
        >>> {name: round(estimate.value, 3) for name, estimate in vars(intervals).items()}
        {'log_loss': 0.27, 'brier': 0.068, 'brier_skill': 0.73}
        """
        options: Any = {"versus": versus, "level": level}
        return LossIntervals(
            self.log_loss(**options), self.brier(**options), self.brier_skill(**options)
        )
