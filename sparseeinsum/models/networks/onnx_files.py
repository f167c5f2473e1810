"""Models: reads models in the ONNX format as programs."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sparseeinsum.environment.extras import imported
from sparseeinsum.errors import DataError, SemanticsError
from sparseeinsum.language.affine_indices import AffineIndex
from sparseeinsum.models.networks.boolean_selections import BooleanSelection
from sparseeinsum.models.networks.index_terms import ConstantTerm, Read, plain
from sparseeinsum.models.networks.merging import merged
from sparseeinsum.models.networks.network_program import Network, NetworkInput
from sparseeinsum.models.networks.network_statements import NetworkStatement
from sparseeinsum.models.networks.network_values import NetworkValue, SizedLabel, new_axis
from sparseeinsum.models.networks.onnx_graphs import GraphReading
from sparseeinsum.models.networks.writer import Writer
from sparseeinsum.models.tensor_names import tensor_name
from sparseeinsum.operators.dtypes import Array
from sparseeinsum.presentation.tracebacks import one_frame

_FIRST_VERSION = 7  # of the operator sets whose arrays are broadcast as in numpy
# The dtypes and kinds of inputs, by the numbers of their dtypes in TensorProto.
_WHOLE = dict.fromkeys((2, 3, 4, 5, 6, 7, 12, 13), ("int64", "int"))
_FLOAT = {1: ("float32", "float"), 10: ("float32", "float"), 16: ("float32", "float"), 11: ("float64", "float")}
_DTYPES = {**_WHOLE, **_FLOAT, 9: ("bool", "bool")}


@one_frame
def read_onnx(source: "str | Path | bytes | Any", /, **sizes: int) -> Network:  # noqa: ANN401  # an onnx.ModelProto
    """Read a model in the ONNX format as a program and the tensors that it reads.

    Every node becomes statements of the language, or a change of the labels at which others read; what does not depend
    on the inputs is computed. Axes of one index are left out, except for those of inputs and outputs. Numbers of
    float16 and bfloat16 are computed in float32; whole numbers in int64, in which they do not overflow as narrower ones
    do; those that a Cast makes of floating-point numbers stay float64. Training is not supported.

    Args:
        source: The path of a file, its bytes, or an onnx.ModelProto.
        sizes: The numbers of indices of the axes that have a name in the model, as in `batch=1`; or those of the axes
            of an input that have none, as in `x_0=1` for axis 0 of input x.

    Raises:
        OSError: The file cannot be read.
        DataError: It is no model of ONNX.
        SemanticsError: The language cannot say a node, which the message names; or an axis has no size.
        PackageError: The package onnx is not installed.
    """
    model = _inlined(_loaded(source))
    writer = Writer()
    reading = GraphReading({opset.domain: opset.version for opset in model.opset_import}, writer)
    if reading.versions.get("", _FIRST_VERSION) < _FIRST_VERSION:
        problem = f"the model is of operator set {reading.versions['']}, and sets before {_FIRST_VERSION} differ"
        raise SemanticsError(f"{problem}; convert it with onnx.version_converter")
    graph = model.graph
    if graph.sparse_initializer:
        raise SemanticsError("the model has sparse weights, which are not supported")
    numpy_helper: Any = imported("onnx.numpy_helper", "onnx", "a network")
    reading.known.update((weights.name, numpy_helper.to_array(weights)) for weights in graph.initializer)
    declared = [declaration for declaration in graph.input if declaration.name not in reading.known]
    inputs = dict(_inputs(declared, sizes, writer))
    for declaration in declared:
        reading.values[declaration.name] = _value_of(inputs[declaration.name], declaration.type.tensor_type.elem_type)
    names = [output.name for output in graph.output]
    outputs = {name: writer.invent(tensor_name(name)) for name in names}
    reading.read_nodes(graph.node, names)
    for name in names:
        _write_output(writer, outputs[name], reading.value(name))
    return _network(writer, inputs, outputs)


def _loaded(source: Any) -> Any:  # noqa: ANN401
    """The model of a file, of bytes, or the model itself."""
    onnx: Any = imported("onnx", "onnx", "a network")
    if isinstance(source, onnx.ModelProto):
        return source
    if isinstance(source, str | Path):
        Path(source).open("rb").close()  # the error of the system, if there is one
    try:
        model = onnx.load_model_from_string(source) if isinstance(source, bytes) else onnx.load(source)
    except Exception as error:
        if isinstance(error, OSError):
            raise
        raise DataError(f"{_shown(source)} is no model of ONNX: {error}") from None
    if not model.graph.output:
        raise DataError(f"{_shown(source)} is no model of ONNX: it has no graph with outputs")
    return model


def _shown(source: object) -> str:
    return "what was given" if isinstance(source, bytes) else str(source)


def _inlined(model: Any) -> Any:  # noqa: ANN401
    """The model without functions of its own, whose nodes replace their calls."""
    if not model.functions:
        return model
    return imported("onnx.inliner", "onnx", "a network").inline_local_functions(model)


def _inputs(
    declarations: Iterable[Any], sizes: Mapping[str, int], writer: Writer
) -> Iterable[tuple[str, NetworkInput]]:
    """The inputs by name; refuses sizes that no input has."""
    used: set[str] = set()
    for declared in declarations:
        tensor_type = declared.type.tensor_type
        if tensor_type.elem_type not in _DTYPES or not tensor_type.HasField("shape"):
            raise SemanticsError(f"the input {declared.name} is no tensor of numbers of a fixed rank")
        shape = tuple(
            _size(declared.name, position, dim, sizes, used) for position, dim in enumerate(tensor_type.shape.dim)
        )
        dtype, _ = _DTYPES[tensor_type.elem_type]
        yield declared.name, NetworkInput(writer.invent(tensor_name(declared.name)), shape, dtype)
    unknown = [name for name in sizes if name not in used]
    if unknown:
        raise SemanticsError(f"no axis of an input has the name {unknown[0]}")


def _size(name: str, position: int, dim: Any, sizes: Mapping[str, int], used: set[str]) -> int:  # noqa: ANN401
    """The number of indices of an axis of an input; `used` gets the name whose size it is."""
    if dim.HasField("dim_value"):
        return int(dim.dim_value)
    key = dim.dim_param if dim.dim_param in sizes or dim.dim_param.isidentifier() else f"{tensor_name(name)}_{position}"
    if key not in sizes:
        raise SemanticsError(f"axis {position} of the input {name} has no fixed size; give one, as in {key}=1")
    used.add(key)
    return int(sizes[key])


def _value_of(network_input: NetworkInput, dtype: int) -> NetworkValue:
    """The value of an input, which is read at index 0 of axes of one index."""
    if 0 in network_input.shape:
        raise SemanticsError(f"the input {network_input.tensor} has an axis without indices")
    axes = tuple(new_axis(size) for size in network_input.shape)
    indices = tuple(plain(axis[0].label) if axis else AffineIndex((), 0) for axis in axes)
    _, kind = _DTYPES[dtype]
    return NetworkValue(axes, Read(network_input.tensor, indices, network_input.shape), kind)


def _write_output(writer: Writer, name: str, value: NetworkValue) -> None:
    """Write the statement of an output, with an axis for every axis of the value."""
    for position in range(len(value.axes)):
        value = merged(writer, value, position)
    term = value.term
    if isinstance(term, ConstantTerm):
        array: Array = np.array(term.value)
        constant = writer.invent(f"{name}_value")
        writer.tensors[constant] = array
        term = Read(constant, (), ())
    factors = [axis[0] if axis else SizedLabel(f"single{position}", 1) for position, axis in enumerate(value.axes)]
    writer.write(name, factors, term)


def _network(writer: Writer, inputs: Mapping[str, NetworkInput], outputs: Mapping[str, str]) -> Network:
    """The network, without the statements that no output needs."""
    needed, chosen = set(outputs.values()), list[NetworkStatement]()
    for statement in reversed(writer.statements):
        if statement.target in needed:
            chosen.append(statement)
            needed |= statement.tensors
    declared = [network_input.declaration for network_input in inputs.values() if network_input.tensor in needed]
    text = "".join(f"{line}\n" for line in (*declared, *(statement.text for statement in reversed(chosen))))
    read = {name: data for name, data in writer.tensors.items() if name in needed}
    weights = {name: data for name, data in read.items() if not isinstance(data, BooleanSelection)}
    selections = {name: data for name, data in read.items() if isinstance(data, BooleanSelection)}
    return Network(text, inputs, outputs, weights, selections)
