"""Render: names and notations of tensor relations, in SQL, in its comments and in explanations."""

from sparseeinsum.algebra.operators import (
    AllKeys,
    Compress,
    Contract,
    Convert,
    Densify,
    OffGrid,
    OnGrid,
    Resident,
    Slice,
    Stack,
)
from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.language.eingraph import Reference, write_reference
from sparseeinsum.language.tensors import DEMOTED
from sparseeinsum.statistics.columns import NUMBER_TYPES


def block_name(relation: Slice | Stack | AllKeys | Densify | Resident | Compress | Convert | OnGrid | OffGrid) -> str:
    """The name of the CTE of a relation, before others have it."""
    schema, name = relation.schema, layout_name(relation.schema)
    if isinstance(relation, Convert):
        return f"{schema.tensor.name}_{schema.tensor.dtype}"
    if isinstance(relation, Resident):
        return f"{schema.tensor.name}_resident"
    if isinstance(relation, Compress):
        return f"{schema.tensor.name}_compressed"
    if isinstance(relation, AllKeys):
        return f"{name}_indices"
    return f"{name}_dense" if isinstance(relation, Densify) else name


def layout_name(schema: Schema) -> str:
    """A name for a tensor in the layout of a schema."""
    return f"{schema.tensor.name}_by_{'_'.join(schema.keys)}" if schema.keys else f"{schema.tensor.name}_whole"


def block_comment(
    relation: Slice | Stack | AllKeys | Densify | Resident | Compress | Convert | OnGrid | OffGrid | Contract,
) -> str:
    """A line that says what the CTE of a relation has."""
    notation = write_schema(relation.schema)
    if isinstance(relation, Resident):
        return f"{notation}, all tuples in one array in memory while the statement runs"
    if isinstance(relation, Compress):
        rows = ", ".join(relation.schema.tensor.axes[axis].name for axis in relation.row_axes)
        return f"{notation}, ordered by {rows} in memory while the statement runs"
    if isinstance(relation, AllKeys):
        return f"all keys of {notation}"
    if isinstance(relation, OnGrid):
        return f"{notation}, each tuple in {relation.place.copies} of {relation.place.grid.cells} cells"
    if isinstance(relation, Contract):
        return f"{notation}, {'before it is aggregated' if relation.is_fused else 'parts of groups'}"
    return f"{notation}, every tuple present" if isinstance(relation, Densify) else notation


def write_schema(schema: Schema) -> str:
    """A relation in upper-case-lower-case notation, such as T[I, k]."""
    named = zip((axis.name for axis in schema.tensor.axes), schema.decomposition.tiles, strict=True)
    tiles = {name: tile for name, tile in named if tile != DEMOTED}
    return write_reference(Reference(schema.tensor.name, tuple(axis.name for axis in schema.tensor.axes)), tiles)


def write_relation(schema: Schema) -> str:
    """The relational schema of a tensor, as in X(i INT, val DOUBLE[1433])."""
    keys = [f"{key} INT" for key in schema.keys]
    size = "" if schema.is_scalar else f"[{schema.array_size}]"
    return f"{schema.tensor.name}({', '.join([*keys, f'val {NUMBER_TYPES[schema.tensor.dtype]}{size}'])})"
