"""Decompose: the cost model: counts of elementary work, and the constants that turn them into seconds.

The formulas of SparseEinSum, section 7.2, count what a distributed engine does: every operand of every pair of tuples
is moved. An engine inside one process moves operands no more than a pointer, but writes results: measured on GCN and
attention, the paper's count orders plans far worse there (bench/regret.py). Hence an *accounting* for each.
"""

import math
from dataclasses import asdict, dataclass
from typing import Protocol

# As many operations as starting to evaluate an expression takes: 0.1 microseconds for every pair of tuples.
_START_OPERATIONS = 150
# Of putting a tuple into a hash table, to find one of few groups there (measured: 5 million rows in 10,000 groups).
_FOUND_TUPLES = 0.25
_COPIED_BYTES = 0.35  # of moving a byte in a repartition, to copy one in a join (measured: bench/indexed.py)


@dataclass(frozen=True, slots=True)
class CostConstants:
    """What an engine's elementary work takes on a machine, in seconds; in the order of the fields of Work.

    Attributes:
        fixed_seconds_per_tuple: C_fixed, for a tuple handled.
        transfer_seconds_per_byte: C_xfer, for a byte moved.
        kernel_seconds_per_operation: C_kernel, for a floating-point operation of a kernel that walks arrays.
        matrix_seconds_per_operation: The same for a kernel that is a matrix product, which BLAS computes.
        expression_seconds_per_operation: The same for a kernel that evaluates an expression, block by block.
        hashing_seconds_per_tuple: For a tuple that is looked up in a hash table, or put there.
        fixed_seconds_per_operator: For a relational operator, however little it does: to plan it, and to start it.
    """

    fixed_seconds_per_tuple: float
    transfer_seconds_per_byte: float
    kernel_seconds_per_operation: float
    matrix_seconds_per_operation: float
    expression_seconds_per_operation: float
    hashing_seconds_per_tuple: float
    fixed_seconds_per_operator: float

    def __post_init__(self) -> None:
        for name, seconds in asdict(self).items():
            if not 0 <= seconds < math.inf:
                raise ValueError(f"{name} is {seconds}; it must be 0 or more, and finite")


@dataclass(frozen=True, slots=True)
class Work:
    """Counts of elementary work.

    Attributes:
        tuples: Handled one by one: joined, sliced, stacked.
        bytes_moved: Written.
        kernel_operations: Floating-point operations of kernels that walk arrays.
        matrix_operations: Those of matrix products.
        expression_operations: Those of expressions over arrays.
        hashed_tuples: That are looked up in hash tables, or put there: of operands of joins, of stacks, and groups.
        operators: Relational operators.
    """

    tuples: float = 0.0
    bytes_moved: float = 0.0
    kernel_operations: float = 0.0
    matrix_operations: float = 0.0
    expression_operations: float = 0.0
    hashed_tuples: float = 0.0
    operators: float = 0.0

    def __add__(self, other: "Work") -> "Work":
        return Work(
            self.tuples + other.tuples,
            self.bytes_moved + other.bytes_moved,
            self.kernel_operations + other.kernel_operations,
            self.matrix_operations + other.matrix_operations,
            self.expression_operations + other.expression_operations,
            self.hashed_tuples + other.hashed_tuples,
            self.operators + other.operators,
        )

    def times(self, count: float) -> "Work":
        """The work done so often."""
        return Work(
            self.tuples * count,
            self.bytes_moved * count,
            self.kernel_operations * count,
            self.matrix_operations * count,
            self.expression_operations * count,
            self.hashed_tuples * count,
            self.operators * count,
        )

    def seconds(self, constants: CostConstants) -> float:
        """How long the work takes."""
        return (
            self.tuples * constants.fixed_seconds_per_tuple
            + self.bytes_moved * constants.transfer_seconds_per_byte
            + self.kernel_operations * constants.kernel_seconds_per_operation
            + self.matrix_operations * constants.matrix_seconds_per_operation
            + self.expression_operations * constants.expression_seconds_per_operation
            + self.hashed_tuples * constants.hashing_seconds_per_tuple
            + self.operators * constants.fixed_seconds_per_operator
        )


