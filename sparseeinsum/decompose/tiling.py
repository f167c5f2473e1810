"""Decompose: the sizes of tiles that the search tries for every label."""

from collections.abc import Iterable, Mapping, Sequence

from sparseeinsum.decompose.connected_axes import ConnectedAxes, TensorAxis
from sparseeinsum.language.eingraph import EinGraph
from sparseeinsum.language.tensors import Decomposition

# Arrays of 64 x 64 numbers keep a cache of 32 kB busy, those of 512 x 512 one of 2 MB.
TILES = (64, 512)
# A vector of 2048 arrays of 16 x 64 numbers takes 16 MB, where memory is short.
SMALLEST_TILE = 16


def tiles_by_label(
    graph: EinGraph, stored: Mapping[str, Decomposition], sizes: Sequence[int] = ()
) -> dict[str, dict[str, tuple[int, ...]]]:
    """For every result, the tiles greater than 1 that each label of its EinSum may have.

    Connected axes should have the same tile, or else they are cut again. So the tiles in which an input is stored are
    candidates for all axes that are connected with it.

    Args:
        graph: The EinSums.
        stored: Decompositions of the inputs.
        sizes: Tiles to try for every label whose bound is larger.
    """
    if not sizes and all(tile <= 1 for decomposition in stored.values() for tile in decomposition.tiles):
        return {einsum.output.tensor: dict.fromkeys(einsum.labels, ()) for einsum in graph.einsums}
    connected = ConnectedAxes(graph)
    stored_tiles: dict[TensorAxis, set[int]] = {}
    for name, decomposition in stored.items():
        for position, tile in enumerate(decomposition.tiles):
            if tile > 1:
                stored_tiles.setdefault(connected.representative((name, position)), set()).add(tile)
    tiles: dict[str, dict[str, tuple[int, ...]]] = {}
    for einsum in graph.einsums:
        labels = tiles.setdefault(einsum.output.tensor, {})
        for label, axis in connected.representatives(einsum).items():
            labels[label] = tiles_below(graph.bound_of(einsum, label), {*stored_tiles.get(axis, ()), *sizes})
    return tiles


def tiles_below(bound: int, tiles: Iterable[int]) -> tuple[int, ...]:
    """The tiles greater than 1 and less than a label's bound, ascending."""
    return tuple(sorted({tile for tile in tiles if 1 < tile < bound}))
