"""Model files with changed content and checksums that are right."""

import json
import zipfile
from unittest import mock

import numpy as np
from sklearn.tree._tree import Tree

import vennforest
from vennforest.persistence import model_file
from vennforest.persistence.archive import HEADER, SCHEMA


def parts_of(path):
    """Return the members of a model file: its schema and header as objects, the others as bytes."""
    with zipfile.ZipFile(path) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    return json.loads(parts.pop(SCHEMA)), json.loads(parts.pop(HEADER)), parts


def rewritten(path, change):
    """Change a model file: ``change(schema, header, parts)`` in place."""
    schema, header, parts = parts_of(path)
    change(schema, header, parts)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        for name, data in parts.items():
            file.writestr(name, data)
        file.writestr(SCHEMA, json.dumps(schema))
        file.writestr(HEADER, json.dumps(header))


def save_spoilt(model, path):
    """Save a model that ``save`` refuses since it is not as ``fit`` left it."""
    with mock.patch.object(model_file, "check_readable"):
        vennforest.save(model, path)


def with_nodes(tree, **forged):
    """Replace the fitted ``tree_`` of a tree by one with forged fields of its state or its nodes.

    Each is a function of the present array or number.
    """
    state = tree.tree_.__getstate__()
    for name, change in forged.items():
        if name in state:
            state[name] = change(state[name])
        else:
            state["nodes"][name] = change(state["nodes"][name])
    n_classes = np.array([len(tree.classes_)], dtype=np.intp)
    tree.tree_ = Tree(tree.n_features_in_, n_classes, 1)
    tree.tree_.__setstate__(state)
