"""Drawn rows of a stream."""


def draw(rng, n):
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] + rng.logistic(size=n) > 1).astype(int)
