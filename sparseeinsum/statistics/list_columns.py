"""Statistics: SQL of the columns of tables that hold entries in lists, and the check that lists are sound."""

from collections.abc import Sequence

from sqlglot import exp

from sparseeinsum.environment import assets
from sparseeinsum.errors import DataError
from sparseeinsum.language.tensors import (
    DEMOTED,
    VALUE_COLUMN,
    ListLayout,
    StoredTensor,
    Tensor,
    count_keys,
    extent_of,
)
from sparseeinsum.operators.dtypes import is_complex
from sparseeinsum.statistics.columns import index_type, written_table
from sparseeinsum.statistics.executor import Executor

_COMPLEX_IN_TWO_COLUMNS = ("postgresql",)  # where an array of arrays is one of two dimensions


def entries_query(tensor: Tensor, layout: ListLayout, table: exp.Table, dialect: str) -> exp.Select:
    """The query of the entries of a table of lists, with one row an entry; lists of other lengths give NULL.

    Args:
        tensor: The tensor.
        layout: How the table has its entries in lists.
        table: The table.
        dialect: The name of the engine's dialect.
    """
    names = [axis.name for axis in tensor.axes]
    lists = dict(zip(layout.compressed, layout.list_columns(names), strict=True))
    columns = []
    for axis, name in enumerate(names):
        index = _positions_of_keys(name, layout.tiles[axis], lists.get(axis))
        columns.append(exp.alias_(exp.cast(index, index_type(tensor.axes[axis].bound)), name, quoted=True))
    value = _value_of_entry(is_complex(tensor.dtype) and dialect in _COMPLEX_IN_TWO_COLUMNS)
    return exp.select(*columns, exp.alias_(value, VALUE_COLUMN)).from_(table.copy())


def _value_of_entry(is_in_two_columns: bool) -> exp.Expr:
    """The value of every entry of a list; arrays of two columns have real and imaginary parts in these."""
    values = exp.column(VALUE_COLUMN, quoted=True)
    if not is_in_two_columns:
        return _unnested(values)
    rows = exp.Bracket(this=values, expressions=[exp.Slice()])
    return exp.array(
        *[
            _unnested(exp.Bracket(this=rows.copy(), expressions=[exp.Slice(this=number, expression=number.copy())]))
            for number in (exp.Literal.number(1), exp.Literal.number(2))
        ]
    )


def _unnested(values: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="UNNEST", expressions=[values])


def _positions_of_keys(name: str, tile: int, column: str | None) -> exp.Expr:
    """The index of every entry of a tuple: its key, its position in a list, or the tile's first index plus that.

    Args:
        name: The name of the axis, and of its key column.
        tile: The indices that share a key; DEMOTED without a key column.
        column: The column of the list; None without one.
    """
    key = exp.column(name, quoted=True)
    if column is None:
        return key
    position = exp.Anonymous(this="UNNEST", expressions=[exp.column(column, quoted=True)])
    if tile == DEMOTED:
        return position
    return exp.Add(this=exp.Mul(this=key, expression=exp.Literal.number(tile)), expression=position)


def check_lists(stored: StoredTensor, executor: Executor) -> None:
    """Refuse lists of unequal lengths, NULL, positions that are unsorted, repeated or outside, and such keys.

    Raises:
        DataError: There is such a tuple; the message names the first one.
    """
    assert stored.lists is not None
    axes, layout, dialect = stored.tensor.axes, stored.lists.layout, executor.dialect_name
    columns = layout.list_columns([axis.name for axis in axes])
    extents = [extent_of(layout.tiles[axis], axes[axis].bound) for axis in layout.compressed]
    quoted = [_quoted(column, dialect) for column in columns]
    if dialect in _COMPLEX_IN_TWO_COLUMNS:
        placeholders = _postgresql_placeholders(quoted, extents, is_complex(stored.tensor.dtype))
    else:
        placeholders = _duckdb_placeholders(quoted, extents)
    query = assets.read(f"stats/{dialect}/lists.sql").format(**_placeholders(stored, layout, dialect), **placeholders)
    for row, problem, lengths, key in executor.rows(query):
        assert isinstance(lengths, list) and isinstance(key, list)
        names = [axes[axis].name for axis in layout.keys]
        key_text = ", ".join(f"{name} = {number}" for name, number in zip(names, key, strict=True))
        place = f"tensor {stored.tensor.name}, tuple {row} (counted from 0" + (f"; {key_text})" if key_text else ")")
        raise DataError(f"{place}: {_problem(str(problem), columns, extents, lengths)}")


