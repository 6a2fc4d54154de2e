"""What skops learns from us: to write forests as arrays, and stored types as their fields.

skops's own ``dump`` and ``load`` stay as they are: it writes like this in `Context` alone, and its
tables of types and nodes are made to be added to.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from vennforest._files import one_line
from vennforest._state import STORED, from_state, state_of, stored_name
from vennforest.persistence.forests import PackedTrees, array_types, pack_trees, unpack_trees

TREES, STATE = "VennforestTreesNode", "VennforestStateNode"
"""Nodes of a forest, and of an object that is constructed from its state."""


@cache
def taught_skops() -> type:
    """Teach skops to write and read both; return the context in which it writes them."""
    from skops.io._audit import NODE_TYPE_MAPPING, Node, get_tree
    from skops.io._protocol import PROTOCOL
    from skops.io._utils import SaveContext, _get_state, get_state

    described = _get_state.dispatch(object)

    @dataclass(frozen=True)
    class Context(SaveContext):
        """Contains which objects were written, so each is written once.

        skops reads references to others, but does not write them: a forest that stands in a model
        three times would be described three times.
        """

        written: set[int] = field(default_factory=set)

    def content_of(parts: Mapping[str, Any], context: Any) -> dict[str, Any]:
        return {name: get_state(part, context) for name, part in parts.items()}

    def object_state(thing: Any, context: Any) -> Any:
        if not isinstance(context, Context):
            return described(thing, context)
        cls = type(thing)
        name = stored_name(cls)
        module = cls.__module__ if name is None else cls.__module__.partition(".")[0]
        node = {"__class__": name or cls.__name__, "__module__": module}
        if id(thing) in context.written:
            return {**node, "__loader__": "CachedNode"}
        packed = pack_trees(thing) if name is None else None
        if name is None and packed is None:
            found = described(_without_memory(thing), context)
            if found["__loader__"] != "JsonNode":  # of numbers and text, which are no objects
                context.written.add(id(thing))
            return found
        context.written.add(id(thing))
        loader, parts = (STATE, state_of(thing)) if packed is None else (TREES, packed._asdict())
        return {**node, "__loader__": loader, "content": content_of(parts, context)}

    class PartsNode(Node):
        """Has a node for each of its parts, by their names."""

        def __init__(self, state: Any, load_context: Any, trusted: Any = None) -> None:
            super().__init__(state, load_context, trusted)
            self.children = {
                name: get_tree(part, load_context, trusted=trusted)
                for name, part in state["content"].items()
            }

        def parts(self) -> dict[str, Any]:
            return {name: child.construct() for name, child in self.children.items()}

    class TreesNode(PartsNode):
        """Makes a forest of its description."""

        def is_self_safe(self) -> bool:
            names = {(kind.__module__, kind.__name__) for kind in array_types()}
            return (self.module_name, self.class_name) in names

        def _construct(self) -> Any:
            return unpack_trees(PackedTrees(**self.parts()))

    class StateNode(PartsNode):
        """Calls the constructor of a stored type, which checks what it is given."""

        def is_self_safe(self) -> bool:
            return self.class_name in STORED

        def _construct(self) -> Any:
            cls, parts = STORED[self.class_name], self.parts()
            try:
                return from_state(cls, parts)
            except MemoryError:
                raise
            except Exception as error:  # an argument that is missing, or of another type
                raise ValueError(
                    f"a {cls.__name__} in it is not a result of fit ({one_line(error)})"
                ) from error

    _get_state.register(object)(object_state)
    NODE_TYPE_MAPPING[TREES, PROTOCOL] = TreesNode
    NODE_TYPE_MAPPING[STATE, PROTOCOL] = StateNode
    return Context


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
                "model must contain functions and types that can be imported by name, "
                f"got {module}.{name}: define it at the top of a module"
            )
        if loader == "DictNode":
            _check_keys(node["key_types"]["content"])
        if module.startswith("vennforest."):
            raise TypeError(f"model must consist of registered types, got {name} of {module}")
        yield module.split(".")[0]


def _without_memory(thing: Any) -> Any:
    """Return an object without the folder in which joblib keeps what a pipeline has fitted."""
    if getattr(thing, "__dict__", {}).get("memory") is None:
        return thing
    other = copy(thing)
    other.memory = None
    return other


def _check_keys(types: Sequence[Mapping[str, Any]]) -> None:
    for key in types:
        if key["__class__"] in ("bool", "bool_", "NoneType"):
            raise TypeError(
                f"model must not contain a dictionary with keys of type {key['__class__']}, "
                "which a file would give back as others: use numbers or text "
                "(as in class_weight={0: 1, 1: 5})"
            )


def _found(module: str, name: str) -> bool:
    return hasattr(sys.modules.get(module), name) or hasattr(importlib.import_module(module), name)
