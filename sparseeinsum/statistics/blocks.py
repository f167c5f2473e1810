"""Statistics: numbers of non-empty blocks, counted: what equation 7 would only estimate."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace

from sqlglot import exp

from sparseeinsum.language.tensors import DEMOTED, StoredTensor, count_keys
from sparseeinsum.statistics.columns import coordinate
from sparseeinsum.statistics.estimate import Statistics
from sparseeinsum.statistics.indices import entry_indices, index_column
from sparseeinsum.statistics.measure import Executor
from sparseeinsum.statistics.templates import filled, template

Tiles = tuple[int, ...]

_DENSE = 0.5  # share of entries from which on blocks are all taken to be there
_MOST_TILINGS = 16  # that are counted of one tensor


def measure_blocks(stored: StoredTensor, tilings: Iterable[Tiles], executor: Executor) -> dict[Tiles, float]:
    """Tuples that a stored tensor would have in some decompositions, exactly: by one scan of its entries.

    Args:
        stored: The tensor.
        tilings: For every decomposition the tiles of all axes, or DEMOTED.
        executor: Runs the query.

    Raises:
        EngineError: The relation cannot be read.
    """
    wanted = list(dict.fromkeys(tilings))
    if not wanted:
        return {}
    (counting,) = template("blocks", executor.dialect_name).expressions
    blocks = (block_of(stored.tensor.shape, tiles) for tiles in wanted)
    counts = [filled(counting.unalias(), {"block": block}).as_(f"blocks_{place}") for place, block in enumerate(blocks)]
    entries = entry_indices(stored, executor.dialect_name).subquery("entries")
    (row,) = executor.rows(exp.select(*counts).from_(entries))
    return {tiles: float(str(count)) for tiles, count in zip(wanted, row, strict=True)}


def with_blocks(statistics: Statistics, stored: StoredTensor, sizes: Sequence[int], executor: Executor) -> Statistics:
    """Statistics that know how many blocks of these sizes are not empty, where equation 7 would have to guess.

    Dense tensors have all their blocks, and those without axes none.
    """
    shape = stored.tensor.shape
    if statistics.entries >= _DENSE * stored.tensor.size:
        return statistics
    tilings = list(itertools.product(*([size for size in sizes if size < bound] for bound in shape)))
    if not shape or len(tilings) > _MOST_TILINGS:
        return statistics
    measured = {**statistics.measured, **measure_blocks(stored, tilings, executor)}
    return replace(statistics, measured=measured)


def block_of(shape: tuple[int, ...], tiles: Tiles) -> exp.Expr:
    """The keys that an entry has in a decomposition, as one value."""
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