def _placeholders(stored: StoredTensor, layout: ListLayout, dialect: str) -> dict[str, str]:
    """The placeholders of the table and its keys."""
    axes = stored.tensor.axes
    keys = [_quoted(axes[axis].name, dialect) for axis in layout.keys]
    is_no_key = [
        f"({key} IS NULL OR {key} < 0 OR {key} >= {count_keys(layout.tiles[axis], axes[axis].bound)})"
        for axis, key in zip(layout.keys, keys, strict=True)
    ]
    return {
        "relation": written_table(stored, dialect).sql(dialect),
        "keys": f"ARRAY[{', '.join(f'{key}::BIGINT' for key in keys)}]::BIGINT[]",
        "is_no_key": " OR ".join(is_no_key) or "FALSE",
    }


def _duckdb_placeholders(columns: Sequence[str], extents: Sequence[int]) -> dict[str, str]:
    """The placeholders of the lists."""
    return {
        "lists": f"[{', '.join(columns)}]",
        "is_beyond": " OR ".join(f"list_max(lists[{at}]) >= {extent}" for at, extent in enumerate(extents, start=1)),
        "numbers": _numbers(columns, extents),
    }


def _postgresql_placeholders(columns: Sequence[str], extents: Sequence[int], has_complex: bool) -> dict[str, str]:
    """The placeholders of the lists; those of complex values are arrays of two columns."""
    positions = [f"position_{at}" for at in range(len(columns))]
    lengths = [f"COALESCE(ARRAY_LENGTH({column}, 1), 0)" for column in (*columns, VALUE_COLUMN)]
    shapes = [f"ARRAY_NDIMS({column}) > 1" for column in columns]
    shapes.append("ARRAY_NDIMS(val) <> 2 OR ARRAY_LENGTH(val, 2) <> 2" if has_complex else "ARRAY_NDIMS(val) > 1")
    outside = [f"{position} < 0 OR {position} >= {extent}" for position, extent in zip(positions, extents, strict=True)]
    return {
        "lists": ", ".join(columns),
        "positions": ", ".join(positions),
        "previous": ", ".join(f"LAG({position}) OVER earlier" for position in positions),
        "is_null": " OR ".join(f"{column} IS NULL" for column in (*columns, VALUE_COLUMN)),
        "has_null": " OR ".join(f"{position} IS NULL" for position in positions),
        "has_shape": " OR ".join(shapes),
        "is_outside": " OR ".join(outside),
        "lengths": f"ARRAY[{', '.join(lengths)}]",
    }


def _quoted(name: str, dialect: str) -> str:
    return exp.to_identifier(name, quoted=True).sql(dialect)


def _numbers(columns: Sequence[str], extents: Sequence[int]) -> str:
    """The SQL of a list that has the position of every entry in C order, by which entries must ascend."""
    first, *others = columns
    if not others:
        return first
    terms = "pair[1]::HUGEINT"
    for at, extent in enumerate(extents[1:], start=2):
        terms = f"({terms}) * {extent} + pair[{at}]"
    return f"[{terms} FOR pair IN list_zip({', '.join(columns)})]"


def _problem(problem: str, columns: Sequence[str], extents: Sequence[int], lengths: Sequence[int | None]) -> str:
    """A message for what the check finds wrong with a tuple."""
    names = ", ".join((*columns, VALUE_COLUMN))
    match problem:
        case "is null":
            return f"one of the lists {names} is NULL; leave the tuple out"
        case "key":
            return "a key is NULL or out of range; leave the tuple out, or give the tensor a larger shape"
        case "shape":
            return f"one of the lists {names} has a wrong number of dimensions; a list has one, of complex values two"
        case "lengths":
            return f"the lists {names} have {', '.join(map(str, lengths))} elements; they must have equally many"
        case "has null":
            return f"the lists {names} hold NULL; give every entry its positions and a number, or leave it out"
        case "outside":
            bounds = ", ".join(f"{column} below {extent:,}" for column, extent in zip(columns, extents, strict=True))
            return f"a position is out of range; positions count from 0, {bounds}"
        case "order":
            return f"the positions {', '.join(columns)} do not ascend; sort the entries by them, and repeat none"
        case _:
            return "an earlier tuple has the same keys; put the entries of both into one"
