"""Decompose: the cost model: formulas over tuples and bytes, and the constants that turn them into seconds.

Source: SparseEinSum, section 7.2.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CostConstants:
    """What an engine's elementary work takes on a machine, in seconds."""

    transfer_seconds_per_byte: float
    kernel_seconds_per_operation: float
    fixed_seconds_per_tuple: float


def join_cost(constants: CostConstants, tuples: float, tuple_bytes: float, operations: float) -> float:
    """C_join = T_join ((sizeof U + sizeof V) C_xfer + C_kernel + C_fixed), in seconds.

    Args:
        constants: Of the engine and machine.
        tuples: T_join.
        tuple_bytes: Bytes of a tuple of U and of one of V together.
        operations: Floating-point operations of the kernel for one pair of tuples.
    """
    return tuples * (
        tuple_bytes * constants.transfer_seconds_per_byte
        + operations * constants.kernel_seconds_per_operation
        + constants.fixed_seconds_per_tuple
    )


def aggregated_tuples(joined: float, groups: float) -> float:
    """T_agg = min(T_join / 2, groups), groups being the product of V over the promoted labels of the result."""
    return min(joined / 2, groups)


def aggregation_cost(
    constants: CostConstants, joined: float, aggregated: float, tuple_bytes: float, operations: float
) -> float:
    """C_agg = (T_join - T_agg) (sizeof W C_xfer + C_add + C_fixed), in seconds; operations: of one addition."""
    return (joined - aggregated) * (
        tuple_bytes * constants.transfer_seconds_per_byte
        + operations * constants.kernel_seconds_per_operation
        + constants.fixed_seconds_per_tuple
    )


def repartition_cost(
    constants: CostConstants, before: float, between: float, after: float, tuple_bytes: float
) -> float:
    """C_repart = (2 T(P_in u P) - T(P_in) - T(P)) (sizeof tuple C_xfer + C_fixed), in seconds.

    Args:
        constants: Of the engine and machine.
        before: T(P_in), tuples of the producer's decomposition.
        between: T(P_in u P), tuples where all labels of either are promoted.
        after: T(P), tuples of the reader's decomposition.
        tuple_bytes: Bytes of one tuple in between.
    """
    return (2 * between - before - after) * (
        tuple_bytes * constants.transfer_seconds_per_byte + constants.fixed_seconds_per_tuple
    )
