"""Render: arrays as bytes in the tables of a run, where machines send rows of these tables to each other.

PostgreSQL sends an array element by element, each with its length, but sends bytes without conversion.
"""

from sqlglot import exp

from sparseeinsum.algebra.operators import Schema
from sparseeinsum.render.calls import call, integer
from sparseeinsum.render.dialects import Dialect
from sparseeinsum.statistics.columns import computed_type, number_type

BYTES = "BLOB"  # the SQL type of a column of packed arrays
_PACK, _UNPACK = "tensor_bytes", "tensor_of_bytes"


def is_packed(schema: Schema, dialect: Dialect) -> bool:
    """Whether the table of a relation in a run holds arrays as bytes."""
    return dialect.distributes and computed_type(schema.tensor.dtype, schema.is_scalar).endswith("[]")


def materialized_type(schema: Schema, dialect: Dialect) -> str:
    """The SQL type of the value column in the table of a relation in a run."""
    return BYTES if is_packed(schema, dialect) else computed_type(schema.tensor.dtype, schema.is_scalar)


def packed(array: exp.Expr) -> exp.Expr:
    """The bytes of an array."""
    if isinstance(array, exp.Anonymous) and array.name == _UNPACK:  # another table has the bytes already
        column: exp.Expr = array.expressions[0]
        return column
    return call(_PACK, array)


def unpacked(value: exp.Expr, dtype: str) -> exp.Expr:
    """The array of a column that holds bytes."""
    return call(_UNPACK, value, exp.cast(integer(0), number_type(dtype)))
