"""Builder of ONNX graphs, and the language in which formulas are written as their nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from vennforest._messages import needed
from vennforest._validation import FloatArray
from vennforest.calibrators.formula import LookupTable, Operation, Term, Value, Written, write_terms
from vennforest.export.formulas import write_outputs
from vennforest.forest import Votes

OPSET = 17
"""Version of the standard operators; those used here mean the same in later versions."""

IR_VERSION = 8
"""Version of the format that came with these operators, and the one that skl2onnx writes."""

PART = "vennforest"
"""Operator and domain of the parts of a converted model that are written here."""

OPERATORS = {"subtract": "Sub", "multiply": "Mul", "divide": "Div", "product": "MatMul"}
"""Names of operators that differ from the capitalized names of the operations."""

REDUCTIONS = {"sum": "ReduceSum", "largest": "ReduceMax", "smallest": "ReduceMin"}
"""Names of operators on the numbers of all classes."""

OUTPUTS = ("p0", "p1", "p", "low95", "high95")
"""Names of the outputs."""


PartWriter = Callable[[int, list[str]], list[str]]
"""Adds part i of a converted model; returns the names of its outputs from those of its inputs."""


class GraphInput(NamedTuple):
    """An input (n,), or (n, width) if there is a width, of numbers or text."""

    name: str
    width: int | None = None
    is_text: bool = False


class OnnxGraph:
    """A builder of an ONNX graph, which collects nodes and constants.

    It is also a language of formulas, in which a term is the name of a value in the graph. Values
    are (n,) of the second of two classes, else (n, k) or, where all classes share them, (n, 1).
    ``votes`` are those of the trees of forests.
    """

    def __init__(self, k: int, inputs: Sequence[GraphInput], votes: Votes = "soft") -> None:
        self.k, self.inputs, self.votes = k, inputs, votes
        self.onnx = needed("onnx", "ONNX graphs")
        self.kinds = self.onnx.TensorProto
        self.nodes: list[Any] = []
        self.constants: dict[tuple[str, bytes], Any] = {}
        self.initializers: list[Any] = []
        self.opsets = {"": OPSET}
        self.has_singles = False  # whether a converted part computes in single precision
        self.single_scores: set[str] = set()  # names of scores that Python has in single precision
        self._scores = ""

    def write(self, formulas: dict[str, Term], scores: str) -> dict[str, Term]:
        """Add formulas to the graph, and return their results, by name, as terms.

        ``scores`` is the name of the value in the graph that the formulas read.
        """
        self._scores = scores
        return {name: Written(code) for name, code in write_outputs(formulas, self).items()}

    def value(self, term: Term) -> str:
        """Add a term of values of the graph; return its name."""
        return write_terms([term], self)[0]

    def add(self, converted: Any, names: dict[str, str], write_part: PartWriter) -> list[str]:
        """Add another model; return the names of its outputs.

        ``names`` are the values in this graph of its inputs.
        """
        prefix = f"vennforest_m{len(self.nodes)}_"
        converted = self.onnx.compose.add_prefix(converted, prefix)
        names = {prefix + name: value for name, value in names.items()}
        for node in converted.graph.node:
            inputs = [names.get(name, name) for name in node.input]
            if node.domain == PART:
                outputs = write_part(int(node.attribute[0].i), inputs)
                names |= dict(zip(node.output, outputs, strict=False))
                continue
            node.input[:] = inputs
            self.nodes.append(node)
            to = [entry.i for entry in node.attribute if entry.name == "to"]
            is_exact = node.domain == "" or node.op_type == "ArrayFeatureExtractor"
            self.has_singles |= self.kinds.FLOAT in to or not is_exact
        self.initializers += converted.graph.initializer
        for opset in converted.opset_import:
            if opset.domain != PART:
                self.use_operators(opset.domain, opset.version)
        return [names.get(output.name, output.name) for output in converted.graph.output]

    def use_operators(self, domain: str, version: int) -> None:
        """Note the version of a domain's operators that nodes need."""
        self.opsets[domain] = max(self.opsets.get(domain, 1), version)

    def double(self, code: str) -> str:
        """Add a cast to double precision."""
        return self.node("Cast", code, to=self.kinds.DOUBLE)

    def single(self, code: str) -> str:
        """Add a rounding to single precision; the values remain in double precision."""
        return self.double(self.node("Cast", code, to=self.kinds.FLOAT))

    def constant(self, values: Any) -> str:
        """Add an array, each once, in its own type."""
        array = np.asarray(values)
        key = (f"{array.dtype}{array.shape}", array.tobytes())
        if key not in self.constants:
            name = f"vennforest_c{len(self.constants)}"
            self.constants[key] = self.onnx.numpy_helper.from_array(array, name)
        return str(self.constants[key].name)

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node; return the name of its only output."""
        name = f"vennforest_v{len(self.nodes)}"
        node = self.onnx.helper.make_node(kind, inputs, [name], f"{name}_node", **attributes)
        self.nodes.append(node)
        return name

    def score(self) -> str:
        """Return the name of the scores."""
        return self._scores

    def number(self, value: Value) -> str:
        """Add a constant of a formula."""
        return self.constant(np.asarray(value, np.float64))

    def of_class(self, term: str, j: int) -> str:
        """Add the number of one class, (n, 1)."""
        return self.node("Gather", term, self.constant(np.array([j])), axis=1)

    def apply(self, operation: Operation, *terms: str) -> str:
        """Add the result of an operation."""
        if operation in REDUCTIONS:
            axes = [self.constant(np.array([1]))] if operation == "sum" else []
            options = {} if axes else {"axes": [1]}
            return self.node(REDUCTIONS[operation], *terms, *axes, keepdims=1, **options)
        if operation == "if <=":
            return self.node("Where", self.node("LessOrEqual", *terms[:2]), *terms[2:])
        return self.node(OPERATORS.get(operation, operation.capitalize()), *terms)

    def keep(self, term: str) -> str:
        """Return the same name: every value is computed once."""
        return term

    def look_up(self, tables: Sequence[LookupTable], x: str) -> dict[str, str]:
        """Add the columns' entries for the interval that contains x."""
        # Binary search for the interval: a few nodes for each bit of its index. Tables of equal
        # length lie one after the other: row 0 of the table of each class is its offset.
        size = max(len(table.start) for table in tables)
        bits = max(size - 1, 1).bit_length()

        def joined(columns: Sequence[FloatArray], fill: float) -> str:
            shape = (len(columns), 1 << bits, *columns[0].shape[1:])
            padded = np.full(shape, fill)
            for rows, column in zip(padded, columns, strict=True):
                rows[: len(column)] = column
            return self.constant(padded.reshape(-1, *shape[2:]))

        starts = joined([table.start for table in tables], np.inf)  # infinity is above these too
        # No number is below -inf, nor is NaN: zeros in the shape of x.
        is_never = self.node("Less", x, self.number(-np.inf))
        row = self.node("Cast", is_never, to=self.kinds.INT64)
        if len(tables) > 1:
            row = self.node("Add", row, self.constant(np.arange(len(tables)) << bits))
        for bit in reversed(range(bits)):
            candidate = self.node("Add", row, self.constant(np.int64(1 << bit)))
            start = self.node("Gather", starts, candidate)
            row = self.node("Where", self.node("GreaterOrEqual", x, start), candidate, row)
        first = tables[0].columns
        if any(column.ndim == 2 for column in first.values()):  # of all classes: (n, 1) to (n, k)
            row = self.node("Squeeze", row, self.constant(np.array([1])))
        return {
            name: self.node("Gather", joined([table.columns[name] for table in tables], 0.0), row)
            for name in first
        }

    def model(self, outputs: dict[str, Term]) -> Any:
        """Return a checked ONNX model of all nodes, with outputs (n,) of two classes or (n, k)."""
        helper = self.onnx.helper

        def declared(name: str, width: int | None, is_text: bool = False) -> Any:
            kind = self.kinds.STRING if is_text else self.kinds.DOUBLE
            shape = [None] if width is None else [None, width]
            return helper.make_tensor_value_info(name, kind, shape)

        ends = [
            helper.make_node("Identity", [code], [name], f"{name}_node")
            for name, code in write_outputs(outputs, self).items()
        ]
        graph = helper.make_graph(
            [*self.nodes, *ends],
            "vennforest",
            [declared(*column) for column in self.inputs],
            [declared(name, None if self.k == 2 else self.k) for name in outputs],
            [*self.constants.values(), *self.initializers],
        )
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid(*opset) for opset in self.opsets.items()],
            ir_version=IR_VERSION,
            producer_name="vennforest",
        )
        self.onnx.checker.check_model(model)
        return model
