"""Render: how PostgreSQL spells what other engines spell otherwise, as a dialect of sqlglot."""

import hashlib
import re
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.generators.postgres import PostgresGenerator

from sparseeinsum.statistics.columns import IS_TRUTH

# Of `pg_get_keywords()`, those that are no names of tables or columns; and `values`, which sqlglot reads as no table.
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
_LONGEST_NAME = 63  # bytes; PostgreSQL cuts off what is longer, so that two names may become one
_RANGE = "range"  # DuckDB's function of numbers from 0, and the column that it has

# Half of the least number of REAL: less is rounded to 0. Beyond the second, numbers are rounded to infinity.
_LEAST_REAL, _GREATEST_REAL = "7.006492321624085e-46", "3.4028235677973362e38"
_WHOLE_LIMITS = {exp.DType.BIGINT: ("-9223372036854775808", "9223372036854775808")}
_ONE = exp.Literal.number(1)


class PostgreSQLGenerator(PostgresGenerator):
    """Writes trees that hold functions of DuckDB, and names as they are spelled, not folded to lower case."""

    TRANSFORMS: ClassVar[dict[Any, Any]] = {
        kind: write
        for kind, write in PostgresGenerator.TRANSFORMS.items()
        if kind not in (exp.AnyValue, exp.IntDiv, exp.TryCast)  # written below
    }
    RESERVED_KEYWORDS: ClassVar[set[str]] = set(_RESERVED.split())

    def identifier_sql(self, expression: exp.Identifier) -> str:
        """A name, quoted where it would be read as another; one that is too long in a shorter spelling of its own."""
        name = expression.name
        encoded = name.encode(errors="surrogatepass")  # sessions refuse what is no UTF-8
        if len(encoded) > _LONGEST_NAME:
            digest = hashlib.sha256(encoded).hexdigest()[:8]
            start = encoded[: _LONGEST_NAME - len(digest) - 1].decode(errors="ignore")
            expression = exp.to_identifier(f"{start}_{digest}")
        elif _PLAIN_NAME.match(name):
            return super().identifier_sql(exp.to_identifier(name, quoted=name in self.RESERVED_KEYWORDS))
        return super().identifier_sql(exp.to_identifier(expression.name, quoted=True))

    def literal_sql(self, expression: exp.Literal) -> str:
        """A number; with digits behind the point it would be a decimal, which computes otherwise than a DOUBLE."""
        text = super().literal_sql(expression)
        is_whole = expression.is_string or text.lstrip("-").isdigit()
        return text if is_whole or isinstance(expression.parent, exp.Cast) else f"CAST({text} AS DOUBLE PRECISION)"

    def array_sql(self, expression: exp.Array) -> str:
        """An array; an empty one as text, which is of whatever type is needed."""
        if not expression.expressions and not isinstance(expression.parent, exp.Cast):
            return self.sql(exp.Literal.string("{}"))
        return f"ARRAY[{self.expressions(expression, flat=True)}]"

    def intdiv_sql(self, expression: exp.IntDiv) -> str:
        """The whole part of a quotient of whole numbers."""
        return self.binary(expression, "/")

    def div_sql(self, expression: exp.Div) -> str:
        """A quotient of floating-point numbers."""
        return self.binary(expression, "/")

    def bracket_sql(self, expression: exp.Bracket) -> str:
        """An element of an array; what is no column stands in parentheses."""
        if not isinstance(expression.this, exp.Column | exp.Paren):
            expression.set("this", exp.paren(expression.this, copy=False))
        return super().bracket_sql(expression)

    def anyvalue_sql(self, expression: exp.AnyValue) -> str:
        """Any value of a group; before version 16 there is no function of that name."""
        return self.func("MAX", expression.this)

    def length_sql(self, expression: exp.Length) -> str:
        """Elements of an array."""
        return self.func("CARDINALITY", expression.this)

    def isnan_sql(self, expression: exp.IsNan) -> str:
        """Whether a number is NaN, which equals itself here."""
        return self.sql(exp.EQ(this=expression.this.copy(), expression=exp.Literal.string("nan")))

    def anonymous_sql(self, expression: exp.Anonymous) -> str:
        """A function that PostgreSQL lacks by another that it has."""
        arguments = expression.expressions
        match expression.name.lower():
            case "unnest" if isinstance(arguments[0], exp.Anonymous):
                (inner,) = arguments
                if inner.name.lower() == _RANGE:
                    return self._series(exp.Literal.number(0), inner.expressions[0])
                if (
                    "_split" in inner.name.lower()
                ):  # returns a row for every part, because there are no arrays of arrays
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
        """A table; numbers from 0 as one whose column is named and typed as in DuckDB, whatever the alias."""
        function = expression.this
        if isinstance(function, exp.Anonymous) and function.name.lower() == _RANGE:
            alias = exp.TableAlias(
                this=exp.to_identifier(expression.alias or _RANGE), columns=[exp.to_identifier(_RANGE)]
            )
            first = exp.cast(exp.Literal.number(0), exp.DType.BIGINT)
            return f"{self._series(first, function.expressions[0])}{sep}{self.sql(alias)}"
        return super().table_sql(expression, sep)

    def cast_sql(self, expression: exp.Cast, safe_prefix: str | None = None) -> str:
        """A cast; between truth and numbers by way of INT."""
        kind = expression.to
        element = kind.expressions[0] if kind.is_type(exp.DType.ARRAY) else kind
        is_truth = isinstance(expression.this.unnest(), exp.Predicate) or expression.meta.get(IS_TRUTH)
        if element.is_type(exp.DType.INT) or not (is_truth or element.is_type(exp.DType.BOOLEAN)):
            return super().cast_sql(expression, safe_prefix)
        way = exp.DataType(this=exp.DType.INT)
        if element is not kind:
            way = exp.DataType(this=exp.DType.ARRAY, expressions=[way], nested=True)
        whole = exp.Cast(this=expression.this.copy(), to=way)
        return super().cast_sql(exp.Cast(this=whole, to=kind.copy()), safe_prefix)

    def trycast_sql(self, expression: exp.TryCast) -> str:
        """A cast, NULL where REAL or BIGINT does not hold a number; an array of such numbers is an error.

        PostgreSQL refuses numbers that are rounded to 0, too.
        """
        value, kind = expression.this, expression.to
        cast = exp.Cast(this=value.copy(), to=kind.copy())
        if kind.is_type(exp.DType.ARRAY):
            return self.sql(cast)
        if kind.this in _WHOLE_LIMITS:
            least, beyond = (exp.Literal.number(limit) for limit in _WHOLE_LIMITS[kind.this])
            is_less = exp.LT(this=value.copy(), expression=beyond)  # not NaN, which is the greatest
            is_held = exp.and_(exp.GTE(this=value.copy(), expression=least), is_less)
            return self.sql(exp.case().when(is_held, cast))
        size = exp.Abs(this=value.copy())
        special = [exp.Literal.string(name) for name in ("inf", "-inf", "nan")]
        is_tiny = exp.LT(this=size.copy(), expression=exp.Literal.number(_LEAST_REAL))
        is_finite = exp.LT(this=size, expression=exp.Literal.number(_GREATEST_REAL))
        is_held = exp.or_(is_finite, exp.In(this=value.copy(), expressions=special))
        return self.sql(exp.case().when(is_tiny, exp.cast(exp.Literal.number(0), kind)).when(is_held, cast))


class PostgreSQL(Postgres):
    """PostgreSQL as this package writes it."""

    Generator = PostgreSQLGenerator


class Citus(PostgreSQL):
    """The same on a Citus cluster."""
