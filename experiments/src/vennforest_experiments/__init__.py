"""Experiments with vennforest: papers reproduced, named data sets, methods compared over them."""

__version__ = "1.0.0rc1"
