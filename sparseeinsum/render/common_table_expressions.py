"""Render: the blocks that a query reads, as common table expressions or nested in it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from sparseeinsum.language.tensors import VALUE_COLUMN
from sparseeinsum.render.blocks import Block
from sparseeinsum.render.calls import integer
from sparseeinsum.render.dialects import Dialect
from sparseeinsum.render.sources import fenced


@dataclass(frozen=True, slots=True)
class _Reads:
    """What a SELECT reads, with all that is nested in it.

    Attributes:
        tables: The tables.
        has_joins: Whether it joins any.
    """

    tables: tuple[exp.Table, ...]
    has_joins: bool

    @classmethod
    def of(cls, select: exp.Select) -> "_Reads":
        """What a SELECT reads; to walk through a long one takes as long as to write it."""
        parts = list(select.find_all(exp.Table, exp.Select))
        tables = tuple([part for part in parts if isinstance(part, exp.Table)])
        return cls(tables, any(part.args.get("joins") for part in parts if isinstance(part, exp.Select)))


def with_blocks(query: exp.Select, blocks: Sequence[Block], dialect: Dialect) -> exp.Select:
    """The query with the blocks that it reads as CTEs, each materialised where that is necessary.

    The SELECTs of the blocks become parts of the query.

    Args:
        query: The SELECT that reads the blocks.
        blocks: The blocks, in order.
        dialect: The dialect of the engine.
    """
    selects = {"": query} | {block.name: block.select for block in blocks}
    reads = {name: _Reads.of(select) for name, select in selects.items()}
    tables = [table for read in reads.values() for table in read.tables]
    references = Counter(table.name for table in tables)
    reading = {table.name: table for table in reversed(tables) if not table.db}
    joined = _beneath_joins(reads)
    # An engine may skip rows that meet no partner in a join; NaN must be detected in such rows, too.
    detected = {block.name for block in blocks if block.detects_nonfinite and block.name in joined}
    for block in blocks:
        body = block.select
        body.add_comments([f" {block.comment} "])
        is_materialized = block.is_materialized or references[block.name] > 1 or block.name in detected
        if block.is_fenced and not is_materialized:
            body = fenced(body)
        table = reading.get(block.name)
        if dialect.nests_queries and not is_materialized and table is not None:
            table.replace(body.subquery(table.alias or block.name, copy=False))
            continue
        name = exp.TableAlias(this=exp.to_identifier(block.name))
        query = query.with_(name, as_=body, materialized=is_materialized or None, copy=False)
        if block.name in detected and not dialect.computes_whole:
            query = query.where(_is_read(block.name, dialect), copy=False)
    return query


def blocks_read(query: exp.Select, blocks: Sequence[Block]) -> list[Block]:
    """The blocks that a query reads, directly or through others; it reads no tuples that are handed over as a value."""
    names = {table.name for table in query.find_all(exp.Table)}
    read: list[Block] = []
    for block in reversed(blocks):
        if block.name in names:
            names |= {table.name for table in block.select.find_all(exp.Table)}
            read.append(block)
    return read[::-1]


def _is_read(name: str, dialect: Dialect) -> exp.Expr:
    """A condition that is always true, for which an engine must compute all rows of a block."""
    counted = exp.Star() if dialect.plain is None else exp.column(VALUE_COLUMN)  # CTEs may not be materialised
    rows = exp.select(exp.Count(this=counted)).from_(exp.to_identifier(name))
    return exp.GTE(this=rows.subquery(), expression=integer(0))


def _beneath_joins(reads: Mapping[str, _Reads]) -> set[str]:
    """The names of the blocks that a join reads, directly or through other blocks.

    Args:
        reads: What the query reads, and then by name each of the blocks in order.
    """
    query, *blocks = reads
    names: set[str] = set()
    for name in (query, *reversed(blocks)):
        if name in names or reads[name].has_joins:
            names |= {table.name for table in reads[name].tables}
    return names
