"""Decompose: counts of elementary work, and the constants that turn them into seconds.

The formulas of SparseEinSum, section 7.2, count the work of a distributed engine, which moves the operands of every
pair of tuples. An engine in one process passes operands by pointer, but writes results: measured on GCN and attention,
the paper's count ranks plans far worse there (bench/regret.py). So an *accounting* counts the work of a kind of engine.
"""

import math
from dataclasses import asdict, astuple, dataclass
from typing import Protocol

# Starting to evaluate an expression takes 0.1 microseconds for every pair of tuples, as long as so many operations, or
# less where functions compute many rows at once (measured: 1,000,000 rows of 1 to 4 numbers).
START_OPERATIONS = 150
BATCHED_START_OPERATIONS = 80
# Cost of looking up an existing group in a hash table, relative to inserting a tuple (measured: 5 million rows in
# 10,000 groups).
_LOOKUP_SHARE = 0.25
# Cost of an operator that computes one tuple without keys from others, which takes one more column of a row, relative
# to that of an operator of its own (measured: a training step with 35 of them).
ONE_ROW_OPERATOR = 0.25
# Cost of copying a byte in a join, or of a row that is collected, relative to moving one in a repartition (measured:
# bench/indexed.py; 16 to 1,000 products of 512 x 512 to 32 x 32 matrices).
_COPIED_BYTES = 0.35
# Cost of a byte of an array that is read from a table, and of one that is copied to its place in one array in memory,
# relative to moving one in a repartition (measured: elementwise functions of 80 MB in 10,000 to 300,000 rows).
SCANNED_BYTES = 0.35
KEPT_BYTES = 0.35
# Cost of putting a tuple into an array where functions read values row by row, relative to joining one; every array
# takes as long as joining one (measured on PostgreSQL: 40,000 to 3,200,000 numbers and rows, in 1 to 300,000 arrays).
STACKED_VALUE = 0.45
# A result of so many bytes takes twice as long to write as its bytes, since it leaves the cache and its pages are
# cleared.
_CACHED_BYTES = 8 << 20
# Cost of a byte that is stored in a table and read again, relative to moving one in a repartition (measured: lists of
# 64 to 8,192 numbers in temporary tables).
_STORED_BYTES = 2


@dataclass(frozen=True, slots=True)
class CostConstants:
    """Seconds of an engine's elementary work on a machine, in the order of the fields of `Work`, and of a whole run.

    Attributes:
        fixed_seconds_per_tuple: C_fixed, to process a tuple.
        transfer_seconds_per_byte: C_xfer, to move a byte.
        kernel_seconds_per_operation: C_kernel, for a floating-point operation of a kernel that loops over arrays.
        matrix_seconds_per_operation: For a floating-point operation of a matrix product, which BLAS computes.
        expression_seconds_per_operation: For a floating-point operation of an expression, evaluated block by block.
        hashing_seconds_per_tuple: To look up a tuple in a hash table, or to insert it.
        fixed_seconds_per_operator: To plan and start a relational operator, however little it does.
        fixed_seconds_per_run: To check what a plan relies on, and to run its statements, however little they do.
    """

    fixed_seconds_per_tuple: float
    transfer_seconds_per_byte: float
    kernel_seconds_per_operation: float
    matrix_seconds_per_operation: float
    expression_seconds_per_operation: float
    hashing_seconds_per_tuple: float
    fixed_seconds_per_operator: float
    fixed_seconds_per_run: float = 0.0

    def __post_init__(self) -> None:
        for name, seconds in asdict(self).items():
            if not 0 <= seconds < math.inf:
                raise ValueError(f"{name} is {seconds}; it must be 0 or more, and finite")

    @property
    def of_work(self) -> tuple[float, ...]:
        """The constants of the fields of `Work`, in their order."""
        return astuple(self)[:-1]


