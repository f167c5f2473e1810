"""Statistics: how SQL names a stored tensor's relation and columns, and what holds the values of every dtype."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from sqlglot import exp

from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.operators.dtypes import is_complex
from sparseeinsum.statistics.dictionaries import rows_with_indices


@dataclass(frozen=True, slots=True)
class _Held:
    """SQL types of an element: in tables of the user's and loaded ones, and while it is computed with."""

    stored: str
    computed: str


# A complex number is two elements of an array: its real part, then its imaginary part.
_HELD = {
    "float64": _Held("DOUBLE", "DOUBLE"),
    "float32": _Held("FLOAT", "FLOAT"),
    "int64": _Held("BIGINT", "BIGINT"),
    "bool": _Held("BOOLEAN", "FLOAT"),
    "complex128": _Held("DOUBLE", "DOUBLE"),
    "complex64": _Held("FLOAT", "FLOAT"),
}

NUMBER_TYPES = {dtype: held.computed for dtype, held in _HELD.items()}

# Wider ones are no BIGINT, which is what functions and results take indices for.
_INDEX_TYPES = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
_WHOLE_TYPES = (*_INDEX_TYPES, "UBIGINT", "HUGEINT", "UHUGEINT")
_LARGEST_COORDINATE = 1 << 62
IS_TRUTH = "is_truth"  # marks the cast of what is 0 or 1, or true or false: some engines have none of truth to numbers
_PAIR_TYPES = ("DOUBLE[]", "FLOAT[]", "DOUBLE[2]", "FLOAT[2]")


def is_index_type(sql_type: str) -> bool:
    """Whether a column of a type can hold indices."""
    return sql_type in _INDEX_TYPES


def is_pair_type(sql_type: str) -> bool:
    """Whether the values of a type may be complex numbers: arrays of a real and an imaginary part."""
    return sql_type in _PAIR_TYPES


def dtype_of(sql_type: str) -> str | None:
    """The dtype that numbers in a user's column of a type have by default; None where they are no numbers.

    Whole numbers are int64; decimals with digits behind the point are rounded to float64.
    """
    if sql_type in _WHOLE_TYPES:
        return "int64"
    if sql_type.startswith("DECIMAL(") and sql_type.endswith(")"):
        return "int64" if sql_type.endswith(",0)") else "float64"
    return {"BOOLEAN": "bool", "FLOAT": "float32", "DOUBLE": "float64", "NUMERIC": "float64"}.get(sql_type)


def is_readable(sql_type: str, dtype: str) -> bool:
    """Whether values of a user's column of a type can be read as a dtype, as they are or after a cast."""
    return is_pair_type(sql_type) if is_complex(dtype) else dtype_of(sql_type) is not None


def stored_type(dtype: str, is_scalar: bool) -> str:
    """SQL type of the values in a table that holds a tensor: numbers, or arrays of them."""
    return _HELD[dtype].stored + ("[]" if not is_scalar or is_complex(dtype) else "")


def computed_type(dtype: str, is_scalar: bool) -> str:
    """SQL type of the values while they are computed with."""
    return _HELD[dtype].computed + ("[]" if not is_scalar or is_complex(dtype) else "")


def value_type(stored: StoredTensor) -> str:
    """The type of the column of values of a tensor that is not read through a cast from another dtype."""
    return stored_type(stored.tensor.dtype, stored.decomposition.is_scalar)


def number_type(dtype: str) -> exp.DataType:
    """SQL type of a number, or of a part of a complex one, as it is computed with."""
    return type_named(NUMBER_TYPES[dtype])


def array_type(dtype: str) -> exp.DataType:
    """SQL type of an array of numbers as it is computed with."""
    return type_named(computed_type(dtype, is_scalar=False))


def type_named(sql_type: str) -> exp.DataType:
    """A SQL type by its text, as in DOUBLE[]."""
    element = sql_type.removesuffix("[]")
    kind = exp.DataType.build(element)
    if element == sql_type:
        return kind
    return exp.DataType(this=exp.DataType.Type.ARRAY, expressions=[kind], nested=True)


def table_by_name(stored: StoredTensor, dialect: str) -> exp.Table:
    """The table, view or file of a stored tensor."""
    return _parsed(stored.relation, dialect).copy()


@lru_cache(maxsize=512)  # asked several times for every plan and every run
def _parsed(relation: str, dialect: str) -> exp.Table:
    table: exp.Table = exp.maybe_parse(relation, into=exp.Table, dialect=dialect)
    return table


def table_of_rows(stored: StoredTensor, dialect: str) -> exp.Table | exp.Subquery:
    """What holds the rows of a tensor, whose key columns may hold natural keys, for a FROM clause."""
    if not stored.is_query:
        return table_by_name(stored, dialect)
    query: exp.Select = exp.maybe_parse(stored.relation)
    return query.subquery(stored.tensor.name)


def relation_of(stored: StoredTensor, dialect: str) -> exp.Table | exp.Subquery:
    """The relation of a stored tensor, whose key columns hold indices, for a FROM clause."""
    table = table_of_rows(stored, dialect)
    if not stored.column_dictionaries:
        return table
    return rows_with_indices(stored, exp.alias_(table, "t", table=True)).subquery("looked_up")


def value_of(stored: StoredTensor, alias: str | None = None) -> exp.Expr:
    """The column of values, cast to what is computed with where it has another type; 1 where the tensor has none."""
    dtype = stored.tensor.dtype
    kind = type_named(computed_type(dtype, stored.decomposition.is_scalar))
    if stored.value is None:
        one = exp.Literal.number(1)
        return exp.cast(exp.array(one, exp.Literal.number(0)) if is_complex(dtype) else one, kind)
    column = exp.column(stored.value, table=alias)
    if not stored.casts:
        return column
    cast = exp.cast(column, kind)
    cast.meta[IS_TRUTH] = dtype == "bool"
    return cast


def coordinate(keys: Sequence[exp.Expr], bounds: Sequence[int]) -> exp.Expr:
    """All keys as one value, equal only for equal keys: their number in C order, or a tuple where that is too large."""
    if not keys:
        return exp.Literal.number(1)
    if math.prod(max(bound, 1) for bound in bounds) >= _LARGEST_COORDINATE:
        return exp.Tuple(expressions=list(keys))
    combined: exp.Expr = exp.cast(keys[0], "bigint") if len(keys) > 1 else keys[0]
    for key, bound in zip(keys[1:], bounds[1:], strict=True):
        combined = exp.Paren(this=combined * exp.Literal.number(bound)) + key
    return combined
