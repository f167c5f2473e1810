"""Render: tiles of rows in which a chain over single arrays is computed, so that what it computes stays in the cache.

The rows of a chain are the indices of leading axes that all of its results have, and that nothing in it aggregates:
head and token of softmax(Q K^T) V. A tile is computed from its part of the arrays with these axes, and from others as
a whole.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from sparseeinsum.algebra.array_chains import ArrayChain
from sparseeinsum.algebra.operators import Compress, Computed, Contract, Relation
from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.operators.dtypes import ITEM_BYTES
from sparseeinsum.render.calls import call, constant, function_named, integer
from sparseeinsum.render.layouts import ROW_COLUMN, element_of
from sparseeinsum.render.sources import SelectSource, aliased

TILE_ALIAS = "tile"
# Of the largest array of a tile: half of what a core's second cache has. Attention of 4 heads over 1,024 tokens takes
# 42 ms with tiles of 128 kB, 35, 31, 29 and 31 with tiles of twice as many, and 39 without.
_TILE_BYTES = 1 << 20
_ARGUMENTS_OF_STACK = 5
_LEAST_TILES = 8  # fewer leave threads without work
_MOST_COPIED = 1.0  # bytes that tiles copy of arrays without rows, for every byte that a chain need not write


@dataclass(frozen=True, slots=True)
class RowTiles:
    """Tiles of the rows of a chain.

    Attributes:
        lengths: The lengths of the leading axes.
        together: How many indices of the last one are in a tile; of the others it has one.
        leading: How many of the leading axes every leaf has.
    """

    lengths: tuple[int, ...]
    together: int
    leading: Mapping[Relation, int]

    @classmethod
    def of(cls, chain: ArrayChain, sources: Sequence[SelectSource | None]) -> "RowTiles | None":
        """The tiles of a chain whose leaves are read from sources; None if it is better computed as a whole.

        What has rows must be in memory already: a part of another array could not be read without the whole. What has
        none must be arrays: DuckDB would put tiles that are joined with numbers alone together again.
        """
        written = sum(_bytes(chain.contracts[name].schema) for name in chain.inner)
        if len(chain.returned) > 1 or written < _LEAST_TILES * _TILE_BYTES:
            return None
        whole = frozenset(
            leaf for leaf, source in zip(chain.leaves, sources, strict=True) if source is None or source.handle is None
        )
        if any(leaf.schema.is_scalar for leaf in whole) or any(isinstance(leaf, Compress) for leaf in chain.leaves):
            return None
        shapes = [contract.schema.tensor.shape for contract in chain.contracts.values()]
        for axes in range(min(map(len, shapes)), 0, -1):
            leading = _leading_axes(chain, axes)
            if leading is not None and all(leading[leaf] == 0 for leaf in whole):
                tiles = cls(shapes[0][:axes], _together(chain, shapes[0][:axes]), leading)
                return tiles if tiles.count >= _LEAST_TILES and tiles.copied_bytes <= written * _MOST_COPIED else None
        return None

    @property
    def count(self) -> int:
        """How many tiles there are."""
        return math.prod(self.lengths) // self.together

    @property
    def copied_bytes(self) -> int:
        """The bytes that all tiles read of arrays that have not all of the leading axes."""
        return sum(
            self.count * _bytes(leaf.schema) // math.prod(self.lengths[:leading])
            for leaf, leading in self.leading.items()
            if leading < len(self.lengths)
        )

    def contract(self, contract: Contract) -> Contract:
        """An EinSum of the chain within a tile."""
        rows = contract.labels[: len(self.lengths)]
        extents = {label: self.together if label == rows[-1] else 1 for label in rows}
        inputs = [
            Computed(_with_bounds(read.schema, [extents.get(label) for label in operand.labels]))
            for operand, read in zip(contract.einsum.operands, contract.inputs, strict=True)
        ]
        output = _with_bounds(contract.schema, [extents.get(label) for label in contract.labels])
        return replace(contract, inputs=tuple(inputs), output=output)

    def rows(self) -> exp.Expr:
        """The table that numbers the tiles, one in a vector, so that a thread computes one after the other."""
        return aliased(exp.Table(this=call("tensor_row_numbers", integer(self.count), integer(1))), TILE_ALIAS)

    def part(self, leaf: Relation, handle: exp.Expr) -> exp.Expr:
        """What a tile reads of a leaf, the only array of a handle."""
        leading = self.leading[leaf]
        number: exp.Expr = tile_number(TILE_ALIAS)
        parts = self.count if leading == len(self.lengths) else math.prod(self.lengths[:leading])
        if parts < self.count:
            number = exp.IntDiv(this=number, expression=integer(self.count // parts))
        size = integer(leaf.schema.list_length // parts)
        return call("tensor_row", handle.copy(), number, size, element_of(leaf.schema))

    def stacked(self, schema: Schema, value: exp.Expr, number: exp.Expr) -> exp.Expr:
        """The array of a result, of a schema, from the values and the numbers of all tiles."""
        dtype, size = schema.tensor.dtype, integer(schema.array_size // self.count)
        fill = constant(schema.tensor.fill, dtype)
        return call(function_named("stack", dtype), value, number, integer(self.count), size, fill)


@dataclass(frozen=True, slots=True)
class StackedTiles:
    """A query of one array that it stacks from tiles.

    Attributes:
        numbered: A subquery of the tiles, and the number of a tile and its value as expressions of its columns.
        count: How many tiles there are.
    """

    numbered: tuple[exp.Subquery, exp.Expr, exp.Expr]
    count: int


def stacked_tiles(query: exp.Select) -> StackedTiles | None:
    """The tiles of a query, if it stacks the result of a chain from tiles; None if it does not."""
    value, rows = query.selects[-1].unalias(), query.args["from_"].this
    is_call = isinstance(value, exp.Anonymous) and len(value.expressions) == _ARGUMENTS_OF_STACK
    if len(query.selects) > 1 or not is_call or not isinstance(rows, exp.Subquery) or query.args.get("joins"):
        return None
    array, number, count, *_ = value.expressions
    if value.name != "tensor_stack" or number != tile_number(rows.alias):
        return None
    return StackedTiles((rows.copy(), number.copy(), array.copy()), int(count.name))


def tile_number(alias: str) -> exp.Column:
    """The number of a tile, in rows under an alias."""
    return exp.column(ROW_COLUMN, table=alias)


def _leading_axes(chain: ArrayChain, axes: int) -> dict[Relation, int] | None:
    """For every leaf, how many of so many leading axes of the results it has; None if these are no rows of the chain.

    They are if every result that the chain reads has all of them, in this order, and nothing is scanned along them.
    """
    leading: dict[Relation, int] = {}
    for contract in chain.contracts.values():
        rows = contract.labels[:axes]
        for operand, read in zip(contract.einsum.operands, contract.inputs, strict=True):
            shared = _common_prefix(operand.labels, rows)
            is_part = shared == axes or not chain.computes(read)
            if not is_part or set(rows) & set(operand.labels[shared:]) or contract.einsum.along in rows:
                return None
            if not chain.computes(read) and leading.setdefault(read, shared) != shared:
                return None
    return leading


def _together(chain: ArrayChain, lengths: Sequence[int]) -> int:
    """How many indices of the last axis are in a tile: they divide its length, as parts of arrays are equally long."""
    row_bytes = max(_bytes(contract.schema) for contract in chain.contracts.values()) // math.prod(lengths)
    most = min(max(_TILE_BYTES // max(row_bytes, 1), 1), lengths[-1])
    return next(divisor for divisor in range(most, 0, -1) if lengths[-1] % divisor == 0)


def _common_prefix(labels: Sequence[str], rows: Sequence[str]) -> int:
    """How many of the first labels are the first rows."""
    return next((number for number, row in enumerate(rows) if labels[number : number + 1] != (row,)), len(rows))


def _with_bounds(schema: Schema, bounds: Sequence[int | None]) -> Schema:
    """A schema with other bounds of its axes; None leaves a bound as it is."""
    axes = [
        axis if bound is None else replace(axis, bound=bound)
        for axis, bound in zip(schema.tensor.axes, bounds, strict=True)
    ]
    return replace(schema, tensor=replace(schema.tensor, axes=tuple(axes)))


def _bytes(schema: Schema) -> int:
    return schema.array_size * ITEM_BYTES[schema.tensor.dtype]
