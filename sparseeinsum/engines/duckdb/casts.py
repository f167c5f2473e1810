"""Engines: SQL conditions for numbers that a cast would change in DuckDB, which has TRY_CAST."""

from sqlglot import exp

from sparseeinsum.render.dialects import DUCKDB
from sparseeinsum.statistics.columns import number_type, stored_type, type_named


def overflows_float32(value: exp.Expr) -> exp.Expr:
    """Return a condition: a finite number of type DOUBLE becomes infinite as a float32."""
    return exp.TryCast(this=value, to=number_type("float32")).is_(exp.null())


def is_changed_by_cast(value: exp.Expr, sql_type: str, dtype: str) -> exp.Expr:
    """Return a condition: `value` of type `sql_type` differs after a cast to `dtype`."""
    cast = exp.TryCast(this=value.copy(), to=type_named(stored_type(dtype, is_scalar=True)))
    back = exp.TryCast(this=cast, to=exp.DataType.build(sql_type, dialect=DUCKDB.name))
    return exp.NullSafeNEQ(this=back, expression=value)
