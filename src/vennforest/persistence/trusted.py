"""The types that a model file may hold besides those skops knows to be harmless."""

from vennforest.calibrators import METHODS

# Types of vennforest besides its calibrators, which the registry names.
_OWN = {
    "classifier": ["CalibratedClassifier"],
    "forest.leaves": ["LeafIndex"],
    "forest.membership": ["Membership"],
    "sources.base": ["ModelScorer", "Part"],
    "sources.ensembles": ["BaggingAnswers", "ForestAnswers"],
    "sources.honest": ["HonestForest"],
    "sources.joined": ["JoinedScorer"],
    "sources.out_of_bag": ["OutOfBagScorer"],
    "tables.columns": ["TableColumns"],
    "tables.vectorize": ["TableEncoder"],
    "transductive.classifier": ["TransductiveClassifier"],
}

# scikit-learn's own that skops leaves out. The nodes of trees are checked after loading.
_SKLEARN = {
    "ensemble._hist_gradient_boosting.predictor": ["TreePredictor"],
    "model_selection._split": [
        "GroupKFold",
        "GroupShuffleSplit",
        "KFold",
        "LeaveOneGroupOut",
        "LeaveOneOut",
        "LeavePGroupsOut",
        "LeavePOut",
        "PredefinedSplit",
        "RepeatedKFold",
        "RepeatedStratifiedKFold",
        "ShuffleSplit",
        "StratifiedGroupKFold",
        "StratifiedKFold",
        "StratifiedShuffleSplit",
        "TimeSeriesSplit",
    ],
    "neural_network._stochastic_optimizers": ["AdamOptimizer", "SGDOptimizer"],
    "tree._tree": ["Tree"],
}

# What a fitted TableVectorizer with its default encoders consists of.
_SKRUB = {
    "_apply_to_each_col": ["ApplyToEachCol"],
    "_check_input": ["CheckInputDataFrame"],
    "_clean_categories": ["CleanCategories"],
    "_clean_null_strings": ["CleanNullStrings"],
    "_dataframe._common": ["is_any_date", "is_categorical", "is_numeric"],
    "_datetime_encoder": ["DatetimeEncoder"],
    "_drop_uninformative": ["DropUninformative"],
    "_duration_to_float": ["DurationToFloat"],
    "_string_encoder": ["StringEncoder"],
    "_table_vectorizer": [
        "PassThrough",
        "ShortReprDict",
        "TableVectorizer",
        "_created_by_predicate",
    ],
    "_to_datetime": ["ToDatetime"],
    "_to_float": ["ToFloat"],
    "_to_str": ["ToStr"],
    "selectors._base": ["All", "And", "Cols", "Filter", "Sub"],
    "selectors._selectors": ["_cardinality_below"],
}


def _names(package: str, modules: dict[str, list[str]]) -> list[str]:
    return [f"{package}.{module}.{name}" for module, names in modules.items() for name in names]


_CALIBRATORS = dict.fromkeys(
    f"{type_.__module__}.{type_.__qualname__}"
    for method in METHODS.values()
    for type_ in (method.calibrator, *method.parts)
)

TRUSTED = (
    *_CALIBRATORS,
    *_names("vennforest", _OWN),
    *_names("sklearn", _SKLEARN),
    *_names("skrub", _SKRUB),
    "collections.OrderedDict",
    "numpy.dtype",
)
