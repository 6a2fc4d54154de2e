"""Fitted classifiers that calibrate within groups of objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import _num_samples

from vennforest._loaded import expect
from vennforest._validation import FloatArray, IntArray
from vennforest.calibrators import Calibrator
from vennforest.calibrators.group_correction import (
    RIDGES,
    GroupCorrection,
    choose_ridge,
    correction,
)
from vennforest.classifier.shifted import ShiftedPrior
from vennforest.classifier.training_rows import predict_training_rows
from vennforest.groups.cells import (
    Cell,
    GroupedFold,
    SubModel,
    cells_part,
    grouped_part,
    sub_models,
)
from vennforest.groups.labels import Grouping
from vennforest.multiprobability import Multiprobability
from vennforest.sources import Fold


class ByGroups(ShiftedPrior):
    """What a fitted classifier knows of groups of objects."""

    _grouping: Grouping | None = None
    _grouped: list[GroupedFold] | None = None
    _ridge: float = RIDGES[0]
    """How strongly the maps of groups are shrunk towards the overall map."""

    @property
    def grouping_(self) -> Grouping:
        """The groups that were seen at ``fit``."""
        self._fitted()
        if self._grouping is None:
            raise AttributeError("a CalibratedClassifier has groups with by=")
        return self._grouping

    def _fit_calibrator(self, part: Fold) -> Calibrator:
        raise NotImplementedError

    def _fit_groups(self) -> None:
        """Fit a calibrator for each group of each part."""
        if self._grouping is None:
            self._grouped = None
            return
        everybody = _Everybody.of(self._parts)
        base, numbers = self._points[0], np.arange(len(self._grouping))
        if base is not None:
            self._ridge = choose_ridge(
                base.predict_proba(everybody.scores),
                everybody.codes,
                everybody.weight,
                [np.flatnonzero(everybody.by == group) for group in numbers],
            )
        corrected: dict[tuple[int, ...], Calibrator] = {}

        def fit(own: Fold) -> tuple[Calibrator, Calibrator | None]:
            calibrator = self._fit_calibrator(own)
            if base is None:
                return calibrator, None
            groups = np.unique(own.by)  # type: ignore[arg-type]
            key = tuple(groups.tolist())
            if key not in corrected:
                rows = np.flatnonzero(np.isin(everybody.by, groups))
                corrected[key] = GroupCorrection(base, self._ridge).fit(
                    everybody.scores[rows],
                    self.classes_[everybody.codes[rows]],
                    sample_weight=everybody.weight[rows],
                    classes=self.classes_,
                )
            return calibrator, corrected[key]

        self._grouped = [grouped_part(part, self._grouping, fit) for part in self._parts]

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
                one = [correction(self._ridge)] * len(said)
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
            expect(self._ridge in RIDGES, "_ridge must be one of those there are")
            expect(isinstance(self._grouped, list), "_grouped must be a list")
            expect(len(self._grouped) == len(self._parts), "_grouped must be as many as _parts")
            for grouped, part in zip(self._grouped, self._parts, strict=True):
                expect(isinstance(grouped, GroupedFold), "_grouped must be GroupedParts")
                grouped.check_part(part, self.classes_, self._grouping)


class _Everybody(NamedTuple):
    """The calibration examples of all parts, one after another."""

    scores: FloatArray
    codes: IntArray
    weight: FloatArray
    by: IntArray

    @classmethod
    def of(cls, parts: Sequence[Fold]) -> Self:
        """Return them; parts that do not tell groups are refused where they are calibrated."""
        return cls(
            np.concatenate([part.scores for part in parts]),
            np.concatenate([part.codes for part in parts]).astype(np.intp),
            np.concatenate(
                [np.ones(len(p.codes)) if p.weight is None else p.weight for p in parts]
            ),
            np.concatenate(
                [np.zeros(len(p.codes), np.intp) if p.by is None else p.by for p in parts]
            ),
        )


def _columns(p: FloatArray) -> FloatArray:
    return p[:, 1] if p.shape[1] == 2 else p


def _map_of(cell: Cell) -> Calibrator:
    return cell.calibrator if cell.point is None else cell.point
