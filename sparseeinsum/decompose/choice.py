"""Decompose: a choice for an EinSum, and the decompositions of its tensors.

A *choice* gives every label of an EinSum (in the order of `EinSum.labels`) a tile, or DEMOTED. It determines the
decompositions of the operands and of the result, so that every choice is consistent in the sense of SparseEinSum,
algorithm 1: a label is promoted in all tensors that have it, or in none.
"""

from collections.abc import Mapping
from functools import lru_cache

from sparseeinsum.language.eingraph import EinSum, Reference
from sparseeinsum.language.tensors import DEMOTED

Choice = tuple[int, ...]

# Elements of an array that a statement computes in one row with others; larger ones would take much memory while the
# others are computed.
LARGEST_ROW_ARRAY = 1 << 24


def is_single_array(tiles: Choice) -> bool:
    """Whether the tiles of all labels or axes are DEMOTED, so that one array without keys holds everything."""
    return tiles.count(DEMOTED) == len(tiles)


def promoted_labels(einsum: EinSum, choice: Choice) -> frozenset[str]:
    """Labels that a choice promotes."""
    return frozenset([label for label, tile in zip(einsum.labels, choice, strict=True) if tile != DEMOTED])


def promoted_tiles(einsum: EinSum, choice: Choice) -> dict[str, int]:
    """The tiles of the labels that a choice promotes."""
    return {label: tile for label, tile in zip(einsum.labels, choice, strict=True) if tile != DEMOTED}


def reference_tiles(einsum: EinSum, reference: Reference, choice: Choice) -> Choice:
    """The tiles of a tensor's axes under a choice, from the labels of its reference."""
    return tuple([choice[position] for position in _positions(einsum.labels, reference.labels)])


@lru_cache(maxsize=1 << 12)  # every choice of an EinSum asks for the same
def _positions(labels: tuple[str, ...], chosen: tuple[str, ...]) -> tuple[int, ...]:
    """The positions of the labels `chosen` among `labels`."""
    return tuple(map(labels.index, chosen))


def result_tiles(einsum: EinSum, choice: Choice) -> Choice:
    """The tiles of the result's axes under a choice."""
    return reference_tiles(einsum, einsum.output, choice)


def has_other_keys(operand: Reference, label: str, tiles: Mapping[str, int]) -> bool:
    """Whether an operand has a promoted label other than `label`; `tiles` has the tile of every label."""
    return any(tiles[other] != DEMOTED for other in operand.labels if other != label)
