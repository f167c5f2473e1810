"""Statistics: SQL expressions for a stored tensor's relation and columns, and the SQL types of every dtype."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from sqlglot import exp

from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.operators.dtypes import is_complex


@dataclass(frozen=True, slots=True)
class _ElementTypes:
    """The SQL types of an element: as it is stored in tables, and as it is computed with."""

    stored: str
    computed: str


# A complex number is two elements of an array: its real part, then its imaginary part.
_ELEMENT_TYPES = {
    "float64": _ElementTypes("DOUBLE", "DOUBLE"),
    "float32": _ElementTypes("FLOAT", "FLOAT"),
    "int64": _ElementTypes("BIGINT", "BIGINT"),
    "bool": _ElementTypes("BOOLEAN", "FLOAT"),
    "complex128": _ElementTypes("DOUBLE", "DOUBLE"),
    "complex64": _ElementTypes("FLOAT", "FLOAT"),
}

NUMBER_TYPES = {dtype: types.computed for dtype, types in _ELEMENT_TYPES.items()}

# Wider types do not fit into BIGINT, the type of indices in functions and results.
_INDEX_TYPES = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
_WHOLE_TYPES = (*_INDEX_TYPES, "UBIGINT", "HUGEINT", "UHUGEINT")
INT_BOUND = 1 << 31  # the greatest bound of an axis whose indices have the SQL type INTEGER
LARGEST_COORDINATE = 1 << 62  # coordinates of larger tensors have no number that fits into 64 bits
IS_TRUTH = "is_truth"  # marks casts of booleans, or of 0 and 1: some engines cannot cast booleans to floats directly
_PAIR_TYPES = ("DOUBLE[]", "FLOAT[]", "DOUBLE[2]", "FLOAT[2]")


def is_index_type(sql_type: str) -> bool:
    """Whether a column of this SQL type can hold indices."""
    return sql_type in _INDEX_TYPES


def is_pair_type(sql_type: str) -> bool:
    """Whether values of this SQL type can be complex numbers: arrays of a real and an imaginary part."""
    return sql_type in _PAIR_TYPES


def dtype_of(sql_type: str) -> str | None:
    """The default dtype for a user's column of this SQL type; None if it does not hold numbers.

    Integers are int64; decimals with fractional digits are rounded to float64.
    """
    if sql_type in _WHOLE_TYPES:
        return "int64"
    if sql_type.startswith("DECIMAL(") and sql_type.endswith(")"):
        return "int64" if sql_type.endswith(",0)") else "float64"
    return {"BOOLEAN": "bool", "FLOAT": "float32", "DOUBLE": "float64", "NUMERIC": "float64"}.get(sql_type)


def is_readable(sql_type: str, dtype: str) -> bool:
    """Whether a user's column of this SQL type can be read as `dtype`, directly or by a cast."""
    return is_pair_type(sql_type) if is_complex(dtype) else dtype_of(sql_type) is not None


def stored_type(dtype: str, is_scalar: bool) -> str:
    """The SQL type of the values in a table of a tensor: numbers if `is_scalar`, else arrays."""
    return _ELEMENT_TYPES[dtype].stored + ("[]" if not is_scalar or is_complex(dtype) else "")


def computed_type(dtype: str, is_scalar: bool) -> str:
    """The SQL type of the values in computations: numbers if `is_scalar`, else arrays."""
    return _ELEMENT_TYPES[dtype].computed + ("[]" if not is_scalar or is_complex(dtype) else "")


def value_type(stored: StoredTensor) -> str:
    """The SQL type of a tensor's value column, if no cast from another dtype is needed."""
    return stored_type(stored.tensor.dtype, stored.decomposition.is_scalar)


def index_type(bound: int) -> exp.DataType:
    """The SQL type of the indices of an axis in tables of tensors."""
    return exp.DataType.build("int" if bound <= INT_BOUND else "bigint")


def index_dtype(bound: int) -> np.dtype[np.signedinteger]:
    """The dtype of the indices of an axis that are read from a table of tensors."""
    return np.dtype(np.int32 if bound <= INT_BOUND else np.int64)


def number_type(dtype: str) -> exp.DataType:
    """The SQL type of a number, or of a part of a complex number, in computations."""
    return type_named(NUMBER_TYPES[dtype])


def array_type(dtype: str) -> exp.DataType:
    """The SQL type of an array in computations."""
    return type_named(computed_type(dtype, is_scalar=False))


def type_named(sql_type: str) -> exp.DataType:
    """The SQL type of a name, such as DOUBLE[]."""
    return _parse_type(sql_type).copy()


@lru_cache(maxsize=512)  # called for many expressions of every statement
def _parse_type(sql_type: str) -> exp.DataType:
    element = sql_type.removesuffix("[]")
    kind = exp.DataType.build(element)
    if element == sql_type:
        return kind
    return exp.DataType(this=exp.DataType.Type.ARRAY, expressions=[kind], nested=True)


def table_by_name(stored: StoredTensor, dialect: str) -> exp.Table:
    """The table, view or file of a stored tensor, as SQL."""
    return _parse_table(stored.relation, dialect).copy()


def written_table(stored: StoredTensor, dialect: str) -> exp.Table:
    """The table that holds the rows of a stored tensor: that of its lists, if it has any, else as `table_by_name`."""
    return _parse_table(stored.table, dialect).copy()


def place_of(stored: StoredTensor, dialect: str) -> exp.Table:
    """The same as `written_table`, but shared by all that ask for it, who must leave it as it is."""
    return _parse_table(stored.table, dialect)


@lru_cache(maxsize=512)  # called several times for every plan and every run
def _parse_table(relation: str, dialect: str) -> exp.Table:
    table: exp.Table = exp.maybe_parse(relation, into=exp.Table, dialect=dialect)
    return table


def value_of(stored: StoredTensor, alias: str | None = None) -> exp.Expr:
    """The value column of a stored tensor, cast to the computing type if necessary; 1 if the tensor has no such column.

    Args:
        stored: The tensor.
        alias: The alias of its table; None if there is none.
    """
    dtype = stored.tensor.dtype
    kind = type_named(computed_type(dtype, stored.decomposition.is_scalar))
    if stored.value is None:
        unit = exp.Literal.number(1)
        return exp.cast(exp.array(unit, exp.Literal.number(0)) if is_complex(dtype) else unit, kind)
    column = exp.column(stored.value, table=alias)
    if not stored.casts:
        return column
    cast = exp.cast(column, kind)
    cast.meta[IS_TRUTH] = dtype == "bool"
    return cast


def coordinate(keys: Sequence[exp.Expr], bounds: Sequence[int]) -> exp.Expr:
    """All keys as one SQL value, for DISTINCT: their number in row-major order, or a tuple if numbers are too large.

    Args:
        keys: One expression for every axis.
        bounds: The number of keys of every axis.
    """
    if not keys:
        return exp.Literal.number(1)
    if math.prod(max(bound, 1) for bound in bounds) >= LARGEST_COORDINATE:
        return exp.Tuple(expressions=list(keys))
    combined: exp.Expr = exp.cast(keys[0], "bigint") if len(keys) > 1 else keys[0]
    for key, bound in zip(keys[1:], bounds[1:], strict=True):
        combined = exp.Paren(this=combined * exp.Literal.number(bound)) + key
    return combined
