"""Render: a dialect of sqlglot that writes for PostgreSQL what DuckDB writes in another way."""

import hashlib
import re
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.generators.postgres import PostgresGenerator

from sparseeinsum.statistics.columns import IS_TRUTH

# Keywords of `pg_get_keywords()` that cannot name tables or columns; and `values`, which sqlglot does not read as one.
_RESERVED = """
    all analyse analyze and any array as asc asymmetric authorization binary both case cast check collate collation
    column concurrently constraint create cross current_catalog current_date current_role current_schema current_time
    current_timestamp current_user default deferrable desc distinct do else end except false fetch for foreign freeze
    from full grant group having ilike in initially inner intersect into is isnull join lateral leading left like limit
    localtime localtimestamp natural not notnull null offset on only or order outer overlaps placing primary references
    returning right select session_user similar some symmetric system_user table tablesample then to trailing true union
    unique user using values variadic verbose when where window with
"""
_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*\Z")
_MAX_NAME_BYTES = 63  # PostgreSQL truncates longer names, so that two names may become the same
_RANGE = "range"  # DuckDB's function of the numbers from 0, and its column

# Half of the least positive REAL: smaller numbers round to 0. Numbers beyond the second limit round to infinity.
_LEAST_REAL, _GREATEST_REAL = "7.006492321624085e-46", "3.4028235677973362e38"
_WHOLE_LIMITS = {exp.DType.BIGINT: ("-9223372036854775808", "9223372036854775808")}
_ONE = exp.Literal.number(1)


