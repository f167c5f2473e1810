"""Algebra: results that a kernel computes as entries, one row after the other."""

from dataclasses import dataclass

from sparseeinsum.algebra.operators import Compress, Computed, Contract, Relation


@dataclass(frozen=True, slots=True)
class EntryRows:
    """How the entries of a result come.

    Attributes:
        row_axes: The axes of the result whose indices number the rows, in C order.
        position_axes: Those whose indices number the positions in a row, in C order.
    """

    row_axes: tuple[int, ...]
    position_axes: tuple[int, ...]

    @classmethod
    def of(cls, relation: Contract) -> "EntryRows | None":
        """How the entries of an EinSum come; None if they do not come row by row."""
        labels = relation.einsum.output.labels
        is_sampled = relation.is_fused and bool(relation.compressed) and relation.output.is_scalar
        is_product = len(relation.compressed) > 1 and not relation.is_matched and relation.indexed is None
        if not (is_sampled or is_product):
            return None
        first = 1 if relation.is_fused else relation.compressed[0]
        of_rows = relation.einsum.operands[first].labels
        rows = tuple(axis for axis, label in enumerate(labels) if label in of_rows)
        positions = tuple(axis for axis, label in enumerate(labels) if label not in of_rows)
        return cls(rows, positions) if positions else None

    def are_read_by(self, operand: Relation) -> bool:
        """Whether an operand is this result in the same order, so that it is handed over without tuples."""
        if not isinstance(operand, Compress) or not isinstance(operand.input, Computed):
            return False
        return (operand.row_axes, operand.position_axes) == (self.row_axes, self.position_axes)
