"""Vovk & Petej (2014), Venn–Abers predictors."""
