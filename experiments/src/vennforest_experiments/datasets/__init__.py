"""Named data sets: a local folder, a cache, OpenML."""

from vennforest_experiments.datasets.catalogue import Entry, catalogue
from vennforest_experiments.datasets.loading import Dataset, Listing, available, load

__all__ = ["Dataset", "Entry", "Listing", "available", "catalogue", "load"]
