"""Models: operators of ONNX that slide a window over axes: convolutions and pools."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from sparseeinsum.errors import SemanticsError
from sparseeinsum.language.affine_indices import AffineIndex
from sparseeinsum.models.networks.alignment import combined
from sparseeinsum.models.networks.index_terms import ConstantTerm
from sparseeinsum.models.networks.merging import merged
from sparseeinsum.models.networks.movements import padded, reshaped, taken
from sparseeinsum.models.networks.network_values import NetworkValue, new_axis
from sparseeinsum.models.networks.operators.linear_operators import contracted
from sparseeinsum.models.networks.operators.record import NetworkOperator, NodeCall
from sparseeinsum.models.networks.operators.reductions import by_channel, reduced
from sparseeinsum.models.networks.writer import Writer
from sparseeinsum.operators.dtypes import Array


@dataclass(frozen=True, slots=True)
class Window:
    """A window over one axis.

    Attributes:
        size: The number of its elements.
        stride: The distance between places of the window.
        dilation: The distance between its elements.
        before: How far it reaches over the beginning.
        after: How far it reaches over the end.
        places: The number of its places.
    """

    size: int
    stride: int
    dilation: int
    before: int
    after: int
    places: int


def windows_of(call: NodeCall, shape: Sequence[int], sizes: Sequence[int]) -> list[Window]:
    """The windows of a call over axes of a shape, from its attributes."""
    count = len(shape)
    strides = call.attributes.get("strides") or [1] * count
    dilations = call.attributes.get("dilations") or [1] * count
    pads = call.attributes.get("pads") or [0] * (2 * count)
    automatic = str(call.attributes.get("auto_pad", "NOTSET"))
    rounds_up = bool(call.attributes.get("ceil_mode"))
    windows = []
    for axis, bound in enumerate(shape):
        size, stride, dilation = int(sizes[axis]), int(strides[axis]), int(dilations[axis])
        extent = dilation * (size - 1) + 1
        before, after = _padding(automatic, bound, extent, stride, (pads[axis], pads[axis + count]))
        room = bound + before + after - extent
        places = (-(-room // stride) if rounds_up else room // stride) + 1
        if rounds_up and (places - 1) * stride >= bound + before:
            places -= 1  # a window must begin inside
        windows.append(Window(size, stride, dilation, before, after, places))
    return windows


def _padding(automatic: str, bound: int, extent: int, stride: int, pads: tuple[int, int]) -> tuple[int, int]:
    """How far a window reaches over the beginning and the end of an axis."""
    if automatic == "VALID":
        return 0, 0
    if automatic == "NOTSET":
        return pads
    total = max((-(-bound // stride) - 1) * stride + extent - bound, 0)
    less = total // 2
    return (less, total - less) if automatic == "SAME_UPPER" else (total - less, less)


def windowed(writer: Writer, value: NetworkValue, windows: Sequence[Window], number: ConstantTerm) -> NetworkValue:
    """The value with two axes for each of its last ones: the place of the window, and the element in it.

    Args:
        writer: Writes what pads the value.
        value: The value.
        windows: A window for each of its last axes.
        number: What is before the beginning and after the end.
    """
    first = len(value.axes) - len(windows)
    for axis, window in enumerate(windows, first):
        needed = (window.places - 1) * window.stride + window.dilation * (window.size - 1) + 1
        after = max(needed - value.shape[axis] - window.before, 0)
        value = padded(writer, value, axis, window.before, after, number)
    for axis, window in reversed(list(enumerate(windows, first))):
        value = merged(writer, value, axis)
        places, elements = new_axis(window.places), new_axis(window.size)
        terms = [(factor.label, window.stride) for factor in places]
        terms += [(factor.label, window.dilation) for factor in elements]
        at = AffineIndex(tuple(terms), 0)
        axes = (*value.axes[:axis], places, elements, *value.axes[axis + 1 :])
        value = value.replaced({factor.label: at for factor in value.axes[axis]}, axes)
    return value


def convolved(
    writer: Writer, value: NetworkValue, weights: NetworkValue, windows: Sequence[Window], groups: int
) -> NetworkValue:
    """The convolution of a value, of shape (batch, channels out, ...).

    Args:
        writer: Takes the statements.
        value: A value of shape (batch, channels, ...).
        weights: Weights of shape (channels out, channels in a group, ...).
        windows: The window along each further axis.
        groups: How many groups of channels do not mix.
    """
    batch, channels, *_ = value.shape
    outside, inside, *sizes = weights.shape
    if channels != inside * groups:
        raise SemanticsError(f"{channels} channels do not fit weights of {inside} in {groups} groups")
    value = windowed(writer, writer.stored(value), windows, ConstantTerm(0))
    by_group = reshaped(writer, value, [batch, groups, inside, *value.shape[2:]])
    weights = reshaped(writer, weights, [groups, outside // groups, inside, *sizes])
    places = [f"place{axis}" for axis in range(len(windows))]
    elements = [f"element{axis}" for axis in range(len(windows))]
    pairs = [letter for both in zip(places, elements, strict=True) for letter in both]
    letters = [["batch", "group", "in", *pairs], ["group", "out", "in", *elements]]
    result = contracted(writer, [by_group, weights], letters, ["batch", "group", "out", *places])
    group, out = result.axes[1], result.axes[2]
    return replace(result, axes=(result.axes[0], (*group, *out), *result.axes[3:]))


def _with_bias(call: NodeCall, writer: Writer, value: NetworkValue) -> NetworkValue:
    if not call.has(2):
        return value
    return combined(writer, "{0} + {1}", [value, by_channel(call.input(2), value)], value.kind)


def _convolution(call: NodeCall, writer: Writer) -> NetworkValue:
    value, weights = call.input(0), call.input(1)
    windows = windows_of(call, value.shape[2:], weights.shape[2:])
    result = convolved(writer, value, weights, windows, int(call.attributes.get("group", 1)))
    return _with_bias(call, writer, result)


def _transposed_convolution(call: NodeCall, writer: Writer) -> NetworkValue:
    """The convolution of the value, with zeros between its elements, with the weights in reverse order."""
    value, weights = call.input(0), call.input(1)
    groups = int(call.attributes.get("group", 1))
    count = len(value.axes) - 2
    strides = call.attributes.get("strides") or [1] * count
    dilations = call.attributes.get("dilations") or [1] * count
    further = call.attributes.get("output_padding") or [0] * count
    windows = []
    for axis in range(count):
        bound, size, stride, dilation = value.shape[axis + 2], weights.shape[axis + 2], strides[axis], dilations[axis]
        full = (bound - 1) * stride + dilation * (size - 1) + 1 + further[axis]
        before, places = _transposed_places(call, axis, full, bound * stride)
        spread = [-1] * ((bound - 1) * stride + 1)
        spread[::stride] = range(bound)
        value = taken(writer, value, axis + 2, spread)
        weights = taken(writer, weights, axis + 2, list(reversed(range(size))))
        reach = dilation * (size - 1) - before
        if reach < 0:
            value = taken(writer, value, axis + 2, list(range(-reach, value.shape[axis + 2])))
        windows.append(Window(size, 1, dilation, max(reach, 0), 0, places))
    inside, outside, *sizes = weights.shape
    by_group = reshaped(writer, weights, [groups, inside // groups, outside, *sizes])
    order = (0, 2, 1, *range(3, count + 3))
    by_group = replace(by_group, axes=tuple(by_group.axes[position] for position in order))
    turned = reshaped(writer, by_group, [groups * outside, inside // groups, *sizes])
    return _with_bias(call, writer, convolved(writer, value, turned, windows, groups))


def _transposed_places(call: NodeCall, axis: int, full: int, automatic_size: int) -> tuple[int, int]:
    """How many places of a transposed convolution are cut off before an axis, and how many remain."""
    shape, mode = call.attributes.get("output_shape"), str(call.attributes.get("auto_pad", "NOTSET"))
    pads = call.attributes.get("pads")
    if shape:
        places = int(shape[-(len(call.input(0).axes) - 2) :][axis])
    elif mode.startswith("SAME"):
        places = automatic_size
    else:
        before, after = (int(pads[axis]), int(pads[axis + len(pads) // 2])) if pads else (0, 0)
        return before, full - before - after
    cut = max(full - places, 0)
    return (cut // 2 if mode == "SAME_UPPER" else cut - cut // 2), places


def _pool(call: NodeCall, writer: Writer, number: ConstantTerm, function: str, sizes: Sequence[int]) -> NetworkValue:
    value = call.input(0)
    windows = windows_of(call, value.shape[2:], sizes)
    value = windowed(writer, value, windows, number)
    return reduced(writer, value, range(3, len(value.axes), 2), function, keeps=False)


def _max_pool(call: NodeCall, writer: Writer) -> NetworkValue:
    if call.outputs > 1:
        raise SemanticsError("the indices of its greatest values are not supported")
    number = ConstantTerm(-math.inf if call.input(0).kind == "float" else np.iinfo(np.int64).min)
    return _pool(call, writer, number, "max", call.attributes["kernel_shape"])


def _average_pool(call: NodeCall, writer: Writer) -> NetworkValue:
    sizes = call.attributes["kernel_shape"]
    shape = call.input(0).shape[2:]
    total = _pool(call, writer, ConstantTerm(0), "sum", sizes)
    counts = _counts(windows_of(call, shape, sizes), shape, bool(call.attributes.get("count_include_pad")))
    return combined(writer, "{0} / {1}", [total, writer.constant(counts, "counts")], "float")


def _counts(windows: Sequence[Window], shape: Sequence[int], with_padding: bool) -> Array:
    """How many elements the mean of each place of windows is of; one number if all are equal."""
    counts = []
    for window, bound in zip(windows, shape, strict=True):
        starts = np.arange(window.places) * window.stride - window.before
        elements = starts[:, None] + np.arange(window.size) * window.dilation
        first, last = (-window.before, bound + window.after) if with_padding else (0, bound)
        counts.append(((elements >= first) & (elements < last)).sum(1).astype(np.float32))
    product: Array = reduce(np.multiply.outer, counts)
    return product.reshape(-1)[:1].reshape(()) if (product == product.reshape(-1)[0]).all() else product


def _power_pool(call: NodeCall, writer: Writer) -> NetworkValue:
    power = float(call.attributes.get("p", 2))
    raised = combined(writer, f"abs({{0}}) ^ {power}", [call.input(0)], "float")
    inner = replace(call, inputs=(writer.stored(raised),))
    total = _pool(inner, writer, ConstantTerm(0), "sum", call.attributes["kernel_shape"])
    return combined(writer, f"{{0}} ^ {1 / power!r}", [total], "float")


def _global_power_pool(call: NodeCall, writer: Writer) -> NetworkValue:
    power, value = float(call.attributes.get("p", 2)), call.input(0)
    raised = combined(writer, f"abs({{0}}) ^ {power}", [value], "float")
    total = reduced(writer, raised, range(2, len(value.axes)), "sum", keeps=True)
    return combined(writer, f"{{0}} ^ {1 / power!r}", [total], "float")


def _global_pool(function: str) -> NetworkOperator:
    def write(call: NodeCall, writer: Writer) -> NetworkValue:
        value = call.input(0)
        axes = range(2, len(value.axes))
        if function == "max":
            return reduced(writer, value, axes, "max", keeps=True)
        total = reduced(writer, value, axes, "sum", keeps=True)
        return combined(writer, f"{{0}} / {math.prod(value.shape[2:])}", [total], "float")

    return NetworkOperator("GlobalMaxPool" if function == "max" else "GlobalAveragePool", write)


def _local_response(call: NodeCall, writer: Writer) -> NetworkValue:
    value, size = writer.stored(call.input(0)), int(call.attributes["size"])
    alpha, beta, bias = (float(call.attributes[name]) for name in ("alpha", "beta", "bias"))
    before = (size - 1) // 2
    squares = combined(writer, "{0} * {0}", [value], "float")
    last = replace(squares, axes=(*squares.axes[:1], *squares.axes[2:], squares.axes[1]))
    window = Window(size, 1, 1, before, size - 1 - before, value.shape[1])
    around = windowed(writer, last, [window], ConstantTerm(0))
    total = reduced(writer, around, [len(around.axes) - 1], "sum", keeps=False)
    moved = replace(total, axes=(total.axes[0], total.axes[-1], *total.axes[1:-1]))
    formula = f"{{0}} / ({bias!r} + {alpha / size!r} * {{1}}) ^ {beta!r}"
    return combined(writer, formula, [value, moved], "float")


OPERATORS = (
    _global_pool("mean"),
    _global_pool("max"),
    NetworkOperator("AveragePool", _average_pool),
    NetworkOperator("Conv", _convolution),
    NetworkOperator("ConvTranspose", _transposed_convolution),
    NetworkOperator("GlobalLpPool", _global_power_pool),
    NetworkOperator("LRN", _local_response),
    NetworkOperator("LpPool", _power_pool),
    NetworkOperator("MaxPool", _max_pool),
)
