"""Test martingales on p-values: the simple jumper and the composite jumper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from vennforest._validation import FloatArray, InputError, check_option
from vennforest.monitoring import kernels

Form = Literal["ville", "shiryaev-roberts", "cusum"]
"""How evidence is kept, and with that what an alarm guarantees."""

FORMS: tuple[Form, ...] = ("ville", "shiryaev-roberts", "cusum")

JUMPS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
"""Rates of the composite jumper (Vovk et al. 2021)."""

EPSILONS = (-1.0, 0.0, 1.0)


class CompositeJumper:
    """Capital of a gambler who bets against uniform p-values, a mean over rates of jumping.

    For each rate J the capital is spread over epsilon in {-1, 0, 1}; at each step a share J of it
    is spread anew, and a p-value p multiplies what lies on epsilon by ``1 + epsilon (p - 1/2)``
    (Vovk, Petej, Nouretdinov, Ahlberg, Carlsson & Gammerman 2021, Algorithm 1). One rate: the
    simple jumper.

    Parameters
    ----------
    jumps : sequence of float, default=(0.0001, 0.001, 0.01, 0.1, 1)
        In [0, 1].
    form : {"ville", "shiryaev-roberts", "cusum"}, default="ville"
        ``"ville"``: a martingale that begins at 1; for independent uniform p-values the
        probability that it *ever* reaches c is at most 1/c. ``"shiryaev-roberts"`` and
        ``"cusum"`` are for streams that go on: before each bet one unit is added, or the capital
        is raised to 1 where it is below. They reach c sooner or later without any change, but in
        n steps with probability n/c at most, and after c steps or more on average.

    Attributes
    ----------
    log_capital : float
        Natural logarithm.

    Raises
    ------
    InputError
        If a parameter has no such value.

    Examples
    --------
    >>> import numpy as np
    >>> from vennforest.monitoring import CompositeJumper
    >>> jumper = CompositeJumper()
    >>> jumper.update(np.full(200, 0.05))[[0, 99, 199]].round(1)
    array([ 0. , 35.3, 72.4])
    """

    def __init__(self, jumps: Sequence[float] = JUMPS, *, form: Form = "ville") -> None:
        check_option(form, Form, "form")
        rates = np.asarray(jumps, dtype=np.float64)
        if rates.ndim != 1 or not len(rates) or not ((rates >= 0) & (rates <= 1)).all():
            raise InputError(f"jumps must be one or more numbers in [0, 1], got {jumps!r}")
        self.jumps, self.form = tuple(rates.tolist()), form
        self._weights = np.full((len(rates), len(EPSILONS)), 1 / len(EPSILONS))
        self._scales = np.full(len(rates), -np.inf if form == "shiryaev-roberts" else 0.0)

    @property
    def log_capital(self) -> float:
        """Natural logarithm of the capital, or of the statistic, now."""
        return float(kernels.log_mean(self._scales))

    def update(self, p: ArrayLike) -> FloatArray:
        """Bet on p-values one after the other.

        Parameters
        ----------
        p : array-like of shape (n,)
            In [0, 1].

        Returns
        -------
        ndarray of shape (n,)
            Natural logarithm of the capital after each.

        Raises
        ------
        InputError
            If a p-value is outside [0, 1].
        """
        values = np.require(np.atleast_1d(np.asarray(p, dtype=np.float64)), None, ["C", "W"])
        if values.ndim != 1 or not ((values >= 0) & (values <= 1)).all():
            raise InputError("p must be numbers in [0, 1]")
        out = np.empty(len(values))
        kernels.jump(
            values,
            np.array(EPSILONS),
            np.array(self.jumps),
            FORMS.index(self.form),
            self._weights,
            self._scales,
            out,
        )
        return out


def simple_jumper(jump: float = 0.01, *, form: Form = "ville") -> CompositeJumper:
    """Return a jumper of one rate; for the parameters see `CompositeJumper`."""
    return CompositeJumper((jump,), form=form)
