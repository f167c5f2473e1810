"""Statistics: a sample of a large table, which serves for later estimates while few of the rows change.

Estimates prove nothing, so that a look at a few blocks of rows is enough to use them again.
"""

from dataclasses import dataclass

from sqlglot import exp

from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.statistics.axis_counts import AxisCounts, is_countable
from sparseeinsum.statistics.columns import table_by_name
from sparseeinsum.statistics.executor import Executor
from sparseeinsum.statistics.large_tables import TableDescription
from sparseeinsum.statistics.row_samples import sample_rows
from sparseeinsum.statistics.sql_templates import union_all

_BLOCKS = 8  # to look at one takes a third of a millisecond
_BLOCK_ROWS = 2_048  # as many as DuckDB decompresses at once
_MOST_CHANGED_BLOCKS = 2
_MOST_GROWTH = 0.01  # of the entries since the sample was taken

_Block = tuple[int, object]  # the number of its first row, and a hash of its keys; None if it has no rows


@dataclass(frozen=True, slots=True)
class KeptSample:
    """What a sample of the rows of a table says.

    Attributes:
        distinct: For every axis, the expected number of its indices that have entries.
        counts: For every axis, the expected entries at every index; None if axes are too long to count.
        table_id: What identifies the table.
        entries: The entries of the table when the sample was taken.
        blocks: Blocks of its rows; none if rows have no numbers.
    """

    distinct: tuple[float, ...]
    counts: tuple[AxisCounts, ...] | None
    table_id: str
    entries: float
    blocks: tuple[_Block, ...]

    def serves(self, stored: StoredTensor, table: TableDescription, entries: float, executor: Executor) -> bool:
        """Whether a table that now has these entries is about as it was."""
        if table.table_id != self.table_id or abs(entries - self.entries) > _MOST_GROWTH * self.entries:
            return False
        if not self.blocks:
            return False
        now = _blocks(stored, [start for start, _ in self.blocks], executor)
        same = sum(then == block and then[1] is not None for then, block in zip(self.blocks, now, strict=True))
        return same >= len(self.blocks) - _MOST_CHANGED_BLOCKS


def take_sample(stored: StoredTensor, table: TableDescription, entries: float, executor: Executor) -> KeptSample:
    """A sample of a table of entries that the database can sample; the arguments are as for `sample_rows`."""
    sample = sample_rows(stored, table.rows, entries, table.has_row_ids, executor)
    shape = stored.tensor.shape
    counts = sample.counts(shape) if is_countable(shape) else None
    starts = [table.rows * block // _BLOCKS for block in range(_BLOCKS)] if table.has_row_ids else []
    return KeptSample(sample.distinct(), counts, table.table_id, entries, _blocks(stored, starts, executor))


def _blocks(stored: StoredTensor, starts: list[int], executor: Executor) -> tuple[_Block, ...]:
    if not starts:
        return ()
    rows = executor.rows(union_all([_hash_of_block(stored, start, executor.dialect_name) for start in starts]))
    return tuple(sorted(((int(str(start)), number) for start, number in rows), key=lambda block: block[0]))


def _hash_of_block(stored: StoredTensor, start: int, dialect: str) -> exp.Select:
    """A query of the number of a block's first row, and of the sum of the hashes of its keys."""
    keys = [exp.column(key, quoted=True) for key in stored.keys]
    hashes = exp.Sum(this=exp.func("HASH", *keys))
    row = exp.column("rowid")
    is_inside = exp.and_(row >= exp.Literal.number(start), row.copy() < exp.Literal.number(start + _BLOCK_ROWS))
    first = exp.Literal.number(start).as_("first_row")
    return exp.select(first, hashes.as_("hashes")).from_(table_by_name(stored, dialect)).where(is_inside)
