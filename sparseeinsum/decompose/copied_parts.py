"""Decompose: EinSums over an index map that copy arrays, or adjacent positions of them, and compute nothing.

Y[s, x, c] = X[x + s, c] joins X with a map. If x + s is a key, Y has the arrays of X as they are. If x and the axis of
X are in arrays, Y has the positions from s on of every array of X, without a join: adjacent elements, if the axis is
the first one in the arrays.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from sparseeinsum.language.affine_indices import AffineIndex
from sparseeinsum.language.eingraph import EinSum
from sparseeinsum.language.tensors import DEMOTED
from sparseeinsum.operators.expressions import Call, Literal, Operand


@dataclass(frozen=True, slots=True)
class CopiedPart:
    """The part of every array that an EinSum copies.

    Attributes:
        label: The label of the positions that are read, which are adjacent; None for whole arrays.
    """

    label: str | None


def copied_part(einsum: EinSum, tiles: Mapping[str, int], index: AffineIndex) -> CopiedPart | None:
    """The part of every array that an EinSum copies; None if it computes something, or reads numbers.

    Args:
        einsum: An EinSum whose first operand is an index map.
        tiles: The tiles of its labels.
        index: The index that the map stands for.
    """
    if not _selects(einsum):
        return None
    mapped, read = einsum.operands[0].labels, einsum.operands[1].labels
    inside = [label for label in mapped if tiles[label] == DEMOTED]
    if any(tiles[label] not in (1, DEMOTED) for label in mapped):
        return None
    before, after = ([label for label in labels if tiles[label] != 1] for labels in (read, einsum.output.labels))
    if not inside:  # without keys, the result has a tuple also where there is none to copy
        has_keys = any(tiles[label] != DEMOTED for label in einsum.output.labels)
        return CopiedPart(None) if before and before == after and has_keys else None
    *labels, axis = mapped
    steps = dict(zip(labels, (step for _, step in index.terms), strict=True))
    label = inside[0]
    is_window = inside == [label, axis] and steps[label] == 1 and label not in read and before[:1] == [axis]
    is_even = all(tiles[other] in (1, DEMOTED) for other in read)
    return CopiedPart(label) if is_window and is_even and after == [label, *before[1:]] else None


def _selects(einsum: EinSum) -> bool:
    """Whether the result has the values of the second operand at the indices for which the first one is true."""
    match einsum.join:
        case Call("where", (Operand(0), Operand(1), Literal())) if len(einsum.operands) == 2:
            mapped, read = (operand.labels for operand in einsum.operands)
            has_distinct_labels = len(set(mapped)) == len(mapped) and len(set(read)) == len(read)
            return has_distinct_labels and list(einsum.aggregated) == [mapped[-1]]
        case _:
            return False
