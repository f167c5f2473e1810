"""Models: reads graphs of ONNX, node by node: what is known is computed, the rest is written as program text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sparseeinsum.environment.extras import imported
from sparseeinsum.errors import SemanticsError, ShapeError
from sparseeinsum.models.networks.folding import folded
from sparseeinsum.models.networks.network_values import NetworkValue
from sparseeinsum.models.networks.onnx_nodes import attributes_of, body_of, defaults_of, inlined, inputs_of, schema_of
from sparseeinsum.models.networks.operators.record import NodeCall
from sparseeinsum.models.networks.operators.table import OPERATORS
from sparseeinsum.models.networks.writer import Writer
from sparseeinsum.models.tensor_names import tensor_name
from sparseeinsum.operators.dtypes import Array

_MAIN_DOMAINS = ("", "ai.onnx")  # of ONNX's own operators
OF_TYPES = ("Shape", "Size", "EyeLike", "CastLike")  # whose outputs depend on shapes and dtypes alone
_DTYPE_OF_KIND = {"float": np.float32, "int": np.int64, "bool": np.bool_}

_Node = Any  # an onnx.NodeProto


@dataclass
class GraphReading:
    """Reads the nodes of a graph.

    Attributes:
        versions: The versions of the operator sets, by domain.
        writer: Writes statements.
        known: The arrays that are known without the inputs, by name.
        values: What depends on inputs, by name.
        readers: How many nodes and outputs read each name.
    """

    versions: Mapping[str, int]
    writer: Writer
    known: dict[str, Array] = field(default_factory=dict)
    values: dict[str, NetworkValue] = field(default_factory=dict)
    readers: dict[str, int] = field(default_factory=dict)

    def read_nodes(self, nodes: Sequence[_Node], outputs: Sequence[str]) -> None:
        """Read nodes, in topological order, as far as the outputs need them.

        Raises:
            SemanticsError: A node cannot be written; the message has its name and its operator.
        """
        try:
            self._read_nodes(nodes, outputs)
        except _NodeError as error:
            raise SemanticsError(str(error)) from error.__cause__

    def _read_nodes(self, nodes: Sequence[_Node], outputs: Sequence[str]) -> None:
        """Read nodes; raise _NodeError for the innermost one that cannot be written."""
        needed, chosen = set(outputs), []
        for node in reversed(nodes):
            if needed.intersection(node.output):
                chosen.append(node)
                needed.update(inputs_of(node))
        for name in (*(name for node in chosen for name in inputs_of(node)), *outputs):
            self.readers[name] = self.readers.get(name, 0) + 1
        for node in reversed(chosen):
            wanted = max(position for position, name in enumerate(node.output, 1) if name in needed)
            try:
                self._read_node(node, wanted)
            except (SemanticsError, ShapeError) as error:
                if isinstance(error, _NodeError):
                    raise
                title = f"{node.op_type} {node.name}" if node.name else f"{node.op_type} of {node.output[0]}"
                raise _NodeError(f"the node {title} cannot be written as a program: {error}") from error

    def value(self, name: str) -> NetworkValue:
        """The value of a name."""
        if name in self.values:
            return self.values[name]
        if name not in self.known:
            raise SemanticsError(f"there is no {name}")
        return self.writer.constant(self.known[name], tensor_name(name))

    def _read_node(self, node: _Node, wanted: int) -> None:
        if node.op_type in OF_TYPES and self._is_of_type(node):
            self.known[node.output[0]] = self._of_type(node)
            return
        if all(not name or name in self.known for name in inputs_of(node)):
            arrays = {name: self.known[name] for name in inputs_of(node)}
            results = folded(node, arrays, self.versions)
            self.known.update((name, array) for name, array in zip(node.output, results, strict=True) if name)
            return
        if node.domain in _MAIN_DOMAINS and node.op_type in OPERATORS:
            self._write_node(node, wanted)
            return
        self._read_function(node)

    def _is_of_type(self, node: _Node) -> bool:
        """Whether the output of a node is known, although it has an input that depends on the data."""
        return node.input[0] in self.known if node.op_type == "CastLike" else node.input[0] in self.values

    def _of_type(self, node: _Node) -> Array:
        """The output of a node that depends on the shape or the dtype of an input alone."""
        attributes = attributes_of(node)
        if node.op_type == "CastLike":
            like = self.known.get(node.input[1])
            dtype = _DTYPE_OF_KIND[self.value(node.input[1]).kind] if like is None else like.dtype
            return self.known[node.input[0]].astype(dtype)
        shape = self.values[node.input[0]].shape
        if node.op_type == "EyeLike":
            rows, columns = shape
            return np.eye(
                rows, columns, attributes.get("k", 0), np.int64 if attributes.get("dtype") == 7 else np.float32
            )
        part = np.array(shape, np.int64)[attributes.get("start", 0) : attributes.get("end")]
        return part if node.op_type == "Shape" else np.array(part.prod())

    def _write_node(self, node: _Node, wanted: int) -> None:
        schema = schema_of(node, self.versions)
        inputs = tuple(self.value(name) if name else None for name in node.input)
        arrays = tuple(self.known.get(name) for name in node.input)
        attributes = {**defaults_of(schema), **attributes_of(node)}
        call = NodeCall(node.op_type, schema.since_version, inputs, arrays, attributes, wanted)
        self.writer.title = tensor_name(node.op_type.lower())
        outcome = OPERATORS[node.op_type].write(call, self.writer)
        results = [outcome] if isinstance(outcome, NetworkValue) else outcome
        for name, value in zip(node.output, results, strict=False):
            if name:
                is_shared = self.readers.get(name, 0) > 1 and not value.is_plain
                self.values[name] = self.writer.stored(value) if is_shared else value

    def _read_function(self, node: _Node) -> None:
        """Read the nodes of which ONNX defines an operator."""
        body = body_of(node, self.versions, [self._type_of(name) for name in node.input])
        nodes = inlined(node, body, schema_of(node, self.versions))
        versions = {**self.versions, **{opset.domain: opset.version for opset in body.opset_import}}
        replace(self, versions=versions)._read_nodes(nodes, [name for name in node.output if name])

    def _type_of(self, name: str) -> Any:  # noqa: ANN401
        """The type of a name, an onnx.TypeProto."""
        helper: Any = imported("onnx.helper", "onnx", "a network")
        if not name:
            return imported("onnx", "onnx", "a network").TypeProto()
        if name in self.known:
            array = self.known[name]
            return helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        value = self.value(name)
        return helper.make_tensor_type_proto({"float": 1, "int": 7, "bool": 9}[value.kind], value.shape)


class _NodeError(SemanticsError):
    """An error that names its node already."""
