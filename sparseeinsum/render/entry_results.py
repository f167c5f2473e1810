"""Render: EinSums over the entries of one result, which come in one value, of all their numbers at once."""

from dataclasses import replace

from sqlglot import exp

from sparseeinsum.algebra.operators import Contract
from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.language.tensors import VALUE_COLUMN, fully_promoted
from sparseeinsum.operators.dtypes import is_complex
from sparseeinsum.render.calls import constant
from sparseeinsum.render.dialects import Dialect
from sparseeinsum.render.entry_bytes import EntryBytes
from sparseeinsum.render.entry_values import ENTRY, value_of_entries
from sparseeinsum.render.values import OperandValue
from sparseeinsum.semantics.exactness import JoinKind
from sparseeinsum.statistics.columns import NUMBER_TYPES


def mapped_entries(relation: Contract, entries: EntryBytes, dialect: Dialect) -> EntryBytes | None:
    """The entries of an EinSum that applies a function to the numbers of entries; None for other EinSums."""
    dtype = relation.output.tensor.dtype
    if not _reads_entries_alone(relation) or relation.einsum.aggregate is not None:
        return None
    if NUMBER_TYPES[dtype] != NUMBER_TYPES[entries.dtype] or relation.output.decomposition != fully_promoted(
        len(relation.einsum.output.labels)
    ):
        return None
    labels = dict(zip(_axes(relation.inputs[0].schema), relation.einsum.operands[0].labels, strict=True))
    axes = dict(zip(relation.einsum.output.labels, _axes(relation.output), strict=True))
    rows, positions = (
        {axes[labels[key]]: count for key, count in counts.items()}
        for counts in (entries.row_counts, entries.position_counts)
    )
    return replace(
        entries, row_counts=rows, position_counts=positions, numbers=_value(relation, entries.all_numbers, dialect)
    )


def total_select(relation: Contract, entries: EntryBytes, dialect: Dialect) -> exp.Select | None:
    """The SELECT of the sum of a function of the numbers of entries; None for EinSums that compute another result."""
    if not _reads_entries_alone(relation) or relation.einsum.aggregate != "sum" or relation.einsum.output.labels:
        return None
    tensor = relation.output.tensor
    total = exp.func("coalesce", _value(relation, entries.all_numbers, dialect), constant(tensor.fill, tensor.dtype))
    return entries.computed_select(total, VALUE_COLUMN)


def _reads_entries_alone(relation: Contract) -> bool:
    """Whether an EinSum reads one operand, a number an entry, and only what is present matters."""
    if len(relation.inputs) != 1 or relation.compensation is not None or relation.needed_join != JoinKind.INNER:
        return False
    labels, operand = relation.einsum.operands[0].labels, relation.inputs[0].schema
    is_plain = relation.einsum.along is None and relation.parts_by is None and not relation.fills_rows
    is_real = not is_complex(relation.computed_in) and not is_complex(operand.tensor.dtype)
    is_permuted = set(labels) >= set(relation.einsum.output.labels) and len(set(labels)) == len(labels)
    return is_plain and is_real and is_permuted and operand.decomposition == fully_promoted(len(labels))


def _axes(schema: Schema) -> list[str]:
    return [axis.name for axis in schema.tensor.axes]


def _value(relation: Contract, numbers: exp.Expr, dialect: Dialect) -> exp.Expr:
    """What an EinSum computes from the numbers of all entries."""
    term = OperandValue(numbers, (ENTRY,), relation.inputs[0].schema.tensor.dtype)
    return value_of_entries(relation, [term], dialect)
