"""Statistics: how SQL names a stored tensor's relation and columns."""

from sqlglot import exp

from sparseeinsum.language.tensors import StoredTensor

_NUMBER_TYPES = {"float64": "DOUBLE", "float32": "FLOAT"}


def number_type(dtype: str) -> exp.DataType:
    """SQL type of a number."""
    return exp.DataType.build(_NUMBER_TYPES[dtype])


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
