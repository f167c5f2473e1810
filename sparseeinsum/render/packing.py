"""Render: arrays as bytes in the tables of a run.

PostgreSQL sends an array to another machine element by element, each with its length, but sends bytes without
conversion. DuckDB copies all arrays of a table that it scans, those of removed rows too, but no bytes.
"""

from sqlglot import exp

from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.render.calls import call, integer
from sparseeinsum.render.dialects import Dialect
from sparseeinsum.statistics.columns import computed_type, number_type, stored_type, type_named

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


def packed_value(value: exp.Expr, schema: Schema) -> exp.Expr:
    """A value of a relation, as bytes if it is an array."""
    sql_type = computed_type(schema.tensor.dtype, schema.is_scalar)
    return packed(exp.cast(value, type_named(sql_type))) if sql_type.endswith("[]") else value


def unpacked_value(column: exp.Expr, schema: Schema) -> exp.Expr:
    """The value of a tensor as its table stores it, of a column that holds what `packed_value` returns."""
    dtype, sql_type = schema.tensor.dtype, stored_type(schema.tensor.dtype, schema.is_scalar)
    return exp.cast(unpacked(column, dtype), type_named(sql_type)) if sql_type.endswith("[]") else column
