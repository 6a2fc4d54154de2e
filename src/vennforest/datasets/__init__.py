"""Named data sets: a local folder, a cache, OpenML."""

from vennforest.datasets.catalogue import Entry, catalogue
from vennforest.datasets.loading import Dataset, Listing, available, load

__all__ = ["Dataset", "Entry", "Listing", "available", "catalogue", "load"]
