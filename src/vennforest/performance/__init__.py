"""Estimation of a model's performance on rows without labels."""

from vennforest.performance.estimate import PerformanceEstimate, estimate_performance

__all__ = ["PerformanceEstimate", "estimate_performance"]
