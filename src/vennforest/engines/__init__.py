"""Data that no single table contains: Spark and Dask.

Each engine is a thin adapter over two seams: counts of the classes at scores, which add up
(`vennforest.counts`), and predictions record batch by record batch (`vennforest.batch`).
"""

from vennforest._messages import needed

needed("pyarrow", "engines")
