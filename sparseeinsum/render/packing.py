"""Render: arrays as bytes in the tables of a run, where machines send each other rows of these.

PostgreSQL sends an array element by element, each after its length, and bytes as they lie.
"""

from sqlglot import exp

from sparseeinsum.algebra.operators import Schema
from sparseeinsum.render.calls import call, integer
from sparseeinsum.render.dialects import Dialect
from sparseeinsum.statistics.columns import computed_type, number_type

BYTES = "BLOB"  # the SQL type of what holds an array so
_PACK, _UNPACK = "tensor_bytes", "tensor_of_bytes"


def is_packed(schema: Schema, dialect: Dialect) -> bool:
    """Whether the table of a relation holds arrays as bytes."""
    return dialect.distributes and computed_type(schema.tensor.dtype, schema.is_scalar).endswith("[]")


def kept_type(schema: Schema, dialect: Dialect) -> str:
    """SQL type of the values in the table of a relation."""
    return BYTES if is_packed(schema, dialect) else computed_type(schema.tensor.dtype, schema.is_scalar)


def packed(array: exp.Expr) -> exp.Expr:
    """The bytes of an array."""
    if isinstance(array, exp.Anonymous) and array.name == _UNPACK:  # they are in another table
        column: exp.Expr = array.expressions[0]
        return column
    return call(_PACK, array)


def unpacked(value: exp.Expr, dtype: str) -> exp.Expr:
    """The array of a column of bytes."""
    return call(_UNPACK, value, exp.cast(integer(0), number_type(dtype)))
