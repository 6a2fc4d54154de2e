"""A candidate for the smooth merge: log-odds of scores drawn towards the share of positives.

``(s + c π) / (1 + c)`` with the c, of a grid, that the calibration labels like best. It has the
interface of ``SmoothEstimate``; ``benchmarks.defaults`` measures it beside the one in use.
"""

from dataclasses import dataclass

import numpy as np

from vennforest import VennAbers
from vennforest.calibrators.one_vs_rest import normalise
from vennforest.calibrators.platt import PlattMap, fit_platt

GRID = (0.0, 0.001, 0.003, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4)


@dataclass(frozen=True)
class ShrunkenMap:
    """A sigmoid of the log-odds of shrunken scores."""

    platt: PlattMap
    c: float
    share: float

    def __call__(self, scores):
        return self.platt((np.clip(scores, 0, 1) + self.c * self.share) / (1 + self.c))


@dataclass(frozen=True)
class ShrunkenEstimate:
    """One map, or one a class, normalised."""

    maps: tuple[ShrunkenMap, ...]

    @classmethod
    def fit(cls, columns):
        return cls(tuple(fit_map(*column) for column in columns))

    def predict(self, scores):
        if scores.ndim == 1:
            p = self.maps[0](scores)
            return np.column_stack([1 - p, p])
        return normalise(
            np.column_stack([one(scores[:, j]) for j, one in enumerate(self.maps)]), scores
        )


def fit_map(x, weight, positive):
    negative = weight - positive
    share = positive.sum() / weight.sum()
    best = None
    for c in GRID:
        z = (x + c * share) / (1 + c)
        counts = np.concatenate([negative, positive])
        used = counts > 0
        platt = fit_platt(
            np.tile(z, 2)[used],
            np.repeat([0.0, 1.0], len(x))[used],
            counts[used],
            on="logit",
        )
        p = platt(z)
        gain = (positive * np.log(p) + negative * np.log1p(-p)).sum()
        if best is None or gain > best[0]:
            best = gain, ShrunkenMap(platt, c, share)
    return best[1]


class ShrunkenVennAbers(VennAbers):
    """Venn–Abers whose smooth merge is the candidate."""

    def _fit_smooth(self):
        self.smooth_ = ShrunkenEstimate.fit(
            [(table.x, np.diff(table.W), np.diff(table.Y)) for table in self.tables_]
        )
