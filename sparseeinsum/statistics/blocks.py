"""Statistics: numbers of non-empty blocks, counted: what equation 7 would only estimate."""

from collections.abc import Iterable

from sqlglot import exp

from sparseeinsum.language.tensors import DEMOTED, StoredTensor
from sparseeinsum.statistics.columns import coordinate
from sparseeinsum.statistics.indices import entry_indices, index_column
from sparseeinsum.statistics.measure import Executor
from sparseeinsum.statistics.templates import filled, template

Tiles = tuple[int, ...]


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
    (counting,) = template("blocks", executor.dialect).expressions
    blocks = (block_of(stored.tensor.shape, tiles) for tiles in wanted)
    counts = [filled(counting.unalias(), {"block": block}).as_(f"blocks_{place}") for place, block in enumerate(blocks)]
    entries = entry_indices(stored, executor.dialect).subquery("entries")
    (row,) = executor.rows(exp.select(*counts).from_(entries))
    return {tiles: float(str(count)) for tiles, count in zip(wanted, row, strict=True)}


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
        bounds.append(-(-shape[position] // tile))
    return coordinate(keys, bounds)
