"""Models: operators of ONNX that move elements: most of them only change the labels at which others read a value."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sparseeinsum.errors import SemanticsError
from sparseeinsum.models.networks.alignment import aligned, combined
from sparseeinsum.models.networks.index_terms import ConstantTerm, FormulaTerm, IndexValue, plain
from sparseeinsum.models.networks.merging import merged
from sparseeinsum.models.networks.movements import padded, reshaped, taken
from sparseeinsum.models.networks.network_statements import StatementAggregate, write_number
from sparseeinsum.models.networks.network_values import FactoredAxis, NetworkValue, new_axis, widest
from sparseeinsum.models.networks.operators.record import NetworkOperator, NodeCall
from sparseeinsum.models.networks.writer import Writer


def _reshape(call: NodeCall, writer: Writer) -> NetworkValue:
    value = call.input(0)
    wanted = call.numbers("shape", 1, "new shape") or []
    if not call.attributes.get("allowzero"):
        wanted = [value.shape[position] if size == 0 else size for position, size in enumerate(wanted)]
    if -1 in wanted:
        known = math.prod(size for size in wanted if size != -1)
        wanted = [math.prod(value.shape) // max(known, 1) if size == -1 else size for size in wanted]
    return reshaped(writer, value, wanted)


def _flatten(call: NodeCall, writer: Writer) -> NetworkValue:
    value = call.input(0)
    axis = int(call.attributes.get("axis", 1))
    axis = axis + len(value.axes) if axis < 0 else axis
    return reshaped(writer, value, [math.prod(value.shape[:axis]), math.prod(value.shape[axis:])])


def _transpose(call: NodeCall, writer: Writer) -> NetworkValue:
    value = call.input(0)
    order = call.attributes.get("perm") or list(reversed(range(len(value.axes))))
    return replace(value, axes=tuple(value.axes[position] for position in order))


def _squeeze(call: NodeCall, writer: Writer) -> NetworkValue:
    value = call.input(0)
    axes = call.numbers("axes", 1, "axes")
    rank = len(value.axes)
    dropped = [axis % rank for axis in axes] if axes else [a for a in range(rank) if value.shape[a] == 1]
    return replace(value, axes=tuple(axis for position, axis in enumerate(value.axes) if position not in dropped))


def _unsqueeze(call: NodeCall, writer: Writer) -> NetworkValue:
    value = call.input(0)
    axes = call.numbers("axes", 1, "axes") or []
    rank = len(value.axes) + len(axes)
    added = {axis % rank for axis in axes}
    own = iter(value.axes)
    return replace(value, axes=tuple(() if position in added else next(own) for position in range(rank)))


def _expand(call: NodeCall, writer: Writer) -> NetworkValue:
    value = call.input(0)
    return expanded(writer, value, np.broadcast_shapes(value.shape, tuple(call.numbers("shape", 1, "new shape") or ())))


def expanded(writer: Writer, value: NetworkValue, shape: Sequence[int]) -> NetworkValue:
    """The value broadcast to a shape."""
    axes = ((),) * (len(shape) - len(value.axes)) + value.axes
    grown = (axis or new_axis(size) for axis, size in zip(axes, shape, strict=True))
    return replace(value, axes=tuple(grown))


def _slice(call: NodeCall, writer: Writer) -> NetworkValue:
    value = call.input(0)
    rank = len(value.axes)
    starts = call.numbers("starts", 1, "starts") or []
    ends = call.numbers("ends", 2, "ends") or []
    axes = call.numbers("axes", 3, "axes") or list(range(len(starts)))
    steps = call.numbers("steps", 4, "steps") or [1] * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        position = axis % rank
        size = value.shape[position]
        stop = end if step > 0 or end >= -size else None  # in ONNX, what is far below 0 is before the first index
        chosen = range(size)[start:stop:step]
        if len(chosen) < size or step != 1:
            value = _taken(writer, value, position, list(chosen))
    return value


def _taken(writer: Writer, value: NetworkValue, position: int, indices: list[int]) -> NetworkValue:
    if not indices:
        raise SemanticsError("its result has an axis without indices")
    return taken(writer, value, position, indices)


def _split(call: NodeCall, writer: Writer) -> Sequence[NetworkValue]:
    value = call.input(0)
    axis = call.axis(0, len(value.axes))
    size = value.shape[axis]
    sizes = call.numbers("split", 1, "sizes")
    if sizes is None:
        count = int(call.attributes.get("num_outputs") or call.outputs)
        part = -(-size // count)
        sizes = [min(part, size - part * number) for number in range(count)]
    ends = np.cumsum(sizes).tolist()
    return [_taken(writer, value, axis, list(range(end - part, end))) for end, part in zip(ends, sizes, strict=True)]


def concatenated(writer: Writer, values: Sequence[NetworkValue], axis: int) -> NetworkValue:
    """The values one after the other along an axis."""
    total = sum(value.shape[axis] for value in values)
    kind = widest([value.kind for value in values])
    result: NetworkValue | None = None
    before = 0
    for value in values:
        size = value.shape[axis]
        indices = [-1] * before + list(range(size)) + [-1] * (total - before - size)
        placed = taken(writer, value, axis, indices)
        formula = "{0} or {1}" if kind == "bool" else "{0} + {1}"
        result = placed if result is None else combined(writer, formula, [result, placed], kind)
        before += size
    assert result is not None
    return result


def _concat(call: NodeCall, writer: Writer) -> NetworkValue:
    values = [call.input(position) for position in range(len(call.inputs))]
    values = [value for value in values if math.prod(value.shape)]
    return concatenated(writer, values, call.axis(0, len(values[0].axes)))


def _pad(call: NodeCall, writer: Writer) -> NetworkValue:
    value = call.input(0)
    rank = len(value.axes)
    amounts = call.numbers("pads", 1, "amounts") or call.numbers("paddings", 1, "amounts") or []
    axes = call.numbers("axes", 3, "axes") or list(range(rank))
    number = call.array(2, "number").item() if call.has(2) else call.attributes.get("value") or 0
    mode = call.attributes.get("mode", b"constant")
    for position, axis in enumerate(axes):
        before, after = amounts[position], amounts[position + len(axes)]
        value = _padded(writer, value, axis % rank, (before, after), str(mode), ConstantTerm(number))
    return value


def _padded(
    writer: Writer, value: NetworkValue, axis: int, amounts: tuple[int, int], mode: str, number: ConstantTerm
) -> NetworkValue:
    before, after = amounts
    size = value.shape[axis]
    if mode == "constant" and min(before, after) >= 0:
        return padded(writer, value, axis, before, after, number)
    inside = np.arange(size)[max(-before, 0) : size - max(-after, 0)]
    if mode == "constant":
        return padded(writer, _taken(writer, value, axis, inside.tolist()), axis, max(before, 0), max(after, 0), number)
    indices = np.pad(inside, (max(before, 0), max(after, 0)), mode=mode)  # type: ignore[call-overload]  # a mode
    return taken(writer, value, axis, indices.tolist())


def _tile(call: NodeCall, writer: Writer) -> NetworkValue:
    value = call.input(0)
    for axis, count in enumerate(call.numbers("repeats", 1, "counts") or []):
        repeated = replace(value, axes=(*value.axes[:axis], new_axis(count), *value.axes[axis:]))
        if count > 1:
            shape = [*value.shape[:axis], value.shape[axis] * count, *value.shape[axis + 1 :]]
            value = reshaped(writer, repeated, shape)
    return value


def _gather(call: NodeCall, writer: Writer) -> NetworkValue:
    value, axis = call.input(0), call.axis(0, len(call.input(0).axes))
    size = value.shape[axis]
    indices = call.arrays[1]
    if indices is not None:
        flat = [int(index) % size for index in indices.reshape(-1)]
        taken = _taken(writer, value, axis, flat)
        return reshaped(writer, taken, [*value.shape[:axis], *indices.shape, *value.shape[axis + 1 :]])
    at = writer.stored(call.input(1)).fresh()
    value = writer.stored(merged(writer, value, axis)).fresh()
    axes = (*value.axes[:axis], *at.axes, *value.axes[axis + 1 :])
    return _looked_up(writer, value, axis, at, axes)


def _looked_up(
    writer: Writer, value: NetworkValue, axis: int, at: NetworkValue, axes: Sequence[FactoredAxis]
) -> NetworkValue:
    """The value at indices of an axis that are data."""
    factors = value.axes[axis]
    if not factors:
        return replace(value, axes=tuple(axes))
    (factor,) = factors
    position = IndexValue(plain(factor.label))
    wanted = "where({1} < 0, {1} + " + str(factor.size) + ", {1})"
    if value.kind == "bool":
        formula, function = f"{{0}} == {wanted} and {{2}}", "any"
    else:
        formula, function = f"where({{0}} == {wanted}, {{2}}, 0)", "sum"
    term = FormulaTerm(formula, (position, at.term, value.term))
    return writer.computed(axes, term, value.kind, StatementAggregate(function, factors))


def _gather_elements(call: NodeCall, writer: Writer) -> NetworkValue:
    value, at = call.input(0), call.input(1)
    rank = len(value.axes)
    axis = call.axis(0, rank)
    for position in range(rank):
        if position != axis and value.shape[position] != at.shape[position]:
            value = _taken(writer, value, position, list(range(at.shape[position])))
    groups = [[(0, position), (1, position)] for position in range(rank) if position != axis]
    (value, at), _ = aligned(writer, [merged(writer, value, axis), at], groups)
    return _looked_up(writer, writer.stored(value), axis, writer.stored(at), at.axes)


def _one_hot(call: NodeCall, writer: Writer) -> NetworkValue:
    at, depth = call.input(0), int(call.array(1, "depth").item())
    numbers = call.array(2, "numbers")
    off, on = (write_number(number.item()) for number in numbers)
    axis = int(call.attributes.get("axis", -1)) % (len(at.axes) + 1)
    at = writer.stored(at).fresh()
    new = new_axis(depth)
    axes = (*at.axes[:axis], new, *at.axes[axis:])
    position = IndexValue(plain(new[0].label)) if new else ConstantTerm(0)
    formula = f"where({{0}} == mod({{1}}, {depth}), {on}, {off})"
    inside = f"where({{1}} >= -{depth} and {{1}} < {depth}, {formula}, {off})"
    return NetworkValue(axes, FormulaTerm(inside, (position, at.term)), "float" if numbers.dtype.kind == "f" else "int")


def _triangle(call: NodeCall, writer: Writer) -> NetworkValue:
    value = call.input(0)
    offset = int(call.array(1, "diagonal").item()) if call.has(1) else 0
    rank = len(value.axes)
    value = merged(writer, merged(writer, value, rank - 2), rank - 1)
    value = writer.stored(value).fresh()
    row, column = (IndexValue(plain(axis[0].label)) if axis else ConstantTerm(0) for axis in value.axes[-2:])
    comparison = "{1} - {0} >= " if call.attributes.get("upper", 1) else "{1} - {0} <= "
    formula = f"where({comparison}{offset}, {{2}}, 0)"
    return NetworkValue(value.axes, FormulaTerm(formula, (row, column, value.term)), value.kind)


def _depth_to_space(call: NodeCall, writer: Writer) -> NetworkValue:
    value, block = call.input(0), int(call.attributes["blocksize"])
    batch, depth, height, width = value.shape
    is_column = call.attributes.get("mode", "DCR") == "DCR"
    inner = depth // block**2
    parts = [batch, block, block, inner, height, width] if is_column else [batch, inner, block, block, height, width]
    order = (0, 3, 4, 1, 5, 2) if is_column else (0, 1, 4, 2, 5, 3)
    split = reshaped(writer, value, parts)
    moved = replace(split, axes=tuple(split.axes[position] for position in order))
    return reshaped(writer, moved, [batch, inner, height * block, width * block])


def _space_to_depth(call: NodeCall, writer: Writer) -> NetworkValue:
    value, block = call.input(0), int(call.attributes["blocksize"])
    batch, depth, height, width = value.shape
    split = reshaped(writer, value, [batch, depth, height // block, block, width // block, block])
    order = (0, 3, 5, 1, 2, 4) if call.attributes.get("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    moved = replace(split, axes=tuple(split.axes[position] for position in order))
    return reshaped(writer, moved, [batch, depth * block**2, height // block, width // block])


OPERATORS = (
    NetworkOperator("Concat", _concat),
    NetworkOperator("DepthToSpace", _depth_to_space),
    NetworkOperator("Expand", _expand),
    NetworkOperator("Flatten", _flatten),
    NetworkOperator("Gather", _gather),
    NetworkOperator("GatherElements", _gather_elements),
    NetworkOperator("OneHot", _one_hot),
    NetworkOperator("Pad", _pad),
    NetworkOperator("Reshape", _reshape),
    NetworkOperator("Slice", _slice),
    NetworkOperator("SpaceToDepth", _space_to_depth),
    NetworkOperator("Split", _split),
    NetworkOperator("Squeeze", _squeeze),
    NetworkOperator("Tile", _tile),
    NetworkOperator("Transpose", _transpose),
    NetworkOperator("Trilu", _triangle),
    NetworkOperator("Unsqueeze", _unsqueeze),
)
