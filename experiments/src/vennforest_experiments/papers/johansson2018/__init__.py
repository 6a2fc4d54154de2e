"""Johansson et al. (2018), Efficient Venn predictors using random forests."""
