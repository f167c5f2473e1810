"""Statistics: counts the non-empty blocks of a tensor, which equation 7 would only estimate."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace

from sqlglot import exp

from sparseeinsum.language.tensors import DEMOTED, StoredTensor, count_keys
from sparseeinsum.statistics.columns import coordinate
from sparseeinsum.statistics.estimate import Statistics
from sparseeinsum.statistics.executor import Executor
from sparseeinsum.statistics.indices import entry_indices, index_column
from sparseeinsum.statistics.sql_templates import fill_placeholders, template

Tiles = tuple[int, ...]

_DENSE = 0.5  # the share of entries from which on all blocks are assumed to be non-empty
_MOST_TILINGS = 16  # the most tilings of one tensor that are counted


def measure_blocks(stored: StoredTensor, tilings: Iterable[Tiles], executor: Executor) -> dict[Tiles, float]:
    """Count the tuples that a stored tensor would have in some decompositions, by one scan of its entries.

    Args:
        stored: The tensor.
        tilings: For every decomposition, the tile of every axis, or DEMOTED.
        executor: Runs the query.

    Raises:
        EngineError: The relation cannot be read.
    """
    distinct = list(dict.fromkeys(tilings))
    if not distinct:
        return {}
    (counting,) = template("blocks", executor.dialect_name).expressions
    blocks = (block_key(stored.tensor.shape, tiles) for tiles in distinct)
    counts = [
        fill_placeholders(counting.unalias(), {"block": block}).as_(f"blocks_{number}")
        for number, block in enumerate(blocks)
    ]
    entries = entry_indices(stored, executor.dialect_name).subquery("entries")
    (row,) = executor.rows(exp.select(*counts).from_(entries))
    return {tiles: float(str(count)) for tiles, count in zip(distinct, row, strict=True)}


def with_blocks(statistics: Statistics, stored: StoredTensor, sizes: Sequence[int], executor: Executor) -> Statistics:
    """Statistics with counts of the non-empty blocks of these sizes, if the tensor is sparse and has few tilings."""
    shape = stored.tensor.shape
    if statistics.entries >= _DENSE * stored.tensor.size:
        return statistics
    tilings = list(itertools.product(*([size for size in sizes if size < bound] for bound in shape)))
    if not shape or len(tilings) > _MOST_TILINGS:
        return statistics
    counted = {**statistics.counted_tuples, **measure_blocks(stored, tilings, executor)}
    return replace(statistics, counted_tuples=counted)


def block_key(shape: tuple[int, ...], tiles: Tiles) -> exp.Expr:
    """All keys of an entry in a decomposition, as one SQL value."""
    keys: list[exp.Expr] = []
    bounds = []
    for position, tile in enumerate(tiles):
        if tile == DEMOTED:
            continue
        column = index_column(position)
        keys.append(
            column if tile == 1 else exp.Paren(this=exp.IntDiv(this=column, expression=exp.Literal.number(tile)))
        )
        bounds.append(count_keys(tile, shape[position]))
    return coordinate(keys, bounds)
