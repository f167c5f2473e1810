"""Models: what nodes of ONNX say: their inputs, attributes and definitions."""

from collections.abc import Mapping, Sequence
from typing import Any

from sparseeinsum.environment.extras import imported
from sparseeinsum.errors import SemanticsError

OnnxNode = Any  # an onnx.NodeProto


def inputs_of(node: OnnxNode) -> list[str]:
    """The names that a node reads, also in its subgraphs."""
    names = [name for name in node.input if name]
    for attribute in node.attribute:
        for inner in attribute.g.node if attribute.HasField("g") else ():
            names += inputs_of(inner)
    return names


def attributes_of(node: OnnxNode) -> dict[str, Any]:
    """The attributes of a node, by name; texts as str."""
    helper: Any = imported("onnx.helper", "onnx", "a network")
    values = {}
    for attribute in node.attribute:
        value = helper.get_attribute_value(attribute)
        values[attribute.name] = value.decode() if isinstance(value, bytes) else value
    return values


def defaults_of(schema: Any) -> dict[str, Any]:  # noqa: ANN401
    """The values that attributes have by definition, by name."""
    helper: Any = imported("onnx.helper", "onnx", "a network")
    values = {}
    for name, attribute in schema.attributes.items():
        if attribute.default_value.name:
            value = helper.get_attribute_value(attribute.default_value)
            values[name] = value.decode() if isinstance(value, bytes) else value
    return values


def schema_of(node: OnnxNode, versions: Mapping[str, int]) -> Any:  # noqa: ANN401
    """The definition of the operator of a node, an onnx.defs.OpSchema.

    Raises:
        SemanticsError: ONNX does not define it.
    """
    definitions: Any = imported("onnx.defs", "onnx", "a network")
    try:
        return definitions.get_schema(node.op_type, versions.get(node.domain, 1), node.domain)
    except definitions.SchemaError:
        operator = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
        raise SemanticsError(f"ONNX does not define the operator {operator}") from None


def body_of(node: OnnxNode, versions: Mapping[str, int], types: Sequence[Any]) -> Any:  # noqa: ANN401
    """The nodes by which ONNX defines an operator, an onnx.FunctionProto.

    Args:
        node: A node of the operator.
        versions: The versions of the operator sets by domain.
        types: The types of its inputs, onnx.TypeProto.

    Raises:
        SemanticsError: It is defined by no nodes.
    """
    schema = schema_of(node, versions)
    function: Any = imported("onnx", "onnx", "a network").FunctionProto()
    version = versions.get(node.domain, 1)
    if schema.has_function:
        fitting = [known for known in schema.function_opset_versions if known <= version]
        text = schema.get_function_with_opset_version(max(fitting)) if fitting else b""
    elif schema.has_context_dependent_function:
        fitting = [known for known in schema.context_dependent_function_opset_versions if known <= version]
        serialized = [kind.SerializeToString() for kind in types]
        text = (
            schema.get_context_dependent_function_with_opset_version(max(fitting), node.SerializeToString(), serialized)
            if fitting
            else b""
        )
    else:
        text = b""
    if not text:
        raise SemanticsError("the operator is not supported")
    function.ParseFromString(text)
    return function


def inlined(node: OnnxNode, body: Any, schema: Any) -> list[OnnxNode]:  # noqa: ANN401
    """The nodes of a definition, with the names and attributes of a node in place of its parameters.

    Args:
        node: The node.
        body: The nodes that define its operator, an onnx.FunctionProto.
        schema: The definition of its operator, with the values of attributes that the node leaves out.
    """
    names = dict.fromkeys(body.input, "") | dict(zip(body.input, node.input, strict=False))
    names |= {inner: outer for inner, outer in zip(body.output, node.output, strict=False) if outer}
    prefix = f"{node.name or next(filter(None, node.output))}/"
    defaults = (attribute.default_value for attribute in schema.attributes.values() if attribute.default_value.name)
    values = {attribute.name: attribute for attribute in (*defaults, *body.attribute_proto, *node.attribute)}
    nodes = []
    for inner in body.node:
        copy = type(inner)()
        copy.CopyFrom(inner)
        for place in (copy.input, copy.output):
            for position, name in enumerate(place):
                place[position] = names.get(name, f"{prefix}{name}") if name else ""
        del copy.attribute[:]
        copy.attribute.extend(_attributes_with(inner.attribute, values))
        nodes.append(copy)
    return nodes


def _attributes_with(attributes: Sequence[Any], values: Mapping[str, Any]) -> Sequence[Any]:
    """Attributes with `values` in place of those that refer to them by name; without those whose name has no value."""
    copies = []
    for attribute in attributes:
        if not attribute.ref_attr_name:
            copies.append(attribute)
        elif attribute.ref_attr_name in values:
            copy = type(attribute)()
            copy.CopyFrom(values[attribute.ref_attr_name])
            copy.name = attribute.name
            copies.append(copy)
    return copies
