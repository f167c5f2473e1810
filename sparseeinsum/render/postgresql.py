"""Render: a dialect of sqlglot that writes for PostgreSQL what DuckDB writes in another way."""

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres

from sparseeinsum.render.calls import call, converted
from sparseeinsum.statistics.columns import IS_TRUTH

# Keywords of `pg_get_keywords()` that cannot name tables or columns; and `values`, which sqlglot does not read as one.
_KEYWORDS = """
    all analyse analyze and any array as asc asymmetric authorization binary both case cast check collate collation
    column concurrently constraint create cross current_catalog current_date current_role current_schema current_time
    current_timestamp current_user default deferrable desc distinct do else end except false fetch for foreign freeze
    from full grant group having ilike in initially inner intersect into is isnull join lateral leading left like limit
    localtime localtimestamp natural not notnull null offset on only or order outer overlaps placing primary references
    returning right select session_user similar some symmetric system_user table tablesample then to trailing true union
    unique user using values variadic verbose when where window with
"""
_RESERVED = frozenset(_KEYWORDS.split())
_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*\Z")
_MAX_NAME_BYTES = 63  # PostgreSQL truncates longer names, so that two names may become the same
_RANGE = "range"  # DuckDB's function of the numbers from 0, and its column

# Half of the least positive REAL: smaller numbers round to 0. Numbers beyond the second limit round to infinity.
_LEAST_REAL, _GREATEST_REAL = "7.006492321624085e-46", "3.4028235677973362e38"
_WHOLE_LIMITS = {exp.DType.BIGINT: ("-9223372036854775808", "9223372036854775808")}
_ONE = exp.Literal.number(1)
_DOUBLE = exp.DataType(this=exp.DType.DOUBLE)


class PostgreSQL(Postgres):
    """The dialect of PostgreSQL, as this package writes it.

    The functions of DuckDB in a tree are replaced before sqlglot writes it: its generators cannot have subclasses where
    they are compiled (`sqlglot[c]`).
    """

    def generate(self, expression: exp.Expr, copy: bool = True, **options: Any) -> str:  # noqa: ANN401  # of sqlglot
        """Write a syntax tree with functions of DuckDB; names keep their case."""
        return super().generate(_spelled(expression.copy() if copy else expression), copy=False, **options)


class Citus(PostgreSQL):
    """The dialect of PostgreSQL on a Citus cluster."""


def _spelled(tree: exp.Expr) -> exp.Expr:
    """Return a tree with what PostgreSQL has instead of DuckDB's functions; `tree` is changed."""
    for spellings in (_CHECKED_CASTS, _CASTS, _SPELLINGS):  # how a cast is written depends on what it converts
        for node in reversed(list(tree.dfs())):  # arguments first
            spelling = spellings.get(type(node))
            if spelling is None:
                continue
            spelled = spelling(node)
            if node is tree:
                tree = spelled
            elif spelled is not node:
                node.replace(spelled)
    return tree


def _identifier(name: exp.Identifier) -> exp.Expr:
    """A name, quoted if PostgreSQL would read it as another one; if it is too long, shortened with a hash."""
    text = name.name
    encoded = text.encode(errors="surrogatepass")  # the session raises an error for names that are no UTF-8
    if len(encoded) > _MAX_NAME_BYTES:
        digest = hashlib.sha256(encoded).hexdigest()[:8]
        start = encoded[: _MAX_NAME_BYTES - len(digest) - 1].decode(errors="ignore")
        name.set("this", f"{start}_{digest}")
    name.set("quoted", text in _RESERVED or not _PLAIN_NAME.match(name.name))
    return name


def _literal(literal: exp.Literal) -> exp.Expr:
    """A number; with a decimal point it is cast to DOUBLE PRECISION, or PostgreSQL would compute with decimals."""
    is_plain = literal.is_string or literal.name.lstrip("-").isdigit()
    return literal if is_plain or isinstance(literal.parent, exp.Cast) else converted(literal.copy(), _DOUBLE.copy())


def _array(array: exp.Array) -> exp.Expr:
    """An array; an empty one is written as text, which has whatever type is needed."""
    is_untyped = not array.expressions and not isinstance(array.parent, exp.Cast)
    return exp.Literal.string("{}") if is_untyped else array


def _quotient(quotient: exp.Div | exp.IntDiv) -> exp.Expr:
    """A division, which PostgreSQL writes as `/` for integers, too; without the casts that sqlglot would add."""
    return exp.Div(this=quotient.this, expression=quotient.expression, typed=True)


def _bracket(bracket: exp.Bracket) -> exp.Expr:
    """An element or a part of an array; an array that is not a column, or a part of one, is put in parentheses."""
    if not isinstance(bracket.this, exp.Column | exp.Paren | exp.Bracket):
        bracket.set("this", exp.paren(bracket.this, copy=False))
    return bracket


def _any_value(aggregate: exp.AnyValue) -> exp.Expr:
    """Any value of a group as MAX, because PostgreSQL has no ANY_VALUE before version 16."""
    return call("MAX", aggregate.this)


