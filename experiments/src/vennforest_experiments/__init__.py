"""Experiments with vennforest: papers reproduced, named data sets, methods compared over them."""

__version__ = "0.1.0"
