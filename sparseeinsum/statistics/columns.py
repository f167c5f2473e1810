"""Statistics: how SQL names a stored tensor's relation and columns."""

from sqlglot import exp

from sparseeinsum.language.tensors import StoredTensor

NUMBER_TYPES = {"float64": "DOUBLE", "float32": "FLOAT"}
# Wider ones are no BIGINT, which is what functions and results take indices for.
_INDEX_TYPES = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
_CAST_TYPES = (*_INDEX_TYPES, *NUMBER_TYPES.values(), "UBIGINT", "HUGEINT", "UHUGEINT", "BOOLEAN")


def is_index_type(sql_type: str) -> bool:
    """Whether a column of a type can hold indices."""
    return sql_type in _INDEX_TYPES


def is_number_type(sql_type: str) -> bool:
    """Whether the values of a type are numbers, as they are or after a cast."""
    return sql_type in _CAST_TYPES or (sql_type.startswith("DECIMAL(") and sql_type.endswith(")"))


def dtype_of(sql_type: str) -> str | None:
    """The dtype of a column's values; None where they must be cast."""
    return next((dtype for dtype, known in NUMBER_TYPES.items() if known == sql_type), None)


def value_type(stored: StoredTensor) -> str:
    """The type of the column of values of a tensor that needs no cast."""
    return NUMBER_TYPES[stored.tensor.dtype] + ("" if stored.decomposition.is_scalar else "[]")


def number_type(dtype: str) -> exp.DataType:
    """SQL type of a number."""
    return exp.DataType.build(NUMBER_TYPES[dtype])


def array_type(dtype: str) -> exp.DataType:
    """SQL type of an array of numbers."""
    return exp.DataType(this=exp.DataType.Type.ARRAY, expressions=[number_type(dtype)], nested=True)


def relation_of(stored: StoredTensor, dialect: str) -> exp.Table:
    """The relation of a stored tensor, for a FROM clause."""
    table: exp.Table = exp.maybe_parse(stored.relation, into=exp.Table, dialect=dialect)
    return table


def value_of(stored: StoredTensor, alias: str | None = None) -> exp.Expr:
    """The column of values, cast to the tensor's dtype where it has another; 1 where the tensor has none."""
    kind = number_type(stored.tensor.dtype)
    if stored.value is None:
        return exp.cast(exp.Literal.number(1), kind)
    column = exp.column(stored.value, table=alias)
    return exp.cast(column, kind) if stored.casts else column
