"""Data in partitions: Spark and Dask.

Each engine runs tasks on partitions. A task counts labelled scores (`ScoreCounts`), predicts
(`BatchPredictor`), grows trees, or scores rows by trees.
"""

from vennforest._messages import needed

needed("pyarrow", "engines")
