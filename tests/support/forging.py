"""Model files with changed content and checksums that are right."""

import json
import zipfile
from unittest import mock

import vennforest
from vennforest.persistence import model_file
from vennforest.persistence.model_file import HEADER, SCHEMA


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
