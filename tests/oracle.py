"""Slow, obvious versions of every algorithm, straight from the papers' formulas.

Nothing here is fast or clever on purpose: what the library computes is compared with these.
"""

from __future__ import annotations

# --- Venn–Abers ------------------------------------------------------------------------------

# --- Venn predictors and taxonomies ----------------------------------------------------------

# --- Platt, isotonic, Boström, beta, temperature ---------------------------------------------

# --- forests: votes, out-of-bag membership and scores ----------------------------------------

# --- measures --------------------------------------------------------------------------------

# --- comparison of methods over data sets ----------------------------------------------------
