"""Statistics: proves by the order of rows that a table of entries repeats no coordinate.

Rows that are read in ascending order are distinct. A table whose rows were sorted when it was loaded, and some of which
were changed, has a few ascending runs; rows of two runs may be equal only where the runs overlap. Rows that were
inserted are the last ones, and those that are less than one before are looked up in the table.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.statistics.columns import LARGEST_COORDINATE, coordinate
from sparseeinsum.statistics.executor import Executor
from sparseeinsum.statistics.number_literals import number
from sparseeinsum.statistics.sql_templates import union_all
from sparseeinsum.statistics.tensor_rows import relation_of

_MOST_RUNS = 64  # with more, to look where they overlap may take longer than a count of distinct coordinates
_MOST_LATE = 1_000  # to look up more takes about as long
_LAST_ROWS = 100_000  # that are read to find those that were inserted
_PARTS = 4  # of a table, which are read at once
_NO_ROW = -1  # follows the last row; no coordinate is so small

Interval = tuple[int, int]  # from its first number to its last one


@dataclass(frozen=True, slots=True)
class _LastRows:
    """The last rows of a table.

    Attributes:
        start: The number of the first of them.
        ascending: An interval that contains the coordinates that are greater than all before; None if there are none.
        late: The other coordinates, each of them once.
    """

    start: int
    ascending: Interval | None
    late: NDArray[np.int64]


def is_distinct_by_order(stored: StoredTensor, executor: Executor, numbered_rows: int = 0) -> bool:
    """Whether the order of the rows of a table of entries proves that no coordinate is repeated.

    This takes far less time than a count of distinct coordinates. If it is false, nothing is proven: the database may
    read rows in another order than they were written.

    Args:
        stored: The tensor; its indices are not NULL and within bounds.
        executor: Runs the queries.
        numbered_rows: About how many rows the table has, if `rowid` numbers them, from 0.
    """
    tensor, dialect = stored.tensor, executor.dialect_name
    if not (tensor.axes and stored.decomposition.is_scalar and tensor.size < LARGEST_COORDINATE):
        return False
    last = _last_rows(stored, executor, max(numbered_rows - _LAST_ROWS, 0)) if numbered_rows else None
    if last is not None and len(last.late) > _MOST_LATE:
        return False
    rows = executor.rows(_ends_of_runs(stored, last, dialect))
    if len(rows) > _MOST_RUNS:
        return False
    ends = [int(str(end)) for end, *_ in rows]
    # The last row of a part has no run after it, and the first run of a part begins at its least coordinate or later.
    starts = [int(str(least if start == _NO_ROW else start)) for _, start, least in rows]
    if last is not None and last.ascending is not None:
        starts, ends = [*starts, last.ascending[0]], [*ends, last.ascending[1]]
    checks = [_repetitions(stored, overlap, dialect) for overlap in _overlaps(starts, ends)]
    if last is not None and len(last.late):
        checks.append(_occurrences(stored, last.late.tolist(), dialect))
    counts = executor.rows(union_all(checks)) if checks else []
    return all(int(str(present)) == int(str(distinct)) for present, distinct in counts)


def _last_rows(stored: StoredTensor, executor: Executor, start: int) -> _LastRows | None:
    """The rows from the one with the number `start`; None if there are far more than expected."""
    query = _numbers(stored, executor.dialect_name).where(exp.column("rowid") >= start).limit(2 * _LAST_ROWS + 1)
    numbers = executor.arrow(query).column(0).to_numpy()
    if len(numbers) > 2 * _LAST_ROWS:  # as the rows of the open transaction have other numbers
        return None
    is_late = np.zeros(len(numbers), bool)
    is_late[1:] = numbers[1:] <= np.maximum.accumulate(numbers)[:-1]
    ascending = numbers[~is_late]
    return _LastRows(
        start, (int(ascending[0]), int(ascending[-1])) if len(ascending) else None, np.unique(numbers[is_late])
    )


def _ends_of_runs(stored: StoredTensor, last: _LastRows | None, dialect: str) -> exp.Query:
    """A query of the ends of ascending runs before the last rows.

    Each has the coordinate that begins the next run, and the least one of its part: the rows of a table that skips
    those of other parts are read in parts by the first key, which the database does at once.
    """
    if last is None:
        return _ends_of_runs_in(_numbers(stored, dialect), 0)
    bound, selects = stored.tensor.shape[0], []
    for first, end in pairwise(sorted({bound * part // _PARTS for part in range(_PARTS + 1)})):
        key = _first_key(stored)
        of_part = exp.and_(
            exp.column("rowid") < last.start, key >= exp.Literal.number(first), key.copy() < exp.Literal.number(end)
        )
        least = first * _row_size(stored)
        selects.append(_ends_of_runs_in(_numbers(stored, dialect).where(of_part), least).subquery())
    return union_all([exp.select("*").from_(select) for select in selects])


def _ends_of_runs_in(numbers: exp.Select, least: int) -> exp.Select:
    no_row = number(_NO_ROW, "int64")
    following = exp.Window(this=exp.func("LEAD", exp.column("number"), exp.Literal.number(1), no_row))
    pairs = exp.select("number", following.as_("following")).from_(numbers.subquery("numbers"))
    is_end = exp.LTE(this=exp.column("following"), expression=exp.column("number"))
    ends = exp.select("number", "following", number(least, "int64").as_("least")).from_(pairs.subquery("pairs"))
    return ends.where(is_end).limit(_MOST_RUNS + 1)


def _overlaps(starts: Sequence[int], ends: Sequence[int]) -> list[Interval]:
    """Where two or more of the intervals overlap that have these starts and ends.

    Which of the ends belongs to which start makes no difference.
    """
    overlaps: list[Interval] = []
    depth = begin = 0
    for place, is_end in sorted([*((start, False) for start in starts), *((end, True) for end in ends)]):
        if is_end and depth == 2:
            overlaps.append((begin, place))
        depth += -1 if is_end else 1
        begin = place if depth == 2 and not is_end else begin
    return overlaps


def _repetitions(stored: StoredTensor, interval: Interval, dialect: str) -> exp.Select:
    """A query of how many rows have a coordinate in an interval, and how many distinct ones they have."""
    first, last = interval
    near = exp.Between(
        this=_first_key(stored),
        low=number(_first_index(stored, first), "int64"),
        high=number(_first_index(stored, last), "int64"),
    )
    column = exp.column("number")
    is_inside = exp.Between(this=column, low=number(first, "int64"), high=number(last, "int64"))
    distinct = exp.Count(this=exp.Distinct(expressions=[column.copy()]))
    return _counts(distinct).from_(_numbers(stored, dialect).where(near).subquery("near")).where(is_inside)


def _occurrences(stored: StoredTensor, coordinates: Sequence[int], dialect: str) -> exp.Select:
    """A query of how many rows have one of these distinct coordinates, and of how many these are."""
    indices = sorted({_first_index(stored, place) for place in coordinates})
    near = _numbers(stored, dialect).where(_first_key(stored).isin(*map(exp.Literal.number, indices)))
    is_one = exp.column("number").isin(*map(exp.Literal.number, coordinates))
    return _counts(exp.Literal.number(len(coordinates))).from_(near.subquery("near")).where(is_one)


def _counts(distinct: exp.Expr) -> exp.Select:
    return exp.select(exp.Count(this=exp.Star()).as_("present"), distinct.as_("distinct_ones"))


def _numbers(stored: StoredTensor, dialect: str) -> exp.Select:
    """A query of the coordinates of all rows, as numbers."""
    coordinates = coordinate([exp.column(key, quoted=True) for key in stored.keys], stored.tensor.shape)
    return exp.select(exp.cast(coordinates, "bigint").as_("number")).from_(relation_of(stored, dialect))


def _first_key(stored: StoredTensor) -> exp.Column:
    """The first key, by which databases skip what is elsewhere in a sorted table."""
    return exp.column(stored.keys[0], quoted=True)


def _first_index(stored: StoredTensor, place: int) -> int:
    """The first index of a coordinate."""
    return place // _row_size(stored)


def _row_size(stored: StoredTensor) -> int:
    """The coordinates of one first index."""
    return max(stored.tensor.size // max(stored.tensor.shape[0], 1), 1)