@dataclass(frozen=True, slots=True)
class ContractionSizes:
    """Sizes of one EinSum under a choice.

    Attributes:
        joined: T_join, pairs of tuples.
        matched: Tuples of operands that are matched by keys they share; 0 where every tuple meets every other.
        groups: Product of V over the promoted labels of the result.
        is_grouped: Whether pairs are aggregated at all.
        has_keys: Whether the result has promoted labels.
        operand_bytes: Bytes of a tuple of each operand, together.
        result_bytes: Bytes of a tuple of the result.
        result_size: Elements of an array of the result.
        operations: Floating-point operations of the kernel for one pair.
        is_matrix_product: Whether BLAS computes them.
        is_expression: Whether they are those of an expression over arrays, other than a sum of products.
        copied_bytes: Of an operand's array that an engine that refers to operands must copy for every pair.
        is_streamed: Whether results are numbers that one other EinSum alone reads, which takes them as they come.
    """

    joined: float
    matched: float
    groups: float
    is_grouped: bool
    has_keys: bool
    operand_bytes: int
    result_bytes: int
    result_size: int
    operations: float
    is_matrix_product: bool
    is_expression: bool
    copied_bytes: int = 0
    is_streamed: bool = False

    @property
    def aggregated(self) -> float:
        """T_agg = min(T_join / 2, groups); T_join where nothing is aggregated."""
        return min(self.joined / 2, self.groups) if self.is_grouped else self.joined

    def kernel(self) -> Work:
        """The kernel's operations, for all pairs."""
        operations = self.joined * self.operations
        if self.is_expression:
            return Work(expression_operations=operations + self.joined * _START_OPERATIONS)
        return Work(matrix_operations=operations) if self.is_matrix_product else Work(kernel_operations=operations)


@dataclass(frozen=True, slots=True)
class RepartitionSizes:
    """Sizes of a change of decomposition from P_in to P.

    Attributes:
        before: T(P_in).
        parts: Into how many parts its arrays are cut, those that hold only the fill included.
        between: T(P_in u P), where all labels of either are promoted.
        after: T(P).
        between_bytes: Bytes of a tuple in between.
        after_bytes: Bytes of a tuple afterwards.
        slices: Whether P has labels that P_in lacks.
        stacks: Whether P_in has labels that P lacks.
    """

    before: float
    parts: float
    between: float
    after: float
    between_bytes: int
    after_bytes: int
    slices: bool
    stacks: bool


class Accounting(Protocol):
    """What work an engine does for given sizes."""

    def join(self, sizes: ContractionSizes) -> Work:
        """To join tuples and run the kernel on every pair."""

    def aggregation(self, sizes: ContractionSizes) -> Work:
        """To aggregate the pairs' results."""

    def repartition(self, sizes: RepartitionSizes) -> Work:
        """To change a decomposition."""


class DistributedAccounting:
    """The paper's count: both operands of every pair are moved, and so is every result that is aggregated.

    Source: SparseEinSum, section 7.2.
    """

    def join(self, sizes: ContractionSizes) -> Work:
        """C_join = T_join ((sizeof U + sizeof V) C_xfer + C_kernel + C_fixed)."""
        return Work(sizes.joined, sizes.joined * sizes.operand_bytes) + sizes.kernel()

    def aggregation(self, sizes: ContractionSizes) -> Work:
        """C_agg = (T_join - T_agg) (sizeof W C_xfer + C_add + C_fixed)."""
        merged = sizes.joined - sizes.aggregated
        return Work(merged, merged * sizes.result_bytes, merged * sizes.result_size)

    def repartition(self, sizes: RepartitionSizes) -> Work:
        """C_repart = (2 T(P_in u P) - T(P_in) - T(P)) (sizeof tuple C_xfer + C_fixed)."""
        tuples = 2 * sizes.between - sizes.before - sizes.after
        return Work(tuples, tuples * sizes.between_bytes)


class EmbeddedAccounting:
    """One process: operands are referred to, kernels add to the groups in place, and what is moved are results."""

    def join(self, sizes: ContractionSizes) -> Work:
        """Every pair is handled, and every operand's tuple found by its keys; a result is written, or taken at once."""
        written = 0.0 if sizes.is_grouped or sizes.is_streamed else sizes.joined * sizes.result_bytes
        written += sizes.joined * sizes.copied_bytes * _COPIED_BYTES
        return Work(sizes.joined, written, hashed_tuples=sizes.matched, operators=1) + sizes.kernel()

    def aggregation(self, sizes: ContractionSizes) -> Work:
        """Every group is made in a hash table and taken out of it, and written once; other pairs find it there."""
        if not sizes.is_grouped:
            return Work()
        found = sizes.joined - sizes.aggregated
        hashed = 2 * sizes.aggregated + found * _FOUND_TUPLES if sizes.has_keys else 0.0
        return Work(bytes_moved=sizes.aggregated * sizes.result_bytes, hashed_tuples=hashed, operators=1)

    def repartition(self, sizes: RepartitionSizes) -> Work:
        """Every part is looked at, and written unless it holds only the fill; stacks are found and written."""
        work = Work()
        if sizes.slices:
            work += Work(sizes.parts, sizes.between * sizes.between_bytes, operators=1)
        if sizes.stacks:
            work += Work(sizes.between, sizes.after * sizes.after_bytes, hashed_tuples=sizes.between, operators=1)
        return work
