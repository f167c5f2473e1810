"""Engines: SQL conditions for numbers that a cast would change in PostgreSQL, which has no TRY_CAST."""

from sqlglot import exp

from sparseeinsum.statistics.columns import number_type

_LEAST_INT64, _BEYOND_INT64 = str(-(1 << 63)), str(1 << 63)
_INFINITE_FLOAT32 = "3.4028235677973366e38"  # the least number that is rounded to infinity


def overflows_float32(value: exp.Expr) -> exp.Expr:
    """Return a condition: a finite number of type DOUBLE becomes infinite as a float32."""
    special = [exp.Literal.string(name) for name in ("inf", "-inf", "nan")]
    is_large = exp.GTE(this=exp.Abs(this=value.copy()), expression=exp.Literal.number(_INFINITE_FLOAT32))
    return exp.and_(is_large, exp.Not(this=exp.In(this=value, expressions=special)))


def is_changed_by_cast(value: exp.Expr, dtype: str) -> exp.Expr:
    """Return a condition: a number differs after a cast to `dtype`; it, or the dtype, is an integer or a Boolean.

    Integers beyond 64 bits count as changed by a cast to a floating-point dtype, even if they are not.
    """
    if dtype == "bool":
        return exp.Not(this=exp.In(this=value, expressions=[exp.Literal.number(0), exp.Literal.number(1)]))
    least, beyond = exp.Literal.number(_LEAST_INT64), exp.Literal.number(_BEYOND_INT64)
    is_beyond = exp.or_(exp.LT(this=value.copy(), expression=least), exp.GTE(this=value.copy(), expression=beyond))
    if dtype == "int64":
        return exp.or_(is_beyond, exp.NEQ(this=value, expression=exp.Floor(this=value.copy())))
    cast: exp.Expr = exp.cast(exp.cast(value.copy(), number_type(dtype)), "double")
    is_rounded_beyond = exp.GTE(this=cast.copy(), expression=exp.cast(beyond.copy(), "double"))
    is_different = exp.NEQ(this=exp.cast(cast, "bigint"), expression=value.copy())
    return exp.case().when(is_beyond, exp.true()).when(is_rounded_beyond, exp.true()).else_(is_different)
