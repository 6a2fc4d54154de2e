"""Named data sets: a local folder, a cache, OpenML; and how each paper prepares them."""

from vennforest.datasets.catalogue import Entry, catalogue
from vennforest.datasets.loading import Dataset, Listing, available, load
from vennforest.datasets.preparation import load_problem, prepare, problems

__all__ = [
    "Dataset",
    "Entry",
    "Listing",
    "available",
    "catalogue",
    "load",
    "load_problem",
    "prepare",
    "problems",
]