class PostgreSQLGenerator(PostgresGenerator):
    """Writes syntax trees with functions of DuckDB; names keep their case."""

    TRANSFORMS: ClassVar[dict[Any, Any]] = {
        kind: write
        for kind, write in PostgresGenerator.TRANSFORMS.items()
        if kind not in (exp.AnyValue, exp.IntDiv, exp.TryCast)  # written below
    }
    RESERVED_KEYWORDS: ClassVar[set[str]] = set(_RESERVED.split())

    def identifier_sql(self, expression: exp.Identifier) -> str:
        """A name, quoted if PostgreSQL would read it as another one; if it is too long, shortened with a hash."""
        name = expression.name
        encoded = name.encode(errors="surrogatepass")  # the session raises an error for names that are no UTF-8
        if len(encoded) > _MAX_NAME_BYTES:
            digest = hashlib.sha256(encoded).hexdigest()[:8]
            start = encoded[: _MAX_NAME_BYTES - len(digest) - 1].decode(errors="ignore")
            expression = exp.to_identifier(f"{start}_{digest}")
        elif _PLAIN_NAME.match(name):
            return super().identifier_sql(exp.to_identifier(name, quoted=name in self.RESERVED_KEYWORDS))
        return super().identifier_sql(exp.to_identifier(expression.name, quoted=True))

    def literal_sql(self, expression: exp.Literal) -> str:
        """A number; with a decimal point it is cast to DOUBLE PRECISION, or PostgreSQL would compute with decimals."""
        text = super().literal_sql(expression)
        is_plain = expression.is_string or text.lstrip("-").isdigit()
        return text if is_plain or isinstance(expression.parent, exp.Cast) else f"CAST({text} AS DOUBLE PRECISION)"

    def array_sql(self, expression: exp.Array) -> str:
        """An array; an empty one is written as text, which has whatever type is needed."""
        if not expression.expressions and not isinstance(expression.parent, exp.Cast):
            return self.sql(exp.Literal.string("{}"))
        return f"ARRAY[{self.expressions(expression, flat=True)}]"

    def intdiv_sql(self, expression: exp.IntDiv) -> str:
        """An integer division, which PostgreSQL writes as `/`."""
        return self.binary(expression, "/")

    def div_sql(self, expression: exp.Div) -> str:
        """A division of floating-point numbers, without the casts that sqlglot would add."""
        return self.binary(expression, "/")

    def bracket_sql(self, expression: exp.Bracket) -> str:
        """An element of an array; an array that is not a column is put in parentheses."""
        if not isinstance(expression.this, exp.Column | exp.Paren):
            expression.set("this", exp.paren(expression.this, copy=False))
        return super().bracket_sql(expression)

    def anyvalue_sql(self, expression: exp.AnyValue) -> str:
        """Any value of a group as MAX, because PostgreSQL has no ANY_VALUE before version 16."""
        return self.func("MAX", expression.this)

    def length_sql(self, expression: exp.Length) -> str:
        """The number of elements of an array."""
        return self.func("CARDINALITY", expression.this)

    def isnan_sql(self, expression: exp.IsNan) -> str:
        """Whether a number is NaN, which equals itself in PostgreSQL."""
        return self.sql(exp.EQ(this=expression.this.copy(), expression=exp.Literal.string("nan")))

    def anonymous_sql(self, expression: exp.Anonymous) -> str:
        """A function of DuckDB by an equivalent one of PostgreSQL, if it has another name there."""
        arguments = expression.expressions
        match expression.name.lower():
            case "unnest" if isinstance(arguments[0], exp.Anonymous):
                (inner,) = arguments
                if inner.name.lower() == _RANGE:
                    return self._series(exp.Literal.number(0), inner.expressions[0])
                if "_split" in inner.name.lower():  # it returns a row for every part: there are no arrays of arrays
                    return self.sql(inner)
            case "len":
                return self.func("CARDINALITY", *arguments)
            case "list_count":
                return self.func(
                    "CARDINALITY", exp.Anonymous(this="ARRAY_REMOVE", expressions=[*arguments, exp.null()])
                )
            case "product":
                product = exp.Anonymous(this="tensor_prod", expressions=[exp.array(arguments[0].copy())])
                return self.sql(exp.Bracket(this=product, expressions=[exp.Literal.number(1)], offset=1))
        return super().anonymous_sql(expression)

    def _series(self, first: exp.Expr, count: exp.Expr) -> str:
        last: exp.Expr = exp.Sub(
            this=exp.paren(count.copy()) if isinstance(count, exp.Binary) else count.copy(), expression=_ONE
        )
        if isinstance(count, exp.Literal):
            last = exp.Literal.number(int(count.name) - 1)
        return self.func("GENERATE_SERIES", first, last)

    def table_sql(self, expression: exp.Table, sep: str = " AS ") -> str:
        """A table; for numbers from 0, a series whose column has the name and type of DuckDB's, whatever the alias."""
        function = expression.this
        if isinstance(function, exp.Anonymous) and function.name.lower() == _RANGE:
            alias = exp.TableAlias(
                this=exp.to_identifier(expression.alias or _RANGE), columns=[exp.to_identifier(_RANGE)]
            )
            first = exp.cast(exp.Literal.number(0), exp.DType.BIGINT)
            return f"{self._series(first, function.expressions[0])}{sep}{self.sql(alias)}"
        return super().table_sql(expression, sep)

    def cast_sql(self, expression: exp.Cast, safe_prefix: str | None = None) -> str:
        """A cast; between booleans and other numbers by way of INT."""
        kind = expression.to
        element = kind.expressions[0] if kind.is_type(exp.DType.ARRAY) else kind
        is_truth = isinstance(expression.this.unnest(), exp.Predicate) or expression.meta.get(IS_TRUTH)
        if element.is_type(exp.DType.INT) or not (is_truth or element.is_type(exp.DType.BOOLEAN)):
            return super().cast_sql(expression, safe_prefix)
        integers = exp.DataType(this=exp.DType.INT)
        if element is not kind:
            integers = exp.DataType(this=exp.DType.ARRAY, expressions=[integers], nested=True)
        as_integers = exp.Cast(this=expression.this.copy(), to=integers)
        return super().cast_sql(exp.Cast(this=as_integers, to=kind.copy()), safe_prefix)

    def trycast_sql(self, expression: exp.TryCast) -> str:
        """A cast that returns NULL if REAL or BIGINT cannot hold a number; for an array, that raises an error.

        PostgreSQL raises an error also for numbers that round to 0, which become 0 here.
        """
        value, kind = expression.this, expression.to
        cast = exp.Cast(this=value.copy(), to=kind.copy())
        if kind.is_type(exp.DType.ARRAY):
            return self.sql(cast)
        if kind.this in _WHOLE_LIMITS:
            least, beyond = (exp.Literal.number(limit) for limit in _WHOLE_LIMITS[kind.this])
            is_less = exp.LT(this=value.copy(), expression=beyond)  # not NaN, which is the greatest
            is_in_range = exp.and_(exp.GTE(this=value.copy(), expression=least), is_less)
            return self.sql(exp.case().when(is_in_range, cast))
        size = exp.Abs(this=value.copy())
        special = [exp.Literal.string(name) for name in ("inf", "-inf", "nan")]
        is_tiny = exp.LT(this=size.copy(), expression=exp.Literal.number(_LEAST_REAL))
        is_finite = exp.LT(this=size, expression=exp.Literal.number(_GREATEST_REAL))
        is_in_range = exp.or_(is_finite, exp.In(this=value.copy(), expressions=special))
        return self.sql(exp.case().when(is_tiny, exp.cast(exp.Literal.number(0), kind)).when(is_in_range, cast))


class PostgreSQL(Postgres):
    """The dialect of PostgreSQL, as this package writes it."""

    Generator = PostgreSQLGenerator


class Citus(PostgreSQL):
    """The dialect of PostgreSQL on a Citus cluster."""
