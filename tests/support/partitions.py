"""A forest over partitions on one machine: the oracle of what engines fit on several."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from vennforest.engines import _partitions
from vennforest.forest import Members


@dataclass(frozen=True)
class Partitions:
    """A source of calibration scores: each tree sees one partition, others score its rows."""

    home: Any
    subforest: str = "all"
    votes: str = "soft"

    def folds(self, estimator, data, *, seed, random_state, n_jobs):
        home = np.unique(self.home, return_inverse=True)[1]
        crews = _partitions.plan_crews(estimator, int(home.max()) + 1)
        forests = [
            _partitions.grow_crew(
                estimator, data.rows(np.flatnonzero(home == crew.partition)), crew
            )
            for crew in crews
        ]
        forest = _partitions.join_forests(forests)
        members = Members(forest, self.votes, n_jobs)
        membership = _partitions.bags_of(crews, int(home.max()) + 1)
        scores = members.mean(members.check(data.X), membership, home)
        fold = _partitions.PartitionFold(
            model=forest,
            scores=scores,
            codes=data.codes,
            weight=data.weight,
            classes=data.classes,
            members=members,
            membership=membership,
            homes=home,
            subforest=self.subforest,
            seed=seed,
        )
        return [fold]
