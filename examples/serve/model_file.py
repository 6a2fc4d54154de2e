"""Serve a model file: python model_file.py model.skops 8000"""

import sys

import numpy as np
from service import serve

import vennforest

model = vennforest.load(sys.argv[1])


def answer(rows):
    X = np.array(rows)
    bounds = model.predict_multiprobability(X)
    p = model.predict_proba(X)[:, 1]
    return {"p": p.tolist(), "p0": bounds.p0.tolist(), "p1": bounds.p1.tolist()}


if __name__ == "__main__":
    serve(answer, model.n_features_in_)
