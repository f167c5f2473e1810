"""Render: what nested SELECTs compute, each from what those within it have."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from sqlglot import exp

from sparseeinsum.language.tensors import VALUE_COLUMN
from sparseeinsum.render.dialects import Dialect
from sparseeinsum.render.sources import aliased, fenced

ROWS = "t"  # the alias of the rows that a SELECT reads


def nested_levels(reads: Mapping[str, Iterable[Hashable]]) -> list[list[str]]:
    """The results in levels, each after the level of all that it reads.

    Args:
        reads: What every result reads, names of results among it, in topological order.
    """
    level_of: dict[Hashable, int] = {}
    levels: list[list[str]] = []
    for name, read in reads.items():
        level = max((level_of[other] + 1 for other in read if other in level_of), default=0)
        level_of[name] = level
        levels += [[]] if level == len(levels) else []
        levels[level].append(name)
    return levels


def nested_select(
    rows: exp.Expr,
    kept: Sequence[str],
    reads: Mapping[str, Sequence[int | str]],
    columns: Mapping[int | str, str],
    value_of: Callable[[str], exp.Expr],
    dialect: Dialect,
) -> exp.Select:
    """The SELECT of the last of some results, over rows with what they read: one SELECT for every level of results.

    Args:
        rows: The rows.
        kept: Columns of the rows that are selected, too.
        reads: What every result reads, in topological order: numbers of what rows have, and names of results.
        columns: The columns of what results read, and of results.
        value_of: Returns the value of a result from the columns of what it reads, whose table is ROWS.
        dialect: The dialect of the engine.
    """
    *levels, (last,) = nested_levels(reads)
    available: list[int | str] = [read for read in columns if isinstance(read, int)]
    for number, level in enumerate(levels):
        later = [name for following in (*levels[number + 1 :], [last]) for name in following]
        needed = {operand for name in later for operand in reads[name]}
        available = [operand for operand in available if operand in needed]
        selected = [exp.column(name, table=ROWS) for name in (*kept, *(columns[operand] for operand in available))]
        values = [exp.alias_(value_of(name), columns[name]) for name in level]
        select = exp.select(*selected, *values).from_(aliased(rows, ROWS))
        rows = fenced(select) if dialect.moves_expressions else select
        available += level
    selected = [exp.column(name, table=ROWS) for name in kept]
    return exp.select(*selected, exp.alias_(value_of(last), VALUE_COLUMN)).from_(aliased(rows, ROWS))
