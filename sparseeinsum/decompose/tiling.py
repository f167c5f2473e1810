"""Decompose: which tiles of several indices are worth a look, label by label."""

from collections.abc import Iterable, Mapping, Sequence

from sparseeinsum.decompose.connected_axes import Axis, ConnectedAxes
from sparseeinsum.language.eingraph import EinGraph
from sparseeinsum.language.tensors import Decomposition

# Arrays of 64 x 64 numbers keep a cache of 32 kB busy, those of 512 x 512 one of 2 MB.
TILES = (64, 512)
# A vector of 2048 arrays of 16 x 64 numbers takes 16 MB, where memory is short.
SMALLEST_TILE = 16


def tiles_by_label(
    graph: EinGraph, stored: Mapping[str, Decomposition], sizes: Sequence[int] = ()
) -> dict[str, dict[str, tuple[int, ...]]]:
    """For every result the tiles that labels of its EinSum may have, besides 1.

    Axes that one label walks should have one tile, or else are cut anew: those in which an input is stored are
    candidates for all axes that hang together with it.

    Args:
        graph: The EinSums.
        stored: Decompositions of the inputs.
        sizes: Tiles that may be tried for any label; only those smaller than its bound are.
    """
    together = ConnectedAxes(graph)
    found: dict[Axis, set[int]] = {}
    for name, decomposition in stored.items():
        for position, tile in enumerate(decomposition.tiles):
            if tile > 1:
                found.setdefault(together.of((name, position)), set()).add(tile)
    tiles: dict[str, dict[str, tuple[int, ...]]] = {}
    for einsum in graph.einsums:
        labels = tiles.setdefault(einsum.output.tensor, {})
        for label, axis in together.representatives(einsum).items():
            labels[label] = tiles_below(graph.bound_of(einsum, label), {*found.get(axis, ()), *sizes})
    return tiles


def tiles_below(bound: int, tiles: Iterable[int]) -> tuple[int, ...]:
    """The tiles that hold several indices of a label and not all of them, ascending."""
    return tuple(sorted({tile for tile in tiles if 1 < tile < bound}))
