"""What a monitor knows after so many examples of a stream."""

from __future__ import annotations

import copy
import math
import zlib
from typing import Any, Self, get_args

import attrs
import numpy as np
from numpy.typing import NDArray

from vennforest._validation import check_array, check_number, labels, number, require
from vennforest.monitoring.evidence import MOST, Channel, Form, Watch, check_channels
from vennforest.monitoring.known_rows import WINDOW, KnownRows
from vennforest.sources.row_hashes import HashArray

SEEDS = 2**31 - 1
"""Seeds of channels are at most this."""


BATCH = 30
"""Rows of which a batch is recognised when it comes again."""

BATCHES = 20
"""Batches that are remembered."""

BITS = 40.0
"""Surprise, in bits, at a batch that comes again by chance, below which nothing is said."""

NO_ROWS: HashArray = np.empty(0, np.uint64)
NO_BATCHES = np.empty((0, 2), np.int64)


class RecentRows:
    """The rows that a stream had last, and its last batches, by their hashes, the oldest first.

    ``window`` rows are remembered, 0 where equal rows say nothing, and of each batch its length and
    checksum.
    """

    def __init__(
        self,
        window: int = 0,
        hashes: HashArray = NO_ROWS,
        batches: NDArray[np.int64] = NO_BATCHES,
    ) -> None:
        check_number(window, "window", 0, WINDOW, integer=True)
        check_array(hashes, "hashes", (None,), "u")
        check_array(batches, "batches", (None, 2), "i", 0)
        require(len(batches) <= BATCHES, f"batches must be at most {BATCHES}")
        # A dict keeps the order in which its keys came.
        self._order: dict[int, None] = dict.fromkeys(hashes.tolist())
        same = len(self._order) == len(hashes) <= window
        require(same and hashes.dtype == np.uint64, "hashes must be of different rows")
        self.window = window
        self._batches: list[list[int]] = batches.tolist()

    def has_batch(self, hashes: HashArray, codes: NDArray[Any]) -> bool:
        """Tell whether a batch of hashes (n,) and class numbers (n,) came before, not by chance."""
        n = len(hashes)
        if n < BATCH or _batch(hashes, codes) not in self._batches:
            return False
        shares = np.unique(hashes ^ codes.astype(np.uint64), return_counts=True)[1] / n
        return bool(-n * np.log2((shares**2).sum()) >= BITS)

    def take(
        self, hashes: HashArray, codes: NDArray[Any], wanted: NDArray[np.bool_], twins: HashArray
    ) -> NDArray[np.bool_]:
        """Remember a batch, and return which of its rows did not come within the window before.

        Rows that are not ``wanted`` (n,) are not remembered; ``twins`` (t,) are hashes of rows that
        come again by nature, and are always new.
        """
        if len(hashes) >= BATCH:
            self._batches = [*self._batches, _batch(hashes, codes)][-BATCHES:]
        if not self.window:
            return np.ones(len(hashes), bool)
        order, common = self._order, set(twins.tolist())
        new = np.ones(len(hashes), bool)
        for i in np.flatnonzero(wanted).tolist():
            value = int(hashes[i])
            if value in common:
                continue
            if value in order:
                new[i] = False
                del order[value]  # the latest time counts
            elif len(order) == self.window:
                del order[next(iter(order))]
            order[value] = None
        return new

    def __getstate__(self) -> dict[str, Any]:
        """Return the arguments of the constructor, which checks them."""
        return {
            "window": self.window,
            "hashes": np.array(list(self._order), np.uint64),
            "batches": np.array(self._batches, np.int64).reshape(-1, 2),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Call the constructor."""
        type(self).__init__(self, **state)

    def _check_state(self) -> None:
        """Pass: the constructor has checked the state."""


def _batch(hashes: HashArray, codes: NDArray[Any]) -> list[int]:
    return [len(hashes), zlib.crc32(codes.tobytes(), zlib.crc32(hashes.tobytes()))]


def _below_infinity(instance: Any, attribute: Any, value: Any) -> None:
    require(isinstance(value, float) and value < math.inf, f"{attribute.name} must be a logarithm")


def _when(instance: Any, attribute: Any, value: Any) -> None:
    sound = value is None or (isinstance(value, float) and not math.isnan(value))
    require(sound, f"{attribute.name} must be a time or None")


_integers = attrs.validators.deep_iterable(
    number(0, integer=True), attrs.validators.instance_of(tuple)
)


@attrs.frozen(eq=False)
class Progress:
    """What a monitor knows after so many examples of a stream; see `Monitor`.

    ``update`` changes ``channels`` and ``recent`` in place. ``seeds`` of each channel are for what
    breaks ties; ``own_reference``: whether the reference is the model's own calibration examples.
    ``log_now`` and ``log_max`` are natural logarithms of the evidence now and of the largest yet.
    ``reference_rows`` are those of the reference, where it was given; None: not, or equal rows say
    nothing. ``excess`` is by how many missing labels exceed 2% of the rows lately. ``n_compared``
    rows of the stream were compared with those from before it, and ``n_known`` were among them.
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
        factory=RecentRows, validator=attrs.validators.instance_of(RecentRows)
    )
    reference_rows: KnownRows | None = attrs.field(
        default=None, validator=attrs.validators.optional(attrs.validators.instance_of(KnownRows))
    )
    n_repeated: int = attrs.field(default=0, validator=number(0, MOST, integer=True))
    excess: float = attrs.field(default=0.0, validator=number(0, MOST))
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
