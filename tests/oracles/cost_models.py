"""Cost models of small programs, with constants that tell the terms of a formula apart."""

from collections.abc import Mapping

from evaluated_programs import evaluated

from sparseeinsum.decompose.choice import Choice
from sparseeinsum.decompose.cost import (
    Accounting,
    ContractionSizes,
    CostConstants,
    EmbeddedAccounting,
    RepartitionSizes,
    Work,
)
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.language.eingraph import EinSum
from sparseeinsum.statistics.estimate import Statistics, estimate

# Different primes tell the terms of a formula apart.
CONSTANTS = CostConstants(
    transfer_seconds_per_byte=2,
    kernel_seconds_per_operation=3,
    matrix_seconds_per_operation=5,
    expression_seconds_per_operation=11,
    fixed_seconds_per_tuple=7,
    hashing_seconds_per_tuple=13,
    fixed_seconds_per_operator=17,
)


class DistributedAccounting:
    """The paper's count: both operands of every pair are moved, and every result that is aggregated.

    Source: SparseEinSum, section 7.2.
    """

    def join(self, sizes: ContractionSizes) -> Work:
        """C_join = T_join ((sizeof U + sizeof V) C_xfer + C_kernel + C_fixed)."""
        return Work(sizes.joined, sizes.joined * sizes.operand_bytes) + sizes.kernel()

    def aggregation(self, sizes: ContractionSizes) -> Work:
        """C_agg = (T_join - T_agg) (sizeof W C_xfer + C_add + C_fixed)."""
        merged = sizes.joined - sizes.aggregated
        return Work(merged, merged * sizes.result_bytes, merged * sizes.result_size)

    def storing(self, size_bytes: float) -> Work:
        """Nothing: the paper does not count what storing results takes."""
        del size_bytes
        return Work()

    def collecting(self, size_bytes: float) -> Work:
        """Nothing: the paper does not count what returning results takes."""
        del size_bytes
        return Work()

    def repartition(self, sizes: RepartitionSizes) -> Work:
        """C_repart = (2 T(P_in u P) - T(P_in) - T(P)) (sizeof tuple C_xfer + C_fixed)."""
        tuples = 2 * sizes.between - sizes.before - sizes.after
        return Work(tuples, tuples * sizes.between_bytes)


DISTRIBUTED, EMBEDDED = DistributedAccounting(), EmbeddedAccounting()

PRODUCT = "C[i, k] = sum(A[i, j] * B[j, k])"
OPERANDS = {"A": Statistics(500, (100, 200), (100, 200)), "B": Statistics(800, (160, 50), (200, 50))}


def model_of(text: str, inputs: Mapping[str, Statistics], accounting: Accounting = DISTRIBUTED) -> CostModel:
    """The cost model of a program on inputs with these statistics."""
    graph, evaluations = evaluated(text, inputs)
    statistics = estimate(graph, inputs, evaluations)
    return CostModel(graph, statistics, evaluations, CONSTANTS, accounting)


def promoting(einsum: EinSum, labels: str) -> Choice:
    """The choice that promotes these labels."""
    return tuple(int(label in labels) for label in einsum.labels)
