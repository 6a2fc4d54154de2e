"""What a calibrator, a source or a kind of forest of another package is made of.

`register_calibrator`, `register_source` and `register_forest` make one known by name to the
classifier, the command line, reports and model files. A type that model files are to contain gets a
short name with `stored`; what ``fit`` has learnt is a `Learnt`, an ``attrs.frozen`` class whose
fields have the validators of this module, which `fit` and loading pass alike.
"""

from vennforest._state import stored
from vennforest._validation import (
    array,
    check_array,
    check_increasing,
    check_number,
    labels,
    number,
    require,
)
from vennforest.calibrators.core.formula import Term, Terms
from vennforest.calibrators.core.interface import (
    BinaryMap,
    BoundedCalibrator,
    Calibrator,
    Learnt,
    OneVsRestCalibrator,
    register_calibrator,
)
from vennforest.forest import Answers, Bag, ForestKind, forest_kinds, register_forest
from vennforest.sources import (
    Fold,
    ModelScorer,
    Source,
    TrainingData,
    model_scores,
    named_sources,
    register_source,
)

__all__ = [
    "Answers",
    "Bag",
    "BinaryMap",
    "BoundedCalibrator",
    "Calibrator",
    "Fold",
    "ForestKind",
    "Learnt",
    "ModelScorer",
    "OneVsRestCalibrator",
    "Source",
    "Term",
    "Terms",
    "TrainingData",
    "array",
    "check_array",
    "check_increasing",
    "check_number",
    "forest_kinds",
    "labels",
    "model_scores",
    "named_sources",
    "number",
    "register_calibrator",
    "register_forest",
    "register_source",
    "require",
    "stored",
]
