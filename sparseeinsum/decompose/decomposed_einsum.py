"""Decompose: an EinSum under a choice, and what follows for its tensors and its kernel."""

from dataclasses import dataclass

from sparseeinsum.decompose.choice import Choice, promoted_labels, reference_tiles, result_tiles
from sparseeinsum.language.eingraph import EinGraph, EinSum
from sparseeinsum.language.scalar import count_operations


@dataclass(frozen=True, slots=True)
class DecomposedEinSum:
    """An EinSum under a choice, with what follows for its tensors.

    Attributes:
        einsum: The EinSum.
        choice: Tiles of its labels.
        promoted: The labels that the choice promotes.
        operands: The tiles of the axes of every operand.
        result: The tiles of the axes of the result.
    """

    einsum: EinSum
    choice: Choice
    promoted: frozenset[str]
    operands: tuple[Choice, ...]
    result: Choice

    @classmethod
    def of(cls, einsum: EinSum, choice: Choice) -> "DecomposedEinSum":
        """An EinSum under a choice."""
        operands = tuple([reference_tiles(einsum, operand, choice) for operand in einsum.operands])
        return cls(einsum, choice, promoted_labels(einsum, choice), operands, result_tiles(einsum, choice))

    @property
    def name(self) -> str:
        """The name of the result."""
        return self.einsum.output.tensor

    @property
    def is_grouped(self) -> bool:
        """Whether a promoted label is aggregated."""
        return not self.promoted <= frozenset(self.einsum.output.labels)

    @property
    def has_number_result(self) -> bool:
        """Whether every tuple of the result has one number instead of an array."""
        return is_of_numbers(self.result)


def is_of_numbers(tiles: Choice) -> bool:
    """Whether every tuple has one number instead of an array."""
    return tiles.count(1) == len(tiles)


@dataclass(frozen=True, slots=True)
class MatrixLabels:
    """The labels of an EinSum of two operands whose kernel may be a matrix product.

    Attributes:
        rows: Labels of the result that only the first operand has.
        columns: Labels of the result that only the second operand has.
        inner: Aggregated labels that both operands have.
        operands: The labels of the operands.
    """

    rows: frozenset[str]
    columns: frozenset[str]
    inner: frozenset[str]
    operands: tuple[frozenset[str], frozenset[str]]

    @classmethod
    def of(cls, einsum: EinSum) -> "MatrixLabels | None":
        """The labels of an EinSum; None where it is no plain sum of products of two operands."""
        if not einsum.is_multilinear or len(einsum.operands) != 2:
            return None
        first, second = (frozenset(operand.labels) for operand in einsum.operands)
        output = frozenset(einsum.output.labels)
        return cls((first - second) & output, (second - first) & output, (first & second) - output, (first, second))

    def is_matrix_product(self, decomposed: DecomposedEinSum) -> bool:
        """Whether the kernel multiplies matrices, or does so for a vector of rows that share one operand's array."""
        labels, choice = decomposed.einsum.labels, decomposed.choice
        in_arrays = frozenset([label for label, tile in zip(labels, choice, strict=True) if tile != 1])
        has_rows, has_columns = bool(self.rows & in_arrays), bool(self.columns & in_arrays)
        if not self.inner & in_arrays:
            return False
        first, second = self.operands
        # An operand without promoted labels has one tuple, which all rows of a vector share.
        shares_second, shares_first = second.isdisjoint(decomposed.promoted), first.isdisjoint(decomposed.promoted)
        return (has_rows and has_columns) or (shares_second and has_columns) or (shares_first and has_rows)


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """What the costs of all choices of an EinSum need.

    Attributes:
        operations: Floating-point operations for one index tuple.
        bounds: The bounds of all labels.
        is_multilinear: Whether it is a plain sum of products.
        matrix_labels: Labels of a matrix product; None if it cannot be one.
    """

    operations: int
    bounds: tuple[int, ...]
    is_multilinear: bool
    matrix_labels: MatrixLabels | None

    @classmethod
    def of(cls, einsum: EinSum, graph: EinGraph, computed_in: str) -> "KernelFacts":
        """The kernel of an EinSum of a graph, which computes in the dtype `computed_in`."""
        return cls(
            operations=cls.operations_of(einsum),
            bounds=tuple([graph.bound_of(einsum, label) for label in einsum.labels]),
            is_multilinear=einsum.is_multilinear,
            # BLAS computes no products of integers.
            matrix_labels=None if computed_in == "int64" else MatrixLabels.of(einsum),
        )

    @staticmethod
    def operations_of(einsum: EinSum) -> int:
        """Floating-point operations for one index tuple."""
        return count_operations(einsum.join) + (einsum.aggregate is not None)

    def is_matrix_product(self, decomposed: DecomposedEinSum) -> bool:
        """Whether BLAS computes the kernel under a choice."""
        return self.matrix_labels is not None and self.matrix_labels.is_matrix_product(decomposed)
