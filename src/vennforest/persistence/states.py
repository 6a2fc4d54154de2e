"""The description of a model that is written to a file: skops's, looked through and shortened."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vennforest.persistence.skops_nodes import STATE

ORDER = {"key_types": 0, "__reduce__": 2}
"""What of a description skops reads before, and what after, everything else."""


def named_types(schema: Any) -> set[str]:
    """Return the types that a schema names."""
    return {
        f"{node['__module__']}.{node['__class__']}"
        for node in _states(schema)
        if isinstance(node.get("__module__"), str) and isinstance(node.get("__class__"), str)
    }


def stored_types(schema: Any) -> set[tuple[str, str]]:
    """Return the stored types that a schema names: the package that registers each, its name."""
    return {
        (str(node.get("__module__")), str(node.get("__class__")))
        for node in _states(schema)
        if node.get("__loader__") == STATE
    }


def _states(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield every dictionary in a schema."""
    todo = [schema]
    while todo:
        node = todo.pop()
        if isinstance(node, list | tuple):
            todo.extend(node)
        elif isinstance(node, dict):
            yield node
            todo.extend(value for value in node.values() if isinstance(value, dict | list | tuple))


def check_states(state: Any) -> Iterator[str]:
    """Yield the packages that a model's types come from, refuse what could not be read again."""
    for node in _states(state):
        loader = node.get("__loader__")
        if not isinstance(loader, str):
            continue
        module, name = node["__module__"], node["__class__"]
        if loader in ("FunctionNode", "TypeNode", "ObjectNode") and not _found(module, name):
            raise TypeError(
                "model must hold functions and types that can be imported by name, "
                f"got {module}.{name}: define it at the top of a module"
            )
        if loader == "DictNode":
            _check_keys(node["key_types"]["content"])
        if module.startswith("vennforest."):
            raise TypeError(
                f"model must consist of registered types, got {name} of {module}: see "
                "vennforest._state.stored"
            )
        yield module.split(".")[0]


def forget_folders(state: Any) -> None:
    """Leave out every ``memory``, the folder in which joblib keeps what a pipeline has fitted."""
    for node in _states(state):
        content = node.get("content")
        if node.get("__loader__") == "ObjectNode" and isinstance(content, dict):
            attributes = content.get("content")
            if isinstance(attributes, dict) and "memory" in attributes:
                attributes["memory"] = {
                    "__class__": "str",
                    "__module__": "builtins",
                    "__loader__": "JsonNode",
                    "content": "null",
                    "is_json": True,
                }


def _check_keys(types: Sequence[Mapping[str, Any]]) -> None:
    for key in types:
        if key["__class__"] in ("bool", "bool_", "NoneType"):
            raise TypeError(
                f"model must not hold a dictionary with keys of type {key['__class__']}, "
                "which a file would give back as others: use numbers or text "
                "(as in class_weight={0: 1, 1: 5})"
            )


def _found(module: str, name: str) -> bool:
    return hasattr(sys.modules.get(module), name) or hasattr(importlib.import_module(module), name)


def write_once(state: Any) -> None:
    """Describe every object once, and refer to it wherever else it stands.

    skops reads such references but does not write them: a forest that stands in a model three
    times would be described three times. The order is that in which skops reads.
    """
    known: set[Any] = set()
    todo = [state]
    while todo:
        node = todo.pop()
        if isinstance(node, list | tuple):
            todo.extend(reversed(node))
            continue
        if not isinstance(node, dict):
            continue
        if isinstance(node.get("__loader__"), str) and isinstance(
            node.get("content"), dict | list | tuple
        ):
            number = node.get("__id__")
            if number in known:
                kept = {name: node[name] for name in ("__class__", "__module__", "__id__")}
                node.clear()
                node.update(kept, __loader__="CachedNode")
                continue
            known.add(number)
        order = sorted(node, key=lambda name: ORDER.get(name, 1))
        todo.extend(node[name] for name in reversed(order))