@dataclass(frozen=True, slots=True)
class Work:
    """Counts of elementary work.

    Attributes:
        tuples: Tuples that are joined, sliced or stacked.
        bytes_moved: Bytes that are written.
        kernel_operations: Floating-point operations of kernels that loop over arrays.
        matrix_operations: Floating-point operations of matrix products.
        expression_operations: Floating-point operations of expressions over arrays.
        hashed_tuples: Look-ups and insertions in hash tables: of join operands, stacked tuples and groups.
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
        """The work, done `count` times."""
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
        """The seconds that the work takes."""
        return (
            self.tuples * constants.fixed_seconds_per_tuple
            + self.bytes_moved * constants.transfer_seconds_per_byte
            + self.kernel_operations * constants.kernel_seconds_per_operation
            + self.matrix_operations * constants.matrix_seconds_per_operation
            + self.expression_operations * constants.expression_seconds_per_operation
            + self.hashed_tuples * constants.hashing_seconds_per_tuple
            + self.operators * constants.fixed_seconds_per_operator
        )


NO_WORK = Work()


def slowdown_beyond_cache(size_bytes: float, most: float = 2.0) -> float:
    """How many times as long it takes to write a result as bytes in the cache; at most `most` times."""
    return min(1 + size_bytes / _CACHED_BYTES, most)


@dataclass(frozen=True, slots=True)
class ContractionSizes:
    """Sizes of one EinSum under a choice.

    Attributes:
        joined: T_join, the pairs of tuples.
        matched: Tuples of operands that are matched by shared keys; 0 if every tuple is joined with every other.
        groups: The product of V over the promoted labels of the result.
        is_grouped: Whether pairs are aggregated.
        has_keys: Whether the result has promoted labels.
        operand_bytes: Bytes of one tuple of each operand, added up.
        result_bytes: Bytes of a tuple of the result.
        result_size: Elements of an array of the result.
        operations: Floating-point operations of the kernel for one pair.
        is_matrix_product: Whether BLAS computes them.
        is_expression: Whether the kernel evaluates an expression over arrays that is not a sum of products.
        start_operations: Operations that take as long as to start evaluating it for one pair.
        copied_bytes: Bytes of an operand's array that even an engine that passes pointers must copy for every pair.
        looked_up_bytes: Bytes that take as long to move as it takes to find an array of a pair in memory.
        reread_bytes: Bytes that take as long to move as it takes to read the arrays of a pair from memory again.
        scanned_bytes: Bytes of arrays that are read from tables.
        is_streamed: Whether results are numbers that only one other EinSum reads, so that they need not be stored.
        is_one_row: Whether no label is promoted, so that one row has all that is read and computed.
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
    start_operations: int = START_OPERATIONS
    copied_bytes: int = 0
    looked_up_bytes: float = 0.0
    reread_bytes: float = 0.0
    scanned_bytes: float = 0.0
    is_streamed: bool = False
    is_one_row: bool = False

    @property
    def aggregated(self) -> float:
        """T_agg = min(T_join / 2, groups); T_join if nothing is aggregated."""
        return min(self.joined / 2, self.groups) if self.is_grouped else self.joined

    def kernel(self) -> Work:
        """The work of the kernel for all pairs."""
        operations = self.joined * self.operations
        if self.is_expression:
            return Work(expression_operations=operations + self.joined * self.start_operations)
        return Work(matrix_operations=operations) if self.is_matrix_product else Work(kernel_operations=operations)


@dataclass(frozen=True, slots=True)
class RepartitionSizes:
    """Sizes of a repartition from the decomposition P_in to P.

    Attributes:
        before: T(P_in).
        parts: The number of parts that its arrays are cut into, including those that hold only the fill.
        between: T(P_in u P), with the labels of both promoted.
        after: T(P).
        between_bytes: Bytes of a tuple in between.
        after_bytes: Bytes of a tuple afterwards.
        slices: Whether P promotes labels that P_in does not.
        stacks: Whether P_in promotes labels that P does not.
        stored_bytes: Bytes of an array that a statement computes in one row with others, and that gets a table since
            another statement cuts it.
        is_in_memory: Whether the arrays are copied into one, whose parts they are.
        scanned_bytes: Bytes of arrays that are read from a table.
        are_values: Whether functions read arrays as values row by row, not by handles.
    """

    before: float
    parts: float
    between: float
    after: float
    between_bytes: int
    after_bytes: int
    slices: bool
    stacks: bool
    stored_bytes: float = 0.0
    is_in_memory: bool = False
    scanned_bytes: float = 0.0
    are_values: bool = False


