"""Fitted classifiers that calibrate within groups of objects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import _num_samples

from vennforest._loaded import expect
from vennforest._shifted import ShiftedPrior
from vennforest._training_rows import predict_training_rows
from vennforest._validation import FloatArray, IntArray
from vennforest.calibrators import Calibrator
from vennforest.calibrators.group_correction import GroupCorrection, correction
from vennforest.groups import (
    Cell,
    GroupedPart,
    Grouping,
    SubModel,
    cells_part,
    grouped_part,
    sub_models,
)
from vennforest.multiprobability import Multiprobability
from vennforest.sources import Part


class ByGroups(ShiftedPrior):
    """What a fitted classifier knows of groups of objects."""

    _grouping: Grouping | None = None
    _grouped: list[GroupedPart] | None = None

    @property
    def grouping_(self) -> Grouping:
        """The groups that were seen at ``fit``."""
        self._fitted()
        if self._grouping is None:
            raise AttributeError("a CalibratedClassifier has groups with by=")
        return self._grouping

    def _fit_calibrator(self, part: Part) -> Calibrator:
        raise NotImplementedError

    def _fit_groups(self) -> None:
        """Fit a calibrator for each group of each part."""
        if self._grouping is None:
            self._grouped = None
            return
        corrected: dict[tuple[int, ...], Calibrator] = {}

        def fit(own: Part) -> tuple[Calibrator, Calibrator | None]:
            assert own.by is not None
            calibrator, base = self._fit_calibrator(own), self._points[0]
            if base is None:
                return calibrator, None
            groups = np.unique(own.by)
            key = tuple(groups.tolist())
            if key not in corrected:
                corrected[key] = self._corrected(base, groups)
            return calibrator, corrected[key]

        self._grouped = [grouped_part(part, self._grouping, fit) for part in self._parts]

    def _corrected(self, base: Calibrator, groups: IntArray) -> Calibrator:
        """Return everybody's map, corrected by the examples of some groups in all parts."""
        scores, codes, weights = [], [], []
        for part in self._parts:
            assert part.by is not None
            rows = np.flatnonzero(np.isin(part.by, groups))
            scores.append(part.scores[rows])
            codes.append(part.codes[rows])
            weights.append(np.ones(len(rows)) if part.weight is None else part.weight[rows])
        return GroupCorrection(base).fit(
            np.concatenate(scores),
            self.classes_[np.concatenate(codes)],
            sample_weight=np.concatenate(weights),
            classes=self.classes_,
        )

    def _predict_training_rows(self) -> tuple[Multiprobability | None, FloatArray]:
        bounds, p = super()._predict_training_rows()
        if self._grouping is None or self._grouped is None:
            return bounds, p
        n, pooled = len(p), self._points[0] is not None
        everybody, p = p, p.copy()
        lower, upper = np.full((2, *p.shape), np.nan)
        for group in range(len(self._grouping)):
            subs = [
                (cells_part(part, grouped, group), grouped.cells[grouped.of_group[group]])
                for part, grouped in zip(self._parts, self._grouped, strict=True)
                if grouped.of_group[group] >= 0
            ]
            parts, calibrators = [sub for sub, _ in subs], [cell.calibrator for _, cell in subs]
            if not parts:
                continue
            mine = np.concatenate(
                [part.rows[part.by == group] for part in parts if part.rows is not None]
            )
            none: list[Any] = [None] * len(parts)
            found, own = predict_training_rows(
                parts, calibrators, none, self.classes_, n, self._row_groups
            )
            if found is not None:
                lower[mine], upper[mine] = found.lower[mine], found.upper[mine]
            if pooled:
                # The correction learns from what is said of each row without it, as it is asked.
                said = [replace(part, scores=_columns(everybody[part.rows])) for part in parts]
                one = [correction()] * len(said)
                own = predict_training_rows(said, one, one, self.classes_, n, self._row_groups)[1]
            known = mine[~np.isnan(own[mine, 0])]
            p[known] = own[known]
        if bounds is None:
            return None, p
        made = Multiprobability(lower, upper, self.classes_)
        return (made.widen(p) if pooled or len(self._parts) > 1 else made), p

    def _sub_models(self, X: Any) -> Iterator[SubModel]:
        """Yield what calibrates the rows of X, for each set of rows that is calibrated alike."""
        everybody = SubModel(None, self._fitted(), self._calibrators, self._points)
        if self._grouping is None or self._grouped is None or not _num_samples(X):
            return iter([everybody])
        return sub_models(self._grouping, self._grouped, everybody, X, _num_samples(X))

    def _own_probabilities(self) -> list[FloatArray]:
        """Return what the groups' maps say of the calibration examples of each part."""
        every = super()._own_probabilities()
        for part, grouped, p in zip(
            self._parts, self._grouped or [], every, strict=bool(self._grouped)
        ):
            assert part.by is not None
            mine = grouped.of_group[part.by]
            for number, cell in enumerate(grouped.cells):
                rows = np.flatnonzero(mine == number)
                if len(rows):
                    p[rows] = _map_of(cell).predict_proba(part.scores[rows])
        return every

    def _check_groups(self) -> None:
        """Refuse groups of other parts.

        Raises
        ------
        ValueError
            If they are.
        """
        expect((self._grouping is None) == (self._grouped is None), "groups and their calibrators")
        if self._grouping is not None and self._grouped is not None:
            expect(isinstance(self._grouping, Grouping), "_grouping must be a Grouping")
            expect(isinstance(self._grouped, list), "_grouped must be a list")
            expect(len(self._grouped) == len(self._parts), "_grouped must be as many as _parts")
            for grouped, part in zip(self._grouped, self._parts, strict=True):
                expect(isinstance(grouped, GroupedPart), "_grouped must be GroupedParts")
                grouped.check_part(part, self.classes_, len(self._grouping))


def _columns(p: FloatArray) -> FloatArray:
    return p[:, 1] if p.shape[1] == 2 else p


def _map_of(cell: Cell) -> Calibrator:
    return cell.calibrator if cell.point is None else cell.point
