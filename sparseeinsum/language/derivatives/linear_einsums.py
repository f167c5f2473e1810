"""Derivatives: those of EinSums that move or accumulate values: selections, picks and cumulative sums.

The tangent of the result is the same EinSum of the tangent of the operand. The cotangent of the operand of a cumulative
sum is the cumulative sum from the last index on.
"""

from sparseeinsum.language.affine_indices import AffineIndex, Limit
from sparseeinsum.language.derivatives.changes import Change, ChangeEinSums
from sparseeinsum.language.derivatives.forms import new_label
from sparseeinsum.language.eingraph import SELECT, EinSum, Reference
from sparseeinsum.language.selections import SELECTED
from sparseeinsum.operators.expressions import AxisBound, Operand
from sparseeinsum.operators.picks import PICKS
from sparseeinsum.operators.scans import SCANS


def moves_values(einsum: EinSum) -> bool:
    """Whether an EinSum selects, picks or sums up the values of its last operand, and is linear in it."""
    return einsum.aggregate in (SELECT, *PICKS) or is_cumulative_sum(einsum)


def is_cumulative_sum(einsum: EinSum) -> bool:
    """Whether an EinSum is a cumulative sum, of an operand without a label twice."""
    if einsum.aggregate not in SCANS or SCANS[einsum.aggregate].aggregate != "sum":
        return False
    (operand,) = einsum.operands
    return len(set(operand.labels)) == len(operand.labels)


def same_of_tangent(einsum: EinSum, tangent: Change, einsums: ChangeEinSums) -> Change:
    """The tangent of the result of an EinSum that moves values."""
    *maps, operand = einsum.operands
    label_of = dict(zip(tangent.labels, operand.labels, strict=True))
    moved = einsums.tensor_of(tangent).relabelled(label_of)
    output = einsum.output
    read = einsums.add(
        f"d_{output.tensor}", output.labels, (*maps, moved), einsum.join, einsum.aggregate, along=einsum.along
    )
    return Change(output.tensor, output.labels, Operand(0), (read,), (), tangent.is_masked)


def scan_of_cotangent(einsum: EinSum, cotangent: Change, einsums: ChangeEinSums) -> Change:
    """The cotangent of the operand of a cumulative sum."""
    assert einsum.along is not None
    (operand,) = einsum.operands
    read = einsums.tensor_of(cotangent.renamed(einsum.output.labels))
    backward = _reversed(read, einsum.along, einsums)
    scanned = _scanned(einsum, backward, backward.labels, einsums)
    result = _reversed(scanned, einsum.along, einsums)
    return Change(operand.tensor, operand.labels, Operand(0), (result,), (), cotangent.is_masked)


def _scanned(einsum: EinSum, read: Reference, labels: tuple[str, ...], einsums: ChangeEinSums) -> Reference:
    return einsums.add(f"{read.tensor}_sums", labels, (read,), Operand(0), einsum.aggregate, along=einsum.along)


def _reversed(read: Reference, label: str, einsums: ChangeEinSums) -> Reference:
    """The tensor with the indices of one axis in reverse order: A[-1 - i]."""
    axis = AxisBound(read.tensor, read.labels.index(label))
    other = new_label(label, dict.fromkeys(read.labels, axis))
    index_map = einsums.names.index_map(AffineIndex(((label, -1),), -1), axis, other, (Limit(label, axis),))
    moved = Reference(read.tensor, tuple(other if own == label else own for own in read.labels))
    operands = (Reference(index_map.name, (label, other)), moved)
    return einsums.add(f"{read.tensor}_reversed", read.labels, operands, SELECTED, SELECT)