def _length(length: exp.Length) -> exp.Expr:
    """The number of elements of an array."""
    return call("CARDINALITY", length.this)


def _is_nan(condition: exp.IsNan) -> exp.Expr:
    """Whether a number is NaN, which equals itself in PostgreSQL."""
    return exp.EQ(this=condition.this, expression=exp.Literal.string("nan"))


def _anonymous(function: exp.Anonymous) -> exp.Expr:
    """A function of DuckDB by an equivalent one of PostgreSQL, if it has another name there."""
    arguments = function.expressions
    match function.name.lower():
        case "unnest" if isinstance(arguments[0], exp.Anonymous):
            inner: exp.Expr = arguments[0]
            if inner.name.lower() == _RANGE:
                return _series(exp.Literal.number(0), inner.expressions[0])
            if "_split" in inner.name.lower():  # it returns a row for every part: there are no arrays of arrays
                return inner
        case "len":
            return call("CARDINALITY", *arguments)
        case "list_count":
            return call("CARDINALITY", call("ARRAY_REMOVE", *arguments, exp.null()))
        case "product":
            product = call("tensor_prod", exp.array(arguments[0], copy=False))
            return _bracket(exp.Bracket(this=product, expressions=[_ONE.copy()], offset=1))
    return function


def _series(first: exp.Expr, count: exp.Expr) -> exp.Expr:
    last: exp.Expr
    if isinstance(count, exp.Literal):
        last = exp.Literal.number(int(count.name) - 1)
    else:
        last = exp.Sub(
            this=exp.paren(count, copy=False) if isinstance(count, exp.Binary) else count, expression=_ONE.copy()
        )
    return call("GENERATE_SERIES", first, last)


def _table(table: exp.Table) -> exp.Expr:
    """A table; for numbers from 0, a series whose column has the name and type of DuckDB's, whatever the alias."""
    function = table.this
    if isinstance(function, exp.Anonymous) and function.name.lower() == _RANGE:
        alias = table.args.get("alias")
        name = exp.to_identifier(_RANGE) if alias is None else alias.this
        table.set("alias", exp.TableAlias(this=name, columns=[exp.to_identifier(_RANGE)]))
        table.set("this", _series(exp.cast(exp.Literal.number(0), exp.DType.BIGINT), function.expressions[0]))
    return table


def _by_integers(cast: exp.Cast) -> exp.Expr:
    """A cast; between booleans and other numbers by way of INT."""
    kind = cast.to
    element = kind.expressions[0] if kind.is_type(exp.DType.ARRAY) else kind
    is_truth = isinstance(cast.this.unnest(), exp.Predicate) or cast.meta.get(IS_TRUTH)
    if element.is_type(exp.DType.INT) or not (is_truth or element.is_type(exp.DType.BOOLEAN)):
        return cast
    integers = exp.DataType(this=exp.DType.INT)
    if element is not kind:
        integers = exp.DataType(this=exp.DType.ARRAY, expressions=[integers], nested=True)
    cast.set("this", converted(cast.this, integers))
    return cast


def _checked_cast(cast: exp.TryCast) -> exp.Expr:
    """A cast that returns NULL if REAL or BIGINT cannot hold a number; for an array, that raises an error.

    PostgreSQL raises an error also for numbers that round to 0, which become 0 here.
    """
    value, kind = cast.this, cast.to
    unchecked = converted(value.copy(), kind.copy())
    if kind.is_type(exp.DType.ARRAY):
        return unchecked
    if kind.this in _WHOLE_LIMITS:
        least, beyond = (exp.Literal.number(limit) for limit in _WHOLE_LIMITS[kind.this])
        is_less = exp.LT(this=value.copy(), expression=beyond)  # not NaN, which is the greatest
        is_in_range = exp.and_(exp.GTE(this=value.copy(), expression=least), is_less)
        return exp.case().when(is_in_range, unchecked)
    size = exp.Abs(this=value.copy())
    special = [exp.Literal.string(name) for name in ("inf", "-inf", "nan")]
    is_tiny = exp.LT(this=size.copy(), expression=exp.Literal.number(_LEAST_REAL))
    is_finite = exp.LT(this=size, expression=exp.Literal.number(_GREATEST_REAL))
    is_in_range = exp.or_(is_finite, exp.In(this=value.copy(), expressions=special))
    return exp.case().when(is_tiny, exp.cast(exp.Literal.number(0), kind)).when(is_in_range, unchecked)


_Spellings = Mapping[type[exp.Expr], Callable[[Any], exp.Expr]]
_CHECKED_CASTS: _Spellings = {exp.TryCast: _checked_cast}
_CASTS: _Spellings = {exp.Cast: _by_integers}
_SPELLINGS: _Spellings = {
    exp.Identifier: _identifier,
    exp.Literal: _literal,
    exp.Array: _array,
    exp.IntDiv: _quotient,
    exp.Div: _quotient,
    exp.Bracket: _bracket,
    exp.AnyValue: _any_value,
    exp.Length: _length,
    exp.IsNan: _is_nan,
    exp.Anonymous: _anonymous,
    exp.Table: _table,
}
