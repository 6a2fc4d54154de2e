"""What a monitor knows after so many examples of a stream."""

from __future__ import annotations

import copy
import math
from typing import Any, Self, get_args

import attrs
from numpy.typing import NDArray

from vennforest._state import stored
from vennforest._validation import labels, number, require
from vennforest.monitoring.channel import MOST, Channel
from vennforest.monitoring.evidence import Watch, check_channels
from vennforest.monitoring.jumpers import Form
from vennforest.monitoring.repeats import RecentRows
from vennforest.sources.row_hashes import KnownRows

SEEDS = 2**31 - 1
"""Seeds of channels are at most this."""


def _below_infinity(instance: Any, attribute: Any, value: Any) -> None:
    require(isinstance(value, float) and value < math.inf, f"{attribute.name} must be a logarithm")


def _when(instance: Any, attribute: Any, value: Any) -> None:
    sound = value is None or (isinstance(value, float) and not math.isnan(value))
    require(sound, f"{attribute.name} must be a time or None")


_integers = attrs.validators.deep_iterable(
    number(0, integer=True), attrs.validators.instance_of(tuple)
)


@stored("monitor-progress")
@attrs.frozen(eq=False)
class Progress:
    """What a monitor knows after so many examples of a stream.

    Attributes
    ----------
    classes : ndarray of shape (k,)
    watch, form : str
        See `Monitor`.
    channels : tuple of Channel
        Which ``update`` changes in place.
    seeds : tuple of int
        Of each channel, for what breaks ties.
    own_reference : bool
        Whether the reference is the model's own calibration examples.
    n_seen, n_unlabelled : int
        Examples of the stream, and rows left out since their label was missing.
    log_now, log_max : float
        Natural logarithms of the evidence now and of the largest so far.
    alarm : int or None
        The first example at which there was an alarm.
    alarm_time, last_time : float or None
        Its time, and that of the last example.
    recent : RecentRows
        Which ``update`` changes in place.
    reference_rows : KnownRows or None
        Of the reference, where it was given; None: not, or equal rows say nothing.
    n_repeated : int
        Rows left out since they came before.
    n_compared, n_known : int
        Rows of the stream compared with those from before it, and those that were among them.

    Raises
    ------
    ValueError
        If evidence and labels do not belong together.
    """

    classes: NDArray[Any] = attrs.field(validator=labels)
    watch: Watch = attrs.field(validator=attrs.validators.in_(get_args(Watch)))
    form: Form = attrs.field(validator=attrs.validators.in_(get_args(Form)))
    channels: tuple[Channel, ...] = attrs.field(
        validator=attrs.validators.deep_iterable(
            attrs.validators.instance_of(Channel), attrs.validators.instance_of(tuple)
        )
    )
    seeds: tuple[int, ...] = attrs.field(validator=_integers)
    own_reference: bool = attrs.field(validator=attrs.validators.instance_of(bool))
    log_now: float = attrs.field(validator=_below_infinity)
    log_max: float = attrs.field(default=-math.inf, validator=_below_infinity)
    n_seen: int = attrs.field(default=0, validator=number(0, MOST, integer=True))
    n_unlabelled: int = attrs.field(default=0, validator=number(0, MOST, integer=True))
    alarm: int | None = attrs.field(
        default=None, validator=attrs.validators.optional(number(0, integer=True))
    )
    alarm_time: float | None = attrs.field(default=None, validator=_when)
    last_time: float | None = attrs.field(default=None, validator=_when)
    recent: RecentRows = attrs.field(
        factory=lambda: RecentRows.at_first(0),
        validator=attrs.validators.instance_of(RecentRows),
    )
    reference_rows: KnownRows | None = attrs.field(
        default=None, validator=attrs.validators.optional(attrs.validators.instance_of(KnownRows))
    )
    n_repeated: int = attrs.field(default=0, validator=number(0, MOST, integer=True))
    n_compared: int = attrs.field(default=0, validator=number(0, MOST, integer=True))
    n_known: int = attrs.field(default=0, validator=number(0, MOST, integer=True))

    def __attrs_post_init__(self) -> None:
        """Refuse evidence of other labels, other examples or another stream."""
        check_channels(
            self.channels,
            k=len(self.classes),
            watch=self.watch,
            form=self.form,
            n_seen=self.n_seen,
            log_now=self.log_now,
        )
        require(len(self.seeds) == len(self.channels), "there must be a seed for each channel")
        require(max(self.seeds) <= SEEDS, f"seeds must be at most {SEEDS}")
        require(self.n_known <= self.n_compared, "n_known must be some of those compared")
        if self.n_seen:
            require(self.log_max >= self.log_now, "the largest evidence must be no smaller")
        if self.alarm is not None:
            require(self.alarm < self.n_seen, "alarm must be an example of the stream")

    def after(self, **changes: Any) -> Self:
        """Return this after more examples, unchecked: a row of a stream takes less than a check."""
        made = copy.copy(self)
        for name, value in changes.items():
            object.__setattr__(made, name, value)
        return made
