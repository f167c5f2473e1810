"""Models: operators of ONNX that read or replace elements at coordinates; these must be known without the data."""

import numpy as np

from sparseeinsum.errors import SemanticsError
from sparseeinsum.models.networks.alignment import combined
from sparseeinsum.models.networks.boolean_selections import BooleanSelection
from sparseeinsum.models.networks.index_terms import FormulaTerm
from sparseeinsum.models.networks.merging import merged
from sparseeinsum.models.networks.network_statements import StatementAggregate
from sparseeinsum.models.networks.network_values import NetworkValue, new_axis
from sparseeinsum.models.networks.operators.record import NetworkOperator, NodeCall
from sparseeinsum.models.networks.writer import Writer, read
from sparseeinsum.operators.dtypes import Array


def placed(
    writer: Writer, value: NetworkValue, targets: Array, sources: Array, shape: tuple[int, ...], function: str
) -> NetworkValue:
    """A value of a shape with elements of another one at some coordinates, and 0 elsewhere.

    Args:
        writer: Writes the statement.
        value: The value whose elements are placed.
        targets: The coordinates of the places, of shape (rank, n).
        sources: For each place the coordinates of its element, of shape (rank of the value, n).
        shape: The shape of the result.
        function: The aggregate of the elements of one place: `sum`, `max`, or `any` for truth values.
    """
    for position in range(len(value.axes)):
        value = merged(writer, value, position)
    value = writer.stored(value).fresh()
    axes = tuple(new_axis(size) for size in shape)
    rows = [row for row, size in zip(targets, shape, strict=True) if size != 1]
    rows += [row for row, size in zip(sources, value.shape, strict=True) if size != 1]
    factors = [factor for axis in axes for factor in axis]
    selection = BooleanSelection(
        np.array(rows, np.int64).reshape(len(rows), -1), tuple(factor.size for factor in (*factors, *value.factors))
    )
    name = writer.named("selection", selection.key, selection)
    formula = "{0} and {1}" if value.kind == "bool" else "where({0}, {1}, 0)"
    term = FormulaTerm(formula, (read(name, [*factors, *value.factors]), value.term))
    if not value.factors:
        return NetworkValue(axes, term, value.kind)
    return writer.computed(axes, term, value.kind, StatementAggregate(function, value.factors))


def _replaced(call: NodeCall, writer: Writer, targets: Array, sources: Array) -> NetworkValue:
    """The first input with elements of the third one at some coordinates, added or in their place."""
    reduction = str(call.attributes.get("reduction") or "none")
    data, updates = call.input(0), call.input(2)
    flat = np.ravel_multi_index(tuple(targets), data.shape)
    if reduction == "none":  # the last one of a place counts
        _, last = np.unique(flat[::-1], return_index=True)
        chosen = len(flat) - 1 - last
        targets, sources, flat = targets[:, chosen], sources[:, chosen], flat[chosen]
    elif reduction != "add" or data.kind == "bool":
        raise SemanticsError(f"the reduction {reduction} is not supported")
    function = "any" if data.kind == "bool" else "sum"
    elements = placed(writer, updates, targets, sources, data.shape, function)
    if reduction == "add":
        return combined(writer, "{0} + {1}", [data, elements], data.kind)
    inside = np.zeros(data.shape, bool)
    inside.reshape(-1)[flat] = True
    return combined(writer, "where({0}, {1}, {2})", [writer.constant(inside, "inside"), elements, data], data.kind)


def _scatter_elements(call: NodeCall, writer: Writer) -> NetworkValue:
    data, indices = call.input(0), call.array(1, "indices")
    axis = call.axis(0, len(data.axes))
    sources = np.indices(indices.shape).reshape(indices.ndim, -1)
    targets = sources.copy()
    targets[axis] = indices.reshape(-1) % data.shape[axis]
    return _replaced(call, writer, targets, sources)


def _scatter_blocks(call: NodeCall, writer: Writer) -> NetworkValue:
    data, indices = call.input(0), call.array(1, "indices")
    depth = indices.shape[-1]
    updates = call.input(2).shape
    sources = np.indices(updates).reshape(len(updates), -1)
    outside = indices.ndim - 1
    heads = indices.reshape(-1, depth)[np.ravel_multi_index(tuple(sources[:outside]), updates[:outside])].T
    heads = heads % np.array(data.shape[:depth])[:, None]
    return _replaced(call, writer, np.concatenate([heads, sources[outside:]]), sources)


def _gather_blocks(call: NodeCall, writer: Writer) -> NetworkValue:
    data, indices = call.input(0), call.array(1, "indices")
    batch, depth = int(call.attributes.get("batch_dims", 0)), indices.shape[-1]
    shape = (*indices.shape[:-1], *data.shape[batch + depth :])
    targets = np.indices(shape).reshape(len(shape), -1)
    outside = indices.ndim - 1
    rows = indices.reshape(-1, depth)
    number = np.ravel_multi_index(tuple(targets[:outside]), shape[:outside]) if outside else 0 * targets[0]
    heads = rows[number]
    heads = heads.T % np.array(data.shape[batch : batch + depth])[:, None]
    sources = np.concatenate([targets[:batch], heads, targets[outside:]])
    return placed(writer, data, targets, sources, shape, "any" if data.kind == "bool" else "sum")


OPERATORS = (
    NetworkOperator("GatherND", _gather_blocks),
    NetworkOperator("ScatterElements", _scatter_elements),
    NetworkOperator("ScatterND", _scatter_blocks),
)
