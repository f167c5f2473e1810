"""Render: arrays, or parts of them, that an EinSum over an index map copies; see `decompose/copied_parts.py`."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from sparseeinsum.algebra.operators import Contract, Densify, Materialized, Relation, Stack, Stored
from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.decompose.copied_parts import copied_part
from sparseeinsum.language.eingraph import EinSum, Reference
from sparseeinsum.language.tensors import DEMOTED, VALUE_COLUMN, StoredTensor
from sparseeinsum.operators.dtypes import is_complex
from sparseeinsum.operators.expressions import Operand
from sparseeinsum.render.calls import in_parentheses, integer
from sparseeinsum.render.dialects import Dialect
from sparseeinsum.render.sources import SelectSource, aliased, plain_source, stored_source
from sparseeinsum.render.values import OperandValue
from sparseeinsum.semantics.exactness import JoinKind
from sparseeinsum.statistics.extents import Extent, product


@dataclass(frozen=True, slots=True)
class CopiedArrays:
    """Arrays of an operand, or adjacent positions of their first axis, that are the arrays of the result.

    Attributes:
        index_map: The map of the positions.
        schema: The schema in which an EinSum reads the map.
        label: The label of the positions; None if arrays are copied as they are.
        einsum: An EinSum that copies what is read into the result.
    """

    index_map: StoredTensor
    schema: Schema
    label: str | None
    einsum: EinSum

    def read_from(self, read: OperandValue, start: exp.Expr, extents: Mapping[str, Extent]) -> OperandValue:
        """What is read of an array.

        Args:
            read: The array.
            start: The position of the first element, along the first axis.
            extents: The extents of the labels inside arrays.
        """
        if self.label is None:
            return read
        inside = (self.label, *read.inside[1:])
        numbers = product([*(extents[label] for label in read.inside[1:]), 2 if is_complex(read.dtype) else 1])
        count = product([extents[self.label], numbers])
        assert isinstance(numbers, int), "the labels are demoted"
        assert isinstance(count, int), "the labels are demoted"
        before = start if numbers == 1 else exp.Mul(this=in_parentheses(start), expression=integer(numbers))
        first = exp.Add(this=before, expression=integer(1))
        last = exp.Add(this=before.copy(), expression=integer(count))
        array = read.value if isinstance(read.value, exp.Column) else exp.Paren(this=read.value)
        part = exp.Bracket(this=array, expressions=[exp.Slice(this=first, expression=last)], offset=1)
        return OperandValue(part, inside, read.dtype)


def copied_arrays(relation: Contract) -> CopiedArrays | None:
    """What an EinSum copies; None if it computes values."""
    is_joined = relation.join == JoinKind.INNER and relation.indexed is None and not relation.compressed
    index_map = _index_map(relation.inputs[0])
    if not is_joined or index_map is None or index_map.index is None or relation.compensation is not None:
        return None
    einsum = relation.einsum
    tiles = {
        label: tile
        for operand, read in zip(einsum.operands, relation.inputs, strict=True)
        for label, tile in zip(operand.labels, read.schema.decomposition.tiles, strict=True)
    }
    part = copied_part(einsum, tiles, index_map.index)
    if part is None:
        return None
    read = Reference(einsum.operands[1].tensor, einsum.output.labels)
    copying = EinSum(einsum.output, (read,), Operand(0), None)
    return CopiedArrays(index_map, relation.inputs[0].schema, part.label, copying)


def _index_map(relation: Relation) -> StoredTensor | None:
    """The index map that a relation repartitions; it has a row for all indices but the last, so nothing is absent."""
    while isinstance(relation, Densify | Materialized | Stack):
        relation = relation.input
    return relation.source if isinstance(relation, Stored) else None


def window_source(window: CopiedArrays, dialect: Dialect) -> SelectSource:
    """The first position of a window for all keys of its index map, in place of the arrays of the map."""
    stored = stored_source(window.index_map, dialect)
    *names, axis = (axis.name for axis in window.schema.tensor.axes)
    tiles = window.schema.decomposition.tiles
    is_first = [
        exp.EQ(this=stored.key(name, "t"), expression=integer(0))
        for name, tile in zip(names, tiles, strict=False)
        if tile == DEMOTED
    ]
    columns = [exp.alias_(stored.key(key, "t"), key) for key in window.schema.keys]
    start = exp.alias_(stored.key(axis, "t"), VALUE_COLUMN)
    rows = exp.select(*columns, start).from_(aliased(stored.table, "t")).where(*is_first)
    return plain_source(rows, window.schema)
