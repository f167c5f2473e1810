"""Decompose: which tiles of several indices are worth a look, label by label."""

from collections.abc import Iterable, Mapping, Sequence

from sparseeinsum.language.eingraph import EinGraph
from sparseeinsum.language.tensors import Decomposition

# Arrays of 64 x 64 numbers keep a cache of 32 kB busy, those of 512 x 512 one of 2 MB.
TILES = (64, 512)
# A vector of 2048 arrays of 16 x 64 numbers takes 16 MB, where memory is short.
SMALLEST_TILE = 16

_Axis = tuple[str, int]  # a tensor and the position of an axis


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
    together = _Groups()
    for einsum in graph.einsums:
        first: dict[str, _Axis] = {}
        for reference in (*einsum.operands, einsum.output):
            for position, label in enumerate(reference.labels):
                axis = (reference.tensor, position)
                together.join(first.setdefault(label, axis), axis)
    found: dict[_Axis, set[int]] = {}
    for name, decomposition in stored.items():
        for position, tile in enumerate(decomposition.tiles):
            if tile > 1:
                found.setdefault(together.of((name, position)), set()).add(tile)
    tiles: dict[str, dict[str, tuple[int, ...]]] = {}
    for einsum in graph.einsums:
        labels = tiles.setdefault(einsum.output.tensor, {})
        for reference in (*einsum.operands, einsum.output):
            for position, label in enumerate(reference.labels):
                bound = graph.bound_of(einsum, label)
                candidates = {*found.get(together.of((reference.tensor, position)), ()), *sizes}
                labels[label] = tiles_below(bound, candidates)
    return tiles


def tiles_below(bound: int, tiles: Iterable[int]) -> tuple[int, ...]:
    """The tiles that hold several indices of a label and not all of them, ascending."""
    return tuple(sorted({tile for tile in tiles if 1 < tile < bound}))


class _Groups:
    """Axes that hang together."""

    def __init__(self) -> None:
        self._parent: dict[_Axis, _Axis] = {}

    def of(self, axis: _Axis) -> _Axis:
        """The axis that stands for all that hang together with one."""
        parent = self._parent.setdefault(axis, axis)
        while parent != self._parent[parent]:
            parent = self._parent[parent]
        self._parent[axis] = parent
        return parent

    def join(self, first: _Axis, second: _Axis) -> None:
        """Let two axes, and all that hang together with them, hang together."""
        self._parent[self.of(second)] = self.of(first)
