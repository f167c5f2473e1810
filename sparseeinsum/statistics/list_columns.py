"""Statistics: SQL of the columns of tables that hold entries in lists, and the check that lists are sound."""

from collections.abc import Sequence

from sqlglot import exp

from sparseeinsum import assets
from sparseeinsum.errors import DataError
from sparseeinsum.language.tensors import DEMOTED, VALUE_COLUMN, StoredTensor, count_keys, extent_of
from sparseeinsum.statistics.columns import written_table
from sparseeinsum.statistics.measure import Executor


def positions_of_keys(name: str, tile: int, column: str | None) -> exp.Expr:
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
    keys = [_quoted(axes[axis].name, dialect) for axis in layout.keys]
    query = assets.read("stats/duckdb/lists.sql").format(
        keys=f"[{', '.join(f'{key}::BIGINT' for key in keys)}]::BIGINT[]",
        lists=f"[{', '.join(_quoted(column, dialect) for column in columns)}]",
        is_no_key=" OR ".join(
            f"({key} IS NULL OR {key} < 0 OR {key} >= {count_keys(layout.tiles[axis], axes[axis].bound)})"
            for axis, key in zip(layout.keys, keys, strict=True)
        )
        or "FALSE",
        is_beyond=" OR ".join(f"list_max(lists[{at}]) >= {extent}" for at, extent in enumerate(extents, start=1)),
        numbers=_numbers([_quoted(column, dialect) for column in columns], extents),
        relation=written_table(stored, dialect).sql(dialect),
    )
    for row, problem, lengths, key in executor.rows(query):
        assert isinstance(lengths, list) and isinstance(key, list)
        names = [axes[axis].name for axis in layout.keys]
        where = ", ".join(f"{name} = {number}" for name, number in zip(names, key, strict=True))
        place = f"tensor {stored.tensor.name}, tuple {row} (counted from 0" + (f"; {where})" if where else ")")
        raise DataError(f"{place}: {_problem(str(problem), columns, extents, lengths)}")


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
