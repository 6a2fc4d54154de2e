"""Model files changed as a forger would: with whatever content, and checksums that are right."""

import io
import json
import tempfile
import zipfile
from pathlib import Path
from unittest import mock

import numpy as np

import vennforest
from vennforest._state import STORED
from vennforest.persistence import model_file
from vennforest.persistence.archive import HEADER, SCHEMA
from vennforest.persistence.skops_nodes import STATE


def parts_of(path):
    """Return the parts of a model file: its schema and header as objects, the others as bytes."""
    with zipfile.ZipFile(path) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    return json.loads(parts.pop(SCHEMA)), json.loads(parts.pop(HEADER)), parts


def save_spoilt(model, path):
    """Save a model that ``save`` refuses since it is not as ``fit`` left it."""
    with mock.patch.object(model_file, "check_readable"):
        vennforest.save(model, path)


def check_structure(model, name="model"):
    """Refuse a model that ``load`` would refuse."""
    with tempfile.TemporaryDirectory() as folder:
        vennforest.save(model, Path(folder) / name)


def write_parts(path, schema, header, parts):
    """Write such parts as a model file."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        for name, data in parts.items():
            file.writestr(name, data)
        file.writestr(SCHEMA, json.dumps(schema))
        file.writestr(HEADER, json.dumps(header))


def rewritten(path, change):
    """Change a model file: ``change(schema, header, parts)`` in place."""
    schema, header, parts = parts_of(path)
    change(schema, header, parts)
    write_parts(path, schema, header, parts)


def array_of(data):
    """Return the array of a part."""
    return np.load(io.BytesIO(data), allow_pickle=False)


def bytes_of(array):
    """Return the part of an array."""
    out = io.BytesIO()
    np.save(out, array, allow_pickle=False)
    return out.getvalue()


def states(schema):
    """Yield every description of an object in a schema."""
    todo = [schema]
    while todo:
        node = todo.pop()
        if isinstance(node, list):
            todo.extend(node)
        elif isinstance(node, dict):
            if "__loader__" in node:
                yield node
            todo.extend(value for value in node.values() if isinstance(value, dict | list))


def attributes(schema, name):
    """Return the attributes of every object of a type, name to description; there must be one."""
    found = []
    for state in states(schema):
        if state["__class__"] == name and state["__loader__"] == "ObjectNode":
            found.append(state["content"]["content"])
        elif state["__loader__"] == STATE and STORED[state["__class__"]].__name__ == name:
            found.append(state["content"])
    assert found, f"no {name}"
    return found


def constant(value):
    """Return the description of a number, text, truth value or None."""
    return {
        "__class__": "str",
        "__module__": "builtins",
        "__loader__": "JsonNode",
        "content": json.dumps(value),
        "is_json": True,
    }
