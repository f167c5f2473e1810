"""Decompose: a choice for an EinSum, and the decompositions of its tensors.

A *choice* gives every label of an EinSum (in the order of `EinSum.labels`) a tile, or DEMOTED. It determines the
decompositions of the operands and of the result, so that every choice is consistent in the sense of SparseEinSum,
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
    """The tiles of the labels that a choice promotes."""
    return {label: tile for label, tile in zip(einsum.labels, choice, strict=True) if tile != DEMOTED}


def reference_tiles(einsum: EinSum, reference: Reference, choice: Choice) -> Choice:
    """The tiles of a tensor's axes under a choice, from the labels of its reference."""
    tiles = dict(zip(einsum.labels, choice, strict=True))
    return tuple(tiles[label] for label in reference.labels)


def result_tiles(einsum: EinSum, choice: Choice) -> Choice:
    """The tiles of the result's axes under a choice."""
    return reference_tiles(einsum, einsum.output, choice)


def has_other_keys(operand: Reference, label: str, tiles: Mapping[str, int]) -> bool:
    """Whether an operand has a promoted label other than `label`; `tiles` has the tile of every label."""
    return any(tiles[other] != DEMOTED for other in operand.labels if other != label)


def is_matrix_product(einsum: EinSum, choice: Choice) -> bool:
    """Whether the kernel is a matrix product, or becomes one for a vector of rows that share one operand's array."""
    if not einsum.is_multilinear or len(einsum.operands) != 2:
        return False
    first, second = (frozenset(operand.labels) for operand in einsum.operands)
    output = frozenset(einsum.output.labels)
    rows, columns, inner = (first - second) & output, (second - first) & output, (first & second) - output
    in_arrays = frozenset(label for label, tile in zip(einsum.labels, choice, strict=True) if tile != 1)
    is_inside = [bool(labels & in_arrays) for labels in (rows, columns, inner)]
    if all(is_inside):
        return True
    promoted = promoted_labels(einsum, choice)
    is_shared = [not labels & promoted for labels in (second, first)]  # one tuple for all rows of a vector
    return is_inside[2] and ((is_shared[0] and is_inside[1]) or (is_shared[1] and is_inside[0]))
