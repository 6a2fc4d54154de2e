"""What skops learns from us: to write forests as arrays, and stored types as their fields.

skops's own ``dump`` and ``load`` stay as they are: it writes like this in `Context` alone, and its
tables of types and nodes are made to be added to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from vennforest._files import one_line
from vennforest._state import STORED, from_state, state_of, stored_name
from vennforest.persistence.forests import FORESTS, PackedTrees, pack_trees, unpack_trees

TREES, STATE = "VennforestTreesNode", "VennforestStateNode"
"""Nodes of a forest, and of an object that is constructed from its state."""


@cache
def taught_skops() -> type:
    """Teach skops to write and read both; return the context in which it writes them."""
    from skops.io._audit import NODE_TYPE_MAPPING, Node, get_tree
    from skops.io._protocol import PROTOCOL
    from skops.io._utils import SaveContext, _get_state, get_state

    described = _get_state.dispatch(object)
    forests = {(kind.__module__, kind.__name__) for kind in FORESTS}

    @dataclass(frozen=True)
    class Context(SaveContext):
        """Holds what was written, so that it is written once however often it stands there."""

        packed: dict[int, PackedTrees | None] = field(default_factory=dict)
        written: set[int] = field(default_factory=set)

    def content_of(parts: Mapping[str, Any], context: Any) -> dict[str, Any]:
        return {name: get_state(part, context) for name, part in parts.items()}

    def forest_state(forest: Any, context: Any) -> Any:
        packed = None
        if isinstance(context, Context):
            if id(forest) not in context.packed:
                context.packed[id(forest)] = pack_trees(forest)
            packed = context.packed[id(forest)]
        if packed is None:
            return object_state(forest, context)
        return {
            "__class__": type(forest).__name__,
            "__module__": type(forest).__module__,
            "__loader__": TREES,
            "content": content_of(packed._asdict(), context),
        }

    def object_state(thing: Any, context: Any) -> Any:
        name = stored_name(type(thing)) if isinstance(context, Context) else None
        if name is None:
            return described(thing, context)
        node = {"__class__": name, "__module__": type(thing).__module__.partition(".")[0]}
        if id(thing) in context.written:
            return {**node, "__loader__": "CachedNode"}
        context.written.add(id(thing))
        return {**node, "__loader__": STATE, "content": content_of(state_of(thing), context)}

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
            return (self.module_name, self.class_name) in forests

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
    for kind in FORESTS:
        _get_state.register(kind)(forest_state)
    NODE_TYPE_MAPPING[TREES, PROTOCOL] = TreesNode
    NODE_TYPE_MAPPING[STATE, PROTOCOL] = StateNode
    return Context
