"""Kinds of findings of an audit, and a forest to audit."""

from sklearn.ensemble import RandomForestClassifier

from vennforest import audit


def kinds(*arguments, **options):
    return [finding.kind for finding in audit(*arguments, **options)]


def forest(n=20):
    return RandomForestClassifier(n, random_state=0)
