"""Models: operators of ONNX that round numbers to a few bits, and back."""

from dataclasses import replace

import numpy as np

from sparseeinsum.errors import SemanticsError
from sparseeinsum.models.networks.alignment import combined
from sparseeinsum.models.networks.network_values import NetworkValue
from sparseeinsum.models.networks.operators.elementwise import cast
from sparseeinsum.models.networks.operators.linear_operators import matrix_product
from sparseeinsum.models.networks.operators.record import NetworkOperator, NodeCall
from sparseeinsum.models.networks.operators.reductions import reduced
from sparseeinsum.models.networks.writer import Writer

_ROUNDED = "clip(round({0} / {1}) + {2}, LOW, HIGH)"


def _along(call: NodeCall, value: NetworkValue, position: int) -> NetworkValue:
    """An input with a number for all elements, or one for each index of an axis of a value."""
    parameter = call.input(position)
    if len(parameter.axes) == 0 or parameter.shape == (1,):
        return replace(parameter, axes=())
    if len(parameter.axes) > 1 or call.attributes.get("block_size"):
        raise SemanticsError("scales of blocks are not supported")
    axis = call.axis(1, len(value.axes))
    around = [parameter.axes[0] if place == axis else () for place in range(len(value.axes))]
    return replace(parameter, axes=tuple(around))


def _dequantize(call: NodeCall, writer: Writer) -> NetworkValue:
    value = call.input(0)
    if call.has(2):
        value = combined(writer, "{0} - {1}", [value, _along(call, value, 2)], "int")
    return combined(writer, "{0} * {1}", [value, _along(call, value, 1)], "float")


def _quantize(call: NodeCall, writer: Writer) -> NetworkValue:
    value = call.input(0)
    dtype = call.array(2, "dtype").dtype if call.has(2) else np.dtype(np.uint8)
    if dtype.name not in ("int8", "uint8", "int16", "uint16") or call.attributes.get("output_dtype"):
        raise SemanticsError(f"numbers of {dtype} are not supported")
    bounds = np.iinfo(dtype)
    formula = _ROUNDED.replace("LOW", f"({bounds.min})").replace("HIGH", str(bounds.max))
    inputs = [value, _along(call, value, 1)]
    if not call.has(2):
        return combined(writer, formula.replace(" + {2}", ""), inputs, "int")
    return combined(writer, formula, [*inputs, _along(call, value, 2)], "int")


def _quantize_by_range(call: NodeCall, writer: Writer) -> tuple[NetworkValue, NetworkValue, NetworkValue]:
    value = writer.stored(call.input(0))
    axes = range(len(value.axes))
    greatest = reduced(writer, value, axes, "max", keeps=False)
    least = reduced(writer, value, axes, "min", keeps=False)
    scale = writer.stored(combined(writer, "(max({0}, 0) - min({1}, 0)) / 255", [greatest, least], "float"))
    zero = writer.stored(combined(writer, "clip(round(-min({0}, 0) / {1}), 0, 255)", [least, scale], "int"))
    formula = _ROUNDED.replace("LOW", "0").replace("HIGH", "255")
    return combined(writer, formula, [value, scale, zero], "int"), scale, zero


def _matmul_of_integers(call: NodeCall, writer: Writer) -> NetworkValue:
    factors = [call.input(0), call.input(1)]
    for number, position in enumerate((2, 3)):
        if call.has(position):
            zero = call.input(position)
            rank = len(factors[number].axes)
            if len(zero.axes) == 1 and number == 0 and rank > 1:  # a number for each row
                zero = replace(zero, axes=(zero.axes[0], ()))
            factors[number] = combined(writer, "{0} - {1}", [factors[number], zero], "int")
    return cast(writer, matrix_product(writer, *factors), "int")


OPERATORS = (
    NetworkOperator("DequantizeLinear", _dequantize),
    NetworkOperator("DynamicQuantizeLinear", _quantize_by_range),
    NetworkOperator("MatMulInteger", _matmul_of_integers),
    NetworkOperator("QuantizeLinear", _quantize),
)
