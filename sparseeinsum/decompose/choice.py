"""Decompose: a choice for an EinSum, and what follows from it alone.

A *choice* gives every label of an EinSum (in the order of `EinSum.labels`) a tile, or DEMOTED; it fixes the
decompositions of the operands and of the result, so that all choices are consistent in the sense of SparseEinSum,
algorithm 1: a label is promoted in all tensors that have it, or in none.
"""

from collections.abc import Mapping

from sparseeinsum.language.eingraph import EinSum, Reference
from sparseeinsum.language.tensors import DEMOTED

Choice = tuple[int, ...]


def promoted_labels(einsum: EinSum, choice: Choice) -> frozenset[str]:
    """Labels that a choice promotes."""
    return frozenset(label for label, tile in zip(einsum.labels, choice, strict=True) if tile != DEMOTED)


def promoted_tiles(einsum: EinSum, choice: Choice) -> dict[str, int]:
    """Tile of every label that a choice promotes."""
    return {label: tile for label, tile in zip(einsum.labels, choice, strict=True) if tile != DEMOTED}


def reference_tiles(einsum: EinSum, reference: Reference, choice: Choice) -> Choice:
    """Tiles of a tensor, axis by axis, as a choice has it under its labels."""
    tiles = dict(zip(einsum.labels, choice, strict=True))
    return tuple(tiles[label] for label in reference.labels)


def result_tiles(einsum: EinSum, choice: Choice) -> Choice:
    """Tiles of the result of an EinSum under a choice."""
    return reference_tiles(einsum, einsum.output, choice)


def has_other_keys(operand: Reference, label: str, tiles: Mapping[str, int]) -> bool:
    """Whether an operand has keys besides that of a label, if every label has a tile."""
    return any(tiles[other] != DEMOTED for other in operand.labels if other != label)


def is_matrix_product(einsum: EinSum, choice: Choice) -> bool:
    """Whether the kernel is a matrix product, or becomes one over a vector of rows that share an operand."""
    if not einsum.is_multilinear or len(einsum.operands) != 2:
        return False
    first, second = (frozenset(operand.labels) for operand in einsum.operands)
    kept = frozenset(einsum.output.labels)
    rows, columns, inner = (first - second) & kept, (second - first) & kept, (first & second) - kept
    in_arrays = frozenset(label for label, tile in zip(einsum.labels, choice, strict=True) if tile != 1)
    inside = [bool(labels & in_arrays) for labels in (rows, columns, inner)]
    if all(inside):
        return True
    promoted = promoted_labels(einsum, choice)
    is_shared = [not labels & promoted for labels in (second, first)]  # one tuple for all rows of a vector
    return inside[2] and ((is_shared[0] and inside[1]) or (is_shared[1] and inside[0]))