class Accounting(Protocol):
    """Counts the work that an engine does for given sizes."""

    def join(self, sizes: ContractionSizes) -> Work:
        """Work to join tuples and run the kernel on every pair."""

    def aggregation(self, sizes: ContractionSizes) -> Work:
        """Work to aggregate the results of the pairs."""

    def storing(self, size_bytes: float) -> Work:
        """Work to keep a result of so many bytes in a table that several read."""

    def collecting(self, size_bytes: float) -> Work:
        """Work to copy the rows of a result, of so many bytes, as they are collected for the user."""

    def repartition(self, sizes: RepartitionSizes) -> Work:
        """Work to change a decomposition."""


class EmbeddedAccounting:
    """Counts for an engine in one process: operands are passed by pointer, groups updated in place, results written."""

    def join(self, sizes: ContractionSizes) -> Work:
        """Every pair is processed, and every matched tuple hashed; results are written unless grouped or streamed."""
        written = 0.0 if sizes.is_grouped or sizes.is_streamed else sizes.joined * sizes.result_bytes
        written += sizes.joined * (sizes.copied_bytes * _COPIED_BYTES + sizes.looked_up_bytes + sizes.reread_bytes)
        written += sizes.scanned_bytes * SCANNED_BYTES
        kernel = sizes.kernel()
        return Work(
            sizes.joined,
            written,
            kernel.kernel_operations,
            kernel.matrix_operations,
            kernel.expression_operations,
            hashed_tuples=sizes.matched,
            operators=ONE_ROW_OPERATOR if sizes.is_one_row else 1,
        )

    def aggregation(self, sizes: ContractionSizes) -> Work:
        """Every group is inserted into a hash table, read from it and written; all other pairs look it up."""
        if not sizes.is_grouped:
            return NO_WORK
        lookups = sizes.joined - sizes.aggregated
        hashed = 2 * sizes.aggregated + lookups * _LOOKUP_SHARE if sizes.has_keys else 0.0
        return Work(bytes_moved=sizes.aggregated * sizes.result_bytes, hashed_tuples=hashed, operators=1)

    def storing(self, size_bytes: float) -> Work:
        """A statement of its own writes all bytes, once more than `join` or `aggregation`, and they are read again."""
        return Work(bytes_moved=size_bytes * _STORED_BYTES, operators=1)

    def collecting(self, size_bytes: float) -> Work:
        """All bytes are copied once, by an operator that runs anyway."""
        return Work(bytes_moved=size_bytes * _COPIED_BYTES)

    def repartition(self, sizes: RepartitionSizes) -> Work:
        """Every part is read, and written unless it holds only the fill; stacked tuples are hashed and written."""
        work = Work(bytes_moved=sizes.scanned_bytes * SCANNED_BYTES)
        if sizes.slices:
            work += Work(sizes.parts, sizes.between * sizes.between_bytes, operators=1)
            work += self.storing(sizes.stored_bytes) if sizes.stored_bytes else NO_WORK
        if sizes.is_in_memory:
            work += Work(sizes.between, sizes.after * sizes.after_bytes * KEPT_BYTES, operators=1)
        elif sizes.stacks:
            stacked = sizes.between * STACKED_VALUE + sizes.after if sizes.are_values else sizes.between
            work += Work(stacked, sizes.after * sizes.after_bytes, hashed_tuples=sizes.between, operators=1)
        return work
